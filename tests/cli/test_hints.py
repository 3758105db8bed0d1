"""A refusal names what it is about, be it a file, an option, a key or a memory, and says what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Desk
from tests.stores import plain_client


@pytest.fixture
def store(bound: Desk) -> Path:
    """The file of a store with something in it."""
    bound.ask("remember", "the kettle is copper")
    return bound.home / "ledgerstone" / "data" / "ledgerstone.db"


@pytest.fixture
def key(store: Path) -> Path:
    """Its key file."""
    return store.parents[1] / "config" / "key.json"


def test_keys_says_of_a_key_that_it_does_not_sign_the_store_here(bound: Desk, key: Path, tmp_path: Path) -> None:
    """Another store's key and a retired one do not; each time it is said which does, or that the key does not fit."""
    assert bound.ask("keys")["keys"][0]["signs"]
    old = shutil.copy2(key, tmp_path / "old.json")
    assert bound.sit("keys", "rotate", "--yes").code == 0
    new = json.loads(key.read_text())["id"]

    retired = bound.run("keys", env={"LEDGERSTONE_KEY_FILE": str(old)})
    foreign = bound.run("init", env={"LEDGERSTONE_HOME": str(tmp_path / "other")})
    other = tmp_path / "other" / "config" / "key.json"
    strange = bound.run("keys", "--json", env={"LEDGERSTONE_KEY_FILE": str(other)})

    assert b"retired, store commit" in retired.out
    assert f"{new} signs the store at" in retired.err
    assert (foreign.code, strange.code) == (0, 0)
    answer = json.loads(strange.out)
    assert not answer["keys"][0]["signs"]
    assert "no trusted key signed the head" in answer["notices"][0]
    assert bound.ask("keys")["keys"] == [{"key": new, "public": json.loads(key.read_text())["public"], "signs": True}]


def test_a_proof_without_a_text_is_not_said_to_have_it(bound: Desk, tmp_path: Path) -> None:
    """Of an erased memory it is said that the text is not in it; of one that stands, that it is."""
    gone, stays = (bound.ask("remember", text)["address"] for text in ("the pot is tin", "the pan is iron"))
    assert bound.sit("forget", gone, "--yes").code == 0

    erased = bound.run("prove", gone, str(tmp_path / "gone.proof"))
    whole = bound.run("prove", stays, str(tmp_path / "stays.proof"))
    bare = bound.run("prove", stays, str(tmp_path / "bare.proof"), "--without-text")

    assert (erased.err, bare.err) == ("its text was erased, and is not in it\n", "")
    assert "has the text too" in whole.err


def test_accepting_a_store_that_lacks_nothing_says_that_nothing_was_given_up(bound: Desk, store: Path) -> None:
    """And an older copy, accepted in its place, is taken with what that gives up."""
    bound.ask("doctor")
    older = Path(shutil.copy2(store, store.with_name("older.db")))
    bound.ask("remember", "the pot is tin")
    before = bound.ask("verify")["heads"]

    nothing = bound.sit("verify", "--accept", "--yes")

    assert (nothing.code, b"nothing was given up" in nothing.out) == (0, True)
    assert bound.ask("verify")["heads"] == before
    older.replace(store)
    taken = bound.sit("verify", "--accept", "--yes")
    assert (taken.code, b"taken as it is" in taken.out, b"nothing was given up" in taken.out) == (0, True, False)


def test_damage_names_the_memory_whose_text_was_altered(bound: Desk, store: Path) -> None:
    """In the finding of ``verify`` and in the error of whoever reads it; its neighbour is read."""
    sound, address = bound.ask("list")["items"][0]["id"], bound.ask("remember", "the pot is tin")["address"]
    client = plain_client(store)
    client.execute("UPDATE content SET body = CAST(replace(body, 'tin', 'tan') AS BLOB)")
    client.close()

    found = json.loads(bound.invoke("verify", "--json").stdout)["findings"]

    assert [each["message"] for each in found if each["code"] == "content"] == [
        f"the content of entry 2, {address}, was altered"
    ]
    assert address in bound.refuse("get", address)[1]["message"]
    assert sound != address


def test_a_file_that_cannot_be_opened_is_named(
    bound: Desk, store: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store and its key: by path, and with what to see to; a file that is no store too."""
    store.with_name(f"{store.name}-wal").mkdir()
    _, error = bound.refuse("list")
    assert str(store) in error["message"]
    assert "mode" in error["hint"]
    store.with_name(f"{store.name}-wal").rmdir()
    text = tmp_path / "text"
    text.write_text("no database " * 100)
    assert f"{text} is not a Ledgerstone store" in bound.run("restore", str(text)).err
    monkeypatch.setenv("LEDGERSTONE_STORE", str(text))
    assert f"{text} is not a Ledgerstone store" in bound.refuse("list")[1]["message"]
    monkeypatch.delenv("LEDGERSTONE_STORE")

    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(text / "key.json"))
    assert "has one already" in bound.refuse("list")[1]["message"]
    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(key))
    assert bound.ask("list")["items"]


def test_a_key_file_that_is_open_to_others_is_a_fault_of_the_key(bound: Desk, key: Path) -> None:
    """The doctor says so under ``key``, and what to do; done, it is none."""
    key.chmod(0o644)

    checks = json.loads(bound.invoke("doctor", "--json").stdout)["checks"]

    faults = {each["name"]: each["hint"] for each in checks if each["state"] == "fault"}
    assert faults == {"key": f"run: chmod 600 {key}"}
    key.chmod(0o600)
    assert bound.invoke("doctor").exit_code == 0


def test_no_key_is_to_be_made_for_a_store_that_has_one(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``keys show`` sends to ``init`` only where there is no store yet."""
    assert "ledgerstone init" in desk.refuse("keys", "show")[1]["hint"]
    desk.ask("init")
    monkeypatch.setenv("LEDGERSTONE_KEY_FILE", str(tmp_path / "missing"))

    for command in (("keys", "show"), ("keys",), ("init",)):
        assert "LEDGERSTONE_KEY_FILE" in desk.refuse(*command)[1]["hint"]


def test_what_is_no_head_and_no_file_is_said_to_be_neither(bound: Desk) -> None:
    """``--expected`` takes 64 digits or a file; and a file that is no proof is not said to be another key's."""
    code, error = bound.refuse("verify", "--expected", "deadbeef")
    assert (code, "64 hex digits" in error["message"], "'deadbeef'" in error["message"]) == (2, True, True)
    (bound.project / "text").write_text("no proof")
    code, error = bound.refuse("verify-proof", "text")
    assert (code, "no proof as ledgerstone prove writes it" in error["hint"]) == (4, True)

    bound.ask("remember", "the kettle is copper")
    proof = bound.run("prove", bound.ask("list")["items"][0]["id"]).out
    (bound.project / "proof").write_bytes(proof)
    other = bound.refuse("verify-proof", "proof", "--public-key", "00" * 32)[1]
    assert "made under another key, which can be named by --public-key" in other["hint"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("remember", "a task", "--kind", "task", "--due"), "--due"),
        (("remember", "a note", "--expires"), "--expires"),
        (("recall", "--since"), "--since"),
        (("recall", "--as-of"), "--as-of"),
        (("audit", "--before"), "--before"),
    ],
)
def test_a_time_is_refused_by_the_name_of_its_option(bound: Desk, command: tuple[str, ...], option: str) -> None:
    """And a date is taken there."""
    code, error = bound.refuse(*command, "tomorrow")

    assert (code, error["message"]) == (2, f"{option}: a date or a time, not 'tomorrow'")
    day = "2099-01-01" if option in {"--due", "--expires"} else "2020-01-01"
    assert bound.invoke(*command, day).exit_code == 0


def test_an_id_or_a_summary_that_is_refused_comes_with_a_hint(bound: Desk) -> None:
    """Where ids are shown, and which option names what a summary sums up."""
    assert bound.refuse("get", "mem_nope")[1]["hint"] == "as recall and list show it"
    assert "--covers" in bound.refuse("remember", "all of it", "--kind", "summary")[1]["hint"]


def test_a_session_that_nothing_was_said_in_is_no_memory(bound: Desk) -> None:
    """What is to be forgotten by a session, and is not there, is named as that; one that is there goes."""
    bound.ask("--session", "s1", "remember", "the kettle is copper")

    refused = bound.sit("forget", "--session", "nope", "--yes")
    gone = bound.sit("forget", "--session", "s1", "--yes")

    assert (refused.code, b"session:nope names nothing here" in refused.out) == (3, True)
    assert gone.code == 0
