"""The thirteen tests that the first issue asked for, on the library alone."""

from __future__ import annotations

import re

import pytest

from ledgerstone import Act, AuthorityError, Memory, NamespaceError, NotFoundError, Scope, Standing, Trust
from tests.memories import BOB, ELSEWHERE, LOST, MODEL, STRANGER, Scratch

TEXT = "  Use Prolog\r\nas the authority \u2014 for this project.\t\U0001f9ed e\u0301 \u200b "


def test_remembering_gives_a_stable_opaque_id(ada: Memory) -> None:
    """The id says nothing of the text, and the same memory answers to it from then on."""
    remembered = ada.remember("Use Prolog")

    first, second = ada.get(remembered.record.memory), ada.get(remembered.record.memory)

    assert re.fullmatch("mem_[0-9a-hjkmnp-tv-z]{16}", remembered.record.memory)
    assert first == second == remembered.record


def test_the_exact_text_comes_back(ada: Memory) -> None:
    """Spaces, line ends, combining and invisible characters come back as they were given."""
    remembered = ada.remember(TEXT)

    got = ada.get(remembered.record.memory)

    assert remembered.record.text == got.text == TEXT


def test_a_memory_outlives_the_process(scratch: Scratch) -> None:
    """After closing and opening again every field of a record is as it was."""
    before = scratch.memory.remember(TEXT).record

    after = scratch.reopen().get(before.memory)

    assert after == before


def test_another_project_cannot_read_a_memory(scratch: Scratch) -> None:
    """What was remembered in one project is not found from another, by id, by words or in a list."""
    there = scratch.by(ELSEWHERE)
    there.remember("The blue key opens the gate.")
    secret = scratch.memory.remember("The red key opens the vault.").record

    recalled = [item.record.text for item in there.recall("red key vault").items]
    listed = [record.text for record in there.list_records("all").items]

    assert recalled == listed == ["The blue key opens the gate."]
    with pytest.raises(NotFoundError):
        there.get(secret.memory)
    assert scratch.memory.get(secret.memory) == secret


def test_an_unresolved_project_does_not_slide_to_global(scratch: Scratch) -> None:
    """Without a project nothing is written anywhere, though global, session and user could be."""
    scratch.memory.grant("ada", Act.CREATE, scope=Scope.GLOBAL)
    scratch.memory.grant("ada", Act.WRITE, scope=Scope.GLOBAL)
    lost = scratch.by(LOST)
    before = scratch.heads()

    with pytest.raises(NamespaceError, match="no project is known") as refused:
        lost.remember("Where does this go?")

    assert refused.value.hint == "run: ledgerstone namespaces use --new"
    assert scratch.heads() == before
    assert lost.remember("Here.", scope=Scope.GLOBAL).record.scope is Scope.GLOBAL


def test_a_project_grant_does_not_write_global(scratch: Scratch) -> None:
    """Whoever may write the project, and session and user, may still not write global."""
    before = scratch.heads()

    with pytest.raises(AuthorityError, match="ada may not create in scope global"):
        scratch.memory.remember("For everybody.", scope=Scope.GLOBAL)

    assert scratch.heads() == before
    assert scratch.memory.remember("For this project.", scope=Scope.PROJECT).record.scope is Scope.PROJECT


def test_a_known_id_is_no_permission_to_read(scratch: Scratch) -> None:
    """Somebody without a read grant does not get a memory by its id, its address or its digest."""
    record = scratch.memory.remember("Only for Ada.").record
    bob = scratch.by(BOB)

    for target in (record.memory, record.address, record.digest.hex()):
        with pytest.raises(NotFoundError):
            bob.get(target)

    scratch.memory.grant("bob", Act.READ, namespace=record.namespace)
    assert bob.get(record.memory) == record


def test_every_write_is_in_the_audit_trail(ada: Memory) -> None:
    """A successful write is one event that names its memory."""
    ada.remember("First, so that the project is there.")

    record = ada.remember("Then this.").record

    newest = ada.audit(target=record.memory)
    assert [(event.operation, event.target) for event in newest] == [("remember", record.address)]


def test_a_failed_authorisation_leaves_nothing(scratch: Scratch) -> None:
    """A denied write makes no record, no namespace, no name: every chain ends where it did."""
    scratch.memory.remember("Ada's own.")
    before = scratch.heads()

    for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER, Scope.GLOBAL):
        with pytest.raises(AuthorityError):
            scratch.by(BOB).remember("Bob's try.", scope=scope)

    assert scratch.heads() == before


def test_two_memories_have_two_ids(ada: Memory) -> None:
    """Every text remembered is a memory of its own."""
    first, second = ada.remember("One."), ada.remember("Two.")

    assert first.record.memory != second.record.memory
    assert (ada.get(first.record.memory).text, ada.get(second.record.memory).text) == ("One.", "Two.")


def test_the_same_text_twice_is_two_memories(ada: Memory) -> None:
    """Equal texts are not taken for one: two ids, two digests, two events, both current."""
    first, second = ada.remember(TEXT).record, ada.remember(TEXT).record

    assert first.memory != second.memory
    assert first.digest != second.digest
    assert ada.get(first.memory).standing is ada.get(second.memory).standing is Standing.CURRENT
    assert {event.target for event in ada.audit()} >= {first.address, second.address}


def test_what_a_model_passes_on_is_not_the_users_word(scratch: Scratch) -> None:
    """A model's text has a model's trust, what it found elsewhere has less; the user's own has the most."""
    by_model = scratch.by(MODEL).remember("The user says: trust me.").record
    by_nobody = scratch.by(STRANGER).remember("I am the user.").record
    by_user = scratch.memory.remember("I am.").record

    assert by_model.trust is Trust.MODEL_INFERRED
    assert by_nobody.trust is Trust.UNKNOWN
    assert by_user.trust is Trust.USER_EXPLICIT


def test_remember_then_get_takes_no_more_than_the_public_names(scratch: Scratch) -> None:
    """The road from end to end, as a program of somebody else would take it: nothing but a path and a key."""
    import ledgerstone  # noqa: PLC0415 (the program begins here)

    path = scratch.path.with_name("another.ledger")
    keys = ledgerstone.load_keys(scratch.path.with_name("key.json"), create=True)
    caller = ledgerstone.Caller(principal="ada", session="today", origin=ledgerstone.Origin.USER)
    with ledgerstone.Memory.open(path, keys=keys, caller=caller, state=None, create=True) as memory:
        remembered = memory.remember(TEXT)

    with ledgerstone.Memory.open(path, keys=keys, caller=caller, state=None) as memory:
        assert memory.get(remembered.record.memory).text == TEXT
