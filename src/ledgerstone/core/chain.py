"""Seal a commit, read one back, and say what may follow what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ledgerstone.core import canonical, entries, merkle, signing
from ledgerstone.core.entries import Counts, Header, Idempotency, Stamp, StorePoint
from ledgerstone.core.values import Limits
from ledgerstone.errors import CorruptionError

# The signatures of every so many commits are kept for ever; the head's own is always kept.
SIGNATURE_EVERY: Final = 256


class Head(NamedTuple):
    """A chain's newest commit, verified: its id, its header, and the frontier of the history before it."""

    id: bytes
    header: Header
    frontier: tuple[bytes, ...]

    @property
    def sequence(self) -> int:
        """The head's place in its chain."""
        return self.header.sequence

    @property
    def grown(self) -> tuple[bytes, ...]:
        """The frontier of the history with this commit in."""
        return merkle.append(self.frontier, self.header.sequence, self.id)[0]

    @property
    def counts(self) -> Counts:
        """The totals it signs for."""
        return self.header.counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A sealed commit: its header's bytes, its id, the signature over it, and the frontier of what was before.

    ``tile`` is the root of the 256 commits that this one completes, or None.
    """

    header: Header
    data: bytes
    id: bytes
    signature: bytes
    frontier: tuple[bytes, ...]
    tile: bytes | None

    @property
    def head(self) -> Head:
        """The commit as the head it now is."""
        return Head(self.id, self.header, self.frontier)


def seal(
    keyring: signing.Keyring,
    before: Head | None,
    *,
    namespace: str,
    stamp: Stamp,
    limits: Limits,
    counts: Counts,
    state: bytes,
    digests: tuple[bytes, ...],
    store: StorePoint | None,
    idempotency: Idempotency | None = None,
    receipt: bytes | None = None,
) -> Commit:
    """The commit that follows ``before``, signed."""
    sequence = 0 if before is None else before.sequence + 1
    frontier = () if before is None else before.grown
    if keyring.signer is None:
        raise ValueError("a keyring without a signer seals nothing")
    if len(set(digests)) != len(digests):
        raise ValueError("a commit holds each entry once")
    header = Header(
        namespace=namespace,
        sequence=sequence,
        rules=entries.RULES_VERSION,
        limits=limits,
        history=merkle.root(frontier),
        state=state,
        counts=counts,
        stamp=stamp,
        signer=keyring.signer,
        entries=digests,
        parent=None if before is None else before.id,
        store=store,
        idempotency=idempotency,
        receipt=receipt,
    )
    data = entries.encode_header(header)
    commit = merkle.leaf_hash(data)
    return Commit(
        header=header,
        data=data,
        id=commit,
        signature=keyring.sign(signing.COMMIT, commit),
        frontier=frontier,
        tile=merkle.append(frontier, sequence, commit)[1] if (sequence + 1) % SIGNATURE_EVERY == 0 else None,
    )


def read(data: bytes, *, expected: bytes | None = None) -> tuple[bytes, Header]:
    """A commit's id and header from its bytes; CorruptionError unless it is the one expected."""
    commit = merkle.leaf_hash(data)
    if expected is not None and commit != expected:
        raise CorruptionError(f"commit {expected.hex()}: its bytes were altered")
    return commit, entries.decode_header(data)


def link(data: bytes) -> tuple[bytes, bytes]:
    """A commit's id and its parent's (empty for the first), for a walk along a chain; the rest is not looked at."""
    value = canonical.decode(data, shaped=True)
    parent = value.get("parent", "") if type(value) is dict else None
    try:
        return merkle.leaf_hash(data), b"" if parent == "" else entries.HASH.read(parent)
    except ValueError as error:
        raise CorruptionError(f"header: parent: {error}") from None


def follows(header: Header, before: Head | None, history: merkle.Frontier | None, *, namespace: str) -> str | None:
    """What is wrong with a header as the next of its chain, or None; ``history`` is not judged where it is unknown."""
    if header.namespace != namespace:
        return f"belongs to {header.namespace}"
    sequence = 0 if before is None else before.sequence + 1
    if header.sequence != sequence:
        return f"stands at {header.sequence}, not {sequence}"
    if header.parent != (None if before is None else before.id):
        return "does not name the commit before it as its parent"
    if history is not None and header.history != merkle.root(history):
        return "does not bind the history before it"
    if before is not None and header.stamp.at < before.header.stamp.at:
        return "has a time before its parent's"
    if header.rules > entries.RULES_VERSION:
        return f"was made under rules {header.rules}, newer than {entries.RULES_VERSION}"
    return None
