"""Checkpoints of the chains, proofs of single records, and whether a store contains a head that was kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ledgerstone.core import chain, merkle, state
from ledgerstone.core.authority import Caller
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.proofs import (
    Checkpoint,
    Commit,
    Opened,
    Proof,
    SignedHead,
    check,
    checkpoint,
    make,
    read_checkpoints,
)
from ledgerstone.core.rendering import count
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import Finding
from ledgerstone.errors import CorruptionError, StoreError
from ledgerstone.ledger import READ_ONLY_HINT, Ledger
from ledgerstone.reading import Chain, Reading
from ledgerstone.store.protocol import Reader


def checkpoints(ledger: Ledger, caller: Caller, namespace: str | None) -> tuple[str, ...]:
    """See ``Memory.checkpoint``."""
    with ledger.reads(caller) as (reading, identity):
        if not reading.signs:
            raise StoreError("a checkpoint is signed, and there is no signing key", hint=READ_ONLY_HINT)
        store, *others = [row.namespace for row in reading.reader.chains()]
        names = [store, *filter(identity.knows, others)]
        if namespace is not None and namespace not in names:
            raise unknown(namespace)
        chosen = names if namespace is None else [namespace]
        return tuple(checkpoint(reading.keyring, identity.chain(name).head) for name in chosen)


def prove(reading: Reading, where: Chain, position: int, keyring: Keyring, *, text: bool) -> bytes:
    """The proof of the version at a position, checked as a stranger will; without ``text`` no content is in it."""
    reader, number, head = reading.reader, where.number, where.head
    version, row = reading.version(where, position), reader.chain(where.namespace)
    if version is None or row is None:
        raise CorruptionError(f"{where.namespace}: entry {position} is no version of a memory")
    proven, body = version.proven, version.body
    bodies = (reader.entry(number, one.position) for one in reading.carried(where, position))
    carried = [data for data in bodies if data is not None]
    data = make(
        Proof(
            entries=tuple(carried),
            position=position,
            path=tuple(_path(reader, where, position)),
            head=SignedHead(header=reading.header(where, head.sequence), signature=row.signature),
            commit=_commit(reading, where, proven.sequence),
            ended_by=proven.ended_by,
            ending=int(proven.ending),
            content=_opened(reader, number, body.position) if text else None,
            reason=_opened(reader, number, position) if text and body is not proven else None,
        )
    )
    check(data, keyring)
    return data


def _path(reader: Reader, where: Chain, position: int) -> Iterator[bytes]:
    for level in range(state.height(where.head.counts.entries)):
        node = reader.node(where.number, level, position // state.FAN_OUT ** (level + 1))
        if node is None:
            raise CorruptionError(f"{where.namespace}: a node over entry {position} is missing")
        yield node


def _opened(reader: Reader, number: int, position: int) -> Opened | None:
    row = reader.content(number, position)
    return None if row is None else Opened(salt=row[0], content=row[1])


def _commit(reading: Reading, where: Chain, sequence: int) -> Commit | None:
    """An earlier commit with its inclusion in the head's history; of other tiles only the roots are read."""
    reader, size = reading.reader, where.head.sequence
    if sequence == size:
        return None
    span = chain.SIGNATURE_EVERY
    tile, whole = sequence // span, size // span
    kept = reader.tiles(where.number)
    roots = [kept.get(index, b"") for index in range(whole)]
    tail = list(reading.ids(where, whole * span, size))
    if tail:
        roots.append(merkle.tree_root(tail))
    leaves = tail if tile == whole else list(reading.ids(where, tile * span, tile * span + span))
    within = merkle.inclusion_proof(leaves, sequence % span)
    return Commit(header=reading.header(where, sequence), inclusion=(*within, *merkle.inclusion_proof(roots, tile)))


def missing(
    reader: Reader, heads: Mapping[str, tuple[int, bytes]], expected: bytes | str, keyring: Keyring
) -> tuple[Finding, ...]:
    """What a verified store lacks of what was kept elsewhere: a head by its id, or signed checkpoints as text."""
    if isinstance(expected, bytes):
        for namespace, (sequence, _) in heads.items():
            if any(expected == each for each in _history(reader, namespace, sequence)):
                return ()
        return (Finding("expected", "", None, f"no chain contains commit {expected.hex()[:16]}"),)
    return tuple(
        Finding("expected", each.namespace, each.size - 1, wrong)
        for each in read_checkpoints(expected.encode(), keyring)
        if (wrong := _contradicts(reader, heads.get(each.namespace), each)) is not None
    )


def _contradicts(reader: Reader, head: tuple[int, bytes] | None, given: Checkpoint) -> str | None:
    """What is wrong with a chain, up to a head, by a checkpoint of it; None when it contains that."""
    if head is None:
        return f"there is a checkpoint of {count(given.size, 'commit')}, and no such chain"
    if given.size > head[0] + 1:
        return f"the head is commit {head[0]}, behind a checkpoint of {count(given.size, 'commit')}"
    frontier: merkle.Frontier = ()
    for size, each in enumerate(_history(reader, given.namespace, given.size - 1)):
        frontier, _ = merkle.append(frontier, size, each)
    if merkle.root(frontier) != given.root:
        return f"up to commit {given.size - 1} it is not what the checkpoint says: another history"
    return None


def _history(reader: Reader, namespace: str, last: int) -> Iterator[bytes]:
    """The ids of a chain's commits up to a sequence, oldest first."""
    row = reader.chain(namespace)
    if row is None:  # pragma: no cover - it was just verified
        raise CorruptionError(f"{namespace}: the chain is missing")
    for _, _, data in reader.headers(row.number, newest=0, oldest=last):
        yield merkle.leaf_hash(data)
