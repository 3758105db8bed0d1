"""The second verifier: it accepts the golden ledger, and names what is wrong with every altered copy."""

from __future__ import annotations

import ast
import importlib.util
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ledgerstone import Act, Draft, Keyring, Kind, LedgerstoneError, Memory, Scope
from ledgerstone.core import canonical, signing
from ledgerstone.core.entries import digest_of
from ledgerstone.store import open_store
from tests.golden import ledger, make
from tests.golden.ledger import PROJECT, STORE, Edit, Line, the
from tests.golden.make import HERE, NEXT_PUBLIC, PUBLIC
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


def broken(rows: list[Line]) -> set[str]:
    """The rules that the library itself finds broken, by name."""
    found = [finding for replay in ledger.replayed(rows) for finding in replay.findings]
    return {one.message.partition("breaks the rule ")[2].partition(":")[0] for one in found if one.code == "rule"}


def test_golden_ledger_has_no_fault() -> None:
    """What the library wrote, a verifier that was written from the page accepts."""
    assert verify_format.verify(ledger.TEXT.splitlines(), ledger.TRUSTED) == []


PARTED: Final = (HERE / "parted.jsonl").read_text(encoding="utf-8")


def test_the_parted_ledger_holds_what_the_other_one_does_not() -> None:
    """A rotation, names that were struck, exports of one namespace and of all, and the parting after them."""
    rows = [json.loads(line) for line in PARTED.splitlines()]
    held = [json.loads(row["entry"]) for row in rows if row["line"] == "entry"]
    exports = [entry for entry in held if entry["entry"] == "export"]

    assert sum(entry["entry"] == "key" and "retires" in entry for entry in held) == 1
    assert sum(entry["entry"] == "erasure" and "strikes" in entry for entry in held) == 2
    assert sorted("namespace" in entry for entry in exports) == [False, True]
    assert [len(entry["without"]) for entry in held if entry["entry"] == "parting"] == [1]


@pytest.mark.parametrize("key", [NEXT_PUBLIC, PUBLIC], ids=["the key in force", "the key that handed over to it"])
def test_the_parted_ledger_has_no_fault(tmp_path: Path, key: bytes) -> None:
    """By the key in force and by the one before it, both verifiers accept it; by a third neither does."""
    stranger = bytes(reversed(key))

    assert verify_format.verify(PARTED.splitlines(), [key]) == []
    assert {check for check, _, _ in verify_format.verify(PARTED.splitlines(), [stranger])} == {"signature"}
    pieces = [line.encode() + b"\n" for line in PARTED.splitlines()]
    Memory.import_lines(pieces, tmp_path / "p.ledger", keys=Keyring(pins=(key,)), caller=make.ADA)
    with Memory.open(tmp_path / "p.ledger", keys=Keyring(pins=(key,)), caller=make.ADA, state=None) as memory:
        assert memory.verify(full=True).findings == ()
        assert [record.text for record in memory.list_records().items] == ["It goes on alone.", "The build uses just."]


def _unsigned(rows: list[Line]) -> None:
    kept = [row for row in rows if row["line"] == "signature" and row["sequence"] > 0]
    rows.remove(kept[0])


def _unparted(rows: list[Line]) -> None:
    _reworded(rows, "parting", "without", lambda without: [without[0][:-1] + "0"])


def _other_export(rows: list[Line]) -> None:
    _reworded(rows, "export", "head", lambda head: head[:-1] + ("0" if head[-1] != "0" else "1"))


def _other_heads(rows: list[Line]) -> None:
    _reworded(rows, "key", "heads", lambda heads: heads[:-1] + ("0" if heads[-1] != "0" else "1"))


def _unstruck(rows: list[Line]) -> None:
    """Say again what was struck, as if nobody had erased it."""
    line = next(row for row in rows if row["line"] == "content")
    taken = {row["position"] for row in rows if row["line"] == "content" and row["namespace"] == line["namespace"]}
    own = (row for row in rows if row["line"] == "entry" and row["namespace"] == line["namespace"])
    struck = next(row for row in own if '"content":' in row["entry"] and row["position"] not in taken)
    rows.insert(rows.index(struck) + 1, {**line, "position": struck["position"]})


def _reworded(rows: list[Line], noun: str, field: str, change: Callable[[Any], Any]) -> None:
    for row in rows:
        entry = json.loads(row["entry"]) if row["line"] == "entry" else {}
        if entry.get("entry") == noun and field in entry:
            row["entry"] = canonical.encode({**entry, field: change(entry[field])}).decode()


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        (_unsigned, {"signature"}),
        (_unparted, {"entry", "namespace"}),
        (_other_export, {"entry", "export"}),
        (_other_heads, {"entry"}),
        (_unstruck, {"content"}),
    ],
)
def test_what_is_altered_in_the_parted_ledger_is_named(alter: Callable[[list[Line]], None], expected: set[str]) -> None:
    """A kept signature gone, another parting, another export, other heads at the rotation, a name brought back."""
    rows = [json.loads(line) for line in PARTED.splitlines()]

    alter(rows)

    assert expected <= {check for check, _, _ in verify_format.verify(ledger.written(rows), [NEXT_PUBLIC])}


CALLERS: Final = (ADA, MODEL, TOOL, STRANGER, ELSEWHERE)
ATTEMPTS: Final = 100
ACTS: Final = ("remember", "remember", "remember", "close", "retract") * 4 + ("forget", "share", "isolate", "promote")


def live(scratch: Scratch, chance: random.Random) -> int:
    """Try many things as several callers, most of which the rules refuse; how many they let in."""
    known: list[str] = [NOBODY]
    admitted = 0
    team = scratch.memory.share("team")
    scratch.memory.grant("ada", Act.PROMOTE, scope=Scope.USER)
    scratch.memory.grant("ada", Act.PROMOTE, namespace=team)
    for attempt in range(ATTEMPTS):
        memory = scratch.by(chance.choice(CALLERS))
        scratch.wait(chance.choice((-1, 0, 1)))
        with suppress(LedgerstoneError):
            match chance.choice(ACTS):
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
                case "forget":
                    memory.forget(chance.choice(known), dry_run=False)
                    continue
                case "share":
                    made = memory.remember("word " * attempt, namespace=team)
                case "promote":
                    scope, namespace = chance.choice(((Scope.USER, None), (None, team)))
                    made = memory.promote(chance.choice(known), scope=scope, namespace=namespace)
                case "isolate":
                    memory.isolate(memory.bound()["project"], isolated=chance.random() < 1 / 2)
                    continue
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
    """As a program: 0 for the golden ledger, 1 with the fault in print for one that was altered, 2 for a slip."""
    altered = tmp_path / "altered.jsonl"
    altered.write_text(ledger.TEXT.replace("uses make", "uses sake"), encoding="utf-8")

    runs = [
        subprocess.run(
            [sys.executable, "-I", SCRIPT, path, PUBLIC.hex()], capture_output=True, encoding="utf-8", check=False
        )
        for path in (HERE / "ledger.jsonl", altered, tmp_path / "none")
    ]

    assert [run.returncode for run in runs] == [0, 1, 2]
    assert runs[2].stderr.count("\n") == 1
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


def _restore_content(rows: list[Line]) -> None:
    rows.append({**the(rows, "content", position=1), "position": 24})


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
    last = max(row["position"] for row in rows if row["line"] == "entry" and row["namespace"] == PROJECT)
    for row in [row for row in rows if row.get("namespace") == PROJECT and row.get("position") == last]:
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
    "a content that was erased": (_restore_content, "content"),
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


def instead(namespace: str, number: int, body: Line) -> Edit:
    """An edit that puts another entry where the first one of a commit was."""

    def change(_: Line, entries: list[Line]) -> None:
        entries[0].clear()
        entries[0].update(body)

    return at(namespace, number, change)


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


def _body(position: int, namespace: str = PROJECT) -> Line:
    found: Line = json.loads(the(ledger.lines(), "entry", namespace=namespace, position=position)["entry"])
    return found


def _digest(position: int, namespace: str = PROJECT) -> str:
    return digest_of(canonical.encode(_body(position, namespace))).hex()


def _rest_on_each_other(_: Line, entries: list[Line]) -> None:
    entries[1]["sources"] = [_digest(4)]


def _same_memory(_: Line, entries: list[Line]) -> None:
    entries[1] |= {"memory": entries[0]["memory"], "version": 2}


def _held_from_the_user(header: Line, entries: list[Line]) -> None:
    header["stamp"]["origin"] = entries[0]["origin"] = "user"
    entries[0]["trust"] = "user_explicit"


def _not_alone(_: Line, entries: list[Line]) -> None:
    entries[1].clear()
    entries[1].update({"format": 1, "entry": "erasure", "erases": [_digest(1)]})


def _more_than_fits(header: Line, entries: list[Line]) -> None:
    entries[0]["content"]["bytes"] = header["limits"]["text_bytes"]


def _strikes(digest: str) -> Line:
    return {"format": 1, "entry": "erasure", "strikes": [digest]}


def _exported(**fields: str) -> Line:
    return {"format": 1, "entry": "export", "sequence": 5, "head": "00" * 32, **fields}


def _promotion() -> Line:
    entry = {"format": 1, "entry": "promotion", "source_namespace": PROJECT, "source": "00" * 32}
    return {**entry, "trust": "model_inferred"}


def _set(**fields: Any) -> Line:
    entry = {"format": 1, "entry": "setting", "id": "set_0000000000000000", "setting": "isolated", "value": 1}
    return {**entry, "namespace": PROJECT, **fields}


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
    "a namespace that was not yet made": (
        at(PROJECT, 0, lambda header, _: header["store"].update(sequence=0, id=ledger.ids(STORE)[0])),
        "store",
    ),
    "a store chain that names itself": (
        at(STORE, 5, lambda header, _: header.update(store={"sequence": 4, "id": ledger.ids(STORE)[4]})),
        "store",
    ),
    "a grant on two things": (at(STORE, 4, lambda _, entries: entries[0].update(scope="project")), "grant rule"),
    "a grant on nothing": (at(STORE, 4, lambda _, entries: entries[0].pop("namespace")), "grant rule"),
    "a grant's id again": (
        at(STORE, 4, lambda _, entries: entries[0].update(grant=_body(3, STORE)["grant"])),
        "grant rule",
    ),
    "half a head that is given up": (
        instead(STORE, 6, {"format": 1, "entry": "restore", "namespace": PROJECT, "abandoned_sequence": 1}),
        "restore rule",
    ),
    "a revocation of nothing": (at(STORE, 7, lambda _, entries: entries[0].update(revokes="00" * 32)), "revoke rule"),
    "a second revocation": (
        at(STORE, 7, lambda _, entries: entries[0].update(revokes=_body(25, STORE)["revokes"])),
        "revoke rule",
    ),
    "a revocation of a namespace": (
        at(STORE, 7, lambda _, entries: entries[0].update(revokes=_digest(18, STORE))),
        "revoke rule",
    ),
    "another public key": (at(STORE, 0, lambda _, entries: entries[1].update(public="00" * 32)), "key_entry rule"),
    "a key again": (instead(STORE, 6, _body(1, STORE)), "key_entry rule"),
    "a name of another sort": (at(STORE, 2, lambda _, entries: entries[0].update(of="session")), "name rule"),
    "a name's id again": (
        at(STORE, 3, lambda _, entries: entries[0].update(id=_body(2, STORE)["id"])),
        "name rule",
    ),
    "a second chain of the store": (
        at(STORE, 1, lambda _, entries: entries[2].update(scope="store")),
        "namespace rule",
    ),
    "a namespace again": (instead(STORE, 6, _body(18, STORE)), "namespace rule"),
    "a second genesis": (instead(PROJECT, 19, _body(0)), "genesis rule"),
    "a chain without a genesis": (instead(PROJECT, 0, _body(22)), "genesis rule"),
    "another nonce": (entry(0, nonce="00" * 16), "genesis"),
    "a format that is true": (entry(1, format=True), "entry"),
    "a header of a format that is true": (header(5, format=True), "header"),
    "a word that could be a text": (entry(3, overrides=["Call me."]), "entry"),
    "a field at its absent value": (entry(1, depth=0), "entry"),
    "an empty array": (entry(1, sources=[]), "entry"),
    "a kind that is none": (entry(3, entry="remark"), "entry"),
    "a kind of the store in a namespace": (instead(PROJECT, 19, _body(29, STORE)), "refusal rule"),
    "a kind of namespaces in the store": (instead(STORE, 8, _body(22)), "close rule"),
    "a kind that is reserved": (instead(PROJECT, 19, {"format": 1, "entry": "wake"}), "wake rule"),
    "a source that is nothing": (entry(3, sources=["00" * 32]), "sources rule"),
    "a source that is no version": (entry(3, sources=[_digest(0)]), "sources rule"),
    "a source of the same commit": (at(PROJECT, 4, _rest_on_each_other), "sources rule"),
    "a memory twice in a commit": (at(PROJECT, 4, _same_memory), "replaces rule"),
    "a cover that is no source": (entry(5, covers=[_digest(3)]), "covers rule"),
    "a note that covers": (entry(3, covers=[_digest(1)]), "covers rule"),
    "a note with a depth": (entry(3, depth=1), "covers rule"),
    "a contest with what has ended": (entry(15, contests=_digest(1)), "contests rule"),
    "more obligations than fit": (at(PROJECT, 10, _more_than_fits), "open_tasks rule"),
    "a close of what is no task": (entry(11, closes=_digest(9), memory=_memory(9)), "close rule"),
    "a retraction that leaves a version out": (entry(13, version=3), "retract rule"),
    "a retraction of an older version": (instead(PROJECT, 29, _body(29)), "retract rule"),
    "an erasure of what is no version": (entry(26, erases=[_digest(0)]), "erasure rule"),
    "an erasure of what was erased": (instead(PROJECT, 29, _body(27)), "erasure rule"),
    "an erasure of nothing": (entry(26, erases=None), "erasure rule"),
    "an erasure of two sorts": (entry(26, strikes=[_digest(12)]), "erasure rule"),
    "a strike of a record": (instead(PROJECT, 29, _strikes(_digest(3))), "erasure rule"),
    "a strike of what says nothing": (instead(STORE, 8, _strikes(_digest(4, STORE))), "erasure rule"),
    "an export of what was never made": (instead(STORE, 8, _exported(namespace="ns_0000000000000000")), "export rule"),
    "an export of another head": (instead(STORE, 8, _exported(namespace=PROJECT)), "export"),
    "an export of another store": (instead(STORE, 8, _exported()), "export"),
    "a parting from what was never made": (
        instead(STORE, 8, {"format": 1, "entry": "parting", "without": ["ns_0000000000000000"]}),
        "parting rule",
    ),
    "a setting of what was never made": (instead(STORE, 8, _set(namespace="ns_0000000000000000")), "setting rule"),
    "a setting that no rule knows": (instead(STORE, 8, _set(setting="colour")), "setting rule"),
    "a setting at a value it has not": (instead(STORE, 8, _set(value=2)), "setting rule"),
    "a promotion without its record": (instead(PROJECT, 29, _promotion()), "promotion rule"),
    "a record that came by nothing": (entry(3, promotion=_digest(1)), "promotion rule"),
    "a namespace that was left": (
        instead(STORE, 8, {"format": 1, "entry": "parting", "without": [PROJECT]}),
        "namespace",
    ),
    "an erasure beside something else": (at(PROJECT, 4, _not_alone), "erasure rule"),
    "an erasure by a grant to write": (
        stamp(26, grant=json.loads(the(ledger.lines(), "commit", sequence=19)["header"])["stamp"]["grant"]),
        "grant",
    ),
    "a held value that the user says": (at(PROJECT, 14, _held_from_the_user), "held_by rule"),
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
    assert check == "state" or any(replay.findings for replay in ledger.replayed(forged))
    assert not check.endswith(" rule") or check.removesuffix(" rule") in broken(forged)


REWORDED: Final[dict[str, tuple[str, dict[int, Line], str]]] = {
    "a record with a name": (PROJECT, {1: {"name": "x"}}, "content rule"),
    "a record with a reason": (PROJECT, {1: {"reason": "x"}}, "content rule"),
    "a record without a text": (PROJECT, {1: {"text": None}}, "content rule"),
    "a close with a text": (PROJECT, {12: {"text": "x"}}, "content rule"),
    "a retraction without a reason": (PROJECT, {14: {"reason": None}}, "content rule"),
    "a name with a key": (STORE, {2: {"key": "x"}}, "content rule"),
    "a namespace without a name": (STORE, {18: {"name": None}}, "content rule"),
    "a key that the memory gives up": (PROJECT, {2: {"key": None}}, "key rule"),
    "a key that the memory changes": (PROJECT, {2: {"key": "other.key"}}, "key rule"),
    "a key twice in a commit": (PROJECT, {4: {"key": "twin"}, 5: {"key": "twin"}}, "key rule"),
    "a content of a format that is true": (PROJECT, {1: {"format": True}}, "content"),
}


@pytest.mark.parametrize("name", REWORDED)
def test_reworded_copy_is_found(name: str) -> None:
    """As before, where it is the content that says what it may not."""
    namespace, contents, check = REWORDED[name]

    reworded = ledger.reworded(ledger.lines(), namespace, contents)

    assert check in faults(reworded)
    assert any(replay.findings for replay in ledger.replayed(reworded))
    assert not check.endswith(" rule") or check.removesuffix(" rule") in broken(reworded)


def test_other_words_break_no_rule() -> None:
    """The neighbour: another text, and two different keys in one commit, change the state and nothing else."""
    contents: dict[int, Line] = {3: {"text": "News."}, 4: {"key": "one"}, 5: {"key": "another"}, 12: {"reason": "x"}}

    reworded = ledger.reworded(ledger.lines(), PROJECT, contents)

    assert faults(reworded) == {"state"}
    assert broken(reworded) == set()


NUMBERED: Final = re.compile(r"^\d+\. (\*[a-z_]+\*(?:, \*[a-z_]+\*)*)", re.MULTILINE)


def test_every_rule_of_the_page_is_broken_here() -> None:
    """The names of the page's rules are those that the copies above break; a noun in the wrong place is its own."""
    page = make.PAGE.read_text(encoding="utf-8")
    section = page[page.index("\n## 12. ") : page.index("\n## 13. ")]
    named = {name.strip("* ") for names in NUMBERED.findall(section) for name in names.split(",")}
    nouns = {json.loads(row["entry"])["entry"] for row in ledger.lines() if row["line"] == "entry"} | {"wake"}

    checks = [check for _, check in FORGED.values()] + [check for _, _, check in REWORDED.values()]
    here = {check.removesuffix(" rule") for check in checks if check.endswith(" rule")}

    assert named - here == set()
    assert here - named <= nouns


def _any_edit(chance: random.Random) -> Edit:
    """A field of one entry taken from another entry of the ledger, or left out."""
    rows = [row for row in ledger.lines() if row["line"] == "entry"]
    row = chance.choice(rows)
    other = json.loads(chance.choice([one for one in rows if one["namespace"] == row["namespace"]])["entry"])
    position = row["position"]
    names = sorted((json.loads(row["entry"]).keys() | other.keys()) - {"entry", "format", "content"})

    def edit(found: str, _: int, header: Line, entries: list[Line]) -> None:
        first = header["counts"]["entries"] - len(entries)
        if found == row["namespace"] and first <= position < first + len(entries):
            for name in chance.sample(names, chance.randint(1, min(2, len(names)))):
                entries[position - first].pop(name, None)
                if name in other:
                    entries[position - first][name] = other[name]

    return edit


@pytest.mark.parametrize("seed", range(6))
def test_both_verifiers_find_the_same_rules_broken(seed: int) -> None:
    """Whatever a copy says that can be read at all, the library and the script refuse it by the same rules."""
    chance = random.Random(seed)
    judged = 0

    for _ in range(16):
        forged = ledger.resealed(ledger.lines(), _any_edit(chance))
        found = faults(forged)
        if not found & {"entry", "header"}:
            judged += 1
            assert {f"{rule} rule" for rule in broken(forged)} == {one for one in found if one.endswith(" rule")}

    assert judged
