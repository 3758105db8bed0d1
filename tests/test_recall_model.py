"""Default recall against a reference model: what may not be recalled never is, and what may be is found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone import Budget, Caller, Draft, Kind, Lane, Mode, Policy, Recall, Record, RuleError, Scope
from ledgerstone.core.values import DEFAULT_FLOOR, MAX_BELOW_FLOOR_BYTES, Standing, Status
from tests.memories import ADA, ELSEWHERE, FREE_MODES, MODEL, SECOND, STRANGER, Scratch

OBLIGED = {Mode.BALANCED, Mode.HYBRID, Mode.SEMANTIC}
CONDENSED = {Kind.NOTE, Kind.FACT}
WHOLE = Budget(bytes=1_048_576, items=256, candidates=512)
CALLERS = {"ada": ADA, "model": MODEL, "stranger": STRANGER, "elsewhere": ELSEWHERE}

callers = st.sampled_from(["ada", "ada", "model", "stranger", "elsewhere"])
places = st.integers(0, 30)
steps = st.one_of(
    st.tuples(
        st.just("write"),
        callers,
        st.sampled_from([Kind.NOTE, Kind.FACT, Kind.TASK, Kind.PROSPECTIVE]),
        st.sampled_from([None, None, "gate", "wall"]),
        st.sampled_from([None, None, 2, 6]),
        st.sampled_from([Scope.PROJECT, Scope.PROJECT, Scope.USER, Scope.SESSION]),
    ),
    st.tuples(st.sampled_from(["retract", "forget", "close", "condense"]), places),
    st.tuples(st.just("wait"), st.integers(1, 5)),
)


@dataclass
class Told:
    """One record as the model has it."""

    record: Record
    word: str
    expires: int | None
    ground: int | None = None
    stands: bool = True
    erased: bool = False

    def may(self, now: int) -> bool:
        """Whether Ada may recall it in her project by default."""
        return self.is_live(now) and self.record.trust >= DEFAULT_FLOOR

    def may_below(self, now: int) -> bool:
        """Whether she may see it in the section below the floor, where her host gives her one."""
        return self.is_live(now) and self.record.trust < DEFAULT_FLOOR

    def is_live(self, now: int) -> bool:
        """Whether it stands in her sight."""
        live = self.expires is None or self.expires > now
        here = self.record.principal == "ada" and self.record.text is not None and "elsewhere" not in self.record.text
        return self.stands and live and here


@dataclass
class World:
    """A store and the model of it: records in the order they were written, and what could be recalled at each time."""

    scratch: Scratch
    told: list[Told] = field(default_factory=list)
    past: dict[int, set[str]] = field(default_factory=dict)

    def take(self, step: tuple[object, ...]) -> None:
        """One step, and what could be recalled after it."""
        match step:
            case ("write", str(name), Kind() as kind, key, lasting, Scope() as scope):
                self.write(name, kind, scope if name == "ada" else Scope.PROJECT, key=key, lasting=lasting)  # type: ignore[arg-type]
            case ("wait", int(seconds)):
                self.scratch.wait(seconds)
            case (str(verb), int(place)) if self.told:
                self.settle(verb, place % len(self.told))
        self.past[self.scratch.now] = self.recallable()
        self.scratch.wait(1)

    def write(self, name: str, kind: Kind, scope: Scope, *, key: str | None, lasting: int | None) -> None:
        """A new record; under a key it takes the place of those before it, if the store says that it stands."""
        caller: Caller = CALLERS[name]
        expires = None if lasting is None else self.scratch.now + lasting * SECOND
        word = f"word{len(self.told)}"
        text = f"The cedar, {word}, {name}, which is long enough to be condensed by a shorter text."
        draft = Draft(text=text, kind=kind, key=key, expires=expires, source="talk")
        try:
            record = self.scratch.by(caller).remember(draft, scope=scope).record
        except RuleError:  # an open task is not replaced in passing
            return
        if record.standing is Standing.CURRENT and key is not None:
            for earlier in self.told:
                if (earlier.record.namespace, earlier.record.key) == (record.namespace, key):
                    self.end(earlier)
        self.told.append(Told(record, word, expires, stands=record.standing is Standing.CURRENT))

    def settle(self, verb: str, place: int) -> None:
        """Retract, erase, close or condense a record that stands in Ada's project."""
        memory, chosen = self.scratch.memory, self.told[place]
        if not chosen.stands or not chosen.may(0):
            return
        if verb == "retract":
            memory.retract(chosen.record.address, reason="No.")
            self.end(chosen)
        elif verb == "forget":
            memory.forget(chosen.record.memory, dry_run=False)
            for other in self.told:
                ground = other if other.ground is None else self.told[other.ground]
                if chosen.record.memory in {other.record.memory, ground.record.memory}:
                    other.erased = True
                    self.end(other)
        elif verb == "close" and chosen.record.status is Status.OPEN:
            closed = memory.close_task(chosen.record.address).record
            chosen.stands = False
            self.told.append(Told(closed, chosen.word, chosen.expires))
        elif verb == "condense" and chosen.record.kind in CONDENSED and chosen.may(self.scratch.now):
            rests = (chosen.record.address,)
            word = f"word{len(self.told)}"
            draft = Draft(text=f"Cedar {word}.", kind=Kind.SUMMARY, sources=rests, covers=rests)
            self.told.append(Told(memory.remember(draft, scope=chosen.record.scope).record, word, None, ground=place))

    def end(self, told: Told) -> None:
        """It stands no more, nor does what condenses it."""
        told.stands = False
        place = self.told.index(told)
        for other in self.told:
            if other.ground == place and other.stands:
                self.end(other)

    def recallable(self) -> set[str]:
        """The addresses that default recall may show now."""
        return {told.record.address for told in self.told if told.may(self.scratch.now)}

    def below(self) -> set[str]:
        """The addresses that the section below the floor may show now."""
        return {told.record.address for told in self.told if told.may_below(self.scratch.now)}

    def covered(self) -> set[str]:
        """The addresses that a summary in their place may be shown for."""
        standing = [told for told in self.told if told.ground is not None and told.may(self.scratch.now)]
        return {self.told[told.ground].record.address for told in standing if told.ground is not None}

    def erased(self) -> set[str]:
        """The addresses whose text is gone."""
        return {told.record.address for told in self.told if told.erased}


def shown(context: Recall) -> set[str]:
    """The addresses of a context."""
    return {item.record.address for item in context.items}


@contextmanager
def lived(events: list[tuple[object, ...]]) -> Iterator[World]:
    """A world after some steps, in a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Scratch(Path(folder) / "memory.ledger"))
        for event in events:
            world.take(event)
        yield world
        world.scratch.memory.close()


@settings(max_examples=40)
@given(events=st.lists(steps, min_size=2, max_size=14))
def test_default_recall_shows_what_may_be_recalled_and_nothing_else(events: list[tuple[object, ...]]) -> None:
    """Nothing stale, superseded, retracted, expired, erased, foreign or below the floor, ever; the rest is found.

    Every text holds the word asked for, so that lexical recall is exactly what the model allows. Every open task
    stands in the modes that promise it, and everything new but what a summary covers in mode recent.
    """
    with lived(events) as world:
        allowed = world.recallable()
        covered = world.covered() & allowed
        tasks = {told.record.address for told in world.told if told.record.status is Status.OPEN} & allowed
        contexts = {mode: world.scratch.memory.recall("cedar", mode=mode, budget=WHOLE) for mode in FREE_MODES}
        single = [shown(world.scratch.memory.recall(told.word)) for told in world.told]

    for mode, context in contexts.items():
        assert shown(context) <= allowed
        assert all(item.record.standing in {Standing.CURRENT, Standing.COVERED} for item in context.items)
        obliged = {item.record.address for item in context.items if item.lane is Lane.TASKS}
        assert obliged == (tasks if mode in OBLIGED else set())
    assert shown(contexts[Mode.LEXICAL]) == allowed
    assert shown(contexts[Mode.RECENT]) == allowed - covered
    for told, found in zip(world.told, single, strict=True):
        assert (told.record.address in found) == (told.record.address in allowed)


@settings(max_examples=25)
@given(events=st.lists(steps, min_size=2, max_size=14))
def test_the_section_below_the_floor_shows_what_is_live_there_and_nothing_else(
    events: list[tuple[object, ...]],
) -> None:
    """Whoever is given one sees in every mode the same entries as without, and all that stands below the floor."""
    reader = replace(ADA, below_floor_bytes=MAX_BELOW_FLOOR_BYTES)
    with lived(events) as world:
        below, opened = world.below(), world.scratch.by(reader)
        pairs = [
            (
                world.scratch.memory.recall("cedar", mode=mode, budget=WHOLE),
                opened.recall("cedar", mode=mode, budget=WHOLE),
            )
            for mode in FREE_MODES
        ]
        history = opened.recall("cedar", policy=Policy(history=True), budget=WHOLE)

    for without, context in pairs:
        assert without.below_floor == ()
        assert context.items == without.items
        assert {item.record.address for item in context.below_floor} == below
        assert Lane.TASKS not in {item.lane for item in context.below_floor}
        assert "below_floor" not in context.omitted
    assert {item.record.address for item in history.below_floor} == below


@settings(max_examples=25)
@given(events=st.lists(steps, min_size=2, max_size=12))
def test_the_past_is_what_was_recallable_then(events: list[tuple[object, ...]]) -> None:
    """As of every moment at which something happened, exactly what was allowed at it, but for what is erased since."""
    with lived(events) as world:
        asked = {moment: Policy(mode=Mode.LEXICAL, as_of=moment) for moment in world.past}
        found = {
            moment: shown(world.scratch.memory.recall("cedar", policy=policy, budget=WHOLE))
            for moment, policy in asked.items()
        }

    assert found == {moment: allowed - world.erased() for moment, allowed in world.past.items()}


@settings(max_examples=25)
@given(events=st.lists(steps, min_size=2, max_size=12), history=st.booleans())
def test_the_same_question_has_the_same_answer(events: list[tuple[object, ...]], history: bool) -> None:
    """Bit for bit, in every mode, twice and from a new opening; history shows nothing erased or foreign."""
    policies = [Policy(mode=mode, history=history) for mode in FREE_MODES]
    with lived(events) as world:
        world.scratch.memory.remember("A cedar of the user.", scope=Scope.USER)

        first, second = (
            [world.scratch.memory.recall("cedar word1 word3", policy=policy) for policy in policies] for _ in range(2)
        )
        world.scratch.reopen()
        third = [world.scratch.memory.recall("cedar word1 word3", policy=policy) for policy in policies]

    assert first == second == third
    records = [item.record for context in first for item in context.items]
    assert all(record.text is not None and "elsewhere" not in record.text for record in records)
    assert all(record.trust >= DEFAULT_FLOOR for record in records)
