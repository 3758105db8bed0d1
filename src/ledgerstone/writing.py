"""One commit in the making: what the rules admit is folded in, then sealed, signed and appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

from ledgerstone.core import chain, entries, rules, state
from ledgerstone.core.entries import Content, Counts, Idempotency, RecordEntry, Stamp, StorePoint
from ledgerstone.core.facts import Change, Slot
from ledgerstone.core.projection import NO_COUNTS, Folded, counted, project, searchable
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import MAX_DRAFTS, Ending, Limits
from ledgerstone.core.words import index_words, postings
from ledgerstone.errors import CorruptionError
from ledgerstone.past import SnapshotFacts
from ledgerstone.reading import Chain, Proven, Reading, Version
from ledgerstone.store.protocol import Step, WordRow, Writer

T = TypeVar("T")


def word_row(position: int, content: Content) -> WordRow:
    """A record's words as the index holds them, a number for its source, and when it is due."""
    words = index_words(searchable(content))
    source = None
    if content.source is not None:
        source = int.from_bytes(sha256(content.source.encode()).digest()[:8], "big", signed=True)
    return WordRow(position, len(words), postings(words), source, content.due)


def parts(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Some items, as many at a time as one commit may hold, or one entry may name."""
    for start in range(0, len(items), MAX_DRAFTS):
        yield tuple(items[start : start + MAX_DRAFTS])


class Batch:
    """The next commit of a chain, or the first when ``where`` is None; ``facts`` is the past with it in.

    ``store`` is where the store chain stands; None for a commit of the store chain itself.
    """

    __slots__ = (
        "_admitted",
        "_changes",
        "_ended",
        "_limits",
        "_reading",
        "_stamp",
        "_stamp_digest",
        "_store",
        "_words",
        "counts",
        "facts",
        "first",
        "namespace",
        "sequence",
        "where",
    )

    def __init__(
        self,
        reading: Reading,
        where: Chain | None,
        *,
        namespace: str,
        stamp: Stamp,
        limits: Limits,
        store: StorePoint | None,
    ) -> None:
        self.where = where
        self.first = 0 if where is None else where.head.counts.entries
        self.sequence = 0 if where is None else where.head.sequence + 1
        self.counts: Counts = NO_COUNTS if where is None else where.head.counts
        self.facts = Folded(None if where is None else SnapshotFacts(reading, where))
        self._reading = reading
        self._store = store
        self.namespace = namespace
        self._stamp = stamp
        self._stamp_digest = b""
        self._limits = limits
        self._admitted: list[Admitted] = []
        self._changes: list[Change] = []
        self._ended: dict[int, tuple[int, int]] = {}
        self._words: list[WordRow] = []

    def add(self, admitted: Admitted, *, text_of: Content | None = None) -> Change:
        """Take an admitted entry in; ``text_of`` is the content that a closed task goes on with."""
        position = self.first + len(self._admitted)
        rules.check_place(admitted.entry, admitted.content, position=position, store=self._store is None)
        rules.check_arranged(admitted.entry, self.facts)
        slot = Slot(position, self.sequence, admitted.digest)
        change = project(admitted.entry, admitted.content, slot, self.facts)
        before = self.facts.apply(change, slot)
        self.counts = counted(self.counts, change, before)
        self._admitted.append(admitted)
        self._changes.append(change)
        for ended, ending in change.ended:
            self._ended[ended] = self.sequence, ending.value
        content = text_of if text_of is not None else admitted.content
        if change.indexed and content is not None:
            self._words.append(word_row(position, content))
        return change

    def append(
        self,
        writer: Writer,
        *,
        idempotency: Idempotency | None = None,
        receipt: bytes | None = None,
    ) -> Chain:
        """Seal the commit over the new state and append it; the chain with its new head.

        ``receipt`` is the hash of the receipt of the context that it was made under.
        """
        rules.check_commit([(one.entry, one.content) for one in self._admitted], self._limits)
        stamp_digest = entries.stamp_digest(self._stamp)
        leaves = {position: self._old_leaf(position) for position in self._ended if position < self.first}
        for position, admitted, by, ending in self._new():
            leaves[position] = state.leaf(
                admitted.digest, stamp_digest, sequence=self.sequence, ended_by=by, reason=ending
            )
        where = self.where
        count = self.first + len(self._admitted)
        if where is None:
            root, nodes = state.update(lambda _level, _index: None, 0, leaves, count)
        else:
            number = where.number
            root, nodes = state.update(
                lambda level, index: writer.node(number, level, index),
                self.first,
                leaves,
                count,
                root=where.head.header.state,
                known=where.nodes,
            )
        commit = chain.seal(
            self._reading.keyring,
            None if where is None else where.head,
            namespace=self.namespace,
            stamp=self._stamp,
            limits=self._limits,
            counts=self.counts,
            state=root,
            digests=tuple(admitted.digest for admitted in self._admitted),
            store=self._store,
            idempotency=idempotency,
            receipt=receipt,
        )
        number = writer.append(
            Step(
                number=None if where is None else where.number,
                commit=commit,
                first=self.first,
                admitted=self._admitted,
                changes=self._changes,
                ended=self._ended,
                nodes=nodes,
                words=self._words,
            )
        )
        stamps = {self.sequence: (self._stamp, stamp_digest)}
        after = Chain(number, self.namespace, commit.head, dict(nodes), stamps)
        self._reading.stamped(number, self.sequence, self._stamp, stamp_digest)
        self._stamp_digest = stamp_digest
        self._reading.advance(where, after)
        return after

    def versions(self) -> list[Version | None]:
        """What was just appended, as a read would prove it; None for what refers to an earlier text."""
        found: list[Version | None] = []
        for position, admitted, by, ending in self._new():
            proven = Proven(
                position,
                self.sequence,
                admitted.digest,
                admitted.entry,
                self._stamp,
                self._stamp_digest,
                by,
                Ending(ending),
            )
            whole = isinstance(admitted.entry, RecordEntry)
            found.append(Version(proven, proven, admitted.content) if whole else None)
        return found

    def _new(self) -> Iterator[tuple[int, Admitted, int, int]]:
        """Each new entry: where it stands, what was admitted, and which commit ended it already and why, if one did."""
        for position, (admitted, change) in enumerate(zip(self._admitted, self._changes, strict=True), self.first):
            born = (self.sequence if change.born else 0, change.born)
            yield position, admitted, *self._ended.get(position, born)

    def _old_leaf(self, position: int) -> bytes:
        """The leaf that an earlier entry gets when this commit ends it."""
        if self.where is None:
            raise CorruptionError("a first commit ends nothing")
        by, ending = self._ended[position]
        known = self.facts.version(position)
        if known is not None:
            digest, sequence = known.digest, known.sequence
        else:
            digest, sequence = self._reading.placed(self.where, position)
        _, stamp_digest = self._reading.stamp(self.where.number, sequence)
        return state.leaf(digest, stamp_digest, sequence=sequence, ended_by=by, reason=Ending(ending).value)
