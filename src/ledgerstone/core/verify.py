"""Replay one chain under the rules that admitted it: every fault becomes a finding, none stops the others."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ledgerstone.core import canonical, chain, entries, merkle, rules, signing, state
from ledgerstone.core.authority import Place, reaches
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import (
    Content,
    Counts,
    Entry,
    GenesisEntry,
    GrantEntry,
    Header,
    KeyEntry,
    NamespaceEntry,
    RevokeEntry,
    Sealed,
)
from ledgerstone.core.facts import Change, Slot
from ledgerstone.core.projection import NO_COUNTS, Folded, counted, project
from ledgerstone.core.values import Act, Ending, Finding, Scope
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


class Authorities:
    """What the store chain says while it is replayed, for the judgement of the other chains.

    ``keys`` are in order of time, and ``heads`` those of all namespaces, as they stood when each key came.
    """

    __slots__ = ("_enrolled", "commits", "grants", "heads", "keys", "made")

    def __init__(self) -> None:
        self.commits: list[bytes] = []
        self.grants: dict[str, Granted] = {}
        self.made: dict[str, Made] = {}
        self.keys: list[Enrolled] = []
        self.heads: list[dict[str, bytes]] = []
        self._enrolled = signing.Keyring()

    def key_at(self, sequence: int) -> str | None:
        """The id of the key in force once the store chain had that commit."""
        return next((key.entry.key for key in reversed(self.keys) if key.since <= sequence), None)

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
        """Whether each key ended at the heads that its successor's entry names; to be asked after all chains."""
        found = []
        for (entry, since), heads in zip(self.keys, self.heads, strict=True):
            try:
                if entry.retires is not None:
                    rules.check_heads(entry, heads)
            except RuleError as error:
                found.append(Finding("rule", namespace, since, f"it breaks the rule {error.message}"))
        return found

    def take(self, entry: Entry, sequence: int, revoked: bytes | None, digests: Mapping[bytes, str]) -> None:
        """Take in one entry of the store chain."""
        if isinstance(entry, GrantEntry):
            self.grants[entry.grant] = Granted(entry, sequence, None)
        elif isinstance(entry, NamespaceEntry):
            self.made[entry.namespace] = Made(entry, sequence)
        elif isinstance(entry, KeyEntry):
            self.keys.append(Enrolled(entry, sequence))
            self.heads.append({})
            self._enrolled = signing.Keyring(pins=tuple(key.entry.public for key in self.keys))
        elif revoked is not None and revoked in digests:
            granted = self.grants[digests[revoked]]
            if granted.until is None:
                self.grants[digests[revoked]] = granted._replace(until=sequence)


class Replayed(NamedTuple):
    """One entry as replay saw it."""

    entry: Entry
    change: Change
    content: Content | None


class Replay:
    """One chain, commit by commit. ``findings`` collects what is wrong; the rest is the state that results."""

    __slots__ = (
        "_act",
        "_digests",
        "_grants",
        "_key",
        "_present",
        "_sequences",
        "_stamps",
        "authorities",
        "counts",
        "ended",
        "findings",
        "folded",
        "head",
        "idempotencies",
        "lasts",
        "missing",
        "namespace",
        "store",
        "tiles",
    )

    def __init__(self, namespace: str, authorities: Authorities, *, store: bool) -> None:
        self.namespace = namespace
        self.authorities = authorities
        self.store = store
        self.findings: list[Finding] = []
        self.folded = Folded()
        self.head: Head | None = None
        self.counts: Counts = NO_COUNTS
        self.ended: dict[int, tuple[int, int]] = {}
        self.idempotencies: dict[bytes, int] = {}
        self.missing: list[tuple[int, int]] = []
        self._present: set[int] = set()
        self.tiles: dict[int, bytes] = {}
        self._digests = bytearray()
        self._sequences = array("Q")
        self._stamps = bytearray()
        self._grants: dict[bytes, str] = {}
        self._act = Act.WRITE
        # The commits that were the last of a key: their signatures are kept.
        self.lasts: set[int] = set()
        self._key = 0

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
        expected = header.sequence
        wrong = chain.follows(header, self.head, namespace=self.namespace)
        if wrong is not None:
            self.find("chain", expected, f"commit {header.sequence} {wrong}")
        # An erasure entry stands alone; its noun is all that is needed here.
        self._act = Act.FORGET if len(bodies) == 1 and b'"entry":"erasure"' in bodies[0] else Act.WRITE
        self._judge_stamp(header)
        if self.head is not None or not self.store:
            self._judge_signer(header)
        if tuple(map(entries.digest_of, bodies)) != header.entries:
            self.find("entries", expected, "the entries are not those that the header lists")
        self.folded.boundary = self.size
        replayed = []
        drawn: list[tuple[Entry, Content | None]] = []
        self._stamps += entries.stamp_digest(header.stamp)
        for body in bodies:
            found = self._entry(body, header, contents)
            if found is not None:
                replayed.append(found)
                drawn.append((found.entry, found.content))
        self._try(header, lambda: rules.check_commit(drawn, header.limits))
        if self.head is None and self.store:
            # The first key signs the very commit that enrols it.
            self._judge_signer(header)
        if header.counts != self.counts:
            self.find("counts", expected, f"the header counts {header.counts}, replay {self.counts}")
            self.counts = header.counts
        if header.idempotency is not None:
            if header.idempotency.key in self.idempotencies:
                self.find("idempotency", expected, "an idempotency key is used twice")
            self.idempotencies[header.idempotency.key] = header.sequence
        frontier = () if self.head is None else self.head.grown
        if chain.completes_tile(header.sequence):
            tile = merkle.append(frontier, header.sequence, commit)[1] or b""
            self.tiles[header.sequence // chain.SIGNATURE_EVERY] = tile
        self.head = Head(commit, header, frontier)
        if self.store:
            self.authorities.commits.append(commit)
        return replayed

    def _entry(self, body: bytes, header: Header, contents: Mapping[int, tuple[bytes, bytes]]) -> Replayed | None:
        sequence = header.sequence
        position = len(self._sequences)
        digest = entries.digest_of(body)
        self._digests += digest
        self._sequences.append(sequence)
        try:
            entry = entries.decode_entry(body)
        except CorruptionError as error:
            self.find("entry", sequence, f"entry {position}: {error.message}")
            return None
        content = self._content(entry, position, sequence, contents)
        self._try(header, lambda: rules.check_place(entry, content, position=position, store=self.store), position)
        self._try(header, lambda: rules.judge(entry, content, header.stamp, header.limits, self.folded), position)
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
        if self.store:
            if isinstance(entry, GrantEntry):
                self._grants[digest] = entry.grant
            revoked = entry.revokes if isinstance(entry, RevokeEntry) else None
            self.authorities.take(entry, sequence, revoked, self._grants)
        return Replayed(entry, change, content)

    def _try(self, header: Header, check: Callable[[], None], position: int | None = None) -> None:
        """Ask a rule, and make its refusal a finding."""
        try:
            check()
        except RuleError as error:
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
        self._present.add(position)
        salt, data = stored
        if len(salt) != canonical.SALT_BYTES or canonical.commitment(salt, data) != sealed.commitment:
            self.find("content", sequence, f"the content of entry {position} was altered")
            return None
        try:
            content = entries.decode_content(data)
        except CorruptionError as error:
            self.find("content", sequence, f"entry {position}: {error.message}")
            return None
        text_bytes = len(content.text.encode()) if content.text is not None else 0
        if (sealed.bytes, sealed.text_bytes) != (len(data), text_bytes):
            self.find("content", sequence, f"the sizes of entry {position} are not those of its content")
        return content

    def _judge_genesis(self, entry: GenesisEntry, header: Header) -> None:
        made = self.authorities.made.get(self.namespace)
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

    def _judge_stamp(self, header: Header) -> None:
        """A namespace's commit names a grant that stood at its point of the store chain and allows it."""
        if self.store:
            if header.store is not None:
                self.find("store", header.sequence, "names itself")
            return
        point, stamp = header.store, header.stamp
        if point is None or not (
            point.sequence < len(self.authorities.commits) and self.authorities.commits[point.sequence] == point.id
        ):
            self.find("store", header.sequence, "does not name a commit of the store chain")
            return
        before = None if self.head is None else self.head.header.store
        if before is not None and before.sequence > point.sequence:
            self.find("store", header.sequence, "names an older store commit than its parent")
        granted = self.authorities.grants.get(stamp.grant or "")
        made = self.authorities.made.get(self.namespace)
        if granted is None or made is None:
            self.find("grant", header.sequence, "names no grant of the store chain")
            return
        grant = granted.entry
        act = Act.CREATE if header.sequence == 0 else self._act
        place = Place(self.namespace, made.entry.scope, made.entry.owner)
        stands = granted.since <= point.sequence and (granted.until is None or granted.until > point.sequence)
        unexpired = grant.expires is None or grant.expires > stamp.at
        allowed = (grant.principal, grant.act) == (stamp.principal, act) and reaches(grant, place)
        if not (allowed and stands and unexpired and made.since <= point.sequence):
            self.find("grant", header.sequence, f"grant {grant.grant} did not allow this commit")

    def _judge_signer(self, header: Header) -> None:
        """A commit is signed by the key in force at its point of the store chain; of which some end there."""
        if self.store:
            before = max(header.sequence - 1, 0)
        elif header.store is None:
            return
        else:
            before = header.store.sequence
            self._close_keys(before)
        self._try(header, lambda: rules.check_signer(header.signer, self.authorities.key_at(before)))

    def _close_keys(self, sequence: int) -> None:
        """Note the head at which the keys ended that were retired up to a sequence of the store chain."""
        keys = self.authorities.keys
        while self._key < len(keys) and keys[self._key].since <= sequence:
            if self.head is not None:
                self.authorities.heads[self._key][self.namespace] = self.head.id
                if keys[self._key].entry.retires is not None:
                    self.lasts.add(self.head.sequence)
            self._key += 1

    def finish(self) -> None:
        """What only the end of the chain tells: a content is missing if and only if it was erased."""
        if self.store:
            self.lasts = {key.since for key in self.authorities.keys if key.entry.retires is not None}
        else:
            self._close_keys(len(self.authorities.commits))
        for position, sequence in self.missing:
            if self.ended.get(position, (0, 0))[1] != Ending.ERASED:
                self.find("missing", sequence, f"the content of entry {position} is gone, and no erasure explains it")
        for position, (sequence, ending) in self.ended.items():
            if ending == Ending.ERASED and position in self._present:
                self.find("content", sequence, f"the content of entry {position} is there, though it was erased")

    def leaves(self) -> Iterator[bytes]:
        """The leaves of the state tree as they stand now."""
        digests, stamps = bytes(self._digests), bytes(self._stamps)
        for position, sequence in enumerate(self._sequences):
            by, ending = self.ended.get(position, (0, 0))
            yield state.leaf(
                digests[32 * position : 32 * position + 32],
                stamps[32 * sequence : 32 * sequence + 32],
                sequence=sequence,
                ended_by=by,
                reason=ending,
            )

    @property
    def size(self) -> int:
        """How many entries were replayed."""
        return len(self._sequences)


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
