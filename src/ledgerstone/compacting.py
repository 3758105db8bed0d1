"""A summary of earlier records, and which of them one could cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ledgerstone import getting, remembering
from ledgerstone.core import rules
from ledgerstone.core.authority import Caller
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.sorts import check_limit, check_moment
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    MAX_COVERS,
    Condensable,
    Draft,
    Kind,
    Record,
    Remembered,
    Scope,
)
from ledgerstone.errors import UsageError
from ledgerstone.identity import Identity, Visible
from ledgerstone.ledger import Ledger
from ledgerstone.reading import Chain, Reading
from ledgerstone.store.protocol import LAST

# What is told and noted, and has no key: what has one is kept up to date by its next version, not by a summary.
CONDENSED: Final = frozenset({Kind.EPISODE, Kind.NOTE})
# Without a time to go by, the newest of a namespace are left as they are: those that its recent lane may show.
KEPT_NEWEST: Final = 64
# How many records of a namespace are looked at, oldest first, and how many groups are proposed.
MOST_LOOKED_AT: Final = 4096
MOST_GROUPS: Final = 64
LEAST_GROUP: Final = 2
BLOCK: Final = 256


def compact(
    ledger: Ledger,
    caller: Caller,
    summary: str,
    covers: str | Sequence[str],
    *,
    sources: Sequence[str],
    key: str | None,
    idempotency_key: str | None,
    allow_secrets: Sequence[str],
) -> Remembered:
    """See ``Memory.compact``."""
    named = (covers,) if isinstance(covers, str) else tuple(covers)
    if not named:
        raise UsageError("compact: what does it cover?", hint="addresses; compaction_candidates proposes some")
    draft = Draft(
        text=summary, kind=Kind.SUMMARY, key=key, sources=tuple(dict.fromkeys((*named, *sources))), covers=named
    )
    rules.check_types(draft)
    with ledger.reads(caller) as (reading, identity):
        where = getting.find(reading, identity, named[0]).where
    return remembering.remember(
        ledger,
        caller,
        (draft,),
        scope=None,
        namespace=where.namespace,
        idempotency_key=idempotency_key,
        allow_secrets=allow_secrets,
        receipt=None,
        similar=False,
    )[0]


def candidates(
    reading: Reading,
    identity: Identity,
    *,
    scope: Scope | None,
    namespace: str | None,
    before: int | None,
    limit: int,
) -> tuple[Condensable, ...]:
    """See ``Memory.compaction_candidates``; it proposes, and writes nothing."""
    check_limit(limit, MOST_GROUPS)
    check_moment("before", before)
    found: list[Condensable] = []
    for where, place in _meant(identity, scope, namespace):
        reading.counted(where)
        groups: dict[tuple[str | None, str | None], list[Record]] = {}
        for position in _old(reading, identity, where, newest=KEPT_NEWEST if before is None else 0):
            record = reading.record(where, place.scope, position)
            if before is None or record.created_at < before:
                # A session is where it was said; what names a source came from there, whoever read it.
                told = (record.source, None if record.source is not None else record.session)
                groups.setdefault(told, []).append(record)
        for (source, session), records in groups.items():
            parts = [records[start : start + MAX_COVERS] for start in range(0, len(records), MAX_COVERS)]
            found += [_group(part, source, session) for part in parts if len(part) >= LEAST_GROUP]
    # The sort is stable: among equals the more specific namespace, and the older group, stays first.
    found.sort(key=lambda group: -group.bytes)
    return tuple(found[:limit])


def _meant(identity: Identity, scope: Scope | None, namespace: str | None) -> Visible:
    visible = identity.in_sight()
    if namespace is not None and all(where.namespace != namespace for where, _ in visible):
        raise unknown(namespace)
    return [
        (where, place)
        for where, place in visible
        if namespace in {None, where.namespace} and scope in {None, place.scope}
    ]


def _old(reading: Reading, identity: Identity, where: Chain, *, newest: int) -> Iterator[int]:
    """The oldest positions, by their columns, that a summary of this caller could cover and none does."""
    floor = max(identity.caller.floor, DEFAULT_FLOOR)
    newer = reading.reader.recent(where.number, before=None, limit=newest) if newest else ()
    kept = frozenset(row.position for row in newer)
    fitting = (
        known.position
        for known in reading.reader.knowns(where.number, 0, LAST)
        if known.current
        and known.kind in CONDENSED
        # What leaves by itself is not to live on in a summary.
        and known.key is None
        and known.expires is None
        and known.trust >= floor
        and known.position not in kept
    )
    room = MOST_LOOKED_AT
    while room and (block := list(islice(fitting, BLOCK))):
        covered = {position for position, _ in reading.reader.covered(where.number, block)}
        free = [position for position in block if position not in covered][:room]
        room -= len(free)
        yield from free


def _group(records: list[Record], source: str | None, session: str | None) -> Condensable:
    return Condensable(
        namespace=records[0].namespace,
        scope=records[0].scope,
        covers=tuple(record.address for record in records),
        source=source,
        session=session,
        since=records[0].created_at,
        until=records[-1].created_at,
        bytes=sum(record.text_bytes for record in records),
    )
