"""A retry is not a second write: the same key with the same content is answered, with other content refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from ledgerstone import AuthorityError, ConflictError, Draft, Kind, Memory, Remembered, Scope
from tests.memories import BOB, ELSEWHERE, MODEL, Scratch

Write: TypeAlias = Callable[[Memory, str, str, str], Remembered]
"""A write with an idempotency key: the memory, a task to write about, what to say, the key."""


def remember(memory: Memory, _: str, word: str, key: str) -> Remembered:
    """Remember a word."""
    return memory.remember(word, idempotency_key=key)


def remember_many(memory: Memory, _: str, word: str, key: str) -> Remembered:
    """Remember a word and another one; the last answer."""
    return memory.remember_many(["Before it.", word], idempotency_key=key)[-1]


def close_task(memory: Memory, task: str, word: str, key: str) -> Remembered:
    """Close the task for a reason."""
    return memory.close_task(task, reason=word, idempotency_key=key)


def retract(memory: Memory, task: str, word: str, key: str) -> Remembered:
    """Retract the task for a reason."""
    return memory.retract(task, reason=word, idempotency_key=key)


writes = pytest.mark.parametrize("write", [remember, remember_many, close_task, retract])


def task(memory: Memory) -> str:
    """A task to write about, by its address."""
    return memory.remember(Draft(text="Water the cedar.", kind=Kind.TASK)).record.address


@writes
def test_a_repeated_write_gives_the_first_answer(scratch: Scratch, write: Write) -> None:
    """Record, commit and sequence are those of the first time, and nothing was committed since."""
    about = task(scratch.memory)
    first = write(scratch.memory, about, "Done.", "once")
    heads = scratch.heads()

    again = write(scratch.memory, about, "Done.", "once")

    assert again.record == first.record
    assert (again.commit, again.sequence) == (first.commit, first.sequence)
    assert (first.repeated, again.repeated) == (False, True)
    assert scratch.heads() == heads


@writes
def test_a_repeated_write_is_known_after_a_restart(scratch: Scratch, write: Write) -> None:
    """A program that fell over between the commit and the answer may ask again."""
    about = task(scratch.memory)
    first = write(scratch.memory, about, "Done.", "once")
    heads = scratch.heads()

    again = write(scratch.reopen(), about, "Done.", "once")

    assert (again.record, again.repeated) == (first.record, True)
    assert scratch.heads() == heads


@writes
def test_a_used_key_with_other_content_is_a_conflict(scratch: Scratch, write: Write) -> None:
    """A key names one write for ever; the content that goes with it is accepted under a key of its own."""
    about = task(scratch.memory)
    other = task(scratch.memory)
    write(scratch.memory, about, "Done.", "once")
    heads = scratch.heads()

    with pytest.raises(ConflictError, match="already used in commit"):
        write(scratch.memory, about, "Really done.", "once")

    assert scratch.heads() == heads
    assert not write(scratch.memory, other, "Really done.", "twice").repeated


def test_one_verb_does_not_answer_for_another(ada: Memory) -> None:
    """The verb belongs to the content of a write."""
    about = task(ada)
    ada.close_task(about, reason="Done.", idempotency_key="once")

    with pytest.raises(ConflictError):
        ada.retract(about, reason="Done.", idempotency_key="once")


@pytest.mark.parametrize(
    "other",
    [
        Draft(text="Cedar.", kind=Kind.FACT),
        Draft(text="Cedar.", key="tree"),
        Draft(text="Cedar.", tags=("tree",)),
        Draft(text="Cedar.", due=1),
        Draft(text="Cedar.", external=True),
        Draft(text="cedar."),
    ],
)
def test_every_field_belongs_to_the_content(ada: Memory, other: Draft) -> None:
    """A draft that differs in anything at all is other content."""
    ada.remember(Draft(text="Cedar."), idempotency_key="once")

    with pytest.raises(ConflictError):
        ada.remember(other, idempotency_key="once")

    assert ada.remember("Cedar.", idempotency_key="once").repeated


def test_a_repeated_write_leaves_later_versions_alone(ada: Memory) -> None:
    """A late retry is answered with what was written then, and does not undo what came after."""
    first = ada.remember(Draft(text="Old.", key="tree"), idempotency_key="once").record
    ada.remember(Draft(text="New.", key="tree"))

    again = ada.remember(Draft(text="Old.", key="tree"), idempotency_key="once").record

    assert (again.address, again.text) == (first.address, "Old.")
    assert ada.get(first.memory).text == "New."


def test_a_refused_write_leaves_its_key_free(ada: Memory) -> None:
    """Only what was committed uses a key up."""
    with pytest.raises(ConflictError):
        ada.remember(Draft(text="New.", replaces=superseded(ada)), idempotency_key="once")

    assert not ada.remember("Something else.", idempotency_key="once").repeated


def superseded(memory: Memory) -> str:
    """The address of a version that another one has followed."""
    first = memory.remember(Draft(text="Old.", key="tree")).record
    memory.remember(Draft(text="Newer.", key="tree"))
    return first.address


def test_a_key_belongs_to_one_namespace(scratch: Scratch) -> None:
    """The same key in another project, or in the session, is another write."""
    here = scratch.memory.remember("Cedar.", idempotency_key="once")

    there = scratch.by(ELSEWHERE).remember("Cedar.", idempotency_key="once")
    session = scratch.memory.remember("Cedar.", scope=Scope.SESSION, idempotency_key="once")

    assert not there.repeated
    assert not session.repeated
    assert len({here.record.memory, there.record.memory, session.record.memory}) == 3


def test_callers_of_one_namespace_share_its_keys(scratch: Scratch) -> None:
    """A retry through another door is still a retry; somebody without a grant learns nothing from a key."""
    first = scratch.memory.remember("Cedar.", idempotency_key="once")

    again = scratch.by(MODEL).remember("Cedar.", idempotency_key="once")

    assert again.record == first.record
    with pytest.raises(AuthorityError, match="bob may not create"):
        scratch.by(BOB).remember("Cedar.", idempotency_key="once")


def test_a_key_on_the_very_first_write_counts(scratch: Scratch) -> None:
    """Also when the write makes its namespace, and only the first time says so."""
    first = scratch.memory.remember("Cedar.", idempotency_key="once")

    again = scratch.memory.remember("Cedar.", idempotency_key="once")

    assert (first.created_namespace, again.created_namespace) == (True, False)
    assert again.record == first.record


def test_a_text_that_replaces_itself_is_told(ada: Memory) -> None:
    """It is written all the same; of another text, and of two that were erased, nothing of the kind is said."""
    ada.remember(Draft(text="Cedar.", key="tree"))

    again = ada.remember(Draft(text="Cedar.", key="tree"), idempotency_key="once")
    other = ada.remember(Draft(text="Larch.", key="tree"))
    ada.forget(again.record.memory, dry_run=False)
    erased = ada.remember(Draft(text="Cedar.", key="tree"), idempotency_key="once")

    said = f"it says what {again.record.memory}@1 said already"
    assert (again.record.version, erased.record.text, erased.repeated) == (2, None, True)
    assert [said in answer.notices for answer in (again, other, erased)] == [True, False, False]
