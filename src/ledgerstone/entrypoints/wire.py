"""The one shape in which every door shows the library's values: plain JSON, short keys, what is absent left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ledgerstone.core.values import MAX_INTEGER, Status, time_text
from ledgerstone.errors import UsageError

if TYPE_CHECKING:
    from ledgerstone.core.entries import Content
    from ledgerstone.core.proofs import Attested
    from ledgerstone.core.values import Condensable, Event, Forgotten, Page, Recall, Record, Remembered, Report, Similar
    from ledgerstone.moving import Moved
    from ledgerstone.receipts import Explained

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[Zz]|[+-]\d\d:\d\d))?",
    re.ASCII,
)


def parse_time(text: str, name: str = "time") -> int:
    """Microseconds UTC of a date (``2026-11-30``, its first moment in UTC) or an RFC 3339 time with its offset.

    UsageError, which names the argument, for anything else.
    """
    refusal = UsageError(
        f"{name}: a date or a time, not {text[:40]!r}", hint="write 2026-11-30 or 2026-11-30T09:00:00Z (or +01:00)"
    )
    if _TIME.fullmatch(text) is None:
        raise refusal
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise refusal from None
    found = (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)
    if not 0 <= found <= MAX_INTEGER:
        raise UsageError(f"{name}: from {time_text(0)} to {time_text(MAX_INTEGER)}, not {text[:40]!r}")
    return found


def record(found: Record) -> dict[str, Any]:
    """A record with every field it has; ``text`` is null when the content was erased."""
    return {
        "memory": found.memory,
        "version": found.version,
        "address": found.address,
        "digest": found.digest.hex(),
        "namespace": found.namespace,
        "scope": found.scope.value,
        **_present(namespace_name=found.namespace_name),
        "kind": found.kind.value,
        "status": found.status.value,
        "standing": found.standing.value,
        "retention": found.retention.value,
        "origin": found.origin.value,
        "trust": found.trust.word,
        "principal": found.principal,
        **_present(session=found.session, host=found.host),
        "created_at": time_text(found.created_at),
        "sequence": found.sequence,
        "text": found.text,
        "text_bytes": found.text_bytes,
        **_worded(found),
        **_present(
            expires=_time(found.expires),
            sources=found.sources,
            covers=found.covers,
            promoted=found.promoted,
            overrides=found.overrides,
            reason=found.reason,
            ended_by=found.ended_by,
            notices=found.notices,
        ),
    }


def remembered(answer: Remembered) -> dict[str, Any]:
    """What one write came to: where it stands now and under which commit; not the text again.

    ``replaced`` is the version before, as lean as in a context, so that whoever overwrote it sees what it said.
    """
    from ledgerstone.core import recall
    from ledgerstone.core.rendering import NOTICE

    found = answer.record
    replaced = None if answer.replaced is None else recall.lean(answer.replaced)
    return {
        **_present(notice=None if replaced is None else NOTICE),
        "address": found.address,
        "digest": found.digest.hex(),
        "namespace": found.namespace,
        "scope": found.scope.value,
        **_present(namespace_name=found.namespace_name),
        "kind": found.kind.value,
        **_present(key=found.key, status=None if found.status is Status.ACTIVE else found.status.value),
        "standing": found.standing.value,
        "trust": found.trust.word,
        "created_at": time_text(found.created_at),
        "sequence": answer.sequence,
        "commit": answer.commit.hex(),
        **_present(
            replaced=replaced,
            repeated=answer.repeated or None,
            created_namespace=answer.created_namespace or None,
            similar=tuple(_similar(one) for one in answer.similar),
            notices=answer.notices,
        ),
    }


def _similar(found: Similar) -> dict[str, Any]:
    """A record that may say the same, by its id; ``overlap`` in thousandths, unless it says just that."""
    return {"id": found.address, **({"same": True} if found.same else {"overlap": found.overlap})}


def condensable(found: Iterable[Condensable]) -> dict[str, Any]:
    """Groups of records that a summary could cover, and how many bytes of text each has."""
    return {
        "groups": [
            {
                "namespace": group.namespace,
                "scope": group.scope.value,
                "covers": list(group.covers),
                **_present(source=group.source, session=group.session),
                "since": time_text(group.since),
                "until": time_text(group.until),
                "bytes": group.bytes,
            }
            for group in found
        ]
    }


def recalled(context: Recall, *, heads: bool = False) -> dict[str, Any]:
    """A context as a model sees it: the notice that it is data, lean entries, and what was left out and why."""
    from ledgerstone.core import recall
    from ledgerstone.core.rendering import NOTICE

    answer = {
        "notice": NOTICE,
        "mode": context.mode.value,
        "items": [recall.lean(item.record, item.lane) for item in context.items],
        **_present(
            below_floor=[recall.lean(item.record, item.lane) for item in context.below_floor],
            omitted=dict(context.omitted),
            receipt=context.receipt,
            notices=context.notices,
        ),
    }
    if heads:
        answer["heads"] = _heads(context.heads)
    return answer


def receipt(found: Explained, *, listed: bool = False) -> dict[str, Any]:
    """A receipt: what was asked, chosen and left out, and what checks it; in a list without its entries."""
    drawn = found.receipt
    return {
        "receipt": found.id,
        "query": found.query,
        "mode": drawn.mode.value,
        "at": time_text(drawn.at),
        "bytes": drawn.bytes,
        **({} if listed else {"items": [_present(**item._asdict()) for item in found.items]}),
        "left_out": {one.reason: one.count for one in drawn.left_out},
        "heads": _heads({one.namespace: (one.sequence, one.id) for one in drawn.heads}),
        "scorer": drawn.scorer,
        "signed": _present(
            data=found.data.decode(),
            signature=found.signature.hex(),
            public=None if found.public is None else found.public.hex(),
        ),
    }


def page(listing: Page) -> dict[str, Any]:
    """A part of a listing, as lean as a context, and the cursor that continues it."""
    from ledgerstone.core import recall
    from ledgerstone.core.rendering import NOTICE

    return {
        "notice": NOTICE,
        "items": [recall.lean(found) for found in listing.items],
        **_present(cursor=listing.cursor, omitted=dict(listing.omitted), notices=listing.notices),
    }


def history(versions: Iterable[Record]) -> dict[str, Any]:
    """All versions of a memory, oldest first."""
    found = tuple(versions)
    return {
        "versions": [record(replace(version, notices=())) for version in found],
        **_present(notices=noticed(found)),
    }


def noticed(records: Iterable[Record]) -> list[str]:
    """What is to be known of the answer that some records came in, each thing once."""
    return list(dict.fromkeys(notice for found in records for notice in found.notices))


def event(found: Event) -> dict[str, Any]:
    """One line of the audit trail."""
    return {
        "id": found.id,
        "at": time_text(found.at),
        "principal": found.principal,
        "operation": found.operation,
        "namespace": found.namespace,
        "sequence": found.sequence,
        "origin": found.origin.value,
        **_present(
            target=found.target,
            grant=found.grant,
            binding=found.binding,
            session=found.session,
            host=found.host,
            refusal=found.refusal,
            count=None if found.count == 1 else found.count,
            previous_version=found.previous_version,
            new_version=found.new_version,
            overrides=found.overrides,
        ),
    }


def events(found: Iterable[Event]) -> dict[str, Any]:
    """A part of the audit trail, newest first."""
    return {"events": [event(one) for one in found]}


def forgotten(found: Forgotten) -> dict[str, Any]:
    """What an erasure reached, or would: versions, which of them are summaries, what is left and what is beyond it."""
    return {
        "erased": found.erased,
        "count": len(found.addresses),
        "addresses": list(found.addresses),
        **_present(
            summaries=found.summaries,
            copies=found.copies,
            rests=found.rests,
            names=found.names,
            reasons=found.reasons,
            commits=[{"namespace": name, "sequence": sequence} for name, sequence in found.commits],
            left=found.left,
        ),
        "unreached": list(found.unreached),
    }


def report(found: Report) -> dict[str, Any]:
    """All that a verification found, and how much it looked at."""
    return {
        "ok": found.ok,
        "findings": [
            {
                "code": finding.code,
                "namespace": finding.namespace,
                **_present(sequence=finding.sequence),
                "message": finding.message,
            }
            for finding in found.findings
        ],
        "namespaces": found.namespaces,
        "commits": found.commits,
        "entries": found.entries,
        "full": found.since is None,
        **_present(reason=found.reason, since=found.since, hint=found.hint),
        **({} if found.since is None else {"older": found.older, "sampled": found.sampled}),
        "receipts": found.receipts,
        "receipts_checked": found.receipts_checked,
        **({"mended": list(found.mended)} if found.mended else {}),
        "heads": _heads(found.heads),
    }


def moved(found: Moved) -> dict[str, Any]:
    """A store that went into a file or to its place: which one, up to which head, and what that changed."""
    return {
        "path": str(found.path),
        "store": found.store,
        "sequence": found.sequence,
        "head": found.head.hex(),
        "namespaces": found.namespaces,
        "commits": found.commits,
        **({} if found.new is None else {"new": dict(found.new)}),
        **_present(
            abandoned=dict(found.abandoned or {}),
            replaced=None if found.replaced is None else str(found.replaced),
            notices=found.notices,
        ),
    }


def attested(found: Attested) -> dict[str, Any]:
    """What a proof proves; ``text`` is null when the content was erased or is withheld, which ``erased`` tells."""
    from ledgerstone.core.rendering import NOTICE

    content = found.content
    return {
        **_present(notice=None if found.text is None else NOTICE),
        "address": found.address,
        "digest": found.digest.hex(),
        "namespace": found.namespace,
        "kind": found.kind.value,
        "status": found.status.value,
        "standing": found.standing.value,
        "retention": found.retention.value,
        "origin": found.origin.value,
        "trust": found.trust.word,
        "principal": found.principal,
        **_present(session=found.session, host=found.host, grant=found.grant),
        "created_at": time_text(found.at),
        "sequence": found.sequence,
        "commit": found.commit.hex(),
        "erased": found.erased,
        "text": found.text,
        "text_bytes": found.text_bytes,
        **({} if content is None else _worded(content)),
        **_present(expires=_time(found.expires), reason=found.reason, ended_by=found.ended_by),
        "head": {"sequence": found.head_sequence, "commit": found.head.hex(), "at": time_text(found.head_at)},
        "signer": found.signer,
        "public": found.public.hex(),
    }


def _worded(said: Record | Content) -> dict[str, Any]:
    """What a writer said beside the text."""
    return _present(
        key=said.key,
        source=said.source,
        title=said.title,
        place=said.place,
        tags=said.tags,
        due=_time(said.due),
        valid_from=_time(said.valid_from),
        valid_until=_time(said.valid_until),
        triggers=said.triggers,
    )


def _heads(heads: Mapping[str, tuple[int, bytes]]) -> dict[str, dict[str, Any]]:
    return {name: {"sequence": sequence, "commit": commit.hex()} for name, (sequence, commit) in heads.items()}


def _time(moment: int | None) -> str | None:
    return None if moment is None else time_text(moment)


def _present(**fields: Any) -> dict[str, Any]:
    """The fields that say something: not None, and no empty list."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value is not None and value not in ((), [], {})
    }
