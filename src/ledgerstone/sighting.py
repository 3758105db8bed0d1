"""The namespaces that a recall looks at, as its policy wants them seen: now, or as their chains stood then."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from ledgerstone.core import chain, entries
from ledgerstone.core.authority import Place
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.values import Policy, Scope, Trust
from ledgerstone.errors import UsageError
from ledgerstone.identity import Identity, Visible, problem_notices
from ledgerstone.reading import Chain, Reading
from ledgerstone.search import Sieve
from ledgerstone.store.protocol import LAST, Reader, View


class Sight(NamedTuple):
    """One namespace as a recall looks at it: its chain, its place, and what may be let through.

    ``now`` is the moment that expiry is judged by: the present, or that of the past state.
    """

    where: Chain
    place: Place
    sieve: Sieve
    now: int
    head: tuple[int, bytes]
    open: int


def sights(reading: Reading, identity: Identity, policy: Policy, floor: Trust) -> tuple[list[Sight], list[str]]:
    """Every namespace that was asked for and had been made by then, and notices of those that were not resolved."""
    visible, problems = _visible(identity, policy)
    seen = (_sight(reading, where, place, policy, floor) for where, place in visible)
    return [sight for sight in seen if sight is not None], problem_notices(problems)


def _visible(identity: Identity, policy: Policy) -> tuple[Visible, dict[str, str]]:
    """The namespaces asked for, of those that the caller is bound to or names and may read; what was unresolved."""
    visible: Visible = []
    problems: dict[str, str] = {}
    if policy.scopes or not policy.namespaces:
        bound, problems = identity.visible()
        scopes = frozenset(policy.scopes or Scope)
        visible = [(where, place) for where, place in bound if place.scope in scopes]
        problems = {scope: problem for scope, problem in problems.items() if scope in scopes}
    for namespace in policy.namespaces:
        place = identity.target(None, namespace).place
        if not identity.sees(place):
            raise unknown(namespace)
        if all(where.namespace != namespace for where, _ in visible):
            visible.append((identity.chain(namespace), place))
    return visible, problems


def _sight(reading: Reading, where: Chain, place: Place, policy: Policy, floor: Trust) -> Sight | None:
    """A namespace as the policy wants it seen: now, or as its chain stood then; None before it was made."""
    reading.counted(where)
    head = where.head
    now, sequence, commit, open_tasks = reading.now, head.sequence, head.id, head.counts.open
    view = View(every=policy.history)
    span = 0, LAST
    stamped = _Times(reading, where)
    if policy.as_of is not None or policy.at is not None:
        sequence = policy.at if policy.at is not None else stamped.through(policy.as_of or 0)
        if sequence > head.sequence:
            raise UsageError(f"at: {where.namespace} stands at {head.sequence}, not yet at {sequence}")
        if sequence < 0:
            return None
        commit, header = stamped.commit(sequence)
        now = header.stamp.at if policy.as_of is None else policy.as_of
        open_tasks = header.counts.open
        span = 0, header.counts.entries - 1
        view = View(sequence, every=policy.history)
    if policy.since is not None:
        span = stamped.entries(policy.since - 1), span[1]
    if policy.until is not None:
        span = span[0], min(span[1], stamped.entries(policy.until) - 1)
    sieve = Sieve(
        floor.value,
        None if policy.history else now,
        kinds=frozenset(policy.kinds),
        span=span,
        only=_only(reading.reader, where.number, policy),
        view=view,
    )
    return Sight(where, place, sieve, now, (sequence, commit), open_tasks)


def _only(reader: Reader, number: int, policy: Policy) -> frozenset[int] | None:
    """The positions that the key and the tags of a policy keep to; None where it names none."""
    kept = [] if policy.key is None else [frozenset(reader.keyed(number, policy.key))]
    if policy.tags:
        kept.append(frozenset(position for tag in policy.tags for position in reader.tagged(number, tag)))
    return frozenset.intersection(*kept) if kept else None


class _Times:
    """When the commits of a chain were made: times never run backwards in one, so they are searched by halves."""

    __slots__ = ("_reading", "_where")

    def __init__(self, reading: Reading, where: Chain) -> None:
        self._reading = reading
        self._where = where

    def commit(self, sequence: int) -> tuple[bytes, entries.Header]:
        """The id and the header of a commit."""
        return chain.read(self._reading.header(self._where, sequence))

    def through(self, moment: int) -> int:
        """The last commit that was made by a time; -1 when none was."""
        return (
            bisect_right(range(self._where.head.sequence + 1), moment, key=lambda one: self.commit(one)[1].stamp.at) - 1
        )

    def entries(self, moment: int) -> int:
        """How many entries there were by a time."""
        last = self.through(moment)
        return 0 if last < 0 else self.commit(last)[1].counts.entries
