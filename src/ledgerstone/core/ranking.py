"""Ranking: how well a record's words answer a query's, in integers, so that every machine agrees.

A logarithm and an idf are fixed-point numbers with 16 fractional bits: 65,536 stands for one. A score
counts millionths. No float is involved anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Final, TypeVar

# Names what follows for receipts: to be changed when any answer changes.
RANKING: Final = "bm25/8 k1=900 b=400 beside=350,122 source=400 han=100"
FRACTION_BITS: Final = 16
K1_THOUSANDTHS: Final = 900
B_THOUSANDTHS: Final = 400
SCORE_UNITS: Final = 1_000_000

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is searched: how many documents it has, and how many words all of them together."""

    documents: int
    length: int


def score(query: Mapping[str, int], words: str, length: int, corpus: Corpus) -> int:
    """BM25 (k1 0.9, b 0.4) of one record, in millionths; 0 when none of the query's words stands in it.

    ``query`` maps the ``token`` of each word to its ``idf``; ``words`` are the record's ``postings``,
    ``length`` is how many words they were made from. To score many records, keep the ``scorer``.

    Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
    """
    return scorer(query, corpus)(words, length, [token for token in query if f" {token} " in words])


def scorer(query: Mapping[str, int], corpus: Corpus) -> Callable[[str, int, Iterable[str]], int]:
    """The ``score`` of one query over one corpus, as a function of a record's postings, length and words.

    Those are the query's words, by their tokens, that are known to stand in the record.
    """
    needles = {token: (f" {token} ", weight * _SATURATION) for token, weight in query.items()}
    slope, total = _SLOPE * corpus.documents, max(corpus.length, 1)

    def scored(words: str, length: int, held: Iterable[str]) -> int:
        norm = _BASE + slope * length // total
        once, gained = _UNITS + norm, 0
        # Most words occur once, and the lines of those that occur more often are short.
        again = words.partition("\n")[2]
        for token in held:
            needle, gain = needles[token]
            if needle in again:
                times = 2 + again.count("\n", 0, again.find(needle))
                gained += gain * times // (times * _UNITS + norm)
            else:
                gained += gain // once
        return gained * SCORE_UNITS >> _GAIN_BITS

    return scored


# In millionths, since k1 and b are thousandths and get multiplied: f + k1 * (1 - b + b * length / mean).
_UNITS: Final = 1_000_000
_BASE: Final = K1_THOUSANDTHS * (1000 - B_THOUSANDTHS)
_SLOPE: Final = K1_THOUSANDTHS * B_THOUSANDTHS
# Twelve bits more than an idf has, so that what a division drops stays below a millionth.
_GAIN_BITS: Final = FRACTION_BITS + 12
_SATURATION: Final = (1000 + K1_THOUSANDTHS) * 1000 << 12


@lru_cache(maxsize=1 << 12)
def idf(document_count: int, holding: int) -> int:
    """How telling a word is that ``holding`` of all documents hold: ln(1 + (N - n + 1/2) / (n + 1/2)).

    Fixed point; at least 1, so that a word which every document holds still counts for something.
    """
    return max(1, log2_fixed(2 * document_count + 2, 2 * holding + 1) * _LN_2 >> _LN_2_BITS)


_LN_2_BITS: Final = 32
_LN_2: Final = 2_977_044_472  # ln 2, in units of 2**-32


def log2_fixed(numerator: int, denominator: int) -> int:
    """The binary logarithm of a fraction of positive integers, in fixed point.

    Exact for powers of two, otherwise at most one unit too low; never lower for a greater fraction.
    """
    whole = numerator.bit_length() - denominator.bit_length()
    numerator <<= max(-whole, 0)
    denominator <<= max(whole, 0)
    if numerator < denominator:
        whole -= 1
        numerator <<= 1
    mantissa = (numerator << _MANTISSA_BITS) // denominator
    logarithm = whole
    for _ in range(FRACTION_BITS):
        # Squaring doubles the logarithm: whether the square reaches two is the next bit.
        mantissa = mantissa * mantissa >> _MANTISSA_BITS
        bit = mantissa >> _MANTISSA_BITS + 1
        mantissa >>= bit
        logarithm = logarithm << 1 | bit
    return logarithm


_MANTISSA_BITS: Final = 64


# In thousandths of a hit's score: what stands next to it in its source gains, and what stands two away.
BESIDE_THOUSANDTHS: Final = (350, 122)
# How far beyond those a source is looked at for what stands there by chance, and how many more words than there
# must stand beside the hits for the whole gain, in thousandths.
AFAR: Final = (6, 7)
WHOLE_COHESION: Final = 100
# So many invented pairs of the mean weight keep a handful of real ones from deciding.
_PRIOR: Final = 48


def cohesion(rows: Iterable[tuple[int, Sequence[int]]], weights: Mapping[int, int]) -> int:
    """How much standing side by side means in the sources of some hits, from 0 to 1000.

    ``rows``: each hit with the positions of its source around it, in order. ``weights``: what each position holds of
    the query. In a conversation the words of a question come again nearby; in a heap of notes they come as often
    afar. So the weights beside the hits are compared with those six and seven places away.
    """
    beside: list[int] = []
    afar: list[int] = []
    close, (least, most) = len(BESIDE_THOUSANDTHS), AFAR
    for position, row in rows:
        place = row.index(position)
        beside += row[max(place - close, 0) : place]
        beside += row[place + 1 : place + 1 + close]
        if place >= least:
            afar += row[max(place - most, 0) : place - least + 1]
        afar += row[place + least : place + most + 1]
    near = sum([weights.get(position, 0) for position in beside])
    far = sum([weights.get(position, 0) for position in afar])
    near_pairs, far_pairs = len(beside), len(afar)
    pairs, whole = near_pairs + far_pairs, near + far
    if not near_pairs or not far_pairs or not whole:
        return 0
    above = (near * pairs + _PRIOR * whole) * (far_pairs + _PRIOR)
    below = (far * pairs + _PRIOR * whole) * (near_pairs + _PRIOR)
    excess = 1000 * above // below - 1000
    return 1000 * min(max(excess, 0), WHOLE_COHESION) // WHOLE_COHESION


def beside(scores: Mapping[int, int], rows: Iterable[tuple[int, Sequence[int]]], share: int) -> dict[int, int]:
    """What stands beside the hits gains a part of their scores; ``share`` (0 to 1000) says how much of it."""
    gained: dict[int, int] = {}
    if not share:
        return gained
    for position, row in rows:
        place, score = row.index(position), scores[position]
        for distance, part in enumerate(BESIDE_THOUSANDTHS, 1):
            gain = score * part * share // 1_000_000
            for neighbour in (place - distance, place + distance):
                if gain and 0 <= neighbour < len(row):
                    gained[row[neighbour]] = gained.get(row[neighbour], 0) + gain
    return gained


# How much of the best hit's score the best source adds to each of its hits, in thousandths, and how many of the best
# hits speak for their sources; where there are fewer it adds less.
SOURCE_THOUSANDTHS: Final = 400
SPEAKING: Final = 96
_SOURCE_K1_THOUSANDTHS: Final = 1200


def of_sources(held: Iterable[tuple[Hashable, Collection[str]]]) -> dict[Hashable, int]:
    """How well each source as a whole answers a query, in thousandths of the best one.

    ``held``: the source of each hit, and which of the query's words it holds. A word counts by how few of these
    sources hold it, and more the more hits do, with saturation, as in BM25.
    """
    held = list(held)
    scores: dict[Hashable, int] = dict.fromkeys([source for source, _ in held], 0)
    found = Counter([(source, word) for source, words in held for word in words])
    holding = Counter([word for _, word in found])
    worth = {word: idf(len(scores), count) * (1000 + _SOURCE_K1_THOUSANDTHS) for word, count in holding.items()}
    for (source, word), times in found.items():
        scores[source] += worth[word] * times // (1000 * times + _SOURCE_K1_THOUSANDTHS)
    best = max(scores.values(), default=0) or 1
    return {source: 1000 * score // best for source, score in scores.items()}


def rarest(words: Iterable[str], holding: Mapping[str, int], limit: int) -> list[str]:
    """The ``limit`` words that the fewest documents hold, rarest first, ties by the word itself.

    A word that no document holds comes last: it must not take the place of one that finds something.
    """

    def rarity(word: str) -> tuple[bool, int, str]:
        held = holding.get(word, 0)
        return not held, held, word

    return sorted(set(words), key=rarity)[:limit]


def interleave(*lanes: Sequence[T], turns: Sequence[int] = ()) -> list[T]:
    """All lanes as one list, turn by turn and lane by lane; what comes up again keeps its first place.

    ``turns``: how many places each lane gets in its turn, one where nothing is said.
    """
    rounds = [
        [lane[start : start + size] for start in range(0, len(lane), size)]
        for lane, size in zip_longest(lanes, turns[: len(lanes)], fillvalue=1)
        if not isinstance(lane, int)
    ]
    return list(dict.fromkeys(chain.from_iterable(chain.from_iterable(zip_longest(*rounds, fillvalue=())))))
