"""Promises of the history tree: RFC 9162 to the byte, and no proof of what is not so."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import merkle
from ledgerstone.core.merkle import Frontier
from ledgerstone.errors import CorruptionError, UsageError

# The reference test data of Certificate Transparency (transparency-dev/merkle, testonly): inputs, roots by
# size, the hashes of perfect subtrees, and proofs.
INPUTS = [
    bytes.fromhex(data)
    for data in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAF_0, LEAF_1, LEAF_4 = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
)
PAIR_0, PAIR_1, PAIR_2, PAIR_3 = (
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
)
FOUR_0, FOUR_1 = (
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
)

LEAVES = [merkle.leaf_hash(number.to_bytes(2)) for number in range(600)]
SIZES = range(1, 71)


def grown(leaves: list[bytes]) -> Frontier:
    """The frontier after appending one leaf after the other."""
    frontier: Frontier = ()
    for size, leaf in enumerate(leaves):
        frontier, _ = merkle.append(frontier, size, leaf)
    return frontier


def oracle(leaves: int) -> pymerkle.InmemoryTree:
    """The same tree, grown by another implementation."""
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for number in range(leaves):
        tree.append_entry(number.to_bytes(2))
    return tree


def flipped(value: bytes, bit: int) -> bytes:
    """The value with one bit turned."""
    return (int.from_bytes(value) ^ 1 << bit).to_bytes(len(value))


def forgeries(proof: list[bytes]) -> list[list[bytes]]:
    """Every simple way to spoil a proof."""
    forged = [[*proof, LEAVES[99]], [LEAVES[99], *proof]]
    for at, value in enumerate(proof):
        rest = proof[at + 1 :]
        forged += [
            [*proof[:at], flipped(value, 0), *rest],
            [*proof[:at], flipped(value, 255), *rest],
            [*proof[:at], *rest],
            [*proof[:at], value, value, *rest],
            [*proof[:at], value[:-1], *rest],
            [*proof[:at], value + b"\x00", *rest],
            [*proof[:at], b"", *rest],
        ]
    for at, (left, right) in enumerate(pairwise(proof)):
        forged.append([*proof[:at], right, left, *proof[at + 2 :]])
        forged.append([*proof[:at], left + right, *proof[at + 2 :]])
    return forged


@pytest.mark.parametrize("size", range(9))
def test_published_roots_come_out(size: int) -> None:
    """Appended one by one or hashed at once, the reference inputs have the reference roots."""
    leaves = [merkle.leaf_hash(data) for data in INPUTS[:size]]

    assert merkle.root(grown(leaves)).hex() == ROOTS[size]
    assert merkle.tree_root(leaves).hex() == ROOTS[size]


@pytest.mark.parametrize(
    ("size", "subtrees"),
    [
        (1, [LEAF_0]),
        (2, [PAIR_0]),
        (4, [FOUR_0]),
        (5, [FOUR_0, LEAF_4]),
        (6, [FOUR_0, PAIR_2]),
        (8, [ROOTS[8]]),
    ],
)
def test_published_frontiers_come_out(size: int, subtrees: list[str]) -> None:
    """The frontier holds the reference's perfect subtrees, largest first."""
    frontier = grown([merkle.leaf_hash(data) for data in INPUTS[:size]])

    assert [node.hex() for node in frontier] == subtrees


@pytest.mark.parametrize(
    ("index", "size", "expected"),
    [
        (0, 1, []),
        (0, 2, [LEAF_1]),
        (1, 2, [LEAF_0]),
        (2, 3, [PAIR_0]),
        (1, 5, [LEAF_0, PAIR_1, LEAF_4]),
        (0, 8, [LEAF_1, PAIR_1, FOUR_1]),
        (5, 8, [LEAF_4, PAIR_3, FOUR_0]),
    ],
)
def test_published_inclusion_proofs_come_out(index: int, size: int, expected: list[str]) -> None:
    """The reference's proofs are ours, and verify."""
    leaves = [merkle.leaf_hash(data) for data in INPUTS[:size]]

    proof = merkle.inclusion_proof(leaves, index)

    assert [node.hex() for node in proof] == expected
    assert merkle.verify_inclusion(leaves[index], index, size, proof, bytes.fromhex(ROOTS[size]))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 1, []),
        (1, 8, [LEAF_1, PAIR_1, FOUR_1]),
        (2, 5, [PAIR_1, LEAF_4]),
        (6, 8, [PAIR_2, PAIR_3, FOUR_0]),
    ],
)
def test_published_consistency_proofs_come_out(first: int, second: int, expected: list[str]) -> None:
    """The reference's proofs are ours, and verify."""
    leaves = [merkle.leaf_hash(data) for data in INPUTS[:second]]
    roots = bytes.fromhex(ROOTS[first]), bytes.fromhex(ROOTS[second])

    proof = merkle.consistency_proof(leaves, first)

    assert [node.hex() for node in proof] == expected
    assert merkle.verify_consistency(first, second, *roots, proof)


def test_growing_gives_the_root_of_all_leaves() -> None:
    """At every size the frontier folds to the root that the RFC defines."""
    frontier: Frontier = ()

    for size, leaf in enumerate(LEAVES[:300]):
        assert merkle.root(frontier) == merkle.tree_root(LEAVES[:size])
        frontier, _ = merkle.append(frontier, size, leaf)

    assert merkle.root(grown(LEAVES)) == merkle.tree_root(LEAVES)


def test_every_256th_leaf_completes_a_tile() -> None:
    """A tile is the root of 256 leaves in a row, given once, with the last of them."""
    frontier: Frontier = ()
    tiles: dict[int, bytes] = {}

    for size, leaf in enumerate(LEAVES):
        frontier, tile = merkle.append(frontier, size, leaf)
        if tile is not None:
            tiles[size] = tile

    assert tiles == {255: merkle.tree_root(LEAVES[:256]), 511: merkle.tree_root(LEAVES[256:512])}


@pytest.mark.parametrize("size", [0, 1, 3, 7])
def test_append_refuses_a_frontier_of_another_size(size: int) -> None:
    """A frontier with too many or too few subtrees is a damaged one."""
    frontier = grown(LEAVES[:size])

    with pytest.raises(CorruptionError, match=f"history: {size.bit_count()} subtrees at size {size}"):
        merkle.append((*frontier, LEAVES[0]), size, LEAVES[0])
    with pytest.raises(CorruptionError, match="history: "):
        merkle.append(frontier, size + 2 ** (size.bit_length()), LEAVES[0])
    assert merkle.append(frontier, size, LEAVES[size])[0] == grown(LEAVES[: size + 1])


def test_another_implementation_has_the_same_roots_and_proofs() -> None:
    """The trees of pymerkle have our roots; its paths, after the leaf they begin with, are our proofs."""
    for size in SIZES:
        tree = oracle(size)
        leaves = LEAVES[:size]
        assert tree.get_root() == merkle.tree_root(leaves)
        for index in range(size):
            path = tree.prove_inclusion(index + 1).path
            assert path == [leaves[index], *merkle.inclusion_proof(leaves, index)]


def test_another_implementation_sees_the_same_beginnings() -> None:
    """What pymerkle proves of two roots, our proofs prove of the same two."""
    tree, new = oracle(70), merkle.tree_root(LEAVES[:70])

    for first in SIZES:
        old = merkle.tree_root(LEAVES[:first])
        pymerkle.verify_consistency(old, new, tree.prove_consistency(first, 70))
        assert merkle.verify_consistency(first, 70, old, new, merkle.consistency_proof(LEAVES[:70], first))


@pytest.mark.parametrize("size", SIZES)
def test_every_leaf_is_proven_at_its_place_only(size: int) -> None:
    """A proof holds for its leaf, index, and root, and for no other."""
    leaves, root = LEAVES[:size], merkle.tree_root(LEAVES[:size])

    for index in range(size):
        proof = merkle.inclusion_proof(leaves, index)
        assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
        assert not merkle.verify_inclusion(LEAVES[size], index, size, proof, root)
        assert not merkle.verify_inclusion(leaves[index], index, size, proof, LEAVES[0] + root)
        for other in {-1, 0, index - 1, index + 1, size - 1, size} - {index}:
            assert not merkle.verify_inclusion(leaves[index], other, size, proof, root)


@pytest.mark.parametrize("second", SIZES)
def test_every_beginning_is_proven(second: int) -> None:
    """A proof holds between its two sizes and roots, and for no other first size or root."""
    leaves, new = LEAVES[:second], merkle.tree_root(LEAVES[:second])

    for first in range(1, second + 1):
        old, proof = merkle.tree_root(leaves[:first]), merkle.consistency_proof(leaves, first)
        assert merkle.verify_consistency(first, second, old, new, proof)
        assert not merkle.verify_consistency(first, second, LEAVES[99], new, proof)
        assert not merkle.verify_consistency(first, second, old, LEAVES[99], proof)
        for other in {-1, 0, 1, first - 1, first + 1, second, second + 1} - {first}:
            assert not merkle.verify_consistency(other, second, old, new, proof)


@given(st.integers(1, 300), st.data())
def test_forged_inclusion_proofs_fail(size: int, data: st.DataObject) -> None:
    """Turned bits, changed order, fewer or more nodes, moved bytes: nothing of it verifies."""
    index = data.draw(st.integers(0, size - 1))
    leaves, leaf = LEAVES[:size], LEAVES[index]
    root, proof = merkle.tree_root(leaves), merkle.inclusion_proof(leaves, index)

    assert merkle.verify_inclusion(leaf, index, size, proof, root)
    for forged in forgeries(proof):
        assert not merkle.verify_inclusion(leaf, index, size, forged, root)
    for bit in (0, 100, 255):
        assert not merkle.verify_inclusion(flipped(leaf, bit), index, size, proof, root)
        assert not merkle.verify_inclusion(leaf, index, size, proof, flipped(root, bit))


@given(st.integers(1, 300), st.data())
def test_forged_consistency_proofs_fail(second: int, data: st.DataObject) -> None:
    """Turned bits, changed order, fewer or more nodes, moved bytes: nothing of it verifies."""
    first = data.draw(st.integers(1, second))
    leaves = LEAVES[:second]
    old, new = merkle.tree_root(leaves[:first]), merkle.tree_root(leaves)
    proof = merkle.consistency_proof(leaves, first)

    assert merkle.verify_consistency(first, second, old, new, proof)
    for forged in forgeries(proof):
        assert not merkle.verify_consistency(first, second, old, new, forged)


@given(st.integers(2, 300), st.data())
def test_rewritten_history_is_never_consistent(second: int, data: st.DataObject) -> None:
    """Once one old leaf is another, no proof of the new tree begins with the old one."""
    first = data.draw(st.integers(1, second - 1))
    changed = data.draw(st.integers(0, first - 1))
    rewritten = [*LEAVES[:changed], LEAVES[599], *LEAVES[changed + 1 : second]]
    old, new = merkle.tree_root(LEAVES[:first]), merkle.tree_root(rewritten)

    for leaves in (LEAVES[:second], rewritten):
        assert not merkle.verify_consistency(first, second, old, new, merkle.consistency_proof(leaves, first))
    assert merkle.verify_consistency(
        first,
        second,
        old,
        merkle.tree_root(LEAVES[:second]),
        merkle.consistency_proof(LEAVES[:second], first),
    )


def test_size_is_bound_by_the_length_of_a_proof() -> None:
    """A tree of another height needs another number of nodes; the wrong size fails."""
    leaves, root = LEAVES[:8], merkle.tree_root(LEAVES[:8])
    proof = merkle.inclusion_proof(leaves, 5)

    assert merkle.verify_inclusion(leaves[5], 5, 8, proof, root)
    for size in (-1, 0, 5, 6, 9, 16, 2**60):
        assert not merkle.verify_inclusion(leaves[5], 5, size, proof, root)


def test_inner_node_never_passes_as_a_leaf() -> None:
    """Leaves are hashed behind 0x00 and nodes behind 0x01, so that neither can be given out as the other."""
    left, right = LEAVES[:2]
    root = merkle.tree_root([left, right])

    assert root == sha256(b"\x01" + left + right).digest()
    assert merkle.leaf_hash(left + right) == sha256(b"\x00" + left + right).digest() != root
    assert merkle.leaf_hash(b"\x01" + left + right) != root
    assert merkle.verify_inclusion(left, 0, 2, [right], root)
    assert not merkle.verify_inclusion(merkle.leaf_hash(left + right), 0, 1, [], root)


def test_bytes_cannot_move_between_leaf_and_proof() -> None:
    """A longer leaf and a shorter sibling hash alike, and are refused for their lengths."""
    left, right = LEAVES[:2]
    root = merkle.tree_root([left, right])

    assert merkle.verify_inclusion(left, 0, 2, [right], root)
    assert not merkle.verify_inclusion(left + right[:1], 0, 2, [right[1:]], root)
    assert not merkle.verify_inclusion(left[:-1], 0, 2, [left[-1:] + right], root)
    assert merkle.verify_consistency(2, 2, root, root, [])
    assert not merkle.verify_consistency(2, 2, root[:-1], root[:-1], [])


def test_proofs_are_made_of_what_is_there() -> None:
    """An index and a first size beyond the tree are wrong arguments; the last within it are not."""
    for index in (-1, 3):
        with pytest.raises(UsageError, match=f"index: below 3, not {index}"):
            merkle.inclusion_proof(LEAVES[:3], index)
    for first in (-1, 0, 4):
        with pytest.raises(UsageError, match=f"first: 1 to 3, not {first}"):
            merkle.consistency_proof(LEAVES[:3], first)
    assert merkle.inclusion_proof(LEAVES[:3], 2)
    assert merkle.consistency_proof(LEAVES[:3], 3) == []


def test_empty_tree_proves_nothing() -> None:
    """The empty tree has a root, and neither leaves nor a beginning that could be proven."""
    empty = merkle.root(())

    assert empty == sha256(b"").digest()
    assert not merkle.verify_inclusion(LEAVES[0], 0, 0, [], empty)
    assert not merkle.verify_consistency(0, 1, empty, LEAVES[0], [])
    assert not merkle.verify_consistency(0, 0, empty, empty, [])
    assert merkle.verify_consistency(1, 1, LEAVES[0], LEAVES[0], [])


@pytest.mark.parametrize(("first", "step"), [(33, 32), (31, 32), (32, 33), (32, 31)])
def test_each_part_of_a_proof_is_as_long_as_a_hash(first: int, step: int) -> None:
    """A leaf, an older root or a step of another length proves nothing, also under the root that it hashes to."""
    node, sibling = b"n" * first, b"s" * step
    hashed = sha256(b"\x01" + node + sibling).digest()

    assert not merkle.verify_inclusion(node, 0, 2, [sibling], hashed)
    assert not merkle.verify_consistency(1, 2, node, hashed, [sibling])

    right = sha256(b"\x01" + b"n" * 32 + b"s" * 32).digest()
    assert merkle.verify_inclusion(b"n" * 32, 0, 2, [b"s" * 32], right)
    assert merkle.verify_consistency(1, 2, b"n" * 32, right, [b"s" * 32])
