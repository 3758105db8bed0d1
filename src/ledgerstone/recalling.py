"""A recall: obligations, then lexical and recent candidates of every namespace in sight, proven as they are chosen."""

from __future__ import annotations

from typing import Final, NamedTuple

from ledgerstone.core import canonical, recall
from ledgerstone.core.authority import Place
from ledgerstone.core.ranking import interleave
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    MAX_QUERY_BYTES,
    Budget,
    Lane,
    Mode,
    Recall,
    Recalled,
    Standing,
)
from ledgerstone.errors import CorruptionError
from ledgerstone.identity import Identity
from ledgerstone.reading import Chain, Reading
from ledgerstone.search import Sieve, search

# A covered record is out of the recent lane only: precise words still find it.
RECALLED: Final = frozenset({Standing.CURRENT, Standing.COVERED})
Visible = list[tuple[Chain, Place]]
# How many records the recent lane looks at in one go.
RECENT_ROWS: Final = 128


class Spot(NamedTuple):
    """A candidate: which of the visible namespaces, and where in it."""

    order: int
    position: int


def assemble(
    reading: Reading, identity: Identity, query: str, mode: Mode, budget: Budget, said: tuple[str, ...] = ()
) -> Recall:
    """The context for a query, with what is ``said`` of its store; see ``Memory.recall``."""
    if query:
        canonical.text(query, name="query", least=1, most=MAX_QUERY_BYTES)
    recall.check_budget(budget)
    visible, problems = identity.visible()
    for where, _ in visible:
        reading.counted(where)
    floor = identity.caller.floor
    sieve = Sieve(floor.value, reading.now)
    notices = [f"{scope}: {problem}" for scope, problem in problems.items()]
    tasks = _tasks(reading, identity, visible) if mode is Mode.BALANCED else []
    scores: dict[Spot, int] = {}
    if mode is not Mode.RECENT:
        scores = _lexical(reading, visible, query, sieve, budget, notices)
    notices += said
    recent = [] if mode is Mode.LEXICAL else _recent(reading, visible, sieve, budget)

    def prove(spot: Spot, rank: int) -> Recalled | str:
        where, place = visible[spot.order]
        record = reading.record(where, place.scope, spot.position)
        if record.standing not in RECALLED:
            return record.standing.value
        if record.trust < floor:
            raise CorruptionError(f"{where.namespace}: the trust of {record.address} is not what its row says")
        lane = Lane.LEXICAL if spot in scores else Lane.RECENT
        return Recalled(record=record, lane=lane, rank=rank, score=scores.get(spot))

    chosen, left_out, used = recall.select(
        tasks, interleave(list(scores), recent), prove, budget=budget, overhead=recall.envelope(notices)
    )
    sieve.omitted.update(left_out)
    return Recall(
        mode=mode,
        query=query,
        items=chosen,
        heads={where.namespace: (where.head.sequence, where.head.id) for where, _ in visible},
        budget=budget,
        bytes=used,
        omitted=dict(sieve.omitted),
        notices=tuple(notices),
    )


def _tasks(reading: Reading, identity: Identity, visible: Visible) -> list[Recalled]:
    """Every obligation; exactly as many as the heads sign for."""
    tasks: list[Recalled] = []
    for where, place in visible:
        expected = where.head.counts.open
        positions = reading.reader.tasks(where.number, DEFAULT_FLOOR.value, expected + 1)
        if len(positions) != expected:
            raise CorruptionError(f"{where.namespace}: {len(positions)} open tasks where the head signs for {expected}")
        for position in positions:
            record = reading.record(where, place.scope, position)
            if not recall.is_open(record):
                raise CorruptionError(f"{where.namespace}: {record.address} is not the open task its row says")
            if record.trust >= identity.caller.floor and record.standing is not Standing.EXPIRED:
                tasks.append(Recalled(record=record, lane=Lane.TASKS, rank=len(tasks)))
    return tasks


def _lexical(
    reading: Reading, visible: Visible, query: str, sieve: Sieve, budget: Budget, notices: list[str]
) -> dict[Spot, int]:
    """The best hits of all namespaces with their scores, best first; ties go to the more specific, then the newer."""
    hits: list[tuple[int, int, int]] = []
    for order, (where, _) in enumerate(visible):
        found = search(reading.reader, where.number, query, sieve, limit=budget.candidates)
        hits += [(-hit.score, order, -hit.position) for hit in found.hits]
        notices += found.notices
    hits.sort()
    return {Spot(order, -position): -score for score, order, position in hits[: budget.candidates]}


def _recent(reading: Reading, visible: Visible, sieve: Sieve, budget: Budget) -> list[Spot]:
    """The newest that stand and that no summary covers, the namespaces taking turns."""
    lanes = []
    for order, (where, _) in enumerate(visible):
        lane: list[Spot] = []
        before: int | None = None
        while len(lane) < budget.candidates:
            rows = reading.reader.recent(where.number, before=before, limit=RECENT_ROWS, every=False)
            lane += [Spot(order, position) for position in _uncovered(reading, where, rows, sieve)]
            if len(rows) < RECENT_ROWS:
                break
            before = rows[-1]
        lanes.append(lane[: budget.candidates])
    return interleave(*lanes)[: budget.candidates]


def _uncovered(reading: Reading, where: Chain, rows: list[int], sieve: Sieve) -> list[int]:
    """Those of some records that may be recalled and that no summary which may be recalled covers."""
    reader, number = reading.reader, where.number
    pairs = reader.covered(number, rows)
    summaries = {row.position for row in reader.candidates(number, [above for _, above in pairs]) if sieve.passes(row)}
    covered = {position for position, above in pairs if above in summaries}
    return [
        row.position for row in reader.candidates(number, rows) if row.position not in covered and sieve.admits(row)
    ]
