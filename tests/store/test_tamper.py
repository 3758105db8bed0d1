"""Edits of a store at rest by a plain SQL client: refused by the read that meets them, and named by verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledgerstone import CorruptionError
from tests.store.tampering import EDITS, Edit, Of, Read
from tests.stores import (
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
    connection = plain_client(home.path)
    edit.apply(connection, home.rows())
    connection.close()
    assert dump(home.path) != before
    return home


def test_an_edit_is_refused_named_and_mended_only_where_it_can_be(
    edit: Edit, damaged: Home, homes: dict[bool, Home], genuine: dict[bool, dict[str, Answer]]
) -> None:
    """No answer is false, verify names the edit, and rebuild mends what is derived and nothing else."""
    before = dump(damaged.path)
    expected = genuine[edit.large]

    answers = asked(damaged)
    findings = report(damaged.path).findings

    assert findings, "verify names it"
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
