"""What a memory of an agent must do over a working life, each as one small story told through the library alone."""

from __future__ import annotations

import pytest

from ledgerstone import (
    Budget,
    CapacityError,
    ConflictError,
    Draft,
    Keyring,
    Kind,
    Memory,
    Mode,
    Policy,
    RuleError,
    Standing,
    StoreError,
    UnavailableError,
    UsageError,
)
from ledgerstone.core import canonical
from ledgerstone.core.recall import lean
from tests.memories import ADA, ELSEWHERE, KEY, SECOND, Scratch
from tests.stores import plain_client

SMALL = Budget(bytes=2400, items=4)
TELESCOPE = "Clean the mirror of the telescope before the next clear night."


def told(memory: Memory, count: int) -> None:
    """Noise: episodes of the weather, each with 320 characters that say nothing."""
    for number in range(count):
        text = f"Weather observation {number}: as ever. " + "mist and drizzle " * 19
        memory.remember(Draft(text=text, kind=Kind.EPISODE))


def found(memory: Memory, query: str, mode: Mode = Mode.BALANCED) -> list[str]:
    """The addresses that a small context holds."""
    return [item.record.address for item in memory.recall(query, mode=mode, budget=SMALL).items]


def test_an_old_fact_and_an_open_task_outlast_much_noise(scratch: Scratch) -> None:
    """Eighty episodes later a context of 2,400 bytes and four items holds both, within its bytes, restarted or not."""
    fact = scratch.memory.remember(Draft(text="The code of the workshop is cedar-582.", kind=Kind.FACT)).record
    task = scratch.memory.remember(Draft(text=TELESCOPE, kind=Kind.TASK)).record
    told(scratch.memory, 80)

    for again in (False, True):
        memory = scratch.reopen() if again else scratch.memory
        context = memory.recall("what is the workshop code", budget=SMALL)
        assert {fact.address, task.address} <= {item.record.address for item in context.items}
        entries = [lean(item.record, item.lane) for item in context.items]
        assert len(canonical.encode(entries)) <= context.bytes <= SMALL.bytes
        assert len(context.items) <= SMALL.items
    scratch.heads()


def test_a_correction_takes_the_summary_of_the_error_along(ada: Memory) -> None:
    """The new text is current, the old version and what summed it up are gone from recall, and history labels both."""
    old = ada.remember(Draft(text="Delivery goes to the depot in Oslo, at gate 14.", key="delivery")).record
    summary = ada.compact("Delivery: Oslo.", [old.address]).record

    new = ada.remember(Draft(text="Delivery goes to the depot in Bergen, at gate 2.", key="delivery")).record

    assert found(ada, "where does the delivery go") == [new.address]
    history = ada.recall("delivery", policy=Policy(history=True)).items
    assert {item.record.address: item.record.standing for item in history} == {
        new.address: Standing.CURRENT,
        old.address: Standing.SUPERSEDED,
        summary.address: Standing.STALE,
    }


def test_a_rebuild_moves_no_head_and_changes_no_record(scratch: Scratch) -> None:
    """Derived rows that are gone are a fault; made anew they say the same as before."""
    old = scratch.memory.remember(Draft(text="The car has the tag QJ-417.", key="tag")).record
    scratch.memory.remember(Draft(text=TELESCOPE, kind=Kind.TASK))
    before, answer = scratch.heads(), scratch.memory.recall("car tag")
    scratch.memory.close()
    with plain_client(scratch.path) as client:
        client.execute("DELETE FROM words; DELETE FROM record; DELETE FROM link")

    scratch.memory = scratch.open()
    assert not scratch.memory.verify().ok
    scratch.memory.rebuild()

    assert scratch.heads() == before
    assert scratch.memory.get(old.address) == old
    assert scratch.memory.recall("car tag") == answer


def test_a_foreign_source_is_refused_and_its_text_never_shown(scratch: Scratch) -> None:
    """One's own source passes; the text of another project is in no answer."""
    foreign = scratch.by(ELSEWHERE).remember("The other project's cedar.").record
    own = scratch.memory.remember("This project's cedar.").record

    with pytest.raises(RuleError, match="no earlier record"):
        scratch.memory.remember(Draft(text="So.", sources=(foreign.address,)))

    assert scratch.memory.remember(Draft(text="So.", sources=(own.address,))).record.sources == (own.address,)
    assert foreign.address not in found(scratch.memory, "cedar")


def test_keys_and_texts_of_any_script_are_recalled(ada: Memory) -> None:
    """Cyrillic key and text, found by a word in another form."""
    note = ada.remember(Draft(text="Книга Софии лежит в синем сундуке.", key="книга.софии")).record
    told(ada, 5)

    assert found(ada, "книги Софии", Mode.LEXICAL) == [note.address]
    assert ada.get(note.address).key == "книга.софии"


def test_words_that_occur_nowhere_find_nothing(ada: Memory) -> None:
    """The lexical mode answers with nothing; one word that occurs, with what has it."""
    note = ada.remember("The car has the tag QJ-417.").record

    assert found(ada, "automobile registration", Mode.LEXICAL) == []
    assert found(ada, "automobile tag", Mode.LEXICAL) == [note.address]


def test_two_who_go_on_from_one_version_are_one_too_many(scratch: Scratch) -> None:
    """The second is refused, only the first one's text exists; reading again it may go on."""
    start = scratch.memory.remember(Draft(text="The plan is A.", key="plan")).record

    with scratch.open() as other:
        other.remember(Draft(text="The plan is B.", replaces=start.address))
        with pytest.raises(ConflictError):
            scratch.memory.remember(Draft(text="The plan is C.", replaces=start.address))
        newest = scratch.memory.get(start.memory)

    assert [version.text for version in scratch.memory.history(start.memory)] == ["The plan is A.", "The plan is B."]
    answer = scratch.memory.remember(Draft(text="The plan is C.", replaces=newest.address))
    assert answer.record.version == newest.version + 1


def test_an_overloaded_context_is_settled_by_maintenance(ada: Memory) -> None:
    """Tasks that do not fit are an error that shows none; named ones are shown alone, and settled they fit again."""
    texts = [f"{TELESCOPE} And turn it {number} times." for number in range(3)]
    tasks = [ada.remember(Draft(text=text, kind=Kind.TASK)).record for text in texts]
    small = Budget(bytes=2400, items=2)
    with pytest.raises(CapacityError) as error:
        ada.recall("telescope", budget=small)
    assert "mirror" not in str(error.value)

    policy = Policy(mode=Mode.TASK_MAINTENANCE, tasks=(tasks[1].address,))
    shown = [item.record.address for item in ada.recall("", policy=policy, budget=small).items]
    ada.retract(tasks[1].address, reason="Twice is enough.")

    assert shown == [tasks[1].address]
    assert found(ada, "telescope") == [tasks[0].address, tasks[2].address]
    assert len(ada.recall("telescope", budget=small).items) == 2


def test_one_large_task_is_settled_the_same_way(ada: Memory) -> None:
    """Too many bytes are named as what they need, and a context large enough shows it."""
    task = ada.remember(Draft(text="Copy the photos. " * 100, kind=Kind.TASK)).record

    with pytest.raises(CapacityError, match="the 1 open tasks need"):
        ada.recall("photos", budget=Budget(bytes=1000, items=2))
    policy = Policy(mode=Mode.TASK_MAINTENANCE, tasks=(task.address,))
    assert [item.record.address for item in ada.recall("", policy=policy).items] == [task.address]
    ada.close_task(task.address)

    assert ada.recall("photos", budget=Budget(bytes=1000, items=2)).items == ()


def test_pages_of_tasks_say_that_there_are_more(ada: Memory) -> None:
    """A full page has a cursor, the last one has none, and together they are all."""
    tasks = {ada.remember(Draft(text=f"Turn it {number} times.", kind=Kind.TASK)).record.address for number in range(5)}

    first = ada.list_records("tasks", limit=3)
    last = ada.list_records("tasks", limit=3, cursor=first.cursor)

    assert first.cursor is not None
    assert last.cursor is None
    assert {record.address for page in (first, last) for record in page.items} == tasks


def test_a_store_is_read_and_never_made_read_only(scratch: Scratch) -> None:
    """It verifies and answers the same, refuses to write, and where there is no file makes none."""
    note = scratch.memory.remember("The car has the tag QJ-417.").record
    path = scratch.path.with_name("none.ledger")

    with Memory.open(scratch.path, keys=Keyring(KEY), caller=ADA, state=None, read_only=True) as reader:
        assert reader.verify().findings == ()
        assert reader.get(note.address).text == note.text
        with pytest.raises(StoreError):
            reader.remember("No.")
    with pytest.raises(UnavailableError):
        Memory.open(path, keys=Keyring(KEY), caller=ADA, state=None, read_only=True)

    assert not path.exists()
    assert scratch.memory.remember("Yes.").record.text == "Yes."


@pytest.mark.parametrize("kind", [Kind.NOTE, Kind.FACT, Kind.EPISODE, Kind.PROSPECTIVE])
def test_a_correction_keeps_the_kind(scratch: Scratch, kind: Kind) -> None:
    """The next text under a key, or in place of a version, is of its kind; another kind is for the writer to say."""
    first = scratch.memory.remember(Draft(text="staging is on mars", kind=kind, key="staging")).record

    by_key = scratch.memory.remember(Draft(text="staging is on venus", key="staging"))
    by_address = scratch.memory.remember(Draft(text="staging is on earth", replaces=by_key.record.address))
    said = scratch.memory.remember(Draft(text="staging moves a lot", kind=Kind.EPISODE, key="staging"))

    assert [one.record.kind for one in (by_key, by_address, said)] == [kind, kind, Kind.EPISODE]
    assert by_key.record.memory == first.memory
    assert not any("name the kind" in notice for one in (by_key, by_address, said) for notice in one.notices)


@pytest.mark.parametrize("kind", [Kind.SUMMARY, Kind.PROCEDURE])
def test_a_kind_that_takes_sources_is_kept_with_them(scratch: Scratch, kind: Kind) -> None:
    """Without sources the next text is a note, and the answer says so; with some it stays what it was."""
    ground = scratch.memory.remember("The mill was sold twice in one year.").record.address
    scratch.memory.remember(Draft(text="Sold.", kind=kind, key="mill", sources=(ground,)))

    with_one = scratch.memory.remember(Draft(text="Sold twice.", key="mill", sources=(ground,)))
    without, repeated = (
        scratch.memory.remember(Draft(text="Sold again.", key="mill"), idempotency_key="again") for _ in range(2)
    )

    notice = f"it is a note, and what it replaces a {kind.value}: name the kind to say which it is"
    assert (with_one.record.kind, notice in with_one.notices) == (kind, False)
    assert (without.record.kind, notice in without.notices) == (Kind.NOTE, True)
    assert (repeated.repeated, repeated.notices) == (True, without.notices)


def test_a_closed_task_is_not_opened_by_a_text(scratch: Scratch) -> None:
    """What comes under its key later is a note, and the answer says so; whoever means a task says task."""
    task = scratch.memory.remember(Draft(text=TELESCOPE, kind=Kind.TASK, key="mirror")).record
    scratch.memory.close_task(task.address)

    later = scratch.memory.remember(Draft(text="The mirror is clean.", key="mirror"))
    again = scratch.memory.remember(Draft(text=TELESCOPE, kind=Kind.TASK, key="mirror"))

    notice = "it is a note, and what it replaces a task: name the kind to say which it is"
    assert (later.record.kind, notice in later.notices) == (Kind.NOTE, True)
    assert (again.record.kind, notice in again.notices) == (Kind.TASK, False)


def test_what_has_expired_already_is_not_written(scratch: Scratch) -> None:
    """No recall would show it; a moment later it would. A write that comes again is answered, whatever the time."""
    brief = Draft(text="The fair is on.", expires=scratch.now + SECOND)
    kept = scratch.memory.remember(brief, idempotency_key="fair").record

    with pytest.raises(UsageError, match="expires: a time to come, not 2026-01-01T12:00:00") as refused:
        scratch.memory.remember(Draft(text="The fair is on.", expires=scratch.now))
    scratch.wait(1)

    assert "valid_until" in refused.value.hint
    assert scratch.memory.remember(brief, idempotency_key="fair").record.address == kept.address
    assert len(scratch.memory.list_records("all").items) == 1
