"""Chains written in memory by the library's own pure functions, rightly, or wrongly where a test says how."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ledgerstone.core import canonical, chain, entries, merkle, rules
from ledgerstone.core.entries import (
    Content,
    Entry,
    ErasureEntry,
    GenesisEntry,
    GrantEntry,
    Header,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    Stamp,
    StorePoint,
)
from ledgerstone.core.facts import Known, Slot
from ledgerstone.core.projection import NO_COUNTS, Folded, counted, project
from ledgerstone.core.rules import Admitted, Writing
from ledgerstone.core.signing import Keyring, SigningKey
from ledgerstone.core.values import LIBRARY_LIMITS, Act, Draft, Ending, NameOf, Origin, Scope
from ledgerstone.core.verify import Authorities, Replay

KEYS: Final = Keyring(SigningKey(seed=b"s" * 32, secret=b"t" * 32))
NOON: Final = 1_767_268_800_000_000


def opaque(prefix: str, number: int) -> str:
    """An id that a test can tell."""
    return canonical.identifier(prefix, number.to_bytes(10, "big"))


STORE: Final = opaque("ns", 0)
PROJECT: Final = opaque("ns", 1)
ADA: Final = opaque("prn", 1)
BOB: Final = opaque("prn", 2)
CREATE: Final = opaque("grt", 1)
WRITE: Final = opaque("grt", 2)
FORGET: Final = opaque("grt", 3)
NONCE: Final = b"n" * 16


def grant(number: int, act: Act, **fields: Any) -> GrantEntry:
    """A grant of Ada's on her projects, or as the fields say."""
    return replace(GrantEntry(grant=opaque("grt", number), principal=ADA, act=act, scope=Scope.PROJECT), **fields)


def tombstone(key: str | None, text: str) -> bytes:
    """A tombstone without a secret."""
    return canonical.digest(b"tombstone", canonical.encode([key, rules.normal_value(text)]))


def writing(origin: Origin = Origin.USER, seed: int = 0) -> Writing:
    """A write of somebody's, with chance that repeats."""
    return Writing(origin, LIBRARY_LIMITS, random.Random(seed).randbytes, tombstone)


def forged(admitted: Admitted, **changes: Any) -> Admitted:
    """The same entry with other fields, encoded and hashed as if it had been admitted."""
    entry = replace(admitted.entry, **changes)  # type: ignore[type-var]
    data = entries.encode_entry(entry)
    return admitted._replace(entry=entry, data=data, digest=entries.digest_of(data))


class Written(NamedTuple):
    """One commit as a store would hold it."""

    header: bytes
    bodies: list[bytes]
    contents: dict[int, tuple[bytes, bytes]]


class Pen:
    """Writes one chain. ``folded`` is its past; whatever is given is written, admitted or not."""

    def __init__(self, namespace: str, store: Pen | None = None) -> None:
        self.namespace = namespace
        self.store = store
        self.head: chain.Head | None = None
        self.folded = Folded()
        self.counts = NO_COUNTS
        self.commits: list[Written] = []
        self._chance = random.Random(namespace)

    def stamp(self, **fields: Any) -> Stamp:
        """Ada's stamp, by the grant that the next commit takes."""
        grant_id = None if self.store is None else CREATE if self.head is None else WRITE
        at = NOON if self.head is None else self.head.header.stamp.at
        return replace(Stamp(at=at, principal=ADA, origin=Origin.USER, grant=grant_id), **fields)

    def add(self, admitted: Admitted) -> Known | None:
        """Fold an entry in, before the commit that it belongs to is written."""
        slot = Slot(self.counts.entries, 0 if self.head is None else self.head.sequence + 1, admitted.digest)
        change = project(admitted.entry, admitted.content, slot, self.folded)
        self.counts = counted(self.counts, change, self.folded.apply(change, slot))
        return change.added

    def write(self, *admitted: Admitted, stamp: Stamp | None = None, **header: Any) -> Known | None:
        """A commit of these entries; fields of its header may be given. Returns the last version that it adds."""
        first = self.counts.entries
        added = [self.add(one) for one in admitted]
        point = None
        if self.store is not None and self.store.head is not None:
            point = StorePoint(sequence=self.store.head.sequence, id=self.store.head.id)
        sealed = chain.seal(
            KEYS,
            self.head,
            namespace=self.namespace,
            stamp=stamp or self.stamp(),
            limits=LIBRARY_LIMITS,
            counts=self.counts,
            state=bytes(32),
            digests=tuple(one.digest for one in admitted),
            store=point,
        )
        forged_header: Header = replace(sealed.header, **header)
        data = entries.encode_header(forged_header)
        self.head = chain.Head(merkle.leaf_hash(data), forged_header, sealed.frontier)
        contents = {
            position: (one.salt, one.content_data)
            for position, one in enumerate(admitted, first)
            if one.salt is not None and one.content_data is not None
        }
        self.commits.append(Written(data, [one.data for one in admitted], contents))
        self.folded.boundary = self.counts.entries
        return added[-1]

    def remember(self, draft: Draft | str, origin: Origin = Origin.USER, **header: Any) -> Known:
        """A commit of one draft that the rules admit."""
        made = Draft(text=draft) if isinstance(draft, str) else draft
        entry = rules.enter(made, writing(origin, self._chance.getrandbits(32)), self.folded)
        known = self.write(entry, stamp=self.stamp(origin=origin), **header)
        assert known is not None
        return known

    def end(self, known: Known, *, close: bool = False, reject: bytes | None = None) -> Known:
        """A commit that closes a task or retracts a memory."""
        by = writing(seed=self._chance.getrandbits(32))
        ended = self.write(rules.close(known, by, None) if close else rules.retract(known, by, None, reject))
        assert ended is not None
        return ended

    def erase(self, *erased: Known) -> None:
        """A commit that erases versions; their contents are taken out, wherever they stand."""
        self.write(
            rules.plain(ErasureEntry(erases=tuple(known.digest for known in erased))), stamp=self.stamp(grant=FORGET)
        )
        known = self.folded.known
        for written in self.commits:
            for position in list(written.contents):
                if position in known and known[position].ending is Ending.ERASED:
                    del written.contents[position]


def store_chain(*more: Admitted | Entry) -> Pen:
    """The store's own chain: Ada, her grants, one project, and what else is given."""
    pen = Pen(STORE)
    begin: list[Admitted] = [
        rules.plain(GenesisEntry(scope=Scope.STORE, nonce=NONCE, owner=ADA)),
        rules.plain(KeyEntry(key=KEYS.signer or "", public=KEYS.public[KEYS.signer or ""])),
        named("ada", lambda sealed: NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=sealed)),
        rules.plain(grant(1, Act.CREATE)),
        rules.plain(grant(2, Act.WRITE)),
        named(
            "project",
            lambda sealed: NamespaceEntry(
                namespace=PROJECT, scope=Scope.PROJECT, nonce=NONCE, owner=ADA, content=sealed
            ),
        ),
        rules.plain(grant(3, Act.FORGET)),
    ]
    pen.write(*begin, *(one if isinstance(one, Admitted) else rules.plain(one) for one in more))
    return pen


def named(name: str, make: Callable[[entries.Sealed], Entry]) -> Admitted:
    """An entry around a name."""
    return rules.with_content(make, Content(name=name), b"w" * 32)


def project_chain(store: Pen | None = None, **genesis: Any) -> Pen:
    """Ada's project at its beginning."""
    pen = Pen(PROJECT, store or store_chain())
    pen.write(rules.plain(replace(GenesisEntry(scope=Scope.PROJECT, nonce=NONCE, owner=ADA), **genesis)))
    return pen


def replay(pen: Pen, authorities: Authorities | None = None, *, end: int | None = None) -> Replay:
    """A chain replayed, up to a commit, after that of its store."""
    known = authorities or Authorities()
    if pen.store is not None:
        replay(pen.store, known)
    replayed = Replay(pen.namespace, known, store=pen.store is None)
    continued(replayed, pen, 0, end)
    return replayed


def continued(replayed: Replay, pen: Pen, start: int, end: int | None = None) -> None:
    """Some commits of a chain, replayed."""
    for sequence, written in enumerate(pen.commits[start:end], start):
        read = replayed.header(sequence, written.header)
        if read is not None:
            replayed.commit(*read, written.bodies, written.contents)
    replayed.finish()


def faults(pen: Pen) -> list[tuple[str, int | None]]:
    """What replay finds, by code and sequence."""
    return [(finding.code, finding.sequence) for finding in replay(pen).findings]
