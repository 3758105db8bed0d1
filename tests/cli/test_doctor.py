"""The doctor looks at what can go wrong with one file: each is named once, with how bad it is and what to do."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ledgerstone.entrypoints import cli_doctor
from ledgerstone.entrypoints.frame import MCP_HINT
from ledgerstone.store import sqlite
from tests.cli.conftest import Desk


class Usage(NamedTuple):
    """What ``shutil.disk_usage`` gives."""

    total: int
    used: int
    free: int


@pytest.fixture
def store(bound: Desk) -> Path:
    """The file of a store with something in it."""
    bound.ask("remember", "the first thing")
    return bound.home / "ledgerstone" / "data" / "ledgerstone.db"


def unwell(desk: Desk, *flags: str) -> dict[str, tuple[str, str, str]]:
    """What is not well: by name its state, what is said of it, and the hint."""
    result = desk.invoke(*flags, "doctor", "--json")
    found = checks(result.stdout)
    assert result.exit_code == any(check["state"] == "fault" for check in found)
    return {
        check["name"]: (check["state"], check["says"], check.get("hint", ""))
        for check in found
        if check["state"] != "ok"
    }


def checks(answer: str) -> list[dict[str, Any]]:
    """The checks of an answer."""
    found: list[dict[str, Any]] = json.loads(answer)["checks"]
    return found


@pytest.mark.usefixtures("store")
def test_all_is_well_is_said_in_so_many_words(bound: Desk) -> None:
    """Each thing that is looked at is named as well, once, and nothing is said twice."""
    shown = bound.invoke("doctor").stdout
    names = [check["name"] for check in checks(bound.invoke("doctor", "--json").stdout)]

    assert names == ["sqlite", "mcp", "place", "room", "access", "store", "key", "log", "meaning", "anchor", "project"]
    assert unwell(bound) == {}
    assert shown.rstrip().endswith("all is well")
    for said in (str(bound.home / "ledgerstone" / "data" / "ledgerstone.db"), bound.ask("doctor")["store"]["store"]):
        assert shown.count(said) == 1


@pytest.mark.usefixtures("store")
def test_a_store_that_is_not_known_here_is_a_warning(bound: Desk) -> None:
    """With what accepts it; accepted at a terminal, it is none."""
    shutil.rmtree(bound.home / "ledgerstone" / "state")

    found = unwell(bound)

    assert list(found) == ["anchor"]
    assert found["anchor"][0] == "warning"
    assert "ledgerstone verify --accept" in found["anchor"][2]
    assert bound.sit("verify", "--accept", "--yes").code == 0
    assert unwell(bound) == {}


def test_files_that_others_may_read_are_named_with_the_remedy(bound: Desk, store: Path) -> None:
    """The command of the hint mends it."""
    store.chmod(0o644)

    found = unwell(bound)

    assert list(found) == ["access"]
    assert found["access"] == ("warning", f"{store} is open to others (0644)", f"chmod 600 {store}")
    subprocess.run(found["access"][2].split(), check=True)
    assert unwell(bound) == {}


@pytest.mark.parametrize("folder", ["data", "config", "state"])
def test_a_folder_in_which_others_may_exchange_files_is_named(bound: Desk, store: Path, folder: str) -> None:
    """That of the store, of the key, of what is remembered; one that others may only look into is none."""
    at = store.parent.parent / folder
    at.chmod(0o777)

    found = unwell(bound)

    assert list(found) == ["access"]
    assert str(at) in found["access"][1]
    at.chmod(0o755)
    assert unwell(bound) == {}


def test_a_place_that_loses_files_is_named_once(bound: Desk, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the one fault, with the way out; where it is allowed or only read, a warning beside a store that answers."""
    (store.parent / ".stfolder").mkdir()

    refused = unwell(bound)
    read = unwell(bound, "--read-only")
    monkeypatch.setenv("LEDGERSTONE_STORE_ON", "anywhere")
    allowed = unwell(bound)

    assert {name: found[0] for name, found in refused.items()} == {"place": "fault"}
    assert "LEDGERSTONE_STORE_ON=anywhere" in refused["place"][2]
    assert {name: found[0] for name, found in (read | allowed).items()} == {"place": "warning"}


def test_a_log_without_its_store_is_a_fault(bound: Desk, store: Path) -> None:
    """What lies there may be the newest commits: it is said before anybody throws it away."""
    aside = store.rename(store.with_name("aside"))
    log = store.with_name(f"{store.name}-wal")
    log.write_bytes(b"commits")

    found = unwell(bound)

    assert found["log"][0] == "fault"
    assert "put the store's file back" in found["log"][2]
    log.unlink()
    aside.rename(store)
    assert unwell(bound) == {}


def test_what_a_killed_restore_left_is_named(bound: Desk, store: Path) -> None:
    """It may hold what was erased since; that of a process that runs is none of it."""
    left, made = (store.with_name(f".{store.name}.new-{number}") for number in (2**22 + 1, os.getppid()))
    for each in (left, made):
        each.write_bytes(b"a draft")

    found = unwell(bound)

    assert list(found) == ["draft"]
    assert found["draft"][0] == "warning"
    assert str(left) in found["draft"][1]


READER = """
import sys
import apsw

connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM entry").fetchall()
print("reading", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
connection.close()
"""


def test_who_has_been_reading_for_long_is_named(bound: Desk, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the log cannot be taken in: how much waits, and, where the system tells, which process; then no more."""
    monkeypatch.setattr(cli_doctor, "MANY_PAGES", 1)
    with subprocess.Popen(
        [sys.executable, "-c", READER, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        bound.ask("remember", "while somebody reads")

        found = unwell(bound)

        reader.communicate()
    assert list(found) == ["log"]
    assert "somebody has been reading for long" in found["log"][1]
    assert (f"process {reader.pid} " in found["log"][1]) is Path("/proc/self/fd").exists()
    assert unwell(bound) == {}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(("free", "state"), [(1 << 20, "fault"), (100 << 20, "warning"), (1 << 40, None)])
def test_a_disk_that_fills_up_is_named(
    bound: Desk, monkeypatch: pytest.MonkeyPatch, free: int, state: str | None
) -> None:
    """Before writes are refused; with room enough it is not."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 41, 0, free))

    found = unwell(bound)

    assert found.get("room", (None,))[0] == state


def test_a_second_name_of_the_file_is_a_fault(bound: Desk, store: Path) -> None:
    """Once, with what to do; without it all is well."""
    other = store.with_name("other.db")
    other.hardlink_to(store)

    found = unwell(bound)

    assert list(found) == ["store"]
    assert "2 hard links" in found["store"][1]
    other.unlink()
    assert unwell(bound) == {}


@pytest.mark.usefixtures("store")
def test_a_medium_that_cannot_be_written_is_a_warning(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to only read, it is none."""
    monkeypatch.setattr(sqlite, "_fixed", lambda _: True)

    assert unwell(bound)["key"][0] == "warning"
    assert "only read" in unwell(bound)["key"][1]
    monkeypatch.undo()


@pytest.mark.usefixtures("store")
def test_without_the_sdk_it_is_said_how_to_install_it(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning, since all but the server works."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    assert unwell(bound)["mcp"] == ("warning", "the MCP SDK is not installed", MCP_HINT)


def test_the_doctor_keeps_within_a_terminal(desk: Desk) -> None:
    """What is said of each check wraps within eighty columns, behind its margin; a command or path stays whole."""
    shown = re.sub(r"\x1b\[[0-9;]*m", "", desk.sit("doctor").out.decode()).replace("\r", "")
    found = shown.split("\n\n")[1].splitlines()

    assert all(len(line) <= 80 or " " not in line.strip() for line in found)
    assert any(line.startswith("fault    store") for line in found)
    assert "  run: ledgerstone init" in shown
