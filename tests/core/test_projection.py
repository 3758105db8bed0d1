"""What entries do adds up: folded at once or on top of a past, and counted or looked up, it is the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone.core import rules
from ledgerstone.core.canonical import address
from ledgerstone.core.entries import (
    AliasEntry,
    CloseEntry,
    Content,
    Counts,
    Entry,
    ErasedEntry,
    ErasureEntry,
    GenesisEntry,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RetractEntry,
    RevokeEntry,
    Sealed,
    SettingEntry,
    Stamp,
)
from ledgerstone.core.facts import Change, Facts, Known, Own, Slot
from ledgerstone.core.projection import (
    NO_COUNTS,
    Folded,
    carriers,
    counted,
    obligation,
    project,
    searchable,
    undermined,
)
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import Act, AliasOf, Draft, Ending, Kind, NameOf, Origin, Scope, Status, Trust
from ledgerstone.errors import ConflictError, NotFoundError, RuleError
from tests.core.chains import ADA, KEYS, NONCE, PROJECT, grant, named, opaque, tombstone, writing

SLOT = Slot(5, 3, b"d" * 32)
SEALED = Sealed(commitment=b"c" * 32, bytes=20)
KEYED = [None, "cedar", "oak"]
WORDS = ["Cedar.", "CEDAR.", "Oak, and a very long story about it.", "Elm."]


class Past:
    """The entries of a namespace so far, with what they add up to."""

    def __init__(self) -> None:
        self.taken: list[tuple[Admitted, Slot]] = []
        self.folded = Folded()
        self.counts = NO_COUNTS

    def take(self, admitted: Admitted) -> Change:
        """One more entry, in a commit of its own."""
        slot = Slot(len(self.taken), len(self.taken), admitted.digest)
        change = project(admitted.entry, admitted.content, slot, self.folded)
        self.counts = counted(self.counts, change, self.folded.apply(change, slot))
        self.taken.append((admitted, slot))
        self.folded.boundary = len(self.taken)
        return change

    def memories(self) -> list[Known]:
        """The newest version of every memory."""
        names = dict.fromkeys(known.memory for known in self.folded.known.values())
        return [known for memory in names if (known := self.folded.latest(memory)) is not None]


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """A past of whatever the rules admit: writes of all sorts, closings, retractions and erasures."""
    past = Past()
    for _ in range(draw(st.integers(1, 14))):
        by = writing(draw(st.sampled_from([Origin.USER, Origin.MODEL, Origin.UNKNOWN])), draw(st.integers(0, 2**32)))
        memories = past.memories()
        act = draw(st.sampled_from(["remember", "remember", "close", "retract", "erase"]))
        try:
            if act == "remember" or not memories:
                past.take(rules.enter(draw(drafts(memories)), by, past.folded))
            elif act == "erase":
                versions = sorted(past.folded.known)
                erased = draw(st.lists(st.sampled_from(versions), min_size=1, max_size=2, unique=True))
                entry = ErasureEntry(erases=tuple(past.folded.known[position].digest for position in erased))
                rules.check_arranged(entry, past.folded)
                past.take(rules.plain(entry))
            elif act == "close":
                past.take(rules.close(draw(st.sampled_from(memories)), by, None))
            else:
                known = draw(st.sampled_from(memories))
                reject = tombstone(known.key, draw(st.sampled_from(WORDS)))
                past.take(rules.retract(known, by, "Wrong.", draw(st.sampled_from([None, reject]))))
        except (RuleError, ConflictError, NotFoundError):
            continue
    return past


@st.composite
def drafts(draw: st.DrawFn, memories: list[Known]) -> Draft:
    """A draft that may rest on, cover or replace what is there."""
    known = [address(one.memory, one.version) for one in memories]
    sources: list[str] = draw(st.lists(st.sampled_from(known), unique=True, max_size=3)) if known else []
    kind = draw(st.sampled_from([Kind.NOTE, Kind.TASK, Kind.SUMMARY, Kind.PROCEDURE]))
    return Draft(
        text=draw(st.sampled_from(WORDS)),
        kind=kind,
        key=draw(st.sampled_from(KEYED)),
        replaces=draw(st.none() | st.sampled_from(known)) if known else None,
        sources=tuple(sources),
        covers=tuple(sources[:1]) if kind is Kind.SUMMARY and draw(st.booleans()) else (),
        external=draw(st.booleans()),
    )


def answers(facts: Facts, past: Past) -> dict[str, Any]:
    """All that facts can say of a past."""
    known = past.folded.known
    memories = {one.memory for one in known.values()}
    return {
        "position": [facts.position(admitted.digest) for admitted, _ in past.taken],
        "version": [facts.version(position) for position in range(len(past.taken) + 1)],
        "latest": [facts.latest(memory) for memory in sorted(memories)],
        "version_of": [facts.version_of(one.memory, one.version) for _, one in sorted(known.items())],
        "holder": [facts.holder(key) for key in ("cedar", "oak", "elm")],
        "resting_on": [sorted(one.position for one in facts.resting_on(position)) for position in sorted(known)],
        "rejection": [facts.rejection(admitted.digest) for admitted, _ in past.taken],
        "listed": [facts.listed("tombstone", tombstone(key, word).hex()) for key in KEYED for word in WORDS],
        "revocable": [facts.revocable(admitted.digest) for admitted, _ in past.taken],
        "rejected": [facts.rejected(tombstone(key, word)) for key in KEYED for word in WORDS],
        "open_tasks": facts.open_tasks(),
        "absent": [facts.position(b"?" * 32), facts.latest(opaque("mem", 1)), facts.version_of(opaque("mem", 1), 1)],
    }


@settings(max_examples=60)
@given(past=pasts(), data=st.data())
def test_folding_onto_a_past_is_folding_from_the_start(past: Past, data: st.DataObject) -> None:
    """Wherever a past is cut in two, the second part on top of the first answers as the whole."""
    cut = data.draw(st.integers(0, len(past.taken)))
    base = Past()
    for admitted, _ in past.taken[:cut]:
        base.take(admitted)

    upper = Folded(base.folded)
    counts = base.counts
    for admitted, slot in past.taken[cut:]:
        change = project(admitted.entry, admitted.content, slot, upper)
        counts = counted(counts, change, upper.apply(change, slot))

    assert answers(upper, past) == answers(past.folded, past)
    assert counts == past.counts


@settings(max_examples=60)
@given(past=pasts())
def test_counts_are_what_counting_gives(past: Past) -> None:
    """The running totals are those of the folded state, looked at as a whole."""
    known = past.folded.known.values()

    assert past.counts == Counts(
        entries=len(past.taken),
        records=len(known),
        live=sum(
            admitted.content is not None and past.folded.known[slot.position].ending is not Ending.ERASED
            for admitted, slot in past.taken
        ),
        current=sum(one.current for one in known),
        open=sum(map(obligation, known)),
        indexed=sum(one.status is not Status.RETRACTED and one.ending is not Ending.ERASED for one in known),
    )
    obliged = [one.content_bytes for one in known if obligation(one)]
    assert past.folded.open_tasks() == (len(obliged), sum(obliged))


@settings(max_examples=60)
@given(past=pasts())
def test_what_always_holds(past: Past) -> None:
    """At most one version of a memory stands, its newest; no summary stands on what fell; versions are dense."""
    known = past.folded.known
    by_memory: dict[str, list[Known]] = {}
    for _, one in sorted(known.items()):
        by_memory.setdefault(one.memory, []).append(one)

    for versions in by_memory.values():
        assert [one.version for one in versions] == list(range(1, len(versions) + 1))
        assert not any(one.current for one in versions[:-1])
        assert len({one.key for one in versions if one.key is not None}) <= 1
    for position, one in known.items():
        if one.ending in {Ending.SUPERSEDED, Ending.RETRACTED, Ending.ERASED, Ending.STALE}:
            assert past.folded.resting_on(position) == ()
        assert (one.ended_by == 0) == one.current


@settings(max_examples=60)
@given(past=pasts())
def test_what_was_admitted_is_judged_right(past: Past) -> None:
    """The same rules, asked again of every entry at its place, refuse none."""
    again = Folded()
    for admitted, slot in past.taken:
        entry = admitted.entry
        said = getattr(entry, "origin", Origin.USER)
        origin = said if said is not Origin.EXTERNAL else Origin.USER
        stamp = Stamp(at=0, principal=ADA, origin=origin)

        rules.judge(entry, admitted.content, stamp, writing().limits, again)

        again.apply(project(entry, admitted.content, slot, again), slot)
        again.boundary = slot.position + 1


def projected(entry: Entry, content: Content | None = None, facts: Facts | None = None) -> Change:
    """What an entry of the store chain does."""
    return project(entry, content, SLOT, facts or Folded())


SEALED = named("cedar", lambda sealed: NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=sealed)).entry.content  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("entry", "lookups"),
    [
        (
            NamespaceEntry(namespace=PROJECT, scope=Scope.PROJECT, nonce=NONCE, owner=ADA, content=SEALED),
            (("namespace", PROJECT), ("scoped", f"project {ADA} cedar")),
        ),
        (
            NamespaceEntry(namespace=PROJECT, scope=Scope.GLOBAL, nonce=NONCE, content=SEALED),
            (("namespace", PROJECT), ("scoped", "global  cedar")),
        ),
        (NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=SEALED), (("name", "principal  cedar"), ("named", ADA))),
        (
            NameEntry(id=opaque("ses", 1), of=NameOf.SESSION, content=SEALED, owner=ADA),
            (("name", f"session {ADA} cedar"), ("named", opaque("ses", 1))),
        ),
        (AliasEntry(namespace=PROJECT, of=AliasOf.PATH, content=SEALED), (("alias", "path cedar"),)),
        (grant(1, Act.READ), (("grant", ADA), ("granted", opaque("grt", 1)))),
        (
            SettingEntry(id=opaque("set", 1), setting="isolated", value=1),
            (("setting", "isolated "), ("set", opaque("set", 1))),
        ),
        (
            SettingEntry(id=opaque("set", 2), setting="isolated", value=1, namespace=PROJECT),
            (("setting", f"isolated {PROJECT}"), ("set", opaque("set", 2))),
        ),
        (KeyEntry(key=KEYS.signer or "", public=bytes(32)), (("key", KEYS.signer or ""),)),
        (GenesisEntry(scope=Scope.STORE, nonce=NONCE, owner=ADA), (("genesis", ""),)),
        (ErasedEntry(namespace=PROJECT, sequence=1, count=1), (("erased", ""),)),
        (PartingEntry(without=(PROJECT,)), (("parting", ""), ("parted", PROJECT))),
    ],
)
def test_an_entry_of_the_store_chain_can_be_found(entry: Entry, lookups: tuple[tuple[str, str], ...]) -> None:
    """By what it is about, and at least by its noun, so that none can vanish unnoticed."""
    content = Content(name="cedar") if getattr(entry, "content", None) is not None else None

    change = projected(entry, content)

    assert change._replace(own=None) == Change(SLOT.position, lookups=lookups, live=content is not None)


def test_an_erased_name_is_found_by_nothing() -> None:
    """Without its content an alias has an empty value."""
    change = projected(AliasEntry(namespace=PROJECT, of=AliasOf.REMOTE, content=SEALED))

    assert (change.lookups, change.live) == ((("alias", "remote "),), True)


def test_the_beginning_of_a_namespace_changes_nothing() -> None:
    """It takes its place, and that is all."""
    assert projected(GenesisEntry(scope=Scope.USER, nonce=NONCE, owner=ADA)) == Change(SLOT.position)


def test_revoking_ends_what_it_names() -> None:
    """The entry of that digest; nothing when there is none."""
    past = Folded()
    revoked = rules.plain(grant(1, Act.READ))
    first = Slot(0, 0, revoked.digest)
    past.apply(project(revoked.entry, None, first, past), first)

    change = projected(RevokeEntry(revokes=revoked.digest), facts=past)
    nothing = projected(RevokeEntry(revokes=b"?" * 32), facts=past)

    assert change == Change(SLOT.position, ended=((0, Ending.REVOKED),), lookups=(("revoke", ""),))
    assert nothing == Change(SLOT.position, lookups=(("revoke", ""),))
    assert past.apply(change, SLOT) == []


def test_settling_what_is_not_there_changes_nothing() -> None:
    """Replay of a damaged chain goes on."""
    entry = CloseEntry(
        memory=opaque("mem", 1), version=2, closes=b"?" * 32, origin=Origin.USER, trust=Trust.USER_EXPLICIT
    )

    assert projected(entry) == Change(SLOT.position)


def test_erasing_what_is_not_there_changes_nothing() -> None:
    """Neither what was never there nor an entry that is no version of a memory."""
    past = Past()
    genesis = rules.plain(GenesisEntry(scope=Scope.USER, nonce=NONCE, owner=ADA))
    past.take(genesis)
    past.take(rules.enter(Draft(text="Cedar."), writing(), past.folded))
    note = past.memories()[0]

    nothing = projected(ErasureEntry(erases=(b"?" * 32, genesis.digest)), facts=past.folded)
    erased = projected(ErasureEntry(erases=(genesis.digest, note.digest)), facts=past.folded)

    assert nothing == Change(SLOT.position)
    assert erased == Change(SLOT.position, ended=((1, Ending.ERASED),), erased=(1,))


def test_a_settled_version_keeps_the_text_of_the_one_it_ends() -> None:
    """Its body is the position whose content holds the text, through any number of acts."""
    past = Past()
    past.take(rules.enter(Draft(text="Water it.", kind=Kind.TASK, key="cedar"), writing(), past.folded))
    task = past.memories()[0]

    closed = past.take(rules.close(task, writing(), "Done."))
    retracted = past.take(rules.retract(past.memories()[0], writing(), None, None))

    assert closed.added is not None
    assert retracted.added is not None
    assert (closed.added.body, retracted.added.body) == (0, 0)
    assert (closed.added.status, retracted.added.status) == (Status.CLOSED, Status.RETRACTED)
    assert (closed.indexed, retracted.indexed) == (True, False)
    assert (closed.live, retracted.live) == (True, False)
    assert retracted.born is Ending.RETRACTED


def test_an_erased_content_leaves_its_place() -> None:
    """Whether the content is there or gone, the record counts as what it committed to; its key goes with it."""
    admitted = rules.enter(Draft(text="Cedar.", key="cedar"), writing(), Folded())

    whole = project(admitted.entry, admitted.content, SLOT, Folded())
    erased = project(admitted.entry, None, SLOT, Folded())

    assert whole.added is not None
    assert erased == whole._replace(added=whole.added._replace(key=None))
    assert (erased.live, erased.indexed) == (True, True)


def test_with_a_text_go_all_that_hold_it() -> None:
    """A task, its close and the retraction of that are erased together, and what rested on the task falls."""
    past = Past()
    past.take(rules.enter(Draft(text="Water the cedar.", kind=Kind.TASK, key="cedar"), writing(), past.folded))
    task = past.memories()[0]
    resting = Draft(text="C.", kind=Kind.SUMMARY, sources=(address(task.memory, 1),))
    past.take(rules.enter(resting, writing(seed=1), past.folded))
    past.take(rules.close(task, writing(), "Done."))
    past.take(rules.enter(Draft(text="Oak."), writing(seed=2), past.folded))
    closed = past.folded.latest(task.memory)
    assert closed is not None

    erased = past.take(rules.plain(ErasureEntry(erases=(closed.digest,))))

    assert erased.ended == ((0, Ending.ERASED), (1, Ending.STALE), (2, Ending.ERASED))
    assert erased.erased == (0, 2)
    assert past.counts == Counts(entries=5, records=4, live=2, current=1, open=0, indexed=2)
    assert [past.folded.known[position].key for position in (0, 2)] == [None, None]


def test_what_is_struck_stands_without_it() -> None:
    """A reason is gone and counted out, the version stands; erased later, it is not counted out again."""
    past = Past()
    past.take(rules.enter(Draft(text="Water the cedar.", kind=Kind.TASK), writing(), past.folded))
    past.take(rules.close(past.memories()[0], writing(), "Done."))
    closed = past.memories()[0]
    assert past.counts.live == 2

    struck = past.take(rules.plain(ErasureEntry(strikes=(closed.digest,))))

    assert struck.struck == (Own(1),)
    assert struck.lookups == (("erasure", ""), ("struck", closed.digest.hex()))
    assert (past.counts.live, past.counts.current) == (1, 1)
    assert past.folded.own(closed.digest) is None
    assert Folded(past.folded).own(closed.digest) is None
    past.take(rules.plain(ErasureEntry(erases=(closed.digest,))))
    assert past.counts.live == 0


@pytest.mark.parametrize(
    "entry",
    [
        NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=SEALED),
        AliasEntry(namespace=opaque("ns", 1), of=AliasOf.PATH, content=SEALED),
        NamespaceEntry(namespace=opaque("ns", 1), scope=Scope.PROJECT, nonce=NONCE, owner=ADA, content=SEALED),
    ],
    ids=lambda entry: str(entry.noun),
)
def test_a_name_that_is_struck_is_found_without_it(entry: NameEntry | AliasEntry | NamespaceEntry) -> None:
    """The rows that said it are those that its entry has once its content is gone; the others stay."""
    change = project(entry, Content(name="cedar"), SLOT, Folded())
    bare = project(entry, None, SLOT, Folded())

    assert change.own is not None
    assert set(change.own.lookups) == set(bare.lookups) - set(change.lookups)
    assert project(GenesisEntry(scope=Scope.STORE, nonce=NONCE), None, SLOT, Folded()).own is None


@pytest.mark.parametrize("ending", [Ending.CONTESTED, Ending.HELD])
def test_what_stood_aside_keeps_its_ending(ending: Ending) -> None:
    """Its retraction is a version without a key, so that the key is never thought to be its own."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar.", key="cedar"), writing(), past.folded))
    if ending is Ending.HELD:
        past.take(rules.retract(past.memories()[0], writing(), None, tombstone("cedar", "Oak.")))
    past.take(rules.enter(Draft(text="Oak.", key="cedar"), writing(Origin.MODEL, 1), past.folded))
    aside = past.memories()[-1]
    assert aside.ending is ending

    retracted = past.take(rules.retract(aside, writing(), None, None))

    assert retracted.ended == ()
    assert retracted.added is not None
    assert (retracted.added.key, retracted.added.ending) == (None, Ending.RETRACTED)
    holder = past.folded.holder("cedar")
    assert holder is not None
    assert holder.memory != aside.memory


def test_what_rests_on_a_task_rests_on_its_text() -> None:
    """Closing it leaves a summary that rests on it; retracting the closed one takes it along."""
    past = Past()
    past.take(rules.enter(Draft(text="Water it.", kind=Kind.TASK), writing(), past.folded))
    task = past.memories()[0]
    source = address(task.memory, 1)
    past.take(rules.enter(Draft(text="W.", kind=Kind.SUMMARY, sources=(source,)), writing(seed=1), past.folded))

    closed = past.take(rules.close(task, writing(), None))
    last = past.folded.latest(task.memory)
    assert last is not None
    retracted = past.take(rules.retract(last, writing(), None, None))

    assert closed.ended == ((0, Ending.CLOSED),)
    assert retracted.ended == ((2, Ending.RETRACTED), (1, Ending.STALE))


@pytest.mark.parametrize("ending", Ending)
def test_only_some_endings_undermine(ending: Ending) -> None:
    """What closes, expires or stands aside leaves the summaries above it; what is wrong or gone does not."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar."), writing(), past.folded))
    ground = past.memories()[0]
    source = address(ground.memory, 1)
    past.take(rules.enter(Draft(text="C.", kind=Kind.SUMMARY, sources=(source,)), writing(seed=1), past.folded))

    fallen = undermined(ground, past.folded, ending)

    falls = ending in {Ending.SUPERSEDED, Ending.RETRACTED, Ending.ERASED, Ending.STALE}
    assert fallen == (((1, Ending.STALE),) if falls else ())


def test_what_falls_on_two_ways_falls_once() -> None:
    """A summary over two summaries of one record is stale for one reason and named once."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar."), writing(), past.folded))
    ground = address(past.memories()[0].memory, 1)
    for seed in (1, 2):
        past.take(rules.enter(Draft(text="C.", kind=Kind.SUMMARY, sources=(ground,)), writing(seed=seed), past.folded))
    both = tuple(address(one.memory, 1) for one in past.memories()[1:])
    past.take(rules.enter(Draft(text="C.", kind=Kind.SUMMARY, sources=both), writing(seed=3), past.folded))

    assert undermined(past.memories()[0], past.folded) == tuple((position, Ending.STALE) for position in (1, 2, 3))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (Content(text="Cedar."), "Cedar."),
        (Content(text="Cedar.", key="k", title="t", tags=("a", "b")), "k\nt\na\nb\nCedar."),
        (Content(name="cedar"), ""),
    ],
)
def test_a_record_is_found_by_more_than_its_text(content: Content, text: str) -> None:
    """By key, title and tags as well; by nothing when it has none."""
    assert searchable(content) == text


@pytest.mark.parametrize("trust", Trust)
@pytest.mark.parametrize("status", Status)
def test_an_obligation_is_open_and_trusted(trust: Trust, status: Status) -> None:
    """An open task at or above the default floor that nothing ended."""
    known = Known(0, 0, b"", opaque("mem", 1), 1, Kind.TASK, status, trust, 5, 0, 0, None)

    assert obligation(known) == (status is Status.OPEN and trust >= Trust.MODEL_INFERRED)
    assert not obligation(known._replace(ending=Ending.CLOSED))
    assert (known.current, known._replace(ending=Ending.STALE).current) == (True, False)
    assert known.open_task == (status is Status.OPEN)


def test_what_is_listed_below_is_listed_by_its_value() -> None:
    """A fold over a base answers for what the base has, and for nothing else of the same noun."""
    below = Folded()
    change = project(NamespaceEntry(namespace=PROJECT, scope=Scope.PROJECT, nonce=NONCE), None, SLOT, below)
    below.apply(change, SLOT)

    assert Folded(below).listed("namespace", PROJECT)
    assert not Folded(below).listed("namespace", opaque("ns", 9))


def test_a_record_adds_a_version_that_says_what_it_commits_to() -> None:
    """Where it stands, what it is, how large, until when; what it rests on, covers and takes the place of."""
    past = Past()
    past.take(rules.enter(Draft(text="The cedar is old.", key="cedar"), writing(), past.folded))
    ground = past.memories()[0]
    draft = Draft(
        text="Cedar.",
        key="tree",
        kind=Kind.SUMMARY,
        sources=(ground.address,),
        covers=(ground.address,),
        expires=7,
    )
    admitted = rules.enter(draft, writing(seed=1), past.folded)
    entry = admitted.entry
    assert isinstance(entry, RecordEntry)

    change = project(entry, admitted.content, SLOT, past.folded)

    assert change == Change(
        SLOT.position,
        added=Known(
            position=SLOT.position,
            sequence=SLOT.sequence,
            digest=SLOT.digest,
            memory=entry.memory,
            version=1,
            kind=Kind.SUMMARY,
            status=Status.ACTIVE,
            trust=Trust.USER_EXPLICIT,
            text_bytes=6,
            body=SLOT.position,
            depth=1,
            key="tree",
            expires=7,
            sealed=True,
            content_bytes=entry.content.bytes,
        ),
        sources=(0,),
        covers=(0,),
        live=True,
        indexed=True,
    )


@pytest.mark.parametrize("close", [True, False])
def test_an_ending_adds_a_version_with_what_it_ends(close: bool) -> None:
    """All of the version before but place, number, status and trust, which its own entry says."""
    past = Past()
    task = Draft(text="Water it.", kind=Kind.TASK, key="cedar", expires=7)
    added = past.take(rules.enter(task, writing(), past.folded)).added
    assert added is not None
    fields: dict[str, Any] = {"memory": added.memory, "version": 2, "origin": Origin.TOOL, "trust": Trust.UNKNOWN}
    entry = (
        CloseEntry(closes=added.digest, content=SEALED, **fields)
        if close
        else RetractEntry(retracts=added.digest, tombstone=b"t" * 32, **fields)
    )

    change = projected(entry, facts=past.folded)

    placed = added._replace(position=SLOT.position, sequence=SLOT.sequence, digest=SLOT.digest, version=2)
    ended = placed._replace(trust=Trust.UNKNOWN, sealed=close, status=Status.CLOSED if close else Status.RETRACTED)
    if close:
        assert change == Change(
            SLOT.position,
            added=ended,
            ended=((0, Ending.CLOSED),),
            live=True,
            indexed=True,
            own=Own(SLOT.position),
        )
    else:
        assert change == Change(
            SLOT.position,
            added=ended._replace(ended_by=SLOT.sequence, ending=Ending.RETRACTED),
            ended=((0, Ending.RETRACTED),),
            born=Ending.RETRACTED,
            lookups=(("tombstone", (b"t" * 32).hex()),),
        )


def test_a_promotion_says_what_may_come_next() -> None:
    """Found by what it names, and asked for by its digest right after it, and no later."""
    folded = Folded()
    promotion = PromotionEntry(source_namespace=opaque("ns", 9), source=b"s" * 32, trust=Trust.MODEL_INFERRED)

    change = projected(promotion)
    folded.apply(change, SLOT)

    assert change == Change(SLOT.position, lookups=(("promotion", (b"s" * 32).hex()),), promoted=Trust.MODEL_INFERRED)
    assert (folded.promoted(SLOT.digest), folded.promoted(b"?" * 32)) == (Trust.MODEL_INFERRED, None)
    folded.apply(Change(6), Slot(6, 4, b"e" * 32))
    assert folded.promoted(SLOT.digest) is None


def test_the_key_in_force_is_the_newest() -> None:
    """That of the base, until one came after it; none before the first."""

    def enrolled(base: Folded | None, key: str) -> Folded:
        folded = Folded(base)
        folded.apply(project(KeyEntry(key=key, public=bytes(32)), None, SLOT, folded), SLOT)
        return folded

    one = enrolled(None, "key_one")

    assert (Folded().key(), one.key(), Folded(one).key()) == (None, "key_one", "key_one")
    assert enrolled(one, "key_two").key() == "key_two"
    assert enrolled(Folded(), "key_two").key() == "key_two"


def test_a_fold_begins_where_its_base_ended() -> None:
    """The boundary of the base, or 0."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar."), writing(), past.folded))

    assert (Folded().boundary, Folded(past.folded).boundary) == (0, 1)


@pytest.mark.parametrize(
    "entry",
    [
        NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=SEALED),
        AliasEntry(namespace=PROJECT, of=AliasOf.PATH, content=SEALED),
        NamespaceEntry(namespace=PROJECT, scope=Scope.PROJECT, nonce=NONCE, owner=ADA, content=SEALED),
        ErasureEntry(erases=(b"e" * 32,), content=SEALED),
    ],
    ids=lambda entry: str(entry.noun),
)
def test_what_has_a_content_of_its_own_is_known_by_its_place(entry: Entry) -> None:
    """In a fold and above it, until it is struck."""
    below = Folded()

    change = project(entry, None, SLOT, below)
    below.apply(change, SLOT)

    assert (change.live, change.own and change.own.position) == (True, SLOT.position)
    assert below.own(SLOT.digest) == Folded(below).own(SLOT.digest) == change.own
    above = Folded(below)
    above.apply(project(ErasureEntry(strikes=(SLOT.digest,)), None, Slot(6, 4, b"e" * 32), above), SLOT)
    assert (above.own(SLOT.digest), below.own(SLOT.digest)) == (None, change.own)


def test_a_version_whose_record_is_not_there_carries_its_text_itself() -> None:
    """Replay of a damaged chain goes on."""
    lost = Known(3, 3, b"d" * 32, opaque("mem", 1), 2, Kind.NOTE, Status.CLOSED, Trust.UNKNOWN, 5, 1, 0, None)

    assert carriers(lost, Folded()) == [lost]


def test_a_key_is_held_by_the_newest_version_of_its_memory() -> None:
    """Though the content that said so was erased, and though an older version is below."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar.", key="tree"), writing(), past.folded))
    newer = rules.enter(Draft(text="Elm.", key="tree"), writing(), past.folded)
    above = Folded(past.folded)

    change = project(newer.entry, None, SLOT, above)
    above.apply(change, SLOT)

    assert change.added is not None
    assert above.holder("tree") == change.added
    assert above.version(0) == past.memories()[0]._replace(ended_by=SLOT.sequence, ending=Ending.SUPERSEDED)


def test_what_rests_below_falls_with_its_ground_above() -> None:
    """A summary of the base rests on a version of the base, until that one ends."""
    past = Past()
    past.take(rules.enter(Draft(text="The cedar is old.", key="tree"), writing(), past.folded))
    source = past.memories()[0].address
    past.take(rules.enter(Draft(text="C.", kind=Kind.SUMMARY, sources=(source,)), writing(seed=1), past.folded))
    above = Folded(past.folded)
    assert [one.position for one in above.resting_on(0)] == [1]

    newer = rules.enter(Draft(text="Elm.", key="tree"), writing(), above)
    above.apply(project(newer.entry, newer.content, SLOT, above), SLOT)

    assert (above.resting_on(0), [one.position for one in past.folded.resting_on(0)]) == ((), [1])


def test_a_value_is_held_by_its_first_rejection() -> None:
    """That of the base, whatever was rejected again above it; else the first above."""
    past = Past()
    digests = []
    for seed in (1, 2):
        past.take(rules.enter(Draft(text="8080"), writing(seed=seed), past.folded))
        past.take(rules.retract(past.memories()[-1], writing(), None, b"t" * 32))
        digests.append(past.taken[-1][0].digest)
    below = Past()
    for admitted, _ in past.taken[:2]:
        below.take(admitted)
    above = Folded(below.folded)
    for admitted, slot in past.taken[2:]:
        above.apply(project(admitted.entry, admitted.content, slot, above), slot)

    assert past.folded.rejected(b"t" * 32) == above.rejected(b"t" * 32) == digests[0]
    assert all(map(above.rejection, digests))
    assert (above.rejected(b"?" * 32), above.rejection(b"?" * 32)) == (None, False)


class Rows(Folded):
    """A past that answers for its versions, and for nothing else."""

    def resting_on(self, position: int) -> tuple[Known, ...]:
        """Nobody."""
        del position
        return ()

    def open_tasks(self) -> tuple[int, int]:
        """None."""
        return 0, 0


@settings(max_examples=60)
@given(past=pasts())
def test_what_the_base_has_learned_can_be_forgotten(past: Past) -> None:
    """Each version, as soon as it is there and whenever it ended: the answers are those of a fold that forgot none."""
    rows = Rows()
    folded = Folded(rows)
    for admitted, slot in past.taken:
        change = project(admitted.entry, admitted.content, slot, folded)
        folded.apply(change, slot)
        rows.apply(change, slot)
        for known in list(folded.known.values()):
            folded.settle(known)
        folded.boundary = slot.position + 1

    assert folded.known == {}
    assert answers(folded, past) == answers(past.folded, past)


def test_what_is_forgotten_is_asked_of_the_base() -> None:
    """A version that the base does not have after all is nowhere; another of the same memory stays known."""
    past = Past()
    for text in ("Cedar.", "Elm."):
        past.take(rules.enter(Draft(text=text, key="tree"), writing(), past.folded))
    first, second = past.folded.known.values()
    other = rules.enter(Draft(text="Oak.", key="shrub"), writing(seed=1), past.folded)
    past.take(other)
    lone = past.folded.known[2]

    folded = past.folded
    folded.settle(first)
    folded.settle(lone)

    assert (folded.position(first.digest), folded.version(0), folded.version_of(first.memory, 1)) == (None, None, None)
    assert (folded.position(second.digest), folded.holder("tree"), folded.latest(second.memory)) == (1, second, second)
    assert (folded.position(lone.digest), folded.holder("shrub"), folded.latest(lone.memory)) == (None, None, None)


def test_what_is_named_together_is_erased_together() -> None:
    """Several memories in one entry, each with all that holds its text."""
    past = Past()
    for seed, text in enumerate(("Cedar.", "Oak.", "Elm.")):
        past.take(rules.enter(Draft(text=text), writing(seed=seed), past.folded))

    erased = past.take(rules.plain(ErasureEntry(erases=tuple(past.folded.known[at].digest for at in (0, 2)))))

    assert erased == Change(3, ended=((0, Ending.ERASED), (2, Ending.ERASED)), erased=(0, 2))


def test_what_stands_aside_is_born_ended() -> None:
    """A contested version says so from its own commit on."""
    past = Past()
    past.take(rules.enter(Draft(text="Cedar.", key="tree"), writing(), past.folded))

    change = past.take(rules.enter(Draft(text="Elm.", key="tree"), writing(Origin.MODEL, 1), past.folded))

    assert change.added is not None
    assert (change.born, change.added.ending, change.added.ended_by) == (Ending.CONTESTED, Ending.CONTESTED, 1)


def test_the_name_of_a_session_is_struck_from_its_owner() -> None:
    """Found by its owner still, and by no name."""
    session = NameEntry(id=opaque("ses", 1), of=NameOf.SESSION, content=SEALED, owner=ADA)

    assert projected(session, Content(name="cedar")).own == Own(SLOT.position, (("name", f"session {ADA} "),))


def test_nothing_is_promoted_at_first() -> None:
    """In a fold of nothing."""
    assert Folded().promoted(b"d" * 32) is None
