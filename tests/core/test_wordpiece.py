"""Promises of the pieces: words cut as an uncased BERT vocabulary cuts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.wordpiece import MAX_WORD_CHARACTERS, UNKNOWN, WordPiece

VOCABULARY = [UNKNOWN, "un", "##able", "##a", "##b", "stop", "stoppable", "cafe", "中", "国", ",", "-", "a", "«"]
CUTTER = WordPiece(VOCABULARY)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("unable", ["un", "##able"]),
        ("unab", ["un", "##a", "##b"]),
        ("STOPPABLE", ["stoppable"]),
        ("stop, stop-stop", ["stop", ",", "stop", "-", "stop"]),
        ("Café", ["cafe"]),
        ("cafe\u0301", ["cafe"]),
        ("中国stop", ["中", "国", "stop"]),
        ("«stop", ["«", "stop"]),
        ("stop\u200b\x07\ufffd\tstop\u00a0a", ["stop", "stop", "a"]),
        ("unx stop", [UNKNOWN, "stop"]),
        ("", []),
        (" \n", []),
    ],
)
def test_text_is_cut_into_the_longest_pieces(text: str, pieces: list[str]) -> None:
    """Longest first, signs and Chinese characters on their own, accents and what cannot be seen left out."""
    assert [VOCABULARY[number] for number in CUTTER.cut(text)] == pieces


def test_word_beyond_the_limit_is_one_unknown_piece() -> None:
    """A word of the greatest length is cut; one longer is not."""
    longest = "un" + "a" * (MAX_WORD_CHARACTERS - 2)

    assert len(CUTTER.cut(longest)) == MAX_WORD_CHARACTERS - 1
    assert CUTTER.cut(longest + "a") == [0]


def test_a_cutter_names_its_vocabulary_and_remembers_only_so_many_words() -> None:
    """In the order of its numbers; a store of ever new words takes no more memory for them."""
    cutter = WordPiece(VOCABULARY)

    assert cutter.vocabulary == tuple(VOCABULARY)
    assert cutter.word.cache_info().maxsize == 1 << 15


@given(st.text(max_size=80))
def test_every_text_is_cut_the_same_word_by_word(text: str) -> None:
    """The pieces of a text are those of its words, one after another."""
    assert CUTTER.cut(text) == [piece for word in CUTTER.words(text) for piece in CUTTER.word(word)]


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_ascii_is_cut_as_beside_other_signs(text: str) -> None:
    """A letter beyond ASCII that stands alone adds itself, and changes no word before it."""
    cutter = WordPiece([UNKNOWN])

    assert cutter.words(f"{text} \u03b1") == [*cutter.words(text), "\u03b1"]
