"""Verification from a milestone on: what is new is judged as by a replay of everything, what is old by a sample."""

from __future__ import annotations

import itertools
import random
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from ledgerstone import Act, AuthorityError, Draft, Kind, Scope, SigningKey, resuming
from ledgerstone.core import state
from ledgerstone.resuming import SAMPLE, UnsettledError
from ledgerstone.store import open_store
from ledgerstone.store.schema import ROW_BITS
from tests.memories import ADA, BOB, EVENING, MODEL, Scratch
from tests.stores import KEY, KEYS, open_memory, plain_client, report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ledgerstone import Finding, Memory, Report

OLD: Final = 80


def verified(path: Path, milestones: resuming.Milestones, entropy: Callable[[int], bytes] | None = None) -> Report:
    """What a verification from milestones on says of a file at rest."""
    with closing(open_store(path)) as store, store.read() as reader:
        return resuming.verify(reader, KEYS, milestones, entropy or random.Random(7).randbytes)


def edit(path: Path, script: str) -> None:
    """What somebody else's SQL client does; it must have found something to change."""
    connection = plain_client(path)
    connection.execute(script)
    assert connection.changes()
    connection.close()


class Grown(NamedTuple):
    """A store that grew since it was verified, how far it had been verified, and the number of its old chain."""

    path: Path
    milestones: resuming.Milestones
    number: int

    @property
    def rows(self) -> str:
        """The rows of the chain that are new."""
        old = self.number << ROW_BITS | OLD + 1
        return f"BETWEEN {old} AND {old + 100}"


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    """A chain of 82 commits that was verified, and three more; and a chain that is all new."""
    path = tmp_path / "grown.db"
    with open_memory(path, seed=3) as memory:
        old = memory.remember(Draft(text="the old walrus", key="walrus"), scope=Scope.USER).record
        for number in range(OLD):
            memory.remember(f"sample {number}", scope=Scope.USER)
        milestones = memory.verify().heads
        memory.remember(Draft(text="the new walrus", key="walrus"), scope=Scope.USER, idempotency_key="again")
        ground = (f"{old.memory}@2",)
        memory.remember(Draft(text="walrus", kind=Kind.SUMMARY, sources=ground, covers=ground), scope=Scope.USER)
        memory.remember("the newest walrus", scope=Scope.USER)
        memory.remember("the new chain", scope=Scope.SESSION)
    return Grown(path, milestones, 2)


def test_only_what_is_new_is_replayed(grown: Grown) -> None:
    """The report says from where on, how many commits are older, and how many of these were drawn."""
    whole = report(grown.path)

    found = verified(grown.path, grown.milestones)

    assert found.findings == whole.findings == ()
    assert (found.heads, found.commits, found.entries) == (whole.heads, whole.commits, whole.entries)
    assert found.since == {name: sequence for name, (sequence, _) in grown.milestones.items()}
    assert (found.older, found.sampled) == (OLD + 2 + 2, SAMPLE)
    assert whole.since is None


EDITS: Final = {
    "a header": "UPDATE header SET body = CAST(replace(CAST(body AS TEXT), 'user', 'tool') AS BLOB) WHERE row {rows}",
    "a header's bytes": "UPDATE header SET body = CAST(body || ' ' AS BLOB) WHERE row {rows}",
    "an id": "UPDATE header SET id = zeroblob(32) WHERE row {rows}",
    "a missing header": "DELETE FROM header WHERE row = (SELECT min(row) FROM header WHERE row {rows})",
    "an entry": "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), 'note', 'fact') AS BLOB) WHERE row {rows}",
    "a missing entry": "DELETE FROM entry WHERE row = (SELECT max(row) FROM entry WHERE row {rows})",
    "a content": "UPDATE content SET body = CAST(replace(CAST(body AS TEXT), 'new', 'old') AS BLOB) WHERE row {rows}",
    "a salt": "UPDATE content SET salt = zeroblob(32) WHERE row {rows}",
    "a missing content": "DELETE FROM content WHERE row {rows}",
    "a row": "UPDATE record SET trust = trust - 1 WHERE row {rows}",
    "a missing row": "DELETE FROM record WHERE row = (SELECT max(row) FROM record WHERE row {rows})",
    "words": "UPDATE words SET words = 'seal_1' WHERE row {rows}",
    "missing words": "DELETE FROM words WHERE row {rows}",
    "a link": "DELETE FROM link WHERE row {rows}",
    "what is covered": "UPDATE link SET covers = 1 - covers WHERE row {rows}",
    "a name of a write": "DELETE FROM idempotency",
    "a signature": "UPDATE chain SET signature = zeroblob(64) WHERE number = 2",
    "a frontier": "UPDATE chain SET frontier = zeroblob(64) WHERE number = 2",
    "a head that is cut": "UPDATE chain SET sequence = sequence - 1 WHERE number = 2",
    "an ending": "UPDATE record SET ended_by = 0, ending = 0 WHERE ending = 1",
    "a node": "UPDATE node SET children = zeroblob(length(children)) WHERE row >> 40 = 2",
    "the catalog": "DELETE FROM catalog WHERE noun = 'namespace'",
    "a grant": "UPDATE catalog SET ended_by = 1, ending = 8 WHERE noun = 'granted'",
    "a chain": "DELETE FROM chain WHERE number = 3",
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_what_is_new_is_always_found(grown: Grown, what: str) -> None:
    """Canonical or derived; and what is found that way is never a report, so that everything is replayed then."""
    assert verified(grown.path, grown.milestones).ok

    edit(grown.path, EDITS[what].format(rows=grown.rows))

    with pytest.raises(UnsettledError):
        verified(grown.path, grown.milestones)


OLD_EDITS: Final = {
    "a header": "UPDATE header SET body = CAST(body || ' ' AS BLOB) WHERE row = {row}",
    "an entry": "UPDATE entry SET body = CAST(body || ' ' AS BLOB) WHERE row = {row}",
    "a content": "UPDATE content SET body = CAST(body || ' ' AS BLOB) WHERE row = {row}",
    "a missing content": "DELETE FROM content WHERE row = {row}",
    "a row": "UPDATE record SET trust = trust - 1 WHERE row = {row}",
    "words": "UPDATE words SET length = length + 1 WHERE row = {row}",
}


@pytest.mark.parametrize("what", OLD_EDITS)
def test_an_edit_of_what_is_old_is_found_when_it_is_drawn(grown: Grown, what: str) -> None:
    """As likely as a commit is among those that are drawn; a replay of everything finds it always."""
    edit(grown.path, OLD_EDITS[what].format(row=grown.number << ROW_BITS | 30))
    # Of the 84 older commits the first two are the store's.
    others = (each for each in itertools.cycle(range(84)) if each != 30 + 2)
    drawn, passed = itertools.chain([30 + 2], others), itertools.chain(others)

    if what != "a header":
        assert verified(grown.path, grown.milestones, lambda size: next(passed).to_bytes(size)).sampled == SAMPLE
    with pytest.raises(UnsettledError):
        verified(grown.path, grown.milestones, lambda size: next(drawn).to_bytes(size))

    assert not report(grown.path).ok


def test_all_that_is_old_is_looked_at_when_it_is_little(tmp_path: Path) -> None:
    """No more than are drawn at a time: then none is left to chance."""
    path = tmp_path / "small.db"
    with open_memory(path, seed=3) as memory:
        for number in range(20):
            memory.remember(f"sample {number}", scope=Scope.USER)
        milestones = memory.verify().heads
    found = verified(path, milestones)
    assert (found.older, found.sampled) == (23, 23)

    edit(path, OLD_EDITS["a content"].format(row=2 << ROW_BITS | 7))

    with pytest.raises(UnsettledError):
        verified(path, milestones)


def lived(scratch: Scratch) -> list[Callable[[], object]]:
    """Everything that can happen to a store, one act after another."""
    ada, model = scratch.by(ADA), scratch.by(MODEL)
    kept: dict[str, str] = {}

    def remember(name: str, draft: Draft | str, by: object = None, scope: Scope | None = None) -> Callable[[], object]:
        def act() -> None:
            drafted = draft if isinstance(draft, Draft) else Draft(text=draft)
            kept[name] = (by or ada).remember(drafted, scope=scope).record.memory  # type: ignore[attr-defined]

        return act

    def resting(name: str, on: str, *, covers: bool = False) -> Callable[[], object]:
        def act() -> None:
            ground = (ada.get(kept[on]).address,)
            draft = Draft(text=name[:4], kind=Kind.SUMMARY, sources=ground, covers=ground if covers else ())
            kept[name] = ada.remember(draft).record.memory

        return act

    def denied() -> None:
        with pytest.raises(AuthorityError):
            scratch.by(BOB).remember("let me in", scope=Scope.GLOBAL)
        ada._ledger.flush(ADA)

    return [
        remember("fact", Draft(text="the cedar is old", key="cedar")),
        resting("short", "fact", covers=True),
        remember("contested", Draft(text="the cedar is young", key="cedar"), model),
        lambda: ada.retract(kept["contested"], reason="no"),
        remember("fact", Draft(text="the cedar is ancient", key="cedar")),
        remember("task", Draft(text="water the cedar", kind=Kind.TASK)),
        remember("chore", Draft(text="feed the walrus", kind=Kind.TASK)),
        lambda: ada.close_task(kept["task"], reason="done"),
        remember("wrong", Draft(text="it is a fir", key="kind")),
        lambda: ada.retract(kept["wrong"], reason="no", reject=True),
        remember("held", Draft(text="it is a fir", key="kind"), model),
        remember("ground", "a ground for a summary"),
        resting("above", "ground"),
        resting("higher", "above"),
        lambda: ada.forget(kept["ground"], dry_run=False),
        lambda: ada.retract(kept["higher"], reason="no"),
        remember("evening", "said at night", scratch.by(EVENING), Scope.SESSION),
        lambda: ada.alias(ada.bound()["project"], path="/srv/cedar"),
        lambda: ada.revoke(ada.grant("bob", Act.READ, scope=Scope.USER)),
        lambda: ada.detach(ada.bound()["project"], "/srv/cedar"),
        denied,
        lambda: ada.forget(kept["fact"], dry_run=False),
        lambda: ada.forget(kept["task"], dry_run=False),
        lambda: ada.forget(kept["held"], dry_run=False),
        lambda: ada.forget(kept["wrong"], dry_run=False),
        lambda: ada.close_task(kept["chore"], reason="fed"),
        remember("later", Draft(text="the cedar is back", key="cedar")),
    ]


@pytest.mark.parametrize("step", [1, 2, 5])
def test_what_a_whole_replay_finds_good_is_good_from_a_milestone_on(scratch: Scratch, step: int) -> None:
    """After each few of all the acts there are: ``heads`` verifies both ways, from where it did so before."""
    acts = lived(scratch)
    before = scratch.heads()

    for number, act in enumerate(acts):
        scratch.wait(1)
        act()
        if number % step == 0:
            before = scratch.heads()

    assert scratch.heads().keys() >= before.keys()


def test_what_rows_do_not_tell_of_the_past_is_replayed(scratch: Scratch) -> None:
    """A stale summary that was retracted since: that it had been stale is in no row, so everything is replayed."""
    ada = scratch.by(ADA)
    ground = ada.remember("a ground").record
    summary = ada.remember(Draft(text="ground", kind=Kind.SUMMARY, sources=(ground.address,))).record
    ada.retract(ground.memory, reason="no")
    milestones = scratch.heads()
    ada.retract(summary.memory, reason="no ground")

    with (
        closing(open_store(scratch.path)) as store,
        store.read() as reader,
        pytest.raises(UnsettledError, match="cannot be told any more"),
    ):
        resuming.verify(reader, scratch.keys, milestones, bytes)

    scratch.heads()


def remembering(folder: Path) -> Memory:
    """A store with a state directory, as its owner opens it to verify."""
    return open_memory(
        folder / "store.db", state=folder / "state", create=not (folder / "store.db").exists(), check=False
    )


def test_the_first_verification_is_of_everything_and_the_next_is_not(tmp_path: Path) -> None:
    """It says why; later ones go on where the last one succeeded, unless everything is asked for."""
    with remembering(tmp_path) as memory:
        memory.remember("the first thing", scope=Scope.USER)
        first, second = memory.verify(), memory.verify()
        memory.remember("the second thing", scope=Scope.USER)
        third, whole, last = memory.verify(), memory.verify(full=True), memory.verify()

    assert (first.since, first.reason) == (None, "no earlier verification of it is remembered here")
    assert (second.since, second.commits - second.older) == (
        {name: sequence for name, (sequence, _) in first.heads.items()},
        0,
    )
    assert (third.commits - third.older, third.heads) == (1, whole.heads)
    assert (whole.since, whole.reason) == (None, None)
    assert last.older == whole.commits


def test_nothing_is_taken_on_trust_that_another_program_touched(tmp_path: Path) -> None:
    """An edit of what is old, by whomever: then everything is replayed, and found; and once mended, again."""
    with remembering(tmp_path) as memory:
        for number in range(SAMPLE * 2):
            memory.remember(f"sample {number}", scope=Scope.USER)
        assert memory.verify().ok
    row = 2 << ROW_BITS | 30

    edit(tmp_path / "store.db", OLD_EDITS["words"].format(row=row))
    with remembering(tmp_path) as memory:
        damaged = memory.verify()
    edit(tmp_path / "store.db", OLD_EDITS["words"].replace("+", "-").format(row=row))
    with remembering(tmp_path) as memory:
        mended, after = memory.verify(), memory.verify()

    assert (damaged.since, damaged.reason) == (None, "another program changed its files")
    assert [finding.code for finding in damaged.findings] == ["words"]
    assert (mended.ok, mended.since, mended.reason) == (True, None, "another program changed its files")
    assert after.since is not None


def test_a_store_that_is_not_remembered_is_verified_in_full(tmp_path: Path) -> None:
    """Without a state directory there is no milestone, and the report says so."""
    with open_memory(tmp_path / "store.db") as memory:
        found = [memory.verify() for _ in range(2)]

    assert [(each.since, each.reason) for each in found] == [(None, "nothing is remembered of this store")] * 2


MILESTONES: Final = {
    "a name without a head\n": "cannot be read",
    "\N{SNOWMAN}\x00": "cannot be read",
    f"ns_0000000000000000 7 {'ff' * 32} 0\n": "the chains are not those that were verified before",
    "": "no earlier verification of it is remembered here",
}


@pytest.mark.parametrize("milestones", MILESTONES)
def test_a_milestone_that_is_no_head_of_the_store_counts_for_nothing(tmp_path: Path, milestones: str) -> None:
    """Spoilt, of another store, or emptied by a power cut: everything is replayed, it says why, and is written anew."""
    with remembering(tmp_path) as memory:
        memory.remember("the first thing", scope=Scope.USER)
        heads = memory.verify().heads
        [file] = (tmp_path / "state").glob("stores/*/verified")
        file.write_text(milestones, encoding="utf-8")

        again, after = memory.verify(), memory.verify()

    assert (again.since, again.heads, again.ok) == (None, heads, True)
    assert MILESTONES[milestones] in str(again.reason)
    assert after.since == {name: sequence for name, (sequence, _) in heads.items()}


def test_whoever_watches_is_told_of_commits_and_findings_while_it_runs(tmp_path: Path) -> None:
    """In the order in which they are found, each once; both ways of verifying say how far they are."""
    done: list[tuple[int, int]] = []
    found: list[Finding] = []
    with remembering(tmp_path) as memory:
        for number in range(3):
            memory.remember(f"sample {number}", scope=Scope.USER)
        memory.verify(progress=lambda *far: done.append(far))
        memory.remember("another", scope=Scope.USER)
        memory.verify(progress=lambda *far: done.append(far))
    assert (done[-2], done[-1]) == ((6, 6), (1, 1))

    edit(tmp_path / "store.db", "UPDATE content SET body = CAST(body || ' ' AS BLOB) WHERE row > 1 << 41")
    with remembering(tmp_path) as memory:
        damaged = memory.verify(found=found.append)

    assert tuple(found) == damaged.findings
    assert len(found) >= 4


def test_faults_behind_a_commit_that_is_gone_are_found_too(grown: Grown) -> None:
    """A whole verification names what is missing once, and each fault after it in its own place."""
    edit(grown.path, "DELETE FROM header WHERE row = (2 << 40) + 30")
    edit(grown.path, OLD_EDITS["a content"].format(row=grown.number << ROW_BITS | 50))
    edit(grown.path, OLD_EDITS["an entry"].format(row=grown.number << ROW_BITS | 60))

    found = [(finding.code, finding.sequence) for finding in report(grown.path).findings]

    assert found.count(("chain", 31)) == 1
    assert ("content", 50) in found
    assert ("entries", 60) in found


def test_a_new_key_is_taken_over_by_a_whole_verification(tmp_path: Path) -> None:
    """What a key vouched for is judged to its end; from there on the new one is as good."""
    with remembering(tmp_path) as memory:
        memory.remember("the first thing", scope=Scope.USER)
        assert memory.verify().ok
        memory.rotate(SigningKey(seed=b"another key of thirty-two bytes.", secret=KEY.secret))

        turned = memory.verify()
        memory.remember("the second thing", scope=Scope.USER)
        after = memory.verify()

    assert (turned.ok, turned.since, turned.reason) == (True, None, "a new key took over")
    assert (after.ok, after.commits - after.older) == (True, 1)


def test_an_edit_of_a_node_that_only_new_entries_have_is_found(tmp_path: Path) -> None:
    """No proof of what is old goes through it; what the replay leads to is held against it all the same."""
    path = tmp_path / "nodes.db"
    with open_memory(path, seed=3) as memory:
        memory.remember("the old walrus", scope=Scope.USER)
        milestones = memory.verify().heads
        for number in range(40):
            memory.remember(f"sample {number}", scope=Scope.USER)
    assert verified(path, milestones).ok

    edit(path, "UPDATE node SET children = zeroblob(length(children)) WHERE row = (2 << 40) + 1")

    with pytest.raises(UnsettledError, match="nodes of the state tree"):
        verified(path, milestones)


def test_a_head_that_signs_for_another_state_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when whoever holds the key made it, and nothing that is new proves anything under it."""
    path = tmp_path / "state.db"
    with open_memory(path, seed=3) as memory:
        memory.remember("the old walrus", scope=Scope.USER)
        milestones = memory.verify().heads
        update = state.update
        monkeypatch.setattr(state, "update", lambda *args, **kwargs: (bytes(32), update(*args, **kwargs)[1]))
        memory.remember("the new walrus", scope=Scope.USER)
        monkeypatch.undo()

    with pytest.raises(UnsettledError, match="the head does not sign for the state"):
        verified(path, milestones)


def test_an_old_row_that_is_gone_is_found_without_being_drawn(grown: Grown) -> None:
    """Rows are counted against what the head signs for: what is not there could not be drawn."""
    others = (each for each in itertools.cycle(range(84)) if each != 30 + 2)

    edit(grown.path, f"DELETE FROM record WHERE row = {int(grown.number) << ROW_BITS | 30}")  # noqa: S608 - a number

    with pytest.raises(UnsettledError, match="records rows where the head signs for"):
        verified(grown.path, grown.milestones, lambda size: next(others).to_bytes(size))
