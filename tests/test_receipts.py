"""Receipts: what one recall chose, signed, kept, shown, cited, and held to history."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ledgerstone import (
    ConflictError,
    CorruptionError,
    Draft,
    Keyring,
    Kind,
    Memory,
    Mode,
    NotFoundError,
    Origin,
    Policy,
    Recall,
    Scope,
    SigningKey,
    StoreError,
    Trust,
)
from ledgerstone import receipts as kept
from ledgerstone.core import receipts
from ledgerstone.core.entries import decode_header
from ledgerstone.core.signing import key_id
from ledgerstone.following import enrolled
from ledgerstone.resuming import SAMPLE
from tests.memories import ADA, EVENING, KEY, NOON, SECOND, Scratch
from tests.stores import open_memory, plain_client

if TYPE_CHECKING:
    from pathlib import Path


def furnished(ada: Memory) -> None:
    """Some memories, and one of them stands no longer."""
    ada.remember_many(
        [Draft(text="The cedar is wet.", key="cedar"), "An oak.", Draft(text="Water it.", kind=Kind.TASK)]
    )
    ada.remember(Draft(text="The cedar is dry.", key="cedar"))


def _opened(scratch: Scratch, *, check: bool = True, read_only: bool = False) -> Memory:
    """The store once more, otherwise than usual."""
    return Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=None, check=check, read_only=read_only)


def test_a_receipt_says_what_was_chosen_and_why(ada: Memory) -> None:
    """The query, each record with lane, rank, score and standing, the heads, and how many were left out."""
    furnished(ada)

    context = ada.recall("wet cedar", receipt=True)
    explained = ada.explain(context.receipt or "")

    assert explained.query == "wet cedar"
    assert [(address, lane, rank, score) for address, lane, rank, score, _, _ in explained.items] == [
        (item.record.address, item.lane.value, item.rank, item.score) for item in context.items
    ]
    assert {item.standing for item in explained.items} == {"current"}
    assert {one.namespace: (one.sequence, one.id) for one in explained.receipt.heads} == context.heads
    assert {one.reason: one.count for one in explained.receipt.left_out} == context.omitted
    assert explained.receipt.bytes == context.bytes
    assert [one.id for one in ada.receipts()] == [context.receipt]


def test_no_receipt_is_kept_unless_it_is_asked_for(ada: Memory) -> None:
    """A recall alone writes nothing."""
    furnished(ada)

    context = ada.recall("cedar")

    assert context.receipt is None
    assert ada.receipts() == ()


def test_a_stranger_checks_a_receipt_by_the_public_key(scratch: Scratch) -> None:
    """Its bytes, id and signature; with one of them altered it says which."""
    furnished(scratch.memory)
    explained = scratch.memory.explain(scratch.memory.recall("cedar", receipt=True).receipt or "")
    keys = Keyring(pins=(explained.public or b"",))
    drawn = receipts.Drawn(explained.id, explained.data, explained.signature, b"", b"")
    forged = explained.data.replace(b'"mode":"balanced"', b'"mode":"lexical"')

    assert receipts.check(drawn, keys) == (explained.receipt, None)
    assert receipts.check(drawn._replace(data=forged), keys)[1] == "its id is not that of its bytes"
    assert "no trusted key signed it" in str(receipts.check(drawn._replace(signature=bytes(64)), keys)[1])
    assert receipts.check(drawn._replace(data=b"{}"), keys)[1] == "receipt: not a format 1 object"


def test_another_principal_sees_no_receipt(scratch: Scratch) -> None:
    """Absent and not theirs are one refusal, for explaining, citing and taking out."""
    furnished(scratch.memory)
    name = scratch.memory.recall("cedar", receipt=True).receipt or ""
    stranger = scratch.memory.bind(replace(ADA, principal="eve"))

    for act in (stranger.explain, lambda one: stranger.drop_receipts([one])):
        with pytest.raises(NotFoundError) as theirs:
            act(name)
        with pytest.raises(NotFoundError) as absent:
            act("rcp_0000000000000000")
        assert theirs.value.message.replace(name, "") == absent.value.message.replace("rcp_0000000000000000", "")
    assert stranger.receipts() == ()
    assert scratch.memory.explain(name).id == name


def test_a_write_may_cite_the_receipt_it_was_made_under(ada: Memory) -> None:
    """Its commit carries the receipt's hash; one that is not there is refused, and nothing is written."""
    furnished(ada)
    explained = ada.explain(ada.recall("cedar", receipt=True).receipt or "")

    answer = ada.remember("So the cedar needs no water.", receipt=explained.id)
    with pytest.raises(NotFoundError, match="no receipt"):
        ada.remember("Nothing of this.", receipt="rcp_0000000000000000")

    with ada._ledger.store.read() as reader:
        row = reader.chain(answer.record.namespace)
        assert row is not None
        header = decode_header(reader.header(row.number, answer.sequence) or b"")
    assert header.receipt == receipts.digest_of(explained.data)
    assert not ada.recall("Nothing of this.", mode=Mode.LEXICAL).items


def _named(memory: Memory, query: str = "cedar") -> str:
    """The receipt of a recall."""
    return memory.recall(query, receipt=True).receipt or ""


@pytest.mark.parametrize("how", ["replaced", "retracted", "closed", "erased"])
def test_a_write_under_a_context_that_no_longer_stands_is_a_conflict(scratch: Scratch, how: str) -> None:
    """Whatever ended a record that it chose; nothing is written. Under a new recall the same write is taken."""
    memory = scratch.memory
    furnished(memory)
    stale = _named(memory)
    chosen = {item.record.text: item.record for item in memory.recall("cedar").items}
    if how == "replaced":
        memory.remember(Draft(text="The cedar is gone.", key="cedar"))
    elif how == "retracted":
        memory.retract(chosen["The cedar is dry."].memory, reason="nobody looked")
    elif how == "closed":
        memory.close_task(chosen["Water it."].memory)
    else:
        memory.forget(chosen["The cedar is dry."].memory, dry_run=False)

    with pytest.raises(ConflictError, match="which the receipt rests on, is") as refusal:
        memory.remember("So the cedar needs no water.", receipt=stale)

    assert refusal.value.hint.startswith("recall again")
    assert "So the cedar needs no water." not in {one.text for one in memory.list_records().items}
    memory.remember("So the cedar needs no water.", receipt=_named(memory))
    assert memory.verify(full=True).ok


@pytest.mark.parametrize("column", ["body", "signature", "query", "salt"])
def test_no_altered_receipt_is_cited(scratch: Scratch, column: str) -> None:
    """What explain refuses no write rests on, and nothing is written; under the row as it was the same is taken."""
    furnished(scratch.memory)
    name = _named(scratch.memory)
    connection = plain_client(scratch.path)
    ((before,),) = connection.execute(f"SELECT {column} FROM receipt")  # noqa: S608
    altered = before.replace(b'"sequence":', b'"sequence":1') if column == "body" else before[1:]

    connection.execute(f"UPDATE receipt SET {column} = ?", (altered,))  # noqa: S608
    with pytest.raises(CorruptionError, match=name):
        scratch.memory.remember("So the cedar needs no water.", receipt=name)

    assert "So the cedar needs no water." not in {one.text for one in scratch.memory.list_records().items}
    connection.execute(f"UPDATE receipt SET {column} = ?", (before,))  # noqa: S608
    connection.close()
    assert scratch.memory.remember("So the cedar needs no water.", receipt=name).record.version == 1


def test_what_a_context_did_not_choose_is_no_conflict(ada: Memory) -> None:
    """Other records come and go, and what is new contradicts nothing that was chosen."""
    furnished(ada)
    name = ada.recall("cedar", mode=Mode.LEXICAL, receipt=True).receipt
    ada.remember("Another oak.")
    ada.retract(ada.recall("oak", mode=Mode.LEXICAL).items[0].record.memory, reason="felled")

    assert ada.remember("So the cedar needs no water.", receipt=name).record.version == 1


def test_an_agent_goes_on_under_its_own_context(ada: Memory) -> None:
    """What it ended citing the receipt is no conflict for its next write; what another made of that then is.

    A retry of what went well gets its answer all the same.
    """
    furnished(ada)
    name = _named(ada)
    chosen = {item.record.text: item.record for item in ada.recall("cedar").items}

    ada.close_task(chosen["Water it."].memory, receipt=name)
    first = ada.remember(Draft(text="The cedar is gone.", key="cedar"), receipt=name, idempotency_key="once")
    ada.retract(chosen["An oak."].memory, reason="it went too", receipt=name)
    ada.remember("Nothing is left to water.", receipt=name)
    ada.remember(Draft(text="The cedar is back.", key="cedar"))

    again = ada.remember(Draft(text="The cedar is gone.", key="cedar"), receipt=name, idempotency_key="once")
    assert (again.repeated, again.record.address) == (True, first.record.address)
    with pytest.raises(ConflictError):
        ada.remember("It grows.", receipt=name)


def test_what_ran_out_by_the_clock_is_no_conflict(scratch: Scratch) -> None:
    """Before it is erased for that, and after."""
    memory = scratch.memory
    memory.remember(Draft(text="The cedar is in bloom.", expires=scratch.now + 5 * SECOND))
    name = _named(memory)
    scratch.wait(10)

    memory.remember("It was.", receipt=name)
    memory.expire(dry_run=False)

    assert memory.remember("It was, I say.", receipt=name).record.version == 1


def test_a_receipt_of_the_past_holds_nothing_up(scratch: Scratch) -> None:
    """Whoever asked how it stood knows that it no longer does; of history that which had not ended is held to."""
    memory = scratch.memory
    furnished(memory)
    then = scratch.now
    scratch.wait(10)
    past = memory.recall("cedar", policy=Policy(as_of=then), receipt=True).receipt
    history = memory.recall("cedar", policy=Policy(mode=Mode.LEXICAL, history=True), receipt=True).receipt
    memory.remember("It was wet once.", receipt=history)
    memory.remember(Draft(text="The cedar is gone.", key="cedar"))

    assert memory.remember("It was dry once.", receipt=past).record.version == 1
    with pytest.raises(ConflictError):
        memory.remember("It was wet once.", receipt=history)


def test_verify_holds_receipts_to_history(scratch: Scratch) -> None:
    """Sound ones are passed over; each edit of one is a finding of its own."""
    furnished(scratch.memory)
    scratch.memory.recall("cedar", receipt=True)
    sound = scratch.memory.verify(full=True)
    scratch.memory.close()
    connection = plain_client(scratch.path)
    connection.execute("UPDATE receipt SET query = CAST(replace(query, 'cedar', 'maple') AS BLOB)")
    connection.close()

    with _opened(scratch, check=False) as memory:
        found = memory.verify(full=True).findings

    assert sound.ok
    assert [(one.code, one.message.partition(": ")[2]) for one in found] == [("receipt", "its query was altered")]


def test_a_damaged_receipt_hides_no_other_fault(scratch: Scratch) -> None:
    """A salt that is too short is a finding as another query is, and what else is wrong is named beside it."""
    furnished(scratch.memory)
    name = _named(scratch.memory)
    scratch.memory.close()
    connection = plain_client(scratch.path)
    connection.execute("UPDATE receipt SET salt = substr(salt, 2)")
    connection.execute("UPDATE header SET id = zeroblob(32) WHERE row = (SELECT max(row) FROM header)")
    connection.close()

    with _opened(scratch, check=False) as memory:
        found = memory.verify(full=True).findings

    assert {one.code for one in found} == {"chain", "receipt"}
    assert [one.message for one in found if one.code == "receipt"] == [f"receipt {name}: its query was altered"]


def test_receipts_are_taken_out_with_their_queries(scratch: Scratch) -> None:
    """By name or all of them; nothing of a query stays in the file."""
    memory = scratch.memory
    furnished(memory)
    names = [memory.recall(f"quetzal {n} cedar", receipt=True).receipt or "" for n in range(3)]

    assert memory.drop_receipts(names[:1]) == 1
    left = [one.id for one in memory.receipts()]
    assert memory.drop_receipts() == 2

    assert left == names[:0:-1]
    assert memory.receipts() == ()
    assert memory.verify(full=True).ok


def test_what_is_forgotten_leaves_the_queries_too(scratch: Scratch) -> None:
    """Those of receipts which chose it or name it, in any case; another's stays, and all receipts hold."""
    memory = scratch.memory
    record = memory.remember("The quetzal nests in the old cedar.").record
    memory.remember("An oak.")
    named = memory.recall("The quetzal nests in the old cedar.", mode=Mode.LEXICAL, receipt=True).receipt or ""
    facts = Policy(kinds=(Kind.FACT,))
    cased = memory.recall("the QUETZAL nests, in the old cedar", policy=facts, receipt=True).receipt or ""
    chose = memory.recall("which bird is it", mode=Mode.RECENT, receipt=True).receipt or ""
    other = memory.recall("oak", mode=Mode.LEXICAL, receipt=True).receipt or ""

    memory.forget(record.address, dry_run=False)

    assert [memory.explain(name).query for name in (named, cased, chose, other)] == [None, None, None, "oak"]
    assert memory.verify(full=True).ok


def test_a_receipt_of_history_may_name_what_no_longer_stands(ada: Memory) -> None:
    """Where a receipt of the present would be a finding."""
    furnished(ada)

    ada.recall("cedar", policy=Policy(mode=Mode.LEXICAL, history=True), receipt=True)

    assert ada.verify(full=True).ok


@pytest.mark.parametrize(
    "policy",
    [
        Policy(kinds=(Kind.NOTE,)),
        Policy(origins=(Origin.USER,), scopes=(Scope.PROJECT,)),
        Policy(since=NOON - SECOND, until=NOON + SECOND),
        Policy(as_of=NOON + SECOND),
    ],
)
def test_verify_holds_what_was_chosen_to_what_was_asked_for(scratch: Scratch, policy: Policy) -> None:
    """A receipt that names other limits than its recall had is a finding; the one of the recall itself is none."""
    memory = scratch.memory
    furnished(memory)
    scratch.wait(2000)
    context = memory.recall("oak", policy=policy)
    tighter = Policy(
        kinds=(Kind.FACT,) if policy.kinds else (),
        origins=(Origin.TOOL,) if policy.origins else (),
        scopes=(Scope.SESSION,) if policy.scopes else (),
        since=None if policy.since is None else NOON + SECOND,
        as_of=None if policy.as_of is None else NOON - SECOND,
    )

    honest = _sign(scratch, context, scratch.now, policy)
    sound = memory.verify(full=True)
    forged = _sign(scratch, context, scratch.now, tighter)
    found = memory.verify(full=True).findings

    assert context.items
    assert honest != forged
    assert sound.ok
    assert [(one.code, forged in one.message) for one in found] == [("receipt", True)]


def test_a_store_without_a_key_gives_no_receipt(scratch: Scratch) -> None:
    """It cannot be signed, and the recall says so rather than leave it out."""
    furnished(scratch.memory)
    scratch.memory.close()

    with _opened(scratch, read_only=True) as memory:
        assert memory.recall("cedar").items
        with pytest.raises(StoreError, match="read-only"):
            memory.recall("cedar", receipt=True)


def test_the_oldest_receipts_go(ada: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the stated number are kept."""
    furnished(ada)
    monkeypatch.setattr("ledgerstone.receipts.MAX_RECEIPTS", 2)

    names = [ada.recall("cedar", receipt=True).receipt for _ in range(3)]

    assert [one.id for one in ada.receipts()] == names[:0:-1]


def test_the_evening_session_sees_its_own_principals_receipts(scratch: Scratch) -> None:
    """A receipt belongs to a principal, not to a session."""
    furnished(scratch.memory)
    name = scratch.memory.recall("cedar", receipt=True).receipt

    assert [one.id for one in scratch.memory.bind(replace(EVENING, principal=ADA.principal)).receipts()] == [name]


def test_a_row_that_is_no_receipt_stands_in_nobodys_way(scratch: Scratch) -> None:
    """What is forgotten goes all the same, and the row with it where it is taken out; then the store is sound again."""
    furnished(scratch.memory)
    record = scratch.memory.remember("The quetzal nests in the old cedar.").record
    scratch.memory.recall("quetzal", receipt=True)
    sound = scratch.memory.recall("oak", receipt=True).receipt
    scratch.memory.close()
    connection = plain_client(scratch.path)
    connection.execute("UPDATE receipt SET body = x'ff00' WHERE row = (SELECT min(row) FROM receipt)")
    connection.close()

    with _opened(scratch, check=False) as memory:
        found = memory.verify(full=True).findings
        assert [one.id for one in memory.receipts()] == [sound]
        assert memory.forget(record.address, dry_run=False).left == ()
        assert memory.drop_receipts() == 2
        assert memory.verify(full=True).ok

    assert [one.code for one in found] == ["receipt"]
    assert b"quetzal" not in scratch.path.read_bytes()


@pytest.mark.parametrize(("column", "value"), [("query", b"\xff"), ("query", b"[1]"), ("signature", b"")])
def test_no_altered_receipt_is_listed(scratch: Scratch, column: str, value: bytes) -> None:
    """As none is explained; taken out, it is gone."""
    furnished(scratch.memory)
    name = scratch.memory.recall("cedar", receipt=True).receipt or ""
    scratch.memory.close()
    connection = plain_client(scratch.path)
    connection.execute(f"UPDATE receipt SET {column} = ?", (value,))  # noqa: S608 - a column of ours
    connection.close()

    with _opened(scratch, check=False) as memory:
        for act in (memory.receipts, lambda: memory.explain(name)):
            with pytest.raises(CorruptionError, match=name):
                act()
        assert memory.drop_receipts() == 1
        assert memory.receipts() == ()


def test_receipts_hold_after_the_key_that_signed_them_was_retired(scratch: Scratch) -> None:
    """They are explained and listed as before, by the public key that signed them."""
    furnished(scratch.memory)
    name = scratch.memory.recall("cedar", receipt=True).receipt or ""
    before = scratch.memory.explain(name)

    scratch.memory.rotate(SigningKey(seed=b"another seed of thirty-two bytes", secret=KEY.secret))

    assert scratch.memory.explain(name) == before
    assert [one.id for one in scratch.memory.receipts()] == [name]


NEW_KEY: Final = SigningKey(seed=b"another seed of thirty-two bytes", secret=KEY.secret)


def _sign(scratch: Scratch, context: Recall, at: int, policy: Policy | None = None) -> str:
    """Keep a receipt that whoever holds the first key made by himself, with all that it takes."""
    drawn = receipts.draw(
        context,
        policy or Policy(),
        at=at,
        principal=_principal(scratch),
        floor=Trust.UNKNOWN,
        salt=bytes(32),
        keyring=KEYS,
    )
    with scratch.memory._ledger.store.write() as writer:
        writer.keep_receipt(drawn, receipts.MAX_RECEIPTS)
    return drawn.id


def _principal(scratch: Scratch) -> str | None:
    with scratch.memory._ledger.reads(ADA) as (_, identity):
        return identity.principal


KEYS: Final = Keyring(KEY)


def test_a_retired_key_signs_no_more_receipts(scratch: Scratch) -> None:
    """One that saw what was written since the rotation is a finding and not explained, whatever its date.

    One that it signed before holds, also under a clock that was ahead.
    """
    memory = scratch.memory
    furnished(memory)
    before = memory.recall("cedar")
    scratch.wait(10)
    memory.rotate(NEW_KEY)
    retired = scratch.now
    scratch.wait(10)
    memory.remember("A larch.")
    after = memory.recall("larch")

    held = _sign(scratch, before, scratch.now + SECOND)
    forged = _sign(scratch, after, retired - SECOND)

    assert memory.explain(held).id == held
    assert [(one.code, forged in one.message) for one in memory.verify().findings] == [("receipt", True)]
    for act in (lambda: memory.explain(forged), memory.receipts):
        with pytest.raises(CorruptionError, match="after its key was retired"):
            act()
    memory.drop_receipts([forged])
    assert memory.verify().ok


def test_a_receipt_is_signed_by_the_key_in_force_when_it_is_kept(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was in force when the recall began; so the receipt holds."""
    memory = scratch.memory
    furnished(memory)
    keep = kept.keep

    def rotated(*arguments: Any, worded: bool) -> Recall:
        scratch.wait(1)
        memory.rotate(NEW_KEY)
        return keep(*arguments, worded=worded)

    monkeypatch.setattr(kept, "keep", rotated)
    name = memory.recall("cedar", receipt=True).receipt or ""

    assert memory.explain(name).receipt.signer == key_id(NEW_KEY.public)
    assert memory.verify().ok


def _checked(scratch: Scratch, since: str | None, *, seed: int = 0) -> kept.Checked:
    with scratch.memory._ledger.store.read() as reader:
        keys = kept.keys(scratch.keys, enrolled(reader))
        return kept.check(reader, keys, since, random.Random(seed).randbytes)


@pytest.fixture
def stocked(scratch: Scratch) -> list[str]:
    """The receipts of a store that has some more of them than are drawn, oldest first."""
    furnished(scratch.memory)
    return [scratch.memory.recall(f"cedar {number}", receipt=True).receipt or "" for number in range(SAMPLE + 8)]


def _spoil(scratch: Scratch, name: str) -> None:
    with scratch.memory._ledger.store.write():
        scratch.memory._ledger.store._connection.execute(  # type: ignore[attr-defined]
            "UPDATE receipt SET signature = zeroblob(64) WHERE id = ?", (name,)
        )


def test_new_receipts_are_all_checked_and_of_the_older_ones_a_sample(scratch: Scratch, stocked: list[str]) -> None:
    """What is wrong with a new one is always found, with an older one when it is drawn; without a point, always."""
    newest, old, point = stocked[-1], stocked[3], stocked[-3]
    _spoil(scratch, newest)
    _spoil(scratch, old)

    found = [_checked(scratch, point, seed=seed) for seed in range(40)]
    whole = _checked(scratch, None)

    assert {(one.kept, one.checked, one.newest) for one in found} == {(len(stocked), SAMPLE + 2, newest)}
    assert all(newest in one.findings[-1].message for one in found)
    assert {len(one.findings) for one in found} == {1, 2}
    assert (len(whole.findings), whole.checked) == (2, len(stocked))


def test_all_receipts_are_checked_when_the_last_point_is_gone(scratch: Scratch, stocked: list[str]) -> None:
    """Taken out, it says nothing any more; what there are few of is checked whole."""
    point = stocked[-3]
    assert _checked(scratch, point).checked == SAMPLE + 2
    scratch.memory.drop_receipts([point])

    assert _checked(scratch, point).checked == len(stocked) - 1
    scratch.memory.drop_receipts(stocked[:8])
    assert _checked(scratch, stocked[-1]).checked == len(stocked) - 9


def test_verify_goes_on_from_the_receipts_that_it_checked(tmp_path: Path) -> None:
    """The first run checks all, the next one a sample of those and what is new; in full, all again. It says so."""

    def checked(*, full: bool = False) -> tuple[int, int]:
        found = memory.verify(full=full)
        assert found.ok
        return found.receipts, found.receipts_checked

    with open_memory(tmp_path / "store.db", state=tmp_path / "state") as memory:
        memory.remember("The cedar is wet.", scope=Scope.USER)
        for _ in range(SAMPLE + 8):
            memory.recall("cedar", receipt=True)

        first, second = checked(), checked()
        memory.recall("cedar", receipt=True)
        third, whole = checked(), checked(full=True)

    every = SAMPLE + 8
    assert (first, second) == ((every, every), (every, SAMPLE))
    assert (third, whole) == ((every + 1, SAMPLE + 1), (every + 1, every + 1))


def test_receipts_that_others_may_have_touched_are_all_checked_by_the_next_verification(tmp_path: Path) -> None:
    """A read that finds the rest of an edited store sound has not looked at them, and says so to nobody as done."""
    path, state = tmp_path / "store.db", tmp_path / "state"
    with open_memory(path, state=state) as memory:
        memory.remember("The cedar is wet.", scope=Scope.USER)
        for _ in range(SAMPLE + 8):
            memory.recall("cedar", receipt=True)
        assert memory.verify().ok
    connection = plain_client(path)
    connection.execute("UPDATE receipt SET signature = zeroblob(64) WHERE row = 5")
    connection.close()

    with open_memory(path, create=False, state=state) as memory:
        assert memory.list_records().items
        found = memory.verify()

    assert (found.since is not None, found.receipts_checked) == (True, SAMPLE + 8)
    assert [one.code for one in found.findings] == ["receipt"]
