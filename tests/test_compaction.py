"""A summary is proposed, written and found: what it covers stays, and nothing happens by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ledgerstone import (
    Draft,
    Kind,
    Memory,
    NotFoundError,
    Record,
    RuleError,
    Scope,
    Standing,
    UsageError,
    compacting,
)
from ledgerstone.core.values import MAX_COVERS
from tests.memories import ADA, ELSEWHERE, EVENING, NOBODY, NOON, SECOND, STRANGER, Scratch

if TYPE_CHECKING:
    from collections.abc import Callable

LATER = NOON + 1_000 * SECOND


def told(memory: Memory, count: int, *, word: str = "weather", source: str | None = None) -> list[Record]:
    """Episodes of one source, or of the session."""
    drafts = [
        Draft(text=f"The {word} was observed for the {number}th time, and it was as before.", kind=Kind.EPISODE)
        for number in range(count)
    ]
    return [memory.remember(replace(draft, source=source)).record for draft in drafts]


def covers(memory: Memory, before: int | None = LATER) -> list[tuple[str, ...]]:
    """What the planner proposes to cover."""
    return [group.covers for group in memory.compaction_candidates(before=before)]


def test_one_address_needs_no_list(scratch: Scratch) -> None:
    """It is not taken for its letters; a list of it is the same."""
    record = scratch.memory.remember("The cedar by the gate is old and tall.").record

    by_text = scratch.memory.compact("An old cedar.", record.address).record
    by_list = scratch.memory.compact("A tall cedar.", [record.address]).record

    assert by_text.covers == by_list.covers == (record.address,)


def test_a_summary_is_kept_where_what_it_covers_is(scratch: Scratch) -> None:
    """Without a scope, in the namespace of the first record that it covers."""
    tastes = ("milk", "no sugar")
    said = [scratch.memory.remember(f"Ada likes her tea with {each}.", scope=Scope.USER).record for each in tastes]

    summary = scratch.memory.compact("Tea: milk, no sugar.", [record.address for record in said]).record

    assert (summary.kind, summary.scope, summary.namespace) == (Kind.SUMMARY, Scope.USER, said[0].namespace)
    assert summary.sources == summary.covers == tuple(record.address for record in said)


def test_compacting_keeps_the_rules_of_summaries(ada: Memory) -> None:
    """What remember refuses, compact refuses: here a summary that is no shorter; one that is passes."""
    said = [record.address for record in told(ada, 2)]

    with pytest.raises(RuleError, match="covers: shorter than"):
        ada.compact("weather " * 40, said)

    assert ada.compact("Weather, twice.", said).record.standing is Standing.CURRENT


def test_compacting_takes_something_to_cover(ada: Memory) -> None:
    """A summary of nothing and of what is not there are refused; nothing is written."""
    ada.remember("Something.")

    with pytest.raises(UsageError, match="what does it cover"):
        ada.compact("Nothing.", [])
    with pytest.raises(NotFoundError, match=NOBODY):
        ada.compact("Nothing.", [NOBODY])

    assert len(ada.list_records("all").items) == 1


def test_a_repeated_compaction_gives_the_first_answer(ada: Memory) -> None:
    """Its idempotency key makes it one write."""
    said = [record.address for record in told(ada, 2)]

    first, again = (ada.compact("Weather, twice.", said, idempotency_key="tidy") for _ in range(2))

    assert (again.record.address, again.repeated) == (first.record.address, True)


def erase(memory: Memory, record: Record, keep: list[str]) -> None:
    """Erase a record, and keep the summaries."""
    memory.forget(record.address, keep=keep, dry_run=False)


def replace_it(memory: Memory, record: Record, keep: list[str]) -> None:
    """Supersede a record."""
    del keep
    memory.remember(Draft(text="It was not as before.", kind=Kind.EPISODE, replaces=record.address))


def retract(memory: Memory, record: Record, keep: list[str]) -> None:
    """Withdraw a record."""
    del keep
    memory.retract(record.address, reason="Wrong.")


@pytest.mark.parametrize("end", [erase, replace_it, retract])
def test_every_summary_above_falls_with_a_source(
    scratch: Scratch, end: Callable[[Memory, Record, list[str]], None]
) -> None:
    """Three levels of them leave default recall when one record at the bottom ends, and verify agrees."""
    ada = scratch.memory
    said = told(ada, 2)
    levels = [ada.compact("The weather was as before, both times it was seen.", [one.address for one in said]).record]
    for text in ("Weather as before, both times.", "Weather: as ever."):
        levels.append(ada.compact(text, [levels[-1].address]).record)

    # The one that covers it would go with it; those above rest on that one.
    end(ada, said[0], [levels[0].address])

    assert {ada.get(level.address).standing for level in levels} == {Standing.STALE}
    recalled = {item.record.address for item in ada.recall("weather before ever").items}
    assert said[1].address in recalled
    assert not recalled & {level.address for level in levels}
    scratch.heads()


def test_a_plan_groups_by_source_and_session(scratch: Scratch) -> None:
    """What names a source belongs together, the rest by session; the group with the most bytes first."""
    page = told(scratch.memory, 4, source="https://example.org/weather")
    morning = told(scratch.memory, 3)
    evening = told(scratch.by(EVENING), 2)

    plan = scratch.memory.compaction_candidates(before=LATER)

    assert [(group.source, group.session, group.covers) for group in plan] == [
        ("https://example.org/weather", None, tuple(record.address for record in page)),
        (None, "morning", tuple(record.address for record in morning)),
        (None, "evening", tuple(record.address for record in evening)),
    ]
    assert [group.bytes for group in plan] == [
        sum(record.text_bytes for record in group) for group in (page, morning, evening)
    ]
    assert {(group.since, group.until) for group in plan} == {(NOON, NOON)}


def test_a_plan_can_be_carried_out(scratch: Scratch) -> None:
    """What is proposed is admitted as it is, and not proposed again."""
    told(scratch.memory, MAX_COVERS + 2)

    groups = covers(scratch.memory)
    for group in groups:
        scratch.memory.compact("Weather.", group)

    assert [len(group) for group in groups] == [MAX_COVERS, 2]
    assert covers(scratch.memory) == []


def test_a_plan_leaves_out_what_is_not_to_be_condensed(scratch: Scratch) -> None:
    """Tasks, facts, what has a key or an expiry, what is too little trusted, covered or ended; and single records."""
    ada, stranger = scratch.memory, scratch.by(STRANGER)
    for draft in (
        Draft(text="Water the cedar.", kind=Kind.TASK),
        Draft(text="Cedars are conifers.", kind=Kind.FACT),
        Draft(text="The cedar stands by the gate.", key="cedar"),
        Draft(text="The gate is open today.", expires=LATER),
    ):
        ada.remember(draft)
    told(stranger, 2)
    ada.retract(told(ada, 1)[0].address, reason="Wrong.")
    ada.compact("Weather.", [record.address for record in told(ada, 2)])

    alone = told(ada, 1, word="gate")
    assert covers(ada) == []

    pair = (*alone, *told(ada, 1, word="gate"))
    assert covers(ada) == [tuple(record.address for record in pair)]


def test_a_plan_keeps_to_what_is_old(scratch: Scratch) -> None:
    """Said before a time; without one, all but the newest of the namespace."""
    old = told(scratch.memory, 2)
    scratch.wait(60)
    told(scratch.memory, compacting.KEPT_NEWEST)

    expected = [tuple(record.address for record in old)]

    assert covers(scratch.memory, NOON + SECOND) == expected
    assert covers(scratch.memory, None) == expected
    assert covers(scratch.memory, NOON) == []


def test_a_plan_sees_what_its_caller_sees(scratch: Scratch) -> None:
    """Another project is neither proposed nor named; one's own can be named alone."""
    here = told(scratch.memory, 2)
    told(scratch.by(ELSEWHERE), 2)
    user = [scratch.memory.remember(f"I like tea {many} times a day.", scope=Scope.USER).record for many in (2, 3)]
    foreign = scratch.by(ELSEWHERE).list_records().items[0].namespace

    plans = {
        "all": scratch.memory.compaction_candidates(before=LATER),
        "scope": scratch.memory.compaction_candidates(before=LATER, scope=Scope.USER),
        "named": scratch.memory.compaction_candidates(before=LATER, namespace=here[0].namespace),
    }

    found = {name: [group.namespace for group in plan] for name, plan in plans.items()}
    ours, mine = here[0].namespace, user[0].namespace
    assert found == {"all": [ours, mine], "scope": [mine], "named": [ours]}
    with pytest.raises(NotFoundError, match=foreign):
        scratch.memory.compaction_candidates(namespace=foreign)


def test_a_plan_writes_nothing_and_repeats_itself(scratch: Scratch) -> None:
    """No head moves, not even by a signature; the same store gives the same plan."""
    told(scratch.memory, 3)
    before = scratch.heads()

    plans = {scratch.by(caller).compaction_candidates(before=LATER) for caller in (ADA, ADA, EVENING)}

    assert len(plans) == 1
    assert scratch.heads() == before


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 65}, {"before": -1}])
def test_a_plan_has_its_limits(ada: Memory, wrong: dict[str, int]) -> None:
    """A refusal says limit and offence; at the limit it answers."""
    told(ada, 2)

    with pytest.raises(UsageError, match=next(iter(wrong))):
        ada.compaction_candidates(**wrong)  # type: ignore[arg-type]

    assert ada.compaction_candidates(limit=64, before=LATER)


def test_a_plan_looks_at_so_many_records(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest that fit, and no more; once they are covered, the next."""
    monkeypatch.setattr(compacting, "MOST_LOOKED_AT", 3)
    said = [record.address for record in told(scratch.memory, 5)]

    assert covers(scratch.memory) == [tuple(said[:3])]

    scratch.memory.compact("Weather.", said[:3])
    assert covers(scratch.memory) == [tuple(said[3:])]
