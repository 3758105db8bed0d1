"""What a new record resembles is said beside it: few, near, and never acted upon."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgerstone import Act, Draft, Memory, Scope, Similar, UnavailableError, resembling
from ledgerstone.core.values import MAX_SIMILAR
from tests.memories import ADA, BOB, ELSEWHERE, SECOND, STRANGER, Scratch

TEXT = "Deploys go out on Tuesdays, after the standup."


def similar(memory: Memory, text: str, *, key: str | None = None) -> tuple[Similar, ...]:
    """What is said to be like a text."""
    return memory.remember(Draft(text=text, key=key), similar=True).similar


@pytest.mark.parametrize("again", [TEXT, TEXT.upper(), "  Deploys go\u00a0out on Tuesdays, after the stand\u200bup."])
def test_the_same_value_is_told(ada: Memory, again: str) -> None:
    """Case, width, spacing and invisible characters aside, it says just that."""
    first = ada.remember(TEXT).record

    assert similar(ada, again) == (Similar(address=first.address, same=True, overlap=1000),)


@pytest.mark.parametrize(
    ("text", "overlap"),
    [
        ("Deploys go out on Thursdays, after the standup.", 777),
        ("Deploys go out on Tuesdays.", 625),
        ("Deploys go out.", None),
        ("The standup is on Tuesdays.", None),
        ("Nothing of the sort.", None),
    ],
)
def test_a_text_that_shares_most_words_is_told(ada: Memory, text: str, overlap: int | None) -> None:
    """With the share of all words of both that both have, from 60 % on; what shares fewer is not."""
    first = ada.remember(TEXT).record

    found = similar(ada, text)

    assert found == (() if overlap is None else (Similar(address=first.address, same=False, overlap=overlap),))


def test_a_key_makes_no_difference(ada: Memory) -> None:
    """The same text under another key is a claim of its own, and told; under its own it is the next version."""
    first = ada.remember(Draft(text=TEXT, key="deploy-day", tags=("a tag", "another"))).record

    assert [one.address for one in similar(ada, TEXT, key="release-day")] == [first.address]
    assert [one.address for one in similar(ada, TEXT, key="deploy-day")] == [
        record.address for record in ada.list_records().items if record.key == "release-day"
    ]


def test_nothing_is_done_about_it(scratch: Scratch) -> None:
    """Both stand; the same drafts give the same store whether it was asked or not."""
    first = scratch.memory.remember(TEXT).record

    second = scratch.memory.remember(TEXT, similar=True).record

    assert [scratch.memory.get(one.address) for one in (first, second)] == [first, second]
    assert scratch.memory.remember(TEXT).similar == ()
    scratch.heads()


def test_only_what_may_be_recalled_is_told(scratch: Scratch) -> None:
    """Not what has ended, expired, is too little trusted or stands elsewhere; the neighbour that stands is."""
    ada = scratch.memory
    ada.retract(ada.remember(TEXT).record.address, reason="Wrong.")
    ada.remember(Draft(text=TEXT, expires=scratch.now + SECOND))
    scratch.by(STRANGER).remember(TEXT)
    ada.remember(TEXT, scope=Scope.USER)
    scratch.by(ELSEWHERE).remember(TEXT)
    scratch.wait(2)

    first = ada.remember(TEXT, similar=True)

    assert first.similar == ()
    assert [one.address for one in similar(ada, TEXT)] == [first.record.address]


def test_the_nearest_come_first_and_are_few(ada: Memory) -> None:
    """At most three, the same value before others, then by what they share."""
    texts = ["Deploys go out on Thursdays, after the standup.", TEXT, "Deploys go out on Tuesdays, after lunch."]
    addresses = {text: ada.remember(text).record.address for text in (*texts, "Deploys go out on Fridays.")}

    found = similar(ada, TEXT)

    assert len(found) <= MAX_SIMILAR
    assert found[0] == Similar(address=addresses[TEXT], same=True, overlap=1000)
    assert [one.overlap for one in found] == sorted((one.overlap for one in found), reverse=True)


def test_what_was_folded_is_found_as_what_was_not(scratch: Scratch) -> None:
    """Among a thousand others, in the word index or in its tail."""
    drafts = [Draft(text=f"Note {number} is about the weather of that day.") for number in range(250)]
    old = scratch.memory.remember(TEXT).record
    for _ in range(4):
        scratch.memory.remember_many(drafts)
    new = scratch.memory.remember("Deploys go out on Thursdays, after the standup.").record

    found = similar(scratch.memory, TEXT)

    assert [one.address for one in found] == [old.address, new.address]


def test_several_are_told_apart(ada: Memory) -> None:
    """Of one commit, each may resemble the others, and never itself."""
    answers = ada.remember_many([TEXT, TEXT, "Of something else."], similar=True)

    addresses = [answer.record.address for answer in answers]
    assert [[one.address for one in answer.similar] for answer in answers] == [[addresses[1]], [addresses[0]], []]


def test_who_may_not_read_is_told_of_nothing(scratch: Scratch) -> None:
    """Neither without a grant to read, nor where the project is isolated from what was written to."""
    ada = scratch.memory
    record = ada.remember(TEXT).record
    ada.grant("bob", Act.WRITE, namespace=record.namespace)
    bob = scratch.by(replace(BOB, project=None))
    assert bob.remember(TEXT, namespace=record.namespace, similar=True).similar == ()

    ada.remember(TEXT, scope=Scope.USER)
    assert len(ada.remember(TEXT, scope=Scope.USER, similar=True).similar) == 1
    ada.isolate(record.namespace)
    assert ada.remember(TEXT, scope=Scope.USER, similar=True).similar == ()
    assert scratch.by(ADA).remember(TEXT, similar=True).similar


def test_a_write_stands_though_nothing_was_looked_for(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails after the commit is a notice beside it."""
    scratch.memory.remember(TEXT)

    def fails(*_: object) -> None:
        raise UnavailableError("the store is busy")

    monkeypatch.setattr(resembling, "resembling", fails)
    answer = scratch.memory.remember(TEXT, similar=True)

    assert answer.notices[0] == "committed; what is similar was not looked for: the store is busy"
    assert scratch.memory.get(answer.record.address).text == TEXT
    assert answer.similar == ()
