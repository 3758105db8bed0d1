"""One namespace's words -> scored candidates: the word index for what is folded, the tail for what is not."""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgerstone.core import ranking
from ledgerstone.core.words import query_words, token
from ledgerstone.store.protocol import Reader

# How many postings one search may read from the index, and how many of the best by words alone are scored in full.
POSTING_BUDGET: Final = 20_000
SCORED: Final = 300
LAST: Final = (1 << 40) - 1


class Hit(NamedTuple):
    """A position and its score in millionths."""

    score: int
    position: int


class Found(NamedTuple):
    """The best hits, best first; how many were left out by reason; what a reader should know."""

    hits: list[Hit]
    omitted: dict[str, int]
    notices: tuple[str, ...]


def search(reader: Reader, number: int, query: str, *, limit: int, floor: int, now: int) -> Found:
    """The standing, unexpired records at or above a trust floor that answer a query best, by BM25 in integers.

    The rarest words are read first, within ``POSTING_BUDGET``; a word that no longer fits is left out of the
    candidates (never of the score) and a notice says so. Ties go to the newer record.
    """
    words = [token(word) for word in query_words(query, None)]
    if not words:
        return Found([], {}, ())
    corpus = reader.corpus(number)
    tail = list(reader.word_rows(number, corpus.through, LAST))
    holding = reader.holding(number, words)
    for row in tail:
        for word in words:
            if f" {word} " in row.words:
                holding[word] += 1
    documents = corpus.documents + len(tail)
    length = corpus.length + sum(row.length for row in tail)
    kept = [word for word in ranking.rarest(words, holding, 32) if holding[word]]
    weights = {word: ranking.idf(documents, holding[word]) for word in kept}
    notices: list[str] = []
    gathered: dict[int, int] = {}
    spent = 0
    skipped = 0
    for word in kept:
        if spent and spent + holding[word] > POSTING_BUDGET:
            skipped += 1
            continue
        room = POSTING_BUDGET - spent
        rows = reader.postings(number, word, room)
        spent += len(rows)
        weight = weights[word]
        for position in rows:
            gathered[position] = gathered.get(position, 0) + weight
    if skipped:
        notices.append(f"candidates leave out {skipped} of {len(kept)} query words, too common here")
    scored = ranking.scorer(weights, ranking.Corpus(documents, length))
    hits = [Hit(score, row.position) for row in tail if (score := scored(row.words, row.length))]
    omitted: dict[str, int] = {}
    admissible: list[Hit] = []
    best = sorted(((-weight, -position) for position, weight in gathered.items()))
    for _, position in _take(best, reader, number, floor, now, omitted):
        words_of = reader.word_row(number, position)
        if words_of is not None:
            admissible.append(Hit(scored(words_of.words, words_of.length), position))
    for hit in hits:
        if _admissible(reader, number, hit.position, floor, now, omitted):
            admissible.append(hit)
    admissible.sort(key=lambda hit: (-hit.score, -hit.position))
    return Found(admissible[:limit], omitted, tuple(notices))


def _take(
    best: list[tuple[int, int]], reader: Reader, number: int, floor: int, now: int, omitted: dict[str, int]
) -> list[tuple[int, int]]:
    """The first admissible candidates of a list that is ordered best first."""
    taken: list[tuple[int, int]] = []
    for weight, negative in best:
        if len(taken) == SCORED:
            break
        if _admissible(reader, number, -negative, floor, now, omitted):
            taken.append((weight, -negative))
    return taken


def _admissible(reader: Reader, number: int, position: int, floor: int, now: int, omitted: dict[str, int]) -> bool:
    """Whether a record's columns admit it: it stands, it has not expired, its trust reaches the floor."""
    candidate = reader.candidate(number, position)
    if candidate is None:
        return False
    reason = None
    if candidate.expires is not None and candidate.expires <= now:
        reason = "expired"
    elif candidate.trust < floor:
        reason = "below_floor"
    if reason is not None:
        omitted[reason] = omitted.get(reason, 0) + 1
    return reason is None
