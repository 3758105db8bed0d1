"""Verify what a store gained since it was verified before, by the same rules, and a sample of all that is older.

What is old is not replayed: the past that rules ask for is proven under the state that the milestone's header signs
for. Whatever cannot be settled so, a fault included, is left to a replay of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ledgerstone.core import chain, entries, merkle, state
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import CloseEntry, GrantEntry, KeyEntry, NamespaceEntry, RecordEntry, RetractEntry
from ledgerstone.core.facts import Known, Own
from ledgerstone.core.projection import ASIDE, GRANTED, PARTED, REVOCABLE, TOMBSTONE
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import DEFAULT_FLOOR, Ending, Kind, Report, Trust
from ledgerstone.core.verify import Authorities, Base, Enrolled, Granted, Made, Replay, Replayed
from ledgerstone.errors import CorruptionError
from ledgerstone.past import SnapshotFacts
from ledgerstone.reading import Chain, Heads, Listing, Reading
from ledgerstone.store.protocol import ChainRow, Reader
from ledgerstone.verifying import UNWATCHED, Watch, commits, promotions
from ledgerstone.writing import word_row

SAMPLE: Final = 64
"""How many of the older commits are drawn and looked at each time, and how many of the older receipts."""

Milestones = Mapping[str, tuple[int, bytes]]
"""By namespace, sequence and id of the head up to which everything was replayed and found good on this machine."""


class UnsettledError(Exception):
    """Why only a replay of everything can tell."""


class _Part(NamedTuple):
    """A chain with its head row, and how many of its commits are older than the milestone."""

    where: Chain
    row: ChainRow
    older: int


def verify(
    reader: Reader,
    keyring: Keyring,
    milestones: Milestones,
    entropy: Callable[[int], bytes],
    watch: Watch = UNWATCHED,
) -> Report:
    """Replay the commits since the milestones, compare what they touch, and look at a sample of the older ones.

    A report that this returns has no finding. Raises UnsettledError for everything else.
    """
    try:
        return _verify(reader, keyring, milestones, entropy, watch)
    except reader.damaged as error:
        raise UnsettledError(str(error)) from error
    except (TypeError, ValueError, AttributeError) as error:
        # A fault of this program is met again by the replay of everything, and raised there.
        raise UnsettledError(str(error)) from error


def _verify(
    reader: Reader, keyring: Keyring, milestones: Milestones, entropy: Callable[[int], bytes], watch: Watch
) -> Report:
    rows = reader.chains()
    names = [row.namespace for row in rows]
    if not names or names[0] not in milestones or not milestones.keys() <= set(names):
        raise UnsettledError("the chains are not those that were verified before")
    reading = Reading(reader, keyring, Heads(), 0)
    reading.catalogued()
    authorities = Authorities(_StoreChain(reading, milestones[names[0]]))
    parts = []
    for name, row in zip(names, rows, strict=True):
        where = reading.chain(name)
        if where is None:  # pragma: no cover - chains() has just listed it
            raise UnsettledError(f"{name}: the chain is missing")
        older = milestones[name][0] + 1 if name in milestones else 0
        parts.append(_Part(where, row, older))
    total = sum(part.row.sequence + 1 - part.older for part in parts)
    done = 0
    for part in parts:
        if _unchanged(reading, part.row.namespace, milestones):
            continue
        for _ in _resume(reading, part, authorities, keyring, milestones.get(part.row.namespace)):
            done += 1
            watch.progress(done, total)
    for namespace in authorities.namespaces:
        if namespace not in names:
            raise UnsettledError(f"{namespace}: the store chain made it, but its chain is missing")
    _gone(reading, names, milestones, authorities)
    for finding in promotions(reader, authorities):
        raise UnsettledError(f"{finding.namespace}: {finding.message}")
    older = sum(part.older for part in parts)
    return Report(
        findings=(),
        namespaces=len(parts[1:]),
        commits=sum(part.row.sequence + 1 for part in parts),
        entries=sum(part.where.head.counts.entries for part in parts),
        heads={part.row.namespace: (part.row.sequence, part.row.commit) for part in parts},
        since={name: sequence for name, (sequence, _) in milestones.items()},
        older=older,
        sampled=_sample(reading, parts, entropy, lambda *signed: authorities.signed(keyring, *signed)),
    )


def _gone(reading: Reading, names: list[str], milestones: Milestones, authorities: Authorities) -> None:
    """What left the store: no chain is new that it goes on without; what was exported and erased is what is here."""
    if any(_unchanged(reading, name, milestones) for name in authorities.erased):
        raise UnsettledError("an erasure is noted in a chain that nothing was added to")
    if authorities.parted or any(reading.listings(PARTED, name) for name in names if name not in milestones):
        raise UnsettledError("the store goes on without some namespaces")
    for (namespace, sequence), head in authorities.exports.items():
        row = reading.reader.chain(namespace)
        data = None if row is None or row.sequence < sequence else reading.reader.header(row.number, sequence)
        if data is not None and merkle.leaf_hash(data) != head:
            raise UnsettledError(f"{namespace}: commit {sequence} is not the one that was exported")


def _unchanged(reading: Reading, namespace: str, milestones: Milestones) -> bool:
    """Whether a chain has no commits since its milestone."""
    row = reading.reader.chain(namespace)
    return row is not None and row.commit == milestones.get(namespace, (0, b""))[1]


class _StoreChain:
    """What the store chain said up to the milestone, proven under its head."""

    __slots__ = ("_granted", "_made", "_milestone", "_reading", "keys")

    def __init__(self, reading: Reading, milestone: tuple[int, bytes]) -> None:
        self._reading = reading
        self._milestone = milestone
        self._granted: dict[str, Granted | None] = {}
        self._made: dict[str, Made | None] = {}
        proven = [listing.proven for listing in self._all("key")]
        self.keys = [Enrolled(one.entry, one.sequence) for one in proven if isinstance(one.entry, KeyEntry)]
        if any(key.since > milestone[0] for key in self.keys):
            raise UnsettledError("a new key took over")

    def _all(self, noun: str) -> list[Listing]:
        """All entries of a noun, in order of time."""
        rows = sorted(self._reading.reader.catalog(self._reading.store.number, noun), key=lambda row: row.position)
        return [self._reading.listed(row) for row in rows]

    def point(self, sequence: int) -> bytes | None:
        if sequence < self._milestone[0]:
            raise UnsettledError("a new commit names an old one of the store chain")
        return self._milestone[1] if sequence == self._milestone[0] else None

    def granted(self, grant: str) -> Granted | None:
        if grant not in self._granted:
            self._granted[grant] = self._grant(grant)
        return self._granted[grant]

    def _grant(self, grant: str) -> Granted | None:
        for row in self._reading.reader.lookup(self._reading.store.number, GRANTED, grant):
            proven = self._reading.listed(row).proven
            if isinstance(proven.entry, GrantEntry) and proven.entry.grant == grant:
                return Granted(proven.entry, proven.sequence, proven.ended_by if proven.ending else None)
        return None

    def made(self, namespace: str) -> Made | None:
        if namespace not in self._made:
            self._made[namespace] = self._namespace(namespace)
        return self._made[namespace]

    def _namespace(self, namespace: str) -> Made | None:
        for proven, _ in self._reading.listings("namespace", namespace):
            if isinstance(proven.entry, NamespaceEntry) and proven.entry.namespace == namespace:
                return Made(proven.entry, proven.sequence)
        return None


class Earlier:
    """The past of a chain up to a milestone, as Facts: proven where it stands now, with later endings undone.

    That the endings undone are those that came later is proven at the start: with them undone the tree has the root
    that the milestone's header signs for. Raises UnsettledError when it has not.
    """

    __slots__ = ("_count", "_nodes", "_prior", "_reading", "_where", "head")

    def __init__(self, reading: Reading, where: Chain, head: Head) -> None:
        self._reading = reading
        self._where = where
        self.head = head
        self._count = head.counts.entries
        self._prior = {
            position: self._ending(position)
            for position in reading.reader.ended_since(where.number, head.sequence)
            if position < self._count
        }
        leaves = {position: self.leaf(position, *prior) for position, prior in self._prior.items()}
        last = self._count - 1
        if last not in leaves:
            standing = reading.reader.standing(where.number, last)
            leaves[last] = self.leaf(last, *((0, Ending.NONE) if standing is None else standing[1:]))
        root, self._nodes = state.update(self._stored, self._count, leaves, self._count)
        if root != head.header.state:
            raise UnsettledError(f"{where.namespace}: what stood at commit {head.sequence} cannot be told any more")

    @property
    def prior(self) -> Mapping[int, tuple[int, int]]:
        """The endings, as they were at the milestone, of what commits since have ended."""
        return self._prior

    def node(self, level: int, index: int) -> bytes | None:
        """A node of the state tree as it was at the milestone."""
        return self._nodes.get((level, index)) or self._stored(level, index)

    def _stored(self, level: int, index: int) -> bytes | None:
        """A stored node, without the children that came later."""
        last = self._count - 1 >> 4 * level
        children = self._reading.reader.node(self._where.number, level, index)
        if children is None or index < last // state.FAN_OUT:
            return children
        return children[: state.HASH_BYTES * (last % state.FAN_OUT + 1)]

    def _ending(self, position: int) -> tuple[int, int]:
        """How an entry stood before a later commit ended it.

        What was ended twice tells of the first time by the version that follows it; a summary that was stale before
        does not, and then the root says so.
        """
        version = self._reading.version(self._where, position)
        if version is None or version.proven.ending is not Ending.ERASED:
            return 0, Ending.NONE
        entry, sequence = version.proven.entry, version.proven.sequence
        match entry:
            case RetractEntry():
                return sequence, Ending.RETRACTED
            case RecordEntry() if entry.held_by is not None:
                return sequence, Ending.HELD
            case RecordEntry() if entry.contests is not None:
                return sequence, Ending.CONTESTED
            case RecordEntry() | CloseEntry():
                return self._followed(entry.memory, entry.version + 1)
            case _:  # pragma: no cover - no other entry is a version
                return 0, Ending.NONE

    def _followed(self, memory: str, version: int) -> tuple[int, int]:
        """What ended the version before, by one of a memory that stood at the milestone."""
        where = self._reading.reader.version_at(self._where.number, memory, version)
        found = None if where is None or where >= self._count else self._reading.version(self._where, where)
        if found is None:
            return 0, Ending.NONE
        match found.proven.entry:
            case CloseEntry():
                return found.proven.sequence, Ending.CLOSED
            case RetractEntry():
                return found.proven.sequence, Ending.RETRACTED
            case _:
                return found.proven.sequence, Ending.SUPERSEDED

    def leaf(self, position: int, by: int, ending: int) -> bytes:
        """The leaf of an old entry with this ending."""
        reader, number = self._reading.reader, self._where.number
        data = reader.entry(number, position)
        if data is None:
            raise CorruptionError(f"{self._where.namespace}: entry {position} is missing")
        if position == self._count - 1:
            sequence = self.head.sequence
        else:
            standing = reader.standing(number, position)
            sequence = self._reading.placed(self._where, position)[1] if standing is None else standing.sequence
        stamp = self._reading.stamp(number, sequence)[1]
        return state.leaf(entries.digest_of(data), stamp, sequence=sequence, ended_by=by, reason=ending)

    @property
    def boundary(self) -> int:
        return self._count

    def position(self, digest: bytes) -> int | None:
        reader, number = self._reading.reader, self._where.number
        for chain_number, position in reader.digests(digest):
            if chain_number == number and position < self._count:
                data = reader.entry(number, position)
                if data is not None and entries.digest_of(data) == digest:
                    return position
        return self._arranged(digest)

    def _arranged(self, digest: bytes) -> int | None:
        """Where an alias, grant or the like that stood has this digest."""
        for noun in REVOCABLE:
            for row in self._reading.reader.catalog(self._where.number, noun):
                if row.position < self._count and (not row.ending or row.ended_by > self.head.sequence):
                    proven = self._reading.prove(self._where, row.position, row.sequence, row.ended_by, row.ending)
                    if proven.digest == digest:
                        return row.position
        return None

    def version(self, position: int) -> Known | None:
        known = self._reading.known(self._where, position) if position < self._count else None
        prior = self._prior.get(position)
        if known is None or prior is None:
            return known
        return known._replace(ended_by=prior[0], ending=Ending(prior[1]))

    def latest(self, memory: str) -> Known | None:
        found = self._reading.reader.versions(memory)
        number = self._where.number
        versions = [(version, at) for each, at, version in found if each == number and at < self._count]
        return self.version(max(versions)[1]) if versions else None

    def version_of(self, memory: str, version: int) -> Known | None:
        position = self._reading.reader.version_at(self._where.number, memory, version)
        return None if position is None else self.version(position)

    def holder(self, key: str) -> Known | None:
        for position in reversed(self._reading.reader.keyed(self._where.number, key)):
            known = self.version(position)
            if known is not None and not (known.version == 1 and known.ending in ASIDE):
                return self.latest(known.memory)
        return None

    def resting_on(self, position: int) -> tuple[Known, ...]:
        found = map(self.version, self._reading.reader.resting_on(self._where.number, position))
        return tuple(known for known in found if known is not None and known.current and known.kind is Kind.SUMMARY)

    def rejected(self, tombstone: bytes) -> bytes | None:
        for row in self._reading.reader.lookup(self._where.number, TOMBSTONE, tombstone.hex()):
            known = self.version(row.position)
            if known is not None:
                return known.digest
        return None

    def rejection(self, digest: bytes) -> bool:
        position = self.position(digest)
        return position is not None and SnapshotFacts(self._reading, self._where).rejection(digest)

    def listed(self, noun: str, value: str) -> bool:
        rows = self._reading.reader.lookup(self._where.number, noun, value)
        return any(row.position < self._count for row in rows)

    def key(self) -> str | None:
        raise UnsettledError("a new key took over")

    def own(self, digest: bytes) -> Own | None:
        raise UnsettledError(f"{digest.hex()[:16]} lost what it said of its own")

    def revocable(self, digest: bytes) -> bool:
        return self._arranged(digest) is not None

    def promoted(self, digest: bytes) -> Trust | None:
        # It comes right before what it promotes, in one commit.
        del digest
        return None

    def open_tasks(self) -> tuple[int, int]:
        standing = self._reading.reader.tasks(self._where.number, DEFAULT_FLOOR.value, self._count)
        found = [self.version(position) for position in {*standing, *self._prior}]
        tasks = [known for known in found if known is not None and known.open_task and known.trust >= DEFAULT_FLOOR]
        if len(tasks) != self.head.counts.open:
            raise UnsettledError(f"{self._where.namespace}: the rows do not show the open tasks that were signed for")
        return len(tasks), sum(known.content_bytes for known in tasks)


def _head(reading: Reading, where: Chain, milestone: tuple[int, bytes]) -> Head:
    """The head at a milestone, with the frontier before it; from kept roots, which must make up what it binds."""
    sequence, expected = milestone
    if sequence > where.head.sequence:
        raise UnsettledError(f"{where.namespace}: the head is behind commit {sequence}, which was verified before")
    data = reading.reader.header(where.number, sequence)
    if data is None or merkle.leaf_hash(data) != expected:
        raise UnsettledError(f"{where.namespace}: commit {sequence} is not the one that was verified before")
    header = entries.decode_header(data)
    return Head(expected, header, _frontier(reading, where, sequence, header.history))


def _frontier(reading: Reading, where: Chain, size: int, root: bytes) -> merkle.Frontier:
    """The frontier of so many commits, from the kept roots of tiles and the bytes of what follows them."""
    whole = size // chain.SIGNATURE_EVERY
    kept = reading.reader.tiles(where.number)
    frontier: merkle.Frontier = ()
    for index in range(whole):
        frontier, _ = merkle.append(frontier, index, kept.get(index, b""))
    start = whole * chain.SIGNATURE_EVERY
    for at, commit in enumerate(reading.ids(where, start, size), start):
        frontier, _ = merkle.append(frontier, at, commit)
    if len(frontier) != size.bit_count() or merkle.root(frontier) != root:
        raise UnsettledError(f"{where.namespace}: the kept roots are not those of the history")
    return frontier


def _resume(
    reading: Reading, part: _Part, authorities: Authorities, keyring: Keyring, milestone: tuple[int, bytes] | None
) -> Iterator[int]:
    """Replay one chain from its milestone, and compare what its commits touch; gives each entry's sequence."""
    where = part.where
    store = where.number == reading.store.number
    earlier = None if milestone is None else Earlier(reading, where, _head(reading, where, milestone))
    base = None if earlier is None else Base(earlier.head, earlier)
    replay = Replay(where.namespace, authorities, store=store, base=base)
    if not store:
        reading.counted(where)
    last = -1
    for sequence, one in commits(reading.reader, replay, part.row, keyring):
        _compare(reading, where, sequence, one)
        if replay.findings:
            break
        if sequence != last:
            last = sequence
            yield sequence
    if not replay.findings:
        _finish(reading.reader, where, replay, earlier)
    if replay.findings:
        raise UnsettledError(f"{where.namespace}: {replay.findings[0].message}")


def _compare(reading: Reading, where: Chain, sequence: int, one: Replayed) -> None:
    """The rows that lead to a new entry, against what replay derives."""
    reader, number, change = reading.reader, where.number, one.change
    wrong = ""
    for source in change.sources:
        if change.position not in reader.resting_on(number, source):
            wrong = "a link is missing"
        if (source in change.covers) != (change.position in reader.covering(number, source)):
            wrong = "a link is not what the entry says"
    for noun, value in change.lookups:
        if not any(
            (row.position, row.sequence) == (change.position, sequence) for row in reader.lookup(number, noun, value)
        ):
            wrong = "the catalog does not list it"
    known = change.added
    if known is not None and change.indexed:
        content = one.content
        if known.body != change.position:
            version = reading.version(where, change.position)
            content = None if version is None else version.content
        if content is not None and reader.word_row(number, change.position) != word_row(change.position, content):
            wrong = "its words are not those of its text"
    if wrong:
        raise UnsettledError(f"{where.namespace}: entry {change.position}: {wrong}")


def _finish(reader: Reader, where: Chain, replay: Replay, earlier: Earlier | None) -> None:
    """The state that the new commits lead to, their record rows, what they erased, and their idempotency keys."""
    number, count = where.number, replay.first
    for position, expected in replay.folded.known.items():
        if reader.known(number, position) != expected:
            replay.find("record", expected.sequence, f"the row of entry {position} is not what history says")
    for key, sequence in replay.idempotencies.items():
        if reader.idempotent(number, key) != sequence:
            replay.find("idempotency", sequence, "the idempotency key is not listed under its commit")
    leaves = dict(enumerate(replay.leaves(), count))
    for position, (by, ending) in replay.ended.items():
        if position < count and earlier is not None:
            leaves[position] = earlier.leaf(position, by, ending)
            if ending == Ending.ERASED and reader.content(number, position) is not None:
                replay.find("content", by, f"the content of entry {position} is there, though it was erased")
    read = earlier.node if earlier is not None else (lambda _level, _index: None)
    root, nodes = state.update(read, count, leaves, replay.size)
    if root != where.head.header.state:
        replay.find("state", where.head.sequence, "the head does not sign for the state that history leads to")
    if any(reader.node(number, *key) != children for key, children in nodes.items()):
        replay.find("state", None, "nodes of the state tree are not what history says")


def draw(size: int, entropy: Callable[[int], bytes]) -> set[int]:
    """Which of so many are looked at, each as likely as any other; all of few."""
    drawn: set[int] = set(range(size)) if size <= SAMPLE else set()
    while len(drawn) < min(SAMPLE, size):
        drawn.add(int.from_bytes(entropy(8)) % size)
    return drawn


_Signed = Callable[[str, bytes, bytes], bool]


def _sample(reading: Reading, parts: list[_Part], entropy: Callable[[int], bytes], signed: _Signed) -> int:
    """Look at some of the older commits, each as likely as any other: bytes, contents, rows; returns how many."""
    drawn = draw(sum(part.older for part in parts), entropy)
    start = 0
    for part in parts:
        own = sorted(one - start for one in drawn if start <= one < start + part.older)
        start += part.older
        if own:
            _look(reading, part, own, signed)
    return len(drawn)


def _look(reading: Reading, part: _Part, sequences: list[int], signed: _Signed) -> None:
    """Look at commits of a chain, each in its tile."""
    where, reader = part.where, reading.reader
    span = chain.SIGNATURE_EVERY
    _frontier(reading, where, where.head.sequence, where.head.header.history)
    kept, signatures = reader.tiles(where.number), reader.signatures(where.number)
    for tile in {sequence // span for sequence in sequences if sequence < where.head.sequence // span * span}:
        frontier: merkle.Frontier = ()
        for at, commit in enumerate(reading.ids(where, tile * span, tile * span + span)):
            frontier, _ = merkle.append(frontier, at, commit)
        if frontier != (kept.get(tile),):
            raise UnsettledError(
                f"{where.namespace}: of commits {tile * span} to {tile * span + span - 1} one was altered"
            )
    for sequence in sequences:
        data = reader.header(where.number, sequence) or b""
        commit, header = chain.read(data)
        signature = signatures.get(sequence, b"" if sequence % span == 0 else None)
        if signature is not None and not signed(header.signer, commit, signature):
            raise UnsettledError(f"{where.namespace}: commit {sequence} was not signed by its signer")
        for position, digest in zip(header.positions, header.entries, strict=True):
            body = reader.entry(where.number, position)
            if body is None or entries.digest_of(body) != digest:
                raise UnsettledError(f"{where.namespace}: entry {position} was altered")
            _look_at(reading, where, position)


def _look_at(reading: Reading, where: Chain, position: int) -> None:
    """The rows and the content of one old version."""
    reader, number = reading.reader, where.number
    version = reading.version(where, position)
    if version is None:
        return
    reading.content(where, version.proven)
    if reader.known(number, position) != reading.known(where, position):
        raise UnsettledError(f"{where.namespace}: the row of entry {position} is not what history says")
    if version.content is None or isinstance(version.proven.entry, RetractEntry):
        return
    if reader.word_row(number, position) != word_row(position, version.content):
        raise UnsettledError(f"{where.namespace}: the words of entry {position} are not those of its text")
