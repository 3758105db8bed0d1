"""A recall keeps its obligations, its budget and its filters, and says what it left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone import Budget, CapacityError, Draft, Kind, Lane, Memory, Mode, Policy, Recall, Scope, Standing, Trust
from ledgerstone.core import recall as choosing
from ledgerstone.core.rendering import markdown
from ledgerstone.entrypoints import wire
from ledgerstone.semantic import Function
from ledgerstone.semantic import Lane as Meaning
from tests.core.test_credentials import REAL
from tests.memories import (
    ADA,
    ELSEWHERE,
    EVENING,
    FREE_MODES,
    HOMELESS,
    LOST,
    MODEL,
    SECOND,
    STRANGER,
    THERE,
    Scratch,
    texts,
)

WORDS = ["cedar", "oak", "water", "gate", "Ada's", "the", "of", "\u6728", "\u0434\u0443\u0431", "1871", "foo_bar"]


def told(context: Recall) -> list[str | None]:
    """The texts of a context in their order."""
    return [item.record.text for item in context.items]


def compact(context: Recall, *, heads: bool = False) -> int:
    """The bytes that a door would send."""
    return len(json.dumps(wire.recalled(context, heads=heads), ensure_ascii=False, separators=(",", ":")).encode())


def test_every_open_task_is_kept(scratch: Scratch) -> None:
    """Tasks of session, project and user come first, whatever was asked, and each is labelled with its scope."""
    for scope in (Scope.USER, Scope.SESSION, Scope.PROJECT):
        scratch.memory.remember(Draft(text=f"Water, {scope}.", kind=Kind.TASK), scope=scope)
    scratch.memory.remember_many([f"A cedar, the {n}th." for n in range(20)])

    context = scratch.memory.recall("cedar")

    first = [(item.lane, item.record.scope) for item in context.items[:3]]
    assert first == [(Lane.TASKS, scope) for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER)]
    assert len(context.items) == 16
    assert told(context)[3] == "A cedar, the 19th."


def test_tasks_that_take_all_places_are_told(ada: Memory) -> None:
    """A context without room for what was found says why, and how to have it; one more place, and it says nothing."""
    ada.remember("Cedar.")
    ada.remember_many([Draft(text=f"Task {number}", kind=Kind.TASK) for number in range(3)])

    full = ada.recall("cedar", budget=Budget(items=3))
    roomy = ada.recall("cedar", budget=Budget(items=4))

    said = "open tasks take all 3 places: close some, or ask for more items"
    assert said in full.notices
    assert full.omitted == {"items": 1}
    assert said not in roomy.notices
    assert roomy.items[-1].record.text == "Cedar."


def test_a_task_is_there_once(ada: Memory) -> None:
    """A task that the words find too does not come a second time."""
    ada.remember(Draft(text="Water the cedar.", kind=Kind.TASK))
    ada.remember("The cedar is dry.")

    assert told(ada.recall("cedar water")) == ["Water the cedar.", "The cedar is dry."]


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.RECENT])
def test_baselines_promise_no_tasks(ada: Memory, mode: Mode) -> None:
    """Lexical and recent are for comparison: a task comes like anything else, in that lane, or not at all."""
    ada.remember(Draft(text="Water the cedar.", kind=Kind.TASK))
    ada.remember("The cedar is dry.")

    context = ada.recall("dry", mode=mode)

    assert {item.lane.value for item in context.items} == {mode.value}
    assert ("Water the cedar." in told(context)) == (mode is Mode.RECENT)


def test_too_many_tasks_say_what_they_need(ada: Memory) -> None:
    """The error names bytes and items; with exactly those the recall succeeds, with less of either it does not."""
    ada.remember_many([Draft(text=f"Water tree {n}." + "!" * 200, kind=Kind.TASK) for n in range(5)])
    whole = ada.recall("", mode=Mode.BALANCED, budget=Budget(items=5, bytes=8192))
    need = whole.bytes - choosing.envelope(whole.notices) + choosing.envelope(())

    with pytest.raises(CapacityError, match=f"the 5 open tasks need {need} bytes and 5 items") as refused:
        ada.recall("", budget=Budget(bytes=need - 1))
    with pytest.raises(CapacityError, match=f"the budget has {need} bytes and 4 items"):
        ada.recall("", budget=Budget(bytes=need, items=4))

    assert "ledgerstone list tasks" in refused.value.hint
    assert len(ada.recall("", budget=Budget(bytes=need, items=5)).items) == 5


def test_notices_alone_refuse_no_recall(ada: Memory) -> None:
    """Where several things are degraded and little room is left, the answer counts what it could not say."""

    def broken(texts: Sequence[str]) -> list[list[float]]:
        raise ValueError("no model " * 10 + str(len(texts)))

    degraded = Memory(ada._ledger, ada.caller, Meaning(lambda: Function(broken, "broken", "1", 2)))
    for part in range(2):
        degraded.remember_many([Draft(text=f"Later {part} {n}.", kind=Kind.PROSPECTIVE) for n in range(150)])

    whole, least = degraded.recall("cedar"), degraded.recall("cedar", budget=Budget(bytes=512))

    assert "notices" not in whole.omitted
    assert least.omitted["notices"] == len(whole.notices) - len(least.notices) > 0
    assert compact(least) <= least.bytes <= 512


def test_the_item_budget_is_kept(ada: Memory) -> None:
    """At most so many entries; the rest is counted as left out for that reason."""
    ada.remember_many([f"A cedar, the {n}th." for n in range(10)])

    context = ada.recall("cedar", budget=Budget(items=4))

    assert len(context.items) == 4
    assert context.omitted == {"items": 6}


def test_the_byte_budget_is_kept_to_the_byte(ada: Memory) -> None:
    """A budget of exactly what a context takes gives that context; one byte less gives one entry less."""
    ada.remember_many([f"A cedar, the {n}th." for n in range(5)])
    whole = ada.recall("cedar")

    same = ada.recall("cedar", budget=Budget(bytes=whole.bytes))
    less = ada.recall("cedar", budget=Budget(bytes=whole.bytes - 1))

    assert (told(same), same.bytes, same.omitted) == (told(whole), whole.bytes, {})
    assert (told(less), less.omitted) == (told(whole)[:-1], {"bytes": 1})


def test_what_is_too_large_is_skipped_and_the_walk_goes_on(ada: Memory) -> None:
    """Nothing is cut, and a large record does not keep smaller ones behind it out."""
    ada.remember("A small cedar.")
    ada.remember("A large cedar. " + "Very large. " * 600)
    ada.remember("A new cedar.")

    context = ada.recall("cedar", mode=Mode.RECENT, budget=Budget(bytes=2048))

    assert told(context) == ["A new cedar.", "A small cedar."]
    assert context.omitted == {"bytes": 1}


@settings(max_examples=60)
@given(query=st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), budget=st.integers(512, 6000), data=st.data())
def test_a_context_fits_its_budget_as_it_is_sent(grove: Scratch, query: str, budget: int, data: st.DataObject) -> None:
    """The compact JSON of the doors is no longer than the bytes reported, and these no more than the budget."""
    mode = data.draw(st.sampled_from([Mode.LEXICAL, Mode.RECENT]))
    items = data.draw(st.integers(1, 40))

    context = grove.memory.recall(query, mode=mode, budget=Budget(bytes=budget, items=items))

    assert compact(context) <= context.bytes <= budget
    assert len(context.items) <= items
    assert len({item.record.address for item in context.items}) == len(context.items)


@settings(max_examples=40)
@given(budget=st.integers(900, 6000), heads=st.booleans(), receipt=st.booleans(), mode=st.sampled_from(FREE_MODES))
def test_a_context_fits_its_budget_with_all_that_is_said(
    grove: Scratch, budget: int, mode: Mode, *, heads: bool, receipt: bool
) -> None:
    """What is said of a query like a credential, a receipt and heads are paid for; Markdown says its own size truly."""
    context = grove.memory.recall(
        f"cedar {REAL['gitlab_pat']}", mode=mode, budget=Budget(bytes=budget), receipt=receipt, heads=heads
    )

    shown = markdown(context).encode()
    size, _, rest = shown.splitlines()[-1].partition(b" bytes above; as JSON ")
    assert compact(context, heads=heads) <= context.bytes <= budget
    assert rest == b"%d of the %d allowed" % (context.bytes, budget)
    assert int(size) == len(shown) - len(shown.splitlines(keepends=True)[-1])
    said = sum("looks like a credential" in notice for notice in context.notices)
    assert said + context.omitted.get("notices", 0) >= receipt


def test_heads_that_fill_the_budget_are_refused(ada: Memory) -> None:
    """The error names what they need, with which the recall succeeds; without them a smaller budget does."""
    ada.remember_many([Draft(text=f"Cedar {n}.") for n in range(3)])
    for n in range(4):
        ada.remember("Cedar.", namespace=ada.share(f"grove {n}"))

    with pytest.raises(CapacityError, match="what stands around the entries needs") as refused:
        ada.recall("cedar", budget=Budget(bytes=600), heads=True)

    need = int(refused.value.message.split()[6])
    with pytest.raises(CapacityError):
        ada.recall("cedar", budget=Budget(bytes=need - 1), heads=True)
    assert ada.recall("cedar", budget=Budget(bytes=need), heads=True).items == ()
    assert ada.recall("cedar", budget=Budget(bytes=600)).items


def test_the_envelope_holds_every_reason_and_a_receipt() -> None:
    """With all reasons in the millions and a receipt, an answer without entries takes no more than what is charged."""
    reasons = ("bytes", "items", "tokens", "below_floor", "expired", "filtered", "not_due", "erased", "notices")
    context = Recall(
        mode=Mode.BALANCED,
        query="",
        items=(),
        heads={},
        budget=Budget(),
        bytes=0,
        omitted=dict.fromkeys(reasons[:3], 512)
        | dict.fromkeys(reasons[3:6], 9_999_999)
        | dict.fromkeys(reasons[6:], 512),
        notices=("anchor: none",),
        receipt="rcp_0000000000000000",
    )

    assert compact(context) <= choosing.envelope(context.notices)


@pytest.fixture(scope="module")
def grove(shelf: Scratch) -> Scratch:
    """A store with a hundred records of all sorts, with text that grows when it is escaped."""
    import random  # noqa: PLC0415 (its own seed)

    chance = random.Random(7)
    for scope in (Scope.SESSION, Scope.PROJECT, Scope.USER):
        shelf.memory.remember_many(
            [
                Draft(
                    text=" ".join(chance.choices([*WORDS, '"', "\\", "\n", "\x01", "\u2028"], k=chance.randint(1, 80))),
                    kind=chance.choice([Kind.NOTE, Kind.FACT, Kind.EPISODE]),
                    key=f'{scope} "{n}"' if n % 3 else None,
                    due=n * SECOND if n % 4 else None,
                )
                for n in range(34)
            ],
            scope=scope,
        )
    return shelf


@settings(max_examples=25)
@given(query=texts)
def test_any_text_is_a_query(grove: Scratch, query: str) -> None:
    """Nothing in a query is syntax: every text is answered, twice in the same way."""
    first, second = grove.memory.recall(query), grove.memory.recall(query)

    assert first == second
    assert compact(first) <= first.bytes <= 8192


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "cedar AND",
        "NEAR(cedar oak)",
        "text:cedar",
        "cedar*",
        "^cedar",
        "-cedar",
        "(((",
        "'; DROP TABLE x",
        "\\",
        "%_",
    ],
)
def test_a_query_is_never_syntax(ada: Memory, query: str) -> None:
    """What would be an operator to a full-text engine is words, or nothing."""
    ada.remember("The cedar.")
    ada.remember("The oak.")

    found = told(ada.recall(query, mode=Mode.LEXICAL))

    assert found == ([text for text in ("The oak.", "The cedar.") if text.split()[1].strip(".") in query])


def test_lanes_take_turns(ada: Memory) -> None:
    """Three places for what was found, one for the newest; shown lane by lane, and what both have comes once."""
    ada.remember_many([f"Cedar{' cedar' * (5 - n)} {n}." for n in range(5)])
    ada.remember_many(["Oak.", "Elm."])

    context = ada.recall("cedar", budget=Budget(items=6))

    assert [(item.record.text, item.lane) for item in context.items] == [
        ("Cedar cedar cedar cedar cedar cedar 0.", Lane.LEXICAL),
        ("Cedar cedar cedar cedar cedar 1.", Lane.LEXICAL),
        ("Cedar cedar cedar cedar 2.", Lane.LEXICAL),
        ("Cedar cedar cedar 3.", Lane.LEXICAL),
        ("Cedar cedar 4.", Lane.LEXICAL),
        ("Elm.", Lane.RECENT),
    ]
    assert [item.rank for item in context.items] == [0, 1, 2, 3, 4, 5]
    assert [item.score is None for item in context.items] == [False, False, False, False, False, True]


def test_what_was_found_is_shown_best_first(ada: Memory) -> None:
    """A weak hit that comes up early because it is new stands behind the better ones all the same."""
    ada.remember_many([f"Cedar{' cedar' * (5 - n)} {n}." for n in range(5)])
    ada.remember("Of all the trees in the valley only one old one is a cedar.")

    context = ada.recall("cedar", budget=Budget(items=6))

    scores = [item.score or 0 for item in context.items]
    assert [item.lane for item in context.items] == [Lane.LEXICAL] * 6
    assert scores == sorted(scores, reverse=True)
    assert context.items[-1].record.text == "Of all the trees in the valley only one old one is a cedar."


def test_what_has_expired_leaves_by_the_clock(scratch: Scratch) -> None:
    """A second before its time a record is there in both lanes, at its time it is in neither, and it is counted."""
    record = scratch.memory.remember(Draft(text="The cedar is wet.", expires=scratch.now + 60 * SECOND)).record
    task = Draft(text="Water it today.", kind=Kind.TASK, expires=scratch.now + 60 * SECOND)
    scratch.memory.remember(task)

    scratch.wait(59)
    before = scratch.memory.recall("cedar")
    scratch.wait(1)
    after = scratch.memory.recall("cedar")

    assert told(before) == ["Water it today.", "The cedar is wet."]
    assert told(after) == []
    assert after.omitted["expired"] >= 1
    assert scratch.memory.get(record.memory).standing is Standing.EXPIRED


def test_what_is_below_the_floor_never_comes(scratch: Scratch) -> None:
    """In no mode and no list, though it is the only one that fits; its own floor a host may lower."""
    scratch.by(STRANGER).remember("A cedar, they say.")
    scratch.by(MODEL).remember(Draft(text="A cedar, I read.", external=True))
    scratch.by(MODEL).remember("A cedar, I think.")

    for mode in FREE_MODES:
        assert told(scratch.by(STRANGER).recall("cedar", mode=mode)) == ["A cedar, I think."]
    assert [record.text for record in scratch.memory.list_records().items] == ["A cedar, I think."]
    assert scratch.memory.recall("cedar", mode=Mode.LEXICAL).omitted == {"below_floor": 2}
    low, high = (scratch.by(replace(ADA, floor=floor)) for floor in (Trust.UNKNOWN, Trust.TOOL_VERIFIED))
    assert len(low.recall("cedar").items) == 3
    assert told(high.recall("cedar")) == []


@pytest.mark.parametrize("reason", ["expired", "below_floor"])
def test_what_may_not_be_recalled_hides_nothing_that_may(scratch: Scratch, reason: str) -> None:
    """Behind any number of newer records that are left out, the recent lane finds the one that is not."""
    scratch.memory.remember("The cedar.")
    by = scratch.by(STRANGER) if reason == "below_floor" else scratch.memory
    expires = None if reason == "below_floor" else scratch.now + SECOND
    for _ in range(2):
        by.remember_many([Draft(text="An oak.", expires=expires) for _ in range(200)])
    scratch.wait(1)

    context = scratch.memory.recall("", budget=Budget(candidates=1))

    assert told(context) == ["The cedar."]
    assert context.omitted == {reason: 400}


def test_a_summary_that_has_expired_hides_nothing(scratch: Scratch) -> None:
    """What it covered is out of the recent lane until the summary's time, and back from then on."""
    note = scratch.memory.remember("The cedar is old.").record
    scratch.memory.remember(
        Draft(
            text="Old.",
            kind=Kind.SUMMARY,
            sources=(note.address,),
            covers=(note.address,),
            expires=scratch.now + 2 * SECOND,
        )
    )

    scratch.wait(1)
    assert told(scratch.memory.recall("", mode=Mode.RECENT)) == ["Old."]
    assert scratch.memory.get(note.address).standing is Standing.COVERED

    scratch.wait(1)
    assert told(scratch.memory.recall("", mode=Mode.RECENT)) == ["The cedar is old."]
    assert scratch.memory.get(note.address).standing is Standing.CURRENT


def test_a_summary_below_the_callers_floor_hides_nothing(scratch: Scratch) -> None:
    """Who may not see the summary sees what it covers; who may see it does not."""
    note = scratch.memory.remember("The cedar is old.").record
    scratch.by(MODEL).remember(Draft(text="Old.", kind=Kind.SUMMARY, sources=(note.address,), covers=(note.address,)))
    strict = scratch.by(replace(ADA, floor=Trust.TOOL_VERIFIED))

    assert told(strict.recall("", mode=Mode.RECENT)) == ["The cedar is old."]
    assert told(scratch.memory.recall("", mode=Mode.RECENT)) == ["Old."]


def test_what_was_corrected_never_comes(ada: Memory) -> None:
    """Superseded and retracted versions are found by no words."""
    ada.remember(Draft(text="The cedar is young.", key="cedar"))
    ada.remember(Draft(text="The cedar is old.", key="cedar"))
    ada.retract(ada.remember("The cedar is a fir.").record.address, reason="It is not.")

    for mode in FREE_MODES:
        assert told(ada.recall("cedar young fir", mode=mode)) == ["The cedar is old."]


def test_every_entry_says_its_scope(scratch: Scratch) -> None:
    """Session, project and user are all there, each entry under its own label, the more specific first."""
    for scope in (Scope.USER, Scope.PROJECT, Scope.SESSION):
        scratch.memory.remember("A cedar.", scope=scope)

    items = scratch.memory.recall("cedar", mode=Mode.LEXICAL).items

    assert [choosing.lean(item.record, item.lane)["scope"] for item in items] == ["session", "project", "user"]


def test_a_recall_sees_what_the_caller_is_bound_to(scratch: Scratch) -> None:
    """Another session and another project give what is theirs, and the user's own beside it."""
    for scope in (Scope.USER, Scope.PROJECT, Scope.SESSION):
        scratch.memory.remember(f"A cedar, {scope}.", scope=scope)

    seen = {
        name: {item.record.scope.value for item in scratch.by(caller).recall("cedar").items}
        for name, caller in (("evening", EVENING), ("elsewhere", ELSEWHERE), ("homeless", HOMELESS))
    }

    assert seen == {"evening": {"project", "user"}, "elsewhere": {"session", "user"}, "homeless": {"session", "user"}}


def test_a_recall_names_its_heads(scratch: Scratch) -> None:
    """Which commit of which namespace it was read at."""
    here = scratch.memory.remember("A cedar.")
    user = scratch.memory.remember("A cedar.", scope=Scope.USER)

    heads = scratch.memory.recall("cedar").heads

    assert heads == {answer.record.namespace: (answer.sequence, answer.commit) for answer in (here, user)}


def test_a_recall_repeats_itself(scratch: Scratch) -> None:
    """The same question at the same heads has the same answer, from another opening too."""
    scratch.memory.remember_many([f"A cedar, the {n}th." for n in range(256)])

    first = scratch.memory.recall("cedar 17th")

    assert scratch.memory.recall("cedar 17th") == first
    assert scratch.reopen().recall("cedar 17th") == first
    assert told(first)[0] == "A cedar, the 17th."


@pytest.mark.parametrize("mode", [Mode.RECENT, Mode.BALANCED])
def test_what_is_new_comes_of_every_namespace(scratch: Scratch, mode: Mode) -> None:
    """Whichever namespace was made first, what no word finds is shown of each of them."""
    notes = {scope: f"Water, {scope}." for scope in (Scope.USER, Scope.SESSION, Scope.PROJECT)}
    for scope, text in notes.items():
        scratch.memory.remember(text, scope=scope)

    context = scratch.memory.recall(mode=mode)

    assert sorted(filter(None, told(context))) == sorted(notes.values())
    for scope, text in notes.items():
        alone = scratch.memory.recall("nothing such", mode=mode, policy=Policy(scopes=(scope,)))
        assert told(alone) == [text]


def test_an_empty_query_is_answered_by_time(ada: Memory) -> None:
    """Without words a balanced recall gives what is newest, a lexical one nothing."""
    ada.remember_many(["One.", "Two.", "Three."])

    assert told(ada.recall()) == told(ada.recall("")) == ["Three.", "Two.", "One."]
    assert told(ada.recall("", mode=Mode.LEXICAL)) == []
    assert told(ada.recall(" \n", mode=Mode.LEXICAL)) == []


def test_stop_words_count_when_there_is_nothing_else(ada: Memory) -> None:
    """Asked for nothing but stop words, a recall looks for these; beside a telling word they find nothing."""
    ada.remember("To be or not to be.")
    ada.remember("Cedar.")

    assert told(ada.recall("to be or not to be", mode=Mode.LEXICAL)) == ["To be or not to be."]
    assert told(ada.recall("to be a cedar", mode=Mode.LEXICAL)) == ["Cedar."]


@pytest.mark.parametrize("folded", [False, True])
def test_han_characters_rank_what_pairs_found(scratch: Scratch, *, folded: bool) -> None:
    """Of texts that share a pair with a query, that one is first which shares more characters; they find nothing."""
    memory = scratch.memory
    memory.remember_many(["\u4e50\u8c31\u5728\u8fd9\u91cc", "\u97f3\u4e50\u54c1", "\u97f3\u4e50\u5929"])
    if folded:
        memory.remember_many([f"Tree {n}: a fir." for n in range(256)])

    found = told(memory.recall("\u97f3\u4e50\u5546\u54c1", mode=Mode.LEXICAL))

    assert found == ["\u97f3\u4e50\u54c1", "\u97f3\u4e50\u5929"]


def test_a_folded_word_index_answers_as_the_tail_does(scratch: Scratch) -> None:
    """What was folded into the index and what came after it are found together; of equals the newer is first."""
    scratch.memory.remember_many([f"Tree {n}: a fir." for n in range(256)])
    scratch.memory.remember("A cedar.")
    scratch.memory.remember_many([f"Tree {n}: an oak." for n in range(256)])
    scratch.memory.remember("Another cedar.")

    assert told(scratch.memory.recall("cedar", mode=Mode.LEXICAL)) == ["Another cedar.", "A cedar."]


def test_candidates_are_bounded(ada: Memory) -> None:
    """No lane offers more than its number of candidates."""
    ada.remember_many([f"A cedar, the {n}th." for n in range(20)])

    for mode in (Mode.LEXICAL, Mode.RECENT):
        assert len(ada.recall("cedar", mode=mode, budget=Budget(candidates=7)).items) == 7


def test_what_could_not_be_resolved_is_said(scratch: Scratch) -> None:
    """A degraded answer says so inside the answer, and counts those bytes too."""
    scratch.memory.remember("A cedar.", scope=Scope.USER)

    lost, fresh = scratch.by(LOST).recall("cedar"), scratch.by(replace(ADA, project=THERE)).recall("cedar")

    assert lost.notices[:-1] == (
        "project: unresolved: no project is known by any hint; run: ledgerstone namespaces use --new",
    )
    assert fresh.notices[:-1] == ("project: new: nothing was remembered here yet",)
    assert all(found.notices[-1].startswith("anchor: none") for found in (lost, fresh))
    assert compact(lost) <= lost.bytes
    assert told(lost) == told(fresh) == ["A cedar."]


@pytest.mark.parametrize(
    ("draft", "extra"),
    [
        (Draft(text="Cedar."), {}),
        (Draft(text="Cedar.", key="tree"), {"key": "tree"}),
        (Draft(text="Cedar.", kind=Kind.TASK), {"kind": "task", "status": "open", "lane": "tasks"}),
        (Draft(text="Cedar.", due=0), {"due": "1970-01-01T00:00:00.000000Z"}),
    ],
)
def test_an_entry_is_lean(ada: Memory, draft: Draft, extra: dict[str, Any]) -> None:
    """Address, text, kind, scope and trust, and beyond that only what is not the default."""
    record = ada.remember(draft).record

    [item] = ada.recall("cedar").items

    base = {"id": record.address, "text": "Cedar.", "kind": "note", "scope": "project", "trust": "user_explicit"}
    assert choosing.lean(item.record, item.lane) == base | extra


def test_a_list_says_what_stands(ada: Memory) -> None:
    """Recent has what stands, tasks the open ones, all every version with its standing, newest first."""
    ada.remember(Draft(text="Oak.", key="tree"))
    ada.remember(Draft(text="Cedar.", key="tree"))
    ada.remember(Draft(text="Water.", kind=Kind.TASK))

    listed = {what: [record.text for record in ada.list_records(what).items] for what in ("recent", "tasks", "all")}

    assert listed == {"recent": ["Water.", "Cedar."], "tasks": ["Water."], "all": ["Water.", "Cedar.", "Oak."]}
    assert ada.list_records("all").items[-1].standing is Standing.SUPERSEDED


@pytest.mark.parametrize("what", ["recent", "tasks", "all"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_are_the_whole_list(scratch: Scratch, what: str, size: int) -> None:
    """Page by page, through all namespaces, every record comes once and in order."""
    memory = scratch.memory
    for scope, count in ((Scope.SESSION, 3), (Scope.PROJECT, 5), (Scope.USER, 4)):
        memory.remember_many([Draft(text=f"Task {n}.", kind=Kind.TASK) for n in range(count)], scope=scope)
    whole = [record.address for record in memory.list_records(what, limit=100).items]

    paged: list[str] = []
    cursor = None
    while True:
        page = memory.list_records(what, cursor=cursor, limit=size)
        paged += [record.address for record in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert paged == whole
    assert len(whole) == 12
