"""Replay one chain under the rules that admitted it: every fault becomes a finding, none stops the others."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ledgerstone.core import canonical, chain, entries, merkle, rules, signing, state
from ledgerstone.core.authority import Place, reaches
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import (
    Content,
    Counts,
    Entry,
    ErasedEntry,
    ExportEntry,
    GenesisEntry,
    GrantEntry,
    Header,
    KeyEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RevokeEntry,
    Sealed,
    StorePoint,
)
from ledgerstone.core.facts import Change, Facts, Slot, Versions
from ledgerstone.core.projection import NO_COUNTS, Folded, counted, project
from ledgerstone.core.values import MAX_INTEGER, Act, Ending, Finding, Scope
from ledgerstone.errors import CorruptionError, RuleError


class Granted(NamedTuple):
    """A grant as the store chain tells it: since when, and until when if it was revoked (sequences)."""

    entry: GrantEntry
    since: int
    until: int | None


class Made(NamedTuple):
    """A namespace as the store chain tells it."""

    entry: NamespaceEntry
    since: int


class Enrolled(NamedTuple):
    """A key as the store chain tells it: in force for what is made after that sequence."""

    entry: KeyEntry
    since: int


class Arrived(NamedTuple):
    """A promotion as replay saw it: in which namespace and commit, and the record that came by it."""

    namespace: str
    sequence: int
    entry: PromotionEntry
    record: RecordEntry


class Authority(Protocol):
    """What the store chain says, for the judgement of the other chains. Each answer is authenticated."""

    @property
    def keys(self) -> Sequence[Enrolled]:
        """The signing keys, in order of time."""

    def point(self, sequence: int) -> bytes | None:
        """The id of the store chain's commit of a sequence."""

    def granted(self, grant: str) -> Granted | None:
        """A grant by its id."""

    def made(self, namespace: str) -> Made | None:
        """How a namespace was made."""


class Authorities:
    """What the store chain says as it is replayed; ``base`` answers for what came before.

    ``keys`` are in order of time, and ``heads`` those of all namespaces, as they stood when each key came.
    """

    __slots__ = (
        "_base",
        "_by_digest",
        "_commits",
        "_enrolled",
        "_grants",
        "erased",
        "exports",
        "heads",
        "keys",
        "namespaces",
        "parted",
        "promotions",
    )

    def __init__(self, base: Authority | None = None) -> None:
        self._base = base
        self._commits: dict[int, bytes] = {}
        self._grants: dict[str, Granted] = {}
        self._by_digest: dict[bytes, str] = {}
        self.namespaces: dict[str, Made] = {}
        self.keys: list[Enrolled] = [] if base is None else list(base.keys)
        self.heads: list[dict[str, bytes]] = [{} for _ in self.keys]
        self._enrolled = self._known()
        # The exported head of a namespace, by sequence; the namespaces that the store goes on without, since when.
        self.exports: dict[tuple[str, int], bytes] = {}
        self.parted: dict[str, int] = {}
        # By namespace, how many versions it erased up to which of its commits since the one before in here.
        self.erased: dict[str, dict[int, int]] = {}
        # What came from other namespaces; whether it stands there can be told once all chains were read.
        self.promotions: list[Arrived] = []

    def _known(self) -> signing.Keyring:
        return signing.Keyring(pins=tuple(key.entry.public for key in self.keys))

    def key_at(self, sequence: int) -> str | None:
        """The id of the key in force once the store chain had that commit."""
        for entry, since in reversed(self.keys):
            if since <= sequence:
                return entry.key
        return None

    def signed(self, keyring: signing.Keyring, signer: str, commit: bytes, signature: bytes) -> bool:
        """Whether a key that is trusted, or that the store chain enrolled, made a signature that is kept.

        What is signed at the head vouches for the history that enrolled it.
        """
        return any(one.verifies(signer, signing.COMMIT, commit, signature) for one in (keyring, self._enrolled))

    def in_force(self, keyring: signing.Keyring) -> signing.Keyring:
        """The key in force at the end of the store chain, if it is trusted or took over from one that is; else none."""
        trusted = set(keyring.public)
        for key, _ in self.keys:
            if key.retires in trusted:
                trusted.add(key.key)
        newest = self.keys[-1].entry if self.keys else None
        return signing.Keyring(pins=(newest.public,) if newest is not None and newest.key in trusted else ())

    def findings(self, namespace: str) -> list[Finding]:
        """Whether each key ended at the heads that its successor's entry names; to be asked after all chains.

        Before a parting there were chains that are not here, and nobody can tell.
        """
        found = []
        unseen = max(self.parted.values(), default=-1)
        for (entry, since), heads in zip(self.keys, self.heads, strict=True):
            try:
                if entry.retires is not None and since > unseen:
                    rules.check_heads(entry, heads)
            except RuleError as error:
                found.append(Finding("rule", namespace, since, f"it breaks the rule {error.message}"))
        return found

    def commit(self, sequence: int, commit: bytes) -> None:
        """Take in the id of a commit of the store chain."""
        self._commits[sequence] = commit

    def take(self, entry: Entry, slot: Slot) -> None:
        """Take in one entry of the store chain."""
        match entry:
            case GrantEntry():
                self._grants[entry.grant] = Granted(entry, slot.sequence, None)
                self._by_digest[slot.digest] = entry.grant
            case NamespaceEntry():
                self.namespaces[entry.namespace] = Made(entry, slot.sequence)
            case KeyEntry():
                self.keys.append(Enrolled(entry, slot.sequence))
                self.heads.append({})
                self._enrolled = self._known()
            case ExportEntry() if entry.namespace is not None:
                self.exports[entry.namespace, entry.sequence] = entry.head
            case ErasedEntry():
                self.erased.setdefault(entry.namespace, {})[entry.sequence] = entry.count
            case PartingEntry():
                self.parted |= dict.fromkeys(entry.without, slot.sequence)
            case RevokeEntry() if entry.revokes in self._by_digest:
                granted = self._grants[self._by_digest[entry.revokes]]
                if granted.until is None:
                    self._grants[granted.entry.grant] = granted._replace(until=slot.sequence)
            case _:
                pass

    def point(self, sequence: int) -> bytes | None:
        found = self._commits.get(sequence)
        return self._base.point(sequence) if found is None and self._base is not None else found

    def granted(self, grant: str) -> Granted | None:
        found = self._grants.get(grant)
        return self._base.granted(grant) if found is None and self._base is not None else found

    def made(self, namespace: str) -> Made | None:
        found = self.namespaces.get(namespace)
        return self._base.made(namespace) if found is None and self._base is not None else found


class Replayed(NamedTuple):
    """One entry as replay saw it."""

    entry: Entry
    change: Change
    content: Content | None


class Base(NamedTuple):
    """Where a replay goes on: a head that is trusted, and the past up to it, proven under the state it signs for."""

    head: Head
    facts: Facts


class Replay:
    """One chain, commit by commit. ``findings`` collects what is wrong; the rest is the state that results.

    With ``base`` it goes on from there: positions, sequences and totals are those of the whole chain, all else is of
    the commits since. After a gap it goes on where the next header says; ``whole`` is False from then on, and history
    and totals, which cannot be followed any more, are not judged. ``settled`` answers for versions of the chain itself,
    once ``folded`` was told to forget them.
    """

    __slots__ = (
        "_digests",
        "_erased",
        "_frontier",
        "_judged",
        "_key",
        "_sequences",
        "_stamps",
        "_until",
        "authorities",
        "counts",
        "due",
        "ended",
        "findings",
        "first",
        "folded",
        "head",
        "idempotencies",
        "lasts",
        "missing",
        "namespace",
        "since",
        "size",
        "store",
        "tiles",
        "whole",
    )

    def __init__(
        self,
        namespace: str,
        authorities: Authorities,
        *,
        store: bool,
        base: Base | None = None,
        settled: Versions | None = None,
    ) -> None:
        self.namespace = namespace
        self.authorities = authorities
        self.store = store
        self.findings: list[Finding] = []
        self.folded = Folded(None if base is None else base.facts, settled=settled)
        self.head: Head | None = None if base is None else base.head
        self.counts: Counts = NO_COUNTS if base is None else base.head.counts
        # The sequence of the next commit, which is the first that is replayed here; where its first entry stands, and
        # where the next entry will.
        self.due = self.since = 0 if self.head is None else self.head.sequence + 1
        self.first = self.size = self.counts.entries
        self.whole = True
        self.ended: dict[int, tuple[int, int]] = {}
        self.idempotencies: dict[bytes, int] = {}
        self.missing: list[tuple[int, int]] = []
        self.tiles: dict[int, bytes] = {}
        # That of the history with the head in it.
        self._frontier: merkle.Frontier = () if base is None else base.head.grown
        self._digests = bytearray()
        self._sequences = array("Q")
        self._stamps = bytearray()
        # How many versions were erased since the store chain last noted it.
        self._erased = 0
        # The commits that were the last of a key: their signatures are kept.
        self.lasts: set[int] = set()
        # The makers of a commit that were found to be allowed to make it, and until when they are.
        self._judged: tuple[StorePoint | None, str, str, str | None, Act] | None = None
        self._until = 0
        # How many keys had come when the head was made.
        self._key = 0 if base is None else len(authorities.keys)

    def find(self, code: str, sequence: int | None, message: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(code, self.namespace, sequence, message))

    def header(self, sequence: int, data: bytes) -> tuple[bytes, Header] | None:
        """The next commit's id and header from its bytes; None, with a finding, when they are no header."""
        try:
            return chain.read(data)
        except CorruptionError as error:
            self.find("header", sequence, error.message)
            return None

    def commit(
        self, commit: bytes, header: Header, bodies: Sequence[bytes], contents: Mapping[int, tuple[bytes, bytes]]
    ) -> list[Replayed]:
        """Take the next commit in: its id and header, its entries' bytes, its contents by position."""
        sequence = header.sequence
        wrong = chain.follows(header, self.head, self._frontier if self.whole else None, namespace=self.namespace)
        if wrong is not None:
            self.find("chain", sequence, f"commit {sequence} {wrong}")
        self.size, self.whole = self.place(header), self.whole and sequence == self.due
        self._judge_makers(header, bodies)
        digests = tuple(map(entries.digest_of, bodies))
        if digests != header.entries:
            self.find("entries", sequence, "the entries are not those that the header lists")
        self.folded.boundary = self.size
        replayed = []
        drawn: list[tuple[Entry, Content | None]] = []
        stamp = entries.stamp_digest(header.stamp)
        for body, digest in zip(bodies, digests, strict=True):
            self._stamps += stamp
            found = self._entry(body, digest, header, contents)
            if found is not None:
                replayed.append(found)
                drawn.append((found.entry, found.content))
        self._judge_whole(header, drawn)
        self.authorities.promotions += _arrived(self.namespace, sequence, drawn)
        if self.head is None and self.store:
            # The first key signs the very commit that enrols it.
            self._judge_signer(header)
        if header.counts != self.counts:
            if self.whole:
                self.find("counts", sequence, f"the header counts {header.counts}, replay {self.counts}")
            self.counts = header.counts
        if header.idempotency is not None:
            if header.idempotency.key in self.idempotencies:
                self.find("header", sequence, "an idempotency key is used twice")
            self.idempotencies[header.idempotency.key] = sequence
        self._judge_erased(sequence)
        self._grow(commit, header)
        if self.store:
            self.authorities.commit(sequence, commit)
        elif self.authorities.exports.get((self.namespace, sequence), commit) != commit:
            self.find("export", sequence, "is not the commit that was exported")
        return replayed

    def place(self, header: Header) -> int:
        """Where the first entry of the next commit stands; after a gap its own header says so."""
        if self.whole and header.sequence == self.due:
            return self.size
        return max(self.size, header.counts.entries - len(header.entries))

    def _grow(self, commit: bytes, header: Header) -> None:
        """Take a commit up as the head."""
        self.due = header.sequence + 1
        if not self.whole:
            self.head = Head(commit, header, ())
            return
        self.head = Head(commit, header, self._frontier)
        self._frontier, tile = merkle.append(self._frontier, header.sequence, commit)
        if tile is not None:
            self.tiles[header.sequence // chain.SIGNATURE_EVERY] = tile

    def _entry(
        self, body: bytes, digest: bytes, header: Header, contents: Mapping[int, tuple[bytes, bytes]]
    ) -> Replayed | None:
        sequence, position = header.sequence, self.size
        self.size += 1
        self._digests += digest
        self._sequences.append(sequence)
        try:
            entry = entries.decode_entry(body)
        except CorruptionError as error:
            self.find("entry", sequence, f"entry {position}: {error.message}")
            return None
        content = self._content(entry, position, sequence, contents)
        # Each is asked, whatever another finds.
        try:
            rules.check_place(entry, content, position=position, store=self.store)
        except RuleError as error:
            self._break(header, error, position)
        try:
            rules.judge(entry, content, header.stamp, header.limits, self.folded)
        except RuleError as error:
            self._break(header, error, position)
        if isinstance(entry, GenesisEntry):
            self._judge_genesis(entry, header)
        slot = Slot(position, sequence, digest)
        change = project(entry, content, slot, self.folded)
        before = self.folded.apply(change, slot)
        if change.born:
            self.ended[position] = sequence, change.born.value
        for ended, ending in change.ended:
            self.ended[ended] = sequence, ending.value
        self.counts = counted(self.counts, change, before)
        self._erased += len(change.erased)
        if self.store:
            if isinstance(entry, ExportEntry) and entry.namespace is None:
                self._judge_export(entry, sequence)
            self.authorities.take(entry, slot)
        return Replayed(entry, change, content)

    def _judge_whole(self, header: Header, drawn: Sequence[tuple[Entry, Content | None]]) -> None:
        """What no single entry shows."""
        try:
            rules.check_commit(drawn, header.limits)
        except RuleError as error:
            self._break(header, error)

    def _break(self, header: Header, error: RuleError, position: int | None = None) -> None:
        """Make the refusal of a rule a finding."""
        what = "it" if position is None else f"entry {position}"
        self.find("rule", header.sequence, f"{what} breaks the rule {error.message}")

    def _content(
        self, entry: Entry, position: int, sequence: int, contents: Mapping[int, tuple[bytes, bytes]]
    ) -> Content | None:
        sealed: Sealed | None = getattr(entry, "content", None)
        stored = contents.get(position)
        if sealed is None:
            if stored is not None:
                self.find("content", sequence, f"entry {position} has a content that it does not commit to")
            return None
        if stored is None:
            self.missing.append((position, sequence))
            return None
        salt, data = stored
        if len(salt) != canonical.SALT_BYTES or canonical.commitment(salt, data) != sealed.commitment:
            self.find("content", sequence, f"the content of {entries.spot(position, entry)} was altered")
            return None
        try:
            content = entries.decode_content(data)
        except CorruptionError as error:
            self.find(
                "content", sequence, f"the content of {entries.spot(position, entry)} cannot be read: {error.message}"
            )
            return None
        text_bytes = len(content.text.encode()) if content.text is not None else 0
        if (sealed.bytes, sealed.text_bytes) != (len(data), text_bytes):
            self.find("content", sequence, f"the sizes of {entries.spot(position, entry)} are not those of its content")
        return content

    def _judge_genesis(self, entry: GenesisEntry, header: Header) -> None:
        made = self.authorities.made(self.namespace)
        if self.namespace in self.authorities.parted:
            self.find("namespace", header.sequence, "is there, though the store chain goes on without it")
        if self.store:
            if entry.scope is not Scope.STORE:
                self.find("genesis", header.sequence, "the first chain is not the store's own")
        elif made is None:
            self.find("genesis", header.sequence, "the store chain does not know this namespace")
        elif (made.entry.scope, made.entry.nonce, made.entry.owner) != (
            entry.scope,
            entry.nonce,
            entry.owner,
        ):
            self.find("genesis", header.sequence, "the namespace does not begin as the store chain says")

    def _judge_export(self, entry: ExportEntry, sequence: int) -> None:
        if self.authorities.point(entry.sequence) != entry.head:
            self.find("export", sequence, "names no earlier commit of the store chain")

    def _judge_erased(self, sequence: int) -> None:
        """What the store chain notes of an erasure is what was erased."""
        noted = self.authorities.erased.get(self.namespace, {}).get(sequence)
        if noted is None:
            return
        if noted != self._erased and self.whole:
            self.find("erasure", sequence, f"erased {self._erased} versions, and the store chain notes {noted}")
        self._erased = 0

    def _judge_makers(self, header: Header, bodies: Sequence[bytes]) -> None:
        """Grant and signer of a commit; a namespace's need no second look where they are those of the one before."""
        if self.store:
            if header.store is not None:
                self.find("store", header.sequence, "names itself")
            if self.head is not None:
                self._judge_signer(header)
            return
        stamp, told = header.stamp, len(self.findings)
        act = Act.CREATE if header.sequence == 0 else _act_of(bodies)
        makers = header.store, header.signer, stamp.principal, stamp.grant, act
        if makers == self._judged and stamp.at < self._until:
            return
        self._judge_stamp(header, act)
        self._judge_signer(header)
        self._judged = makers if len(self.findings) == told else None

    def _judge_stamp(self, header: Header, act: Act) -> None:
        """A namespace's commit names a grant that stood at its point of the store chain and allows it."""
        point, stamp = header.store, header.stamp
        if point is None or self.authorities.point(point.sequence) != point.id:
            self.find("store", header.sequence, "does not name a commit of the store chain")
            return
        before = None if self.head is None else self.head.header.store
        if before is not None and before.sequence > point.sequence:
            self.find("store", header.sequence, "names an older store commit than its parent")
        granted = self.authorities.granted(stamp.grant or "")
        made = self.authorities.made(self.namespace)
        if granted is None or made is None:
            self.find("grant", header.sequence, "names no grant of the store chain")
            return
        grant = granted.entry
        place = Place(self.namespace, made.entry.scope, made.entry.owner)
        stands = granted.since <= point.sequence and (granted.until is None or granted.until > point.sequence)
        unexpired = grant.expires is None or grant.expires > stamp.at
        allowed = (grant.principal, grant.act) == (stamp.principal, act) and reaches(grant, place)
        if not (allowed and stands and unexpired and made.since <= point.sequence):
            self.find("grant", header.sequence, f"grant {grant.grant} did not allow this commit")
        self._until = MAX_INTEGER + 1 if grant.expires is None else grant.expires

    def _judge_signer(self, header: Header) -> None:
        """A commit is signed by the key in force at its point of the store chain; of which some end there."""
        if self.store:
            before = max(header.sequence - 1, 0)
        elif header.store is None:
            return
        else:
            before = header.store.sequence
            self._close_keys(before)
        try:
            rules.check_signer(header.signer, self.authorities.key_at(before))
        except RuleError as error:
            self._break(header, error)

    def _close_keys(self, sequence: int) -> None:
        """Note the head at which the keys ended that were retired up to a sequence of the store chain."""
        keys = self.authorities.keys
        while self._key < len(keys) and keys[self._key].since <= sequence:
            if self.head is not None:
                self.authorities.heads[self._key][self.namespace] = self.head.id
                self.lasts.add(self.head.sequence)
            self._key += 1

    def finish(self) -> None:
        """What only the end of the chain tells: a content is missing if and only if it was erased."""
        if self.store:
            self.lasts = {key.since for key in self.authorities.keys if key.entry.retires is not None}
        else:
            self._close_keys(MAX_INTEGER)
            for sequence in self.authorities.erased.get(self.namespace, {}):
                if not self.since <= sequence < self.due:
                    self.find("erasure", sequence, "the store chain notes an erasure in a commit that is not there")
        erased = {position: by for position, (by, ending) in self.ended.items() if ending == Ending.ERASED}
        erased |= self.folded.struck
        for position, sequence in self.missing:
            if position not in erased:
                what = f"the content of {self._spot(position)} is gone, and no erasure explains it"
                self.find("missing", sequence, what)
        gone = {position for position, _ in self.missing}
        for position in sorted(erased):
            if position >= self.first and position not in gone and self._sealed(position):
                what = f"the content of {self._spot(position)} is there, though it was erased"
                self.find("content", erased[position], what)

    def _spot(self, position: int) -> str:
        return entries.spot(position, self.folded.version(position))

    def _sealed(self, position: int) -> bool:
        """Whether an entry that was erased or struck commits to a content."""
        known = self.folded.version(position)
        return position in self.folded.struck or (known is not None and known.sealed)

    def leaves(self) -> Iterator[bytes]:
        """The leaves of what was replayed here, as they stand now; those of a chain with a gap mean nothing."""
        digests, stamps = bytes(self._digests), bytes(self._stamps)
        for index, sequence in enumerate(self._sequences):
            by, ending = self.ended.get(self.first + index, (0, 0))
            yield state.leaf(
                digests[32 * index : 32 * index + 32],
                stamps[32 * index : 32 * index + 32],
                sequence=sequence,
                ended_by=by,
                reason=ending,
            )


def _act_of(bodies: Sequence[bytes]) -> Act:
    """What a commit's grant must allow: an erasure stands alone, and a promotion first."""
    # Entries hold no text, so that nothing but a noun can read like one.
    noun = bodies[0].partition(b'"entry":')[2] if bodies else b""
    if noun.startswith(b'"promotion"'):
        return Act.PROMOTE
    return Act.FORGET if len(bodies) == 1 and noun.startswith(b'"erasure"') else Act.WRITE


def _arrived(namespace: str, sequence: int, drawn: Sequence[tuple[Entry, Content | None]]) -> list[Arrived]:
    """The promotion that a commit is made of, with its record."""
    match drawn:
        case [(PromotionEntry() as promotion, _), (RecordEntry() as record, _)]:
            return [Arrived(namespace, sequence, promotion, record)]
        case _:
            return []


def check_signature(replay: Replay, keyring: signing.Keyring, commit: bytes, header: Header, signature: bytes) -> None:
    """A kept signature was made over this commit by its signer, a key that is trusted or was enrolled."""
    if not replay.authorities.signed(keyring, header.signer, commit, signature):
        _unsigned(replay, commit, header)


def check_head(replay: Replay, keyring: signing.Keyring, commit: bytes, header: Header, signature: bytes) -> None:
    """The signature over a head was made by the key in force, and that one is trusted or took over from one that is."""
    if replay.authorities.in_force(keyring).signer_of(signing.COMMIT, commit, signature) is None:
        _unsigned(replay, commit, header)


def _unsigned(replay: Replay, commit: bytes, header: Header) -> None:
    replay.find(
        "signature", header.sequence, f"no trusted key signed commit {commit.hex()[:16]} (signer {header.signer})"
    )
