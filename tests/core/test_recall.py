"""Choosing as a function: obligations, then what fits, with a count of what did not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import canonical, entries, recall, rules
from ledgerstone.core.entries import Content
from ledgerstone.core.facts import Slot
from ledgerstone.core.projection import Folded, project
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    MAX_INTEGER,
    MAX_KEY_BYTES,
    MAX_MAINTAINED,
    MAX_NAMED,
    Budget,
    Draft,
    Kind,
    Lane,
    Mode,
    Origin,
    Policy,
    Recalled,
    Record,
    Retention,
    Scope,
    Standing,
    Status,
    Trust,
)
from ledgerstone.errors import CapacityError, RuleError, UsageError
from tests.core.chains import PROJECT, opaque, writing

OVERHEAD = 100


def size(entry: dict[str, Any]) -> int:
    """The bytes of an entry in compact JSON, with the comma that joins it to the next."""
    return len(canonical.encode(entry)) + 1


def record(
    number: int, text: str = "Cedar.", *, open_task: bool = False, standing: Standing = Standing.CURRENT
) -> Record:
    """A record that a test can tell."""
    memory = opaque("mem", number)
    return Record(
        memory=memory,
        version=1,
        address=canonical.address(memory, 1),
        digest=number.to_bytes(32, "big"),
        namespace=PROJECT,
        scope=Scope.PROJECT,
        kind=Kind.TASK if open_task else Kind.NOTE,
        status=Status.OPEN if open_task else Status.ACTIVE,
        standing=standing,
        retention=Retention.LONG_TERM,
        origin=Origin.USER,
        trust=Trust.USER_EXPLICIT,
        principal="ada",
        session=None,
        host=None,
        created_at=0,
        sequence=number,
        text=text,
        text_bytes=len(text.encode()),
    )


def task(number: int, text: str = "Water.") -> Recalled:
    """An obligation."""
    return Recalled(record=record(number, text, open_task=True), lane=Lane.TASKS, rank=number)


def prove(found: Record | str, rank: int) -> Recalled | str:
    """A candidate that is its own proof, or a reason."""
    return found if isinstance(found, str) else Recalled(record=found, lane=Lane.LEXICAL, rank=rank)


def cost(item: Recalled) -> int:
    """What an entry takes of the budget."""
    return size(recall.lean(item.record, item.lane))


sizes = st.lists(st.integers(1, 400), max_size=12)


@given(tasks=sizes, rest=sizes, budget=st.integers(512, 3000), items=st.integers(1, 16))
def test_a_context_is_tasks_and_then_what_fits(tasks: list[int], rest: list[int], budget: int, items: int) -> None:
    """All tasks or an error; of the rest everything that the bytes and items left allow, in its order."""
    obliged = [task(number, "t" * size) for number, size in enumerate(tasks)]
    candidates: list[Record | str] = [record(100 + number, "r" * size) for number, size in enumerate(rest)]
    need = OVERHEAD + sum(map(cost, obliged))
    limits = Budget(bytes=budget, items=items)

    if need > budget or len(obliged) > items:
        with pytest.raises(CapacityError, match=f"the {len(obliged)} open tasks need {need} bytes and {len(obliged)}"):
            recall.select(obliged, candidates, prove, budget=limits, overhead=OVERHEAD)
        return
    chosen, left_out, used, _, _ = recall.select(obliged, candidates, prove, budget=limits, overhead=OVERHEAD)

    assert list(chosen[: len(obliged)]) == obliged
    assert used == OVERHEAD + sum(map(cost, chosen)) <= budget
    assert len(chosen) <= items
    assert len(chosen) - len(obliged) + sum(left_out.values()) == len(candidates)
    places = [item.record.sequence for item in chosen[len(obliged) :]]
    assert places == sorted(places)
    if left_out.get("bytes"):
        others = [one for one in candidates if isinstance(one, Record) and one.sequence not in places]
        smallest = min(size(recall.lean(one, Lane.LEXICAL)) for one in others)
        assert used + smallest > budget or len(chosen) == items


def test_what_is_not_admitted_is_counted_by_its_reason() -> None:
    """And does not take a place."""
    candidates: list[Record | str] = ["stale", "stale", record(1), "expired", "stale"]

    chosen, left_out, _, _, _ = recall.select([], candidates, prove, budget=Budget(items=1), overhead=0)

    assert [item.record.sequence for item in chosen] == [1]
    assert left_out == {"stale": 2, "items": 2}


def test_what_fills_a_budget_to_the_byte_is_taken() -> None:
    """With a byte less it is left out, for want of bytes."""
    need = OVERHEAD + size(recall.lean(record(1, "r" * 500)))

    taken = recall.select([], [record(1, "r" * 500)], prove, budget=Budget(bytes=need), overhead=OVERHEAD)
    left = recall.select([], [record(1, "r" * 500)], prove, budget=Budget(bytes=need - 1), overhead=OVERHEAD)

    assert (taken.bytes, taken.left_out) == (need, {})
    assert (left.items, left.left_out) == ((), {"bytes": 1})


def test_a_candidate_is_told_its_place() -> None:
    """Counted with the tasks, and without what was not taken."""
    candidates: list[Record | str] = [record(1), "stale", record(2)]
    places: list[int] = []

    def note(found: Record | str, place: int) -> Recalled | str:
        places.append(place)
        return prove(found, place)

    recall.select([task(0)], candidates, note, budget=Budget(), overhead=0)

    assert places == [1, 2, 2]


def test_an_entry_costs_what_it_says_of_its_lane() -> None:
    """Of every lane but the lexical one it is named."""

    def new(found: Record, rank: int) -> Recalled:
        return Recalled(record=found, lane=Lane.RECENT, rank=rank)

    chosen, _, used, _, _ = recall.select([], [record(1)], new, budget=Budget(), overhead=OVERHEAD)

    assert used == OVERHEAD + cost(chosen[0]) == OVERHEAD + size(recall.lean(record(1), None)) + 16


def test_what_is_there_already_is_passed_over() -> None:
    """Neither chosen twice nor counted as left out."""
    candidates: list[Record | str] = [record(1, open_task=True), record(2), record(2)]

    chosen, left_out, _, _, _ = recall.select([task(1)], candidates, prove, budget=Budget(), overhead=0)

    assert [item.record.sequence for item in chosen] == [1, 2]
    assert left_out == {}


def test_a_rank_is_a_place_in_the_context() -> None:
    """Counted over all lanes."""
    candidates: list[Record | str] = [record(1), "stale", record(2)]

    chosen, _, _, _, _ = recall.select([task(0)], candidates, prove, budget=Budget(), overhead=0)

    assert [item.rank for item in chosen] == [0, 1, 2]


@pytest.mark.parametrize(
    ("bytes_", "items", "hint"),
    [(512, 16, "raise the budget to 640 bytes and 16 items"), (8192, 3, "raise the budget to 8192 bytes and 4 items")],
)
def test_the_hint_names_a_budget_that_suffices(bytes_: int, items: int, hint: str) -> None:
    """Of what is too small the need, of what suffices what was given."""
    tasks = [task(number) for number in range(4)]

    with pytest.raises(CapacityError) as refused:
        recall.select(tasks, [], prove, budget=Budget(bytes=bytes_, items=items), overhead=OVERHEAD)

    assert refused.value.hint.startswith(hint)
    wide = Budget(bytes=640, items=4)
    assert recall.select(tasks, [], prove, budget=wide, overhead=OVERHEAD)[2] <= 640


def test_a_lean_entry_holds_what_a_model_needs() -> None:
    """Always five members; key, status and due where there are any."""
    note = record(1)
    least = {"id": note.address, "text": "Cedar.", "kind": "note", "scope": "project", "trust": "user_explicit"}
    full = replace(note, key="tree", status=Status.CLOSED, due=0)

    assert recall.lean(note) == least
    assert recall.lean(full) == {**least, "key": "tree", "status": "closed", "due": "1970-01-01T00:00:00.000000Z"}


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("lane", [None, *Lane])
def test_a_lean_entry_says_what_is_not_the_default(standing: Standing, lane: Lane | None) -> None:
    """Standing unless it is current, and lane unless it is lexical."""
    entry = recall.lean(record(1, standing=standing), lane)

    assert entry.get("standing", "current") == standing.value
    assert entry.get("lane", "lexical") == (lane or Lane.LEXICAL).value
    assert ("standing" in entry, "lane" in entry) == (
        standing is not Standing.CURRENT,
        lane not in {None, Lane.LEXICAL},
    )


@pytest.mark.parametrize("standing", Standing)
def test_an_open_task_is_open_until_something_ends_it(standing: Standing) -> None:
    """Covered or expired it is open still; superseded, retracted or erased it is not, and a note never."""
    ended = standing not in {Standing.CURRENT, Standing.COVERED, Standing.EXPIRED}

    assert recall.is_open(record(1, open_task=True, standing=standing)) != ended
    assert not recall.is_open(record(1, standing=standing))


@given(notices=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=4))
def test_notices_count(notices: list[str]) -> None:
    """Every notice adds its bytes to the envelope."""
    assert recall.envelope(notices) >= recall.envelope([]) + sum(len(notice.encode()) for notice in notices)


@pytest.mark.parametrize("tokens", [None, 300])
def test_notices_take_what_the_tasks_leave(tokens: int | None) -> None:
    """Whole, in their order; one that does not fit is counted, and never costs a task its place."""
    bare = recall.envelope(())
    room = recall.envelope(["short"]) + cost(task(0))
    budget = Budget(bytes=room, tokens=tokens)

    with_task = recall.select([task(0)], [], prove, budget=budget, overhead=bare, notices=["n" * 600, "short", "more"])
    without = recall.select([], [], prove, budget=budget, overhead=bare, notices=["n" * 600])

    assert (list(with_task.items), with_task.notices) == ([task(0)], ("short",))
    assert with_task.left_out == {"notices": 2}
    assert with_task.bytes == room
    assert (without.items, without.notices, without.left_out) == ((), (), {"notices": 1})


# Single characters whose canonical form is as long as their UTF-8, longer, and much longer.
SIGNS = ["a", "\u00e9", "\U0001f333", '"', "\\", "\n", "\x01", "\u2028"]
# A context's notices may take so many bytes beside the longest tasks, and there are no more of them than this.
NOTICE_BYTES = 560
NOTICES = 8


@st.composite
def obligations(draw: st.DrawFn) -> list[Content]:
    """Open tasks that the rules admit side by side; one that is too long fills what is left to the byte."""
    folded = Folded()
    admitted: list[Content] = []
    wanted = draw(st.lists(st.tuples(st.sampled_from(SIGNS), st.integers(1, 1200)), min_size=1, max_size=20))
    for number, (sign, length) in enumerate(wanted):
        keyed = draw(st.booleans())
        # Together as long as a key may be, and different.
        key = f"{number:02}" + sign * ((MAX_KEY_BYTES - 2) // len(sign.encode())) if keyed else None
        due = draw(st.sampled_from([None, 0, MAX_INTEGER]))
        least = entries.encode_content(Content(text=sign, key=key, due=due))
        count, size = folded.open_tasks()
        room = rules.MAX_OPEN_TASK_BYTES - size - (count + 1) * rules.TASK_OVERHEAD_BYTES - len(least)
        step = len(canonical.encode(sign)) - 2
        most = 1 + room // step
        draft = Draft(text=sign * max(1, min(length, most)), kind=Kind.TASK, key=key, due=due)
        try:
            entry = rules.enter(draft, writing(seed=number), folded)
        except RuleError:
            continue
        slot = Slot(number, number, entry.digest)
        folded.apply(project(entry.entry, entry.content, slot, folded), slot)
        folded.boundary = number + 1
        assert entry.content is not None
        admitted.append(entry.content)
    return admitted


@given(contents=obligations(), notices=st.lists(st.text(max_size=20), max_size=NOTICES), data=st.data())
def test_a_default_recall_holds_all_tasks_that_are_admitted(
    contents: list[Content], notices: list[str], data: st.DataObject
) -> None:
    """In their longest form, with the longest key, and 560 bytes of notices beside them; each for what it counts."""
    scope = data.draw(st.sampled_from(Scope))
    trust = data.draw(st.sampled_from([trust for trust in Trust if trust >= DEFAULT_FLOOR]))
    tasks = [longest(number, content, scope, trust) for number, content in enumerate(contents)]
    size = sum(len(notice.encode()) for notice in notices)
    full = [*notices[: NOTICES - 1], "n" * max(0, NOTICE_BYTES - size)]

    chosen, left_out, used, _, said = recall.select(
        tasks, [], prove, budget=Budget(), overhead=recall.envelope(()), notices=full
    )

    assert (list(chosen), left_out, list(said)) == (tasks, {}, full)
    assert used <= Budget().bytes
    for item, content in zip(tasks, contents, strict=True):
        assert cost(item) <= len(entries.encode_content(content)) + rules.TASK_OVERHEAD_BYTES


def longest(number: int, content: Content, scope: Scope, trust: Trust) -> Recalled:
    """A task as it is recalled, under the longest address that there can be."""
    made = record(number, content.text or "", open_task=True)
    where = canonical.address(made.memory, MAX_INTEGER)
    whole = replace(made, address=where, scope=scope, trust=trust, key=content.key, due=content.due)
    return Recalled(record=whole, lane=Lane.TASKS, rank=number)


@pytest.mark.parametrize(("tasks", "fits"), [(rules.MAX_OPEN_TASKS, True), (rules.MAX_OPEN_TASKS + 1, False)])
def test_a_default_recall_holds_as_many_tasks_as_are_admitted(tasks: int, *, fits: bool) -> None:
    """The rules' number of open tasks is the default budget's number of items."""
    obliged = [task(number) for number in range(tasks)]

    if not fits:
        with pytest.raises(CapacityError, match="the 17 open tasks need"):
            recall.select(obliged, [], prove, budget=Budget(), overhead=OVERHEAD)
        return

    assert len(recall.select(obliged, [], prove, budget=Budget(), overhead=OVERHEAD)[0]) == tasks


TASKS = tuple(f"{opaque('mem', number)}@1" for number in range(MAX_MAINTAINED))
SPACES = tuple(opaque("ns", number) for number in range(MAX_NAMED + 1))


@pytest.mark.parametrize(
    ("followed", "refused", "offence"),
    [
        (
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS),
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=(*TASKS, f"{opaque('mem', 99)}@1")),
            "tasks: 1 to 8, each once, not 9",
        ),
        (
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1]),
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1] * 2),
            "tasks: 1 to 8, each once, not 2",
        ),
        (
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1]),
            Policy(mode=Mode.TASK_MAINTENANCE),
            "shows the open tasks that are named",
        ),
        (Policy(), Policy(tasks=TASKS[:1]), "no other mode does"),
        (Policy(namespaces=SPACES[:-1]), Policy(namespaces=SPACES), "namespaces: at most 32, not 33"),
        (Policy(as_of=5), Policy(as_of=5, at=5, namespaces=SPACES[:1]), "one of them says which past state is meant"),
        (Policy(at=5, namespaces=SPACES[:1]), Policy(at=5), "exactly one namespace is named"),
        (Policy(at=5, namespaces=SPACES[:1]), Policy(at=5, namespaces=SPACES[:2]), "exactly one namespace is named"),
        (
            Policy(at=5, namespaces=SPACES[:1]),
            Policy(at=5, namespaces=SPACES[:1], scopes=(Scope.USER,)),
            "exactly one namespace is named",
        ),
        (
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1]),
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1], as_of=5),
            "settled as they stand now",
        ),
        (
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1]),
            Policy(mode=Mode.TASK_MAINTENANCE, tasks=TASKS[:1], history=True),
            "settled as they stand now",
        ),
        (Policy(as_of=0), Policy(as_of=-1), "as_of: whole microseconds UTC from 0 to 9007199254740991, not -1"),
        (
            Policy(at=MAX_INTEGER, namespaces=SPACES[:1]),
            Policy(at=-1, namespaces=SPACES[:1]),
            "at: a sequence from 0 to 9007199254740991, not -1",
        ),
        (Policy(since=MAX_INTEGER), Policy(since=MAX_INTEGER + 1), "since: whole microseconds UTC"),
        (Policy(key="k" * 128), Policy(key="k" * 129), "key: 1 to 128 bytes, not 129"),
        (Policy(tags=("t" * 64,)), Policy(tags=("t" * 65,)), "tags: 1 to 64 bytes, not 65"),
        (Policy(tags=SPACES[:16]), Policy(tags=SPACES[:17]), "tags: at most 16, each once, not 17"),
        (Policy(tags=("t", "T")), Policy(tags=("t", "t")), "tags: at most 16, each once, not 2"),
        (
            Policy(mode=Mode.RECENT, synonyms={"a1": ["x"]}),
            Policy(mode=Mode.RECENT, synonyms={"a1": ["\udcff"]}),
            "synonyms: valid Unicode, not a lone surrogate",
        ),
        (Policy(kinds=(Kind.NOTE,)), Policy(kinds=3), "kinds: a tuple of Kinds"),  # type: ignore[arg-type]
        (Policy(until=1), Policy(until=True), "until: a whole number or None, not bool"),
        (Policy(since=5, until=5), Policy(since=5, until=4), "since: not after until"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(followed: Policy, refused: Policy, offence: str) -> None:
    """The error names what does, and the neighbour that does not is followed."""
    recall.check_policy(followed)

    with pytest.raises((RuleError, UsageError), match=offence):
        recall.check_policy(refused)


@pytest.mark.parametrize(
    ("kept", "refused", "offence"),
    [
        (Budget(bytes=512), Budget(bytes=511), "budget bytes: 512 to 1048576, not 511"),
        (Budget(items=256), Budget(items=257), "budget items: 1 to 256, not 257"),
        (Budget(candidates=1), Budget(candidates=True), "budget candidates: 1 to 512, not True"),
        (Budget(tokens=256), Budget(tokens=255), "budget tokens: 256 to 1048576, not 255"),
        (Budget(tokens=1_048_576), Budget(tokens=1_048_577), "budget tokens: 256 to 1048576, not 1048577"),
        (Budget(tokens=None), Budget(tokens=256.0), "budget tokens: 256 to 1048576, not 256.0"),  # type: ignore[arg-type]
    ],
)
def test_a_budget_has_limits(kept: Budget, refused: Budget, offence: str) -> None:
    """What is within them is kept to; what is not is named with its limit."""
    recall.check_budget(kept)

    with pytest.raises(UsageError, match=offence):
        recall.check_budget(refused)


@given(rest=sizes, tokens=st.integers(256, 2000))
def test_a_token_budget_is_kept_by_the_counter_that_is_given(rest: list[int], tokens: int) -> None:
    """Everything that fits, entry by entry, at the price the counter names and one for what joins them."""
    candidates: list[Record | str] = [record(number, "r" * size) for number, size in enumerate(rest)]
    budget = Budget(bytes=1_048_576, items=256, tokens=tokens)

    chosen, left_out, _, used, _ = recall.select([], candidates, prove, budget=budget, overhead=OVERHEAD, count=len)

    prices = [len(canonical.encode(recall.lean(item.record, item.lane)).decode()) + 1 for item in chosen]
    assert used == OVERHEAD // 2 + sum(prices) <= tokens
    assert len(chosen) + left_out.get("tokens", 0) == len(candidates)
    assert set(left_out) <= {"tokens"}


def test_tokens_are_counted_where_they_are_limited() -> None:
    """Without a limit no counter is asked, and the answer says nothing of tokens."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    free = recall.select([], [record(1)], prove, budget=Budget(), overhead=0, count=count)
    limited = recall.select([], [record(1)], prove, budget=Budget(tokens=128), overhead=0, count=count)

    assert (free.tokens, limited.tokens) == (None, 2)
    assert asked == [canonical.encode(recall.lean(record(1), Lane.LEXICAL)).decode()]


@pytest.mark.parametrize("offence", [-1, 1.0, None, True])
def test_a_counter_that_does_not_count_is_refused(offence: object) -> None:
    """A price that is no whole number would make any budget fit; zero is one."""
    budget = Budget(tokens=128)

    with pytest.raises(UsageError, match="count: a whole number of tokens, not"):
        recall.select([], [record(1)], prove, budget=budget, overhead=0, count=lambda _: offence)  # type: ignore[arg-type,return-value]
    assert recall.select([], [record(1)], prove, budget=budget, overhead=0, count=lambda _: 0).tokens == 1


def test_tasks_that_outgrow_the_tokens_say_what_they_need() -> None:
    """Error and hint name tokens beside bytes, and with what the hint names they fit."""
    tasks = [task(number) for number in range(4)]

    with pytest.raises(CapacityError) as refused:
        recall.select(tasks, [], prove, budget=Budget(tokens=128), overhead=OVERHEAD, count=len)

    need = OVERHEAD // 2 + sum(map(cost, tasks))
    assert f"{need} tokens and 4 items; the budget has 8192 bytes and 128 tokens" in refused.value.message
    assert refused.value.hint.startswith(f"raise the budget to 8192 bytes and {need} tokens and 16 items")
    enough = Budget(tokens=need)
    assert recall.select(tasks, [], prove, budget=enough, overhead=OVERHEAD, count=len).tokens == need


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("cat", 1),
        ("cats", 2),
        ("a b", 2),
        ("a  b", 3),
        ("2026", 2),
        ("123", 2),
        ("cats2026", 4),
        ("cats\u6728", 4),
        ("{}:,", 4),
        ("a\n", 2),
        ("\u00e9", 1),
        ("\u6728", 2),
        ("\U0001f333", 3),
        ("\ud800", 2),
    ],
)
def test_an_estimate_goes_by_what_a_text_is_made_of(text: str, tokens: int) -> None:
    """A token for three letters, for two digits, for a mark; beyond ASCII a byte less than UTF-8 takes."""
    assert recall.estimate(text) == tokens


# Counted with the o200k_base vocabulary, whose like most models use today.
COUNTED = {
    "The staging database is read-only on Fridays, and nobody remembers why.": 14,
    '{"id":"mem_0000000000000000@1","text":"Cedar.","kind":"note","scope":"project","trust":"user_explicit"}': 33,
    "def interleave(*lanes: Sequence[T], turns: Sequence[int] = ()) -> list[T]:": 21,
    "a    b": 3,
}


@pytest.mark.parametrize("text", COUNTED)
def test_an_estimate_is_no_lower_than_a_models_own_count(text: str) -> None:
    """Nor is it the bytes: plain English comes to less than half of them."""
    assert COUNTED[text] <= recall.estimate(text) < len(text)


def test_a_context_is_shown_lane_by_lane() -> None:
    """Tasks, then what was found by words or by meaning, then procedures, what is new; by rank, then as they came."""
    walk = [Lane.RECENT, Lane.SEMANTIC, Lane.PROCEDURAL, Lane.LEXICAL, Lane.RECENT, Lane.SEMANTIC]
    candidates = [Recalled(record=record(number), lane=lane, rank=0) for number, lane in enumerate(walk)]
    candidates[3] = replace(candidates[3], rank=1)

    chosen = recall.select([task(9)], candidates, lambda one, _: one, budget=Budget(), overhead=0).items

    assert [(item.record.sequence, item.lane) for item in chosen] == [
        (9, Lane.TASKS),
        (1, Lane.SEMANTIC),
        (5, Lane.SEMANTIC),
        (3, Lane.LEXICAL),
        (2, Lane.PROCEDURAL),
        (0, Lane.RECENT),
        (4, Lane.RECENT),
    ]
    assert [item.rank for item in chosen] == list(range(7))
