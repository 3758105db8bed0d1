"""Promises of the ranking: BM25 in integers, the same on every machine."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.ranking import (
    B_THOUSANDTHS,
    BESIDE_THOUSANDTHS,
    FRACTION_BITS,
    K1_THOUSANDTHS,
    SCORE_UNITS,
    Corpus,
    beside,
    cohesion,
    idf,
    interleave,
    log2_fixed,
    of_sources,
    rarest,
    score,
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
    query, corpus = {token("red"): ONE}, Corpus(documents=2, length=4)

    assert score(query, postings(["redder", "fox"]), 2, corpus) == 0
    assert score(query, postings([]), 0, corpus) == 0
    assert score(query, postings(["red", "fox"]), 2, corpus) > 0


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


def test_a_lane_may_have_several_places_in_its_turn() -> None:
    """Three of the first lane for one of each other; when it has no more, the others go on."""
    assert interleave([1, 2, 3, 4], [10, 11, 12], turns=(3,)) == [1, 2, 3, 10, 4, 11, 12]
    assert interleave([1, 2, 3, 4, 5], [10, 11, 12], turns=(2,)) == [1, 2, 10, 3, 4, 11, 5, 12]
    assert interleave([1, 2], [10, 11, 12], turns=(1, 2)) == [1, 10, 11, 2, 12]
    assert interleave([1, 2], turns=(1, 9, 9)) == [1, 2]


@given(st.lists(st.lists(st.integers(0, 20)), max_size=4), st.lists(st.integers(1, 4), max_size=5))
def test_turns_change_the_order_only(lanes: list[list[int]], turns: list[int]) -> None:
    """However many places a lane gets in its turn, nothing is lost or repeated, and each lane keeps its own order."""
    merged = interleave(*lanes, turns=turns)

    assert sorted(merged) == sorted({each for lane in lanes for each in lane})
    for place, lane in enumerate(lanes):
        alone = [each for each in dict.fromkeys(lane) if all(each not in lanes[other] for other in range(place))]
        kept = [each for each in merged if each in alone]
        others = {each for other in lanes[place + 1 :] for each in other}
        assert [each for each in kept if each not in others] == [each for each in alone if each not in others]


# A source of thirty parts, and what stands around each of some hits, at most eight places away.
def rows(hits: list[int], parts: int = 30) -> list[tuple[int, list[int]]]:
    """Each hit with its surroundings."""
    return [(hit, [part for part in range(parts) if abs(part - hit) <= 8]) for hit in hits]


def test_words_that_come_again_nearby_are_cohesion() -> None:
    """All of it when the neighbours hold the query's words and what is far away does not, none the other way round."""
    near = {14: 5, 13: 5, 15: 5}
    far = {14: 5, 8: 5, 20: 5, 7: 5, 21: 5}

    assert cohesion(rows([14]), near) == 1000
    assert cohesion(rows([14]), far) == 0


def test_words_that_come_as_often_afar_are_none() -> None:
    """In a heap of notes what stands side by side means nothing: every part alike gives nothing, a little more some."""
    alike = dict.fromkeys(range(30), 5)

    assert cohesion(rows([14]), alike) == 0
    assert 0 < cohesion(rows([14, 15]), alike | {13: 6}) < 1000


def test_a_few_pairs_decide_less_than_many() -> None:
    """The same excess counts for more the more hits show it, since few may do so by chance."""
    weights = {part: 10 if part % 30 in {13, 14, 15} else 9 for part in range(90)}

    one, three = (cohesion(rows(hits, 90), weights) for hits in ([14], [14, 44, 74]))

    assert 0 < one < three


def test_a_source_too_short_to_have_an_afar_tells_nothing() -> None:
    """Nor does a part by itself, nor words that stand nowhere around; a long one whose words come nearby does."""
    assert cohesion([(1, [0, 1, 2])], {0: 5, 1: 5}) == 0
    assert cohesion([(0, [0])], {0: 5}) == 0
    assert cohesion([], {}) == 0
    assert cohesion(rows([14]), {}) == 0
    assert cohesion(rows([14]), {13: 5, 14: 5, 15: 5}) == 1000


@given(st.lists(st.integers(0, 29), max_size=10), st.dictionaries(st.integers(0, 29), st.integers(0, 10**7)))
def test_cohesion_is_a_share(hits: list[int], weights: dict[int, int]) -> None:
    """From nothing to all, whatever is asked, and the same when asked again."""
    share = cohesion(rows(hits), weights)

    assert 0 <= share <= 1000
    assert share == cohesion(rows(hits), weights)


@given(st.lists(st.integers(0, 29), max_size=10), st.dictionaries(st.integers(0, 29), st.integers(0, 1000)))
def test_cohesion_is_how_much_more_a_near_pair_weighs_than_a_far_one(hits: list[int], weights: dict[int, int]) -> None:
    """In fractions: the mean over the pairs one and two places apart by that over those six and seven, less one."""
    pairs = {
        distances: [
            weights.get(hit + step, 0)
            for hit in hits
            for distance in distances
            for step in (-distance, distance)
            if 0 <= hit + step < 30
        ]
        for distances in ((1, 2), (6, 7))
    }
    near, far = pairs.values()
    whole = Fraction(sum(near) + sum(far), max(len(near) + len(far), 1))
    above, below = (sum(near) + 48 * whole) * (len(far) + 48), (sum(far) + 48 * whole) * (len(near) + 48)

    share = cohesion(rows(hits), weights)

    assert share == (10 * min(max(floor(1000 * above / below) - 1000, 0), 100) if whole else 0)
    assert type(share) is int


def test_a_neighbour_gains_part_of_a_hits_score() -> None:
    """More next to it than two away, from every hit it stands beside, and nothing further off."""
    one, two = BESIDE_THOUSANDTHS
    scores = {3: 1_000_000, 5: 2_000_000}
    lines = [(3, list(range(8))), (5, list(range(8)))]

    assert beside(scores, lines, 1000) == {
        1: two * 1000,
        2: one * 1000,
        4: one * 1000 + one * 2000,
        5: two * 1000,
        3: two * 2000,
        6: one * 2000,
        7: two * 2000,
    }


@pytest.mark.parametrize(("share", "gain"), [(1000, 350_000), (500, 175_000), (1, 350), (0, None)])
def test_the_gain_follows_the_share(share: int, gain: int | None) -> None:
    """Half the cohesion is half the gain, and none is none: nothing is named that gains nothing."""
    assert beside({1: 1_000_000}, [(1, [0, 1])], share).get(0) == gain


def test_the_ends_of_a_source_have_neighbours_on_one_side() -> None:
    """What stands last has nothing after it, and the first is not taken for that."""
    assert beside({9: 1_000_000}, [(9, [2, 5, 9])], 1000) == {5: 350_000, 2: 122_000}
    assert beside({2: 1_000_000}, [(2, [2, 5, 9])], 1000) == {5: 350_000, 9: 122_000}


def test_a_source_that_answers_more_of_a_query_is_worth_more() -> None:
    """The best is whole; one that holds a word which all hold is worth little; more hits count, with saturation."""
    worth = of_sources([("a", ["cedar", "gate"]), ("a", ["cedar"]), ("b", ["cedar"]), ("c", ["cedar"])])

    assert worth["a"] == 1000
    assert 0 < worth["b"] == worth["c"] < 200


def test_a_word_that_few_sources_hold_counts_more() -> None:
    """One hit with a rare word beats one with a common word."""
    worth = of_sources([("rare", ["gate"]), *((f"common {n}", ["cedar"]) for n in range(9))])

    assert worth["rare"] == 1000
    assert worth["common 0"] < 500


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from(["cedar", "gate", "oak"]))), max_size=40))
def test_the_worth_of_a_source_is_bm25_over_its_hits(held: list[tuple[int, set[str]]]) -> None:
    """In fractions: each of its words by how rare it is among the sources, times f * 2.2 / (f + 1.2), of the best."""
    counts: dict[int, Counter[str]] = {}
    for source, words in held:
        counts.setdefault(source, Counter()).update(words)
    holding = Counter(word for times in counts.values() for word in times)
    scores = {
        source: sum(floor(idf(len(counts), holding[word]) * Fraction(22 * f, 10 * f + 12)) for word, f in times.items())
        for source, times in counts.items()
    }

    assert of_sources(held) == {source: 1000 * score // (max(scores.values()) or 1) for source, score in scores.items()}


@given(st.integers(1, 50))
def test_more_hits_of_a_source_never_make_it_worth_less(count: int) -> None:
    """And no number of them is worth more than all there is."""
    other = ("other", ["cedar", "gate"])

    fewer, more = (of_sources([other, *[("many", ["cedar"])] * times]) for times in (count, count + 1))

    assert fewer["many"] <= more["many"] <= 1000


def test_hits_without_words_make_no_source_worth_anything() -> None:
    """And no hits make no sources."""
    assert of_sources([("a", []), ("b", [])]) == {"a": 0, "b": 0}
    assert of_sources([]) == {}
