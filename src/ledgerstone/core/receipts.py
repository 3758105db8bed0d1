"""Receipts: signed evidence of what one recall chose, under which policy, at which heads, and what it left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledgerstone.core import canonical, fields, signing
from ledgerstone.core.concepts import CLUSTERS
from ledgerstone.core.entries import HASH, KEY, NAMESPACE, PRINCIPAL, TIME, TRUST
from ledgerstone.core.fields import FORMAT, array, field, integer, nested, slug, string, word
from ledgerstone.core.ranking import RANKING
from ledgerstone.core.recall import MOST_BUDGET
from ledgerstone.core.values import Kind, Lane, Mode, Origin, Policy, Recall, Recalled, Scope, Trust
from ledgerstone.core.words import ANALYZER
from ledgerstone.errors import CorruptionError

# A store keeps so many receipts; for each one more the oldest goes.
MAX_RECEIPTS: Final = 10_000
MAX_HEADS: Final = 512
COUNT: Final = integer()
SCORER: Final = f"{RANKING} {ANALYZER} concepts/{canonical.digest(b'concepts', CLUSTERS.encode()).hex()[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A chain as a recall saw it: up to this commit."""

    namespace: str = field(NAMESPACE)
    sequence: int = field(COUNT)
    id: bytes = field(HASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A record that was chosen, by its digest: which lane found it, its place in the context, its score."""

    record: bytes = field(HASH)
    lane: Lane = field(word(Lane))
    rank: int = field(COUNT)
    score: int | None = field(COUNT, absent=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """How many candidates were left out for one reason."""

    reason: str = field(slug())
    count: int = field(COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What is hashed and signed. The query, and what else a caller worded, is content: only committed to.

    ``below_floor`` is the section of what lies below the ``floor``, with bytes of its own, where the host allowed any.
    ``flags``: history, when it was asked for. ``as_of`` or ``at_sequence``: which past state. ``bytes`` and ``tokens``:
    what the context took. ``scorer`` names the ranking, so that a selection can be made again by the same.
    """

    at: int = field(TIME)
    signer: str = field(KEY)
    principal: str | None = field(PRINCIPAL, absent=None)
    query: bytes = field(HASH)
    mode: Mode = field(word(Mode))
    flags: tuple[str, ...] = field(array(slug(), 4), absent=())
    scopes: tuple[Scope, ...] = field(array(word(Scope), 8), absent=())
    kinds: tuple[Kind, ...] = field(array(word(Kind), 8), absent=())
    origins: tuple[Origin, ...] = field(array(word(Origin), 8), absent=())
    floor: Trust = field(TRUST)
    as_of: int | None = field(TIME, absent=None)
    at_sequence: int | None = field(COUNT, absent=None)
    since: int | None = field(TIME, absent=None)
    until: int | None = field(TIME, absent=None)
    most_bytes: int = field(integer(1, MOST_BUDGET.bytes))
    most_items: int = field(integer(1, MOST_BUDGET.items))
    candidates: int = field(integer(1, MOST_BUDGET.candidates))
    most_tokens: int | None = field(COUNT, absent=None)
    most_below_floor_bytes: int = field(COUNT, absent=0)
    bytes: int = field(COUNT)
    tokens: int | None = field(COUNT, absent=None)
    below_floor_bytes: int = field(COUNT, absent=0)
    scorer: str = field(string(400))
    heads: tuple[Seen, ...] = field(array(nested(Seen), MAX_HEADS), absent=())
    chosen: tuple[Chosen, ...] = field(array(nested(Chosen), MOST_BUDGET.items), absent=())
    below_floor: tuple[Chosen, ...] = field(array(nested(Chosen), MOST_BUDGET.items), absent=())
    left_out: tuple[LeftOut, ...] = field(array(nested(LeftOut), 64), absent=())


class Drawn(NamedTuple):
    """A receipt as it is kept: its id, bytes and signature, and the salt and bytes of what was worded."""

    id: str
    data: bytes
    signature: bytes
    salt: bytes
    query: bytes


def draw(
    context: Recall,
    policy: Policy,
    *,
    at: int,
    principal: str | None,
    floor: Trust,
    salt: bytes,
    keyring: signing.Keyring,
    most_below_floor_bytes: int = 0,
) -> Drawn:
    """The receipt of a context, signed."""
    query = worded(context.query, policy)
    budget = context.budget
    receipt = Receipt(
        at=at,
        signer=keyring.signer or "",
        principal=principal,
        query=canonical.commitment(salt, query),
        mode=policy.mode,
        flags=("history",) if policy.history else (),
        scopes=policy.scopes,
        kinds=policy.kinds,
        origins=policy.origins,
        floor=floor,
        as_of=policy.as_of,
        at_sequence=policy.at,
        since=policy.since,
        until=policy.until,
        most_bytes=budget.bytes,
        most_items=budget.items,
        candidates=budget.candidates,
        most_tokens=budget.tokens,
        most_below_floor_bytes=most_below_floor_bytes,
        bytes=context.bytes,
        tokens=context.tokens,
        below_floor_bytes=context.below_floor_bytes,
        scorer=context.scorer,
        heads=tuple(Seen(namespace=name, sequence=one, id=head) for name, (one, head) in context.heads.items()),
        chosen=_chosen(context.items),
        below_floor=_chosen(context.below_floor),
        left_out=tuple(LeftOut(reason=reason, count=count) for reason, count in sorted(context.omitted.items())),
    )
    data = canonical.encode({"format": FORMAT, **fields.write_object(receipt)}, shaped=True)
    digest = digest_of(data)
    return Drawn(identity(digest), data, keyring.sign(signing.RECEIPT, digest), salt, query)


def _chosen(items: Iterable[Recalled]) -> tuple[Chosen, ...]:
    return tuple(Chosen(record=item.record.digest, lane=item.lane, rank=item.rank, score=item.score) for item in items)


def worded(query: str, policy: Policy) -> bytes:
    """The canonical bytes of all that a caller put in words: the query, a key and tags to filter by, synonyms."""
    said: dict[str, canonical.Json] = {"format": FORMAT, "query": query}
    if policy.key is not None:
        said["key"] = policy.key
    if policy.tags:
        said["tags"] = list(policy.tags)
    if policy.synonyms:
        said["synonyms"] = [[name, list(others)] for name, others in sorted(policy.synonyms.items())]
    return canonical.encode(said)


def digest_of(data: bytes) -> bytes:
    """The hash of a receipt's bytes, which is signed and cited."""
    return canonical.digest(b"receipt", data)


def identity(digest: bytes) -> str:
    """The id of a receipt: a function of its hash."""
    return canonical.identifier("rcp", digest[:10])


def read(data: bytes) -> Receipt:
    """A receipt from its bytes; CorruptionError unless it is one, in the one form it can have."""
    value = canonical.decode(data)
    if type(value) is not dict or not fields.is_format(value.get("format")):
        raise CorruptionError("receipt: not a format 1 object")
    try:
        return fields.read_object(Receipt, value, beside=1)
    except ValueError as error:
        raise fields.corrupt("receipt", error) from None


def readable(drawn: Drawn) -> Receipt | None:
    """What a row says, if it is a receipt at all; whether that is true is another question."""
    try:
        return read(drawn.data)
    except CorruptionError:
        return None


def check(drawn: Drawn, keyring: signing.Keyring) -> tuple[Receipt | None, str | None]:
    """A receipt whose bytes, id and signature hold, and that kept its own limits; or what is wrong with it."""
    digest = digest_of(drawn.data)
    try:
        receipt = read(drawn.data)
    except CorruptionError as error:
        return None, error.message
    wrong = None
    if drawn.id != identity(digest):
        wrong = "its id is not that of its bytes"
    elif not keyring.verifies(receipt.signer, signing.RECEIPT, digest, drawn.signature):
        wrong = f"no trusted key signed it (signer {receipt.signer})"
    elif drawn.query and not _committed(receipt, drawn):
        wrong = "its query was altered"
    elif any(used > most for used, most in _charged(receipt)) or _uncounted(receipt):
        wrong = "it took more than its budget"
    elif any([one.rank for one in each] != list(range(len(each))) for each in (receipt.chosen, receipt.below_floor)):
        wrong = "its ranks are not places in a context"
    return (receipt, None) if wrong is None else (None, wrong)


def _committed(receipt: Receipt, drawn: Drawn) -> bool:
    """Whether a receipt commits to the query that is kept beside it."""
    whole = len(drawn.salt) == canonical.SALT_BYTES
    return whole and canonical.commitment(drawn.salt, drawn.query) == receipt.query


def _uncounted(receipt: Receipt) -> bool:
    """Whether tokens were limited, and it took more of them or does not say how many."""
    return receipt.most_tokens is not None and (receipt.tokens is None or receipt.tokens > receipt.most_tokens)


class Met(NamedTuple):
    """What a chosen record is: by which lane it was found, its trust, kind and origin, and when it was committed.

    And whether it stood in the section below the floor.
    """

    lane: Lane
    trust: Trust
    kind: Kind
    origin: Origin
    at: int
    below_floor: bool = False


def outside(receipt: Receipt, met: Met) -> str | None:
    """Which limit of a receipt a record that it chose does not keep, or None.

    Open tasks are chosen whatever is asked for; the floor holds for them as well.
    """
    limits = {
        f"is trusted {'more' if met.below_floor else 'less'} than its floor": (met.trust < receipt.floor)
        is met.below_floor,
        "is of no kind that it asked for": not receipt.kinds or met.kind in receipt.kinds,
        "is of no origin that it asked for": not receipt.origins or met.origin in receipt.origins,
        "is older than it asked for": receipt.since is None or met.at >= receipt.since,
        "is newer than it asked for": receipt.until is None or met.at <= receipt.until,
    }
    asked = list(limits)[:1] if met.lane is Lane.TASKS and not met.below_floor else limits
    return next((wrong for wrong in asked if not limits[wrong]), None)


def beyond(receipt: Receipt, seen: Seen, *, scope: Scope, at: int) -> str | None:
    """Which limit of a receipt a head that it names does not keep, or None: by its scope, its place, its time."""
    limits = {
        "is of a scope that it did not ask for": not receipt.scopes or scope in receipt.scopes,
        "is not the one that it asked for": receipt.at_sequence is None or seen.sequence == receipt.at_sequence,
        "is newer than the time that it asked for": receipt.as_of is None or at <= receipt.as_of,
    }
    return next((wrong for wrong, kept in limits.items() if not kept), None)


def _charged(receipt: Receipt) -> tuple[tuple[int, int], ...]:
    """What a receipt says was taken, each with the most that it says was allowed."""
    return (
        (receipt.bytes, receipt.most_bytes),
        (receipt.below_floor_bytes, receipt.most_below_floor_bytes),
        (len(receipt.chosen), receipt.most_items),
        (len(receipt.below_floor), receipt.most_items if receipt.below_floor_bytes else 0),
    )


def outlived(receipt: Receipt, ended: int, points: Iterable[int]) -> str | None:
    """How a receipt shows that the key which signed it had ended by then, or None.

    ``ended`` is the commit of the store chain by which another key took over, ``points`` are the commits of it at which
    the receipt's heads were made. Its date says nothing: it is the clock's, and that may have been ahead.
    """
    if any(point >= ended for point in points):
        return f"it names a head from after its key was retired (signer {receipt.signer})"
    return None
