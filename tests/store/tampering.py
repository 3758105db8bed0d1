"""What somebody with a plain SQL client may do to a store at rest: a table of edits."""

# ruff: noqa: S608 - the statements are put together from nothing but what stands here

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import apsw

from ledgerstone.core import canonical, chain, entries, merkle
from tests.stores import SECOND

# Where things stand: ``color_2`` is the row of a version, ``user_chain`` the number of a chain.
Rows: TypeAlias = dict[str, int]
Make: TypeAlias = Callable[[apsw.Connection, Rows], object]


class Of(enum.Enum):
    """What an edit damages: history itself, what ``rebuild`` derives from it, or neither."""

    HISTORY = "history"
    DERIVED = "derived"
    NOTHING = "nothing"


class Read(enum.Enum):
    """What reads make of an edit where nothing is remembered of the store; where something is, none gets that far.

    One refuses; or all answer as before; or recall chooses other genuine records; or no read can tell, and
    something is not found or not listed until somebody verifies.
    """

    REFUSED = "refused"
    WHOLE = "whole"
    CHOICE = "choice"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit; a ``large`` one needs a chain of more than 256 commits."""

    name: str
    make: Make
    of: Of = Of.HISTORY
    read: Read = Read.REFUSED
    large: bool = False

    def apply(self, connection: apsw.Connection, rows: Rows) -> None:
        """Make the edit in one transaction."""
        connection.execute("BEGIN")
        self.make(connection, rows)
        connection.execute("COMMIT")


def _edit(name: str, make: Make | str, of: Of, read: Read = Read.REFUSED, *, large: bool = False) -> Edit:
    if isinstance(make, str):
        script = make

        def make(connection: apsw.Connection, rows: Rows) -> object:
            return connection.execute(script, rows).fetchall()

    return Edit(name, make, of, read, large)


_history = partial(_edit, of=Of.HISTORY)
_derived = partial(_edit, of=Of.DERIVED)
_unmet = partial(_edit, read=Read.WHOLE)
_unseen = partial(_edit, of=Of.DERIVED, read=Read.UNSEEN)


def _replaced(table: str, row: str, old: str, new: str) -> str:
    """Other characters of the same number inside a blob."""
    assert len(old) == len(new)
    changed = f"CAST(replace(CAST(body AS TEXT), '{old}', '{new}') AS BLOB)"
    return f"UPDATE {table} SET body = {changed} WHERE row = {row}"


def _byte(column: str) -> str:
    """A blob with its sixth byte zero."""
    return f"{column} = CAST(substr({column}, 1, 5) || x'00' || substr({column}, 7) AS BLOB)"


def _swapped(table: str, one: str, other: str) -> str:
    """Two rows, each in the other's place."""
    return (
        f"UPDATE {table} SET row = -1 WHERE row = {one}; UPDATE {table} SET row = {one} WHERE row = {other}; "
        f"UPDATE {table} SET row = {other} WHERE row = -1"
    )


_RECORD: Final = (
    "sequence, digest, prefix, memory, version, kind, status, trust, text_bytes, body, depth, key, expires, "
    "sealed, content_bytes, ended_by, ending"
)
# What belongs to the position of a record, and is carried when one is put somewhere else.
_CARRIED: Final = {"entry": "body", "content": "salt, body", "record": _RECORD, "words": "length, words"}


def _copied(table: str, source: str, target: str, columns: str = "") -> str:
    """A row over another, or in a free place."""
    columns = columns or _CARRIED[table]
    found = f"SELECT {target}, {columns} FROM {table} WHERE row = {source}"
    return f"INSERT OR REPLACE INTO {table}(row, {columns}) {found}"


def _carried(source: str, target: str) -> str:
    return "; ".join(_copied(table, source, target) for table in _CARRIED)


def _every(script: Callable[[str], str]) -> str:
    return "; ".join(script(table) for table in _CARRIED)


def contents() -> Iterator[Edit]:
    """What was said, and who is who."""
    named = "(SELECT row FROM content WHERE instr(CAST(body AS TEXT), '{}'))"
    yield _history("a text", _replaced("content", ":color_2", "green", "beige"))
    yield _history("a text that was superseded", _replaced("content", ":color_1", "blue", "pink"))
    yield _history("a reason", _replaced("content", ":wrong_2", "fresh", "salty"))
    yield _history("a key", _replaced("content", ":color_2", "door-color", "roof-color"))
    yield _history("a salt", f"UPDATE content SET {_byte('salt')} WHERE row = :color_2")
    yield _history("a text gone", "DELETE FROM content WHERE row = :color_2")
    yield _history("two texts swapped", _swapped("content", ":rare_1", ":other_1"))
    yield _unmet("a text where there was none", _copied("content", ":rare_1", ":user_chain << 40"), of=Of.HISTORY)
    yield _history("the owner's name", _replaced("content", named.format("local:ada"), "local:ada", "local:eve"))
    yield _history("a path", _replaced("content", named.format("/srv/cedar"), "/srv/cedar", "/etc/cedar"))


def records() -> Iterator[Edit]:
    """Signed entries, and whole records with all that belongs to them."""
    admin = '(SELECT row FROM entry WHERE row >> 40 = 1 AND instr(CAST(body AS TEXT), \'"act":"admin"\'))'
    end = "(:{0}_chain << 40 | (SELECT count(*) FROM entry WHERE row >> 40 = :{0}_chain))"
    yield _history("an entry's kind", _replaced("entry", ":rare_1", '"note"', '"fact"'))
    yield _history("an entry's origin", _replaced("entry", ":rare_1", '"origin":"user"', '"origin":"tool"'))
    yield _history("an entry's status", _replaced("entry", ":task_1", '"status":"open"', '"status":"done"'))
    yield _history("an entry's trust", _replaced("entry", ":hearsay_1", "external_untrusted", "system_verified   "))
    yield _history("an entry that is no JSON", "UPDATE entry SET body = x'7b' WHERE row = :rare_1")
    yield _history("an entry gone", "DELETE FROM entry WHERE row = :rare_1")
    yield _history("two entries swapped", _swapped("entry", ":rare_1", ":other_1"))
    yield _history("a grant's act", _replaced("entry", admin, '"act":"admin"', '"act":"write"'))
    yield _history("a record in the middle gone", _every(lambda table: f"DELETE FROM {table} WHERE row = :rare_1"))
    yield _history("two records swapped", _every(lambda table: _swapped(table, ":rare_1", ":other_1")))
    yield _history("the last two records gone", _truncate)
    yield _history("a record forged at the end", _forge)
    yield _history("a record replayed in another namespace", _carried(":color_2", end.format("project")))
    over = _carried(":color_2", ":project_1")
    yield _edit("a record over one of another namespace", over, Of.HISTORY, Read.UNSEEN)
    yield _history("an older version over the newer", _carried(":color_1", ":color_2"))


def headers() -> Iterator[Edit]:
    """Commits: when, who and in which order; and the signatures and roots that are kept of them."""
    at = "(:user_chain << 40 | (SELECT sequence FROM record WHERE row = :other_1))"
    newest = "(SELECT max(row) FROM header WHERE row >> 40 = :user_chain)"
    kept = "row = (:user_chain << 40 | 256)"
    nobody = canonical.identifier("prn", bytes(10))
    yield _history("a time", _replaced("header", at, '"at":17672', '"at":17671'))
    yield _history("a time, hashed anew", _restamp(lambda stamp: replace(stamp, at=stamp.at + 1)))
    yield _history("a principal, hashed anew", _restamp(lambda stamp: replace(stamp, principal=nobody)))
    yield _history("a time, every later commit hashed anew", _relink)
    yield _history("two headers swapped", _swapped("header", at, f"{at} + 1"))
    yield _history("a header that is no JSON", f"UPDATE header SET body = x'7b' WHERE row = {at}")
    yield _history("a header gone", f"DELETE FROM header WHERE row = {at}")
    yield _history("the head's header gone", f"DELETE FROM header WHERE row = {newest}")
    yield _unmet("a header after the head", _copied("header", newest, f"{newest} + 1", "id, body"), of=Of.HISTORY)
    yield _unmet("an id column", f"UPDATE header SET {_byte('id')} WHERE row = {at}", of=Of.HISTORY)
    for name, script in (
        ("a kept signature", f"UPDATE signature SET {_byte('body')} WHERE {kept}"),
        ("a kept signature gone", f"DELETE FROM signature WHERE {kept}"),
        ("a signature of another commit", f"UPDATE signature SET row = row + 1 WHERE {kept}"),
        ("a kept root", f"UPDATE tile SET {_byte('root')}"),
        ("a kept root gone", "DELETE FROM tile"),
    ):
        yield _unmet(name, script, of=Of.HISTORY, large=True)


def heads() -> Iterator[Edit]:
    """The newest commit of each chain, and the list of chains."""
    before = "(SELECT row & (1 << 40) - 1, id FROM header WHERE row = (number << 40 | sequence - 1))"
    for name in ("store", "user"):
        where = f"WHERE number = :{name}_chain"
        for what, script in (
            ("sequence", "sequence = sequence - 1"),
            ("id", _byte("head")),
            ("signature", _byte("signature")),
            ("frontier", "frontier = substr(frontier, 33)"),
            ("place, back by one", f"(sequence, head) = {before}"),
            ("namespace", "namespace = 'ns_0000000000000000'"),
        ):
            yield _history(f"the {name} head's {what}", f"UPDATE chain SET {script} {where}")
        yield _history(f"the {name} chain gone", f"DELETE FROM chain {where}")
    yield _history(
        "two chains swapped",
        "UPDATE chain SET number = 99 WHERE number = :user_chain; "
        "UPDATE chain SET number = :user_chain WHERE number = :project_chain; "
        "UPDATE chain SET number = :project_chain WHERE number = 99",
    )
    nothing = "SELECT 99, 'ns_0000000000000000', sequence, head, signature, frontier FROM chain WHERE number = 2"
    yield _unmet("a chain of nothing", f"INSERT INTO chain {nothing}", of=Of.HISTORY)
    yield _unmet("an entry of no chain", "INSERT INTO entry VALUES(99 << 40, x'7b7d')", of=Of.NOTHING)


def columns() -> Iterator[Edit]:
    """The columns by which records are found before they are proven."""
    for column, value in (
        ("sequence", "sequence + 1"),
        ("sequence", "-1"),
        ("status", "'open'"),
        ("ended_by", "7"),
        ("ended_by", "-1"),
        ("ending", "3"),
        ("ending", "99"),
        ("ending", "999"),
    ):
        script = f"UPDATE record SET {column} = {value} WHERE row = :color_2"
        yield _derived(f"the column {column} = {value}", script)
    for column, value in (
        ("kind", "'fact'"),
        ("trust", "99"),
        ("status", "'nothing'"),
        ("kind", "'nothing'"),
        ("trust", "trust - 1"),
        ("text_bytes", "text_bytes + 1"),
        ("body", "body + 1"),
        ("depth", "depth + 1"),
        ("sealed", "7"),
        ("key", "'other-key'"),
        ("key", "NULL"),
    ):
        script = f"UPDATE record SET {column} = {value} WHERE row = :color_2"
        yield _unmet(f"the column {column} = {value}", script, of=Of.DERIVED)
    for column, value in (
        ("version", "version + 1"),
        ("memory", "'mem_0000000000000000'"),
        ("digest", "zeroblob(32)"),
        ("prefix", "prefix + 1"),
    ):
        script = f"UPDATE record SET {column} = {value} WHERE row = :color_2"
        yield _unseen(f"the column {column} = {value}", script)
    for column, value in (("trust", "0"), ("expires", "1")):
        script = f"UPDATE record SET {column} = {value} WHERE row = :color_2"
        yield _edit(f"the column {column} = {value}", script, Of.DERIVED, Read.CHOICE)
    for table, column, value in (
        ("record", "sequence", "'one'"),
        ("record", "ending", "NULL"),
        ("words", "words", "x'ff'"),
    ):
        yield _derived(f"{table}.{column} of another type", _retype(table, column, value))
    yield _unseen("record.digest of another type", _retype("record", "digest", "7"))
    for table in ("entry", "content"):
        yield _history(f"{table}.body of another type", _retype(table, "body", "'text'"))
    stands, ended = "ended_by = 0, ending = 0", "ended_by = 2, ending = 1"
    update = "UPDATE record SET {} WHERE row = {}"
    up, down = update.format(stands, ":color_1"), update.format(ended, ":color_2")
    mistaken = "SELECT memory, version + 1 FROM record WHERE row = :rare_1"
    yield _derived("what ended stands again", up)
    yield _derived("what stands has ended", down)
    yield _derived("standing flipped both ways", f"{up}; {down}")
    yield _derived("a task forgotten", update.format("status = 'active'", ":task_1"))
    forgotten, taken = update.format("status = 'active'", ":task_1"), update.format("status = 'open'", ":rare_1")
    yield _derived("a task forgotten for a note", f"{forgotten}; {taken}")
    yield _derived("a record of low trust trusted", update.format("trust = 6", ":hearsay_1"))
    yield _unseen("a lone record under another id", update.format("memory = 'mem_0000000000000000'", ":rare_1"))
    given = update.format(f"(memory, version) = ({mistaken})", ":color_2")
    yield _unseen("one memory's version given to another", given)
    yield _derived("a record's row gone", "DELETE FROM record WHERE row = :color_2")
    yield _derived("a record's row too many", _copied("record", ":color_2", ":user_chain << 40"))
    yield _derived("two records' rows swapped", _swapped("record", ":rare_1", ":other_1"))


def lists() -> Iterator[Edit]:
    """Links between records, the catalog of the store chain, the state tree, the keys of repeated writes."""
    yield _unseen("a link gone", "DELETE FROM link WHERE row = :summary_1")
    yield _unseen("a link that covers no more", "UPDATE link SET covers = 0 WHERE row = :summary_1")
    yield _unseen("a link forged", "INSERT INTO link VALUES(:other_1, :summary_1, 1)")
    yield _unseen("a link from another chain", "UPDATE link SET row = row + (99 << 40) WHERE row = :summary_1")
    for table, values in (
        ("link", "99 << 40, 99 << 40, 1"),
        ("catalog", "99, 'grant', 'x', 0, 0, 0, 0"),
        ("node", "99 << 40, zeroblob(32)"),
        ("idempotency", "zeroblob(32), 99, 1"),
        ("vectored", "99, 'x', 1, 0, 0"),
        ("vector", "99 << 40, x'00'"),
    ):
        yield _unmet(f"a {table} of no chain", f"INSERT INTO {table} VALUES({values})", of=Of.DERIVED)
    yield _unmet("a setting of nobody", "INSERT INTO setting VALUES('other', 'x')", of=Of.DERIVED)
    for noun in ("grant", "alias", "namespace", "name", "scoped", "named"):
        newest = f"noun = '{noun}' AND ending = 0 ORDER BY position DESC LIMIT 1"
        one = f"(noun, value, position) = (SELECT noun, value, position FROM catalog WHERE {newest})"
        twice = "number, noun, value || 'x', position, sequence, ended_by, ending"
        yield _unseen(f"the newest {noun} under another value", f"UPDATE catalog SET value = value || 'x' WHERE {one}")
        gone = _derived if noun in {"alias", "namespace"} else _unseen
        yield gone(f"the newest {noun} gone", f"DELETE FROM catalog WHERE {one}")
        yield _derived(f"the newest {noun} forged", f"INSERT INTO catalog SELECT {twice} FROM catalog WHERE {one}")
        yield _derived(f"the newest {noun} revoked", f"UPDATE catalog SET ended_by = 1, ending = 8 WHERE {one}")
    yield _derived("a grant of another commit", "UPDATE catalog SET sequence = sequence + 1 WHERE noun = 'grant'")
    yield _derived("a revocation gone", "DELETE FROM catalog WHERE noun = 'revoke'")
    for noun in ("grant", "alias"):
        again = f"UPDATE catalog SET ended_by = 0, ending = 0 WHERE noun = '{noun}' AND ending = 8"
        yield _derived(f"a revoked {noun} stands again", again)
    node = ":user_chain << 40"
    yield _derived("a node", f"UPDATE node SET {_byte('children')} WHERE row = {node}")
    yield _derived("a node shorter", f"UPDATE node SET children = substr(children, 1, 32) WHERE row = {node}")
    yield _derived("a node gone", f"DELETE FROM node WHERE row = {node}")
    yield _derived("two nodes swapped", _swapped("node", node, f"({node}) + 1"))
    yield _unmet("a node too many", _copied("node", node, f"({node}) + 9", "children"), of=Of.DERIVED)
    yield _unmet("a rejected value forgotten", "DELETE FROM catalog WHERE noun = 'tombstone'", of=Of.DERIVED)
    first = "WHERE number = :user_chain AND sequence = 1"
    for name, script in (
        ("a write's key", f"UPDATE idempotency SET {_byte('key')} {first}"),
        ("a write's commit", f"UPDATE idempotency SET sequence = 9 {first}"),
        ("a write's chain", f"UPDATE idempotency SET number = 1 {first}"),
        ("a write's key gone", f"DELETE FROM idempotency {first}"),
        ("a write's key forged", "INSERT INTO idempotency VALUES(zeroblob(32), :user_chain, 5)"),
    ):
        yield _unmet(name, script, of=Of.DERIVED)


def words() -> Iterator[Edit]:
    """The word index, which decides what recall looks at and never what it says."""
    common = "(SELECT word FROM frequency WHERE number = :user_chain ORDER BY holding DESC, word LIMIT 1)"
    gone = "DELETE FROM postings WHERE rowid = :rare_1"
    yield _derived("the words of a record gone", "DELETE FROM words WHERE row = :last_1")
    yield _derived("the words of nothing", "INSERT INTO words(row, length, words) VALUES(:user_chain << 40, 1, ' x ')")
    for name, script in (
        ("the words of a record", "UPDATE words SET words = ' lantern x ' WHERE row = :other_1"),
        ("the length of a record", "UPDATE words SET length = 1 WHERE row = :other_1"),
        ("two records' words swapped", _swapped("words", ":rare_1", ":other_1")),
        ("a frequency", f"UPDATE frequency SET holding = holding - 1 WHERE word = {common}"),
        ("a frequency gone", f"DELETE FROM frequency WHERE word = {common}"),
        ("a frequency forged", "INSERT INTO frequency VALUES(:user_chain, 'yeti', 3)"),
        ("how far the index goes", "UPDATE corpus SET through = through + 1"),
        ("how many documents it holds", "UPDATE corpus SET documents = documents + 1"),
        ("how long they are", "UPDATE corpus SET length = length + 1"),
        ("its totals gone", "DELETE FROM corpus"),
        ("a posting gone", gone),
        ("a posting forged", "INSERT INTO postings(rowid, words) VALUES(:last_1, ' zanzibar ')"),
        ("a posting replaced by junk", f"{gone}; INSERT INTO postings(rowid, words) VALUES(:rare_1, ' junk junk ')"),
        ("two postings swapped", _repost),
    ):
        yield _edit(name, script, Of.DERIVED, Read.CHOICE, large=True)
    for table, values in (
        ("words(row, length, words)", "99 << 40, 1, ' x '"),
        ("frequency", "99, 'x', 1"),
        ("corpus", "99, 0, 0, 0"),
    ):
        yield _unmet(f"{table.partition('(')[0]} of no chain", f"INSERT INTO {table} VALUES({values})", of=Of.DERIVED)
    yield _unseen("what it forgets left as it was", "DELETE FROM postings_config WHERE k = 'secure-delete'")


def _restamp(change: Callable[[entries.Stamp], entries.Stamp]) -> Make:
    """One commit with another stamp and an id to match; no other commit is touched."""

    def make(connection: apsw.Connection, rows: Rows) -> None:
        execute = connection.execute
        sequence = execute("SELECT sequence FROM record WHERE row = ?", (rows["other_1"],)).get
        row = rows["user_chain"] << 40 | sequence
        header = entries.decode_header(execute("SELECT body FROM header WHERE row = ?", (row,)).get)
        data = entries.encode_header(replace(header, stamp=change(header.stamp)))
        execute("UPDATE header SET id = ?, body = ? WHERE row = ?", (merkle.leaf_hash(data), data, row))

    return make


def _retype(table: str, column: str, value: str) -> Make:
    """A value of a type that the table's schema forbids, as a flipped bit in its record can make of it."""

    def make(connection: apsw.Connection, rows: Rows) -> None:
        execute = connection.execute
        schema = execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
        for text in (str(schema).replace(" STRICT", "").replace(" NOT NULL", ""), schema):
            execute("PRAGMA writable_schema = ON")
            execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, table))
            execute("PRAGMA writable_schema = RESET")
            if text != schema:
                execute(f"UPDATE {table} SET {column} = {value} WHERE row = :color_2", rows)

    return make


def _headers(connection: apsw.Connection, number: int) -> list[tuple[int, bytes]]:
    sql = "SELECT row, body FROM header WHERE row >> 40 = ? ORDER BY row"
    found: list[tuple[Any, ...]] = connection.execute(sql, (number,)).fetchall()
    return [(row, data) for row, data in found]


def _put_head(connection: apsw.Connection, number: int, head: chain.Head) -> None:
    frontier = b"".join(head.frontier)
    values = head.sequence, head.id, frontier, number
    connection.execute("UPDATE chain SET sequence = ?, head = ?, frontier = ? WHERE number = ?", values)


def _relink(connection: apsw.Connection, rows: Rows) -> None:
    """A commit with another time, and everything after it hashed anew: all that can be done without the key."""
    number = rows["user_chain"]
    altered = connection.execute("SELECT sequence FROM record WHERE row = ?", (rows["other_1"],)).get
    head: chain.Head | None = None
    for row, old in _headers(connection, number):
        header = entries.decode_header(old)
        if header.sequence == altered:
            header = replace(header, stamp=replace(header.stamp, at=header.stamp.at + SECOND // 2))
        elif head is not None:
            header = replace(header, parent=head.id, history=merkle.root(head.grown))
        data = entries.encode_header(header)
        head = chain.Head(merkle.leaf_hash(data), header, () if head is None else head.grown)
        connection.execute("UPDATE header SET id = ?, body = ? WHERE row = ?", (head.id, data, row))
    assert head is not None
    _put_head(connection, number, head)


def _truncate(connection: apsw.Connection, rows: Rows) -> None:
    """The last two records gone from every table, and the head row moved back to before them."""
    execute = connection.execute
    number = rows["user_chain"]
    for row in (rows["penultimate_1"], rows["last_1"]):
        sequence = execute("SELECT sequence FROM record WHERE row = ?", (row,)).get
        execute("DELETE FROM header WHERE row = ?", (number << 40 | sequence,))
        execute("DELETE FROM idempotency WHERE number = ? AND sequence = ?", (number, sequence))
        for table in _CARRIED:
            execute(f"DELETE FROM {table} WHERE row = ?", (row,))
    head: chain.Head | None = None
    for _, data in _headers(connection, number):
        head = chain.Head(*chain.read(data), () if head is None else head.grown)
    assert head is not None
    _put_head(connection, number, head)


def _forge(connection: apsw.Connection, rows: Rows) -> None:
    """A record that nobody wrote, whose hashes fit each other."""
    execute = connection.execute
    source, number = rows["last_1"], rows["user_chain"]
    memory = canonical.identifier("mem", bytes(10))
    entry = entries.decode_entry(execute("SELECT body FROM entry WHERE row = ?", (source,)).get)
    assert isinstance(entry, entries.RecordEntry)
    sealed, content = entries.seal_content(entries.Content(text="the owner owes me money"), bytes(32))
    data = entries.encode_entry(replace(entry, memory=memory, content=sealed))
    digest = entries.digest_of(data)
    position = execute("SELECT count(*) FROM entry WHERE row >> 40 = ?", (number,)).get
    row = number << 40 | position
    execute("INSERT INTO entry(row, body) VALUES(?, ?)", (row, data))
    execute("INSERT INTO content(row, salt, body) VALUES(?, ?, ?)", (row, bytes(32), content))
    execute(_copied("record", "?", "?"), (row, source))
    execute(
        "UPDATE record SET memory = ?, digest = ?, prefix = ?, body = ? WHERE row = ?",
        (memory, digest, int.from_bytes(digest[:8], "big", signed=True), position, row),
    )


def _repost(connection: apsw.Connection, rows: Rows) -> None:
    """Two records' words, each under the other in the full-text index alone."""
    execute = connection.execute
    one, other = rows["rare_1"], rows["other_1"]
    found = {row: execute("SELECT words FROM words WHERE row = ?", (row,)).get for row in (one, other)}
    execute("DELETE FROM postings WHERE rowid IN (?, ?)", (one, other))
    execute("INSERT INTO postings(rowid, words) VALUES(?, ?), (?, ?)", (one, found[other], other, found[one]))


EDITS: Final = (*contents(), *records(), *headers(), *heads(), *columns(), *lists(), *words())

# What a store must withstand at rest, and the edits that try it; whole files are exchanged in the tests of anchors,
# and schemas in those of the gates.
WITHSTOOD: Final = {
    "content altered": ("a text", "a text that was superseded", "a reason", "a key"),
    "the last two records removed": ("the last two records gone",),
    "a record in the middle removed": ("a record in the middle gone",),
    "two records swapped": ("two records swapped", "two texts swapped", "two entries swapped"),
    "a forged record inserted": ("a record forged at the end", "a time, every later commit hashed anew"),
    "a record replayed into another namespace": (
        "a record replayed in another namespace",
        "a record over one of another namespace",
    ),
    "an older version replayed over a newer": ("an older version over the newer",),
    "principal altered": ("a principal, hashed anew", "the owner's name"),
    "trust altered": ("an entry's trust", "the column trust = 0", "a record of low trust trusted"),
    "origin altered": ("an entry's origin",),
    "time altered": ("a time", "a time, hashed anew"),
    "kind altered": ("an entry's kind", "the column kind = 'fact'"),
    "status altered": ("an entry's status", "the column status = 'open'", "a task forgotten for a note"),
    "standing flipped": ("what ended stands again", "what stands has ended", "standing flipped both ways"),
    "a word row deleted": ("the words of a record gone", "a posting gone"),
    "a word row replaced by junk": ("the words of a record", "a posting replaced by junk"),
    "a grant forged": ("the newest grant forged", "a grant's act", "a revoked grant stands again"),
    "an alias forged": ("the newest alias forged", "a path", "a revoked alias stands again"),
}
