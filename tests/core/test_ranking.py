"""Promises of the ranking: BM25 in integers, the same on every machine."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.ranking import (
    B_THOUSANDTHS,
    FRACTION_BITS,
    K1_THOUSANDTHS,
    SCORE_UNITS,
    Corpus,
    idf,
    interleave,
    log2_fixed,
    rarest,
    score,
    scorer,
)
from ledgerstone.core.words import postings, token

ONE = 1 << FRACTION_BITS
VOCABULARY = ["red", "fox", "cedar-582", "中国", "x", "redder"]

positive = st.integers(1, 10**12)
documents = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=60)
corpora = st.builds(Corpus, documents=st.integers(1, 10**6), length=st.integers(1, 10**8))


def float_bm25(weights: dict[str, float], words: list[str], corpus: Corpus) -> float:
    """BM25 as the textbook has it."""
    k1, b = K1_THOUSANDTHS / 1000, B_THOUSANDTHS / 1000
    mean = corpus.length / corpus.documents
    norm = k1 * (1 - b + b * len(words) / mean)
    times = Counter(words)
    return sum(weight * times[word] * (k1 + 1) / (times[word] + norm) for word, weight in weights.items())


def float_idf(document_count: int, holding: int) -> float:
    """The logarithm that ``idf`` promises."""
    return math.log1p((document_count - holding + 0.5) / (holding + 0.5))


@given(st.integers(-60, 60))
def test_logarithm_of_a_power_of_two_is_exact(power: int) -> None:
    """Whole logarithms have no fraction, below one as above."""
    assert log2_fixed(1 << max(power, 0), 1 << max(-power, 0)) == power * ONE


@given(positive, positive)
def test_logarithm_is_at_most_one_unit_low(numerator: int, denominator: int) -> None:
    """The integer result stands within a unit of the float one."""
    expected = math.log2(numerator / denominator) * ONE

    logarithm = log2_fixed(numerator, denominator)

    assert -1.001 <= logarithm - expected <= 0.001


@given(positive, positive, positive)
def test_logarithm_never_falls_as_its_fraction_grows(one: int, other: int, denominator: int) -> None:
    """Order is kept exactly, not within a tolerance."""
    low, high = sorted([one, other])

    assert log2_fixed(low, denominator) <= log2_fixed(high, denominator)


@given(st.integers(1, 10**7), st.data())
def test_idf_is_the_natural_logarithm(document_count: int, data: st.DataObject) -> None:
    """Two units of fixed point are the most that an idf is away from the float one."""
    holding = data.draw(st.integers(0, document_count))

    weight = idf(document_count, holding)

    assert abs(weight - float_idf(document_count, holding) * ONE) <= 2


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_rarer_word_never_weighs_less(document_count: int, one: int, other: int) -> None:
    """Fewer holders never lower an idf, and no idf is nothing."""
    few, many = sorted([one, other])

    assert idf(document_count, few) >= idf(document_count, many) >= 1


def test_known_values_stay() -> None:
    """The same integers on every machine and in every release of this format."""
    corpus = Corpus(documents=1000, length=20_000)
    words = ["red", "fox", "red", "cedar-582", "x", "x", "x"]
    query = {token("red"): idf(1000, 40), token("cedar-582"): idf(1000, 1), token("absent"): idf(1000, 7)}

    assert list(query.values()) == [210203, 426199, 320723]
    assert score(query, postings(words), len(words), corpus) == 11_988_456


@given(documents, corpora, st.dictionaries(st.sampled_from([*VOCABULARY, "absent"]), st.integers(0, 10**6)))
def test_score_is_bm25(words: list[str], corpus: Corpus, holding: dict[str, int]) -> None:
    """Within a thousandth of the float formula, and within two millionths where that is nearly nothing."""
    weights = {word: idf(10**6, count) for word, count in holding.items()}
    expected = float_bm25({word: weight / ONE for word, weight in weights.items()}, words, corpus)

    query = {token(word): weight for word, weight in weights.items()}
    scored = score(query, postings(words), len(words), corpus)

    assert scored / SCORE_UNITS == pytest.approx(expected, rel=1e-3, abs=2e-6)


@given(documents, corpora, st.sampled_from(VOCABULARY), st.integers(1, 20 * ONE))
def test_more_occurrences_never_lower_a_score(words: list[str], corpus: Corpus, word: str, weight: int) -> None:
    """At equal length, one more occurrence counts for more or for as much."""
    query = {token(word): weight}
    length = len(words) + 1

    fewer = score(query, postings([*words, "other"]), length, corpus)
    more = score(query, postings([*words, word]), length, corpus)

    assert fewer <= more


@given(
    documents,
    corpora,
    st.sampled_from(VOCABULARY),
    st.lists(st.integers(1, 20 * ONE), min_size=2, max_size=2),
)
def test_rarer_word_never_scores_lower(words: list[str], corpus: Corpus, word: str, weights: list[int]) -> None:
    """The score follows the idf."""
    common, rare = sorted(weights)

    row = postings(words)

    assert score({token(word): common}, row, len(words), corpus) <= score({token(word): rare}, row, len(words), corpus)


@given(documents, corpora, st.integers(0, 1000))
def test_longer_record_never_scores_higher(words: list[str], corpus: Corpus, more: int) -> None:
    """At equal frequencies, length only takes away."""
    query, row = {token("red"): ONE, token("x"): 3 * ONE}, postings(words)

    assert score(query, row, len(words) + more, corpus) <= score(query, row, len(words), corpus)


@given(documents, corpora, st.permutations(VOCABULARY))
def test_order_of_query_words_makes_no_difference(words: list[str], corpus: Corpus, order: list[str]) -> None:
    """A sum of integers is the same in every order, which a sum of floats is not."""
    weights = {token(word): ONE + place for place, word in enumerate(VOCABULARY)}
    shuffled = {token(word): weights[token(word)] for word in order}
    row = postings(words)

    assert score(shuffled, row, len(words), corpus) == score(weights, row, len(words), corpus)


def test_record_without_the_words_scores_nothing() -> None:
    """A part of a word is not the word: zero for those, more than zero for the word itself."""
    scored = scorer({token("red"): ONE}, Corpus(documents=2, length=4))

    assert scored(postings(["redder", "fox"]), 2) == 0
    assert scored(postings([]), 0) == 0
    assert scored(postings(["red", "fox"]), 2) > 0


def test_record_outside_the_corpus_can_be_scored() -> None:
    """Counts that lag behind, even at zero, give a score and no error."""
    assert score({token("red"): idf(0, 1)}, postings(["red"]), 1, Corpus(documents=0, length=0)) > 0


def test_rarest_words_come_first() -> None:
    """Fewest holders first, ties by the word; what nobody holds takes no place from what finds something."""
    holding = {"common": 90, "b": 2, "a": 2, "one": 1, "zero": 0}
    words = ["common", "absent", "b", "zero", "one", "a", "one"]

    assert rarest(words, holding, 3) == ["one", "a", "b"]
    assert rarest(words, holding, 9) == ["one", "a", "b", "common", "absent", "zero"]


def test_lanes_interleave_rank_by_rank() -> None:
    """Each lane gives its best first; what comes up again keeps its first place."""
    assert interleave([1, 2, 3], [4, 1], [], [2, 5, 6, 7]) == [1, 4, 2, 5, 3, 6, 7]
    assert interleave([None, 0]) == [None, 0]
    assert interleave() == []


@given(st.lists(st.lists(st.integers(0, 20)), max_size=4))
def test_interleaving_loses_and_repeats_nothing(lanes: list[list[int]]) -> None:
    """Everything that any lane holds comes out exactly once."""
    merged = interleave(*lanes)

    assert sorted(merged) == sorted({each for lane in lanes for each in lane})
