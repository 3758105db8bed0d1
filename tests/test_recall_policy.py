"""What a recall looks for and where: neighbours, history, the past, filters, floors, places, what is due, tokens."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from ledgerstone import (
    Act,
    Budget,
    CapacityError,
    Draft,
    Kind,
    Lane,
    Memory,
    Mode,
    NotFoundError,
    Origin,
    Policy,
    Recall,
    RuleError,
    Scope,
    Standing,
    Trust,
    UsageError,
    search,
)
from ledgerstone.core import ranking
from ledgerstone.core.recall import estimate
from tests.memories import ADA, BOB, ELSEWHERE, FREE_MODES, MODEL, NOON, SECOND, STRANGER, TOOL, Scratch
from tests.stores import plain_client

LEXICAL = Policy(mode=Mode.LEXICAL)
RECENT = Policy(mode=Mode.RECENT)


def told(context: Recall) -> list[str | None]:
    """The texts of a context in their order."""
    return [item.record.text for item in context.items]


def in_lane(context: Recall, lane: Lane) -> list[str | None]:
    """The texts that one lane gave."""
    return [item.record.text for item in context.items if item.lane is lane]


TALK = [
    "Good morning.",
    "Did you see the garden?",
    "Not yet.",
    "Somebody felled the old cedar by the gate.",
    "Who was it?",
    "My brother felled that cedar on Sunday.",
    "What a pity.",
    "Shall we eat?",
    "There is bread.",
    "And cheese?",
    "That too.",
    "The kettle boils.",
]


def test_what_stands_beside_a_hit_in_its_source_is_found(ada: Memory) -> None:
    """In a talk whose words come again nearby, the turn between two hits is found though it holds none of them."""
    ada.remember_many([Draft(text=text, source="talk", place=str(n)) for n, text in enumerate(TALK)])

    found = told(ada.recall("felled cedar", policy=LEXICAL))

    assert set(found[:3]) == {TALK[3], TALK[4], TALK[5]}
    assert set(found[3:]) == {TALK[1], TALK[2], TALK[6], TALK[7]}


def test_what_only_stands_beside_a_hit_counts_by_its_own_words_too(
    ada: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that stand beside a hit and came too late to be scored, the one that holds a word of the query leads."""
    monkeypatch.setattr(search, "SCORED", 1)
    ada.remember_many([Draft(text=text, source="talk") for text in (*TALK[6:], *TALK[:3])])
    told_of = ("It was a cedar.", TALK[3], TALK[4])
    ada.remember_many([Draft(text=text, source="talk") for text in (*told_of, *TALK[6:], *TALK[:3])])

    found = told(ada.recall("felled cedar", policy=LEXICAL))

    assert found[:3] == [TALK[3], "It was a cedar.", TALK[4]]


def test_only_the_best_hits_speak_for_their_source(ada: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source whose every hit stands behind them gives its hits nothing; were they among them, it would."""
    row = ["An iron gate.", *TALK[:3]] * 3
    ada.remember_many([Draft(text=text, source="row") for text in row])
    ada.remember("An iron gate.")
    ada.remember_many([Draft(text="The cedar by the gate.", source="talk")] * 2)

    def scores() -> list[int]:
        hits = ada.recall("cedar gate", policy=LEXICAL).items
        return sorted({item.score or 0 for item in hits if item.record.text == "An iron gate."})

    every = scores()
    monkeypatch.setattr(ranking, "SPEAKING", 2)

    assert len(scores()) == 1 < len(every)


def test_what_names_no_source_has_nothing_beside_it(ada: Memory) -> None:
    """The same texts without a source, or each of its own, are what they hold and no more."""
    ada.remember_many(TALK)
    ada.remember_many([Draft(text=text, source=f"page {n}") for n, text in enumerate(TALK)])

    assert set(told(ada.recall("felled cedar", policy=LEXICAL))) == {TALK[3], TALK[5]}


def test_a_neighbour_that_may_not_be_recalled_gains_nothing(scratch: Scratch) -> None:
    """What was retracted or is below the floor is not found beside a hit; what stands next without it is."""
    memory = scratch.memory
    memory.remember_many([Draft(text=text, source="talk") for text in TALK[:4]])
    wrong = memory.remember(Draft(text="Never mind.", source="talk")).record
    scratch.by(STRANGER).remember(Draft(text="Who cares?", source="talk"))
    memory.remember_many([Draft(text=text, source="talk") for text in TALK[4:]])
    memory.retract(wrong.address, reason="It does matter.")

    found = told(memory.recall("felled cedar", policy=LEXICAL))

    assert TALK[4] in found[:3]
    assert not {"Never mind.", "Who cares?"} & set(found)


def test_a_neighbour_that_was_not_asked_for_gains_nothing(scratch: Scratch) -> None:
    """Outside the time asked for nothing is found beside a hit; within it, it is."""
    memory = scratch.memory
    for text in TALK:
        memory.remember(Draft(text=text, source="talk"))
        scratch.wait(10)

    some = memory.recall("felled cedar", policy=replace(LEXICAL, since=NOON + 30 * SECOND))
    every = memory.recall("felled cedar", policy=replace(LEXICAL, since=NOON))

    assert set(told(some)) == set(TALK[3:8])
    assert set(told(every)) == set(TALK[1:8])


def shuffled(seed: int) -> list[Draft]:
    """Sixty notes of one source in an order that means nothing, ten about each of six trees."""
    words = ["cedar", "oak", "elm", "fir", "ash", "yew"]
    notes = [f"The {word} is number {n}." for n in range(10) for word in words]
    random.Random(seed).shuffle(notes)
    return [Draft(text=text, source="heap") for text in notes]


def test_where_order_means_nothing_neighbours_gain_nothing(ada: Memory) -> None:
    """Where the words come as often afar as nearby, only those who hold them are found."""
    ada.remember_many(shuffled(seed=3))

    found = told(ada.recall("cedar", policy=LEXICAL, budget=Budget(items=60)))

    assert len(found) == 10
    assert all("cedar" in text for text in found if text is not None)


@pytest.mark.parametrize("seed", [0, 5, 9])
def test_what_stands_nearby_by_chance_comes_after_what_was_found(ada: Memory, seed: int) -> None:
    """In a heap that looks a little like a conversation neighbours are found too, behind all who hold the word."""
    ada.remember_many(shuffled(seed))

    found = told(ada.recall("cedar", policy=LEXICAL, budget=Budget(items=60)))

    assert len(found) > 10
    assert all("cedar" in text for text in found[:10] if text is not None)


def test_nothing_is_kept_that_another_program_has_changed(scratch: Scratch) -> None:
    """The words of the newest records, read once, are read again after another program wrote; untouched they stand."""
    scratch.memory.remember("A cedar.")
    before = told(scratch.memory.recall("cedar", policy=LEXICAL))
    again = told(scratch.memory.recall("cedar", policy=LEXICAL))

    with closing(plain_client(scratch.path)) as other:
        other.execute("UPDATE words SET words = ' oak '")
    gone, oak = (told(scratch.memory.recall(word, policy=LEXICAL)) for word in ("cedar", "oak"))

    assert before == again == ["A cedar."]
    assert (gone, oak) == ([], ["A cedar."])


def test_no_word_of_what_was_erased_is_kept(scratch: Scratch) -> None:
    """What a recall read of the newest records goes with the next commit, an erasure as any other."""
    memory = scratch.memory
    secret = memory.remember("A cedar.").record
    memory.recall("gate")
    before = repr(memory._ledger.heads._kept)

    memory.forget(secret.address, dry_run=False)
    erased = repr(memory._ledger.heads._kept)

    assert " cedar" in before.replace("'", " ")
    assert "cedar" not in erased


def test_history_shows_every_version_with_its_standing(scratch: Scratch) -> None:
    """What default recall leaves out comes with a label, in every mode, and what is current comes without one."""
    memory = scratch.memory
    memory.remember(Draft(text="The cedar is young.", key="cedar"))
    memory.remember(Draft(text="The cedar is old.", key="cedar"))
    memory.retract(memory.remember("The cedar is a fir.").record.address, reason="No.")
    note = memory.remember("The cedar stands by the gate, near the wall.").record
    memory.remember(
        Draft(text="Cedar: by the gate.", kind=Kind.SUMMARY, sources=(note.address,), covers=(note.address,))
    )
    memory.remember(Draft(text="The cedar is wet.", expires=scratch.now + SECOND))
    scratch.wait(1)
    expected = {
        "The cedar is young.": {Standing.SUPERSEDED},
        "The cedar is old.": {Standing.CURRENT},
        "The cedar is a fir.": {Standing.SUPERSEDED, Standing.RETRACTED},
        "The cedar stands by the gate, near the wall.": {Standing.COVERED},
        "Cedar: by the gate.": {Standing.CURRENT},
        "The cedar is wet.": {Standing.EXPIRED},
    }

    for mode in FREE_MODES:
        items = memory.recall("cedar", policy=Policy(mode=mode, history=True)).items
        shown = {text: {item.record.standing for item in items if item.record.text == text} for text in expected}
        assert {text: standings and standings <= expected[text] for text, standings in shown.items()} == dict.fromkeys(
            expected, True
        )


def test_history_shows_nothing_erased_or_below_the_floor(scratch: Scratch) -> None:
    """It lifts what standing and expiry hold back, and neither erasure nor trust; a neighbour is shown."""
    memory = scratch.memory
    gone = memory.remember("The cedar is mine.").record
    scratch.by(STRANGER).remember("The cedar is theirs.")
    memory.remember("The cedar is ours.")
    memory.forget(gone.memory, dry_run=False)

    for mode in FREE_MODES:
        context = memory.recall("cedar mine theirs", policy=Policy(mode=mode, history=True))
        assert told(context) == ["The cedar is ours."]


def test_the_past_answers_with_what_stood_then(scratch: Scratch) -> None:
    """A corrected key, a closed task, what a summary covers, what has expired: as of a time, all as it was."""
    memory = scratch.memory
    memory.remember(Draft(text="The cedar is young.", key="cedar"))
    task = memory.remember(Draft(text="Water the cedar.", kind=Kind.TASK)).record
    note = memory.remember("The cedar stands by the gate, near the wall.").record
    last = memory.remember(Draft(text="The cedar is wet.", expires=scratch.now + 5 * SECOND))
    scratch.wait(2)
    then = scratch.now
    scratch.wait(2)
    memory.remember(Draft(text="The cedar is old.", key="cedar"))
    memory.close_task(task.address)
    memory.remember(
        Draft(text="Cedar: by the gate.", kind=Kind.SUMMARY, sources=(note.address,), covers=(note.address,))
    )
    scratch.wait(10)

    past = memory.recall("cedar", policy=Policy(as_of=then))
    now = memory.recall("cedar")
    newest = memory.recall("", policy=replace(RECENT, as_of=then))

    before = {"Water the cedar.", "The cedar is young.", "The cedar is wet."} | {note.text}
    assert set(told(past)) == set(told(newest)) == before
    assert in_lane(past, Lane.TASKS) == ["Water the cedar."]
    assert {item.record.standing for item in past.items} == {Standing.CURRENT}
    assert {"The cedar is old.", "Cedar: by the gate."} < set(told(now))
    assert not set(told(now)) & {"The cedar is young.", "The cedar is wet."}
    assert past.heads == {note.namespace: (last.sequence, last.commit)}


def test_a_sequence_of_one_namespace_is_a_past_state_too(scratch: Scratch) -> None:
    """After each commit the recall is what it was then; a sequence that is not yet there is refused."""
    memory = scratch.memory
    first = memory.remember(Draft(text="Young.", key="cedar"))
    second = memory.remember(Draft(text="Old.", key="cedar"))
    where = first.record.namespace

    shown = [
        told(memory.recall("", policy=Policy(at=at, namespaces=(where,)))) for at in (first.sequence, second.sequence)
    ]

    assert shown == [["Young."], ["Old."]]
    with pytest.raises(UsageError, match=f"stands at {second.sequence}, not yet at {second.sequence + 1}"):
        memory.recall("", policy=Policy(at=second.sequence + 1, namespaces=(where,)))


def test_the_past_ends_where_the_present_begins(scratch: Scratch) -> None:
    """As of now is allowed, and as of what is to come is not: no clock but the host's makes anything due."""
    scratch.memory.remember(Draft(text="Call Bob.", kind=Kind.PROSPECTIVE, due=scratch.now + 60 * SECOND))

    now = scratch.memory.recall("", policy=Policy(as_of=scratch.now))

    assert in_lane(now, Lane.PROCEDURAL) == []
    with pytest.raises(UsageError, match="as_of: a time that has passed"):
        scratch.memory.recall("", policy=Policy(as_of=scratch.now + 1))


def test_before_a_namespace_was_made_there_is_nothing_of_it(scratch: Scratch) -> None:
    """Nothing is found, no head is claimed, and no task is missed."""
    scratch.memory.remember("A cedar.", scope=Scope.USER)
    before = scratch.now
    scratch.wait(1)
    task = scratch.memory.remember(Draft(text="Water it.", kind=Kind.TASK)).record

    context = scratch.memory.recall("cedar", policy=Policy(as_of=before))

    assert told(context) == ["A cedar."]
    assert task.namespace not in context.heads
    assert len(context.heads) == 1


def test_what_was_erased_never_comes_back(scratch: Scratch) -> None:
    """Not as of a time at which it stood, nor at its commit; what stood beside it does, and its absence is counted."""
    memory = scratch.memory
    gone = memory.remember("The cedar is mine.")
    memory.remember("The cedar is ours.")
    then = scratch.now
    scratch.wait(1)
    memory.forget(gone.record.memory, dry_run=False)
    where = gone.record.namespace

    for history in (False, True):
        for past in (Policy(as_of=then), Policy(at=gone.sequence + 1, namespaces=(where,))):
            for mode in FREE_MODES:
                context = memory.recall("cedar mine", policy=replace(past, mode=mode, history=history))
                assert told(context) == ["The cedar is ours."]
                assert set(context.omitted) <= {"erased"}


def test_a_past_state_is_told_although_a_task_of_then_was_erased(scratch: Scratch) -> None:
    """Whether it was open then or closed by then; the task beside it is shown as it stood."""
    memory = scratch.memory
    gone = memory.remember(Draft(text="Fell the cedar.", kind=Kind.TASK)).record
    memory.remember(Draft(text="Water the yew.", kind=Kind.TASK))
    opened = scratch.now
    scratch.wait(1)
    memory.close_task(gone.memory)
    closed = scratch.now
    scratch.wait(1)
    memory.forget(gone.memory, dry_run=False)

    for past in (Policy(as_of=opened), Policy(as_of=closed), Policy(at=2, namespaces=(gone.namespace,))):
        context = memory.recall("cedar", policy=past)

        assert in_lane(context, Lane.TASKS) == ["Water the yew."]
        assert told(context) == ["Water the yew."]


def test_a_word_in_the_place_of_a_mode_or_filter_is_refused(ada: Memory) -> None:
    """Since it would be followed as another mode, or let nothing through; what it stands for is accepted."""
    ada.remember("The cedar is old.")
    ada.remember("The yew is older.")
    unlike: list[dict[str, Any]] = [
        {"mode": "lexical"},
        {"floor": 2},
        {"scopes": "project"},
        {"kinds": ("note",)},
        {"origins": ("user",)},
    ]

    for fields in unlike:
        with pytest.raises(UsageError, match=f"{next(iter(fields))}: "):
            ada.recall("cedar", policy=Policy(**fields))

    policy = Policy(
        mode=Mode.LEXICAL, floor=Trust(2), scopes=(Scope.PROJECT,), kinds=(Kind.NOTE,), origins=(Origin.USER,)
    )
    assert told(ada.recall("cedar", policy=policy)) == ["The cedar is old."]


def test_what_is_due_is_not_crowded_out_by_what_nobody_trusts(scratch: Scratch) -> None:
    """However many reminders a page brought in since, a reminder of the user's still speaks up."""
    scratch.memory.remember(Draft(text="Water the cedar.", kind=Kind.PROSPECTIVE, due=scratch.now + SECOND))
    scratch.wait(2)
    brought = Draft(text="Buy a yew.", kind=Kind.PROSPECTIVE, triggers=("yew",), external=True)
    scratch.memory.remember_many([brought] * 256)

    assert in_lane(scratch.memory.recall("oak"), Lane.PROCEDURAL) == ["Water the cedar."]


def test_filters_keep_to_kinds_keys_and_origins(scratch: Scratch) -> None:
    """Each shows what fits it and counts what does not; open tasks are shown all the same."""
    scratch.memory.remember(Draft(text="The cedar is old.", kind=Kind.FACT, key="cedar"))
    scratch.memory.remember(Draft(text="The cedar fell.", kind=Kind.EPISODE))
    scratch.by(TOOL).remember("The cedar is 30 m high.")
    scratch.memory.remember(Draft(text="Water it.", kind=Kind.TASK))

    def shown(policy: Policy) -> list[str | None]:
        context = scratch.memory.recall("cedar", policy=policy)
        assert in_lane(context, Lane.TASKS) == ["Water it."]
        assert context.omitted["filtered"] >= 1
        return told(context)[1:]

    assert shown(Policy(kinds=(Kind.FACT,))) == ["The cedar is old."]
    assert set(shown(Policy(kinds=(Kind.FACT, Kind.EPISODE)))) == {"The cedar is old.", "The cedar fell."}
    assert shown(Policy(key="cedar")) == ["The cedar is old."]
    assert shown(Policy(key="oak")) == []
    assert shown(Policy(origins=(Origin.TOOL,))) == ["The cedar is 30 m high."]


def test_a_key_is_found_however_much_came_after_it(ada: Memory) -> None:
    """Behind any number of newer records the one with the key is found, and with history each of its versions."""
    ada.remember(Draft(text="Friday.", key="demo"))
    ada.remember(Draft(text="Monday.", key="demo"))
    ada.remember_many([f"Remark {n} on the demo." for n in range(200)])

    assert told(ada.recall("", policy=Policy(key="demo"))) == ["Monday."]
    assert told(ada.recall("demo", policy=Policy(key="demo", history=True))) == ["Monday.", "Friday."]


def test_a_filter_by_tags_keeps_to_what_has_one_of_them(ada: Memory) -> None:
    """In every mode, whatever else says the word; with another filter to what fits both; open tasks all the same."""
    ada.remember(Draft(text="The cedar is old.", tags=("wood", "north side"), kind=Kind.FACT))
    ada.remember(Draft(text="The cedar fell.", tags=("Wood", 'a "quoted" one')))
    ada.remember(Draft(text='A cedar, its key is "wood".', key="wood", title="wood"))
    ada.remember(Draft(text="Water the cedar.", kind=Kind.TASK, tags=("soil",)))

    def shown(mode: Mode = Mode.LEXICAL, **only: Any) -> set[str | None]:
        return set(told(ada.recall("cedar wood", policy=Policy(mode=mode, **only))))

    for mode in (Mode.LEXICAL, Mode.RECENT):
        assert shown(mode, tags=("wood",)) == {"The cedar is old."}
        assert shown(mode, tags=("wood", 'a "quoted" one')) == {"The cedar is old.", "The cedar fell."}
        assert shown(mode, tags=("wood", "Wood"), kinds=(Kind.NOTE,)) == {"The cedar fell."}
        assert shown(mode, tags=("wood",), key="wood") == shown(mode, tags=("quoted",)) == set()
    assert shown(Mode.BALANCED, tags=("north side",)) == {"The cedar is old.", "Water the cedar."}
    assert ada.recall("cedar", policy=Policy(mode=Mode.LEXICAL, tags=("wood",))).omitted["filtered"] == 3


def test_a_tag_is_found_however_much_came_after_it(ada: Memory) -> None:
    """Behind any number of newer records the one with the tag is found; closed, erased and replaced as ever."""
    kept = ada.remember(Draft(text="Friday.", key="demo", tags=("demo",))).record
    task = ada.remember(Draft(text="Prepare it.", kind=Kind.TASK, tags=("demo",))).record
    gone = ada.remember(Draft(text="It is secret.", tags=("demo",))).record
    ada.remember_many([f"Remark {n} on the demo." for n in range(200)])

    ada.forget(gone.address, dry_run=False)
    ada.close_task(task.address)

    tagged = Policy(tags=("demo",))
    assert told(ada.recall("", policy=tagged)) == ["Prepare it.", "Friday."]
    assert set(told(ada.recall("demo", policy=tagged))) == {"Prepare it.", "Friday."}
    ada.remember(Draft(text="Monday.", key="demo"))
    assert told(ada.recall("", policy=tagged)) == ["Prepare it."]
    past = replace(tagged, at=kept.sequence, namespaces=(kept.namespace,))
    assert told(ada.recall("", policy=past)) == ["Friday."]


def test_a_span_of_time_is_when_it_was_remembered(scratch: Scratch) -> None:
    """From the first moment to the last, both included, in every lane."""
    for n in range(5):
        scratch.memory.remember(f"Cedar {n}.")
        scratch.wait(10)

    def at(n: int) -> int:
        return NOON + 10 * n * SECOND

    for mode in FREE_MODES:
        context = scratch.memory.recall("cedar", policy=Policy(mode=mode, since=at(1), until=at(3)))
        assert set(told(context)) == {"Cedar 1.", "Cedar 2.", "Cedar 3."}
    assert told(scratch.memory.recall("", policy=replace(RECENT, since=at(3) + 1))) == ["Cedar 4."]
    assert told(scratch.memory.recall("", policy=replace(RECENT, until=at(0)))) == ["Cedar 0."]
    assert told(scratch.memory.recall("", policy=replace(RECENT, until=at(0) - 1))) == []
    assert len(told(scratch.memory.recall("", policy=replace(RECENT, since=0)))) == 5


def test_a_floor_only_raises_the_callers(scratch: Scratch) -> None:
    """Asked for more trust a recall shows less; asked for less than the host allows, it shows no more."""
    scratch.by(STRANGER).remember("A cedar, they say.")
    scratch.by(MODEL).remember("A cedar, I think.")
    scratch.memory.remember("A cedar.")

    shown = {
        floor: set(told(scratch.memory.recall("cedar", policy=Policy(floor=floor))))
        for floor in (None, Trust.UNKNOWN, Trust.USER_EXPLICIT)
    }

    assert shown == {
        None: {"A cedar.", "A cedar, I think."},
        Trust.UNKNOWN: {"A cedar.", "A cedar, I think."},
        Trust.USER_EXPLICIT: {"A cedar."},
    }


def test_a_task_below_the_floor_asked_for_is_not_shown(scratch: Scratch) -> None:
    """It stays an obligation of the store and is no part of an answer that wants more trust, by whatever mode."""
    task = scratch.by(MODEL).remember(Draft(text="Water it.", kind=Kind.TASK)).record
    strict = Policy(floor=Trust.USER_EXPLICIT)
    named = Policy(mode=Mode.TASK_MAINTENANCE, tasks=(task.address,))

    assert told(scratch.memory.recall("", policy=strict)) == []
    with pytest.raises(NotFoundError, match="no open task"):
        scratch.memory.recall("", policy=replace(named, floor=Trust.USER_EXPLICIT))
    assert told(scratch.memory.recall("")) == told(scratch.memory.recall("", policy=named)) == ["Water it."]


def test_scopes_keep_to_some_of_what_is_bound(scratch: Scratch) -> None:
    """And say nothing of scopes that were not asked for."""
    for scope in (Scope.USER, Scope.PROJECT, Scope.SESSION):
        scratch.memory.remember(f"A cedar, {scope}.", scope=scope)

    two = scratch.memory.recall("cedar", policy=replace(LEXICAL, scopes=(Scope.USER, Scope.SESSION)))

    assert told(two) == ["A cedar, session.", "A cedar, user."]
    assert len(two.heads) == 2
    assert told(scratch.memory.recall("cedar", policy=Policy(scopes=(Scope.GLOBAL,)))) == []


def test_a_namespace_is_named_by_its_id_and_granted(scratch: Scratch) -> None:
    """Another project of the caller's own is seen by its id; absent and forbidden look alike."""
    here = scratch.memory.remember("A cedar here.").record.namespace
    there = scratch.by(ELSEWHERE).remember("A cedar there.").record.namespace
    bob = scratch.by(replace(BOB, project=None))
    scratch.memory.grant("bob", Act.WRITE, scope=Scope.USER)

    both = scratch.memory.recall("cedar", policy=Policy(namespaces=(here, there)))
    beside = scratch.memory.recall("cedar", policy=Policy(scopes=(Scope.PROJECT,), namespaces=(there, here)))

    assert set(told(both)) == set(told(beside)) == {"A cedar here.", "A cedar there."}
    absent = "ns_0000000000000000"
    refused = []
    for name in (there, absent):
        with pytest.raises(NotFoundError) as error:
            bob.recall("cedar", policy=Policy(namespaces=(name,)))
        refused.append((error.value.message.replace(name, "it"), error.value.hint))
    assert refused[0] == refused[1]
    assert told(bob.recall("cedar")) == []


def test_task_maintenance_shows_exactly_what_is_named(scratch: Scratch) -> None:
    """One to eight open tasks by id or address, as they were named, and nothing else, though all would be too many."""
    memory = scratch.memory
    tasks = [memory.remember(Draft(text=f"Water tree {n}.", kind=Kind.TASK)).record for n in range(10)]
    memory.remember("A cedar.")
    named = (tasks[7].address, tasks[2].memory)

    context = memory.recall("cedar", policy=Policy(mode=Mode.TASK_MAINTENANCE, tasks=named), budget=Budget(items=2))

    assert told(context) == ["Water tree 7.", "Water tree 2."]
    with pytest.raises(CapacityError):
        memory.recall("cedar", budget=Budget(items=2))
    eight = tuple(task.memory for task in tasks[:8])
    assert len(memory.recall("", policy=Policy(mode=Mode.TASK_MAINTENANCE, tasks=eight)).items) == 8


def test_task_maintenance_refuses_what_is_no_open_task_here(scratch: Scratch) -> None:
    """A closed task, a note, an older version, a foreign and an absent one get one answer, and a task twice another."""
    memory = scratch.memory
    closed = memory.remember(Draft(text="Done.", kind=Kind.TASK)).record
    memory.close_task(closed.address)
    note = memory.remember("A cedar.").record
    foreign = scratch.by(ELSEWHERE).remember(Draft(text="Water it there.", kind=Kind.TASK)).record
    open_task = memory.remember(Draft(text="Water it.", kind=Kind.TASK)).record

    for name in (closed.address, closed.memory, note.address, f"{open_task.memory}@2", foreign.address):
        with pytest.raises(NotFoundError, match=f"no open task {name} here"):
            memory.recall("", policy=Policy(mode=Mode.TASK_MAINTENANCE, tasks=(name,)))
    with pytest.raises(UsageError, match="tasks: each once"):
        memory.recall("", policy=Policy(mode=Mode.TASK_MAINTENANCE, tasks=(open_task.address, open_task.memory)))
    named = Policy(mode=Mode.TASK_MAINTENANCE, tasks=(open_task.address,))
    assert told(memory.recall("", policy=named)) == ["Water it."]


def test_tasks_are_ordered_by_when_they_are_due(scratch: Scratch) -> None:
    """The first due first, whatever its namespace; those without a time after them, in the order they came."""
    drafts = [("Someday.", None, Scope.PROJECT), ("Friday.", 5, Scope.PROJECT), ("Monday.", 1, Scope.USER)]
    for text, day, scope in [*drafts, ("Wednesday.", 3, Scope.SESSION), ("Whenever.", None, Scope.PROJECT)]:
        due = None if day is None else scratch.now + day * 86_400 * SECOND
        scratch.memory.remember(Draft(text=text, kind=Kind.TASK, due=due), scope=scope)

    assert told(scratch.memory.recall()) == ["Monday.", "Wednesday.", "Friday.", "Someday.", "Whenever."]


def test_a_write_says_what_brings_nothing_up(scratch: Scratch) -> None:
    """A reminder without a time and words, and a time on a kind that does not heed it, are kept with a notice."""
    idle = Draft(text="Call Bob.", kind=Kind.PROSPECTIVE)
    task = replace(idle, kind=Kind.TASK, due=scratch.now)
    heeded = (replace(idle, due=scratch.now), replace(idle, triggers=("bob",)), task)

    def said(draft: Draft) -> tuple[str, ...]:
        return scratch.memory.remember(draft).notices

    quiet = said(Draft(text="Plain."))
    assert [said(draft) for draft in heeded] == [quiet] * 3
    assert said(idle)[0].startswith("nothing brings it up by itself")
    assert said(replace(idle, kind=Kind.NOTE, due=scratch.now))[0].startswith("due: shown with a note")


def test_what_is_due_speaks_up(scratch: Scratch) -> None:
    """A second before its time a prospective record is in no procedural lane, at its time it is, behind many notes."""
    memory = scratch.memory
    memory.remember(Draft(text="Call Bob.", kind=Kind.PROSPECTIVE, due=scratch.now + 60 * SECOND))
    memory.remember(Draft(text="Call Eve.", kind=Kind.PROSPECTIVE, due=scratch.now + 90 * SECOND))
    memory.remember_many([f"A cedar, the {n}th." for n in range(100)])

    scratch.wait(59)
    before = memory.recall("cedar")
    scratch.wait(1)
    after = memory.recall("cedar")

    assert in_lane(before, Lane.PROCEDURAL) == []
    assert in_lane(after, Lane.PROCEDURAL) == ["Call Bob."]


def test_a_trigger_speaks_up_when_all_its_words_occur(ada: Memory) -> None:
    """In any order and inflection; another word calls nothing, and a record without a trigger waits for its time."""
    ada.remember(Draft(text="Ask for the invoice.", kind=Kind.PROSPECTIVE, triggers=("staging deploy", "release")))
    ada.remember(Draft(text="The staging area.", kind=Kind.PROSPECTIVE, due=NOON + 10**6 * SECOND))

    def called(query: str) -> bool:
        items = ada.recall(query, mode=Mode.BALANCED).items
        return any(item.record.triggers and item.lane in {Lane.PROCEDURAL, Lane.LEXICAL} for item in items)

    assert [called(query) for query in ("deploying to staging", "next releases", "deploy", "cedar")] == [
        True,
        True,
        True,
        False,
    ]


def test_what_is_not_called_keeps_its_place_among_the_newest(ada: Memory) -> None:
    """A reminder that only shares a word with the query is shown for being new; once called it speaks up."""
    ada.remember_many([f"deploy deploy deploy {n}" for n in range(80)])
    ada.remember(Draft(text="Call the deploy desk.", kind=Kind.PROSPECTIVE, triggers=("freeze window",)))

    waiting = ada.recall("deploy")
    called = ada.recall("deploy in the freeze window")

    assert in_lane(waiting, Lane.RECENT)[0] == "Call the deploy desk."
    assert "not_due" not in waiting.omitted
    assert "Call the deploy desk." in told(called)
    assert "Call the deploy desk." not in in_lane(called, Lane.RECENT)


def test_a_procedure_is_called_by_its_words(ada: Memory) -> None:
    """One that holds a word of the query comes in the procedural lane, though words find much else before it."""
    ground = ada.remember("Deploys go through the gate.").record
    ada.remember(Draft(text="To deploy, run the gate.", kind=Kind.PROCEDURE, sources=(ground.address,)))
    ada.remember(Draft(text="To bake, heat the oven.", kind=Kind.PROCEDURE, sources=(ground.address,)))
    ada.remember_many([f"deploy deploy deploy {n}" for n in range(80)])

    context = ada.recall("deploy", budget=Budget(items=8))

    assert in_lane(context, Lane.PROCEDURAL) == ["To deploy, run the gate."]


def test_synonyms_of_the_caller_find_other_words(ada: Memory) -> None:
    """What a caller says may stand for a word is looked for beside it; the word itself comes first."""
    ada.remember("The zelkova is ill.")
    ada.remember_many([f"Remark {n}." for n in range(80)])
    ada.remember("The cedar is well.")
    policy = Policy(synonyms={"cedar": ["zelkova"]})

    found = ada.recall("cedar", policy=policy).items
    without = ada.recall("cedar").items

    assert [(item.record.text, item.lane) for item in found[:2]] == [
        ("The cedar is well.", Lane.LEXICAL),
        ("The zelkova is ill.", Lane.SEMANTIC),
    ]
    assert "The zelkova is ill." not in [item.record.text for item in without]


def test_other_words_are_found_where_a_querys_own_find_nothing(ada: Memory) -> None:
    """Balanced goes on to related words then, hybrid and semantic always, lexical never."""
    ada.remember("The automobile is in the garage.")
    ada.remember_many([f"Remark {n}." for n in range(80)])

    found = {mode: told(ada.recall("car", mode=mode))[:1] for mode in FREE_MODES}

    wanted = ["The automobile is in the garage."]
    assert found[Mode.BALANCED] == found[Mode.HYBRID] == found[Mode.SEMANTIC] == wanted
    assert found[Mode.LEXICAL] == []


def test_other_words_are_found_where_less_than_three_quarters_of_a_querys_own_occur(ada: Memory) -> None:
    """Two words of three send balanced on to related ones, three of four do not."""
    automobile = "The automobile is in the garage."
    ada.remember_many([automobile, "The gate, its hinge and its bolt."])
    ada.remember_many([f"Remark {n}." for n in range(80)])

    assert automobile in told(ada.recall("car gate hinge"))
    assert automobile not in told(ada.recall("car gate hinge bolt"))


def test_tokens_are_a_budget_of_their_own(ada: Memory) -> None:
    """By the estimate, or by a counter that the caller brings, and the answer says what was spent."""
    ada.remember_many([f"The {n}th cedar stands beside the gate." for n in range(40)])
    budget = Budget(bytes=65_536, items=40, tokens=500)

    estimated = ada.recall("cedar", policy=LEXICAL, budget=budget)
    counted = ada.recall("cedar", policy=LEXICAL, budget=budget, count=lambda text: estimate(text) // 2)

    assert estimated.tokens is not None
    assert counted.tokens is not None
    assert 0 < len(estimated.items) < len(counted.items) < 40
    assert max(estimated.tokens, counted.tokens) <= 500
    assert estimated.omitted == {"tokens": 40 - len(estimated.items)}
    assert ada.recall("cedar").tokens is None


def test_a_record_is_counted_once_however_many_lanes_meet_it(scratch: Scratch) -> None:
    """What is left out is a number of records."""
    scratch.by(STRANGER).remember("A cedar, they say.")
    scratch.by(STRANGER).remember("A cedar, others say.")
    scratch.memory.remember("A cedar.")

    for mode in FREE_MODES:
        assert scratch.memory.recall("cedar", mode=mode).omitted == {"below_floor": 2}


def test_a_rejected_value_is_held_out_of_recall(scratch: Scratch) -> None:
    """Said again by a model it is not recalled; said by the user it is."""
    memory, model = scratch.memory, scratch.by(MODEL)
    wrong = model.remember(Draft(text="The lake is salty.", key="lake")).record
    memory.retract(wrong.address, reason="It is fresh.", reject=True)

    model.remember(Draft(text="the lake  is SALTY.", key="lake"))
    held = told(memory.recall("lake salty"))
    memory.remember(Draft(text="The lake is salty.", key="lake"))

    assert held == []
    assert told(memory.recall("lake salty")) == ["The lake is salty."]


def test_a_stale_summary_leaves_recall(scratch: Scratch) -> None:
    """When what it rests on is corrected, it is out of every mode, and the correction is there."""
    memory = scratch.memory
    note = memory.remember(Draft(text="The cedar is young and stands by the gate.", key="cedar")).record
    memory.remember(Draft(text="A young cedar.", kind=Kind.SUMMARY, sources=(note.address,), covers=(note.address,)))
    memory.remember(Draft(text="The cedar is old.", key="cedar"))

    for mode in FREE_MODES:
        assert told(memory.recall("young cedar", mode=mode)) == ["The cedar is old."]


def test_a_recall_writes_nothing(scratch: Scratch) -> None:
    """Whatever is asked, the heads stay where they were."""
    record = scratch.memory.remember(Draft(text="Water it.", kind=Kind.TASK)).record
    before = scratch.heads()

    for mode in FREE_MODES:
        scratch.memory.recall("cedar", policy=Policy(mode=mode, history=True))
    scratch.memory.recall("", policy=Policy(mode=Mode.TASK_MAINTENANCE, tasks=(record.address,)))

    assert scratch.heads() == before


@pytest.mark.parametrize("trigger", ["?!", "  ", "the", "who are you", "и не", "\u200b"])
def test_a_trigger_without_a_word_that_tells_is_refused(scratch: Scratch, trigger: str) -> None:
    """It could never speak up, or always: the refusal names it, and nothing is written; one with a word is taken."""
    before = scratch.heads()

    with pytest.raises(RuleError, match=r"triggers: at least one word besides .*, not ") as refused:
        scratch.memory.remember(Draft(text="Tell.", kind=Kind.PROSPECTIVE, triggers=("cedar", trigger)))

    assert refused.value.rule == "triggers"
    assert ascii(trigger) in str(refused.value)
    assert scratch.heads() == before
    scratch.memory.remember(Draft(text="Ask.", kind=Kind.PROSPECTIVE, triggers=("who is the cedar",)))


def test_what_is_due_surfaces_behind_any_number_of_reminders(scratch: Scratch) -> None:
    """Hundreds of newer reminders and a hundred that are due later do not hide it: the earliest due comes first."""
    memory = scratch.memory
    memory.remember(Draft(text="Renew the certificate.", kind=Kind.PROSPECTIVE, due=scratch.now + 1))
    later = scratch.now + 10**6 * SECOND
    for part in range(2):
        memory.remember_many(
            [Draft(text=f"Later {part} {n}.", kind=Kind.PROSPECTIVE, due=later + n) for n in range(200)]
        )
    memory.remember_many([Draft(text=f"Now {n}.", kind=Kind.PROSPECTIVE, due=scratch.now + n + 2) for n in range(100)])

    before = in_lane(memory.recall("cedar"), Lane.PROCEDURAL)
    scratch.wait(60)
    after = in_lane(memory.recall("cedar"), Lane.PROCEDURAL)

    assert before == []
    assert after[0] == "Renew the certificate."


def test_more_reminders_than_are_held_against_a_query_are_said(ada: Memory) -> None:
    """Of 257 only the newest 256 are looked at for words: the answer says so; of 256, or without words, nothing."""
    said = "procedural: degraded: only the newest 256 reminders and procedures were held against the query"
    ada.remember_many([Draft(text=f"Ask {n}.", kind=Kind.PROSPECTIVE, triggers=("cedar",)) for n in range(256)])
    enough = ada.recall("oak").notices

    ada.remember(Draft(text="One more.", kind=Kind.PROSPECTIVE, triggers=("cedar",)))

    assert said not in enough
    assert said in ada.recall("oak").notices
    assert said not in (*ada.recall("").notices, *ada.recall("oak", mode=Mode.LEXICAL).notices)


def test_callers_of_one_store_see_what_is_theirs(scratch: Scratch) -> None:
    """The same question of the same store: each caller's own places answer."""
    scratch.memory.remember("A cedar, Ada's.", scope=Scope.USER)
    bob = scratch.by(replace(BOB, project=None))
    scratch.memory.grant("bob", Act.WRITE, scope=Scope.USER)
    scratch.memory.grant("bob", Act.CREATE, scope=Scope.USER)
    scratch.memory.grant("bob", Act.READ, scope=Scope.USER)
    bob.remember("A cedar, Bob's.", scope=Scope.USER)

    assert told(scratch.by(ADA).recall("cedar")) == ["A cedar, Ada's."]
    assert told(bob.recall("cedar")) == ["A cedar, Bob's."]


def test_what_is_shown_as_a_task_is_not_counted_as_left_out(ada: Memory) -> None:
    """Other lanes meet it too; what really is left out is counted."""
    ada.remember(Draft(text="Water the cedar.", kind=Kind.TASK))

    alone = ada.recall("cedar", budget=Budget(items=1))
    facts = ada.recall("cedar", policy=Policy(kinds=(Kind.FACT,)))
    ada.remember("The cedar is wet.")
    full = ada.recall("cedar", budget=Budget(items=1))

    assert (alone.omitted, facts.omitted) == ({}, {})
    assert full.omitted == {"items": 1}
