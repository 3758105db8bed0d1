"""The state tree of one namespace: what proves at a read that an entry stands, and how it ended.

A hash tree with 16 children a node over the dense positions 0 to count - 1. A node is stored as the joined
hashes of its children under ``(level, index)``; the children of level 0 are the leaves ``16 * index`` and on.
The height follows from the count alone, so a root is the root of one shape only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from struct import Struct
from typing import TypeAlias

from ledgerstone.core.canonical import digest
from ledgerstone.errors import CorruptionError, UsageError

Key: TypeAlias = tuple[int, int]
"""Level and index of a node."""

Read: TypeAlias = Callable[[int, int], bytes | None]
"""Gives the children of the node at a level and index, or None."""

Write: TypeAlias = Callable[[int, int, bytes], object]
"""Takes the level and index of a node, and its children."""

FAN_OUT = 16
HASH_BYTES = 32

_BITS = 4
_ENDING = Struct(">QQB")


def leaf(entry: bytes, stamp: bytes, *, sequence: int, ended_by: int, reason: int) -> bytes:
    """The leaf of one entry: the digests of entry and stamp, its sequence, and what ended it and why."""
    if not len(entry) == len(stamp) == HASH_BYTES:
        raise UsageError(f"leaf: two digests of {HASH_BYTES} bytes, not of {len(entry)} and {len(stamp)}")
    return digest(b"leaf", entry, stamp, _ENDING.pack(sequence, ended_by, reason))


def node(children: bytes) -> bytes:
    """The hash of a node with these children; without any, the root of the empty tree."""
    return digest(b"node", children)


def height(count: int) -> int:
    """How many levels of nodes stand over ``count`` leaves: the smallest h >= 1 with ``16**h >= count``."""
    return ((count - 1).bit_length() + _BITS - 1) // _BITS or 1


def path(count: int, position: int) -> list[Key]:
    """The nodes over a position of the tree of ``count`` leaves, the root first."""
    return [(level, position >> _BITS * level + _BITS) for level in reversed(range(height(count)))]


def verify_leaf(
    read: Read,
    count: int,
    position: int,
    leaf: bytes,
    *,
    root: bytes,
    known: dict[Key, bytes],
) -> None:
    """Prove that ``leaf`` stands at ``position`` of the tree of ``count`` leaves under ``root``.

    ``known`` takes up the nodes proven on the way: reads under the same root hand it on and share them.
    Raises CorruptionError, naming the position, for another leaf and for a missing, malformed or false node.
    """
    if not 0 <= position < count:
        raise CorruptionError(f"state: position {position} is not one of {count}")
    children = known.get((0, position >> _BITS))
    if children is None:
        stands = _proven(read, count, position, root=root, known=known)
    else:
        # Proven already, and with it all that stands above it.
        stands = children[position % FAN_OUT * HASH_BYTES :][:HASH_BYTES]
    if stands != leaf:
        raise CorruptionError(f"state: position {position}: another leaf stands in the tree")


def _proven(
    read: Read,
    count: int,
    position: int,
    *,
    root: bytes,
    known: dict[Key, bytes],
) -> bytes:
    """The leaf that stands at ``position`` under ``root``, from the root down."""
    expected = root
    for key in path(count, position):
        level = key[0]
        children = known.get(key)
        if children is None:
            children = _stored(read, count, position, level)
            if node(children) != expected:
                raise CorruptionError(f"state: position {position}: node {key} is not the one under the root")
            known[key] = children
        offset = (position >> _BITS * level) % FAN_OUT * HASH_BYTES
        expected = children[offset : offset + HASH_BYTES]
    return expected


def _stored(read: Read, count: int, position: int, level: int) -> bytes:
    """The node over ``position`` at ``level``, with as many children as it must have."""
    shift = _BITS * level
    index, last = position >> shift + _BITS, count - 1 >> shift
    children = read(level, index)
    if children is None:
        raise CorruptionError(f"state: position {position}: node {(level, index)} is missing")
    size = HASH_BYTES * (FAN_OUT if index < last // FAN_OUT else last % FAN_OUT + 1)
    if len(children) != size:
        offence = f"node {(level, index)} has {size} bytes, not {len(children)}"
        raise CorruptionError(f"state: position {position}: {offence}")
    return children


def update(
    read: Read,
    count: int,
    changes: Mapping[int, bytes],
    new_count: int,
    *,
    root: bytes | None = None,
    known: dict[Key, bytes] | None = None,
) -> tuple[bytes, dict[Key, bytes]]:
    """Set and append leaves: the new root, and the nodes to write.

    ``changes`` holds every position from ``count`` to ``new_count - 1``, and any before. Only the paths to
    these are read and hashed. With ``root``, that of the tree as it is, what is read is proven first, so that
    a damaged node is never signed anew; ``known`` holds nodes already proven under it, and takes up more.
    Raises CorruptionError for a missing, malformed or false node, and UsageError for changes that do not fit
    the counts.
    """
    positions = sorted(changes)
    _refuse_misfits(count, changes, new_count, positions)
    if root is not None and count:
        known = {} if known is None else known
        if positions == [count]:
            return _appended(read, count, changes[count], root=root, known=known)
        # Whatever node holds both old and new positions holds the last old one.
        for position in (count - 1, *positions):
            if position < count:
                _proven(read, count, position, root=root, known=known)
        read = _reader(known)

    old_height = height(count)
    written: dict[Key, bytes] = {}
    hashes = {position: changes[position] for position in positions}
    for level in range(height(new_count)):
        shift = _BITS * level
        old_end = (count - 1 >> shift) + 1
        if level >= old_height:
            old_end = 0
            if 0 not in hashes:
                hashes = {0: node(_stored(read, count, 0, level - 1)), **hashes}
        nodes: dict[int, bytes] = {}
        # In ascending order, so that what is appended to a node follows what stands in it.
        for child, value in hashes.items():
            index, slot = child // FAN_OUT, child % FAN_OUT
            children = nodes.get(index)
            if children is None:
                children = _stored(read, count, child << shift, level) if child - slot < old_end else b""
            offset = HASH_BYTES * slot
            nodes[index] = children[:offset] + value + children[offset + HASH_BYTES :]
        hashes = {}
        for index, children in nodes.items():
            written[level, index] = children
            hashes[index] = node(children)
    return hashes[0], written


def _appended(
    read: Read, count: int, leaf: bytes, *, root: bytes, known: dict[Key, bytes]
) -> tuple[bytes, dict[Key, bytes]]:
    """The same for one more leaf, which most commits have: in every node above, what is new is the last child."""
    _proven(read, count, count - 1, root=root, known=known)
    old_height = height(count)
    written: dict[Key, bytes] = {}
    child, value = count, leaf
    for level in range(height(count + 1)):
        index, slot = child // FAN_OUT, child % FAN_OUT
        before = known.get((level, index), b"") if level < old_height else root
        written[level, index] = children = before[: HASH_BYTES * slot] + value
        child, value = index, node(children)
    return value, written


def _refuse_misfits(count: int, changes: Mapping[int, bytes], new_count: int, positions: list[int]) -> None:
    grown = new_count - count
    if count < 0 or grown < 0 or not positions:
        raise UsageError(f"state: changes that keep or append, not {len(positions)} from {count} to {new_count}")
    if positions[0] < 0 or positions[-1] >= new_count:
        raise UsageError(f"state: positions 0 to {new_count - 1}, not {positions[0]} to {positions[-1]}")
    if grown and (grown > len(positions) or positions[-grown] != count):
        raise UsageError(f"state: every position from {count} to {new_count - 1}, not only some")
    for position, value in changes.items():
        if len(value) != HASH_BYTES:
            raise UsageError(f"state: position {position}: a leaf of {HASH_BYTES} bytes, not {len(value)}")


def _reader(known: dict[Key, bytes]) -> Read:
    return lambda level, index: known.get((level, index))


def _forget(_level: int, _index: int, _children: bytes) -> None:
    """Write nowhere."""


def build(leaves: Iterable[bytes], write: Write = _forget) -> bytes:
    """The root over all leaves in their order; ``write(level, index, children)`` gets every node on the way.

    Memory stays flat: each level takes hold of two nodes of the one below and streams the rest.
    """
    level, below = 0, iter(leaves)
    while True:
        nodes = _parents(below, level, write)
        first, second = next(nodes, node(b"")), next(nodes, None)
        if second is None:
            return first
        level, below = level + 1, chain((first, second), nodes)


def _parents(below: Iterator[bytes], level: int, write: Write) -> Iterator[bytes]:
    index = 0
    while children := b"".join(islice(below, FAN_OUT)):
        write(level, index, children)
        yield node(children)
        index += 1
