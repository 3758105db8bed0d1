"""The audit trail is a reading of the chains: who did what, when, by which grant, and nothing that did not happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgerstone import Act, AuthorityError, Draft, Kind, Memory, NotFoundError, Origin, RuleError, Scope, UsageError
from tests.memories import BOB, ELSEWHERE, HOMELESS, MODEL, NOBODY, NOON, SECOND, Scratch


def test_an_event_has_every_promised_field(scratch: Scratch) -> None:
    """Id, time, principal, operation, namespace, target, origin, grant, versions, session, host and binding."""
    scratch.memory.remember("The project is there.")
    scratch.wait(5)
    answer = scratch.by(MODEL).remember(Draft(text="Cedar.", key="tree"))
    write = next(g["grant"] for g in scratch.memory.grants() if (g["act"], g["scope"]) == ("write", "project"))

    [event] = scratch.memory.audit(target=answer.record.memory)

    assert event.id == f"{answer.commit.hex()}/0"
    assert event.at == NOON + 5 * SECOND == answer.record.created_at
    assert (event.principal, event.operation, event.target) == ("ada", "remember", answer.record.address)
    assert (event.namespace, event.sequence) == (answer.record.namespace, answer.sequence)
    assert (event.origin, event.grant) == (Origin.MODEL, write)
    assert (event.previous_version, event.new_version) == (0, 1)
    assert (event.session, event.host, event.binding) == ("morning", "mcp", "remote")
    assert (event.refusal, event.count) == (None, 1)


def test_every_version_is_an_event(ada: Memory) -> None:
    """Written, replaced, closed and retracted: each with the version before and after, newest first."""
    task = ada.remember(Draft(text="Water.", kind=Kind.TASK, key="tree")).record
    ada.close_task(task.memory)
    ada.remember(Draft(text="It rains.", key="tree"))
    ada.retract(task.memory, reason="It does not.")

    events = ada.audit(target=task.memory)

    assert [(event.operation, event.previous_version, event.new_version) for event in events] == [
        ("retract", 3, 4),
        ("remember", 2, 3),
        ("close", 1, 2),
        ("remember", 0, 1),
    ]
    assert [event.target for event in events] == [f"{task.memory}@{version}" for version in (4, 3, 2, 1)]


def test_events_come_newest_first(scratch: Scratch) -> None:
    """Across namespaces, by time."""
    for word, scope in (
        ("One.", Scope.PROJECT),
        ("Two.", Scope.SESSION),
        ("Three.", Scope.USER),
        ("Four.", Scope.PROJECT),
    ):
        scratch.wait(1)
        scratch.memory.remember(word, scope=scope)

    events = [event for event in scratch.memory.audit(limit=1000) if event.operation == "remember"]

    texts = [scratch.memory.get(str(event.target)).text for event in events]
    assert texts == ["Four.", "Three.", "Two.", "One."]


def test_every_draft_of_a_commit_is_an_event(ada: Memory) -> None:
    """The events of one commit have its id and their place in it."""
    ada.remember("The project is there.")
    answers = ada.remember_many(["One.", "Two.", "Three."])

    ids = {event.target: event.id for event in ada.audit() if event.operation == "remember"}

    commit = answers[0].commit.hex()
    assert [ids[answer.record.address] for answer in answers] == [f"{commit}/{place}" for place in range(3)]


def test_an_id_names_one_event(scratch: Scratch) -> None:
    """No two events share one, whatever happened."""
    for scope in (Scope.PROJECT, Scope.SESSION, Scope.USER):
        scratch.memory.remember_many(["One.", "Two."], scope=scope)
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)

    events = scratch.memory.audit(limit=1000)

    assert len({event.id for event in events}) == len(events)
    assert len(events) > 20


def test_a_target_keeps_to_its_memory(ada: Memory) -> None:
    """By memory or by address it is that memory's events, and of no other."""
    one, two = ada.remember("One.").record, ada.remember("Two.").record

    assert [event.target for event in ada.audit(target=one.memory)] == [one.address]
    assert [event.target for event in ada.audit(target=two.address)] == [two.address]
    assert ada.audit(target=one.memory, limit=1) == ada.audit(target=one.memory)


def test_a_target_that_is_not_here_is_not_found(scratch: Scratch) -> None:
    """Absent or another project's: the same; and a target is an address."""
    foreign = scratch.by(ELSEWHERE).remember("There.").record
    scratch.memory.remember("Here.")

    for target in (foreign.memory, NOBODY):
        with pytest.raises(NotFoundError, match="no memory mem_"):
            scratch.memory.audit(target=target)
    with pytest.raises(UsageError):
        scratch.memory.audit(target="cedar")

    assert len(scratch.by(ELSEWHERE).audit(target=foreign.memory)) == 1


def test_no_refusal_is_lost_between_two_pages(scratch: Scratch) -> None:
    """Refusals are written late; paging by time shows each where it belongs, however small the pages."""
    ada, bob = scratch.memory, scratch.by(BOB)
    ada.remember("The project is there.")
    begun = scratch.now
    for scope in (Scope.USER, Scope.SESSION):
        scratch.wait(1)
        ada.remember("A note.")
        scratch.wait(1)
        with pytest.raises(AuthorityError):
            bob.remember("x", scope=scope)
    scratch.wait(1)
    ada.remember("The last note.")

    pages, before = [], None
    while (page := ada.audit(limit=1, before=before)) and page[0].at > begun:
        before = page[0].at
        pages.append((page[0].operation, page[0].refusal))

    note, refused = ("remember", None), ("create", "no_grant")
    assert pages == [note, refused, note, refused, note]


def test_a_trail_is_cut_at_its_limit(scratch: Scratch) -> None:
    """The newest so many; before a time the older ones."""
    written = []
    for number in range(6):
        scratch.wait(1)
        written.append(scratch.memory.remember(Draft(text=f"Note {number}.", key="tree")))
    memory = written[0].record.memory

    newest = scratch.memory.audit(target=memory, limit=2)
    older = scratch.memory.audit(target=memory, limit=2, before=newest[-1].at)

    assert [event.sequence for event in newest] == [written[5].sequence, written[4].sequence]
    assert [event.sequence for event in older] == [written[3].sequence, written[2].sequence]


def test_before_is_a_time_of_all_chains(scratch: Scratch) -> None:
    """Whatever was committed earlier is told, in whichever namespace, and nothing of that very moment."""
    for word, scope in (("One.", Scope.PROJECT), ("Two.", Scope.USER), ("Three.", Scope.PROJECT)):
        scratch.wait(1)
        scratch.memory.remember(word, scope=scope)

    def texts(before: int) -> list[str | None]:
        events = scratch.memory.audit(before=before, limit=1000)
        return [scratch.memory.get(str(event.target)).text for event in events if event.operation == "remember"]

    assert texts(scratch.now + 1) == ["Three.", "Two.", "One."]
    assert texts(scratch.now) == ["Two.", "One."]
    assert texts(scratch.now - SECOND) == ["One."]


def test_an_event_says_its_place_in_its_commit(ada: Memory) -> None:
    """The last of a commit is told first, and its id ends in its place."""
    ada.remember_many(["One.", "Two.", "Three."])

    events = [event for event in ada.audit() if event.operation == "remember"]

    assert [event.place for event in events] == [2, 1, 0]
    assert [event.id.rpartition("/")[2] for event in events] == ["2", "1", "0"]


def test_arrangements_are_told_to_the_administrator(scratch: Scratch) -> None:
    """Namespaces, grants, aliases and their ends are events too; who only reads does not see them."""
    record = scratch.memory.remember("Here.").record
    grant = scratch.memory.grant("bob", Act.READ, namespace=record.namespace)
    scratch.memory.alias(record.namespace, path="/src/moved")
    scratch.memory.detach(record.namespace, "/src/moved")

    told = {(event.operation, event.target) for event in scratch.memory.audit(limit=1000)}
    operations = {event.operation for event in scratch.by(BOB).audit(limit=1000)}

    assert told >= {("namespace", record.namespace), ("grant", grant)}
    assert {operation for operation, _ in told} >= {"alias", "revoke", "name", "key", "genesis"}
    assert operations == {"genesis", "remember"}


def test_an_arrangement_says_by_which_grant(scratch: Scratch) -> None:
    """An administrator's acts name the grant that allowed them."""
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)
    admin = next(g["grant"] for g in scratch.memory.grants() if g["act"] == "admin")

    newest = next(event for event in scratch.memory.audit() if event.operation == "grant")

    assert (newest.grant, newest.principal) == (admin, "ada")


def test_a_denial_is_an_event(scratch: Scratch) -> None:
    """With act, reason, principal and namespace, no target, and how often until when."""
    record = scratch.memory.remember("Here.").record
    scratch.memory.grant("bob", Act.READ, namespace=record.namespace)
    for _ in range(3):
        scratch.wait(1)
        with pytest.raises(AuthorityError):
            scratch.by(BOB).remember("Mine.")

    [event] = [event for event in scratch.memory.audit(limit=1000) if event.refusal is not None]

    assert (event.operation, event.refusal, event.principal) == ("write", "no_grant", "bob")
    assert (event.namespace, event.target, event.grant) == (record.namespace, None, None)
    assert (event.count, event.at) == (3, scratch.now)


def test_denials_outlive_the_process(scratch: Scratch) -> None:
    """What was noted is written when the store is closed."""
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)
    with pytest.raises(AuthorityError):
        scratch.by(BOB).remember("Mine.")

    events = scratch.reopen().audit(limit=1000)

    assert [event.principal for event in events if event.refusal is not None] == ["bob"]


@pytest.mark.parametrize("text", ["", "a\x00"])
def test_a_refused_draft_is_no_event(scratch: Scratch, text: str) -> None:
    """A rule that says no leaves no trace in any chain; the neighbour that it lets in leaves one event."""
    scratch.memory.remember("Here.")
    before = scratch.heads()
    events = scratch.memory.audit(limit=1000)

    with pytest.raises(RuleError):
        scratch.memory.remember(text)

    assert scratch.heads() == before
    assert scratch.memory.audit(limit=1000) == events
    scratch.memory.remember("There.")
    assert len(scratch.memory.audit(limit=1000)) == len(events) + 1


def test_a_denied_first_write_leaves_no_namespace(scratch: Scratch) -> None:
    """Neither the project nor the name of the session that the write would have made."""
    scratch.memory.grant("bob", Act.CREATE, scope=Scope.PROJECT)
    before = scratch.heads()

    with pytest.raises(AuthorityError, match="bob may not write in scope project"):
        scratch.by(replace(BOB, session="night")).remember("Mine.")

    assert scratch.heads() == before
    assert scratch.memory.namespaces() == scratch.by(BOB).namespaces() == ()


def test_time_does_not_run_backwards_in_a_chain(scratch: Scratch) -> None:
    """When the clock is set back a commit has its parent's time, and the chain verifies."""
    first = scratch.memory.remember("One.").record
    scratch.wait(-3600)

    second = scratch.memory.remember("Two.").record

    assert second.created_at == first.created_at
    scratch.wait(7200)
    assert scratch.memory.remember("Three.").record.created_at == scratch.now
    assert scratch.memory.verify().ok


def test_one_audits_what_one_is_bound_to(scratch: Scratch) -> None:
    """Another project's events are not in the trail of a caller who does not administer."""
    scratch.memory.remember("Here.")
    scratch.by(ELSEWHERE).remember("There.")
    plain = replace(HOMELESS, acts=frozenset({Act.READ}))

    events = scratch.by(plain).audit(limit=1000)

    assert events == ()
    assert scratch.by(replace(ELSEWHERE, acts=frozenset({Act.READ}))).audit(limit=1000) != ()
