"""A volume of one mebibyte: a tmpfs where we may mount one, and else a file system under SQLite that counts bytes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import apsw

VOLUME_BYTES: Final = 1 << 20
NAME: Final = "counted"


@dataclass(frozen=True, slots=True)
class Volume:
    """Where it is, and how to take all the room that is left, and how to make some."""

    folder: Path
    fill: Callable[[], object]
    free: Callable[[], object]


@contextmanager
def mounted(folder: Path) -> Iterator[Volume | None]:
    """A tmpfs at the folder; None where this process may not mount."""
    size = f"size={VOLUME_BYTES},mode=0700"
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=False, capture_output=True)
    except FileNotFoundError:
        done = None
    if done is None or done.returncode != 0:
        yield None
        return
    ballast, rest = folder / "ballast", folder / "rest"
    ballast.write_bytes(bytes(VOLUME_BYTES // 4))
    try:
        yield Volume(folder, lambda: _fill(rest), ballast.unlink)
    finally:
        subprocess.run(["umount", folder], check=True)


def _fill(rest: Path) -> None:
    with rest.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(512)):
                pass
        except OSError:
            return


class _Quota:
    """How many bytes the files of SQLite may grow by, and how long each is."""

    def __init__(self) -> None:
        self.most = VOLUME_BYTES
        self.sizes: dict[str, int] = {}

    def fill(self) -> None:
        """From now on nothing grows."""
        self.most = sum(self.sizes.values())

    def free(self) -> None:
        """There is room again."""
        self.most = 1 << 40


class _File(apsw.VFSFile):
    def __init__(self, quota: _Quota, name: Any, flags: list[int]) -> None:
        self._quota = quota
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)
        quota.sizes[self._name] = super().xFileSize()

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, if there is room for it."""
        sizes = self._quota.sizes
        grown = max(0, offset + len(data) - sizes[self._name])
        if grown and sum(sizes.values()) + grown > self._quota.most:
            raise apsw.FullError("counted: full")
        super().xWrite(data, offset)
        sizes[self._name] += grown

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        """Cut, which makes room."""
        super().xTruncate(size)
        self._quota.sizes[self._name] = size


class _System(apsw.VFS):
    def __init__(self, quota: _Quota) -> None:
        self._quota = quota
        super().__init__(NAME, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file whose bytes are counted."""
        return _File(self._quota, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:  # noqa: N802 - SQLite's name
        """Take a file away, which makes room."""
        super().xDelete(name, sync_directory)
        self._quota.sizes.pop(name, None)


@contextmanager
def counted(folder: Path) -> Iterator[Volume]:
    """A folder in which what SQLite writes is counted, and comes to an end."""
    quota = _Quota()
    system = _System(quota)
    with mock.patch.object(apsw, "Connection", partial(apsw.Connection, vfs=NAME)):
        yield Volume(folder, quota.fill, quota.free)
    system.unregister()
