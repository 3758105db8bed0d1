"""The SQLite schema, its numbered migrations, and the check that a file's own schema text is the expected one."""

from __future__ import annotations

from typing import Final

import apsw

from ledgerstone.core.words import ANALYZER
from ledgerstone.errors import CorruptionError

# "LGST": marks the file as ours to SQLite and to file(1).
APPLICATION_ID: Final = 0x4C475354

# Every row is keyed by chain number << 40 | position (or sequence), so that a chain is one range of each table.
ROW_BITS: Final = 40

_CANONICAL: Final = """
CREATE TABLE chain(number INTEGER PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, sequence INTEGER NOT NULL,
  head BLOB NOT NULL, signature BLOB NOT NULL, frontier BLOB NOT NULL) STRICT;
CREATE TABLE header(row INTEGER PRIMARY KEY, id BLOB NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE entry(row INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE content(row INTEGER PRIMARY KEY, salt BLOB NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE signature(row INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE tile(row INTEGER PRIMARY KEY, root BLOB NOT NULL) STRICT;
"""

_DERIVED: Final = """
CREATE TABLE record(row INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, digest BLOB NOT NULL,
  prefix INTEGER NOT NULL, memory TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
  status TEXT NOT NULL, trust INTEGER NOT NULL, text_bytes INTEGER NOT NULL, body INTEGER NOT NULL,
  depth INTEGER NOT NULL, key TEXT, expires INTEGER, sealed INTEGER NOT NULL, content_bytes INTEGER NOT NULL,
  ended_by INTEGER NOT NULL, ending INTEGER NOT NULL) STRICT;
CREATE INDEX record_memory ON record(memory, version);
CREATE INDEX record_digest ON record(prefix);
CREATE INDEX record_key ON record(key) WHERE key IS NOT NULL;
CREATE INDEX record_open ON record(row) WHERE status = 'open' AND ending = 0;
CREATE TABLE link(source INTEGER NOT NULL, row INTEGER NOT NULL, covers INTEGER NOT NULL,
  PRIMARY KEY(source, row)) STRICT, WITHOUT ROWID;
CREATE TABLE catalog(number INTEGER NOT NULL, noun TEXT NOT NULL, value TEXT NOT NULL, position INTEGER NOT NULL,
  sequence INTEGER NOT NULL, ended_by INTEGER NOT NULL, ending INTEGER NOT NULL,
  PRIMARY KEY(number, noun, value, position)) STRICT, WITHOUT ROWID;
CREATE TABLE node(row INTEGER PRIMARY KEY, children BLOB NOT NULL) STRICT;
CREATE TABLE idempotency(key BLOB NOT NULL, number INTEGER NOT NULL, sequence INTEGER NOT NULL,
  PRIMARY KEY(key, number)) STRICT, WITHOUT ROWID;
CREATE TABLE words(row INTEGER PRIMARY KEY, length INTEGER NOT NULL, words TEXT NOT NULL) STRICT;
CREATE TABLE frequency(number INTEGER NOT NULL, word TEXT NOT NULL, holding INTEGER NOT NULL,
  PRIMARY KEY(number, word)) STRICT, WITHOUT ROWID;
CREATE TABLE corpus(number INTEGER PRIMARY KEY, through INTEGER NOT NULL, documents INTEGER NOT NULL,
  length INTEGER NOT NULL) STRICT;
CREATE TABLE setting(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE postings USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
INSERT INTO postings(postings, rank) VALUES('secure-delete', 1);
"""

# Where a record came from, so that what stands beside it there can be found; and what speaks up by itself.
_PLACES: Final = """
ALTER TABLE words ADD COLUMN source INTEGER;
ALTER TABLE words ADD COLUMN due INTEGER;
CREATE INDEX words_source ON words(source) WHERE source IS NOT NULL;
CREATE INDEX record_cue ON record(row) WHERE kind IN ('procedure', 'prospective') AND ending = 0;
"""

# What an encoder made of the texts: of each chain how far it got, and the vectors in blocks, a slot for each position.
_VECTORS: Final = """
CREATE TABLE vectored(number INTEGER PRIMARY KEY, model TEXT NOT NULL, dimension INTEGER NOT NULL,
  through INTEGER NOT NULL, changes INTEGER NOT NULL) STRICT;
CREATE TABLE vector(row INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
"""

_RECEIPTS: Final = """
CREATE TABLE receipt(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB NOT NULL, signature BLOB NOT NULL,
  salt BLOB NOT NULL, query BLOB NOT NULL) STRICT;
"""

# Each migration leads from the schema before it to its number. Canonical bytes are never touched by one.
MIGRATIONS: Final[dict[int, str]] = {1: _CANONICAL + _DERIVED, 2: _PLACES, 3: _VECTORS, 4: _RECEIPTS}

_expected: dict[int, frozenset[tuple[str, str, str | None]]] = {}


def current() -> int:
    """The newest schema that this program writes."""
    return max(MIGRATIONS)


def declared(connection: apsw.Connection) -> frozenset[tuple[str, str, str | None]]:
    """Every object of a database as its own schema text declares it."""
    return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_schema"))


def migrate(connection: apsw.Connection, version: int) -> None:
    """Bring a database from a schema to the newest, inside the caller's transaction."""
    for number in sorted(MIGRATIONS):
        if number > version:
            connection.execute(MIGRATIONS[number])
            connection.execute(f"PRAGMA user_version = {number}")
    if not version:
        connection.execute("INSERT INTO setting(name, value) VALUES('analyzer', ?)", (ANALYZER,))


def check(connection: apsw.Connection) -> None:
    """Refuse a database whose schema text is not the expected one: a planted trigger, a view, a lost index."""
    newest = current()
    expected = _expected.get(newest)
    if expected is None:
        scratch = apsw.Connection(":memory:")
        migrate(scratch, 0)
        expected = _expected[newest] = declared(scratch)
        scratch.close()
    found = declared(connection)
    if found != expected:
        names = ", ".join(sorted({name for _, name, _ in found ^ expected}))
        raise CorruptionError(f"the database's schema is not its own: {names}")
