"""A process that holds the lock and does not go on keeps nobody waiting for ever."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ledgerstone import Scope, UnavailableError
from ledgerstone.store import sqlite
from tests.stores import open_memory, process


def hold(path: Path, channel: Connection) -> None:
    """Write half a commit, say so, and never finish it."""
    with open_memory(path, create=False) as memory, memory._ledger.store.write() as writer:
        writer._connection.execute("INSERT INTO setting(name, value) VALUES('half', 1)")  # type: ignore[attr-defined]
        channel.send("holding")
        signal.pause()


def test_a_stopped_lock_holder_is_waited_for_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are refused after the timeout and read on; when the holder is killed they write, and its half is gone."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 100)
    path = tmp_path / "store.db"
    with open_memory(path) as memory:
        before = memory.remember("before", scope=Scope.USER).record
        receiver, sender = multiprocessing.Pipe(duplex=False)
        holder = process(hold, path, sender)
        assert receiver.recv() == "holding"
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGSTOP)

        with pytest.raises(UnavailableError, match="locked by another process"):
            memory.remember("meanwhile", scope=Scope.USER)
        assert memory.get(before.address).text == "before"
        holder.kill()
        holder.join()
        after = memory.remember("after", scope=Scope.USER).record

        assert {record.text for record in memory.list_records("all").items} == {"before", "after"}
        assert memory.get(after.address).text == "after"
        assert memory.verify().ok
    rows = sqlite.SqliteStore(path)
    assert rows._connection.execute("SELECT count(*) FROM setting WHERE name = 'half'").get == 0
    rows.close()
