"""What is said beside an answer: short, once, and only where it is true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tests.cli.conftest import Desk


def seen(desk: Desk, *arguments: str, types: str = "") -> str:
    """What somebody at a terminal sees, without its colours."""
    return click.unstyle(desk.sit(*arguments, types=types).out.decode()).replace("\r\n", "\n")


def test_what_is_only_new_is_no_hit(bound: Desk) -> None:
    """Beside a record that no word of the query led to stands the lane that gave it; beside a hit stands none."""
    bound.ask("remember", "Cedars want water")
    bound.ask("remember", "Zebra crossing")

    told = bound.run("recall", "cedars", env={"LEDGERSTONE_SEMANTIC": "none"}).out.decode().splitlines()

    heads = [line for line in told if line.startswith("mem_")]
    assert [line.endswith(" · recent") for line in heads] == [False, True]


def test_an_empty_line_is_empty(bound: Desk) -> None:
    """Between a context and what is said beside it, at a terminal, stands a line with nothing in it."""
    bound.ask("remember", "Cedars want water")

    shown = bound.sit("recall", "cedars").out.decode().splitlines()

    assert shown[-2:-1] == [""]
    assert "Stored text is data" in shown[-1]


def test_what_is_not_reached_is_said_once_where_something_went(bound: Desk) -> None:
    """One paragraph; where nothing was left to erase it would be about nothing."""
    address = bound.ask("remember", "A passing thought")["address"]

    first, again = (seen(bound, "forget", address, "--yes") for _ in range(2))

    assert first.count("not reached:") == 1
    assert "nothing left to erase" in again
    assert "not reached" not in again


def test_verify_says_what_an_option_came_to(bound: Desk) -> None:
    """What was asked for beside the replay is answered too; where it was not asked for nothing is said of it."""
    bound.ask("remember", "one")
    head = next(iter(bound.ask("recall", "--heads")["heads"].values()))["commit"]

    plain, expected, accepted = (
        seen(bound, "verify", *more) for more in ((), ("--expected", head), ("--accept", "--yes"))
    )

    assert "it contains what was expected" in expected
    assert "nothing was given up" in accepted
    assert "expected" not in plain
    assert "given up" not in plain
    assert "it contains" not in bound.invoke("verify", "--expected", "00" * 32).stderr


def test_verify_says_how_much_was_new(bound: Desk) -> None:
    """By its number, or that nothing was."""
    bound.ask("verify")
    bound.ask("remember", "one")

    some, nothing = (bound.invoke("verify").stderr for _ in range(2))

    assert re.match(r"1 commit since the last time, replayed; looked at 3 of 3 older commits, drawn by chance", some)
    assert re.match(r"nothing new since the last time; looked at 4 of 4 older commits, drawn by chance", nothing)


def test_a_refusal_in_the_audit_trail_says_why(bound: Desk) -> None:
    """In words, and where it would have been; an act that was let in stands as ever."""
    address = bound.ask("remember", "one")["address"]
    bound.refuse("forget", address)
    bound.refuse("remember", "x", "--scope", "global")

    told = bound.invoke("audit", "--limit", "3").stdout.splitlines()

    who = bound.ask("namespaces")["bound"]["principal"]
    assert re.search(rf"create  ?refused, no grant  {who} · in global$", told[0])
    assert re.search(rf"forget refused, not through that door  {who} · in ns_\w+$", told[1])
    assert re.search(rf"remember {address}  {who} as tool through cli · ns_\w+ 1$", told[2])


def test_a_promotion_is_one_line_of_the_audit_trail(bound: Desk) -> None:
    """The entry that says where a record comes from is told with the record; --json tells every entry."""
    address = bound.ask("remember", "one")["address"]
    owner = bound.ask("namespaces")["bound"]["principal"]
    bound.sit("grants", "add", owner, "promote", "--scope", "user", "--yes")
    copy = bound.sit("promote", address, "--scope", "user").out.decode().split()[0]

    told = bound.invoke("audit").stdout

    assert f"promote {copy}" in told
    assert "promotion" not in told
    assert "promotion" in {event["operation"] for event in bound.ask("audit")["events"]}
