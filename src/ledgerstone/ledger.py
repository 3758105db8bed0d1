"""An opened store as all its callers share it, and the write block in which one caller's commits follow one another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ledgerstone.core import canonical, entries, rules
from ledgerstone.core.authority import LOCAL_GRANTS, Caller, Denial, Place
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    GenesisEntry,
    GrantEntry,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    RefusalEntry,
    Stamp,
    StorePoint,
)
from ledgerstone.core.rules import Admitted
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import LIBRARY_LIMITS, Act, AliasOf, NameOf, Origin, Refusal, Scope
from ledgerstone.errors import AuthorityError, CorruptionError, StoreError
from ledgerstone.identity import Identity, Target
from ledgerstone.reading import Chain, Heads, Reading
from ledgerstone.store.protocol import Store, Writer
from ledgerstone.writing import Batch

MAX_REFUSALS: Final = 256
READ_ONLY_HINT: Final = "name the key file by LEDGERSTONE_KEY_FILE; a key is never made for an existing store"


class DeniedError(Exception):
    """A denial on its way out of a block, so that it can be noted when nothing is held any more."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(denial.reason.value)
        self.denial = denial


class Ledger:
    """What every caller of one opened store shares: the store, the keys, proven heads, refusals not yet written.

    Refusals are counted in memory and written with the next ``flush``; a process that dies before loses at most
    those counts.
    """

    __slots__ = ("_lock", "_refusals", "clock", "entropy", "heads", "keyring", "store")

    def __init__(
        self, store: Store, keyring: Keyring, clock: Callable[[], int], entropy: Callable[[int], bytes]
    ) -> None:
        self.store = store
        self.keyring = keyring
        self.clock = clock
        self.entropy = entropy
        self.heads = Heads()
        self._refusals: dict[tuple[Act, Refusal, Scope, str | None, str | None], list[int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def reads(self, caller: Caller) -> Iterator[tuple[Reading, Identity]]:
        """One snapshot, read with proof, and the caller within it; whatever it was denied is noted."""
        with self._noting(caller) as denials, self.store.read() as reader:
            reading = Reading(reader, self.keyring, self.heads, self.clock())
            identity = Identity(reading, caller, denials)
            yield reading, identity

    @contextmanager
    def writes(self, caller: Caller) -> Iterator[Block]:
        """A write block; of one that is denied something, nothing remains but the note of it."""
        with self._noting(caller) as denials, self.store.write() as writer:
            yield Block(self, writer, caller, denials)

    @contextmanager
    def _noting(self, caller: Caller) -> Iterator[list[Denial]]:
        denials: list[Denial] = []
        try:
            yield denials
        except DeniedError as denied:
            denial = denied.denial
            denials.append(denial)
            raise AuthorityError(
                f"{caller.principal} may not {denial.act.value} in scope {denial.place.scope.value} "
                f"({denial.reason.value})",
                hint="see what is granted: ledgerstone grants",
            ) from None
        finally:
            for denial in denials:
                self._note(denial)

    def _note(self, denial: Denial) -> None:
        """Count a denial; past the limit of different ones only their number is kept."""
        place = denial.place
        with self._lock:
            key = (denial.act, denial.reason, place.scope, place.namespace, denial.principal)
            if key not in self._refusals and len(self._refusals) >= MAX_REFUSALS:
                key = (denial.act, denial.reason, Scope.STORE, None, None)
            now = self.clock()
            seen = self._refusals.setdefault(key, [0, now, now])
            seen[0] += 1
            seen[2] = max(seen[2], now)

    def flush(self, caller: Caller) -> None:
        """Write the noted refusals to the store chain; without a signing key they stay noted."""
        if self.keyring.signer is None or not self._refusals:
            return
        with self._lock:
            noted, self._refusals = self._refusals, {}
        rows = [
            rules.plain(
                RefusalEntry(
                    act=act,
                    reason=reason,
                    count=count,
                    first=first,
                    last=last,
                    principal=principal,
                    scope=scope,
                    namespace=namespace,
                )
            )
            for (act, reason, scope, namespace, principal), (count, first, last) in noted.items()
        ]
        with self.store.write() as writer:
            block = Block(self, writer, caller, [])
            owner = owner_of(block.reading)
            for start in range(0, len(rows), MAX_REFUSALS):
                block.store_commit(rows[start : start + MAX_REFUSALS], principal=owner, origin=Origin.SYSTEM)

    def begin(self, caller: Caller) -> None:
        """Commit 0 of the store's own chain: its owner, its key and the owner's grants. Once; then nothing."""
        with self.store.write() as writer:
            if writer.first_chain() is not None:
                return
            signer = self.keyring.signer
            if signer is None:
                raise StoreError("a store is made with a signing key", hint="run: ledgerstone init")
            reading = Reading(writer, self.keyring, self.heads, self.clock())
            principal = canonical.identifier("prn", self.entropy(10))
            batch = Batch(
                reading,
                None,
                namespace=canonical.identifier("ns", self.entropy(10)),
                stamp=Stamp(at=reading.now, principal=principal, origin=Origin.SYSTEM),
                limits=LIBRARY_LIMITS,
                store=None,
            )
            batch.add(rules.plain(GenesisEntry(scope=Scope.STORE, nonce=self.entropy(16), owner=principal)))
            batch.add(rules.plain(KeyEntry(key=signer, public=self.keyring.public[signer])))
            batch.add(
                rules.with_content(
                    lambda sealed: NameEntry(id=principal, of=NameOf.PRINCIPAL, content=sealed),
                    Content(name=caller.principal),
                    self.entropy(32),
                )
            )
            for act, scope in LOCAL_GRANTS:
                grant = canonical.identifier("grt", self.entropy(10))
                batch.add(rules.plain(GrantEntry(grant=grant, principal=principal, act=act, scope=scope)))
            batch.append(writer, self.keyring)


def owner_of(reading: Reading) -> str:
    """The principal that the store was made for."""
    data = reading.reader.entry(reading.store.number, 0)
    entry = entries.decode_entry(data) if data is not None else None
    if not isinstance(entry, GenesisEntry) or entry.owner is None:
        raise CorruptionError("the store's first entry is not its beginning")
    return entry.owner


class Block:
    """One write block: the snapshot under the lock, the caller within it, and what it takes to commit.

    ``made`` says that the block made a namespace.
    """

    __slots__ = ("_ledger", "identity", "made", "reading", "writer")

    def __init__(self, ledger: Ledger, writer: Writer, caller: Caller, denials: list[Denial]) -> None:
        if ledger.keyring.signer is None:
            raise StoreError("this store is open read-only: there is no signing key", hint=READ_ONLY_HINT)
        self._ledger = ledger
        self.writer = writer
        self.reading = Reading(writer, ledger.keyring, ledger.heads, ledger.clock())
        self.identity = Identity(self.reading, caller, denials)
        self.made = False

    @property
    def principal(self) -> str:
        """The caller's id; whoever holds a grant has one."""
        if self.identity.principal is None:
            raise CorruptionError("a grant for a principal that has no name")
        return self.identity.principal

    def authorize(self, act: Act, place: Place, where: Chain | None = None) -> GrantEntry:
        """The grant that allows an act at the time its commit will have; DeniedError without one."""
        grant = self.identity.allowed(act, place, self._at(where))
        if isinstance(grant, Refusal):
            raise DeniedError(Denial(act, grant, place, self.identity.principal))
        return grant

    def _at(self, where: Chain | None) -> int:
        """The time of a commit: the clock's, but never before the parent's."""
        return self.reading.now if where is None else max(self.reading.now, where.head.header.stamp.at)

    def point(self) -> StorePoint:
        """Where the store chain stands."""
        head = self.reading.store.head
        return StorePoint(sequence=head.sequence, id=head.id)

    def named(self, content: Content, make: Callable[[entries.Sealed], entries.Entry]) -> Admitted:
        """An entry around a content, under a fresh salt."""
        return rules.with_content(make, content, self._ledger.entropy(32))

    def name(self, of: NameOf, prefix: str, name: str, owner: str | None = None) -> tuple[str, Admitted]:
        """A new opaque id for a name, and the entry that says so."""
        opaque = canonical.identifier(prefix, self._ledger.entropy(10))
        return opaque, self.named(
            Content(name=name), lambda sealed: NameEntry(id=opaque, of=of, content=sealed, owner=owner)
        )

    def alias(self, namespace: str, of: AliasOf, value: str) -> Admitted:
        """The entry that makes a remote or a path suggest a namespace."""
        return self.named(Content(name=value), lambda sealed: AliasEntry(namespace=namespace, of=of, content=sealed))

    def store_commit(
        self, admitted: Sequence[Admitted], *, principal: str, origin: Origin, grant: str | None = None
    ) -> None:
        """One commit of the store's own chain."""
        store = self.reading.store
        stamp = Stamp(at=self._at(store), principal=principal, origin=origin, grant=grant)
        batch = Batch(self.reading, store, namespace=store.namespace, stamp=stamp, limits=LIBRARY_LIMITS, store=None)
        for one in admitted:
            batch.add(one)
        batch.append(self.writer, self._ledger.keyring)

    def settle(self, target: Target) -> tuple[Chain, Stamp]:
        """Authorise a write to a target, make what it needs (namespace, names of session and host), and stamp it."""
        identity, caller, place = self.identity, self.identity.caller, target.place
        # What is written next is signed: it must not rest on rows that somebody took away.
        self.reading.catalogued()
        where = None if place.namespace is None else identity.chain(place.namespace)
        if where is not None:
            self.reading.counted(where)
        create = self.authorize(Act.CREATE, place) if where is None else None
        grant = self.authorize(Act.WRITE, place, where)
        principal = self.principal
        session, host = identity.session_id, identity.host_id
        new: list[Admitted] = []
        if session is None and caller.session is not None:
            session, entry = self.name(NameOf.SESSION, "ses", caller.session, principal)
            new.append(entry)
        if host is None and caller.host is not None:
            host, entry = self.name(NameOf.HOST, "hst", caller.host)
            new.append(entry)
        begin = self._namespace(target, new) if where is None else None
        if new:
            self.store_commit(
                new, principal=principal, origin=caller.origin, grant=create.grant if create is not None else None
            )
        if where is None and begin is not None and create is not None:
            where = self._begin(begin, principal, create.grant)
        if where is None:  # pragma: no cover - without a chain both were given
            raise CorruptionError("a target without a chain")
        return where, Stamp(
            at=self._at(where),
            principal=principal,
            origin=caller.origin,
            grant=grant.grant,
            session=session,
            host=host,
            binding=target.binding,
        )

    def _namespace(self, target: Target, new: list[Admitted]) -> NamespaceEntry:
        """Add the entries of a new namespace and of what suggests it."""
        place = target.place
        namespace = canonical.identifier("ns", self._ledger.entropy(10))
        nonce = self._ledger.entropy(16)

        def make(sealed: entries.Sealed | None) -> NamespaceEntry:
            return NamespaceEntry(
                namespace=namespace, scope=place.scope, nonce=nonce, owner=place.owner, content=sealed
            )

        new.append(self.named(Content(name=target.name), make))
        for of, value in ((AliasOf.REMOTE, target.remote), (AliasOf.PATH, target.path)):
            if value is not None:
                new.append(self.alias(namespace, of, value))
        return make(None)

    def _begin(self, made: NamespaceEntry, principal: str, grant: str) -> Chain:
        """Commit 0 of a new namespace."""
        self.made = True
        stamp = Stamp(at=self._at(None), principal=principal, origin=self.identity.caller.origin, grant=grant)
        batch = Batch(
            self.reading, None, namespace=made.namespace, stamp=stamp, limits=LIBRARY_LIMITS, store=self.point()
        )
        batch.add(rules.plain(GenesisEntry(scope=made.scope, nonce=made.nonce, owner=made.owner)))
        return batch.append(self.writer, self._ledger.keyring)
