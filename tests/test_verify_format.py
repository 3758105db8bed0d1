"""The second verifier: it accepts the golden ledger, and names what is wrong with every altered copy."""

from __future__ import annotations

import ast
import importlib.util
import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ledgerstone import Draft, Kind, LedgerstoneError, Scope
from ledgerstone.core import signing
from ledgerstone.store import open_store
from tests.golden import ledger, make
from tests.golden.ledger import PROJECT, STORE, Edit, Line, the
from tests.golden.make import HERE, PUBLIC
from tests.memories import ADA, ELSEWHERE, MODEL, NOBODY, STRANGER, TOOL, Scratch

SCRIPT: Final = Path(__file__).parent.parent / "tools" / "verify_format.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_format", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their own module up.
    sys.modules["verify_format"] = module
    spec.loader.exec_module(module)
    return module


verify_format = _load()


def faults(rows: list[Line], *, keys: tuple[bytes, ...] = ledger.TRUSTED) -> set[str]:
    """The checks that fail; a rule by its own name."""
    found = verify_format.verify(ledger.written(rows), keys)
    return {message.split(": ")[1] + " rule" if check == "rule" else check for check, _, message in found}


def test_golden_ledger_has_no_fault() -> None:
    """What the library wrote, a verifier that was written from the page accepts."""
    assert verify_format.verify(ledger.TEXT.splitlines(), ledger.TRUSTED) == []


CALLERS: Final = (ADA, MODEL, TOOL, STRANGER, ELSEWHERE)
ATTEMPTS: Final = 100


def live(scratch: Scratch, chance: random.Random) -> int:
    """Try many things as several callers, most of which the rules refuse; how many they let in."""
    known: list[str] = [NOBODY]
    admitted = 0
    for attempt in range(ATTEMPTS):
        memory = scratch.by(chance.choice(CALLERS))
        scratch.wait(chance.choice((-1, 0, 1)))
        with suppress(LedgerstoneError):
            match chance.choice(("remember", "remember", "remember", "close", "retract")):
                case "remember":
                    kind = chance.choice(tuple(Kind))
                    sources = tuple(dict.fromkeys(chance.choices(known, k=chance.randrange(4))))
                    draft = Draft(
                        text="word " * chance.randint(1, 30) + str(attempt % 7),
                        kind=kind,
                        key=chance.choice((None, "color", "port", "tool")),
                        sources=sources,
                        covers=sources[:1] if kind is Kind.SUMMARY else (),
                        external=chance.random() < 1 / 8,
                        replaces=chance.choice((None, None, chance.choice(known))),
                    )
                    made = memory.remember(draft, scope=Scope.PROJECT)
                case "close":
                    made = memory.close_task(chance.choice(known), reason="done")
                case _:
                    made = memory.retract(chance.choice(known), reason="wrong", reject=chance.random() < 1 / 2)
            known.append(made.record.address)
            admitted += 1
    return admitted


@pytest.mark.parametrize("seed", range(3))
def test_what_the_library_admits_has_no_fault(tmp_path: Path, seed: int) -> None:
    """Whatever callers try, both verifiers accept what came of it: state, counts, rules and all."""
    scratch = Scratch(tmp_path / "memory.ledger", seed=seed)

    admitted = live(scratch, random.Random(seed))

    assert admitted > ATTEMPTS // 8
    assert scratch.memory.verify().findings == ()
    scratch.memory.close()
    store = open_store(scratch.path)
    with store.read() as reader:
        rows = list(make.lines(reader))
    store.close()
    assert verify_format.verify(ledger.written(rows), scratch.keys.public.values()) == []


def test_script_answers_by_its_exit_code(tmp_path: Path) -> None:
    """As a program: 0 for the golden ledger, 1 with the fault in print for one that was altered."""
    altered = tmp_path / "altered.jsonl"
    altered.write_text(ledger.TEXT.replace("uses make", "uses sake"), encoding="utf-8")

    runs = [
        subprocess.run(
            [sys.executable, "-I", SCRIPT, path, PUBLIC.hex()], capture_output=True, encoding="utf-8", check=False
        )
        for path in (HERE / "ledger.jsonl", altered)
    ]

    assert [run.returncode for run in runs] == [0, 1]
    assert f"content\t{PROJECT} entry 1" in runs[1].stdout


def test_script_stands_alone() -> None:
    """It imports the standard library and cryptography, and neither Ledgerstone nor SQLite."""
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names}

    assert roots - sys.stdlib_module_names == {"cryptography"}
    assert "sqlite3" not in roots


def _content(rows: list[Line]) -> None:
    line = the(rows, "content", position=1)
    line["content"] = line["content"].replace("make", "sake")


def _salt(rows: list[Line]) -> None:
    the(rows, "content", position=1)["salt"] = "00" * 32


def _lose_content(rows: list[Line]) -> None:
    rows.remove(the(rows, "content", position=1))


def _exchange_contents(rows: list[Line]) -> None:
    one, other = the(rows, "content", position=1), the(rows, "content", position=2)
    one["position"], other["position"] = 2, 1


def _add_content(rows: list[Line]) -> None:
    rows.append({**the(rows, "content", position=1), "position": 0})


def _entry(rows: list[Line]) -> None:
    line = the(rows, "entry", position=3)
    line["entry"] = line["entry"].replace("model_inferred", "user_explicit")


def _lose_entry(rows: list[Line]) -> None:
    rows.remove(the(rows, "entry", position=3))


def _add_entry(rows: list[Line]) -> None:
    rows.append({**the(rows, "entry", position=3), "position": 99})


def _header(rows: list[Line]) -> None:
    line = the(rows, "commit", sequence=3)
    line["header"] = line["header"].replace('"at":1767225604', '"at":1767225603')


def _spelling(rows: list[Line]) -> None:
    line = the(rows, "commit", sequence=3)
    line["header"] = line["header"].replace(":", ": ", 1)


def _lose_commit(rows: list[Line]) -> None:
    rows.remove(the(rows, "commit", sequence=3))


def _cut_off(rows: list[Line]) -> None:
    head = the(rows, "head")
    rows.remove(the(rows, "commit", sequence=head["sequence"]))
    for row in [row for row in rows if row.get("namespace") == PROJECT and row.get("position") == 20]:
        rows.remove(row)
    newest = json.loads(the(rows, "commit", sequence=head["sequence"] - 1)["header"])
    head |= {"sequence": newest["sequence"], "id": ledger.heads(rows)[PROJECT]}


def _kept_signature(rows: list[Line]) -> None:
    the(rows, "signature")["signature"] = the(rows, "head")["signature"]


def _lose_signature(rows: list[Line]) -> None:
    rows.remove(the(rows, "signature"))


def _lose_chain(rows: list[Line]) -> None:
    rows[:] = [row for row in rows if row.get("namespace") != PROJECT]


def _rename_chain(rows: list[Line]) -> None:
    for row in rows:
        if row.get("namespace") == PROJECT:
            row["namespace"] = "ns_0000000000000000"


ALTERED: Final[dict[str, tuple[Callable[[list[Line]], None], str]]] = {
    "a text": (_content, "content"),
    "a salt": (_salt, "content"),
    "a content gone": (_lose_content, "content"),
    "contents exchanged": (_exchange_contents, "content"),
    "a content too many": (_add_content, "content"),
    "an entry": (_entry, "entry"),
    "an entry gone": (_lose_entry, "entry"),
    "an entry too many": (_add_entry, "left"),
    "a header": (_header, "history"),
    "a header's spelling": (_spelling, "header"),
    "a commit gone": (_lose_commit, "chain"),
    "the newest commit cut off": (_cut_off, "signature"),
    "a kept signature": (_kept_signature, "signature"),
    "a kept signature gone": (_lose_signature, "signature"),
    "a chain gone": (_lose_chain, "namespace"),
    "a chain renamed": (_rename_chain, "chain"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_copy_is_found(name: str) -> None:
    """Whoever changes a copy without the key is found, by the check of that name."""
    alter, check = ALTERED[name]
    rows = ledger.lines()

    alter(rows)

    assert check in faults(rows)


def test_no_key_but_the_trusted_one_counts() -> None:
    """The same ledger under another trusted key is signed by nobody."""
    other = signing.Keyring(signing.SigningKey(seed=bytes(32), secret=bytes(32)))

    assert faults(ledger.lines(), keys=tuple(other.public.values())) == {"signature"}


def test_sealing_anew_alters_nothing() -> None:
    """The neighbour of every copy below: without an edit the ledger comes out as it was."""
    assert ledger.resealed(ledger.lines(), lambda *_: None) == ledger.lines()


def at(namespace: str, sequence: int, change: Callable[[Line, list[Line]], object]) -> Edit:
    """An edit of one commit: of its header and its entries."""

    def edit(found: str, number: int, header: Line, entries: list[Line]) -> None:
        if (found, number) == (namespace, sequence):
            change(header, entries)

    return edit


def entry(number: int, **fields: Any) -> Edit:
    """An edit of the first entry of a commit of the project; None leaves a field out."""

    def change(_: Line, entries: list[Line]) -> None:
        entries[0] |= fields
        for name in [name for name, value in fields.items() if value is None]:
            del entries[0][name]

    return at(PROJECT, number, change)


def header(number: int, **fields: Any) -> Edit:
    """An edit of a header of the project's chain."""
    return at(PROJECT, number, lambda header, _: header.update(fields))


def stamp(number: int, **fields: Any) -> Edit:
    """An edit of a stamp of the project's chain."""
    return at(PROJECT, number, lambda header, _: header["stamp"].update(fields))


def _memory(position: int) -> str:
    found: str = json.loads(the(ledger.lines(), "entry", position=position)["entry"])["memory"]
    return found


def _repeat_idempotency(header: Line, _: list[Line]) -> None:
    named = json.loads(the(ledger.lines(), "commit", sequence=3)["header"])["idempotency"]
    header["idempotency"] = named


BOBS_GRANT: Final[str] = json.loads(the(ledger.lines(), "commit", sequence=18)["header"])["stamp"]["grant"]
FORGED: Final[dict[str, tuple[Edit, str]]] = {
    "another history": (header(5, history="00" * 32), "history"),
    "another parent": (header(5, parent="00" * 32), "chain"),
    "another state": (header(5, state="00" * 32), "state"),
    "a sequence left out": (header(5, sequence=6), "chain"),
    "later rules": (header(5, rules=2), "header"),
    "an unknown field": (header(5, more=1), "header"),
    "other counts": (at(PROJECT, 5, lambda header, _: header["counts"].update(open=1)), "counts"),
    "an older point of the store": (at(PROJECT, 5, lambda header, _: header["store"].update(sequence=1)), "store"),
    "no point of the store": (at(PROJECT, 5, lambda header, _: header.pop("store")), "store"),
    "a text beyond the limit": (at(PROJECT, 5, lambda header, _: header["limits"].update(text_bytes=8)), "text rule"),
    "records beyond the limit": (at(PROJECT, 4, lambda header, _: header["limits"].update(drafts=1)), "drafts rule"),
    "an idempotency key again": (at(PROJECT, 5, _repeat_idempotency), "idempotency"),
    "a time that runs backwards": (stamp(5, at=1), "time"),
    "a record above its caller": (stamp(5, origin="external"), "origin rule"),
    "another's grant": (stamp(5, principal="prn_0000000000000000"), "grant"),
    "a revoked grant": (stamp(19, grant=BOBS_GRANT), "grant"),
    "an expired grant": (at(STORE, 4, lambda _, entries: entries[0].update(expires=1)), "grant"),
    "a grant on two things": (at(STORE, 4, lambda _, entries: entries[0].update(scope="project")), "grant rule"),
    "a revocation of nothing": (at(STORE, 7, lambda _, entries: entries[0].update(revokes="00" * 32)), "revoke rule"),
    "another public key": (at(STORE, 0, lambda _, entries: entries[1].update(public="00" * 32)), "key rule"),
    "another nonce": (entry(0, nonce="00" * 16), "genesis rule"),
    "a format that is true": (entry(1, format=True), "entry"),
    "a field at its absent value": (entry(1, depth=0), "entry"),
    "an empty array": (entry(1, sources=[]), "entry"),
    "a kind of another chain": (entry(3, entry="refusal"), "entry"),
    "too much trust": (entry(3, trust="tool_verified"), "trust rule"),
    "too little trust": (entry(3, trust="unknown"), "trust rule"),
    "a version left out": (entry(3, version=2), "version rule"),
    "an open note": (entry(3, status="open"), "status rule"),
    "a summary too high up": (entry(5, depth=2), "summary rule"),
    "a note where a summary was": (entry(5, covers=None, kind="note", depth=None), "state"),
    "a procedure out of nothing": (entry(7, sources=None), "procedure rule"),
    "a note over an open task": (entry(12, memory=_memory(11), version=2), "open_task rule"),
    "a retraction that raises trust": (entry(13, trust="user_explicit"), "trust rule"),
    "a held value let go": (entry(14, held_by=None), "key rule"),
    "a held value without a rejection": (
        entry(14, held_by=json.loads(the(ledger.lines(), "commit", sequence=1)["header"])["entries"][0]),
        "held_by rule",
    ),
    "a key taken": (entry(15, contests=None), "key rule"),
    "a retraction by somebody else": (entry(17, origin="model"), "origin rule"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_copy_is_found(name: str) -> None:
    """Whoever has the key and breaks the format or a rule is found, by the check of that name."""
    edit, check = FORGED[name]

    forged = ledger.resealed(ledger.lines(), edit)

    assert check in faults(forged)
