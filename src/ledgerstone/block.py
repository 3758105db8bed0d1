"""The write block, in which one caller's commits follow one another, and what they need is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ledgerstone.core import canonical, entries, rules
from ledgerstone.core.authority import Place
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    GenesisEntry,
    GrantEntry,
    Idempotency,
    NameEntry,
    NamespaceEntry,
    Stamp,
    StorePoint,
)
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import LIBRARY_LIMITS, Act, AliasOf, NameOf, Origin, Scope
from ledgerstone.errors import CorruptionError
from ledgerstone.identity import Identity, Target
from ledgerstone.reading import Chain, Reading
from ledgerstone.store.protocol import Writer
from ledgerstone.writing import Batch


class Block:
    """One write block: the snapshot under the lock, the caller within it, and what it takes to commit.

    ``made`` says that the block made a namespace; ``idempotency`` is the caller's name for the write, once it was asked
    whether that comes again; ``warning``, after the commit, what could not be done beside it.
    """

    __slots__ = ("_entropy", "idempotency", "identity", "made", "reading", "warning", "writer")

    def __init__(self, writer: Writer, reading: Reading, identity: Identity, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self.writer = writer
        self.reading = reading
        self.identity = identity
        self.made = False
        self.idempotency: Idempotency | None = None
        self.warning: str | None = None

    @property
    def principal(self) -> str:
        """The caller's id; whoever holds a grant has one."""
        if self.identity.principal is None:
            raise CorruptionError("a grant for a principal that has no name")
        return self.identity.principal

    def authorize(self, act: Act, place: Place, where: Chain | None = None) -> GrantEntry:
        """The grant that allows an act at the time its commit will have; DeniedError without one."""
        return self.identity.authorize(act, place, self._at(where))

    def administer(self) -> GrantEntry:
        """The grant to administer the store; DeniedError without one."""
        return self.authorize(Act.ADMIN, self.identity.store_place)

    def _at(self, where: Chain | None) -> int:
        """The time of a commit: the clock's, but never before the parent's."""
        return self.reading.now if where is None else max(self.reading.now, where.head.header.stamp.at)

    def _point(self) -> StorePoint:
        """Where the store chain stands."""
        head = self.reading.store.head
        return StorePoint(sequence=head.sequence, id=head.id)

    def named(self, content: Content, make: Callable[[entries.Sealed], entries.Entry]) -> Admitted:
        """An entry around a content, a name or a reason, under a fresh salt; RuleError if that may be a credential."""
        # Loaded with the first write: a read does not pay for it.
        from ledgerstone.core import credentials  # noqa: PLC0415

        allowed = self.identity.caller.allow_secrets
        credentials.check_text("name", content.name, allowed)
        credentials.check_text("reason", content.reason, allowed)
        return rules.with_content(make, content, self._entropy(32))

    def name(self, of: NameOf, prefix: str, name: str, owner: str | None = None) -> tuple[str, Admitted]:
        """A new opaque id for a name, and the entry that says so."""
        opaque = canonical.identifier(prefix, self._entropy(10))
        return opaque, self.named(
            Content(name=name), lambda sealed: NameEntry(id=opaque, of=of, content=sealed, owner=owner)
        )

    def alias(self, namespace: str, of: AliasOf, value: str) -> Admitted:
        """The entry that makes a remote or a path suggest a namespace."""
        return self.named(Content(name=value), lambda sealed: AliasEntry(namespace=namespace, of=of, content=sealed))

    def store_commit(
        self,
        admitted: Sequence[Admitted],
        *,
        grant: str | None = None,
        principal: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        """One commit of the store's own chain, by the caller unless somebody else is named."""
        store = self.reading.store
        stamp = Stamp(
            at=self._at(store),
            principal=principal or self.principal,
            origin=origin or self.identity.caller.origin,
            grant=grant,
        )
        batch = Batch(self.reading, store, namespace=store.namespace, stamp=stamp, limits=LIBRARY_LIMITS, store=None)
        for one in admitted:
            batch.add(one)
        batch.append(self.writer)

    def share(self, name: str, admin: str) -> Chain:
        """Make a shared namespace, which is nobody's own, under the grant of an administrator.

        With it come the grants by which its maker reaches it; nobody has any other way to it.
        """
        new: list[Admitted] = []
        begin = self._namespace(Target(Place(None, Scope.SHARED, None), None, name), new)
        grants = [
            GrantEntry(
                grant=canonical.identifier("grt", self._entropy(10)),
                principal=self.principal,
                act=act,
                namespace=begin.namespace,
            )
            for act in (Act.CREATE, Act.READ, Act.WRITE, Act.FORGET)
        ]
        new += map(rules.plain, grants)
        self.store_commit(new, grant=admin)
        return self._begin(begin, grants[0].grant)

    def batch(self, target: Target, act: Act = Act.WRITE) -> Batch:
        """Authorise an act at a target, make what it needs (namespace, names of session and host), and begin."""
        identity, caller, place = self.identity, self.identity.caller, target.place
        # What is written next is signed: it must not rest on rows that somebody took away.
        self.reading.catalogued()
        where = None if place.namespace is None else identity.chain(place.namespace)
        if where is not None:
            self.reading.counted(where)
        create = self.authorize(Act.CREATE, place).grant if where is None else None
        grant = self.authorize(act, place, where)
        session, host = identity.session_id, identity.host_id
        new: list[Admitted] = []
        if session is None and caller.session is not None:
            session, entry = self.name(NameOf.SESSION, "ses", caller.session, self.principal)
            new.append(entry)
        if host is None and caller.host is not None:
            host, entry = self.name(NameOf.HOST, "hst", caller.host)
            new.append(entry)
        if where is None:
            begin = self._namespace(target, new)
            self.store_commit(new, grant=create)
            where = self._begin(begin, create)
        elif new:
            self.store_commit(new)
        stamp = Stamp(
            at=self._at(where),
            principal=self.principal,
            origin=caller.origin,
            grant=grant.grant,
            session=session,
            host=host,
            binding=target.binding,
        )
        return Batch(
            self.reading, where, namespace=where.namespace, stamp=stamp, limits=caller.limits, store=self._point()
        )

    def _namespace(self, target: Target, new: list[Admitted]) -> NamespaceEntry:
        """Add the entries of a new namespace and of what suggests it."""
        place = target.place
        namespace = canonical.identifier("ns", self._entropy(10))
        nonce = self._entropy(16)

        def make(sealed: entries.Sealed | None) -> NamespaceEntry:
            return NamespaceEntry(
                namespace=namespace, scope=place.scope, nonce=nonce, owner=place.owner, content=sealed
            )

        new.append(self.named(Content(name=target.name), make))
        for of, value in ((AliasOf.REMOTE, target.remote), (AliasOf.PATH, target.path)):
            if value is not None:
                new.append(self.alias(namespace, of, value))
        return make(None)

    def _begin(self, made: NamespaceEntry, grant: str | None) -> Chain:
        """Commit 0 of a new namespace."""
        self.made = True
        stamp = Stamp(at=self._at(None), principal=self.principal, origin=self.identity.caller.origin, grant=grant)
        batch = Batch(
            self.reading, None, namespace=made.namespace, stamp=stamp, limits=LIBRARY_LIMITS, store=self._point()
        )
        batch.add(rules.plain(GenesisEntry(scope=made.scope, nonce=made.nonce, owner=made.owner)))
        return batch.append(self.writer)
