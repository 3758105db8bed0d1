"""What a new record resembles among those that stand in its namespace: advice, on which nothing acts."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from ledgerstone.core import rules
from ledgerstone.core.values import MAX_SIMILAR, RECALLED, Record, Similar
from ledgerstone.core.words import index_words, token
from ledgerstone.identity import Identity
from ledgerstone.reading import Chain, Reading
from ledgerstone.search import Sieve
from ledgerstone.store.protocol import LAST

# By how many of its rarest words others are looked for in the index, how many of them are compared by their word rows,
# and how many, the best, are read.
RAREST: Final = 4
COMPARED: Final = 64
READ: Final = 4
# The least share of the words of both texts together that both have, in thousandths.
LEAST_OVERLAP: Final = 600


def resembling(
    reading: Reading, identity: Identity, where: Chain, record: Record, position: int
) -> tuple[Similar, ...]:
    """The records that say the same as a new one, or nearly so, those first that share most; at most three."""
    if record.text is None:
        return ()
    words, value = frozenset(index_words(record.text)), rules.normal_value(record.text)
    near = _near(reading, where, frozenset(map(token, words)), position)
    sieve = Sieve(identity.caller.floor.value, reading.now)
    fitting = {row.position for row in reading.reader.candidates(where.number, list(near)) if sieve.passes(row)}
    similar = []
    for _, place in heapq.nlargest(READ, ((near[place], place) for place in fitting)):
        other = reading.record(where, record.scope, place)
        if other.text is None or other.standing not in RECALLED:
            continue
        same = rules.normal_value(other.text) == value
        overlap = 1000 if same else _overlap(words, frozenset(index_words(other.text)))
        if overlap >= LEAST_OVERLAP:
            similar.append(Similar(address=other.address, same=same, overlap=overlap))
    similar.sort(key=lambda one: (not one.same, -one.overlap))
    return tuple(similar[:MAX_SIMILAR])


def _near(reading: Reading, where: Chain, tokens: frozenset[str], position: int) -> dict[int, int]:
    """The other positions that could share enough of some words, with how many they do share.

    Of what is folded into the word index, the newest that hold one of the rarest of those words.
    """
    reader, number = reading.reader, where.number
    held = reader.holding(number, list(tokens))
    rarest = heapq.nsmallest(RAREST, ((count, word) for word, count in held.items() if count))
    folded = {place for _, word in rarest for place in reader.postings(number, word, COMPARED)}
    rows = [
        *reader.words_of(number, heapq.nlargest(COMPARED, folded)),
        *reader.word_rows(number, reader.corpus(number).through, LAST),
    ]
    shared = {row.position: len(tokens.intersection(row.words.split())) for row in rows if row.position != position}
    # Who shares fewer of these words cannot share enough of both texts'.
    return {place: count for place, count in shared.items() if count and 1000 * count >= LEAST_OVERLAP * len(tokens)}


def _overlap(one: Iterable[str], other: frozenset[str]) -> int:
    """How much of the words of both together both have, in thousandths."""
    both, either = len(other.intersection(one)), len(other.union(one))
    return 1000 * both // either if either else 0
