"""The rows of a SQLite store, read: integer keys, one FTS5 table as boolean postings (sqlite.org/fts5.html)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import apsw
import orjson

from ledgerstone.core import canonical, entries
from ledgerstone.core.facts import Known
from ledgerstone.core.merkle import HASH_BYTES
from ledgerstone.core.receipts import Drawn
from ledgerstone.core.values import DEFAULT_FLOOR, Ending, Kind, Status, Trust
from ledgerstone.errors import CorruptionError, UsageError
from ledgerstone.store import inspecting, schema
from ledgerstone.store.protocol import (
    NOW,
    VECTOR_BLOCK,
    Candidate,
    ChainRow,
    Corpus,
    Listed,
    NodeKey,
    Shape,
    Standing,
    Stored,
    Tally,
    Terms,
    Vectored,
    View,
    WordRow,
)

_BITS: Final = schema.ROW_BITS
_MASK: Final = (1 << _BITS) - 1
LEVEL_BITS: Final = 36
# So many chains have rows of their own in the range of SQLite's integers.
MAX_CHAINS: Final = (1 << 63 - _BITS) - 1
_CHAIN: Final = "number, namespace, sequence, head, signature, frontier"
KNOWN: Final = (
    "row, sequence, digest, memory, version, kind, status, trust, text_bytes, body, depth, key, expires, "
    "sealed, content_bytes, ended_by, ending"
)

# By what a column holds: a third of what it costs to call the enumeration.
_KINDS: Final = {kind.value: kind for kind in Kind}
_STATUSES: Final = {status.value: status for status in Status}
_TRUSTS: Final = {trust.value: trust for trust in Trust}
_ENDINGS: Final = {ending.value: ending for ending in Ending}


def _chain(values: tuple[Any, ...]) -> ChainRow:
    number, namespace, sequence, head, signature, frontier = values
    if not (0 < number <= MAX_CHAINS and 0 <= sequence <= _MASK):
        raise CorruptionError(f"{namespace}: chain {number} at {sequence} is not as it was written")
    hashes = tuple([frontier[i : i + HASH_BYTES] for i in range(0, len(frontier), HASH_BYTES)])
    return ChainRow(number, namespace, sequence, head, signature, hashes)


def _known(values: tuple[Any, ...]) -> Known:
    (
        row,
        sequence,
        digest,
        memory,
        version,
        kind,
        status,
        trust,
        text_bytes,
        body,
        depth,
        key,
        expires,
        sealed,
        content_bytes,
        by,
        ending,
    ) = values
    try:
        return Known(
            row & _MASK,
            _place(sequence),
            digest,
            memory,
            version,
            _KINDS[kind],
            _STATUSES[status],
            _TRUSTS[trust],
            text_bytes,
            body,
            depth,
            key,
            expires,
            sealed == 1,
            content_bytes,
            _place(by),
            _ENDINGS[ending],
        )
    except (ValueError, KeyError) as error:
        raise CorruptionError(f"the row of entry {row & _MASK} is not as it was written: {error}") from error


def _place(sequence: int) -> int:
    """A sequence out of a column, as far as a column can be believed."""
    if not 0 <= sequence <= _MASK:
        raise ValueError(f"{sequence} is no sequence")
    return sequence


def _standing(position: int, sequence: int, ended_by: int, ending: int) -> Standing:
    try:
        return Standing(_place(sequence), _place(ended_by), _ENDINGS[ending])
    except (ValueError, KeyError) as error:
        raise CorruptionError(f"the row of entry {position} is not as it was written: {error}") from error


def _listed(noun: str, value: str, position: int, sequence: int, ended_by: int, ending: int) -> Listed:
    try:
        return Listed(noun, value, _place(position), _place(sequence), _place(ended_by), Ending(ending))
    except ValueError as error:
        raise CorruptionError(f"a {noun} row of the catalog is not as it was written: {error}") from error


def prefix(digest: bytes) -> int:
    """Eight bytes of a digest as SQLite's signed integer: enough to find it by, in half an index."""
    return int.from_bytes(digest[:8], "big", signed=True)


class SqliteReader:
    """One snapshot of the file. Rows are those of a chain's range; nothing here is believed by those who read.

    ``turn`` tells one connection of a store from the next, each of which counts anew what others committed.
    """

    __slots__ = ("_connection", "_edits", "_turn")

    @property
    def damaged(self) -> tuple[type[Exception], ...]:
        """Our own, and what becomes a CorruptionError where a block ends."""
        return CorruptionError, UsageError, apsw.CorruptError, apsw.SQLError, UnicodeDecodeError

    def __init__(self, connection: apsw.Connection, turn: int = 0) -> None:
        self._connection = connection
        self._turn = turn
        self._edits: int | None = None

    def _one(self, sql: str, *values: Any) -> Any:
        return self._connection.execute(sql, values).get

    def _column(self, sql: str, *values: Any) -> list[Any]:
        return [row[0] for row in self._connection.execute(sql, values)]

    def chain(self, namespace: str) -> ChainRow | None:
        row = self._one(f"SELECT {_CHAIN} FROM chain WHERE namespace = ?", namespace)
        return None if row is None else _chain(row)

    def first(self) -> ChainRow | None:
        """The chain that was made first, which is the store's own."""
        row = self._one(f"SELECT {_CHAIN} FROM chain WHERE number = 1")
        return None if row is None else _chain(row)

    def edits(self) -> int:
        """A number that changes, from one snapshot to the next, when another connection has committed."""
        if self._edits is None:
            version: int = self._one("PRAGMA data_version")
            self._edits = self._turn << 32 | version
        return self._edits

    def first_chain(self) -> str | None:
        """The namespace of the chain that was made first, which is the store's own."""
        namespace: str | None = self._one("SELECT namespace FROM chain WHERE number = 1")
        return namespace

    def chains(self, wrong: list[str] | None = None) -> list[ChainRow]:
        """All of them, the store's own first; CorruptionError for a row that was never written so.

        With ``wrong`` such a row goes there in words, and the rest is told, but none without the store's own, on which
        they rest. A row that can be followed all the same, but for its sequence, is among the rest, as at 0.
        """
        sql = f"SELECT {_CHAIN} FROM chain WHERE number = ?"
        rows = []
        for number in self._column("SELECT number FROM chain ORDER BY number"):
            try:
                values = self._one(sql, number)
                if wrong is not None and not 0 <= values[2] <= _MASK:
                    wrong.append(f"the row of {values[1]} is not as it was written: commit {values[2]}")
                    values = (*values[:2], 0, *values[3:])
                rows.append(_chain(values))
            except (CorruptionError, UnicodeDecodeError) as error:
                if wrong is None:
                    raise
                wrong.append(f"a row of a chain cannot be followed: {error}")
        return [] if wrong and (not rows or rows[0].number != 1) else rows

    def header(self, number: int, sequence: int) -> bytes | None:
        body: bytes | None = self._one("SELECT body FROM header WHERE row = ?", number << _BITS | sequence)
        return body

    def headers_of(self, number: int, sequences: Sequence[int]) -> dict[int, bytes]:
        """The headers of those commits that are there."""
        sql = f"SELECT row & {_MASK}, body FROM carray(?) AS asked JOIN header ON row = asked.value"
        return dict(self._asked(sql, number, sequences))

    def headers(self, number: int, *, newest: int, oldest: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Sequence, id column and bytes, newest first, or oldest first when ``newest`` < ``oldest``."""
        first, last, order = (oldest, newest, "DESC") if newest >= oldest else (newest, oldest, "ASC")
        sql = f"SELECT row, id, body FROM header WHERE row BETWEEN ? AND ? ORDER BY row {order}"
        for row, commit, body in self._connection.execute(sql, (number << _BITS | first, number << _BITS | last)):
            yield row & _MASK, commit, body

    def signatures(self, number: int) -> dict[int, bytes]:
        sql = "SELECT row, body FROM signature WHERE row BETWEEN ? AND ?"
        return {row & _MASK: body for row, body in self._connection.execute(sql, span(number))}

    def tiles(self, number: int) -> dict[int, bytes]:
        sql = "SELECT row, root FROM tile WHERE row BETWEEN ? AND ?"
        return {row & _MASK: root for row, root in self._connection.execute(sql, span(number))}

    def entry(self, number: int, position: int) -> bytes | None:
        body: bytes | None = self._one("SELECT body FROM entry WHERE row = ?", number << _BITS | position)
        return body

    def entries(self, number: int, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        sql = "SELECT row, body FROM entry WHERE row BETWEEN ? AND ? ORDER BY row"
        for row, body in self._connection.execute(sql, (number << _BITS | first, number << _BITS | last)):
            yield row & _MASK, body

    def content(self, number: int, position: int) -> tuple[bytes, bytes] | None:
        row: tuple[bytes, bytes] | None = self._one(
            "SELECT salt, body FROM content WHERE row = ?", number << _BITS | position
        )
        return row

    def contents(self, number: int, first: int, last: int) -> Iterator[tuple[int, bytes, bytes]]:
        sql = "SELECT row, salt, body FROM content WHERE row BETWEEN ? AND ? ORDER BY row"
        bounds = number << _BITS | first, number << _BITS | last
        for row, salt, body in self._connection.execute(sql, bounds):
            yield row & _MASK, salt, body

    def bodies(self, number: int, positions: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        """The contents that hold the texts of those versions that have one, in the order asked."""
        sql = (
            f"SELECT asked.value & {_MASK}, content.body FROM carray(?) AS asked "
            "JOIN record ON record.row = asked.value "
            f"JOIN content ON content.row = (asked.value & ~{_MASK}) | record.body"
        )
        return self._asked(sql, number, positions)

    def node(self, number: int, level: int, index: int) -> bytes | None:
        children: bytes | None = self._one(
            "SELECT children FROM node WHERE row = ?", number << _BITS | level << LEVEL_BITS | index
        )
        return children

    def nodes_of(self, number: int, keys: Sequence[NodeKey]) -> dict[NodeKey, bytes]:
        """Those of some nodes that are there."""
        sql = f"SELECT row & {_MASK}, children FROM carray(?) AS asked JOIN node ON row = asked.value"
        rows = self._asked(sql, number, [level << LEVEL_BITS | index for level, index in keys])
        return {(local >> LEVEL_BITS, local & ((1 << LEVEL_BITS) - 1)): children for local, children in rows}

    def nodes(self, number: int, level: int) -> Iterator[tuple[int, bytes]]:
        """Index and children of the nodes of one level, in order."""
        sql = "SELECT row, children FROM node WHERE row BETWEEN ? AND ? ORDER BY row"
        first, last = number << _BITS | level << LEVEL_BITS, (1 << LEVEL_BITS) - 1
        for row, children in self._connection.execute(sql, (first, first | last)):
            yield row & last, children

    def standing(self, number: int, position: int) -> Standing | None:
        row = self._one("SELECT sequence, ended_by, ending FROM record WHERE row = ?", number << _BITS | position)
        return None if row is None else _standing(position, *row)

    def stored(self, number: int, positions: Sequence[int]) -> Iterator[Stored]:
        """What those versions are made of that have a row, in the order asked."""
        sql = (
            f"SELECT asked.value & {_MASK}, sequence, ended_by, ending, entry.body, salt, content.body, "
            "EXISTS (SELECT 1 FROM link WHERE source = asked.value AND covers = 1) "
            "FROM carray(?) AS asked JOIN record ON record.row = asked.value "
            "LEFT JOIN entry ON entry.row = asked.value LEFT JOIN content ON content.row = asked.value"
        )
        for position, sequence, ended_by, ending, entry, salt, content, covered in self._asked(sql, number, positions):
            standing = _standing(position, sequence, ended_by, ending)
            yield Stored(position, standing, entry, None if content is None else (salt, content), bool(covered))

    def ended_since(self, number: int, sequence: int) -> list[int]:
        """The positions whose rows say that a commit after a sequence ended them."""
        records = self._column(
            "SELECT row FROM record WHERE row BETWEEN ? AND ? AND ended_by > ?", *span(number), sequence
        )
        listed = self._column("SELECT position FROM catalog WHERE number = ? AND ended_by > ?", number, sequence)
        return sorted({*(row & _MASK for row in records), *listed})

    def known(self, number: int, position: int) -> Known | None:
        row = self._one(f"SELECT {KNOWN} FROM record WHERE row = ?", number << _BITS | position)
        return None if row is None else _known(row)

    def knowns(self, number: int, first: int, last: int) -> Iterator[Known]:
        sql = f"SELECT {KNOWN} FROM record WHERE row BETWEEN ? AND ? ORDER BY row"
        for row in self._connection.execute(sql, (number << _BITS | first, number << _BITS | last)):
            yield _known(row)

    def versions(self, memory: str) -> list[tuple[int, int, int]]:
        sql = "SELECT row, version FROM record WHERE memory = ? ORDER BY version"
        return [(row >> _BITS, row & _MASK, version) for row, version in self._connection.execute(sql, (memory,))]

    def newest(self, number: int, memory: str) -> int | None:
        """Where the highest version of a memory stands in a chain."""
        # Of a memory that is new, as most are: asked for in an order, nothing costs ten times as much to find.
        if self._one("SELECT 1 FROM record WHERE memory = ? LIMIT 1", memory) is None:
            return None
        sql = "SELECT row FROM record WHERE memory = ? AND row BETWEEN ? AND ? ORDER BY version DESC LIMIT 1"
        row = self._one(sql, memory, *span(number))
        return None if row is None else row & _MASK

    def version_at(self, number: int, memory: str, version: int) -> int | None:
        """Where one version of a memory stands in a chain."""
        sql = "SELECT row FROM record WHERE memory = ? AND version = ? AND row BETWEEN ? AND ? LIMIT 1"
        row = self._one(sql, memory, version, *span(number))
        return None if row is None else row & _MASK

    def digests(self, digest: bytes) -> list[tuple[int, int]]:
        sql = "SELECT row FROM record WHERE prefix = ? AND digest = ?"
        return [(row >> _BITS, row & _MASK) for row in self._column(sql, prefix(digest), digest)]

    def holder(self, number: int, key: str) -> int | None:
        """The newest version of the memory that holds a key; contested and held versions hold none."""
        sql = (
            "SELECT max(row) FROM record WHERE key = ? AND row BETWEEN ? AND ? "
            f"AND NOT (version = 1 AND ending IN ({Ending.CONTESTED:d}, {Ending.HELD:d}))"
        )
        row = self._one(sql, key, *span(number))
        return None if row is None else row & _MASK

    def keyed(self, number: int, key: str) -> list[int]:
        """All versions with a key, those that stand aside included."""
        sql = "SELECT row FROM record WHERE key = ? AND row BETWEEN ? AND ? ORDER BY row"
        return [row & _MASK for row in self._column(sql, key, *span(number))]

    def tagged(self, number: int, tag: str) -> list[int]:
        """All versions with a tag, those that carry on a text with it included."""
        # A look at the bytes finds what holds the tag as a JSON string; only of that the tags are read.
        sql = (
            "SELECT record.row, content.body FROM record "
            f"JOIN content ON content.row = (record.row & ~{_MASK}) | record.body "
            "WHERE record.row BETWEEN ? AND ? AND instr(content.body, ?) ORDER BY record.row"
        )
        rows = self._connection.execute(sql, (*span(number), canonical.encode(tag)))
        return [row & _MASK for row, body in rows if tag in entries.decode_content(body).tags]

    def expired(self, number: int, now: int) -> list[int]:
        """Versions whose expiry has passed and whose text is not erased."""
        sql = f"SELECT row FROM record WHERE expires <= ? AND ending != {Ending.ERASED:d} AND row BETWEEN ? AND ?"
        return [row & _MASK for row in self._column(sql, now, *span(number))]

    def resting_on(self, number: int, position: int) -> list[int]:
        sql = "SELECT row FROM link WHERE source = ? ORDER BY row"
        return [row & _MASK for row in self._column(sql, number << _BITS | position)]

    def covering(self, number: int, position: int) -> list[int]:
        sql = "SELECT row FROM link WHERE source = ? AND covers = 1 ORDER BY row"
        return [row & _MASK for row in self._column(sql, number << _BITS | position)]

    def covered(self, number: int, positions: Sequence[int], view: View = NOW) -> list[tuple[int, int]]:
        """Which of the positions a summary in view covers, and which one: (position, summary)."""
        sql = (
            f"SELECT asked.value & {_MASK}, link.row & {_MASK} FROM carray(?) AS asked "
            "JOIN link ON link.source = asked.value JOIN record ON record.row = link.row "
            f"WHERE covers = 1 AND {_seen(view)}"
        )
        return list(self._asked(sql, number, positions))

    def links(self, number: int) -> Iterator[tuple[int, int, int]]:
        sql = "SELECT source, row, covers FROM link WHERE source BETWEEN ? AND ?"
        base = number << _BITS
        for source, row, covers in self._connection.execute(sql, span(number)):
            yield source - base, row - base, covers

    def lookup(self, number: int, noun: str, value: str) -> list[Listed]:
        sql = (
            "SELECT position, sequence, ended_by, ending FROM catalog "
            "WHERE number = ? AND noun = ? AND value = ? ORDER BY position"
        )
        return [_listed(noun, value, *row) for row in self._connection.execute(sql, (number, noun, value))]

    def catalog(self, number: int, noun: str | None = None) -> Iterator[Listed]:
        sql = "SELECT noun, value, position, sequence, ended_by, ending FROM catalog WHERE number = ?"
        bound: tuple[Any, ...] = (number,)
        if noun is not None:
            sql, bound = sql + " AND noun = ?", (number, noun)
        for row in self._connection.execute(sql, bound):
            yield _listed(*row)

    def catalog_sizes(self, number: int) -> dict[str, int]:
        """How many entries the catalog lists under each noun."""
        sql = "SELECT noun, count(*) FROM catalog WHERE number = ? GROUP BY noun"
        return dict(self._connection.execute(sql, (number,)))

    def idempotent(self, number: int, key: bytes) -> int | None:
        sequence: int | None = self._one("SELECT sequence FROM idempotency WHERE key = ? AND number = ?", key, number)
        return sequence

    def idempotencies(self, number: int) -> Iterator[tuple[bytes, int]]:
        yield from self._connection.execute("SELECT key, sequence FROM idempotency WHERE number = ?", (number,))

    def tally(self, number: int, first: int) -> Tally:
        """What the derived rows from a position on add up to."""
        bounds = number << _BITS | first, span(number)[1]
        records, current, open_tasks = self._one(
            "SELECT count(*), total(ending = 0), total(ending = 0 AND status = 'open' AND trust >= ?) "
            "FROM record WHERE row BETWEEN ? AND ?",
            DEFAULT_FLOOR.value,
            *bounds,
        )
        indexed = self._one("SELECT count(*) FROM words WHERE row BETWEEN ? AND ?", *bounds)
        return Tally(records, int(current), int(open_tasks), indexed)

    def tasks(self, number: int, floor: int, limit: int, view: View = NOW) -> list[int]:
        sql = (
            f"SELECT row FROM record WHERE status = 'open' AND {_seen(view)} AND row BETWEEN ? AND ? "
            "AND trust >= ? ORDER BY row LIMIT ?"
        )
        return [row & _MASK for row in self._column(sql, *span(number), floor, limit)]

    def cues(self, number: int, floor: int, limit: int, view: View = NOW) -> list[int]:
        """Procedures and prospective records that are trusted enough, newest first."""
        sql = (
            f"SELECT row FROM record WHERE kind IN ('procedure', 'prospective') AND {_seen(view)} "
            "AND row BETWEEN ? AND ? AND trust >= ? ORDER BY row DESC LIMIT ?"
        )
        return [row & _MASK for row in self._column(sql, *span(number), floor, limit)]

    def due(self, number: int, floor: int, now: int, view: View = NOW) -> list[tuple[int, int]]:
        """Prospective records that are trusted enough and whose time has come, each with that time."""
        # Both terms on the kind: the first one is the index's, and a cross join is not turned around.
        sql = (
            f"SELECT record.row & {_MASK}, due FROM record CROSS JOIN words ON words.row = record.row "
            f"WHERE kind IN ('procedure', 'prospective') AND kind = 'prospective' AND {_seen(view)} "
            "AND record.row BETWEEN ? AND ? AND trust >= ? AND due <= ?"
        )
        return list(self._connection.execute(sql, (*span(number), floor, now)))

    def open_size(self, number: int, floor: int, now: int = -1) -> tuple[int, int]:
        """How many open tasks are trusted enough and have not expired by a time, and the bytes of their contents."""
        sql = (
            "SELECT count(*), ifnull(sum(content_bytes), 0) FROM record WHERE status = 'open' AND ending = 0 "
            "AND row BETWEEN ? AND ? AND trust >= ? AND (expires IS NULL OR expires > ?)"
        )
        size: tuple[int, int] = self._one(sql, *span(number), floor, now)
        return size

    def recent(self, number: int, *, before: int | None, limit: int, view: View = NOW) -> list[Candidate]:
        """The records in view, newest first."""
        first, last = span(number)
        if before is not None:
            last = min(first + before - 1, last)
        sql = (
            f"SELECT row & {_MASK}, trust, expires, kind FROM record "
            f"WHERE row BETWEEN ? AND ? AND {_seen(view)} ORDER BY row DESC LIMIT ?"
        )
        return list(map(Candidate._make, self._connection.execute(sql, (first, last, limit))))

    def candidates(self, number: int, positions: Sequence[int], view: View = NOW) -> Iterable[Candidate]:
        """The columns of those records that are in view, in the order asked; the others are passed over."""
        sql = (
            f"SELECT record.row & {_MASK}, trust, expires, kind FROM carray(?) AS asked "
            f"JOIN record ON record.row = asked.value WHERE {_seen(view)}"
        )
        return map(Candidate._make, self._asked(sql, number, positions))

    def beside(
        self, number: int, positions: Sequence[int], reach: int, view: View, terms: Terms
    ) -> list[tuple[int, list[int]]]:
        """Each position asked with all of its source at most ``reach`` away that are in view and meet the terms."""
        wanted, bound = _meets(terms)
        # As a bit for each place: rows of their own cost twice as much.
        sql = (
            f"SELECT asked.value & {_MASK}, (SELECT sum(1 << near.row - asked.value + {reach:d}) FROM words AS near "
            "JOIN record ON record.row = near.row WHERE near.source = own.source "
            f"AND near.row BETWEEN asked.value - {reach:d} AND asked.value + {reach:d} AND {_seen(view)} "
            f"AND (near.row = asked.value OR ({wanted}))) "
            "FROM carray(?) AS asked JOIN words AS own ON own.row = asked.value"
        )
        rows = self._connection.execute(sql, (*bound, _array(number, positions))) if positions else ()
        return [(position, [position + place for place in _places(bits, reach)]) for position, bits in rows if bits]

    def offered(self, number: int, positions: Sequence[int], view: View, terms: Terms) -> Iterable[WordRow]:
        """The words of those records that are in view and meet the terms, in the order asked."""
        if not positions:
            return ()
        wanted, bound = _meets(terms)
        sql = (
            f"SELECT words.row & {_MASK}, length, words, source, due FROM carray(?) AS asked "
            "JOIN record ON record.row = asked.value JOIN words ON words.row = asked.value "
            f"WHERE {_seen(view)} AND {wanted}"
        )
        return map(WordRow._make, self._connection.execute(sql, (_array(number, positions), *bound)))

    def words_of(self, number: int, positions: Sequence[int]) -> Iterable[WordRow]:
        """The words of records, in the order asked."""
        sql = (
            f"SELECT words.row & {_MASK}, length, words, source, due FROM carray(?) AS asked "
            "JOIN words ON words.row = asked.value"
        )
        return map(WordRow._make, self._asked(sql, number, positions))

    def _asked(self, sql: str, number: int, positions: Sequence[int]) -> Iterable[Any]:
        """Rows for a list of positions, which SQLite is handed as one array."""
        if not positions:
            return ()
        return self._connection.execute(sql, (_array(number, positions),))

    def corpus(self, number: int) -> Corpus:
        row = self._one("SELECT through, documents, length FROM corpus WHERE number = ?", number)
        return Corpus(0, 0, 0) if row is None else Corpus(*row)

    def holding(self, number: int, words: Sequence[str]) -> dict[str, int]:
        sql = "SELECT holding FROM frequency WHERE number = ? AND word = ?"
        return {word: self._one(sql, number, word) or 0 for word in words}

    def postings(self, number: int, word: str, limit: int | None) -> list[int]:
        """Folded positions that hold a word (in the form of the index): all, or the newest so many, newest first."""
        # As one JSON array: a common word has thousands of rows, and rows of their own cost three times as much.
        bound: tuple[Any, ...]
        source, bound = "postings WHERE postings MATCH ? AND rowid BETWEEN ? AND ?", (f'"{word}"', *span(number))
        if limit is not None:
            source, bound = f"(SELECT rowid FROM {source} ORDER BY rowid DESC LIMIT ?)", (*bound, limit)
        positions: list[int] = orjson.loads(
            self._one(f"SELECT json_group_array(rowid & {_MASK}) FROM {source}", *bound)
        )
        return positions

    def word_rows(self, number: int, first: int, last: int) -> Iterator[WordRow]:
        sql = "SELECT row, length, words, source, due FROM words WHERE row BETWEEN ? AND ? ORDER BY row"
        bounds = number << _BITS | first, number << _BITS | last
        for row, length, words, source, due in self._connection.execute(sql, bounds):
            yield WordRow(row & _MASK, length, words, source, due)

    def frequencies(self, number: int) -> Iterator[tuple[str, int]]:
        yield from self._connection.execute("SELECT word, holding FROM frequency WHERE number = ?", (number,))

    def posting(self, number: int, position: int, words: Iterable[str]) -> int:
        """What a record and its words, each once, add to ``posted``; another number in another run."""
        row = number << _BITS | position
        return sum(map(hash, zip(words, repeat(row))), hash((row,)))

    def posted(self) -> int | None:
        """All that the full-text index holds, as the sum of hashes; None where it cannot be read or misses something.

        What a record adds to it, ``posting`` says.
        """
        return inspecting.posted(self._connection)

    def amiss(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the file as such, and what no chain accounts for; each with the code of its finding."""
        return inspecting.amiss(self._connection)

    def held(self, pieces: Iterable[bytes]) -> dict[bytes, set[str]]:
        """In which tables some pieces of text stand; the word index aside."""
        return inspecting.held(self._connection, pieces)

    def shape(self) -> Shape:
        """How the database differs from what its schema should be."""
        return schema.shape(self._connection)

    def check_shape(self) -> None:
        """Raise CorruptionError, which names each difference, unless the schema is the expected one."""
        schema.check(self._connection)

    def word_row(self, number: int, position: int) -> WordRow | None:
        row = self._one("SELECT length, words, source, due FROM words WHERE row = ?", number << _BITS | position)
        return None if row is None else WordRow(position, *row)

    def receipt(self, name: str) -> Drawn | None:
        """A receipt by its id."""
        row = self._one("SELECT id, body, signature, salt, query FROM receipt WHERE id = ?", name)
        return None if row is None else Drawn(*row)

    def receipt_names(self) -> list[str]:
        """The ids of all receipts, newest first."""
        return self._column("SELECT id FROM receipt ORDER BY row DESC")

    def receipts(self, *, newest: bool) -> Iterator[Drawn]:
        """All receipts, newest or oldest first."""
        order = "DESC" if newest else "ASC"
        sql = f"SELECT id, body, signature, salt, query FROM receipt ORDER BY row {order}"
        yield from map(Drawn._make, self._connection.execute(sql))

    def analyzer(self) -> str | None:
        """What cut the words of the index; None for one from before that was noted."""
        analyzer: str | None = self._one("SELECT value FROM setting WHERE name = 'analyzer'")
        return analyzer

    def vectored(self, number: int) -> Vectored | None:
        row = self._one("SELECT model, dimension, through, changes FROM vectored WHERE number = ?", number)
        return None if row is None else Vectored(*row)

    def vector_blocks(self, number: int) -> Iterator[tuple[int, bytes]]:
        """All vectors of a chain, block by block, each with the position of its first."""
        sql = "SELECT row, body FROM vector WHERE row BETWEEN ? AND ? ORDER BY row"
        for row, body in self._connection.execute(sql, span(number)):
            yield (row & _MASK) * VECTOR_BLOCK, body

    def vectors_of(self, number: int, positions: Sequence[int]) -> dict[int, bytes]:
        """The vectors of those positions that have a place for one."""
        reach = self.vectored(number)
        if reach is None:
            return {}
        blocks: dict[int, bytes] = {}
        found = {}
        for position in positions:
            block, slot = divmod(position, VECTOR_BLOCK)
            if block not in blocks:
                blocks[block] = self._one("SELECT body FROM vector WHERE row = ?", number << _BITS | block) or b""
            vector = blocks[block][slot * reach.dimension : (slot + 1) * reach.dimension]
            if vector:
                found[position] = vector
        return found


def _seen(view: View) -> str:
    """What a record's columns must say for it to be in view."""
    if view.every:
        return "1"
    if view.sequence is None:
        return "ending = 0"
    return f"record.sequence <= {view.sequence:d} AND (ending = 0 OR ended_by > {view.sequence:d})"


@lru_cache(maxsize=1 << 12)
def _places(bits: int, reach: int) -> tuple[int, ...]:
    """Which places, from ``-reach`` on, have a bit."""
    return tuple(place - reach for place in range(bits.bit_length()) if bits >> place & 1)


def _array(number: int, positions: Iterable[int]) -> Any:
    """The rows of some positions, to be bound as one value."""
    return apsw.carray(array("q", [number << _BITS | position for position in positions]))


def _meets(terms: Terms) -> tuple[str, list[Any]]:
    """What a record's columns must say to meet the terms, and what is bound for it."""
    wanted = ["trust >= ?"]
    bound: list[Any] = [terms.floor]
    if terms.below is not None:
        wanted.append("trust < ?")
        bound.append(terms.below)
    if terms.now is not None:
        wanted.append("(expires IS NULL OR expires > ?)")
        bound.append(terms.now)
    if terms.kinds:
        wanted.append("kind IN carray(?)")
        bound.append(apsw.carray(tuple(kind.value for kind in terms.kinds)))
    return " AND ".join(wanted), bound


def span(number: int) -> tuple[int, int]:
    """The first and the last row that a chain can have."""
    return number << _BITS, number << _BITS | _MASK
