"""What is proven of one snapshot: heads by signature, entries by leaf and path, contents by commitment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from ledgerstone.anchors import Anchors, abandons
from ledgerstone.core import canonical, chain, entries, merkle, signing, state
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import (
    CloseEntry,
    Content,
    Entry,
    ErasureEntry,
    GenesisEntry,
    KeyEntry,
    NameEntry,
    PromotionEntry,
    RecordEntry,
    RetractEntry,
    Sealed,
    Stamp,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.projection import GRANTED, NAMED, PARTED, SCOPED, SET, STRUCK
from ledgerstone.core.values import (
    RECALLED,
    STANDING_OF_ENDING,
    Ending,
    Record,
    Scope,
    Standing,
    Status,
)
from ledgerstone.errors import CorruptionError
from ledgerstone.following import Enrolment, in_force
from ledgerstone.store.protocol import NOW, ChainRow, Listed, Reader, Stored, View

T = TypeVar("T")
MAX_PROVEN_CHAINS: Final = 512
MAX_PROVEN_NODES: Final = 4096
MAX_LISTINGS: Final = 512
# Of how many chains what their derived rows say is kept from one read to the next.
MAX_KEPT_CHAINS: Final = 8


class Chain(NamedTuple):
    """A chain whose head's signature was checked, and the nodes and stamps already proven under that head's state."""

    number: int
    namespace: str
    head: Head
    nodes: dict[tuple[int, int], bytes]
    stamps: dict[int, tuple[Stamp, bytes]]


class Proven(NamedTuple):
    """An entry that was proven to stand in its chain, with the stamp of its commit and how it ended."""

    position: int
    sequence: int
    digest: bytes
    entry: Entry
    stamp: Stamp
    stamp_digest: bytes
    ended_by: int
    ending: Ending


class Listing(NamedTuple):
    """An entry of the store chain found through the catalog and proven, with the name in its content."""

    proven: Proven
    name: str | None


class Version(NamedTuple):
    """A version: its own entry, the record entry that holds its text (the same for most), and that content."""

    proven: Proven
    body: Proven
    content: Content | None

    @property
    def record(self) -> RecordEntry:
        """The entry that holds its text."""
        if not isinstance(self.body.entry, RecordEntry):  # pragma: no cover - Reading.version ends on a record
            raise CorruptionError(f"entry {self.body.position} has no text")
        return self.body.entry

    @property
    def last(self) -> RecordEntry | CloseEntry | RetractEntry:
        """Its own entry, which says its number, its trust and its origin."""
        entry = self.proven.entry
        return entry if isinstance(entry, CloseEntry | RetractEntry) else self.record

    @property
    def status(self) -> Status:
        """The status that its own entry gives it."""
        match self.last:
            case CloseEntry():
                return Status.CLOSED
            case RetractEntry():
                return Status.RETRACTED
            case RecordEntry(status=status):
                return status


class Anchored(NamedTuple):
    """What is remembered outside the store, and how often it had been written before the snapshot began."""

    anchors: Anchors
    since: int


class _Ahead(NamedTuple):
    """What was read ahead, by chain and place: nothing of it is believed before it is proven like the rest."""

    versions: dict[tuple[int, int], Stored]
    headers: dict[tuple[int, int], bytes]
    nodes: dict[tuple[int, int, int], bytes]


class Heads:
    """The heads that were proven, by namespace, so that each is checked once and not at every read."""

    __slots__ = ("_chains", "_kept", "_listings", "_store", "_targets", "catalogued", "counted", "fenced")

    def __init__(self) -> None:
        self._chains: dict[str, Chain] = {}
        # What the store chain's catalog was found to say, under the store head that it was proven by.
        self._store = b""
        self._listings: dict[tuple[str, str], tuple[Listing, ...]] = {}
        self._targets: dict[Hashable, Any] = {}
        # By namespace, what its derived rows said, and under which head and edits of the file.
        self._kept: dict[str, tuple[tuple[bytes, int], dict[Hashable, Any]]] = {}
        # Heads whose derived rows were counted and agreed.
        self.counted: dict[str, Head] = {}
        # True when nobody else touched the files since they were last proven: then there is nothing to count.
        self.fenced = False
        # The store head whose catalog was counted and agreed.
        self.catalogued: bytes | None = None

    def get(self, namespace: str, commit: bytes) -> Chain | None:
        """The proven chain, if its head is still this commit."""
        found = self._chains.get(namespace)
        return found if found is not None and found.head.id == commit else None

    def found(self, head: bytes) -> tuple[dict[tuple[str, str], tuple[Listing, ...]], dict[Hashable, Any]]:
        """What was proven of the store chain's catalog under this head, and where callers' hints led.

        Both are empty under a new one, and are filled by those who ask.
        """
        if self._store != head:
            self._store, self._listings, self._targets = head, {}, {}
        return self._listings, self._targets

    def kept(self, where: Chain, edits: int) -> dict[Hashable, Any]:
        """What derived rows of a chain said under its head, as long as nobody else has written to the file."""
        state, said = self._kept.pop(where.namespace, (None, {}))
        if state != (where.head.id, edits):
            said = {}
        while len(self._kept) >= MAX_KEPT_CHAINS:
            self._kept.pop(next(iter(self._kept)))
        self._kept[where.namespace] = (where.head.id, edits), said
        return said

    def put(self, proven: Chain) -> None:
        """Keep a proven chain; the oldest make room."""
        self._chains.pop(proven.namespace, None)
        # It may hold words of what was erased since.
        self._kept.pop(proven.namespace, None)
        while len(self._chains) >= MAX_PROVEN_CHAINS:
            self._chains.pop(next(iter(self._chains)))
        self._chains[proven.namespace] = proven


class Reading:
    """One snapshot of a store, read with proof. Whatever it returns was checked against a signed head.

    ``keyring`` is the key in force alone, once the store's own head was proven by it.
    """

    __slots__ = (
        "_ahead",
        "_anchored",
        "_chains",
        "_heads",
        "_listings",
        "_stamps",
        "_store",
        "committed",
        "keyring",
        "now",
        "reader",
        "resolved",
    )

    def __init__(
        self, reader: Reader, keyring: signing.Keyring, heads: Heads, now: int, anchored: Anchored | None = None
    ) -> None:
        self.reader = reader
        self._anchored = anchored
        self.committed: dict[str, tuple[int, bytes]] = {}
        self.now = now
        self.keyring = keyring
        self._heads = heads
        self._stamps: dict[tuple[int, int], tuple[Stamp, bytes]] = {}
        self._ahead = _Ahead({}, {}, {})
        # Those of this snapshot: looked up once, and again when a commit made here moves one.
        self._chains: dict[str, Chain] = {}
        self._store: Chain | None = None
        self._listings: dict[tuple[str, str], tuple[Listing, ...]] = {}
        # Where callers' hints led, as long as the store chain stands where it stands.
        self.resolved: dict[Hashable, Any] = {}
        first = reader.first()
        if first is not None:
            self._stand(self._proven(first))

    def _stand(self, store: Chain) -> None:
        """Take the store's own chain as it stands, with what was found in it there."""
        self._store = store
        self._listings, self.resolved = self._heads.found(store.head.id)

    @property
    def signs(self) -> bool:
        """Whether there is a key to sign with."""
        return self.keyring.signer is not None

    @property
    def store(self) -> Chain:
        """The store's own chain."""
        if self._store is None:
            raise CorruptionError("the store has no chain of its own", hint="run: ledgerstone init")
        return self._store

    @property
    def owner(self) -> str:
        """The principal that the store was made for."""
        data = self.reader.entry(self.store.number, 0)
        entry = None if data is None else entries.decode_entry(data)
        if not isinstance(entry, GenesisEntry) or entry.owner is None:
            raise CorruptionError("the store's first entry is not its beginning")
        return entry.owner

    def chain(self, namespace: str) -> Chain | None:
        """A chain with its head proven by signature; None when there is none of that name."""
        found = self._chains.get(namespace)
        if found is None:
            row = self.reader.chain(namespace)
            found = None if row is None else self._proven(row)
            if found is not None and len(self._chains) < MAX_PROVEN_CHAINS:
                self._chains[namespace] = found
        return found

    def _proven(self, row: ChainRow) -> Chain:
        """The chain of a row, whose head is signed, and no other than the one that was seen here."""
        namespace = row.namespace
        known = self._heads.get(namespace, row.commit)
        if known is not None and known.number == row.number and known.head.frontier == row.frontier:
            return known
        data = self.reader.header(row.number, row.sequence)
        if data is None:
            raise CorruptionError(f"{namespace}: the head's commit {row.sequence} is missing")
        commit, header = chain.read(data, expected=row.commit)
        if (header.namespace, header.sequence) != (namespace, row.sequence):
            raise CorruptionError(f"{namespace}: its head is not its own newest commit")
        if self._store is None:
            self.keyring = in_force(self.reader, row, self.keyring)
        if self.keyring.signer_of(signing.COMMIT, commit, row.signature) is None:
            raise CorruptionError(
                f"{namespace}: no trusted key signed the head {commit.hex()[:16]} (signer {header.signer})",
                hint="if the key file was moved, name it by LEDGERSTONE_KEY_FILE; else run: ledgerstone verify",
            )
        if merkle.root(row.frontier) != header.history:
            raise CorruptionError(f"{namespace}: the history's frontier is not that of the head")
        proven = Chain(row.number, namespace, Head(commit, header, row.frontier), {}, {})
        if self._anchored is None or self._held(proven, self._anchored):
            self._heads.put(proven)
        return proven

    def _held(self, where: Chain, anchored: Anchored) -> bool:
        """The chain contains the head that was remembered outside the store, or it was cut, rolled back or forked.

        False when that head was remembered after this snapshot may have begun: then the next one tells.
        """
        anchor = anchored.anchors.newest(where.namespace)
        if anchor is None:
            return True
        head = where.head
        if anchor.sequence > head.sequence:
            if anchored.anchors.later(anchor, anchored.since):
                return False
            raise abandons(where.namespace, anchor, head.sequence)
        if all(commit != anchor.commit for _, commit, _ in self.linked(where, anchor.sequence)):
            raise abandons(where.namespace, anchor, head.sequence)
        return True

    def linked(self, where: Chain, oldest: int = 0) -> Iterator[tuple[int, bytes, bytes]]:
        """The commits of a chain from its head down to one of them: sequence, id and bytes, proven by their links."""
        sequence, expected = where.head.sequence + 1, where.head.id
        for _, _, data in self.reader.headers(where.number, newest=where.head.sequence, oldest=oldest):
            sequence -= 1
            commit, parent = chain.link(data)
            if commit != expected:
                raise CorruptionError(f"{where.namespace}: commit {sequence} is not the one its successor names")
            yield sequence, commit, data
            expected = parent
        if sequence != oldest:
            raise CorruptionError(f"{where.namespace}: commit {sequence - 1} is missing")

    def ids(self, where: Chain, first: int, end: int) -> Iterator[bytes]:
        """The ids of the commits from one sequence up to another, from their bytes."""
        if first < end:
            for _, _, data in self.reader.headers(where.number, newest=first, oldest=end - 1):
                yield merkle.leaf_hash(data)

    def counted(self, where: Chain) -> None:
        """Compare what the derived rows add up to with the totals that the head signs.

        The first time all rows of a namespace are counted; when others have written since, what they added.
        Raises CorruptionError when a row is missing or too many; only then is "not found" an answer.
        """
        if self._heads.fenced:
            return
        head = where.head
        before = self._heads.counted.get(where.namespace)
        if before is not None and before.id == head.id:
            return
        if before is None or before.sequence > head.sequence or not self._added_up(where, before):
            records, current, open_tasks, indexed = self.reader.tally(where.number, 0)
            counts = head.counts
            found = {"records": records, "indexed": indexed, "current": current, "open": open_tasks}
            signed = (counts.records, counts.indexed, counts.current, counts.open)
            for (name, count), expected in zip(found.items(), signed, strict=True):
                if count != expected:
                    raise CorruptionError(
                        f"{where.namespace}: {count} {name} rows where the head signs for {expected}",
                        hint="run: ledgerstone verify; if only derived rows are lost: ledgerstone rebuild",
                    )
        self._heads.counted[where.namespace] = head

    def _added_up(self, where: Chain, before: Head) -> bool:
        """Whether what was counted before and the rows added since agree with the head; not when others erased."""
        added, counts = self.reader.tally(where.number, before.counts.entries), where.head.counts
        totals = before.counts.records + added.records, before.counts.indexed + added.indexed
        return totals == (counts.records, counts.indexed)

    def advance(self, before: Chain | None, after: Chain) -> None:
        """Take up the head of a commit made here: what was counted stays counted."""
        self._heads.put(after)
        self._chains[after.namespace] = after
        self.committed[after.namespace] = after.head.sequence, after.head.id
        if before is None or self._heads.counted.get(before.namespace) == before.head:
            self._heads.counted[after.namespace] = after.head
        if self._store is None or after.namespace == self._store.namespace:
            if self._store is None or self._heads.catalogued == self._store.head.id:
                self._heads.catalogued = after.head.id
            self._stand(after)

    def header(self, where: Chain, sequence: int) -> bytes:
        """The bytes of a commit, as they stand there; what they are must be proven by whoever relies on them."""
        data = self.reader.header(where.number, sequence)
        if data is None:
            raise CorruptionError(f"{where.namespace}: commit {sequence} is missing")
        return data

    def stamped(self, number: int, sequence: int, stamp: Stamp, digest: bytes) -> None:
        """Take up the stamp of a commit made here."""
        self._stamps[number, sequence] = stamp, digest

    def stamp(self, number: int, sequence: int) -> tuple[Stamp, bytes]:
        """The stamp of a commit and its digest, as its header says; a leaf must bind it to be believed."""
        found = self._stamps.get((number, sequence))
        if found is None:
            header = self._ahead.headers.get((number, sequence)) or self.reader.header(number, sequence)
            if header is None:
                raise CorruptionError(f"commit {sequence} is missing from its chain")
            found = self._stamps[number, sequence] = entries.read_stamp(header)
        return found

    def kept(self, where: Chain, name: Hashable, read: Callable[[], T]) -> T:
        """What derived rows of a chain say, read once as long as its head stands and nobody else writes to the file.

        Only for what is no answer by itself: like every derived row it may lead to what is then proven.
        """
        known = self._heads.kept(where, self.reader.edits())
        if name not in known:
            known[name] = read()
        found: T = known[name]
        return found

    def prefetch(self, where: Chain, positions: Sequence[int]) -> None:
        """Read in one go what the versions at some positions are made of; each is proven when it is asked for.

        Only of a snapshot: whoever writes between reads what is old.
        """
        number = where.number
        rows = {(number, row.position): row for row in self.reader.stored(number, positions)}
        self._ahead.versions.update(rows)
        unread = {row.standing.sequence for row in rows.values()} - where.stamps.keys()
        headers = self.reader.headers_of(number, sorted(unread))
        self._ahead.headers.update({(number, sequence): header for sequence, header in headers.items()})
        count = where.head.counts.entries
        above = {key for position in positions for key in state.path(count, position)} - where.nodes.keys()
        nodes = self.reader.nodes_of(number, sorted(above))
        self._ahead.nodes.update({(number, *key): children for key, children in nodes.items()})

    def _node(self, number: int, level: int, index: int) -> bytes | None:
        return self._ahead.nodes.get((number, level, index)) or self.reader.node(number, level, index)

    def prove(self, where: Chain, position: int, sequence: int, ended_by: int, ending: int) -> Proven:
        """The entry at a position, if leaf and path say exactly this of it under the signed head."""
        ahead = self._ahead.versions.get((where.number, position))
        data = self.reader.entry(where.number, position) if ahead is None else ahead.entry
        if data is None:
            raise CorruptionError(f"{where.namespace}: entry {position} is missing")
        digest = entries.digest_of(data)
        stamped = where.stamps.get(sequence) or self.stamp(where.number, sequence)
        stamp, stamp_digest = stamped
        leaf = state.leaf(digest, stamp_digest, sequence=sequence, ended_by=ended_by, reason=ending)
        header = where.head.header
        try:
            state.verify_leaf(
                partial(self._node, where.number),
                header.counts.entries,
                position,
                leaf,
                root=header.state,
                known=where.nodes,
            )
        except CorruptionError as error:
            raise CorruptionError(f"{where.namespace}: {error.message}") from None
        where.stamps[sequence] = stamped
        while len(where.nodes) > MAX_PROVEN_NODES:
            where.nodes.pop(next(iter(where.nodes)))
        while len(where.stamps) > MAX_PROVEN_NODES:
            where.stamps.pop(next(iter(where.stamps)))
        entry = entries.decode_entry(data)
        return Proven(position, sequence, digest, entry, stamp, stamp_digest, ended_by, Ending(ending))

    def listed(self, row: Listed) -> Listing:
        """The entry of the store chain that a row of its catalog stands for."""
        proven = self.prove(self.store, row.position, row.sequence, row.ended_by, row.ending)
        content = self.content(self.store, proven)
        return Listing(proven, None if content is None else content.name)

    def listings(self, noun: str, value: str) -> tuple[Listing, ...]:
        """The entries of the store chain under a noun and a value, those that nothing ended; each proven once."""
        found = self._listings.get((noun, value))
        if found is None:
            rows = self.reader.lookup(self.store.number, noun, value)
            listings = (self.listed(row) for row in rows)
            found = tuple(one for one in listings if one.proven.ending is Ending.NONE)
            if len(self._listings) >= MAX_LISTINGS:
                self._listings.clear()
                self.resolved.clear()
            self._listings[noun, value] = found
        return found

    def enrolled(self) -> Iterator[Enrolment]:
        """The keys that the store proves it enrolled, oldest first."""
        for row in self.reader.catalog(self.store.number, "key"):
            proven = self.listed(row).proven
            if isinstance(proven.entry, KeyEntry):
                yield Enrolment(proven.entry, proven.sequence)

    def placed(self, where: Chain, position: int) -> tuple[bytes, int]:
        """The digest and the sequence of an entry that is in the catalog and not yet ended, proven."""
        for row in self.reader.catalog(where.number):
            if row.position == position:
                proven = self.prove(where, position, row.sequence, row.ended_by, row.ending)
                return proven.digest, proven.sequence
        raise CorruptionError(f"{where.namespace}: entry {position} is missing from the catalog")

    def catalogued(self) -> None:
        """Compare the catalog of the store chain with its head: every entry is listed, or nothing is absent."""
        head = self.store.head
        if self._heads.fenced or self._heads.catalogued == head.id:
            return
        sizes = self.reader.catalog_sizes(self.store.number)
        second = {SCOPED: "namespace", NAMED: "name", GRANTED: "grant", SET: "setting"}
        listed = sum(count for noun, count in sizes.items() if noun not in {*second, STRUCK, PARTED})
        if listed != head.counts.entries or any(
            sizes.get(way, 0) != sizes.get(noun, 0) for way, noun in second.items()
        ):
            raise CorruptionError(
                f"the catalog does not list the {head.counts.entries} entries that the store's head signs for",
                hint="run: ledgerstone verify, then ledgerstone rebuild",
            )
        self._heads.catalogued = head.id

    def content(self, where: Chain, proven: Proven) -> Content | None:
        """The content of an entry, checked against its commitment; None when there is none or it was erased."""
        sealed: Sealed | None = getattr(proven.entry, "content", None)
        if sealed is None:
            return None
        ahead = self._ahead.versions.get((where.number, proven.position))
        row = self.reader.content(where.number, proven.position) if ahead is None else ahead.content
        erased = proven.ending is Ending.ERASED or self.struck(where, proven)
        spot = entries.spot(proven.position, proven.entry)
        if row is None:
            if erased:
                return None
            raise CorruptionError(f"{where.namespace}: the content of {spot} is missing")
        if erased:
            raise CorruptionError(f"{where.namespace}: {spot} was erased, yet has content")
        salt, data = row
        if len(salt) != canonical.SALT_BYTES or canonical.commitment(salt, data) != sealed.commitment:
            raise CorruptionError(f"{where.namespace}: the content of {spot} was altered")
        return entries.decode_content(data)

    def struck(self, where: Chain, proven: Proven) -> bool:
        """Whether an erasure took an entry's own content and let the entry stand; that erasure is proven."""
        if isinstance(proven.entry, RecordEntry):
            return False
        for row in self.reader.lookup(where.number, STRUCK, proven.digest.hex()):
            erasure = self.prove(where, row.position, row.sequence, row.ended_by, row.ending).entry
            if not isinstance(erasure, ErasureEntry) or proven.digest not in erasure.strikes:
                raise CorruptionError(f"{where.namespace}: entry {row.position} erases not what its row says")
            return True
        return False

    def sequence_of(self, where: Chain, position: int) -> int:
        """In which commit an entry is, as the headers say; a leaf must bind it to be believed."""

        def size(sequence: int) -> int:
            return entries.decode_header(self.header(where, sequence)).counts.entries

        return bisect_right(range(where.head.sequence), position, key=size)

    def version(self, where: Chain, position: int) -> Version | None:
        """The version at a position, proven; None when there is none."""
        carried = self.carried(where, position)
        return Version(carried[0], carried[-1], self.content(where, carried[-1])) if carried else None

    def carried(self, where: Chain, position: int) -> list[Proven]:
        """The entry of the version at a position, then what it carries on, down to the record; none of no version."""
        first = self.version_entry(where, position)
        found = [] if first is None else [first]
        while found and isinstance(entry := found[-1].entry, CloseEntry | RetractEntry):
            target = entry.closes if isinstance(entry, CloseEntry) else entry.retracts
            earlier = self.reader.version_at(where.number, entry.memory, entry.version - 1)
            below = self.version_entry(where, earlier)
            if below is None or below.digest != target:
                raise CorruptionError(f"{where.namespace}: what entry {found[-1].position} refers to is not there")
            found.append(below)
        return found

    def version_entry(self, where: Chain, position: int | None) -> Proven | None:
        """The entry of the version at a position, proven; None when there is none."""
        if position is None:
            return None
        ahead = self._ahead.versions.get((where.number, position))
        standing = self.reader.standing(where.number, position) if ahead is None else ahead.standing
        return None if standing is None else self.prove(where, position, *standing)

    def known(self, where: Chain, position: int) -> Known | None:
        """A version as rules see it, from its proven entry."""
        found = self.version(where, position)
        if found is None:
            return None
        proven, record, last, content = found.proven, found.record, found.last, found.content
        # What stood aside never held its key, and its retraction has none.
        withdrawn = isinstance(last, RetractEntry) and (record.contests or record.held_by) is not None
        return Known(
            position=position,
            sequence=proven.sequence,
            digest=proven.digest,
            memory=record.memory,
            version=last.version,
            kind=record.kind,
            status=found.status,
            trust=last.trust,
            text_bytes=record.content.text_bytes,
            body=found.body.position,
            depth=record.depth,
            key=None if content is None or withdrawn else content.key,
            expires=record.expires,
            sealed=last.content is not None and not self.struck(where, proven),
            content_bytes=record.content.bytes,
            ended_by=proven.ended_by,
            ending=proven.ending,
        )

    def named(self, opaque: str | None) -> str | None:
        """The name that an opaque id stands for; None when it was erased or there is no id."""
        if opaque is None:
            return None
        for proven, name in self.listings(NAMED, opaque):
            if isinstance(proven.entry, NameEntry) and proven.entry.id == opaque:
                return name
        return None

    def record(self, where: Chain, scope: Scope, position: int, *, view: View = NOW, now: int | None = None) -> Record:
        """The version at a position as it is returned to a caller, or as it stood after the commit of a view.

        ``now`` is the time to judge expiry by, in microseconds UTC, if not the present.
        """
        found = self.version(where, position)
        if found is None:
            raise CorruptionError(f"{where.namespace}: entry {position} is no version of a memory")
        proven, moment = found.proven, self.now if now is None else now
        if view.sequence is not None and proven.ended_by > view.sequence and proven.ending is not Ending.ERASED:
            found = found._replace(proven=proven._replace(ended_by=0, ending=Ending.NONE))
        standing = STANDING_OF_ENDING[found.proven.ending]
        if standing is Standing.CURRENT and self._covered(where, position, view, moment):
            standing = Standing.COVERED
        return self.compose(where, scope, found, standing, moment)

    def _covered(self, where: Chain, position: int, view: View, now: int) -> bool:
        """Whether a summary that stands and has not expired covers a record."""
        ahead = self._ahead.versions.get((where.number, position))
        if ahead is not None and not ahead.covered:
            return False
        view = View(view.sequence)
        above = [summary for _, summary in self.reader.covered(where.number, [position], view)]
        return any(
            row.expires is None or row.expires > now for row in self.reader.candidates(where.number, above, view)
        )

    def compose(
        self, where: Chain, scope: Scope, version: Version, standing: Standing, now: int | None = None
    ) -> Record:
        """A proven version in the form it is returned in; what its time has overtaken is expired."""
        proven, record, last, stamp = version.proven, version.record, version.last, version.proven.stamp
        moment = self.now if now is None else now
        if standing in RECALLED and record.expires is not None and record.expires <= moment:
            standing = Standing.EXPIRED
        said = version.content or Content()
        ended = self.content(where, proven) if last is not record else None
        return Record(
            memory=record.memory,
            version=last.version,
            address=canonical.address(record.memory, last.version),
            digest=proven.digest,
            namespace=where.namespace,
            scope=scope,
            kind=record.kind,
            status=version.status,
            standing=standing,
            retention=record.retention,
            origin=last.origin,
            trust=last.trust,
            principal=self.named(stamp.principal) or stamp.principal,
            session=self.named(stamp.session) or stamp.session,
            host=self.named(stamp.host) or stamp.host,
            created_at=stamp.at,
            sequence=proven.sequence,
            text=said.text,
            text_bytes=record.content.text_bytes,
            key=said.key,
            source=said.source,
            title=said.title,
            place=said.place,
            tags=said.tags,
            due=said.due,
            valid_from=said.valid_from,
            valid_until=said.valid_until,
            triggers=said.triggers,
            expires=record.expires,
            sources=self._addresses(where, record.sources),
            covers=self._addresses(where, record.covers),
            promoted=self._promoted(where, version.body.position, record),
            namespace_name=self.name(where) if scope is Scope.SHARED else None,
            overrides=record.overrides,
            reason=None if ended is None else ended.reason,
            ended_by=proven.ended_by or None,
        )

    def name(self, where: Chain) -> str | None:
        """The name under which a namespace was made; None once it was erased."""
        return next((listing.name for listing in self.listings("namespace", where.namespace)), None)

    def _promoted(self, where: Chain, position: int, record: RecordEntry) -> str | None:
        """The digest that a promoted record had where it came from."""
        if record.promotion is None:
            return None
        data = self.reader.entry(where.number, position - 1)
        promotion = None if data is None or entries.digest_of(data) != record.promotion else data
        entry = None if promotion is None else entries.decode_entry(promotion)
        if not isinstance(entry, PromotionEntry):
            raise CorruptionError(f"{where.namespace}: the promotion of entry {position} is missing")
        return entry.source.hex()

    def _addresses(self, where: Chain, digests: tuple[bytes, ...]) -> tuple[str, ...]:
        return tuple([self.address(where, digest) for digest in digests])

    def address(self, where: Chain, digest: bytes) -> str:
        """The address of a record by its digest: its own bytes are hashed, so a wrong row cannot answer."""
        for number, position in self.reader.digests(digest):
            data = self.reader.entry(number, position)
            if number == where.number and data is not None and entries.digest_of(data) == digest:
                entry = entries.decode_entry(data)
                if isinstance(entry, RecordEntry | CloseEntry | RetractEntry):
                    return canonical.address(entry.memory, entry.version)
        raise CorruptionError(f"{where.namespace}: no record has the digest {digest.hex()[:16]} of a source")
