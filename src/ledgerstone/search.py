"""One namespace's words -> scored candidates: the word index for what is folded, the tail for what is not."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import starmap
from typing import Final, NamedTuple

from ledgerstone.core import ranking
from ledgerstone.core.words import MAX_QUERY_WORDS, query_words, token
from ledgerstone.store.protocol import Candidate, Reader

# How many postings one search may read from the index, and how many of the best by words alone are scored in full.
POSTING_BUDGET: Final = 20_000
SCORED: Final = 192
LAST: Final = (1 << 40) - 1


class Hit(NamedTuple):
    """A position and its score in millionths."""

    score: int
    position: int


class Found(NamedTuple):
    """The best hits, best first, and what a reader should know."""

    hits: list[Hit]
    notices: tuple[str, ...]


class Sieve:
    """Lets through what may be recalled by its columns: unexpired, and trusted enough. Counts what it holds back."""

    __slots__ = ("_floor", "_now", "omitted")

    def __init__(self, floor: int, now: int) -> None:
        self._floor = floor
        self._now = now
        self.omitted: Counter[str] = Counter()

    def admits(self, candidate: Candidate) -> bool:
        """Whether a record that stands may be recalled; counts it, if not."""
        if self.passes(candidate):
            return True
        expired = candidate.expires is not None and candidate.expires <= self._now
        self.omitted["expired" if expired else "below_floor"] += 1
        return False

    def passes(self, candidate: Candidate) -> bool:
        """Whether a record that stands may be recalled."""
        return candidate.trust >= self._floor and (candidate.expires is None or candidate.expires > self._now)


def search(reader: Reader, number: int, query: str, sieve: Sieve, *, limit: int) -> Found:
    """The records that the sieve lets through and that answer a query best, by BM25 in integers.

    The rarest words are read first, within ``POSTING_BUDGET``; a word that no longer fits is left out of the
    candidates (never of the score) and a notice says so. Ties go to the newer record.
    """
    words = [token(word) for word in query_words(query, None)]
    if not words:
        return Found([], ())
    corpus = reader.corpus(number)
    tail = list(reader.word_rows(number, corpus.through, LAST))
    holding = reader.holding(number, words)
    needles = [(word, f" {word} ") for word in words]
    fresh = [(row.position, [word for word, needle in needles if needle in row.words]) for row in tail]
    for _, held in fresh:
        for word in held:
            holding[word] += 1
    documents = corpus.documents + len(tail)
    length = corpus.length + sum(row.length for row in tail)
    kept = [word for word in ranking.rarest(words, holding, MAX_QUERY_WORDS) if holding[word]]
    weights = {word: ranking.idf(documents, holding[word]) for word in kept}
    gathered, skipped = _gather(reader, number, weights, holding)
    for position, held in fresh:
        weight = sum(weights.get(word, 0) for word in held)
        if weight:
            gathered[position] = weight
    scored = ranking.scorer(weights, ranking.Corpus(documents, length))
    best = _best(reader, number, gathered, sieve)
    hits = [(scored(row.words, row.length), row.position) for row in reader.words_of(number, best)]
    hits.sort(reverse=True)
    notices = (f"{skipped} of {len(kept)} query words are too common here to find candidates by",) if skipped else ()
    return Found(list(starmap(Hit, hits[:limit])), notices)


def _best(reader: Reader, number: int, gathered: dict[int, int], sieve: Sieve) -> list[int]:
    """The first ``SCORED`` positions by weight, newer ones first among equals, that may be recalled."""
    pairs = list(zip(gathered.values(), gathered, strict=True))
    ranked = heapq.nlargest(SCORED, pairs)
    found: list[int] = []
    seen = 0
    while ranked:
        asked = [position for _, position in ranked]
        found += [row.position for row in reader.candidates(number, asked) if sieve.admits(row)]
        seen += len(ranked)
        if len(found) >= SCORED or seen >= len(pairs):
            break
        # What has ended or may not be recalled takes nobody's place.
        pairs.sort(reverse=True)
        ranked = pairs[seen : seen + SCORED]
    return found[:SCORED]


def _gather(
    reader: Reader, number: int, weights: dict[str, int], holding: dict[str, int]
) -> tuple[dict[int, int], int]:
    """Positions out of the index with the weights of the words they hold, rarest words first, and words left out."""
    gathered: dict[int, int] = {}
    room = POSTING_BUDGET
    skipped = bar = 0
    left = sum(weights.values())
    for word, weight in weights.items():
        if holding[word] > room and gathered:
            skipped += 1
            continue
        rows = reader.postings(number, word, room)
        room -= len(rows)
        if left < bar:
            # Whoever holds none of the words so far can no longer become one of the best.
            for position in gathered.keys() & rows:
                gathered[position] += weight
        else:
            for position in rows:
                gathered[position] = gathered.get(position, 0) + weight
            if len(gathered) >= SCORED:
                bar = heapq.nlargest(SCORED, gathered.values())[-1]
        left -= weight
    return gathered, skipped
