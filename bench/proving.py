"""Proving: how fast a whole store is verified, and what a hundred thousand notes take in time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

from bench.children import peak
from bench.figures import MS, Figure, Scale, cost, typical, undisturbed
from bench.workload import CALLER, filled, notes, opened, shared
from ledgerstone import Report
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.store.protocol import LAST

ADDED = 100


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
        assert not memory.verify(full=True).findings
        whole = typical(lambda: memory.verify(full=True), rounds=max(3, scale.rounds // 2), times=1)
    yield Figure(
        "verify", "hashes and links alone, by a plain loop", size / hashed, "commits a second", "at least 200,000"
    )
    yield Figure(
        "verify", f"full `verify` of {size:,} commits of one note", size / whole, "commits a second", "at least 20,000"
    )


def resume(scale: Scale, folder: Path) -> Iterator[Figure]:
    """What was added to a store that was verified before, in each round a hundred commits of one note, against all."""
    path = filled(folder / f"{scale.bulk}-commits.ledger", scale.bulk, batch=1)
    with opened(path, state=folder / "state") as memory, undisturbed():
        whole = cost(lambda: memory.verify(full=True))
        new = notes(seed=4)
        rounds: list[float] = []
        reports: list[Report] = []
        for _ in range(scale.rounds):
            for note in islice(new, ADDED):
                memory.remember(note)
            rounds.append(cost(lambda: reports.append(memory.verify())))
            assert reports[-1].commits - reports[-1].older == ADDED
    added = median(rounds)
    yield Figure("resume", f"`verify` of {ADDED} new commits after {scale.bulk:,}, 64 old ones drawn", added * MS, "ms")
    yield Figure("resume", "that to `verify --full`", 100 * added / whole, "%", "at most 5")


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
