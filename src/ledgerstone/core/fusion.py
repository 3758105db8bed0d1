"""Fusion: what words found and what meaning found as one order, words leading; in integers, by scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledgerstone.core.ranking import SCORE_UNITS

# What being closest in meaning of all counts, in thousandths of the best score by words, unless the encoder says more.
COSINE_THOUSANDTHS: Final = 200
# What answering best word by word counts beside it.
MATCH_THOUSANDTHS: Final = 300
# What a caller's own scorer counts: as much as the best score there is.
SCORER_THOUSANDTHS: Final = 1000


def fuse(
    scores: Mapping[int, int], cosines: Mapping[int, int], mean: int, thousandths: int = COSINE_THOUSANDTHS
) -> dict[int, int]:
    """Scores by words, raised by closeness in meaning: score + 0.2 * top * (cosine - mean) / (greatest - mean).

    ``scores`` and ``cosines`` are by position; a position with a score alone is average in meaning, one with a cosine
    alone has no word of the query, and is found only if it is closer than average. ``mean`` is the cosine of everything
    that was searched. Without any score the cosines stand for themselves, so that the closest has 0.2 points.
    ``thousandths`` is that 0.2. No rank counts, only scores: equal shares for ranks put what words had found below what
    a model only guessed.
    """
    return _raised(scores, cosines, mean, thousandths)


def rerank(
    scores: Mapping[int, int], matches: Mapping[int, int], thousandths: int = MATCH_THOUSANDTHS
) -> dict[int, int]:
    """Scores of the best, raised in the same way by how well each answers the query, word by word or in some way."""
    mean = sum(matches.values()) // max(len(matches), 1)
    return _raised(scores, matches, mean, thousandths)


def _raised(scores: Mapping[int, int], values: Mapping[int, int], mean: int, thousandths: int) -> dict[int, int]:
    span = max(values.values(), default=mean) - mean
    if span <= 0:
        return dict(scores)
    share = (max(scores.values(), default=0) or SCORE_UNITS) * thousandths
    raised = dict(scores)
    for position, value in values.items():
        if value > mean or position in scores:
            raised[position] = raised.get(position, 0) + share * (value - mean) // (span * 1000)
    return raised
