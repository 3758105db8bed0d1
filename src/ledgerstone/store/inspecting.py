"""A whole SQLite file looked at: is it sound, what does its word index hold, which texts stand in its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import apsw

from ledgerstone.core.rendering import count
from ledgerstone.store.schema import ROW_BITS, copy_index

# Every table that holds rows of a chain, and which chain a row belongs to.
_HISTORY: Final = dict.fromkeys(("header", "entry", "content", "signature", "tile"), f"row >> {ROW_BITS}")
DERIVED: Final = {
    **dict.fromkeys(("record", "node", "words", "vector"), f"row >> {ROW_BITS}"),
    "link": f"source >> {ROW_BITS}",
    **dict.fromkeys(("catalog", "idempotency", "frequency", "corpus", "vectored"), "number"),
}
# What is noted of the file beside its chains: what cut its words, and that a commit of unknown fate was looked for.
_UNKNOWN: Final = "SELECT name FROM setting WHERE name NOT IN ('analyzer', 'settled')"
_OVERWRITES: Final = "SELECT v FROM postings_config WHERE k = 'secure-delete'"
# Every word of the index with every text that holds it, as rows.
_POSTED: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.posted USING fts5vocab(main, postings, instance)"
# The leaves of the index, by segment and page: their sizes, and where the words that begin on them are listed.
_LEAVES: Final = """
SELECT id >> 37, id & 0x7fffffff, length(block), substr(block, 3, 2) FROM postings_data
WHERE id BETWEEN 1 << 37 AND (1 << 53) - 1 AND id >> 31 & 63 = 0 AND typeof(block) = 'blob'
"""
_LEADING: Final = "SELECT segid, pgno >> 1, CAST(ifnull(term, '') AS BLOB) FROM postings_idx WHERE pgno >> 1 > 1"
# Of all folded words the first from a place on, and the last before it; in how many texts one stands.
_OWN: Final = "FROM frequency WHERE frequency.number = corpus.number AND word"
_AT: Final = f"SELECT min((SELECT min(word) {_OWN} >= ?)) FROM corpus"
_BELOW: Final = f"SELECT max((SELECT max(word) {_OWN} < ?)) FROM corpus"
_HOLDING: Final = f"SELECT sum((SELECT holding {_OWN} = ?)) FROM corpus"

# What every SQLite file begins with, and how many bytes an integer of a row may have.
_MAGIC: Final = b"SQLite format 3"
_SIZES: Final = (1, 2, 3, 4, 6, 8)


def amiss(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """What is wrong with the file beside its chains: what SQLite's own check finds, and what no chain accounts for.

    Each with the code of its finding.
    """
    for line in integrity(connection):
        yield "file", line
    for line in _unowned(connection, _HISTORY):
        yield "chain", line
    for line in strays(connection):
        yield "stray", line
    lost = "SELECT count(*) FROM record WHERE printf('%016X', prefix) != hex(substr(digest, 1, 8))"
    if connection.execute(lost).get:
        yield "record", "records cannot be found by their digests"
    if connection.execute(_OVERWRITES).get != 1:
        yield "index", "the word index does not overwrite what it forgets"


def strays(connection: apsw.Connection) -> list[str]:
    """The derived rows that no chain accounts for, and the settings that are none of this program's."""
    unknown = [f"the setting {name!r} is none of this program's" for (name,) in connection.execute(_UNKNOWN)]
    return [*_unowned(connection, DERIVED), *unknown]


def _unowned(connection: apsw.Connection, tables: Mapping[str, str]) -> Iterator[str]:
    for table, column in tables.items():
        sql = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT number FROM chain)"
        rows: int = connection.execute(sql).get
        if rows:
            yield f"{count(rows, 'row')} of {table} {'belongs' if rows == 1 else 'belong'} to no chain"


def integrity(connection: apsw.Connection) -> list[str]:
    """What SQLite's own check finds wrong with the file."""
    try:
        rows: list[str] = [row for (row,) in connection.execute("PRAGMA integrity_check")]
    except (apsw.CorruptError, apsw.SQLError) as error:
        return [str(error)]
    return [] if rows == ["ok"] else rows


def posted(connection: apsw.Connection) -> int | None:
    """All that the full-text index holds, as the sum of hashes, so that nothing has to be held or sorted.

    None where it cannot be read, or where a look-up or a deletion would miss what it holds.
    """
    execute = connection.execute
    try:
        execute(_POSTED)
        held = sum(map(hash, execute("SELECT term, doc FROM temp.posted")))
        # Without its row here, a text is not deleted from the index.
        held += sum(map(hash, execute("SELECT id FROM postings_docsize")))
        usable = _led(connection) and _lets_go(connection)
    except (apsw.CorruptError, apsw.SQLError, apsw.ConstraintError):
        return None
    return held if usable else None


def _lets_go(connection: apsw.Connection) -> bool:
    """Whether the index lets go of each text that it has a row for, tried on a copy in memory.

    A deletion marks a text only in the segments that its row's ``origin`` leads to, and misses it in all others.
    """
    copy = apsw.Connection(":memory:")
    try:
        copy_index(connection, copy)
        # Marks alone: nothing is to be merged meanwhile.
        copy.execute("INSERT INTO postings(postings, rank) VALUES('deletemerge', 0)")
        texts = copy.execute("SELECT id FROM postings_docsize").fetchall()
        with copy:
            copy.executemany("DELETE FROM postings WHERE rowid = ?", texts)
        copy.execute(_POSTED)
        return not copy.execute("SELECT 1 FROM temp.posted LIMIT 1").fetchall()
    finally:
        copy.close()


def _led(connection: apsw.Connection) -> bool:
    """Whether look-ups come to each leaf of the index on which words begin (FTS5's ``fts5_index.c``).

    A leaf is led to by a word above all words of the leaf before it, and not above the first of its own: then the
    words of the store that stand to both sides of it are found in as many texts as hold them.
    """
    execute = connection.execute
    leaves = {
        (segment, page)
        for segment, page, size, listed in execute(_LEAVES)
        if page > 1 and size > int.from_bytes(listed, "big")
    }
    leading = {(segment, page): word[1:] for segment, page, word in execute(_LEADING)}
    if leaves != leading.keys():
        return False
    starts = [word.decode(errors="ignore") for word in leading.values()]
    beside = {execute(sql, (start,)).get for start in starts for sql in (_AT, _BELOW)} - {None}
    found = "SELECT count(*) FROM postings WHERE postings MATCH ?"
    return all(execute(found, (f'"{word}"',)).get == execute(_HOLDING, (word,)).get for word in beside)


def held(connection: apsw.Connection, pieces: Iterable[bytes]) -> dict[bytes, set[str]]:
    """In which tables some pieces of text stand, as the rows of today lie in the file; the word index aside.

    Also those that run from one column into the next, and the file's own schema.
    """
    asked = list(pieces)
    found: dict[bytes, set[str]] = {piece: {"file"} for piece in asked if piece in _MAGIC}
    execute = connection.execute
    names = execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'postings*'")
    tables: list[str] = ["sqlite_schema", *(name for (name,) in names)]
    for table in tables:
        for row in execute(f'SELECT * FROM "{table}"'):
            data = b"".join(map(_lies, row))
            for piece in asked:
                if piece in data:
                    found.setdefault(piece, set()).add(table)
    return found


def _lies(value: object) -> bytes:
    """A column as a row holds it (sqlite.org/fileformat2.html#record_format)."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if not isinstance(value, int) or value in {0, 1}:
        return b""
    size = next(size for size in _SIZES if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1)
    return value.to_bytes(size, "big", signed=True)
