"""Promises of ``checkpoint``, ``prove`` and ``verify --expected``: a stranger checks records, an owner the store."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ledgerstone import (
    Attested,
    CorruptionError,
    Draft,
    Keyring,
    Kind,
    Memory,
    NotFoundError,
    Scope,
    SigningKey,
    Standing,
    Status,
    StoreError,
    UsageError,
    verify_proof,
)
from ledgerstone.core import proofs
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.signing import COMMIT
from tests.memories import ADA, BOB, ELSEWHERE, NOBODY, Scratch

SCRIPT: Final = Path(__file__).parent.parent / "tools" / "verify_proof.py"
OTHER: Final = Keyring(SigningKey(seed=b"o" * 32, secret=b"p" * 32))


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_proof", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _load()


def checked(scratch: Scratch, proof: bytes) -> Attested:
    """What a proof proves, once both verifiers say the same of it."""
    keys = list(scratch.keys.public.values())
    found, second = verify_proof(proof, keys), script.verify(proof, keys)
    same: dict[str, Any] = {
        "address": found.address,
        "namespace": found.namespace,
        "kind": found.kind.value,
        "status": found.status.value,
        "text": found.text,
        "at": found.at,
        "principal": found.principal,
        "origin": found.origin.value,
        "trust": found.trust.word,
        "sequence": found.sequence,
        "commit": found.commit.hex(),
        "head_sequence": found.head_sequence,
        "head": found.head.hex(),
        "head_at": found.head_at,
        "signer": found.signer,
    }
    assert {name: second[name] for name in same} == same
    assert second.get("ended_by") == found.ended_by
    assert second.get("reason") == found.reason
    assert (second["standing"] == "erased") == found.erased
    return found


def refused_by_both(proof: bytes, keys: list[bytes]) -> bool:
    """Whether both verifiers refuse a proof; neither breaks over it."""
    try:
        verify_proof(proof, keys)
    except CorruptionError:
        try:
            script.verify(proof, keys)
        except script.Refused:
            return True
    return False


@pytest.fixture(scope="module")
def kept(shelf: Scratch) -> tuple[Scratch, dict[str, str]]:
    """A store with versions of every standing and some 300 commits, and their addresses by name."""
    memory = shelf.memory
    named = {"first": memory.remember(Draft(text="é\u2028 first \\u0000", key="k", tags=("a",))).record.address}
    named["second"] = memory.remember(Draft(text="second", key="k")).record.address
    task = memory.remember(Draft(text="Water it", kind=Kind.TASK)).record.address
    named["task"], named["closed"] = task, memory.close_task(task, reason="it rained").record.address
    note = memory.remember("withdrawn").record.address
    named["retracted"] = memory.retract(note, reason="wrong", reject=True).record.address
    for number in range(290):
        named["middle" if number == 150 else "last"] = memory.remember(f"note {number}").record.address
    gone = memory.remember("never mind").record.address
    memory.forget(gone, dry_run=False)
    return shelf, named | {"erased": gone}


@pytest.mark.parametrize("name", ["first", "second", "task", "closed", "retracted", "middle", "last", "erased"])
def test_every_version_is_proven_as_it_stands(kept: tuple[Scratch, dict[str, str]], name: str) -> None:
    """What a stranger learns of a record, from either verifier, is what ``get`` says of it to its owner."""
    scratch, named = kept
    record = scratch.memory.get(named[name])

    found = checked(scratch, scratch.memory.prove(named[name]))

    for field in ("address", "digest", "namespace", "kind", "status", "standing", "origin", "trust", "text", "reason"):
        assert getattr(found, field) == getattr(record, field)
    assert (found.at, found.sequence, found.ended_by) == (record.created_at, record.sequence, record.ended_by)
    assert (None if found.content is None else found.content.key) == record.key


def test_a_record_is_proven_by_memory_or_digest(scratch: Scratch, ada: Memory) -> None:
    """A memory id means its newest version; what is not there, or not for this caller, is not proven."""
    first = ada.remember(Draft(text="one", key="k")).record
    second = ada.remember(Draft(text="two", key="k")).record

    assert checked(scratch, ada.prove(first.memory)).address == second.address
    assert checked(scratch, ada.prove(first.digest.hex())).address == first.address
    with pytest.raises(NotFoundError):
        ada.prove(NOBODY)
    with pytest.raises(NotFoundError):
        scratch.by(ELSEWHERE).prove(first.address)


def test_a_proof_without_text_tells_nothing_erasable(scratch: Scratch, ada: Memory) -> None:
    """Without its text a proof holds no byte of text, key, reason or salt, and proves the rest."""
    task = ada.remember(Draft(text="Water it", kind=Kind.TASK, key="garden")).record
    closed = ada.close_task(task.address, reason="it rained").record

    bare, full = ada.prove(closed.address, text=False), ada.prove(closed.address)

    assert (checked(scratch, bare).text, checked(scratch, bare).status) == (None, Status.CLOSED)
    for word in (b"Water it", b"garden", b"it rained", b"salt"):
        assert word in full
        assert word not in bare


def test_a_proof_outlives_what_comes_later(scratch: Scratch, ada: Memory) -> None:
    """After later writes, its own erasure and that of others it proves what it proved, as of its head."""
    one, two = (ada.remember(Draft(text=text, key=text)).record for text in ("one", "two"))
    before = ada.prove(one.address), ada.prove(two.address)
    ada.remember(Draft(text="another one", key="one"))
    ada.forget(one.address, dry_run=False)

    old = [checked(scratch, proof) for proof in before]
    new = [checked(scratch, ada.prove(each.address)) for each in (one, two)]

    assert [(each.text, each.standing) for each in old] == [("one", Standing.CURRENT), ("two", Standing.CURRENT)]
    assert [(each.text, each.erased) for each in new] == [(None, True), ("two", False)]
    assert new[0].ended_by == new[1].head_sequence
    assert ada.verify().ok


def test_a_proof_is_made_without_a_signing_key(scratch: Scratch, ada: Memory) -> None:
    """A store that is open to read gives proofs, and no checkpoints."""
    address = ada.remember("a note").record.address
    pinned = Keyring(pins=tuple(scratch.keys.public.values()))

    with Memory.open(scratch.path, keys=pinned, caller=ADA, state=None) as reader:
        assert checked(scratch, reader.prove(address)).text == "a note"
        with pytest.raises(StoreError, match="no signing key"):
            reader.checkpoint()


def altered(value: Any) -> list[tuple[str, Any]]:
    """Copies of a JSON value, each with one field changed, left out, or added, and what that was."""
    found: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        for name, member in value.items():
            found.append((f"without {name}", {key: each for key, each in value.items() if key != name}))
            found += [(f"{name} {what}", {**value, name: each}) for what, each in altered(member)]
        found.append(("with more", {**value, "more": 1}))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            found.append((f"without {index}", value[:index] + value[index + 1 :]))
            found += [
                (f"{index} {what}", [*value[:index], each, *value[index + 1 :]]) for what, each in altered(member)
            ]
        found.append(("twice", [*value, *value]))
    elif isinstance(value, str):
        inner = _object(value)
        found += [(what, _spelled(each)) for what, each in altered(inner)] if inner else [("longer", value + "0")]
        if not inner and set(value) <= set("0123456789abcdef"):
            found.append(("a digit", value[:-1] + ("0" if value[-1] != "0" else "1")))
        found.append(("a number", 1))
    else:
        found += [("one more", value + 1), ("true", True), ("a text", str(value)), ("nothing", None)]
    return found


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# What may be left out is the text: then the proof is one without it.
WITHHELD: Final = {"without content", "without reason"}


@pytest.mark.parametrize("name", ["first", "closed", "middle", "erased"])
def test_no_field_of_a_proof_can_be_altered(kept: tuple[Scratch, dict[str, str]], name: str) -> None:
    """Each field, also of the objects inside, changed, left out or added: both verifiers refuse it."""
    scratch, named = kept
    keys = list(scratch.keys.public.values())
    proof = scratch.memory.prove(named[name])
    copies = [(what, f"{_spelled(copy)}\n".encode()) for what, copy in altered(json.loads(proof))]

    taken = {what for what, copy in copies if not refused_by_both(copy, keys)}

    assert taken == WITHHELD & {what for what, _ in copies}
    assert len(copies) > 100


@pytest.mark.parametrize("name", ["first", "closed"])
def test_no_bit_of_a_proof_can_be_turned(kept: tuple[Scratch, dict[str, str]], name: str) -> None:
    """Bits turned here and there, and the end cut off: both verifiers refuse it."""
    scratch, named = kept
    keys = list(scratch.keys.public.values())
    proof = scratch.memory.prove(named[name])
    chance = random.Random(name)

    def turned(place: int) -> bytes:
        return proof[:place] + bytes([proof[place] ^ 1 << chance.randrange(8)]) + proof[place + 1 :]

    assert all(refused_by_both(turned(place), keys) for place in chance.sample(range(len(proof)), 300))
    assert all(refused_by_both(proof[:size], keys) for size in chance.sample(range(len(proof)), 50))
    assert refused_by_both(b"\xff\n", keys)


def test_no_piece_fits_another_proof(kept: tuple[Scratch, dict[str, str]]) -> None:
    """A field exchanged for that of another record's proof is refused, unless both have the same."""
    scratch, named = kept
    keys = list(scratch.keys.public.values())
    texts = [scratch.memory.prove(named[name]) for name in ("first", "second", "closed", "middle", "last", "erased")]
    read = [json.loads(text) for text in texts]

    for one in read:
        for other in read:
            for field in one.keys() | other.keys():
                mixed = {key: value for key, value in one.items() if key != field}
                mixed |= {field: other[field]} if field in other else {}
                withheld = field in {"content", "reason"} and field not in other
                if mixed != one and not withheld:
                    assert refused_by_both(f"{_spelled(mixed)}\n".encode(), keys)


def test_only_the_right_key_counts_for_both(scratch: Scratch, ada: Memory) -> None:
    """Under another key, or none, neither verifier takes a proof."""
    proof = ada.prove(ada.remember("a note").record.address)

    assert checked(scratch, proof).public in scratch.keys.public.values()
    assert refused_by_both(proof, list(OTHER.public.values()))
    assert refused_by_both(proof, [])


def test_the_script_runs_alone(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """With a proof and a key it prints what is proven; what is wrong ends with 1, a slip with 2, in one line."""
    file = tmp_path / "record.proof"
    file.write_bytes(ada.prove(ada.remember("a note").record.address))
    key = next(iter(scratch.keys.public.values())).hex()

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-I", SCRIPT, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        return done.returncode, done.stdout or done.stderr

    code, out = run(str(file), key)

    assert (code, json.loads(out)["text"]) == (0, "a note")
    assert run(str(file), "00" * 32)[0] == 1
    assert run(str(file))[0] == 2
    for slip in ((str(tmp_path / "none"), key), (str(file), "no hex")):
        code, said = run(*slip)
        assert (code, said.count("\n")) == (2, 1), said
    assert "ledgerstone" not in {line.split()[1] for line in SCRIPT.read_text().splitlines() if line[:5] == "from "}


def test_damage_is_not_proven(scratch: Scratch, ada: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot prove a record says so, and gives nothing out; the neighbour is proven."""
    old = ada.remember("old").record
    ada.remember("new")
    store: Any = ada._ledger.store
    with store.read() as reader:
        reads = type(reader)
    monkeypatch.setattr(reads, "headers", lambda *_, **__: iter(()))

    with pytest.raises((CorruptionError, UsageError)):
        ada.prove(old.address)
    monkeypatch.undo()
    assert checked(scratch, ada.prove(old.address)).text == "old"


def test_a_checkpoint_names_every_chain_that_may_be_known(scratch: Scratch, ada: Memory) -> None:
    """The store's own chain, then each namespace of the caller, or the one that is asked for; others do not exist."""
    project = ada.remember("here").record.namespace
    user = ada.remember("mine", scope=Scope.USER).record.namespace

    def names(notes: tuple[str, ...]) -> list[str]:
        return [note.split("\n")[0].removeprefix("ledgerstone/") for note in notes]

    store = ada.status()["store"]
    assert names(ada.checkpoint()) == [store, project, user]
    assert names(ada.checkpoint(project)) == [project]
    assert names(scratch.by(BOB).checkpoint()) == [store]
    for caller, name in ((BOB, project), (ADA, "ns_0000000000000000")):
        with pytest.raises(NotFoundError):
            scratch.by(caller).checkpoint(name)


def test_a_checkpoint_states_the_heads(scratch: Scratch, ada: Memory) -> None:
    """Sizes and roots are those of the chains, under the key that signs; the next commit states that root too."""
    ada.remember("one")
    before = proofs.read_checkpoints("".join(ada.checkpoint()).encode(), scratch.keys)
    heads = scratch.heads()

    address = ada.remember("two").record.address

    assert {each.namespace: each.size - 1 for each in before} == {name: head[0] for name, head in heads.items()}
    proof = json.loads(ada.prove(address))
    assert json.loads(proof["head"]["header"])["history"] == before[1].root.hex()


def test_a_store_contains_what_was_kept(scratch: Scratch, ada: Memory) -> None:
    """Heads and checkpoints of before, also the first ones, are found again after many more commits."""
    namespace = ada.remember("one").record.namespace
    notes = ada.checkpoint()
    head = scratch.heads()[namespace][1]
    for number in range(5):
        ada.remember(f"more {number}")

    for expected in (head, "\n".join(notes), notes[1], ada.checkpoint(namespace)[0]):
        assert ada.verify(expected=expected).findings == ()


@pytest.fixture
def rolled_back(scratch: Scratch, tmp_path: Path) -> tuple[Scratch, bytes, str, str]:
    """A store put back to an older copy, with the head, the checkpoint and the namespace of what came after."""
    namespace = scratch.memory.remember("one").record.namespace
    scratch.memory.backup(tmp_path / "older")
    scratch.memory.remember("two")
    head, note = scratch.heads()[namespace][1], scratch.memory.checkpoint(namespace)[0]
    scratch.memory.close()
    for log in tmp_path.glob("memory.ledger*"):
        log.unlink()
    (tmp_path / "older").rename(scratch.path)
    scratch.memory = scratch.open()
    return scratch, head, note, namespace


def test_a_rolled_back_store_does_not_contain_it(rolled_back: tuple[Scratch, bytes, str, str]) -> None:
    """An older copy is sound in itself; by what was kept elsewhere it is found to lack a commit."""
    scratch, head, note, namespace = rolled_back

    assert scratch.memory.verify().ok
    by_head, by_note = (scratch.memory.verify(expected=expected).findings for expected in (head, note))

    assert [(each.code, each.sequence) for each in by_head] == [("expected", None)]
    assert [(each.code, each.namespace, each.sequence) for each in by_note] == [("expected", namespace, 2)]
    assert "the head is commit 1, behind a checkpoint of 3 commits" in by_note[0].message


def test_a_forked_store_does_not_contain_it(rolled_back: tuple[Scratch, bytes, str, str]) -> None:
    """A copy that went on otherwise is found, however long it is."""
    scratch, head, note, namespace = rolled_back
    scratch.memory.remember("another two")
    scratch.memory.remember("three")

    by_head, by_note = (scratch.memory.verify(expected=expected).findings for expected in (head, note))

    assert len(by_head) == 1
    assert "another history" in by_note[0].message
    assert by_note[0].namespace == namespace


def test_a_checkpoint_of_another_store_is_told(ada: Memory, tmp_path: Path) -> None:
    """A chain that is not here is a finding; a note that no trusted key signed is refused."""
    other = Scratch(tmp_path / "other.ledger", seed=1)
    foreign = other.memory.checkpoint()[0]
    other.memory.close()
    own = ada.checkpoint()[0]

    assert "no such chain" in ada.verify(expected=foreign).findings[0].message
    with pytest.raises(CorruptionError, match="no trusted key"):
        ada.verify(expected=own.replace("\n1\n", "\n2\n"))
    with pytest.raises(UsageError, match="not both"):
        ada.verify(expected=own, accept=True)


def test_a_forger_with_another_key_proves_nothing(scratch: Scratch, ada: Memory) -> None:
    """A head that somebody else signed is refused by both, though every hash under it fits."""
    proof = proofs._read(ada.prove(ada.remember("a note").record.address))
    signature = OTHER.sign(COMMIT, leaf_hash(proof.head.header))

    forged = replace(proof, head=replace(proof.head, signature=signature))

    assert refused_by_both(proofs.make(forged), list(scratch.keys.public.values()))
    assert not refused_by_both(proofs.make(proof), list(scratch.keys.public.values()))
