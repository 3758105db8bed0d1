"""Promises of the fusion: scores decide, words lead, and the answer is in whole numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.fusion import COSINE_THOUSANDTHS, MATCH_THOUSANDTHS, fuse, rerank
from ledgerstone.core.ranking import SCORE_UNITS

scores = st.dictionaries(st.integers(0, 30), st.integers(1, 10**8), max_size=20)
cosines = st.dictionaries(st.integers(0, 30), st.integers(-(10**6), 10**6), max_size=20)


def test_closest_of_all_gains_its_share_of_the_best_score() -> None:
    """The closest gains the whole share, one halfway to it half, an average one nothing."""
    raised = fuse({1: 10_000, 2: 5_000, 3: 4_000}, {2: 700, 3: 500, 4: 300}, 300)

    share = 10_000 * COSINE_THOUSANDTHS // 1000
    assert raised == {1: 10_000, 2: 5_000 + share, 3: 4_000 + share // 2}
    assert fuse({1: 10_000}, {2: 700, 3: 300}, 300, 600) == {1: 10_000, 2: 6_000}


def test_what_is_average_in_meaning_is_not_found_by_it() -> None:
    """Without a word of the query only what is closer than average is found; with one it stays, and falls."""
    assert fuse({1: 10_000}, {2: 301, 3: 300, 4: 299}, 300).keys() == {1, 2}
    assert fuse({1: 10_000, 4: 9_000}, {2: 301, 4: 299}, 300)[4] == 9_000 - 2_000


def test_meaning_alone_never_passes_the_best_by_words() -> None:
    """However close it is, a record without any word of the query stays below the best that has them."""
    raised = fuse({1: 10_000}, {1: 0, 2: 1_000_000}, 0)

    assert raised[1] > raised[2] > 0


def test_without_words_the_closest_leads() -> None:
    """No score by words: the cosines stand for themselves."""
    raised = fuse({}, {1: 100, 2: 900}, 50)

    assert raised[2] == SCORE_UNITS * COSINE_THOUSANDTHS // 1000 > raised[1] > 0


def test_cosines_that_tell_nothing_change_nothing() -> None:
    """None at all, or none above the mean."""
    assert fuse({1: 7}, {}, 0) == {1: 7}
    assert fuse({1: 7}, {1: 3, 2: 3}, 3) == {1: 7}


def test_matches_raise_the_best_by_their_own_share() -> None:
    """Word by word counts from the mean of those that were matched."""
    raised = rerank({1: 10_000, 2: 9_900, 3: 1}, {1: 0, 2: 1_000})

    assert raised == {1: 10_000 - 10 * MATCH_THOUSANDTHS, 2: 9_900 + 10 * MATCH_THOUSANDTHS, 3: 1}
    assert rerank({1: 7}, {}) == {1: 7}


def test_the_least_difference_counts() -> None:
    """Two that answer almost alike are told apart, by the whole share; one alone has nobody to be better than."""
    assert rerank({1: 1000, 2: 1000}, {1: 0, 2: 1}) == {1: 1000, 2: 1000 + MATCH_THOUSANDTHS}
    assert rerank({1: 1000}, {1: 1}) == {1: 1000}


@given(scores, cosines, st.integers(-(10**6), 10**6))
def test_fusion_loses_nobody_and_raises_nobody_beyond_the_share(
    by_words: dict[int, int], close: dict[int, int], mean: int
) -> None:
    """Whoever was found stays, and nobody gains more than the share of the best."""
    raised = fuse(by_words, close, mean)

    share = (max(by_words.values(), default=0) or SCORE_UNITS) * COSINE_THOUSANDTHS // 1000
    assert raised.keys() >= by_words.keys()
    assert all(type(value) is int for value in raised.values())
    assert all(raised[position] - by_words.get(position, 0) <= share for position in raised)
