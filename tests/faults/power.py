"""The power cut at a moment of a short life: ``python -m tests.faults.power`` says how often, and what was lost."""

from __future__ import annotations

import argparse
import enum
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import apsw

from ledgerstone.store import sqlite
from tests.faults.life import Told, judge, live
from tests.faults.vfs import copy_home

NAME: Final = "unpowered"
SECTOR: Final = 512


class Loss(enum.Enum):
    """What becomes of writes that were not synced.

    All of them are dropped; or the first so many reach the disk and the next one does in some sectors; or any of
    them do, whatever came before.
    """

    DROPPED = "dropped"
    TORN = "torn"
    REORDERED = "reordered"


@dataclass(slots=True)
class Figures:
    """What came of it: how often the power was cut, how much was acknowledged before, and what was not there."""

    cuts: int = 0
    acknowledged: int = 0
    corrupt: int = 0
    partial: int = 0
    lost: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Disk:
    """What the disk holds of each file, and the writes since its last sync, in order: (offset, data or size)."""

    durable: dict[str, bytearray] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    deleted: dict[str, bytearray] = field(default_factory=dict)
    syncs: bool = True
    cut_after: int = 1 << 30
    seen: int = 0

    def spend(self) -> None:
        """One operation more; after the last one nothing works any more."""
        self.seen += 1
        if self.seen > self.cut_after:
            raise apsw.IOError("the power is gone")

    def sync(self, name: str) -> None:
        """Everything written to the file so far is on the disk."""
        if self.syncs:
            for write in self.pending[name]:
                _apply(self.durable[name], *write)
            self.pending[name].clear()

    def delete(self, name: str) -> None:
        """The file is gone, but its folder was not synced: it may be there again."""
        self.deleted[name] = self.durable.pop(name)
        del self.pending[name]

    def settle(self, folder: Path, loss: Loss, chance: random.Random) -> None:
        """Write down what the disk holds after the cut."""
        for name, held in self.deleted.items():
            if name not in self.durable and chance.random() < 0.5:
                (folder / Path(name).name).write_bytes(held)
        for name, held in self.durable.items():
            for write in _survivors(self.pending[name], loss, chance):
                _apply(held, *write)
            (folder / Path(name).name).write_bytes(held)


def _apply(held: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del held[offset:]
        held.extend(bytes(offset - len(held)))
        return
    held.extend(bytes(max(0, offset - len(held))))
    held[offset : offset + len(data)] = data


def _survivors(
    writes: list[tuple[int, bytes | None]], loss: Loss, chance: random.Random
) -> Iterator[tuple[int, bytes | None]]:
    if loss is Loss.DROPPED or not writes:
        return
    if loss is Loss.REORDERED:
        kept = [write for write in writes if chance.random() < 0.5]
        chance.shuffle(kept)
        yield from kept
        return
    whole = chance.randrange(len(writes))
    yield from writes[:whole]
    offset, data = writes[whole]
    if data is None:
        return
    for start in range(0, len(data), SECTOR):
        if chance.random() < 0.5:
            yield offset + start, data[start : start + SECTOR]


class _File(apsw.VFSFile):
    def __init__(self, disk: _Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)
        if self._name not in disk.durable:
            # What was there before this life is on the disk; read through SQLite, which keeps its locks.
            disk.durable[self._name] = bytearray(super().xRead(super().xFileSize(), 0))
            disk.pending[self._name] = []

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write where this process sees it, and the disk does not yet."""
        self._disk.spend()
        super().xWrite(data, offset)
        self._disk.pending[self._name].append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        """Cut the file where this process sees it."""
        self._disk.spend()
        super().xTruncate(size)
        self._disk.pending[self._name].append((size, None))

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002 - SQLite's name and argument
        """Let the disk have what was written."""
        self._disk.spend()
        self._disk.sync(self._name)


class _System(apsw.VFS):
    def __init__(self, disk: _Disk) -> None:
        self._disk = disk
        super().__init__(NAME, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        """Open a file of which the disk is kept apart."""
        return _File(self._disk, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:  # noqa: N802 - SQLite's
        """Take a file away."""
        self._disk.spend()
        super().xDelete(name, sync_directory)
        self._disk.delete(name)


@contextmanager
def _unpowered(disk: _Disk) -> Iterator[None]:
    system = _System(disk)
    with mock.patch.object(apsw, "Connection", partial(apsw.Connection, vfs=NAME)):
        yield
    system.unregister()


def cut_power(folder: Path, *, seeds: range, syncs: bool = True) -> Figures:
    """Cut the power once for each seed, at a moment and with a loss that it draws; judge what the disk holds."""
    figures = Figures()
    uncut = _Disk()
    with _unpowered(uncut):
        live(copy_home(folder), Told())
    for seed in seeds:
        _cut(folder, seed, uncut.seen, figures, syncs=syncs)
    return figures


def _cut(folder: Path, seed: int, operations: int, figures: Figures, *, syncs: bool) -> None:
    chance = random.Random(seed)
    loss = chance.choice(tuple(Loss))
    disk = _Disk(syncs=syncs, cut_after=chance.randrange(operations))
    told = Told()
    path = copy_home(folder)
    with _unpowered(disk), mock.patch.object(sqlite, "BUSY_TIMEOUT_MS", 50):
        live(path, told)
    # What the writer was told afterwards, nobody heard.
    told.refused.clear()
    told.kept.clear()
    after = folder / "after"
    shutil.rmtree(after, ignore_errors=True)
    after.mkdir(mode=0o700)
    disk.settle(after, loss, chance)
    verdict = judge(after / path.name, told)
    figures.cuts += 1
    figures.acknowledged += len(told.done)
    figures.corrupt += len(verdict.corrupt) > 0
    figures.partial += len(verdict.partial)
    figures.lost += len(verdict.lost) + len(verdict.undead)
    if not verdict.sound:
        figures.failures.append(f"seed {seed}, {loss.value} after operation {disk.cut_after}: {verdict}")


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1, help="of the first cut; the next one takes the next")
    parser.add_argument("--no-syncs", action="store_true", help="on a disk that ignores every sync")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.cuts)
    with tempfile.TemporaryDirectory() as folder:
        print(cut_power(Path(folder), seeds=seeds, syncs=not given.no_syncs))


if __name__ == "__main__":
    main()
