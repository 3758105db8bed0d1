"""What was given comes back code point for code point, or is refused at the door."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone import Draft, Memory, RuleError
from tests.memories import NOON, Scratch, characters, texts

short = st.text(characters, min_size=1, max_size=16)
times = st.none() | st.integers(0, 2**53 - 1)


@settings(max_examples=50)
@given(given_texts=st.lists(texts, min_size=1, max_size=8))
def test_any_valid_unicode_comes_back(shelf: Scratch, given_texts: list[str]) -> None:
    """Every text without U+0000 is what ``get`` answers, also once the store was closed and opened again."""
    addresses = [remembered.record.address for remembered in shelf.memory.remember_many(given_texts)]

    before = [shelf.memory.get(address).text for address in addresses]
    after = [shelf.reopen().get(address).text for address in addresses]

    assert before == after == given_texts


@given(
    draft=st.builds(
        Draft,
        text=texts,
        source=st.none() | short,
        title=st.none() | short,
        place=st.none() | short,
        tags=st.lists(short, unique=True, max_size=16).map(tuple),
        triggers=st.lists(short.map(lambda text: f"cedar{text}"), unique=True, max_size=16).map(tuple),
        due=times,
        valid_from=times,
        valid_until=times,
        expires=st.none() | st.integers(NOON + 1, 2**53 - 1),
    )
)
def test_everything_beside_the_text_comes_back(shelf: Scratch, draft: Draft) -> None:
    """Source, title, place, tags, triggers and times of a draft stand in its record as they were given."""
    record = shelf.memory.remember(draft).record

    got = shelf.memory.get(record.address)

    names = ("text", "source", "title", "place", "tags", "triggers", "due", "valid_from", "valid_until", "expires")
    assert {name: getattr(got, name) for name in names} == {name: getattr(draft, name) for name in names}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeffA byte order mark first.", id="byte order mark"),
        pytest.param("\u212b \u00c5 A\u030a", id="three spellings of one letter"),
        pytest.param("a\r\nb\rc\nd\u2028e\u0085f\x0cg", id="line ends of all sorts"),
        pytest.param(" \t\u00a0\u3000 ", id="nothing but spaces"),
        pytest.param("\u202eabc\u202c \u200b\u200d\u2060", id="directions and invisible characters"),
        pytest.param("\x01\x1b[31m\x7f\x9f", id="control characters"),
        pytest.param("\ufffe\uffff\U0010ffff", id="noncharacters"),
        pytest.param("\U0001f468\u200d\U0001f469\u200d\U0001f467", id="a family of one"),
        pytest.param('\\u0000 \\" {"a": 1}', id="escapes, spelt out"),
        pytest.param("\ue000\uf8ff", id="private use"),
    ],
)
def test_texts_that_others_mangle_come_back(scratch: Scratch, text: str) -> None:
    """Nothing is normalised, trimmed or translated."""
    record = scratch.memory.remember(text).record

    assert scratch.reopen().get(record.address).text == text


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        ("a\x00b", "text: valid text, not U+0000 at character 2"),
        ("ab\ud800", "text: valid Unicode, not a lone surrogate at character 3"),
        ("\udfff", "text: valid Unicode, not a lone surrogate at character 1"),
    ],
)
def test_what_is_no_text_is_refused(ada: Memory, text: str, offence: str) -> None:
    """U+0000 and lone surrogates are refused by the rule ``text``, with the place and what to do."""
    with pytest.raises(RuleError) as refused:
        ada.remember(text)

    assert (refused.value.rule, refused.value.message) == ("text", offence)
    assert refused.value.hint == "leave that character out"
    assert ada.remember("a\x01b\ud7ff\ue000").record.text == "a\x01b\ud7ff\ue000"


@pytest.mark.parametrize("name", ["key", "source", "title", "place"])
def test_no_field_takes_what_is_no_text(ada: Memory, name: str) -> None:
    """The same holds for every other text of a draft, by its own name."""
    for wrong in ("a\x00", "\ud800"):
        with pytest.raises(RuleError) as refused:
            ada.remember(Draft(text="Well.", **{name: wrong}))  # type: ignore[arg-type]
        assert refused.value.rule == name

    assert getattr(ada.remember(Draft(text="Well.", **{name: "\x01"})).record, name) == "\x01"  # type: ignore[arg-type]
