"""A context as Markdown: stored text cannot leave its fence, and what changes by itself stands last."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import rendering
from ledgerstone.core.rendering import NOTICE
from ledgerstone.core.values import Budget, Finding, Lane, Mode, Recall, Recalled, Standing, Status, time_text
from tests.core.test_recall import record

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts = st.text(st.one_of(characters, st.sampled_from("`~\n\t-#\u200b\u202e\ufe0e\U000e0101")), max_size=60)


def context(*said: tuple[str, str | None], lane: Lane = Lane.LEXICAL, notices: tuple[str, ...] = ()) -> Recall:
    """A context of some texts with their keys."""
    items = tuple(
        Recalled(record=replace(record(number, text), key=key), lane=lane, rank=number)
        for number, (text, key) in enumerate(said)
    )
    return Recall(mode=Mode.BALANCED, query="", items=items, heads={}, budget=Budget(), bytes=700, notices=notices)


def read(block: str) -> tuple[list[str], list[str]]:
    """The lines outside of fences, and the texts inside, as CommonMark has it."""
    outside, texts = list[str](), list[str]()
    lines = iter(block.split("\n"))
    for line in lines:
        fence = re.fullmatch(r"(`{3,})text", line)
        if fence is None:
            outside.append(line)
            continue
        inside: list[str] = []
        for each in lines:
            closes = re.fullmatch(r" {0,3}(`{3,})[ \t]*", each)
            if closes is not None and len(closes[1]) >= len(fence[1]):
                break
            inside.append(each)
        texts.append("\n".join(inside))
    return outside, texts


@given(st.lists(st.tuples(texts, st.none() | texts.filter(bool)), max_size=4), st.lists(texts, max_size=2))
def test_stored_text_stays_in_its_fence(said: list[tuple[str, str | None]], notices: list[str]) -> None:
    """Whatever the texts, keys and notices are: outside of fences there are only lines of ours, in their number."""
    block = rendering.markdown(context(*said, notices=tuple(notices)))

    outside, inside = read(block)

    assert inside == [rendering.plain(text) for text, _ in said]
    ours = [line for line in outside if line]
    assert ours[0] == rendering.HEADING
    assert all(line.startswith("`mem_") for line in ours[1 : len(said) + 1])
    assert ours[len(said) + 1] == "---"
    assert len(ours) == len(said) + 4 + len(notices)


@given(texts)
def test_nothing_invisible_is_left(text: str) -> None:
    """What nobody sees is spelled out, within a line the line's end too; the rest is as it was."""
    plain, line = rendering.plain(text), rendering.one_line(text)

    assert all(c.isprintable() or c in "\n\t" for c in plain)
    assert line.isprintable()
    assert not rendering._UNSEEN.search(plain + line)
    if text.isprintable() and not rendering._UNSEEN.search(text):
        assert plain == line == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cedar", "cedar"),
        ("a\u200bb", "a\\u200bb"),
        ("\u202egnp", "\\u202egnp"),
        ("a\U000e0041", "a\\U000e0041"),
        ("a\U000e0101", "a\\U000e0101"),
        ("\u3164", "\\u3164"),
        ("\u2764\ufe0f", "\u2764\ufe0f"),
        ("\u6728", "\u6728"),
        ("\u6728\u200b", "\u6728\\u200b"),
    ],
)
def test_an_invisible_character_is_spelled_out(text: str, shown: str) -> None:
    """Joiners, marks of direction, tags, selectors of variants, fillers; a letter or an emoji stays."""
    assert rendering.plain(text) == rendering.one_line(text) == shown


def test_an_entry_says_what_its_lean_entry_says() -> None:
    """Kind, scope and trust; key, status, due and standing where they say something."""
    bare = record(1, "Cedar.")
    full = replace(bare, key="a `b`", status=Status.OPEN, due=0, standing=Standing.EXPIRED)

    said = [rendering.entry(one).split("\n")[0] for one in (bare, full)]

    assert said == [
        f"`{bare.address}` note, project, user_explicit",
        f"`{bare.address}` note, project, user_explicit, key `` a `b` ``, open, due {time_text(0)}, expired",
    ]


def test_two_prompts_with_the_same_entries_begin_alike() -> None:
    """Lane, rank, what was left out and what was noted stand behind the entries: a prompt cache keeps its prefix."""
    said = [("The cedar is old.", None), ("The gate is green.", "gate")]
    one = context(*said)
    other = replace(context(*said, lane=Lane.RECENT, notices=("anchor: none",)), omitted={"items": 3}, bytes=900)

    first, second = (rendering.markdown(each).split("\n---\n") for each in (one, other))

    assert first[0] == second[0]
    assert first[0].startswith(f"Recalled memories. {NOTICE}\n")
    assert "lexical 2" in first[1]
    assert "recent 2\nleft out: items 3\nnote: anchor: none\n" in second[1]


def test_lanes_and_reasons_are_listed() -> None:
    """Lanes as they come in the context, reasons in the order of their names."""
    one, two = (context(("Cedar.", None), lane=lane).items for lane in (Lane.RECENT, Lane.LEXICAL))
    said = rendering.markdown(replace(context(), items=one + two, omitted={"items": 3, "bytes": 2}))

    assert "mode balanced: recent 1, lexical 1\nleft out: bytes 2, items 3\n" in said


def test_lines_and_tabs_stay() -> None:
    """In a text, that is; within a line they are spelled out."""
    text = "a\tb\nc\rd"

    assert rendering.plain(text) == "a\tb\nc\\rd"
    assert rendering.one_line(text) == "a\\tb\\nc\\rd"


def test_the_block_says_how_large_it_is() -> None:
    """The last line counts the bytes above it, and names what the budget counted instead."""
    block = rendering.markdown(context(("\u6728" * 9, None)))

    *above, last, end = block.split("\n")

    size = len("\n".join([*above, ""]).encode())
    assert (last, end) == (f"{size} bytes above; as JSON 700 of the 8192 allowed", "")


def test_nothing_found_is_said() -> None:
    """A context without entries says so; one with an entry does not."""
    assert "mode balanced: nothing found" in rendering.markdown(context())
    assert "nothing found" not in rendering.markdown(context(("Cedar.", None)))


def test_one_of_a_thing_is_not_several() -> None:
    """A count is in the word that fits it."""
    assert [rendering.count(each, "entry", "entries") for each in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
    assert [rendering.count(each, "text") for each in (0, 1, 2)] == ["0 texts", "1 text", "2 texts"]


def test_the_first_finding_is_told_with_how_many_more_there_are() -> None:
    """One finding is told alone; of several the first, and the number of the others."""
    one, other = Finding("record", "ns_1", 3, "is gone"), Finding("index", "", None, "is short")

    assert rendering.first([one]) == "ns_1 is gone"
    assert rendering.first([one, other, other]) == "ns_1 is gone, and 2 more"
    assert rendering.first([other]) == "is short"


class MuteError(Exception):
    """An error that cannot say what is wrong."""

    def __str__(self) -> str:
        """Raise in its turn."""
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no model"), "ValueError: no model"),
        (ValueError("f\udcff"), "ValueError: f\\udcff"),
        (ValueError("a\nb\x1b[2J\u202ec"), "ValueError: a\\nb\\x1b[2J\\u202ec"),
        (MuteError(), "MuteError: it cannot say what is wrong"),
    ],
    ids=["plain", "surrogate", "controls", "mute"],
)
def test_an_error_is_told_in_one_printable_line(error: Exception, said: str) -> None:
    """Its class and what it says, with whatever cannot be shown spelled out."""
    assert rendering.told(error) == said


@given(texts)
def test_what_an_error_says_is_cut(text: str) -> None:
    """However long it is, and however much longer for being spelled out."""
    told = rendering.told(ValueError(text * 100))

    assert len(told) <= rendering.MAX_TOLD
    assert told.isprintable()
