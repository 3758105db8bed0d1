"""Every limit holds at its number and refuses one past it; the error says the limit and the offence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Budget,
    Draft,
    Kind,
    Memory,
    Policy,
    Retention,
    RuleError,
    Scope,
    UsageError,
)
from tests.memories import ADA, FREE_MODES, MODEL, MOST, NOBODY, NOON, Scratch

MIB = 1_048_576
LATEST = 2**53 - 1

TEXTS: list[tuple[str, str, str, str]] = [
    # field, the longest, one byte more, what the error says
    ("text", "a" * 8192, "a" * 8193, "text: 1 to 8192 bytes, not 8193"),
    ("text", "\u00e9" * 4096, "\u00e9" * 4096 + "a", "text: 1 to 8192 bytes, not 8193"),
    ("text", "a", "", "text: 1 to 8192 bytes, not 0"),
    ("key", "k" * 128, "k" * 129, "key: 1 to 128 bytes, not 129"),
    ("key", "\U0001f511" * 32, "\U0001f511" * 32 + "k", "key: 1 to 128 bytes, not 129"),
    ("key", "k", "", "key: 1 to 128 bytes, not 0"),
    *(
        row
        for name in ("source", "title", "place")
        for row in (
            (name, "s" * 1024, "s" * 1025, f"{name}: 1 to 1024 bytes, not 1025"),
            (name, "s", "", f"{name}: 1 to 1024 bytes, not 0"),
        )
    ),
]
ARRAYS: list[tuple[str, tuple[str, ...], tuple[str, ...], str]] = [
    row
    for name in ("tags", "triggers")
    for row in (
        (name, tuple(map(str, range(16))), tuple(map(str, range(17))), f"{name}: at most 16, not 17"),
        (name, ("t" * 64,), ("t" * 65,), f"{name}: 1 to 64 bytes, not 65"),
        (name, ("t",), ("",), f"{name}: 1 to 64 bytes, not 0"),
        (name, ("t", "T"), ("t", "t"), f"{name}: each one once"),
    )
] + [
    ("triggers", ("the cedar",), ("the",), "triggers: at least one word besides such as 'the' and 'to', not 'the'"),
]
# A text that has expired already is not written.
LEAST: dict[str, int] = {"expires": NOON + 1, "due": 0, "valid_from": 0, "valid_until": 0}
TIMES: list[tuple[str, int, object, str]] = [
    row
    for name in LEAST
    for row in (
        (name, LEAST[name], -1, f"{name}: whole microseconds UTC from 0 to {LATEST}, not -1"),
        (name, LATEST, LATEST + 1, f"{name}: whole microseconds UTC from 0 to {LATEST}, not {LATEST + 1}"),
        (name, LEAST[name], True, f"{name}: whole microseconds UTC from 0 to {LATEST}, not True"),
        (name, LEAST[name], 1.0, f"{name}: whole microseconds UTC from 0 to {LATEST}, not 1.0"),
    )
]


def drafted(name: str, value: object) -> Draft:
    """A draft with one field set."""
    fields: dict[str, Any] = {"text": "Cedar.", name: value}
    return Draft(**fields)


@pytest.mark.parametrize(("name", "most", "more", "message"), [*TEXTS, *ARRAYS, *TIMES])
def test_a_field_of_a_draft_has_its_limit(ada: Memory, name: str, most: object, more: object, message: str) -> None:
    """At the limit a draft is kept as it is, past it the rule of that name refuses it."""
    with pytest.raises(RuleError) as refused:
        ada.remember(drafted(name, more))

    assert (refused.value.rule, refused.value.message) == (name, message)
    assert getattr(ada.remember(drafted(name, most)).record, name) == most


@pytest.mark.parametrize("name", ["sources", "covers"])
def test_a_record_rests_on_32_records(ada: Memory, name: str) -> None:
    """Thirty-two sources are taken, and thirty-two covers; a thirty-third of either is not."""
    notes = tuple(answer.record.address for answer in ada.remember_many([f"Note {n}." for n in range(33)]))
    kind = Kind.SUMMARY if name == "covers" else Kind.NOTE
    fields: dict[str, Any] = {"sources": notes[:32], name: notes}

    with pytest.raises(RuleError, match=f"{name}: at most 32, not 33") as refused:
        ada.remember(Draft(text="Hm.", kind=kind, **fields))

    assert refused.value.rule == name
    fields[name] = notes[:32]
    assert getattr(ada.remember(Draft(text="Hm.", kind=kind, **fields)).record, name) == notes[:32]


@pytest.mark.parametrize(("caller", "most"), [(MODEL, 8), (replace(ADA, limits=MOST), 256)])
def test_a_commit_has_a_limit_for_each_door(scratch: Scratch, caller: Any, most: int) -> None:
    """A model may write eight drafts at once, an importer 256, and nobody none."""
    memory = scratch.by(caller)

    with pytest.raises(RuleError, match=f"drafts: 1 to {most} a commit, not {most + 1}") as refused:
        memory.remember_many(["Cedar."] * (most + 1))
    with pytest.raises(RuleError, match=f"drafts: 1 to {most} a commit, not 0"):
        memory.remember_many([])

    assert refused.value.rule == "drafts"
    assert len(memory.remember_many(["Cedar."] * most)) == most


def test_an_import_takes_a_mebibyte(scratch: Scratch) -> None:
    """With the limits of an import a text may have 1 MiB and not a byte more."""
    importer = scratch.by(replace(ADA, limits=MOST))

    with pytest.raises(RuleError, match=f"text: 1 to {MIB} bytes, not {MIB + 1}"):
        importer.remember("a" * (MIB + 1))

    assert importer.remember("a" * MIB).record.text_bytes == MIB


def test_a_reason_has_a_limit(ada: Memory) -> None:
    """A reason has 1 to 4096 bytes, for closing and for retracting."""
    tasks = [ada.remember(Draft(text="Water.", kind=Kind.TASK)).record.address for _ in range(2)]

    for size in (0, 4097):
        with pytest.raises(RuleError, match=f"reason: 1 to 4096 bytes, not {size}") as refused:
            ada.close_task(tasks[0], reason="r" * size)
        with pytest.raises(RuleError, match=f"reason: 1 to 4096 bytes, not {size}"):
            ada.retract(tasks[0], reason="r" * size)
        assert refused.value.rule == "reason"

    assert ada.close_task(tasks[0], reason="r" * 4096).record.reason == "r" * 4096
    assert ada.retract(tasks[1], reason="r" * 4096).record.reason == "r" * 4096


def test_an_idempotency_key_has_a_limit(scratch: Scratch) -> None:
    """An idempotency key has 1 to 200 bytes; a wrong one writes nothing, on the very first write too."""
    before = scratch.heads()

    for size in (0, 201):
        with pytest.raises(RuleError, match=f"idempotency_key: 1 to 200 bytes, not {size}"):
            scratch.memory.remember("Cedar.", idempotency_key="i" * size)

    assert scratch.heads() == before
    assert scratch.memory.remember("Cedar.", idempotency_key="i" * 200).record.text == "Cedar."


def test_a_query_has_a_limit(ada: Memory) -> None:
    """A query has at most 65,536 bytes, and may be empty."""
    ada.remember("Cedar.")

    with pytest.raises(RuleError, match="query: 1 to 65536 bytes, not 65537") as refused:
        ada.recall("q" * 65_537)

    assert refused.value.rule == "query"
    assert len(ada.recall("q" * 65_536).items) == len(ada.recall("").items) == 1


@pytest.mark.parametrize("query", ["a\x00", "\ud800"])
def test_a_query_is_text(ada: Memory, query: str) -> None:
    """What could not be remembered cannot be asked for."""
    for mode in FREE_MODES:
        with pytest.raises(RuleError) as refused:
            ada.recall(query, mode=mode)
        assert refused.value.rule == "query"


def test_a_page_has_a_limit(ada: Memory) -> None:
    """A list gives 1 to 100 records a page, an audit 1 to 1000 events."""
    ada.remember_many([f"Note {n}." for n in range(101)])

    for size in (0, 101):
        with pytest.raises(UsageError, match=f"limit: 1 to 100, not {size}"):
            ada.list_records(limit=size)
    for size in (0, 1001):
        with pytest.raises(UsageError, match=f"limit: 1 to 1000, not {size}"):
            ada.audit(limit=size)

    assert len(ada.list_records(limit=100).items) == 100
    assert len(ada.list_records(limit=1).items) == len(ada.audit(limit=1)) == 1
    assert len(ada.audit(limit=1000)) > 100


@pytest.mark.parametrize("wrong", [-1, LATEST + 1])
def test_a_time_that_is_none_is_refused(ada: Memory, wrong: int) -> None:
    """By each verb that takes one, with limit and offence; the first and the last that there can be are taken."""
    ada.remember("Cedar.")
    asks: list[Callable[[int], object]] = [
        lambda before: ada.audit(before=before),
        lambda before: ada.compaction_candidates(before=before),
        lambda before: ada.expire(retention=Retention.SESSION, before=before),
        lambda since: ada.recall("", policy=Policy(since=since)),
        lambda until: ada.recall("", policy=Policy(until=until)),
    ]

    for ask in asks:
        with pytest.raises(UsageError, match=f": whole microseconds UTC from 0 to {LATEST}, not {wrong}"):
            ask(wrong)
        for moment in (0, LATEST):
            ask(moment)
    with pytest.raises(UsageError, match=f"expires: a time to come, in microseconds UTC up to {LATEST}, not {wrong}"):
        ada.grant("bob", Act.READ, scope=Scope.USER, expires=wrong)
    ada.grant("bob", Act.READ, scope=Scope.USER, expires=LATEST)


def test_several_records_at_once_have_a_limit(ada: Memory) -> None:
    """One call gets 1 to 32 records."""
    address = ada.remember("Cedar.").record.address

    for size in (0, 33):
        with pytest.raises(UsageError, match=f"get: 1 to 32 ids, not {size}"):
            ada.get_many([address] * size)

    assert len(ada.get_many([address] * 31 + [NOBODY])) == 32


@pytest.mark.parametrize(
    ("least", "most"),
    [
        (Budget(bytes=512), Budget(bytes=MIB)),
        (Budget(items=1), Budget(items=256)),
        (Budget(candidates=1), Budget(candidates=512)),
    ],
)
def test_a_budget_has_limits(ada: Memory, least: Budget, most: Budget) -> None:
    """Each part of it has a least and a most, and the error names the part."""
    ada.remember("Cedar.")
    name = next(f.name for f in dataclasses.fields(Budget) if getattr(least, f.name) != getattr(most, f.name))
    low, high = getattr(least, name), getattr(most, name)

    for wrong in (low - 1, high + 1, True, float(low)):
        part: dict[str, Any] = {name: wrong}
        with pytest.raises(UsageError, match=f"budget {name}: {low} to {high}, not {wrong!r}"):
            ada.recall("cedar", budget=replace(least, **part))

    assert len(ada.recall("cedar", budget=least).items) == len(ada.recall("cedar", budget=most).items) == 1


@pytest.mark.parametrize(
    "target",
    [
        "",
        "mem_",
        "mem_000000000000000",
        "mem_00000000000000000",
        "mem_000000000000000u",
        "MEM_0000000000000000",
        f"{NOBODY}@",
        f"{NOBODY}@0",
        f"{NOBODY}@01",
        f"{NOBODY}@-1",
        f"{NOBODY}@1 ",
        f"{NOBODY}@99999999999999999",
        "0" * 63,
        "0" * 65,
        "F" * 64,
        "ns_0000000000000000",
    ],
)
def test_an_address_has_one_spelling(ada: Memory, target: str) -> None:
    """Whatever is not quite an id, an address or a digest is refused as such, not looked for."""
    for ask in (ada.get, ada.history, ada.close_task):
        with pytest.raises(UsageError):
            ask(target)


@pytest.mark.parametrize(
    "name", ["trust", "origin", "principal", "namespace", "version", "memory", "scope", "standing"]
)
def test_a_draft_has_no_field_for_what_the_host_decides(name: str) -> None:
    """Who says it, where and how far to rely on it cannot be written into a draft, now or later."""
    fields: dict[str, Any] = {"text": "Cedar.", name: "user_explicit"}

    with pytest.raises(TypeError, match=name):
        Draft(**fields)

    draft = Draft(text="Cedar.")
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(draft, name, "user_explicit")
    with pytest.raises(dataclasses.FrozenInstanceError):
        draft.text = "Oak."  # type: ignore[misc]


@pytest.mark.parametrize("what", ["", "everything", "Recent", "open"])
def test_a_list_is_one_of_four(ada: Memory, what: str) -> None:
    """Tasks, recent, all or below_floor; another word is refused with the four."""
    with pytest.raises(UsageError, match="list: tasks, recent, all or below_floor"):
        ada.list_records(what)

    assert ada.list_records("recent").items == ()


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "ns_0000000000000000:1", "{0}"),
        *("{0}:", "{0}:-1", "{0}:x", "{0}:1_0", "{0}:\u0661", "{0}:" + "9" * 24, "{0}:" + "9" * 5000),
    ],
)
def test_a_cursor_comes_from_a_list(ada: Memory, cursor: str) -> None:
    """A made-up cursor is refused, and the hint says how to begin; a page's own continues it."""
    namespace = ada.remember_many(["One.", "Two."])[0].record.namespace

    with pytest.raises(UsageError, match="cursor: not one that a list gave") as refused:
        ada.list_records(cursor=cursor.format(namespace))

    assert refused.value.hint == "leave it out to start again"
    page = ada.list_records(limit=1)
    assert [record.text for record in ada.list_records(cursor=page.cursor).items] == ["One."]


@pytest.mark.parametrize("name", ["principal", "session", "host"])
def test_names_from_the_host_have_a_limit(scratch: Scratch, name: str) -> None:
    """A principal, a session and a host have a name of 1 to 1024 bytes, or nothing is written."""
    scratch.memory.grant("p" * 1024, Act.CREATE, scope=Scope.USER)
    scratch.memory.grant("p" * 1024, Act.WRITE, scope=Scope.USER)
    scratch.memory.grant("p" * 1024, Act.READ, scope=Scope.USER)
    before = scratch.heads()
    fields: dict[str, Any] = {name: name[0] * 1024}

    for size in (0, 1025):
        wrong: dict[str, Any] = {name: name[0] * size}
        with pytest.raises((RuleError, AuthorityError)):
            scratch.by(replace(ADA, **wrong)).remember("Cedar.", scope=Scope.USER)

    assert scratch.heads() == before
    record = scratch.by(replace(ADA, **fields)).remember("Cedar.", scope=Scope.USER).record
    assert getattr(record, name) == name[0] * 1024


def test_a_reason_that_looks_like_a_credential_is_refused(ada: Memory) -> None:
    """For a retraction, a closing and an erasure alike; nothing is done, and a plain reason is taken."""
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1z2A"
    task = ada.remember(Draft(text="Rotate it.", kind=Kind.TASK)).record.memory
    note = ada.remember("The token was moved.").record.memory

    for act in (
        lambda reason: ada.close_task(task, reason=reason),
        lambda reason: ada.retract(note, reason=reason),
        lambda reason: ada.forget(note, reason=reason, dry_run=False),
    ):
        with pytest.raises(RuleError, match="secret: looks like a credential: reason, characters") as refused:
            act(f"it was {secret} all along")
        assert secret not in str(refused.value)

    assert ada.retract(note, reason="it was rotated").record.reason == "it was rotated"


def test_a_refusal_says_what_to_do_next(ada: Memory) -> None:
    """Of what is too long, and of what is closed or retracted already; the first time it is done."""
    task, note = (ada.remember(Draft(text="Water it.", kind=kind)).record.memory for kind in (Kind.TASK, Kind.NOTE))
    ends: list[Callable[[], object]] = [lambda: ada.close_task(task), lambda: ada.retract(note, reason="wrong")]
    for end in ends:
        assert end()

    long: list[Callable[[], object]] = [lambda: ada.remember("a" * 8193), lambda: ada.recall("a" * 65_537)]
    hints = []
    for act in (*ends, *long):
        with pytest.raises(RuleError) as refused:
            act()
        hints.append(refused.value.hint)

    assert hints == [
        "see what is open: ledgerstone list tasks",
        f"see what stands: ledgerstone history {note}",
        "split it into several; or let it be longer, up to 1048576: text_bytes",
        "shorten it",
    ]
