"""Public sets are read as they are published: small sets of the same shape, made up here."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from bench.quality import __main__ as command
from bench.quality import public
from bench.quality.sets import SetError, Store, read

if TYPE_CHECKING:
    from pathlib import Path


def published(path: Path, value: Any) -> Path:
    """A file of JSON, compressed."""
    path.write_bytes(gzip.compress(json.dumps(value).encode()))
    return path


def texts(store: Store) -> list[str]:
    """The texts of a store in their order."""
    return [document.text for document in store.documents]


def answers(store: Store) -> dict[str, list[str]]:
    """The texts that answer each question."""
    named = {document.id: document.text for document in store.documents}
    return {question.text: sorted(named[one] for one in question.gold) for question in store.questions}


TALK = {
    "conversation": {
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Late."}],
        "session_10_date_time": "a later day",
        "session_2": [
            {"speaker": "Al", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a boat"},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "A boat."},
        ],
        "session_2_date_time": "a day",
    },
    "observation": {"session_2_observation": {"Al": [["Al has a boat.", "D2:1"], ["Al is proud.", "D2:1"]]}},
    "qa": [
        {"question": "What is there?", "evidence": ["D2:1-D2:2"], "category": 1},
        {"question": "Who is late?", "evidence": ["D2:1"], "category": 4},
        {"question": "Nothing?", "evidence": [], "category": 5},
    ],
}


def test_a_conversation_is_a_store_and_its_turns_documents(tmp_path: Path) -> None:
    """Sessions go in the order of their numbers; questions without evidence are left out."""
    [store] = public.locomo([published(tmp_path / "talk.json.gz", [TALK])])

    assert texts(store) == ["Al: Look! [image: a boat]", "Bo: A boat.", "Bo: Late."]
    assert [document.time for document in store.documents] == ["a day", "a day", "a later day"]
    assert len({document.source for document in store.documents}) == 2
    assert answers(store) == {
        "What is there?": ["Al: Look! [image: a boat]", "Bo: A boat."],
        "Who is late?": ["Al: Look! [image: a boat]"],
    }


def test_an_audit_corrects_the_evidence(tmp_path: Path) -> None:
    """What the audit corrects is answered by the corrected turn, the rest as before."""
    audit = [{"question_id": "locomo_0_qa1", "correct_evidence": ["D10:1"]}, {"question_id": "locomo_0_qa0"}]

    [store] = public.locomo([published(tmp_path / "a.gz", [TALK]), published(tmp_path / "b.gz", audit)])

    assert answers(store)["Who is late?"] == ["Bo: Late."]
    assert len(answers(store)["What is there?"]) == 2


def test_an_observed_turn_is_answered_for_by_its_first_observation(tmp_path: Path) -> None:
    """Questions of which some evidence was never observed are left out."""
    [store] = public.locomo_notes([published(tmp_path / "talk.json.gz", [TALK])])

    assert texts(store) == ["Al has a boat.", "Al is proud."]
    assert answers(store)["Who is late?"] == ["Al has a boat."]
    assert "What is there?" not in answers(store)


def test_a_haystack_loses_the_names_of_its_sessions(tmp_path: Path) -> None:
    """LongMemEval's session ids mark the answer: none is in what is read; abstentions are left out.

    By sessions, the one that is said to answer does, whole.
    """
    question = {
        "question_id": "q",
        "question_type": "single",
        "question": "Which tea?",
        "haystack_dates": ["monday", "tuesday"],
        "haystack_session_ids": ["plain_1", "answer_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello."}],
            [
                {"role": "user", "content": "Green tea.", "has_answer": True},
                {"role": "assistant", "content": " "},
                {"role": "assistant", "content": "Which?"},
            ],
        ],
        "answer_session_ids": ["answer_1"],
    }
    abstention = {**question, "question_id": "q_abs"}

    path = published(tmp_path / "haystacks.json.gz", [question, abstention])
    [turns], [sessions] = public.longmemeval([path]), public.longmemeval_sessions([path])

    assert texts(turns) == ["user: Hello.", "user: Green tea.", "assistant: Which?"]
    assert texts(sessions) == ["user: Hello.", "user: Green tea.\nassistant: Which?"]
    assert answers(turns) == {"Which tea?": ["user: Green tea."]}
    assert answers(sessions) == {"Which tea?": ["user: Green tea.\nassistant: Which?"]}
    assert "answer" not in repr(turns) + repr(sessions)


def test_a_dialogue_asks_with_its_last_turns(tmp_path: Path) -> None:
    """The three turns before the tested one, without speakers; memories that are not there answer nothing."""
    memories = published(tmp_path / "m.gz", {"1": {"event": "We danced.", "time": "May"}, "2": {"event": "It rained."}})
    said = ["<BOD>", '<A>: "One"\n', '<B>: "Two"', '<A>: "Three"', '<B>: "Four"', '<A>: "Five"']
    dialogues = published(tmp_path / "d.gz", {"dialogue": said, "test-turn": [5], "relevant-id": [1, 99]})

    [store] = public.madial([memories, dialogues])

    assert answers(store) == {"Two Three Four": ["We danced."]}
    with pytest.raises(SetError, match="two files, memories and dialogues, not 1"):
        public.madial([memories])


def test_a_question_about_a_paragraph_is_answered_by_it(tmp_path: Path) -> None:
    """SQuAD's form: articles of paragraphs, each with its questions."""
    paragraphs = [{"context": text, "qas": [{"id": text, "question": f"{text}?"}]} for text in ("Oak", "Elm")]
    path = published(tmp_path / "x.json.gz", {"data": [{"paragraphs": paragraphs}]})

    [store] = public.xquad([path])

    assert answers(store) == {"Oak?": ["Oak"], "Elm?": ["Elm"]}


def test_a_text_is_cut_at_sentences_and_answered_by_what_overlaps(tmp_path: Path) -> None:
    """Passages have 400 characters or more, but for the last; an overlap of 20 characters is none yet."""
    sentence = "A sentence of exactly fifty characters, and more. "
    (tmp_path / "long.md").write_text(sentence * 10)
    cells = json.dumps([{"start_index": 380, "end_index": 450}]).replace('"', '""')
    near = json.dumps([{"start_index": 379, "end_index": 420}]).replace('"', '""')
    (tmp_path / "q.csv").write_text(
        f'question,references,corpus_id\nwide?,"{cells}",long\nnarrow?,"{near}",long\nelse?,"{cells}",other\n'
    )

    [store] = public.chunkeval([tmp_path / "q.csv", tmp_path / "long.md"])

    assert list(map(len, texts(store))) == [399, 99]
    assert answers(store) == {"wide?": [texts(store)[1]], "narrow?": [texts(store)[0]]}


def test_a_pool_is_all_stores_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids and sources that two stores share stay apart; the command writes what it read."""
    talks = published(tmp_path / "talks.json.gz", [TALK, TALK])

    command.main(["convert", "locomo", str(talks), "--pool", "--out", str(tmp_path / "pool.jsonl")])

    [store] = read(tmp_path / "pool.jsonl").stores
    assert "1 stores, 6 documents, 4 questions" in capsys.readouterr().out
    assert len({document.source for document in store.documents}) == 4


def test_what_is_not_as_published_is_refused(tmp_path: Path) -> None:
    """The error names the format; the neighbour that is as published is converted."""
    wrong, right = published(tmp_path / "w.gz", {"rows": []}), published(tmp_path / "r.gz", {"data": []})

    with pytest.raises(SystemExit, match="not as xquad is published"):
        command.main(["convert", "xquad", str(wrong), "--out", str(tmp_path / "out")])
    command.main(["convert", "xquad", str(right), "--out", str(tmp_path / "out")])

    assert (tmp_path / "out").read_bytes() == b""
