"""A record comes to a wider scope by an act and a grant of its own, trusted no more, and is erased with its source."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    ConflictError,
    CorruptionError,
    Draft,
    Kind,
    Memory,
    NotFoundError,
    Record,
    Retention,
    RuleError,
    Scope,
    Standing,
    Status,
    Trust,
    UsageError,
    promoting,
    resuming,
)
from ledgerstone.core import rules
from ledgerstone.core.entries import PromotionEntry
from ledgerstone.resuming import UnsettledError
from ledgerstone.store import open_store
from tests.golden import ledger, make
from tests.memories import ADA, ELSEWHERE, MODEL, NOBODY, NOON, SECOND, STRANGER, TOOL, Scratch
from tests.stores import plain_client
from tests.test_verify_format import verify_format

if TYPE_CHECKING:
    from pathlib import Path

LONG = "The cedar by the gate wants water in every dry week of the summer."


@pytest.fixture
def granted(scratch: Scratch) -> Memory:
    """Ada's store, where she may promote to what is hers."""
    scratch.memory.grant("ada", Act.PROMOTE, scope=Scope.USER)
    return scratch.memory


def note(memory: Memory, text: str = LONG, *, key: str | None = None) -> Record:
    """Something in the project."""
    return memory.remember(Draft(text=text, key=key)).record


def told(scratch: Scratch) -> list[tuple[str, str, str]]:
    """What the second verifier finds."""
    store = open_store(scratch.path)
    with closing(store), store.read() as reader:
        rows = list(make.lines(reader))
    found: list[tuple[str, str, str]] = verify_format.verify(ledger.written(rows), scratch.keys.public.values())
    return found


def sound(scratch: Scratch) -> None:
    """Both verifiers accept what is there, all of it and what is new."""
    scratch.heads()
    assert told(scratch) == []


def test_a_promoted_record_says_the_same_elsewhere(scratch: Scratch, granted: Memory) -> None:
    """Everything it said but its sources, as a memory of its own that names what it came from by digest."""
    ground = note(granted)
    draft = Draft(
        text="Water the cedar weekly.",
        kind=Kind.PROCEDURE,
        key="cedar",
        sources=(ground.address,),
        retention=Retention.DURABLE,
        expires=NOON + 900 * SECOND,
        tags=("garden",),
        source="the gardener",
        title="On cedars",
        place="page 3",
        triggers=("dry week",),
        valid_from=NOON,
    )
    source = granted.remember(draft).record

    copy = granted.promote(source.address, scope=Scope.USER).record

    own = {"memory": copy.memory, "address": copy.address, "digest": copy.digest, "namespace": copy.namespace}
    placed = {"scope": Scope.USER, "sequence": copy.sequence, "sources": (), "promoted": source.digest.hex()}
    assert copy == replace(source, **own, **placed)  # type: ignore[arg-type]
    assert copy.memory != source.memory
    assert granted.get(source.address) == source
    assert scratch.by(ELSEWHERE).get(copy.address) == copy
    assert [item.record.address for item in scratch.by(ELSEWHERE).recall("cedar").items] == [copy.address]
    sound(scratch)


def test_promoting_takes_a_grant_of_its_own(scratch: Scratch) -> None:
    """To write there is not enough, nor is a host's word; with the grant it passes."""
    ada = scratch.memory
    source = note(ada)
    ada.remember("Ada's own.", scope=Scope.USER)
    before = scratch.heads()

    for memory in (ada, scratch.by(replace(ADA, acts=frozenset(Act)))):
        with pytest.raises(AuthorityError, match="may not promote in scope user") as refused:
            memory.promote(source.address, scope=Scope.USER)
        assert refused.value.hint.endswith("ledgerstone grants add ada promote --scope user")
    assert scratch.heads() == before

    grant = ada.grant("ada", Act.PROMOTE, scope=Scope.USER)
    copy = ada.promote(source.address, scope=Scope.USER).record
    events = [(event.operation, event.target, event.grant) for event in ada.audit(target=copy.address)]
    assert events == [("promote", copy.address, grant)]
    with pytest.raises(AuthorityError, match="not through this door"):
        scratch.by(replace(ADA, acts=frozenset(Act) - {Act.PROMOTE})).promote(source.address, scope=Scope.USER)


@pytest.mark.parametrize(
    ("teller", "promoter", "trust"),
    [
        (ADA, ADA, Trust.USER_EXPLICIT),
        (MODEL, ADA, Trust.MODEL_INFERRED),
        (ADA, MODEL, Trust.MODEL_INFERRED),
        (TOOL, MODEL, Trust.MODEL_INFERRED),
        (STRANGER, ADA, Trust.UNKNOWN),
    ],
)
def test_a_promotion_raises_no_trust(
    scratch: Scratch, granted: Memory, teller: Caller, promoter: Caller, trust: Trust
) -> None:
    """It has the lowest on the way: that of what it came from, and what its promoter's origin allows."""
    source = note(scratch.by(teller))
    assert granted

    copy = scratch.by(promoter).promote(source.address, scope=Scope.USER).record

    assert copy.trust is trust
    sound(scratch)


def test_a_low_source_lowers_its_promotion(scratch: Scratch, granted: Memory) -> None:
    """What a record rested on counts, though it stays behind."""
    stranger = note(scratch.by(STRANGER))
    source = granted.remember(Draft(text="So they say.", sources=(stranger.address,))).record

    copy = granted.promote(source.address, scope=Scope.USER).record

    assert (copy.origin, copy.trust, copy.sources) == (source.origin, Trust.UNKNOWN, ())
    sound(scratch)


def test_a_promotion_keeps_to_its_key(scratch: Scratch, granted: Memory) -> None:
    """Under a key that is held there it is the next version, or contested where that is trusted more."""
    held = granted.remember(Draft(text="Cedars want no water.", key="cedar"), scope=Scope.USER).record
    low = note(scratch.by(MODEL), key="cedar")
    contested = granted.promote(low.address, scope=Scope.USER)
    high = granted.remember(Draft(text="Cedars want water.", key="cedar")).record

    answer = granted.promote(high.address, scope=Scope.USER)

    assert contested.record.standing is Standing.CONTESTED
    assert answer.record.address == f"{held.memory}@2"
    assert answer.replaced is not None
    assert answer.replaced.text == held.text
    sound(scratch)


def test_a_rejected_value_does_not_come_back_by_promotion(scratch: Scratch, granted: Memory) -> None:
    """Unless the user said it, it is held there."""
    wrong = granted.remember("The port is 8080.", scope=Scope.USER).record
    granted.retract(wrong.address, reason="It never was.", reject=True)
    source = note(scratch.by(MODEL), "the PORT is 8080.")

    copy = granted.promote(source.address, scope=Scope.USER).record

    assert copy.standing is Standing.HELD
    sound(scratch)


def test_what_is_not_to_be_promoted_is_refused(scratch: Scratch, granted: Memory) -> None:
    """A summary, an open task, what has ended or expired, and what is not there; a closed task is promoted."""
    source = note(granted)
    summary = granted.compact("Cedar.", [source.address]).record
    task = granted.remember(Draft(text="Water it.", kind=Kind.TASK)).record
    gone = granted.retract(note(granted, "Wrong.").address, reason="Wrong.").record
    brief = granted.remember(Draft(text="Today only.", expires=scratch.now + SECOND)).record
    scratch.wait(2)
    heads = scratch.heads()

    for record in (summary, task):
        with pytest.raises(RuleError, match="promotion: "):
            granted.promote(record.address, scope=Scope.USER)
    for record in (gone, brief):
        with pytest.raises(ConflictError, match="no longer stands"):
            granted.promote(record.address, scope=Scope.USER)
    for target in (NOBODY, note(scratch.by(ELSEWHERE)).address):
        with pytest.raises(NotFoundError):
            granted.promote(target, scope=Scope.USER)
    with pytest.raises(UsageError, match="where to"):
        granted.promote(source.address)
    assert {name: head for name, head in scratch.heads().items() if name in heads} == heads | {
        next(iter(heads)): scratch.heads()[next(iter(heads))]
    }

    closed = granted.close_task(task.address).record
    copy = granted.promote(closed.address, scope=Scope.USER).record
    assert (copy.kind, copy.status, copy.text) == (Kind.TASK, Status.CLOSED, "Water it.")
    assert copy.promoted == closed.digest.hex()
    sound(scratch)


def test_a_promotion_goes_no_narrower(scratch: Scratch, granted: Memory) -> None:
    """Not into the same namespace, nor from the user into a project; from the project to what is shared it goes."""
    source = note(granted)
    granted.grant("ada", Act.PROMOTE, scope=Scope.PROJECT)
    wide = granted.remember("Ada's own.", scope=Scope.USER).record

    for record in (source, wide):
        with pytest.raises(RuleError, match="promotion: goes to another namespace that is no narrower"):
            granted.promote(record.address, scope=Scope.PROJECT)

    team = granted.share("team")
    granted.grant("ada", Act.PROMOTE, namespace=team)
    assert granted.promote(source.address, namespace=team).record.scope is Scope.SHARED
    sound(scratch)


def test_a_repeated_promotion_gives_the_first_answer(scratch: Scratch, granted: Memory) -> None:
    """Its idempotency key makes it one write; another one under it is a conflict."""
    source, other = note(granted), note(granted, "Another.")

    first, again = (granted.promote(source.address, scope=Scope.USER, idempotency_key="up") for _ in range(2))

    assert (again.record, again.repeated) == (first.record, True)
    with pytest.raises(ConflictError, match="idempotency key"):
        granted.promote(other.address, scope=Scope.USER, idempotency_key="up")
    sound(scratch)


@pytest.mark.parametrize("key", [None, "cedar"])
def test_what_came_already_comes_no_second_time(scratch: Scratch, granted: Memory, key: str | None) -> None:
    """The same version once more is answered with what stands there, and nothing is written; its next one comes."""
    source = note(granted, key=key)
    first = granted.promote(source.address, scope=Scope.USER)
    before = scratch.heads()

    again = granted.promote(source.memory, scope=Scope.USER)

    assert (again.record, again.repeated, again.commit) == (first.record, True, first.commit)
    assert scratch.heads() == before
    other = granted.remember(Draft(text="Cedars want water.", replaces=source.address)).record
    came = granted.promote(other.address, scope=Scope.USER)
    assert (came.repeated, came.record.text) == (False, "Cedars want water.")


def test_what_no_longer_stands_there_comes_again(scratch: Scratch, granted: Memory) -> None:
    """Retracted there, or there with less trust than it would have now, it is promoted as if for the first time."""
    source = note(granted)
    low = scratch.by(MODEL).promote(source.address, scope=Scope.USER).record
    high = granted.promote(source.address, scope=Scope.USER)
    granted.retract(high.record.address, reason="Not there.")

    again = granted.promote(source.address, scope=Scope.USER)

    assert (low.trust, high.record.trust) == (Trust.MODEL_INFERRED, Trust.USER_EXPLICIT)
    assert not high.repeated
    assert not again.repeated
    sound(scratch)


def test_a_copy_names_the_session_that_promoted_it(scratch: Scratch, granted: Memory) -> None:
    """The copy is of the session and the principal that promoted it; where it was said goes along as part of it."""
    told_in = replace(ADA, session="with the doctor")
    source = scratch.by(told_in).remember(Draft(text=LONG, source="chat 12", place="turn 3")).record

    copy = granted.promote(source.address, scope=Scope.USER).record

    assert (source.session, copy.session) == ("with the doctor", "morning")
    assert (copy.source, copy.place) == ("chat 12", "turn 3")


def test_an_erasure_follows_a_promotion(scratch: Scratch, granted: Memory) -> None:
    """Copies, copies of copies and the summaries that cover them go with the source, and are counted."""
    team = granted.share("team")
    granted.grant("ada", Act.PROMOTE, namespace=team)
    source = note(granted)
    copy = granted.promote(source.address, scope=Scope.USER).record
    far = granted.promote(copy.address, namespace=team).record
    above = granted.compact("Cedar.", [far.address]).record
    other = granted.remember("Of no cedar.", scope=Scope.USER).record

    plan = granted.forget(source.address)
    done = granted.forget(source.address, dry_run=False)

    assert plan.copies == done.copies == tuple(sorted((copy.address, far.address)))
    assert set(done.addresses) == {record.address for record in (source, copy, far, above)}
    assert len(done.commits) == 3
    assert done.left == ()
    assert [granted.get(record.address).text for record in (source, copy, far, above, other)] == [
        *[None] * 4,
        "Of no cedar.",
    ]
    sound(scratch)


def test_a_copy_is_erased_alone(scratch: Scratch, granted: Memory) -> None:
    """What it came from stays, and so does what is retracted there: each goes its own way."""
    source, other = note(granted), note(granted, "The elm needs none.")
    copies = [granted.promote(record.address, scope=Scope.USER).record for record in (source, other)]

    granted.forget(copies[0].address, dry_run=False)
    granted.retract(other.address, reason="It does.")

    assert granted.get(source.address).text == LONG
    assert granted.get(copies[1].address).standing is Standing.CURRENT
    assert granted.forget(source.address, dry_run=False).copies == ()
    sound(scratch)


def test_a_copy_that_may_not_be_erased_is_told(granted: Memory) -> None:
    """Without the grant to forget there it stays, and the report says so; with it nothing is left."""
    team = granted.share("team")
    granted.grant("ada", Act.PROMOTE, namespace=team)
    source = note(granted)
    copy = granted.promote(source.address, namespace=team).record
    forget = next(one for one in granted.grants() if (one["act"], one["namespace"]) == ("forget", team))
    granted.revoke(forget["grant"])

    plan = granted.forget(source.address)
    assert plan.left == ("a copy stays that was promoted to where you may not forget",)
    assert plan.copies == ()

    granted.grant("ada", Act.FORGET, namespace=team)
    assert granted.forget(source.address, dry_run=False).copies == (copy.address,)


def test_what_expires_takes_its_copies_along(scratch: Scratch, granted: Memory) -> None:
    """They have its expiry, and whoever erases one by its retention erases them too."""
    source = granted.remember(Draft(text=LONG, retention=Retention.WORKING)).record
    scratch.wait(10)
    copy = granted.promote(source.address, scope=Scope.USER).record

    done = granted.expire(retention=Retention.WORKING, before=NOON + 5 * SECOND, dry_run=False)

    assert done.copies == (copy.address,)
    sound(scratch)


def test_a_promoted_record_is_proven_and_rebuilt(scratch: Scratch, granted: Memory) -> None:
    """A stranger checks it as any other; derived rows are made anew and no head moves."""
    copy = granted.promote(note(granted).address, scope=Scope.USER).record
    before = scratch.heads()

    assert granted.prove(copy.address)
    granted.rebuild()

    assert scratch.heads() == before
    assert granted.get(copy.address) == copy
    assert [record.address for record in granted.records(copy.namespace).pieces] == [copy.address]


def test_an_export_of_one_namespace_brings_its_promotions(scratch: Scratch, granted: Memory, tmp_path: Path) -> None:
    """Where they came from is not there, and nobody can tell: it begins a store, and that verifies."""
    copy = granted.promote(note(granted).address, scope=Scope.USER).record
    lines = list(granted.export(copy.namespace).pieces)
    path = tmp_path / "alone.ledger"

    Memory.import_lines(iter(lines), path, keys=scratch.keys, caller=ADA, clock=lambda: scratch.now)

    with Memory.open(path, keys=scratch.keys, caller=ADA, state=None) as alone:
        assert alone.verify().findings == ()
        assert alone.get(copy.address).promoted == copy.promoted
    assert verify_format.verify([line.decode() for line in lines], scratch.keys.public.values()) == []


FORGED: dict[str, dict[str, Any]] = {
    "another namespace": {"source_namespace": "ns_0000000000000000"},
    "another record": {"source": b"?" * 32},
}


@pytest.mark.parametrize("forgery", FORGED.values(), ids=list(FORGED))
def test_a_forged_promotion_is_found(
    scratch: Scratch, granted: Memory, monkeypatch: pytest.MonkeyPatch, forgery: dict[str, Any]
) -> None:
    """Whoever has the key can write that something came from where it never was; both verifiers say so."""
    source = note(granted)
    granted.promote(source.address, scope=Scope.USER)
    sound(scratch)
    monkeypatch.setattr(promoting, "PromotionEntry", lambda **fields: PromotionEntry(**{**fields, **forgery}))
    monkeypatch.setattr(rules, "check_promotion", lambda *_: None)
    granted.promote(note(granted, "Another.").address, scope=Scope.USER)
    monkeypatch.undo()

    report = granted.verify(full=True)

    assert [finding.code for finding in report.findings] == ["rule"]
    assert "promotion: " in report.findings[0].message
    with pytest.raises(CorruptionError, match="promotion: "):
        granted.rebuild()
    assert [check for check, _, _ in told(scratch)] == ["rule"]


def test_a_promotion_since_a_milestone_is_judged(
    scratch: Scratch, granted: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only what is new is replayed, a forged one is found all the same."""
    granted.promote(note(granted).address, scope=Scope.USER)
    heads = scratch.heads()
    monkeypatch.setattr(promoting, "PromotionEntry", lambda **each: PromotionEntry(**{**each, "source": b"?" * 32}))
    monkeypatch.setattr(rules, "check_promotion", lambda *_: None)
    granted.promote(note(granted).address, scope=Scope.USER)
    monkeypatch.undo()

    store = open_store(scratch.path)
    with closing(store), store.read() as reader, pytest.raises(UnsettledError, match="promotion: "):
        resuming.verify(reader, scratch.keys, heads, random.Random(0).randbytes)


def test_a_promotion_whose_entry_is_gone_is_damage(scratch: Scratch, granted: Memory) -> None:
    """What a record came from is read from the entry right before it, by its digest."""
    copy = granted.promote(note(granted).address, scope=Scope.USER).record
    scratch.memory.close()
    with plain_client(scratch.path) as client:
        client.execute("UPDATE entry SET body = CAST('x' AS BLOB) WHERE instr(body, CAST('\"promotion\",' AS BLOB))")

    scratch.memory = scratch.open()
    with pytest.raises(CorruptionError, match="the promotion of entry 2 is missing"):
        scratch.memory.get(copy.address)
