"""Writes to a store whose derived rows were damaged: nothing false is signed into history."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pytest

from ledgerstone import CorruptionError, Draft, Kind, LedgerstoneError, Memory, Origin, Scope
from tests.store.tampering import EDITS, Edit, Of
from tests.stores import (
    OWNER,
    STRANGER,
    Home,
    clock,
    later,
    open_memory,
    plain_client,
    rebuilt,
    report,
)


def written(memory: Memory, home: Home) -> dict[str, object]:
    """Every kind of write, and what became of it: its version and standing, or the name of its refusal."""
    outcomes: dict[str, object] = {}
    ids = home.memories
    model = memory.bind(replace(OWNER, origin=Origin.MODEL))

    def do(name: str, act: Callable[[], object]) -> None:
        try:
            outcomes[name] = act()
        except LedgerstoneError as refusal:
            outcomes[name] = type(refusal).__name__

    def remember(
        text: str, by: Memory = memory, scope: Scope = Scope.USER, again: str | None = None, **draft: Any
    ) -> object:
        done = by.remember(Draft(text=text, **draft), scope=scope, idempotency_key=again)
        return done.record.version, done.record.standing, done.repeated, done.created_namespace

    def supersede() -> object:
        remember("the meeting was called off", replaces=f"{ids['spoken']}@1")
        return memory.get(ids["summary"]).standing

    def revoke() -> object:
        grants = memory.grants(STRANGER.principal)
        for grant in grants:
            memory.revoke(grant["grant"])
        return len(grants)

    do("a key again", lambda: remember("the door is painted red", key="door-color"))
    do("a write repeated", lambda: remember("the door is painted blue", key="door-color", again="first"))
    do("a rejected value", lambda: remember("the lake is salty", by=model, key="lake"))
    sources = f"{ids['rare']}@1", f"{ids['other']}@1"
    do("a summary", lambda: remember("two animals", kind=Kind.SUMMARY, sources=sources))
    do("a source superseded", supersede)
    do("a task closed", lambda: memory.close_task(ids["task"]).record.status)
    do("a task", lambda: remember("count the ladders", kind=Kind.TASK))
    do("a session", lambda: remember("and now for quarry eight", scope=Scope.SESSION))
    do("a project", lambda: remember("cedar has tests", scope=Scope.PROJECT))
    do("a grant", revoke)
    do("an alias", lambda: memory.detach(memory.bound()["project"], "/srv/cedar"))
    return outcomes


@pytest.fixture(scope="module")
def genuine(untouched: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What becomes of the writes in a home that nobody touched."""
    with open_memory(untouched.copy(tmp_path_factory.mktemp("genuine")).path, now=clock(later()), seed=2) as memory:
        return written(memory, untouched)


def test_the_writes_are_admitted_where_nothing_is_damaged(genuine: dict[str, object]) -> None:
    """All of them succeed in a sound store, so that a refusal below is due to the damage."""
    assert [name for name, outcome in genuine.items() if str(outcome).endswith("Error")] == []


# What a write decides by and no read can tell where nothing is remembered of the store: the rest of the table is
# refused, or decides nothing. Where something is remembered, a store edited like this does not open.
UNNOTICED: Final = frozenset(
    {
        "the column memory = 'mem_0000000000000000'",
        "a lone record under another id",
        "one memory's version given to another",
        "a link gone",
        "the newest grant under another value",
        "the newest grant gone",
        "the newest name under another value",
        "the newest name gone",
        "the newest scoped under another value",
        "a rejected value forgotten",
        "a write's key",
        "a write's chain",
        "a write's key gone",
    }
)


@pytest.mark.parametrize(
    "edit",
    [edit for edit in EDITS if edit.of is Of.DERIVED and not edit.large and edit.name not in UNNOTICED],
    ids=lambda edit: edit.name,
)
def test_a_write_over_damage_is_refused_or_as_it_would_have_been(
    edit: Edit, home: Home, genuine: dict[str, object]
) -> None:
    """A write never decides by a false row: it is refused, or its outcome is the same and history stays sound."""
    connection = plain_client(home.path)
    edit.apply(connection, home.rows())
    connection.close()

    outcomes: dict[str, object] = {}
    with suppress(CorruptionError), open_memory(home.path, now=clock(later()), seed=2, create=False) as memory:
        outcomes = written(memory, home)
    rebuilt(home.path)

    assert report(home.path).ok
    assert {name: o for name, o in outcomes.items() if o not in (genuine[name], "CorruptionError")} == {}
