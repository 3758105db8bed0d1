"""The history tree of one chain: what proves that a commit is in it, and that a chain only ever grew.

RFC 9162, section 2.1, over SHA-256. A leaf here is always a leaf hash, which is a commit's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias

from ledgerstone.errors import CorruptionError, UsageError

Frontier: TypeAlias = tuple[bytes, ...]
"""The roots of the perfect subtrees that make up a tree, largest first: one for each 1 bit of its size."""

HASH_BYTES = 32
TILE_LEVEL = 8
"""A tile is a perfect subtree of 256 leaves."""

_EMPTY = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """The leaf of some data: ``SHA-256(0x00 || data)``."""
    return sha256(b"\x00" + data).digest()


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def append(frontier: Frontier, size: int, leaf: bytes) -> tuple[Frontier, bytes | None]:
    """The frontier of ``size + 1`` leaves, and the root of the tile that this leaf completes, if it does.

    Raises CorruptionError if the frontier is not one of ``size`` leaves.
    """
    if len(frontier) != size.bit_count():
        raise CorruptionError(f"history: {size.bit_count()} subtrees at size {size}, not {len(frontier)}")
    node, tile, level = leaf, None, 0
    while size >> level & 1:
        level += 1
        node = _join(frontier[-level], node)
        if level == TILE_LEVEL:
            tile = node
    return (*frontier[: len(frontier) - level], node), tile


def root(frontier: Frontier) -> bytes:
    """The root of the tree with this frontier; of the empty tree, ``SHA-256("")``."""
    if not frontier:
        return _EMPTY
    node = frontier[-1]
    for left in frontier[-2::-1]:
        node = _join(left, node)
    return node


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root of all leaves at once, as the RFC defines it (2.1.1)."""
    if not leaves:
        return _EMPTY
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return _join(tree_root(leaves[:split]), tree_root(leaves[split:]))


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """What ``verify_inclusion`` needs to find ``leaves[index]`` under the root of all (2.1.3.1)."""
    if not 0 <= index < len(leaves):
        raise UsageError(f"index: below {len(leaves)}, not {index}")
    proof: list[bytes] = []
    while len(leaves) > 1:
        split = _split(len(leaves))
        if index < split:
            proof.append(tree_root(leaves[split:]))
            leaves = leaves[:split]
        else:
            proof.append(tree_root(leaves[:split]))
            leaves, index = leaves[split:], index - split
    return proof[::-1]


def consistency_proof(leaves: Sequence[bytes], first: int) -> list[bytes]:
    """What ``verify_consistency`` needs to see that ``first`` leaves still begin the tree (2.1.4.1)."""
    if not 1 <= first <= len(leaves):
        raise UsageError(f"first: 1 to {len(leaves)}, not {first}")
    proof: list[bytes] = []
    begins = True
    while first != len(leaves):
        split = _split(len(leaves))
        if first <= split:
            proof.append(tree_root(leaves[split:]))
            leaves = leaves[:split]
        else:
            proof.append(tree_root(leaves[:split]))
            leaves, first, begins = leaves[split:], first - split, False
    if not begins:
        proof.append(tree_root(leaves))
    return proof[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the tree of ``size`` leaves under ``root`` holds ``leaf`` at ``index`` (2.1.3.2)."""
    if not 0 <= index < size or not _hashes(leaf, *proof):
        return False
    sides = list(_sides(index, size - 1))
    if len(sides) != len(proof):
        return False
    node = leaf
    for left, sibling in zip(sides, proof, strict=True):
        node = _join(sibling, node) if left else _join(node, sibling)
    return node == root


def verify_consistency(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the tree of ``second`` leaves begins with the tree of ``first`` leaves (2.1.4.2).

    An empty first tree begins everything and proves nothing: it is refused.
    """
    if not 1 <= first <= second or not _hashes(first_root, *proof):
        return False
    if first == second:
        return first_root == second_root and not proof
    if first.bit_count() == 1:
        proof = [first_root, *proof]
    position, last = first - 1, second - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    sides = list(_sides(position, last))
    if len(sides) + 1 != len(proof):
        return False
    old = new = proof[0]
    for left, sibling in zip(sides, proof[1:], strict=True):
        if left:
            old, new = _join(sibling, old), _join(sibling, new)
        else:
            new = _join(new, sibling)
    return old == first_root and new == second_root


def _hashes(*values: bytes) -> bool:
    """Whether all are as long as a hash: otherwise bytes could move between two neighbours."""
    return all(len(value) == HASH_BYTES for value in values)


def _sides(position: int, last: int) -> Iterator[bool]:
    """For each step from a node up to the root, whether the sibling stands on the left.

    ``position`` is the node's, ``last`` that of the last node of its level; a last node without a sibling
    rises until it has one.
    """
    while last:
        left = bool(position & 1) or position == last
        while left and not position & 1:
            position, last = position >> 1, last >> 1
        yield left
        position, last = position >> 1, last >> 1
