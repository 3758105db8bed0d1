"""Public sets as their authors publish them, read into stores: documents, questions and the evidence they cite.

None of their data is part of this repository; each has its own licence. A file may be compressed (``.gz``).
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from bench.quality.sets import Document, Question, SetError, Store, grouped

LOCOMO_CATEGORIES: Final = ("", "multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
CHUNK: Final = 400
# Shorter overlaps of a passage and its evidence are the ends of sentences, not evidence.
LEAST_OVERLAP: Final = 20
MADIAL_TURNS: Final = 3


def locomo(paths: Sequence[Path]) -> tuple[Store, ...]:
    """LoCoMo (Maharana et al., 2024): the conversations, and after them, if given, an audit that corrects evidence.

    A conversation is a store, a turn a document, a question answered by the turns it cites.
    """
    return _locomo(paths, _turns)


def locomo_notes(paths: Sequence[Path]) -> tuple[Store, ...]:
    """The same conversations' dated observations; questions all of whose evidence was observed.

    A turn behind several observations is answered for by the first.
    """
    return _locomo(paths, _observations)


Cited = tuple[Document, list[str]]


def _locomo(paths: Sequence[Path], documents: Callable[[int, dict[str, Any]], Iterator[Cited]]) -> tuple[Store, ...]:
    conversations, *audit = [_json(path) for path in paths]
    corrected = {
        fault["question_id"]: fault["correct_evidence"]
        for faults in audit
        for fault in faults
        if fault.get("correct_evidence")
    }
    held: list[Document] = []
    asked: list[Question] = []
    for number, conversation in enumerate(conversations):
        answers: dict[str, list[str]] = defaultdict(list)
        for document, turns in documents(number, conversation):
            held.append(document)
            for turn in turns:
                answers[turn].append(document.id)
        for order, question in enumerate(conversation["qa"]):
            cited = _cited(corrected.get(f"locomo_{number}_qa{order}", question["evidence"]))
            if documents is _observations and not all(turn in answers for turn in cited):
                continue
            gold = frozenset(min(answers[turn]) for turn in cited if turn in answers)
            if gold:
                category = LOCOMO_CATEGORIES[question["category"]]
                asked.append(Question(f"{number}/{order}", question["question"], gold, str(number), category))
    return grouped(held, asked)


def _sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Every session in its order: its name, its time, its turns."""
    spoken = conversation["conversation"]
    for name in sorted((key for key in spoken if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])):
        yield name, spoken.get(f"{name}_date_time", ""), spoken[name]


def _turns(number: int, conversation: dict[str, Any]) -> Iterator[Cited]:
    for name, time, turns in _sessions(conversation):
        for turn in turns:
            image = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{image}"
            yield _said(number, name, turn["dia_id"], text, time), [turn["dia_id"]]


def _observations(number: int, conversation: dict[str, Any]) -> Iterator[Cited]:
    for name, time, _ in _sessions(conversation):
        observed = conversation["observation"].get(f"{name}_observation", {})
        for speaker, notes in observed.items():
            for order, (text, turns) in enumerate(notes):
                cited = _cited(turns if isinstance(turns, list) else [turns])
                yield _said(number, name, f"{name}/{speaker}/{order}", text, time), cited


def _said(number: int, session: str, name: str, text: str, time: str) -> Document:
    return Document(f"{number}/{name}", text, str(number), source=f"{number}/{session}", time=time or None)


def _cited(cells: Iterable[Any]) -> list[str]:
    """Evidence as it is found (``D8:6; D9:17``, ``D1:3-D1:5``, ``D:11:26``) as names of turns."""
    turns: list[str] = []
    for cell in cells or ():
        plain = re.sub(r"D:(\d+:\d+)", r"D\1", str(cell))
        for session, first, other, last in re.findall(r"D(\d+):0*(\d+)(?:\s*[-\u2013]\s*D(\d+):0*(\d+))?", plain):
            within = other == session and int(first) < int(last) < int(first) + 40
            turns += [f"D{session}:{turn}" for turn in range(int(first), int(last if within else first) + 1)]
            if other and other != session:
                turns.append(f"D{other}:{last}")
    return turns


def longmemeval(paths: Sequence[Path]) -> tuple[Store, ...]:
    """LongMemEval (Wu et al., 2025): every question with a haystack of its own, of which each turn is a document.

    The turns that are marked answer. Questions without an answer (``_abs``) or without a marked turn are left out.
    """
    return _longmemeval(paths, _said_turns)


def longmemeval_sessions(paths: Sequence[Path]) -> tuple[Store, ...]:
    """The same haystacks, of which each session is a document; the sessions that are said to hold the answer do."""
    return _longmemeval(paths, _said_sessions)


Judged = tuple[Document, bool]


def _longmemeval(
    paths: Sequence[Path], documents: Callable[[str, dict[str, Any]], Iterator[Judged]]
) -> tuple[Store, ...]:
    held: list[Document] = []
    asked: list[Question] = []
    for number, question in enumerate(_json(_only(paths))):
        there = list(documents(str(number), question))
        gold = frozenset(document.id for document, answers in there if answers)
        if gold and not question["question_id"].endswith("_abs"):
            held += [document for document, _ in there]
            asked.append(Question(str(number), question["question"], gold, str(number), question["question_type"]))
    return grouped(held, asked)


def _said_turns(store: str, question: dict[str, Any]) -> Iterator[Judged]:
    for session, _, time, turns in _haystack(question):
        for order, turn in enumerate(turns):
            document = Document(f"{session}/{order}", turn["text"], store, source=session, time=time)
            yield document, bool(turn.get("has_answer"))


def _said_sessions(store: str, question: dict[str, Any]) -> Iterator[Judged]:
    for session, answers, time, turns in _haystack(question):
        if turns:
            text = "\n".join(turn["text"] for turn in turns)
            yield Document(session, text, store, source=session, time=time), answers


def _haystack(question: dict[str, Any]) -> Iterator[tuple[str, bool, str, list[dict[str, Any]]]]:
    """Every session: its number, as its own id marks an answer; whether it answers; its time, its turns with text."""
    parts = (question[f"haystack_{part}"] for part in ("session_ids", "dates", "sessions"))
    for number, (name, time, turns) in enumerate(zip(*parts, strict=True)):
        said = [
            {**turn, "text": f"{turn['role']}: {turn['content']}".replace("\0", "")}
            for turn in turns
            if turn["content"].strip()
        ]
        yield str(number), name in question["answer_session_ids"], time, said


def madial(paths: Sequence[Path]) -> tuple[Store, ...]:
    """MADial-Bench (He et al., 2025), memories and dialogues: which memory fits what was said last."""
    memories, dialogues = _pair(paths)
    held = [
        Document(name, memory["event"], time=memory.get("time") or None)
        for row in map(json.loads, _lines(memories))
        for name, memory in row.items()
    ]
    there = {document.id for document in held}
    asked = []
    for number, row in enumerate(map(json.loads, _lines(dialogues))):
        said = [re.sub(r'^<[^>]*>[:\uff1a]\s*"?|"?\s*$', "", turn) for turn in row["dialogue"][1 : row["test-turn"][0]]]
        gold = frozenset(map(str, row["relevant-id"])) & there
        if gold:
            asked.append(Question(str(number), " ".join(said[-MADIAL_TURNS:]), gold, category="dialogue"))
    return grouped(held, asked)


def xquad(paths: Sequence[Path]) -> tuple[Store, ...]:
    """XQuAD (Artetxe et al., 2020), or any set in SQuAD's form: paragraphs, and questions about each."""
    held: list[Document] = []
    asked: list[Question] = []
    for article in _json(_only(paths))["data"]:
        for paragraph in article["paragraphs"]:
            document = Document(str(len(held)), paragraph["context"])
            held.append(document)
            asked += [Question(one["id"], one["question"], frozenset([document.id])) for one in paragraph["qas"]]
    return grouped(held, asked)


def chunkeval(paths: Sequence[Path]) -> tuple[Store, ...]:
    """Chunking evaluation (Smith and Troynikov, 2024): its questions, then its texts, cut at sentences into passages.

    A question is answered by the passages that overlap its excerpts. Every text is a store and one source.
    """
    questions, *texts = paths
    held: list[Document] = []
    spans: dict[str, list[tuple[int, int, str]]] = {}
    for path in sorted(texts):
        name, text = path.name.partition(".")[0], _text(path)
        cuts = _spaced([match.end() for match in re.finditer(r"[.!?]\s+|\n+", text)], len(text))
        spans[name] = [(begin, end, f"{name}/{begin}") for begin, end in pairwise(cuts)]
        spans[name] = [span for span in spans[name] if text[span[0] : span[1]].strip()]
        held += [Document(passage, text[begin:end].strip(), name, source=name) for begin, end, passage in spans[name]]
    asked = []
    for number, row in enumerate(csv.DictReader(_text(questions).splitlines(keepends=True))):
        name = row["corpus_id"]
        gold = frozenset(
            passage
            for begin, end, passage in spans.get(name, ())
            for excerpt in json.loads(row["references"])
            if min(end, excerpt["end_index"]) - max(begin, excerpt["start_index"]) > LEAST_OVERLAP
        )
        if gold:
            asked.append(Question(str(number), row["question"], gold, name, name))
    return grouped(held, asked)


def _spaced(cuts: Sequence[int], end: int) -> list[int]:
    """Of the places where a text may be cut, those that leave passages of at least CHUNK characters."""
    kept = [0]
    for cut in cuts:
        if cut - kept[-1] >= CHUNK:
            kept.append(cut)
    return [*kept, end]


def pooled(stores: Iterable[Store]) -> tuple[Store, ...]:
    """All stores as one, in which most is about something else."""
    documents: list[Document] = []
    questions: list[Question] = []
    for store in stores:
        named = {document.id: f"{store.name}/{document.id}" for document in store.documents}
        for document in store.documents:
            source = None if document.source is None else f"{store.name}/{document.source}"
            documents.append(replace(document, id=named[document.id], store="", source=source))
        for question in store.questions:
            gold = frozenset(named[answer] for answer in question.gold)
            questions.append(replace(question, id=f"{store.name}/{question.id}", store="", gold=gold))
    return grouped(documents, questions)


FORMATS: Final[dict[str, Callable[[Sequence[Path]], tuple[Store, ...]]]] = {
    "locomo": locomo,
    "locomo-notes": locomo_notes,
    "longmemeval": longmemeval,
    "longmemeval-sessions": longmemeval_sessions,
    "madial": madial,
    "xquad": xquad,
    "chunkeval": chunkeval,
}


def _only(paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise SetError(f"one file, not {len(paths)}")
    return paths[0]


def _pair(paths: Sequence[Path]) -> tuple[Path, Path]:
    if len(paths) != 2:
        raise SetError(f"two files, memories and dialogues, not {len(paths)}")
    return paths[0], paths[1]


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _json(path: Path) -> Any:
    return json.loads(_text(path))


def _lines(path: Path) -> list[str]:
    return [line for line in _text(path).split("\n") if line.strip()]
