"""Where a caller's hints lead: to one namespace or to an error, and to nothing new by reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    Draft,
    Kind,
    Memory,
    NamespaceError,
    NotFoundError,
    ProjectHints,
    Record,
    Scope,
)
from ledgerstone.identity import VISIBLE_SCOPES
from tests.memories import (
    ADA,
    BOB,
    ELSEWHERE,
    EVENING,
    HERE,
    HOMELESS,
    LOST,
    NOBODY,
    THERE,
    Scratch,
)

NO_NAMESPACE = "ns_0000000000000000"


def at(*paths: str, remote: str | None = None, inside: tuple[str, ...] = (), caller: Caller = ADA) -> Caller:
    """A caller at a place."""
    remotes = () if remote is None else (("origin", f"https://example.org/{remote}.git"),)
    return replace(caller, project=ProjectHints(remotes=remotes, paths=paths, inside=inside))


def explicit(namespace: str, caller: Caller = ADA) -> Caller:
    """A caller whose host names the project."""
    return replace(caller, project=ProjectHints(explicit=namespace))


def secret(scratch: Scratch) -> Record:
    """Something of Ada's in her project."""
    return scratch.memory.remember(Draft(text="Ada's.", kind=Kind.TASK)).record


def test_resolving_is_not_allowing(scratch: Scratch) -> None:
    """A project resolves for whoever may write there, though not read: the two questions are asked apart."""
    record = secret(scratch)
    scratch.memory.grant("bob", Act.WRITE, namespace=record.namespace)
    bob = scratch.by(BOB)

    assert bob.remember("Bob's.").record.namespace == record.namespace
    assert "project" not in {key for key, value in bob.bound().items() if str(value).startswith("ns_")}


def test_without_a_project_to_speak_of_the_session_is_meant(scratch: Scratch) -> None:
    """Where no hint was given a default write goes to the session; without a session it goes nowhere."""
    session = scratch.by(HOMELESS).remember("Cedar.").record

    with pytest.raises(NamespaceError, match="no session is bound"):
        scratch.by(replace(HOMELESS, session=None)).remember("Cedar.")

    assert session.scope is Scope.SESSION
    assert scratch.by(replace(HOMELESS, session=None)).remember("Cedar.", scope=Scope.USER).record.scope is Scope.USER


@pytest.mark.parametrize("caller", [LOST, at(inside=("/src/x",)), replace(ADA, project=ProjectHints())])
def test_an_unresolved_project_slides_nowhere(scratch: Scratch, caller: Caller) -> None:
    """A default write is refused with what to do; session and user can still be named; reads say it."""
    lost = scratch.by(caller)
    before = scratch.heads()

    with pytest.raises(NamespaceError) as refused:
        lost.remember("Cedar.")

    assert refused.value.hint == "run: ledgerstone namespaces use --new"
    assert scratch.heads() == before
    assert lost.remember("Cedar.", scope=Scope.SESSION).record.scope is Scope.SESSION
    recalled = lost.recall("cedar")
    assert [item.record.scope for item in recalled.items] == [Scope.SESSION]
    for answer in (recalled, lost.list_records()):
        assert any(notice.startswith("project: unresolved") for notice in answer.notices)


@pytest.mark.parametrize("hints", [ProjectHints(explicit="ns_0000000000000000"), ProjectHints(binding="elsewhere")])
def test_a_project_named_outright_that_is_not_there_is_refused_by_reads_and_by_writes_of_every_scope(
    scratch: Scratch, hints: ProjectHints
) -> None:
    """Whoever names a project wants that one; what is bound can still be asked, and one that is there is taken."""
    there = scratch.by(ADA).remember("Cedar.").record.namespace
    lost = scratch.by(replace(ADA, project=hints))

    asks: list[Callable[[], object]] = [lambda: lost.recall("cedar"), lost.list_records, lost.audit]
    asks += [partial(lost.remember, "Cedar.", scope=scope) for scope in (None, *VISIBLE_SCOPES)]
    for ask in asks:
        with pytest.raises(NotFoundError, match="no namespace") as refused:
            ask()
        assert refused.value.hint == "it was named as the project; those there are: ledgerstone namespaces"

    assert lost.bound()["project"].startswith("unresolved: no namespace")
    assert scratch.by(replace(ADA, project=ProjectHints(explicit=there))).recall("cedar").items


@pytest.mark.parametrize("scope", [Scope.SHARED, Scope.STORE])
def test_some_scopes_take_an_id(ada: Memory, scope: Scope) -> None:
    """Nobody writes to the store's own chain or to a shared namespace by the name of the scope."""
    with pytest.raises(NamespaceError, match="takes the id of a namespace"):
        ada.remember("Cedar.", scope=scope)
    with pytest.raises(NotFoundError):
        ada.remember("Cedar.", namespace=ada.status()["store"])


def test_a_scope_and_an_id_agree_or_nothing_is_there(scratch: Scratch) -> None:
    """The id of a project is not a session."""
    namespace = secret(scratch).namespace

    with pytest.raises(NotFoundError):
        scratch.memory.remember("Cedar.", namespace=namespace, scope=Scope.SESSION)

    answer = scratch.by(ELSEWHERE).remember("Cedar.", namespace=namespace, scope=Scope.PROJECT)
    assert answer.record.namespace == namespace


def test_a_new_remote_makes_a_project_and_says_so(scratch: Scratch) -> None:
    """The first write at a remote that nobody has seen creates its project; the second finds it."""
    first, second = scratch.memory.remember("One."), scratch.memory.remember("Two.")

    assert (first.created_namespace, second.created_namespace) == (True, False)
    assert first.record.namespace == second.record.namespace
    [project] = scratch.memory.namespaces()
    assert sorted(project["aliases"]) == ["/src/here", "example.org/team/here"]


def test_a_new_remote_makes_nothing_without_the_grant(scratch: Scratch) -> None:
    """Creating is an act of its own: who may only write where others created, does not."""
    creator = replace(ADA, acts=frozenset(Act) - {Act.CREATE})
    before = scratch.heads()

    with pytest.raises(AuthorityError, match="ada may not create in scope project"):
        scratch.by(creator).remember("Cedar.")

    assert scratch.heads() == before
    scratch.memory.remember("Cedar.")
    assert scratch.by(creator).remember("Cedar.").record.scope is Scope.PROJECT


def test_every_spelling_of_a_remote_is_one_project(scratch: Scratch) -> None:
    """Through ssh and https it is the same."""
    here = scratch.memory.remember("One.").record
    ssh = replace(HERE, remotes=(("origin", "git@EXAMPLE.org:team/here"),))

    assert scratch.by(replace(ADA, project=ssh)).remember("Two.").record.namespace == here.namespace


def test_a_known_remote_at_a_new_place_is_confirmed_once(scratch: Scratch) -> None:
    """A copy elsewhere could claim the remote: neither write nor read follows it before the owner says so."""
    record = secret(scratch)
    copy = scratch.by(at("/src/copy", remote="team/here"))

    with pytest.raises(NamespaceError, match="is a known project, but not yet at /src/copy") as refused:
        copy.remember("Cedar.")
    assert refused.value.hint.endswith(f"ledgerstone namespaces use {record.namespace}")
    assert copy.recall("Ada").items == ()
    with pytest.raises(NotFoundError):
        copy.get(record.memory)

    assert copy.use_project(record.namespace) == record.namespace
    assert copy.get(record.memory) == record
    assert copy.remember("Cedar.").record.namespace == record.namespace


def test_a_host_may_waive_the_confirmation(scratch: Scratch) -> None:
    """With ``new_places`` a known remote is followed anywhere."""
    record = secret(scratch)

    waived = scratch.by(replace(at("/src/copy", remote="team/here"), new_places=True))

    assert waived.get(record.memory) == record


def test_a_place_can_be_made_a_project(scratch: Scratch) -> None:
    """Without a remote a directory becomes a project by an explicit act, once; binding it again changes nothing."""
    lost = scratch.by(LOST)

    made = lost.use_project()

    record = lost.remember("Cedar.").record
    assert (record.namespace, record.scope) == (made, Scope.PROJECT)
    before = scratch.heads()
    assert lost.use_project(made) == made
    assert scratch.heads() == before


def test_a_place_that_belongs_to_a_project_is_not_made_another(scratch: Scratch) -> None:
    """A second new project is refused with the first one's id, and what is written goes where it went."""
    lost = scratch.by(LOST)
    made = lost.use_project()
    before = scratch.heads()

    with pytest.raises(NamespaceError, match=f"belongs to project {made} already") as refused:
        lost.use_project()

    assert refused.value.hint == "to move it to another: ledgerstone namespaces use ID"
    assert scratch.heads() == before
    assert lost.remember("Cedar.").record.namespace == made


def test_a_place_moves_to_the_project_that_is_named(scratch: Scratch) -> None:
    """However many projects fit a place, naming one leaves one; the other keeps its own places, and verify agrees."""
    one, two = scratch.by(at("/src/one")).use_project(), scratch.by(at("/src/two")).use_project()
    scratch.memory.alias(one, path="/src/two")
    without = replace(at("/src/two"), acts=frozenset(Act) - {Act.ADMIN})

    for named in (one, two, one):
        scratch.by(without).use_project(named)
        assert scratch.by(without).remember("Cedar.").record.namespace == named

    scratch.by(at("/src/one")).remember("Oak.")
    assert scratch.by(at("/src/one")).bound()["project"] == one
    assert scratch.memory.verify(full=True).ok


def test_a_place_does_not_move_from_the_project_of_its_remote(scratch: Scratch) -> None:
    """The remote would be found before the path, so it is refused; once the remote is detached the place moves."""
    here = secret(scratch).namespace
    other = scratch.by(at("/src/other")).use_project()
    before = scratch.heads()

    with pytest.raises(NamespaceError, match=f"is project {here}, and a remote comes before a path") as refused:
        scratch.memory.use_project(other)

    assert scratch.heads() == before
    remote = refused.value.hint.rpartition(" ")[2]
    scratch.memory.detach(here, remote)
    assert scratch.memory.use_project(other) == other
    assert scratch.memory.remember("Cedar.").record.namespace == other


def test_a_place_of_somebody_elses_project_is_not_taken(scratch: Scratch) -> None:
    """Who may write in both may move it only as an administrator, or from a project of their own making."""
    one, two = scratch.by(at("/src/one")).use_project(), scratch.by(at("/src/two")).use_project()
    for namespace in (one, two):
        scratch.memory.grant("bob", Act.WRITE, namespace=namespace)
    bob = scratch.by(at("/src/two", caller=BOB))
    before = scratch.heads()

    with pytest.raises(AuthorityError):
        bob.use_project(one)

    assert scratch.heads() == before
    scratch.memory.grant("bob", Act.ADMIN, scope=Scope.STORE)
    assert bob.use_project(one) == one
    assert bob.remember("Cedar.").record.namespace == one


def test_a_subdirectory_can_be_a_project_of_its_own(scratch: Scratch) -> None:
    """Bound, it is narrower than its repository, and takes nothing of it along."""
    whole = secret(scratch)
    part = scratch.by(replace(ADA, project=replace(HERE, inside=("/src/here/web",))))
    assert part.get(whole.memory) == whole

    made = part.use_project()

    assert made != whole.namespace
    with pytest.raises(NotFoundError):
        part.get(whole.memory)
    assert part.remember("Web.").record.namespace == made
    assert scratch.memory.get(whole.memory) == whole


def test_without_a_directory_there_is_nothing_to_bind(scratch: Scratch) -> None:
    """Neither without hints nor with hints that name no place."""
    for caller in (HOMELESS, replace(ADA, project=ProjectHints())):
        with pytest.raises(NamespaceError, match="no directory to bind"):
            scratch.by(caller).use_project()

    assert scratch.by(LOST).use_project().startswith("ns_")


def test_only_a_project_is_bound_to_a_place(scratch: Scratch) -> None:
    """The user's own memory cannot become a project's by binding it."""
    user = scratch.memory.remember("Ada likes cedars.", scope=Scope.USER).record

    with pytest.raises(NotFoundError):
        scratch.by(LOST).use_project(user.namespace)


def test_an_alias_suggests_a_project(scratch: Scratch) -> None:
    """A path or a remote added by an administrator leads to the project; detached, it no longer does."""
    record = secret(scratch)
    moved, other = scratch.by(at("/src/moved")), scratch.by(at(remote="team/renamed"))

    scratch.memory.alias(record.namespace, path="/src/moved", remote="ssh://git@example.org/team/renamed.git")
    assert moved.get(record.memory) == other.get(record.memory) == record

    scratch.memory.detach(record.namespace, "/src/moved")
    scratch.memory.detach(record.namespace, "example.org/team/renamed")
    for memory in (moved, other):
        with pytest.raises(NotFoundError):
            memory.get(record.memory)
    assert scratch.memory.get(record.memory) == record


def test_an_alias_is_no_permission(scratch: Scratch) -> None:
    """Standing in the right place does not open a project to somebody without a grant."""
    record = secret(scratch)
    scratch.memory.alias(record.namespace, path="/home/bob")

    with pytest.raises(NotFoundError):
        scratch.by(at("/home/bob", caller=BOB)).get(record.memory)


def test_several_matches_are_an_ambiguity(scratch: Scratch) -> None:
    """Two projects at one place: nothing is guessed, both are named; with one alias less it resolves."""
    one, two = scratch.by(at("/src/one")).use_project(), scratch.by(at("/src/two")).use_project()
    scratch.memory.alias(one, path="/src/two")
    both = scratch.by(at("/src/two"))
    before = scratch.heads()

    with pytest.raises(NamespaceError, match="several projects fit the path /src/two") as refused:
        both.remember("Cedar.")

    assert refused.value.message.endswith(f": {two} (by nothing else), {one} (/src/one)")
    assert scratch.heads() == before
    assert "several projects fit" in both.recall("cedar").notices[0]
    scratch.memory.detach(one, "/src/two")
    assert both.remember("Cedar.").record.namespace == two


def test_an_unseen_remote_does_not_settle_an_ambiguity(scratch: Scratch) -> None:
    """Two projects at one place stay two, whatever remote is there; where one fits, it is that one."""
    one, two = scratch.by(at("/src/one")).use_project(), scratch.by(at("/src/two")).use_project()
    scratch.memory.alias(one, path="/src/two")
    both = scratch.by(at("/src/two", remote="team/unseen"))
    before = scratch.heads()

    with pytest.raises(NamespaceError, match="several projects fit the path /src/two"):
        both.remember("Cedar.")

    assert scratch.heads() == before
    scratch.memory.detach(one, "/src/two")
    answer = both.remember("Cedar.")
    assert (answer.record.namespace, answer.created_namespace) == (two, False)


@pytest.mark.parametrize(
    "spelling",
    ["example.org/team/renamed", "git@example.org:team/renamed.git", "HTTPS://ada@EXAMPLE.org/team/renamed/"],
)
def test_a_remote_is_detached_in_any_spelling(scratch: Scratch, spelling: str) -> None:
    """As it is told or as git has it; another remote is not there."""
    record = secret(scratch)
    scratch.memory.alias(record.namespace, remote="ssh://git@example.org/team/renamed.git")
    renamed = scratch.by(at(remote="team/renamed"))
    assert renamed.get(record.memory) == record

    with pytest.raises(NotFoundError, match="no alias"):
        scratch.memory.detach(record.namespace, spelling.replace("renamed", "other"))
    assert renamed.get(record.memory) == record
    scratch.memory.detach(record.namespace, spelling)

    with pytest.raises(NotFoundError):
        renamed.get(record.memory)


def test_an_ambiguity_names_what_one_may_know(scratch: Scratch) -> None:
    """Of two projects at one place Bob, who may write one, knows one: for him nothing is ambiguous."""
    one, two = scratch.by(at("/src/one")).use_project(), scratch.by(at("/src/two")).use_project()
    scratch.memory.alias(one, path="/src/two")
    scratch.memory.grant("bob", Act.WRITE, namespace=two)

    assert scratch.by(at("/src/two", caller=BOB)).remember("Cedar.").record.namespace == two


def test_an_explicit_id_wins_over_every_hint(scratch: Scratch) -> None:
    """What the host names is meant, wherever the caller stands; then the host's binding; then the place."""
    here, there = secret(scratch), scratch.by(ELSEWHERE).remember("There.").record
    named = replace(HERE, explicit=there.namespace, binding=here.namespace)
    bound = replace(THERE, binding=here.namespace)

    assert scratch.by(replace(ADA, project=named)).remember("Named.").record.namespace == there.namespace
    assert scratch.by(replace(ADA, project=bound)).remember("Bound.").record.namespace == here.namespace


@pytest.mark.parametrize("caller", [ADA, LOST, HOMELESS, EVENING, BOB, explicit(NO_NAMESPACE)])
def test_reading_creates_nothing(scratch: Scratch, caller: Caller) -> None:
    """No question makes a project, a session, a principal or a commit."""
    before = scratch.heads()
    memory = scratch.by(caller)

    for ask in (
        lambda: memory.recall("cedar"),
        lambda: memory.list_records("all"),
        lambda: memory.get(NOBODY),
        lambda: memory.history(NOBODY),
        memory.namespaces,
        memory.bound,
        memory.grants,
        memory.status,
    ):
        try:
            ask()
        except NotFoundError:
            continue

    assert scratch.heads() == before


def test_global_takes_grants_of_its_own(scratch: Scratch) -> None:
    """Nobody is born with them; with them, what is global is seen from everywhere by whoever may read it."""
    for act in (Act.CREATE, Act.WRITE, Act.READ):
        scratch.memory.grant("ada", act, scope=Scope.GLOBAL)
    scratch.memory.grant("bob", Act.READ, scope=Scope.GLOBAL)

    record = scratch.memory.remember("For all.", scope=Scope.GLOBAL).record

    for caller in (ELSEWHERE, LOST, HOMELESS, BOB):
        assert scratch.by(caller).get(record.memory) == record
    with pytest.raises(AuthorityError):
        scratch.by(BOB).remember("For all.", scope=Scope.GLOBAL)
