"""A COMMIT that fails may have taken place: what is said of it is what is found, and a retry never doubles it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from ledgerstone import Memory, Mode, Remembered, Scope, UnavailableError, UnknownOutcomeError
from ledgerstone.store import sqlite
from tests.store.faults import DEADLY, Fault, Faults, crash_image, faulty
from tests.stores import open_memory, report

TEXT = "said once"


@pytest.fixture
def faults() -> Iterator[Faults]:
    """A file system that fails on demand, under every store of the test."""
    with faulty() as faults:
        yield faults


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "store.db"


@pytest.fixture
def memory(path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A store with something in it, on the failing file system."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    with open_memory(path) as memory:
        memory.remember("before", scope=Scope.USER)
        yield memory
        faults.heal()


def say(memory: Memory, key: str, text: str = TEXT) -> Remembered:
    """Write something under an idempotency key."""
    return memory.remember(text, scope=Scope.USER, idempotency_key=key)


def said(memory: Memory, text: str = TEXT) -> int:
    """How often something stands in the store."""
    return sum(record.text == text for record in memory.list_records("all", limit=100).items)


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "while others have it open"])
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in DEADLY])
def test_a_commit_that_fails_anywhere_is_undone_or_done(
    memory: Memory, path: Path, faults: Faults, tmp_path: Path, fault: Fault, *, shared: bool
) -> None:
    """At whatever write or sync it fails: success is said of what is there, failure of what is not and stays absent.

    Also after a crash: what was found absent does not come back from the log. And the retry writes it once.
    """
    others = open_memory(path) if shared else None
    points = 0
    for point in count():
        text = f"failing at {point}"
        faults.fail("any", "-wal", after=point, fault=fault)
        try:
            done = say(memory, text, text) is not None
        except UnavailableError:
            done = False
        met, points = faults.met, point
        faults.heal()
        image = crash_image(path, tmp_path / f"crash {point}")

        with open_memory(image, create=False) as survivor:
            assert said(survivor, text) == done
            assert said(memory, text) == done
            assert survivor.verify().ok
        assert say(memory, text, text).repeated is done
        assert said(memory, text) == 1
        if not met:
            break
    if others is not None:
        others.close()
    assert points > 4, "writes and a sync of a commit were met"
    assert memory.verify().ok


def test_a_commit_that_failed_too_late_is_a_success(memory: Memory, path: Path, faults: Faults) -> None:
    """An error after the commit is durable (in the checkpoint that follows it) is looked into and not passed on."""
    memory._ledger.store._connection.pragma("wal_autocheckpoint", 1)  # type: ignore[attr-defined]
    faults.fail("write", ".db")

    kept = say(memory, "late")

    assert faults.met == 1
    assert memory.get(kept.record.address).text == TEXT
    assert say(memory, "late").repeated
    memory.close()
    assert report(path).ok


@pytest.mark.parametrize("operation", ["sync", "open"])
def test_a_fate_that_cannot_be_looked_up_is_unknown(memory: Memory, faults: Faults, operation: str) -> None:
    """When the file fails the look as well, the error says so and what to do; repeating that writes it once."""
    faults.fail("sync", "-wal", times=1 if operation == "open" else 99)
    if operation == "open":
        memory._ledger.store._connect = failing  # type: ignore[attr-defined]

    with pytest.raises(UnknownOutcomeError) as unknown:
        say(memory, "fate")
    faults.heal()
    if operation == "open":
        del memory._ledger.store._connect  # type: ignore[attr-defined]
    again = say(memory, "fate")

    assert "same idempotency key" in unknown.value.hint
    assert said(memory) == 1
    assert memory.get(again.record.address).text == TEXT
    assert memory.verify().ok


def failing() -> None:
    """A connection that cannot be had."""
    raise UnavailableError("no connection")


def test_a_full_disk_is_told_and_survived(memory: Memory, faults: Faults) -> None:
    """While the disk is full writes are refused and reads go on; when there is room again, writes do too."""
    faults.fail("write", "-wal", times=10**9, fault=Fault.FULL)

    for _ in range(3):
        with pytest.raises(UnavailableError):
            say(memory, "full")
        assert len(memory.recall("before", mode=Mode.LEXICAL).items) == 1
    faults.heal()
    kept = say(memory, "full")

    assert not kept.repeated
    assert said(memory) == 1
    assert memory.verify().ok


def test_a_rebuild_that_fails_is_no_success(memory: Memory, faults: Faults) -> None:
    """Its commit appends nothing that could be looked up, so it is never taken for done; again, it is."""
    faults.fail("sync", "-wal")

    with pytest.raises(UnknownOutcomeError):
        memory.rebuild()

    assert memory.rebuild().ok
    assert memory.verify().ok
