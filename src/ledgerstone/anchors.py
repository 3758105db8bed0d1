"""What this machine remembers of a store outside the store: which one it is, its newest heads, how its files looked.

One folder per path in the state directory. Heads go forward only. A store that does not contain the head which is
remembered was cut short, rolled back or exchanged. Files that look as they did after our last write were touched by
nobody else, and nothing in them needs to be counted again.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ledgerstone.core.merkle import HASH_BYTES
from ledgerstone.errors import CorruptionError, UnavailableError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; one process at a time is then the host's promise
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

MAX_OPEN_FILES: Final = 64
# How long a write waits for others to record theirs: 400 times 5 ms.
LOCK_TRIES: Final = 400
LOCK_SECONDS: Final = 0.005
_LINE: Final = 20 + 1 + 64 + 1 + 20 + 1
_FENCE_LINE: Final = 20 + 1 + 64 + 1
# A commitment that was erased, and what a power cut may leave of the line.
_WHOLE_LINE: Final = re.compile("[0-9a-f]{64}")
_PART_OF_A_LINE: Final = re.compile("[0-9a-f]{0,64}")
_NO_LINE: Final = b" " * 64
_RECEIPT: Final = "receipt "
_FENCE: Final = "fence"
_INTENDED: Final = "erasing"
_READ: Final = os.O_RDONLY
_WRITE: Final = os.O_RDWR | os.O_CREAT


class Verified(NamedTuple):
    """Up to where everything was verified here: by namespace a head, and the newest receipt that was checked by then.

    Both say where to go on from, and nothing of them is believed.
    """

    heads: Mapping[str, tuple[int, bytes]] = {}
    receipt: str | None = None


class Anchor(NamedTuple):
    """The newest head of a chain that this machine saw; ``tick`` counts the writes of the folder at that moment."""

    sequence: int
    commit: bytes
    tick: int


class Anchors:
    """The folder of one store's path. May be shared by threads and processes; a lock keeps writers in turn.

    What cannot be read is UnavailableError, and never taken for nothing; what cannot be written is OSError.
    """

    __slots__ = ("_descriptors", "_pid", "_turn", "folder")

    def __init__(self, state: Path, path: str) -> None:
        self.folder: Final = state / "stores" / sha256(path.encode()).hexdigest()[:32]
        self._descriptors: dict[tuple[str, int], int] = {}
        self._pid = os.getpid()
        self._turn = threading.RLock()

    def store(self) -> str | None:
        """The id of the store that is known at this path; None when none is."""
        # A power cut may leave the file empty.
        return self._readable(lambda: (self.folder / "store").read_text(encoding="ascii").strip(), "") or None

    def bind(self, store: str) -> None:
        """Remember which store is at this path; another one there is refused from now on."""
        self._exchange("store", f"{store}\n")

    def _exchange(self, name: str, text: str) -> None:
        """Put a file in the place of the one of that name, whole."""
        self._make()
        draft = self.folder / f".{name}.{os.getpid()}"
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / name)

    def check_path(self, path: Path) -> None:
        """Refuse a path whose store is gone: it is never made anew in silence."""
        known = self.store()
        if known is not None and not path.exists():
            raise UnavailableError(
                f"the store {known} that was at {path} is gone",
                hint=f"put it back or restore a backup there; to begin anew, remove {self.folder}",
            )

    def check_store(self, store: str | None) -> None:
        """Refuse another store at this path, and none."""
        known = self.store()
        if known not in {None, store}:
            raise CorruptionError(
                f"the store at this path is {store or 'empty'}, not {known} that was here before",
                hint=f"put the right file back; to accept this one, remove {self.folder}",
            )

    def tick(self) -> int:
        """How often this folder was written."""
        return self._fence()[0]

    def unchanged(self, mark: bytes) -> bool:
        """True when the store's files look as they did after the last write that was recorded."""
        return self._fence()[1] == mark.hex()

    def recorded(self) -> bool:
        """True when it was ever recorded how the files look."""
        return self._fence()[1] != ""

    def newest(self, namespace: str) -> Anchor | None:
        """The newest head of a chain that was recorded; None when none was ever kept.

        Raises CorruptionError when one was, and nobody can tell which: an older copy of the store would pass then.
        """
        return self._head(namespace, self._read(f"heads/{namespace}", _LINE))

    def _head(self, namespace: str, line: bytes) -> Anchor | None:
        if not line.strip(b"\0"):
            # A file that a power cut left without a byte of its own: nothing that was in it had been kept yet.
            return None
        try:
            return _anchor(line)
        except ValueError:
            raise abandons(namespace, None, 0) from None

    def later(self, anchor: Anchor, since: int) -> bool:
        """Whether an anchor was recorded after the folder had been written so often, so that a snapshot may lack it.

        The fence is written first: where it is behind an anchor it was lost, and that excuses nothing.
        """
        return since < anchor.tick <= self.tick()

    def record(
        self, look: Callable[[], bytes | None], heads: Mapping[str, tuple[int, bytes]], *, back: bool = False
    ) -> None:
        """Remember heads that were committed, unless a newer one is known, and how the files ``look`` after that.

        ``look`` is asked when it is this writer's turn; None leaves what was recorded before. ``back`` lets a head
        go back: what an owner accepts after a restore. Raises OSError when it cannot be kept, CorruptionError when it
        cannot be told what is newer.
        """
        with self._locked() as fence:
            # Nobody else writes now: what is read once is whole.
            tick, before = _fenced(os.pread(fence, _FENCE_LINE, 0))
            newer = {name: head for name, head in heads.items() if back or self._is_newer(name, head[0])}
            if newer:
                # The tick moves first: whoever sees it began to read after these heads were committed, and is shown
                # them, even if nothing below is done any more.
                tick += 1
                os.pwrite(fence, _fence_line(tick, ""), 0)
            for name, (sequence, commit) in newer.items():
                line = f"{sequence:020d} {commit.hex()} {tick:020d}\n".encode("ascii")
                os.pwrite(self._descriptor(f"heads/{name}", _WRITE), line, 0)
            mark = look()
            os.pwrite(fence, _fence_line(tick, before if mark is None else mark.hex()), 0)

    def _is_newer(self, namespace: str, sequence: int) -> bool:
        line = os.pread(self._descriptor(f"heads/{namespace}", _WRITE), _LINE, 0)
        before = self._head(namespace, line)
        return before is None or before.sequence < sequence

    def verified(self) -> Verified:
        """Up to where everything was verified here; of nothing when that was never done."""

        def read() -> Verified:
            lines = (self.folder / "verified").read_text(encoding="ascii").splitlines()
            receipt = lines.pop().removeprefix(_RECEIPT) if lines and lines[-1].startswith(_RECEIPT) else None
            parts = [line.partition(" ") for line in lines]
            anchors = {namespace: _anchor(rest.encode("ascii")) for namespace, _, rest in parts}
            return Verified({name: (one.sequence, one.commit) for name, one in anchors.items()}, receipt)

        return self._readable(read, Verified())

    def keep_verified(self, heads: Mapping[str, tuple[int, bytes]], receipt: str | None = None) -> None:
        """Remember up to where everything was verified; nothing of it without heads. OSError when that cannot be."""
        if not heads:
            (self.folder / "verified").unlink(missing_ok=True)
            return
        lines = [f"{name} {sequence} {commit.hex()} 0\n" for name, (sequence, commit) in heads.items()]
        lines += [] if receipt is None else [f"{_RECEIPT}{receipt}\n"]
        self._exchange("verified", "".join(lines))

    def keep_erased(self, commitments: Iterable[bytes]) -> None:
        """Remember commitments whose contents were erased, so that an older copy does not bring them back."""
        if lines := _lines(commitments):
            with self._locked():
                self._append("erased", lines)

    def _append(self, name: str, lines: bytes) -> None:
        """Add lines to a file, durably; under the lock."""
        descriptor = self._descriptor(name, _WRITE)
        os.pwrite(descriptor, lines, os.fstat(descriptor).st_size)
        os.fsync(descriptor)

    def erased(self, *, intended: bool = False) -> frozenset[bytes]:
        """The commitments whose contents were erased on this machine, from whichever store: copies may move.

        Also, if asked, those that were meant to be, by somebody who died over it.
        """
        names = ("erased", _INTENDED) if intended else ("erased",)
        return self._readable(lambda: _commitments(self.folder.parent, *(f"*/{name}" for name in names)), frozenset())

    def intend(self, commitments: Iterable[bytes]) -> None:
        """Remember, durably, what the commit that follows is to erase, until ``drop_intended``.

        What others mean to erase, or meant to when they died, stays beside it.
        """
        with self._locked():
            self._append(_INTENDED, _lines(commitments))

    def intended(self) -> frozenset[bytes]:
        """What was to be erased from the store at this path when somebody died."""
        return self._readable(lambda: _commitments(self.folder, _INTENDED), frozenset())

    def drop_intended(self, commitments: Iterable[bytes]) -> None:
        """These are not to be erased any more: they were, or nobody does. What others mean to erase is."""
        with self._locked():
            descriptor = self._descriptor(_INTENDED, _WRITE)
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            for commitment in commitments:
                # In its own place: whoever dies over it leaves every other line as it is.
                data = data.replace(commitment.hex().encode("ascii"), _NO_LINE)
            if data.split():
                os.pwrite(descriptor, data, 0)
            else:
                os.truncate(descriptor, 0)

    def drop(self) -> None:
        """Remember nothing of this path any more."""
        self.close()
        for each in sorted(self.folder.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        with suppress(FileNotFoundError):
            self.folder.rmdir()

    def close(self) -> None:
        """Give the descriptors back."""
        with self._alone():
            self._let_go()

    def _let_go(self) -> None:
        for descriptor in self._descriptors.values():
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; a forked child lets go of its parent's descriptors, whose lock it would share."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self._turn = threading.RLock()
            self._let_go()
        with self._turn:
            yield

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """One process at a time, with the descriptor of the fence."""
        with self._alone():
            fence = self._descriptor(_FENCE, _WRITE)
            if fcntl is not None:
                _wait_for(lambda: fcntl.flock(fence, fcntl.LOCK_EX | fcntl.LOCK_NB), self.folder)
            try:
                yield fence
            finally:
                if fcntl is not None:
                    fcntl.flock(fence, fcntl.LOCK_UN)

    def _fence(self) -> tuple[int, str]:
        return _fenced(self._read(_FENCE, _FENCE_LINE))

    def _read(self, name: str, size: int) -> bytes:
        """The one line of a file, empty when there is none; read until it reads the same twice, without a lock."""

        def read() -> bytes:
            descriptor = self._descriptor(name, _READ)
            line, again = b"", os.pread(descriptor, size, 0)
            while line != again:
                line, again = again, os.pread(descriptor, size, 0)
            return line

        with self._alone():
            return self._readable(read, b"")

    def _readable(self, read: Callable[[], T], absent: T) -> T:
        """What is read; what is not there is absent, and what cannot be read is refused."""
        try:
            return read()
        except (FileNotFoundError, NotADirectoryError):
            return absent
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"what is remembered of this store outside it cannot be read: {error}", hint=f"see to {self.folder}"
            ) from error

    def _descriptor(self, name: str, flags: int) -> int:
        found = self._descriptors.get((name, flags))
        if found is None:
            path = self.folder / name
            if flags == _WRITE:
                self._make(path.parent)
            found = os.open(path, flags, 0o600)
            if len(self._descriptors) >= MAX_OPEN_FILES:
                # Never the fence, which may be locked by it.
                oldest = next(key for key in self._descriptors if key[0] != _FENCE)
                os.close(self._descriptors.pop(oldest))
            self._descriptors[name, flags] = found
        return found

    def _make(self, folder: Path | None = None) -> None:
        for each in (self.folder.parent.parent, self.folder.parent, self.folder, folder or self.folder):
            # The mode holds for the last part alone, so that each is made by itself.
            each.mkdir(mode=0o700, parents=True, exist_ok=True)


def abandons(namespace: str, anchor: Anchor | None, sequence: int) -> CorruptionError:
    """The refusal of a chain, up to a sequence, that lacks the head that was remembered; None: nobody can tell."""
    if anchor is None:
        return CorruptionError(
            f"{namespace}: which head was seen here cannot be read any more, so an older copy of this store would pass",
            hint="a damaged disk? if this store is the newest that you have, run: ledgerstone verify --accept",
        )
    if sequence < anchor.sequence:
        return CorruptionError(
            f"{namespace}: the head is commit {sequence}, behind commit {anchor.sequence} seen here",
            hint="a restored backup? if you put it there yourself, run: ledgerstone verify --accept",
        )
    return CorruptionError(
        f"{namespace}: commit {anchor.sequence} is not the one that was seen here: another history",
        hint="a copy that went on by itself? if you put it there yourself, run: ledgerstone verify --accept",
    )


def _wait_for(lock: Callable[[], object], folder: Path) -> None:
    """Try again while somebody else holds the lock, but not for ever: whoever holds it may have been stopped."""
    for _ in range(LOCK_TRIES):
        try:
            lock()
        except BlockingIOError:
            time.sleep(LOCK_SECONDS)
        else:
            return
    raise TimeoutError(f"{folder} is locked by another process")


def _commitments(folder: Path, *patterns: str) -> frozenset[bytes]:
    """All whole lines of some files; ValueError for a file of what was erased that holds anything but lines."""
    found: set[bytes] = set()
    for file in (file for pattern in patterns for file in folder.glob(pattern)):
        lines = file.read_text("ascii").split("\n")
        # What is only meant is kept before the commit that does it: spoilt by a power cut, nothing was done.
        if file.name != _INTENDED and not all(map(_PART_OF_A_LINE.fullmatch, lines)):
            raise ValueError(f"{file} is not as it was written")
        found.update(bytes.fromhex(line) for line in lines if _WHOLE_LINE.fullmatch(line))
    return frozenset(found)


def _lines(commitments: Iterable[bytes]) -> bytes:
    """Lines to add: one that a power cut left half written ends before them, and takes no other one with it."""
    return "".join(f"\n{commitment.hex()}" for commitment in sorted(commitments)).encode("ascii")


def _fenced(line: bytes) -> tuple[int, str]:
    """How often the folder was written, and the mark; what says neither costs a verification, and no more."""
    tick, _, mark = line.decode("ascii", "replace").partition(" ")
    return (int(tick) if tick.isdigit() else 0), mark.strip()


def _fence_line(tick: int, mark: str) -> bytes:
    return f"{tick:020d} {mark:64}\n".encode("ascii")


def _anchor(line: bytes) -> Anchor:
    """A head as it is written down; ValueError for anything else."""
    sequence, commit, tick = line.decode("ascii").split()
    if len(commit) != 2 * HASH_BYTES:
        raise ValueError(f"{commit!r} is the id of no commit")
    return Anchor(int(sequence), bytes.fromhex(commit), int(tick))
