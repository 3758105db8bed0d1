"""Condensing and arranging from the command line: plans, summaries, shared and isolated namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Desk

FUTURE = "2100-01-01"


def told(bound: Desk) -> list[str]:
    """The addresses of three episodes."""
    text = "It rained on day {} from the morning on, and the cedar stood in water."
    return [bound.ask("remember", text.format(day), "--kind", "episode")["address"] for day in range(3)]


def test_a_plan_is_carried_out_by_its_addresses(bound: Desk) -> None:
    """What ``compact --plan`` proposes is what ``compact`` takes; the text may come from standard input."""
    said = told(bound)

    group = bound.ask("compact", "--plan", "--before", FUTURE)["groups"][0]
    flags = [flag for address in group["covers"] for flag in ("--covers", address)]
    summary = bound.ask("compact", "-", *flags, given=b"Three days of rain.")

    assert group["covers"] == said
    assert group["bytes"] == 3 * len("It rained on day 0 from the morning on, and the cedar stood in water.")
    assert bound.ask("get", summary["address"])["covers"] == said
    assert bound.ask("compact", "--plan", "--before", FUTURE) == {"groups": []}


def test_a_plan_is_shown_to_people(bound: Desk) -> None:
    """How many records and bytes, where they were said, and their addresses; or that there is nothing."""
    assert "--before TIME looks at them too" in bound.invoke("compact", "--plan").stderr
    assert bound.invoke("compact", "--plan", "--before", FUTURE).stderr == "nothing here to condense\n"

    said = told(bound)
    shown = bound.invoke("compact", "--plan", "--before", FUTURE).stdout

    assert shown.startswith("3 records, 207 bytes")
    assert all(address in shown for address in said)


def test_a_plan_and_a_summary_are_two_things(bound: Desk) -> None:
    """Neither, and both at once, are refused with what to do; a summary over what is named is kept."""
    said = told(bound)

    for asked in (("compact",), ("compact", "Rain.", "--plan"), ("compact", "--plan", "--covers", said[0])):
        assert bound.refuse(*asked)[1]["code"] == "usage"

    assert "ledgerstone compact --plan --before TIME" in bound.refuse("compact", "Rain.")[1]["hint"]
    assert bound.invoke("compact", "Rain.", "--covers", said[0]).stdout.startswith("mem_")


def test_a_project_is_isolated_at_a_terminal(bound: Desk) -> None:
    """What the user has elsewhere is not seen in it, until that is turned off; a program may do neither."""
    project = bound.ask("namespaces")["bound"]["project"]
    bound.ask("remember", "I like cedars", "--scope", "user")
    assert bound.refuse("namespaces", "isolate", project, "on")[1]["code"] == "authority"

    seen = []
    for state in ("on", "off"):
        assert bound.sit("namespaces", "isolate", project, state, "--yes").code == 0
        seen.append([item["text"] for item in bound.ask("recall", "cedars")["items"]])

    assert seen == [[], ["I like cedars"]]


def test_a_shared_namespace_is_made_at_a_terminal(bound: Desk) -> None:
    """Its id is what a write and a grant name; it is listed with its name and bound here."""
    made = bound.sit("namespaces", "create", "--shared", "team", "--yes").out.decode().split()[-1]

    bound.ask("remember", "We like cedars", "--namespace", made)

    assert bound.ask("namespaces")["bound"]["shared"] == [made]
    assert "team" in bound.invoke("namespaces").stdout
    assert [item["scope"] for item in bound.ask("recall", "cedars")["items"]] == ["shared"]


@pytest.mark.parametrize("options", [("--before", "2026-01-01"), ("--limit", "3"), ("--scope", "user")])
def test_what_a_plan_looks_at_goes_with_a_plan(bound: Desk, options: tuple[str, str]) -> None:
    """A summary written with it is refused, and not written without it; a plan takes it."""
    address = bound.ask("remember", "A cedar of a good age and height")["address"]

    code, error = bound.refuse("compact", "A cedar", "--covers", address, *options)

    assert (code, error["message"]) == (2, f"{options[0]}: with --plan only")
    assert bound.ask("compact", "--plan", *options)
    assert bound.ask("compact", "A cedar", "--covers", address)["kind"] == "summary"


def test_a_memory_is_promoted_at_a_terminal(bound: Desk) -> None:
    """Once it is granted; it is there in every project, and names what it came from. A program may not."""
    address = bound.ask("remember", "Cedars want water", "--key", "cedar", "--source", "chat 12")["address"]
    owner = bound.ask("namespaces")["bound"]["principal"]
    assert bound.sit("promote", address, "--scope", "user").code == 3
    assert bound.sit("grants", "add", owner, "promote", "--scope", "user", "--yes").code == 0
    assert bound.refuse("promote", address, "--scope", "user")[1]["code"] == "authority"

    shown = bound.sit("promote", address, "--scope", "user")

    copy = bound.ask("get", shown.out.decode().split()[0])
    assert b"sees its source too: chat 12" in shown.out
    assert b"nothing was written now" in bound.sit("promote", address, "--scope", "user").out
    assert (copy["scope"], copy["text"], copy["key"]) == ("user", "Cedars want water", "cedar")
    assert copy["promoted"] == bound.ask("get", address)["digest"]
    assert b"copy" in bound.sit("forget", address, "--dry-run").out


def test_what_says_the_same_is_told(bound: Desk) -> None:
    """Beside the address, and with ``--json`` in the answer; nothing is done about it."""
    first = bound.ask("remember", "Deploys go out on Tuesdays")["address"]

    second = bound.ask("remember", "deploys go out on TUESDAYS")
    third = bound.invoke("remember", "Deploys go out on Tuesdays, early")

    assert second["similar"] == [{"id": first, "same": True}]
    assert f"{first} shares 83 % of its words" in third.stderr
    assert len(bound.ask("list")["items"]) == 3


def test_isolation_says_what_it_means(bound: Desk) -> None:
    """What is no longer shown, and what is again; a write to there says that it is not shown."""
    project = bound.ask("namespaces")["bound"]["project"]

    on = bound.sit("namespaces", "isolate", project, "on", "--yes").out.decode()
    kept = bound.invoke("remember", "I like cedars", "--scope", "user")
    off = bound.sit("namespaces", "isolate", project, "off", "--yes").out.decode()

    assert "nothing of user, global or shared is shown" in on
    assert "not shown here: this project is isolated from scope user" in kept.stderr
    assert "user, global and shared are shown again" in off
