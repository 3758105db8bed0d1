"""Who may do what, and how trust is assigned: from the caller, the ledger's grants and the host, never from text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledgerstone.core.entries import GrantEntry
from ledgerstone.core.namespaces import ProjectHints
from ledgerstone.core.sorts import check_fields
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    LIBRARY_LIMITS,
    MAX_BELOW_FLOOR_BYTES,
    Act,
    Limits,
    Origin,
    Refusal,
    Scope,
    Trust,
)
from ledgerstone.errors import UsageError

TRUST_OF_ORIGIN: Final = {
    Origin.USER: Trust.USER_EXPLICIT,
    Origin.SYSTEM: Trust.SYSTEM_VERIFIED,
    Origin.PROJECT: Trust.PROJECT_VERIFIED,
    Origin.TOOL: Trust.TOOL_VERIFIED,
    Origin.MODEL: Trust.MODEL_INFERRED,
    Origin.EXTERNAL: Trust.EXTERNAL_UNTRUSTED,
    Origin.IMPORT: Trust.UNKNOWN,
    Origin.UNKNOWN: Trust.UNKNOWN,
}

# What a local installation grants its one principal; never global, which takes an act of its own.
LOCAL_GRANTS: Final = (
    *((act, scope) for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER) for act in (Act.READ, Act.WRITE)),
    *((act, scope) for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER) for act in (Act.CREATE, Act.FORGET)),
    (Act.ADMIN, Scope.STORE),
)

UNOWNED: Final = frozenset({Scope.GLOBAL, Scope.STORE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is asking, bound by the host and never by a model.

    ``acts`` is what the host lets through at all: it narrows the ledger's grants and never widens them.
    ``session`` and ``host`` are names. ``project`` is what suggests one; None means that there is no project to
    speak of, and what has no scope goes to the session. ``new_places`` waives the confirmation of a known remote
    at a place where it was not seen before. ``allow_secrets`` names the rules by which nothing that is
    said is taken for a credential. ``below_floor_bytes`` is what a recall may give of what lies below the ``floor``, in
    a section of its own; nothing, unless the host says so.
    """

    principal: str
    origin: Origin = Origin.UNKNOWN
    host: str | None = None
    session: str | None = None
    project: ProjectHints | None = None
    new_places: bool = False
    allow_secrets: tuple[str, ...] = ()
    acts: frozenset[Act] = frozenset(Act)
    floor: Trust = DEFAULT_FLOOR
    below_floor_bytes: int = 0
    limits: Limits = LIBRARY_LIMITS

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.below_floor_bytes <= MAX_BELOW_FLOOR_BYTES:
            raise UsageError(f"below_floor_bytes: 0 to {MAX_BELOW_FLOOR_BYTES}, not {self.below_floor_bytes}")


class Place(NamedTuple):
    """A namespace as authority sees it; ``namespace`` is None for one that is yet to be made."""

    namespace: str | None
    scope: Scope
    owner: str | None


@dataclass(frozen=True, slots=True)
class Denial:
    """An act that was not allowed: what, where, why, and whose."""

    act: Act
    reason: Refusal
    place: Place
    principal: str | None


def reaches(grant: GrantEntry, place: Place) -> bool:
    """Whether a grant is about a place: its own namespace, or its principal's own ones of a scope.

    Global and store belong to nobody, so a grant on those scopes reaches them as they are.
    """
    if grant.namespace is not None:
        return grant.namespace == place.namespace
    if grant.scope is not place.scope:
        return False
    return place.scope in UNOWNED if place.owner is None else place.owner == grant.principal


def authorize(
    act: Act,
    place: Place,
    *,
    principal: str | None,
    grants: Iterable[GrantEntry],
    host_acts: frozenset[Act],
    now: int,
) -> GrantEntry | Refusal:
    """The grant that allows an act, or why there is none.

    A grant on a scope reaches the principal's own namespaces of that scope (global and store belong to nobody);
    one on a namespace reaches exactly that one. The host's list narrows and never widens.
    """
    if act not in host_acts:
        return Refusal.HOST
    expired = False
    for grant in grants:
        if grant.principal != principal or grant.act is not act:
            continue
        if not reaches(grant, place):
            continue
        if grant.expires is not None and grant.expires <= now:
            expired = True
            continue
        return grant
    return Refusal.EXPIRED if expired else Refusal.NO_GRANT


def origin_of(claimed: Origin, *, external: bool) -> Origin:
    """The origin of one record: the caller's, which the writer may only lower to external."""
    if external and TRUST_OF_ORIGIN[claimed] > Trust.EXTERNAL_UNTRUSTED:
        return Origin.EXTERNAL
    return claimed


def trust_of(origin: Origin, sources: Iterable[Trust]) -> Trust:
    """The lowest of what the origin allows and what the sources have; no text and no argument can raise it."""
    return min((TRUST_OF_ORIGIN[origin], *sources))
