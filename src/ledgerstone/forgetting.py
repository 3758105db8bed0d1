"""Erasure: what a request reaches, the commits that take it out, and a look at the files for what stayed behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from ledgerstone import traces
from ledgerstone.anchors import Anchors
from ledgerstone.core import canonical, chain, entries, receipts, rules
from ledgerstone.core.authority import Caller, Denial, Place
from ledgerstone.core.entries import (
    AliasEntry,
    CloseEntry,
    Content,
    ErasedEntry,
    ErasureEntry,
    GrantEntry,
    Header,
    NameEntry,
    NamespaceEntry,
    RecordEntry,
    RetractEntry,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.projection import NAMED, PROMOTION, carriers
from ledgerstone.core.rendering import count
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import (
    MAX_DRAFTS,
    MAX_REASON_BYTES,
    Act,
    Ending,
    Finding,
    Forgotten,
    Kind,
    NameOf,
    Refusal,
    Retention,
    Scope,
)
from ledgerstone.core.words import index_words, postings
from ledgerstone.errors import CorruptionError, LedgerstoneError, NotFoundError, UnavailableError, UsageError
from ledgerstone.identity import DEFAULT_NAME, Identity, Target, parse_target
from ledgerstone.ledger import Block, DeniedError, Ledger, owner_of
from ledgerstone.reading import Chain, Proven, Reading
from ledgerstone.search import LAST
from ledgerstone.store.protocol import Reader, Store, Writer
from ledgerstone.writing import Batch

UNREACHED: Final = (
    "backups, exports and other copies, what was read before, blocks that the file system keeps by itself",
    "names and reasons that were not asked for",
    "sizes, times and ids, which stay in the chain and give no text away",
)
SHORT: Final = f"texts under {traces.LEAST_BYTES} bytes are not looked for in the files: they occur everywhere"
# What may be let go by its retention; the rest goes by an expiry of its own, or when somebody forgets it.
PASSING: Final = frozenset({Retention.WORKING, Retention.SESSION, Retention.SHORT_TERM})
EXPIRED: Final = "expired"
ERASED_BEFORE: Final = "erased here before"
KEY: Final = "key:"
REASON: Final = "reason:"
# Targets that are looked for wherever the caller may erase; all others only where it is bound.
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


class _Reach:
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
        self.facts = reading.facts(where)
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
            address = _address(above)
            if position not in covering or above.kind is not Kind.SUMMARY:
                self.rests.add(address)
            elif address in self._keep:
                self.spared.add(address)
                self.rests.add(address)
            else:
                self.summaries.add(address)
                self.take(above)


_Find = Callable[[Reading, Identity], list[_Reach]]


def forget(
    ledger: Ledger, caller: Caller, targets: tuple[str, ...], *, reason: str | None, keep: Iterable[str], dry_run: bool
) -> Forgotten:
    """See ``Memory.forget``."""
    if not 1 <= len(targets) <= MAX_DRAFTS:
        raise UsageError(f"forget: 1 to {MAX_DRAFTS} targets, not {len(targets)}")
    if reason is not None:
        canonical.text(reason, name="reason", least=1, most=MAX_REASON_BYTES)
    kept = frozenset(keep)

    def find(reading: Reading, identity: Identity) -> list[_Reach]:
        wide = any(target.startswith(WIDE) for target in targets)
        names = _Reach(reading, reading.store, kept)
        bound = {where.number: where for where, _ in identity.visible()[0]}
        beyond = {where.number: where for where in _erasable(reading, identity, caller)} if wide else {}
        reaches = {number: _Reach(reading, where, kept) for number, where in (beyond | bound).items()}
        for target in targets:
            if target.startswith(WIDE):
                found = _wide(ledger, reading, identity, target, [reaches[number] for number in beyond])
                found |= _named(reading, identity, target, names)
            elif target.startswith(REASON):
                found = _reason(reading, target, [*(reaches[number] for number in bound), names])
            else:
                found = _narrow(target, [reaches[number] for number in bound], reading)
            if not found:
                raise NotFoundError(f"no memory {target} here")
        if names.own and not _administers(identity, reading):
            names = _Reach(reading, reading.store, kept)
            names.left.add("the names in the store chain stay: to erase them takes the grant to administer")
        return [*reaches.values(), names]

    return _carry_out(ledger, caller, find, reason=reason, keep=kept, dry_run=dry_run)


def expire(
    ledger: Ledger,
    caller: Caller,
    *,
    retention: Retention | None,
    before: int | None,
    keep: Iterable[str],
    dry_run: bool,
) -> Forgotten:
    """See ``Memory.expire``."""
    if (retention is None) != (before is None):
        raise UsageError("expire: a retention and the time before which it was said, or neither")
    if retention is not None and retention not in PASSING:
        words = ", ".join(sorted(each.value for each in PASSING))
        raise UsageError(f"expire: {words}, not {retention.value}", hint="what else is to go: ledgerstone forget")
    kept = frozenset(keep)

    def find(reading: Reading, identity: Identity) -> list[_Reach]:
        reaches = [_Reach(reading, where, kept) for where in _erasable(reading, identity, caller)]
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

    return _carry_out(ledger, caller, find, reason=EXPIRED, keep=kept, dry_run=dry_run)


def _outlived(reading: Reading, reach: _Reach, position: int, before: int) -> None:
    """Take in a record said before a time, unless it has an expiry of its own or is an obligation."""
    found, known = reading.version(reach.where, position), reach.facts.version(position)
    if found is None or known is None or not isinstance(found.proven.entry, RecordEntry):
        return
    if found.proven.stamp.at >= before or known.expires is not None:
        return
    if known.open_task:
        reach.left.add(f"{_address(known)} is an open task: close or retract it first")
    else:
        reach.take(known)


def again(ledger: Ledger, caller: Caller) -> tuple[Finding, ...]:
    """Erase what was erased on this machine before and has come back with an older copy of the store.

    Returns as findings what the caller may not erase.
    """
    # Whatever an older copy brings back of what somebody died over erasing, it was to go.
    gone = _erased_here(ledger, meant=True)

    def find(reading: Reading, identity: Identity) -> list[_Reach]:
        reaches = [_Reach(reading, where, frozenset()) for where in _erasable(reading, identity, caller)]
        for reach in reaches:
            for position in _returned(reading.reader, reach.where.number, gone):
                known, version = reach.facts.version(position), reading.version(reach.where, position)
                if known is None or version is None:
                    _reason_at(reading, reach, position)
                elif known.body == position:
                    reach.take(known)
                else:
                    reach.strike(version.proven, _address(known))
        names = _Reach(reading, reading.store, frozenset())
        back = set(_returned(reading.reader, reading.store.number, gone)) if _administers(identity, reading) else set()
        for row in list(reading.reader.catalog(reading.store.number)) if back else ():
            if row.position in back:
                names.strike(reading.listed(row).proven, f"{row.noun} {row.position}")
        return [*reaches, names]

    with ledger.store.read() as reader:
        back = returned(ledger, reader, meant=True)
    if not back or Act.FORGET not in caller.acts:
        return back
    _carry_out(ledger, caller, find, reason=ERASED_BEFORE, keep=frozenset(), dry_run=False)
    with ledger.store.read() as reader:
        return returned(ledger, reader, meant=True)


def returned(ledger: Ledger, reader: Reader, *, meant: bool = False) -> tuple[Finding, ...]:
    """What was erased on this machine before and is there all the same, with an older copy of the store."""
    gone = _erased_here(ledger, meant=meant)
    findings = []
    for namespace in reader.chains() if gone else ():
        row = reader.chain(namespace)
        back = 0 if row is None else len(_returned(reader, row.number, gone))
        if back:
            message = f"{count(back, 'content')} back that had been erased here; who may forget there: verify --accept"
            findings.append(Finding("erased", namespace, None, message))
    return tuple(findings)


def _erased_here(ledger: Ledger, *, meant: bool) -> frozenset[bytes]:
    return frozenset() if ledger.anchors is None else ledger.anchors.erased(meant=meant)


def _returned(reader: Reader, number: int, gone: frozenset[bytes]) -> list[int]:
    return [
        position
        for position, salt, data in reader.contents(number, 0, LAST)
        if len(salt) == canonical.SALT_BYTES and canonical.commitment(salt, data) in gone
    ]


def _erasable(reading: Reading, identity: Identity, caller: Caller) -> list[Chain]:
    """Every namespace that the caller may erase in; DeniedError where the host lets nobody erase.

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
            if place is None or (Act.READ in needed and identity.hides(place.scope)):
                continue
            if all(isinstance(identity.allowed(act, place), GrantEntry) for act in needed):
                found.append(identity.chain(entry.namespace))
    return found


def _narrow(target: str, reaches: list[_Reach], reading: Reading) -> bool:
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


def _versions(reading: Reading, memory: str, version: int | None, reaches: list[_Reach]) -> bool:
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


def _wide(ledger: Ledger, reading: Reading, identity: Identity, target: str, reaches: list[_Reach]) -> bool:
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


def _administers(identity: Identity, reading: Reading) -> bool:
    """Whether the caller may erase names."""
    place = Place(reading.store.namespace, Scope.STORE, None)
    return isinstance(identity.allowed(Act.ADMIN, place), GrantEntry)


def _named(reading: Reading, identity: Identity, target: str, names: _Reach) -> bool:
    """Take in the names that stand for a session, a principal or a namespace; False when there is none any more."""
    word, _, name = target.partition(":")
    if word == "namespace":
        return _names_of(reading, name, names)
    if word not in _NAMES:
        return False
    mark = _opaque(reading, identity, word, name)
    found = False
    for proven, said in _arranged(reading, "name"):
        entry = proven.entry
        if not isinstance(entry, NameEntry) or mark is None:
            continue
        if word == "principal" and entry.id == mark and mark in {identity.principal, owner_of(reading)}:
            names.left.add(OWN_NAME if mark == identity.principal else OWNERS_NAME)
            found = True
        elif mark == entry.id or (word == "principal" and mark == entry.owner):
            found |= names.strike(proven, entry.id)
            if entry.of is NameOf.SESSION and entry.owner is not None and said is not None:
                namespace = identity.scoped(Scope.SESSION, entry.owner, said)
                found |= namespace is not None and _names_of(reading, namespace, names)
    return found


def _names_of(reading: Reading, namespace: str, names: _Reach) -> bool:
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


def _reason(reading: Reading, target: str, reaches: list[_Reach]) -> bool:
    """Take in the reason that a version gives, ``mem_...@2``, or the erasure in a commit, ``ns_...@5``."""
    what, _, number = target.removeprefix(REASON).rpartition("@")
    if not (number.isascii() and number.isdigit()):
        raise UsageError(f"{target}: a reason is named by its version, mem_...@2, or by its commit, ns_...@5")
    for reach in reaches:
        if reach.where.namespace == what:
            return any(_reason_at(reading, reach, position) for position in _positions(reading, reach, int(number)))
        if what.startswith("mem_"):
            position = reading.reader.version_at(reach.where.number, what, int(number))
            version = None if position is None else reading.version(reach.where, position)
            if version is not None:
                return reach.strike(version.proven, f"{what}@{number}")
    return False


def _positions(reading: Reading, reach: _Reach, sequence: int) -> range:
    """Where the entries of a commit stand."""
    data = reading.reader.header(reach.where.number, sequence)
    if data is None:
        return range(0)
    header = entries.decode_header(data)
    return range(header.counts.entries - len(header.entries), header.counts.entries)


def _reason_at(reading: Reading, reach: _Reach, position: int) -> bool:
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
    expected = where.head.id
    for sequence, _, data in reading.reader.headers(where.number, newest=where.head.sequence, oldest=0):
        commit, parent = chain.link(data)
        if commit != expected:
            raise CorruptionError(f"{where.namespace}: commit {sequence} is not the one its successor names")
        expected = parent
        if mark.encode() in data:
            yield entries.decode_header(data)
    if expected:
        raise CorruptionError(f"{where.namespace}: its first commits are missing")


def _of_commit(reading: Reading, reach: _Reach, header: Header, *, whole: bool) -> bool:
    """Take in the records of a commit, and the reasons given in it.

    Without ``whole`` not the texts that its closes and retracts carry on.
    """
    taken = False
    for position in range(header.counts.entries - len(header.entries), header.counts.entries):
        known, version = reach.facts.version(position), reading.version(reach.where, position)
        if known is None or version is None:
            taken |= _reason_at(reading, reach, position)
            continue
        taken = True
        if whole or known.body == known.position:
            reach.take(known)
        else:
            reach.strike(version.proven, _address(known))
    return taken


class _Gone:
    """What is being erased: commitments to remember, and pieces of text to look for, each with its version's number.

    ``texts`` are the pieces of each text itself, in each form; the rest are of keys, tags and the like, and of words.
    """

    __slots__ = ("commitments", "pieces", "short", "texts", "versions")

    def __init__(self) -> None:
        self.commitments: set[bytes] = set()
        self.pieces: dict[bytes, int] = {}
        self.texts: list[tuple[int, frozenset[bytes]]] = []
        self.versions = 0
        self.short = False

    def add(self, *forms: bytes, text: bool = False) -> None:
        """Note what the newest version says, in each form that it is stored in."""
        parts = [frozenset(traces.pieces_of(form)) for form in forms]
        pieces = frozenset().union(*parts)
        self.short |= not pieces
        for piece in pieces:
            self.pieces.setdefault(piece, self.versions)
        if text:
            self.texts += [(self.versions, part) for part in parts if part]


def _followed(reading: Reading, identity: Identity, reaches: list[_Reach], keep: frozenset[str]) -> list[_Reach]:
    """The reaches with all copies of what goes that were promoted elsewhere, and copies of those."""
    copies = _promotions(reading)
    by = {reach.where.namespace: reach for reach in reaches}
    followed: set[bytes] = set()
    while going := {known.digest for reach in by.values() for known in reach.known.values()} - followed:
        followed |= going
        for digest in sorted(going & copies.keys()):
            for namespace, position in copies[digest]:
                place = identity.place(namespace)
                if place is None or not isinstance(identity.allowed(Act.FORGET, place), GrantEntry):
                    reaches[0].left.add("a copy stays that was promoted to where you may not forget")
                    continue
                if namespace not in by:
                    by[namespace] = _Reach(reading, identity.chain(namespace), keep)
                _copy(reading, by[namespace], position)
    return list(by.values())


def _promotions(reading: Reading) -> dict[bytes, list[tuple[str, int]]]:
    """Where records stand that came by promotion, by the digest of what they came from."""
    found: dict[bytes, list[tuple[str, int]]] = {}
    for namespace in list(reading.reader.chains())[1:]:
        row = reading.reader.chain(namespace)
        for listed in () if row is None else reading.reader.catalog(row.number, PROMOTION):
            found.setdefault(bytes.fromhex(listed.value), []).append((namespace, listed.position + 1))
    return found


def _copy(reading: Reading, reach: _Reach, position: int) -> None:
    """Take in the record at a position, which came by promotion, unless it is gone already."""
    known, version = reach.facts.version(position), reading.version(reach.where, position)
    entry = None if version is None else version.proven.entry
    if known is None or not isinstance(entry, RecordEntry) or entry.promotion is None:
        raise CorruptionError(f"{reach.where.namespace}: entry {position} came by no promotion, as its row says")
    if known.ending is not Ending.ERASED:
        reach.take(known)
        reach.copies.add(_address(known))


def _carry_out(
    ledger: Ledger, caller: Caller, find: _Find, *, reason: str | None, keep: frozenset[str], dry_run: bool
) -> Forgotten:
    """Find what is reached, and unless it is a dry run erase it, clean up, and look whether it is gone."""
    if dry_run:
        with ledger.reads(caller) as (reading, here):
            # A program may look at what its user would erase elsewhere.
            elsewhere = replace(caller, acts=caller.acts | {Act.FORGET, Act.ADMIN})
            identity = here if Act.FORGET in caller.acts else Identity(reading, elsewhere, here.denials)
            reaches = _followed(reading, identity, find(reading, identity), keep)
            _check_kept(reaches, keep)
            return _report(reaches, erased=False)
    gone = _Gone()
    commits: list[tuple[str, int]] = []
    unkept: list[str] = []
    try:
        with ledger.writes(caller) as block:
            block.reading.catalogued()
            reaches = _followed(block.reading, block.identity, find(block.reading, block.identity), keep)
            _check_kept(reaches, keep)
            for reach in reaches:
                if reach.known or reach.own:
                    _note(block.reading, reach, gone)
                    commits += _erase(ledger, block, reach, reason)
            _strike_queries(block.writer, reaches, gone)
            # Before the commit: whoever dies after it has then said what it erased.
            unkept = _remembering(ledger, lambda anchors: anchors.mean(gone.commitments)) if commits else []
    except BaseException:
        with suppress(LedgerstoneError, OSError):
            recover(ledger)
        raise
    left = [] if block.warning is None else [block.warning]
    left += unkept or _remembering(ledger, lambda anchors: _erased_now(anchors, gone.commitments))
    left += ledger.scrub()
    found, shared = _traces(ledger.store, gone)
    left += found
    beyond = [SHORT] if gone.short else []
    if shared.said:
        beyond.append(f"{shared.said} of the erased texts stand in other records too, which were not named")
    if shared.fixed:
        beyond.append(
            f"{shared.fixed} of the erased texts are words that the store's own files hold anyway, as they do"
        )
    return _report(reaches, tuple(commits), left=left, beyond=beyond, erased=True)


def _strike_queries(writer: Writer, reaches: list[_Reach], gone: _Gone) -> None:
    """Take the query out of each receipt that chose something that goes, or whose query says it.

    Also out of whatever cannot be read, since nobody can tell what that chose.
    """
    digests = {known.digest for reach in reaches for known in reach.known.values()}
    writer.strike_queries(
        [
            drawn.id
            for drawn in writer.receipts(newest=False)
            if (receipt := receipts.readable(drawn)) is None
            or any(piece in said for said in _forms(drawn.query) for piece in gone.pieces)
            or not digests.isdisjoint(one.record for one in receipt.chosen)
        ]
    )


def _forms(query: bytes) -> tuple[bytes, bytes]:
    """A query as it was put, and its words as the index would hold them: it may say a text in another case."""
    return query, postings(index_words(query.decode("utf-8", "replace"))).encode()


def _remembering(ledger: Ledger, remember: Callable[[Anchors], None]) -> list[str]:
    """Remember outside the store what is erased; in words, that this was not possible."""
    if ledger.anchors is None:
        return []
    try:
        remember(ledger.anchors)
    except (OSError, UnavailableError) as error:
        return [f"not remembered outside the store, so that a backup could bring it back: {error}"]
    return []


def _erased_now(anchors: Anchors, commitments: Iterable[bytes]) -> None:
    anchors.keep_erased(commitments)
    anchors.drop_meant()


def recover(ledger: Ledger) -> None:
    """Finish what somebody who died was erasing: remember what is gone and clean up, and let be what is still there."""
    anchors = ledger.anchors
    if anchors is None or ledger.keyring.signer is None or not anchors.meant():
        return
    # Under the lock: whoever is erasing just now has committed by then, or has not.
    with ledger.store.write() as writer:
        meant = anchors.meant()
        held: set[bytes] = set()
        for namespace in writer.chains():
            row = writer.chain(namespace)
            contents = () if row is None else writer.contents(row.number, 0, LAST)
            held |= {
                canonical.commitment(salt, data) for _, salt, data in contents if len(salt) == canonical.SALT_BYTES
            }
        _erased_now(anchors, meant - held)
    if meant - held:
        ledger.scrub()


def _check_kept(reaches: list[_Reach], keep: frozenset[str]) -> None:
    """Whoever keeps what would not have gone, or what is named to go, has made a slip that would cost it."""
    spared = {address for reach in reaches for address in reach.spared}
    gone = {_address(known) for reach in reaches for known in reach.known.values()}
    for address in sorted(keep):
        if address not in spared:
            raise UsageError(
                f"keep: {address} is no summary that would go with the rest",
                hint="a dry run lists them by address, as mem_...@1",
            )
        if address in gone:
            raise UsageError(f"keep: {address} is itself among what is to go")


def _note(reading: Reading, reach: _Reach, gone: _Gone) -> None:
    """Note commitments, texts and words of what a reach holds, while it is still there."""
    for position in reach.known:
        found = reading.version(reach.where, position)
        if found is None:  # pragma: no cover - what is known has a version
            continue
        gone.versions += 1
        sealed = getattr(found.proven.entry, "content", None)
        if sealed is not None:
            gone.commitments.add(sealed.commitment)
        settled = isinstance(found.proven.entry, CloseEntry | RetractEntry)
        for content in (found.content, reading.content(reach.where, found.proven) if settled else None):
            if content is not None:
                for said in _said(content):
                    gone.add(said.encode(), canonical.encode(said)[1:-1], text=said is content.text)
        words = reading.reader.word_row(reach.where.number, position)
        if words is not None:
            gone.add(words.words.encode())
    for one in reach.own.values():
        gone.versions += 1
        gone.commitments.add(one.commitment)
        for said in _said(one.content):
            gone.add(said.encode(), canonical.encode(said)[1:-1], text=True)


def _said(content: Content) -> Iterator[str]:
    """Every text in a content."""
    yield from (text for text in (content.text, content.reason, content.name, content.key) if text is not None)
    yield from (text for text in (content.title,) if text is not None)
    yield from (text for text in (content.source, content.place) if text is not None)
    yield from (*content.tags, *content.triggers)


def _erase(ledger: Ledger, block: Block, reach: _Reach, reason: str | None) -> list[tuple[str, int]]:
    """The erasure commits of one namespace, each of one entry, and the note of them in the store chain."""
    digests = [known.digest for _, known in sorted(reach.known.items()) if known.body == known.position]
    strikes = [said.digest for said in reach.own.values()]
    if reach.where.namespace == block.reading.store.namespace:
        return [_strike_names(block, part, reason) for part in _parts(strikes)]
    place = block.identity.place(reach.where.namespace)
    if place is None:  # pragma: no cover - a chain that was found has a place
        raise unknown(reach.where.namespace)
    commits = [_erase_part(ledger, block, place, _entry(block, reason, erases=part)) for part in _parts(digests)]
    if commits:
        namespace, sequence = commits[-1]
        block.store_commit(
            [rules.plain(ErasedEntry(namespace=namespace, sequence=sequence, count=len(reach.known)))],
            principal=block.principal,
            origin=block.identity.caller.origin,
        )
    return commits + [
        _erase_part(ledger, block, place, _entry(block, reason, strikes=part)) for part in _parts(strikes)
    ]


def _parts(digests: list[bytes]) -> Iterator[tuple[bytes, ...]]:
    """As many as one entry may name at a time."""
    for start in range(0, len(digests), MAX_DRAFTS):
        yield tuple(digests[start : start + MAX_DRAFTS])


def _erase_part(ledger: Ledger, block: Block, place: Place, erasure: Admitted) -> tuple[str, int]:
    """One erasure commit of a namespace."""
    where, stamp = block.settle(Target(place, None, ""), Act.FORGET)
    batch = Batch(
        block.reading,
        where,
        namespace=where.namespace,
        stamp=stamp,
        limits=block.identity.caller.limits,
        store=block.point(),
    )
    batch.add(erasure)
    return where.namespace, batch.append(block.writer, ledger.keyring).head.sequence


def _strike_names(block: Block, strikes: tuple[bytes, ...], reason: str | None) -> tuple[str, int]:
    """One erasure commit of the store chain."""
    grant = block.authorize(Act.ADMIN, Place(block.reading.store.namespace, Scope.STORE, None))
    block.store_commit(
        [_entry(block, reason, strikes=strikes)],
        principal=block.principal,
        origin=block.identity.caller.origin,
        grant=grant.grant,
    )
    store = block.reading.store
    return store.namespace, store.head.sequence


def _entry(
    block: Block, reason: str | None, *, erases: tuple[bytes, ...] = (), strikes: tuple[bytes, ...] = ()
) -> Admitted:
    if reason is None:
        return rules.plain(ErasureEntry(erases=erases, strikes=strikes))
    return block.named(
        Content(reason=reason), lambda sealed: ErasureEntry(erases=erases, strikes=strikes, content=sealed)
    )


class _Shared(NamedTuple):
    """How many erased texts stand in the files with reason: others say the same, or it is how the store is written."""

    said: int = 0
    fixed: int = 0


# Where what somebody said is stored, and not how the store itself puts it.
_SAID: Final = frozenset({"content", "words", "frequency", "catalog"})


def _traces(store: Store, gone: _Gone) -> tuple[list[str], _Shared]:
    """In which files an erased text still stands, and how many stand there with reason."""
    if not gone.pieces:
        return [], _Shared()
    asked = list(gone.pieces)
    try:
        found = traces.look(store.files(), asked)
    except OSError as error:
        return [f"the files could not be looked through: {error}"], _Shared()
    still = {asked[number] for numbers in found.values() for number in numbers}
    shared: dict[bytes, set[str]] = {}
    if still:
        with store.read() as reader:
            shared = reader.held(still)
    left = []
    for path, numbers in sorted(found.items()):
        versions = {gone.pieces[asked[number]] for number in numbers if asked[number] not in shared}
        if versions:
            left.append(f"{path} still holds {len(versions)} of the erased texts")
    # Others may say part of a text, as the end of a sentence; only one that they say whole is worth a word.
    whole = [(number, pieces) for number, pieces in gone.texts if pieces <= shared.keys()]
    said = {number for number, pieces in whole if all(shared[piece] & _SAID for piece in pieces)}
    return left, _Shared(len(said), len({number for number, _ in whole} - said))


def _address(known: Known) -> str:
    return canonical.address(known.memory, known.version)


def _report(
    reaches: list[_Reach],
    commits: tuple[tuple[str, int], ...] = (),
    *,
    erased: bool,
    left: Iterable[str] = (),
    beyond: Iterable[str] = (),
) -> Forgotten:
    addresses = [_address(known) for reach in reaches for _, known in sorted(reach.known.items())]
    gone = set(addresses)
    return Forgotten(
        addresses=tuple(addresses),
        summaries=tuple(sorted(address for reach in reaches for address in reach.summaries)),
        copies=tuple(sorted(address for reach in reaches for address in reach.copies)),
        rests=tuple(sorted(address for reach in reaches for address in reach.rests if address not in gone)),
        names=tuple(said.label for reach in reaches for said in reach.own.values() if said.content.name is not None),
        reasons=tuple(said.label for reach in reaches for said in reach.own.values() if said.content.name is None),
        erased=erased,
        commits=commits,
        left=(*sorted(line for reach in reaches for line in reach.left), *left),
        unreached=(*UNREACHED, *beyond),
    )
