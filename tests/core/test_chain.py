"""What follows what: a sealed commit is read back, and only the right one follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledgerstone.core import chain, entries, merkle
from ledgerstone.core.chain import Head
from ledgerstone.core.entries import Header
from ledgerstone.core.projection import NO_COUNTS
from ledgerstone.core.signing import COMMIT, Keyring
from ledgerstone.core.values import LIBRARY_LIMITS, Origin
from ledgerstone.errors import CorruptionError
from tests.core.chains import ADA, KEYS, NOON, PROJECT, opaque


def seal(before: Head | None, *, at: int = NOON, keys: Keyring = KEYS, **fields: Any) -> chain.Commit:
    """The next commit of a chain in which nothing happens."""
    return chain.seal(
        keys,
        before,
        namespace=PROJECT,
        stamp=entries.Stamp(at=at, principal=ADA, origin=Origin.USER),
        limits=LIBRARY_LIMITS,
        counts=NO_COUNTS,
        state=bytes(32),
        store=None,
        **{"digests": (bytes(32),)} | fields,
    )


def follows(header: Header, before: Head | None) -> str | None:
    """What is wrong with a header after a head, whose own history is known."""
    return chain.follows(header, before, () if before is None else before.grown, namespace=PROJECT)


def sealed(length: int) -> list[chain.Commit]:
    """A chain of so many commits."""
    commits: list[chain.Commit] = []
    for _ in range(length):
        commits.append(seal(commits[-1].head if commits else None))
    return commits


def test_a_first_commit_has_no_parent() -> None:
    """It stands at 0, over the empty history."""
    [first] = sealed(1)

    assert (first.header.sequence, first.header.parent) == (0, None)
    assert first.header.history == merkle.tree_root([])
    assert (first.head.frontier, first.head.counts) == ((), NO_COUNTS)


def test_every_commit_binds_all_before_it() -> None:
    """Its history is the root over the ids of all earlier commits, as the RFC computes it at once."""
    commits = sealed(20)

    ids = [commit.id for commit in commits]

    for sequence, commit in enumerate(commits):
        assert commit.header.sequence == commit.head.sequence == sequence
        assert commit.header.history == merkle.tree_root(ids[:sequence])
        assert merkle.root(commit.head.grown) == merkle.tree_root(ids[: sequence + 1])
        before = commits[sequence - 1].head if sequence else None
        assert follows(commit.header, before) is None


def test_a_commit_is_signed_and_addressed_by_its_bytes() -> None:
    """The id is the leaf hash of the header's bytes, and the signature is over the id, as a commit's."""
    commit = seal(None, idempotency=entries.Idempotency(key=b"k" * 32, content=b"c" * 32), receipt=b"r" * 32)

    assert commit.id == merkle.leaf_hash(commit.data)
    assert chain.read(commit.data, expected=commit.id) == chain.read(commit.data) == (commit.id, commit.header)
    assert KEYS.verifies(commit.header.signer, COMMIT, commit.id, commit.signature)
    assert (commit.header.receipt, commit.header.idempotency is None) == (b"r" * 32, False)


def test_altered_bytes_are_another_commit() -> None:
    """Read under the expected id they are corruption."""
    first, second = sealed(2)

    with pytest.raises(CorruptionError, match=f"commit {first.id.hex()}: its bytes were altered"):
        chain.read(second.data, expected=first.id)

    assert chain.read(second.data, expected=second.id)[1] == second.header


def test_without_a_signer_nothing_is_sealed() -> None:
    """A keyring that only checks does not seal."""
    with pytest.raises(ValueError, match="without a signer"):
        seal(None, keys=Keyring(pins=tuple(KEYS.public.values())))


def test_a_commit_holds_each_entry_once() -> None:
    """Two equal digests are refused before anything is signed; two different ones are sealed."""
    assert seal(None, digests=(bytes(32), b"e" * 32)).header.entries == (bytes(32), b"e" * 32)

    with pytest.raises(ValueError, match="a commit holds each entry once"):
        seal(None, digests=(bytes(32), bytes(32)))


def test_a_walk_needs_only_links() -> None:
    """Each commit's own id and its parent's, empty for the first; what has none is corruption."""
    commits = sealed(3)

    assert [chain.link(commit.data) for commit in commits] == [
        (commits[0].id, b""),
        (commits[1].id, commits[0].id),
        (commits[2].id, commits[1].id),
    ]
    for data in (b"[]", b'{"parent":1}', b"", b"{"):
        with pytest.raises(CorruptionError):
            chain.link(data)


@pytest.mark.parametrize(
    ("forgery", "offence"),
    [
        ({"namespace": opaque("ns", 9)}, f"belongs to {opaque('ns', 9)}"),
        ({"sequence": 3}, "stands at 3, not 2"),
        ({"sequence": 1}, "stands at 1, not 2"),
        ({"parent": b"p" * 32}, "does not name the commit before it as its parent"),
        ({"parent": None}, "does not name the commit before it as its parent"),
        ({"history": b"h" * 32}, "does not bind the history before it"),
        ({"stamp": entries.Stamp(at=NOON - 1, principal=ADA, origin=Origin.USER)}, "has a time before its parent's"),
        ({"rules": 2}, "was made under rules 2, newer than 1"),
    ],
)
def test_what_does_not_follow_says_why(forgery: dict[str, Any], offence: str) -> None:
    """Namespace, place, parent, history, time and rules, each by its own words."""
    _, second, third = sealed(3)
    assert follows(third.header, second.head) is None

    assert follows(replace(third.header, **forgery), second.head) == offence


def test_only_a_first_commit_begins_a_chain() -> None:
    """A later one does not follow nothing, and a first one follows no other."""
    first, second = sealed(2)

    assert follows(second.header, None) == "stands at 1, not 0"
    assert follows(first.header, second.head) == "stands at 0, not 2"


def test_time_may_stand_still() -> None:
    """Two commits of one microsecond follow each other."""
    first = seal(None)
    second = seal(first.head, at=NOON)

    assert follows(second.header, first.head) is None


def test_every_256th_commit_completes_a_tile() -> None:
    """Its root is that of the 256, and no other commit has one."""
    commits = sealed(257)

    tiles = [(commit.head.sequence, commit.tile) for commit in commits if commit.tile is not None]

    assert tiles == [(255, merkle.tree_root([commit.id for commit in commits[:256]]))]
