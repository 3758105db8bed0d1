"""Admission: every limit and every "may not". The same checks admit a write today and judge it in verify."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from ledgerstone.core import canonical, merkle
from ledgerstone.core.authority import TRUST_OF_ORIGIN, origin_of, trust_of
from ledgerstone.core.entries import (
    CloseEntry,
    Content,
    Entry,
    ErasureEntry,
    ExportEntry,
    GenesisEntry,
    GrantEntry,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RestoreEntry,
    RetractEntry,
    RevokeEntry,
    Sealed,
    SettingEntry,
    Stamp,
    digest_of,
    encode_entry,
    seal_content,
)
from ledgerstone.core.facts import Facts, Known
from ledgerstone.core.fields import write_object
from ledgerstone.core.projection import GRANTED, NAMED, PARTED, SET, lookups, undermined
from ledgerstone.core.signing import key_id
from ledgerstone.core.sorts import check_fields
from ledgerstone.core.values import (
    DEFAULT_FLOOR,
    ISOLATED,
    MAX_COVERS,
    MAX_INTEGER,
    MAX_KEY_BYTES,
    MAX_NAME_BYTES,
    MAX_REASON_BYTES,
    MAX_SOURCE_BYTES,
    MAX_SOURCES,
    MAX_SUMMARY_DEPTH,
    MAX_TAG_BYTES,
    MAX_TAGS,
    MAX_TEXT_BYTES,
    Draft,
    Ending,
    Kind,
    Limits,
    NameOf,
    Origin,
    Scope,
    Status,
    Trust,
)
from ledgerstone.core.words import telling
from ledgerstone.errors import ConflictError, NotFoundError, RuleError

TIMES: Final = ("expires", "due", "valid_from", "valid_until")
# What one open task costs of a context beside the bytes of its content: address, words, times, punctuation, rounded up.
TASK_OVERHEAD_BYTES: Final = 224
# What rules 1 lets open tasks take together: what a default recall has for them. Frozen with the rules.
MAX_OPEN_TASKS: Final = 16
MAX_OPEN_TASK_BYTES: Final = 7168


class Admitted(NamedTuple):
    """One entry that the rules let in: its bytes and digest, and its content with the salt, to be stored."""

    entry: Entry
    data: bytes
    digest: bytes
    content: Content | None
    salt: bytes | None
    content_data: bytes | None


class Writing(NamedTuple):
    """What every draft of one write shares: who says it, the limits, and where ids and salts come from."""

    origin: Origin
    limits: Limits
    entropy: Callable[[int], bytes]
    tombstone: Callable[[str | None, str], bytes]


def refuse(rule: str, message: str, *, hint: str = "") -> NoReturn:
    """Refuse a draft by the name of the rule it breaks."""
    raise RuleError(f"{rule}: {message}", rule=rule, hint=hint)


def count_of(name: str, members: tuple[object, ...], most: int) -> None:
    """An array has at most so many members, and each once."""
    if len(members) > most:
        refuse(name, f"at most {most}, not {len(members)}", hint="name the most telling ones")
    if len(set(members)) != len(members):
        refuse(name, "each one once", hint="leave out what is said twice")


def check_drafts(drafts: tuple[Draft, ...], limits: Limits) -> None:
    """One commit: 1 to ``limits.drafts`` drafts whose keys differ."""
    if not 1 <= len(drafts) <= limits.drafts:
        refuse("drafts", f"1 to {limits.drafts} a commit, not {len(drafts)}", hint="write them in several commits")
    _check_keys([draft.key for draft in drafts if draft.key is not None])


def check_types(draft: Draft) -> None:
    """What a draft is made of; UsageError names the field, RuleError a time that is none."""
    check_fields(draft, but=TIMES)
    _check_times(draft)


def check_text(draft: Draft, limits: Limits) -> None:
    """Every text of a draft is valid Unicode within its limit, triggers tell, and every time is a whole microsecond."""
    most = min(limits.text_bytes, MAX_TEXT_BYTES)
    raised = f"; or let it be longer, up to {MAX_TEXT_BYTES}: text_bytes" if most < MAX_TEXT_BYTES else ""
    canonical.text(draft.text, name="text", least=1, most=most, hint=f"split it into several{raised}")
    if draft.key is not None:
        canonical.text(draft.key, name="key", least=1, most=MAX_KEY_BYTES)
    for name in ("source", "title", "place"):
        value = getattr(draft, name)
        if value is not None:
            canonical.text(value, name=name, least=1, most=MAX_SOURCE_BYTES)
    for name in ("tags", "triggers"):
        members = getattr(draft, name)
        if members:
            count_of(name, members, MAX_TAGS)
        for member in members:
            canonical.text(member, name=name, least=1, most=MAX_TAG_BYTES)
    for trigger in draft.triggers:
        if not telling(trigger):
            refuse("triggers", f"at least one word besides such as 'the' and 'to', not {trigger!a}")
    _check_times(draft)


def _check_times(draft: Draft) -> None:
    for name in TIMES:
        value = getattr(draft, name)
        if value is not None and not (type(value) is int and 0 <= value <= MAX_INTEGER):
            refuse(name, f"whole microseconds UTC from 0 to {MAX_INTEGER}, not {value!r}")


def normal_value(text: str) -> str:
    """A value as a tombstone compares it: case, width, spacing and invisible characters do not count.

    As Unicode's NFKC_Casefold (5.18.1), over what is seen; the normal form of a normal form is itself.
    """
    # Folding can undo the normal form, and what stood around an invisible character can compose: hence twice.
    folded = unicodedata.normalize("NFKC", UNSEEN.sub("", text)).casefold()
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", UNSEEN.sub("", folded)))
    return " ".join(seen.split())


# Default_Ignorable_Code_Point, and what controls or annotates without being seen; spaces are not among them.
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def enter(
    draft: Draft,
    writing: Writing,
    facts: Facts,
    overrides: tuple[str, ...] = (),
    promotion: bytes | None = None,
) -> Admitted:
    """Turn a draft into the entry that the rules admit, against the past given; RuleError or ConflictError else.

    ``overrides`` names the checks that found something and were told to let it pass; the entry says so.

    A key that is held, or ``replaces``, makes the next version of that memory; a holder of higher trust is left
    standing and the new record is contested. A rejected value is held unless the user says it. A draft that says no
    kind corrects what it would replace, and keeps its kind; but a task is done once it is closed, and a summary or a
    procedure takes sources: else it is a note. ``promotion`` is the digest of the promotion entry by which it comes.
    """
    check_text(draft, writing.limits)
    origin = origin_of(writing.origin, external=draft.external)
    sources = _cited("sources", draft.sources, MAX_SOURCES, facts)
    covers = _cited("covers", draft.covers, MAX_COVERS, facts)
    trust = _most_trust(origin, sources, promotion, facts)
    key = draft.key
    holder = facts.holder(key) if key is not None else None
    if draft.replaces is not None:
        replaced = _replaced(draft.replaces, facts)
        if key is None:
            key = replaced.key
        elif replaced.key is not None and replaced.key != key:
            refuse("key", f"the replaced memory's key is {replaced.key!r}, not {key!r}")
        elif holder is not None and holder.memory != replaced.memory:
            refuse("key", f"{key!r} is held by {canonical.address(holder.memory, holder.version)}")
        holder = replaced
    contests = holder if holder is not None and holder.current and holder.trust > trust else None
    held_by = None
    if origin is not Origin.USER:
        held_by = facts.rejected(writing.tombstone(key, draft.text))
    salt = writing.entropy(32)
    content = Content(
        text=draft.text,
        key=key,
        source=draft.source,
        title=draft.title,
        place=draft.place,
        tags=draft.tags,
        due=draft.due,
        valid_from=draft.valid_from,
        valid_until=draft.valid_until,
        triggers=draft.triggers,
    )
    sealed, content_data = seal_content(content, salt)
    kind = draft.kind or _kept_kind(holder, sources)
    depth = 1 + max((known.depth for known in sources), default=0) if kind is Kind.SUMMARY else 0
    fresh = holder is None or contests is not None or held_by is not None
    entry = RecordEntry(
        memory=canonical.identifier("mem", writing.entropy(10)) if fresh else holder.memory,  # type: ignore[union-attr]
        version=1 if fresh else holder.version + 1,  # type: ignore[union-attr]
        kind=kind,
        status=draft.status or (Status.OPEN if kind is Kind.TASK else Status.ACTIVE),
        retention=draft.retention,
        origin=origin,
        trust=trust,
        content=sealed,
        expires=draft.expires,
        depth=min(depth, MAX_SUMMARY_DEPTH),
        sources=tuple(known.digest for known in sources),
        covers=tuple(known.digest for known in covers),
        contests=contests.digest if contests is not None else None,
        held_by=held_by,
        promotion=promotion,
        overrides=overrides,
    )
    check_record(entry, content, writing.origin, writing.limits, facts)
    return _admitted(entry, content, salt, content_data)


def _kept_kind(holder: Known | None, sources: list[Known]) -> Kind:
    """The kind of a draft that says none."""
    if holder is None or holder.kind is Kind.TASK:
        return Kind.NOTE
    if holder.kind in {Kind.SUMMARY, Kind.PROCEDURE} and not sources:
        return Kind.NOTE
    return holder.kind


def _admitted(entry: Entry, content: Content | None, salt: bytes | None, content_data: bytes | None) -> Admitted:
    data = encode_entry(entry)
    return Admitted(entry, data, digest_of(data), content, salt, content_data)


def plain(entry: Entry) -> Admitted:
    """An entry without content."""
    return _admitted(entry, None, None, None)


def with_content(make: Callable[[Sealed], Entry], content: Content, salt: bytes) -> Admitted:
    """An entry made around a content that is sealed under the salt; a name in it has 1 to 1024 bytes."""
    if content.name is not None:
        canonical.text(content.name, name="name", least=1, most=MAX_NAME_BYTES)
    sealed, data = seal_content(content, salt)
    return _admitted(make(sealed), content, salt, data)


def _known(text: str, facts: Facts) -> Known | None:
    memory, version = canonical.parse_address(text)
    known = facts.latest(memory)
    if known is not None and version is not None and known.version != version:
        return facts.version_of(memory, version)
    return known


def _cited(name: str, addresses: tuple[str, ...], most: int, facts: Facts) -> list[Known]:
    if not addresses:
        return []
    count_of(name, addresses, most)
    cited = []
    for address in addresses:
        known = _known(address, facts)
        if known is None:
            # One refusal for a source that is foreign and one that never was.
            refuse(
                name, f"no earlier record {address} in this namespace", hint="name records of the namespace written to"
            )
        cited.append(known)
    count_of(name, tuple(known.position for known in cited), most)
    return cited


def _replaced(address: str, facts: Facts) -> Known:
    known = _known(address, facts)
    if known is None:
        raise NotFoundError(f"no memory {address} here")
    if not known.current:
        raise ConflictError(
            f"replaces: {address} is no longer current",
            hint=f"get {known.memory}, read what stands now, and decide again",
        )
    return known


def check_record(
    entry: RecordEntry, content: Content | None, stamp_origin: Origin, limits: Limits, facts: Facts
) -> None:
    """Judge a record entry against its past; RuleError names the rule. ``content`` is None once it was erased."""
    sources = [_earlier(digest, facts, "sources") for digest in entry.sources]
    covers = [_earlier(digest, facts, "covers") for digest in entry.covers]
    _check_limits(entry, limits)
    _check_trust(entry, stamp_origin, sources, facts)
    if entry.promotion is not None:
        _check_promoted(entry)
    _check_identity(entry, content, facts)
    _check_status(entry, facts)
    if entry.kind is Kind.SUMMARY:
        _check_summary(entry, sources, covers, facts)
    elif covers or entry.depth:
        refuse("covers", f"only a summary covers, not a {entry.kind.value}")
    if (
        entry.kind is Kind.PROCEDURE
        and entry.promotion is None
        and not any(
            known.kind is not Kind.SUMMARY and known.ending not in {Ending.RETRACTED, Ending.ERASED}
            for known in sources
        )
    ):
        refuse(
            "procedure",
            "needs a source that is neither a summary nor retracted nor erased",
            hint="name what it was learned from, or make it a note",
        )


def _at(digest: bytes, facts: Facts, name: str) -> Known:
    position = facts.position(digest)
    known = facts.version(position) if position is not None else None
    if known is None:
        refuse(name, "names no earlier record of this namespace")
    return known


def _earlier(digest: bytes, facts: Facts, name: str) -> Known:
    known = _at(digest, facts, name)
    if known.position >= facts.boundary:
        refuse(name, f"{canonical.address(known.memory, known.version)} is of this very commit")
    return known


def _check_limits(entry: RecordEntry, limits: Limits) -> None:
    if not 1 <= entry.content.text_bytes <= limits.text_bytes:
        refuse("text", f"1 to {limits.text_bytes} bytes, not {entry.content.text_bytes}")


def _most_trust(origin: Origin, sources: list[Known], promotion: bytes | None, facts: Facts) -> Trust:
    """The lowest of what the origin allows, what the sources have, and what had come by promotion."""
    trusts = [known.trust for known in sources]
    if promotion is not None:
        came = facts.promoted(promotion)
        if came is None:
            refuse("promotion", "names the promotion right before it, and no other entry")
        trusts.append(came)
    return trust_of(origin, trusts)


def _check_promoted(entry: RecordEntry) -> None:
    """What comes from another namespace rests on nothing here, and is no obligation that exists there already."""
    if entry.sources or entry.kind is Kind.SUMMARY:
        refuse("promotion", "rests on what it came from, and on nothing here", hint="promote what it rests on")
    if entry.status is Status.OPEN:
        refuse("promotion", "an open task stays where it is to be done")


# How wide a scope is: a promotion goes to one that is at least as wide.
_WIDTH: Final = {Scope.SESSION: 0, Scope.PROJECT: 1, Scope.USER: 2, Scope.SHARED: 3, Scope.GLOBAL: 4}


class Promoted(NamedTuple):
    """What a promotion is judged by: where it came from and went to, and what stands there of it.

    ``origin`` and ``goal`` are the namespaces with their scopes; ``source`` is the entry that it names there, ``body``
    the record with that text, and ``record`` the one it made.
    """

    origin: tuple[str, Scope]
    goal: tuple[str, Scope]
    source: Entry | None
    body: RecordEntry | None
    record: RecordEntry


def check_promotion(entry: PromotionEntry, promoted: Promoted) -> None:
    """A promotion names a version that is there, and makes of it no more, nor anything else; RuleError says what."""
    (came, narrow), (went, wide), source, body, record = promoted
    if came == went or _WIDTH.get(narrow, MAX_INTEGER) > _WIDTH.get(wide, -1):
        refuse("promotion", f"goes to another namespace that is no narrower, not from {narrow.value} to {wide.value}")
    if not isinstance(source, RecordEntry | CloseEntry) or body is None:
        refuse("promotion", f"names no record of {came}")
    if entry.trust > source.trust:
        refuse("promotion", f"{source.trust.word} there, and {entry.trust.word} here")
    same = (body.kind, body.retention, body.expires, body.content.text_bytes)
    if (record.kind, record.retention, record.expires, record.content.text_bytes) != same:
        refuse("promotion", "is not what it came from: another kind, retention, expiry or size")


def _check_trust(entry: RecordEntry, stamp_origin: Origin, sources: list[Known], facts: Facts) -> None:
    if TRUST_OF_ORIGIN[entry.origin] > TRUST_OF_ORIGIN[stamp_origin]:
        refuse("origin", f"{entry.origin.value} is more than the caller's {stamp_origin.value}")
    most = _most_trust(entry.origin, sources, entry.promotion, facts)
    if entry.trust != most:
        refuse("trust", f"origin and sources allow {most.word}, not {entry.trust.word}")


def _check_identity(entry: RecordEntry, content: Content | None, facts: Facts) -> None:
    """The next version of a current or ended memory, or the first of a new one; a key has one holder."""
    previous = facts.latest(entry.memory)
    expected = 1 if previous is None else previous.version + 1
    if entry.version != expected:
        refuse("version", f"{entry.version} does not follow {expected - 1}")
    if previous is not None and previous.open_task:
        refuse(
            "open_task",
            f"{canonical.address(previous.memory, previous.version)} is an open task; no write replaces it",
            hint="close or retract it first",
        )
    if previous is not None and previous.current and previous.trust > entry.trust:
        refuse("trust", f"{entry.trust.word} may not replace {previous.trust.word}")
    if entry.contests is not None:
        contested = _at(entry.contests, facts, "contests")
        if previous is not None or not contested.current or contested.trust <= entry.trust:
            refuse("contests", "only a new memory contests, and only a current record of higher trust")
    if entry.held_by is not None and previous is not None:
        refuse("held_by", "a held value is a memory of its own")
    if entry.held_by is not None and entry.origin is Origin.USER:
        refuse("held_by", "what the user says is not held")
    if entry.held_by is not None and not facts.rejection(entry.held_by):
        refuse("held_by", "names no earlier rejection of this namespace")
    if content is None:
        return
    key = content.key
    if previous is not None and previous.key is not None and previous.key != key:
        refuse("key", f"a memory keeps its key {previous.key!r}")
    if key is None:
        return
    holder = facts.holder(key)
    aside = entry.contests is not None or entry.held_by is not None
    if holder is not None and holder.memory != entry.memory and not aside:
        refuse("key", f"{key!r} is held by {canonical.address(holder.memory, holder.version)}")


def _check_status(entry: RecordEntry, facts: Facts) -> None:
    if entry.status is Status.RETRACTED:
        refuse("status", "retracting is an act of its own, not a record")
    if (entry.status is Status.ACTIVE) == (entry.kind is Kind.TASK):
        refuse("status", "a task is open or closed, and nothing else is")
    if entry.status is Status.OPEN and entry.trust >= DEFAULT_FLOOR:
        count, size = facts.open_tasks()
        need = size + entry.content.bytes + (count + 1) * TASK_OVERHEAD_BYTES
        if count + 1 > MAX_OPEN_TASKS or need > MAX_OPEN_TASK_BYTES:
            refuse(
                "open_tasks",
                f"{MAX_OPEN_TASKS} open tasks and {MAX_OPEN_TASK_BYTES} bytes in all; "
                f"this one would make it {count + 1} and {need}",
                hint="close or retract a task first, or write this one shorter",
            )


def check_obligations(open_in: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    """Refuse open tasks of several namespaces, by scope, that a default recall over all of them would not hold.

    Of each namespace how many there are, and the bytes of their contents. It is judged at the door of a write alone:
    which namespaces are seen together depends on who looks, and history is the same for everybody.
    """
    counts = {scope: sum(count for count, _ in sizes) for scope, sizes in open_in.items()}
    count = sum(counts.values())
    need = sum(size for sizes in open_in.values() for _, size in sizes) + count * TASK_OVERHEAD_BYTES
    if count > MAX_OPEN_TASKS or need > MAX_OPEN_TASK_BYTES:
        told = ", ".join(f"{number} in scope {scope}" for scope, number in counts.items() if number)
        refuse(
            "open_tasks",
            f"{MAX_OPEN_TASKS} open tasks and {MAX_OPEN_TASK_BYTES} bytes in all that a recall here looks at; "
            f"this would make it {count} and {need}: {told}",
            hint="close some first, wherever they stand: ledgerstone list tasks",
        )


def _check_summary(entry: RecordEntry, sources: list[Known], covers: list[Known], facts: Facts) -> None:
    if not sources:
        refuse("summary", "needs at least one source", hint="name what it sums up: --covers ADDRESS")
    if not set(entry.covers) <= set(entry.sources):
        refuse("covers", "each one is also a source")
    _check_ground(entry, sources, facts)
    for known in covers:
        if known.open_task:
            refuse("covers", f"{canonical.address(known.memory, known.version)} is an open task")
    depth = 1 + max(known.depth for known in sources)
    if depth > MAX_SUMMARY_DEPTH:
        refuse("summary", f"at most {MAX_SUMMARY_DEPTH} levels of summaries")
    if entry.depth != depth:
        refuse("summary", f"stands {depth} levels up, not {entry.depth}")
    if not covers:
        return
    if entry.trust < DEFAULT_FLOOR:
        refuse("covers", f"takes trust {DEFAULT_FLOOR.word} or higher, not {entry.trust.word}")
    covered = sum(known.text_bytes for known in covers)
    if entry.content.text_bytes >= covered:
        refuse(
            "covers",
            f"shorter than the {covered} bytes covered, not {entry.content.text_bytes}",
            hint="write it shorter, or cover more",
        )


def _check_ground(entry: RecordEntry, sources: list[Known], facts: Facts) -> None:
    """A summary rests on what stands, and goes on standing once the summary is there."""
    previous = facts.latest(entry.memory)
    ending: set[int] = set()
    if previous is not None and previous.current:
        ending = {previous.position, *(position for position, _ in undermined(previous, facts))}
    for known in sources:
        if not known.current:
            refuse("summary", f"{canonical.address(known.memory, known.version)} is no longer current")
        if known.position in ending:
            refuse("summary", f"{canonical.address(known.memory, known.version)} would end with this very write")


# What never became current, or lost its ground, can still be withdrawn.
_RETRACTABLE: Final = frozenset({Ending.NONE, Ending.CONTESTED, Ending.HELD, Ending.STALE})


def settle(target: Known, origin: Origin, *, closing: bool) -> None:
    """Closing takes an open task; retracting anything that stands; both at least the target's trust."""
    where = canonical.address(target.memory, target.version)
    if closing and not target.open_task:
        refuse("close", f"{where} is not an open task", hint="see what is open: ledgerstone list tasks")
    if not closing and target.ending not in _RETRACTABLE:
        refuse(
            "retract",
            f"{where} no longer stands",
            hint=f"see what stands: ledgerstone history {target.memory}",
        )
    trust = TRUST_OF_ORIGIN[origin]
    if target.trust > trust:
        refuse(
            "trust",
            f"{trust.word} may not {'close' if closing else 'retract'} {target.trust.word} ({where})",
            hint="ask the user to do it: ledgerstone close, ledgerstone retract",
        )


def close(target: Known, writing: Writing, reason: str | None) -> Admitted:
    """The entry that closes an open task; its text stays that of the version it closes."""
    settle(target, writing.origin, closing=True)

    def make(sealed: Sealed | None) -> Entry:
        return CloseEntry(
            memory=target.memory,
            version=target.version + 1,
            closes=target.digest,
            origin=writing.origin,
            trust=target.trust,
            content=sealed,
        )

    return _with_reason(make, reason, writing)


def retract(target: Known, writing: Writing, reason: str | None, tombstone: bytes | None) -> Admitted:
    """The entry that withdraws a version; history keeps it."""
    settle(target, writing.origin, closing=False)

    def make(sealed: Sealed | None) -> Entry:
        return RetractEntry(
            memory=target.memory,
            version=target.version + 1,
            retracts=target.digest,
            origin=writing.origin,
            trust=target.trust,
            content=sealed,
            tombstone=tombstone,
        )

    return _with_reason(make, reason, writing)


def _with_reason(make: Callable[[Sealed | None], Entry], reason: str | None, writing: Writing) -> Admitted:
    if reason is None:
        return plain(make(None))
    canonical.text(reason, name="reason", least=1, most=MAX_REASON_BYTES)
    return with_content(make, Content(reason=reason), writing.entropy(32))


def judge(entry: Entry, content: Content | None, stamp: Stamp, limits: Limits, facts: Facts) -> None:
    """Judge any entry of a namespace as it was judged on the way in; RuleError names what is wrong."""
    match entry:
        case RecordEntry():
            check_record(entry, content, stamp.origin, limits, facts)
        case CloseEntry() | RetractEntry():
            _check_settled(entry, stamp, facts)
            check_arranged(entry, facts)
        case _:
            check_arranged(entry, facts)


def _check_settled(entry: CloseEntry | RetractEntry, stamp: Stamp, facts: Facts) -> None:
    closing = isinstance(entry, CloseEntry)
    target = _at(entry.closes if isinstance(entry, CloseEntry) else entry.retracts, facts, entry.noun)
    if (entry.memory, entry.version) != (target.memory, target.version + 1):
        refuse(entry.noun, "is not the next version of what it ends")
    if entry.origin is not stamp.origin:
        refuse("origin", f"{entry.origin.value} is not the caller's {stamp.origin.value}")
    if entry.trust != target.trust:
        refuse("trust", f"stays {target.trust.word}, as the text it refers to")
    settle(target, entry.origin, closing=closing)


# What stands in which chain under rules 1; the kinds in neither are reserved for later rules.
_OF_NAMESPACES: Final = frozenset({"genesis", "record", "close", "retract", "erasure", "promotion"})
_OF_THE_STORE: Final = frozenset(
    {
        *("genesis", "key", "name", "namespace", "alias", "grant", "revoke", "refusal", "restore", "erased"),
        *("erasure", "export", "parting", "setting"),
    }
)
# The fields that a content may have, by the noun that commits to it; all others hold a name.
_TEXT_FIELDS: Final = frozenset({"text"})
_CONTENT_FIELDS: Final = {
    "record": _TEXT_FIELDS
    | {"key", "source", "title", "place", "tags", "due", "valid_from", "valid_until", "triggers"},
    "close": frozenset({"reason"}),
    "retract": frozenset({"reason"}),
    "restore": frozenset({"reason"}),
    "erasure": frozenset({"reason"}),
}
# The settings that rules 1 know, and the greatest value of each; 0 is what holds without one.
SETTINGS: Final = {ISOLATED: 1}
_NAME_PREFIX: Final = {NameOf.PRINCIPAL: "prn_", NameOf.SESSION: "ses_", NameOf.HOST: "hst_"}


def check_place(entry: Entry, content: Content | None, *, position: int, store: bool) -> None:
    """An entry stands in a chain of its kind, begins it if and only if it is a genesis, and says what it may."""
    if entry.noun not in (_OF_THE_STORE if store else _OF_NAMESPACES):
        refuse(entry.noun, f"has no place in the chain of a {'store' if store else 'namespace'} under rules 1")
    if isinstance(entry, GenesisEntry) != (position == 0):
        refuse("genesis", "is the first entry of a chain, and only the first")
    _check_piece(entry)
    if content is None:
        return
    allowed = _CONTENT_FIELDS.get(entry.noun, frozenset({"name"}))
    needed = _TEXT_FIELDS if entry.noun == "record" else allowed
    said = write_object(content).keys()
    if not needed <= said <= allowed:
        refuse("content", f"of a {entry.noun} entry says {', '.join(sorted(said)) or 'nothing'}")


def _check_piece(entry: Entry) -> None:
    """What is arranged is of one piece."""
    match entry:
        case GrantEntry():
            if (entry.scope is None) == (entry.namespace is None):
                refuse("grant", "is for a scope or for a namespace, one of the two")
        case KeyEntry():
            if entry.key != key_id(entry.public):
                refuse("key_entry", "has an id that is not its public key's")
            if (entry.retires is None) != (entry.heads is None):
                refuse("key_entry", "retires a key at heads that it names, or does neither")
        case NameEntry():
            if not entry.id.startswith(_NAME_PREFIX[entry.of]):
                refuse("name", f"of a {entry.of.value} has the id {entry.id}")
        case NamespaceEntry():
            if entry.scope is Scope.STORE:
                refuse("namespace", "of scope store is the store's own, and nobody makes it")
        case RestoreEntry():
            if (entry.abandoned_sequence is None) != (entry.abandoned is None):
                refuse("restore", "names the head that it abandons by sequence and id, or none")
        case _:
            pass


def check_arranged(entry: Entry, facts: Facts) -> None:
    """What is arranged has an id of its own, and ends or erases only what is there to end or erase."""
    match entry:
        case CloseEntry() | RetractEntry():
            newest = facts.latest(entry.memory)
            if newest is None or newest.version + 1 != entry.version:
                refuse(entry.noun, "is of a version that is not the newest of its memory")
        case RevokeEntry():
            if not facts.revocable(entry.revokes):
                refuse("revoke", "names nothing that stands and can be revoked")
        case KeyEntry():
            if entry.retires != facts.key():
                refuse(
                    "key_entry", f"retires {entry.retires or 'none'}, and the key in force is {facts.key() or 'none'}"
                )
        case ErasureEntry():
            _check_erasure(entry, facts)
        case PartingEntry() | ExportEntry():
            _check_gone(entry, facts)
        case SettingEntry():
            _check_setting(entry)
            _check_gone(entry, facts)
        case _:
            pass
    for noun, value in lookups(entry, ""):
        if noun in _UNIQUE and facts.listed(noun, value):
            refuse(_UNIQUE[noun], f"{value} is taken")


def _check_erasure(entry: ErasureEntry, facts: Facts) -> None:
    if bool(entry.erases) == bool(entry.strikes):
        refuse("erasure", "takes texts, or what other entries say of their own, one of the two")
    for digest in entry.erases:
        if _at(digest, facts, "erasure").ending is Ending.ERASED:
            refuse("erasure", f"{digest.hex()[:16]} was erased before")
    for digest in entry.strikes:
        if facts.own(digest) is None:
            refuse("erasure", f"{digest.hex()[:16]} has no content of its own here")


def _check_gone(entry: PartingEntry | ExportEntry | SettingEntry, facts: Facts) -> None:
    """What leaves the store, or is set, was made in it, and has not been left before."""
    named = entry.without if isinstance(entry, PartingEntry) else (entry.namespace,)
    for namespace in named:
        if namespace is not None and (not facts.listed("namespace", namespace) or facts.listed(PARTED, namespace)):
            refuse(entry.noun, f"{namespace} was never made here, or was left before")


def _check_setting(entry: SettingEntry) -> None:
    """A setting that rules 1 know, at a value that it has, of a namespace."""
    most = SETTINGS.get(entry.setting)
    if most is None or entry.value > most or entry.namespace is None:
        refuse("setting", f"{entry.setting} {entry.value} is none that rules 1 know, or of no namespace")


# The ids that stand for one thing only, by how they are found, and the rules that say so.
_UNIQUE: Final = {"namespace": "namespace", NAMED: "name", GRANTED: "grant", "key": "key_entry", SET: "setting"}


def check_commit(drawn: Sequence[tuple[Entry, Content | None]], limits: Limits) -> None:
    """What no single entry shows: how many records a commit has, that no two share a memory or a key, what is alone."""
    if len(drawn) == 1 and isinstance(drawn[0][0], RecordEntry):
        # Nearly every commit: what is said of several cannot be broken by one.
        return
    records = [(entry, content) for entry, content in drawn if isinstance(entry, RecordEntry)]
    if len(records) > limits.drafts:
        refuse("drafts", f"1 to {limits.drafts} a commit, not {len(records)}")
    _check_keys([content.key for _, content in records if content is not None and content.key is not None])
    if len({entry.memory for entry, _ in records}) != len(records):
        refuse("replaces", "each memory once a commit", hint="nothing was written; decide which of the two stands")
    # Who signs what follows it changes with it.
    if len(drawn) > 1 and any(isinstance(entry, KeyEntry) and entry.retires is not None for entry, _ in drawn):
        refuse("key_entry", "that retires a key is the only entry of its commit")
    # These take a grant of their own, which nothing else may pass under.
    if len(drawn) > 1 and any(isinstance(entry, ErasureEntry) for entry, _ in drawn):
        refuse("erasure", "is the only entry of its commit")
    if any(isinstance(entry, PromotionEntry) for entry, _ in drawn):
        alone = [entry.noun for entry, _ in drawn] == ["promotion", "record"]
        if not alone or records[0][0].promotion is None:
            refuse("promotion", "and the record that came by it are the only entries of their commit")


def heads_root(heads: Mapping[str, bytes]) -> bytes:
    """What a key entry says of the heads at which a key ends: the root over them, by namespace (RFC 9162)."""
    leaves = sorted(f"{namespace} {head.hex()}".encode() for namespace, head in heads.items())
    return merkle.tree_root([merkle.leaf_hash(leaf) for leaf in leaves])


def check_heads(entry: KeyEntry, heads: Mapping[str, bytes]) -> None:
    """A key ends at the heads that all namespaces had: the newest commits that were made before its successor."""
    if entry.heads != heads_root(heads):
        refuse("key_entry", f"names other heads than those at which {entry.retires} ended")


def check_signer(signer: str, key: str | None) -> None:
    """A commit is signed by the key that was in force when it was made."""
    if signer != key:
        refuse("signer", f"{signer} signs, and the key in force was {key or 'none'}")


def _check_keys(keys: list[str]) -> None:
    if len(set(keys)) != len(keys):
        refuse("key", "each key once a commit", hint="nothing was written; decide which of the two stands")
