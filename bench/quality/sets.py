"""A set: documents to remember, and questions whose answers among them are known. See docs/quality.md for its file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TextIO

DOCUMENT_FIELDS: Final = frozenset({"id", "store", "source", "place", "text", "time", "key", "kind"})
QUESTION_FIELDS: Final = frozenset({"id", "store", "text", "gold", "category"})


class SetError(ValueError):
    """A set that cannot be measured: where, and what is wrong there."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text. Documents of one ``source`` stand in their order; a later one with the same ``key`` corrects it."""

    id: str
    text: str
    store: str = ""
    source: str | None = None
    place: str | None = None
    time: str | None = None
    key: str | None = None
    kind: str = "note"


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one store, and the ids of the documents there that answer it together."""

    id: str
    text: str
    gold: frozenset[str]
    store: str = ""
    category: str = ""


@dataclass(frozen=True, slots=True)
class Store:
    """What is remembered together, and what is asked of it."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A whole set: its name, its stores, and the SHA-256 of the file it was read from."""

    name: str
    stores: tuple[Store, ...]
    sha256: str


def read(path: Path) -> Collection:
    """The set of a file in the plain form; SetError names the line that is not part of one."""
    data = path.read_bytes()
    documents: list[Document] = []
    questions: list[Question] = []
    for number, line in enumerate(data.decode().split("\n"), 1):
        if not line.strip():
            continue
        try:
            part = parse(json.loads(line))
        except (ValueError, TypeError) as error:
            raise SetError(f"{path.name}, line {number}: {error}") from error
        if isinstance(part, Document):
            documents.append(part)
        else:
            questions.append(part)
    try:
        stores = grouped(documents, questions)
    except SetError as error:
        raise SetError(f"{path.name}: {error}") from error
    return Collection(path.name.removesuffix(".jsonl"), stores, hashlib.sha256(data).hexdigest())


def parse(fields: Any) -> Document | Question:
    """One line of the plain form: a question has ``gold``, a document has not."""
    if not isinstance(fields, dict):
        raise SetError("not an object")
    asked = "gold" in fields
    unknown = sorted(fields.keys() - (QUESTION_FIELDS if asked else DOCUMENT_FIELDS))
    if unknown:
        raise SetError(f"a {'question' if asked else 'document'} has no field {unknown[0]!r}")
    gold = fields.get("gold", [])
    texts = {name: value for name, value in fields.items() if name != "gold"}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise SetError(f"{name}: a string, not {value!r}")
    if not texts.get("id") or not texts.get("text"):
        raise SetError("id and text are needed")
    if not asked:
        return Document(**texts)
    if not isinstance(gold, list) or not gold or not all(isinstance(one, str) for one in gold):
        raise SetError("gold: a list of at least one document's id")
    return Question(gold=frozenset(gold), **texts)


def grouped(documents: Iterable[Document], questions: Iterable[Question]) -> tuple[Store, ...]:
    """Stores in the order of their first document; SetError where an id comes twice or an answer is not there."""
    held: dict[str, dict[str, Document]] = {}
    asked: dict[str, dict[str, Question]] = {}
    for document in documents:
        there = held.setdefault(document.store, {})
        if there.setdefault(document.id, document) is not document:
            raise SetError(f"document {document.id!r} comes twice in store {document.store!r}")
    for question in questions:
        absent = sorted(question.gold - held.get(question.store, {}).keys())
        if absent:
            raise SetError(f"question {question.id!r}: no document {absent[0]!r} in store {question.store!r}")
        others = asked.setdefault(question.store, {})
        if others.setdefault(question.id, question) is not question:
            raise SetError(f"question {question.id!r} comes twice in store {question.store!r}")
    return tuple(
        Store(name, tuple(there.values()), tuple(asked.get(name, {}).values())) for name, there in held.items()
    )


def write(path: Path, stores: Iterable[Store]) -> None:
    """Stores as a file in the plain form, the same bytes for the same stores."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for store in stores:
            for document in store.documents:
                _print(file, {**asdict(document), "kind": None if document.kind == "note" else document.kind})
            for question in store.questions:
                _print(file, {**asdict(question), "gold": sorted(question.gold)})


def _print(file: TextIO, fields: dict[str, Any]) -> None:
    """One line, without what says nothing."""
    said = {name: value for name, value in fields.items() if value is not None and value != ""}
    print(json.dumps(said, ensure_ascii=False), file=file)
