"""Whatever is done in whatever order while anything fails, the store is what the replay of its chain says."""

from __future__ import annotations

import pytest

from ledgerstone import Kind
from tests.faults import machine
from tests.faults.machine import live_many
from tests.store.faults import Fault

SEED = 1


def test_a_made_up_life_on_a_failing_file_system_agrees_with_the_replay() -> None:
    """A few lives: faults are met, writes are refused and acknowledged, and the chain has what was said."""
    told = live_many(first=SEED, lives=12, steps=20)

    assert told["lives"] >= 12
    assert told["faults"] > 0
    assert told["done"] > told["refused"] > 0


@pytest.mark.soak
def test_many_made_up_lives_on_a_failing_file_system_agree_with_the_replay() -> None:
    """The same for many and longer lives."""
    told = live_many(first=SEED, lives=400, steps=40)
    print(dict(told))

    assert told["lives"] >= 400
    assert told["faults"] > 1000


def test_a_life_that_loses_a_commit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is no rubber stamp: where an acknowledged commit is not in the file, it fails and names its seed."""
    genuine = machine.replayed

    def short(reader: object) -> machine.Chain:
        chain = genuine(reader)  # type: ignore[arg-type]
        return chain._replace(headers=chain.headers[:4])

    monkeypatch.setattr(machine, "replayed", short)

    with pytest.raises(AssertionError):
        live_many(first=SEED, lives=20, steps=20)


def test_a_text_that_was_refused_may_have_expired_when_it_is_asked_for_again() -> None:
    """The life goes on: it is not admitted any more, and nothing is there of it."""
    machine.Life.lived.clear()
    life = machine.Life()
    life.begin()
    life.remember(fault=(("write", Fault.FULL, 1 << 30), 0), kind=Kind.NOTE, key=None, days=1)
    life.expire(fault=None, days=1)

    life.repeat(fault=None, which=1)
    life.teardown()

    assert machine.Life.lived["refused"] == machine.Life.lived["not admitted"] == 1
    assert len(life.chain.known) == 1
