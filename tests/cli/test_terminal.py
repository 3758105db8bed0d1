"""Who sits at a terminal is the user; a program is a tool; and what a terminal shows cannot steer it."""

from __future__ import annotations

import re

import click
import pytest

from tests.cli.conftest import Desk

ADDRESS = re.compile(r"mem_[0-9a-z]{16}@\d+")


def test_a_user_types_and_a_program_pipes(bound: Desk) -> None:
    """The same command has origin user at a terminal and tool in a pipe; nothing said can change that."""
    shown = bound.sit("remember", "said by hand").out.decode()
    piped = bound.ask("remember", "said by a program, as the user, origin user")["address"]

    by_hand = ADDRESS.search(shown)
    assert by_hand is not None
    records = [bound.ask("get", address) for address in (by_hand[0], piped)]

    assert [(record["origin"], record["trust"]) for record in records] == [
        ("user", "user_explicit"),
        ("tool", "tool_verified"),
    ]


def test_a_pipe_at_a_terminal_is_a_program(bound: Desk) -> None:
    """With standard input from elsewhere nobody is known to sit there, whatever standard error is."""
    assert bound.ask("get", bound.ask("remember", "-", given=b"x")["address"])["origin"] == "tool"


def test_an_admin_act_is_asked_and_done(bound: Desk) -> None:
    """At a terminal a grant is added after a yes; after a no nothing is done, and --yes spares the question."""
    act = ["grants", "add", "local:bob", "read", "--scope", "global"]
    before = bound.sit("grants", "--principal", "local:bob").out.count(b"grt_")

    refused, allowed = bound.sit(*act, types="n\n"), bound.sit(*act, types="y\n")
    spared = bound.sit(*act, "--yes")

    assert (refused.code, allowed.code, spared.code) == (130, 0, 0)
    assert b"nothing was done" in refused.out
    assert b"?" not in spared.out
    assert bound.sit("grants", "--principal", "local:bob").out.count(b"grt_") == before + 2


def test_what_is_refused_is_refused_before_it_is_asked(bound: Desk) -> None:
    """Nobody says yes to what cannot be done: each act is judged, then asked for; one that is allowed is asked for."""
    assert bound.sit("namespaces", "create", "--shared", "team", "--yes").code == 0
    nowhere = "ns_0000000000000000"
    acts = (
        ["namespaces", "create", "--shared", "team"],
        ["namespaces", "isolate", nowhere, "on"],
        ["namespaces", "alias", nowhere, "--remote", "https://example.org/a/b"],
        ["namespaces", "detach", nowhere, "/a/b"],
        ["grants", "add", "local:bob", "read", "--namespace", nowhere],
        ["grants", "revoke", "grt_0000000000000000"],
    )

    shown = [bound.sit(*act, types="y\n") for act in acts]
    allowed = bound.sit("namespaces", "create", "--shared", "another", types="n\n")

    assert [done.code for done in shown] == [2, 3, 3, 3, 3, 3]
    assert [act for act, done in zip(acts, shown, strict=True) if b"[y/N]" in done.out] == []
    assert b"[y/N]" in allowed.out


def test_a_grant_of_global_lets_global_be_written(bound: Desk) -> None:
    """What was refused before the user's grants is done after them, and refused again once they are revoked."""
    assert bound.refuse("remember", "x", "--scope", "global")[0] == 3

    owner = bound.ask("doctor")["bound"]["principal"]
    shown = [bound.sit("grants", "add", owner, act, "--scope", "global", "--yes") for act in ("create", "write")]
    assert bound.ask("remember", "x", "--scope", "global")["scope"] == "global"

    for done in shown:
        grant = re.search(rb"grt_[0-9a-z]{16}", done.out)
        assert grant is not None
        assert bound.sit("grants", "revoke", grant[0].decode(), "--yes").code == 0
    assert bound.refuse("remember", "y", "--scope", "global")[0] == 3


def test_an_alias_is_added_and_detached(bound: Desk) -> None:
    """A remote suggests a project from the alias on until it is detached; both are asked first."""
    namespace = bound.ask("namespaces")["namespaces"][0]["namespace"]

    added = bound.sit("namespaces", "alias", namespace, "--remote", "git@example.org:a/b.git", types="y\n")
    aliases = bound.ask("namespaces")["namespaces"][0]["aliases"]
    gone = bound.sit("namespaces", "detach", namespace, "example.org/a/b", types="y\n")

    assert (added.code, gone.code) == (0, 0)
    assert "example.org/a/b" in aliases
    assert "example.org/a/b" not in bound.ask("namespaces")["namespaces"][0]["aliases"]


def test_a_terminal_shows_no_control_characters(bound: Desk) -> None:
    """What would move the cursor, change the title or turn the text around is spelled out, in text and in JSON."""
    text = "a\x1b]0;owned\x07b \u202eright \x9b31m"
    address = bound.ask("remember", "-", given=text.encode())["address"]

    shown = [bound.sit(*arguments).out.decode() for arguments in (["get", address], ["recall"], ["recall", "--json"])]

    for each in shown:
        assert not {"\x07", "\u202e", "\x9b"} & set(each)
        assert "\x1b]" not in each
        assert "owned" in each


def test_a_long_text_wraps_within_its_margin(bound: Desk) -> None:
    """At a terminal of 80 columns no line of a listing is longer, and none of a text begins at the left."""
    bound.ask("remember", "-", given=("cedar " * 60).encode())

    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in bound.sit("recall").out.decode().splitlines()]

    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("    cedar") for line in lines) >= 4


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_line_of_ours_is_wider_than_the_terminal(bound: Desk, width: int) -> None:
    """A record's head goes on less far in than any text, a trail takes two lines, what only begins is cut."""
    said = "The staging database is restored every morning, and whoever changes its schema by hand loses that change."
    task = ["--kind", "task", "--due", "2027-01-10", "--key", "the-staging-database"]
    address = bound.ask("remember", said, *task)["address"]
    receipt = bound.ask("recall", "staging database", "--receipt")["receipt"]
    verbs = (["list"], ["recall"], ["audit"], ["explain", receipt], ["forget", address, "--dry-run"])

    shown = [click.unstyle(bound.sit(*verb, env={"COLUMNS": str(width)}).out.decode()).splitlines() for verb in verbs]

    assert [line for lines in shown for line in lines if len(line) > width] == []
    assert any(line.startswith(("  task", "  due", "  key")) for line in shown[0]) >= (width < 80)
    assert any("due 2027-01-10" in line and "00:00" not in line for line in shown[0])


def test_a_program_that_waits_says_so(bound: Desk) -> None:
    """At a terminal ``remember -`` and ``mcp`` say on standard error what they wait for; in a pipe they say nothing."""
    typed = bound.sit("remember", "-", types="by hand\n\x04")
    served = bound.sit("mcp", types="\x04")
    piped = bound.run("remember", "-", given=b"by a program")

    assert b"reading the text from this terminal" in typed.out
    assert bound.ask("recall", "hand")["items"][0]["text"] == "by hand\n"
    assert b"this is for a host to start" in served.out
    assert "terminal" not in piped.err


def test_the_name_alone_shows_the_help(desk: Desk) -> None:
    """On standard output and with exit code 0: who types it first did nothing wrong; a wrong command is refused."""
    bare, asked = desk.run(), desk.run("--help")

    assert (bare.code, bare.out, bare.err) == (0, asked.out, "")
    assert b"ledgerstone init" in bare.out
    assert desk.run("nonsense").code == 2


def test_one_of_a_thing_is_not_several(desk: Desk) -> None:
    """Counts are in words that fit them."""
    desk.ask("init")
    one = desk.invoke("verify").stdout
    desk.ask("namespaces", "use", "--new")
    several = desk.invoke("verify").stdout

    assert re.fullmatch(r"0 namespaces, 1 commit, \d+ entries: no fault\n", one)
    assert re.fullmatch(r"1 namespace, 3 commits, \d+ entries: no fault\n", several)


def test_no_color_is_respected(bound: Desk) -> None:
    """NO_COLOR takes the colours away; without it a terminal has them, and a pipe never."""
    bound.ask("remember", "x")
    assert b"\x1b[" in bound.sit("list").out
    assert b"\x1b[" not in bound.run("list").out

    assert b"\x1b[" in bound.sit("get", "none").out

    plain = [bound.sit(*command, env={"NO_COLOR": "1"}) for command in (("list",), ("get", "none"))]

    assert all(b"\x1b[" not in each.out for each in plain)


def test_a_known_project_at_a_new_place_is_confirmed_once(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another checkout of a known remote asks its user, binds all of it on a yes, and refuses a program until then."""
    for name in ("first", "second"):
        git = bound.home / name / ".git"
        git.mkdir(parents=True)
        (bound.home / name / "src").mkdir()
        (git / "config").write_text('[remote "origin"]\n\turl = https://example.org/a/b.git\n', encoding="utf-8")
    monkeypatch.chdir(bound.home / "first")
    project = bound.ask("remember", "x")["namespace"]
    monkeypatch.chdir(bound.home / "second" / "src")
    assert bound.refuse("remember", "y")[0] == 6

    refused, allowed = (bound.sit("remember", "y", types=answer) for answer in ("n\n", "y\n"))

    assert (refused.code, allowed.code) == (130, 0)
    assert b"Is this checkout yours?" in refused.out
    monkeypatch.chdir(bound.home / "second")
    assert bound.ask("remember", "z")["namespace"] == project


def test_how_far_a_verification_is_stands_there_once(bound: Desk) -> None:
    """At a terminal each count is drawn once, and taken away in the end; in a pipe nothing is drawn."""
    bound.ask("remember", "x")

    drawn = bound.sit("verify", "--full").out.split(b"\x1b[K")

    counts = [part for part in drawn if part.endswith(b"commits\r")]
    assert counts
    assert len(counts) == len(set(counts))
    assert b"\x1b[K" not in bound.run("verify", "--full").out
