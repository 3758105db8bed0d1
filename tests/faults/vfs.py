"""Each operation on the files of a short life fails in turn: ``python -m tests.faults.vfs`` says what came of it."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from ledgerstone.store import sqlite
from tests.faults.life import Told, furnish, judge, live
from tests.store.faults import OPERATIONS, Fault, faulty

ONCE: Final = 1
LASTING: Final = 1 << 30
# Which faults an operation meets. A disk that is full stays full; a sync that is ignored says nothing.
KINDS: Final = {
    "write": ((Fault.ERROR, ONCE), (Fault.FULL, ONCE), (Fault.FULL, LASTING), (Fault.TORN, ONCE)),
    "sync": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.IGNORED, ONCE)),
    "truncate": ((Fault.ERROR, ONCE), (Fault.FULL, ONCE)),
    "open": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING)),
}


class Point(NamedTuple):
    """One fault at one moment: the ``after``-th operation of a kind fails, once or from then on."""

    operation: str
    fault: Fault
    times: int
    after: int

    def __str__(self) -> str:
        return f"{self.operation}:{self.fault.value}:{'lasting' if self.times > 1 else 'once'}:{self.after}"


@dataclass(slots=True)
class Figures:
    """What came of it: points that were met, what the writers were told, and where that was not true.

    ``misreported`` counts erasures that took place and were said to have changed nothing; see ``Verdict``.
    """

    points: int = 0
    done: int = 0
    refused: int = 0
    unknown: int = 0
    corrupt: int = 0
    partial: int = 0
    lost: int = 0
    undead: int = 0
    misreported: int = 0
    failures: list[str] = field(default_factory=list)


def points(folder: Path) -> list[Point]:
    """Every point of a life without a fault."""
    found = []
    for operation in OPERATIONS:
        path = copy_home(folder)
        with faulty() as faults:
            faults.waits = False
            faults.fail(operation, "", after=LASTING)
            live(path, Told())
        found += [Point(operation, *kind, after) for kind in KINDS[operation] for after in range(faults.seen)]
    return found


def strike(folder: Path, chosen: Iterable[Point]) -> Figures:
    """Let each of these points fail, in a fresh copy of the same store, and judge what is left."""
    figures = Figures()
    for point in chosen:
        path = copy_home(folder)
        told = Told()
        with faulty() as faults, mock.patch.object(sqlite, "BUSY_TIMEOUT_MS", 50):
            faults.waits = False
            faults.fail(point.operation, "", after=point.after, times=point.times, fault=point.fault)
            live(path, told)
        verdict = judge(path, told)
        figures.points += faults.met > 0
        for name in ("done", "refused", "unknown"):
            setattr(figures, name, getattr(figures, name) + len(getattr(told, name)))
        for name in ("corrupt", "partial", "lost", "undead", "misreported"):
            setattr(figures, name, getattr(figures, name) + len(getattr(verdict, name)))
        if not verdict.sound:
            figures.failures.append(f"{point}: {verdict}")
    return figures


def copy_home(folder: Path) -> Path:
    """A copy of one and the same store in a folder of its own, in place of the copy before."""
    home = folder / "home" / "store.db"
    if not home.exists():
        home.parent.mkdir(mode=0o700)
        furnish(home)
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(mode=0o700)
    return Path(shutil.copy2(home, copy))


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, help="so many, drawn by the seed, and not all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--point", help="this one alone, as a failure names it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = points(Path(folder))
        chosen = [point for point in every if given.point in {None, str(point)}]
        if given.points is not None:
            chosen = random.Random(given.seed).sample(chosen, given.points)
        print(f"{len(chosen)} of {len(every)} points", strike(Path(folder), chosen))  # noqa: T201 - its output is its purpose


if __name__ == "__main__":
    main()
