"""CPU time in rounds, and the figures that come of it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Final

MS: Final = 1000.0
Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``target`` is what we are after, in words; None where a figure only informs."""

    benchmark: str
    what: str
    value: float
    unit: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: sizes in notes, commits and namespaces."""

    rounds: int
    commits: int
    chain: int
    notes: tuple[int, ...]
    recalled: tuple[int, ...]
    crowd: tuple[int, int]
    large: int
    bulk: int
    sessions: int
    starts: int


FULL: Final = Scale(
    rounds=9,
    commits=64,
    chain=5_000,
    notes=(1_000, 10_000, 100_000),
    recalled=(10_000, 100_000),
    crowd=(1_000_000, 100),
    large=1_000_000,
    bulk=100_000,
    sessions=5_000,
    starts=15,
)
QUICK: Final = Scale(
    rounds=5,
    commits=32,
    chain=600,
    notes=(1_000,),
    recalled=(1_000,),
    crowd=(4_000, 4),
    large=2_000,
    bulk=3_000,
    sessions=100,
    starts=3,
)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection of ours falls into somebody's round."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cost(act: Act) -> float:
    """The CPU seconds, user and system, that one call takes."""
    begin = process_time()
    act()
    return process_time() - begin


def each(acts: Iterable[Act]) -> list[float]:
    """The CPU seconds of each call."""
    with undisturbed():
        return [cost(act) for act in acts]


def typical(act: Act, *, rounds: int, times: int) -> float:
    """The median over rounds of the mean CPU seconds of a call."""
    with undisturbed():
        return median(_round(act, times) for _ in range(rounds))


def interleaved(first: Act, second: Act, *, rounds: int, times: int) -> tuple[float, float, float]:
    """The typical cost of two acts whose rounds take turns, and the median of the rounds' ratios.

    Whatever else the machine does falls on both alike; each goes first in every other round.
    """
    pairs = []
    with undisturbed():
        for turn in range(rounds):
            if turn % 2:
                after = _round(second, times)
                pairs.append((_round(first, times), after))
            else:
                before = _round(first, times)
                pairs.append((before, _round(second, times)))
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


def _round(act: Act, times: int) -> float:
    return cost(lambda: [act() for _ in range(times)]) / times
