"""A set goes through the product without its labels, and a run repeats bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from bench.quality import __main__ as command
from bench.quality import lanes
from bench.quality.measuring import Configuration, drafts, fill, measure, opened, output
from bench.quality.sets import Collection, Document, Question, Store, write

if TYPE_CHECKING:
    from pathlib import Path

COLORS = Store(
    "colors",
    (
        Document("d1", "The gate is painted green.", "colors", "diary", time="on monday", key="gate"),
        Document("d2", "The fence is painted white.", "colors", "diary"),
        Document("d3", "The gate is painted blue.", "colors", "letter", key="gate"),
    ),
    (
        Question("q1", "Which colour is the gate painted?", frozenset(["d3"]), "colors"),
        Question("q2", "white fence", frozenset(["d2"]), "colors"),
    ),
)


def test_no_label_reaches_the_store() -> None:
    """What marks an answer in an id or a source's name is in no draft; texts, times and order are."""
    documents = [
        Document("answer_1", "yes", source="answer_session", time="noon"),
        Document("answer_2", "no", source="other"),
        Document("answer_3", "perhaps", source="answer_session", place="9"),
    ]

    made = list(drafts(documents))

    assert "answer" not in repr(made)
    assert [(draft.text, draft.title) for draft in made] == [("yes", "noon"), ("no", None), ("perhaps", None)]
    assert [(draft.source, draft.place) for draft in made] == [("source 1", "1"), ("source 2", "1"), ("source 1", "9")]


def test_no_label_is_in_the_file(tmp_path: Path) -> None:
    """Of a store that was filled, no byte says which document answers; what was remembered is there."""
    path = tmp_path / "memory.ledger"
    with opened(path) as memory:
        fill(memory, [Document("labelled_1", "a walrus", "labelled", "labelled_session"), Document("2", "a carpenter")])

    held = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"walrus" in held
    assert b"labelled" not in held


def test_a_corrected_document_is_answered_by_its_correction(tmp_path: Path) -> None:
    """Documents with one key are versions of one memory: the last answers, and none before it ever comes."""
    [run] = measure(Collection("colors", (COLORS,), ""), [Configuration("lexical")], tmp_path)

    gate, fence = run.rows
    assert gate.ranking[0] == "d3"
    assert fence.ranking[0] == "d2"
    assert "d1" not in {*gate.ranking, *gate.held, *fence.ranking, *fence.held}
    assert run.stale == 0
    assert run.means["r@1"] == 1


def test_a_run_repeats_bit_for_bit(tmp_path: Path) -> None:
    """Two runs write the same bytes, and leave no store behind."""
    collection = Collection("colors", (COLORS,), "data")
    configurations = [Configuration("lexical"), Configuration("balanced")]

    first = [output(run) for run in measure(collection, configurations, tmp_path)]
    second = [output(run) for run in measure(collection, configurations, tmp_path)]

    assert first == second
    assert first[0] != first[1]
    assert list(tmp_path.iterdir()) == []


def test_a_run_prints_a_table_and_writes_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each configuration has its row; two files of answers can be compared."""
    write(tmp_path / "colors.jsonl", [COLORS])

    command.main(["run", str(tmp_path / "colors.jsonl"), "--modes", "recent,lexical", "--out", str(tmp_path)])
    command.main(["compare", *(str(tmp_path / f"colors.{mode}.jsonl") for mode in ("recent", "lexical"))])

    printed = capsys.readouterr().out
    assert "| colors | recent  | all       | 2 " in printed
    assert "| colors | lexical | all       | 2 " in printed
    assert "| r@1 " in printed
    head, *rows = map(json.loads, (tmp_path / "colors.lexical.jsonl").read_text().splitlines())
    assert head["configuration"]["mode"] == "lexical"
    assert [row["id"] for row in rows] == ["q1", "q2"]


def test_a_gate_closes_where_a_run_is_surely_lower(tmp_path: Path) -> None:
    """What words find the newest do not show first: one way the gate is open, the other way closed."""
    write(tmp_path / "colors.jsonl", [replace(COLORS, questions=COLORS.questions[1:])])
    command.main(["run", str(tmp_path / "colors.jsonl"), "--modes", "recent,lexical", "--out", str(tmp_path)])
    recent, lexical = (str(tmp_path / f"colors.{mode}.jsonl") for mode in ("recent", "lexical"))

    command.main(["compare", "--gate", recent, lexical])
    with pytest.raises(SystemExit, match=r"colors.recent is lower: r@1, mrr"):
        command.main(["compare", "--gate", lexical, recent])


def test_each_nth_question_is_asked(tmp_path: Path) -> None:
    """A quick look at half of two questions asks the first."""
    [run] = measure(Collection("colors", (COLORS,), ""), [Configuration("lexical", every=2)], tmp_path)

    assert [row.id for row in run.rows] == ["q1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["run", "absent.jsonl", "--modes", "wise"], "no mode 'wise'", id="mode"),
        pytest.param(["run", "absent.jsonl"], "absent.jsonl", id="file"),
        pytest.param(["run", "absent.jsonl", "--opened", "nowhere:opened"], "a module and a function", id="opened"),
        pytest.param(["run", "--bytes", "9"], "budget bytes: 512", id="budget"),
        pytest.param(["convert", "xquad", "a", "b", "--out", "c"], "one file, not 2", id="files"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments: list[str], words: str) -> None:
    """A run that cannot be made ends with its reason, and no traceback."""
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)

    assert words in str(ended.value)


def test_a_store_with_meaning_is_indexed_before_it_is_asked(tmp_path: Path) -> None:
    """What a lane of meaning opens is named beside the mode, and nothing in it waits to be encoded."""
    configuration = Configuration("hybrid", "bench.quality.lanes:table")

    [run] = measure(Collection("colors", (COLORS,), ""), [configuration], tmp_path, lanes.table)
    with lanes.table(tmp_path / "memory.ledger") as memory:
        memory.remember("a walrus")
        first, second = memory.index_vectors(), memory.index_vectors()

    assert configuration.label == "hybrid+table"
    assert run.means["r@10"] == 1
    assert (first.done, second.done, second.left) == (1, 0, 0)
