"""A file system that fails on demand, under SQLite's own."""

from __future__ import annotations

import enum
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import apsw

NAME: Final = "faulty"


class Fault(enum.Enum):
    """How an operation fails: an error of the device, a full disk, a write that stops half way, a sync that is not.

    Or the process dies: before the operation, or half way through a write.
    """

    ERROR = "error"
    FULL = "full"
    TORN = "torn"
    IGNORED = "ignored"
    KILLED = "killed"
    HALF = "half"


DEADLY: Final = frozenset({Fault.KILLED, Fault.HALF})


# What can fail. A file is also locked, measured and read; those are not failed here.
OPERATIONS: Final = ("write", "sync", "truncate", "open")


class Faults:
    """What is to fail: operations on files whose name ends so, ``after`` of them succeeding, ``times`` in all."""

    def __init__(self) -> None:
        self.operation, self.suffix, self.fault = "", "", Fault.ERROR
        self.after = self.times = 0
        self.seen = self.met = 0
        # Whether a sync that succeeds is waited for. A process that only goes on, or dies, can do without.
        self.waits = True
        # What a process that is to die says last.
        self.last_words: Callable[[], object] = lambda: None

    def fail(self, operation: str, suffix: str, *, after: int = 0, times: int = 1, fault: Fault = Fault.ERROR) -> None:
        """From now on: after so many ``operation``, the next ``times`` fail.

        An operation is one of OPERATIONS, or any of them.
        """
        self.operation, self.suffix, self.fault = operation, suffix, fault
        self.after, self.times = after, times
        self.seen = self.met = 0

    def heal(self) -> None:
        """Nothing fails any more."""
        self.times = 0

    def strikes(self, operation: str, name: str) -> bool:
        """Whether this operation is one of those that fail."""
        if not self.times or self.operation not in {operation, "any"} or not name.endswith(self.suffix):
            return False
        self.seen += 1
        if not self.after < self.seen <= self.after + self.times:
            return False
        self.met += 1
        return True

    def die(self) -> None:
        """Die, if that is the fault."""
        if self.fault in DEADLY:
            self.last_words()
            os.kill(os.getpid(), signal.SIGKILL)

    def error(self) -> apsw.Error:
        """What SQLite is told, if there is still somebody to tell."""
        self.die()
        return apsw.FullError("faulty: full") if self.fault is Fault.FULL else apsw.IOError("faulty")


class _File(apsw.VFSFile):
    def __init__(self, faults: Faults, name: Any, flags: list[int]) -> None:
        self._faults = faults
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, or fail to."""
        if self._faults.strikes("write", self._name):
            if self._faults.fault in {Fault.TORN, Fault.HALF}:
                super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise self._faults.error()
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        """Cut the file, or fail to."""
        if self._faults.strikes("truncate", self._name):
            raise self._faults.error()
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Reach the disk, or fail to."""
        if self._faults.strikes("sync", self._name):
            if self._faults.fault is Fault.IGNORED:
                return
            raise self._faults.error()
        if self._faults.waits:
            super().xSync(flags)


class _System(apsw.VFS):
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        super().__init__(NAME, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file of ours, or fail to."""
        if self._faults.strikes("open", name.filename() if isinstance(name, apsw.URIFilename) else str(name)):
            self._faults.die()
            raise apsw.CantOpenError("faulty")
        return _File(self._faults, name, flags)


@contextmanager
def faulty() -> Iterator[Faults]:
    """Let every connection opened in this block go through a file system that fails on demand."""
    faults = Faults()
    system = _System(faults)
    with mock.patch.object(apsw, "Connection", partial(apsw.Connection, vfs=NAME)):
        yield faults
    system.unregister()


def crash_image(path: Path, folder: Path) -> Path:
    """The files as a crash would leave them now; another process copies, since closing a copy here drops locks."""
    folder.mkdir()
    subprocess.run(["cp", path, f"{path}-wal", folder], check=True)
    return folder / path.name
