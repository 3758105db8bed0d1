"""A record that comes to a wider scope: what it was, where it stood, and how far it is relied on there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from ledgerstone.core import rules
from ledgerstone.core.authority import TRUST_OF_ORIGIN
from ledgerstone.core.entries import Content, Entry, PromotionEntry, RecordEntry
from ledgerstone.core.facts import Known
from ledgerstone.core.projection import PROMOTION
from ledgerstone.core.rules import Promoted, Writing
from ledgerstone.core.values import Draft, Origin, Record, Scope, Standing, Status
from ledgerstone.errors import ConflictError
from ledgerstone.reading import Chain, Reading
from ledgerstone.writing import Batch


class Source(NamedTuple):
    """A version that is to be promoted: where it stands, its own entry, the record with its text, and that text."""

    where: Chain
    scope: Scope
    known: Known
    entry: Entry
    body: RecordEntry
    content: Content


def source_of(reading: Reading, where: Chain, scope: Scope, position: int) -> Source:
    """The version at a position; ConflictError unless it stands, unexpired, with its text."""
    known, version = reading.known(where, position), reading.version(where, position)
    body = None if version is None else version.body.entry
    if known is None or version is None or version.content is None or not isinstance(body, RecordEntry):
        raise ConflictError(f"promote: the text of entry {position} was erased")
    if not known.current or (known.expires is not None and known.expires <= reading.now):
        hint = f"get {known.memory}, read what stands now, and decide again"
        raise ConflictError(f"promote: {known.address} no longer stands", hint=hint)
    return Source(where, scope, known, version.proven.entry, body, version.content)


def there(reading: Reading, where: Chain, scope: Scope, source: Source, origin: Origin) -> Record | None:
    """What came of a version to a namespace before and stands there, trusted no less than it would be now."""
    digest = source.known.digest
    least = min(source.known.trust, TRUST_OF_ORIGIN[origin])
    for listed in reading.reader.lookup(where.number, PROMOTION, digest.hex()):
        record = reading.record(where, scope, listed.position + 1)
        if record.promoted == digest.hex() and record.standing in _STANDS and record.trust >= least:
            return record
    return None


# Aside counts: it would stand aside again.
_STANDS: Final = frozenset({Standing.CURRENT, Standing.COVERED, Standing.CONTESTED, Standing.HELD})


def add(source: Source, scope: Scope, batch: Batch, writing: Writing, allowed: Collection[str]) -> None:
    """Put the promotion to a scope, and the record that comes by it, into the one commit that they make.

    It keeps its origin and its trust, unless whoever promotes it has less.
    """
    # Loaded with the first write: a read does not pay for it.
    from ledgerstone.core import credentials  # noqa: PLC0415

    by = writing._replace(origin=min(source.body.origin, writing.origin, key=TRUST_OF_ORIGIN.__getitem__))
    trust = min(source.known.trust, TRUST_OF_ORIGIN[by.origin])
    entry = PromotionEntry(source_namespace=source.where.namespace, source=source.known.digest, trust=trust)
    promotion = rules.plain(entry)
    batch.add(promotion)
    draft = _draft(source)
    passed = credentials.check(draft, {*allowed, *source.body.overrides})
    admitted = rules.enter(draft, by, batch.facts, passed, promotion.digest)
    if isinstance(admitted.entry, RecordEntry):
        came, goal = (source.where.namespace, source.scope), (batch.namespace, scope)
        rules.check_promotion(entry, Promoted(came, goal, source.entry, source.body, admitted.entry))
    batch.add(admitted)


def _draft(source: Source) -> Draft:
    """What the source says, as it said it; what it rested on stays behind."""
    content, body = source.content, source.body
    return Draft(
        text=content.text or "",
        kind=body.kind,
        status=None if source.known.status is Status.ACTIVE else source.known.status,
        key=content.key,
        retention=body.retention,
        expires=body.expires,
        due=content.due,
        tags=content.tags,
        source=content.source,
        title=content.title,
        place=content.place,
        valid_from=content.valid_from,
        valid_until=content.valid_until,
        triggers=content.triggers,
    )
