"""A caller's own judgment: any callable that says how well texts answer a query, asked about the best candidates."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ledgerstone.core import fusion
from ledgerstone.core.ranking import SCORE_UNITS
from ledgerstone.semantic.encoders import EncoderError, check_name
from ledgerstone.semantic.lane import BrokenError, Raised, guarded, texts
from ledgerstone.store.protocol import Reader

# How many of the best it is asked about.
JUDGED: Final = 60


@dataclass(frozen=True, slots=True)
class Scorer:
    """A callable as a reranker, such as a cross-encoder: a query and texts in, a number a text out, more is better.

    ``name`` and ``version`` say which one it is, in the recall's ``scorer`` and in its receipt.
    """

    function: Callable[[str, Sequence[str]], Iterable[float]]
    name: str
    version: str

    @property
    def model(self) -> str:
        """Under which name it had a say; UsageError for one that cannot be told from others."""
        return f"{check_name(self.name)}/{check_name(self.version)}"


def judged(reader: Reader, number: int, query: str, scores: Mapping[int, int], *, scorer: Scorer) -> Raised:
    """Scores of what was found, the best ``JUDGED`` raised by what a scorer makes of their texts.

    From the one it likes least to the one it likes most it spreads its numbers over as much as the best score. Whatever
    it does, nothing is raised for it: the scores stand, and a notice says what was wrong.
    """
    best = heapq.nlargest(JUDGED, ((score, position) for position, score in scores.items()))
    asked = dict(texts(reader, number, [position for _, position in best]))
    if not asked:
        return Raised(dict(scores), (), None)
    try:
        with guarded():
            given = [float(each) for each in scorer.function(query, list(asked.values()))]
            if len(given) != len(asked) or not all(map(math.isfinite, given)):
                raise EncoderError(f"{len(given)} scores for {len(asked)} texts, or not finite numbers")
    except BrokenError as broken:
        return Raised(dict(scores), (f"semantic: scorer {scorer.model} unavailable: {broken}",), None)
    least, most = min(given), max(given)
    spread = {position: _part(value, least, most) for position, value in zip(asked, given, strict=True)}
    return Raised(fusion.rerank(scores, spread, fusion.SCORER_THOUSANDTHS), (), scorer.model)


def _part(value: float, least: float, most: float) -> int:
    # Halved first, so that no difference leaves the range.
    span = most / 2 - least / 2
    return round((value / 2 - least / 2) / span * SCORE_UNITS) if span else 0
