"""Checkpoints and proofs: what can be handed to a stranger who has a public key and no store (docs/proofs.md).

A checkpoint is a signed note (c2sp.org/signed-note, c2sp.org/tlog-checkpoint) over the history of a chain. A proof is
one JSON object that holds every byte it takes to check one version of a memory against a signed head.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ledgerstone.core import canonical, chain, entries, fields, merkle, state
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import (
    HASH,
    CloseEntry,
    Content,
    Header,
    RecordEntry,
    RetractEntry,
    Sealed,
)
from ledgerstone.core.fields import FORMAT, Shape, array, field, integer, nested, octets
from ledgerstone.core.signing import CHECKPOINT, COMMIT, Keyring
from ledgerstone.core.values import (
    MAX_TEXT_BYTES,
    STANDING_OF_ENDING,
    Ending,
    Kind,
    Origin,
    Retention,
    Standing,
    Status,
    Trust,
)
from ledgerstone.errors import CorruptionError, UsageError

MAX_NOTE_BYTES: Final = 1 << 20
MAX_PROOF_BYTES: Final = 1 << 25
MAX_CARRIED: Final = 3
"""Entries that one text can go through: a record, its close, the retraction of that."""
MAX_LEVELS: Final = 16
MAX_SIBLINGS: Final = 64
MAX_ENTRY_BYTES: Final = 1 << 16
_PROOF: Final = "record"
_FORM_HINT: Final = "this is no proof as ledgerstone prove writes it, or it was altered or cut"
_HINT: Final = (
    "it was altered or cut, or made under another key, which can be named by --public-key: "
    "ledgerstone keys show prints it where the proof was made, ledgerstone keys those retired since"
)
_ORIGIN: Final = "ledgerstone/"
_ED25519: Final = b"\x01"
_KEY_HASH_BYTES: Final = 4
# Of one note: lines of text, an empty line, signature lines. Between two notes there may be an empty line.
_NOTE: Final = re.compile(r"((?:[^\n]+\n){3,})\n((?:\u2014 [^\n]+\n)+)\n?")
_SIGNATURE: Final = re.compile(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
_TEXT: Final = re.compile(r"(ledgerstone/(ns_[0-9a-hjkmnp-tv-z]{16}))\n([1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")


class Checkpoint(NamedTuple):
    """A chain as a signed note states it: how many commits it had, and the RFC 9162 root over their ids."""

    namespace: str
    size: int
    root: bytes


def checkpoint(keyring: Keyring, head: Head) -> str:
    """The checkpoint of a chain at its head, signed; the keyring has a signer."""
    if keyring.signer is None:
        raise UsageError("a checkpoint is signed: there is no signing key")
    origin = f"{_ORIGIN}{head.header.namespace}"
    text = f"{origin}\n{head.sequence + 1}\n{_base64(merkle.root(head.grown))}\n"
    signature = keyring.sign(CHECKPOINT, text.encode().removeprefix(CHECKPOINT))
    signed = _base64(_key_hash(origin, keyring.public[keyring.signer]) + signature)
    return f"{text}\n\u2014 {origin} {signed}\n"


def read_checkpoints(data: bytes, keyring: Keyring) -> tuple[Checkpoint, ...]:
    """The checkpoints in one note or several, each signed by a trusted key; CorruptionError unless all are.

    Signatures of unknown keys, such as witnesses', are passed over; a wrong one of a trusted key is refused.
    """
    try:
        return tuple(_notes(data, keyring))
    except CorruptionError as error:
        raise CorruptionError(f"checkpoint: {error.message}", hint=_HINT) from None


def _notes(data: bytes, keyring: Keyring) -> Iterator[Checkpoint]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\x00"
    if len(data) > MAX_NOTE_BYTES or _CONTROL.search(text):
        raise CorruptionError(f"not lines of text, {MAX_NOTE_BYTES} bytes at most")
    start = 0
    while start < len(text) or not start:
        note = _NOTE.match(text, start)
        if note is None:
            raise CorruptionError("not a signed note")
        yield _checkpoint(note[1], note[2].split("\n")[:-1], keyring)
        start = note.end()


def _checkpoint(text: str, lines: list[str], keyring: Keyring) -> Checkpoint:
    stated = _TEXT.match(text)
    signed = [_SIGNATURE.fullmatch(line) for line in lines]
    if stated is None or None in signed:
        raise CorruptionError("not one of a chain of Ledgerstone")
    origin, namespace = stated[1], stated[2]
    found = Checkpoint(namespace, int(stated[3]), _bytes(stated[4]))
    signatures = [(match[1], _bytes(match[2])) for match in signed if match is not None]
    known = {_key_hash(origin, public): name for name, public in keyring.public.items()}
    signers = [
        (known[data[:_KEY_HASH_BYTES]], data)
        for name, data in signatures
        if name == origin and data[:_KEY_HASH_BYTES] in known
    ]
    message = text.encode().removeprefix(CHECKPOINT)
    right = [keyring.verifies(signer, CHECKPOINT, message, data[_KEY_HASH_BYTES:]) for signer, data in signers]
    if not right or not all(right):
        raise CorruptionError(f"no trusted key signed that of {namespace}")
    return found


def _key_hash(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:_KEY_HASH_BYTES]


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _bytes(text: str) -> bytes:
    """The bytes of base64 in its one spelling."""
    try:
        data = b64decode(text)
    except ValueError:
        data = b""
    if _base64(data) != text:
        raise CorruptionError("not base64 in its one spelling")
    return data


def _octets_as_text(most: int) -> Shape:
    """Bytes that are UTF-8 of their own, written as they are."""

    def read(value: Any) -> bytes:
        if type(value) is not str or not 1 <= len(data := value.encode()) <= most:
            raise ValueError(f"not a text of 1 to {most} bytes")
        return data

    return Shape(read, bytes.decode)


def _children() -> Shape:
    """The hashes of 1 to 16 children, joined, in lower hex."""
    shapes = {2 * size: octets(size) for size in range(32, 32 * state.FAN_OUT + 1, 32)}

    def read(value: Any) -> Any:
        shape = shapes.get(len(value)) if type(value) is str else None
        if shape is None:
            raise ValueError("not 1 to 16 hashes in lower hex")
        return shape.read(value)

    return Shape(read, bytes.hex)


_BYTES: Final = _octets_as_text(MAX_ENTRY_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A content's bytes with the salt that opens its commitment."""

    salt: bytes = field(octets(32))
    content: bytes = field(_octets_as_text(8 * MAX_TEXT_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An earlier commit: its header's bytes, and its inclusion among the commits before the head."""

    header: bytes = field(_BYTES)
    inclusion: tuple[bytes, ...] = field(array(HASH, MAX_SIBLINGS), absent=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """A head's header bytes and the signature over its id."""

    header: bytes = field(_BYTES)
    signature: bytes = field(octets(64))


OPENED: Final = nested(Opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The pieces of a proof.

    ``entries``: the version's, then those it carries on, down to the record. ``path``: the nodes over the position,
    lowest first. ``commit``: the version's, None when it is the head. ``content`` is the record's, ``reason`` that of
    a close or retraction.
    """

    entries: tuple[bytes, ...] = field(array(_BYTES, MAX_CARRIED))
    position: int = field(integer())
    path: tuple[bytes, ...] = field(array(_children(), MAX_LEVELS))
    head: SignedHead = field(nested(SignedHead))
    commit: Commit | None = field(nested(Commit), absent=None)
    ended_by: int = field(integer(1), absent=0)
    ending: int = field(integer(1, max(Ending)), absent=0)
    content: Opened | None = field(OPENED, absent=None)
    reason: Opened | None = field(OPENED, absent=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """What a proof proves: one version of a memory as it stood at a signed head.

    Times are microseconds UTC; principal, session, host and grant are opaque ids. ``content`` is None when the text
    was ``erased`` or is withheld. ``standing`` is that of the head; expiry and covering summaries are not in it.
    """

    namespace: str
    memory: str
    version: int
    address: str
    digest: bytes
    kind: Kind
    status: Status
    standing: Standing
    ended_by: int | None
    retention: Retention
    origin: Origin
    trust: Trust
    expires: int | None
    text_bytes: int
    content: Content | None
    reason: str | None
    at: int
    principal: str
    session: str | None
    host: str | None
    grant: str | None
    sequence: int
    commit: bytes
    head_sequence: int
    head: bytes
    head_at: int
    signer: str
    public: bytes

    @property
    def text(self) -> str | None:
        """The exact text; None when it was erased or is withheld."""
        return None if self.content is None else self.content.text

    @property
    def erased(self) -> bool:
        """True when the head signs that the text was erased, by commit ``ended_by``."""
        return self.standing is Standing.ERASED


def make(proof: Proof) -> bytes:
    """The one form of a proof: a line of canonical JSON."""
    return canonical.encode({"format": FORMAT, "proof": _PROOF, **fields.write_object(proof)}, shaped=True) + b"\n"


def verify_proof(data: bytes, public_keys: Iterable[bytes]) -> Attested:
    """What a proof proves under these public keys (32 bytes each); no store is needed.

    Raises CorruptionError for a proof that was altered or that none of the keys signed.
    """
    keys = tuple(public_keys)
    if not all(type(key) is bytes and len(key) == merkle.HASH_BYTES for key in keys):
        raise UsageError(f"public key: {merkle.HASH_BYTES} bytes")
    return check(data, Keyring(pins=keys))


def check(data: bytes, keyring: Keyring) -> Attested:
    """What a proof proves under the keys of a keyring; CorruptionError unless every byte of it fits."""
    hint = _FORM_HINT
    try:
        proof, hint = _read(data), _HINT
        return _attested(proof, keyring)
    except CorruptionError as error:
        raise CorruptionError(f"proof: {error.message}", hint=hint) from None


def _attested(proof: Proof, keyring: Keyring) -> Attested:
    head_id, head, signer = _signed(proof.head, keyring)
    commit_id, header = (head_id, head) if proof.commit is None else _included(proof.commit, head)
    digests = [entries.digest_of(each) for each in proof.entries]
    place = proof.position - (header.counts.entries - len(header.entries))
    if not 0 <= place < len(header.entries) or header.entries[place] != digests[0]:
        raise CorruptionError("its commit does not list the entry at that position")
    _standing(proof, digests[0], header, head)
    version, record = _carried(proof.entries, digests)
    reason = None if version is record else _opened(proof, proof.reason, version.content)
    if version is record and proof.reason is not None:
        raise CorruptionError("a reason that no entry commits to")
    stamp = header.stamp
    return Attested(
        namespace=head.namespace,
        memory=version.memory,
        version=version.version,
        address=canonical.address(version.memory, version.version),
        digest=digests[0],
        kind=record.kind,
        status=_status(version),
        standing=STANDING_OF_ENDING[Ending(proof.ending)],
        ended_by=proof.ended_by or None,
        retention=record.retention,
        origin=version.origin,
        trust=version.trust,
        expires=record.expires,
        text_bytes=record.content.text_bytes,
        content=_opened(proof, proof.content, record.content),
        reason=None if reason is None else reason.reason,
        at=stamp.at,
        principal=stamp.principal,
        session=stamp.session,
        host=stamp.host,
        grant=stamp.grant,
        sequence=header.sequence,
        commit=commit_id,
        head_sequence=head.sequence,
        head=head_id,
        head_at=head.stamp.at,
        signer=signer,
        public=keyring.public[signer],
    )


def _read(data: bytes) -> Proof:
    if len(data) > MAX_PROOF_BYTES or not data.endswith(b"\n"):
        raise CorruptionError(f"not one line of {MAX_PROOF_BYTES} bytes at most")
    value = canonical.decode(data[:-1], shaped=True)
    if type(value) is not dict or not fields.is_format(value.get("format")) or value.get("proof") != _PROOF:
        raise CorruptionError(f"not one of a record, of format {FORMAT}")
    try:
        return fields.read_object(Proof, value, beside=2)
    except ValueError as error:
        raise CorruptionError(str(error)) from None


def _signed(given: SignedHead, keyring: Keyring) -> tuple[bytes, Header, str]:
    commit, header = _commit(given.header)
    # Another key than the header names, if that one was retired since, and nothing was committed after it.
    signer = keyring.signer_of(COMMIT, commit, given.signature)
    if signer is None:
        raise CorruptionError(f"no trusted key signed its head {commit.hex()[:16]} (signer {header.signer})")
    return commit, header, signer


def _commit(data: bytes) -> tuple[bytes, Header]:
    commit, header = chain.read(data)
    if header.rules > entries.RULES_VERSION:
        raise CorruptionError(f"made under rules {header.rules}, newer than {entries.RULES_VERSION}")
    return commit, header


def _included(given: Commit, head: Header) -> tuple[bytes, Header]:
    commit, header = _commit(given.header)
    if not merkle.verify_inclusion(commit, header.sequence, head.sequence, given.inclusion, head.history):
        raise CorruptionError("its commit is not in the history of the head")
    return commit, header


def _standing(proof: Proof, digest: bytes, header: Header, head: Header) -> None:
    """The leaf of the version, with what ended it, stands under the head's state."""
    leaf = state.leaf(
        digest,
        entries.stamp_digest(header.stamp),
        sequence=header.sequence,
        ended_by=proof.ended_by,
        reason=proof.ending,
    )
    count = head.counts.entries
    if len(proof.path) != state.height(count):
        raise CorruptionError(f"a path of {state.height(count)} nodes, not {len(proof.path)}")
    state.verify_leaf(lambda level, _: proof.path[level], count, proof.position, leaf, root=head.state, known={})


def _carried(
    given: tuple[bytes, ...], digests: list[bytes]
) -> tuple[RecordEntry | CloseEntry | RetractEntry, RecordEntry]:
    """The version's entry, and the record whose text it has: each entry names the next by its digest."""
    first, *below = (entries.decode_entry(each) for each in given)
    here: Any = first
    for entry, digest in zip(below, digests[1:], strict=True):
        carries = here.closes if isinstance(here, CloseEntry) else getattr(here, "retracts", None)
        if carries != digest:
            raise CorruptionError("an entry that the one before it does not name")
        here = entry
    if not isinstance(here, RecordEntry) or not isinstance(first, RecordEntry | CloseEntry | RetractEntry):
        raise CorruptionError("its entries do not lead to a record")
    return first, here


def _opened(proof: Proof, given: Opened | None, sealed: Sealed | None) -> Content | None:
    """A content, if it is given, is the one that its entry commits to, and was not erased."""
    if given is None:
        return None
    if sealed is None or canonical.commitment(given.salt, given.content) != sealed.commitment:
        raise CorruptionError("a content that its entry does not commit to")
    if proof.ending == Ending.ERASED:
        raise CorruptionError("a content that was erased at its head")
    return entries.decode_content(given.content)


def _status(version: RecordEntry | CloseEntry | RetractEntry) -> Status:
    if isinstance(version, RecordEntry):
        return version.status
    return Status.CLOSED if isinstance(version, CloseEntry) else Status.RETRACTED
