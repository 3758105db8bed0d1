"""The floor under a durable write: what any store with a commit chain and a word index must at least do."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

import apsw

# As large as the header of a commit of one note and its entry, so that the floor writes no less.
HEADER_BYTES: Final = 990
ENTRY_BYTES: Final = 290

# The store's own.
_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",
    "temp_store = MEMORY",
    "cache_size = -16384",
)
_SCHEMA: Final = """
CREATE TABLE head(number INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, id BLOB NOT NULL) STRICT;
CREATE TABLE header(row INTEGER PRIMARY KEY, id BLOB NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE content(row INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE record(row INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE idempotency(key BLOB PRIMARY KEY, row INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE postings USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
INSERT INTO head VALUES(1, 0, zeroblob(32));
"""


class Floor:
    """A bare file: one transaction a note, with the pragmas of the store."""

    def __init__(self, path: Path) -> None:
        connection = apsw.Connection(str(path))
        self.close = connection.close
        self._execute = connection.execute
        self._sequence = 0
        for pragma in _PRAGMAS:
            self._execute(f"PRAGMA {pragma}").fetchall()
        self._execute(_SCHEMA)
        self._execute("INSERT INTO postings(postings, rank) VALUES('secure-delete', 1)")

    def write(self, text: str) -> None:
        """A commit, a content, a record and an idempotency row, the head, the words, one hash."""
        execute = self._execute
        self._sequence += 1
        row = 1 << 40 | self._sequence
        body = text.encode()
        commit = sha256(body + row.to_bytes(8, "big")).digest()
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO header VALUES(?, ?, ?)", (row, commit, commit.ljust(HEADER_BYTES, b"h")))
        execute("INSERT INTO content VALUES(?, ?)", (row, body))
        execute("INSERT INTO record VALUES(?, ?)", (row, commit.ljust(ENTRY_BYTES, b"r")))
        execute("INSERT INTO idempotency VALUES(?, ?)", (commit, row))
        execute("UPDATE head SET sequence = ?, id = ? WHERE number = 1", (self._sequence, commit))
        execute("INSERT INTO postings(rowid, words) VALUES(?, ?)", (row, text))
        execute("COMMIT")
