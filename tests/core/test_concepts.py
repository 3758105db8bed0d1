"""Promises of the concepts: other words for a query's, never its own, within limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.concepts import (
    CLUSTERS,
    CONCEPT_WEIGHT,
    MAX_RELATED,
    MAX_SYNONYM_BYTES,
    MAX_SYNONYM_ENTRIES,
    MAX_SYNONYM_WORDS,
    OWN_WEIGHT,
    SYNONYM_WEIGHT,
    related,
)
from ledgerstone.core.words import STOP_WORDS, query_words
from ledgerstone.errors import RuleError, UsageError

LINES = [line.split() for line in CLUSTERS.strip().splitlines()]
words = st.lists(st.sampled_from([word for line in LINES for word in line]), max_size=12)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0] + "-" + line[1])
def test_cluster_line_holds_several_words_that_a_query_keeps(line: list[str]) -> None:
    """Each line has at least two words, all of them different when stemmed, and no stop word."""
    stems = [query_words(word) for word in line]

    assert len(stems) > 1
    assert all(len(stem) == 1 for stem in stems)
    assert len({stem[0] for stem in stems}) == len(stems)
    assert not STOP_WORDS.intersection(line)


def test_no_cluster_stands_twice() -> None:
    """A cluster that another contains would say nothing of its own."""
    sets = [frozenset(line) for line in LINES]

    contained = [line for line in sets if any(line <= other for other in sets if other is not line)]

    assert not contained
    assert len(set(sets)) == len(sets)


def test_query_finds_what_was_said_in_other_words() -> None:
    """An automobile tag is a car's plate; an unknown word has no others."""
    found = related(query_words("automobile tag for cedar-582"))

    assert {"car", "vehicl", "plate", "registr", "licenc"} <= found.keys()
    assert related(["cedar-582"]) == {}


@given(words)
def test_own_words_are_never_among_the_related(asked: list[str]) -> None:
    """Whatever is asked, the answer adds to it, weighs less, keeps its limit, and is the same again."""
    stems = query_words(" ".join(asked), None)

    found = related(stems, {word: ["something else", word] for word in asked})

    assert not found.keys() & set(stems)
    assert all(0 < weight < OWN_WEIGHT for weight in found.values())
    assert len(found) <= MAX_RELATED
    assert list(found.items()) == list(related(stems, {word: ["something else", word] for word in asked}).items())


def test_synonym_of_the_caller_weighs_more_than_a_cluster() -> None:
    """A caller means its synonyms; a cluster guesses. What both say has the caller's weight."""
    found = related(query_words("my car"), {"Cars": ["the Wagon", "vehicles"]})

    assert found["wagon"] == found["vehicl"] == SYNONYM_WEIGHT
    assert found["automobil"] == CONCEPT_WEIGHT < SYNONYM_WEIGHT


def test_synonym_of_a_phrase_needs_all_its_words() -> None:
    """An entry named by two words waits for both, in any order."""
    synonyms = {"release train": ["cadence"]}

    assert "cadenc" in related(query_words("which train does the release take"), synonyms)
    assert "cadenc" not in related(query_words("which train"), synonyms)


def test_synonym_of_a_long_phrase_needs_its_last_word() -> None:
    """A phrase may have more words than are looked up of a query."""
    phrase = " ".join(f"x{number}" for number in range(33))

    assert "cadenc" in related(query_words(phrase, None), {phrase: ["cadence"]})
    assert "cadenc" not in related(query_words(phrase, None)[:-1], {phrase: ["cadence"]})


@pytest.mark.parametrize(
    ("most", "more", "offence"),
    [
        (
            {f"w{each}": ["x"] for each in range(MAX_SYNONYM_ENTRIES)},
            {f"w{each}": ["x"] for each in range(MAX_SYNONYM_ENTRIES + 1)},
            "at most 256 entries, not 257",
        ),
        ({"a1": ["x"] * MAX_SYNONYM_WORDS}, {"a1": ["x"] * (MAX_SYNONYM_WORDS + 1)}, "at most 16 texts, not 17"),
        ({"a1": ["x"]}, {"a1": "x"}, "not a single text"),
        ({"a1": ["x" * MAX_SYNONYM_BYTES]}, {"a1": ["x" * (MAX_SYNONYM_BYTES + 1)]}, "1 to 128 bytes, not 129"),
        ({"a1": ["x"]}, {"a1": [""]}, "1 to 128 bytes, not 0"),
        ({"a1": ["x"]}, {"a1": [7]}, "text, not int"),
        ({"a1": ["x"]}, {"a1": ["x\udcff"]}, "not a lone surrogate at character 2"),
        ({"a1": ["?"]}, {"?": ["a1"]}, "'\\?' holds no word"),
    ],
    ids=["entries", "texts", "one text", "long", "empty", "number", "surrogate", "no word"],
)
def test_synonyms_outside_their_limits_are_refused(most: dict[str, list[str]], more: object, offence: str) -> None:
    """The limit itself is accepted; what is past it is named, even where the query names none of it."""
    related(["nothing"], most)

    with pytest.raises((RuleError, UsageError), match=offence):
        related(["nothing"], more)  # type: ignore[arg-type]
