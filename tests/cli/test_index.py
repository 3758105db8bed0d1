"""Meaning from the command line: which encoder there is, what is indexed by it, and what is said when it lags."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ledgerstone import Memory
from ledgerstone.entrypoints import host
from ledgerstone.semantic import Function, Lane
from ledgerstone.semantic.lane import FRESH
from tests.cli.conftest import Desk

TEXTS = FRESH + 22
BEHIND = f"semantic: degraded: 22 of {TEXTS} not yet indexed; run: ledgerstone index"


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base install."""
    look = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "numpy" else look(name, *rest))


def fill(count: int) -> None:
    """So many notes at once."""
    settings = host.settle()
    with host.open_memory(settings, host.caller(settings, door="cli", terminal=True)) as memory:
        memory.remember("We buy bread on Saturdays.")
        memory.remember_many([f"The lamp in room {number} was replaced." for number in range(1, count)])


def meaning(desk: Desk) -> dict[str, Any]:
    """What the doctor says of it."""
    [found] = [check for check in desk.ask("doctor")["checks"] if check["name"] == "meaning"]
    return dict(found)


def test_index_catches_up_with_what_recall_says_is_behind(bound: Desk) -> None:
    """More than a search encodes itself: recall and doctor say how much, index does it, and both are content."""
    fill(TEXTS)
    before, warned = bound.invoke("recall", "bakery"), meaning(bound)

    done = bound.ask("index")

    model = done["model"]
    assert BEHIND in before.stderr.splitlines()
    assert (warned["state"], warned["says"], warned["hint"]) == (
        "warning",
        f"{model}, 0 of {TEXTS} texts indexed",
        "run: ledgerstone index",
    )
    assert (done["done"], done["left"]) == (TEXTS, 0)
    found = bound.ask("recall", "bakery")
    assert found["items"][0]["text"] == "We buy bread on Saturdays."
    assert "notices" not in found
    assert meaning(bound)["state"] == "ok"
    assert f"{TEXTS} of {TEXTS} texts indexed" in meaning(bound)["says"]
    assert bound.invoke("index").stdout == f"nothing to do: {TEXTS} texts indexed by {model}\n"


def test_index_shows_how_far_it_is_at_a_terminal_only(bound: Desk) -> None:
    """Somebody who watches sees it count; a program gets the answer and nothing beside it."""
    fill(TEXTS)

    watched = bound.sit("index").out.decode()
    fill(2)
    piped = bound.run("index")

    assert f"0 of {TEXTS} texts\r" in watched
    assert f"{TEXTS} texts indexed by static-minilm" in watched
    assert (piped.code, piped.err) == (0, "")
    assert piped.out.startswith(b"2 texts indexed by static-minilm")


def test_setting_none_looks_by_words_alone(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for by meaning, index is refused with the reason; without the setting it is found."""
    fill(2)
    asked = ("recall", "bakery", "--mode", "semantic")
    first = bound.ask(*asked)["items"][0]

    monkeypatch.setenv("LEDGERSTONE_SEMANTIC", "none")
    code, refused = bound.refuse("index")

    assert (first["lane"], first["text"]) == ("semantic", "We buy bread on Saturdays.")
    assert {item["lane"] for item in bound.ask(*asked)["items"]} == {"recent"}
    assert (code, refused["message"]) == (2, "there is no encoder to index by: the setting semantic is none")
    assert meaning(bound)["says"] == "a recall looks by words alone: the setting semantic is none"


@pytest.mark.usefixtures("without_numpy")
def test_auto_without_numpy_is_the_base_install(bound: Desk) -> None:
    """Nothing is refused and nothing is said beside an answer; the doctor says what to install."""
    fill(2)

    assert {item["lane"] for item in bound.ask("recall", "bakery")["items"]} == {"recent"}
    assert "notices" not in bound.ask("recall", "lamp")
    assert meaning(bound) == {
        "name": "meaning",
        "state": "ok",
        "says": "a recall looks by words alone: NumPy is not installed",
        "hint": host.SEMANTIC_HINT,
    }
    assert bound.refuse("index")[1]["hint"] == host.SEMANTIC_HINT


def test_what_the_vectors_here_cannot_be_used_for_is_said(bound: Desk, request: pytest.FixtureRequest) -> None:
    """A store that was indexed and lost its encoder says so in every mode that would use it; words alone need none."""
    fill(2)
    bound.ask("index")
    whole = bound.ask("recall", "bakery")
    model = bound.ask("recall", "bakery", "--explain")["explained"]["scorer"].split()[-1].partition("/")[0]

    request.getfixturevalue("without_numpy")
    said = [bound.ask("recall", "bakery", "--mode", mode).get("notices") for mode in ("balanced", "hybrid", "semantic")]

    assert "notices" not in whole
    assert all(
        len(one) == 1 and one[0].startswith(f"semantic: degraded: the vectors here are of {model}") for one in said
    )
    assert "notices" not in bound.ask("recall", "bakery", "--mode", "lexical")


@pytest.mark.usefixtures("without_numpy")
def test_a_search_by_meaning_without_an_encoder_says_so(bound: Desk) -> None:
    """Asked for by name it is answered by related words, and says that; a search by words says nothing."""
    fill(2)

    found = bound.ask("recall", "lamp", "--mode", "semantic")

    assert found["notices"] == ["semantic: no encoder: related words stood in for meaning"]
    assert found["items"][0]["text"] == "The lamp in room 1 was replaced."
    assert "notices" not in bound.ask("recall", "lamp", "--mode", "hybrid")


def test_table_without_numpy_is_refused(
    bound: Desk, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Who asks for the table is told what to install; with NumPy the same setting is taken."""
    monkeypatch.setenv("LEDGERSTONE_SEMANTIC", "table")
    address = bound.ask("remember", "taken")["address"]

    request.getfixturevalue("without_numpy")
    code, refused = bound.refuse("get", address)

    assert code == 2
    assert refused["message"] == "semantic: the table cannot be used: NumPy is not installed"
    assert refused["hint"] == host.SEMANTIC_HINT


def test_vectors_of_another_encoder_are_replaced_only_when_asked(bound: Desk) -> None:
    """A program's own encoder may have made them: index and doctor name it; with --replace they are the table's."""
    fill(2)
    mine = Lane(lambda: Function(lambda texts: [[1.0, float(len(text))] for text in texts], "mine", "1", 2))
    settings = host.settle()

    def left(lane: Lane, *, index: bool = False) -> int:
        who = host.caller(settings, door="cli", terminal=True)
        keys = host.keyring(settings)
        with Memory.open(settings.store, keys=keys, caller=who, state=settings.state, semantic=lane) as memory:
            return memory.index_vectors().left if index else memory.coverage().left

    assert left(mine, index=True) == 0
    code, refused = bound.refuse("index")
    warned, kept = meaning(bound), left(mine)
    done = bound.ask("index", "--replace")

    assert (code, refused["hint"]) == (2, host.OTHER_HINT)
    assert refused["message"] == f"the vectors here are of mine/1/2, not of {done['model']}"
    assert (warned["state"], warned["says"], warned["hint"]) == ("warning", refused["message"], host.OTHER_HINT)
    assert kept == 0
    assert done["done"] == 2
    assert left(mine) == 2
    assert meaning(bound)["state"] == "ok"


def test_damaged_table_is_told_by_recall_index_and_doctor(
    bound: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What words find stands beside a notice; indexing is refused, and the doctor warns."""
    from ledgerstone.semantic import table  # noqa: PLC0415 - as patched

    fill(2)
    damaged = tmp_path / "table.npz"
    damaged.write_bytes(b"no table")
    monkeypatch.setattr(table, "TABLE", damaged)
    table.static_table.cache_clear()

    found, (code, refused), warned = bound.ask("recall", "lamp"), bound.refuse("index"), meaning(bound)

    assert found["items"][0]["text"] == "The lamp in room 1 was replaced."
    [notice] = found["notices"]
    assert notice.startswith("semantic: unavailable: CorruptionError: ")
    assert "not the table of this version" in refused["message"]
    assert code == 5
    assert warned["state"] == "warning"


def test_read_only_store_is_recalled_by_meaning_and_not_indexed(bound: Desk) -> None:
    """A reader encodes for itself what one search may; keeping it is refused, as every write is."""
    fill(2)

    found = bound.ask("--read-only", "recall", "bakery")
    _, refused = bound.refuse("--read-only", "index")

    assert found["items"][0]["text"] == "We buy bread on Saturdays."
    assert "read-only" in refused["message"]
