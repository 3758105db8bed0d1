"""Whatever operation of the file system fails, a store stays whole and its writer is told the truth."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.life import DOOMED, WRITES, Told, furnish, judge, live
from tests.faults.vfs import ONCE, Figures, Point, points, strike
from tests.store.faults import OPERATIONS, Fault
from tests.stores import plain_client

SEED = 1


def whole(figures: Figures) -> bool:
    """Whether no store was damaged, no commit came in part or was lost, and none that was refused is there."""
    return (figures.corrupt, figures.partial, figures.lost, figures.undead) == (0, 0, 0, 0)


def test_an_operation_that_fails_leaves_a_whole_store_and_a_true_answer(tmp_path: Path) -> None:
    """A selection of points: each is met, and what was acknowledged, refused and there agree."""
    every = points(tmp_path)
    chosen = random.Random(SEED).sample(every, 110) + [point for point in every if point.operation == "open"]

    figures = strike(tmp_path, chosen)

    assert whole(figures), figures.failures[:1]
    assert figures.points == len(chosen)
    assert figures.done > figures.refused > 0
    assert {point.operation for point in chosen} == set(OPERATIONS)


@pytest.mark.soak
def test_every_operation_that_fails_leaves_a_whole_store_and_a_true_answer(tmp_path: Path) -> None:
    """The same for all points."""
    every = points(tmp_path)

    figures = strike(tmp_path, every)

    assert whole(figures), figures.failures[:1]
    assert figures.points == len(every)
    assert Counter(point.operation for point in every)["write"] > 1000


def test_an_erasure_whose_cleaning_fails_is_not_told_as_undone(tmp_path: Path) -> None:
    """The log cannot be truncated: the text is gone all the same, and nobody says that nothing was changed."""
    last = max(point.after for point in points(tmp_path) if point.operation == "truncate")

    figures = [strike(tmp_path, [Point("truncate", Fault.FULL, ONCE, after)]) for after in range(last + 1)]

    assert all(map(whole, figures))
    assert [each.misreported for each in figures] == [0] * len(figures)


def test_a_store_that_lies_is_seen_through(tmp_path: Path) -> None:
    """The judge is no rubber stamp: of a store that is put back to before its life, every commit is missed."""
    furnish(tmp_path / "store.db")
    told = Told(done=set(WRITES))

    verdict = judge(tmp_path / "store.db", told)

    assert len(verdict.lost) == len(WRITES)


def test_a_short_life_folds_the_index_and_ends_as_it_was_told(tmp_path: Path) -> None:
    """Without a fault everything is acknowledged, the words of the first 256 entries are folded, and one text goes."""
    path, told = tmp_path / "store.db", Told()
    furnish(path)

    live(path, told)

    assert told == Told(done=set(WRITES), erased={DOOMED})
    assert plain_client(path).execute("SELECT through FROM corpus").get == 256
    assert judge(path, told).sound
