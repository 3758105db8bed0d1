"""The lane alone: what it makes of what words found, best first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from ledgerstone.search import Hit, Sieve
from ledgerstone.semantic import Lane, raised
from ledgerstone.store.protocol import Reader


class Matched(NamedTuple):
    """The best hits, best first, and what a reader should know."""

    hits: list[Hit]
    notices: tuple[str, ...]


def match(
    reader: Reader, number: int, query: str, lexical: Sequence[Hit], sieve: Sieve, *, lane: Lane, limit: int
) -> Matched:
    """The best of what the lane makes of lexical hits; ties go to the newer record."""
    found = raised(reader, number, query, {hit.position: hit.score for hit in lexical}, sieve, lane=lane)
    best = heapq.nlargest(limit, ((score, position) for position, score in found.scores.items()))
    return Matched([Hit(*one) for one in best], found.notices)
