"""A volume that is full takes nothing more in, and gives everything out."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from ledgerstone import Memory, Mode, Scope, UnavailableError
from tests.faults.volume import Volume, counted, mounted
from tests.stores import open_memory, report

# A text of its own size, so that a volume is full after a few dozen of them.
LONG: Final = "a long text about the sea " * 150


@pytest.fixture(params=["tmpfs", "counted"])
def volume(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Volume]:
    """A small volume; where no tmpfs can be mounted, both are of the kind that counts."""
    with ExitStack() as stack:
        found = stack.enter_context(mounted(tmp_path)) if request.param == "tmpfs" else None
        yield found or stack.enter_context(counted(tmp_path))


def fill(memory: Memory) -> list[str]:
    """Write until it is refused; the addresses of what was acknowledged."""
    addresses: list[str] = []
    while True:
        try:
            addresses.append(memory.remember(f"{LONG} {len(addresses)}", scope=Scope.USER).record.address)
        except UnavailableError:
            return addresses


def test_a_full_volume_refuses_writes_answers_reads_and_takes_writes_when_freed(volume: Volume) -> None:
    """Nothing acknowledged is lost, a refused write is not there, and with room again the same write succeeds."""
    path = volume.folder / "store.db"
    with open_memory(path) as memory:
        first = memory.remember("the harbor lights", scope=Scope.USER).record
        addresses = fill(memory)
        volume.fill()

        with pytest.raises(UnavailableError):
            memory.remember(LONG, scope=Scope.USER, idempotency_key="again")
        assert memory.get(first.address).text == "the harbor lights"
        assert [item.record.address for item in memory.recall("harbor", mode=Mode.LEXICAL).items] == [first.address]
        assert all(memory.get_many(addresses[-8:]))
        assert memory.verify().ok

        volume.free()
        assert not memory.remember(LONG, scope=Scope.USER, idempotency_key="again").repeated
        assert all(memory.get(address).text for address in addresses)
    assert len(addresses) >= 8
    assert report(path).ok


@contextmanager
def nothing_grows() -> Iterator[None]:
    """No file of this process gets another byte, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_store_is_opened_on_a_full_disk_only_beside_others(tmp_path: Path) -> None:
    """Without room for what its readers share it is refused, with what to look at; where that is there, it is read."""
    path = tmp_path / "store.db"
    with open_memory(path) as memory:
        first = memory.remember("the harbor lights", scope=Scope.USER).record

    with nothing_grows(), pytest.raises(UnavailableError) as refused:
        open_memory(path, create=False)
    with open_memory(path, create=False), nothing_grows(), open_memory(path, create=False) as other:
        read = other.get(first.address).text

    assert "ledgerstone doctor" in refused.value.hint
    assert read == "the harbor lights"


def test_forgetting_on_a_full_volume_is_done_or_refused_and_works_when_freed(volume: Volume) -> None:
    """An erasure is a write too: without room it is refused whole, and with some the text is gone."""
    path = volume.folder / "store.db"
    with open_memory(path) as memory:
        doomed = memory.remember("the harbor lights are out for good", scope=Scope.USER).record
        fill(memory)
        volume.fill()

        with suppress(UnavailableError):
            memory.forget(doomed.address, dry_run=False)
        gone = memory.get(doomed.address).text is None
        assert memory.verify().ok

        volume.free()
        if not gone:
            assert memory.forget(doomed.address, dry_run=False).erased
        assert memory.get(doomed.address).text is None
    assert b"harbor lights" not in path.read_bytes()
    assert report(path).ok
