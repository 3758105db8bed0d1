"""A page of records: open tasks, what stands, or every version, each proven as it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ledgerstone.core import recall
from ledgerstone.core.sorts import check_limit
from ledgerstone.core.values import DEFAULT_FLOOR, MAX_LIST, RECALLED, Page, Record, Trust
from ledgerstone.errors import CorruptionError, UsageError
from ledgerstone.identity import Identity, Visible, problem_notices
from ledgerstone.reading import Chain, Reading
from ledgerstone.store.protocol import View

BLOCK: Final = 64
MOST_TASKS: Final = 1 << 20
LISTS: Final = ("tasks", "recent", "all", "below_floor")
BELOW_FLOOR: Final = "what lies below the trust floor is left out; a person sees it by: ledgerstone list below_floor"
_POSITION: Final = re.compile("[0-9]{1,13}")


def page(reading: Reading, identity: Identity, what: str, *, cursor: str | None, limit: int) -> Page:
    """See ``Memory.list_records``."""
    check_limit(limit, MAX_LIST)
    if what not in LISTS:
        raise UsageError(f"list: {', '.join(LISTS[:-1])} or {LISTS[-1]}, not {what!r}")
    visible, problems = identity.visible()
    for where, _ in visible:
        reading.counted(where)
    start, before = _parse(cursor, visible)
    found: list[Record] = []
    last, cut = "", None
    low = 0
    for order, (where, place) in enumerate(visible[start:], start):
        for position in _positions(reading, where, what, before if order == start else None):
            record = reading.record(where, place.scope, position)
            if what == "tasks" and not recall.is_open(record):
                raise CorruptionError(f"{where.namespace}: {record.address} is not the open task its row says")
            if what != "all" and record.standing not in RECALLED:
                continue
            if (record.trust < identity.caller.floor) is not (what == "below_floor"):
                low += what != "below_floor"
                continue
            if len(found) == limit:
                cut = last
                break
            found.append(record)
            last = f"{where.namespace}:{position}"
        if cut is not None:
            break
    notices = problem_notices(problems) + ([BELOW_FLOOR] if low else [])
    return Page(tuple(found), cut, tuple(notices), {"below_floor": low} if low else {})


def _positions(reading: Reading, where: Chain, what: str, before: int | None) -> Iterator[int]:
    """Positions to look at, newest first, below a position."""
    if what == "tasks":
        tasks = reading.reader.tasks(where.number, Trust.UNKNOWN.value, MOST_TASKS)
        obligations = reading.reader.tasks(where.number, DEFAULT_FLOOR.value, MOST_TASKS)
        if len(obligations) != where.head.counts.open:
            raise CorruptionError(
                f"{where.namespace}: {len(obligations)} open tasks where the head signs for {where.head.counts.open}"
            )
        yield from (task for task in reversed(tasks) if before is None or task < before)
        return
    while rows := reading.reader.recent(where.number, before=before, limit=BLOCK, view=View(every=what == "all")):
        yield from (row.position for row in rows)
        before = rows[-1].position


def _parse(cursor: str | None, visible: Visible) -> tuple[int, int | None]:
    """Where a page goes on: which of the visible namespaces, and below which position."""
    if cursor is None:
        return 0, None
    namespace, _, position = cursor.partition(":")
    for order, (where, _) in enumerate(visible):
        if where.namespace == namespace and _POSITION.fullmatch(position):
            return order, min(int(position), where.head.counts.entries)
    raise UsageError("cursor: not one that a list gave", hint="leave it out to start again")
