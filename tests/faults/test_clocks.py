"""A clock that jumps back and far ahead moves no time of a chain backwards."""

from __future__ import annotations

import tempfile
from itertools import accumulate
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerstone import Mode, Scope
from ledgerstone.core.canonical import MAX_INTEGER
from ledgerstone.core.entries import decode_header
from ledgerstone.store import open_store
from tests.stores import SECOND, START, open_memory

YEAR = 365 * 24 * 3600 * SECOND
TIMES = st.one_of(st.integers(0, MAX_INTEGER), st.integers(START - YEAR, START + YEAR))


def stamps(path: Path) -> dict[str, list[int]]:
    """The times of all commits, chain by chain, oldest first."""
    store = open_store(path)
    try:
        with store.read() as reader:
            found = {}
            for chain in reader.chains():
                rows = reader.headers(chain.number, newest=0, oldest=chain.sequence)
                found[chain.namespace] = [decode_header(body).stamp.at for _, _, body in rows]
            return found
    finally:
        store.close()


@settings(max_examples=20)
@given(times=st.lists(TIMES, min_size=1, max_size=6))
@example(times=[START, START - YEAR, START, START + 200 * YEAR, START])
@example(times=[0, MAX_INTEGER, 0])
def test_no_time_of_a_chain_runs_backwards(times: list[int]) -> None:
    """Written by whatever clock: a commit has the clock's time or its parent's, whichever is later; it verifies."""
    now = START
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        written = []
        with open_memory(path, now=lambda: now) as memory:
            for number, now in enumerate(times):  # noqa: B007 - the clock looks at it
                written.append(memory.remember(f"lantern {number}", scope=Scope.USER).record)
            assert memory.verify().ok

        with open_memory(path, create=False, now=lambda: START) as memory:
            assert [memory.get(record.address).text for record in written] == [record.text for record in written]
            assert len(memory.recall("lantern", mode=Mode.LEXICAL).items) == len(times)
        assert all(line == sorted(line) for line in stamps(path).values())
        assert [record.created_at for record in written] == list(accumulate(times, max))
