"""Our own notes are what docs/quality.md says of them, and recall finds no less in them than it did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from bench.quality.__main__ import OWN
from bench.quality.measuring import Configuration, Run, measure
from bench.quality.scoring import means
from bench.quality.sets import Store, read

from ledgerstone.core.words import index_words, query_words

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def notes() -> Store:
    """The set."""
    [store] = read(OWN).stores
    return store


@pytest.fixture(scope="module")
def lexical(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The set through the product, by words alone."""
    folder: Path = tmp_path_factory.mktemp("notes")
    [run] = measure(read(OWN), [Configuration("lexical")], folder)
    return run


def test_the_notes_are_as_many_as_is_said(notes: Store) -> None:
    """Three hundred notes, 29 keys that are corrected once or twice, and questions of five sorts."""
    keys = Counter(document.key for document in notes.documents if document.key is not None)

    assert len(notes.documents) == 300
    assert sorted(keys.values()) == [2] * 28 + [3]
    assert Counter(question.category for question in notes.questions) == {
        "exact": 48,
        "natural": 29,
        "paraphrase": 203,
        "correction": 35,
        "several": 13,
    }


def test_no_answer_is_a_corrected_note(notes: Store) -> None:
    """What answers is what stands; questions about corrections are answered by the correction."""
    newest = {document.key: document.id for document in notes.documents if document.key is not None}
    keys = {document.id: document.key for document in notes.documents}

    for question in notes.questions:
        for answer in question.gold:
            key = keys[answer]
            assert newest.get(key or "", answer) == answer
            assert question.category != "correction" or key is not None


def test_many_questions_share_no_word_with_their_note(notes: Store) -> None:
    """Of the paraphrases more than half have no stem of their note, stop words aside."""
    texts = {document.id: f"{document.key} {document.text}" for document in notes.documents}
    apart = [
        question
        for question in notes.questions
        if question.category == "paraphrase"
        and not any(set(query_words(question.text, None)) & set(index_words(texts[answer])) for answer in question.gold)
    ]

    assert len(apart) > 203 / 2


def test_words_find_what_they_found(lexical: Run) -> None:
    """An identifier's note comes first, a question in the note's own words among ten, and no corrected note ever.

    The bound is a point below the 0.550 that words alone have reached: a lane may not lower it by more.
    """
    rows = {name: [row.scores for row in lexical.rows if row.category == name] for name in ("exact", "natural")}

    assert means(rows["exact"])["r@1"] == 1
    assert means(rows["natural"])["r@10"] == 1
    assert lexical.means["r@10"] > 0.54
    assert lexical.stale == 0
