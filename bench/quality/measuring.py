"""A set through the product: everything remembered in a store, every question recalled, what came back scored."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final

from bench.quality.scoring import means, scores
from bench.quality.sets import Collection, Document, Store
from ledgerstone import (
    Budget,
    Caller,
    Draft,
    Keyring,
    Kind,
    Limits,
    Memory,
    Mode,
    Origin,
    Recall,
    Scope,
    SigningKey,
    UsageError,
)
from ledgerstone.semantic import Lane

KEYS: Final = Keyring(SigningKey(seed=b"quality signs with this seed, tw", secret=b"and hash under this secret, both"))
BATCH: Final = 128
CALLER: Final = Caller(
    principal="local:ada",
    origin=Origin.USER,
    host="bench",
    session="monday",
    limits=Limits(drafts=BATCH, text_bytes=1_048_576),
)
MOST_BYTES: Final = 1_048_576
# 1 January 2026, 00:00 UTC: no measure depends on when it is taken.
NOW: Final = 1_767_225_600_000_000
Opened = Callable[[Path], Memory]


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a run is made with: how candidates are found, how deep a ranking is asked for, and within how many bytes.

    ``opened`` names what opened the store (``module:function``): the place for an encoder or another lane. With
    ``every`` above 1 only each so-manieth question of a store is asked, for a quick look.
    """

    mode: str
    opened: str = "bench.quality.measuring:opened"
    depth: int = 100
    candidates: int = 100
    bytes: int = 2_400
    every: int = 1

    @property
    def label(self) -> str:
        """A short name: the mode, and what opened the store if not the base install."""
        function = self.opened.partition(":")[2]
        return self.mode if function == "opened" else f"{self.mode}+{function}"


@dataclass(frozen=True, slots=True)
class Row:
    """One question's answer: the first documents of the deep ranking, those of the small budget, and the measures.

    ``stale`` counts what was returned though a later document corrects it.
    """

    store: str
    id: str
    category: str
    ranking: tuple[str, ...]
    held: tuple[str, ...]
    stale: int
    scores: dict[str, float]


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration over one whole set. Everything but ``milliseconds`` is the same at every repetition."""

    name: str
    data_sha256: str
    configuration: Configuration
    rows: tuple[Row, ...]
    milliseconds: float

    @property
    def means(self) -> dict[str, float]:
        """The mean of every measure."""
        return means([row.scores for row in self.rows])

    @property
    def stale(self) -> int:
        """How many records were returned that something newer corrects."""
        return sum(row.stale for row in self.rows)


def opened(path: Path, *, semantic: Lane | None = None) -> Memory:
    """A store in a new file as the base install makes it, with a clock that stands still and chance from a seed.

    It is remembered in a directory beside it: what vouches for nothing says so in every answer, and that costs bytes.
    """
    chance = random.Random(path.name)
    state = path.with_name(f"{path.name}.state")
    return Memory.open(
        path,
        keys=KEYS,
        caller=CALLER,
        state=state,
        create=True,
        clock=lambda: NOW,
        entropy=chance.randbytes,
        semantic=semantic,
    )


def measure(
    collection: Collection, configurations: Sequence[Configuration], folder: Path, opening: Opened = opened
) -> list[Run]:
    """Each configuration over the set; every store is made once, in ``folder``, and asked by all of them."""
    rows: list[list[Row]] = [[] for _ in configurations]
    took: list[list[float]] = [[] for _ in configurations]
    for store in collection.stores:
        with TemporaryDirectory(dir=folder) as room, opening(Path(room) / "quality.db") as memory:
            names = fill(memory, store.documents)
            with suppress(UsageError):  # there is no encoder, and so nothing to index
                memory.index_vectors()
            for turn, configuration in enumerate(configurations):
                for row, seconds in _asked(memory, store, names, configuration):
                    rows[turn].append(row)
                    took[turn].append(seconds)
    return [
        Run(collection.name, collection.sha256, configuration, tuple(rows[turn]), 1_000 * median(took[turn]))
        for turn, configuration in enumerate(configurations)
    ]


def drafts(documents: Sequence[Document]) -> Iterator[Draft]:
    """Documents as they are remembered, without their ids: a set may mark its answers in an id or a source's name.

    Sources are numbered as they come, and so are places in a source that have no name of their own. The time is the
    title: it is searched with the text.
    """
    sources: dict[str, int] = {}
    places: dict[str, int] = {}
    for document in documents:
        source = place = None
        if document.source is not None:
            source = f"source {sources.setdefault(document.source, len(sources) + 1)}"
            places[source] = places.get(source, 0) + 1
            place = document.place or str(places[source])
        yield Draft(
            text=document.text,
            kind=Kind(document.kind),
            key=document.key,
            source=source,
            place=place,
            title=document.time,
        )


def fill(memory: Memory, documents: Sequence[Document]) -> dict[str, str]:
    """Remember documents in their order, many a commit; their addresses with their ids."""
    names: dict[str, str] = {}
    for batch in _batches(list(zip(documents, drafts(documents), strict=True))):
        kept = memory.remember_many([draft for _, draft in batch], scope=Scope.USER)
        names |= {one.record.address: document.id for one, (document, _) in zip(kept, batch, strict=True)}
    return names


def _batches(pairs: Sequence[tuple[Document, Draft]]) -> Iterator[list[tuple[Document, Draft]]]:
    """Pairs in their order, as many a commit as may be: no key comes twice in one."""
    batch: list[tuple[Document, Draft]] = []
    keys: set[str] = set()
    for document, draft in pairs:
        if len(batch) == BATCH or document.key in keys:
            yield batch
            batch, keys = [], set()
        batch.append((document, draft))
        if document.key is not None:
            keys.add(document.key)
    if batch:
        yield batch


def _asked(
    memory: Memory, store: Store, names: dict[str, str], configuration: Configuration
) -> Iterator[tuple[Row, float]]:
    """Every question of a store, with the CPU seconds that its recall within the small budget took."""
    mode = Mode(configuration.mode)
    deep = Budget(bytes=MOST_BYTES, items=configuration.depth, candidates=configuration.candidates)
    small = Budget(bytes=configuration.bytes)
    newest = {document.key: document.id for document in store.documents if document.key is not None}
    corrected = {one.id for one in store.documents if one.key is not None and newest[one.key] != one.id}
    session = {one.id: one.id if one.source is None else f"source {one.source}" for one in store.documents}
    size = {document.id: len(document.text.encode()) for document in store.documents}

    def ids(recalled: Recall) -> tuple[str, ...]:
        return tuple(names[item.record.address] for item in recalled.items)

    for question in store.questions[:: configuration.every]:
        ranking = ids(memory.recall(question.text, mode=mode, budget=deep))
        begin = process_time()
        recalled = memory.recall(question.text, mode=mode, budget=small)
        seconds = process_time() - begin
        held = ids(recalled)
        measures = scores(ranking, held, question.gold, session=session, size=size, most=configuration.bytes)
        stale = len(corrected & {*ranking, *held})
        yield Row(store.name, question.id, question.category, ranking, held, stale, measures), seconds


def output(run: Run) -> bytes:
    """A run as JSON Lines: what it was made of with its hashes, then a line a question."""
    configuration = asdict(run.configuration)
    head = {
        "set": run.name,
        "data_sha256": run.data_sha256,
        "configuration": configuration,
        "configuration_sha256": hashlib.sha256(_line(configuration)).hexdigest(),
    }
    return b"".join(_line(part) for part in (head, *map(asdict, run.rows)))


def _line(part: Any) -> bytes:
    return json.dumps(part, ensure_ascii=False).encode() + b"\n"
