"""Reading: one record, sixteen, a recall, and what it takes to open a store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

from bench.figures import MS, Act, Figure, Scale, cost, each, interleaved, typical
from bench.workload import CALLER, filled, notes, opened, queries, shared
from ledgerstone.memory import Memory
from ledgerstone.reading import Heads

ITEMS = 16


def get(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Records by their memory id, anywhere in a store: heads known, and heads to be proven anew."""
    size = scale.notes[-2:][0]
    with opened(filled(folder / f"{size}.ledger", size)) as memory:
        ids = _ids(memory, 64)
        turns = cycle(ids)
        known = typical(lambda: memory.get(next(turns)), rounds=scale.rounds, times=len(ids))

        def anew() -> None:
            shared(memory).heads = Heads()
            memory.get(next(turns))

        fresh = typical(anew, rounds=scale.rounds, times=len(ids))
        where = _positions(size)

        def sixteen(*, nodes: bool) -> None:
            with shared(memory).reads(CALLER) as (reading, identity):
                chain, place = identity.visible()[0][-1]
                if not nodes:
                    chain.nodes.clear()
                positions = next(where)
                reading.prefetch(chain, positions)
                for position in positions:
                    reading.record(chain, place.scope, position)

        cold, warm, _ = interleaved(
            lambda: sixteen(nodes=False), lambda: sixteen(nodes=True), rounds=scale.rounds, times=16
        )
    yield Figure("get", f"`get` out of {size:,} notes", known * MS, "ms", "at most 0.5")
    yield Figure("get", "`get` after a commit by somebody else: two heads proven anew", fresh * MS, "ms")
    yield Figure("get", f"{ITEMS} authenticated records, no node proven before", cold * MS, "ms", "at most 1.5")
    yield Figure("get", f"{ITEMS} authenticated records, nodes known from earlier reads", warm * MS, "ms")


def _ids(memory: Memory, count: int) -> list[str]:
    """Memories from everywhere in the store."""
    with shared(memory).reads(CALLER) as (reading, identity):
        chain, place = identity.visible()[0][-1]
        chance = random.Random(4)
        positions = chance.sample(range(1, chain.head.counts.entries), count)
        return [reading.record(chain, place.scope, position).memory for position in positions]


def _positions(size: int) -> Iterator[list[int]]:
    chance = random.Random(5)
    while True:
        yield chance.sample(range(1, size + 1), ITEMS)


def recall(scale: Scale, folder: Path) -> Iterator[Figure]:
    """A context of up to 16 entries for eight words of a note that is there."""
    for size in scale.notes:
        with opened(filled(folder / f"{size}.ledger", size)) as memory:
            asked = queries(size)
            asks = [partial(memory.recall, words) for words in asked]
            turns = cycle(asks)
            next(turns)()
            typically = typical(partial(_next, turns), rounds=scale.rounds, times=32)
            worst = max(each(asks))
        target = "at most 5" if size == 10_000 else None
        yield Figure("recall", f"`recall` of 8 words among {size:,} notes", typically * MS, "ms", target)
        yield Figure("recall", f"the slowest of {len(asked)} such queries", worst * MS, "ms")


def _next(turns: Iterator[Act]) -> None:
    next(turns)()


def opening(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Opening a store, whatever it holds: many namespaces against few, many notes against few."""
    few, many, size = 5, scale.sessions, scale.notes[-2:][0]
    crowded, quiet = _sessions(folder, many), _sessions(folder, few)
    large, small = filled(folder / f"{size}.ledger", size), filled(folder / "100.ledger", 100)

    def first(path: Path) -> None:
        with opened(path) as memory:
            memory.recall("anything")

    much, little, ratio = interleaved(
        lambda: opened(crowded).close(), lambda: opened(quiet).close(), rounds=scale.rounds, times=8
    )
    yield Figure("opening", f"opening with {few} session namespaces", little * MS, "ms")
    yield Figure("opening", f"opening with {many:,}", much * MS, "ms")
    yield Figure("opening", f"opening with {many:,} to opening with {few}", ratio, "times", "about 1")
    much, little, ratio = interleaved(
        lambda: opened(large).close(), lambda: opened(small).close(), rounds=scale.rounds, times=8
    )
    yield Figure("opening", f"opening with {size:,} notes to opening with 100", ratio, "times", "about 1")
    much, little, ratio = interleaved(lambda: first(crowded), lambda: first(quiet), rounds=scale.rounds, times=4)
    yield Figure("opening", f"opening and a first recall with {many:,} namespaces", much * MS, "ms")
    yield Figure("opening", f"the same with {few}", little * MS, "ms")
    yield Figure("opening", f"the same among {size:,} notes", cost(lambda: first(large)) * MS, "ms")


def _sessions(folder: Path, count: int) -> Path:
    """A store with one note in each of so many sessions."""
    path = folder / f"{count}-sessions.ledger"
    if not path.exists():
        made = notes()
        with opened(path) as memory:
            for number in range(count):
                caller = replace(CALLER, project=None, session=f"session {number}")
                memory.bind(caller).remember(next(made))
    return path
