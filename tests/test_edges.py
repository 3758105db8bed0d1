"""Where somebody hostile pushed: each of these once gave a wrong answer, or a fault of the program's own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledgerstone import (
    Act,
    Budget,
    CorruptionError,
    Draft,
    FormatError,
    Kind,
    Memory,
    NotFoundError,
    Standing,
    UsageError,
    load_keys,
)
from tests.memories import ADA, BOB, Scratch
from tests.stores import KEYS, OWNER, open_memory, plain_client


def test_a_link_that_covers_otherwise_is_named(scratch: Scratch) -> None:
    """A flag that is neither yes nor no uncovers nothing in silence."""
    first, second = (
        scratch.memory.remember(f"A long enough note, the {n}.").record.address for n in ("first", "second")
    )
    scratch.memory.remember(Draft(text="Both.", kind=Kind.SUMMARY, sources=(first, second), covers=(first, second)))
    assert scratch.memory.get(first).standing is Standing.COVERED
    scratch.memory.close()

    with plain_client(scratch.path) as client:
        client.execute("UPDATE link SET covers = 2")
    scratch.memory = scratch.open()

    assert [finding.code for finding in scratch.memory.verify().findings] == ["link"]


def test_who_may_only_write_is_shown_nothing(scratch: Scratch) -> None:
    """A key that somebody else holds can be written again without its text being told."""
    held = scratch.memory.remember(Draft(text="What Ada said.", key="port")).record
    scratch.memory.grant("bob", Act.WRITE, namespace=held.namespace)
    bob = scratch.by(BOB)

    answer = bob.remember(Draft(text="What Bob says.", key="port"), namespace=held.namespace)

    assert answer.record.version == 2
    assert answer.replaced is None
    scratch.memory.grant("bob", Act.READ, namespace=held.namespace)
    again = bob.remember(Draft(text="What Bob adds.", key="port"), namespace=held.namespace)
    assert again.replaced is not None


def test_a_missing_newest_version_is_not_overlooked(scratch: Scratch) -> None:
    """When the row of what followed is gone, the version before is not given for the newest."""
    memory = scratch.memory.remember(Draft(text="One.", key="k")).record.memory
    scratch.memory.remember(Draft(text="Two.", key="k"))
    scratch.memory.close()

    with plain_client(scratch.path) as client:
        client.execute("DELETE FROM record WHERE memory = ? AND version = 2", (memory,))
    scratch.memory = scratch.open()

    for ask in (scratch.memory.get, scratch.memory.history):
        with pytest.raises(CorruptionError, match="records rows"):
            ask(memory)


def test_a_read_within_a_read_is_refused_plainly(ada: Memory) -> None:
    """An iterator that is still going on is named, and no damage is claimed."""
    ada.remember("One.")
    going_on = ada.records().pieces
    next(going_on)

    with pytest.raises(UsageError, match="another read of this store is still going on"):
        ada.recall("one")
    with pytest.raises(UsageError, match="another read of this store is still going on"):
        ada.remember("Two.")

    going_on.close()  # type: ignore[attr-defined]
    assert ada.remember("Two.").record.text == "Two."


def test_a_cursor_reaches_no_other_chain(ada: Memory) -> None:
    """A position past the end is the end."""
    namespace = ada.remember("One.").record.namespace

    page = ada.list_records("all", cursor=f"{namespace}:{1 << 42}")

    assert [record.namespace for record in page.items] == [namespace]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "note"},
        {"status": "open"},
        {"retention": "durable"},
        {"external": "yes"},
        {"sources": (5,)},
        {"tags": "abc"},
        {"triggers": None},
        {"key": 5},
    ],
)
def test_a_draft_of_wrong_types_is_refused_by_name(ada: Memory, wrong: dict[str, Any]) -> None:
    """The field is named, and nothing is written."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ada.remember(replace(Draft(text="One."), **wrong))
    with pytest.raises(UsageError, match="draft"):
        ada.remember(None)  # type: ignore[arg-type]

    assert ada.list_records("all").items == ()


@pytest.mark.parametrize("text", ["\ud800", "key:\ud800"])
def test_a_lone_surrogate_is_refused_wherever_it_is_looked_up(ada: Memory, text: str) -> None:
    """Not valid Unicode is the caller's to mend, and no fault of the program's."""
    ada.remember("One.")

    with pytest.raises(UsageError):
        ada.forget(text)
    with pytest.raises((UsageError, NotFoundError)):
        ada.remember("Two.", namespace=text)


def test_a_chain_renumbered_is_damage(scratch: Scratch) -> None:
    """A number that no row can have is named for what it is."""
    scratch.memory.remember("One.")
    scratch.memory.close()

    with plain_client(scratch.path) as client:
        client.execute("UPDATE chain SET number = 9007199254740992 WHERE number = 2")
    scratch.memory = scratch.open()

    with pytest.raises(CorruptionError, match="is not as it was written"):
        scratch.memory.recall("one")


def test_bytes_patched_under_an_open_process_are_noticed(tmp_path: Path) -> None:
    """A raw edit that SQLite itself cannot see is found before the next answer, and not taken for our own write."""
    path, state = tmp_path / "store.db", tmp_path / "state"
    memory = open_memory(path, caller=OWNER, keys=KEYS, state=state)
    memory.remember(Draft(text="A note.", key="keyname0005"))
    memory.close()
    memory = open_memory(path, caller=OWNER, keys=KEYS, state=state, create=False)
    assert memory.recall("note").items

    data = path.read_bytes().replace(b"keyname0005", b"keynameXXXX")
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(1, 1))

    with pytest.raises(CorruptionError):
        memory.remember("Another.")
    memory.close()


def test_notices_count_as_they_are_sent(scratch: Scratch) -> None:
    """A place whose name has to be escaped does not push a context over its budget."""
    place = "/" + '"\\' * 120
    lost = replace(ADA, project=replace(ADA.project, remotes=(), paths=(place,)))  # type: ignore[type-var]
    memory = scratch.by(lost)

    context = memory.recall("", budget=Budget(bytes=2000))

    assert context.notices
    assert context.bytes <= 2000


def test_a_key_file_is_a_file(tmp_path: Path) -> None:
    """A pipe is not waited for."""
    os.mkfifo(tmp_path / "key.json", 0o600)

    with pytest.raises(FormatError, match="is not a file"):
        load_keys(tmp_path / "key.json")
