"""One SQLite file: WAL, synchronous FULL, opened with every gate shut (sqlite.org/wal.html, howtocorrupt.html)."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from ledgerstone.errors import (
    CorruptionError,
    FormatError,
    StoreError,
    UnavailableError,
    UnknownOutcomeError,
    UsageError,
)
from ledgerstone.store import schema
from ledgerstone.store.appending import SqliteWriter
from ledgerstone.store.rows import SqliteReader
from ledgerstone.store.translating import TRANSLATED, TRIPPED, check_tripped

BUSY_TIMEOUT_MS: Final = 10_000
# How long somebody who is just leaving may take to give the file back.
ALONE_TIMEOUT_MS: Final = 2_000
# What of the log stays on disk when it begins anew: four times what it holds before it is folded in.
LOG_BYTES: Final = 16 * 1024 * 1024
# Before 3.51.3 a race at the reset of the WAL could lose commits (sqlite.org/wal.html#walresetbug).
LEAST_SQLITE: Final = (3, 51, 3)
# What a cleaning that was kept from its work advises.
_AGAIN: Final = "run the same command again later"


_Look = tuple[int, int, int, int, int]
_NO_LOG: Final[_Look] = (0, 0, 0, 0, 0)


def mark(path: str) -> bytes:
    """How database and WAL look from outside: a hash over device, inode, size and times, by ``stat`` only.

    Of the WAL without the time of its last change of owner or mode: SQLite, run by root, sets the owner whenever it
    opens one, and that is nobody's edit.
    """
    return _mark(*_looks(path))


@lru_cache(maxsize=8)
def _mark(database: _Look, log: _Look) -> bytes:
    # An empty WAL and none hold the same.
    seen = [database, log if log[2] else _NO_LOG]
    return sha256(repr(seen).encode("ascii")).digest()


def _looks(path: str) -> tuple[_Look, _Look]:
    """Device, inode, size and times of database and WAL."""
    seen: list[_Look] = []
    for name in (path, f"{path}-wal"):
        try:
            # Twice a write: half of what Path.stat takes.
            found = os.stat(name)  # noqa: PTH116
        except FileNotFoundError:
            seen.append(_NO_LOG)
        else:
            seen.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return seen[0], (*seen[1][:4], 0)


def _fixed(path: Path) -> bool:
    """Whether nothing can be written to a file, or no log be made beside it."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY) or not (
        os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    )


def _has_log(path: Path) -> bool:
    """Whether a log lies beside a file, or where it was, with something in it."""
    wal = Path(f"{path}-wal")
    return wal.exists() and wal.stat().st_size > 0


def _read_only(path: Path) -> apsw.Connection:
    """A connection that changes nothing; where nobody can, it does not even look for others."""
    uri = f"file:{quote(str(path))}?mode=ro"
    if _fixed(path):
        if _has_log(path):
            raise UnavailableError(
                f"{path}-wal holds commits that cannot be taken in where nothing can be written",
                hint="copy the store with its log to a disk of its own, and open it there",
            )
        uri += "&immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _guard(connection: apsw.Connection) -> None:
    """Let nothing that a file's schema says be run: no trigger, no view, no function that could do harm."""
    for option, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
        (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
    ):
        connection.config(option, value)


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """SQLite's errors as Ledgerstone's; a file that is no database, or that cannot be opened, by its name."""
    with TRANSLATED:
        try:
            yield
        except apsw.NotADBError as error:
            raise FormatError(f"{path} is not a Ledgerstone store: {error}") from error
        except apsw.CorruptError as error:
            # What does not open is not verified either.
            raise CorruptionError(
                f"{path} is damaged: {error}",
                hint="keep the file as it is, and restore a backup: ledgerstone restore FILE",
            ) from error
        except apsw.CantOpenError as error:
            raise UnavailableError(
                f"{path} cannot be opened: {error}",
                hint="nothing was changed; see to the owner and the mode of the file, of its -wal, and of their folder",
            ) from error


def copy_file(source: Path, target: Path) -> None:
    """Copy a database as of one moment into an empty file, whatever its schema."""
    if not source.is_file():
        raise UnavailableError(f"no file at {source}")
    with _opening(source):
        connection = _read_only(source)
        try:
            _guard(connection)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.execute("VACUUM INTO ?", (str(target),))
        finally:
            connection.close()


@contextmanager
def hold_file(path: Path) -> Iterator[SqliteReader | None]:
    """Hold a database file under SQLite's exclusive lock, its log folded in; a reader, or None if it is damaged."""
    with _opening(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        yield _held(connection, path)
    finally:
        connection.close()


def _held(connection: apsw.Connection, path: Path) -> SqliteReader | None:
    execute = connection.execute
    with TRANSLATED:
        try:
            _guard(connection)
            connection.set_busy_timeout(ALONE_TIMEOUT_MS)
            # Whoever has the file open in WAL mode holds a lock that forbids to leave that mode.
            execute("PRAGMA locking_mode = EXCLUSIVE")
            execute("PRAGMA journal_mode = DELETE")
            execute("BEGIN EXCLUSIVE")
        except (apsw.BusyError, apsw.LockedError) as error:
            raise UnavailableError(
                f"{path} is in use by another process", hint="end what uses it (an MCP server?), then try again"
            ) from error
        except (apsw.NotADBError, apsw.CorruptError):
            # Nobody can have it open for any use, and there is nothing to read.
            return None
    return SqliteReader(connection)


class SqliteStore:
    """The store of one file. Its connection is shared by threads, one block at a time; a forked child is refused."""

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        watched: bool = True,
        check: bool = True,
    ) -> None:
        """Open a store; with ``create`` make it first, in a directory of its own mode 0700.

        With ``read_only`` nothing of it is ever written; where nothing can be, it is opened so in any case. Raises
        UnavailableError when there is no such file, FormatError for a foreign or empty file and a newer format,
        CorruptionError when the schema is not the expected one, unless ``check`` leaves that to whoever reads.
        """
        if _sqlite_version() < LEAST_SQLITE:
            raise FormatError(f"SQLite {apsw.sqlite_lib_version()} is older than 3.51.3")
        self.path: Final = Path(os.path.realpath(path))
        self._name: Final = str(self.path)
        self._create: Final = create
        self._watched: Final = watched
        self._check: Final = check
        self._lock = threading.RLock()
        self._pid = os.getpid()
        if create and not self.path.exists():
            self._make()
        self._identity = self._stat()
        self.fixed: Final = not create and _fixed(self.path)
        self.read_only: Final = read_only or self.fixed
        self._wal = Path(f"{self.path}-wal")
        self._turn = 0
        self._connection = self._connect()
        # True when a connection was given up and no other could be had.
        self._lost = False

    def _make(self) -> None:
        """An empty file, private from the first byte, before SQLite opens it; never beside another one's log."""
        if _has_log(self.path):
            # SQLite would throw it away.
            raise UnavailableError(
                f"{self.path}-wal is the log of a store that is gone, and may hold its newest commits",
                hint="put the store's file back beside it, or move the log away",
            )
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise UnavailableError(f"{error.filename}: {error.strerror}") from error

    def _stat(self) -> tuple[int, int]:
        """Device and inode, by the name alone: a descriptor on the file would drop SQLite's locks when closed."""
        try:
            # As above: twice a write.
            found = os.stat(self._name)  # noqa: PTH116
        except FileNotFoundError:
            raise UnavailableError(
                f"no store at {self.path}", hint="ledgerstone init makes one, and so does Memory.open(create=True)"
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise FormatError(f"{self.path} is not a file")
        if found.st_nlink != 1:
            raise FormatError(
                f"{self.path} has {found.st_nlink} hard links; SQLite's locks hold for one name only",
                hint="remove the other links, or restore a backup to a file of its own",
            )
        return found.st_dev, found.st_ino

    def mark(self) -> bytes:
        """How the files look from outside."""
        return mark(self._name)

    def _connect(self) -> apsw.Connection:
        self._turn += 1
        with _opening(self.path):
            if self.read_only:
                connection = _read_only(self.path)
            else:
                connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                self._configure(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        _guard(connection)
        execute = connection.execute
        empty = execute("SELECT count(*) FROM sqlite_schema").get == 0
        application = execute("PRAGMA application_id").get
        version = execute("PRAGMA user_version").get
        if not empty and application != schema.APPLICATION_ID:
            raise FormatError(f"{self.path} is another program's database")
        if empty and not self._create:
            raise FormatError(
                f"{self.path} holds no store",
                hint="was it copied while a store was in use? What was said stands in the log beside that one: make "
                "the copy by ledgerstone backup",
            )
        if version > schema.current():
            raise FormatError(
                f"{self.path} has schema {version}; this program knows {schema.current()} and older",
                hint="install a newer ledgerstone",
            )
        if self.read_only and version < schema.current():
            raise FormatError(
                f"{self.path} has schema {version}, which is brought to {schema.current()} before it is read",
                hint="open it once without --read-only (LEDGERSTONE_READ_ONLY)",
            )
        if not self.read_only and execute("PRAGMA journal_mode = WAL").get != "wal":
            raise UnavailableError(f"{self.path}: the file system does not carry write-ahead logging")
        # One by one: a statement that answers with a row holds up what follows it in the same script.
        for pragma in ("synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY", "cache_size = -16384"):
            execute(f"PRAGMA {pragma}")
        # A log that grew while somebody read for long does not stay so long for ever.
        execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        if version < schema.current():
            if not empty:
                # One snapshot: another process may be bringing it to the newest schema.
                with connection:
                    schema.check_number(connection)
                self._backup(connection, version)
            self._migrate(connection)
        if self._check:
            schema.check(connection)

    def _backup(self, connection: apsw.Connection, version: int) -> None:
        """A copy of the file as it is, beside it, before a migration."""
        copy = self.path.with_name(f"{self.path.name}.schema-{version}.backup")
        if not copy.exists():
            connection.execute("VACUUM INTO ?", (str(copy),))
            copy.chmod(0o600)

    def _migrate(self, connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Read again under the lock: another process may have been first.
            schema.migrate(connection, connection.execute("PRAGMA user_version").get)
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """One consistent snapshot for the length of the block."""
        with self._lock, TRANSLATED:
            self._usable()
            self._alone()
            self._connection.execute("BEGIN")
            reader = SqliteReader(self._connection, self._turn)
            try:
                yield reader
            except TRIPPED as error:
                check_tripped(self._connection, error)
                raise
            finally:
                self._rollback()

    @contextmanager
    def write(self) -> Iterator[SqliteWriter]:
        """One transaction; at the end of the block it is committed durably, or everything is rolled back.

        ``left`` of the writer then says how that left the files. Raises UnavailableError when nothing was committed,
        UnknownOutcomeError when that cannot be told.
        """
        if self.read_only:
            raise StoreError(
                "this store is open read-only",
                hint=f"nothing can be written at {self.path}: see to its modes, or put it where it can be"
                if self.fixed
                else "to write, leave out --read-only (LEDGERSTONE_READ_ONLY) and name the key file",
            )
        with self._lock, TRANSLATED:
            self._usable()
            self._alone()
            self._connection.execute("BEGIN IMMEDIATE")
            writer = SqliteWriter(self._connection, self._turn)
            try:
                edits = writer.edits() if self._watched else None
                try:
                    yield writer
                except TRIPPED as error:
                    check_tripped(self._connection, error)
                    raise
                self._usable()
            except BaseException:
                self._rollback()
                raise
            try:
                self._connection.execute("COMMIT")
            except apsw.Error as error:
                self._settle(writer.appended, error)
            else:
                if edits is not None:
                    writer.left = self._left(edits)

    def _left(self, edits: int) -> bytes | None:
        """How our own commit left the files; None when another connection has committed since, or nobody can tell.

        The look comes before the question: who commits between the two is seen by it, and after it by the next look.
        """
        with suppress(apsw.Error, OSError):
            seen = self.mark()
            if SqliteReader(self._connection, self._turn).edits() == edits:
                return seen
        return None

    def _settle(self, appended: list[tuple[int, bytes]], error: apsw.Error) -> None:
        """A COMMIT failed: look on a fresh connection whether it took place all the same.

        The look is followed by a write of its own, so that what is found absent cannot come back: frames that a
        failed sync left in the WAL are written over before anybody could recover them. A full disk leaves no such
        frames: the commit's own last one was never written.
        """
        found = None
        with suppress(apsw.Error):
            self._connection.close()
        self._lost = True
        try:
            self._connection = self._connect()
            self._lost = False
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            ids = [execute("SELECT id FROM header WHERE row = ?", (row,)).get for row, _ in appended]
            found = ids == [commit for _, commit in appended]
            execute(
                "INSERT INTO setting(name, value) VALUES('settled', 1) "
                "ON CONFLICT DO UPDATE SET value = CAST(value AS INTEGER) + 1"
            )
            execute("COMMIT")
        except (apsw.Error, UnavailableError) as second:
            self._rollback()
            if found is not False or not (isinstance(error, apsw.FullError) and isinstance(second, apsw.FullError)):
                raise UnknownOutcomeError(f"the commit failed ({error}) and its fate is unknown ({second})") from error
        if not appended:
            raise UnknownOutcomeError(f"the commit failed ({error}), and it held nothing to look for") from error
        if not found:
            raise UnavailableError(
                f"not committed: {error}", hint="nothing was changed; try again with the same idempotency key"
            ) from error

    def _rollback(self) -> None:
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _alone(self) -> None:
        if self._connection.in_transaction:
            raise UsageError(
                "another read of this store is still going on in this thread", hint="finish or close the iterator first"
            )

    def _usable(self) -> None:
        if os.getpid() != self._pid:
            raise UnavailableError("this store was opened before a fork", hint="open it again in the child process")
        if self._stat() != self._identity:
            raise UnavailableError(
                f"{self.path} was replaced while it was open",
                hint="open the store again; nothing was written",
            )
        if self._lost:
            self._connection = self._connect()
            self._lost = False

    def log(self) -> tuple[int, int]:
        """How many bytes the log has, and how many of its pages are not in the database yet; nothing is changed."""
        with self._lock, TRANSLATED:
            self._usable()
            _, pages, folded = self._connection.execute("PRAGMA wal_checkpoint(NOOP)").get
        return self._wal.stat().st_size if self._wal.exists() else 0, max(pages - folded, 0)

    def copy(self, target: Path) -> None:
        """Write all of the store, as of one moment, into an empty file, without free pages and without a log."""
        with self._lock, TRANSLATED:
            self._usable()
            self._connection.execute("VACUUM INTO ?", (str(target),))

    def files(self) -> tuple[Path, ...]:
        """The files that may hold what was stored: database, log, and whatever lies beside them under that name."""
        name = escape(self.path.name)
        beside = (*self.path.parent.glob(f"{name}*"), *self.path.parent.glob(f".{name}*"))
        return tuple(sorted(path for path in beside if path.is_file()))

    def scrub(self, before: bytes | None = None) -> tuple[list[str], bytes | None]:
        """After an erasure: let no trace of it stay in index, WAL or free pages; returns what could not be done.

        Also how that left the files, if they looked as ``before`` until then and nobody else has touched them.
        """
        undone = []
        with self._lock, TRANSLATED:
            self._usable()
            edits = SqliteReader(self._connection, self._turn).edits()
            ours = before == self.mark()
            try:
                self._connection.execute("INSERT INTO postings(postings) VALUES('optimize')")
            except (apsw.BusyError, apsw.FullError, apsw.IOError) as error:
                undone.append(f"the word index could not be put in order ({error}); {_AGAIN}")
            try:
                busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
            except (apsw.BusyError, apsw.FullError, apsw.IOError) as error:
                undone.append(f"the write-ahead log could not be folded in ({error}); {_AGAIN}")
            else:
                if busy:
                    undone.append(f"the write-ahead log is being read by another process; {_AGAIN}")
            return undone, self._left(edits) if ours else None

    def close(self, before: bytes | None = None) -> bytes | None:
        """Give the file back; a closed store serves no more. In a forked child nothing is touched.

        Returns how that left the files, if they looked as ``before`` until then and nobody else has touched them.
        """
        if os.getpid() != self._pid:
            return None
        with self._lock:
            left = () if before is None else self._fold(before)
            self._connection.close()
        with suppress(OSError):
            now = self.mark()
            return now if now in left else None
        return None

    def _fold(self, before: bytes) -> tuple[bytes, ...]:
        """Take the log in, as the last one to close would; how the files look then, with the log and without it.

        What closes after that adds nothing to the database, so that an edit made beside it shows.
        """
        with suppress(apsw.Error, OSError):
            edits = SqliteReader(self._connection, self._turn).edits()
            if before == self.mark():
                if not self.read_only:
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                database, log = _looks(self._name)
                if self._left(edits) == _mark(database, log):
                    return _mark(database, log), _mark(database, _NO_LOG)
        return ()


def _sqlite_version() -> tuple[int, ...]:
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
