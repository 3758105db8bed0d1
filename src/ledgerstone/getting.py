"""One memory by what names it: its id, an address or a digest; and all its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ledgerstone.core.authority import Place
from ledgerstone.core.values import MAX_GET, Act, Record, Standing, Status
from ledgerstone.errors import CorruptionError, NotFoundError, UsageError
from ledgerstone.identity import Identity, parse_target
from ledgerstone.reading import Chain, Reading


class Found(NamedTuple):
    """Where a record stands that was found for a caller."""

    where: Chain
    place: Place
    position: int


def find(reading: Reading, identity: Identity, target: str) -> Found:
    """Where a caller's target is; the one NotFoundError for what is absent and for what is not theirs.

    The rows that led nowhere are only believed once they were counted.
    """
    wanted = parse_target(target)
    visible = identity.in_sight()
    chains = {where.number: (where, place) for where, place in visible}
    if isinstance(wanted, bytes):
        rows = reading.reader.digests(wanted)
    else:
        memory, version = wanted
        versions = reading.reader.versions(memory)
        rows = [(number, position) for number, position, found in versions if version in {None, found}]
    within = [(number, position) for number, position in rows if number in chains]
    if within:
        number, position = within[-1]
        # A version that followed may be gone as a row: only once they were counted is this one the newest.
        reading.counted(chains[number][0])
        return Found(*chains[number], position)
    if rows:
        identity.passed_over(Act.READ)
    for where, _ in visible:
        reading.counted(where)
    raise NotFoundError(f"no memory {target} here")


def get(reading: Reading, identity: Identity, target: str) -> Record:
    """See ``Memory.get``."""
    where, place, position = find(reading, identity, target)
    record = reading.record(where, place.scope, position)
    if target not in {record.memory, record.address, record.digest.hex()}:
        raise CorruptionError(f"{where.namespace}: entry {position} is not {target}, as its row says")
    if target == record.memory:
        _check_newest(record)
        if record.standing is Standing.ERASED:
            # It says no more whether a version followed it; then the rows are counted.
            reading.counted(where)
    return record


def several(reading: Reading, identity: Identity, targets: Sequence[str]) -> tuple[Record | None, ...]:
    """See ``Memory.get_many``."""
    if not 1 <= len(targets) <= MAX_GET:
        raise UsageError(f"get: 1 to {MAX_GET} ids, not {len(targets)}")
    found: list[Record | None] = []
    for target in targets:
        try:
            found.append(get(reading, identity, target))
        except NotFoundError:
            found.append(None)
    return tuple(found)


def history(reading: Reading, identity: Identity, target: str) -> tuple[Record, ...]:
    """See ``Memory.history``."""
    where, place, position = find(reading, identity, target)
    memory = reading.record(where, place.scope, position).memory
    rows = [row for row in reading.reader.versions(memory) if row[0] == where.number]
    versions = tuple(reading.record(where, place.scope, position) for _, position, _ in rows)
    expected = [(memory, version) for version in range(1, len(versions) + 1)]
    if [(record.memory, record.version) for record in versions] != expected:
        raise CorruptionError(f"{where.namespace}: a version of {memory} is missing")
    _check_newest(versions[-1])
    return versions


def noticed(record: Record, notices: tuple[str, ...]) -> Record:
    """A record with what every answer of its store has to say."""
    return replace(record, notices=notices) if notices else record


def _check_newest(record: Record) -> None:
    """The highest version that was found must not say that another one followed it."""
    followed = record.standing is Standing.SUPERSEDED or (
        record.standing is Standing.RETRACTED and record.status is not Status.RETRACTED
    )
    if followed:
        raise CorruptionError(f"{record.namespace}: what ended {record.address} is missing")
