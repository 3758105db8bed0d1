"""Erasing from the command line: shown first, asked, only at a terminal, and reported honestly."""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from tests.cli.conftest import Desk

TEXT = "The quokka sleeps at nine"


def passing(desk: Desk, text: str) -> str:
    """The address of a text that has expired by now."""
    until = datetime.now(UTC) + timedelta(seconds=3)
    address: str = desk.ask("remember", text, "--expires", until.isoformat())["address"]
    time.sleep(max(0.0, (until - datetime.now(UTC)).total_seconds()))
    return address


def typed(desk: Desk, *arguments: str) -> Any:
    """The JSON answer of a command at a terminal that is not asked."""
    done = desk.sit(*arguments, "--yes", "--json")
    return json.loads(done.out)


def held(desk: Desk) -> bool:
    """Whether any file below the home holds the text."""
    return any(TEXT.encode() in path.read_bytes() for path in desk.home.rglob("*") if path.is_file())


def test_forget_shows_asks_and_erases(bound: Desk) -> None:
    """What would go is shown with its text; after a no it stays, after a yes it is in no file any more."""
    address = bound.ask("remember", TEXT, "--key", "quokka")["address"]

    refused = bound.sit("forget", "key:quokka", types="n\n")
    kept = held(bound)
    allowed = bound.sit("forget", "key:quokka", "--reason", "no need", types="y\n")

    assert (refused.code, kept) == (130, True)
    assert b"nothing was done" in refused.out
    assert (allowed.code, held(bound)) == (0, False)
    for done in (refused, allowed):
        assert f"{address}  " in done.out.decode()
        assert TEXT in done.out.decode()
        assert b"Erase 1 version for good?" in done.out
    assert b"erased 1 version, commit ns_" in allowed.out
    assert b"not reached: backups, exports and other copies" in allowed.out
    assert f"the text of {address} was erased by commit 2" in bound.run("get", address).err


def test_what_is_not_reached_reads_as_paragraphs(bound: Desk) -> None:
    """At a terminal no line is wider than it, and what goes on stands back; elsewhere each is one line."""
    address = bound.ask("remember", TEXT)["address"]

    shown = click.unstyle(bound.sit("forget", address, "--yes").out.decode())

    said = shown[shown.index("not reached:") :].splitlines()
    assert max(map(len, said)) <= 80
    assert {line[:12] for line in said if not line.startswith("    ")} == {"not reached:"}
    assert any(line.startswith("    ") for line in said)


def test_a_program_erases_nothing(bound: Desk) -> None:
    """Without a terminal it is refused, whatever is said, exit 3; what would go may be looked at."""
    address = bound.ask("remember", TEXT)["address"]

    for arguments in (["forget", address], ["forget", address, "--yes"], ["expire"], ["forget", "--session", "x"]):
        code, error = bound.refuse(*arguments)
        assert (code, error["code"]) == (3, "authority")
        assert "the user does it at a terminal" in error["hint"]
    plan = bound.ask("forget", address, "--dry-run")

    assert (plan["erased"], plan["count"], plan["addresses"]) == (False, 1, [address])
    assert bound.run("get", address).out == TEXT.encode()


def test_a_dry_run_is_answered_anywhere(bound: Desk) -> None:
    """Whatever is named, a program sees what the user would erase at a terminal, with the names; nothing goes."""
    address = bound.ask("--session", "s1", "remember", TEXT, "--key", "k", "--idempotency-key", "w")["address"]
    expired = passing(bound, "gone by")
    namespace = bound.ask("get", address)["namespace"]
    wanted: list[list[str]] = [["forget", address], ["forget", "key:k"], ["expire"]]
    wanted += [
        ["forget", "--session", "s1"],
        ["forget", "--idempotency-key", "w"],
        ["forget", "--namespace", namespace],
    ]

    for arguments in wanted:
        piped = bound.ask(*arguments, "--dry-run")
        assert piped == typed(bound, *arguments, "--dry-run")
        assert piped["erased"] is False
        assert piped["addresses"]
        assert bound.refuse(*arguments)[0] == 3

    assert bound.ask("get", expired)["text"] == "gone by"
    assert held(bound)


def test_the_answer_names_everything(bound: Desk) -> None:
    """With --json: what went, which of it were summaries, what stays on lost ground, the commit, what is beyond."""
    address = bound.ask("remember", TEXT)["address"]
    summary = bound.ask("remember", "quokka", "--kind", "summary", "--source-of", address, "--covers", address)
    note = bound.ask("remember", "So it does.", "--source-of", address)

    answer = typed(bound, "forget", address)

    assert answer["erased"] is True
    assert answer["addresses"] == [address, summary["address"]]
    assert answer["summaries"] == [summary["address"]]
    assert answer["rests"] == [note["address"]]
    assert answer["commits"] == [{"namespace": summary["namespace"], "sequence": 4}]
    assert answer["unreached"]
    assert "left" not in answer
    assert bound.ask("verify")["ok"] is True


def test_a_kept_summary_stays(bound: Desk) -> None:
    """--keep spares a summary by its address."""
    address = bound.ask("remember", TEXT)["address"]
    summary = bound.ask("remember", "quokka", "--kind", "summary", "--source-of", address, "--covers", address)

    answer = typed(bound, "forget", address, "--keep", summary["address"])

    assert (answer["addresses"], answer["rests"]) == ([address], [summary["address"]])
    assert bound.ask("get", summary["address"])["standing"] == "stale"


@pytest.mark.parametrize("option", ["--session", "--principal", "--idempotency-key", "--namespace"])
def test_more_than_one_memory_is_named_at_once(bound: Desk, option: str) -> None:
    """By session, principal, idempotency key or namespace, from any directory; what is not so named stays."""
    first = bound.ask("--session", "tuesday", "remember", TEXT, "--idempotency-key", "once")
    bound.ask("remember", "it stays", "--scope", "user")
    principal = bound.ask("doctor")["bound"]["principal"]
    names = {"--session": "tuesday", "--idempotency-key": "once", "--namespace": first["namespace"]}

    answer = typed(bound, "forget", option, names.get(option, principal))

    assert (answer["count"], held(bound)) == (2 if option == "--principal" else 1, False)
    assert first["address"] in answer["addresses"]


def test_expired_texts_are_erased_when_asked(bound: Desk) -> None:
    """What has expired is out of recall and still there, until ``expire`` is run."""
    gone = passing(bound, TEXT)
    stays = bound.ask("remember", "for ever")["address"]
    assert [item["id"] for item in bound.ask("recall")["items"]] == [stays]
    assert held(bound)

    done = bound.sit("expire", types="y\n")

    assert (done.code, held(bound)) == (0, False)
    assert gone in done.out.decode()
    assert b"nothing to erase" in bound.sit("expire").out


def test_a_retention_is_let_go(bound: Desk) -> None:
    """--retention takes --before, and what lasts cannot be named."""
    bound.ask("remember", TEXT, "--retention", "session")
    bound.ask("remember", "for long")

    assert bound.sit("expire", "--retention", "session", "--yes").code == 2
    assert bound.refuse("expire", "--retention", "durable", "--before", "2100-01-01")[0] == 2
    answer = typed(bound, "expire", "--retention", "session", "--before", "2100-01-01")

    assert (answer["count"], held(bound)) == (1, False)


@pytest.mark.parametrize("retention", ["working", "session", "short_term", "long_term", "durable"])
def test_no_retention_takes_anything_by_itself(bound: Desk, retention: str) -> None:
    """Whatever it is, the text is recalled; what is passing is let go by name, and what lasts only by its expiry."""
    address = bound.ask("remember", TEXT, "--retention", retention)["address"]
    assert bound.ask("get", address)["retention"] == retention
    assert [item["id"] for item in bound.ask("recall", "quokka")["items"]] == [address]

    done = bound.sit("expire", "--retention", retention, "--before", "2100-01-01", "--dry-run", "--json")

    passing = retention in {"working", "session", "short_term"}
    assert (done.code, done.out.count(address.encode())) == ((0, 1) if passing else (2, 0))
    assert json.loads(bound.sit("expire", "--dry-run", "--json").out)["count"] == 0
    assert bound.run("get", address).out == TEXT.encode()


def test_names_and_reasons_are_shown_and_go(bound: Desk) -> None:
    """What would go is shown with its ids, counted where it is asked for, and is in no file after a yes."""
    task = bound.ask("--session", "potoroo-day", "remember", "Water the ferns", "--kind", "task")
    bound.ask("close", task["address"], "--reason", "the numbat came")

    reason = bound.sit("forget", f"reason:{task['address'].partition('@')[0]}@2", types="y\n")
    session = bound.sit("forget", "--session", "potoroo-day", types="y\n")

    assert b"Erase 1 reason for good?" in reason.out
    assert b"Erase 2 versions and 1 name for good?" in session.out
    assert "its name" in session.out.decode()
    assert (reason.code, session.code) == (0, 0)
    data = b"".join(path.read_bytes() for path in bound.home.rglob("*") if path.is_file())
    assert b"numbat" not in data
    assert b"potoroo" not in data
    assert bound.ask("verify")["ok"] is True


def test_what_is_left_is_said_with_exit_code_1(bound: Desk) -> None:
    """A copy beside the store that holds the text is named; the text is gone from the store all the same."""
    address = bound.ask("remember", TEXT)["address"]
    store = next(bound.home.rglob("ledgerstone.db"))
    shutil.copy(store, f"{store}.old")

    done = bound.sit("forget", address, "--yes")

    assert done.code == 1
    assert f"{store}.old still holds 1 of the erased texts" in " ".join(done.out.decode().split())
    assert bound.ask("get", address)["text"] is None


def test_a_command_without_a_target_says_so(bound: Desk) -> None:
    """Nothing named is a slip, exit 2, and never everything; an unknown memory is exit 3."""
    assert bound.refuse("forget")[1]["code"] == "usage"
    assert bound.refuse("forget", "mem_0000000000000000", "--dry-run")[0] == 3
    assert bound.refuse("forget", "quokka", "--dry-run")[0] == 2


def test_a_long_list_is_cut_with_its_count(bound: Desk) -> None:
    """Of many versions the first twenty are shown, and how many more there are."""
    for number in range(23):
        bound.ask("remember", f"the quokka number {number}", "--key", "k")

    shown = bound.invoke("forget", "key:k", "--dry-run").stdout

    assert shown.count("mem_") == 20
    assert "and 3 more" in shown
