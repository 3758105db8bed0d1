"""Whatever is done in whatever order, the store agrees with a plain dictionary, verifies and rebuilds to itself."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from ledgerstone import Caller, ConflictError, Draft, Kind, Mode, RuleError, Standing, Status, Trust
from tests.memories import ADA, MODEL, Scratch, characters

KEYS = st.sampled_from([None, "cedar", "oak"])
CALLERS = st.sampled_from([ADA, MODEL])
TRUST = {ADA: Trust.USER_EXPLICIT, MODEL: Trust.MODEL_INFERRED}
MOST_TASKS = 16


# A sign before each, so that none is a word of the file's own, which would be found there after an erasure.
said = st.text(characters, min_size=1, max_size=20).map("\u00a7{}".format)


@dataclass
class Version:
    """What a version must be, as far as a dictionary can tell; ``body`` is the version whose text it carries."""

    text: str | None
    status: Status
    trust: Trust
    body: int
    key: str | None = None
    standing: Standing = Standing.CURRENT

    @property
    def stands(self) -> bool:
        """Nothing has ended it."""
        return self.standing is Standing.CURRENT


@dataclass
class Model:
    """All memories by id, each with its versions; keys by the memory that holds them."""

    memories: dict[str, list[Version]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)

    def newest(self, memory: str) -> Version:
        """The highest version of a memory."""
        return self.memories[memory][-1]

    def open_tasks(self) -> list[str]:
        """The texts of open tasks."""
        newest = [versions[-1] for versions in self.memories.values()]
        return sorted(str(v.text) for v in newest if v.stands and v.status is Status.OPEN)

    def forget(self, memory: str, version: int | None) -> list[str]:
        """Erase a version with all that carry its text, or all versions; the addresses that this takes out."""
        versions = self.memories[memory]
        bodies = {each.body for each in versions} if version is None else {versions[version - 1].body}
        taken = []
        for number, each in enumerate(versions, 1):
            if each.body in bodies and each.standing is not Standing.ERASED:
                taken.append(f"{memory}@{number}")
                each.text, each.key, each.standing = None, None, Standing.ERASED
        for key in [key for key, holder in self.holders.items() if holder == memory]:
            if not any(each.key == key for each in versions):
                del self.holders[key]
        return taken


class Life(RuleBasedStateMachine):
    """A store and its model, side by side."""

    memories = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self.scratch = Scratch(Path(self._directory.name) / "memory.ledger")
        self.model = Model()

    @initialize(target=memories)
    def begin(self) -> str:
        """Something is there from the start."""
        record = self.scratch.memory.remember("In the beginning.").record
        self.model.memories[record.memory] = [Version("In the beginning.", Status.ACTIVE, record.trust, 1)]
        return record.memory

    @rule(
        target=memories,
        text=said,
        key=KEYS,
        caller=CALLERS,
        kind=st.sampled_from([Kind.NOTE, Kind.TASK]),
    )
    def remember(self, text: str, key: str | None, caller: Caller, kind: Kind) -> str:
        """A new memory, the next version of a key's, or a contest of it; an open task stays as it is."""
        trust = TRUST[caller]
        holder = self.model.holders.get(key or "")
        held = None if holder is None else self.model.newest(holder)
        contests = held is not None and held.stands and held.trust > trust
        status = Status.OPEN if kind is Kind.TASK else Status.ACTIVE
        draft = Draft(text=text, key=key, kind=kind)
        memory = self.scratch.by(caller)
        refused = held is not None and held.stands and held.status is Status.OPEN and not contests
        if refused or (kind is Kind.TASK and len(self.model.open_tasks()) == MOST_TASKS):
            with pytest.raises(RuleError):
                memory.remember(draft)
            return holder or next(iter(self.model.memories))
        record = memory.remember(draft).record
        standing = Standing.CONTESTED if contests else Standing.CURRENT
        made = Version(text, status, trust, record.version, key, standing)
        if holder is not None and held is not None and not contests:
            assert record.memory == holder
            if held.stands:
                held.standing = Standing.SUPERSEDED
            self.model.memories[holder].append(made)
        else:
            assert record.memory not in self.model.memories
            self.model.memories[record.memory] = [made]
            if key is not None and not contests:
                self.model.holders[key] = record.memory
        return record.memory

    @rule(memory=memories, text=said)
    def replace(self, memory: str, text: str) -> None:
        """The next version of a memory, if it stands and is no open task."""
        newest = self.model.newest(memory)
        draft = Draft(text=text, replaces=memory)
        if not newest.stands:
            with pytest.raises(ConflictError):
                self.scratch.memory.remember(draft)
        elif newest.status is Status.OPEN:
            with pytest.raises(RuleError, match="no write replaces it"):
                self.scratch.memory.remember(draft)
        else:
            self.scratch.memory.remember(draft)
            newest.standing = Standing.SUPERSEDED
            body = len(self.model.memories[memory]) + 1
            self.model.memories[memory].append(Version(text, Status.ACTIVE, Trust.USER_EXPLICIT, body, newest.key))

    @rule(memory=memories, caller=CALLERS)
    def close(self, memory: str, caller: Caller) -> None:
        """An open task closes for whoever has its trust."""
        newest = self.model.newest(memory)
        act = self.scratch.by(caller)
        if not newest.stands or newest.status is not Status.OPEN or newest.trust > TRUST[caller]:
            with pytest.raises(RuleError):
                act.close_task(memory)
            return
        act.close_task(memory)
        newest.standing = Standing.SUPERSEDED
        self.model.memories[memory].append(Version(newest.text, Status.CLOSED, newest.trust, newest.body, newest.key))

    @rule(memory=memories, caller=CALLERS)
    def retract(self, memory: str, caller: Caller) -> None:
        """What stands, or stood aside from the start, is withdrawn by whoever has its trust."""
        newest = self.model.newest(memory)
        act = self.scratch.by(caller)
        aside = newest.standing is Standing.CONTESTED
        if not (newest.stands or aside) or newest.trust > TRUST[caller]:
            with pytest.raises(RuleError):
                act.retract(memory, reason="Wrong.")
            return
        act.retract(memory, reason="Wrong.")
        if not aside:
            newest.standing = Standing.RETRACTED
        key = None if aside else newest.key
        gone = Version(newest.text, Status.RETRACTED, newest.trust, newest.body, key, Standing.RETRACTED)
        self.model.memories[memory].append(gone)

    @rule(memory=memories, which=st.integers(0, 9))
    def forget(self, memory: str, which: int) -> None:
        """A memory loses all its texts, or the texts of one version; what it says it reaches is what goes."""
        version = None if not which else 1 + which % len(self.model.memories[memory])
        target = memory if version is None else f"{memory}@{version}"
        plan = self.scratch.memory.forget(target)

        done = self.scratch.memory.forget(target, dry_run=False)

        assert list(plan.addresses) == list(done.addresses) == self.model.forget(memory, version)
        assert done.left == ()

    @rule()
    def restart(self) -> None:
        """Nothing but the file goes on."""
        self.scratch.reopen()

    @rule(memory=memories)
    def look(self, memory: str) -> None:
        """The history of a memory is that of the model."""
        history = self.scratch.memory.history(memory)

        told = [(found.text, found.status, found.trust, found.standing) for found in history]
        assert told == [(each.text, each.status, each.trust, each.standing) for each in self.model.memories[memory]]
        assert self.scratch.memory.get(memory) == history[-1]

    @invariant()
    def agree(self) -> None:
        """What is listed as open and as standing is what the model has."""
        memory = self.scratch.memory
        newest = [versions[-1] for versions in self.model.memories.values()]
        standing = sorted(str(version.text) for version in newest if version.stands)

        listed = memory.list_records("recent", limit=100).items
        assert sorted(str(found.text) for found in listed) == standing
        tasks = memory.list_records("tasks", limit=100).items
        assert sorted(str(found.text) for found in tasks) == self.model.open_tasks()
        recent = memory.recall("", mode=Mode.RECENT).items
        assert all(item.record.standing is Standing.CURRENT for item in recent)

    def teardown(self) -> None:
        """At the end it verifies, and rebuilding changes nothing that can be read."""
        memory = self.scratch.memory
        heads, everything = self.scratch.heads(), memory.list_records("all", limit=100)
        report = memory.rebuild()

        assert report.heads == heads == self.scratch.heads()
        assert memory.list_records("all", limit=100) == everything
        memory.close()
        self._directory.cleanup()


Life.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestLife = Life.TestCase
