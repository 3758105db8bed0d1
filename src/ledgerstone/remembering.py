"""Writes: to remember, promote, close or retract, each one commit, and the first answer when one comes again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from ledgerstone import getting, promoting, receipts, resembling
from ledgerstone.block import Block
from ledgerstone.core import canonical, entries, rules
from ledgerstone.core.authority import Caller, Place
from ledgerstone.core.entries import Idempotency
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.rules import Writing
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    MAX_IDEMPOTENCY_BYTES,
    STANDING_OF_ENDING,
    Act,
    Draft,
    Kind,
    Record,
    Remembered,
    Scope,
    Standing,
    time_text,
)
from ledgerstone.errors import ConflictError, CorruptionError, LedgerstoneError, NotFoundError, UsageError
from ledgerstone.identity import Target
from ledgerstone.ledger import Ledger
from ledgerstone.reading import Chain
from ledgerstone.writing import Batch

# Which kinds a due time orders or brings up.
DUE_KINDS: Final = frozenset({Kind.TASK, Kind.PROSPECTIVE})
NOT_CUED: Final = "nothing brings it up by itself: say when (due) or at which words (triggers)"
NOT_DUE: Final = "due: shown with a {}, and brings nothing up; of kind task or prospective it does"
HIDDEN: Final = "kept, and not shown here: this project is isolated from scope {}"
BELOW_FLOOR: Final = (
    "kept, and below the trust floor ({}): recall shows it in a section of its own alone, and that where the user's "
    "setting below_floor_bytes gives it one"
)
ASIDE: Final = {
    Standing.CONTESTED: (
        "it is contested: what it would replace has a higher trust and stays current, until the user says it",
    ),
    Standing.HELD: ("it is held: this value was rejected before; what the user says at a terminal is never held",),
}
NOT_LOOKED: Final = "committed; what is similar was not looked for: {}"

Answers = tuple[Remembered, ...]


class _Request(NamedTuple):
    """A write as it was asked for: the verb, its arguments as plain values, and the idempotency key, if any."""

    verb: str
    wire: Any
    key: str | None


def remember(
    ledger: Ledger,
    caller: Caller,
    asked: Sequence[Draft | str],
    *,
    scope: Scope | None,
    namespace: str | None,
    idempotency_key: str | None,
    allow_secrets: Sequence[str],
    receipt: str | None,
    similar: bool,
) -> Answers:
    """See ``Memory.remember_many``."""
    drafts = tuple([_draft(one) for one in asked])
    rules.check_drafts(drafts, caller.limits)
    # Loaded with the first write: a read does not pay for it.
    from ledgerstone.core import credentials  # noqa: PLC0415

    allowed = {*caller.allow_secrets, *allow_secrets}
    overrides = [credentials.check(draft, allowed) for draft in drafts]
    request = _Request("remember", list(map(_fingerprint_of, drafts)), idempotency_key)
    with ledger.writes(caller) as block:
        target = block.identity.target(scope, namespace)
        repeated = _repeated(ledger, block, target, request)
        if repeated is not None:
            return _noticed(ledger, block, _told(caller, drafts, repeated))
        _check_lasting(drafts, block.reading.now)
        batch = block.batch(target)
        writing = _writing(ledger, caller, batch.namespace)
        for draft, passed in zip(drafts, overrides, strict=True):
            batch.add(rules.enter(draft, writing, batch.facts, passed))
        made_under = receipts.cited(block.reading, block.identity, receipt)
        answers = _committed(ledger, block, batch, target, request, receipt=made_under)
    answers = _told(caller, drafts, answers)
    if similar:
        answers = tuple(_resembling(ledger, caller, answer) for answer in answers)
    return _noticed(ledger, block, answers)


def promote(
    ledger: Ledger,
    caller: Caller,
    target: str,
    *,
    scope: Scope | None,
    namespace: str | None,
    idempotency_key: str | None,
    allow_secrets: Sequence[str],
) -> Remembered:
    """See ``Memory.promote``."""
    if scope is None and namespace is None:
        raise UsageError("promote: where to?", hint="a scope, or the id of a namespace")
    request = _Request("promote", [target, None if scope is None else scope.value, namespace], idempotency_key)
    with ledger.writes(caller) as block:
        found = getting.find(block.reading, block.identity, target)
        goal = block.identity.target(scope, namespace)
        repeated = _repeated(ledger, block, goal, request, Act.PROMOTE)
        if repeated is not None:
            return _noticed(ledger, block, repeated)[0]
        source = promoting.source_of(block.reading, found.where, found.place.scope, found.position)
        there = _there(block, goal, source)
        if there is not None:
            return _noticed(ledger, block, there)[0]
        batch = block.batch(goal, Act.PROMOTE)
        allowed = {*caller.allow_secrets, *allow_secrets}
        promoting.add(source, goal.place.scope, batch, _writing(ledger, caller, batch.namespace), allowed)
        answers = _committed(ledger, block, batch, goal, request)
    return _noticed(ledger, block, answers)[0]


def end(
    ledger: Ledger,
    caller: Caller,
    target: str,
    verb: Literal["close", "retract"],
    *,
    reason: str | None,
    reject: bool,
    idempotency_key: str | None,
    allow_secrets: Sequence[str],
    receipt: str | None,
) -> Remembered:
    """See ``Memory.close_task`` and ``Memory.retract``."""
    from ledgerstone.core import credentials  # noqa: PLC0415 - as above

    credentials.check_text("reason", reason, {*caller.allow_secrets, *allow_secrets})
    request = _Request(verb, [target, reason, reject], idempotency_key)
    with ledger.writes(caller) as block:
        reading = block.reading
        where, place, position = getting.find(reading, block.identity, target)
        goal = Target(place, None, "")
        repeated = _repeated(ledger, block, goal, request)
        if repeated is not None:
            return _noticed(ledger, block, repeated)[0]
        batch = block.batch(goal)
        known, version = reading.known(where, position), reading.version(where, position)
        if known is None or version is None:  # pragma: no cover - find gives positions of versions
            raise NotFoundError(f"no memory {target} here")
        writing, text = _writing(ledger, caller, batch.namespace), version.content
        if verb == "close":
            batch.add(rules.close(known, writing, reason), text_of=text)
        else:
            tombstone = None
            if reject:
                if text is None or text.text is None:
                    rules.refuse("reject", "an erased value cannot be rejected")
                tombstone = writing.tombstone(known.key, text.text)
            batch.add(rules.retract(known, writing, reason, tombstone))
        made_under = receipts.cited(reading, block.identity, receipt)
        answers = _committed(ledger, block, batch, goal, request, receipt=made_under)
    return _noticed(ledger, block, answers)[0]


def _draft(one: Draft | str) -> Draft:
    """What is asked for; of a text alone nothing but the text has to be looked at, and the door has done that."""
    if isinstance(one, str):
        return Draft(text=one)
    rules.check_types(one)
    return one


def _repeated(ledger: Ledger, block: Block, target: Target, request: _Request, act: Act = Act.WRITE) -> Answers | None:
    """The first answer to a write that comes again; ConflictError when it comes with other content."""
    if request.key is None or target.place.namespace is None:
        return None
    block.authorize(act, target.place)
    where = block.identity.chain(target.place.namespace)
    named = block.idempotency = _named(ledger, where.namespace, request.key, request)
    sequence = block.writer.idempotent(where.number, named.key)
    if sequence is None:
        return None
    data = block.reading.header(where, sequence)
    header = entries.decode_header(data)
    if header.idempotency is None or header.idempotency.key != named.key:
        raise CorruptionError(f"{where.namespace}: commit {sequence} is not the write it is listed as")
    if header.idempotency.content != named.content:
        raise ConflictError(
            f"idempotency key: already used in commit {sequence} with other content",
            hint="repeat the first content exactly, or take a new key",
        )
    records = [
        block.reading.record(where, target.place.scope, position)
        for position in header.positions
        if block.writer.standing(where.number, position) is not None
    ]
    return _answers(block, where, records, leaf_hash(data), repeated=True)


def _there(block: Block, goal: Target, source: promoting.Source) -> Answers | None:
    """The answer to a promotion of what stands there already; nothing is to be written then."""
    if goal.place.namespace is None:
        return None
    block.authorize(Act.PROMOTE, goal.place)
    where = block.identity.chain(goal.place.namespace)
    record = promoting.there(block.reading, where, goal.place.scope, source, block.identity.caller.origin)
    if record is None:
        return None
    return _answers(block, where, [record], leaf_hash(block.reading.header(where, record.sequence)), repeated=True)


def _committed(
    ledger: Ledger, block: Block, batch: Batch, target: Target, request: _Request, *, receipt: bytes | None = None
) -> Answers:
    """Append a batch, and read back what it added."""
    idempotency = None
    if request.key is not None:
        # It has no name yet where the namespace was just made.
        idempotency = block.idempotency or _named(ledger, batch.namespace, request.key, request)
    place = target.place
    before = (0, 0) if batch.where is None else _obliging(block, batch.where, place)
    where = batch.append(block.writer, idempotency=idempotency, receipt=receipt)
    _check_obligations(block, where, place, before)
    scope, reading = target.place.scope, block.reading
    records = [
        reading.record(where, scope, position)
        if version is None
        else reading.compose(where, scope, version, STANDING_OF_ENDING[version.proven.ending])
        for position, version in enumerate(batch.versions(), batch.first)
        # A promotion comes with its record, and is no version of anything.
        if version is not None or reading.reader.standing(where.number, position) is not None
    ]
    return _answers(block, where, records, where.head.id, repeated=False)


def _answers(block: Block, where: Chain, records: list[Record], commit: bytes, *, repeated: bool) -> Answers:
    """The records of one commit, each with the version that it replaced, and whether it is shown here."""
    hidden = {record.scope for record in records if block.identity.hides(record.scope)}
    return tuple(
        Remembered(
            record=record,
            commit=commit,
            sequence=record.sequence,
            repeated=repeated,
            replaced=None if record.version == 1 else _replaced(block, where, record),
            created_namespace=block.made,
            notices=(HIDDEN.format(record.scope.value),) if record.scope in hidden else (),
        )
        for record in records
    )


def _replaced(block: Block, where: Chain, record: Record) -> Record | None:
    """The version before, for whoever may read it."""
    place = block.identity.place(where.namespace)
    position = block.reading.reader.version_at(where.number, record.memory, record.version - 1)
    if position is None or place is None or not block.identity.sees(place):
        return None
    return block.reading.record(where, record.scope, position)


def _secret(ledger: Ledger, namespace: str) -> bytes:
    secret = ledger.keyring.secret(namespace)
    if secret is None:
        raise ledger.read_only()
    return secret


def _writing(ledger: Ledger, caller: Caller, namespace: str) -> Writing:
    """What the rules need to know of whoever writes to a namespace."""
    secret = _secret(ledger, namespace)

    def tombstone(key: str | None, text: str) -> bytes:
        return canonical.keyed(secret, b"tombstone", canonical.encode([key, rules.normal_value(text)]))

    return Writing(caller.origin, caller.limits, ledger.entropy, tombstone)


def _named(ledger: Ledger, namespace: str, key: str, request: _Request) -> Idempotency:
    """A request by its idempotency key, as a header holds it."""
    canonical.text(key, name="idempotency_key", least=1, most=MAX_IDEMPOTENCY_BYTES)
    # Of plain values all: the door has looked at each.
    secret, content = _secret(ledger, namespace), canonical.encode([request.verb, request.wire], shaped=True)
    return Idempotency(
        key=canonical.keyed(secret, b"idempotency-key", key.encode()),
        content=canonical.keyed(secret, b"idempotency-content", content),
    )


def _check_lasting(drafts: Sequence[Draft], now: int) -> None:
    """Refuse what would have expired when it is written: no recall would ever show it. History may hold some."""
    for draft in drafts:
        # What is no time at all the rules refuse.
        if type(draft.expires) is int and 0 <= draft.expires <= now:
            raise UsageError(
                f"expires: a time to come, not {time_text(draft.expires)}",
                hint="until when it is true is said by valid_until; what never ends needs no expires",
            )


def _told(caller: Caller, drafts: Sequence[Draft], answers: Answers) -> Answers:
    """The answers to some drafts, each with what its writer should know of it."""
    return tuple(
        replace(answer, notices=(*answer.notices, *_said(caller, draft, answer)))
        for draft, answer in zip(drafts, answers, strict=False)
    )


def _said(caller: Caller, draft: Draft, answer: Remembered) -> Iterator[str]:
    """What of it has no effect, that the kind was not kept, that it says the same, and that recall will not show it."""
    record, replaced = answer.record, answer.replaced
    # What was erased has neither any more.
    if record.kind is Kind.PROSPECTIVE and record.text is not None and record.due is None and not record.triggers:
        yield NOT_CUED
    if record.due is not None and record.kind not in DUE_KINDS:
        yield NOT_DUE.format(record.kind.value)
    if replaced is not None and draft.kind is None and replaced.kind is not record.kind:
        yield f"it is a {record.kind}, and what it replaces a {replaced.kind}: name the kind to say which it is"
    if replaced is not None and record.text is not None and replaced.text == record.text:
        yield f"it says what {replaced.address} said already"
    if record.trust < caller.floor and record.standing not in ASIDE:
        yield BELOW_FLOOR.format(record.trust.word)


def _obliging(block: Block, where: Chain, place: Place) -> tuple[int, int]:
    """How many open tasks of a namespace a default recall of this caller keeps, and the bytes that they count.

    Those that have not expired, at or above its floor. An entry of a shared namespace pays for the name as well.
    """
    reading = block.reading
    if not where.head.counts.open:
        return 0, 0
    floor = max(block.identity.caller.floor, DEFAULT_FLOOR)
    count, size = reading.reader.open_size(where.number, floor.value, reading.now)
    if count and place.scope is Scope.SHARED:
        size += count * len(canonical.encode({"namespace_name": reading.name(where) or where.namespace}))
    return count, size


def _check_obligations(block: Block, after: Chain, place: Place, before: tuple[int, int]) -> None:
    """Refuse what makes all that the caller sees, and may settle, have more open tasks than a default recall holds.

    ``before`` is what this namespace had of them. The rules count those of one namespace alone, by the same limits.
    """
    here = _obliging(block, after, place)
    if here[0] <= before[0] and here[1] <= before[1]:
        return
    identity = block.identity
    seen = [(where, other) for where, other in identity.in_sight() if identity.may(Act.WRITE, other)]
    # What the caller does not see here obliges it to nothing here.
    if all(where.namespace != after.namespace for where, _ in seen):
        return
    open_in: dict[str, list[tuple[int, int]]] = {}
    for where, other in seen:
        open_in.setdefault(other.scope.value, []).append(_obliging(block, where, other))
    rules.check_obligations(open_in)


def _resembling(ledger: Ledger, caller: Caller, answer: Remembered) -> Remembered:
    """The answer with what it resembles, looked for once it was committed; it stands whatever comes of that."""
    try:
        with ledger.reads(caller) as (reading, identity):
            record = answer.record
            place, where = identity.place(record.namespace), identity.chain(record.namespace)
            position = reading.reader.version_at(where.number, record.memory, record.version)
            if position is None or place is None or not identity.sees(place):
                return answer
            return replace(answer, similar=resembling.resembling(reading, identity, where, record, position))
    except LedgerstoneError as error:
        return replace(answer, notices=(*answer.notices, NOT_LOOKED.format(error.message)))


def _noticed(ledger: Ledger, block: Block, answers: Answers) -> Answers:
    """The answers to a write: why one stands aside, what could not be done beside it, and what the store has to say."""
    notices = (*(() if block.warning is None else (block.warning,)), *ledger.notices())
    return tuple(
        replace(answer, notices=answer.notices + ASIDE.get(answer.record.standing, ()) + notices) for answer in answers
    )


def _fingerprint_of(draft: Draft) -> dict[str, Any]:
    """A draft as plain values, to tell a repeated write from another one."""
    return {
        "text": draft.text,
        # Without a kind as with the one that it has where it replaces nothing.
        "kind": (draft.kind or Kind.NOTE).value,
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
