"""A file in the plain form is read whole, or refused where it is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from bench.quality.sets import Document, Question, SetError, Store, read, write

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = {"id": "d1", "text": "The gate is green."}
QUESTION = {"id": "q1", "text": "Which colour has the gate?", "gold": ["d1"]}


def filed(path: Path, *parts: dict[str, Any]) -> Path:
    """Lines of a file."""
    path.write_text("".join(json.dumps(part) + "\n" for part in parts))
    return path


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Stores, order and every field survive; the same stores make the same bytes, and so the same hash."""
    stores = (
        Store("x", (Document("1", "a\u2028b", "x", "s", "7", "noon", "k", "fact"),), ()),
        Store("", (Document("1", "c"),), (Question("q", "c?", frozenset(["1"]), category="easy"),)),
    )
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"

    write(first, stores)
    write(second, read(first).stores)

    assert read(first).stores == stores
    assert (read(first).name, read(first).sha256) == ("first", read(second).sha256)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        pytest.param([DOCUMENT, DOCUMENT], "document 'd1' comes twice", id="document-twice"),
        pytest.param([DOCUMENT, QUESTION, QUESTION], "question 'q1' comes twice", id="question-twice"),
        pytest.param([QUESTION], "no document 'd1'", id="no-answer"),
        pytest.param([{**DOCUMENT, "store": "x"}, QUESTION], "no document 'd1' in store ''", id="other-store"),
        pytest.param([{**DOCUMENT, "answer": "yes"}], "line 1: a document has no field 'answer'", id="unknown-field"),
        pytest.param([DOCUMENT, {**QUESTION, "gold": []}], "line 2: gold", id="gold-empty"),
        pytest.param([{**DOCUMENT, "time": 7}], "time: a string, not 7", id="not-a-string"),
        pytest.param([{**DOCUMENT, "text": ""}], "id and text are needed", id="no-text"),
    ],
)
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, parts: list[dict[str, Any]], words: str) -> None:
    """The error says where and what; the neighbour without the fault is read."""
    with pytest.raises(SetError, match=words):
        read(filed(tmp_path / "wrong.jsonl", *parts))

    assert len(read(filed(tmp_path / "right.jsonl", DOCUMENT, QUESTION)).stores) == 1
