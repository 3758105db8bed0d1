"""What is said beside an answer: short, once, and only where it is true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from ledgerstone.entrypoints import host

if TYPE_CHECKING:
    import pytest

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
    assert "nothing to erase" in again
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


def test_the_lane_of_a_task_is_tasks(bound: Desk) -> None:
    """A person reads the word that a program reads."""
    bound.ask("remember", "Water the cedars", "--kind", "task")

    (head, _) = bound.run("recall", "cedars").out.decode().splitlines()[:2]

    assert head.endswith(" · tasks")
    assert bound.ask("recall", "cedars")["items"][0]["lane"] == "tasks"


def test_an_option_of_the_program_stands_before_the_command(bound: Desk) -> None:
    """Behind it, it is refused with where it belongs; one that nothing takes is refused as ever."""
    misplaced = bound.refuse("remember", "x", "--session", "s1")[1]
    unknown = bound.refuse("remember", "x", "--sesion", "s1")[1]

    assert misplaced["message"] == "--session stands before the command"
    assert misplaced["hint"] == "so: ledgerstone --session ... remember"
    assert "no such option" in unknown["message"]
    assert bound.ask("--session", "s1", "remember", "x", "--scope", "session")["scope"] == "session"


def test_who_has_no_session_learns_how_to_name_one(bound: Desk) -> None:
    """On the command line it is an option, before the command."""
    refused = bound.refuse("remember", "x", "--scope", "session")[1]

    assert "ledgerstone --session NAME" in refused["hint"]


def test_a_refusal_says_who_may_not_do_what_where_and_why(bound: Desk) -> None:
    """In plain words, with what to do; expire, which reaches everywhere, names no one scope."""
    project = bound.ask("remember", "one")["namespace"]
    who = bound.ask("namespaces")["bound"]["principal"]

    admin, erase, write = (
        bound.refuse(*asked)[1]
        for asked in (
            ("namespaces", "isolate", project, "on"),
            ("expire",),
            ("remember", "x", "--scope", "global"),
        )
    )

    assert admin["message"] == f"{who} may not administer the store: not through this door"
    assert admin["hint"] == "the user does it at a terminal"
    assert erase["message"] == f"{who} may not forget anywhere: not through this door"
    assert write["message"] == f"{who} may not create in scope global: no grant"
    assert write["hint"] == f"whoever administers may grant it: ledgerstone grants add {who} create --scope global"


def test_a_choice_that_is_none_is_named_by_its_name(desk: Desk) -> None:
    """Not by all that could stand there; what could is said behind it."""
    refused = [
        desk.refuse(*asked)[1]["message"]
        for asked in (("grants", "add", "ada", "fly"), ("namespaces", "isolate", "x", "maybe"), ("init", "emacs"))
    ]

    assert [each.partition(":")[0] for each in refused] == [
        "invalid value for 'act'",
        "invalid value for 'state'",
        "invalid value for 'HOST'",
    ]
    assert "'on', 'off'" in refused[1]


def test_a_finding_of_no_one_place_names_none(bound: Desk) -> None:
    """Neither a namespace nor a dash stands before what it says."""
    bound.ask("remember", "one")

    told = bound.invoke("verify", "--expected", "00" * 32).stdout.splitlines()[0]

    assert re.fullmatch(r"expected +no chain contains commit 0{16}", told)


def test_a_new_namespace_is_said_to_be_new(desk: Desk) -> None:
    """Behind its id, and once."""
    desk.ask("init")

    first, second = (desk.invoke("remember", text, "--scope", "user").stderr for text in ("one", "two"))

    assert re.search(r"note in user ns_\w+ \(new\), ", first)
    assert "new" not in second


def test_a_last_empty_line_of_a_text_is_not_shown(bound: Desk) -> None:
    """Between two memories stands one empty line, however they end; get gives each as it is."""
    address = bound.ask("remember", "-", given=b"Cedars want water\n")["address"]
    bound.ask("remember", "Cedars want light")

    lines = bound.run("recall", "cedars").out.decode().splitlines()

    assert lines.count("") == 1
    assert bound.run("get", address).out == b"Cedars want water\n"


def test_grants_stand_in_an_order(bound: Desk) -> None:
    """By scope, then by act, as the words are listed; those of one namespace last."""
    made = bound.sit("namespaces", "create", "--shared", "team", "--yes").out.decode().split()[-1]

    rows = [line.split()[1:3] for line in bound.run("grants").out.decode().splitlines()]

    scopes = [where for _, where in rows]
    assert scopes == ["session"] * 4 + ["project"] * 4 + ["user"] * 4 + ["store"] + [made] * 4
    assert [act for act, _ in rows[:4]] == [act for act, _ in rows[4:8]]


def test_a_list_of_ones_own_grants_says_so_and_how_to_see_all(bound: Desk) -> None:
    """Whoever administers sees each principal beside its grant; a program may not ask."""
    bound.sit("grants", "add", "local:bob", "read", "--scope", "global", "--yes")

    assert "grants --all" in seen(bound, "grants")
    everyone = seen(bound, "grants", "--all")
    assert [line.split()[1:] for line in everyone.splitlines() if "bob" in line] == [["read", "global", "local:bob"]]
    assert "yours alone" not in everyone
    assert bound.refuse("grants", "--all")[0] == 3


def test_a_trail_that_is_cut_says_so(bound: Desk) -> None:
    """As many events as were asked for may not be all; fewer are."""
    bound.ask("remember", "The mill was sold.")

    assert "the newest 1; more by --limit" in seen(bound, "audit", "--limit", "1")
    assert "the newest" not in seen(bound, "audit", "--limit", "1000")


def test_what_stays_is_listed_once(bound: Desk) -> None:
    """What rests on a text that goes is shown before the act, and not again behind it."""
    ground = bound.ask("remember", "The mill was sold, and sold again.")["address"]
    summary = bound.ask("remember", "Sold.", "--kind", "summary", "--source-of", ground, "--covers", ground)["address"]

    told = seen(bound, "forget", ground, "--keep", summary, "--yes")

    assert told.count("these stay") == 1
    assert told.count(summary) == 1


def test_a_shared_namespace_is_bound_nowhere(bound: Desk) -> None:
    """It says that it is in sight, unless isolation hides it; what this directory leads to is bound here."""
    project = bound.ask("remember", "one")["namespace"]
    bound.sit("namespaces", "create", "--shared", "team", "--yes")

    def ends(scope: str) -> list[str]:
        heads = [line for line in bound.run("namespaces").out.decode().splitlines() if line.startswith("ns_")]
        return [line.rpartition(" · ")[2] for line in heads if scope in line]

    assert (ends("shared"), ends("project")) == (["in sight here"], ["bound here"])
    bound.sit("namespaces", "isolate", project, "on", "--yes")
    assert "in sight here" not in ends("shared")


def test_an_alias_is_asked_for_by_its_name(bound: Desk) -> None:
    """The question says what would lead where; a path is meant from here, and detached as it was given."""
    project = bound.ask("remember", "one")["namespace"]
    real = str((bound.project / "below").resolve())

    asked = seen(bound, "namespaces", "alias", project, "--path", "below", types="y\n")
    away = seen(bound, "namespaces", "detach", project, "below", types="y\n")

    assert f"Let {real} lead to {project}?" in asked.replace("\n", "")
    assert f"Take {real} from {project}?" in away.replace("\n", "")
    assert bound.sit("namespaces", "detach", project, "below", "--yes").code == 3
    assert "ledgerstone namespaces" in bound.sit("namespaces", "detach", project, "below", "--yes").out.decode()


def test_home_is_no_place_to_bind(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal, and what finds nothing, say which directory it is; a directory below it is one to bind."""
    desk.ask("init")
    (desk.home / "work").mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.chdir(desk.home)
    refused = desk.refuse("namespaces", "use", "--new")[1]
    empty = [desk.run(*command, env={"HOME": str(desk.home)}).err for command in (("recall", "x"), ("list",))]
    monkeypatch.chdir(desk.home / "work")
    elsewhere = desk.run("recall", "x", env={"HOME": str(desk.home)}).err

    assert refused["message"] == "no directory to bind: it is the home directory"
    assert all("; no project is in sight, since it is the home directory\n" in said for said in empty)
    assert "in sight" not in elsewhere
    assert desk.ask("namespaces", "use", "--new")["namespace"].startswith("ns_")


def test_what_nobody_foresaw_is_told_in_a_short_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an error of somebody else's code says, it takes one printable line; without it the command runs."""
    desk.ask("init")

    def broken(*_: object) -> None:
        raise ValueError("first\nsecond\x1b[31m" + "x" * 500)

    with monkeypatch.context() as patched:
        patched.setattr(host, "settle", broken)
        code, error = desk.refuse("list")

    assert (code, error["code"]) == (2, "usage")
    assert error["message"].startswith("ValueError: first\\nsecond\\x1b[31mxxx")
    assert len(error["message"]) <= 120
    assert desk.ask("list")["items"] == []


def test_taking_out_what_is_not_there_says_so(desk: Desk) -> None:
    """Without a file there is nothing to show."""
    told = desk.invoke("init", "claude-code", "--show", "--remove")

    assert re.search(r"\.mcp\.json is not there", told.stderr)
    assert told.stdout == ""
