"""The nouns: what every other room speaks of, as frozen values and closed enumerations."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from ledgerstone.errors import UsageError

MAX_INTEGER: Final = 2**53 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(moment: int) -> str:
    """The wire form of a time in microseconds UTC: RFC 3339 with all six digits and ``Z``, and no second form."""
    text = (_EPOCH + timedelta(microseconds=moment)).isoformat(timespec="microseconds")
    return text.removesuffix("+00:00") + "Z"


class Scope(enum.StrEnum):
    """Where a namespace applies, most specific first; ``store`` is the chain of what belongs to none."""

    SESSION = "session"
    PROJECT = "project"
    USER = "user"
    GLOBAL = "global"
    SHARED = "shared"
    STORE = "store"


class Kind(enum.StrEnum):
    """What a record is, in its writer's words."""

    NOTE = "note"
    FACT = "fact"
    EPISODE = "episode"
    TASK = "task"
    SUMMARY = "summary"
    PROCEDURE = "procedure"
    PROSPECTIVE = "prospective"


class Status(enum.StrEnum):
    """Where a record stands in its own life; open and closed are for tasks."""

    ACTIVE = "active"
    OPEN = "open"
    CLOSED = "closed"
    RETRACTED = "retracted"


class Retention(enum.StrEnum):
    """How long a record is meant to live, beside where it applies."""

    WORKING = "working"
    SESSION = "session"
    SHORT_TERM = "short_term"
    LONG_TERM = "long_term"
    DURABLE = "durable"


class Origin(enum.StrEnum):
    """Who said it first, as data from the host; never guessed from wording."""

    USER = "user"
    SYSTEM = "system"
    PROJECT = "project"
    TOOL = "tool"
    MODEL = "model"
    EXTERNAL = "external"
    IMPORT = "import"
    UNKNOWN = "unknown"


class Trust(enum.IntEnum):
    """How far to rely on a record, low to high; its word on the wire is the lower-case name."""

    UNKNOWN = 0
    EXTERNAL_UNTRUSTED = 1
    MODEL_INFERRED = 2
    TOOL_VERIFIED = 3
    PROJECT_VERIFIED = 4
    SYSTEM_VERIFIED = 5
    USER_EXPLICIT = 6

    @property
    def word(self) -> str:
        """The wire form."""
        return self.name.lower()


TRUST_OF_WORD: Final = {trust.word: trust for trust in Trust}
DEFAULT_FLOOR: Final = Trust.MODEL_INFERRED
# The setting by which a project keeps to itself.
ISOLATED: Final = "isolated"


class Ending(enum.IntEnum):
    """Why an entry no longer stands, as its leaf in the state tree says it."""

    NONE = 0
    SUPERSEDED = 1
    CLOSED = 2
    RETRACTED = 3
    ERASED = 4
    STALE = 5
    CONTESTED = 6
    HELD = 7
    REVOKED = 8


class Standing(enum.StrEnum):
    """What a record counts for now; derived, never written."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    ERASED = "erased"
    STALE = "stale"
    CONTESTED = "contested"
    HELD = "held"
    COVERED = "covered"
    EXPIRED = "expired"


# What stands. A covered record is out of the recent lane only: precise words still find it.
RECALLED: Final = frozenset({Standing.CURRENT, Standing.COVERED})
STANDING_OF_ENDING: Final = {
    Ending.NONE: Standing.CURRENT,
    Ending.SUPERSEDED: Standing.SUPERSEDED,
    Ending.CLOSED: Standing.SUPERSEDED,
    Ending.RETRACTED: Standing.RETRACTED,
    Ending.ERASED: Standing.ERASED,
    Ending.STALE: Standing.STALE,
    Ending.CONTESTED: Standing.CONTESTED,
    Ending.HELD: Standing.HELD,
    Ending.REVOKED: Standing.SUPERSEDED,
}


class Act(enum.StrEnum):
    """What a grant allows."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    CREATE = "create"
    PROMOTE = "promote"
    ADMIN = "admin"


class Refusal(enum.StrEnum):
    """Why an act was denied, as the audit trail says it."""

    NO_GRANT = "no_grant"
    EXPIRED = "expired"
    HOST = "host"
    UNBOUND = "unbound"


class NameOf(enum.StrEnum):
    """What a name entry names by an opaque id."""

    PRINCIPAL = "principal"
    SESSION = "session"
    HOST = "host"


class AliasOf(enum.StrEnum):
    """What sort of evidence an alias is."""

    REMOTE = "remote"
    PATH = "path"


class Mode(enum.StrEnum):
    """How a recall finds its candidates."""

    BALANCED = "balanced"
    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    LEXICAL = "lexical"
    RECENT = "recent"
    TASK_MAINTENANCE = "task_maintenance"


class Lane(enum.StrEnum):
    """One way of finding candidates, in the order in which a context shows what each gave."""

    TASKS = "tasks"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    RECENT = "recent"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in force for one commit; they stand in its header so that replay judges by the same."""

    drafts: int = 8
    text_bytes: int = 8192

    def __post_init__(self) -> None:
        for name, most in (("drafts", MAX_DRAFTS), ("text_bytes", MAX_TEXT_BYTES)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise UsageError(f"limits: {name} from 1 to {most}, not {value!r}")


MAX_DRAFTS: Final = 256
MAX_TEXT_BYTES: Final = 1_048_576
MAX_KEY_BYTES: Final = 128
MAX_SOURCES: Final = 32
MAX_COVERS: Final = 32
MAX_SUMMARY_DEPTH: Final = 8
MAX_TAGS: Final = 16
MAX_TAG_BYTES: Final = 64
MAX_REASON_BYTES: Final = 4096
MAX_SOURCE_BYTES: Final = 1024
MAX_IDEMPOTENCY_BYTES: Final = 200
MAX_NAME_BYTES: Final = 1024
MAX_QUERY_BYTES: Final = 65_536
MAX_GET: Final = 32
MAX_MAINTAINED: Final = 8
MAX_NAMED: Final = 32
MAX_LIST: Final = 100
MAX_BELOW_FLOOR_BYTES: Final = 32_768
MAX_SIMILAR: Final = 3
LIBRARY_LIMITS: Final = Limits(drafts=MAX_DRAFTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a caller asks to remember. Sources and covers are addresses (``mem_...@3``); times are microseconds UTC.

    ``replaces`` names the version that this one must still find current, else the write is a conflict. Without a
    ``kind`` it is of the kind of what it replaces, as ``rules.enter`` says, else a note.
    """

    text: str
    kind: Kind | None = None
    status: Status | None = None
    key: str | None = None
    replaces: str | None = None
    sources: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    retention: Retention = Retention.LONG_TERM
    expires: int | None = None
    due: int | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    title: str | None = None
    place: str | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    triggers: tuple[str, ...] = ()
    external: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What one recall may cost: bytes as serialised, items, candidates a lane, and tokens where they are limited."""

    bytes: int = 8192
    items: int = 16
    candidates: int = 64
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a recall looks for and where: everything but the query and the budget.

    ``scopes`` and ``namespaces`` (ids) keep to some of what the caller may see. ``history`` shows every version with
    its standing. ``as_of`` (microseconds UTC) or ``at`` (a sequence, of one namespace) answer from the past state.
    ``floor`` only raises the caller's. ``kinds``, ``origins``, ``tags``, ``key``, ``since`` and ``until`` (when it was
    remembered) keep to what fits each of them, and of several kinds, origins or tags one; open tasks are shown all the
    same. ``tasks``: the 1 to 8 of mode task_maintenance. ``synonyms`` maps a word to others that may stand for it.
    """

    mode: Mode = Mode.BALANCED
    scopes: tuple[Scope, ...] = ()
    namespaces: tuple[str, ...] = ()
    history: bool = False
    as_of: int | None = None
    at: int | None = None
    floor: Trust | None = None
    kinds: tuple[Kind, ...] = ()
    origins: tuple[Origin, ...] = ()
    tags: tuple[str, ...] = ()
    key: str | None = None
    since: int | None = None
    until: int | None = None
    tasks: tuple[str, ...] = ()
    synonyms: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One version of a memory as it is returned: every field from its signed entry, its stamp and its leaf.

    ``promoted`` is the digest that it had in the namespace where it came from. ``namespace_name`` is that of a shared
    namespace, since its scope does not tell one from another; None in every other scope, and once it was erased.
    ``overrides`` names the rules by which something in it looks like a credential, and was let pass.
    ``text`` and what else was content is ``None`` when the content was erased. ``notices`` says in plain words
    what is to be known of the answer that it came in, and is no part of what it is.
    """

    memory: str
    version: int
    address: str
    digest: bytes
    namespace: str
    scope: Scope
    kind: Kind
    status: Status
    standing: Standing
    retention: Retention
    origin: Origin
    trust: Trust
    principal: str
    session: str | None
    host: str | None
    created_at: int
    sequence: int
    text: str | None
    text_bytes: int
    key: str | None = None
    source: str | None = None
    title: str | None = None
    place: str | None = None
    tags: tuple[str, ...] = ()
    due: int | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    triggers: tuple[str, ...] = ()
    expires: int | None = None
    sources: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    promoted: str | None = None
    namespace_name: str | None = None
    overrides: tuple[str, ...] = ()
    reason: str | None = None
    ended_by: int | None = None
    notices: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """A record that stands and says nearly what another one says, by its address.

    ``same``: case, width, spacing and invisible characters aside, it says just that. ``overlap`` is the share of the
    different words of both texts that both have, in thousandths.
    """

    address: str
    same: bool
    overlap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The answer to one write: the record as committed, the commit, and what it replaced.

    ``similar``, where it was asked for, are records that may say the same: advice, on which nothing acts.
    """

    record: Record
    commit: bytes
    sequence: int
    repeated: bool = False
    replaced: Record | None = None
    created_namespace: bool = False
    similar: tuple[Similar, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensable:
    """Records of one namespace that one summary could cover: said in one source, or in one session, or in neither.

    ``covers`` are their addresses, oldest first; ``since`` and ``until`` when the first and the last was said.
    ``bytes`` is the size of their texts together: the summary must be shorter, and the difference is what a context
    is freed of. The store keeps the texts.
    """

    namespace: str
    scope: Scope
    covers: tuple[str, ...]
    source: str | None
    session: str | None
    since: int
    until: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One entry of a recall: the record and why it was chosen; ``score`` is a fixed-point integer or None."""

    record: Record
    lane: Lane
    rank: int
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """A bounded context: what was chosen, from which heads, within which budget, and what was left out and why.

    ``heads`` maps a namespace id to (sequence, commit id). ``omitted`` counts by reason. ``bytes`` is the size of
    the compact JSON of the chosen entries, ``tokens`` what they cost where tokens are limited. ``notices`` says in
    plain words whatever was degraded. ``scorer`` names what ranked it, ``receipt`` is the id of the receipt, if one was
    asked for. ``below_floor`` is what lies below the trust floor, where the host lets a caller see it: a section of its
    own, with ``below_floor_bytes`` of its own.
    """

    mode: Mode
    query: str
    items: tuple[Recalled, ...]
    heads: dict[str, tuple[int, bytes]]
    budget: Budget
    bytes: int
    tokens: int | None = None
    omitted: dict[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    scorer: str = ""
    receipt: str | None = None
    below_floor: tuple[Recalled, ...] = ()
    below_floor_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What an erasure reached, or would reach when ``erased`` is False.

    ``addresses`` are all versions that lose their text; ``summaries`` those among them that cover another one;
    ``copies`` those that were promoted from one of the others, wherever they stand; ``rests`` stay, though what they
    rest on is gone. ``commits`` are the namespaces and sequences that say so.
    ``names`` are the ids whose names go (``ns_... remote``: what led there), ``reasons`` the versions, or the commits
    of erasures, whose reasons go by themselves. ``left`` says in words what could not be done, ``unreached`` what an
    erasure does not reach.
    """

    addresses: tuple[str, ...]
    summaries: tuple[str, ...]
    copies: tuple[str, ...]
    rests: tuple[str, ...]
    names: tuple[str, ...]
    reasons: tuple[str, ...]
    erased: bool
    commits: tuple[tuple[str, int], ...]
    left: tuple[str, ...]
    unreached: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing and the cursor that continues it, or None at its end; the rest as in a recall.

    ``omitted`` counts what was met for this part and lies below the floor.
    """

    items: tuple[Record, ...]
    cursor: str | None
    notices: tuple[str, ...] = ()
    omitted: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the audit trail: a commit's entry, or a refusal. ``id``: the commit's, and the entry's place."""

    id: str
    at: int
    principal: str
    operation: str
    namespace: str
    target: str | None
    origin: Origin
    grant: str | None
    binding: str | None = None
    session: str | None = None
    host: str | None = None
    refusal: str | None = None
    count: int = 1
    previous_version: int | None = None
    new_version: int | None = None
    overrides: tuple[str, ...] = ()
    sequence: int = 0
    place: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that a verification met: its code, where, and what is wrong in plain words."""

    code: str
    namespace: str
    sequence: int | None
    message: str


DERIVED_CODES: Final = frozenset(
    {"catalog", "idempotency", "index", "link", "node", "record", "schema", "stray", "vectors", "words"}
)
"""Findings about derived rows alone, which ``rebuild`` mends."""

UNSURE_CODES: Final = frozenset({"file", "unread"})
"""Findings that leave open whether history is damaged, or derived rows alone."""

ACCEPTED_CODES: Final = frozenset({"anchor", "erased"})
"""Findings that are no damage: an older copy, which may be taken as it is."""


def _remedy(codes: set[str]) -> str:
    """What to do about damage."""
    if codes <= DERIVED_CODES and codes & {"schema", "stray"}:
        return "what is foreign can be taken out, and what is derived made anew; run: ledgerstone rebuild"
    if codes <= DERIVED_CODES:
        return "only rows that can be derived anew are wrong; run: ledgerstone rebuild"
    if codes <= DERIVED_CODES | UNSURE_CODES:
        return (
            "keep a copy of the file; ledgerstone rebuild makes anew what is derived, or changes nothing and says that "
            "history is damaged: then restore a backup: ledgerstone restore FILE"
        )
    return "history itself is damaged: keep the file as it is, and restore a backup: ledgerstone restore FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a verification found, and how much it looked at. ``heads`` maps a namespace to its newest commit.

    ``namespaces`` counts them without the store's own chain; commits and entries are those of all chains.

    ``since`` is None when everything was replayed, for the ``reason`` given if that was not asked for. Else it maps
    a namespace to the commit up to which it had been verified before; of those ``older`` commits ``sampled`` were
    drawn by chance and looked at, and all others were replayed. Of the ``receipts`` that are kept
    ``receipts_checked`` were held to history. ``mended`` is what a rebuild put right that is none of a chain.
    """

    findings: tuple[Finding, ...]
    namespaces: int
    commits: int
    entries: int
    heads: dict[str, tuple[int, bytes]]
    since: dict[str, int] | None = None
    older: int = 0
    sampled: int = 0
    receipts: int = 0
    receipts_checked: int = 0
    reason: str | None = None
    mended: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when nothing was found."""
        return not self.findings

    @property
    def hint(self) -> str | None:
        """What to do next when there are findings."""
        codes = {finding.code for finding in self.findings}
        if not codes:
            return None
        wrong = codes - ACCEPTED_CODES - {"expected", "other", "receipt"}
        if wrong:
            return _remedy(wrong)
        if "receipt" in codes:
            return "history is as it was; only a backup has what the receipts said: ledgerstone restore FILE"
        if "other" in codes:
            return "put this path's own file back; how another store is accepted here says: ledgerstone doctor"
        if codes & ACCEPTED_CODES:
            return "put the newer file back; if this one is meant, run: ledgerstone verify --accept"
        return (
            "what was expected is not in this store: put the newer file back; after a restore that was meant, keep "
            "checkpoints of what stands now: ledgerstone checkpoint"
        )
