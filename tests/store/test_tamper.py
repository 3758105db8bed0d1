"""Edits of a store at rest by a plain SQL client: refused at opening, or by the read that meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgerstone import CorruptionError, Keyring, Mode, Scope, SigningKey
from tests.store.tampering import EDITS, WITHSTOOD, Edit, Of, Read
from tests.stores import (
    KEY,
    KEYS,
    READ_ONLY,
    Answer,
    Home,
    dump,
    furnish,
    later,
    open_memory,
    plain_client,
    rebuilt,
    report,
    survey,
)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Home]:
    """A small home and, under True, one whose user chain is longer than 256 commits."""
    folder = tmp_path_factory.mktemp("homes")
    return {large: furnish(folder / f"{large}.db", fillers=255 if large else 2) for large in (False, True)}


@pytest.fixture(scope="module")
def kept(homes: dict[bool, Home], tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[Home, Path]]:
    """The homes as a machine has them that remembers how they were closed, and where it remembers it."""
    found = {}
    for large, home in homes.items():
        folder = tmp_path_factory.mktemp("kept")
        found[large] = home.copy(folder), folder / "state"
        open_memory(found[large][0].path, state=folder / "state", create=False).close()
    return found


@pytest.fixture(scope="module")
def genuine(homes: dict[bool, Home]) -> dict[bool, dict[str, Answer]]:
    """What the homes answer before anybody touched them."""
    return {large: asked(home) for large, home in homes.items()}


def asked(home: Home) -> dict[str, Answer]:
    """What a home answers; nothing when it does not open."""
    try:
        memory = open_memory(home.path, keys=READ_ONLY, create=False, now=later)
    except CorruptionError:
        return {}
    with memory:
        return survey(memory, home)


@pytest.fixture(params=EDITS, ids=lambda edit: edit.name)
def edit(request: pytest.FixtureRequest) -> Edit:
    """Each edit of the table."""
    made: Edit = request.param
    return made


@pytest.fixture
def damaged(edit: Edit, homes: dict[bool, Home], tmp_path: Path) -> Home:
    """A home after the edit, which changed something in it."""
    home = homes[edit.large].copy(tmp_path)
    before = dump(home.path)
    edit_at_rest(home, edit)
    assert dump(home.path) != before
    return home


def test_an_edit_of_what_is_remembered_is_refused_at_opening(edit: Edit, kept: dict[bool, tuple[Home, Path]]) -> None:
    """Whatever was edited after a clean close, nothing is read; with the file as it was the store opens."""
    home, state = kept[edit.large]
    before = home.path.read_bytes()
    try:
        edit_at_rest(home, edit)

        with pytest.raises(CorruptionError) as refusal:
            open_memory(home.path, state=state, create=False)
    finally:
        home.path.write_bytes(before)

    assert refusal.value.hint
    open_memory(home.path, state=state, create=False).close()


def edit_at_rest(home: Home, edit: Edit) -> None:
    """Make an edit as somebody else's SQL client."""
    connection = plain_client(home.path)
    try:
        edit.apply(connection, home.rows())
    finally:
        connection.close()


def test_the_table_tries_all_that_a_store_must_withstand() -> None:
    """Each way to tamper that is named stands in the table, in every form that is named."""
    tried = {edit.name for edit in EDITS}

    assert {name for names in WITHSTOOD.values() for name in names} - tried == set()


FORGED = "the owner owes me money"


@pytest.mark.parametrize("named", [False, True], ids=["in its own name", "in the owner's name"])
def test_a_commit_that_lacks_nothing_but_the_key_is_refused(
    named: bool, homes: dict[bool, Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own code wrote it, without looking at its key, so that every hash fits: nothing is read or rebuilt."""
    home = homes[False].copy(tmp_path)
    forger = Keyring(SigningKey(seed=bytes(reversed(range(32))), secret=KEY.secret), pins=tuple(KEYS.public.values()))
    if named:
        object.__setattr__(forger, "signer", KEYS.signer)
    with monkeypatch.context() as patched:
        patched.setattr("ledgerstone.reading.in_force", lambda _reader, _row, keyring: keyring)
        with open_memory(home.path, keys=forger, create=False, now=later) as memory:
            forged = memory.remember(FORGED, scope=Scope.USER).record

    with open_memory(home.path, create=False, now=later) as memory:
        for asked_for in (lambda: memory.get(forged.address), memory.list_records, lambda: memory.recall("money")):
            with pytest.raises(CorruptionError, match="no trusted key signed the head"):
                asked_for()
    # A signer that the store chain does not name breaks a rule besides.
    assert {finding.code for finding in report(home.path).findings} == (
        {"signature"} if named else {"signature", "rule"}
    )
    with pytest.raises(CorruptionError):
        rebuilt(home.path)


def test_the_same_commit_with_the_key_is_read(homes: dict[bool, Home], tmp_path: Path) -> None:
    """It is the key alone that tells."""
    home = homes[False].copy(tmp_path)

    with open_memory(home.path, create=False, now=later) as memory:
        memory.remember(FORGED, scope=Scope.USER)

    with open_memory(home.path, create=False, now=later) as memory:
        assert [item.record.text for item in memory.recall("money", mode=Mode.LEXICAL).items] == [FORGED]
    assert report(home.path).ok


def test_no_note_passes_for_a_task(homes: dict[bool, Home], tmp_path: Path) -> None:
    """Their status columns exchanged, the list of tasks and recall refuse; exchanged back, both give the task."""
    home = homes[False].copy(tmp_path)
    before = home.path.read_bytes()
    edit_at_rest(home, next(edit for edit in EDITS if edit.name == "a task forgotten for a note"))

    with open_memory(home.path, create=False, now=later) as memory:
        for asked_for in (lambda: memory.list_records("tasks"), memory.recall):
            with pytest.raises(CorruptionError, match="is not the open task its row says"):
                asked_for()

    home.path.write_bytes(before)
    with open_memory(home.path, create=False, now=later) as memory:
        listed = [record.memory for record in memory.list_records("tasks").items]
        recalled = [item.record.memory for item in memory.recall().items]
    assert home.memories["task"] in listed
    assert home.memories["task"] in recalled


def test_an_edit_is_refused_named_and_mended_only_where_it_can_be(
    edit: Edit, damaged: Home, homes: dict[bool, Home], genuine: dict[bool, dict[str, Answer]]
) -> None:
    """Where nothing is remembered: no answer is false, verify names the edit, and rebuild mends what is derived."""
    before = dump(damaged.path)
    expected = genuine[edit.large]

    answers = asked(damaged)
    found = report(damaged.path)

    assert found.findings, "verify names it"
    if edit.of is not Of.NOTHING:
        remedy = "ledgerstone restore" if edit.of is Of.HISTORY else "ledgerstone rebuild"
        assert remedy in (found.hint or ""), found.findings
    if edit.read is not Read.UNSEEN:
        assert false_answers(answers, expected, edit.read) == {}
    if edit.read is Read.REFUSED:
        assert not answers or any(answer.refusal for answer in answers.values()), "some read meets it"
    if edit.of is Of.HISTORY:
        with pytest.raises(CorruptionError):
            rebuilt(damaged.path)
        assert dump(damaged.path) == before
    if edit.of is Of.DERIVED:
        rebuilt(damaged.path)
        assert report(damaged.path).ok
        assert rows(damaged) == rows(homes[edit.large])


def rows(home: Home) -> list[object]:
    """All rows of a home but those that the full-text index keeps in an order of its own."""
    return [table for table in dump(home.path) if not (isinstance(table, tuple) and table[0].startswith("postings"))]


def false_answers(answers: dict[str, Answer], expected: dict[str, Answer], read: Read) -> dict[str, Answer]:
    """The answers that are neither the genuine ones nor refusals; recall may choose among what is genuine."""
    records = {part for answer in expected.values() for part in answer.parts}
    return {
        question: answer
        for question, answer in answers.items()
        if answer.refusal is None
        and answer != expected[question]
        and not (read is Read.CHOICE and question.startswith("recall") and records.issuperset(answer.parts))
    }
