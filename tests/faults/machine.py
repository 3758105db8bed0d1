"""Made-up lives on a file system that fails: ``python -m tests.faults.machine`` lives many, each from one seed.

Whatever is done, refused or cut off, the store is held to a replay of its own chain by the pure functions of core:
what was there stays, byte for byte; a commit more is there when that was said, and none when it was refused; and each
answer is what the replay projects.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias
from unittest import mock

import apsw
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from ledgerstone import (
    ConflictError,
    Draft,
    Kind,
    Memory,
    Mode,
    NotFoundError,
    Record,
    RuleError,
    Scope,
    Standing,
    UnavailableError,
    UnknownOutcomeError,
    UsageError,
    verifying,
)
from ledgerstone.core.facts import Known
from ledgerstone.core.values import STANDING_OF_ENDING, Ending, Status
from ledgerstone.core.verify import Authorities, Replay
from ledgerstone.store import appending, open_store, sqlite
from ledgerstone.store.protocol import Reader
from tests.faults import state
from tests.faults.vfs import KINDS
from tests.store.faults import DEADLY, Fault, faulty
from tests.stores import SECOND, START, open_memory

LAST: Final = (1 << 40) - 1
# So that words are folded into the index every few writes, and not every 256.
FOLD_EVERY: Final = 8
MOST_RECORDS: Final = 90
DAY: Final = 86_400
# What may fail, and how; whoever dies does so by a crash, which is a step of its own.
FAULTS: Final = [
    (operation, fault, times)
    for operation, kinds in KINDS.items()
    for fault, times in kinds
    if fault not in DEADLY and operation != "open"
]


# What a step may meet: a fault, after so many of its operations went well.
Spoil: TypeAlias = tuple[tuple[str, Fault, int], int]
FAULT: Final = st.none() | st.tuples(st.sampled_from(FAULTS), st.integers(0, 19))
# A step writes to the store some twenty times, and does the rest seldom.
OFTEN: Final = "write"
MOST_SELDOM: Final = 3


class Chain(NamedTuple):
    """The user's chain as its bytes stand in the file, and what replay makes of them."""

    headers: tuple[bytes, ...]
    bodies: tuple[bytes, ...]
    contents: dict[int, tuple[bytes, bytes]]
    known: dict[int, Known]
    texts: dict[int, str]
    covered: frozenset[int]

    def text(self, known: Known) -> str | None:
        """The text of a version, unless it was erased."""
        return None if known.ending is Ending.ERASED else self.texts.get(known.body)

    def standing(self, known: Known, now: int) -> Standing:
        """What a version counts for."""
        standing = STANDING_OF_ENDING[known.ending]
        if standing is Standing.CURRENT and known.position in self.covered:
            standing = Standing.COVERED
        if standing in {Standing.CURRENT, Standing.COVERED} and known.expires is not None and known.expires <= now:
            standing = Standing.EXPIRED
        return standing


def replayed(reader: Reader) -> Chain:
    """The user's chain, which is the second, replayed after the store's own; neither has a fault."""
    authorities = Authorities()
    for number, chain in enumerate(reader.chains(), 1):
        replay = Replay(chain.namespace, authorities, store=number == 1)
        headers = tuple(data for _, _, data in reader.headers(number, newest=0, oldest=LAST))
        bodies = tuple(data for _, data in reader.entries(number, 0, LAST))
        contents = {position: (salt, data) for position, salt, data in reader.contents(number, 0, LAST)}
        texts: dict[int, str] = {}
        covers: dict[int, tuple[int, ...]] = {}
        for sequence, data in enumerate(headers):
            read = replay.header(sequence, data)
            assert read is not None
            first = replay.size
            end = first + len(read[1].entries)
            part = {position: contents[position] for position in range(first, end) if position in contents}
            for one in replay.commit(*read, bodies[first:end], part):
                covers[one.change.position] = tuple(one.change.covers)
                if one.content is not None and one.content.text is not None:
                    texts[one.change.position] = one.content.text
        replay.finish()
        assert replay.findings == [], replay.findings
        if number == 2:
            known = dict(replay.folded.known)
            covered = frozenset(
                below
                for position, all_below in covers.items()
                if position in known and known[position].current
                for below in all_below
            )
            return Chain(headers, bodies, contents, known, texts, covered)
    return Chain((), (), {}, {}, {}, frozenset())


class Life(RuleBasedStateMachine):
    """One store, what may fail under it, and its chain as it was after the step before."""

    lived: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.path, self.state = self.home / "store.db", self.home / "state"
        self.faults = self._stack.enter_context(faulty())
        self.faults.waits = False
        self._stack.enter_context(state.failing(self.faults, self.state))
        for module in (appending, verifying):
            self._stack.enter_context(mock.patch.object(module, "FOLD_EVERY", FOLD_EVERY))
        self._stack.enter_context(mock.patch.object(sqlite, "BUSY_TIMEOUT_MS", 50))
        self.now = START
        self.openings = self.writes = 0
        self.asked: dict[str, Draft] = {}
        self.memory: Memory | None = self._open(create=True)
        self.chain = self._look()

    def _open(self, *, create: bool = False) -> Memory | None:
        self.openings += 1
        try:
            return open_memory(self.path, create=create, state=self.state, now=lambda: self.now, seed=self.openings)
        except UnavailableError:
            self.lived["openings refused"] += 1
            return None

    def _look(self) -> Chain:
        store = open_store(self.path)
        try:
            with store.read() as reader:
                return replayed(reader)
        finally:
            store.close()

    def _step(self, fault: Spoil | None, work: Callable[[Memory], Any], *, sure: bool = True) -> Any:
        """Do one thing, whatever fails; then nothing fails any more, and everything is compared.

        It is one commit when done and none when refused; one that is not ``sure`` may find that there is nothing to do,
        or be refused after its commit unless the hint says that nothing was changed.
        """
        if self.memory is None:
            self.faults.heal()
            self.memory = self._open()
        assert self.memory is not None, "without a fault it opens"
        answer, told = None, "done"
        self._spoil(fault)
        try:
            answer = work(self.memory)
        except UnavailableError as error:
            told = "refused" if sure or "nothing was changed" in error.hint else "unclear"
        except UnknownOutcomeError:
            told = "unknown"
        except (RuleError, ConflictError, NotFoundError, UsageError):
            # One of them is that a text which was refused before has expired when it is asked for again.
            told = "not admitted"
        self._heal()
        self.lived[told] += 1
        before, self.chain = self.chain, self._look()
        maybe = told in {"unknown", "unclear"} or (told == "done" and not sure)
        self._grown(before, (0, 1) if maybe else (1,) if told == "done" else (0,))
        self._compare()
        return answer

    def _spoil(self, fault: Spoil | None) -> None:
        if fault is not None:
            (operation, how, times), after = fault
            after = after if operation == OFTEN else after % MOST_SELDOM
            self.faults.fail(operation, "", after=after, times=times, fault=how)

    def _heal(self) -> None:
        self.lived["faults"] += self.faults.met > 0
        self.faults.met = 0
        self.faults.heal()

    def _grown(self, before: Chain, by: tuple[int, ...]) -> None:
        """The chain goes on from where it was, by so many commits, and a text is missing only if it was erased."""
        after = self.chain
        assert after.headers[: len(before.headers)] == before.headers
        assert after.bodies[: len(before.bodies)] == before.bodies
        assert len(after.headers) - len(before.headers) in by
        for position, content in before.contents.items():
            assert after.contents.get(position, content) == content
            assert (
                position in after.contents
                or position not in after.known
                or after.known[position].ending is Ending.ERASED
            )

    def _compare(self) -> None:
        """What the store answers is what the replay projects."""
        if self.memory is None:
            self.memory = self._open()
        memory, chain = self.memory, self.chain
        assert memory is not None, "without a fault it opens"
        listed = {record.address: record for record in memory.list_records("all", limit=100).items}
        assert listed.keys() == {f"{known.memory}@{known.version}" for known in chain.known.values()}
        for known in chain.known.values():
            record: Record = listed[f"{known.memory}@{known.version}"]
            expected = chain.text(known), known.kind, known.status, known.trust, chain.standing(known, self.now)
            assert (record.text, record.kind, record.status, record.trust, record.standing) == expected
            assert record.digest == known.digest
        tasks = {record.digest for record in memory.list_records("tasks", limit=100).items}
        obliging = [known for known in chain.known.values() if known.current and known.status is Status.OPEN]
        assert tasks == {known.digest for known in obliging if chain.standing(known, self.now) is not Standing.EXPIRED}
        recalled = [item.record for item in memory.recall("heron", mode=Mode.LEXICAL).items]
        assert all(record == listed[record.address] for record in recalled)

    def _chosen(self, which: int) -> Known | None:
        """One of the versions, if there is any."""
        known = list(self.chain.known.values())
        return known[which % len(known)] if known else None

    def _draft(self, **fields: Any) -> tuple[Draft, str]:
        self.writes += 1
        key = f"write {self.writes}"
        draft = Draft(text=f"the heron of note {self.writes} waited at the mill until the evening came", **fields)
        self.asked[key] = draft
        return draft, key

    @initialize()
    def begin(self) -> None:
        """Something is there from the start."""
        assert self.memory is not None, "nothing fails yet"
        draft, name = self._draft()
        self.memory.remember(draft, scope=Scope.USER, idempotency_key=name)
        self.chain = self._look()

    @rule(
        fault=FAULT,
        kind=st.sampled_from([Kind.NOTE, Kind.TASK]),
        key=st.sampled_from([None, "mill", "heron"]),
        days=st.sampled_from([None, 1]),
    )
    def remember(self, fault: Spoil | None, kind: Kind, key: str | None, days: int | None) -> None:
        """A new memory, or the next version of a key's; said, it is there as it was given."""
        if len(self.chain.known) >= MOST_RECORDS:
            return
        expires = None if days is None else self.now + days * DAY * SECOND
        draft, name = self._draft(kind=kind, key=key, expires=expires)
        told = self._step(fault, lambda memory: memory.remember(draft, scope=Scope.USER, idempotency_key=name))
        if told is not None:
            assert self.chain.texts[self._position(told.record)] == draft.text

    def _position(self, record: Record) -> int:
        return next(position for position, known in self.chain.known.items() if known.digest == record.digest)

    @rule(fault=FAULT, which=st.integers(1, 200))
    def repeat(self, fault: Spoil | None, which: int) -> None:
        """What was asked before is asked again: it is there once, whatever was answered the first time."""
        name = f"write {1 + which % max(1, self.writes)}"
        if name not in self.asked or len(self.chain.known) >= MOST_RECORDS:
            return
        draft, before = self.asked[name], self.chain
        held = {known.digest for known in before.known.values()}
        told = self._step(
            fault, lambda memory: memory.remember(draft, scope=Scope.USER, idempotency_key=name), sure=False
        )
        if told is not None:
            assert told.repeated == (len(self.chain.headers) == len(before.headers))
            assert told.repeated == (told.record.digest in held)
            texts = [known for known in self.chain.known.values() if self.chain.text(known) == draft.text]
            assert len({known.body for known in texts}) <= 1

    @rule(fault=FAULT, count=st.integers(2, 8))
    def several(self, fault: Spoil | None, count: int) -> None:
        """Several in one commit: all of them, or none."""
        if len(self.chain.known) + count > MOST_RECORDS:
            return
        drafts, names = zip(*(self._draft() for _ in range(count)), strict=True)
        name = f"several until {names[-1]}"
        for each in names:
            del self.asked[each]
        self._step(fault, lambda memory: memory.remember_many(drafts, scope=Scope.USER, idempotency_key=name))
        there = set(self.chain.texts.values()) & {draft.text for draft in drafts}
        assert len(there) in {0, count}

    @rule(fault=FAULT, which=st.integers(0, 200))
    def correct(self, fault: Spoil | None, which: int) -> None:
        """The next version of a memory, if it stands."""
        known = self._chosen(which)
        if known is not None and len(self.chain.known) < MOST_RECORDS:
            draft, name = self._draft(replaces=known.memory)
            self._step(fault, lambda memory: memory.remember(draft, scope=Scope.USER, idempotency_key=name))

    @rule(fault=FAULT, which=st.integers(0, 200))
    def close(self, fault: Spoil | None, which: int) -> None:
        """A task that is done."""
        known = self._chosen(which)
        if known is not None:
            self._step(fault, lambda memory: memory.close_task(known.memory, reason="done"))

    @rule(fault=FAULT, which=st.integers(0, 200), reject=st.booleans())
    def retract(self, fault: Spoil | None, which: int, *, reject: bool) -> None:
        """What is no longer held, or never was right."""
        known = self._chosen(which)
        if known is not None:
            self._step(fault, lambda memory: memory.retract(known.memory, reason="wrong", reject=reject))

    @rule(fault=FAULT, which=st.integers(0, 200), other=st.integers(0, 200))
    def summarise(self, fault: Spoil | None, which: int, other: int) -> None:
        """Two in one."""
        both = [known for known in map(self._chosen, (which, other)) if known is not None]
        if both and len(self.chain.known) < MOST_RECORDS:
            addresses = tuple(sorted({f"{known.memory}@{known.version}" for known in both}))
            draft = Draft(text="herons wait", kind=Kind.SUMMARY, sources=addresses, covers=addresses)
            self._step(fault, lambda memory: memory.remember(draft, scope=Scope.USER))

    @rule(fault=FAULT, which=st.integers(0, 200))
    def forget(self, fault: Spoil | None, which: int) -> None:
        """A memory's texts for good: said to be erased, none is anywhere in the store's files but in another memory."""
        known = self._chosen(which)
        if known is None:
            return
        before = self.chain
        told = self._step(fault, lambda memory: memory.forget(known.memory, dry_run=False), sure=False)
        if told is not None and told.erased and not told.left:
            self._gone(
                {
                    before.texts[each.body]
                    for each in before.known.values()
                    if each.memory == known.memory and each.body in before.texts
                }
                - set(self.chain.texts.values())
            )

    def _gone(self, texts: set[str]) -> None:
        files = self.home.glob(f"{self.path.name}*")
        held = subprocess.run(["cat", *files], check=True, capture_output=True).stdout
        assert [text for text in texts if text.encode() in held] == []

    @rule(fault=FAULT, days=st.integers(0, 2))
    def expire(self, fault: Spoil | None, days: int) -> None:
        """Time passes, and whatever is over is erased."""
        self.now += days * DAY * SECOND
        self._step(fault, lambda memory: memory.expire(dry_run=False), sure=False)

    @rule(fault=FAULT)
    def reopen(self, fault: Spoil | None) -> None:
        """Nothing but the files goes on; closing and opening may fail."""
        self._spoil(fault)
        self._close()
        self.memory = self._open()
        self._heal()
        assert self._look()[:3] == self.chain[:3]
        self._compare()

    @rule()
    def crash(self) -> None:
        """The files as a process that dies just now leaves them, with what is remembered of them."""
        self.lived["crashes"] += 1
        self.faults.heal()
        image = self.home.with_name("image")
        # Another process copies: closing a copy here would drop SQLite's locks.
        subprocess.run(["cp", "-r", self.home, image], check=True)
        self._close()
        shutil.rmtree(self.home)
        image.rename(self.home)
        self.memory = self._open()
        assert self._look()[:3] == self.chain[:3]
        self._compare()

    def _close(self) -> None:
        if self.memory is not None:
            # SQLite overlooks an error of its last checkpoint; the VFS tells it to us all the same.
            with suppress(apsw.Error):
                self.memory.close()
        self.memory = None

    def teardown(self) -> None:
        """At the end everything verifies, the derived rows too."""
        self.faults.heal()
        self.lived["lives"] += 1
        try:
            self._close()
            self.memory = self._open()
            assert self.memory is not None
            assert self.memory.verify().findings == ()
        finally:
            self._close()
            self._stack.close()


def live_many(*, first: int, lives: int, steps: int = 40) -> Counter[str]:
    """Make up lives, all from one seed; what was told in them, or the first that fails."""
    Life.lived.clear()
    run_state_machine_as_test(
        seed(first)(Life),
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=False,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )
    return Counter(Life.lived)


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    try:
        told = live_many(first=given.seed, lives=given.lives, steps=given.steps)
    except BaseException:
        print(
            f"seed {given.seed}: python -m tests.faults.machine --seed {given.seed} --lives {given.lives}"
            f" --steps {given.steps}"
        )
        raise
    print(dict(told))


if __name__ == "__main__":
    main()
