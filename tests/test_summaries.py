"""A summary rests on what stands, covers less than it rests on, and falls with any of it."""

from __future__ import annotations

import pytest

from ledgerstone import Draft, Kind, Memory, Mode, Record, RuleError, Standing, Status, Trust
from ledgerstone.core.values import MAX_SUMMARY_DEPTH
from tests.memories import ELSEWHERE, MODEL, NOBODY, STRANGER, Scratch

LONG = "The cedar by the gate was planted in the spring of 1871 by Ada's great-grandmother."


def note(memory: Memory, text: str = LONG, *, key: str | None = None) -> Record:
    """Something to summarise."""
    return memory.remember(Draft(text=text, key=key)).record


def summary(
    *sources: Record, covers: tuple[Record, ...] = (), text: str = "Old cedar.", key: str | None = None
) -> Draft:
    """A summary over records."""
    return Draft(
        text=text,
        kind=Kind.SUMMARY,
        key=key,
        sources=tuple(source.address for source in sources),
        covers=tuple(cover.address for cover in covers),
    )


def test_a_summary_names_what_it_rests_on(ada: Memory) -> None:
    """Sources and covers come back as addresses, in the writer's order."""
    first, second = note(ada), note(ada)

    record = ada.remember(summary(second, first, covers=(first,))).record

    assert (record.sources, record.covers) == ((second.address, first.address), (first.address,))
    assert record.standing is Standing.CURRENT


def test_a_summary_needs_a_source(ada: Memory) -> None:
    """Out of nothing there is nothing to summarise."""
    with pytest.raises(RuleError, match="summary: needs at least one source"):
        ada.remember(summary())

    assert ada.remember(summary(note(ada))).record.kind is Kind.SUMMARY


def test_what_is_covered_is_a_source(ada: Memory) -> None:
    """Covers are a subset of the sources."""
    first, second = note(ada), note(ada)

    with pytest.raises(RuleError, match="covers: each one is also a source"):
        ada.remember(summary(first, covers=(first, second)))

    assert ada.remember(summary(first, second, covers=(first, second))).record.covers


def test_only_a_summary_covers(ada: Memory) -> None:
    """A note may rest on records, and covers none."""
    source = note(ada).address

    with pytest.raises(RuleError, match="only a summary covers, not a note"):
        ada.remember(Draft(text="Cedar.", sources=(source,), covers=(source,)))

    assert ada.remember(Draft(text="Cedar.", sources=(source,))).record.sources == (source,)


@pytest.mark.parametrize(("length", "fits"), [(99, True), (100, False), (101, False)])
def test_a_summary_is_shorter_than_what_it_covers(ada: Memory, length: int, *, fits: bool) -> None:
    """Strictly, in bytes, than all that it covers together."""
    first, second = note(ada, "a" * 60), note(ada, "\u00e9" * 20)
    draft = summary(first, second, covers=(first, second), text="s" * length)

    if not fits:
        with pytest.raises(RuleError, match=f"covers: shorter than the 100 bytes covered, not {length}"):
            ada.remember(draft)
    else:
        assert ada.remember(draft).record.text_bytes == length


def test_a_summary_that_covers_nothing_may_be_long(ada: Memory) -> None:
    """Only covering takes a condensation."""
    source = note(ada, "Cedar.")

    assert ada.remember(summary(source, text=LONG)).record.standing is Standing.CURRENT


def test_an_open_task_is_never_covered(ada: Memory) -> None:
    """It may be a source; covered it can be once it is closed."""
    task = ada.remember(Draft(text=LONG, kind=Kind.TASK)).record

    with pytest.raises(RuleError, match=f"covers: {task.address} is an open task"):
        ada.remember(summary(task, covers=(task,)))

    assert ada.remember(summary(task)).record.sources == (task.address,)
    closed = ada.close_task(task.address).record
    assert ada.remember(summary(closed, covers=(closed,))).record.covers == (closed.address,)


def test_sources_of_a_summary_are_current(ada: Memory) -> None:
    """What was superseded, retracted, contested or is stale is no ground; what stands is."""
    old = note(ada, key="cedar")
    resting = ada.remember(summary(old)).record
    new = note(ada, "New.", key="cedar")
    gone = ada.retract(note(ada).address, reason="Wrong.").record

    for ended in (old, resting, gone):
        with pytest.raises(RuleError, match=f"summary: {ended.address} is no longer current"):
            ada.remember(summary(new, ended))

    assert ada.remember(summary(new)).record.standing is Standing.CURRENT


def test_a_foreign_source_and_none_look_alike(scratch: Scratch) -> None:
    """A record of another project and one that never was get one refusal."""
    scratch.memory.remember("The project is there.")
    foreign = note(scratch.by(ELSEWHERE))
    messages = []

    for address in (foreign.address, foreign.memory, NOBODY, f"{NOBODY}@1"):
        with pytest.raises(RuleError) as refused:
            scratch.memory.remember(Draft(text="Hm.", sources=(address,)))
        messages.append((refused.value.rule, refused.value.message.replace(address, "it")))

    assert set(messages) == {("sources", "sources: no earlier record it in this namespace")}


def test_a_source_is_of_an_earlier_commit(ada: Memory) -> None:
    """Named by its memory alone, a record does not mean the version that the same commit writes."""
    old = note(ada, key="cedar")

    with pytest.raises(RuleError, match=f"sources: {old.memory}@2 is of this very commit"):
        ada.remember_many([Draft(text="New.", key="cedar"), Draft(text="So.", sources=(old.memory,))])

    kept = ada.remember_many([Draft(text="New.", key="cedar"), Draft(text="So.", sources=(old.address,))])
    assert kept[1].record.sources == (old.address,)


def test_a_source_is_named_once(ada: Memory) -> None:
    """Two spellings of one record count as twice."""
    source = note(ada)

    for twice in ((source.address, source.address), (source.address, source.memory)):
        with pytest.raises(RuleError, match="sources: each one once"):
            ada.remember(Draft(text="Hm.", sources=twice))

    assert ada.remember(Draft(text="Hm.", sources=(source.memory,))).record.sources == (source.address,)


def test_covering_takes_the_default_floor(scratch: Scratch) -> None:
    """What strangers say does not hide anything; a model's summary may."""
    source = note(scratch.memory)

    with pytest.raises(RuleError, match="covers: takes trust model_inferred or higher, not unknown"):
        scratch.by(STRANGER).remember(summary(source, covers=(source,)))

    assert scratch.by(STRANGER).remember(summary(source)).record.trust is Trust.UNKNOWN
    assert scratch.by(MODEL).remember(summary(source, covers=(source,))).record.trust is Trust.MODEL_INFERRED


def test_covered_originals_leave_the_recent_lane(ada: Memory) -> None:
    """Without words a recall shows the summary instead of what it covers."""
    source = note(ada)

    cover = ada.remember(summary(source, covers=(source,))).record

    assert [item.record.address for item in ada.recall("", mode=Mode.RECENT).items] == [cover.address]
    assert ada.get(source.address).standing is Standing.COVERED


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.BALANCED])
def test_covered_originals_are_found_by_precise_words(ada: Memory, mode: Mode) -> None:
    """Who asks for the detail gets the original, labelled as covered."""
    source = note(ada)
    ada.remember(summary(source, covers=(source,)))

    found = {item.record.address: item.record.standing for item in ada.recall("great-grandmother", mode=mode).items}

    assert found[source.address] is Standing.COVERED


def test_an_uncovered_source_stays_recent(ada: Memory) -> None:
    """Resting on a record does not hide it."""
    first, second = note(ada), note(ada, "The oak stayed.")

    ada.remember(summary(first, second, covers=(first,)))

    recent = {item.record.address for item in ada.recall("", mode=Mode.RECENT).items}
    assert second.address in recent
    assert first.address not in recent


def supersede(memory: Memory, record: Record) -> None:
    """Replace a record."""
    memory.remember(Draft(text="Replaced.", replaces=record.address))


def retract(memory: Memory, record: Record) -> None:
    """Withdraw a record."""
    memory.retract(record.address, reason="Wrong.")


@pytest.mark.parametrize("end", [supersede, retract])
def test_a_summary_falls_with_what_it_rests_on(ada: Memory, end: object) -> None:
    """However far below: every summary above is stale, leaves recall, and uncovers what it covered."""
    source = note(ada)
    other = note(ada, "The oak was felled in the winter of that very same year, they say.")
    below = ada.remember(summary(source, other, covers=(source, other), text="A cedar, and no oak.")).record
    above = ada.remember(summary(below, text="Trees.")).record
    beside = ada.remember(summary(other, text="No oak.")).record

    assert callable(end)
    end(ada, source)

    assert ada.get(below.address).standing is ada.get(above.address).standing is Standing.STALE
    assert ada.get(beside.address).standing is ada.get(other.address).standing is Standing.CURRENT
    recalled = {item.record.address for item in ada.recall("cedar oak trees").items}
    assert recalled >= {beside.address, other.address}
    assert not recalled & {below.address, above.address}


def test_staleness_is_there_after_a_restart(scratch: Scratch) -> None:
    """It is derived from the ledger, and a rebuild finds the same."""
    source = note(scratch.memory)
    resting = scratch.memory.remember(summary(source)).record
    supersede(scratch.memory, source)

    before = scratch.reopen().get(resting.address)
    scratch.memory.rebuild()

    assert before.standing is scratch.memory.get(resting.address).standing is Standing.STALE


def test_closing_a_task_leaves_its_summary(ada: Memory) -> None:
    """The text that was summarised is unchanged."""
    task = ada.remember(Draft(text=LONG, kind=Kind.TASK)).record
    resting = ada.remember(summary(task)).record

    ada.close_task(task.address)

    assert ada.get(resting.address).standing is Standing.CURRENT


def test_a_stale_summary_can_be_written_again(ada: Memory) -> None:
    """Its key is still its own; the new version rests on what stands now."""
    ada.remember(summary(note(ada, key="cedar"), key="about cedars"))
    new = note(ada, "New.", key="cedar")

    again = ada.remember(summary(new, key="about cedars")).record

    assert (again.version, again.standing) == (2, Standing.CURRENT)


def test_a_summary_does_not_rest_on_what_it_ends(ada: Memory) -> None:
    """Neither on its own former version nor on what rests on that; on their common source it may."""
    source = note(ada)
    first = ada.remember(summary(source, key="about cedars")).record
    above = ada.remember(summary(first)).record

    for ground in (first, above):
        with pytest.raises(RuleError, match=f"summary: {ground.address} would end with this very write"):
            ada.remember(summary(source, ground, key="about cedars"))

    assert ada.remember(summary(source, key="about cedars")).record.version == 2


def test_summaries_stand_eight_levels_high(ada: Memory) -> None:
    """The eighth level is taken, the ninth refused; other records on top do not count."""
    top = note(ada)
    for _ in range(MAX_SUMMARY_DEPTH):
        top = ada.remember(summary(top)).record

    with pytest.raises(RuleError, match=f"summary: at most {MAX_SUMMARY_DEPTH} levels of summaries"):
        ada.remember(summary(top))

    assert ada.remember(Draft(text="Cedar.", sources=(top.address,))).record.status is Status.ACTIVE


def test_staleness_climbs_all_levels(ada: Memory) -> None:
    """From the ground to the eighth level at once."""
    ground = top = note(ada)
    for _ in range(MAX_SUMMARY_DEPTH):
        top = ada.remember(summary(top)).record

    supersede(ada, ground)

    assert ada.get(top.address).standing is Standing.STALE


def test_a_source_superseded_in_the_same_commit_leaves_the_summary_stale(ada: Memory) -> None:
    """A commit is judged draft by draft; what its later drafts end ends for its earlier ones too."""
    source = note(ada, key="cedar")

    resting, _ = ada.remember_many([summary(source), Draft(text="New.", key="cedar")])

    assert ada.get(resting.record.address).standing is Standing.STALE
