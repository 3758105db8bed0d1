"""What a commit appends to a SQLite store, an erasure takes out of it, and a rebuild makes anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import orjson

from ledgerstone.core.chain import SIGNATURE_EVERY
from ledgerstone.core.facts import Change, Known
from ledgerstone.core.receipts import Drawn
from ledgerstone.core.values import Ending
from ledgerstone.errors import CorruptionError
from ledgerstone.store import inspecting, schema
from ledgerstone.store.protocol import FOLD_EVERY, VECTOR_BLOCK, ChainRow, Derived, Row, Step, Vectored, WordRow
from ledgerstone.store.rows import KNOWN, LEVEL_BITS, SqliteReader, prefix, span

if TYPE_CHECKING:
    import apsw

_BITS: Final = schema.ROW_BITS
_RECORD: Final = f"INSERT INTO record({KNOWN}, prefix) VALUES({', '.join('?' * (len(Known._fields) + 1))})"
# How a canonical row that came from elsewhere is written.
_TRANSCRIBE: Final = {
    "header": "INSERT INTO header(row, body, id) VALUES(?, ?, ?)",
    "entry": "INSERT INTO entry(row, body) VALUES(?, ?)",
    "content": "INSERT INTO content(row, body, salt) VALUES(?, ?, ?)",
    "signature": "INSERT INTO signature(row, body) VALUES(?, ?)",
    "tile": "INSERT INTO tile(row, root) VALUES(?, ?)",
}


class SqliteWriter(SqliteReader):
    """A reader inside the one write transaction, that appends.

    ``left``, after the commit, is how the files looked then, if nobody else had committed by that time.
    """

    __slots__ = ("appended", "left")

    def __init__(self, connection: apsw.Connection, turn: int = 0) -> None:
        super().__init__(connection, turn)
        self.appended: list[tuple[int, bytes]] = []
        self.left: bytes | None = None

    def mend(self) -> bytes:
        """Take out what is foreign to the schema and make anew, empty, what is not as it was made, and the word index.

        Returns a digest of what no replay derives, as it was before. CorruptionError where that is altered or gone.
        """
        kept = b"" if self.shape().lost else self._kept()
        schema.mend(self._connection)
        return kept

    def check_mended(self, kept: bytes) -> None:
        """Raise CorruptionError unless what no replay derives is as ``mend`` found it, in a file that is sound."""
        wrong = inspecting.integrity(self._connection)
        if self._kept() != kept:
            wrong.append("what is derived stands in the same pages as history")
        if wrong:
            raise CorruptionError(
                f"the database is damaged where a rebuild does not help: {wrong[0]}",
                hint="nothing was changed; restore a backup: ledgerstone restore FILE",
            )

    def _kept(self) -> bytes:
        """A digest of every row of the tables that no replay derives."""
        seen = sha256()
        for table in sorted(schema.KEPT):
            for row in self._connection.execute(f"SELECT * FROM {table} ORDER BY 1"):
                seen.update(repr((table, row)).encode())
        return seen.digest()

    def append(self, step: Step) -> int:
        """Store one commit and all that it changes; returns the chain's number."""
        execute = self._connection.execute
        commit = step.commit
        sequence = commit.header.sequence
        frontier = b"".join(commit.frontier)
        number = step.number
        if number is None:
            execute(
                "INSERT INTO chain(namespace, sequence, head, signature, frontier) VALUES(?, ?, ?, ?, ?)",
                (commit.header.namespace, sequence, commit.id, commit.signature, frontier),
            )
            number = self._connection.last_insert_rowid()
        else:
            execute(
                "UPDATE chain SET sequence = ?, head = ?, signature = ?, frontier = ? WHERE number = ?",
                (sequence, commit.id, commit.signature, frontier, number),
            )
        base = number << _BITS
        execute("INSERT INTO header(row, id, body) VALUES(?, ?, ?)", (base | sequence, commit.id, commit.data))
        if sequence % SIGNATURE_EVERY == 0:
            execute("INSERT INTO signature(row, body) VALUES(?, ?)", (base | sequence, commit.signature))
        if commit.tile is not None:
            execute("INSERT INTO tile(row, root) VALUES(?, ?)", (base | sequence // SIGNATURE_EVERY, commit.tile))
        for position, admitted in enumerate(step.admitted, step.first):
            execute("INSERT INTO entry(row, body) VALUES(?, ?)", (base | position, admitted.data))
            if admitted.content_data is not None:
                execute(
                    "INSERT INTO content(row, salt, body) VALUES(?, ?, ?)",
                    (base | position, admitted.salt, admitted.content_data),
                )
        for change in step.changes:
            self._derive(number, change, sequence)
        self._end(number, step)
        for (level, index), children in step.nodes.items():
            execute(
                "INSERT OR REPLACE INTO node(row, children) VALUES(?, ?)",
                (base | level << LEVEL_BITS | index, children),
            )
        for row in step.words:
            self._index(base, row)
        if commit.header.idempotency is not None:
            execute(
                "INSERT INTO idempotency(key, number, sequence) VALUES(?, ?, ?)",
                (commit.header.idempotency.key, number, sequence),
            )
        self._fold(number, step.first, step.first + len(step.admitted))
        self.appended.append((base | sequence, commit.id))
        return number

    def _derive(self, number: int, change: Change, sequence: int) -> None:
        execute = self._connection.execute
        base = number << _BITS
        known = change.added
        row = base | change.position
        if known is not None:
            execute(_RECORD, (row, *known[1:], prefix(known.digest)))
        for source in change.sources:
            execute(
                "INSERT INTO link(source, row, covers) VALUES(?, ?, ?)",
                (base | source, row, source in change.covers),
            )
        for position, without in change.struck:
            self._strike_own(number, position, without)
        for noun, value in change.lookups:
            execute(
                "INSERT INTO catalog(number, noun, value, position, sequence, ended_by, ending) "
                "VALUES(?, ?, ?, ?, ?, 0, 0)",
                (number, noun, value, change.position, sequence),
            )

    def _end(self, number: int, step: Step) -> None:
        """Mark what the commit ended, and take out what it erased."""
        self._mark(number, step.ended.items())
        for change in step.changes:
            for position in change.erased:
                self._erase(number, position)

    def _strike_own(self, number: int, position: int, lookups: Iterable[tuple[str, str]]) -> None:
        """Take an entry's own content out, and let the rows that find it say no more than its entry does."""
        execute = self._connection.execute
        self.strike(number, [position])
        execute("UPDATE record SET sealed = 0 WHERE row = ?", (number << _BITS | position,))
        for noun, value in lookups:
            execute(
                "UPDATE catalog SET value = ? WHERE number = ? AND noun = ? AND position = ?",
                (value, number, noun, position),
            )

    def _mark(self, number: int, ended: Iterable[tuple[int, tuple[int, int]]]) -> None:
        """Say of records, and of what the catalog lists, which commit ended them and how."""
        execute = self._connection.execute
        for position, (by, ending) in ended:
            row = number << _BITS | position
            execute("UPDATE record SET ended_by = ?, ending = ? WHERE row = ?", (by, ending, row))
            if ending == Ending.REVOKED:
                execute(
                    "UPDATE catalog SET ended_by = ?, ending = ? WHERE number = ? AND position = ?",
                    (by, ending, number, position),
                )

    def _erase(self, number: int, position: int) -> None:
        """Take a content out of the file, and everything that was derived from its text."""
        execute = self._connection.execute
        row = number << _BITS | position
        execute("DELETE FROM content WHERE row = ?", (row,))
        execute("UPDATE record SET key = NULL WHERE row = ?", (row,))
        self._erase_vector(number, position)
        words = self.word_row(number, position)
        if words is None:
            return
        execute("DELETE FROM words WHERE row = ?", (row,))
        corpus = self.corpus(number)
        if position >= corpus.through:
            return
        execute("DELETE FROM postings WHERE rowid = ?", (row,))
        found = "SELECT 1 FROM postings WHERE postings MATCH ? AND rowid = ?"
        if any(self._one(found, f'"{word}"', row) for word in words.words.split()):
            raise CorruptionError(
                "the word index does not let go of a text", hint="nothing was erased; run: ledgerstone rebuild"
            )
        for word in words.words.split():
            execute("UPDATE frequency SET holding = holding - 1 WHERE number = ? AND word = ?", (number, word))
            execute("DELETE FROM frequency WHERE number = ? AND word = ? AND holding = 0", (number, word))
        execute(
            "UPDATE corpus SET documents = documents - 1, length = length - ? WHERE number = ?",
            (words.length, number),
        )

    def _erase_vector(self, number: int, position: int) -> None:
        """Let the vector of an erased text, which tells much of it, be zero."""
        reach = self.vectored(number)
        if reach is None or position >= reach.through:
            return
        block, slot = divmod(position, VECTOR_BLOCK)
        row = number << _BITS | block
        body: bytes = self._one("SELECT body FROM vector WHERE row = ?", row) or b""
        first, last = slot * reach.dimension, (slot + 1) * reach.dimension
        execute = self._connection.execute
        execute("UPDATE vector SET body = ? WHERE row = ?", (body[:first] + bytes(last - first) + body[last:], row))
        execute("UPDATE vectored SET changes = changes + 1 WHERE number = ?", (number,))

    def add_vectors(self, number: int, reach: Vectored, vectors: Mapping[int, bytes]) -> None:
        """Append vectors up to ``reach.through``, zero where none is given or the position has no words any more."""
        execute = self._connection.execute
        old = self.vectored(number) or reach._replace(through=0)
        standing = {row.position for row in self.words_of(number, sorted(vectors))}
        empty = bytes(reach.dimension)
        start = old.through
        while start < reach.through:
            block = start // VECTOR_BLOCK
            end = min((block + 1) * VECTOR_BLOCK, reach.through)
            body = b"".join(vectors[position] if position in standing else empty for position in range(start, end))
            execute(
                "INSERT INTO vector(row, body) VALUES(?, ?) ON CONFLICT DO UPDATE SET body = CAST(body || ? AS BLOB)",
                (number << _BITS | block, body, body),
            )
            start = end
        execute(
            "INSERT OR REPLACE INTO vectored(number, model, dimension, through, changes) VALUES(?, ?, ?, ?, ?)",
            (number, reach.model, reach.dimension, reach.through, old.changes + 1),
        )

    def clear_vectors(self, number: int) -> None:
        """Drop all vectors of a chain."""
        execute = self._connection.execute
        execute("DELETE FROM vector WHERE row BETWEEN ? AND ?", span(number))
        execute("DELETE FROM vectored WHERE number = ?", (number,))

    def _index(self, base: int, row: WordRow) -> None:
        self._connection.execute(
            "INSERT INTO words(row, length, words, source, due) VALUES(?, ?, ?, ?, ?)",
            (base | row.position, row.length, row.words, row.source, row.due),
        )

    def _fold(self, number: int, before: int, after: int) -> None:
        """Move the newest words into the index when a multiple of 256 positions has been passed."""
        if before // FOLD_EVERY == after // FOLD_EVERY:
            return
        through = after // FOLD_EVERY * FOLD_EVERY
        corpus = self.corpus(number)
        base = number << _BITS
        bounds = base | corpus.through, base | through - 1
        execute = self._connection.execute
        execute(
            "INSERT INTO postings(rowid, words) SELECT row, words FROM words WHERE row BETWEEN ? AND ?",
            bounds,
        )
        holding: Counter[str] = Counter()
        documents = length = 0
        for words, count in execute("SELECT words, length FROM words WHERE row BETWEEN ? AND ?", bounds):
            holding.update(set(words.split()))
            documents += 1
            length += count
        # As one JSON object, in order: thousands of words, and to bind each by itself takes twice as long.
        execute(
            "INSERT INTO frequency(number, word, holding) SELECT ?, key, value FROM json_each(?) WHERE true "
            "ON CONFLICT DO UPDATE SET holding = holding + excluded.holding",
            (number, orjson.dumps(holding, option=orjson.OPT_SORT_KEYS).decode()),
        )
        execute(
            "INSERT OR REPLACE INTO corpus(number, through, documents, length) VALUES(?, ?, ?, ?)",
            (number, through, corpus.documents + documents, corpus.length + length),
        )

    def transcribe(self, namespace: str, rows: Iterable[Row]) -> None:
        """Write canonical rows of a chain, which is begun where there is none; its head is placed at the end."""
        execute = self._connection.execute
        number = self._one("SELECT number FROM chain WHERE namespace = ?", namespace)
        if number is None:
            execute(
                "INSERT INTO chain(namespace, sequence, head, signature, frontier) VALUES(?, 0, x'', x'', x'')",
                (namespace,),
            )
            number = self._connection.last_insert_rowid()
        for row in rows:
            values = (number << _BITS | row.place, row.body)
            execute(_TRANSCRIBE[row.table], (*values, row.beside) if row.table in {"header", "content"} else values)

    def strike(self, number: int, positions: Iterable[int]) -> None:
        """Take contents out."""
        rows = ((number << _BITS | position,) for position in positions)
        self._connection.executemany("DELETE FROM content WHERE row = ?", rows)

    def place_head(self, head: ChainRow) -> None:
        """Say which commit is the newest of a chain, all of whose rows are there."""
        self._connection.execute(
            "UPDATE chain SET sequence = ?, head = ?, signature = ?, frontier = ? WHERE namespace = ?",
            (head.sequence, head.commit, head.signature, b"".join(head.frontier), head.namespace),
        )
        number = self._one("SELECT number FROM chain WHERE namespace = ?", head.namespace)
        self.appended.append((number << _BITS | head.sequence, head.commit))

    def keep_receipt(self, drawn: Drawn, most: int) -> None:
        """Keep a receipt, and no more than so many: the oldest go."""
        execute = self._connection.execute
        execute("INSERT INTO receipt(id, body, signature, salt, query) VALUES(?, ?, ?, ?, ?)", drawn)
        newest = self._connection.last_insert_rowid()
        execute("DELETE FROM receipt WHERE row <= ?", (newest - most,))

    def strike_queries(self, names: Iterable[str]) -> None:
        """Take out what receipts were asked for, and the salt that would let it be guessed at."""
        self._connection.executemany(
            "UPDATE receipt SET query = x'', salt = x'' WHERE id = ?", ((name,) for name in names)
        )

    def drop_receipts(self, names: Iterable[str]) -> None:
        """Take receipts out."""
        self._connection.executemany("DELETE FROM receipt WHERE id = ?", ((name,) for name in names))

    def analyzed(self, analyzer: str) -> None:
        """Note what cut the words of the index, all of which were just written anew, and nothing else."""
        self._connection.execute("DELETE FROM setting")
        self._connection.execute("INSERT INTO setting(name, value) VALUES('analyzer', ?)", (analyzer,))

    def clear_derived(self) -> tuple[str, ...]:
        """Drop all derived rows but those of the word index; returns in words what of them no chain accounted for."""
        strays = inspecting.strays(self._connection)
        for table in inspecting.DERIVED:
            self._connection.execute(f"DELETE FROM {table}")
        return tuple(strays)

    def restore_derived(self, number: int, derived: Derived) -> None:
        """Write the derived rows of a replayed chain."""
        execute = self._connection.execute
        base = number << _BITS
        for sequence, change, row in derived.changes:
            self._derive(number, change, sequence)
            if row is not None:
                self._index(base, row)
        self._mark(number, derived.ended)
        for level, index, children in derived.nodes:
            execute(
                "INSERT INTO node(row, children) VALUES(?, ?)",
                (base | level << LEVEL_BITS | index, children),
            )
        for key, sequence in derived.idempotencies:
            execute("INSERT INTO idempotency(key, number, sequence) VALUES(?, ?, ?)", (key, number, sequence))
        self._fold(number, 0, derived.entries())
