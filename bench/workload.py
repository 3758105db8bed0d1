"""What is remembered and asked in every benchmark: the same on every machine, made from fixed seeds.

Notes have 12 to 40 words out of 50,000 by Zipf's law, about 173 characters on average. A query's words are those of
a real note.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

from ledgerstone import Caller, Keyring, Origin, ProjectHints, SigningKey
from ledgerstone.ledger import Ledger
from ledgerstone.memory import Memory
from ledgerstone.semantic import Lane

KEYS: Final = Keyring(SigningKey(seed=b"benchmarks sign with this seed, ", secret=b"and hash under this secret, both"))
CALLER: Final = Caller(
    principal="local:ada",
    origin=Origin.USER,
    host="bench",
    session="monday",
    project=ProjectHints(remotes=(("origin", "https://example.org/ada/cedar.git"),), paths=("/home/ada/cedar",)),
)
WORDS: Final = 50_000
BATCH: Final = 100
_ONSETS: Final = (*"bcdfghjklmnprstv", "br", "ch", "gr", "st")
_VOWELS: Final = "aeiou"


@cache
def vocabulary() -> list[str]:
    """Made-up words, the common ones short."""
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < WORDS:
        syllables = 1 + (len(words) > 40) + (len(words) > 4_000) + (chance.random() < 0.3)
        word = "".join(chance.choice(_ONSETS) + chance.choice(_VOWELS) for _ in range(syllables))
        words[word + chance.choice(("", "n", "r", "s", "t"))] = None
    return list(words)


@cache
def _weights() -> list[float]:
    """The cumulative weights of the words by Zipf's law."""
    return list(accumulate(1 / rank for rank in range(1, WORDS + 1)))


def notes(seed: int = 2) -> Iterator[str]:
    """Notes without end, the same for the same seed."""
    chance = random.Random(seed)
    words, weights = vocabulary(), _weights()
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(12, 40))) + "."


def queries(size: int, *, words: int = 8, count: int = 64) -> list[str]:
    """Queries, each of so many different words of one of the first ``size`` notes."""
    chance = random.Random(3)
    asked = []
    wanted = sorted(chance.randrange(size) for _ in range(count))
    for number, note in enumerate(islice(notes(), size)):
        while wanted and wanted[0] == number:
            wanted.pop(0)
            held = list(dict.fromkeys(note[:-1].split()))
            asked.append(" ".join(chance.sample(held, min(words, len(held)))))
    chance.shuffle(asked)
    return asked


def opened(path: Path, caller: Caller = CALLER, state: Path | None = None, *, semantic: Lane | None = None) -> Memory:
    """The store of a file, made if need be."""
    return Memory.open(path, keys=KEYS, caller=caller, state=state, create=not path.exists(), semantic=semantic)


def filled(path: Path, size: int, *, batch: int = BATCH) -> Path:
    """A store of so many notes in commits of ``batch``; made once a run."""
    if not path.exists():
        with opened(path) as memory:
            made = islice(notes(), size)
            while drafts := list(islice(made, batch)):
                if batch == 1:
                    memory.remember(drafts[0])
                else:
                    memory.remember_many(drafts)
    return path


def shared(memory: Memory) -> Ledger:
    """What all callers of an opened store share: the way to what no verb offers alone."""
    return memory._ledger  # noqa: SLF001
