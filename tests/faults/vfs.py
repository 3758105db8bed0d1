"""Each operation on the files of a short life fails in turn, or is the last of its process.

``python -m tests.faults.vfs`` says what came of it. The files are those of the store, under SQLite, and those of the
state directory, in which its heads are remembered.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from ledgerstone.store import sqlite
from tests.faults import state
from tests.faults.life import Told, furnish, judge, judge_older, live
from tests.store.faults import DEADLY, Fault, Faults, faulty
from tests.stores import process

ONCE: Final = 1
LASTING: Final = 1 << 30
# Which faults an operation meets. A disk that is full stays full; a sync that is ignored says nothing.
KINDS: Final = {
    "write": (
        (Fault.ERROR, ONCE),
        (Fault.FULL, ONCE),
        (Fault.FULL, LASTING),
        (Fault.TORN, ONCE),
        (Fault.KILLED, ONCE),
        (Fault.HALF, ONCE),
    ),
    "sync": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.IGNORED, ONCE), (Fault.KILLED, ONCE)),
    "truncate": ((Fault.ERROR, ONCE), (Fault.FULL, ONCE), (Fault.KILLED, ONCE)),
    "open": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.KILLED, ONCE)),
    "state line": (
        (Fault.ERROR, ONCE),
        (Fault.ERROR, LASTING),
        (Fault.FULL, ONCE),
        (Fault.KILLED, ONCE),
    ),
    "state write": (
        (Fault.ERROR, ONCE),
        (Fault.ERROR, LASTING),
        (Fault.FULL, ONCE),
        (Fault.TORN, ONCE),
        (Fault.KILLED, ONCE),
        (Fault.HALF, ONCE),
    ),
    "state sync": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.KILLED, ONCE)),
    "state rename": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.KILLED, ONCE)),
    "state open": ((Fault.ERROR, ONCE), (Fault.ERROR, LASTING), (Fault.KILLED, ONCE)),
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

    ``kills`` counts the points at which the process died. ``misreported`` counts erasures that took place and were
    said to have changed nothing; for this and ``hidden`` see ``Verdict``.
    """

    points: int = 0
    kills: int = 0
    done: int = 0
    refused: int = 0
    unknown: int = 0
    corrupt: int = 0
    partial: int = 0
    lost: int = 0
    undead: int = 0
    misreported: int = 0
    hidden: int = 0
    failures: list[str] = field(default_factory=list)


def points(folder: Path) -> list[Point]:
    """Every point of a life without a fault."""
    found = []
    for operation, kinds in KINDS.items():
        path = copy_home(folder)
        with _faulty(path) as faults:
            faults.fail(operation, "", after=LASTING)
            live(path, Told(), path.with_name("state"))
        found += [Point(operation, *kind, after) for kind in kinds for after in range(faults.seen)]
    return found


@contextmanager
def _faulty(path: Path) -> Iterator[Faults]:
    """Let the files of a store, and what is remembered of it beside it, fail on demand."""
    with (
        faulty() as faults,
        state.failing(faults, path.with_name("state")),
        mock.patch.object(sqlite, "BUSY_TIMEOUT_MS", 50),
    ):
        faults.waits = False
        yield faults


def strike(folder: Path, chosen: Iterable[Point]) -> Figures:
    """Let each of these points fail, in a fresh copy of the same store, and judge what is left."""
    figures = Figures()
    for point in chosen:
        path = copy_home(folder)
        told, met = _killed(path, point) if point.fault in DEADLY else _struck(path, point, Told())
        remembered = path.with_name("state")
        older = folder / "home" / path.name
        hidden = judge_older(path, older, told, remembered) if point.operation in state.OPERATIONS else []
        verdict = judge(path, told, remembered)
        verdict.hidden += hidden
        figures.points += met
        figures.kills += met and point.fault in DEADLY
        for name in ("done", "refused", "unknown"):
            setattr(figures, name, getattr(figures, name) + len(getattr(told, name)))
        for name in ("corrupt", "partial", "lost", "undead", "misreported", "hidden"):
            setattr(figures, name, getattr(figures, name) + len(getattr(verdict, name)))
        if not verdict.sound:
            figures.failures.append(f"{point}: {verdict}")
    return figures


def _struck(path: Path, point: Point, told: Told, channel: Connection | None = None) -> tuple[Told, bool]:
    """A life in which this point fails; what its writer was told, and whether the point was met."""
    with _faulty(path) as faults:
        if channel is not None:
            faults.last_words = lambda: channel.send(told)
        faults.fail(point.operation, "", after=point.after, times=point.times, fault=point.fault)
        live(path, told, path.with_name("state"))
    return told, faults.met > 0


def _killed(path: Path, point: Point) -> tuple[Told, bool]:
    """The same in a process of its own, which dies there."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    writer = process(_struck, path, point, Told(), sender)
    writer.join()
    with receiver, sender:
        assert writer.exitcode in {0, -signal.SIGKILL}
        return (receiver.recv(), True) if receiver.poll() else (Told(), False)


def copy_home(folder: Path) -> Path:
    """One and the same store, with what is remembered of it, in place of what its last life has made of them."""
    home, copy = folder / "home", folder / "copy"
    path = copy / "store.db"
    if not home.exists():
        copy.mkdir(mode=0o700)
        # Made where it is going to live, since what is remembered of a store belongs to its path.
        furnish(path, path.with_name("state"))
        copy.rename(home)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    return path


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, help="so many, drawn by the seed, and not all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", default="", help="those of operations whose names begin so: state, write, sync, ...")
    parser.add_argument("--point", help="this one alone, as a failure names it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = points(Path(folder))
        asked = [point for point in every if point.operation.startswith(given.of)]
        chosen = [point for point in asked if given.point in {None, str(point)}]
        if given.points is not None:
            chosen = random.Random(given.seed).sample(chosen, given.points)
        print(f"{len(chosen)} of {len(every)} points", strike(Path(folder), chosen))


if __name__ == "__main__":
    main()
