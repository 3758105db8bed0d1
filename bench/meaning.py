"""Meaning: what the embedding lane adds to a recall, and how much of that is the model's own time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from time import process_time
from typing import Final

from bench.figures import MS, Act, Figure, Scale, cost, interleaved
from bench.natural import queries, vectored
from bench.workload import opened
from ledgerstone.core.values import Mode
from ledgerstone.memory import Memory
from ledgerstone.semantic import Lane, StaticTable, static_table

ASKED: Final = 48
TARGETS: Final = {100_000: "under 15"}


@dataclass(slots=True)
class Clocked:
    """The static table, counting the CPU seconds of its own work."""

    table: StaticTable
    name: str
    version: str
    dimension: int
    encoding: float = 0.0
    matching: float = 0.0

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """As the table does."""
        begin = process_time()
        found = self.table.encode(texts)
        self.encoding += process_time() - begin
        return found

    def match(self, query: str, texts: Sequence[str], weigh: Callable[[Sequence[str]], Sequence[int]]) -> list[int]:
        """As the table does; what the store's words weigh is not of its own time."""

        def weighed(words: Sequence[str]) -> Sequence[int]:
            begin = process_time()
            found = weigh(words)
            self.matching -= process_time() - begin
            return found

        begin = process_time()
        found = self.table.match(query, texts, weighed)
        self.matching += process_time() - begin
        return found


def meaning(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Contexts of 16 entries in mode hybrid with the static table, which is then always at work, and without."""
    size = scale.recalled[-1]
    path = vectored(folder, size)
    table = static_table()
    model = Clocked(table, table.name, table.version, table.dimension)
    with opened(path) as bare, opened(path, semantic=Lane(lambda: model)) as memory:
        first = cost(partial(memory.recall, queries(size, words=8, count=1)[0], mode=Mode.HYBRID))
        yield Figure("meaning", f"the first recall, which reads {size:,} vectors", first * MS, "ms")
        for words in (8, 32):
            yield from _added(bare, memory, model, queries(size, words=words, count=ASKED), f"{words} words", scale)


def _added(
    bare: Memory, memory: Memory, model: Clocked, asked: Sequence[str], what: str, scale: Scale
) -> Iterator[Figure]:
    by_words, by_both = _turns(bare, asked), _turns(memory, asked)
    interleaved(by_both, by_words, rounds=1, times=4)
    model.encoding = model.matching = 0.0
    both, alone, ratio = interleaved(by_both, by_words, rounds=scale.rounds, times=len(asked) // 2)
    calls = scale.rounds * (len(asked) // 2)
    encoding, matching = model.encoding / calls, model.matching / calls
    size = scale.recalled[-1]
    yield Figure("meaning", f"{what} among {size:,} notes, mode `hybrid`, no encoder", alone * MS, "ms")
    yield Figure("meaning", "the same with the static table", both * MS, "ms")
    yield Figure("meaning", "that to no encoder", ratio, "times")
    yield Figure("meaning", "the model's own time: the query as a vector", encoding * MS, "ms")
    yield Figure("meaning", "the model's own time: the best 60 word by word", matching * MS, "ms")
    added = both - alone - encoding
    yield Figure("meaning", "what the lane adds beside the vector's time", added * MS, "ms", TARGETS.get(size))
    yield Figure("meaning", "what it adds beside all of the model's own time", (added - matching) * MS, "ms")


def _turns(memory: Memory, asked: Sequence[str]) -> Act:
    """A recall of the next query at each call."""
    turns = cycle(asked)

    def one() -> object:
        return memory.recall(next(turns), mode=Mode.HYBRID)

    return one
