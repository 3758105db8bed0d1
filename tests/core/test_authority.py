"""Authority as a function: grants, a place and a host's list in, one grant or one reason out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core.authority import (
    LOCAL_GRANTS,
    TRUST_OF_ORIGIN,
    UNOWNED,
    Caller,
    Place,
    authorize,
    origin_of,
    trust_of,
)
from ledgerstone.core.entries import GrantEntry
from ledgerstone.core.values import Act, Origin, Refusal, Scope, Trust
from ledgerstone.errors import UsageError
from tests.core.chains import ADA, BOB, NOON, PROJECT, STORE, grant

EVERY = frozenset(Act)
PLACE = Place(PROJECT, Scope.PROJECT, ADA)

places = st.builds(
    Place,
    st.none() | st.sampled_from([PROJECT, STORE]),
    st.sampled_from(Scope),
    st.none() | st.sampled_from([ADA, BOB]),
)
scoped = st.builds(
    lambda number, act, principal, scope, expires: grant(
        number, act, principal=principal, scope=scope, expires=expires
    ),
    st.integers(1, 99),
    st.sampled_from(Act),
    st.sampled_from([ADA, BOB]),
    st.sampled_from(Scope),
    st.none() | st.sampled_from([NOON - 1, NOON, NOON + 1]),
)
named = st.builds(
    lambda one, namespace: replace(one, scope=None, namespace=namespace), scoped, st.sampled_from([PROJECT, STORE])
)
grants = st.lists(scoped | named, max_size=8)
hosts = st.frozensets(st.sampled_from(Act))
principals = st.none() | st.sampled_from([ADA, BOB])


def allowed(
    act: Act,
    place: Place,
    given_grants: list[GrantEntry],
    *,
    principal: str | None = ADA,
    host_acts: frozenset[Act] = EVERY,
    now: int = NOON,
) -> GrantEntry | Refusal:
    """Ask, as Ada unless somebody else is named."""
    return authorize(act, place, principal=principal, grants=given_grants, host_acts=host_acts, now=now)


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        pytest.param({}, None, id="on the scope"),
        pytest.param({"scope": None, "namespace": PROJECT}, None, id="on the namespace"),
        pytest.param({"scope": None, "namespace": STORE}, Refusal.NO_GRANT, id="on another namespace"),
        pytest.param({"scope": Scope.USER}, Refusal.NO_GRANT, id="on another scope"),
        pytest.param({"scope": Scope.GLOBAL}, Refusal.NO_GRANT, id="on global"),
        pytest.param({"act": Act.READ}, Refusal.NO_GRANT, id="another act"),
        pytest.param({"act": Act.ADMIN}, Refusal.NO_GRANT, id="admin is not write"),
        pytest.param({"principal": BOB}, Refusal.NO_GRANT, id="somebody else's"),
        pytest.param({"expires": NOON + 1}, None, id="until later"),
        pytest.param({"expires": NOON}, Refusal.EXPIRED, id="until now"),
    ],
)
def test_a_grant_allows_what_it_says(fields: dict[str, object], answer: Refusal | None) -> None:
    """Its act, for its principal, at its scope or namespace, until its time."""
    one = replace(grant(1, Act.WRITE), **fields)  # type: ignore[arg-type]

    assert allowed(Act.WRITE, PLACE, [one]) == (answer or one)


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_reaches_ones_own(scope: Scope) -> None:
    """A grant on a scope reaches the principal's namespaces; what has no owner only where nobody has one."""
    one = grant(1, Act.READ, scope=scope)

    assert allowed(Act.READ, Place(PROJECT, scope, ADA), [one]) == one
    assert allowed(Act.READ, Place(PROJECT, scope, BOB), [one]) is Refusal.NO_GRANT
    assert allowed(Act.READ, Place(PROJECT, scope, None), [one]) == (one if scope in UNOWNED else Refusal.NO_GRANT)


def test_a_namespace_grant_reaches_nothing_yet_to_be_made() -> None:
    """What has no id yet is reached by a scope only."""
    one = grant(1, Act.CREATE, scope=None, namespace=PROJECT)

    assert allowed(Act.CREATE, Place(None, Scope.PROJECT, ADA), [one]) is Refusal.NO_GRANT
    assert allowed(Act.CREATE, Place(None, Scope.PROJECT, ADA), [grant(2, Act.CREATE)]) == grant(2, Act.CREATE)


@pytest.mark.parametrize("fields", [{"principal": BOB}, {"act": Act.WRITE}, {"scope": Scope.USER}])
def test_a_grant_allows_whatever_stands_before_it(fields: dict[str, object]) -> None:
    """Somebody else's, one for another act or for another place: the next one is looked at."""
    before, right = replace(grant(1, Act.READ), **fields), grant(2, Act.READ)  # type: ignore[arg-type]

    assert allowed(Act.READ, PLACE, [before]) is Refusal.NO_GRANT
    assert allowed(Act.READ, PLACE, [before, right]) == right


def test_a_standing_grant_beside_an_expired_one_allows() -> None:
    """Only when no grant stands does it matter that one has expired."""
    old, new = grant(1, Act.READ, expires=NOON), grant(2, Act.READ)

    assert allowed(Act.READ, PLACE, [old, new]) == new
    assert allowed(Act.READ, PLACE, [old]) is Refusal.EXPIRED


@given(act=st.sampled_from(Act), place=places, given_grants=grants, principal=principals, host=hosts)
def test_a_host_only_narrows(
    act: Act, place: Place, given_grants: list[GrantEntry], principal: str | None, host: frozenset[Act]
) -> None:
    """With the host's list the answer is the one without it, or the host's refusal."""
    free = allowed(act, place, given_grants, principal=principal)
    bound = allowed(act, place, given_grants, principal=principal, host_acts=host)

    assert bound == (free if act in host else Refusal.HOST)


@given(act=st.sampled_from(Act), place=places, given_grants=grants, principal=principals)
def test_whatever_allows_is_a_grant_for_this(
    act: Act, place: Place, given_grants: list[GrantEntry], principal: str | None
) -> None:
    """Nobody acts but under a grant of their own for that act, unexpired, on that namespace or that scope."""
    answer = allowed(act, place, given_grants, principal=principal)

    if isinstance(answer, GrantEntry):
        assert answer in given_grants
        assert (answer.principal, answer.act) == (principal, act)
        assert answer.expires is None or answer.expires > NOON
        assert place.namespace == answer.namespace if answer.namespace else answer.scope is place.scope


@given(act=st.sampled_from(Act), place=places, given_grants=grants, more=grants)
def test_more_grants_take_nothing_away(
    act: Act, place: Place, given_grants: list[GrantEntry], more: list[GrantEntry]
) -> None:
    """What was allowed stays allowed, by the same grant."""
    before = allowed(act, place, given_grants)

    after = allowed(act, place, [*given_grants, *more])

    assert after == before or not isinstance(before, GrantEntry)


@given(act=st.sampled_from(Act), place=places, given_grants=grants)
def test_nobody_is_allowed_nothing(act: Act, place: Place, given_grants: list[GrantEntry]) -> None:
    """Without a principal there is no grant."""
    assert isinstance(allowed(act, place, given_grants, principal=None), Refusal)


def test_a_local_installation_grants_no_global() -> None:
    """Session, project and user in full, the administration of the store, and nothing that belongs to all."""
    granted = {(act, scope) for act, scope in LOCAL_GRANTS}

    everyday = {Act.READ, Act.WRITE, Act.CREATE, Act.FORGET}
    own = {(act, scope) for act in everyday for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER)}
    assert granted == own | {(Act.ADMIN, Scope.STORE)}


@given(origin=st.sampled_from(Origin), external=st.booleans())
def test_a_writer_only_lowers_the_origin(origin: Origin, *, external: bool) -> None:
    """External is at most external; without it the origin is the caller's own."""
    made = origin_of(origin, external=external)

    assert TRUST_OF_ORIGIN[made] <= TRUST_OF_ORIGIN[origin]
    assert made is origin if not external else TRUST_OF_ORIGIN[made] <= Trust.EXTERNAL_UNTRUSTED


@given(origin=st.sampled_from(Origin), sources=st.lists(st.sampled_from(Trust)))
def test_trust_is_the_least_of_all(origin: Origin, sources: list[Trust]) -> None:
    """Of the origin's and of every source's; sources raise nothing."""
    assert trust_of(origin, sources) is min([TRUST_OF_ORIGIN[origin], *sources])


def test_every_origin_has_a_trust() -> None:
    """None is forgotten, and who is not known is not trusted."""
    assert set(TRUST_OF_ORIGIN) == set(Origin)
    assert TRUST_OF_ORIGIN[Origin.UNKNOWN] is TRUST_OF_ORIGIN[Origin.IMPORT] is Trust.UNKNOWN


def test_a_caller_is_made_of_what_its_fields_allow() -> None:
    """A principal that is no text is refused by name, before anybody is asked for."""
    assert Caller(principal="ada").principal == "ada"

    with pytest.raises(UsageError, match="principal"):
        Caller(principal=5)  # type: ignore[arg-type]
