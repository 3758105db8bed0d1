"""The past of a chain as rules ask for it, proven out of one snapshot."""

from __future__ import annotations

from ledgerstone.core import entries
from ledgerstone.core.entries import KeyEntry, RetractEntry
from ledgerstone.core.facts import Known, Own
from ledgerstone.core.projection import REVOCABLE, TOMBSTONE, own
from ledgerstone.core.values import DEFAULT_FLOOR, Ending, Kind, Trust
from ledgerstone.reading import Chain, Proven, Reading


class SnapshotFacts:
    """Facts out of a snapshot: rows only preselect, every answer is proven."""

    __slots__ = ("_places", "_reading", "_where")

    def __init__(self, reading: Reading, where: Chain) -> None:
        self._reading = reading
        self._where = where
        # Where entries stand that are no versions, by digest; looked for once, and only when somebody asks.
        self._places: dict[bytes, tuple[int, int, int]] | None = None

    def position(self, digest: bytes) -> int | None:
        for number, position in self._reading.reader.digests(digest):
            if number == self._where.number:
                return position
        found = self._arranged(digest)
        return None if found is None else found.position

    def _arranged(self, digest: bytes) -> Proven | None:
        """An alias, grant or the like that stands, by its digest: rare enough to be looked for one by one."""
        for noun in REVOCABLE:
            for row in self._reading.reader.catalog(self._where.number, noun):
                if not row.ending:
                    proven = self._reading.prove(self._where, row.position, row.sequence, row.ended_by, row.ending)
                    if proven.digest == digest:
                        return proven
        return None

    def own(self, digest: bytes) -> Own | None:
        reader, number = self._reading.reader, self._where.number
        here = [position for chain_, position in reader.digests(digest) if chain_ == number]
        proven = self._reading.version_entry(self._where, here[0]) if here else self._other(digest)
        if proven is None or proven.digest != digest or proven.ending is Ending.ERASED:
            return None
        return None if self._reading.struck(self._where, proven) else own(proven.entry, proven.position)

    def _other(self, digest: bytes) -> Proven | None:
        reading, where = self._reading, self._where
        if self._places is None:
            ended = {row.position: (row.ended_by, row.ending) for row in reading.reader.catalog(where.number)}
            bodies = reading.reader.entries(where.number, 0, where.head.counts.entries)
            self._places = {
                entries.digest_of(body): (position, *ended.get(position, (0, 0)))
                for position, body in bodies
                if b'"content":' in body
            }
        place = self._places.get(digest)
        if place is None:
            return None
        position, by, ending = place
        return reading.prove(where, position, reading.sequence_of(where, position), by, ending)

    @property
    def boundary(self) -> int:
        return self._where.head.counts.entries

    def rejection(self, digest: bytes) -> bool:
        proven = self._reading.version_entry(self._where, self.position(digest))
        return proven is not None and isinstance(proven.entry, RetractEntry) and proven.entry.tombstone is not None

    def listed(self, noun: str, value: str) -> bool:
        return bool(self._reading.reader.lookup(self._where.number, noun, value))

    def key(self) -> str | None:
        rows = sorted(self._reading.reader.catalog(self._where.number, "key"), key=lambda row: row.position)
        entry = self._reading.listed(rows[-1]).proven.entry if rows else None
        return entry.key if isinstance(entry, KeyEntry) else None

    def revocable(self, digest: bytes) -> bool:
        return self._arranged(digest) is not None

    def version(self, position: int) -> Known | None:
        return self._reading.known(self._where, position)

    def latest(self, memory: str) -> Known | None:
        position = self._reading.reader.newest(self._where.number, memory)
        return None if position is None else self.version(position)

    def version_of(self, memory: str, version: int) -> Known | None:
        position = self._reading.reader.version_at(self._where.number, memory, version)
        return None if position is None else self.version(position)

    def holder(self, key: str) -> Known | None:
        # Of an erased version no row says which key it had: an older one leads to the memory that holds it.
        position = self._reading.reader.holder(self._where.number, key)
        known = self.version(position) if position is not None else None
        return None if known is None else self.latest(known.memory)

    def resting_on(self, position: int) -> tuple[Known, ...]:
        rows = self._reading.reader.resting_on(self._where.number, position)
        found = (self.version(row) for row in rows)
        return tuple(known for known in found if known is not None and known.current and known.kind is Kind.SUMMARY)

    def rejected(self, tombstone: bytes) -> bytes | None:
        for row in self._reading.reader.lookup(self._where.number, TOMBSTONE, tombstone.hex()):
            proven = self._reading.version_entry(self._where, row.position)
            if proven is not None:
                return proven.digest
        return None

    def promoted(self, digest: bytes) -> Trust | None:
        # What came in an earlier commit is not the entry right before.
        del digest
        return None

    def open_tasks(self) -> tuple[int, int]:
        return self._reading.reader.open_size(self._where.number, DEFAULT_FLOOR.value)
