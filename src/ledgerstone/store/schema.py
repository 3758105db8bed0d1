"""The SQLite schema, its numbered migrations, and how a file's own schema text differs from the expected one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple

import apsw

from ledgerstone.core.words import ANALYZER
from ledgerstone.errors import CorruptionError
from ledgerstone.store.protocol import Shape

# "LGST": marks the file as ours to SQLite and to file(1).
APPLICATION_ID: Final = 0x4C475354

# Every row is keyed by chain number << 40 | position (or sequence), so that a chain is one range of each table.
ROW_BITS: Final = 40

# What the word index forgets is overwritten in it.
SECURE_INDEX: Final = "INSERT INTO postings(postings, rank) VALUES('secure-delete', 1);"

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
MIGRATIONS: Final[dict[int, str]] = {1: _CANONICAL + _DERIVED + SECURE_INDEX, 2: _PLACES, 3: _VECTORS, 4: _RECEIPTS}

# What no replay derives: without one of these a store is not whole, and nothing but a backup brings it back.
KEPT: Final = frozenset({"chain", "header", "entry", "content", "signature", "tile", "receipt"})
_INDEX: Final = "postings"
_NO_OWN: Final = "the database's schema is not its own"


class _Made(NamedTuple):
    """What a schema says of one of its objects: the table that it belongs to, and its text."""

    table: str
    sql: str | None


_Objects = dict[tuple[str, str], _Made]


def current() -> int:
    """The newest schema that this program writes."""
    return max(MIGRATIONS)


def migrate(connection: apsw.Connection, version: int) -> None:
    """Bring a database from a schema to the newest, inside the caller's transaction."""
    for number in sorted(MIGRATIONS):
        if number > version:
            connection.execute(MIGRATIONS[number])
            connection.execute(f"PRAGMA user_version = {number}")
    if not version:
        connection.execute("INSERT INTO setting(name, value) VALUES('analyzer', ?)", (ANALYZER,))


def check_number(connection: apsw.Connection) -> None:
    """Refuse a database that holds what only a later schema has than the one that it says is its own."""
    version = connection.execute("PRAGMA user_version").get
    later = (_expected(current()).keys() - _expected(version).keys()) & _declared(connection).keys()
    if later:
        raise CorruptionError(
            f"the file says that it has schema {version}, and holds {' '.join(max(later))} of a later one",
            hint="nothing was changed; restore a backup: ledgerstone restore FILE",
        )


def check(connection: apsw.Connection) -> None:
    """Refuse a database whose schema text is not the expected one: a planted trigger, a view, a lost index."""
    found = shape(connection)
    if found.foreign or found.lost:
        names = ", ".join(line.split(": ")[0] for line in (*found.lost, *found.foreign))
        way = "restore a backup: ledgerstone restore FILE"
        if not found.lost:
            way = "ledgerstone rebuild takes out what is foreign, and makes anew what is derived"
        raise CorruptionError(f"{_NO_OWN}: {names}", hint=f"ledgerstone verify says what each is; {way}")


def shape(connection: apsw.Connection) -> Shape:
    """How a database differs from what its schema should be, object by object."""
    found, expected = _declared(connection), _expected(current())
    foreign: list[str] = []
    lost: list[str] = []
    derived = True
    for kind, name in sorted(found.keys() | expected.keys()):
        here, there = found.get((kind, name)), expected.get((kind, name))
        if here == there:
            continue
        says = "foreign" if there is None else "gone" if here is None else "not as it was made"
        into = lost if there is not None and kind == "table" and name in KEPT else foreign
        into.append(f"{kind} {name}: {says}")
        derived &= there is None or kind != "table"
    return Shape(tuple(foreign), tuple(lost), derived=derived)


def mend(connection: apsw.Connection) -> None:
    """Take out what is foreign, make anew, empty, what is derived and not as it was made, and the word index always.

    Inside the caller's transaction. What the index keeps in tables of its own nothing here can put right in place.
    CorruptionError where history itself was altered or is gone, and for what cannot be taken out.
    """
    if not shape(connection).lost:
        with _unguarded(connection):
            _take_out(connection)
            _put_back(connection)
    after = shape(connection)
    left = (*after.lost, *after.foreign)
    if left:
        raise CorruptionError(
            f"{_NO_OWN}: {', '.join(left)}", hint="nothing was changed; restore a backup: ledgerstone restore FILE"
        )


def copy_index(source: apsw.Connection, target: apsw.Connection) -> None:
    """Make the word index anew in an empty database of nobody else's, out of the tables that it keeps for itself."""
    expected = _expected(current())
    with target:
        for (kind, name), made in expected.items():
            if _of_index(kind, name) and name != _INDEX and made.sql is not None:
                target.execute(made.sql)
                width = len(target.execute(f"PRAGMA table_info({name})").fetchall())
                slots = ", ".join("?" * width)
                target.executemany(f"INSERT INTO {name} VALUES({slots})", source.execute(f"SELECT * FROM {name}"))
    # Declared, not created: the module would begin with tables of its own, and remember that they are empty.
    declared = expected["table", _INDEX].sql
    _rewrite(target, "INSERT INTO sqlite_schema VALUES('table', 'postings', 'postings', 0, ?)", str(declared))


@lru_cache(maxsize=2)
def _expected(version: int) -> _Objects:
    """Every object that a schema has."""
    scratch = apsw.Connection(":memory:")
    for number in sorted(MIGRATIONS):
        if number <= version:
            scratch.execute(MIGRATIONS[number])
    made = _declared(scratch)
    scratch.close()
    return made


def _declared(connection: apsw.Connection) -> _Objects:
    """Every object of a database as its own schema text declares it."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {(kind, name): _Made(table, sql) for kind, name, table, sql in rows}


@contextmanager
def _unguarded(connection: apsw.Connection) -> Iterator[None]:
    """Without the defence of shadow tables and of the schema itself, which nothing else here may go past."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        yield
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _take_out(connection: apsw.Connection) -> None:
    """Drop whatever is not as it should be; a table takes along what belongs to it."""
    found, expected = _declared(connection), _expected(current())
    wrong = {key for key, made in found.items() if made.sql is not None and expected.get(key) != made}
    wrong |= {key for key in found if _of_index(*key)}
    # A module's table holds no page of the file itself.
    virtual = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE rootpage = 0")}

    def turn(key: tuple[str, str]) -> tuple[bool, bool, bool]:
        # What a module declares before the tables that it keeps for it; what dropping a table may look into, last.
        kind, name = key
        return kind == "table", name not in virtual, name == "sqlite_sequence"

    for kind, name in sorted(wrong, key=turn):
        _drop(connection, kind, name, virtual=kind == "table" and name in virtual)


def _drop(connection: apsw.Connection, kind: str, name: str, *, virtual: bool) -> None:
    execute, quoted = connection.execute, name.replace('"', '""')
    if name == "sqlite_sequence":
        # SQLite drops it under no other name than one of ours.
        _rewrite(
            connection,
            "UPDATE sqlite_schema SET name = 'unmade', tbl_name = 'unmade', "
            "sql = 'CREATE TABLE unmade(name, seq)' WHERE name = 'sqlite_sequence'",
        )
        execute("DROP TABLE unmade")
        return
    if not virtual:
        execute(f'DROP {kind} IF EXISTS "{quoted}"')
        return
    try:
        execute(f'DROP TABLE IF EXISTS "{quoted}"')
    except apsw.Error:
        # Its module is not here, or its own tables are gone or damaged.
        _rewrite(connection, "DELETE FROM sqlite_schema WHERE type = 'table' AND name = ?", name)


def _rewrite(connection: apsw.Connection, sql: str, *values: str) -> None:
    """Change the schema's own text."""
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.execute(sql, values)
    finally:
        connection.execute("PRAGMA writable_schema = RESET")


def _put_back(connection: apsw.Connection) -> None:
    """Make what is not there, tables before their indexes."""
    found, expected = _declared(connection), _expected(current())
    absent = [(key, made.sql) for key, made in expected.items() if key not in found and made.sql is not None]
    for (kind, name), sql in sorted(absent, key=lambda each: each[0][0] != "table"):
        if kind == "table" and _of_index(kind, name) and name != _INDEX:
            continue
        connection.execute(sql)
        if name == _INDEX:
            connection.execute(SECURE_INDEX)


def _of_index(kind: str, name: str) -> bool:
    return kind == "table" and (name == _INDEX or name.startswith(f"{_INDEX}_"))
