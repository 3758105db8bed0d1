"""A store that is not the one this machine remembers: what each command says of it, and how it is taken back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ledgerstone.keys import load_keys
from tests.cli.conftest import Desk
from tests.stores import open_memory, plain_client


@pytest.fixture
def store(bound: Desk) -> Path:
    """The file of a store with something in it."""
    bound.ask("remember", "the first thing")
    return bound.home / "ledgerstone" / "data" / "ledgerstone.db"


@pytest.fixture
def newer(bound: Desk, store: Path) -> bytes:
    """The store after one more write, in whose place its older copy was put back."""
    older = store.read_bytes()
    bound.ask("remember", "one more")
    after = store.read_bytes()
    store.write_bytes(older)
    return after


def test_a_rolled_back_store_exits_4_and_says_what_to_run(bound: Desk, store: Path, newer: bytes) -> None:
    """Reads, writes and init are refused with a hint, verify names what is gone; the newer file serves again."""
    refused = [bound.refuse(*verb) for verb in (["recall"], ["remember", "x"], ["list"], ["init"])]
    checked = bound.invoke("verify", "--json")

    assert {code for code, _ in refused} == {4}
    assert all(error["code"] == "corruption" for _, error in refused)
    assert all("ledgerstone verify --accept" in error["hint"] for _, error in refused)
    assert checked.exit_code == 4
    assert [finding["code"] for finding in json.loads(checked.stdout)["findings"]] == ["anchor"]
    store.write_bytes(newer)
    assert len(bound.ask("recall")["items"]) == 2


@pytest.mark.usefixtures("newer")
def test_only_the_user_takes_an_older_store_back(bound: Desk) -> None:
    """A program may not; at a terminal it is asked first, done after a yes, and stands in the audit trail."""
    code, error = bound.refuse("verify", "--accept", "--yes")
    kept = bound.sit("verify", "--accept", types="n\n")
    assert (code, error["code"], kept.code) == (3, "authority", 130)
    assert bound.refuse("recall")[0] == 4

    taken = bound.sit("verify", "--accept", types="y\n")

    assert taken.code == 0
    assert b"no fault" in taken.out
    assert [item["text"] for item in bound.ask("recall")["items"]] == ["the first thing"]
    assert b"restore" in bound.sit("audit").out


def test_nobody_is_asked_to_take_what_is_not_taken(bound: Desk, store: Path, newer: bytes) -> None:
    """A damaged store is named as one, and no question comes; of a sound one the question follows what is given up."""
    asked = bound.sit("verify", "--accept", types="n\n").out
    assert b"and give up what is named above?" in asked
    assert asked.index(b"was seen here, and is gone") < asked.index(b"give up")

    store.write_bytes(newer)
    client = plain_client(store)
    client.execute("DELETE FROM words WHERE row = (SELECT max(row) FROM words)")
    client.close()
    damaged = bound.sit("verify", "--accept")

    assert damaged.code == 4
    assert b"Take this store" not in damaged.out


def test_a_copy_from_before_an_erasure_leads_to_taking_it(bound: Desk, store: Path) -> None:
    """Head and erased text are named, and the hint is what erases the text again: then it is in no file any more."""
    address = bound.ask("remember", "the marmot of Basel")["address"]
    older = store.read_bytes()
    bound.sit("forget", address, "--yes")
    store.write_bytes(older)

    checked = bound.invoke("verify", "--json")
    taken = bound.sit("verify", "--accept", "--yes")

    found = json.loads(checked.stdout)
    assert {finding["code"] for finding in found["findings"]} == {"anchor", "erased"}
    assert "ledgerstone verify --accept" in found["hint"]
    assert taken.code == 0
    assert b"marmot" not in store.read_bytes()


def test_nobody_is_asked_to_take_another_store(bound: Desk, store: Path, tmp_path: Path) -> None:
    """It is named as one, and the hint leads to what says how it is accepted; the right file serves again."""
    own = store.read_bytes()
    open_memory(tmp_path / "other.db", keys=load_keys(Path(bound.ask("keys")["file"]))).close()
    store.write_bytes((tmp_path / "other.db").read_bytes())

    asked = bound.sit("verify", "--accept")

    assert asked.code == 4
    assert b"Take this store" not in asked.out
    assert b"ledgerstone doctor" in asked.out
    assert "to accept this one, remove" in bound.invoke("doctor").stdout
    store.write_bytes(own)
    assert len(bound.ask("recall")["items"]) == 1


def test_a_store_that_is_gone_is_not_made_anew(bound: Desk, store: Path) -> None:
    """Reading and init alike say with exit 5 that it is gone; put back, it serves."""
    aside = store.rename(store.with_name("aside.db"))

    refused = [bound.refuse(verb) for verb in ("recall", "init")]

    assert {code for code, _ in refused} == {5}
    assert all("is gone" in error["message"] for _, error in refused)
    assert not store.exists()
    aside.rename(store)
    assert len(bound.ask("recall")["items"]) == 1


def test_doctor_says_what_is_remembered(bound: Desk, store: Path) -> None:
    """Where, which store, and whether its files are as last written: touched they are not, until they are proven."""
    before = bound.ask("doctor")
    os.utime(store)
    touched = bound.ask("doctor")
    after = bound.ask("doctor")

    assert before["remembered"]["store"] == before["store"]["store"]
    assert Path(before["remembered"]["folder"]).parent == bound.home / "ledgerstone" / "state" / "stores"
    assert [found["remembered"]["files"] for found in (before, touched, after)] == [
        "as last written",
        "not as last written",
        "as last written",
    ]
    assert "as last written" in bound.invoke("doctor").stdout


@pytest.mark.usefixtures("newer")
def test_doctor_names_a_store_that_is_refused(bound: Desk) -> None:
    """Exit 1, with the folder of what is remembered, and the refusal as the one fault."""
    result = bound.invoke("doctor", "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["remembered"]["files"] == "not as last written"
    assert [check["name"] for check in found["checks"] if check["state"] == "fault"] == ["store"]


def test_a_write_says_that_it_could_not_be_remembered(desk: Desk) -> None:
    """With a file where a folder of the state directory should be the write is done, and its answer has the notice.

    A file in place of the directory itself is refused by name before anything is done.
    """
    state = desk.home / "ledgerstone" / "state"
    state.parent.mkdir()
    state.write_bytes(b"")
    code, refused = desk.refuse("init")
    state.unlink()
    state.mkdir()
    (state / "stores").write_bytes(b"")
    desk.ask("init")
    desk.ask("namespaces", "use", "--new")

    kept = desk.ask("remember", "kept all the same")

    assert (code, refused["message"]) == (2, f"state: a directory, and {state} is a file")
    assert kept["notices"][0].startswith("committed, but not remembered outside the store: ")
    assert desk.ask("get", kept["address"])["text"] == "kept all the same"


def test_nothing_is_made_where_a_store_would_be_lost(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither store nor key nor folder; with the override by its name, both."""
    home = desk.home / "Dropbox"
    monkeypatch.setenv("LEDGERSTONE_HOME", str(home))

    code, error = desk.refuse("init")

    assert (code, "LEDGERSTONE_STORE_ON=anywhere" in error["hint"]) == (5, True)
    assert not home.exists()
    monkeypatch.setenv("LEDGERSTONE_STORE_ON", "anywhere")
    assert desk.ask("init")["made"]
