"""What this machine remembers of a store outside the store: which one it is, its newest heads, how its files looked.

One folder per path in the state directory. Heads go forward only. A store that does not contain the head which is
remembered was cut short, rolled back or exchanged. Files that look as they did after our last write were touched by
nobody else, and nothing in them needs to be counted again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from ledgerstone.errors import CorruptionError, UnavailableError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; one process at a time is then the host's promise
    fcntl = None  # type: ignore[assignment]

MAX_OPEN_HEADS: Final = 64
_LINE: Final = 20 + 1 + 64 + 1 + 20 + 1
_FENCE: Final = 20 + 1 + 64 + 1


class Anchor(NamedTuple):
    """The newest head of a chain that this machine saw; ``tick`` counts the writes of the folder at that moment."""

    sequence: int
    commit: bytes
    tick: int


class Anchors:
    """The folder of one store's path. May be shared by threads and processes; a lock keeps writers in turn."""

    __slots__ = ("_descriptors", "_fence", "folder")

    def __init__(self, state: Path, path: str) -> None:
        self.folder: Final = state / "stores" / sha256(path.encode()).hexdigest()[:32]
        self._descriptors: dict[str, int] = {}
        self._fence: int | None = None

    def store(self) -> str | None:
        """The id of the store that is known at this path; None when none is."""
        try:
            return (self.folder / "store").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None

    def bind(self, store: str) -> None:
        """Remember which store is at this path; another one there is refused from now on."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.folder / f".store.{os.getpid()}"
        draft.write_text(f"{store}\n", encoding="ascii")
        draft.replace(self.folder / "store")

    def check_path(self, path: Path) -> None:
        """Refuse a path whose store is gone: it is never made anew in silence."""
        known = self.store()
        if known is not None and not path.exists():
            raise UnavailableError(
                f"the store {known} that was at {path} is gone",
                hint=f"put it back or restore a backup there; to begin anew, remove {self.folder}",
            )

    def check_store(self, store: str) -> None:
        """Refuse another store at this path."""
        known = self.store()
        if known not in {None, store}:
            raise CorruptionError(
                f"the store at this path is {store}, not {known} that was here before",
                hint=f"put the right file back; to accept this one, remove {self.folder}",
            )

    def tick(self) -> int:
        """How often this folder was written."""
        return self._read_fence()[0]

    def unchanged(self, mark: bytes) -> bool:
        """True when the store's files look as they did after the last write that was recorded."""
        return self._read_fence()[1] == mark.hex()

    def newest(self, namespace: str) -> Anchor | None:
        """The newest head of a chain that was recorded."""
        descriptor = self._descriptor(namespace, create=False)
        line = b"" if descriptor is None else os.pread(descriptor, _LINE, 0)
        return _anchor(line)

    def record(self, mark: bytes, heads: Mapping[str, tuple[int, bytes]], *, back: bool = False) -> None:
        """Remember how the files look now, and heads that were committed; a head that is not newer is left out.

        ``back`` lets a head go back: what an owner accepts after a restore. Raises OSError when it cannot be kept.
        """
        with self._locked() as descriptor:
            tick = self._read_fence()[0] + 1
            for namespace, (sequence, commit) in heads.items():
                before = self.newest(namespace)
                if back or before is None or before.sequence < sequence:
                    where = self._descriptor(namespace, create=True)
                    line = f"{sequence:020d} {commit.hex()} {tick:020d}\n".encode("ascii")
                    os.pwrite(where if where is not None else -1, line, 0)
            os.pwrite(descriptor, f"{tick:020d} {mark.hex()}\n".encode("ascii"), 0)

    def keep_erased(self, commitments: Iterable[bytes]) -> None:
        """Remember commitments whose contents were erased, so that an older copy does not bring them back."""
        lines = "".join(f"{commitment.hex()}\n" for commitment in sorted(commitments))
        if lines:
            with self._locked(), (self.folder / "erased").open("a", encoding="ascii") as file:
                file.write(lines)

    def erased(self) -> frozenset[bytes]:
        """The commitments whose contents were erased on this machine."""
        try:
            lines = (self.folder / "erased").read_text(encoding="ascii").split()
        except FileNotFoundError:
            return frozenset()
        return frozenset(bytes.fromhex(line) for line in lines)

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in (*self._descriptors.values(), *(() if self._fence is None else (self._fence,))):
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()
        self._fence = None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        if self._fence is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fence = os.open(self.folder / "fence", os.O_CREAT | os.O_RDWR, 0o600)
        if fcntl is not None:
            fcntl.flock(self._fence, fcntl.LOCK_EX)
        try:
            yield self._fence
        finally:
            if fcntl is not None:
                fcntl.flock(self._fence, fcntl.LOCK_UN)

    def _read_fence(self) -> tuple[int, str]:
        if self._fence is None:
            try:
                self._fence = os.open(self.folder / "fence", os.O_RDWR)
            except FileNotFoundError:
                return 0, ""
        line = os.pread(self._fence, _FENCE, 0)
        tick, _, mark = line.decode("ascii", "replace").strip().partition(" ")
        return (int(tick) if tick.isdigit() else 0), mark

    def _descriptor(self, namespace: str, *, create: bool) -> int | None:
        found = self._descriptors.get(namespace)
        if found is None:
            path = self.folder / "heads" / namespace
            try:
                if create:
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    found = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
                else:
                    found = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                return None
            if len(self._descriptors) >= MAX_OPEN_HEADS:
                os.close(self._descriptors.pop(next(iter(self._descriptors))))
            self._descriptors[namespace] = found
        return found


def _anchor(line: bytes) -> Anchor | None:
    parts = line.decode("ascii", "replace").split()
    try:
        sequence, commit, tick = parts
        return Anchor(int(sequence), bytes.fromhex(commit), int(tick))
    except ValueError:
        return None
