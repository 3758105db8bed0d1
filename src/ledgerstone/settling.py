"""Versions whose rows say what a replay derived: it forgets them, and reads them back when rules ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ledgerstone.core.facts import Change, Known
from ledgerstone.core.projection import ASIDE, Folded
from ledgerstone.core.values import Ending
from ledgerstone.errors import CorruptionError
from ledgerstone.store.protocol import LAST, Reader, ahead

# How a version was found in its row: as replay has it by now, or but for an ending that is yet to come.
_AS_IT_STANDS: Final = 1
_AS_IT_BEGAN: Final = 2
# So many bits tell of most memories that they are new, without a search.
_BITS: Final = 1 << 23


class Settled:
    """The versions of one chain that were found in their rows: of each entry a byte is kept, and no more.

    Only what a replay derived is ever found here, so that no row is believed; but that a search by memory, key or
    digest misses none takes a snapshot whose indexes are sound, and positions without a gap.
    """

    __slots__ = ("_marks", "_memories", "_next", "_number", "_off", "_reader", "_rows")

    def __init__(self, reader: Reader, number: int) -> None:
        self._reader = reader
        self._number = number
        self._marks = bytearray()
        # A bit for each memory, which it may share: one that was forgotten has it set.
        self._memories = bytearray(_BITS // 8)
        self._rows: Iterator[Known] = ahead(reader.knowns(number, 0, LAST))
        # Whether the rows are others than those of the versions.
        self._off = False
        self._next = self._following()

    def _following(self) -> Known | None:
        try:
            return next(self._rows, None)
        except (CorruptionError, TypeError, ValueError, AttributeError):
            # Whoever compares the rows one by one meets it again, and names it.
            self._off = True
            return None

    def settle(self, change: Change, folded: Folded) -> None:
        """Let ``folded`` forget what an entry added or ended, if its row says the same."""
        for position, _ in change.ended:
            if self._mark(position):
                self._compare(position, self._reader.known(self._number, position), folded)
        if change.added is not None:
            self._compare(change.position, self._row(change.position), folded)

    def _row(self, position: int) -> Known | None:
        """The row of the newest version; rows are taken in order."""
        while self._next is not None and self._next.position < position:
            self._off = True
            self._next = self._following()
        row = self._next
        if row is None or row.position != position:
            return None
        self._next = self._following()
        return row

    def _compare(self, position: int, row: Known | None, folded: Folded) -> None:
        known = folded.known.get(position)
        if known is None or row is None:
            return
        mark = _AS_IT_STANDS if row == known else _AS_IT_BEGAN if _begun(row) == known else 0
        if mark:
            if position >= len(self._marks):
                self._marks.extend(bytes(position + 1 - len(self._marks)))
            self._marks[position] = mark
            bit = hash(known.memory) % _BITS
            self._memories[bit // 8] |= 1 << bit % 8
            folded.settle(known)

    def whole(self, folded: Folded) -> bool:
        """Whether the rows are those of all versions, each as replay leaves it; to be asked at the end."""
        return not (self._off or folded.known or self._next is not None or _AS_IT_BEGAN in self._marks)

    def positions(self) -> list[int]:
        """Where versions were found."""
        return [position for position, mark in enumerate(self._marks) if mark]

    def _mark(self, position: int) -> int:
        return self._marks[position] if position < len(self._marks) else 0

    def version(self, position: int) -> Known | None:
        mark = self._mark(position)
        row = self._reader.known(self._number, position) if mark else None
        return row if row is None or mark == _AS_IT_STANDS else _begun(row)

    def _last(self, positions: list[int]) -> Known | None:
        """The last of those positions at which a version was found."""
        found = [position for position in positions if self._mark(position)]
        return self.version(max(found)) if found else None

    def position(self, digest: bytes) -> int | None:
        known = self._last([at for number, at in self._reader.digests(digest) if number == self._number])
        return None if known is None else known.position

    def latest(self, memory: str) -> Known | None:
        bit = hash(memory) % _BITS
        if not self._memories[bit // 8] >> bit % 8 & 1:
            return None
        return self._last([at for number, at, _ in self._reader.versions(memory) if number == self._number])

    def version_of(self, memory: str, version: int) -> Known | None:
        position = self._reader.version_at(self._number, memory, version)
        return None if position is None else self.version(position)

    def holder(self, key: str) -> Known | None:
        for position in reversed(self._reader.keyed(self._number, key)):
            known = self.version(position)
            if known is not None and known.ending not in ASIDE:
                return self.latest(known.memory)
        return None


def _begun(row: Known) -> Known:
    """A version as it was when it was added, from how it ended: only what stood aside or retracts ends with that."""
    if row.ending is Ending.NONE or row.ended_by == row.sequence:
        return row
    return row._replace(ended_by=0, ending=Ending.NONE)
