"""What a commit's entries do: the versions they add, what they end, and everything else that is derived."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ledgerstone.core.entries import (
    AliasEntry,
    CloseEntry,
    Content,
    Counts,
    Entry,
    ErasureEntry,
    GenesisEntry,
    GrantEntry,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RetractEntry,
    RevokeEntry,
    SettingEntry,
    renewed_counts,
)
from ledgerstone.core.facts import Change, Facts, Known, Own, Slot, Versions
from ledgerstone.core.values import DEFAULT_FLOOR, AliasOf, Ending, NameOf, Scope, Status, Trust

NO_COUNTS: Final = Counts(entries=0, records=0, live=0, current=0, open=0, indexed=0)
# An entry that ends a version for these reasons takes the ground from under every summary that rests on it.
_UNDERMINES: Final = frozenset({Ending.SUPERSEDED, Ending.RETRACTED, Ending.ERASED, Ending.STALE})

# What a revoke entry may end.
REVOCABLE: Final = frozenset({"alias", "grant", "setting", "token"})

# A version that was born beside the holder of its key does not hold it.
ASIDE: Final = frozenset({Ending.CONTESTED, Ending.HELD})

# The second ways to find an entry: a namespace by what it is for, a name, a grant and a setting by their ids.
SCOPED: Final = "scoped"
NAMED: Final = "named"
GRANTED: Final = "granted"
SET: Final = "set"
TOMBSTONE: Final = "tombstone"
PROMOTION: Final = "promotion"
# An erasure by each entry whose own content it took, and a parting by each namespace.
STRUCK: Final = "struck"
PARTED: Final = "parted"


def scoped_lookup(scope: Scope, owner: str | None, name: str) -> str:
    """What finds a namespace by its scope, owner and name."""
    return f"{scope.value} {owner or ''} {name}"


def name_lookup(of: NameOf, name: str, owner: str | None = None) -> str:
    """What finds the entry of a name; a session's name is its owner's own."""
    return f"{of} {owner or ''} {name}"


def alias_lookup(of: AliasOf, value: str) -> str:
    """What finds the entries of an alias."""
    return f"{of.value} {value}"


def setting_lookup(setting: str, namespace: str | None) -> str:
    """What finds the entries of a setting of a namespace."""
    return f"{setting} {namespace or ''}"


def project(entry: Entry, content: Content | None, slot: Slot, facts: Facts) -> Change:
    """The change that one admitted entry makes to its namespace, given the past before it."""
    match entry:
        case RecordEntry():
            return _record(entry, content, slot, facts)
        case CloseEntry():
            return _settled(entry, entry.closes, slot, facts)
        case RetractEntry():
            return _settled(entry, entry.retracts, slot, facts)
        case ErasureEntry():
            return _erasure(entry, slot, facts)
        case RevokeEntry():
            target = facts.position(entry.revokes)
            ended = () if target is None else ((target, Ending.REVOKED),)
            return Change(slot.position, ended=ended, lookups=((entry.noun, ""),))
        case GenesisEntry() if entry.scope is not Scope.STORE:
            return Change(slot.position)
        case PromotionEntry():
            return Change(slot.position, lookups=((PROMOTION, entry.source.hex()),), promoted=entry.trust)
    return Change(
        slot.position, lookups=lookups(entry, _name(content)), live=sealed(entry), own=own(entry, slot.position)
    )


def lookups(entry: Entry, name: str) -> tuple[tuple[str, str], ...]:
    """By what an entry of the store chain is found; each has at least one, so that none can vanish unnoticed."""
    match entry:
        case NamespaceEntry():
            return ("namespace", entry.namespace), (SCOPED, scoped_lookup(entry.scope, entry.owner, name))
        case NameEntry():
            return ("name", name_lookup(entry.of, name, entry.owner)), (NAMED, entry.id)
        case AliasEntry():
            return (("alias", alias_lookup(entry.of, name)),)
        case GrantEntry():
            return ("grant", entry.principal), (GRANTED, entry.grant)
        case KeyEntry():
            return (("key", entry.key),)
        case SettingEntry():
            return ("setting", setting_lookup(entry.setting, entry.namespace)), (SET, entry.id)
        case PartingEntry():
            return (entry.noun, ""), *((PARTED, namespace) for namespace in entry.without)
        case _:
            return ((entry.noun, ""),)


def sealed(entry: Entry) -> bool:
    """Whether an entry commits to a content, be it still there or erased."""
    return getattr(entry, "content", None) is not None


def own(entry: Entry, position: int) -> Own | None:
    """What of an entry, other than a record, can be struck: its name or its reason."""
    if isinstance(entry, RecordEntry) or not sealed(entry):
        return None
    match entry:
        case NamespaceEntry():
            return Own(position, ((SCOPED, scoped_lookup(entry.scope, entry.owner, "")),))
        case NameEntry():
            return Own(position, (("name", name_lookup(entry.of, "", entry.owner)),))
        case AliasEntry():
            return Own(position, (("alias", alias_lookup(entry.of, "")),))
        case _:
            return Own(position)


def _name(content: Content | None) -> str:
    return (content.name if content is not None else None) or ""


def _record(entry: RecordEntry, content: Content | None, slot: Slot, facts: Facts) -> Change:
    born = Ending.NONE
    if entry.held_by is not None:
        born = Ending.HELD
    elif entry.contests is not None:
        born = Ending.CONTESTED
    previous = facts.latest(entry.memory)
    ended: tuple[tuple[int, Ending], ...] = ()
    if previous is not None and previous.current:
        ended = ((previous.position, Ending.SUPERSEDED), *undermined(previous, facts))
    known = Known(
        slot.position,
        slot.sequence,
        slot.digest,
        entry.memory,
        entry.version,
        entry.kind,
        entry.status,
        entry.trust,
        entry.content.text_bytes,
        slot.position,
        entry.depth,
        content.key if content is not None else None,
        entry.expires,
        sealed=True,
        content_bytes=entry.content.bytes,
        ended_by=slot.sequence if born else 0,
        ending=born,
    )
    return Change(
        slot.position,
        added=known,
        ended=ended,
        born=born,
        sources=_positions(entry.sources, facts),
        covers=_positions(entry.covers, facts),
        live=True,
        indexed=True,
    )


def _positions(digests: tuple[bytes, ...], facts: Facts) -> tuple[int, ...]:
    found = map(facts.position, digests)
    return tuple([position for position in found if position is not None]) if digests else ()


def _settled(entry: CloseEntry | RetractEntry, target: bytes, slot: Slot, facts: Facts) -> Change:
    """A task closed or a memory retracted: the next version, with the text of the one it ends.

    What stood aside never held its key, and goes on saying so: it keeps its ending, and its retraction has no key.
    """
    where = facts.position(target)
    before = facts.version(where) if where is not None else None
    if before is None:
        return Change(slot.position)
    closed, aside = isinstance(entry, CloseEntry), before.ending in ASIDE
    ending = Ending.CLOSED if closed else Ending.RETRACTED
    known = before._replace(
        position=slot.position,
        sequence=slot.sequence,
        digest=slot.digest,
        version=entry.version,
        status=Status.CLOSED if closed else Status.RETRACTED,
        trust=entry.trust,
        key=None if aside else before.key,
        sealed=sealed(entry),
        ended_by=0 if closed else slot.sequence,
        ending=Ending.NONE if closed else ending,
    )
    ended = () if aside else ((before.position, ending), *undermined(before, facts, ending))
    lookups: tuple[tuple[str, str], ...] = ()
    if isinstance(entry, RetractEntry) and entry.tombstone is not None:
        lookups = ((TOMBSTONE, entry.tombstone.hex()),)
    return Change(
        slot.position,
        added=known,
        ended=ended,
        born=known.ending,
        lookups=lookups,
        live=sealed(entry),
        indexed=closed,
        own=own(entry, slot.position),
    )


class Folded:
    """The state that changes add up to: all of a namespace on replay, or what one commit adds to a base.

    It answers as Facts. ``apply`` takes each change in turn, and ``settle`` forgets a version that ``settled`` answers
    for by now. There is a base, or there is ``settled``, or neither.
    """

    __slots__ = (
        "_base",
        "_below",
        "_digests",
        "_holders",
        "_key",
        "_latest",
        "_listed",
        "_older",
        "_open",
        "_own",
        "_promoted",
        "_rejections",
        "_resting",
        "_revocable",
        "_revoked",
        "_tombstones",
        "_versions",
        "boundary",
        "known",
        "struck",
    )

    def __init__(self, base: Facts | None = None, *, settled: Versions | None = None) -> None:
        self._base = base
        # Who answers for versions that are not known here, and what it said of the latest of a memory.
        self._older: Versions | None = settled if base is None else base
        self._below: dict[str, Known | None] = {}
        self._digests: dict[bytes, int] = {}
        self._holders: dict[str, str] = {}
        self._latest: dict[str, int] = {}
        self._resting: dict[int, list[int]] = {}
        self._tombstones: dict[bytes, bytes] = {}
        self._rejections: set[bytes] = set()
        self._key: str | None = None
        self._listed: set[tuple[str, str]] = set()
        self._own: dict[bytes, Own] = {}
        self._promoted: tuple[bytes, Trust] | None = None
        # Positions whose own content was struck, and the sequence of the commit that did it.
        self.struck: dict[int, int] = {}
        self._revocable: set[int] = set()
        self._revoked: set[int] = set()
        self.boundary = 0 if base is None else base.boundary
        self._versions: dict[tuple[str, int], int] = {}
        self.known: dict[int, Known] = {}
        # How many obligations came and went, and the bytes of their contents.
        self._open = 0, 0

    def apply(self, change: Change, slot: Slot) -> list[Known]:
        """Take a change in; returns the versions that it ended, as they stood before."""
        self._digests[slot.digest] = change.position
        self._promoted = None if change.promoted is None else (slot.digest, change.promoted)
        before = []
        for position, ending in change.ended:
            self._revoked.add(position)
            known = self.version(position)
            if known is not None:
                before.append(known)
                key = None if ending is Ending.ERASED else known.key
                self.known[position] = known._replace(ended_by=slot.sequence, ending=ending, key=key)
                self._oblige(known, -1)
        for noun, value in change.lookups:
            self._listed.add((noun, value))
            if noun == TOMBSTONE:
                self._tombstones.setdefault(bytes.fromhex(value), slot.digest)
                self._rejections.add(slot.digest)
            elif noun == "key":
                self._key = value
            elif noun in REVOCABLE:
                self._revocable.add(change.position)
        if change.own is not None:
            self._own[slot.digest] = change.own
        for position, _ in change.struck:
            self.struck[position] = slot.sequence
            known = self.version(position)
            if known is not None:
                self.known[position] = known._replace(sealed=False)
        added = change.added
        if added is not None:
            self.known[change.position] = added
            self._latest[added.memory] = change.position
            self._versions[added.memory, added.version] = change.position
            if added.key is not None and added.ending not in ASIDE:
                self._holders[added.key] = added.memory
            for source in change.sources:
                self._resting.setdefault(source, []).append(change.position)
            self._oblige(added, 1)
        return before

    def settle(self, known: Known) -> None:
        """Forget a version that ``settled`` has learned, as it stands.

        Of a memory with several, which is the latest stays known, and so does who holds its key.
        """
        position, memory = known.position, known.memory
        del self.known[position]
        self._below.pop(memory, None)
        if self._digests.get(known.digest) == position:
            del self._digests[known.digest]
        if self._versions.get((memory, known.version)) == position:
            del self._versions[memory, known.version]
        if known.version == 1:
            if self._latest.get(memory) == position:
                del self._latest[memory]
            if known.key is not None and self._holders.get(known.key) == memory and memory not in self._latest:
                del self._holders[known.key]

    def _oblige(self, known: Known, step: int) -> None:
        if obligation(known):
            count, size = self._open
            self._open = count + step, size + step * known.content_bytes

    def position(self, digest: bytes) -> int | None:
        found = self._digests.get(digest)
        return self._older.position(digest) if found is None and self._older is not None else found

    def version(self, position: int) -> Known | None:
        known = self.known.get(position)
        return self._older.version(position) if known is None and self._older is not None else known

    def _now(self, known: Known | None) -> Known | None:
        """An older version as it stands after the changes."""
        return None if known is None else self.known.get(known.position, known)

    def latest(self, memory: str) -> Known | None:
        position = self._latest.get(memory)
        if position is not None:
            return self.version(position)
        if self._older is None:
            return None
        if memory not in self._below:
            self._below[memory] = self._older.latest(memory)
        return self._now(self._below[memory])

    def version_of(self, memory: str, version: int) -> Known | None:
        position = self._versions.get((memory, version))
        if position is not None:
            return self.version(position)
        return self._now(self._older.version_of(memory, version)) if self._older is not None else None

    def holder(self, key: str) -> Known | None:
        memory = self._holders.get(key)
        if memory is not None:
            return self.latest(memory)
        known = self._now(self._older.holder(key)) if self._older is not None else None
        return self.latest(known.memory) if known is not None and known.memory in self._latest else known

    def resting_on(self, position: int) -> tuple[Known, ...]:
        below = self._base.resting_on(position) if self._base is not None else ()
        standing = [self._now(known) for known in below]
        standing += [self.version(p) for p in self._resting.get(position, ())]
        return tuple(known for known in standing if known is not None and known.current and known.depth)

    def rejected(self, tombstone: bytes) -> bytes | None:
        # The first rejection of a value is the one that holds it.
        digest = self._base.rejected(tombstone) if self._base is not None else None
        return self._tombstones.get(tombstone) if digest is None else digest

    def rejection(self, digest: bytes) -> bool:
        return digest in self._rejections or (self._base is not None and self._base.rejection(digest))

    def listed(self, noun: str, value: str) -> bool:
        return (noun, value) in self._listed or (self._base is not None and self._base.listed(noun, value))

    def revocable(self, digest: bytes) -> bool:
        position = self.position(digest)
        if position is None or position in self._revoked:
            return False
        return position in self._revocable or (self._base is not None and self._base.revocable(digest))

    def key(self) -> str | None:
        return self._base.key() if self._key is None and self._base is not None else self._key

    def own(self, digest: bytes) -> Own | None:
        found = self._own.get(digest)
        if found is None and self._base is not None:
            found = self._base.own(digest)
        if found is None or found.position in self.struck:
            return None
        known = self.version(found.position)
        return None if known is not None and known.ending is Ending.ERASED else found

    def promoted(self, digest: bytes) -> Trust | None:
        return self._promoted[1] if self._promoted is not None and self._promoted[0] == digest else None

    def open_tasks(self) -> tuple[int, int]:
        count, size = (0, 0) if self._base is None else self._base.open_tasks()
        return count + self._open[0], size + self._open[1]


def carriers(known: Known, facts: Versions) -> list[Known]:
    """Every version that holds the text of this one: the record it was written in, and what was closed or retracted."""
    first = facts.version(known.body)
    found = [known if first is None else first]
    while True:
        following = facts.version_of(known.memory, found[-1].version + 1)
        if following is None or following.body != known.body:
            return found
        found.append(following)


def _erasure(entry: ErasureEntry, slot: Slot, facts: Facts) -> Change:
    """Contents that are gone: with a text go all versions that hold it, and the ground of what rests on them."""
    erased: dict[int, Known] = {}
    for digest in entry.erases:
        position = facts.position(digest)
        known = facts.version(position) if position is not None else None
        if known is not None:
            erased |= {one.position: one for one in carriers(known, facts) if one.ending is not Ending.ERASED}
    ended = dict.fromkeys(erased, Ending.ERASED)
    for known in erased.values():
        for position, ending in undermined(known, facts, Ending.ERASED):
            ended.setdefault(position, ending)
    struck = [facts.own(digest) for digest in entry.strikes]
    lookups = ((entry.noun, ""), *((STRUCK, digest.hex()) for digest in entry.strikes)) if entry.strikes else ()
    return Change(
        slot.position,
        ended=tuple(sorted(ended.items())),
        lookups=lookups,
        erased=tuple(sorted(erased)),
        live=sealed(entry),
        own=own(entry, slot.position),
        struck=tuple(one for one in struck if one is not None),
    )


def undermined(known: Known, facts: Facts, ending: Ending = Ending.SUPERSEDED) -> tuple[tuple[int, Ending], ...]:
    """The summaries that go stale, however far above, when a version ends.

    Those that rest on the version whose text it carries on rest on it as well.
    """
    if ending not in _UNDERMINES:
        return ()
    stale: dict[int, Ending] = {}
    below = [known.position, *([known.body] if known.body != known.position else [])]
    while below:
        for summary in facts.resting_on(below.pop()):
            if summary.position not in stale:
                stale[summary.position] = Ending.STALE
                below.append(summary.position)
    return tuple(sorted(stale.items()))


def searchable(content: Content) -> str:
    """The text of a record that its words are cut from."""
    parts = (content.key, content.title, *content.tags, *content.triggers, content.text)
    return "\n".join([part for part in parts if part])


def obligation(known: Known) -> bool:
    """An open task that a recall must keep: at or above the default floor."""
    return known.open_task and known.trust >= DEFAULT_FLOOR


def counted(counts: Counts, change: Change, ended: Iterable[Known]) -> Counts:
    """The totals after a change; ``ended`` are the versions it ends, as they stood before it."""
    added = change.added
    current = counts.current
    open_tasks = counts.open
    if added is not None:
        current += added.current
        open_tasks += obligation(added)
    live, indexed = counts.live + change.live - len(change.struck), counts.indexed + change.indexed
    for known in ended:
        current -= known.current
        open_tasks -= obligation(known)
        if known.position in change.erased:
            live -= known.sealed
            indexed -= known.status is not Status.RETRACTED
    records = counts.records + (added is not None)
    return renewed_counts(counts, current, counts.entries + 1, indexed, live, open_tasks, records)
