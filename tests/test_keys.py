"""A key is one claim: written again it is a new version, and the old one stays in history."""

from __future__ import annotations

import pytest

from ledgerstone import ConflictError, Draft, Kind, Memory, NotFoundError, RuleError, Scope, Standing
from tests.memories import ELSEWHERE, NOBODY, Scratch


def test_a_key_written_again_supersedes(ada: Memory) -> None:
    """The memory stays the same, its version goes up, and the answer says what was replaced."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record

    answer = ada.remember(Draft(text="Cedar.", key="tree"))

    assert (answer.record.memory, answer.record.version) == (old.memory, 2)
    assert answer.replaced is not None
    assert (answer.replaced.text, answer.replaced.standing) == ("Oak.", Standing.SUPERSEDED)
    assert ada.get(old.memory) == answer.record


def test_history_keeps_every_version(scratch: Scratch) -> None:
    """Oldest first, each with its text and standing, and each still at its own address."""
    words = ["Oak.", "Elm.", "Cedar."]
    versions = [scratch.memory.remember(Draft(text=word, key="tree")).record for word in words]

    history = scratch.reopen().history(versions[0].memory)

    assert [(record.version, record.text) for record in history] == list(enumerate(words, 1))
    assert [record.standing for record in history] == [Standing.SUPERSEDED, Standing.SUPERSEDED, Standing.CURRENT]
    assert [scratch.memory.get(version.address) for version in versions] == list(history)


def test_what_was_superseded_says_by_which_commit(ada: Memory) -> None:
    """The old version names the sequence that ended it; the standing one names none."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record

    new = ada.remember(Draft(text="Cedar.", key="tree")).record

    assert ada.get(old.address).ended_by == new.sequence
    assert ada.get(new.address).ended_by is None


def test_different_keys_are_different_claims(ada: Memory) -> None:
    """Keys that look alike are still two: nothing about a key is folded or trimmed."""
    keys = ["tree", "Tree", "tree ", "tr\u00e9e", "tre\u0301e", "\uff54ree"]

    memories = {ada.remember(Draft(text="Cedar.", key=key)).record.memory for key in keys}

    assert len(memories) == len(keys)
    assert {ada.get(memory).standing for memory in memories} == {Standing.CURRENT}


def test_a_key_belongs_to_its_namespace(scratch: Scratch) -> None:
    """The same key in another project or scope is another memory."""
    here = scratch.memory.remember(Draft(text="Oak.", key="tree")).record

    there = scratch.by(ELSEWHERE).remember(Draft(text="Elm.", key="tree")).record
    user = scratch.memory.remember(Draft(text="Ash.", key="tree"), scope=Scope.USER).record

    assert len({here.memory, there.memory, user.memory}) == 3
    assert scratch.memory.get(here.memory).text == "Oak."


def test_a_key_stands_once_in_a_commit(scratch: Scratch) -> None:
    """Two drafts with one key are refused together; nothing is guessed, nothing is written."""
    scratch.memory.remember("The project is there.")
    before = scratch.heads()

    with pytest.raises(RuleError, match="key: each key once a commit") as refused:
        scratch.memory.remember_many([Draft(text="Oak.", key="tree"), Draft(text="Elm.", key="tree")])

    assert refused.value.rule == "key"
    assert scratch.heads() == before
    kept = scratch.memory.remember_many([Draft(text="Oak.", key="tree"), Draft(text="Elm.", key="shrub")])
    assert [answer.record.key for answer in kept] == ["tree", "shrub"]


def test_a_memory_has_one_version_a_commit(ada: Memory) -> None:
    """What one draft writes by its key another of the same commit does not replace."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record

    with pytest.raises(RuleError, match="key: each key once a commit"):
        ada.remember_many([Draft(text="Elm.", key="tree"), Draft(text="Ash.", replaces=old.memory)])

    other = ada.remember("Fir.").record
    with pytest.raises(RuleError, match="replaces: each memory once a commit"):
        ada.remember_many([Draft(text="Elm.", replaces=other.memory), Draft(text="Ash.", replaces=other.memory)])

    assert (ada.get(old.memory), ada.get(other.memory)) == (old, other)
    kept = ada.remember_many([Draft(text="Elm.", key="tree"), Draft(text="Ash.", replaces=other.memory)])
    assert [answer.record.version for answer in kept] == [2, 2]


def test_a_commit_is_all_or_nothing(scratch: Scratch) -> None:
    """When one draft of many breaks a rule, none of them is written; without it all are, in their order."""
    scratch.memory.remember("The project is there.")
    before = scratch.heads()

    with pytest.raises(RuleError, match="text: 1 to 8192 bytes, not 0"):
        scratch.memory.remember_many(["One.", "Two.", ""])

    assert scratch.heads() == before
    answers = scratch.memory.remember_many(["One.", "Two.", "Three."])
    assert [answer.record.text for answer in answers] == ["One.", "Two.", "Three."]
    assert len({answer.commit for answer in answers}) == 1


def test_a_memory_keeps_its_key(ada: Memory) -> None:
    """What replaces a keyed memory has its key without saying so, and may not say another."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record

    with pytest.raises(RuleError, match="key: the replaced memory's key is 'tree', not 'shrub'"):
        ada.remember(Draft(text="Elm.", replaces=old.address, key="shrub"))

    assert ada.remember(Draft(text="Elm.", replaces=old.address)).record.key == "tree"


def test_a_memory_without_a_key_may_be_given_one(ada: Memory) -> None:
    """From then on the key leads to that memory."""
    old = ada.remember("Oak.").record

    ada.remember(Draft(text="Elm.", replaces=old.address, key="tree"))

    assert ada.remember(Draft(text="Cedar.", key="tree")).record.address == f"{old.memory}@3"


def test_a_key_that_is_held_is_not_taken(ada: Memory) -> None:
    """A memory without a key cannot get one that another memory holds."""
    holder = ada.remember(Draft(text="Oak.", key="tree")).record
    other = ada.remember("Elm.").record

    with pytest.raises(RuleError, match=f"key: 'tree' is held by {holder.address}"):
        ada.remember(Draft(text="Cedar.", replaces=other.address, key="tree"))

    assert ada.remember(Draft(text="Cedar.", replaces=holder.address, key="tree")).record.version == 2


@pytest.mark.parametrize("spelling", ["{0.memory}@1", "{0.memory}"])
def test_replacing_takes_a_version_that_is_current(ada: Memory, spelling: str) -> None:
    """By its address, or by the memory alone, which means the newest version."""
    old = ada.remember("Oak.").record

    new = ada.remember(Draft(text="Elm.", replaces=spelling.format(old))).record

    assert new.address == f"{old.memory}@2"


def test_replacing_what_moved_on_is_a_conflict(scratch: Scratch) -> None:
    """Two who read the same version and write: the second one is told, and loses nothing of the first."""
    old = scratch.memory.remember("Oak.").record
    first = scratch.memory.remember(Draft(text="Elm.", replaces=old.address)).record
    before = scratch.heads()

    with pytest.raises(ConflictError, match=f"replaces: {old.address} is no longer current") as refused:
        scratch.memory.remember(Draft(text="Ash.", replaces=old.address))

    assert old.memory in refused.value.hint
    assert scratch.heads() == before
    assert scratch.memory.remember(Draft(text="Ash.", replaces=first.address)).record.version == 3


def test_replacing_what_was_retracted_is_a_conflict(ada: Memory) -> None:
    """A retracted version stands no longer, its newest version included."""
    old = ada.remember("Oak.").record
    gone = ada.retract(old.address, reason="It fell.").record

    for address in (old.address, gone.address, old.memory):
        with pytest.raises(ConflictError):
            ada.remember(Draft(text="Elm.", replaces=address))

    assert ada.remember(Draft(text="Elm.", key="tree")).record.version == 1


def test_replacing_what_is_not_here_is_not_found(scratch: Scratch) -> None:
    """A memory of another project and one that never was get the same answer."""
    foreign = scratch.by(ELSEWHERE).remember("Oak.").record
    scratch.memory.remember("The project is there.")

    messages = []
    for address in (foreign.address, f"{NOBODY}@1"):
        with pytest.raises(NotFoundError) as refused:
            scratch.memory.remember(Draft(text="Elm.", replaces=address))
        messages.append(refused.value.message.replace(address, "it"))

    assert messages == ["no memory it here"] * 2


def test_a_retracted_key_can_be_claimed_again(ada: Memory) -> None:
    """The same memory goes on with its next version, and history shows the gap."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record
    ada.retract(old.address, reason="It fell.")

    new = ada.remember(Draft(text="Cedar.", key="tree")).record

    assert new.address == f"{old.memory}@3"
    standings = [record.standing for record in ada.history(old.memory)]
    assert standings == [Standing.RETRACTED, Standing.RETRACTED, Standing.CURRENT]


def test_a_new_version_may_be_of_another_kind(ada: Memory) -> None:
    """Only the key and the memory stay; what it is may change."""
    ada.remember(Draft(text="It may rain.", key="weather"))

    new = ada.remember(Draft(text="It rains.", key="weather", kind=Kind.FACT)).record

    assert (new.version, new.kind) == (2, Kind.FACT)
