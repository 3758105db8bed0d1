"""What a request to erase reaches: versions, what covers or copies them, and what entries say of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from ledgerstone.core import canonical, entries
from ledgerstone.core.authority import Caller, Denial, Place
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    Header,
    NameEntry,
    NamespaceEntry,
    RecordEntry,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.projection import NAMED, PROMOTION, carriers
from ledgerstone.core.values import Act, Ending, Kind, NameOf, Refusal, Retention, Scope
from ledgerstone.errors import CorruptionError, NotFoundError, UsageError
from ledgerstone.identity import DEFAULT_NAME, DeniedError, Identity, parse_target
from ledgerstone.ledger import Ledger
from ledgerstone.past import SnapshotFacts
from ledgerstone.reading import Chain, Proven, Reading
from ledgerstone.store.protocol import LAST, Reader

KEY: Final = "key:"
REASON: Final = "reason:"
# Targets that are looked for wherever the caller may erase and no isolation hides; all others only where it is bound.
WIDE: Final = ("session:", "principal:", "write:", "namespace:", "host:")
OWN_NAME: Final = "your own name stays: by it the store knows which grants are yours"
OWNERS_NAME: Final = "the name of the store's owner stays: by it the store knows whose it is"
# Who is meant by a name, or by an id of this sort.
_NAMES: Final = {"session": "ses_", "principal": "prn_", "host": "hst_"}


class _Said(NamedTuple):
    """An entry that says something of its own, a name or a reason, and can go on without it."""

    digest: bytes
    commitment: bytes
    label: str
    content: Content


class Reach:
    """What one request reaches in one chain: versions by position, and what other entries say of their own.

    In the store chain these are names, in a namespace reasons.
    """

    __slots__ = (
        "_keep",
        "_own",
        "_reading",
        "copies",
        "facts",
        "known",
        "left",
        "rests",
        "spared",
        "summaries",
        "where",
    )

    def __init__(self, reading: Reading, where: Chain, keep: frozenset[str]) -> None:
        reading.counted(where)
        self._reading = reading
        self._keep = keep
        self.facts = SnapshotFacts(reading, where)
        self.where = where
        self.known: dict[int, Known] = {}
        self._own: dict[int, _Said] = {}
        self.summaries: set[str] = set()
        self.copies: set[str] = set()
        self.rests: set[str] = set()
        self.spared: set[str] = set()
        self.left: set[str] = set()

    def take(self, known: Known) -> None:
        """Take in a version, all that hold its text, and the summaries that cover it, unless they are kept."""
        if known.position in self.known:
            return
        new = [one for one in carriers(known, self.facts) if one.ending is not Ending.ERASED]
        self.known |= {one.position: one for one in new}
        for one in new:
            self._above(one)

    @property
    def own(self) -> dict[int, _Said]:
        """What goes of entries that stand: what goes with a text is not among it."""
        return {position: said for position, said in sorted(self._own.items()) if position not in self.known}

    def strike(self, proven: Proven, label: str) -> bool:
        """Take in what an entry says of its own; False when it says nothing any more."""
        if isinstance(proven.entry, RecordEntry):
            return False
        content = self._reading.content(self.where, proven)
        sealed = getattr(proven.entry, "content", None)
        if content is None or sealed is None:
            return False
        self._own[proven.position] = _Said(proven.digest, sealed.commitment, label, content)
        return True

    def _above(self, known: Known) -> None:
        reader, number = self._reading.reader, self.where.number
        covering = set(reader.covering(number, known.position))
        for position in reader.resting_on(number, known.position):
            above = self.facts.version(position)
            if above is None or position in self.known or above.ending is Ending.ERASED:
                continue
            name = above.address
            if position not in covering or above.kind is not Kind.SUMMARY:
                self.rests.add(name)
            elif name in self._keep:
                self.spared.add(name)
                self.rests.add(name)
            else:
                self.summaries.add(name)
                self.take(above)


def targeted(
    ledger: Ledger, reading: Reading, identity: Identity, caller: Caller, targets: tuple[str, ...], keep: frozenset[str]
) -> list[Reach]:
    """What the targets of a ``forget`` reach; NotFoundError when one of them reaches nothing."""
    wide = any(target.startswith(WIDE) for target in targets)
    names = Reach(reading, reading.store, keep)
    bound = {where.number: where for where, _ in identity.in_sight()}
    beyond = {where.number: where for where in _in_sight(reading, identity, caller)} if wide else {}
    reaches = {number: Reach(reading, where, keep) for number, where in (beyond | bound).items()}
    for target in targets:
        if target.startswith(WIDE):
            found = _wide(ledger, reading, identity, target, [reaches[number] for number in beyond])
            found |= _named(reading, identity, target, names)
        elif target.startswith(REASON):
            found = _reason(reading, target, [*(reaches[number] for number in bound), names])
        else:
            found = _narrow(target, [reaches[number] for number in bound], reading)
        if not found:
            narrow = not target.startswith((*WIDE, REASON))
            raise NotFoundError(f"no memory {target} here" if narrow else f"{target} names nothing here")
    if names.own and not identity.may(Act.ADMIN, identity.store_place):
        names = Reach(reading, reading.store, keep)
        names.left.add("the names in the store chain stay: to erase them takes the grant to administer")
    return [*reaches.values(), names]


def lapsed(
    reading: Reading,
    identity: Identity,
    caller: Caller,
    *,
    retention: Retention | None,
    before: int | None,
    keep: frozenset[str],
) -> list[Reach]:
    """What is past its expiry wherever the caller may erase; or, of a retention, what was said before a time."""
    reaches = [Reach(reading, where, keep) for where in _in_sight(reading, identity, caller)]
    for reach in reaches:
        number = reach.where.number
        if retention is None or before is None:
            for position in reading.reader.expired(number, reading.now):
                known = reach.facts.version(position)
                if known is not None and known.expires is not None and known.expires <= reading.now:
                    reach.take(known)
            continue
        said = f'"retention":"{retention.value}"'.encode()
        for position, body in reading.reader.entries(number, 0, LAST):
            if said in body:
                _outlived(reading, reach, position, before)
    return reaches


def held(reading: Reading, identity: Identity, caller: Caller, gone: frozenset[bytes]) -> list[Reach]:
    """What stands there of the contents with these commitments, wherever the caller may erase."""
    reaches = [Reach(reading, where, frozenset()) for where in _erasable(reading, identity, caller)]
    for reach in reaches:
        for position in holding(reading.reader, reach.where.number, gone):
            known, version = reach.facts.version(position), reading.version(reach.where, position)
            if known is None or version is None:
                _reason_at(reading, reach, position)
            elif known.body == position:
                reach.take(known)
            else:
                reach.strike(version.proven, known.address)
    names = Reach(reading, reading.store, frozenset())
    back = (
        set(holding(reading.reader, reading.store.number, gone))
        if identity.may(Act.ADMIN, identity.store_place)
        else set()
    )
    for row in list(reading.reader.catalog(reading.store.number)) if back else ():
        if row.position in back:
            names.strike(reading.listed(row).proven, f"{row.noun} {row.position}")
    return [*reaches, names]


def returned(reader: Reader, gone: frozenset[bytes]) -> dict[str, int]:
    """How many contents stand there with one of these commitments, by namespace; those alone that have some."""
    chains = reader.chains() if gone else []
    counts = {row.namespace: len(holding(reader, row.number, gone)) for row in chains}
    return {namespace: number for namespace, number in counts.items() if number}


def holding(reader: Reader, number: int, gone: frozenset[bytes]) -> list[int]:
    """Where in a chain contents stand with one of these commitments."""
    return [position for position, commitment in committed(reader, number) if commitment in gone]


def committed(reader: Reader, number: int) -> Iterator[tuple[int, bytes]]:
    """Where each content of a chain stands, and its commitment."""
    for position, salt, data in reader.contents(number, 0, LAST):
        if len(salt) == canonical.SALT_BYTES:
            yield position, canonical.commitment(salt, data)


def _outlived(reading: Reading, reach: Reach, position: int, before: int) -> None:
    """Take in a record said before a time, unless it has an expiry of its own or is an obligation."""
    found, known = reading.version(reach.where, position), reach.facts.version(position)
    if found is None or known is None or not isinstance(found.proven.entry, RecordEntry):
        return
    if found.proven.stamp.at >= before or known.expires is not None:
        return
    if known.open_task:
        reach.left.add(f"{known.address} is an open task: close or retract it first")
    else:
        reach.take(known)


def _in_sight(reading: Reading, identity: Identity, caller: Caller) -> list[Chain]:
    """Every namespace that the caller may erase in, less what isolation hides."""
    return [where for where in _erasable(reading, identity, caller) if not identity.hidden(where.namespace)]


def _erasable(reading: Reading, identity: Identity, caller: Caller) -> list[Chain]:
    """Every namespace that the caller may erase in, also those that isolation hides; DeniedError where it may nowhere.

    In a dry run ``identity`` may be what the caller would be at a host that lets it: then of what it may read.
    """
    if Act.FORGET not in identity.caller.acts:
        nowhere = Place(None, Scope.STORE, None)
        raise DeniedError(Denial(Act.FORGET, Refusal.HOST, nowhere, identity.principal))
    found = []
    needed = {Act.FORGET} if Act.FORGET in caller.acts else {Act.FORGET, Act.READ}
    for row in reading.reader.catalog(reading.store.number, "namespace"):
        entry = reading.listed(row).proven.entry
        if isinstance(entry, NamespaceEntry):
            place = identity.place(entry.namespace)
            if place is not None and all(identity.may(act, place) for act in needed):
                found.append(identity.chain(entry.namespace))
    return found


def _narrow(target: str, reaches: list[Reach], reading: Reading) -> bool:
    """Take in a memory, a version, a digest, or all memories with a key; False when there is none."""
    if target.startswith(KEY):
        key = target.removeprefix(KEY)
        memories = set()
        for reach in reaches:
            versions = map(reach.facts.version, reading.reader.keyed(reach.where.number, key))
            memories |= {known.memory for known in versions if known is not None and known.key == key}
        for memory in sorted(memories):
            _versions(reading, memory, None, reaches)
        return bool(memories)
    wanted = parse_target(target)
    if not isinstance(wanted, bytes):
        return _versions(reading, *wanted, reaches)
    rows = dict(reading.reader.digests(wanted))
    here = [reach for reach in reaches if reach.where.number in rows]
    for reach in here:
        known = reach.facts.version(rows[reach.where.number])
        if known is None or known.digest != wanted:
            raise CorruptionError(f"{reach.where.namespace}: an entry is not {target}, as its row says")
        reach.take(known)
    return bool(here)


def _versions(reading: Reading, memory: str, version: int | None, reaches: list[Reach]) -> bool:
    """Take in a memory with all its versions, or one of them; False when there is none here."""
    rows = reading.reader.versions(memory)
    taken = False
    for reach in reaches:
        here = [(position, number) for chain_, position, number in rows if chain_ == reach.where.number]
        for place, (position, number) in enumerate(here, 1):
            if version not in {None, number}:
                continue
            known = reach.facts.version(position)
            if known is None or (known.memory, known.version) != (memory, number) or number != place:
                raise CorruptionError(f"{reach.where.namespace}: a version of {memory} is not where its row says")
            reach.take(known)
            taken = True
    return taken


def _wide(ledger: Ledger, reading: Reading, identity: Identity, target: str, reaches: list[Reach]) -> bool:
    """Take in what was said in a session, by a principal or in one write, or all of a namespace."""
    word, _, name = target.partition(":")
    if word == "namespace":
        chosen = [reach for reach in reaches if reach.where.namespace == name]
        if not chosen:
            raise unknown(name)
        for reach in chosen:
            for row in list(reading.reader.knowns(reach.where.number, 0, LAST)):
                known = reach.facts.version(row.position)
                if known is not None:
                    reach.take(known)
            for position, body in list(reading.reader.entries(reach.where.number, 0, LAST)):
                if b'"entry":"erasure"' in body:
                    _reason_at(reading, reach, position)
        return True
    taken = False
    # Of a program only the name is meant, and not all that was said through it.
    for reach in reaches if word != "host" else ():
        mark = _mark(ledger, reading, identity, reach.where.namespace, word, name)
        for header in _mentioning(reading, reach.where, mark):
            if mark == _marked(header, word):
                taken |= _of_commit(reading, reach, header, whole=word == "write")
    return taken


def _named(reading: Reading, identity: Identity, target: str, names: Reach) -> bool:
    """Take in the names that stand for a session, a principal or a namespace; False when there is none any more."""
    word, _, name = target.partition(":")
    if word == "namespace":
        return _names_of(reading, name, names)
    # By its name it is found elsewhere, where isolation hides nothing.
    if word not in _NAMES or identity.hides(Scope.USER):
        return False
    mark = _opaque(reading, identity, word, name)
    found = False
    for proven, said in _arranged(reading, "name"):
        entry = proven.entry
        if not isinstance(entry, NameEntry) or mark is None:
            continue
        if word == "principal" and entry.id == mark and mark in {identity.principal, reading.owner}:
            names.left.add(OWN_NAME if mark == identity.principal else OWNERS_NAME)
            found = True
        elif mark == entry.id or (word == "principal" and mark == entry.owner):
            found |= names.strike(proven, entry.id)
            if entry.of is NameOf.SESSION and entry.owner is not None and said is not None:
                namespace = identity.scoped(Scope.SESSION, entry.owner, said)
                found |= namespace is not None and _names_of(reading, namespace, names)
    return found


def _names_of(reading: Reading, namespace: str, names: Reach) -> bool:
    """Take in the name of a namespace, unless it is the program's own word, and what remotes and paths lead there."""
    found = False
    for noun in ("namespace", "alias"):
        for proven, said in _arranged(reading, noun):
            entry = proven.entry
            of_it = isinstance(entry, NamespaceEntry | AliasEntry) and entry.namespace == namespace
            if of_it and said != DEFAULT_NAME:
                what = f" {entry.of.value}" if isinstance(entry, AliasEntry) else ""
                found |= names.strike(proven, f"{namespace}{what}")
    return found


def _arranged(reading: Reading, noun: str) -> Iterator[tuple[Proven, str | None]]:
    """Every entry of the store chain under a noun, also those that were revoked, with its name."""
    for row in list(reading.reader.catalog(reading.store.number, noun)):
        yield reading.listed(row)


def _reason(reading: Reading, target: str, reaches: list[Reach]) -> bool:
    """Take in the reason that a version gives, ``mem_...@2``, or the erasure in a commit, ``ns_...@5``."""
    what, _, number = target.removeprefix(REASON).rpartition("@")
    if not (number.isascii() and number.isdigit()):
        raise UsageError(f"{target}: a reason is named by its version, mem_...@2, or by its commit, ns_...@5")
    for reach in reaches:
        if reach.where.namespace == what:
            data = reading.reader.header(reach.where.number, int(number))
            positions = () if data is None else entries.decode_header(data).positions
            return any(_reason_at(reading, reach, position) for position in positions)
        if what.startswith("mem_"):
            position = reading.reader.version_at(reach.where.number, what, int(number))
            version = None if position is None else reading.version(reach.where, position)
            if version is not None:
                return reach.strike(version.proven, f"{what}@{number}")
    return False


def _reason_at(reading: Reading, reach: Reach, position: int) -> bool:
    """Take in the reason of an erasure at a position; False when there is none there."""
    body = reading.reader.entry(reach.where.number, position)
    if body is None or b'"entry":"erasure"' not in body:
        return False
    sequence = reading.sequence_of(reach.where, position)
    proven = reading.prove(reach.where, position, sequence, 0, 0)
    return reach.strike(proven, f"{reach.where.namespace}@{sequence}")


def _opaque(reading: Reading, identity: Identity, word: str, name: str) -> str | None:
    """The id that a session or a principal is meant by; it may be given itself, as when its name is gone."""
    if name.startswith(_NAMES[word]) and reading.listings(NAMED, name):
        return name
    if word == "session":
        return Identity(reading, replace(identity.caller, session=name), []).session_id
    if word == "host":
        return Identity(reading, replace(identity.caller, host=name), []).host_id
    return Identity(reading, replace(identity.caller, principal=name), []).principal


def _mark(ledger: Ledger, reading: Reading, identity: Identity, namespace: str, word: str, name: str) -> str | None:
    """What the headers of the commits that are meant hold; None when no header can."""
    if word in _NAMES:
        return _opaque(reading, identity, word, name)
    secret = ledger.keyring.secret(namespace)
    return None if secret is None else canonical.keyed(secret, b"idempotency-key", name.encode()).hex()


def _marked(header: Header, word: str) -> str | None:
    if word == "write":
        return None if header.idempotency is None else header.idempotency.key.hex()
    return header.stamp.session if word == "session" else header.stamp.principal


def _mentioning(reading: Reading, where: Chain, mark: str | None) -> Iterator[Header]:
    """The commits of a chain whose headers mention an id or a hash, newest first, each proven by its links."""
    if mark is None:
        return
    for _, _, data in reading.linked(where):
        if mark.encode() in data:
            yield entries.decode_header(data)


def _of_commit(reading: Reading, reach: Reach, header: Header, *, whole: bool) -> bool:
    """Take in the records of a commit, and the reasons given in it.

    Without ``whole`` not the texts that its closes and retracts carry on.
    """
    taken = False
    for position in header.positions:
        known, version = reach.facts.version(position), reading.version(reach.where, position)
        if known is None or version is None:
            taken |= _reason_at(reading, reach, position)
            continue
        taken = True
        if whole or known.body == known.position:
            reach.take(known)
        else:
            reach.strike(version.proven, known.address)
    return taken


def followed(reading: Reading, identity: Identity, reaches: list[Reach], keep: frozenset[str]) -> list[Reach]:
    """The reaches with all copies of what goes that were promoted elsewhere, and copies of those."""
    copies = _promotions(reading)
    by = {reach.where.namespace: reach for reach in reaches}
    followed: set[bytes] = set()
    while going := {known.digest for reach in by.values() for known in reach.known.values()} - followed:
        followed |= going
        for digest in sorted(going & copies.keys()):
            for namespace, position in copies[digest]:
                place = identity.place(namespace)
                if place is None or not identity.may(Act.FORGET, place):
                    reaches[0].left.add("a copy stays that was promoted to where you may not forget")
                    continue
                if namespace not in by:
                    by[namespace] = Reach(reading, identity.chain(namespace), keep)
                _copy(reading, by[namespace], position)
    return list(by.values())


def _promotions(reading: Reading) -> dict[bytes, list[tuple[str, int]]]:
    """Where records stand that came by promotion, by the digest of what they came from."""
    found: dict[bytes, list[tuple[str, int]]] = {}
    for row in reading.reader.chains()[1:]:
        for listed in reading.reader.catalog(row.number, PROMOTION):
            found.setdefault(bytes.fromhex(listed.value), []).append((row.namespace, listed.position + 1))
    return found


def _copy(reading: Reading, reach: Reach, position: int) -> None:
    """Take in the record at a position, which came by promotion, unless it is gone already."""
    known, version = reach.facts.version(position), reading.version(reach.where, position)
    entry = None if version is None else version.proven.entry
    if known is None or not isinstance(entry, RecordEntry) or entry.promotion is None:
        raise CorruptionError(f"{reach.where.namespace}: entry {position} came by no promotion, as its row says")
    if known.ending is not Ending.ERASED:
        reach.take(known)
        reach.copies.add(known.address)
