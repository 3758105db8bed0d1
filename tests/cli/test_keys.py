"""Keys from the command line: shown, moved, handed over; and stores that are opened as containers open them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ledgerstone.core.signing import Keyring
from ledgerstone.keys import prepare, seal
from tests.cli.conftest import Desk
from tests.stores import plain_client

WORDS = {"LEDGERSTONE_PASSPHRASE": "correct horse battery"}
ROTATE = ("keys", "rotate", "--yes")


def key_file(desk: Desk) -> Path:
    """Where this machine keeps its key."""
    return Path(desk.ask("keys")["file"])


def test_a_key_is_shown_by_its_public_half_alone(bound: Desk) -> None:
    """``keys`` names key, public half and file, ``keys show`` the public half and nothing beside; the seed nowhere."""
    held = json.loads(key_file(bound).read_text())

    listed, shown = bound.invoke("keys"), bound.invoke("keys", "show")

    assert (held["id"] in listed.stdout, "signs" in listed.stdout) == (True, True)
    assert shown.stdout == f"{held['public']}\n"
    assert not any(held[half] in listed.output + shown.output for half in ("seed", "secret"))


def test_a_key_is_rotated_at_a_terminal(bound: Desk) -> None:
    """After a yes the next key signs, what was written is there, and everything verifies; a no changes nothing."""
    bound.ask("remember", "the kettle is copper")
    old = bound.ask("keys", "show")["public"]
    refused = bound.sit("keys", "rotate", types="n\n")
    assert (refused.code, bound.ask("keys", "show")["public"]) == (130, old)

    done = bound.sit("keys", "rotate", types="y\n")

    assert done.code == 0, done.out
    new = bound.ask("keys", "show")["public"]
    assert new != old
    assert new.encode() in re.sub(rb"\s", b"", done.out)
    assert b"retired-1" in done.out
    assert bound.ask("remember", "the pot is tin")["sequence"]
    assert bound.ask("verify")["findings"] == []
    assert "the kettle is copper" in bound.invoke("recall", "kettle").stdout


def test_keys_that_were_retired_are_listed_and_check_what_they_signed(bound: Desk, tmp_path: Path) -> None:
    """Beside the one in force, each with where it ended; a proof from before holds by the key that is listed."""
    address, old = bound.ask("remember", "the kettle is copper")["address"], bound.ask("keys", "show")["public"]
    assert "retired" not in bound.ask("keys")
    proof = str(tmp_path / "proof.json")
    bound.ask("prove", address, proof)
    assert bound.sit(*ROTATE).code == 0

    (retired,) = bound.ask("keys")["retired"]
    by_default, by_name = bound.refuse("verify-proof", proof), bound.sit("verify-proof", proof, "--public-key", old)

    assert retired["public"] == old
    assert f"retired, store commit {retired['sequence']}" in bound.invoke("keys").stdout
    assert by_default[0] == 4
    assert "ledgerstone keys those retired since" in by_default[1]["hint"]
    assert b"it holds: every byte fits, and a key that was named signed it" in by_name.out


def test_a_program_does_not_rotate(bound: Desk) -> None:
    """Handing a store over is for somebody at a terminal; no new key is left behind."""
    code, error = bound.refuse(*ROTATE)

    assert (code, error["code"]) == (3, "authority")
    assert [each.name for each in key_file(bound).parent.iterdir() if "key" in each.name] == ["key.json"]
    assert bound.sit(*ROTATE).code == 0


@pytest.mark.parametrize("pin", ["old", "new"])
def test_a_container_reads_by_a_pin_before_and_after_a_rotation(
    bound: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin: str
) -> None:
    """With the store and a public key alone, in another home: what is asked is answered, and writes are refused."""
    store = Path(bound.ask("doctor")["files"][0]["path"])
    bound.ask("remember", "the kettle is copper")
    old = bound.ask("keys", "show")["public"]
    assert bound.sit(*ROTATE).code == 0
    bound.ask("remember", "the pot is tin")
    new = bound.ask("keys", "show")["public"]
    copy = Path(shutil.copytree(store.parent, tmp_path / "mounted")) / store.name

    monkeypatch.setenv("LEDGERSTONE_HOME", str(tmp_path / "container"))
    monkeypatch.setenv("LEDGERSTONE_STORE", str(copy))
    pinned = old if pin == "old" else new
    monkeypatch.setenv("LEDGERSTONE_PUBLIC_KEY", pinned)
    monkeypatch.setenv("LEDGERSTONE_READ_ONLY", "yes")

    assert {each["text"] for each in bound.ask("list")["items"]} >= {"the kettle is copper", "the pot is tin"}
    assert bound.ask("verify")["findings"] == []
    assert bound.refuse("remember", "the pan is iron")[0] != 0
    assert ("retired, store commit" in bound.run("keys").out.decode().partition(pinned)[2].partition("\n")[0]) == (
        pin == "old"
    )


def test_a_key_file_is_named_by_the_environment(bound: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container names its secret: it signs from there; a missing one is no reason to make another."""
    secret = Path(shutil.move(key_file(bound), tmp_path / "secret"))
    assert bound.refuse("remember", "the kettle is copper")[1]["hint"].startswith("put its key file back")

    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(secret))

    assert bound.ask("remember", "the kettle is copper")["sequence"]
    assert bound.ask("doctor")["store"]["signer"] == json.loads(secret.read_text())["id"]
    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(tmp_path / "missing"))
    assert "no key file" in bound.refuse("remember", "the pot is tin")[1]["message"]
    assert not (tmp_path / "missing").exists()


def test_read_only_writes_nothing_though_there_is_a_key(bound: Desk) -> None:
    """The flag answers what is asked, leaves the file as it is, and is the only thing in the way of a write."""
    bound.ask("remember", "the kettle is copper")
    store = Path(bound.ask("doctor")["files"][0]["path"])
    before = store.read_bytes()

    code, error = bound.refuse("--read-only", "remember", "the pot is tin")

    assert "read-only" in error["message"]
    assert bound.ask("--read-only", "list")["items"]
    assert store.read_bytes() == before
    assert code == 5
    assert bound.ask("remember", "the pot is tin")["sequence"]


def test_a_key_that_was_rotated_goes_where_the_old_one_was(bound: Desk, tmp_path: Path) -> None:
    """Another machine's ``keys import`` puts the new key beside its old one, and its next opening of the store on."""
    first = key_file(bound)
    there = tmp_path / "there.json"
    shutil.copy(first, there)
    elsewhere = {"LEDGERSTONE_KEY_FILE": str(there), **WORDS}
    assert bound.sit(*ROTATE).code == 0
    stale = bound.run("remember", "the kettle is copper", env=elsewhere)
    assert bound.run("keys", "export", str(tmp_path / "new.key"), env=WORDS).code == 0

    moved = bound.run("keys", "import", str(tmp_path / "new.key"), env=elsewhere)
    written = bound.run("remember", "the kettle is copper", env=elsewhere)

    assert stale.code == 5
    assert "retired" in stale.err
    assert str(there) + ".next" in moved.err
    assert (moved.code, written.code) == (0, 0), written.err
    assert json.loads(there.read_text())["id"] == json.loads(first.read_text())["id"]


def test_a_rotation_never_takes_a_key_that_was_imported(bound: Desk, tmp_path: Path) -> None:
    """Whoever rotates since a key leaked wants one that nobody has; out of the way, a new one is made."""
    first, other = key_file(bound), tmp_path / "other.json"
    shutil.copy(first, other)
    leaked = prepare(other)
    (tmp_path / "leaked.key").write_bytes(seal(leaked, WORDS["LEDGERSTONE_PASSPHRASE"]))
    assert bound.run("keys", "import", str(tmp_path / "leaked.key"), env=WORDS).code == 0
    named = str(Keyring(leaked).signer)
    assert any(named in notice and "waits" in notice for notice in bound.ask("keys")["notices"])
    assert any(named in check["says"] and "waits" in check["says"] for check in bound.ask("doctor")["checks"])

    refused = bound.sit(*ROTATE)
    first.with_name(f"{first.name}.next").rename(tmp_path / "aside")
    rotated = bound.sit(*ROTATE)

    assert (refused.code, rotated.code) == (2, 0)
    assert named.encode() in refused.out
    files = [first, first.with_name(f"{first.name}.retired-1")]
    assert named not in [json.loads(one.read_text())["id"] for one in files]


def test_a_backup_carries_the_key_that_is_in_force(bound: Desk, tmp_path: Path) -> None:
    """After a rotation ``--with-key`` seals the new key; under another passphrase it opens nothing."""
    assert bound.sit(*ROTATE).code == 0

    done = bound.run("backup", str(tmp_path / "b.db"), "--with-key", env=WORDS)

    assert done.code == 0, done.err
    sealed = json.loads((tmp_path / "b.db.key").read_text())
    assert sealed["public"] == bound.ask("keys", "show")["public"]
    there = {"LEDGERSTONE_KEY_FILE": str(tmp_path / "there.json")}
    wrong = bound.run(
        "keys", "import", str(tmp_path / "b.db.key"), env=there | {"LEDGERSTONE_PASSPHRASE": "wrong horse battery"}
    )
    assert wrong.code == 2
    assert not (tmp_path / "there.json").exists()
    assert bound.run("keys", "import", str(tmp_path / "b.db.key"), env=there | WORDS).code == 0


def test_a_backup_from_before_a_rotation_is_restored_as_the_page_says(bound: Desk) -> None:
    """Key files change places, and after each step the key in force is where commands look for it."""
    key, saved = key_file(bound), bound.home / "before.db"
    retired, replaced = key.with_name("key.json.retired-1"), key.with_name("key.json.replaced-1")
    bound.ask("remember", "the kettle is copper")
    bound.ask("backup", str(saved))
    old = json.loads(key.read_text())["id"]
    assert bound.sit(*ROTATE).code == 0
    bound.ask("remember", "the pot is tin")

    key.rename(replaced)
    retired.rename(key)
    assert bound.sit("restore", "--accept", str(saved), "--yes").code == 0
    restored = bound.ask("doctor")["store"]["signer"]
    rotated = bound.sit(*ROTATE)

    assert (restored, rotated.code) == (old, 0)
    assert bound.ask("doctor")["store"]["signer"] == json.loads(key.read_text())["id"] != old
    assert json.loads(retired.read_text())["id"] == old
    assert bound.ask("verify", "--full")["findings"] == []
    assert bound.ask("remember", "the pan is iron")["sequence"]


def test_no_key_in_force_is_kept_under_the_name_of_a_retired_one(bound: Desk) -> None:
    """``rotate`` refuses before it asks, ``restore`` and ``doctor`` say the same; done as they say, it goes through."""
    key, saved = key_file(bound), bound.home / "before.db"
    retired = key.with_name("key.json.retired-1")
    bound.ask("backup", str(saved))
    assert bound.sit(*ROTATE).code == 0
    under = {"LEDGERSTONE_KEY_FILE": str(retired)}
    moves = f"mv {key} {key}.replaced-1 && mv {retired} {key}"

    restored = bound.sit("restore", "--accept", str(saved), "--yes", "--json", env=under)
    refused = bound.run("keys", "rotate", "--json", env=under)
    doctor = bound.run("doctor", "--json", env=under)

    assert moves in json.loads(restored.out)["notices"][0]
    assert (refused.code, moves in json.loads(refused.err)["hint"]) == (2, True)
    assert [moves in each["hint"] for each in json.loads(doctor.out)["checks"] if each["name"] == "key"] == [True]
    subprocess.run(["sh", "-c", moves], check=True)
    assert bound.sit(*ROTATE).code == 0
    assert bound.ask("verify")["findings"] == []


@pytest.mark.parametrize("command", [("verify",), ("rebuild",), ("verify", "--accept", "--yes")])
def test_a_key_file_of_another_store_is_no_damage(
    bound: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """One refusal says which key signs and which is here; a head that nobody signed stays damage, under either key."""
    store, key = Path(bound.ask("doctor")["files"][0]["path"]), key_file(bound)
    name = json.loads(key.read_text())["id"]
    monkeypatch.setenv("LEDGERSTONE_HOME", str(tmp_path / "other"))
    bound.ask("init")
    other = key_file(bound)
    monkeypatch.setenv("LEDGERSTONE_STORE", str(store))

    code, error = bound.refuse(*command)

    assert (code, error["code"]) == (4, "corruption")
    assert f"the key does not fit this store: {name} signs it" in error["message"]
    assert json.loads(other.read_text())["id"] in error["message"]
    assert "LEDGERSTONE_KEY_FILE" in error["hint"]
    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(key))
    assert bound.ask("verify")["findings"] == []
    client = plain_client(store)
    client.execute("UPDATE chain SET signature = zeroblob(64) WHERE number = 1")
    client.close()
    for file in (key, other):
        monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(file))
        damaged = bound.invoke(*command)
        assert damaged.exit_code == 4
        assert "does not fit" not in damaged.output
        assert "no trusted key signed" in damaged.output
