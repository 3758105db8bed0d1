"""Promises of the state tree: one root for one state, and no read past a damaged path."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import state
from ledgerstone.core.state import Key
from ledgerstone.errors import CorruptionError, UsageError

LEAVES = [sha256(number.to_bytes(2)).digest() for number in range(5000)]
OTHER = sha256(b"other").digest()


class Store:
    """A tree in memory, which counts what is read of it."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.nodes: dict[Key, bytes] = {}
        self.reads: list[Key] = []
        self.count = len(leaves)
        self.root = state.build(leaves, self.write)

    def write(self, level: int, index: int, children: bytes) -> None:
        """Take a node that was not there."""
        assert (level, index) not in self.nodes, "each node is written once"
        self.nodes[level, index] = children

    def read(self, level: int, index: int) -> bytes | None:
        """Give a node, and note that it was asked for."""
        self.reads.append((level, index))
        return self.nodes.get((level, index))

    def update(self, changes: dict[int, bytes], count: int) -> None:
        """Prove and change the tree."""
        self.root, written = state.update(self.read, self.count, changes, count, root=self.root)
        self.nodes.update(written)
        self.count = count

    def verify(self, position: int, leaf: bytes, known: dict[Key, bytes] | None = None) -> None:
        """Prove a leaf."""
        known = {} if known is None else known
        state.verify_leaf(self.read, self.count, position, leaf, root=self.root, known=known)


def naive(leaves: list[bytes]) -> bytes:
    """The root as the format defines it, by recursion and without the module under test."""
    height = 1
    while 16**height < len(leaves):
        height += 1
    return _naive(leaves, height)


def _naive(leaves: list[bytes], height: int) -> bytes:
    if height == 0:
        return leaves[0]
    step = 16 ** (height - 1)
    children = [_naive(leaves[at : at + step], height - 1) for at in range(0, len(leaves), step)]
    return sha256(b"ledgerstone/node/1\x00" + b"".join(children)).digest()


def path(position: int, count: int) -> list[Key]:
    """The nodes from a leaf up to the root."""
    return [(level, position // 16 ** (level + 1)) for level in range(state.height(count))]


def test_leaf_binds_entry_stamp_and_ending() -> None:
    """The leaf is a hash over two digests and three big-endian numbers, of fixed lengths."""
    entry, stamp = LEAVES[:2]
    expected = sha256(b"ledgerstone/leaf/1\x00" + entry + stamp + struct.pack(">QQB", 7, 9, 3)).digest()

    assert state.leaf(entry, stamp, sequence=7, ended_by=9, reason=3) == expected
    assert state.leaf(stamp, entry, sequence=7, ended_by=9, reason=3) != expected
    assert state.leaf(entry, stamp, sequence=9, ended_by=7, reason=3) != expected
    assert state.leaf(entry, stamp, sequence=7, ended_by=9, reason=4) != expected


def test_leaf_takes_whole_digests_only() -> None:
    """Bytes cannot move between entry and stamp."""
    joined = LEAVES[0] + LEAVES[1]

    for cut in (0, 31, 33, 64):
        with pytest.raises(UsageError, match=f"leaf: two digests of 32 bytes, not of {cut} and {64 - cut}"):
            state.leaf(joined[:cut], joined[cut:], sequence=0, ended_by=0, reason=0)
    assert state.leaf(joined[:32], joined[32:], sequence=0, ended_by=0, reason=0)


@pytest.mark.parametrize(
    ("count", "height"),
    [(0, 1), (1, 1), (16, 1), (17, 2), (256, 2), (257, 3), (4096, 3), (4097, 4), (16**5, 5), (16**5 + 1, 6)],
)
def test_height_is_the_smallest_that_holds_the_count(count: int, height: int) -> None:
    """A level is added with the leaf that no longer fits."""
    assert state.height(count) == height


def test_build_gives_the_root_the_format_defines() -> None:
    """At every size, and across the sizes where a level is added."""
    for count in (*range(1, 601), 4095, 4096, 4097, 5000):
        assert state.build(LEAVES[:count]) == naive(LEAVES[:count])


def test_appending_gives_the_same_tree_as_building() -> None:
    """Leaf by leaf, root and every stored node are those of a tree built at once."""
    store = Store([])

    for count, leaf in enumerate(LEAVES[:600]):
        store.update({count: leaf}, count + 1)
        assert store.root == naive(LEAVES[: count + 1])

    assert store.nodes == Store(LEAVES[:600]).nodes


@given(
    st.integers(0, 300),
    st.lists(st.tuples(st.integers(0, 300), st.sets(st.integers(0, 2**20), max_size=5), st.booleans()), max_size=5),
)
def test_any_updates_give_the_same_tree_as_building(count: int, steps: list[tuple[int, set[int], bool]]) -> None:
    """Whatever is appended and changed together, root and stored nodes are those of a tree built at once."""
    leaves = LEAVES[:count]
    store = Store(leaves)

    for number, (appended, picked, proven) in enumerate(steps):
        new = {len(leaves) + at: LEAVES[len(leaves) + at] for at in range(appended)}
        old = {pick % len(leaves): sha256(b"%d" % number).digest() for pick in picked if leaves}
        if not (new or old):
            continue
        leaves = [old.get(at, leaf) for at, leaf in enumerate(leaves)] + list(new.values())
        before = store.root if proven else None
        root, written = state.update(store.read, store.count, new | old, len(leaves), root=before)
        store.nodes.update(written)
        store.root, store.count = root, len(leaves)
        assert root == naive(leaves)

    assert store.nodes == Store(leaves).nodes


@pytest.mark.parametrize("old", [0, 1, 15, 16, 17, 255, 256, 257, 4096])
@pytest.mark.parametrize("new", [1, 16, 17, 256, 257, 4096, 4097, 5000])
@pytest.mark.parametrize("proven", [True, False])
def test_levels_are_added_as_the_tree_grows(old: int, new: int, *, proven: bool) -> None:
    """The old root becomes the first child, however many levels are added at once."""
    grown = max(old + 1, new)
    store = Store(LEAVES[:old])

    root, written = state.update(
        store.read,
        old,
        {position: LEAVES[position] for position in range(old, grown)},
        grown,
        root=store.root if proven else None,
    )

    whole = Store(LEAVES[:grown])
    assert root == whole.root
    assert store.nodes | written == whole.nodes


def test_update_reads_and_writes_the_paths_only() -> None:
    """One leaf of 5000 takes one node a level, and two leaves share the nodes above both."""
    store = Store(LEAVES)

    store.reads.clear()
    root, written = state.update(store.read, 5000, {77: OTHER}, 5000)
    assert store.reads == list(written) == path(77, 5000)
    assert root == naive([*LEAVES[:77], OTHER, *LEAVES[78:]])

    store.reads.clear()
    _, written = state.update(store.read, 5000, {78: OTHER, 77: OTHER, 5000: OTHER}, 5001)
    assert sorted(store.reads) == sorted(written) == sorted({*path(77, 5000), *path(5000, 5001)})


def test_full_tree_is_read_once_when_a_level_is_added() -> None:
    """The leaf that no longer fits needs the old root and nothing below it."""
    store = Store(LEAVES[:256])

    root, written = state.update(store.read, 256, {256: LEAVES[256]}, 257)

    assert store.reads == [(1, 0)]
    assert sorted(written) == [(0, 16), (1, 1), (2, 0)]
    assert root == naive(LEAVES[:257])


@pytest.mark.parametrize(
    ("count", "changes", "new_count", "message"),
    [
        (3, {}, 3, "changes that keep or append, not 0 from 3 to 3"),
        (3, {0: OTHER}, 2, "changes that keep or append, not 1 from 3 to 2"),
        (-1, {0: OTHER}, 1, "changes that keep or append, not 1 from -1 to 1"),
        (3, {3: OTHER}, 3, "positions 0 to 2, not 3 to 3"),
        (3, {-1: OTHER}, 3, "positions 0 to 2, not -1 to -1"),
        (3, {4: OTHER}, 5, "every position from 3 to 4, not only some"),
        (3, {3: OTHER}, 5, "every position from 3 to 4, not only some"),
        (3, {2: OTHER, 4: OTHER}, 5, "every position from 3 to 4, not only some"),
        (3, {0: OTHER[:-1]}, 3, "position 0: a leaf of 32 bytes, not 31"),
        (3, {3: OTHER + b"x"}, 4, "position 3: a leaf of 32 bytes, not 33"),
    ],
)
def test_changes_that_do_not_fit_the_counts_are_refused(
    count: int, changes: dict[int, bytes], new_count: int, message: str
) -> None:
    """A tree never shrinks, has no gaps and holds whole hashes."""
    store = Store(LEAVES[:3])

    with pytest.raises(UsageError, match=f"^state: {message}$"):
        state.update(store.read, count, changes, new_count)
    assert state.update(store.read, 3, {4: OTHER, 0: OTHER, 3: OTHER}, 5)


@pytest.mark.parametrize("key", path(300, 4097))
def test_update_stops_at_a_missing_or_malformed_node(key: Key) -> None:
    """A node that must exist is there with all its children, or nothing is computed."""
    store = Store(LEAVES[:4097])
    whole = store.nodes.pop(key)

    with pytest.raises(CorruptionError, match=re.escape(f"node {key} is missing")):
        state.update(store.read, 4097, {300: OTHER}, 4097)
    for broken in (b"", whole[:-1], whole[:-32], whole + bytes(32)):
        store.nodes[key] = broken
        with pytest.raises(CorruptionError, match=f"has {len(whole)} bytes, not {len(broken)}"):
            state.update(store.read, 4097, {300: OTHER}, 4097)
    store.nodes[key] = whole
    assert state.update(store.read, 4097, {300: OTHER}, 4097)


@pytest.mark.parametrize("key", path(300, 4097))
def test_damaged_node_is_never_signed_anew(key: Key) -> None:
    """With the old root, an update proves the nodes it builds on; a turned bit beside the path stops it."""
    store = Store(LEAVES[:4097])
    whole = store.nodes[key]
    offset = 31 if key[1] else len(whole) - 1
    store.nodes[key] = whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :]

    with pytest.raises(CorruptionError, match=r"state: position \d+: node .* is not the one under the root"):
        store.update({300: OTHER}, 4097)
    store.nodes[key] = whole
    store.update({300: OTHER}, 4097)
    store.verify(300, OTHER)


def test_damaged_root_is_found_when_a_level_is_added() -> None:
    """The old root's node is proven before it becomes a child."""
    store = Store(LEAVES[:16])
    whole = store.nodes[0, 0]
    store.nodes[0, 0] = OTHER + whole[32:]

    with pytest.raises(CorruptionError, match=r"position 15: node .* is not the one under the root"):
        store.update({16: OTHER}, 17)
    store.nodes[0, 0] = whole
    store.update({16: OTHER}, 17)
    store.verify(0, LEAVES[0])


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 255, 256, 257, 600])
def test_every_leaf_is_proven_at_its_position_only(count: int) -> None:
    """The leaf that stands there passes; any other, and any position beyond, is corruption."""
    store = Store(LEAVES[:count])

    for position in range(count):
        store.verify(position, LEAVES[position])
        for leaf in (OTHER, LEAVES[position + 1], b"", LEAVES[position][:-1]):
            with pytest.raises(CorruptionError, match=f"position {position}: another leaf stands in the tree"):
                store.verify(position, leaf)
    for position in (-1, count, count + 16, 16**6):
        with pytest.raises(CorruptionError, match=f"position {position} is not one of {count}"):
            store.verify(position, LEAVES[0])


@pytest.mark.parametrize("key", path(300, 4097))
def test_read_stops_at_a_false_missing_or_malformed_node(key: Key) -> None:
    """Whatever happens to a node of the path, the error names the position that was read."""
    store = Store(LEAVES[:4097])
    whole = store.nodes[key]
    level = key[0]
    slot = 32 * (300 // 16**level % 16)
    swapped = whole[32:64] + whole[:32] + whole[64:]

    for broken in (
        None,
        b"",
        whole[:-1],
        whole[:-32],
        whole + bytes(32),
        swapped,
        whole[:slot] + OTHER + whole[slot + 32 :],
        store.nodes[level, 1 - key[1] if level else 19][: len(whole)] if level < 3 else bytes(len(whole)),
    ):
        store.nodes.pop(key)
        if broken is not None:
            store.nodes[key] = broken
        known: dict[Key, bytes] = {}
        with pytest.raises(CorruptionError, match="position 300: node "):
            store.verify(300, LEAVES[300], known)
        assert key not in known
        store.nodes[key] = whole
        store.verify(300, LEAVES[300], known)


def test_forged_leaf_needs_a_forged_root() -> None:
    """Replacing leaf and path together is found at the top, where the signed root is compared."""
    store = Store(LEAVES[:600])
    _, forged = state.update(store.read, 600, {300: OTHER}, 600)

    store.nodes.update(forged)

    with pytest.raises(CorruptionError, match=r"position 300: node \(2, 0\) is not the one under the root"):
        store.verify(300, OTHER)
    store.root = state.node(forged[2, 0])
    store.verify(300, OTHER)


@pytest.mark.parametrize("wrong", [1, 16, 255, 256, 258, 272, 273, 4096, 4097, 70_000])
def test_root_is_the_root_of_one_count(wrong: int) -> None:
    """A count that the root does not have fails, even where the leaf would be found."""
    store = Store(LEAVES[:257])
    store.verify(256, LEAVES[256])

    store.count = wrong

    with pytest.raises(CorruptionError, match="position 256"):
        store.verify(256, LEAVES[256])


def test_reads_under_one_root_share_the_upper_path() -> None:
    """Sixteen leaves of one node cost its path once; what was proven is not read again."""
    store = Store(LEAVES)
    known: dict[Key, bytes] = {}
    store.reads.clear()

    for position in range(320, 336):
        store.verify(position, LEAVES[position], known)
    assert sorted(store.reads) == sorted(path(320, 5000))

    store.verify(336, LEAVES[336], known)
    assert store.reads[4:] == [(0, 21)]
    with pytest.raises(CorruptionError, match="position 321: another leaf"):
        store.verify(321, LEAVES[320], known)


def test_an_update_reads_nothing_that_is_known_and_makes_known_what_it_reads() -> None:
    """As a read under the same root does, so that either spares the other."""
    store = Store(LEAVES[:337])
    known: dict[Key, bytes] = {}

    state.update(store.read, 337, {5: OTHER}, 337, root=store.root, known=known)
    read = list(store.reads)
    state.update(store.read, 337, {5: OTHER}, 337, root=store.root, known=known)

    assert store.reads == read == [*state.path(337, 336), *(key for key in state.path(337, 5) if key[0] < 2)]
    assert known.keys() == set(read)


def test_empty_tree_has_a_root_and_no_nodes() -> None:
    """Nothing is stored for it, no position is in it, and the first leaf needs nothing of it."""
    store = Store([])

    assert store.nodes == {}
    assert store.root == sha256(b"ledgerstone/node/1\x00").digest()
    with pytest.raises(CorruptionError, match="position 0 is not one of 0"):
        store.verify(0, LEAVES[0])
    store.update({0: LEAVES[0]}, 1)
    store.verify(0, LEAVES[0])


def test_build_streams() -> None:
    """A node is written before the leaves beyond it and its neighbour are asked for."""
    taken = 0

    def leaves() -> Iterator[bytes]:
        nonlocal taken
        for leaf in LEAVES:
            taken += 1
            yield leaf

    def write(level: int, index: int, children: bytes) -> None:
        last = min(16 ** (level + 1) * index + 16**level * (len(children) // 32), 5000)
        assert taken <= last + 16

    assert state.build(leaves(), write) == naive(LEAVES)


@pytest.mark.parametrize("count", [1, 16, 17, 300, 5000])
def test_a_path_names_what_a_proof_reads(count: int) -> None:
    """The nodes over a position, the root first, and no other."""
    store = Store(LEAVES[:count])

    for position in {0, count // 2, count - 1}:
        store.reads.clear()
        store.verify(position, LEAVES[position])

        assert store.reads == state.path(count, position)
        assert store.reads[0] == max(store.nodes)


def test_under_a_known_node_nothing_above_it_is_read_again() -> None:
    """Its other leaves are proven by it alone, and a false one still fails; what stands elsewhere is read."""
    store = Store(LEAVES)
    known: dict[Key, bytes] = {}
    store.verify(0, LEAVES[0], known)
    known = {(0, 0): known[0, 0]}
    store.reads.clear()

    store.verify(15, LEAVES[15], known)
    with pytest.raises(CorruptionError, match="position 14"):
        store.verify(14, OTHER, known)

    assert store.reads == []
    store.verify(16, LEAVES[16], known)
    assert store.reads == state.path(5000, 16)
