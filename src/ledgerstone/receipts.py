"""Receipts in a store: kept, shown, taken out, and held to the history that they speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

import orjson

from ledgerstone.core import receipts
from ledgerstone.core.authority import Caller
from ledgerstone.core.entries import Entry, GenesisEntry, RecordEntry, decode_entry, decode_header
from ledgerstone.core.facts import Known
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.receipts import MAX_RECEIPTS, Chosen, Drawn, Met, Receipt, Seen
from ledgerstone.core.signing import Keyring
from ledgerstone.core.sorts import check_limit
from ledgerstone.core.values import STANDING_OF_ENDING, Finding, Lane, Policy, Recall
from ledgerstone.errors import ConflictError, CorruptionError, NotFoundError
from ledgerstone.following import Enrolment
from ledgerstone.identity import Identity
from ledgerstone.ledger import Ledger
from ledgerstone.reading import Chain, Reading
from ledgerstone.resuming import draw
from ledgerstone.store.protocol import Reader

MAX_SHOWN: Final = 100
BELOW: Final = "below_floor"


class Item(NamedTuple):
    """An entry of a receipt: where it stood and why, and its address and standing now, where the caller sees it.

    ``section`` is ``below_floor`` for what stood in that section.
    """

    address: str | None
    lane: str
    rank: int
    score: int | None
    standing: str | None
    section: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A receipt as it is shown: what was asked, what was chosen and why, what was left out.

    ``query`` is None once it was erased. ``data``, ``signature`` and ``public`` are what a stranger checks.
    """

    id: str
    receipt: Receipt
    query: str | None
    items: tuple[Item, ...]
    data: bytes
    signature: bytes
    public: bytes | None


class Keys(NamedTuple):
    """By which keys receipts are checked, and where those ended that others took over from."""

    keyring: Keyring
    ended: Mapping[str, int]


class Checked(NamedTuple):
    """What is wrong with receipts, how many are kept and how many of them were checked, and which is the newest."""

    findings: tuple[Finding, ...]
    kept: int
    checked: int
    newest: str | None


def keep(ledger: Ledger, caller: Caller, context: Recall, policy: Policy, at: int, *, worded: bool) -> Recall:
    """The context with the id of its receipt, which is signed and durably in the store by then.

    Unless it is ``worded`` the query is committed to and not kept, as if it had been erased.
    """
    floor = caller.floor if policy.floor is None else max(caller.floor, policy.floor)
    with ledger.writes(caller) as block:
        # The key in force under the lock: one that was retired since the recall signs nothing more.
        keyring, principal = block.reading.keyring, block.identity.principal
        drawn = receipts.draw(
            context,
            policy,
            at=at,
            principal=principal,
            floor=floor,
            salt=ledger.entropy(32),
            keyring=keyring,
            most_below_floor_bytes=caller.below_floor_bytes,
        )
        if not worded:
            drawn = drawn._replace(salt=b"", query=b"")
        block.writer.keep_receipt(drawn, MAX_RECEIPTS)
    return replace(context, receipt=drawn.id)


def unkept(query: str, policy: Policy, allowed: Sequence[str]) -> tuple[str, ...]:
    """That the words of a recall look like a credential, and are not kept with its receipt; nothing if they do not."""
    # Loaded with the first write: a read does not pay for it.
    from ledgerstone.core import credentials  # noqa: PLC0415

    synonyms = policy.synonyms or {}
    filters = (policy.key or "", *policy.tags)
    found = credentials.sorts(
        [query, *filters, *synonyms, *(each for others in synonyms.values() for each in others)], allowed
    )
    named = ", ".join(found)
    return (f"receipt: the query looks like a credential ({named}), and was not kept with it",) if found else ()


def cited(reading: Reading, identity: Identity, name: str | None) -> bytes | None:
    """The hash of a receipt that a write cites; NotFoundError for one that is not there, or another principal's.

    CorruptionError for one whose bytes or signature do not hold, ConflictError when a record that it chose has been
    ended since by somebody who did not cite it too.
    """
    if name is None:
        return None
    drawn = _own(reading.reader, identity, name)
    receipt = _checked(reading.reader, drawn, keys(reading.keyring, reading.enrolled()))
    digest = receipts.digest_of(drawn.data)
    # Whoever looked at the past knew that it was not the present.
    if receipt.as_of is None and receipt.at_sequence is None:
        for seen in receipt.heads:
            place = identity.place(seen.namespace)
            if place is not None and identity.sees(place):
                _still(reading, identity.chain(seen.namespace), seen, (*receipt.chosen, *receipt.below_floor), digest)
    return digest


def _still(reading: Reading, where: Chain, seen: Seen, chosen: Sequence[Chosen], digest: bytes) -> None:
    """Raise ConflictError unless what was chosen of a chain still stands as it did at the head that was seen."""
    for one in chosen:
        for number, position in reading.reader.digests(one.record):
            ended = _ended(reading, where, position, digest) if number == where.number else None
            if ended is not None and ended.ended_by > seen.sequence:
                raise ConflictError(
                    f"{ended.address}, which the receipt rests on, is {STANDING_OF_ENDING[ended.ending].value} since "
                    f"commit {ended.ended_by}",
                    hint="recall again, and write under the receipt of that",
                )


def _ended(reading: Reading, where: Chain, position: int | None, digest: bytes) -> Known | None:
    """The version at a position, or that which came of it under the same receipt, if something else ended it.

    What had its time is no news, also when it was erased for that.
    """
    while position is not None:
        known = reading.known(where, position)
        if known is None or not known.ending or (known.expires is not None and known.expires <= reading.now):
            break
        if decode_header(reading.header(where, known.ended_by)).receipt != digest:
            return known
        position = reading.reader.version_at(where.number, known.memory, known.version + 1)
    return None


def _own(reader: Reader, identity: Identity, name: str) -> Drawn:
    drawn = reader.receipt(name)
    if drawn is None or not _theirs(drawn, identity):
        raise NotFoundError(f"no receipt {name} here", hint="see those that are kept: ledgerstone receipts")
    return drawn


def _theirs(drawn: Drawn, identity: Identity) -> bool:
    """A receipt belongs to its principal; one of somebody the store did not know, or none at all, to nobody.

    One that saw what isolation hides is not there, as little as what it saw.
    """
    receipt = receipts.readable(drawn)
    if receipt is None or receipt.principal is None or receipt.principal != identity.principal:
        return False
    return not any(identity.hidden(seen.namespace) for seen in receipt.heads)


def keys(trusted: Keyring, enrolled: Iterable[Enrolment]) -> Keys:
    """The trusted keys, and those by which the store was signed before them: what they signed then still counts."""
    every = list(enrolled)
    ended = {entry.retires: sequence for entry, sequence in every if entry.retires is not None}
    return Keys(Keyring(pins=(*trusted.public.values(), *(one.entry.public for one in every))), ended)


def _over(reader: Reader, receipt: Receipt, by: Keys) -> str | None:
    """How a receipt that holds by itself shows that its key was no longer in force, or None."""
    ended = by.ended.get(receipt.signer)
    return None if ended is None else receipts.outlived(receipt, ended, _points(reader, receipt))


def _points(reader: Reader, receipt: Receipt) -> Iterator[int]:
    """The sequences of the store chain at which the heads of a receipt were made, as far as they are there."""
    for seen in receipt.heads:
        row = reader.chain(seen.namespace)
        data = None if row is None else reader.header(row.number, seen.sequence)
        if data is not None and leaf_hash(data) == seen.id:
            point = decode_header(data).store
            yield seen.sequence if point is None else point.sequence


def _checked(reader: Reader, drawn: Drawn, by: Keys) -> Receipt:
    receipt, wrong = receipts.check(drawn, by.keyring)
    if receipt is not None:
        wrong = _over(reader, receipt, by)
    if receipt is None or wrong is not None:
        raise CorruptionError(f"receipt {drawn.id}: {wrong}", hint="run: ledgerstone verify")
    return receipt


def _asked(drawn: Drawn) -> str | None:
    """The query of a receipt that was checked; None once it was erased."""
    return orjson.loads(drawn.query)["query"] if drawn.query else None


def explain(reading: Reading, identity: Identity, keyring: Keyring, name: str) -> Explained:
    """See ``Memory.explain``."""
    drawn, by = _own(reading.reader, identity, name), keys(keyring, reading.enrolled())
    receipt = _checked(reading.reader, drawn, by)
    visible = {where.number: (where, place.scope) for where, place in identity.in_sight()}
    items = []
    for one, section in _sections(receipt):
        address = standing = None
        for number, position in reading.reader.digests(one.record):
            if number in visible:
                record = reading.record(*visible[number], position)
                address, standing = record.address, record.standing.value
        items.append(Item(address, one.lane.value, one.rank, one.score, standing, section))
    return _explained(drawn, receipt, items, by.keyring.public.get(receipt.signer))


def _explained(drawn: Drawn, receipt: Receipt, items: Sequence[Item] = (), public: bytes | None = None) -> Explained:
    return Explained(
        id=drawn.id,
        receipt=receipt,
        query=_asked(drawn),
        items=tuple(items),
        data=drawn.data,
        signature=drawn.signature,
        public=public,
    )


def listed(reading: Reading, identity: Identity, keyring: Keyring, limit: int) -> tuple[Explained, ...]:
    """See ``Memory.receipts``."""
    check_limit(limit, MAX_SHOWN)
    by = keys(keyring, reading.enrolled())
    own = (drawn for drawn in reading.reader.receipts(newest=True) if _theirs(drawn, identity))
    return tuple(_explained(drawn, _checked(reading.reader, drawn, by)) for drawn in islice(own, limit))


def drop(ledger: Ledger, caller: Caller, names: Sequence[str]) -> int:
    """Take a caller's receipts out, or all of them without names; how many there were. What cited them still does.

    What is no receipt at all is nobody's, and anybody's to take out.
    """
    with ledger.writes(caller) as block:
        own = [
            drawn.id
            for drawn in block.writer.receipts(newest=True)
            if receipts.readable(drawn) is None or _theirs(drawn, block.identity)
        ]
        absent = sorted(set(names) - set(own))
        if absent:
            raise NotFoundError(f"no receipt {absent[0]} here", hint="see those that are kept: ledgerstone receipts")
        gone = list(names) or own
        block.writer.drop_receipts(gone)
    return len(gone)


def check(reader: Reader, by: Keys, since: str | None, entropy: Callable[[int], bytes]) -> Checked:
    """What is wrong with the receipts that are kept: of themselves, or beside the history they speak of.

    All of them; or those newer than one that was checked before, and a sample of the others.
    """
    names = reader.receipt_names()
    chosen = names
    if since in names:
        new = names.index(since)
        older = sorted(draw(len(names) - new, entropy))
        chosen = [*names[:new], *(names[new + each] for each in older)]
    found = []
    for name in reversed(chosen):
        wrong = _wrong(reader, name, by)
        if wrong is not None:
            found.append(Finding("receipt", "", None, f"receipt {name}: {wrong}"))
    return Checked(tuple(found), len(names), len(chosen), names[0] if names else None)


def _wrong(reader: Reader, name: str, by: Keys) -> str | None:
    """What is wrong with one receipt, or None; what it speaks of may be damaged itself."""
    drawn = reader.receipt(name)
    if drawn is None:
        return "it is not there"
    receipt, wrong = receipts.check(drawn, by.keyring)
    try:
        if receipt is not None:
            wrong = _over(reader, receipt, by) or _beside(reader, receipt)
    except CorruptionError as error:
        wrong = f"what it names cannot be read: {error.message}"
    return wrong


def _beside(reader: Reader, receipt: Receipt) -> str | None:
    """What of a receipt is not so in history, or None: its heads were heads, and what it chose stood there."""
    heads: dict[int, int] = {}
    for seen in receipt.heads:
        row = reader.chain(seen.namespace)
        header = None if row is None else reader.header(row.number, seen.sequence)
        if row is None or header is None or leaf_hash(header) != seen.id:
            return f"commit {seen.sequence} of {seen.namespace} is not the head that it names"
        genesis = _entry(reader, row.number, 0)
        if isinstance(genesis, GenesisEntry):
            wrong = receipts.beyond(receipt, seen, scope=genesis.scope, at=decode_header(header).stamp.at)
            if wrong is not None:
                return f"commit {seen.sequence} of {seen.namespace} {wrong}"
        heads[row.number] = seen.sequence
    for one, section in _sections(receipt):
        places = [(number, position) for number, position in reader.digests(one.record) if number in heads]
        if not places:
            return f"no chain that it saw holds the record {one.record.hex()[:16]}"
        number, position = places[0]
        standing = reader.standing(number, position)
        if standing is None or standing.sequence > heads[number]:
            return f"the record {one.record.hex()[:16]} is newer than the head that it names"
        live = section is not None or "history" not in receipt.flags
        if live and standing.ending and standing.ended_by <= heads[number]:
            return f"the record {one.record.hex()[:16]} no longer stood at the head that it names"
        met = _met(reader, number, position, one.lane)
        wrong = None if met is None else receipts.outside(receipt, met._replace(below_floor=section is not None))
        if wrong is not None:
            return f"the record {one.record.hex()[:16]} {wrong}"
    return None


def _sections(receipt: Receipt) -> Iterator[tuple[Chosen, str | None]]:
    """What a receipt says was chosen, and in which section if not among the entries."""
    yield from ((one, None) for one in receipt.chosen)
    yield from ((one, BELOW) for one in receipt.below_floor)


def _met(reader: Reader, number: int, position: int, lane: Lane) -> Met | None:
    """What a version is; None where its own bytes do not say, which the verification of its chain names."""
    known = reader.known(number, position)
    record = None if known is None else _entry(reader, number, known.body)
    header = None if known is None else reader.header(number, known.sequence)
    if known is None or header is None or not isinstance(record, RecordEntry):
        return None
    return Met(lane, known.trust, known.kind, record.origin, decode_header(header).stamp.at)


def _entry(reader: Reader, number: int, position: int) -> Entry | None:
    data = reader.entry(number, position)
    return None if data is None else decode_entry(data)
