"""Notes that are made up and yet distributed as language is, for what depends on how common words are.

A note has 20 to 60 words, a short one 8 to 20, by Zipf's law in Mandelbrot's form: first the stop words, a third of all
that is said, then 50,000 made-up ones. Sources, where there are any, have twenty notes each.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate, cycle, islice
from pathlib import Path
from typing import Final

from bench.workload import CALLER, opened, vocabulary
from ledgerstone import Caller, Draft
from ledgerstone.core.words import STOP_WORDS
from ledgerstone.semantic import Lane, static_table

IMPORT: Final = 256
NOTE: Final = 20, 60
SHORT_NOTE: Final = 8, 20
SOURCE: Final = 20
# How many words beyond the first the law begins at (Mandelbrot 1953).
_OFFSET: Final = 2.7
_SEED: Final = 6


@cache
def _words() -> tuple[list[str], list[float]]:
    """All words, the most common first, and their cumulative weights."""
    stops = sorted((word for word in STOP_WORDS if word.isascii()), key=lambda word: (len(word), word))
    words = [*stops, *(word for word in vocabulary() if word not in STOP_WORDS)]
    return words, list(accumulate(1 / (rank + _OFFSET) for rank in range(1, len(words) + 1)))


def texts(size: tuple[int, int] = NOTE) -> Iterator[str]:
    """Notes without end, of the least to the most words, always the same."""
    chance = random.Random(_SEED)
    words, weights = _words()
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(*size))) + "."


def queries(size: int, *, words: int, count: int, note: tuple[int, int] = NOTE) -> list[str]:
    """Queries of so many different words that are no stop words, with the stop words that stood between them.

    They are those of some of the first ``size`` notes, of as many together as it takes.
    """
    chance = random.Random(_SEED + words)
    wanted = sorted(chance.randrange(size) for _ in range(4 * count))
    heard, last = texts(note), -1
    drawn: list[str] = []
    for number in wanted:
        if number > last:
            drawn.append(next(islice(heard, number - last - 1, None))[:-1])
            last = number
    chance.shuffle(drawn)
    asked: list[str] = []
    while len(asked) < count and drawn:
        said: list[str] = []
        while drawn and len(set(said) - STOP_WORDS) < words:
            spoken = drawn.pop().split()
            while spoken and len(set(said) - STOP_WORDS) < words:
                said.append(spoken.pop())
        if len(set(said) - STOP_WORDS) == words:
            asked.append(" ".join(said))
    return asked


def kept(folder: Path, size: int, *, sourced: bool = False) -> Path:
    """A store of so many notes, 256 a commit; made once and taken as it is then."""
    path = folder / f"natural-{size}{'-sourced' * sourced}.ledger"
    if not path.exists():
        with opened(path) as memory:
            told = enumerate(islice(texts(), size))
            while some := list(islice(told, IMPORT)):
                memory.remember_many(
                    [Draft(text=text, source=f"talk {number // SOURCE}" if sourced else None) for number, text in some]
                )
    return path


def vectored(folder: Path, size: int) -> Path:
    """A ``kept`` store with the vectors of the static table; made once and taken as it is then."""
    path = folder / f"natural-{size}-vectors.ledger"
    if not path.exists():
        shutil.copyfile(kept(folder, size), path)
        with opened(path, semantic=Lane(static_table)) as memory:
            memory.index_vectors()
    return path


def spread(folder: Path, size: int, namespaces: int) -> Path:
    """A store of so many short notes, 256 a commit, the commits taking turns in so many sessions' namespaces."""
    path = folder / f"spread-{size}-{namespaces}.ledger"
    if not path.exists():
        with opened(path) as memory:
            bound = cycle([memory.bind(in_session(number)) for number in range(namespaces)])
            told = islice(texts(SHORT_NOTE), size)
            while some := list(islice(told, IMPORT)):
                next(bound).remember_many(some)
    return path


def in_session(number: int) -> Caller:
    """Whose notes one namespace of a ``spread`` store holds."""
    return replace(CALLER, project=None, session=f"session {number}")
