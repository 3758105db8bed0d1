"""Format 1: every entry, its content, the stamp and the commit header, field by field (docs/format.md)."""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain as joined
from itertools import islice
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from ledgerstone.core import canonical, fields
from ledgerstone.core.fields import (
    FORMAT,
    array,
    field,
    identifier,
    integer,
    nested,
    octets,
    one_of,
    slug,
    string,
    word,
)
from ledgerstone.core.values import (
    MAX_COVERS,
    MAX_DRAFTS,
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
    TRUST_OF_WORD,
    Act,
    AliasOf,
    Kind,
    Limits,
    NameOf,
    Origin,
    Refusal,
    Retention,
    Scope,
    Status,
)
from ledgerstone.errors import CorruptionError

HASH: Final = octets(32)
MEMORY: Final = identifier("mem", often=False)
NAMESPACE: Final = identifier("ns")
PRINCIPAL: Final = identifier("prn")
GRANT: Final = identifier("grt")
KEY: Final = identifier("key")
NAME: Final = identifier("(?:prn|ses|hst)")
TIME: Final = integer()
TRUST: Final = one_of(TRUST_OF_WORD, lambda trust: trust.word)
HASHES: Final = array(HASH, MAX_SOURCES)
RULES_VERSION: Final = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Every free text, and what may be personal: stored beside the chain under a salted commitment."""

    text: str | None = field(string(MAX_TEXT_BYTES), absent=None)
    key: str | None = field(string(MAX_KEY_BYTES), absent=None)
    source: str | None = field(string(MAX_SOURCE_BYTES), absent=None)
    title: str | None = field(string(MAX_SOURCE_BYTES), absent=None)
    place: str | None = field(string(MAX_SOURCE_BYTES), absent=None)
    tags: tuple[str, ...] = field(array(string(MAX_TAG_BYTES), MAX_TAGS), absent=())
    due: int | None = field(TIME, absent=None)
    valid_from: int | None = field(TIME, absent=None)
    valid_until: int | None = field(TIME, absent=None)
    triggers: tuple[str, ...] = field(array(string(MAX_TAG_BYTES), MAX_TAGS), absent=())
    name: str | None = field(string(MAX_NAME_BYTES), absent=None)
    reason: str | None = field(string(MAX_REASON_BYTES), absent=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """What an entry says of its content: the commitment, the size of its canonical bytes and of its text."""

    commitment: bytes = field(HASH)
    bytes: int = field(integer(1, 8 * MAX_TEXT_BYTES))
    text_bytes: int = field(integer(1, MAX_TEXT_BYTES), absent=0)


SEALED: Final = nested(Sealed)


class Entry:
    """One canonical object of a commit. Its digest covers the content's commitment, never the plain text."""

    __slots__ = ()
    noun: ClassVar[str]


_ENTRIES: dict[str, type[Any]] = {}


def _entry(noun: str) -> Any:
    def declare(cls: type[Any]) -> type[Any]:
        cls.noun = noun
        _ENTRIES[noun] = cls
        return cls

    return declare


@_entry("record")
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEntry(Entry):
    """One version of a memory. ``sources``, ``covers``, ``contests``, ``held_by``: digests of earlier entries."""

    memory: str = field(MEMORY)
    version: int = field(integer(1))
    kind: Kind = field(word(Kind))
    status: Status = field(word(Status))
    retention: Retention = field(word(Retention))
    origin: Origin = field(word(Origin))
    trust: Any = field(TRUST)
    content: Sealed = field(SEALED)
    expires: int | None = field(TIME, absent=None)
    depth: int = field(integer(1, MAX_SUMMARY_DEPTH), absent=0)
    sources: tuple[bytes, ...] = field(HASHES, absent=())
    covers: tuple[bytes, ...] = field(array(HASH, MAX_COVERS), absent=())
    contests: bytes | None = field(HASH, absent=None)
    held_by: bytes | None = field(HASH, absent=None)
    promotion: bytes | None = field(HASH, absent=None)
    overrides: tuple[str, ...] = field(array(slug(), 16), absent=())


@_entry("close")
@dataclass(frozen=True, slots=True, kw_only=True)
class CloseEntry(Entry):
    """The next version of a task, closed: its text is that of the version whose digest is ``closes``."""

    memory: str = field(MEMORY)
    version: int = field(integer(2))
    closes: bytes = field(HASH)
    origin: Origin = field(word(Origin))
    trust: Any = field(TRUST)
    content: Sealed | None = field(SEALED, absent=None)


@_entry("retract")
@dataclass(frozen=True, slots=True, kw_only=True)
class RetractEntry(Entry):
    """The next version of a memory, withdrawn. ``tombstone``: the rejected value under its key, keyed hash."""

    memory: str = field(MEMORY)
    version: int = field(integer(2))
    retracts: bytes = field(HASH)
    origin: Origin = field(word(Origin))
    trust: Any = field(TRUST)
    content: Sealed | None = field(SEALED, absent=None)
    tombstone: bytes | None = field(HASH, absent=None)


@_entry("erasure")
@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureEntry(Entry):
    """The texts of the named versions are gone, or the own contents of other entries; ``content`` holds the reason.

    ``strikes`` names those that lose a name or a reason and go on standing without it.
    """

    erases: tuple[bytes, ...] = field(array(HASH, MAX_DRAFTS), absent=())
    strikes: tuple[bytes, ...] = field(array(HASH, MAX_DRAFTS), absent=())
    content: Sealed | None = field(SEALED, absent=None)


@_entry("erased")
@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedEntry(Entry):
    """On the store chain: a namespace erased ``count`` contents in its commit of that sequence."""

    namespace: str = field(NAMESPACE)
    sequence: int = field(integer(1))
    count: int = field(integer(1))


@_entry("parting")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartingEntry(Entry):
    """On the store chain: from here on this store goes on without some namespaces, whose chains are elsewhere."""

    without: tuple[str, ...] = field(array(NAMESPACE, MAX_DRAFTS))


@_entry("restore")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreEntry(Entry):
    """On the store chain: a chain was accepted as it was found; the head that this abandons stands as evidence.

    Without a head nothing was known of it before.
    """

    namespace: str = field(NAMESPACE)
    abandoned_sequence: int | None = field(integer(), absent=None)
    abandoned: bytes | None = field(HASH, absent=None)
    content: Sealed | None = field(SEALED, absent=None)


@_entry("promotion")
@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEntry(Entry):
    """A record came here from another namespace: which one, the digest there, and the lowest trust on the way."""

    source_namespace: str = field(NAMESPACE)
    source: bytes = field(HASH)
    trust: Any = field(TRUST)


@_entry("genesis")
@dataclass(frozen=True, slots=True, kw_only=True)
class GenesisEntry(Entry):
    """Commit 0: the namespace begins. The nonce keeps equal names from sharing a chain."""

    scope: Scope = field(word(Scope))
    nonce: bytes = field(octets(16))
    owner: str | None = field(PRINCIPAL, absent=None)


@_entry("namespace")
@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceEntry(Entry):
    """On the store chain: a namespace was made; its own commit 0 carries the same scope, nonce and owner."""

    namespace: str = field(NAMESPACE)
    scope: Scope = field(word(Scope))
    nonce: bytes = field(octets(16))
    owner: str | None = field(PRINCIPAL, absent=None)
    content: Sealed | None = field(SEALED, absent=None)


@_entry("name")
@dataclass(frozen=True, slots=True, kw_only=True)
class NameEntry(Entry):
    """On the store chain: an opaque id stands for a name; the name is content. Sessions have an owner."""

    id: str = field(NAME)
    of: NameOf = field(word(NameOf))
    content: Sealed = field(SEALED)
    owner: str | None = field(PRINCIPAL, absent=None)


@_entry("alias")
@dataclass(frozen=True, slots=True, kw_only=True)
class AliasEntry(Entry):
    """On the store chain: a remote or a path suggests a namespace; its value is content."""

    namespace: str = field(NAMESPACE)
    of: AliasOf = field(word(AliasOf))
    content: Sealed = field(SEALED)


@_entry("grant")
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantEntry(Entry):
    """On the store chain: a principal may act on its own namespaces of a scope, or on one named namespace."""

    grant: str = field(GRANT)
    principal: str = field(PRINCIPAL)
    act: Act = field(word(Act))
    scope: Scope | None = field(word(Scope), absent=None)
    namespace: str | None = field(NAMESPACE, absent=None)
    expires: int | None = field(TIME, absent=None)


@_entry("revoke")
@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeEntry(Entry):
    """On the store chain: an alias, grant, token, setting or key stands no longer."""

    revokes: bytes = field(HASH)


@_entry("token")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry(Entry):
    """On the store chain: a bearer token, as its hash, speaks for a principal."""

    token: str = field(identifier("tok"))
    principal: str = field(PRINCIPAL)
    hash: bytes = field(HASH)
    expires: int | None = field(TIME, absent=None)


@_entry("setting")
@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEntry(Entry):
    """On the store chain: a setting of the store or of one namespace; the newest one counts."""

    id: str = field(identifier("set"))
    setting: str = field(slug())
    value: int = field(integer())
    namespace: str | None = field(NAMESPACE, absent=None)


@_entry("key")
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry(Entry):
    """On the store chain: a signing key is enrolled; ``retires`` names the key that ends here, ``heads`` where.

    ``heads``: RFC 9162 root over the leaves ``namespace id, space, head id in hex``, sorted.
    """

    key: str = field(KEY)
    public: bytes = field(HASH)
    retires: str | None = field(KEY, absent=None)
    heads: bytes | None = field(HASH, absent=None)


@_entry("adopt")
@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptEntry(Entry):
    """On the store chain: a new key takes over a store whose key is lost; continuity is broken here."""

    key: str = field(KEY)
    public: bytes = field(HASH)
    content: Sealed | None = field(SEALED, absent=None)


@_entry("refusal")
@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalEntry(Entry):
    """On the store chain: acts that were denied, coalesced: how many, the first and the last time."""

    act: Act = field(word(Act))
    reason: Refusal = field(word(Refusal))
    count: int = field(integer(1))
    first: int = field(TIME)
    last: int = field(TIME)
    principal: str | None = field(PRINCIPAL, absent=None)
    scope: Scope | None = field(word(Scope), absent=None)
    namespace: str | None = field(NAMESPACE, absent=None)


@_entry("export")
@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEntry(Entry):
    """On the store chain: a namespace left the store up to a head, or the whole store up to one of its own chain."""

    sequence: int = field(integer())
    head: bytes = field(HASH)
    namespace: str | None = field(NAMESPACE, absent=None)


@_entry("inbox")
@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry(Entry):
    """An agent's inbox: an event to be considered once; its payload is content."""

    event: str = field(identifier("evt"))
    origin: Origin = field(word(Origin))
    content: Sealed = field(SEALED)
    consumes: bytes | None = field(HASH, absent=None)


@_entry("values")
@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesEntry(Entry):
    """An agent's small assignments of one turn; keys and values are content."""

    content: Sealed = field(SEALED)


@_entry("wake")
@dataclass(frozen=True, slots=True, kw_only=True)
class WakeEntry(Entry):
    """An agent's wake plan: what it asked for, what was granted, and why they differ."""

    asked: int | None = field(TIME, absent=None)
    granted: int | None = field(TIME, absent=None)
    reasons: tuple[str, ...] = field(array(slug(), 8), absent=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Who, when and by which grant. ``at`` is microseconds UTC and never runs backwards within a chain."""

    at: int = field(TIME)
    principal: str = field(PRINCIPAL)
    origin: Origin = field(word(Origin))
    grant: str | None = field(GRANT, absent=None)
    session: str | None = field(identifier("ses"), absent=None)
    host: str | None = field(identifier("hst"), absent=None)
    binding: str | None = field(
        one_of({w: w for w in ("explicit", "binding", "remote", "alias", "new")}, str), absent=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Totals of a namespace after a commit: all entries, records, live contents, current, open, indexed."""

    entries: int = field(integer())
    records: int = field(integer())
    live: int = field(integer())
    current: int = field(integer())
    open: int = field(integer())
    indexed: int = field(integer())


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePoint:
    """Where the store chain stood when a commit was made."""

    sequence: int = field(integer())
    id: bytes = field(HASH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """The caller's name for a write and what it wrote, both as keyed hashes."""

    key: bytes = field(HASH)
    content: bytes = field(HASH)


_DRAFTS: Final = integer(1, MAX_DRAFTS).read
_TEXT_BYTES: Final = integer(1, MAX_TEXT_BYTES).read


def _read_limits(value: Any) -> Limits:
    if type(value) is not dict or value.keys() != {"drafts", "text_bytes"}:
        raise ValueError("not the limits")
    return _limits(_DRAFTS(value["drafts"]), _TEXT_BYTES(value["text_bytes"]))


@lru_cache(maxsize=64)
def _limits(drafts: int, text_bytes: int) -> Limits:
    """The limits of most commits are those of the one before."""
    return Limits(drafts=drafts, text_bytes=text_bytes)


LIMITS: Final = fields.Shape(_read_limits, lambda limits: {"drafts": limits.drafts, "text_bytes": limits.text_bytes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One commit: its bytes are the leaf of the history tree, and its leaf hash is the commit's id."""

    namespace: str = field(NAMESPACE)
    sequence: int = field(integer())
    rules: int = field(integer(1))
    limits: Limits = field(LIMITS)
    history: bytes = field(HASH)
    state: bytes = field(HASH)
    counts: Counts = field(nested(Counts))
    stamp: Stamp = field(nested(Stamp))
    signer: str = field(KEY)
    entries: tuple[bytes, ...] = field(array(HASH, MAX_DRAFTS))
    parent: bytes | None = field(HASH, absent=None)
    store: StorePoint | None = field(nested(StorePoint), absent=None)
    idempotency: Idempotency | None = field(nested(Idempotency), absent=None)
    receipt: bytes | None = field(HASH, absent=None)

    @property
    def positions(self) -> range:
        """Where its entries stand in the chain."""
        return range(self.counts.entries - len(self.entries), self.counts.entries)


def encode_entry(entry: Entry) -> bytes:
    """The canonical bytes of an entry."""
    return canonical.encode({"format": FORMAT, "entry": entry.noun, **fields.write_object(entry)}, shaped=True)


def decode_entry(data: bytes) -> Entry:
    """Read an entry back; CorruptionError unless it is one, in the one form it can have."""
    value = canonical.decode(data, shaped=True)
    noun = value.get("entry") if type(value) is dict and fields.is_format(value.get("format")) else None
    cls = _ENTRIES.get(noun) if type(noun) is str else None
    if cls is None:
        raise CorruptionError("entry: not a format 1 entry of a known sort")
    try:
        entry: Entry = fields.read_object(cls, value, beside=2)
    except ValueError as error:
        raise fields.corrupt(f"{cls.noun} entry", error) from None
    return entry


def spot(position: int, one: object) -> str:
    """An entry for people: its position, and the address of the version that it is or of which is spoken, if any."""
    memory, version = getattr(one, "memory", None), getattr(one, "version", None)
    return f"entry {position}" if memory is None or version is None else f"entry {position}, {memory}@{version},"


def digest_of(data: bytes) -> bytes:
    """An entry's digest, from its canonical bytes."""
    return canonical.digest(b"entry", data)


def encode_content(content: Content) -> bytes:
    """The canonical bytes of a content."""
    return canonical.encode({"format": FORMAT, **fields.write_object(content)}, shaped=True)


def decode_content(data: bytes) -> Content:
    """Read a content back; CorruptionError unless it is one."""
    return _decode(Content, data, "content")


def encode_header(header: Header) -> bytes:
    """The canonical bytes of a header, which are hashed, signed and stored."""
    return canonical.encode({"format": FORMAT, **fields.write_object(header)}, shaped=True)


def decode_header(data: bytes) -> Header:
    """Read a header back; CorruptionError unless it is one."""
    alike = _ALIKE.get(len(data))
    header = None if alike is None else alike.read(data)
    if header is None:
        header = _decode(Header, data, "header")
        if len(header.entries) == 1 and header.parent and not (header.idempotency or header.receipt):
            _ALIKE[len(data)] = _Alike.of(header, data)
    return header


class _Alike(NamedTuple):
    """Reads headers like one that was read, which differ in nothing but counts, history, sequence, time and hashes.

    Most do, from one commit to the next. What repeats is compared as bytes, so that what is read has this one spelling.
    """

    header: Header
    cut: Struct
    spelling: bytes

    @classmethod
    def of(cls, header: Header, data: bytes) -> _Alike:
        """How to read headers like this one of a single entry."""
        pieces, cut, end = [], "", 0
        for new in islice(_NEW.finditer(data), len(_SPELLED)):
            pieces.append(data[end : new.start(1)])
            cut += f"{len(pieces[-1])}x{len(new[1])}s"
            end = new.end(1)
        spelling = b"".join(joined.from_iterable(zip(pieces, _SPELLED, strict=True))) + data[end:]
        return cls(header, Struct(f"{cut}{len(data) - end}x"), spelling)

    def read(self, data: bytes) -> Header | None:
        """The header in some bytes of the same length, or None where they need a closer look."""
        *counts, entry, history, parent, sequence, at, state = self.cut.unpack(data)
        try:
            numbers = *map(int, counts), int(sequence), int(at)
            hashes = unhexlify(entry), unhexlify(history), unhexlify(parent), unhexlify(state)
        except ValueError:
            return None
        hexed = tuple(map(hexlify, hashes))
        if self.spelling % (*numbers[:6], *hexed[:3], *numbers[6:], hexed[3]) != data:
            return None
        if min(numbers) < 0 or max(numbers) > MAX_INTEGER:
            return None
        header = self.header
        return _renewed_header(
            header,
            numbers[6],
            hashes[1],
            hashes[3],
            renewed_counts(header.counts, *numbers[:6]),
            _renewed_stamp(header.stamp, numbers[7]),
            hashes[:1],
            hashes[2],
        )


# By the length of their bytes.
_ALIKE: Final[dict[int, _Alike]] = {}
# What is new in a header of one entry, in the order of its bytes, and how each is spelled.
_NEW: Final = re.compile(
    rb'"(?:current|entries|indexed|live|open|records|history|parent|sequence|at|state)":\[?"?([0-9a-f]+)'
)
_SPELLED: Final = (*[b"%d"] * 6, *[b"%b"] * 3, *[b"%d"] * 2, b"%b")
_renewed_header: Final = fields.renewing(Header, "sequence", "history", "state", "counts", "stamp", "entries", "parent")
renewed_counts: Final = fields.renewing(Counts, "current", "entries", "indexed", "live", "open", "records")
_renewed_stamp: Final = fields.renewing(Stamp, "at")


def _decode(cls: type[T], data: bytes, what: str) -> T:
    value = canonical.decode(data, shaped=True)
    if type(value) is not dict or not fields.is_format(value.get("format")):
        raise CorruptionError(f"{what}: not a format 1 object")
    try:
        return fields.read_object(cls, value, beside=1)
    except ValueError as error:
        raise fields.corrupt(what, error) from None


def read_stamp(header: bytes) -> tuple[Stamp, bytes]:
    """The stamp in a header's bytes, and its digest, without reading the rest.

    Its bytes are cut out as they stand between their neighbours; whether they are the commit's stamp is for the leaf
    to say, which binds their digest.
    """
    # From the end, before which the digests of the entries may be many.
    start = header.rfind(_BEFORE_STAMP)
    if start < 0:
        raise CorruptionError("stamp: the header has none")
    data = header[start + len(_BEFORE_STAMP) : header.find(_AFTER_STAMP, start)]
    try:
        read = fields.read_object(Stamp, canonical.decode(data, shaped=True))
    except ValueError as error:
        raise fields.corrupt("stamp", error) from None
    return read, canonical.digest(b"stamp", data)


# Fields stand in the order of their names, and nothing in a stamp can be taken for the next one.
_BEFORE_STAMP: Final = b'"stamp":'
_AFTER_STAMP: Final = b',"state":'


def stamp_digest(stamp: Stamp) -> bytes:
    """The digest of a stamp, which every leaf of its commit binds."""
    after = _after_time(stamp.principal, stamp.origin, stamp.grant, stamp.session, stamp.host, stamp.binding)
    return canonical.digest(b"stamp", b"%b%d" % (_BEFORE_TIME, stamp.at), after)


# The time stands first in a stamp; what follows it is the same for commit after commit.
_BEFORE_TIME: Final = b'{"at":'


@lru_cache(maxsize=256)
def _after_time(
    principal: str, origin: Origin, grant: str | None, session: str | None, host: str | None, binding: str | None
) -> bytes:
    """The canonical bytes of a stamp from the end of its time on."""
    stamp = Stamp(at=0, principal=principal, origin=origin, grant=grant, session=session, host=host, binding=binding)
    return canonical.encode(fields.write_object(stamp), shaped=True).removeprefix(_BEFORE_TIME + b"0")


def seal_content(content: Content, salt: bytes) -> tuple[Sealed, bytes]:
    """The content's commitment and sizes, and its canonical bytes, to be stored with the salt."""
    data = encode_content(content)
    text_bytes = len(content.text.encode()) if content.text is not None else 0
    return Sealed(commitment=canonical.commitment(salt, data), bytes=len(data), text_bytes=text_bytes), data
