"""What was refused: told to whoever asked, and counted until a commit of the store chain holds it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ledgerstone.core.authority import UNOWNED, Caller, Denial
from ledgerstone.core.entries import RefusalEntry
from ledgerstone.core.values import Act, Refusal, Scope
from ledgerstone.errors import AuthorityError

MAX_REFUSALS: Final = 256
_HOST_HINT: Final = "the user does it at a terminal"
_WHY: Final = {
    Refusal.NO_GRANT: "no grant",
    Refusal.EXPIRED: "the grant has run out",
    Refusal.HOST: "not through this door",
    Refusal.UNBOUND: "nothing is bound there",
}


def refused(caller: Caller, denial: Denial) -> AuthorityError:
    """What a caller is told of a denial, and what to do about it."""
    return AuthorityError(
        f"{caller.principal} may not {_denied_act(denial)}: {_WHY[denial.reason]}", hint=_denied_hint(caller, denial)
    )


def _denied_hint(caller: Caller, denial: Denial) -> str:
    """What to do about a refusal, once somebody may know of it."""
    if denial.reason is Refusal.HOST:
        return _HOST_HINT
    place, act = denial.place, denial.act
    # A grant on a scope reaches one's own namespaces alone.
    own = place.namespace is None or place.scope in UNOWNED or place.owner == denial.principal
    where = f"--scope {place.scope.value}" if own else f"--namespace {place.namespace}"
    takes = "it takes a grant of its own" if act is Act.PROMOTE else "whoever administers may grant it"
    return f"{takes}: ledgerstone grants add {caller.principal} {act.value} {where}"


def _denied_act(denial: Denial) -> str:
    """What is not allowed, and where, in words; what belongs to no namespace was asked of all of them."""
    if denial.place.scope is not Scope.STORE:
        return f"{denial.act.value} in scope {denial.place.scope.value}"
    return "administer the store" if denial.act is Act.ADMIN else f"{denial.act.value} anywhere"


class Refusals:
    """The refusals that no commit holds yet: one of each sort, with how often it was. May be shared by threads."""

    __slots__ = ("_lock", "_noted")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[tuple[object, ...], RefusalEntry] = {}

    def note(self, denial: Denial, now: int) -> None:
        """Count a denial; past the limit of different ones only their number is kept."""
        place = denial.place
        one = RefusalEntry(
            act=denial.act,
            reason=denial.reason,
            count=1,
            first=now,
            last=now,
            principal=denial.principal,
            scope=place.scope,
            namespace=place.namespace,
        )
        with self._lock:
            if _sort(one) not in self._noted and len(self._noted) >= MAX_REFUSALS:
                one = replace(one, principal=None, scope=Scope.STORE, namespace=None)
            self._add(one)

    def take(self) -> list[RefusalEntry]:
        """All of them, which are noted no more."""
        with self._lock:
            noted, self._noted = self._noted, {}
        return list(noted.values())

    def put_back(self, noted: Iterable[RefusalEntry]) -> None:
        """Note again what was taken and could not be written."""
        with self._lock:
            for one in noted:
                self._add(one)

    def _add(self, one: RefusalEntry) -> None:
        before = self._noted.get(_sort(one))
        if before is not None:
            first, last = min(before.first, one.first), max(before.last, one.last)
            one = replace(one, count=before.count + one.count, first=first, last=last)
        self._noted[_sort(one)] = one


def _sort(one: RefusalEntry) -> tuple[object, ...]:
    return one.act, one.reason, one.scope, one.namespace, one.principal
