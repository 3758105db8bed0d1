"""Whatever operation of the file system fails, a store stays whole and its writer is told the truth."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults import state
from tests.faults.life import DOOMED, WRITES, Told, furnish, judge, judge_older, live
from tests.faults.vfs import ONCE, Figures, Point, copy_home, points, strike
from tests.store.faults import DEADLY, Fault
from tests.stores import plain_client

SEED = 1
STORE = ("write", "sync", "truncate", "open")


def whole(figures: Figures) -> bool:
    """Whether no store was damaged, no commit came in part or was lost, none that was refused is there, none hidden."""
    counts = figures.corrupt, figures.partial, figures.lost, figures.undead, figures.hidden
    return counts == (0, 0, 0, 0, 0)


def drawn(every: list[Point], *, most: int, deadly: bool, operations: Iterable[str]) -> list[Point]:
    """Of each operation so many points, drawn by the seed."""
    chance = random.Random(SEED)
    chosen = []
    for operation in operations:
        points_of = [point for point in every if point.operation == operation and (point.fault in DEADLY) == deadly]
        chosen += chance.sample(points_of, min(most, len(points_of)))
    return chosen


def test_an_operation_that_fails_leaves_a_whole_store_and_a_true_answer(tmp_path: Path) -> None:
    """A selection of points: each is met, and what was acknowledged, refused and there agree."""
    chosen = drawn(points(tmp_path), most=40, deadly=False, operations=STORE)

    figures = strike(tmp_path, chosen)

    assert whole(figures), figures.failures[:1]
    assert figures.points == len(chosen)
    assert figures.done > figures.refused > 0
    assert {point.operation for point in chosen} == set(STORE)


def test_a_process_that_dies_at_an_operation_leaves_a_whole_store(tmp_path: Path) -> None:
    """A selection of points: who opens the store next finds what was acknowledged, and no commit in part."""
    chosen = drawn(points(tmp_path), most=10, deadly=True, operations=STORE)

    figures = strike(tmp_path, chosen)

    assert whole(figures), figures.failures[:1]
    assert figures.kills == len(chosen)
    assert figures.done > 0 == figures.refused


def test_a_state_directory_that_fails_hides_nothing_of_which_it_was_not_said(tmp_path: Path) -> None:
    """A selection: the store stays as it was told, and an older copy is refused where heads were remembered."""
    every = points(tmp_path)
    chosen = drawn(every, most=5, deadly=False, operations=state.OPERATIONS)

    figures = strike(tmp_path, chosen + drawn(every, most=4, deadly=True, operations=state.OPERATIONS))

    assert whole(figures), figures.failures[:1]
    assert figures.points > figures.kills > 9
    assert {point.operation for point in chosen} == set(state.OPERATIONS)


@pytest.mark.soak
def test_every_operation_that_fails_leaves_a_whole_store_and_a_true_answer(tmp_path: Path) -> None:
    """The same for all points."""
    every = points(tmp_path)

    figures = strike(tmp_path, every)
    print(figures)

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


def test_a_state_directory_that_remembers_nothing_is_seen_through(tmp_path: Path) -> None:
    """Of one that is gone after the life, everything that was said to be remembered is hidden by an older copy."""
    path, told = copy_home(tmp_path), Told()
    remembered = path.with_name("state")
    live(path, told, remembered)
    older = tmp_path / "home" / path.name
    assert judge_older(path, older, told, remembered) == []
    shutil.rmtree(remembered)

    hidden = judge_older(path, older, told, remembered)

    assert len(hidden) == len(WRITES) + 1


def test_a_short_life_folds_the_index_and_ends_as_it_was_told(tmp_path: Path) -> None:
    """Without a fault everything is acknowledged, the words of the first 256 entries are folded, and one text goes."""
    path, told = copy_home(tmp_path), Told()
    remembered = path.with_name("state")

    live(path, told, remembered)

    assert told == Told(done=set(WRITES), anchored={texts[0] for texts in WRITES} | {DOOMED}, erased={DOOMED})
    assert plain_client(path).execute("SELECT through FROM corpus").get == 256
    assert judge(path, told, remembered).sound
