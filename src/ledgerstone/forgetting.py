"""Erasure: what a request reaches, the commit that takes it out, and a look at the files for what stayed behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Final

import orjson

from ledgerstone.core import canonical, rules
from ledgerstone.core.authority import Caller, Place
from ledgerstone.core.entries import (
    CloseEntry,
    Content,
    ErasedEntry,
    ErasureEntry,
    GrantEntry,
    NamespaceEntry,
    RetractEntry,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.projection import carriers
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import MAX_DRAFTS, MAX_REASON_BYTES, Act, Ending, Forgotten, Kind
from ledgerstone.errors import NotFoundError, UsageError
from ledgerstone.identity import Identity, Target, parse_target
from ledgerstone.ledger import Block, Ledger
from ledgerstone.reading import Chain, Reading
from ledgerstone.search import LAST
from ledgerstone.writing import Batch

# Shorter texts occur by chance, and everywhere.
LEAST_NEEDLE_BYTES: Final = 6
UNREACHED: Final = (
    "copies and backups of the store, exports, and whatever was read before are not reached",
    "the chain keeps the commitments, sizes, times and ids of what was erased; nothing can be guessed from them",
)
# A process of its own looks at the files: a descriptor on them in this one would drop SQLite's locks.
_SCAN: Final = """
import sys, json
needles = [bytes.fromhex(n) for n in json.loads(sys.stdin.readline())]
longest = max(map(len, needles), default=1)
found = {}
for path in sys.argv[1:]:
    tail = b""
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            window = tail + block
            for needle in needles:
                if needle in window:
                    found[path] = found.get(path, 0) + 1
            tail = window[-(longest - 1):] if longest > 1 else b""
print(json.dumps(found))
"""


class _Reach:
    """What one request reaches in one namespace: versions by position, and why each is among them."""

    __slots__ = ("_facts", "_keep", "_reading", "known", "rests", "summaries", "where")

    def __init__(self, reading: Reading, where: Chain, keep: frozenset[str]) -> None:
        self._reading = reading
        self._facts = reading.facts(where)
        self._keep = keep
        self.where = where
        self.known: dict[int, Known] = {}
        self.summaries: set[str] = set()
        self.rests: set[str] = set()

    def take(self, position: int) -> None:
        """Take in a version, all that hold its text, and the summaries that cover it, unless they are kept."""
        known = self._facts.version(position)
        if known is None or position in self.known:
            return
        for one in carriers(known, self._facts):
            if one.ending is not Ending.ERASED:
                self.known[one.position] = one
        for one in list(self.known.values()):
            self._above(one)

    def _above(self, known: Known) -> None:
        reader, number = self._reading.reader, self.where.number
        covering = set(reader.covering(number, known.position))
        for position in reader.resting_on(number, known.position):
            above = self._facts.version(position)
            if above is None or position in self.known or above.ending is Ending.ERASED:
                continue
            address = canonical.address(above.memory, above.version)
            if position in covering and above.kind is Kind.SUMMARY and address not in self._keep:
                self.summaries.add(address)
                self.take(position)
            else:
                self.rests.add(address)


def forget(
    ledger: Ledger,
    caller: Caller,
    targets: Iterable[str],
    *,
    reason: str | None,
    keep: Iterable[str],
    dry_run: bool,
    everywhere: bool = False,
) -> Forgotten:
    """See ``Memory.forget``. With ``everywhere`` in all namespaces that the caller may erase in."""
    wanted = tuple(targets)
    if not 1 <= len(wanted) <= MAX_DRAFTS:
        raise UsageError(f"forget: 1 to {MAX_DRAFTS} targets, not {len(wanted)}")
    if reason is not None:
        canonical.text(reason, name="reason", least=1, most=MAX_REASON_BYTES)
    kept = frozenset(keep)
    if dry_run:
        with ledger.reads(caller) as (reading, identity):
            return _report(
                _reach(reading, _chains(reading, identity, everywhere=everywhere), wanted, kept), erased=False
            )
    with ledger.writes(caller) as block:
        block.reading.catalogued()
        chains = _chains(block.reading, block.identity, everywhere=everywhere)
        reaches = _reach(block.reading, chains, wanted, kept)
        needles = {needle for reach in reaches for needle in _needles(block.reading, reach)}
        commitments = {c for reach in reaches for c in _commitments(block.reading, reach)}
        for reach in reaches:
            _erase(ledger, block, reach, reason)
    left = ledger.store.scrub()
    ledger.remember_heads({})
    if ledger.anchors is not None:
        ledger.anchors.keep_erased(commitments)
    found = _scan(ledger, needles)
    left += [f"{path} still holds {count} of the erased texts" for path, count in sorted(found.items())]
    return _report(reaches, erased=True, left=tuple(left))


def again(ledger: Ledger, caller: Caller) -> Forgotten | None:
    """Erase what was erased on this machine before and has come back with an older copy of the store."""
    gone = frozenset() if ledger.anchors is None else ledger.anchors.erased()
    if not gone:
        return None
    back = []
    with ledger.reads(caller) as (reading, identity):
        for where in _chains(reading, identity, everywhere=True):
            for position, salt, data in reading.reader.contents(where.number, 0, LAST):
                if canonical.commitment(salt, data) in gone:
                    known = reading.known(where, position)
                    if known is not None:
                        back.append(known.digest.hex())
    if not back:
        return None
    return forget(
        ledger, caller, back[:MAX_DRAFTS], reason="erased here before", keep=(), dry_run=False, everywhere=True
    )


def _chains(reading: Reading, identity: Identity, *, everywhere: bool) -> list[Chain]:
    """Where to look: what the caller is bound to, or every namespace that it may erase in."""
    if not everywhere:
        return [where for where, _ in identity.visible()[0]]
    found = []
    for row in reading.reader.catalog(reading.store.number, "namespace"):
        entry = reading.listed(row).proven.entry
        if isinstance(entry, NamespaceEntry):
            place = Place(entry.namespace, entry.scope, entry.owner)
            if isinstance(identity.allowed(Act.FORGET, place), GrantEntry):
                found.append(identity.chain(entry.namespace))
    return found


def _reach(reading: Reading, chains: list[Chain], targets: tuple[str, ...], keep: frozenset[str]) -> list[_Reach]:
    reaches: dict[int, _Reach] = {}
    for where in chains:
        reading.counted(where)
        reaches[where.number] = _Reach(reading, where, keep)
    for target in targets:
        rows = [(number, position) for number, position in _rows(reading, target, reaches) if number in reaches]
        if not rows:
            raise NotFoundError(f"no memory {target} here")
        for number, position in rows:
            reaches[number].take(position)
    return [reach for reach in reaches.values() if reach.known]


def _rows(reading: Reading, target: str, reaches: dict[int, _Reach]) -> list[tuple[int, int]]:
    """Where a target stands: all versions of a memory or of a key's memory, one version, one digest."""
    if target.startswith("key:"):
        held = []
        for number, reach in reaches.items():
            position = reading.reader.holder(number, target[len("key:") :])
            known = None if position is None else reading.known(reach.where, position)
            if known is not None:
                held += reading.reader.versions(known.memory)
        return [(number, position) for number, position, _ in held]
    wanted = parse_target(target)
    if isinstance(wanted, bytes):
        return reading.reader.digests(wanted)
    memory, version = wanted
    rows = reading.reader.versions(memory)
    return [(number, position) for number, position, found in rows if version in {None, found}]


def _contents(reading: Reading, reach: _Reach) -> Iterable[tuple[Known, Content]]:
    for position, known in reach.known.items():
        found = reading.version(reach.where, position)
        if found is None:
            continue
        if found.content is not None:
            yield known, found.content
        if isinstance(found.proven.entry, CloseEntry | RetractEntry):
            own = reading.content(reach.where, found.proven)
            if own is not None:
                yield known, own


def _needles(reading: Reading, reach: _Reach) -> set[bytes]:
    """What to look for afterwards: each text as it was stored."""
    found = set()
    for _, content in _contents(reading, reach):
        for text in (content.text, content.reason, content.key, content.title, content.source):
            if text is not None:
                stored = canonical.encode(text)[1:-1]
                if len(stored) >= LEAST_NEEDLE_BYTES:
                    found.add(stored)
    return found


def _commitments(reading: Reading, reach: _Reach) -> set[bytes]:
    return {
        sealed.commitment
        for position in reach.known
        if (found := reading.version(reach.where, position)) is not None
        and (sealed := getattr(found.proven.entry, "content", None)) is not None
    }


def _erase(ledger: Ledger, block: Block, reach: _Reach, reason: str | None) -> None:
    """The erasure commits of one namespace, each of one entry, and the note of them in the store chain."""
    place = block.identity.place(reach.where.namespace)
    if place is None:
        raise NotFoundError("no such memory here")
    digests = [known.digest for _, known in sorted(reach.known.items()) if known.body == known.position]
    where = reach.where
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
        where = batch.append(block.writer, ledger.keyring)
    block.store_commit(
        [rules.plain(ErasedEntry(namespace=where.namespace, sequence=where.head.sequence, count=len(reach.known)))],
        principal=block.principal,
        origin=block.identity.caller.origin,
    )


def _entry(block: Block, erases: tuple[bytes, ...], reason: str | None) -> Admitted:
    if reason is None:
        return rules.plain(ErasureEntry(erases=erases))
    return block.named(Content(reason=reason), lambda sealed: ErasureEntry(erases=erases, content=sealed))


def _scan(ledger: Ledger, needles: set[bytes]) -> dict[str, int]:
    """In which files of the store any of the erased texts still stands."""
    if not needles:
        return {}
    asked = orjson.dumps([needle.hex() for needle in sorted(needles)]) + b"\n"
    paths = [str(path) for path in ledger.store.files()]
    done = subprocess.run(  # noqa: S603 - this interpreter, our own words
        [sys.executable, "-I", "-c", _SCAN, *paths], input=asked, capture_output=True, check=True
    )
    found: dict[str, int] = orjson.loads(done.stdout)
    return found


def _report(reaches: list[_Reach], *, erased: bool, left: tuple[str, ...] = ()) -> Forgotten:
    addresses = [
        canonical.address(known.memory, known.version) for reach in reaches for _, known in sorted(reach.known.items())
    ]
    summaries = sorted(address for reach in reaches for address in reach.summaries)
    rests = sorted(address for reach in reaches for address in reach.rests if address not in addresses)
    return Forgotten(
        addresses=tuple(addresses),
        summaries=tuple(summaries),
        rests=tuple(rests),
        erased=erased,
        left=left,
        unreached=UNREACHED,
    )
