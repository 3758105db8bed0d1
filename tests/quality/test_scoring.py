"""The measures are those of their definitions, worked out here by hand."""

from __future__ import annotations

import pytest
from bench.quality import scoring

RANKING = ("a", "b", "c", "d", "e")
SESSION = {"a": "one", "b": "one", "c": "two", "d": "three", "e": "four"}
SIZE = {"a": 9, "b": 99, "c": 9, "d": 9, "e": 9}


def test_recall_is_the_share_of_the_gold_among_the_first() -> None:
    """Of two answers, one at rank 2 and one beyond, half is among the first two."""
    assert scoring.recall(RANKING, {"b", "e"}, 1) == 0
    assert scoring.recall(RANKING, {"b", "e"}, 2) == 0.5
    assert scoring.recall(RANKING, {"b", "e"}, 5) == 1


def test_the_reciprocal_rank_is_that_of_the_first_answer() -> None:
    """The second answer does not count, and an answer that never comes counts nothing."""
    assert scoring.reciprocal(RANKING, {"b", "e"}) == 0.5
    assert scoring.reciprocal(RANKING, {"elsewhere"}) == 0


def test_gain_is_discounted_by_rank_and_is_1_at_best() -> None:
    """One answer at rank 3 gains 1 / log2(4); both answers first gain all there is."""
    assert scoring.ndcg(RANKING, {"c"}, 10) == pytest.approx(0.5)
    assert scoring.ndcg(RANKING, {"a", "b"}, 10) == 1


def test_a_session_counts_once_however_many_of_its_documents_come() -> None:
    """The first two sessions are those of a and c; what answers from two sessions is half there."""
    assert scoring.sessions(RANKING, {"c"}, SESSION, 1) == 0
    assert scoring.sessions(RANKING, {"c"}, SESSION, 2) == 1
    assert scoring.sessions(RANKING, {"b", "e"}, SESSION, 2) == 0.5


def test_evidence_is_complete_when_all_of_it_fits() -> None:
    """A text costs one byte more than it has; what does not fit is skipped, and smaller texts behind it may fit."""
    assert scoring.complete(RANKING, {"a", "c"}, SIZE, 20) == 1
    assert scoring.complete(RANKING, {"a", "c"}, SIZE, 19) == 0
    assert scoring.complete(RANKING, {"b"}, SIZE, 109) == 0
    assert scoring.complete(RANKING, {"b"}, SIZE, 110) == 1


def test_an_interval_holds_the_mean_and_repeats() -> None:
    """The same differences and seed give the same interval; one that is all gain leaves zero out, a mixed one not."""
    mixed, gains = [1.0, -1.0] * 50, [0.1, 0.3] * 50

    assert scoring.interval(mixed, seed=7) == scoring.interval(mixed, seed=7)
    low, high = scoring.interval(mixed)
    assert low < 0 < high
    low, high = scoring.interval(gains)
    assert 0.1 < low < 0.2 < high < 0.3
