"""What rules and projection need to know of the past: a few records when writing, the folded state on replay."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ledgerstone.core import canonical
from ledgerstone.core.values import Ending, Kind, Status, Trust


class Slot(NamedTuple):
    """Where an entry stands: its position, the sequence of its commit, and its digest."""

    position: int
    sequence: int
    digest: bytes


class Known(NamedTuple):
    """One version as rules see it.

    ``body`` is the position whose content holds its text; ``depth`` counts the levels of summaries below it;
    ``sealed`` says that its own entry commits to a content, ``content_bytes`` how large the text's content is.
    """

    position: int
    sequence: int
    digest: bytes
    memory: str
    version: int
    kind: Kind
    status: Status
    trust: Trust
    text_bytes: int
    body: int
    depth: int
    key: str | None
    expires: int | None = None
    sealed: bool = False
    content_bytes: int = 0
    ended_by: int = 0
    ending: Ending = Ending.NONE

    @property
    def address(self) -> str:
        """By what it is named to a caller."""
        return canonical.address(self.memory, self.version)

    @property
    def current(self) -> bool:
        """Nothing has ended it."""
        return self.ending is Ending.NONE

    @property
    def open_task(self) -> bool:
        """An obligation, whatever its trust."""
        return self.status is Status.OPEN and self.ending is Ending.NONE


class Own(NamedTuple):
    """An entry with a content of its own, apart from any text that it carries on: where, and the rows that find it.

    ``lookups`` are those of its rows that say its name, as they are without it.
    """

    position: int
    lookups: tuple[tuple[str, str], ...] = ()


class Change(NamedTuple):
    """What one entry does to a namespace: the version it adds, what it ends, and what is derived from it.

    ``born`` is the ending the entry itself has from the start (NONE for nearly all). ``ended`` names earlier
    positions. ``sources`` and ``covers`` are positions. ``lookups`` find an entry by what it is about: a noun and a
    value. ``indexed`` says that the text at ``added.body`` belongs in the word index under this position. ``erased``
    are those positions among ``ended`` that lose their content. ``own`` says that the entry has a content of its own,
    by what it is found without it; ``struck`` are the earlier ones that lose theirs, and nothing else. ``promoted`` is
    the most trust that the record may have which comes next, by a promotion.
    """

    position: int
    added: Known | None = None
    ended: tuple[tuple[int, Ending], ...] = ()
    born: Ending = Ending.NONE
    sources: tuple[int, ...] = ()
    covers: tuple[int, ...] = ()
    lookups: tuple[tuple[str, str], ...] = ()
    erased: tuple[int, ...] = ()
    live: bool = False
    indexed: bool = False
    own: Own | None = None
    struck: tuple[Own, ...] = ()
    promoted: Trust | None = None


class Versions(Protocol):
    """The versions of one namespace, by whatever names them."""

    def position(self, digest: bytes) -> int | None:
        """Where an entry of this digest stands."""

    def version(self, position: int) -> Known | None:
        """The version at a position, or None when that entry is none."""

    def latest(self, memory: str) -> Known | None:
        """The highest version of a memory."""

    def version_of(self, memory: str, version: int) -> Known | None:
        """One version of a memory."""

    def holder(self, key: str) -> Known | None:
        """The highest version of the memory that holds a key; contested versions hold none."""


class Facts(Versions, Protocol):
    """The past of one namespace: its versions, and what else rules ask for.

    Each answer is authenticated by whoever gives it.
    """

    def resting_on(self, position: int) -> tuple[Known, ...]:
        """The summaries that name this position among their sources and have not ended."""

    def rejected(self, tombstone: bytes) -> bytes | None:
        """The digest of the retraction that left this tombstone."""

    def rejection(self, digest: bytes) -> bool:
        """Whether an entry is a retraction that left a tombstone."""

    def listed(self, noun: str, value: str) -> bool:
        """Whether an earlier entry is found by this noun and value."""

    def revocable(self, digest: bytes) -> bool:
        """Whether an alias, grant or the like has this digest and still stands."""

    def key(self) -> str | None:
        """The id of the key in force, which is that of the newest key entry; None before the first."""

    def own(self, digest: bytes) -> Own | None:
        """An earlier entry other than a record, as long as its own content is neither erased nor struck."""

    def promoted(self, digest: bytes) -> Trust | None:
        """The most trust that a promotion allows, if it is the entry right before the one that is asked about."""

    @property
    def boundary(self) -> int:
        """The position at which the commit in the making begins: what stands before it is earlier."""

    def open_tasks(self) -> tuple[int, int]:
        """How many obligations stand at or above the default floor, and the bytes of their contents together."""
