"""Tasks are obligations: opened by a write, ended by acts of their own. Procedures rest on something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgerstone import (
    Act,
    Budget,
    Caller,
    CapacityError,
    Draft,
    Kind,
    Lane,
    Memory,
    Mode,
    Policy,
    RuleError,
    Scope,
    Standing,
    Status,
    Trust,
)
from ledgerstone.core import canonical
from ledgerstone.core.entries import Content, encode_content
from ledgerstone.core.rules import MAX_OPEN_TASK_BYTES, TASK_OVERHEAD_BYTES
from ledgerstone.core.values import DEFAULT_FLOOR
from tests.memories import ADA, ELSEWHERE, HOMELESS, MODEL, NOON, SECOND, STRANGER, Scratch

BUDGET_ITEMS = 16
TASK = Draft(text="Water the cedar.", kind=Kind.TASK)


def content_bytes(text: str, key: str | None = None, due: int | None = None) -> int:
    """What a task counts beside its overhead: the canonical bytes of its content."""
    return len(encode_content(Content(text=text, key=key, due=due)))


def open_texts(memory: Memory) -> list[str | None]:
    """What the memory lists as open."""
    return [record.text for record in memory.list_records("tasks").items]


def test_a_task_opens(ada: Memory) -> None:
    """A task is open unless its draft says otherwise, and a recall keeps it whatever was asked."""
    task = ada.remember(TASK).record

    item = ada.recall("something else altogether").items[0]

    assert (task.kind, task.status, task.standing) == (Kind.TASK, Status.OPEN, Standing.CURRENT)
    assert (item.record, item.lane) == (task, Lane.TASKS)


def test_a_task_closes(ada: Memory) -> None:
    """The next version is closed, with the same text and the reason; the open one is history."""
    task = ada.remember(TASK).record

    closed = ada.close_task(task.memory, reason="It rained.").record

    assert (closed.version, closed.status, closed.standing) == (2, Status.CLOSED, Standing.CURRENT)
    assert (closed.text, closed.reason, closed.trust) == (task.text, "It rained.", task.trust)
    assert ada.get(task.address).standing is Standing.SUPERSEDED
    assert open_texts(ada) == []


def test_a_closed_task_is_found_by_its_words(ada: Memory) -> None:
    """It is no obligation any more, and still a memory."""
    ada.close_task(ada.remember(TASK).record.memory)

    items = ada.recall("cedar", mode=Mode.LEXICAL).items

    assert [(item.record.status, item.lane) for item in items] == [(Status.CLOSED, Lane.LEXICAL)]


def test_a_task_can_be_retracted(ada: Memory) -> None:
    """It leaves the obligations and every recall; history keeps its text."""
    task = ada.remember(TASK).record

    gone = ada.retract(task.address, reason="There is no cedar.").record

    assert (gone.status, gone.standing) == (Status.RETRACTED, Standing.RETRACTED)
    assert open_texts(ada) == []
    assert ada.recall("cedar").items == ()
    assert [record.text for record in ada.history(task.memory)] == [task.text] * 2


def test_a_closed_task_stays_retractable(ada: Memory) -> None:
    """Closing is not the last word: what was done can still be withdrawn."""
    closed = ada.close_task(ada.remember(TASK).record.memory).record

    gone = ada.retract(closed.address, reason="It was not done.").record

    assert (gone.version, gone.text) == (3, TASK.text)


@pytest.mark.parametrize("caller", [ADA, MODEL])
def test_no_write_replaces_an_open_task(scratch: Scratch, caller: Caller) -> None:
    """Neither by its key nor by its address; once it is closed, its key may be claimed."""
    memory = scratch.by(caller)
    task = memory.remember(Draft(text="Water the cedar.", kind=Kind.TASK, key="garden")).record

    for draft in (
        Draft(text="Nothing to do.", key="garden"),
        Draft(text="Nothing to do.", replaces=task.address),
        Draft(text="Done.", kind=Kind.TASK, status=Status.CLOSED, key="garden"),
    ):
        with pytest.raises(RuleError, match="no write replaces it") as refused:
            memory.remember(draft)
        assert refused.value.rule == "open_task"

    assert open_texts(memory) == [TASK.text]
    memory.close_task(task.address)
    assert memory.remember(Draft(text="Nothing to do.", key="garden")).record.version == 3


def test_only_an_open_task_closes(ada: Memory) -> None:
    """A note, a closed task, an old version and a retracted one do not."""
    note = ada.remember("Cedar.").record
    task = ada.remember(TASK).record
    closed = ada.close_task(task.address).record

    for address in (note.address, closed.address, task.address):
        with pytest.raises(RuleError, match=f"close: {address} is not an open task"):
            ada.close_task(address)

    assert ada.close_task(ada.remember(TASK).record.address).record.status is Status.CLOSED


@pytest.mark.parametrize("standing", [Standing.CONTESTED, Standing.HELD, Standing.STALE])
def test_what_does_not_count_can_be_withdrawn(scratch: Scratch, standing: Standing) -> None:
    """What stood aside or lost its ground is retracted once; what holds its key stays as it was."""
    rejected = scratch.memory.remember(Draft(text="Oak.", key="tree")).record
    scratch.memory.retract(rejected.address, reason="It fell.", reject=True)
    if standing is Standing.HELD:
        aside = scratch.by(MODEL).remember(Draft(text="Oak.", key="tree")).record
    users = scratch.memory.remember(Draft(text="The elm is tall.", key="tree")).record
    if standing is Standing.CONTESTED:
        aside = scratch.by(MODEL).remember(Draft(text="Fir.", key="tree")).record
    elif standing is Standing.STALE:
        note = scratch.memory.remember("A beech stands there.").record
        aside = scratch.memory.remember(Draft(text="Beech.", kind=Kind.SUMMARY, sources=(note.address,))).record
        scratch.memory.retract(note.address, reason="It does not.")
    assert scratch.memory.get(aside.address).standing is standing

    gone = scratch.memory.retract(aside.address, reason="Nobody needs it.").record

    assert (gone.version, gone.text, gone.standing) == (2, aside.text, Standing.RETRACTED)
    with pytest.raises(RuleError, match="retract: "):
        scratch.memory.retract(aside.address, reason="Again.")
    assert scratch.memory.get(users.memory) == users
    assert scratch.memory.remember(Draft(text="The elm is old.", key="tree")).replaced is not None
    scratch.heads()


def test_only_what_stands_is_retracted(ada: Memory) -> None:
    """What was superseded or retracted before is not withdrawn again."""
    old = ada.remember(Draft(text="Oak.", key="tree")).record
    new = ada.remember(Draft(text="Elm.", key="tree")).record
    gone = ada.retract(new.address, reason="It fell.").record

    for address in (old.address, new.address, gone.address, new.memory):
        with pytest.raises(RuleError, match="no longer stands"):
            ada.retract(address, reason="Again.")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *((kind, status) for kind in Kind if kind is not Kind.TASK for status in (Status.OPEN, Status.CLOSED)),
        (Kind.TASK, Status.ACTIVE),
    ],
)
def test_open_and_closed_are_for_tasks(ada: Memory, kind: Kind, status: Status) -> None:
    """Nothing else is open or closed, and a task is never merely active."""
    with pytest.raises(RuleError, match="a task is open or closed, and nothing else is"):
        ada.remember(Draft(text="Cedar.", kind=kind, status=status, sources=(ada.remember("Oak.").record.address,)))

    done = ada.remember(Draft(text="Done.", kind=Kind.TASK, status=Status.CLOSED)).record
    assert (done.status, open_texts(ada)) == (Status.CLOSED, [])


@pytest.mark.parametrize("kind", [Kind.NOTE, Kind.TASK])
def test_a_draft_is_never_born_retracted(ada: Memory, kind: Kind) -> None:
    """Retracting is an act, with a target and a reason."""
    with pytest.raises(RuleError, match="retracting is an act of its own") as refused:
        ada.remember(Draft(text="Cedar.", kind=kind, status=Status.RETRACTED))

    assert refused.value.rule == "status"


def test_as_many_tasks_as_the_default_budget_shows(ada: Memory) -> None:
    """The sixteenth open task is taken, the seventeenth refused with both numbers, until one is settled."""
    tasks = ada.remember_many([Draft(text=f"Task {n}.", kind=Kind.TASK) for n in range(BUDGET_ITEMS)])
    assert len(ada.recall("").items) == BUDGET_ITEMS

    with pytest.raises(
        RuleError, match=f"16 open tasks and {MAX_OPEN_TASK_BYTES} bytes in all; this one would make it 17"
    ) as refused:
        ada.remember(TASK)

    assert refused.value.rule == "open_tasks"
    ada.close_task(tasks[0].record.address)
    assert ada.remember(TASK).record.status is Status.OPEN


def test_open_tasks_fit_the_bytes_of_the_default_budget(ada: Memory) -> None:
    """The longest task alone is taken and recalled, one byte more is not taken; after it there is room for none."""
    key = "k" * 128
    longest = MAX_OPEN_TASK_BYTES - TASK_OVERHEAD_BYTES - content_bytes("", key, NOON)

    with pytest.raises(RuleError, match=f"this one would make it 1 and {MAX_OPEN_TASK_BYTES + 1}"):
        ada.remember(Draft(text="a" * (longest + 1), kind=Kind.TASK, key=key, due=NOON))

    task = ada.remember(Draft(text="a" * longest, kind=Kind.TASK, key=key, due=NOON)).record
    assert [item.record for item in ada.recall("").items] == [task]
    with pytest.raises(RuleError, match="open_tasks"):
        ada.remember(TASK)


def test_a_task_counts_as_it_is_sent(ada: Memory) -> None:
    """A sign that is escaped to six bytes counts six, whatever it has in the text."""
    longest = (MAX_OPEN_TASK_BYTES - TASK_OVERHEAD_BYTES - content_bytes("")) // 6

    with pytest.raises(RuleError, match="open_tasks: "):
        ada.remember(Draft(text="\x01" * (longest + 1), kind=Kind.TASK))

    task = ada.remember(Draft(text="\x01" * longest, kind=Kind.TASK)).record
    assert [item.record for item in ada.recall("").items] == [task]


@pytest.mark.parametrize("sign", ["k", "\u00e9", '"', "\x01"])
def test_a_default_recall_keeps_as_much_as_was_taken(ada: Memory, sign: str) -> None:
    """Sixteen tasks that fill the bytes together, each with a key and a time, are all there."""
    room = MAX_OPEN_TASK_BYTES // BUDGET_ITEMS - TASK_OVERHEAD_BYTES - content_bytes("", "00" + sign * 8, NOON)
    count = room // (content_bytes(sign) - content_bytes(""))
    drafts = [Draft(text=sign * count, kind=Kind.TASK, key=f"{n:02}" + sign * 8, due=NOON) for n in range(BUDGET_ITEMS)]

    tasks = [answer.record for answer in ada.remember_many(drafts)]

    assert [item.record for item in ada.recall("").items] == tasks


def test_several_tasks_of_one_commit_count_together(scratch: Scratch) -> None:
    """A commit cannot smuggle in what its drafts could not one by one."""
    scratch.memory.remember("The project is there.")
    before = scratch.heads()

    with pytest.raises(RuleError, match="would make it 17"):
        scratch.memory.remember_many([TASK] * (BUDGET_ITEMS + 1))

    assert scratch.heads() == before
    assert len(scratch.memory.remember_many([TASK] * BUDGET_ITEMS)) == BUDGET_ITEMS


def test_a_task_below_the_floor_is_no_obligation(scratch: Scratch) -> None:
    """What somebody unknown asks for is neither kept in recall nor counted against the budget."""
    stranger = scratch.by(STRANGER)

    tasks = [stranger.remember(Draft(text=f"Pay {n}.", kind=Kind.TASK)).record for n in range(BUDGET_ITEMS + 1)]

    assert max(task.trust for task in tasks) < DEFAULT_FLOOR
    assert scratch.memory.recall("pay").items == ()
    assert open_texts(scratch.memory) == []
    assert scratch.memory.remember(TASK).record.status is Status.OPEN


def test_a_retraction_makes_room(ada: Memory) -> None:
    """A withdrawn task counts no longer."""
    tasks = ada.remember_many([TASK] * BUDGET_ITEMS)
    ada.retract(tasks[3].record.address, reason="Twice.")

    assert ada.remember(TASK).record.status is Status.OPEN
    assert len(open_texts(ada)) == BUDGET_ITEMS


def test_tasks_outgrow_a_recall_only_across_namespaces(scratch: Scratch) -> None:
    """And by callers that do not see both. Then the error names what they need, and a recall with that keeps all."""
    for caller, scope in ((ADA, Scope.PROJECT), (HOMELESS, Scope.USER)):
        scratch.by(caller).remember_many([TASK] * (BUDGET_ITEMS // 2 + 1), scope=scope)

    with pytest.raises(CapacityError, match="the 18 open tasks need") as refused:
        scratch.memory.recall("cedar")

    assert "18 items" in refused.value.message
    assert len(scratch.memory.recall("cedar", budget=Budget(items=18)).items) == 18


def test_a_procedure_needs_a_source(ada: Memory) -> None:
    """Of its own it is refused; resting on a record it is taken, on one that was superseded too."""
    old = ada.remember(Draft(text="Water wilts it.", key="cedar")).record
    ada.remember(Draft(text="Water helps it.", key="cedar"))

    with pytest.raises(RuleError, match="procedure: needs a source") as refused:
        ada.remember(Draft(text="Water it daily.", kind=Kind.PROCEDURE))

    assert refused.value.rule == "procedure"
    procedure = ada.remember(Draft(text="Water it daily.", kind=Kind.PROCEDURE, sources=(old.address,))).record
    assert procedure.sources == (old.address,)


def test_a_procedure_does_not_rest_on_summaries_or_withdrawals(ada: Memory) -> None:
    """A summary and a retracted record are no ground for it; one other source beside them is."""
    note = ada.remember("It was dry.").record
    summary = ada.remember(Draft(text="Dry.", kind=Kind.SUMMARY, sources=(note.address,))).record
    withdrawn = ada.remember("It was wet.").record
    gone = ada.retract(withdrawn.address, reason="It was not.").record

    for sources in ((summary.address,), (withdrawn.address,), (gone.address,), (summary.address, gone.address)):
        with pytest.raises(RuleError, match="neither a summary nor retracted"):
            ada.remember(Draft(text="Water it.", kind=Kind.PROCEDURE, sources=sources))

    draft = Draft(text="Water it.", kind=Kind.PROCEDURE, sources=(summary.address, note.address))
    assert ada.remember(draft).record.standing is Standing.CURRENT


def test_open_tasks_of_all_that_is_seen_together_are_counted(scratch: Scratch) -> None:
    """One more than a default recall holds is refused in each namespace, and told what stands where; closing helps."""
    ada = scratch.memory
    tasks = [ada.remember(Draft(text=f"Water tree {n}.", kind=Kind.TASK)).record for n in range(10)]
    for n in range(6):
        ada.remember(Draft(text=f"Call {n}.", kind=Kind.TASK), scope=Scope.USER)

    for scope in (Scope.USER, Scope.PROJECT, Scope.SESSION):
        with pytest.raises(RuleError, match="make it 17 and") as refused:
            ada.remember(Draft(text="One more.", kind=Kind.TASK), scope=scope)
        assert refused.value.rule == "open_tasks"
        assert "in scope project" in refused.value.message
        assert "in scope user" in refused.value.message
        assert "ledgerstone list tasks" in refused.value.hint

    assert len(ada.recall("anything").items) == BUDGET_ITEMS
    ada.close_task(tasks[0].address)
    assert ada.remember(Draft(text="One more.", kind=Kind.TASK), scope=Scope.SESSION).record.status is Status.OPEN
    assert len(ada.recall("anything").items) == BUDGET_ITEMS
    scratch.heads()


def test_the_bytes_of_all_that_is_seen_together_are_counted(scratch: Scratch) -> None:
    """Few long tasks are refused as many short ones are; what is no open task is not."""
    ada = scratch.memory
    long = "x" * (MAX_OPEN_TASK_BYTES // 2)
    ada.remember(Draft(text=long, kind=Kind.TASK))

    with pytest.raises(RuleError, match="open tasks and 7168 bytes in all that a recall here looks at"):
        ada.remember(Draft(text=long, kind=Kind.TASK), scope=Scope.USER)

    ada.remember(long, scope=Scope.USER)
    ada.remember(Draft(text=long, kind=Kind.TASK, status=Status.CLOSED), scope=Scope.USER)
    assert ada.remember(Draft(text="x", kind=Kind.TASK), scope=Scope.USER).record.status is Status.OPEN


def test_what_is_not_seen_here_does_not_count_here(scratch: Scratch) -> None:
    """Tasks of another project, and of a scope that an isolated one does not see; nor does what is below the floor."""
    ada = scratch.memory
    full = [Draft(text=f"Water tree {n}.", kind=Kind.TASK) for n in range(BUDGET_ITEMS)]
    scratch.by(ELSEWHERE).remember_many(full)
    scratch.by(STRANGER).remember_many(full, scope=Scope.USER)
    ada.remember_many(full)

    project = ada.recall().items[0].record.namespace
    ada.isolate(project)

    ada.remember(TASK, scope=Scope.USER)
    assert len(ada.recall().items) == BUDGET_ITEMS


def test_what_others_added_up_to_is_told_with_the_command_that_settles_it(scratch: Scratch) -> None:
    """Who wrote where the rest is not seen could do so: the recall that holds it all says how many, and what to run."""
    ada = scratch.memory
    tasks = [ada.remember(Draft(text=f"Water tree {n}.", kind=Kind.TASK)).record for n in range(10)]
    for n in range(10):
        scratch.by(HOMELESS).remember(Draft(text=f"Call {n}.", kind=Kind.TASK), scope=Scope.USER)

    with pytest.raises(CapacityError, match="the 20 open tasks need") as full:
        ada.recall("anything")

    assert "ledgerstone recall --tasks" in full.value.hint
    policy = Policy(mode=Mode.TASK_MAINTENANCE, tasks=tuple(task.address for task in tasks[:4]))
    for item in ada.recall(policy=policy).items:
        ada.close_task(item.record.address)
    assert len(ada.recall("anything").items) == BUDGET_ITEMS


def test_an_expired_task_does_not_count_at_the_door(scratch: Scratch) -> None:
    """While those of the user last one of a project is refused; once they have expired, and are not shown, not."""
    ada = scratch.memory
    lasting = [Draft(text=f"Call {n}.", kind=Kind.TASK, expires=scratch.now + SECOND) for n in range(BUDGET_ITEMS)]
    ada.remember_many(lasting, scope=Scope.USER)
    with pytest.raises(RuleError, match="make it 17 and"):
        ada.remember(TASK)

    scratch.wait(2)

    task = ada.remember(TASK).record
    assert [item.record for item in ada.recall("anything").items if item.lane is Lane.TASKS] == [task]


def test_a_task_below_the_floor_of_its_caller_does_not_count_at_the_door(scratch: Scratch) -> None:
    """Whose recall shows none of a model's tasks is held to none of them; the model is."""
    model, strict = scratch.by(MODEL), scratch.by(replace(ADA, floor=Trust.USER_EXPLICIT))
    for _ in range(BUDGET_ITEMS):
        model.remember(TASK)
    with pytest.raises(RuleError, match="make it 17 and"):
        model.remember(TASK, scope=Scope.USER)

    task = strict.remember(TASK, scope=Scope.USER).record

    assert [item.record for item in strict.recall("anything").items] == [task]


def test_tasks_that_a_caller_may_not_settle_do_not_keep_it_from_writing(scratch: Scratch) -> None:
    """Where others filled what it may only read its own is taken, and its recall says what to do; a writer waits."""
    ada, bob = scratch.memory, scratch.by(Caller(principal="bob", origin=ADA.origin))
    team = ada.share("team")
    ada.remember_many([TASK] * BUDGET_ITEMS, namespace=team)
    ada.grant("bob", Act.READ, namespace=team)
    for act in (Act.CREATE, Act.READ, Act.WRITE):
        ada.grant("bob", act, scope=Scope.USER)

    assert bob.remember(TASK, scope=Scope.USER).record.status is Status.OPEN
    with pytest.raises(CapacityError, match="the 17 open tasks need") as full:
        bob.recall("anything")
    assert "ledgerstone recall --tasks" in full.value.hint

    ada.grant("bob", Act.WRITE, namespace=team)
    with pytest.raises(RuleError, match="make it 18 and"):
        bob.remember(TASK, scope=Scope.USER)


def test_a_task_pays_for_the_name_of_a_shared_namespace(scratch: Scratch) -> None:
    """As many as a default recall holds under a long name are taken and recalled, one more is refused."""
    ada = scratch.memory
    team = ada.share("\u96ea" * 120)
    room = len(canonical.encode({"namespace_name": "\u96ea" * 120}))
    each = TASK_OVERHEAD_BYTES + content_bytes(TASK.text) + room
    tasks = [ada.remember(TASK, namespace=team).record for _ in range(MAX_OPEN_TASK_BYTES // each)]

    with pytest.raises(RuleError, match="open_tasks"):
        ada.remember(TASK, namespace=team)

    assert 0 < len(tasks) < BUDGET_ITEMS
    assert [item.record for item in ada.recall("anything").items] == tasks
