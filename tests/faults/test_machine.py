"""Whatever is done in whatever order while anything fails, the store is what the replay of its chain says."""

from __future__ import annotations

import pytest

from tests.faults import machine
from tests.faults.machine import live_many

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
