"""Proving: how fast a whole store is verified, and what a hundred thousand notes take in time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.children import peak
from bench.figures import Figure, Scale, typical
from bench.workload import CALLER, filled, opened, shared
from ledgerstone.core.merkle import leaf_hash

LAST = (1 << 40) - 1


def verify(scale: Scale, folder: Path) -> Iterator[Figure]:
    """Commits of one note each: every byte hashed and linked as the lower bound, then everything that verify does."""
    with opened(filled(folder / f"{scale.chain}-commits.ledger", scale.chain, batch=1)) as memory:
        ledger = shared(memory)
        with ledger.reads(CALLER) as (_, identity):
            number = identity.visible()[0][-1][0].number

        def links() -> int:
            done, parent = 0, b""
            with ledger.store.read() as reader:
                for _, commit, data in reader.headers(number, newest=0, oldest=LAST):
                    assert leaf_hash(data) == commit
                    assert parent.hex().encode() in data
                    done, parent = done + 1, commit
            return done

        size = links()
        hashed = typical(links, rounds=scale.rounds, times=1)
        assert not memory.verify().findings
        whole = typical(memory.verify, rounds=max(3, scale.rounds // 2), times=1)
    yield Figure(
        "verify", "hashes and links alone, by a plain loop", size / hashed, "commits a second", "at least 200,000"
    )
    yield Figure(
        "verify", f"full `verify` of {size:,} commits of one note", size / whole, "commits a second", "at least 20,000"
    )


def bulk(scale: Scale, folder: Path) -> Iterator[Figure]:
    """A large import, a recall and a full verification, each in a process of its own."""
    path = folder / f"{scale.bulk}-bulk.ledger"
    for what, verb in (
        (f"importing {scale.bulk:,} notes, 256 a commit", "fill"),
        (f"64 recalls among {scale.bulk:,} notes, the first one cold", "recall"),
        (f"verifying {scale.bulk:,} notes", "verify"),
    ):
        seconds, resident = peak(verb, path, scale.bulk)
        yield Figure("bulk", what, seconds, "s")
        yield Figure("bulk", f"{what}: peak resident size", resident, "MB", "at most 300")
