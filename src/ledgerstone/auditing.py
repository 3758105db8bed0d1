"""The audit trail: a reading of the chains, newest first, each event proven by its links to the signed head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappush, heapreplace
from typing import Final

from ledgerstone.core import canonical, entries
from ledgerstone.core.entries import (
    CloseEntry,
    Entry,
    ErasureEntry,
    ExportEntry,
    GrantEntry,
    Header,
    NameEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RefusalEntry,
    RestoreEntry,
    RetractEntry,
    SettingEntry,
)
from ledgerstone.core.sorts import check_limit, check_moment
from ledgerstone.core.values import Act, Event, Scope
from ledgerstone.errors import CorruptionError, NotFoundError
from ledgerstone.identity import Identity
from ledgerstone.reading import Chain, Reading

MAX_EVENTS: Final = 1000


def trail(
    reading: Reading, identity: Identity, *, target: str | None, limit: int, before: int | None
) -> tuple[Event, ...]:
    """See ``Memory.audit``."""
    check_limit(limit, MAX_EVENTS)
    check_moment("before", before)
    memory = None if target is None else canonical.parse_address(target)[0]
    chains = [where for where, _ in identity.in_sight()]
    if memory is not None:
        numbers = {number for number, _, _ in reading.reader.versions(memory)}
        chains = [where for where in chains if where.number in numbers]
        if not chains:
            raise NotFoundError(f"no memory {target} here")
    found = [event for where in chains for event in _events(reading, where, memory=memory, limit=limit, before=before)]
    if memory is None:
        everything, own = identity.may(Act.ADMIN, identity.store_place), identity.caller.principal
        found += [
            event
            for event in _events(reading, reading.store, memory=None, limit=limit, before=before)
            if everything or (event.refusal is not None and event.principal == own)
        ]
    found.sort(key=lambda event: (-event.at, event.namespace, -event.sequence, -event.place))
    shown = found[:limit]
    return tuple(_discreet(event, identity) for event in shown) if identity.hides(Scope.USER) else tuple(shown)


def _events(reading: Reading, where: Chain, *, memory: str | None, limit: int, before: int | None) -> Iterator[Event]:
    """The newest events of one chain, ``limit`` where there are as many, or more; of one memory, or before a time.

    An event may be older than its commit, which tells it late: refusals are. So a commit is passed over only when none
    of its events can be meant.
    """
    late = where.number == reading.store.number
    newest: list[int] = []
    for _, commit, data in reading.linked(where):
        header = entries.decode_header(data)
        if len(newest) >= limit and header.stamp.at <= newest[0]:
            return
        if before is not None and header.stamp.at >= before and not late:
            continue
        for event in _of_commit(reading, where, commit, header, memory):
            wanted = memory is None or (event.target or "").partition("@")[0] == memory
            if wanted and (before is None or event.at < before):
                heappush(newest, event.at) if len(newest) < limit else heapreplace(newest, max(event.at, newest[0]))
                yield event


def _discreet(event: Event, identity: Identity) -> Event:
    """An event as it may be shown: a namespace that isolation hides is not named in it."""
    target = None if event.target is not None and identity.hidden(event.target) else event.target
    place = identity.place(event.namespace)
    told = event.namespace if place is None or not identity.hides(place.scope) else place.scope.value
    return replace(event, target=target, namespace=told)


def _of_commit(reading: Reading, where: Chain, commit: bytes, header: Header, memory: str | None) -> Iterator[Event]:
    for index, position in reversed(list(enumerate(header.positions))):
        data = reading.reader.entry(where.number, position)
        if data is None or entries.digest_of(data) != header.entries[index]:
            raise CorruptionError(f"{where.namespace}: entry {position} is not the one its commit lists")
        yield _event(reading, where, commit, header, index, entries.decode_entry(data), memory=memory)


def _event(
    reading: Reading, where: Chain, commit: bytes, header: Header, index: int, entry: Entry, *, memory: str | None
) -> Event:
    stamp = header.stamp
    at, principal, namespace = stamp.at, stamp.principal, where.namespace
    operation, target, refusal, count = entry.noun, None, None, 1
    previous = new = None
    overrides: tuple[str, ...] = ()
    match entry:
        case RecordEntry():
            operation = "remember" if entry.promotion is None else "promote"
            target = f"{entry.memory}@{entry.version}"
            previous, new = entry.version - 1, entry.version
            overrides = entry.overrides
        case CloseEntry() | RetractEntry():
            target = f"{entry.memory}@{entry.version}"
            previous, new = entry.version - 1, entry.version
        case RefusalEntry():
            operation, refusal, count, at = entry.act.value, entry.reason.value, entry.count, entry.last
            principal = entry.principal or "unknown"
            namespace = entry.namespace or (entry.scope.value if entry.scope is not None else namespace)
        case ErasureEntry():
            operation, count = "forget", len(entry.erases) + len(entry.strikes)
            # Of many only the memory that is asked for is named.
            if entry.erases and (memory is not None or count == 1):
                erased = (reading.address(where, digest) for digest in entry.erases)
                target = next((one for one in erased if memory in {None, one.partition("@")[0]}), None)
        case GrantEntry():
            target = entry.grant
        case NamespaceEntry() | RestoreEntry() | ExportEntry() | SettingEntry():
            target = entry.namespace
        case PartingEntry():
            count = len(entry.without)
        case NameEntry():
            target = entry.id
        case PromotionEntry():
            target = entry.source_namespace
        case _:
            pass
    return Event(
        id=f"{commit.hex()}/{index}",
        at=at,
        principal=reading.named(principal) or principal,
        operation=operation,
        namespace=namespace,
        target=target,
        origin=stamp.origin,
        grant=stamp.grant,
        binding=stamp.binding,
        session=reading.named(stamp.session),
        host=reading.named(stamp.host),
        refusal=refusal,
        count=count,
        previous_version=previous,
        new_version=new,
        overrides=overrides,
        sequence=header.sequence,
        place=index,
    )
