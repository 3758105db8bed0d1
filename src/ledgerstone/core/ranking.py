"""Ranking: how well a record's words answer a query's, in integers, so that every machine agrees.

A logarithm and an idf are fixed-point numbers with 16 fractional bits: 65,536 stands for one. A score
counts millionths. No float is involved anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final, TypeVar

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
    return scorer(query, corpus)(words, length)


def scorer(query: Mapping[str, int], corpus: Corpus) -> Callable[[str, int], int]:
    """The ``score`` of one query over one corpus, as a function of a record's postings and length."""
    needles = [(f" {token} ", weight * _SATURATION) for token, weight in query.items()]
    slope, total = _SLOPE * corpus.documents, max(corpus.length, 1)

    def scored(words: str, length: int) -> int:
        norm = _BASE + slope * length // total
        gained = 0
        for needle, gain in needles:
            found = words.find(needle)
            if found >= 0:
                times = 1 + words.count("\n", 0, found)
                gained += gain * times // (times * _UNITS + norm)
        return gained * SCORE_UNITS >> _GAIN_BITS

    return scored


# In millionths, since k1 and b are thousandths and get multiplied: f + k1 * (1 - b + b * length / mean).
_UNITS: Final = 1_000_000
_BASE: Final = K1_THOUSANDTHS * (1000 - B_THOUSANDTHS)
_SLOPE: Final = K1_THOUSANDTHS * B_THOUSANDTHS
# Twelve bits more than an idf has, so that what a division drops stays below a millionth.
_GAIN_BITS: Final = FRACTION_BITS + 12
_SATURATION: Final = (1000 + K1_THOUSANDTHS) * 1000 << 12


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


def rarest(words: Iterable[str], holding: Mapping[str, int], limit: int) -> list[str]:
    """The ``limit`` words that the fewest documents hold, rarest first, ties by the word itself.

    A word that no document holds comes last: it must not take the place of one that finds something.
    """

    def rarity(word: str) -> tuple[bool, int, str]:
        held = holding.get(word, 0)
        return not held, held, word

    return sorted(set(words), key=rarity)[:limit]


def interleave(*lanes: Sequence[T]) -> list[T]:
    """All lanes as one list, rank by rank and lane by lane; what comes up again keeps its first place."""
    ranks = zip_longest(*([(each,) for each in lane] for lane in lanes), fillvalue=())
    return list(dict.fromkeys(chain.from_iterable(chain.from_iterable(ranks))))
