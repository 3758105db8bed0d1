"""Versions that a replay finds in their rows: forgotten, and read back as they stood."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from ledgerstone import Caller, Draft, Kind, Origin, Scope
from ledgerstone.core.facts import Facts, Known
from ledgerstone.core.projection import Folded
from ledgerstone.core.verify import Authorities, Replay, Replayed
from ledgerstone.settling import Settled
from ledgerstone.store import open_store
from ledgerstone.store.protocol import Reader
from ledgerstone.verifying import commits
from tests.stores import KEYS, OWNER, Home, furnish, open_memory, plain_client

MODEL: Final = Caller(principal=OWNER.principal, origin=Origin.MODEL, session=OWNER.session)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which records were also contested, held, withdrawn from beside the holder, staled and erased."""
    home = furnish(tmp_path_factory.mktemp("home") / "home.db", fillers=2)
    with open_memory(home.path, create=False, seed=2) as memory:

        def note(text: str, **draft: object) -> str:
            return memory.remember(Draft(text=text, **draft), scope=Scope.USER).record.memory  # type: ignore[arg-type]

        contested = note("the door is painted black", key="door-color", external=True)
        memory.retract(contested, reason="it is not")
        note("the gate is latched at night", key="gate")
        note("the gate is never latched", key="gate", external=True)
        memory.bind(MODEL).remember(Draft(text="the lake is salty", key="lake"), scope=Scope.USER)
        ground = note("the shed was built in may and painted in june", key="shed")
        address = memory.get(ground).address
        note("shed: in may", kind=Kind.SUMMARY, sources=(address,))
        note("the shed was built in april and painted in june", key="shed")
        gone = note("the spare key lies under the pot", key="spare")
        note("the spare key lies under the mat", key="spare")
        memory.forget(gone, dry_run=False)
        note("the spare key is with the neighbour", key="spare")
        memory.remember_many([Draft(text="one of two"), Draft(text="two of two", key="two")], scope=Scope.USER)
    return home


@contextmanager
def opened(path: Path) -> Iterator[Reader]:
    """A snapshot of a store."""
    store = open_store(path)
    try:
        with store.read() as reader:
            yield reader
    finally:
        store.close()


def replays(reader: Reader) -> Iterator[tuple[Replay, Settled, Iterator[Replayed]]]:
    """Each chain with what settles its versions as its entries are replayed."""
    authorities = Authorities()
    for index, row in enumerate(reader.chains()):
        settled = Settled(reader, row.number)
        replay = Replay(row.namespace, authorities, store=index == 0, settled=settled)
        entries = (one for _, one in commits(reader, replay, row, KEYS))
        yield replay, settled, entries


def test_a_sound_chain_leaves_no_version_behind(furnished: Home) -> None:
    """At the end nothing is held of any version, whatever became of it."""
    with opened(furnished.path) as reader:
        found = 0
        for replay, settled, entries in replays(reader):
            for one in entries:
                settled.settle(one.change, replay.folded)
            assert settled.whole(replay.folded)
            found += len(settled.positions())

    assert found > len(furnished.memories)


def test_what_is_forgotten_is_answered_as_if_it_were_not(furnished: Home) -> None:
    """After every entry, each question that rules ask gets the answer of a replay that forgets nothing."""
    with opened(furnished.path) as reader:
        for (replay, settled, entries), (whole, _, same) in zip(replays(reader), replays(reader), strict=True):
            for one, other in zip(entries, same, strict=True):
                settled.settle(one.change, replay.folded)
                assert other.change == one.change
                assert answers(replay.folded, whole.folded) == answers(whole.folded, whole.folded)


def answers(facts: Facts, whole: Folded) -> list[object]:
    """What facts say of every version that a replay knows, of its memory and its key."""
    asked = list(whole.known.values())
    return [
        *(facts.version(known.position) for known in asked),
        *(facts.position(known.digest) for known in asked),
        *(facts.version_of(known.memory, known.version) for known in asked),
        *(facts.latest(known.memory) for known in asked),
        *(facts.holder(known.key) for known in asked if known.key is not None),
        *chain.from_iterable(facts.resting_on(known.position) for known in asked),
        facts.version(1 << 30),
        facts.position(bytes(32)),
        facts.latest("mem_0000000000000000"),
        facts.version_of("mem_0000000000000000", 1),
        facts.holder("no such key"),
        facts.open_tasks(),
        facts.key(),
        facts.rejected(bytes(32)),
    ]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param("UPDATE record SET kind = 'fact' WHERE row = :rare_1", id="altered"),
        pytest.param("UPDATE record SET kind = 'nothing' WHERE row = :rare_1", id="not readable"),
        pytest.param("UPDATE record SET ended_by = 9, ending = 1 WHERE row = :rare_1", id="said to have ended"),
        pytest.param("UPDATE record SET ended_by = 0, ending = 0 WHERE row = :color_1", id="said to stand"),
        pytest.param("DELETE FROM record WHERE row = :rare_1", id="missing"),
        pytest.param("UPDATE record SET row = (:user_chain << 40) + 1000 WHERE row = :last_1", id="elsewhere"),
        pytest.param(
            "INSERT INTO record SELECT :user_chain << 40, sequence, digest, prefix, memory, version, kind, status, "
            "trust, text_bytes, body, depth, key, expires, sealed, content_bytes, ended_by, ending "
            "FROM record WHERE row = :rare_1",
            id="too many",
        ),
    ],
)
def test_a_row_that_says_otherwise_is_not_settled(furnished: Home, tmp_path: Path, edit: str) -> None:
    """The version stays with the replay, which answers for it, and the rows are not whole."""
    home = furnished.copy(tmp_path)
    connection = plain_client(home.path)
    connection.execute(edit, home.rows())
    connection.close()

    with opened(home.path) as reader:
        wholes, found = [], list[Known | None]()
        for replay, settled, entries in replays(reader):
            for one in entries:
                settled.settle(one.change, replay.folded)
            wholes.append(settled.whole(replay.folded))
            found += [replay.folded.latest(memory) for memory in home.memories.values()]

    assert wholes.count(False) == 1
    assert {known.memory for known in found if known is not None} == set(home.memories.values())
