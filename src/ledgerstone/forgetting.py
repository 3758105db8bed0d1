"""Erasure: what a request reaches, the commits that take it out, and a look at the files for what stayed behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from ledgerstone import traces
from ledgerstone.anchors import Anchors
from ledgerstone.core import canonical, chain, entries, rules
from ledgerstone.core.authority import Caller, Denial, Place
from ledgerstone.core.entries import (
    CloseEntry,
    Content,
    ErasedEntry,
    ErasureEntry,
    GrantEntry,
    Header,
    NamespaceEntry,
    RecordEntry,
    RetractEntry,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.projection import carriers
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import (
    MAX_DRAFTS,
    MAX_REASON_BYTES,
    Act,
    Ending,
    Finding,
    Forgotten,
    Kind,
    Refusal,
    Retention,
    Scope,
)
from ledgerstone.errors import CorruptionError, LedgerstoneError, NotFoundError, UnavailableError, UsageError
from ledgerstone.identity import Identity, Target, parse_target
from ledgerstone.ledger import Block, DeniedError, Ledger
from ledgerstone.reading import Chain, Reading
from ledgerstone.search import LAST
from ledgerstone.store.protocol import Reader, Store
from ledgerstone.writing import Batch

UNREACHED: Final = (
    "copies and backups of the store, exports, what was read before, and blocks that the file system keeps by itself",
    "names of principals, sessions and namespaces, and the reasons given for erasures",
    "the chain keeps commitments, sizes, times and ids of what was erased; nothing can be guessed from them",
)
SHORT: Final = f"texts under {traces.LEAST_BYTES} bytes are not looked for in the files: they occur everywhere"
# What may be let go by its retention; the rest goes by an expiry of its own, or when somebody forgets it.
PASSING: Final = frozenset({Retention.WORKING, Retention.SESSION, Retention.SHORT_TERM})
EXPIRED: Final = "expired"
ERASED_BEFORE: Final = "erased here before"
KEY: Final = "key:"
# Targets that are looked for wherever the caller may erase; all others only where it is bound.
WIDE: Final = ("session:", "principal:", "write:", "namespace:")


class _Reach:
    """What one request reaches in one namespace: versions by position, and why each is among them."""

    __slots__ = ("_keep", "_reading", "facts", "known", "left", "rests", "spared", "summaries", "where")

    def __init__(self, reading: Reading, where: Chain, keep: frozenset[str]) -> None:
        reading.counted(where)
        self._reading = reading
        self._keep = keep
        self.facts = reading.facts(where)
        self.where = where
        self.known: dict[int, Known] = {}
        self.summaries: set[str] = set()
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
        bound = {where.number: where for where, _ in identity.visible()[0]}
        beyond = {where.number: where for where in _erasable(reading, identity)} if wide else {}
        reaches = {number: _Reach(reading, where, kept) for number, where in (beyond | bound).items()}
        for target in targets:
            if target.startswith(WIDE):
                found = _wide(ledger, reading, identity, target, [reaches[number] for number in beyond])
            else:
                found = _narrow(target, [reaches[number] for number in bound], reading)
            if not found:
                raise NotFoundError(f"no memory {target} here")
        return list(reaches.values())

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
        reaches = [_Reach(reading, where, kept) for where in _erasable(reading, identity)]
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
        reaches = [_Reach(reading, where, frozenset()) for where in _erasable(reading, identity)]
        for reach in reaches:
            for position in _returned(reading.reader, reach.where.number, gone):
                known = reach.facts.version(position)
                if known is not None:
                    reach.take(known)
        return reaches

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
        count = 0 if row is None else len(_returned(reader, row.number, gone))
        if count:
            message = f"{count} contents that were erased here are back; who may forget there: verify --accept"
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


def _erasable(reading: Reading, identity: Identity) -> list[Chain]:
    """Every namespace that the caller may erase in; DeniedError where the host lets nobody erase."""
    if Act.FORGET not in identity.caller.acts:
        nowhere = Place(None, Scope.STORE, None)
        raise DeniedError(Denial(Act.FORGET, Refusal.HOST, nowhere, identity.principal))
    found = []
    for row in reading.reader.catalog(reading.store.number, "namespace"):
        entry = reading.listed(row).proven.entry
        if isinstance(entry, NamespaceEntry):
            place = Place(entry.namespace, entry.scope, entry.owner)
            if isinstance(identity.allowed(Act.FORGET, place), GrantEntry):
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
        return True
    taken = False
    for reach in reaches:
        mark = _mark(ledger, reading, identity, reach.where.namespace, word, name)
        for header in _mentioning(reading, reach.where, mark):
            if mark == _marked(header, word):
                taken |= _of_commit(reach, header, whole=word == "write")
    return taken


def _mark(ledger: Ledger, reading: Reading, identity: Identity, namespace: str, word: str, name: str) -> str | None:
    """What the headers of the commits that are meant hold; None when no header can."""
    if word == "session":
        return Identity(reading, replace(identity.caller, session=name), []).session_id
    if word == "principal":
        return Identity(reading, replace(identity.caller, principal=name), []).principal
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


def _of_commit(reach: _Reach, header: Header, *, whole: bool) -> bool:
    """Take in the records of a commit; without ``whole`` not the texts that its closes and retracts carry on."""
    taken = False
    for position in range(header.counts.entries - len(header.entries), header.counts.entries):
        known = reach.facts.version(position)
        if known is None:
            continue
        taken = True
        if whole or known.body == known.position:
            reach.take(known)
        elif known.sealed and known.ending is not Ending.ERASED:
            reach.left.add(f"{_address(known)}: the reason given there goes only with its text")
    return taken


class _Gone:
    """What is being erased: commitments to remember, and pieces of text to look for, each with its version's number.

    ``texts`` are those pieces that are of a text itself; the rest are of keys, tags and the like, and of words.
    """

    __slots__ = ("commitments", "pieces", "short", "texts", "versions")

    def __init__(self) -> None:
        self.commitments: set[bytes] = set()
        self.pieces: dict[bytes, int] = {}
        self.texts: set[bytes] = set()
        self.versions = 0
        self.short = False

    def add(self, *forms: bytes, text: bool = False) -> None:
        """Note what the newest version says, in each form that it is stored in."""
        pieces = set().union(*map(traces.pieces_of, forms))
        self.short |= not pieces
        for piece in pieces:
            self.pieces.setdefault(piece, self.versions)
        self.texts |= pieces if text else set()


def _carry_out(
    ledger: Ledger, caller: Caller, find: _Find, *, reason: str | None, keep: frozenset[str], dry_run: bool
) -> Forgotten:
    """Find what is reached, and unless it is a dry run erase it, clean up, and look whether it is gone."""
    if dry_run:
        with ledger.reads(caller) as (reading, identity):
            reaches = find(reading, identity)
            _check_kept(reaches, keep)
            return _report(reaches, erased=False)
    gone = _Gone()
    commits: list[tuple[str, int]] = []
    unkept: list[str] = []
    try:
        with ledger.writes(caller) as block:
            block.reading.catalogued()
            reaches = find(block.reading, block.identity)
            _check_kept(reaches, keep)
            for reach in reaches:
                if reach.known:
                    _note(block.reading, reach, gone)
                    commits += _erase(ledger, block, reach, reason)
            # Before the commit: whoever dies after it has then said what it erased.
            unkept = _remembering(ledger, lambda anchors: anchors.mean(gone.commitments)) if commits else []
    except BaseException:
        with suppress(LedgerstoneError, OSError):
            recover(ledger)
        raise
    left = [] if block.warning is None else [block.warning]
    left += unkept or _remembering(ledger, lambda anchors: _erased_now(anchors, gone.commitments))
    left += ledger.store.scrub()
    warning = ledger.remember_heads({})
    left += [] if warning is None else [warning]
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
        ledger.store.scrub()
        ledger.remember_heads({})


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


def _said(content: Content) -> Iterator[str]:
    """Every text in a content."""
    yield from (text for text in (content.text, content.reason, content.key, content.title) if text is not None)
    yield from (text for text in (content.source, content.place) if text is not None)
    yield from (*content.tags, *content.triggers)


def _erase(ledger: Ledger, block: Block, reach: _Reach, reason: str | None) -> list[tuple[str, int]]:
    """The erasure commits of one namespace, each of one entry, and the note of them in the store chain."""
    place = block.identity.place(reach.where.namespace)
    if place is None:  # pragma: no cover - a chain that was found has a place
        raise unknown(reach.where.namespace)
    digests = [known.digest for _, known in sorted(reach.known.items()) if known.body == known.position]
    commits = []
    for start in range(0, len(digests), MAX_DRAFTS):
        part = tuple(digests[start : start + MAX_DRAFTS])
        where, stamp = block.settle(Target(place, None, ""), Act.FORGET)
        batch = Batch(
            block.reading,
            where,
            namespace=where.namespace,
            stamp=stamp,
            limits=block.identity.caller.limits,
            store=block.point(),
        )
        batch.add(_entry(block, part, reason))
        commits.append((where.namespace, batch.append(block.writer, ledger.keyring).head.sequence))
    namespace, sequence = commits[-1]
    block.store_commit(
        [rules.plain(ErasedEntry(namespace=namespace, sequence=sequence, count=len(reach.known)))],
        principal=block.principal,
        origin=block.identity.caller.origin,
    )
    return commits


def _entry(block: Block, erases: tuple[bytes, ...], reason: str | None) -> Admitted:
    if reason is None:
        return rules.plain(ErasureEntry(erases=erases))
    return block.named(Content(reason=reason), lambda sealed: ErasureEntry(erases=erases, content=sealed))


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
    texts = {piece: gone.pieces[piece] for piece in shared.keys() & gone.texts}
    said = {number for piece, number in texts.items() if shared[piece] & _SAID}
    return left, _Shared(len(said), len(set(texts.values()) - said))


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
        rests=tuple(sorted(address for reach in reaches for address in reach.rests if address not in gone)),
        erased=erased,
        commits=commits,
        left=(*sorted(line for reach in reaches for line in reach.left), *left),
        unreached=(*UNREACHED, *beyond),
    )
