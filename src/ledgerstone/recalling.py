"""A recall: obligations, then the candidates of every lane and namespace in sight, proven as they are chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from ledgerstone.core import canonical, concepts, ranking, recall
from ledgerstone.core.recall import Count
from ledgerstone.core.receipts import SCORER
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    MAX_QUERY_BYTES,
    RECALLED,
    Budget,
    Kind,
    Lane,
    Mode,
    Policy,
    Recall,
    Recalled,
    Record,
    Standing,
    Trust,
)
from ledgerstone.core.words import query_words, token
from ledgerstone.errors import CorruptionError, NotFoundError, UsageError
from ledgerstone.identity import Identity
from ledgerstone.reading import Reading
from ledgerstone.search import OWN, Gatherings, Meaning, Sieve, counted, indexed, query_tokens, search, together
from ledgerstone.semantic import Lane as SemanticLane
from ledgerstone.semantic import Raised, Scorer, judged, raised
from ledgerstone.sighting import Sight, sights
from ledgerstone.store.protocol import LAST, NOW, Candidate, Reader, View

# How many records the recent lane looks at in one go, and how many procedures and prospective records of a namespace
# are held against the words of a query.
RECENT_ROWS: Final = 128
MOST_CUES: Final = 256
CUES_LEFT: Final = (
    f"procedural: degraded: only the newest {MOST_CUES} reminders and procedures were held against the query"
)
# How many of the newest records of a namespace are looked at for some that lie below the trust floor.
BELOW_ROWS: Final = 4 * RECENT_ROWS
BELOW_FLOOR: Final = (
    "what lies below the trust floor is left out; the user's setting below_floor_bytes gives it a section of its own"
)
# How many places what was found gets for one of each other lane.
FOUND_TURN: Final = 3
# What every word counts where words only stand in for their meaning.
RELATED: Final = concepts.CONCEPT_WEIGHT
OBLIGED: Final = frozenset({Mode.BALANCED, Mode.HYBRID, Mode.SEMANTIC})


class Spot(NamedTuple):
    """A candidate: which of the visible namespaces, and where in it."""

    order: int
    position: int


class Asked(NamedTuple):
    """One recall, as its steps share it; ``words`` are those of its query, ``gathered`` what the index said of any."""

    reading: Reading
    sights: Sequence[Sight]
    words: Sequence[str]
    policy: Policy
    budget: Budget
    floor: Trust
    meaning: Meaning | None
    gathered: Gatherings


class Candidates(NamedTuple):
    """All candidates in the order in which they are tried, with the lane that gave each, and scores."""

    spots: list[Spot]
    lanes: dict[Spot, Lane]
    scores: dict[Spot, int]


def check(query: str, policy: Policy, budget: Budget) -> None:
    """Refuse what no recall can be asked, with the limit and the offence."""
    if query:
        canonical.text(query, name="query", least=1, most=MAX_QUERY_BYTES)
    recall.check_budget(budget)
    recall.check_policy(policy)


def assemble(
    reading: Reading,
    identity: Identity,
    query: str,
    policy: Policy,
    budget: Budget,
    *,
    semantic: SemanticLane | None,
    scorer: Scorer | None,
    count: Count | None,
    said: tuple[str, ...],
    headed: bool,
) -> Recall:
    r"""The context for what was ``check``\ ed, with what is ``said`` of its store and query; see ``Memory.recall``."""
    if policy.as_of is not None and policy.as_of > reading.now:
        raise UsageError("as_of: a time that has passed; what is to come is not known")
    floor = max(identity.caller.floor, policy.floor or Trust.UNKNOWN)
    seen, notices = sights(reading, identity, policy, floor)
    models: list[str] = []
    meaning = _meaning(reading, query, semantic, scorer, models)
    asked = Asked(reading, seen, query_words(query, None), policy, budget, floor, meaning, {})
    tasks, found, degraded = _gathered(asked)
    notices += degraded
    if len(tasks) == budget.items and found.spots:
        notices.append(f"open tasks take all {budget.items} places: close some, or ask for more items")
    if semantic is None and query:
        notices += _unmeant(asked, scored=scorer is not None)
    # Whoever asks for more than the floor does not ask for what is below it.
    own = floor is identity.caller.floor
    most_below = identity.caller.below_floor_bytes if own else 0
    if own and not most_below and any(sight.sieve.omitted["below_floor"] for sight in seen):
        notices.append(BELOW_FLOOR)
    heads = {sight.where.namespace: sight.head for sight in seen}
    chosen = recall.select(
        tasks,
        found.spots,
        _prover(asked, found),
        budget=budget,
        overhead=recall.envelope(()) + (recall.headed(heads) if headed else 0),
        notices=[*notices, *said],
        count=count,
    )
    left = budget if budget.tokens is None else replace(budget, tokens=budget.tokens - (chosen.tokens or 0))
    below = _below(asked, most_below, left, count)
    return Recall(
        mode=policy.mode,
        query=query,
        items=chosen.items,
        heads=heads,
        budget=budget,
        bytes=chosen.bytes,
        tokens=None if chosen.tokens is None else chosen.tokens + (below.tokens or 0),
        omitted=_omitted(asked, chosen, below),
        notices=chosen.notices,
        scorer=" ".join((SCORER, *dict.fromkeys(models))),
        below_floor=below.items,
        below_floor_bytes=below.bytes,
    )


def _gathered(asked: Asked) -> tuple[list[Recalled], Candidates, list[str]]:
    """The obligations, the candidates, and notices, as the mode has them."""
    mode = asked.policy.mode
    if mode is Mode.TASK_MAINTENANCE:
        return _maintained(asked), Candidates([], {}, {}), []
    tasks = _tasks(asked) if mode in OBLIGED else []
    found, notices = _candidates(asked)
    if tasks:
        # What obliges is there already, and is not left out when the places are used up.
        there = [sight.sieve.shown for sight in asked.sights]
        found = found._replace(spots=[spot for spot in found.spots if spot.position not in there[spot.order]])
    return tasks, found, notices


def _omitted(asked: Asked, chosen: recall.Selection, below: recall.Selection) -> dict[str, int]:
    """How many were left out, by reason, as candidates and by the sieves, less what is shown below the floor."""
    shown = [place for item in below.items for place in asked.reading.reader.digests(item.record.digest)]
    omitted = Counter(chosen.left_out)
    for sight in asked.sights:
        sight.sieve.shown.update(position for number, position in shown if number == sight.where.number)
        omitted.update(sight.sieve.omitted)
    return dict(omitted)


def _below(asked: Asked, most_bytes: int, budget: Budget, count: Count | None) -> recall.Selection:
    """What stands and is live below the floor, by its words and by being new; nothing of it obliges or speaks up."""
    mode = asked.policy.mode
    if not most_bytes or mode is Mode.TASK_MAINTENANCE:
        return recall.NOTHING
    asked = asked._replace(
        sights=[sight._replace(sieve=sight.sieve.underneath(sight.now)) for sight in asked.sights],
        policy=replace(asked.policy, history=False),
        meaning=None,
    )
    own = dict.fromkeys(asked.words, OWN)
    found = Candidates([], {}, {}) if mode is Mode.RECENT else _searched(asked, own)[0]
    recent = [] if mode is Mode.LEXICAL else _recent(asked, BELOW_ROWS)
    spots = ranking.interleave(found.spots, recent, turns=(FOUND_TURN,))
    found = Candidates(spots, dict.fromkeys(recent, Lane.RECENT) | found.lanes, found.scores)
    return recall.section(spots, _prover(asked, found), most_bytes=most_bytes, budget=budget, count=count)


def _prover(asked: Asked, found: Candidates) -> Callable[[Spot, int], Recalled | str]:
    """What proves a candidate, which are to come in about their order, for its rank; or says why it is left out.

    What so many candidates are made of as a context may have entries is read in one go. The more specific of one key
    comes first.
    """
    reading, sights, policy = asked.reading, asked.sights, asked.policy
    origins, tags = frozenset(policy.origins), frozenset(policy.tags)
    spots, step = found.spots, asked.budget.items
    # What was found is shown best first, though another lane may have brought it up before its turn.
    places = {spot: place for place, spot in enumerate(found.scores)}
    upcoming = (spots[start : start + step] for start in range(0, len(spots), step))
    ready: set[Spot] = set()

    def prove(spot: Spot, rank: int) -> Recalled | str:
        if spot not in ready:
            some = next(upcoming)
            ready.update(some)
            for order in {one.order for one in some}:
                reading.prefetch(sights[order].where, [one.position for one in some if one.order == order])
        sight = sights[spot.order]
        record = reading.record(sight.where, sight.place.scope, spot.position, view=sight.sieve.view, now=sight.now)
        if record.text is None:
            return Standing.ERASED.value
        if not policy.history and record.standing not in RECALLED:
            return record.standing.value
        if not sight.sieve.trusts(record.trust):
            raise CorruptionError(f"{record.namespace}: the trust of {record.address} is not what its row says")
        if policy.key not in {None, record.key}:
            raise CorruptionError(f"{record.namespace}: the key of {record.address} is not what its row says")
        if tags and tags.isdisjoint(record.tags):
            raise CorruptionError(f"{record.namespace}: the tags of {record.address} are not what its content says")
        if origins and record.origin not in origins:
            return "filtered"
        lane = found.lanes[spot]
        if lane is Lane.PROCEDURAL and not _cued(record, asked.words, sight.now):
            return "not_due"
        return Recalled(record=record, lane=lane, rank=places.get(spot, rank), score=found.scores.get(spot))

    return _specific_first(asked, found, prove)


def _specific_first(
    asked: Asked, found: Candidates, prove: Callable[[Spot, int], Recalled | str]
) -> Callable[[Spot, int], Recalled | str]:
    """The same, but that a candidate gives its turn to one of the same key in a more specific namespace, if one waits.

    It is tried in the turn of that one.
    """
    reader, sights = asked.reading.reader, asked.sights
    if len(sights) == 1 or asked.policy.history:
        return prove
    # Whose turn it is in the place of whom.
    given: dict[Spot, Spot] = {}
    tried: set[Spot] = set()

    def in_turn(turn: Spot, rank: int) -> Recalled | str:
        spot = given.get(turn, turn)
        item = prove(spot, rank)
        if not isinstance(item, str) and item.record.key is not None:
            for order, sight in enumerate(sights[: spot.order]):
                same = [Spot(order, place) for place in reader.keyed(sight.where.number, item.record.key)]
                waiting = [one for one in same if one in found.lanes and one not in tried]
                if waiting:
                    given[waiting[-1]] = spot
                    tried.add(waiting[-1])
                    return prove(waiting[-1], rank)
        tried.add(spot)
        return item

    return in_turn


def _meaning(
    reading: Reading, query: str, semantic: SemanticLane | None, scorer: Scorer | None, models: list[str]
) -> Meaning | None:
    """What an encoder and a scorer make of a query, if there is one; ``models`` receives who had a say."""
    if scorer is not None:
        scorer.model  # noqa: B018 - refuses one without a name before it is asked
    if (semantic is None and scorer is None) or not query:
        return None

    def meaning(number: int, scores: Mapping[int, int], sieve: Sieve) -> tuple[Mapping[int, int], tuple[str, ...]]:
        found = Raised(dict(scores), (), None)
        if semantic is not None:
            found = raised(reading.reader, number, query, scores, sieve, lane=semantic)
        said = [found]
        if scorer is not None:
            found = judged(reading.reader, number, query, found.scores, scorer=scorer)
            said.append(found)
        models.extend(each.model for each in said if each.model)
        return found.scores, tuple(notice for each in said for notice in each.notices)

    return meaning


def _unmeant(asked: Asked, *, scored: bool) -> list[str]:
    """That meaning was not looked for, where the mode or the vectors that are kept here would have it."""
    mode, reader = asked.policy.mode, asked.reading.reader
    if mode in {Mode.LEXICAL, Mode.RECENT, Mode.TASK_MAINTENANCE}:
        return []
    kept = [reach.model for reach in (reader.vectored(one.where.number) for one in asked.sights) if reach is not None]
    if kept:
        return [f"semantic: degraded: the vectors here are of {kept[0]}, and no encoder is at work"]
    return [] if scored or mode is not Mode.SEMANTIC else ["semantic: no encoder: related words stood in for meaning"]


def _tasks(asked: Asked) -> list[Recalled]:
    """Every obligation, the one that is due first before the others; exactly as many as the heads sign for.

    Of a past state as many as still have their text, and the head signs for no more than there are with the erased.
    """
    reading = asked.reading
    found: list[Record] = []
    for where, place, sieve, now, _, expected in asked.sights:
        view = View(sieve.view.sequence)
        past = view.sequence is not None
        positions = reading.reader.tasks(where.number, DEFAULT_FLOOR.value, LAST if past else expected + 1, view)
        records = [
            (position, reading.record(where, place.scope, position, view=view, now=now)) for position in positions
        ]
        # When an erased task had ended is no longer told: it may have been open then, or not.
        there = [one for one in records if not (past and one[1].standing is Standing.ERASED)]
        if not len(there) <= expected <= len(records):
            raise CorruptionError(f"{where.namespace}: {len(there)} open tasks where the head signs for {expected}")
        for position, record in there:
            if not recall.is_open(record):
                raise CorruptionError(f"{where.namespace}: {record.address} is not the open task its row says")
            if record.trust >= asked.floor and record.standing is not Standing.EXPIRED:
                found.append(record)
                sieve.shown.add(position)
    found.sort(key=lambda record: (record.due is None, record.due or 0))
    return [Recalled(record=record, lane=Lane.TASKS, rank=rank) for rank, record in enumerate(found)]


def _maintained(asked: Asked) -> list[Recalled]:
    """Exactly the open tasks that are named; NotFoundError for one that is none, or not in sight."""
    reading, tasks = asked.reading, asked.policy.tasks
    named = [canonical.parse_address(name) for name in tasks]
    if len({memory for memory, _ in named}) < len(named):
        raise UsageError("tasks: each once, by its id or by its address")
    shown: list[Recalled] = []
    for name, (memory, version) in zip(tasks, named, strict=True):
        for sight in asked.sights:
            number = sight.where.number
            position = reading.reader.newest(number, memory)
            record = None if position is None else reading.record(sight.where, sight.place.scope, position)
            obliges = record is not None and recall.is_open(record) and record.trust >= asked.floor
            if record is not None and obliges and version in {None, record.version}:
                shown.append(Recalled(record=record, lane=Lane.TASKS, rank=len(shown)))
                break
        else:
            raise NotFoundError(f"no open task {name} here", hint="see them: ledgerstone list tasks")
    return shown


def _candidates(asked: Asked) -> tuple[Candidates, list[str]]:
    """The candidates of every lane of the mode, and notices."""
    mode = asked.policy.mode
    found, said = (Candidates([], {}, {}), []) if mode is Mode.RECENT else _found(asked)
    cues, told = _cues(asked) if mode in OBLIGED else ([], [])
    recent = [] if mode is Mode.LEXICAL else _recent(asked)
    newest = frozenset(recent) - found.lanes.keys()
    # What only shares a word with the query, and is not called yet, keeps its place among the newest.
    cues = [spot for spot in cues if spot not in newest or _speaks(asked, spot)]
    lanes = dict.fromkeys(recent, Lane.RECENT) | dict.fromkeys(cues, Lane.PROCEDURAL) | found.lanes
    spots = ranking.interleave(found.spots, cues, recent, turns=(FOUND_TURN,))
    return Candidates(spots, lanes, found.scores), said + told


def _found(asked: Asked) -> tuple[Candidates, list[str]]:
    """What answers the query by its words, by words related to them, and by meaning, best first.

    Balanced looks for related words only where the query's own find nothing, or fewer than half of them occur.
    """
    mode, words = asked.policy.mode, asked.words
    related = {} if mode is Mode.LEXICAL else concepts.related(words, asked.policy.synonyms)
    own = dict.fromkeys(words, OWN)
    if mode is Mode.LEXICAL:
        return _searched(asked._replace(meaning=None), own)[:2]
    if mode is Mode.SEMANTIC:
        found, said, _ = _searched(asked, {})
        if not found.spots:
            # No encoder, or none that works: a word counts no more than what is related to it.
            found, said, _ = _searched(asked, dict.fromkeys(words, RELATED) | related)
        return found, said
    if mode is Mode.HYBRID or asked.policy.synonyms:
        return _searched(asked, own | related)[:2]
    found, said, occurring = _searched(asked, own)
    if related and (not found.spots or 4 * occurring < 3 * len(words)):
        found, said, _ = _searched(asked, own | related)
    return found, said


def _searched(asked: Asked, words: Mapping[str, int]) -> tuple[Candidates, list[str], int]:
    """The best hits of all namespaces, notices, and how many words occur; ties go to the more specific, the newer.

    All namespaces in sight are one corpus: a word is as rare in a small one as in a large one beside it.
    """
    reading, most = asked.reading, asked.budget.candidates
    reader = reading.reader
    hits: list[tuple[int, int, int, bool]] = []
    notices: dict[str, None] = {}
    occurring = 0
    tokens = query_tokens(words).keys()
    counts = []
    for sight in asked.sights:
        number = sight.where.number
        index = reading.kept(sight.where, "index", partial(indexed, reader, number))
        counts.append(counted(reader, number, index, tokens))
    among = together(counts)
    for order, (sight, here) in enumerate(zip(asked.sights, counts, strict=True)):
        number = sight.where.number
        found = search(
            reader,
            number,
            words,
            sight.sieve,
            limit=most,
            meaning=asked.meaning,
            here=here,
            among=among,
            earlier=asked.gathered,
        )
        hits += [(-hit.score, order, -hit.position, hit.worded) for hit in found.hits]
        notices |= dict.fromkeys(found.notices)
        occurring = max(occurring, found.occurring)
    hits.sort()
    best = hits[:most]
    # Meaning may speak so much against a record that its score is below nothing: last it stands, and nothing it shows.
    scores = {Spot(order, -position): max(0, -score) for score, order, position, _ in best}
    lanes = {Spot(order, -place): Lane.LEXICAL if worded else Lane.SEMANTIC for _, order, place, worded in best}
    return Candidates(list(scores), lanes, scores), list(notices), occurring


def _cues(asked: Asked) -> tuple[list[Spot], list[str]]:
    """What speaks up by itself: prospective records that are due, then what holds words of the query, newest first.

    Also says when it was not all held against the query.
    """
    due: list[tuple[int, Spot]] = []
    called: list[tuple[int, Spot]] = []
    said: list[str] = []
    reader, needles = asked.reading.reader, [f" {token(word)} " for word in asked.words]
    for order, sight in enumerate(asked.sights):
        number, sieve = sight.where.number, sight.sieve
        times = dict(reader.due(number, sieve.floor, sight.now, sieve.view))
        due += [(times[position], Spot(order, position)) for position in _passing(reader, sight, times)]
        if not needles:
            continue
        positions = reader.cues(number, sieve.floor, MOST_CUES + 1, sieve.view)
        if len(positions) > MOST_CUES:
            said = [CUES_LEFT]
        waiting = [position for position in positions[:MOST_CUES] if position not in times]
        for row in reader.words_of(number, _passing(reader, sight, waiting)):
            held = sum(needle in row.words for needle in needles)
            if held:
                called.append((-held, Spot(order, row.position)))
    return [spot for _, spot in sorted(due)] + [spot for _, spot in sorted(called, key=lambda one: one[0])], said


def _passing(reader: Reader, sight: Sight, positions: Iterable[int]) -> list[int]:
    """Those positions whose records may be recalled, in their order."""
    rows = reader.candidates(sight.where.number, list(positions), sight.sieve.view)
    return [row.position for row in rows if sight.sieve.passes(row)]


def _speaks(asked: Asked, spot: Spot) -> bool:
    """Whether what stands at a spot speaks up by itself."""
    sight = asked.sights[spot.order]
    record = asked.reading.record(sight.where, sight.place.scope, spot.position, view=sight.sieve.view, now=sight.now)
    return _cued(record, asked.words, sight.now)


def _cued(record: Record, words: Sequence[str], now: int) -> bool:
    """Whether a prospective record's time has come, or all words of one of its triggers occur in the query."""
    if record.kind is not Kind.PROSPECTIVE or (record.due is not None and record.due <= now):
        return True
    return any(set(words).issuperset(query_words(trigger, None)) for trigger in record.triggers)


def _recent(asked: Asked, rows: int = LAST) -> list[Spot]:
    """The newest in view, less what a summary covers unless it is history; the namespaces take turns.

    At most about so many ``rows`` of each are looked at.
    """
    most = asked.budget.candidates
    lanes = [
        [Spot(order, position) for position in _newest(asked.reading, sight, most, rows)]
        for order, sight in enumerate(asked.sights)
    ]
    return ranking.interleave(*lanes)[:most]


def _newest(reading: Reading, sight: Sight, limit: int, rows: int) -> list[int]:
    reader, number, sieve = reading.reader, sight.where.number, sight.sieve
    lane: list[int] = []
    if sieve.only is not None:
        kept = sorted(sieve.only, reverse=True)
        for start in range(0, len(kept), RECENT_ROWS):
            some = list(reader.candidates(number, kept[start : start + RECENT_ROWS], sieve.view))
            lane += _uncovered(sight, _covered(reader, sight, some))
            if len(lane) >= limit:
                break
        return lane[:limit]
    before = sieve.last + 1
    while len(lane) < limit and rows > 0:
        rows -= RECENT_ROWS
        read = partial(_block, reader, sight, before)
        newest = (sieve.view, before) == (NOW, LAST + 1)
        block = reading.kept(sight.where, "newest", read) if newest else read()
        lane += _uncovered(sight, block)
        if len(block.rows) < RECENT_ROWS or block.rows[-1].position <= sieve.first:
            break
        before = block.rows[-1].position
    return lane[:limit]


class _Block(NamedTuple):
    """Some records, newest first, which summary covers which of them, and those summaries."""

    rows: Sequence[Candidate]
    pairs: Sequence[tuple[int, int]]
    above: Sequence[Candidate]


def _block(reader: Reader, sight: Sight, before: int) -> _Block:
    rows = reader.recent(sight.where.number, before=before, limit=RECENT_ROWS, view=sight.sieve.view)
    return _covered(reader, sight, rows)


def _covered(reader: Reader, sight: Sight, rows: Sequence[Candidate]) -> _Block:
    number, view = sight.where.number, sight.sieve.view
    pairs = [] if view.every else reader.covered(number, [row.position for row in rows], view)
    return _Block(rows, pairs, list(reader.candidates(number, [summary for _, summary in pairs], view)))


def _uncovered(sight: Sight, block: _Block) -> list[int]:
    """Those of some records that may be recalled and that no summary which may be recalled covers."""
    summaries = {row.position for row in block.above if sight.sieve.passes(row)}
    covered = {position for position, summary in block.pairs if summary in summaries}
    return [row.position for row in block.rows if row.position not in covered and sight.sieve.admits(row)]
