"""Whatever a library caller passes: a value of the wrong sort is refused by name, and nothing comes of it."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ledgerstone import Budget, Draft, Keyring, LedgerstoneError, Memory, Mode, Policy
from ledgerstone.core.values import Act
from tests.memories import ADA, KEY, NOBODY, Scratch

if TYPE_CHECKING:
    from pathlib import Path

# What nobody means by anything, and what is of the right sort and cannot be.
WRONG: Final[tuple[Any, ...]] = (
    *(None, 3, -1, 10**30, True, float("nan"), b"bytes", object()),
    *("x", "\ud800", "nul \0", "x" * 5_000),
    *([], [None], [[]], ["\ud800"], ["x"] * 300, (), (None,), ("x",), {}, {"x": 3}, {"x": ["\ud800"]}),
)
VERBS: Final = sorted(
    name for name, _ in inspect.getmembers(Memory, callable) if not name.startswith("_") and name != "close"
)


def given(tmp_path: Path) -> dict[str, Any]:
    """Something of the right sort for each parameter that has no default."""
    return {
        "act": Act.READ,
        "backup": tmp_path / "backup.db",
        "caller": ADA,
        "covers": [NOBODY],
        "draft": "A note.",
        "drafts": ["A note."],
        "grant": "grt_0000000000000000",
        "keys": Keyring(KEY),
        "lines": [],
        "memory": NOBODY,
        "name": "team",
        "namespace": "ns_0000000000000000",
        "new": KEY,
        "path": tmp_path / "other.db",
        "principal": "bob",
        "reason": "wrong",
        "receipt": "rcp_0000000000000000",
        "state": None,
        "summary": "Short.",
        "target": NOBODY,
        "targets": [NOBODY],
        "value": "/src/x",
    }


def parameters() -> list[tuple[str, str]]:
    """Every public verb with each of its parameters."""
    return [
        (verb, name) for verb in VERBS for name in inspect.signature(getattr(Memory, verb)).parameters if name != "self"
    ]


@pytest.mark.parametrize(("verb", "name"), parameters())
def test_no_value_of_a_parameter_raises_anything_of_python(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str
) -> None:
    """It is taken or refused by an error of ours; what is refused changes nothing."""
    monkeypatch.chdir(tmp_path)
    scratch.memory.remember("A cedar.")
    rest = given(tmp_path)
    asked = {
        one: rest[one]
        for one, parameter in inspect.signature(getattr(Memory, verb)).parameters.items()
        if one != "self" and parameter.default is parameter.empty
    }

    for value in WRONG:
        before = scratch.memory.status()["head"], scratch.memory.namespaces()
        try:
            answer = getattr(scratch.memory, verb)(**{**asked, name: value})
        except LedgerstoneError:
            assert (scratch.memory.status()["head"], scratch.memory.namespaces()) == before
            continue
        for piece in getattr(answer, "pieces", ()):
            assert piece
        if isinstance(answer, Memory) and verb != "bind":
            answer.close()


@pytest.mark.parametrize("name", [field.name for field in fields(Draft)])
def test_no_field_of_a_draft_raises_anything_of_python(scratch: Scratch, name: str) -> None:
    """Each value is kept and comes back, or is refused and nothing is written."""
    scratch.memory.remember("A cedar.")

    for value in WRONG:
        before = scratch.memory.namespaces()
        try:
            kept = scratch.memory.remember(replace(Draft(text="A note."), **{name: value})).record
        except LedgerstoneError:
            assert scratch.memory.namespaces() == before
        else:
            assert name in {"external", "kind", "replaces", "status"} or getattr(kept, name) == value


@pytest.mark.parametrize(("name", "kind"), [(field.name, kind) for kind in (Policy, Budget) for field in fields(kind)])
def test_no_field_of_a_policy_or_a_budget_raises_anything_of_python(
    scratch: Scratch, name: str, kind: type[Policy | Budget]
) -> None:
    """A recall follows it or refuses it."""
    scratch.memory.remember("A cedar.")
    word = "policy" if kind is Policy else "budget"

    for value in WRONG:
        for mode in Mode:
            policy: dict[str, Any] = {"policy": Policy(mode=mode)} if kind is Policy else {}
            asked = {**policy, word: replace(policy.get("policy", Budget()), **{name: value})}
            try:
                scratch.memory.recall("cedar", **asked)
            except LedgerstoneError:
                continue
