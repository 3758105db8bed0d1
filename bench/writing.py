"""Writing: one durable memory against the floor, the worst commit of many, and a hundred at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from bench.figures import MS, Figure, Scale, each, interleaved, typical
from bench.floor import Floor
from bench.workload import BATCH, notes, opened


def remember(scale: Scale, folder: Path) -> Iterator[Figure]:
    """One note a commit, synchronous FULL, with an idempotency key, in rounds that take turns with the floor."""
    floor = Floor(folder / "floor.sqlite")
    # Made before anything is timed; a little more than is needed.
    made = list(islice(notes(), (scale.rounds + 2) * scale.commits + 512))
    ours, theirs, names = iter(made), iter(made), count()
    with opened(folder / "remember.ledger") as memory:

        def keep() -> None:
            memory.remember(next(ours), idempotency_key=f"write {next(names)}")

        def bare() -> None:
            floor.write(next(theirs))

        keep()
        bare()
        mine, least, ratio = interleaved(keep, bare, rounds=scale.rounds, times=scale.commits)
        worst = max(each([keep] * (256 + scale.commits)))
    floor.close()
    yield Figure("remember", "one durable `remember`", mine * MS, "ms")
    yield Figure("remember", "the floor: the same rows and one hash in bare SQLite", least * MS, "ms")
    yield Figure("remember", "`remember` to the floor", ratio, "times", "at most 2.5, later 1.5")
    yield Figure("remember", "the worst single commit, a fold of the word index included", worst * MS, "ms")


def remember_many(scale: Scale, folder: Path) -> Iterator[Figure]:
    """A hundred notes in one durable commit."""
    made = list(islice(notes(), BATCH * (2 * scale.rounds + 1)))
    batches = (made[start : start + BATCH] for start in range(0, len(made), BATCH))
    with opened(folder / "remember-many.ledger") as memory:
        memory.remember_many(next(batches))
        whole = typical(lambda: memory.remember_many(next(batches)), rounds=scale.rounds, times=2)
    yield Figure("remember_many", f"`remember_many` of {BATCH}, a note", whole * MS / BATCH, "ms", "at most 0.25")
