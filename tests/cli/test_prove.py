"""Proving from the command line: a file for a stranger, notes to keep elsewhere, and what a store must contain."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Desk

SCRIPT = Path(__file__).parents[2] / "tools" / "verify_proof.py"


def public(desk: Desk) -> str:
    """The public key of the desk's store."""
    found: str = desk.ask("keys", "show")["public"]
    return found


def test_a_proof_is_checked_without_the_store(bound: Desk) -> None:
    """Store and key gone, the file and the public key suffice, for the command and for the script."""
    record = bound.ask("remember", "Deploys go out on Tuesdays", "--key", "deploy")
    file = bound.home / "record.proof"
    written = bound.ask("prove", record["address"], str(file))
    key = public(bound)
    (bound.home / "ledgerstone").rename(bound.home / "gone")

    found = bound.ask("verify-proof", str(file), "--public-key", key)
    script = subprocess.run([sys.executable, SCRIPT, file, key], capture_output=True, text=True, check=True)

    assert written == {"file": str(file), "bytes": file.stat().st_size}
    assert (found["text"], found["key"], found["standing"]) == ("Deploys go out on Tuesdays", "deploy", "current")
    assert (found["address"], found["digest"]) == (record["address"], record["digest"])
    assert (found["public"], found["erased"]) == (key, False)
    assert json.loads(script.stdout)["address"] == record["address"]
    assert not (bound.home / "ledgerstone").exists()


def test_a_proof_goes_through_a_pipe(bound: Desk) -> None:
    """To standard output go the bytes and nothing else, and from standard input they are checked; a file too."""
    address = bound.ask("remember", "a note")["address"]
    (bound.home / "key").write_text(public(bound) + "\n")

    proof = bound.run("prove", address)
    bare = bound.run("prove", address, "--without-text")
    shown = bound.run("verify-proof", "-", "--public-key", str(bound.home / "key"), given=proof.out)
    withheld = bound.run("verify-proof", "-", given=bare.out)

    assert (proof.code, proof.err, shown.code, withheld.code) == (0, "", 0, 0)
    assert json.loads(proof.out)["proof"] == "record"
    for line in (f"record     {address}", "text       a note", "standing   current, at commit 1"):
        assert line in shown.out.decode()
    assert "text       (withheld)" in withheld.out.decode()


def test_without_a_key_the_hint_is_to_name_one(bound: Desk) -> None:
    """Where there is neither store nor key, no new one would help: it says so, and by the key named it is checked."""
    proof = bound.run("prove", bound.ask("remember", "a note")["address"]).out
    key, empty = public(bound), {"LEDGERSTONE_HOME": str(bound.home / "empty")}

    refused = bound.run("verify-proof", "-", "--json", given=proof, env=empty)
    taken = bound.run("verify-proof", "-", "--public-key", key, given=proof, env=empty)

    error = json.loads(refused.err)
    assert (refused.code, error["code"], taken.code) == (5, "unavailable", 0)
    assert "--public-key" in error["hint"]
    assert "ledgerstone init" not in error["hint"]


def test_a_wrong_proof_is_refused(bound: Desk) -> None:
    """Altered, under another key or not there: exit 4 and 5; the neighbour is taken."""
    address = bound.ask("remember", "a note")["address"]
    proof = bound.run("prove", address).out
    file = bound.home / "record.proof"
    file.write_bytes(proof.replace(b"a note", b"a lie!"))

    code, error = bound.refuse("verify-proof", str(file))

    assert (code, error["code"]) == (4, "corruption")
    assert "does not commit to" in error["message"]
    file.write_bytes(proof)
    assert bound.ask("verify-proof", str(file))["text"] == "a note"
    assert bound.refuse("verify-proof", str(file), "--public-key", "00" * 32)[0] == 4
    assert bound.refuse("verify-proof", str(bound.home / "none"))[0] == 5
    assert bound.refuse("prove", "mem_0000000000000000")[0] == 3


def test_a_proof_is_not_written_over_a_file_nor_on_a_terminal(bound: Desk) -> None:
    """What is there stays, and a terminal gets no file's bytes."""
    address = bound.ask("remember", "a note")["address"]
    file = bound.home / "taken"
    file.write_text("mine")

    assert bound.refuse("prove", address, str(file))[0] == 2
    assert file.read_text() == "mine"
    assert bound.sit("prove", address).code == 2


def test_an_erased_record_is_proven_to_be_erased(bound: Desk) -> None:
    """A proof after the erasure says which commit erased it; one from before still shows the text."""
    address = bound.ask("remember", "never mind")["address"]
    before = bound.run("prove", address).out
    bound.sit("forget", address, "--yes")

    after = bound.run("prove", address).out

    shown = bound.run("verify-proof", "-", given=after).out.decode()
    assert "text       erased by commit 2" in shown
    assert "standing   erased, by commit 2, at commit 2" in shown
    assert "never mind" in bound.run("verify-proof", "-", given=before).out.decode()


def test_a_checkpoint_is_kept_and_expected(bound: Desk) -> None:
    """Notes and heads of before are contained in the store after more writes; what is not there exits 4."""
    bound.ask("remember", "one")
    notes = bound.home / "heads.note"
    notes.write_bytes(bound.run("checkpoint").out)
    head = bound.ask("recall", "--heads")["heads"]
    commit = next(iter(head.values()))["commit"]
    bound.ask("remember", "two")

    assert bound.ask("checkpoint")["checkpoints"][0].startswith("ledgerstone/ns_")
    for expected in (str(notes), commit):
        assert bound.ask("verify", "--expected", expected)["ok"] is True
    missing = bound.invoke("verify", "--expected", "00" * 32)
    assert (missing.exit_code, "no chain contains commit" in missing.stdout) == (4, True)
    notes.write_text(notes.read_text().replace("\n2\n", "\n1\n"))
    assert bound.refuse("verify", "--expected", str(notes))[0] == 4
    assert bound.refuse("verify", "--expected", str(bound.home / "none"))[0] == 2


def test_one_checkpoint_is_of_one_chain(bound: Desk) -> None:
    """--namespace gives one note, exactly as it is signed; an unknown one is exit 3."""
    namespace = bound.ask("remember", "one")["namespace"]

    note = bound.run("checkpoint", "--namespace", namespace).out.decode()

    origin, size, _, empty, signature = note.removesuffix("\n").split("\n")
    assert (origin, size, empty) == (f"ledgerstone/{namespace}", "2", "")
    assert signature.startswith(f"\u2014 {origin} ")
    assert bound.refuse("checkpoint", "--namespace", "ns_0000000000000000")[0] == 3
