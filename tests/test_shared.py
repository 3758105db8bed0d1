"""Namespaces for several, and projects that keep to themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Draft,
    LedgerstoneError,
    Memory,
    Mode,
    NotFoundError,
    Policy,
    Scope,
    UsageError,
)
from ledgerstone.core import canonical, rendering
from ledgerstone.entrypoints import wire
from ledgerstone.forgetting import WIDER as WIDER_STAYS
from tests.memories import ADA, BOB, ELSEWHERE, HOMELESS, MODEL, THERE, Scratch

NOWHERE = "ns_0000000000000000"
BOBS = replace(BOB, project=THERE)


def texts(memory: Memory, query: str = "cedar") -> list[str | None]:
    """What a recall brings, whatever the words."""
    return [item.record.text for item in memory.recall(query).items]


@pytest.fixture
def shared(scratch: Scratch) -> str:
    """A namespace that Ada made for several, and in which she said something."""
    scratch.memory.remember("The cedar of the project.")
    made = scratch.memory.share("team")
    scratch.memory.remember("The cedar of the team.", namespace=made)
    return made


def test_a_shared_namespace_is_reached_by_grants_on_it_alone(scratch: Scratch, shared: str) -> None:
    """Its maker has them; somebody else has none until somebody gives one, whatever is granted on scopes."""
    bob = scratch.by(BOBS)
    for scope in (Scope.SHARED, Scope.PROJECT, Scope.USER, Scope.GLOBAL):
        scratch.memory.grant("bob", Act.READ, scope=scope)
    with pytest.raises(NotFoundError):
        bob.remember("Bob's cedar.", namespace=shared)
    assert texts(bob) == []

    scratch.memory.grant("bob", Act.READ, namespace=shared)

    assert texts(bob) == ["The cedar of the team."]
    with pytest.raises(AuthorityError, match="may not write"):
        bob.remember("Bob's cedar.", namespace=shared)
    scratch.memory.grant("bob", Act.WRITE, namespace=shared)
    assert bob.remember("Bob's cedar.", namespace=shared).record.scope is Scope.SHARED
    scratch.heads()


def test_what_is_shared_comes_after_what_is_ones_own(scratch: Scratch, shared: str) -> None:
    """In recall, list, get and history, labelled with its scope; also where no project is."""
    ada = scratch.memory
    ada.remember("The cedar of the user.", scope=Scope.USER)

    listed = [(record.scope, record.text) for record in ada.list_records().items]

    assert listed == [
        (Scope.PROJECT, "The cedar of the project."),
        (Scope.USER, "The cedar of the user."),
        (Scope.SHARED, "The cedar of the team."),
    ]
    found = next(item.record for item in ada.recall("team").items)
    assert (found.scope, found.namespace) == (Scope.SHARED, shared)
    assert ada.get(found.address) == ada.history(found.memory)[0]
    assert "The cedar of the team." in texts(scratch.by(HOMELESS))
    assert ada.bound()["shared"] == [shared]


def test_a_revoked_grant_hides_what_is_shared(scratch: Scratch, shared: str) -> None:
    """From then on it is absent."""
    grant = scratch.memory.grant("bob", Act.READ, namespace=shared)
    address = scratch.by(BOBS).recall("cedar").items[0].record.address

    scratch.memory.revoke(grant)

    assert texts(scratch.by(BOBS)) == []
    with pytest.raises(NotFoundError):
        scratch.by(BOBS).get(address)


def test_sharing_takes_admin(scratch: Scratch) -> None:
    """A name is shared once; nothing is made by who may not, nor twice."""
    scratch.memory.remember("Something.")
    before = scratch.heads()
    for caller in (BOB, replace(ADA, acts=frozenset({Act.CREATE, Act.WRITE}))):
        with pytest.raises(AuthorityError, match="may not admin"):
            scratch.by(caller).share("team")
    assert scratch.heads() == before

    made = scratch.memory.share("team")

    with pytest.raises(UsageError, match="team is there already"):
        scratch.memory.share("team")
    assert scratch.memory.share("others") != made
    names = {one["name"] for one in scratch.memory.namespaces() if one["scope"] == "shared"}
    assert names == {"team", "others"}


def test_what_was_shared_can_be_forgotten_by_its_maker(scratch: Scratch, shared: str) -> None:
    """The grants that come with it include that."""
    record = scratch.memory.recall("team").items[0].record

    done = scratch.memory.forget(record.address, dry_run=False)

    assert (record.namespace, done.addresses) == (shared, (record.address,))
    scratch.heads()


@pytest.fixture
def project(scratch: Scratch, shared: str) -> str:
    """Ada's project, isolated, with something to see in every scope."""
    assert shared
    scratch.memory.grant("ada", Act.CREATE, scope=Scope.GLOBAL)
    for act in (Act.READ, Act.WRITE):
        scratch.memory.grant("ada", act, scope=Scope.GLOBAL)
    scratch.memory.remember(Draft(text="The cedar of the user.", key="cedar"), scope=Scope.USER)
    scratch.memory.remember("The cedar of everybody.", scope=Scope.GLOBAL)
    scratch.memory.remember("The cedar of the session.", scope=Scope.SESSION)
    namespace: str = scratch.memory.bound()["project"]
    scratch.memory.isolate(namespace)
    return namespace


WIDER = {"The cedar of the user.", "The cedar of everybody.", "The cedar of the team."}
OWN = {"The cedar of the project.", "The cedar of the session."}


@pytest.mark.parametrize("caller", [ADA, MODEL], ids=["user", "model"])
def test_an_isolated_project_sees_itself_alone(scratch: Scratch, project: str, caller: object) -> None:
    """No recall, list or get from within shows user, global or shared, whoever asks; from elsewhere all do."""
    assert project
    assert caller in {ADA, MODEL}
    inside, outside = scratch.by(ADA if caller is ADA else MODEL), scratch.by(ELSEWHERE)
    hidden = [item.record for item in outside.recall("cedar").items if item.record.text in WIDER]
    assert {record.text for record in hidden} == WIDER

    for mode in (Mode.BALANCED, Mode.LEXICAL, Mode.RECENT, Mode.HYBRID):
        policy = Policy(mode=mode, history=mode is Mode.LEXICAL)
        assert {item.record.text for item in inside.recall("cedar", policy=policy).items} == OWN
    assert {record.text for record in inside.list_records("all").items} == OWN
    for record in hidden:
        for target in (record.address, record.memory, record.digest.hex()):
            with pytest.raises(NotFoundError):
                inside.get(target)
        with pytest.raises(NotFoundError):
            inside.history(record.memory)
        assert outside.get(record.address).text == record.text


def test_an_isolated_project_sees_nothing_wider_by_its_id(scratch: Scratch, project: str) -> None:
    """To name a namespace in a recall reaches no further than what is in sight; from elsewhere it is shown."""
    inside, outside = scratch.memory, scratch.by(ELSEWHERE)
    wider = {item.record.namespace for item in outside.recall("cedar").items if item.record.text in WIDER}
    assert len(wider) == len(WIDER)

    for namespace in wider:
        for policy in (Policy(namespaces=(namespace,)), Policy(namespaces=(namespace,), at=1)):
            with pytest.raises(NotFoundError):
                inside.recall("cedar", policy=policy)
        assert texts_of(outside, namespace) <= WIDER
    assert texts_of(inside, project) == {"The cedar of the project."}


def texts_of(memory: Memory, namespace: str) -> set[str | None]:
    """What a recall of one namespace, by its id, brings."""
    policy = Policy(namespaces=(namespace,))
    return {item.record.text for item in memory.recall("cedar", policy=policy).items}


def test_an_isolated_project_takes_nothing_wider_along_by_its_id(scratch: Scratch, project: str) -> None:
    """Export, checkpoint and list know of no wider namespace, as of none that never was; from elsewhere they do."""
    inside, outside = scratch.memory, scratch.by(ELSEWHERE)
    wider = [one["namespace"] for one in outside.namespaces() if one["scope"] in {"user", "global", "shared"}]
    acts: list[Callable[[Memory, str], object]] = [
        lambda memory, name: list(memory.export(name).pieces),
        lambda memory, name: list(memory.records(name).pieces),
        lambda memory, name: memory.checkpoint(name),
    ]
    before = scratch.heads()

    refusals = [refusal(act, inside, name) for name in (*wider, "ns_0000000000000000") for act in acts]

    assert len(set(refusals)) == 1
    assert scratch.heads() == before
    assert project in {one["namespace"] for one in inside.namespaces()}
    assert not {one["namespace"] for one in inside.namespaces()} & set(wider)
    assert len(inside.checkpoint()) == len(outside.checkpoint()) - len(wider)
    for act in acts:
        assert act(inside, project)
        assert all(act(outside, name) for name in wider)


def test_a_dry_run_in_an_isolated_project_names_nothing_wider(scratch: Scratch, project: str) -> None:
    """Whoever may only look is told of what it sees from there, and from elsewhere of all."""
    assert project
    scratch.memory.grant("ada", Act.FORGET, scope=Scope.USER)

    looker = replace(MODEL, acts=frozenset({Act.READ}))

    inside = scratch.by(looker).forget("principal:ada").addresses
    outside = scratch.by(replace(looker, project=ELSEWHERE.project)).forget("principal:ada").addresses

    shown = {record.address for record in scratch.memory.list_records("all").items}
    assert set(inside) <= shown
    assert set(outside) > set(inside)


@pytest.mark.parametrize("target", ["principal:ada", "session:morning"])
def test_an_isolated_project_forgets_nothing_wider(scratch: Scratch, project: str, target: str) -> None:
    """Also who may erase there is told of nothing wider, and erases what it was told of; from elsewhere it goes."""
    assert project
    inside, outside = scratch.memory, scratch.by(ELSEWHERE)
    for scope in (Scope.USER, Scope.GLOBAL, Scope.SHARED):
        scratch.memory.grant("ada", Act.FORGET, scope=scope)
    wider = {item.record.address for item in outside.recall("cedar").items if item.record.text in WIDER}
    own = {item.record.address for item in inside.recall("cedar").items}

    told = inside.forget(target)
    done = inside.forget(target, dry_run=False)

    assert set(told.addresses) == set(done.addresses) == own
    assert told.names == done.names == ()
    assert WIDER_STAYS in told.unreached
    assert WIDER_STAYS in done.unreached
    assert set(outside.forget(target).addresses) & wider
    assert WIDER_STAYS not in outside.forget(target).unreached
    assert not inside.expire().addresses


def test_an_isolated_project_shows_no_receipt_of_what_is_wider(scratch: Scratch, project: str) -> None:
    """Drawn before, it is as little there as what it saw; one that is drawn in isolation is, and elsewhere both are."""
    scratch.memory.isolate(project, isolated=False)
    before = scratch.memory.recall("cedar", receipt=True).receipt or ""
    scratch.memory.isolate(project)
    inside, outside = scratch.memory, scratch.by(ELSEWHERE)
    after = inside.recall("cedar", receipt=True).receipt or ""

    assert [one.id for one in inside.receipts()] == [after]
    assert inside.explain(after).items
    with pytest.raises(NotFoundError):
        inside.explain(before)
    with pytest.raises(NotFoundError):
        inside.remember("A cedar by receipt.", receipt=before)
    assert [one.id for one in outside.receipts()] == [after, before]
    assert outside.explain(before).items


def test_an_isolated_project_names_nothing_wider_in_its_trail(scratch: Scratch, project: str) -> None:
    """An administrator sees there what was done to the store, without the ids of what is wider; elsewhere with them."""
    inside, outside = scratch.memory, scratch.by(ELSEWHERE)
    wider = {one["namespace"] for one in outside.namespaces() if one["scope"] in {"user", "global", "shared"}}
    with pytest.raises(NotFoundError):
        scratch.by(BOB).remember("Bob's cedar.", namespace=min(wider))

    events, all_events = inside.audit(limit=200), outside.audit(limit=200)

    assert not {name for event in events for name in (event.namespace, event.target)} & wider
    assert {event.target for event in all_events if event.operation == "namespace"} >= {*wider, project}
    made = [event.target for event in events if event.operation == "namespace"]
    assert project in made
    assert made.count(None) == len(wider)


def refusal(act: Callable[[Memory, str], object], memory: Memory, name: str) -> tuple[str, ...]:
    """What somebody is told who names a namespace, without the name."""
    with pytest.raises(NotFoundError) as refused:
        act(memory, name)
    return tuple(word.replace(name, "it") for word in refused.value.wire().values())


def test_isolation_ends_when_it_is_turned_off(scratch: Scratch, project: str) -> None:
    """And is on again when it is turned on again; as it is already, nothing is written."""
    steps = []

    for isolated in (False, False, True, True):
        before = scratch.heads()
        scratch.memory.isolate(project, isolated=isolated)
        steps.append((set(texts(scratch.memory)) == OWN, scratch.heads() != before))

    assert steps == [(False, True), (False, False), (True, True), (True, False)]


def test_isolation_outlives_the_process_and_is_told(scratch: Scratch, project: str) -> None:
    """The store says so, also of itself."""
    memory = scratch.reopen()

    assert set(texts(memory)) == OWN
    assert memory.bound()["isolated"] is True
    assert [one["namespace"] for one in memory.namespaces() if one.get("isolated")] == [project]
    assert [(event.operation, event.target) for event in memory.audit() if event.operation == "setting"] == [
        ("setting", project)
    ]


def test_isolation_holds_for_one_project(scratch: Scratch, project: str) -> None:
    """Another one, and no project at all, see what is wider as before."""
    assert project
    for caller in (ELSEWHERE, HOMELESS):
        assert set(texts(scratch.by(caller))) >= WIDER
        assert "isolated" not in scratch.by(caller).bound()


def test_a_write_from_an_isolated_project_shows_nothing_of_what_it_replaces(scratch: Scratch, project: str) -> None:
    """It is written where it was meant; what stood there is not in the answer."""
    assert project

    inside = scratch.memory.remember(Draft(text="A cedar, still.", key="cedar"), scope=Scope.USER)
    outside = scratch.by(ELSEWHERE).remember(Draft(text="A cedar, yes.", key="cedar"), scope=Scope.USER)

    assert (inside.record.version, inside.replaced) == (2, None)
    assert outside.replaced is not None
    assert outside.replaced.text == "A cedar, still."


def test_only_a_project_is_isolated_and_only_by_admin(scratch: Scratch, shared: str) -> None:
    """A user's namespace, an unknown one and whoever may not are refused; the project is as it was."""
    project = scratch.memory.bound()["project"]

    with pytest.raises(UsageError, match="of scope shared"):
        scratch.memory.isolate(shared)
    with pytest.raises(NotFoundError):
        scratch.memory.isolate("ns_0000000000000000")
    with pytest.raises(AuthorityError, match="may not admin"):
        scratch.by(BOBS).isolate(project)

    assert "isolated" not in scratch.memory.bound()


def test_a_write_that_isolation_hides_says_so(scratch: Scratch, project: str) -> None:
    """Remembered, repeated or promoted to what is wider, the answer says that it is not shown here."""
    hidden = "kept, and not shown here: this project is isolated from scope user"
    scratch.memory.grant("ada", Act.PROMOTE, scope=Scope.USER)

    wide, again = (scratch.memory.remember("Mine.", scope=Scope.USER, idempotency_key="k") for _ in range(2))
    own = scratch.memory.remember("Of the project.")
    promoted = scratch.memory.promote(own.record.address, scope=Scope.USER)
    scratch.memory.isolate(project, isolated=False)

    assert all(hidden in answer.notices for answer in (wide, again, promoted))
    assert hidden not in own.notices
    assert hidden not in scratch.memory.remember("Mine too.", scope=Scope.USER).notices


def test_an_act_that_is_only_tried_is_judged_and_not_done(scratch: Scratch) -> None:
    """By a dry run of each act nothing is written, and what the act refuses is refused; then the act is done."""
    project = scratch.memory.remember("The cedar of the project.").record.namespace
    given = scratch.memory.grant("bob", Act.READ, scope=Scope.GLOBAL)
    acts: tuple[tuple[Callable[..., object], Callable[..., object]], ...] = (
        (partial(scratch.memory.share, "team"), partial(scratch.memory.share, "")),
        (partial(scratch.memory.isolate, project), partial(scratch.memory.isolate, NOWHERE)),
        (partial(scratch.memory.alias, project, path="/x"), partial(scratch.memory.alias, NOWHERE, path="/x")),
        (partial(scratch.memory.detach, project, "/x"), partial(scratch.memory.detach, project, "/y")),
        (partial(scratch.memory.revoke, given), partial(scratch.memory.revoke, "grt_0000000000000000")),
        (
            partial(scratch.memory.grant, "bob", Act.READ, namespace=project),
            partial(scratch.memory.grant, "bob", Act.READ, namespace=NOWHERE),
        ),
    )

    for allowed, refused in acts:
        before = scratch.heads()
        allowed(dry_run=True)
        with pytest.raises(LedgerstoneError):
            refused(dry_run=True)
        assert scratch.heads() == before
        allowed()
        assert scratch.heads() != before


def test_an_act_is_not_tried_by_whoever_may_not_do_it(scratch: Scratch) -> None:
    """Who may not administer is refused a dry run as the act itself; who may is not."""
    project = scratch.memory.remember("The cedar of the project.").record.namespace

    with pytest.raises(AuthorityError):
        scratch.by(BOBS).isolate(project, dry_run=True)

    scratch.memory.isolate(project, dry_run=True)


def test_entries_of_shared_namespaces_say_which(scratch: Scratch, shared: str) -> None:
    """By name, in every shape, at the budget's cost; where the scope tells nothing is added, and no name, its id."""
    ada = scratch.memory
    other = ada.share("guests `of` honour")
    ada.remember("The cedar of the guests.", namespace=other)

    context = ada.recall("cedar", mode=Mode.LEXICAL)
    lean = {entry["text"]: entry.get("namespace_name") for entry in wire.recalled(context)["items"]}

    assert lean == {
        "The cedar of the project.": None,
        "The cedar of the team.": "team",
        "The cedar of the guests.": "guests `of` honour",
    }
    assert [one.get("namespace_name") for one in wire.page(ada.list_records())["items"]] == [
        None,
        "team",
        "guests `of` honour",
    ]
    block = rendering.markdown(context)
    assert "note, shared `team`, user_explicit" in block
    assert "note, shared `` guests `of` honour ``, user_explicit" in block
    entries = [wire.recalled(context)["items"]]
    assert context.bytes >= len(canonical.encode(entries))
    found = next(item.record for item in context.items if item.record.namespace == shared)
    assert wire.record(found)["namespace_name"] == "team"
    assert ada.remember("Another.", namespace=shared).record.namespace_name == "team"


def test_a_shared_namespace_without_a_name_says_its_id(scratch: Scratch, shared: str) -> None:
    """Once its name was erased with all of it; what is said there later shows the id."""
    ada = scratch.memory
    assert wire.recalled(ada.recall("team"))["items"][0]["namespace_name"] == "team"

    ada.forget(f"namespace:{shared}", dry_run=False)
    record = ada.remember("The cedar of the team, again.", namespace=shared).record

    context = ada.recall("team")
    entry = wire.recalled(context)["items"][0]
    assert (record.namespace_name, entry["text"], entry["namespace_name"]) == (None, record.text, shared)
    assert f"shared `{shared}`" in rendering.markdown(context)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x" * 121, "at most 120 characters, not 121"),
        ("\x01", "characters that are seen"),
        (" ", "characters that are seen"),
        ("tea\u200bms", "characters that are seen"),
        ("te\ufe0fams", "characters that are seen"),
        ("Team", "reads the same"),
        ("\uff54eam", "reads the same"),
        (" team ", "reads the same"),
        ("User", "reads like a scope"),
        ("store", "reads like a scope"),
        ("NS_0000000000000000", "the id of a namespace"),
    ],
)
def test_a_shared_name_that_could_mislead_is_refused(scratch: Scratch, shared: str, name: str, said: str) -> None:
    """Too long, with something unseen in it, like another one, a scope or an id; the longest allowed is taken."""
    with pytest.raises(UsageError, match=said):
        scratch.memory.share(name)

    assert scratch.memory.share("\u96ea" * 120) != shared
    assert scratch.memory.share("User group") != shared
