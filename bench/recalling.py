"""Recalling: what a context costs among many notes as language has them, and how well its candidates are chosen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import mean
from typing import Final

from bench.figures import MS, Act, Figure, Scale, interleaved, typical
from bench.natural import IMPORT, SHORT_NOTE, in_session, kept, queries, spread
from bench.workload import CALLER, opened, shared
from ledgerstone.core import ranking, words
from ledgerstone.core.words import query_words, token
from ledgerstone.memory import Memory
from ledgerstone.search import OWN, Sieve, search
from ledgerstone.store.protocol import LAST, Reader

# How many of the best hits are compared with those of exact BM25, for how many queries.
BEST: Final = 10
COMPARED: Final = 32
ASKED: Final = 48
TARGETS: Final = {
    (10_000, 8): "at most 5",
    (10_000, 32): "at most 10",
    (100_000, 8): "at most 12",
    (100_000, 32): "at most 30",
    (1_000_000, 8): "at most 60",
    (1_000_000, 32): "at most 150",
}
CROWDED: Final = {8: "at most 25", 32: "at most 60"}


def recalling(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Contexts of 16 entries for 8 and for 32 words, without sources and with them."""
    for size in scale.recalled:
        for sourced in (False, True):
            with opened(kept(folder, size, sourced=sourced)) as memory:
                yield from _contexts("recalling", memory, size, scale, sourced=sourced)


def large(scale: Scale, folder: Path) -> Iterator[Figure]:
    """The same in one namespace as large as they may become."""
    with opened(kept(folder, scale.large, sourced=False)) as memory:
        yield from _contexts("large", memory, scale.large, scale, sourced=False)


def crowded(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Contexts of 16 entries in one of many namespaces, for words of the first notes in it."""
    size, namespaces = scale.crowd
    with opened(spread(folder, size, namespaces), in_session(0)) as memory:
        for count in (8, 32):
            asked = queries(IMPORT, words=count, count=ASKED // 2, note=SHORT_NOTE)
            one = partial(_next, cycle([partial(memory.recall, query) for query in asked]))
            typical(one, rounds=1, times=4)
            cost = typical(one, rounds=scale.rounds, times=len(asked))
            what = f"{count} words in one of {namespaces} namespaces of {size:,} notes"
            yield Figure("crowded", what, cost * MS, "ms", CROWDED.get(count) if size == 1_000_000 else None)


def _contexts(name: str, memory: Memory, size: int, scale: Scale, *, sourced: bool) -> Iterator[Figure]:
    for count in (8, 32):
        asked = queries(size, words=count, count=ASKED)
        what = f"{count} words among {size:,} notes" + " that name sources" * sourced
        one = partial(_next, cycle([partial(memory.recall, query) for query in asked]))

        typical(one, rounds=1, times=4)
        cost = typical(one, rounds=scale.rounds, times=len(asked) // 2)
        yield Figure(name, what, cost * MS, "ms", TARGETS.get((size, count)))
        if sourced:
            continue
        least = 0.98 if size <= 100_000 else 0.9
        yield Figure(name, f"overlap@{BEST} with exact BM25", _overlap(memory, asked), "", f"at least {least}")
        with _stop_words_kept():
            typical(one, rounds=1, times=4)
            cost = typical(one, rounds=scale.rounds, times=len(asked) // 2)
            yield Figure(name, "the same, stop words kept", cost * MS, "ms")
            yield Figure(name, f"overlap@{BEST}, stop words kept", _overlap(memory, asked), "")
    if not sourced:
        query = queries(size, words=8, count=1)[0]
        signed, bare, _ = interleaved(
            lambda: memory.recall(query, receipt=True), lambda: memory.recall(query), rounds=scale.rounds, times=16
        )
        yield Figure(name, f"what a receipt adds at {size:,} notes", (signed - bare) * MS, "ms", "at most 1")


def _next(turns: Iterator[Act]) -> None:
    next(turns)()


@contextmanager
def _stop_words_kept() -> Iterator[None]:
    """Queries whose every word is looked for."""
    stops = words.STOP_WORDS
    words.__dict__["STOP_WORDS"] = frozenset()
    try:
        yield
    finally:
        words.__dict__["STOP_WORDS"] = stops


def _overlap(memory: Memory, asked: Sequence[str]) -> float:
    """How many of the ten records that answer a query best a search finds among its own ten, on average."""
    weighed = [[token(word) for word in query_words(query, None)] for query in asked[:COMPARED]]
    with shared(memory).reads(CALLER) as (reading, identity):
        number = identity.visible()[0][-1][0].number
        exact = _exact(reading.reader, number, weighed)
        shares = []
        for query, best in zip(weighed, exact, strict=True):
            found = search(reading.reader, number, dict.fromkeys(query, OWN), Sieve(0, None), limit=BEST)
            shares.append(len(best & {hit.position for hit in found.hits}) / max(len(best), 1))
    return mean(shares)


def _exact(reader: Reader, number: int, asked: Sequence[Sequence[str]]) -> list[set[int]]:
    """The ten best records of each query when every record is scored; newer ones first among equals."""
    meant = {word for query in asked for word in query}
    postings: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    documents = length = 0
    for row in reader.word_rows(number, 0, LAST):
        documents, length = documents + 1, length + row.length
        for times, line in enumerate(row.words.split("\n"), 1):
            for word in meant.intersection(line.split()):
                postings[word].append((row.position, times, row.length))
    corpus = ranking.Corpus(documents, length)
    return [_ten(query, postings, corpus) for query in asked]


def _ten(query: Sequence[str], postings: Mapping[str, list[tuple[int, int, int]]], corpus: ranking.Corpus) -> set[int]:
    scores: Counter[int] = Counter()
    for word in dict.fromkeys(query):
        weight = ranking.idf(corpus.documents, max(len(postings[word]), 1))
        gains: dict[tuple[int, int], int] = {}
        for position, times, length in postings[word]:
            gain = gains.get((times, length))
            if gain is None:
                stands = "\n" * (times - 1) + f" {word} "
                gain = gains[times, length] = ranking.score({word: weight}, stands, length, corpus)
            scores[position] += gain
    best = sorted(((score, position) for position, score in scores.items()), reverse=True)[:BEST]
    return {position for _, position in best}
