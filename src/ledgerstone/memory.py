"""Memory: one method a verb; the only place where deciding and acting meet."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledgerstone import auditing, verifying
from ledgerstone.core import canonical, entries, recall, rules
from ledgerstone.core.authority import LOCAL_GRANTS, Caller, Place
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    GenesisEntry,
    GrantEntry,
    Header,
    Idempotency,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    RefusalEntry,
    RevokeEntry,
    Stamp,
    StorePoint,
)
from ledgerstone.core.namespaces import choose_remote, readable, unknown
from ledgerstone.core.ranking import interleave
from ledgerstone.core.rules import Admitted, Writing
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    LIBRARY_LIMITS,
    MAX_IDEMPOTENCY_BYTES,
    MAX_LIST,
    MAX_QUERY_BYTES,
    MICROSECOND,
    Act,
    AliasOf,
    Budget,
    Draft,
    Ending,
    Event,
    Lane,
    Mode,
    NameOf,
    Origin,
    Page,
    Recall,
    Recalled,
    Record,
    Refusal,
    Remembered,
    Report,
    Scope,
    Standing,
    Trust,
)
from ledgerstone.errors import (
    AuthorityError,
    ConflictError,
    CorruptionError,
    NamespaceError,
    NotFoundError,
    StoreError,
    UsageError,
)
from ledgerstone.identity import Identity, Target, parse_target
from ledgerstone.reading import Chain, Heads, Proven, Reading
from ledgerstone.search import search
from ledgerstone.store import open_store
from ledgerstone.store.protocol import Store, Writer
from ledgerstone.writing import Batch

MAX_REFUSALS: Final = 256
DEFAULT: Final = Budget()


def _now() -> int:
    return time.time_ns() // 1000


class _Refused(Exception):
    """A denial on its way out of a block, so that it can be noted when nothing is held any more."""

    def __init__(self, act: Act, reason: Refusal, place: Place, principal: str | None) -> None:
        super().__init__(reason.value)
        self.act, self.reason, self.place, self.principal = act, reason, place, principal


class _Ledger:
    """What every caller of one opened store shares: the store, the keys, proven heads, refusals not yet written."""

    __slots__ = ("clock", "entropy", "heads", "keyring", "lock", "refusals", "store")

    def __init__(
        self, store: Store, keyring: Keyring, clock: Callable[[], int], entropy: Callable[[int], bytes]
    ) -> None:
        self.store = store
        self.keyring = keyring
        self.clock = clock
        self.entropy = entropy
        self.heads = Heads()
        self.refusals: dict[tuple[Act, Refusal, Scope, str | None, str | None], list[int]] = {}
        self.lock = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self.store.read() as reader:
            yield Reading(reader, self.keyring, self.heads, self.clock())

    def refuse(self, refused: _Refused) -> None:
        """Note a denial; equal ones are counted, and past the limit only their number is kept."""
        place = refused.place
        with self.lock:
            key = (refused.act, refused.reason, place.scope, place.namespace, refused.principal)
            if key not in self.refusals and len(self.refusals) >= MAX_REFUSALS:
                key = (refused.act, refused.reason, Scope.STORE, None, None)
            now = self.clock()
            seen = self.refusals.setdefault(key, [0, now, now])
            seen[0] += 1
            seen[2] = max(seen[2], now)


class _Writer:
    """One write block: the snapshot under the lock, the caller within it, and commits that follow one another."""

    __slots__ = ("_ledger", "identity", "made", "reading", "writer")

    def __init__(self, ledger: _Ledger, writer: Writer, caller: Caller) -> None:
        if ledger.keyring.signer is None:
            raise StoreError("this store is open read-only: there is no signing key", hint="name the key file")
        self._ledger = ledger
        self.writer = writer
        self.reading = Reading(writer, ledger.keyring, ledger.heads, ledger.clock())
        self.identity = Identity(self.reading, caller)
        self.made = False

    def authorize(self, act: Act, place: Place) -> GrantEntry:
        grant = self.identity.allowed(act, place)
        if isinstance(grant, Refusal):
            raise _Refused(act, grant, place, self.identity.principal)
        return grant

    def at(self, where: Chain | None) -> int:
        """The time of a commit: the clock's, but never before the parent's."""
        return self.reading.now if where is None else max(self.reading.now, where.head.header.stamp.at)

    def _store_stamp(self, principal: str, origin: Origin, grant: str | None = None) -> Stamp:
        return Stamp(at=self.at(self.reading.store), principal=principal, origin=origin, grant=grant)

    def name(self, of: NameOf, prefix: str, name: str, owner: str | None = None) -> Admitted:
        """The entry that lets a new opaque id stand for a name."""
        new = canonical.identifier(prefix, self._ledger.entropy(10))
        return rules.with_content(
            lambda sealed: NameEntry(id=new, of=of, content=sealed, owner=owner),
            Content(name=name),
            self._ledger.entropy(32),
        )

    def store_commit(
        self, admitted: Sequence[Admitted], *, principal: str, origin: Origin, grant: str | None = None
    ) -> None:
        """One commit of the store's own chain."""
        store = self.reading.store
        batch = Batch(
            self.reading,
            store,
            namespace=store.namespace,
            stamp=self._store_stamp(principal, origin, grant),
            limits=LIBRARY_LIMITS,
        )
        for one in admitted:
            batch.add(one)
        batch.append(self.writer, self._ledger.keyring, store=None)

    def point(self) -> StorePoint:
        head = self.reading.store.head
        return StorePoint(sequence=head.sequence, id=head.id)

    def settle(self, target: Target, act: Act = Act.WRITE) -> tuple[Chain, GrantEntry, Stamp]:
        """Authorise a write, make what it needs (namespace, names), and stamp it."""
        identity, caller = self.identity, self.identity.caller
        new: list[Admitted] = []
        place = target.place
        if place.namespace is None:
            create = self.authorize(Act.CREATE, place)
            self.authorize(act, place)
        else:
            create = None
        grant = create if create is not None else self.authorize(act, place)
        principal = identity.principal
        if principal is None:  # pragma: no cover - a grant names a principal that exists
            raise CorruptionError("a grant for nobody")
        session, host = identity.session_id, identity.host_id
        if session is None and caller.session is not None:
            new.append(self.name(NameOf.SESSION, "ses", caller.session, principal))
            session = _id(new[-1])
        if host is None and caller.host is not None:
            new.append(self.name(NameOf.HOST, "hst", caller.host))
            host = _id(new[-1])
        nonce = self._ledger.entropy(16)
        namespace = place.namespace or canonical.identifier("ns", self._ledger.entropy(10))
        if place.namespace is None:
            self.reading.catalogued()
            new.append(
                rules.with_content(
                    lambda sealed: NamespaceEntry(
                        namespace=namespace, scope=place.scope, nonce=nonce, owner=place.owner, content=sealed
                    ),
                    Content(name=target.name),
                    self._ledger.entropy(32),
                )
            )
            new += self.aliases(namespace, remote=target.remote, path=target.path)
        if new:
            self.store_commit(new, principal=principal, origin=caller.origin, grant=grant.grant if create else None)
        if place.namespace is None:
            self.made = True
            where = self._genesis(namespace, place, nonce, principal, grant.grant)
            grant = self.authorize(act, Place(namespace, place.scope, place.owner))
        else:
            where = identity.chain(namespace)
        stamp = Stamp(
            at=self.at(where),
            principal=principal,
            origin=caller.origin,
            grant=grant.grant,
            session=session,
            host=host,
            binding=target.binding,
        )
        return where, grant, stamp

    def aliases(self, namespace: str, *, remote: str | None, path: str | None) -> list[Admitted]:
        """The entries that make a remote and a path suggest a namespace."""
        found = []
        for of, value in ((AliasOf.REMOTE, remote), (AliasOf.PATH, path)):
            if value is not None:
                found.append(
                    rules.with_content(
                        lambda sealed, of=of: AliasEntry(namespace=namespace, of=of, content=sealed),  # type: ignore[misc]
                        Content(name=value),
                        self._ledger.entropy(32),
                    )
                )
        return found

    def _genesis(self, namespace: str, place: Place, nonce: bytes, principal: str, grant: str) -> Chain:
        stamp = Stamp(at=self.at(None), principal=principal, origin=self.identity.caller.origin, grant=grant)
        batch = Batch(self.reading, None, namespace=namespace, stamp=stamp, limits=LIBRARY_LIMITS)
        batch.add(rules.plain(GenesisEntry(scope=place.scope, nonce=nonce, owner=place.owner)))
        return batch.append(self.writer, self._ledger.keyring, store=self.point())


def _id(admitted: Admitted) -> str:
    entry = admitted.entry
    if not isinstance(entry, NameEntry):  # pragma: no cover - only names are asked
        raise TypeError("not a name")
    return entry.id


class _Place(NamedTuple):
    """A record found for a caller: its chain, its scope and its position."""

    where: Chain
    scope: Scope
    position: int


class Memory:
    """A store as one caller sees it. Every method is one transaction; none of them trusts what it reads.

    ``Memory.open`` gives one; ``bind`` gives another for another caller of the same store. May be shared by
    threads, not by forked processes. Used in a ``with`` block it closes the store at the end.
    """

    __slots__ = ("_ledger", "caller")

    def __init__(self, ledger: _Ledger, caller: Caller) -> None:
        self._ledger = ledger
        self.caller = caller

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        keys: Keyring,
        caller: Caller,
        create: bool = False,
        clock: Callable[[], int] = _now,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Memory:
        """Open the store in a file; with ``create`` make it when there is none, and its owner the caller.

        ``clock`` gives microseconds UTC, ``entropy`` that many random bytes. Raises UnavailableError when there is
        no store, FormatError for a foreign or newer file, CorruptionError when what it holds fails its proof.
        """
        store = open_store(path, create=create)
        memory = cls(_Ledger(store, keys, clock, entropy), caller)
        try:
            if create:
                memory._begin()
            with memory._ledger.reading():
                pass
        except BaseException:
            store.close()
            raise
        return memory

    def _begin(self) -> None:
        """Commit 0 of the store's own chain: its owner, its key and the owner's grants. Once; then nothing."""
        ledger = self._ledger
        with ledger.store.write() as writer:
            if writer.first_chain() is not None:
                return
            if ledger.keyring.signer is None:
                raise StoreError("a store is made with a signing key", hint="run: ledgerstone init")
            principal = canonical.identifier("prn", ledger.entropy(10))
            admitted = [
                rules.plain(GenesisEntry(scope=Scope.STORE, nonce=ledger.entropy(16), owner=principal)),
                rules.plain(KeyEntry(key=ledger.keyring.signer, public=ledger.keyring.public[ledger.keyring.signer])),
                rules.with_content(
                    lambda sealed: NameEntry(id=principal, of=NameOf.PRINCIPAL, content=sealed),
                    Content(name=self.caller.principal),
                    ledger.entropy(32),
                ),
            ]
            admitted += [
                rules.plain(
                    GrantEntry(
                        grant=canonical.identifier("grt", ledger.entropy(10)),
                        principal=principal,
                        act=act,
                        scope=scope,
                    )
                )
                for act, scope in LOCAL_GRANTS
            ]
            namespace = canonical.identifier("ns", ledger.entropy(10))
            stamp = Stamp(at=ledger.clock(), principal=principal, origin=Origin.SYSTEM)
            reading = Reading(writer, ledger.keyring, ledger.heads, ledger.clock())
            batch = Batch(reading, None, namespace=namespace, stamp=stamp, limits=LIBRARY_LIMITS)
            for one in admitted:
                batch.add(one)
            batch.append(writer, ledger.keyring, store=None)

    def bind(self, caller: Caller) -> Memory:
        """The same store for another caller."""
        return Memory(self._ledger, caller)

    def close(self) -> None:
        """Write the refusals that were noted, and give the store back."""
        try:
            self._flush()
        finally:
            self._ledger.store.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reads(self) -> Iterator[tuple[Reading, Identity]]:
        with self._ledger.reading() as reading:
            yield reading, Identity(reading, self.caller)

    @contextmanager
    def _writes(self, *, speak: bool = True) -> Iterator[_Writer]:
        """A write block; a denial inside it is noted for the audit trail, and nothing of the block remains."""
        try:
            with self._ledger.store.write() as writer:
                yield _Writer(self._ledger, writer, self.caller)
        except _Refused as refused:
            self._ledger.refuse(refused)
            scope = refused.place.scope.value
            if not speak:
                raise NotFoundError("no such memory here") from None
            raise AuthorityError(
                f"{self.caller.principal} may not {refused.act.value} in scope {scope} ({refused.reason.value})",
                hint="see what is granted: ledgerstone grants",
            ) from None

    def remember(
        self,
        draft: Draft | str,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Commit one memory durably and return it as committed.

        A text alone is a note. Raises RuleError when a rule is broken, ConflictError when what it replaces is no
        longer current or the idempotency key came with other content, NamespaceError when no project is resolved,
        AuthorityError without a grant. Nothing is half-done.
        """
        return self.remember_many([draft], scope=scope, namespace=namespace, idempotency_key=idempotency_key)[0]

    def remember_many(
        self,
        drafts: Sequence[Draft | str],
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[Remembered, ...]:
        """Commit several memories in one commit: all of them or none. At most ``caller.limits.drafts``."""
        asked = tuple(Draft(text=draft) if isinstance(draft, str) else draft for draft in drafts)
        rules.check_drafts(asked, self.caller.limits)
        wire = [_fingerprint_of(draft) for draft in asked]
        with self._writes() as block:
            target = block.identity.target(scope, namespace)
            repeated = self._repeated(block, target, idempotency_key, "remember", wire)
            if repeated is not None:
                return repeated
            where, _, stamp = block.settle(target)
            batch = Batch(block.reading, where, namespace=where.namespace, stamp=stamp, limits=self.caller.limits)
            writing = self._writing(where.namespace, stamp.origin)
            for draft in asked:
                batch.add(rules.enter(draft, writing, batch.facts))
            return self._committed(block, batch, target, idempotency_key, "remember", wire)

    def _writing(self, namespace: str, origin: Origin) -> Writing:
        secret = self._secret(namespace)

        def tombstone(key: str | None, text: str) -> bytes:
            value = canonical.encode([key, rules.normal_value(text)])
            return canonical.keyed(secret, b"tombstone", value)

        return Writing(origin, self.caller.limits, self._ledger.entropy, tombstone)

    def _secret(self, namespace: str) -> bytes:
        secret = self._ledger.keyring.secret(namespace)
        if secret is None:
            raise StoreError("this store is open read-only: there is no signing key", hint="name the key file")
        return secret

    def _named_write(self, namespace: str, key: str, verb: str, wire: Any) -> Idempotency:
        canonical.text(key, name="idempotency_key", least=1, most=MAX_IDEMPOTENCY_BYTES)
        secret = self._secret(namespace)
        return Idempotency(
            key=canonical.keyed(secret, b"idempotency-key", key.encode()),
            content=canonical.keyed(secret, b"idempotency-content", canonical.encode([verb, wire])),
        )

    def _repeated(
        self, block: _Writer, target: Target, key: str | None, verb: str, wire: Any
    ) -> tuple[Remembered, ...] | None:
        """The first answer to a write that comes again; ConflictError when it comes with other content."""
        if key is None or target.place.namespace is None:
            return None
        block.authorize(Act.WRITE, target.place)
        where = block.identity.chain(target.place.namespace)
        named = self._named_write(where.namespace, key, verb, wire)
        sequence = block.writer.idempotent(where.number, named.key)
        if sequence is None:
            return None
        header = _header(block.reading, where, sequence)
        if header.idempotency is None or header.idempotency.key != named.key:
            raise CorruptionError(f"{where.namespace}: commit {sequence} is not the write it is listed as")
        if header.idempotency.content != named.content:
            raise ConflictError(
                f"idempotency key: already used in commit {sequence} with other content",
                hint="repeat the first content exactly, or take a new key",
            )
        first = header.counts.entries - len(header.entries)
        return self._answers(block, where, target, range(first, header.counts.entries), header, sequence, repeated=True)

    def _committed(
        self, block: _Writer, batch: Batch, target: Target, key: str | None, verb: str, wire: Any
    ) -> tuple[Remembered, ...]:
        idempotency = None
        if key is not None and batch.where is not None:
            idempotency = self._named_write(batch.where.namespace, key, verb, wire)
        where = batch.append(block.writer, self._ledger.keyring, store=block.point(), idempotency=idempotency)
        positions = range(batch.first, where.head.counts.entries)
        return self._answers(block, where, target, positions, where.head.header, where.head.sequence, repeated=False)

    def _answers(
        self,
        block: _Writer,
        where: Chain,
        target: Target,
        positions: range,
        header: Header,
        sequence: int,
        *,
        repeated: bool,
    ) -> tuple[Remembered, ...]:
        """What was committed, read back from the rows that were just written and proven like any read."""
        scope = target.place.scope
        commit = canonical_id(header)
        answers = []
        for position in positions:
            record = _record(block.reading, where, scope, position)
            replaced = None
            if record.version > 1:
                replaced = self._version(block.reading, where, scope, record.memory, record.version - 1)
            answers.append(
                Remembered(
                    record=record,
                    commit=commit,
                    sequence=sequence,
                    repeated=repeated,
                    replaced=replaced,
                    created_namespace=block.made,
                )
            )
        return tuple(answers)

    def _version(self, reading: Reading, where: Chain, scope: Scope, memory: str, version: int) -> Record | None:
        for number, position, found in reading.reader.versions(memory):
            if (number, found) == (where.number, version):
                return reading.record(where, scope, position)
        return None

    def get(self, target: str) -> Record:
        """One record by memory id (its newest version), address or digest, exactly as it was given.

        Looks in the namespaces this caller is bound to and may read; what is not there, and what the caller may
        not know of, is the same NotFoundError.
        """
        wanted = parse_target(target)
        with self._reads() as (reading, identity):
            visible, _ = identity.visible()
            found = self._find(reading, visible, wanted)
            if found is None:
                for where, _ in visible:
                    reading.counted(where)
                raise NotFoundError(f"no memory {target} here")
            return _record(reading, found.where, found.scope, found.position)

    def _find(
        self, reading: Reading, visible: list[tuple[Chain, Place]], wanted: tuple[str, int | None] | bytes
    ) -> _Place | None:
        chains = {where.number: (where, place.scope) for where, place in visible}
        if isinstance(wanted, bytes):
            for number, position in reading.reader.digests(wanted):
                if number in chains:
                    return _Place(*chains[number], position)
            return None
        memory, version = wanted
        rows = [row for row in reading.reader.versions(memory) if row[0] in chains]
        if version is not None:
            rows = [row for row in rows if row[2] == version]
        if not rows:
            return None
        number, position, _ = rows[-1]
        where, scope = chains[number]
        if version is None:
            self._newest(reading, where, position)
        return _Place(where, scope, position)

    def _newest(self, reading: Reading, where: Chain, position: int) -> None:
        """The highest version must not say that another one followed it."""
        known = reading.known(where, position)
        if known is None:
            raise CorruptionError(f"{where.namespace}: entry {position} is no version of a memory")
        followed = known.ending in {Ending.SUPERSEDED, Ending.CLOSED} or (
            known.ending is Ending.RETRACTED and known.status.value != "retracted"
        )
        if followed:
            raise CorruptionError(
                f"{where.namespace}: what ended {canonical.address(known.memory, known.version)} is missing"
            )

    def history(self, memory: str) -> tuple[Record, ...]:
        """All versions of a memory, oldest first, each with its standing."""
        wanted = parse_target(memory)
        with self._reads() as (reading, identity):
            visible, _ = identity.visible()
            found = self._find(reading, visible, wanted)
            if found is None:
                for where, _ in visible:
                    reading.counted(where)
                raise NotFoundError(f"no memory {memory} here")
            named = reading.known(found.where, found.position)
            if named is None:  # pragma: no cover - _find gives positions of versions
                raise CorruptionError(f"{found.where.namespace}: entry {found.position} is no version")
            rows = [row for row in reading.reader.versions(named.memory) if row[0] == found.where.number]
            self._newest(reading, found.where, rows[-1][1])
            if [version for _, _, version in rows] != list(range(1, len(rows) + 1)):
                raise CorruptionError(f"{found.where.namespace}: a version of {named.memory} is missing")
            return tuple(_record(reading, found.where, found.scope, position) for _, position, _ in rows)

    def close_task(self, target: str, *, reason: str | None = None, idempotency_key: str | None = None) -> Remembered:
        """Close an open task; its text stays as it was, its next version says closed."""
        return self._end(target, reason, idempotency_key, "close", reject=False)

    def retract(
        self,
        target: str,
        *,
        reason: str,
        reject: bool = False,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Withdraw a memory: it leaves recall, history keeps it.

        With ``reject`` its value is remembered as wrong: said again under the same key, it does not become current
        unless the user says it.
        """
        return self._end(target, reason, idempotency_key, "retract", reject=reject)

    def _end(self, target: str, reason: str | None, key: str | None, verb: str, *, reject: bool) -> Remembered:
        wanted = parse_target(target)
        wire = [target, reason, reject]
        with self._writes(speak=False) as block:
            reading = block.reading
            visible, _ = block.identity.visible()
            found = self._find(reading, visible, wanted)
            if found is None:
                raise NotFoundError(f"no memory {target} here")
            place = block.identity.place(found.where.namespace)
            if place is None:  # pragma: no cover - visible chains have places
                raise unknown(found.where.namespace)
            where_target = Target(place, None, "")
            repeated = self._repeated(block, where_target, key, verb, wire)
            if repeated is not None:
                return repeated[0]
            where, _, stamp = block.settle(where_target)
            known = reading.known(where, found.position)
            version = reading.version(where, found.position)
            if known is None or version is None:  # pragma: no cover - _find gives positions of versions
                raise NotFoundError(f"no memory {target} here")
            batch = Batch(reading, where, namespace=where.namespace, stamp=stamp, limits=self.caller.limits)
            writing = self._writing(where.namespace, stamp.origin)
            text = version[2]
            if verb == "close":
                batch.add(rules.close(known, writing, reason), text_of=text)
            else:
                tombstone = None
                if reject:
                    if text is None or text.text is None:
                        rules.refuse("reject", "an erased value cannot be rejected")
                    tombstone = writing.tombstone(known.key, text.text)
                batch.add(rules.retract(known, writing, reason, tombstone))
            return self._committed(block, batch, where_target, key, verb, wire)[0]

    def recall(
        self,
        query: str = "",
        *,
        mode: Mode = Mode.BALANCED,
        budget: Budget = DEFAULT,
    ) -> Recall:
        """A context for a query within a budget: every open task, then lexical and recent lanes interleaved.

        Only what is current, unexpired and at or above the caller's trust floor; nothing is cut, and what was left
        out is counted by reason. Modes lexical and recent are baselines without the tasks. Raises CapacityError
        when the open tasks alone do not fit.
        """
        if query:
            canonical.text(query, name="query", least=1, most=MAX_QUERY_BYTES)
        recall.check_budget(budget)
        with self._reads() as (reading, identity):
            visible, problems = identity.visible()
            for where, _ in visible:
                reading.counted(where)
            places = {where.namespace: (where, place.scope) for where, place in visible}
            tasks = self._tasks(reading, visible) if mode is Mode.BALANCED else []
            lexical: list[tuple[str, int, Lane, int | None]] = []
            recent: list[tuple[str, int, Lane, int | None]] = []
            omitted: dict[str, int] = {}
            notices = [f"{scope}: {problem}" for scope, problem in problems.items()]
            if mode is not Mode.RECENT:
                lexical = self._lexical(reading, visible, query, budget, omitted, notices)
            if mode is not Mode.LEXICAL:
                recent = self._recent(reading, visible, budget)
            best = {(name, position): score for name, position, _, score in lexical}
            lanes = [[(name, position) for name, position, _, _ in lane] for lane in (lexical, recent) if lane]

            def prove(candidate: tuple[str, int], rank: int) -> Recalled | str:
                where, scope = places[candidate[0]]
                record = _record(reading, where, scope, candidate[1])
                if record.standing not in _RECALLED:
                    return record.standing.value
                if record.trust < self.caller.floor:
                    raise CorruptionError(f"{where.namespace}: the trust of {record.address} is not what its row says")
                lane = Lane.LEXICAL if candidate in best else Lane.RECENT
                return Recalled(record=record, lane=lane, rank=rank, score=best.get(candidate))

            chosen, left_out, used = recall.select(
                tasks, interleave(*lanes), prove, budget=budget, overhead=recall.envelope(notices)
            )
            for reason, count in left_out.items():
                omitted[reason] = omitted.get(reason, 0) + count
            return Recall(
                mode=mode,
                query=query,
                items=chosen,
                heads={where.namespace: (where.head.sequence, where.head.id) for where, _ in visible},
                budget=budget,
                bytes=used,
                omitted=omitted,
                notices=tuple(notices),
            )

    def _tasks(self, reading: Reading, visible: list[tuple[Chain, Place]]) -> list[Recalled]:
        """Every obligation; exactly as many as the heads sign for."""
        tasks: list[Recalled] = []
        for where, place in visible:
            expected = where.head.counts.open
            positions = reading.reader.tasks(where.number, DEFAULT_FLOOR.value, expected + 1)
            if len(positions) != expected:
                raise CorruptionError(
                    f"{where.namespace}: {len(positions)} open tasks where the head signs for {expected}"
                )
            for position in positions:
                record = _record(reading, where, place.scope, position)
                if not recall.is_obligation(record) and record.standing is not Standing.EXPIRED:
                    raise CorruptionError(f"{where.namespace}: {record.address} is not the open task its row says")
                if record.trust >= self.caller.floor and record.standing is not Standing.EXPIRED:
                    tasks.append(Recalled(record=record, lane=Lane.TASKS, rank=len(tasks)))
        return tasks

    def _lexical(
        self,
        reading: Reading,
        visible: list[tuple[Chain, Place]],
        query: str,
        budget: Budget,
        omitted: dict[str, int],
        notices: list[str],
    ) -> list[tuple[str, int, Lane, int | None]]:
        scored: list[tuple[int, int, int, str]] = []
        for order, (where, _) in enumerate(visible):
            found = search(
                reading.reader,
                where.number,
                query,
                limit=budget.candidates,
                floor=self.caller.floor.value,
                now=reading.now,
            )
            scored += [(-hit.score, order, -hit.position, where.namespace) for hit in found.hits]
            for reason, count in found.omitted.items():
                omitted[reason] = omitted.get(reason, 0) + count
            notices += found.notices
        scored.sort()
        return [(name, -position, Lane.LEXICAL, -score) for score, _, position, name in scored[: budget.candidates]]

    def _recent(
        self, reading: Reading, visible: list[tuple[Chain, Place]], budget: Budget
    ) -> list[tuple[str, int, Lane, int | None]]:
        lanes = []
        for where, _ in visible:
            lane: list[tuple[str, int, Lane, int | None]] = []
            rows = reading.reader.recent(where.number, before=None, limit=2 * budget.candidates, every=False)
            covered = reading.reader.covered(where.number, rows)
            for position in rows:
                row = reading.reader.candidate(where.number, position)
                standing = row is not None and (row.expires is None or row.expires > reading.now)
                if standing and row is not None and row.trust >= self.caller.floor and position not in covered:
                    lane.append((where.namespace, position, Lane.RECENT, None))
            lanes.append(lane[: budget.candidates])
        return interleave(*lanes)[: budget.candidates]

    def list_records(self, what: str = "recent", *, cursor: str | None = None, limit: int = 20) -> Page:
        """A page of what this caller may see, most specific namespace first, newest first within each.

        ``what``: tasks (open ones), recent (what stands) or all (every version, with its standing). ``cursor``
        continues a page. At most 100 a page.
        """
        if what not in {"tasks", "recent", "all"}:
            raise UsageError(f"list: tasks, recent or all, not {what!r}")
        if not 1 <= limit <= MAX_LIST:
            raise UsageError(f"limit: 1 to {MAX_LIST}, not {limit}")
        with self._reads() as (reading, identity):
            visible, _ = identity.visible()
            for where, _ in visible:
                reading.counted(where)
            start, before = _parse_cursor(cursor, visible)
            found: list[Record] = []
            last = 0
            for index, (where, place) in enumerate(visible[start:], start):
                bound = before if index == start else None
                while True:
                    rows = self._rows(reading, where, what, bound, limit)
                    for position in rows:
                        record = _record(reading, where, place.scope, position)
                        bound = position
                        if what != "all" and not self._listable(record):
                            continue
                        if len(found) == limit:
                            return Page(tuple(found), f"{where.namespace}:{last}")
                        found.append(record)
                        last = position
                    if len(rows) < limit + 1:
                        break
            return Page(tuple(found), None)

    def _rows(self, reading: Reading, where: Chain, what: str, before: int | None, limit: int) -> list[int]:
        if what != "tasks":
            return reading.reader.recent(where.number, before=before, limit=limit + 1, every=what == "all")
        rows = reading.reader.tasks(where.number, Trust.UNKNOWN.value, 1 << 20)
        return [row for row in reversed(rows) if before is None or row < before][: limit + 1]

    def _listable(self, record: Record) -> bool:
        return record.standing in _LISTED and record.trust >= self.caller.floor

    def audit(self, *, target: str | None = None, limit: int = 50, before: int | None = None) -> tuple[Event, ...]:
        """The newest events of what this caller may read, and its own refusals, newest first.

        ``target`` keeps to one memory; ``before`` continues below a sequence. The chain is walked from the signed
        head, so that an event is proven by its links.
        """
        self._flush()
        if not 1 <= limit <= MAX_LIST * 10:
            raise UsageError(f"limit: 1 to {MAX_LIST * 10}, not {limit}")
        with self._reads() as (reading, identity):
            visible, _ = identity.visible()
            memory = None if target is None else canonical.parse_address(target)[0]
            chains = [where for where, _ in visible]
            if memory is not None:
                numbers = {number for number, _, _ in reading.reader.versions(memory)}
                chains = [where for where in chains if where.number in numbers]
                if not chains:
                    raise NotFoundError(f"no memory {target} here")
            events = [
                event
                for where in chains
                for event in auditing.events(reading, where, memory=memory, limit=limit, before=before)
            ]
            if memory is None:
                store = reading.store
                everything = isinstance(
                    identity.allowed(Act.ADMIN, Place(store.namespace, Scope.STORE, None)), GrantEntry
                )
                events += [
                    event
                    for event in auditing.events(reading, store, memory=None, limit=limit, before=before)
                    if everything or (event.refusal is not None and event.principal == self.caller.principal)
                ]
            events.sort(key=lambda event: (-event.at, event.namespace, -event.sequence, event.id))
            return tuple(events[:limit])

    def verify(self) -> Report:
        """Replay every chain under the rules that admitted it and compare whatever is derived: all faults at once."""
        self._flush()
        with self._ledger.store.read() as reader:
            return verifying.verify(reader, self._ledger.keyring)

    def rebuild(self) -> Report:
        """Replay every chain and write its derived rows anew; no head moves.

        Raises CorruptionError, and changes nothing, when canonical history is damaged.
        """
        with self._ledger.store.write() as writer:
            report = verifying.rebuild(writer, self._ledger.keyring)
        self._ledger.heads = Heads()
        return report

    def _flush(self) -> None:
        """Write the noted refusals to the store chain; without a signing key they stay noted."""
        ledger = self._ledger
        if ledger.keyring.signer is None or not ledger.refusals:
            return
        with ledger.lock:
            noted, ledger.refusals = ledger.refusals, {}
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
        with ledger.store.write() as writer:
            block = _Writer(ledger, writer, self.caller)
            owner = _owner(block.reading)
            for start in range(0, len(rows), MAX_REFUSALS):
                block.store_commit(rows[start : start + MAX_REFUSALS], principal=owner, origin=Origin.SYSTEM)

    def _administer(self, make: Callable[[_Writer], list[Admitted]]) -> None:
        """One commit of the store chain by somebody who may administer."""
        with self._writes() as block:
            place = Place(block.reading.store.namespace, Scope.STORE, None)
            grant = block.authorize(Act.ADMIN, place)
            principal = block.identity.principal
            if principal is None:  # pragma: no cover - a grant names a principal that exists
                raise CorruptionError("a grant for nobody")
            admitted = make(block)
            if admitted:
                block.store_commit(admitted, principal=principal, origin=self.caller.origin, grant=grant.grant)

    def use_project(self, namespace: str | None = None) -> str:
        """Bind the caller's place to a project: a known one by its id, or a new one. Returns the id.

        The place is the directory inside a repository where the caller stands, else the repository's root, else
        the directory itself. Its remote is added as evidence when nobody else has it.
        """
        hints = self.caller.project
        where = None if hints is None else (hints.inside[:1] or hints.paths[:1])
        if not where or hints is None:
            raise NamespaceError("no directory to bind", hint="run in the project's directory")
        with self._writes() as block:
            identity = block.identity
            principal = identity.principal
            try:
                remote = choose_remote(hints.remotes) if not hints.inside else None
            except NamespaceError:
                remote = None
            if namespace is None:
                target = Target(
                    Place(None, Scope.PROJECT, principal),
                    "new",
                    remote or where[0].rsplit("/", 1)[-1] or where[0],
                    remote if remote is not None and not identity.by_alias(AliasOf.REMOTE, remote) else None,
                    where[0],
                )
                chain, _, _ = block.settle(target)
                return chain.namespace
            place = identity.place(namespace)
            if place is None or not identity.exists(namespace) or place.scope is not Scope.PROJECT:
                raise unknown(namespace)
            grant = block.authorize(Act.WRITE, place)
            if namespace not in identity.by_alias(AliasOf.PATH, where[0]) and principal is not None:
                block.store_commit(
                    block.aliases(namespace, remote=None, path=where[0]),
                    principal=principal,
                    origin=self.caller.origin,
                    grant=grant.grant,
                )
            return namespace

    def alias(self, namespace: str, *, remote: str | None = None, path: str | None = None) -> None:
        """Let a remote or a path suggest a project from now on."""
        from ledgerstone.core.namespaces import normalise_remote

        usable = None if remote is None else normalise_remote(remote)
        if remote is not None and usable is None:
            raise UsageError(f"remote: {readable(remote)} has no host; a path is given as a path")

        def make(block: _Writer) -> list[Admitted]:
            if block.identity.place(namespace) is None:
                raise unknown(namespace)
            return block.aliases(namespace, remote=usable, path=path)

        self._administer(make)

    def detach(self, namespace: str, value: str) -> None:
        """End every alias of a project that has this remote or path as its value."""

        def make(block: _Writer) -> list[Admitted]:
            ended = [
                rules.plain(RevokeEntry(revokes=proven.digest))
                for proven, name in self._aliases(block.reading)
                if isinstance(proven.entry, AliasEntry) and proven.entry.namespace == namespace and name == value
            ]
            if not ended:
                raise NotFoundError(f"no alias {readable(value)} of {namespace}")
            return ended

        self._administer(make)

    def _aliases(self, reading: Reading) -> Iterator[tuple[Proven, str | None]]:
        for row in reading.reader.catalog(reading.store.number, "alias"):
            proven = reading.listed(reading.store, row)
            content = reading.content(reading.store, proven)
            if proven.ending is Ending.NONE:
                yield proven, None if content is None else content.name

    def namespaces(self) -> tuple[dict[str, Any], ...]:
        """Every namespace this caller may read or write, with its scope, name, aliases, head and totals."""
        with self._reads() as (reading, identity):
            aliases: dict[str, list[str]] = {}
            for proven, name in self._aliases(reading):
                if isinstance(proven.entry, AliasEntry) and name is not None:
                    aliases.setdefault(proven.entry.namespace, []).append(name)
            found = []
            for row in reading.reader.catalog(reading.store.number, "namespace"):
                proven = reading.listed(reading.store, row)
                entry = proven.entry
                if not isinstance(entry, NamespaceEntry) or not identity.exists(entry.namespace):
                    continue
                content = reading.content(reading.store, proven)
                head = identity.chain(entry.namespace).head
                found.append(
                    {
                        "namespace": entry.namespace,
                        "scope": entry.scope.value,
                        "name": None if content is None else content.name,
                        "aliases": aliases.get(entry.namespace, []),
                        "records": head.counts.records,
                        "current": head.counts.current,
                        "open": head.counts.open,
                        "sequence": head.sequence,
                        "head": head.id.hex(),
                    }
                )
            return tuple(found)

    def bound(self) -> dict[str, Any]:
        """Where this caller's reads and default writes go, by scope, without making anything."""
        with self._reads() as (_, identity):
            answer: dict[str, Any] = {
                "principal": self.caller.principal,
                "known": identity.principal is not None,
            }
            visible, problems = identity.visible()
            for where, place in visible:
                answer[place.scope.value] = where.namespace
            answer.update(problems)
            return answer

    def grants(self, principal: str | None = None) -> tuple[dict[str, Any], ...]:
        """The standing grants of a principal (the caller without a name); those of others take admin."""
        name = principal or self.caller.principal
        refused = None
        with self._reads() as (reading, identity):
            place = Place(reading.store.namespace, Scope.STORE, None)
            allowed = identity.allowed(Act.ADMIN, place)
            if name != self.caller.principal and isinstance(allowed, Refusal):
                refused = _Refused(Act.ADMIN, allowed, place, identity.principal)
                found: tuple[GrantEntry, ...] = ()
            else:
                other = Identity(reading, replace(self.caller, principal=name))
                found = other.grants
        if refused is not None:
            self._ledger.refuse(refused)
            raise AuthorityError(f"{self.caller.principal} may not see the grants of others")
        return tuple(
            {
                "grant": grant.grant,
                "principal": name,
                "act": grant.act.value,
                "scope": grant.scope.value if grant.scope is not None else None,
                "namespace": grant.namespace,
                "expires": grant.expires,
            }
            for grant in found
        )

    def grant(
        self,
        principal: str,
        act: Act,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        expires: int | None = None,
    ) -> str:
        """Let a principal act on its namespaces of a scope, or on one namespace, until a time; returns the grant."""
        if (scope is None) == (namespace is None):
            raise UsageError("grant: a scope or a namespace, one of the two")
        if expires is not None and not self._ledger.clock() < expires <= 2**53 - 1:
            raise UsageError("expires: a time to come, in microseconds UTC")
        canonical.text(principal, name="principal", least=1, most=1024)
        made = canonical.identifier("grt", self._ledger.entropy(10))

        def make(block: _Writer) -> list[Admitted]:
            if namespace is not None and block.identity.place(namespace) is None:
                raise unknown(namespace)
            named = Identity(block.reading, replace(self.caller, principal=principal)).principal
            admitted = []
            if named is None:
                admitted.append(block.name(NameOf.PRINCIPAL, "prn", principal))
                named = _id(admitted[0])
            admitted.append(
                rules.plain(
                    GrantEntry(
                        grant=made,
                        principal=named,
                        act=act,
                        scope=scope,
                        namespace=namespace,
                        expires=expires,
                    )
                )
            )
            return admitted

        self._administer(make)
        return made

    def revoke(self, grant: str) -> None:
        """End a grant; what was done under it stands."""

        def make(block: _Writer) -> list[Admitted]:
            reading = block.reading
            for row in reading.reader.catalog(reading.store.number, "grant"):
                proven = reading.listed(reading.store, row)
                entry = proven.entry
                if isinstance(entry, GrantEntry) and entry.grant == grant and proven.ending is Ending.NONE:
                    return [rules.plain(RevokeEntry(revokes=proven.digest))]
            raise NotFoundError(f"no grant {grant}")

        self._administer(make)

    def status(self) -> dict[str, Any]:
        """What a doctor wants to know of the opened store: its head, its key, its size in commits."""
        with self._ledger.reading() as reading:
            head = reading.store.head
            return {
                "store": reading.store.namespace,
                "owner": reading.named(_owner(reading)),
                "sequence": head.sequence,
                "head": head.id.hex(),
                "signer": head.header.signer,
                "writable": self._ledger.keyring.signer is not None,
                "namespaces": sum(1 for _ in reading.reader.chains()) - 1,
            }


_RECALLED: Final = frozenset({Standing.CURRENT, Standing.COVERED})
_LISTED: Final = _RECALLED


def _record(reading: Reading, where: Chain, scope: Scope, position: int) -> Record:
    record = reading.record(where, scope, position)
    if record is None:
        raise CorruptionError(f"{where.namespace}: entry {position} is no version of a memory")
    return record


def _owner(reading: Reading) -> str:
    """The principal that the store was made for."""
    data = reading.reader.entry(reading.store.number, 0)
    entry = entries.decode_entry(data) if data is not None else None
    if not isinstance(entry, GenesisEntry) or entry.owner is None:
        raise CorruptionError("the store's first entry is not its beginning")
    return entry.owner


def _header(reading: Reading, where: Chain, sequence: int) -> Header:
    data = reading.reader.header(where.number, sequence)
    if data is None:
        raise CorruptionError(f"{where.namespace}: commit {sequence} is missing")
    return entries.decode_header(data)


def canonical_id(header: Header) -> bytes:
    """A commit's id from its header."""
    from ledgerstone.core.merkle import leaf_hash

    return leaf_hash(entries.encode_header(header))


def _fingerprint_of(draft: Draft) -> dict[str, Any]:
    """A draft as plain values, to tell a repeated write from another one."""
    return {
        "text": draft.text,
        "kind": draft.kind.value,
        "status": None if draft.status is None else draft.status.value,
        "key": draft.key,
        "replaces": draft.replaces,
        "sources": list(draft.sources),
        "covers": list(draft.covers),
        "retention": draft.retention.value,
        "expires": draft.expires,
        "due": draft.due,
        "tags": list(draft.tags),
        "source": draft.source,
        "title": draft.title,
        "place": draft.place,
        "valid_from": draft.valid_from,
        "valid_until": draft.valid_until,
        "triggers": list(draft.triggers),
        "external": draft.external,
    }


def _parse_cursor(cursor: str | None, visible: list[tuple[Chain, Place]]) -> tuple[int, int | None]:
    if cursor is None:
        return 0, None
    namespace, _, position = cursor.partition(":")
    for index, (where, _) in enumerate(visible):
        if where.namespace == namespace and position.isascii() and position.isdigit():
            return index, int(position)
    raise UsageError("cursor: not one that a list gave", hint="leave it out to start again")


__all__ = ["MICROSECOND", "Memory"]
