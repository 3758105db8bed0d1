"""What a caller may do: by grant and by host, failing closed; what is hidden is not there; denials are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    Draft,
    Kind,
    LedgerstoneError,
    Memory,
    NotFoundError,
    Record,
    Scope,
    UnavailableError,
    UsageError,
)
from ledgerstone.core.namespaces import NAMED_HINT
from ledgerstone.store.sqlite import SqliteStore
from tests.memories import (
    ADA,
    BOB,
    ELSEWHERE,
    EVENING,
    HERE,
    HOMELESS,
    LOST,
    NOBODY,
    READER,
    SECOND,
    THERE,
    Scratch,
)

NO_NAMESPACE = "ns_0000000000000000"


def shape(ask: Callable[[], object]) -> dict[str, str]:
    """The error that a call ends in, as every door shows it, without the ids in it."""
    with pytest.raises(LedgerstoneError) as refused:
        ask()
    wire = refused.value.wire()
    words = ("ID" if word.startswith(("mem_", "ns_")) else word for word in wire["message"].split())
    return {**wire, "message": " ".join(words)}


def refusals(memory: Memory) -> list[tuple[str, str | None, str, int]]:
    """The denials in the audit trail: act, reason, who, how often; oldest first."""
    events = [event for event in memory.audit(limit=1000) if event.refusal is not None]
    return [(event.operation, event.refusal, event.principal, event.count) for event in reversed(events)]


def secret(scratch: Scratch) -> Record:
    """Something of Ada's in her project."""
    return scratch.memory.remember(Draft(text="Ada's.", kind=Kind.TASK)).record


def test_a_grant_reaches_one_namespace(scratch: Scratch) -> None:
    """Bob may read and write the one project that was granted, and no other of Ada's."""
    here, there = secret(scratch), scratch.by(ELSEWHERE).remember("There.").record
    for act in (Act.READ, Act.WRITE):
        scratch.memory.grant("bob", act, namespace=here.namespace)
    bob, bob_there = scratch.by(BOB), scratch.by(replace(BOB, project=THERE))

    assert bob.get(here.memory) == here
    assert bob.remember("Bob's.").record.namespace == here.namespace
    with pytest.raises(NotFoundError):
        bob_there.get(there.memory)
    with pytest.raises(AuthorityError):
        bob_there.remember("Bob's.")


def test_a_grant_on_a_scope_reaches_ones_own_namespaces(scratch: Scratch) -> None:
    """With grants on projects Bob makes his own, and sees nothing of Ada's, though remote and place are the same."""
    record = secret(scratch)
    for act in (Act.READ, Act.WRITE, Act.CREATE):
        scratch.memory.grant("bob", act, scope=Scope.PROJECT)
    bob = scratch.by(BOB)

    own = bob.remember("Bob's.").record

    assert own.namespace != record.namespace
    assert [found.text for found in bob.list_records("all").items] == ["Bob's."]
    with pytest.raises(NotFoundError):
        bob.get(record.memory)


@pytest.mark.parametrize("act", [Act.READ, Act.WRITE])
def test_one_act_is_not_another(scratch: Scratch, act: Act) -> None:
    """Who may read may not write, and who may write may not read."""
    record = secret(scratch)
    scratch.memory.grant("bob", act, namespace=record.namespace)
    bob = scratch.by(BOB)

    if act is Act.READ:
        assert bob.get(record.memory) == record
        with pytest.raises(AuthorityError, match="bob may not write in scope project"):
            bob.remember("Bob's.")
    else:
        assert bob.remember("Bob's.").record.text == "Bob's."
        with pytest.raises(NotFoundError):
            bob.get(record.memory)
        assert bob.recall("Ada").items == ()
        assert bob.list_records("all").items == ()


def test_a_revoked_grant_allows_nothing(scratch: Scratch) -> None:
    """From the next call on; what was done under it stands and verifies."""
    record = secret(scratch)
    read = scratch.memory.grant("bob", Act.READ, namespace=record.namespace)
    write = scratch.memory.grant("bob", Act.WRITE, namespace=record.namespace)
    bob = scratch.by(BOB)
    written = bob.remember("Bob's.").record

    scratch.memory.revoke(read)
    scratch.memory.revoke(write)

    with pytest.raises(NotFoundError):
        bob.get(record.memory)
    with pytest.raises(AuthorityError):
        bob.remember("Bob's again.")
    assert scratch.memory.get(written.memory).principal == "bob"
    assert scratch.memory.verify().ok


def test_a_grant_ends_at_its_time(scratch: Scratch) -> None:
    """A second before it allows, at its time it no longer does, and the refusal says that it has expired."""
    scratch.memory.grant("bob", Act.CREATE, scope=Scope.USER)
    for act in (Act.READ, Act.WRITE):
        scratch.memory.grant("bob", act, scope=Scope.USER, expires=scratch.now + 60 * SECOND)
    bob = scratch.by(BOB)

    scratch.wait(59)
    record = bob.remember("Bob's.", scope=Scope.USER).record
    assert bob.get(record.memory) == record

    scratch.wait(1)
    with pytest.raises(NotFoundError):
        bob.get(record.memory)
    with pytest.raises(AuthorityError, match="bob may not write in scope user: the grant has run out"):
        bob.remember("Bob's.", scope=Scope.USER)
    assert scratch.memory.verify().ok


def test_a_clock_set_back_does_not_revive_a_grant(scratch: Scratch) -> None:
    """A commit has its parent's time at least, and a grant must last until then; what is admitted verifies."""
    record = secret(scratch)
    scratch.memory.grant("bob", Act.WRITE, namespace=record.namespace, expires=scratch.now + 60 * SECOND)
    scratch.wait(120)
    scratch.memory.remember("Later.")
    scratch.wait(-100)

    with pytest.raises(AuthorityError, match="the grant has run out"):
        scratch.by(BOB).remember("Bob's.")

    assert scratch.memory.remember("Ada's.").record.text == "Ada's."
    assert scratch.memory.verify().ok


def test_a_grant_to_come_is_refused_when_it_is_past(scratch: Scratch) -> None:
    """A grant ends in the future, and names a scope or a namespace, one of the two."""
    namespace = secret(scratch).namespace

    for expires in (scratch.now, scratch.now - 1, 2**53):
        with pytest.raises(UsageError, match="expires: a time to come"):
            scratch.memory.grant("bob", Act.READ, scope=Scope.PROJECT, expires=expires)
    with pytest.raises(UsageError, match="one of the two"):
        scratch.memory.grant("bob", Act.READ)
    with pytest.raises(UsageError, match="one of the two"):
        scratch.memory.grant("bob", Act.READ, scope=Scope.PROJECT, namespace=namespace)

    assert scratch.memory.grant("bob", Act.READ, namespace=namespace, expires=scratch.now + 1).startswith("grt_")


def test_grants_are_told_as_they_are(scratch: Scratch) -> None:
    """Ada sees Bob's grants; Bob sees his own, without the revoked one, and not hers."""
    kept = scratch.memory.grant("bob", Act.READ, scope=Scope.PROJECT, expires=scratch.now + SECOND)
    scratch.memory.revoke(scratch.memory.grant("bob", Act.WRITE, scope=Scope.PROJECT))

    seen, own = scratch.memory.grants("bob"), scratch.by(BOB).grants()

    assert seen == own
    assert [(grant["grant"], grant["act"], grant["scope"], grant["expires"]) for grant in own] == [
        (kept, "read", "project", scratch.now + SECOND)
    ]
    with pytest.raises(AuthorityError):
        scratch.by(BOB).grants("ada")


def test_the_grants_of_everyone_take_admin(scratch: Scratch) -> None:
    """Ada sees all that stand, each once and with its principal; Bob may see his alone; not both are asked at once."""
    kept = scratch.memory.grant("bob", Act.READ, scope=Scope.PROJECT)
    scratch.memory.revoke(scratch.memory.grant("bob", Act.WRITE, scope=Scope.PROJECT))

    everyone = scratch.memory.grants(everyone=True)

    assert sorted(each["grant"] for each in everyone) == sorted(
        each["grant"] for each in (*scratch.memory.grants(), *scratch.memory.grants("bob"))
    )
    assert [each["grant"] for each in everyone if each["principal"] == "bob"] == [kept]
    with pytest.raises(AuthorityError):
        scratch.by(BOB).grants(everyone=True)
    with pytest.raises(UsageError, match="of everyone, or of one"):
        scratch.memory.grants("bob", everyone=True)


@pytest.mark.parametrize(
    "act",
    [
        lambda memory, namespace: memory.grant("bob", Act.READ, namespace=namespace),
        lambda memory, namespace: memory.alias(namespace, path="/src/bob"),
        lambda memory, namespace: memory.detach(namespace, "/src/here"),
        lambda memory, _: memory.revoke(memory.grants()[0]["grant"]),
    ],
    ids=["grant", "alias", "detach", "revoke"],
)
def test_arranging_takes_admin(scratch: Scratch, act: Callable[[Memory, str], object]) -> None:
    """Grants and aliases are changed by an administrator only, also by a host that withholds the act."""
    namespace = secret(scratch).namespace
    scratch.memory.grant("bob", Act.WRITE, namespace=namespace)
    before = scratch.heads()

    for caller in (BOB, replace(ADA, acts=frozenset(Act) - {Act.ADMIN})):
        with pytest.raises(AuthorityError, match="may not admin"):
            act(scratch.by(caller), namespace)

    assert scratch.heads() == before
    act(scratch.memory, namespace)
    assert scratch.heads() != before


def test_what_is_not_there_cannot_be_arranged(scratch: Scratch) -> None:
    """Unknown grants, aliases and namespaces are not found; a remote without a host is no remote."""
    namespace = secret(scratch).namespace

    with pytest.raises(NotFoundError, match="no grant"):
        scratch.memory.revoke("grt_0000000000000000")
    with pytest.raises(NotFoundError, match="no alias"):
        scratch.memory.detach(namespace, "/src/nowhere")
    with pytest.raises(NotFoundError, match="no namespace"):
        scratch.memory.alias(NO_NAMESPACE, path="/src/nowhere")
    with pytest.raises(NotFoundError, match="no namespace"):
        scratch.memory.grant("bob", Act.READ, namespace=NO_NAMESPACE)
    with pytest.raises(UsageError, match="has no host"):
        scratch.memory.alias(namespace, remote="/src/here/.git")


def test_a_host_narrows_what_grants_allow(scratch: Scratch) -> None:
    """A reading host does not write, a writing one does not read, whatever its principal was granted."""
    record = secret(scratch)
    writer = scratch.by(replace(ADA, acts=frozenset({Act.WRITE})))

    assert scratch.by(READER).get(record.memory) == record
    with pytest.raises(AuthorityError, match="ada may not write in scope project: not through this door"):
        scratch.by(READER).remember("Written.")
    assert writer.remember("Written.").record.text == "Written."
    with pytest.raises(NotFoundError):
        writer.get(record.memory)


def test_a_host_does_not_widen(scratch: Scratch) -> None:
    """All acts of a host are nothing without a grant."""
    with pytest.raises(AuthorityError, match="no grant"):
        scratch.by(replace(BOB, acts=frozenset(Act))).remember("Bob's.")

    scratch.memory.grant("bob", Act.CREATE, scope=Scope.PROJECT)
    scratch.memory.grant("bob", Act.WRITE, scope=Scope.PROJECT)
    assert scratch.by(BOB).remember("Bob's.").created_namespace


@pytest.mark.parametrize(
    "caller",
    [BOB, ELSEWHERE, LOST, HOMELESS, replace(ADA, acts=frozenset({Act.WRITE}))],
    ids=["nobody", "another project", "no place", "no project", "no reading"],
)
def test_hidden_is_absent(scratch: Scratch, caller: Caller) -> None:
    """By id, address and digest, for every verb: the very error that an id gets which never was."""
    record = secret(scratch)
    memory = scratch.by(caller)

    for target, absent in (
        (record.memory, NOBODY),
        (record.address, f"{NOBODY}@1"),
        (record.digest.hex(), "0" * 64),
    ):
        hidden = shape(lambda target=target: memory.get(target))  # type: ignore[misc]
        never = shape(lambda absent=absent: memory.get(absent))  # type: ignore[misc]
        assert hidden["code"] == "not_found"
        assert {**hidden, "message": ""} == {**never, "message": ""}
        assert hidden["message"].replace(target, "") == never["message"].replace(absent, "")
        assert memory.get_many([target, absent]) == (None, None)

    for verb in (
        memory.history,
        memory.close_task,
        lambda target: memory.retract(target, reason="Mine."),
        lambda target: memory.audit(target=target),
    ):
        assert shape(lambda verb=verb: verb(record.memory)) == shape(lambda verb=verb: verb(NOBODY))  # type: ignore[misc]

    assert scratch.memory.get(record.memory) == record


def test_a_hidden_namespace_is_absent(scratch: Scratch) -> None:
    """Named by its id, a namespace that one may not know is the same as one that never was."""
    namespace = secret(scratch).namespace
    bob = scratch.by(BOB)

    hidden = shape(lambda: bob.remember("Bob's.", namespace=namespace))
    bound = scratch.by(replace(BOB, project=replace(HERE, explicit=namespace)))

    assert hidden == shape(lambda: bob.remember("Bob's.", namespace=NO_NAMESPACE))
    assert hidden["code"] == "not_found"
    assert shape(lambda: bound.remember("Bob's.")) == hidden | {"hint": NAMED_HINT}
    assert shape(lambda: bound.use_project(namespace)) == hidden
    assert namespace not in str([bob.namespaces(), bob.bound(), bob.audit(limit=1000), bob.recall("Ada")])
    assert scratch.memory.remember("Ada's.", namespace=namespace).record.namespace == namespace


def test_one_project_never_reads_another(scratch: Scratch) -> None:
    """No verb of a caller in one project answers from another, though the principal could open both."""
    record = secret(scratch)
    there = scratch.by(ELSEWHERE)
    there.remember("There.")

    seen = str(
        [
            there.recall("Ada's"),
            there.list_records("all", limit=100),
            there.list_records("tasks"),
            there.audit(),
            there.bound(),
        ]
    )

    assert str(record.text) not in seen
    assert record.memory not in seen
    assert "There." in str(scratch.by(ELSEWHERE).recall("there"))


def test_a_session_belongs_to_its_principal(scratch: Scratch) -> None:
    """A session of the same name is another one for another principal, and another name is another session."""
    record = scratch.memory.remember("Ada's morning.", scope=Scope.SESSION).record
    for act in (Act.READ, Act.WRITE, Act.CREATE):
        scratch.memory.grant("bob", act, scope=Scope.SESSION)

    own = scratch.by(BOB).remember("Bob's morning.", scope=Scope.SESSION).record

    assert own.namespace != record.namespace
    for caller in (BOB, EVENING, replace(BOB, session="evening")):
        with pytest.raises(NotFoundError):
            scratch.by(caller).get(record.memory)
    with pytest.raises(NotFoundError):
        scratch.by(BOB).remember("Bob's.", namespace=record.namespace)
    assert scratch.memory.get(record.memory) == record


def test_what_is_the_users_follows_the_user(scratch: Scratch) -> None:
    """User memory is there in every project and session of its principal, and of nobody else."""
    record = scratch.memory.remember("Ada likes cedars.", scope=Scope.USER).record
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)

    for caller in (ELSEWHERE, EVENING, HOMELESS, LOST):
        assert scratch.by(caller).get(record.memory) == record
    with pytest.raises(NotFoundError):
        scratch.by(BOB).get(record.memory)


def test_denials_are_in_the_audit_trail(scratch: Scratch) -> None:
    """A denied write and a denied read are told, with act, reason and principal, once each and how often."""
    record = secret(scratch)
    scratch.memory.grant("bob", Act.WRITE, namespace=record.namespace)
    bob = scratch.by(BOB)
    for _ in range(3):
        with pytest.raises(NotFoundError):
            bob.get(record.memory)
    with pytest.raises(AuthorityError):
        bob.remember("For all.", scope=Scope.GLOBAL)

    told = refusals(scratch.memory)

    assert ("create", "no_grant", "bob", 1) in told
    assert {count for act, _, who, count in told if (act, who) == ("read", "bob")} == {3}


def test_a_denial_names_no_text(scratch: Scratch) -> None:
    """What somebody tried to write does not enter the ledger by being refused."""
    with pytest.raises(AuthorityError):
        scratch.by(BOB).remember("Let me in.")

    assert refusals(scratch.memory)
    scratch.memory.close()
    assert b"Let me in." not in scratch.path.read_bytes()
    scratch.memory = scratch.open()


def test_a_flood_of_denials_makes_few_entries(scratch: Scratch) -> None:
    """A thousand equal denials are one entry of the store chain that counts them."""
    secret(scratch)
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)
    before = scratch.memory.status()["sequence"]
    bob = scratch.by(BOB)

    for _ in range(1000):
        with pytest.raises(AuthorityError):
            bob.remember("Let me in.")

    assert scratch.memory.status()["sequence"] == before
    assert refusals(scratch.memory) == [("create", "no_grant", "bob", 1000)]
    assert scratch.memory.status()["sequence"] == before + 1


def test_denials_outlive_a_write_that_fails(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is told by the next audit that can, counted once, together with what came since."""
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)
    bob = scratch.by(BOB)
    with pytest.raises(AuthorityError):
        bob.remember("Let me in.")

    with monkeypatch.context() as broken:
        broken.setattr(SqliteStore, "write", unavailable)
        with pytest.raises(UnavailableError):
            scratch.memory.audit()
    with pytest.raises(AuthorityError):
        bob.remember("Let me in.")

    assert refusals(scratch.memory) == [("create", "no_grant", "bob", 2)]
    assert refusals(scratch.memory) == [("create", "no_grant", "bob", 2)]


def unavailable(_store: SqliteStore) -> None:
    """A store that cannot be written to."""
    raise UnavailableError("the disk is full")


def test_a_flood_of_different_denials_is_bounded(scratch: Scratch) -> None:
    """Past 256 different ones only their number is kept, and all are counted."""
    for number in range(260):
        scratch.memory.grant(f"b{number}", Act.READ, scope=Scope.USER)

    for number in range(260):
        with pytest.raises(AuthorityError):
            scratch.by(replace(BOB, principal=f"b{number}")).remember("Let me in.")

    told = refusals(scratch.memory)
    assert len(told) == 257
    assert sum(count for *_, count in told) == 260


def test_one_sees_ones_own_denials_only(scratch: Scratch) -> None:
    """Ada, who administers, sees all; Bob sees his."""
    for name in ("bob", "eve"):
        scratch.wait(1)
        scratch.memory.grant(name, Act.READ, scope=Scope.USER)
        with pytest.raises(AuthorityError):
            scratch.by(replace(BOB, principal=name)).remember("Let me in.")

    assert [who for *_, who, _ in refusals(scratch.memory)] == ["bob", "eve"]
    assert [who for *_, who, _ in refusals(scratch.by(BOB))] == ["bob"]
