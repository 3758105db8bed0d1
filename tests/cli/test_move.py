"""Backup, restore, export and import from the command line; keys under a passphrase; stores that are only read."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, SECONDS, Desk, _shown

WORDS = {"LEDGERSTONE_PASSPHRASE": "correct horse battery"}


@pytest.fixture
def other(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The same project on another machine, where nothing was set up; what it says first is remembered at home."""
    bound.ask("remember", "the kettle is copper")
    monkeypatch.setenv("LEDGERSTONE_HOME", str(bound.home / "another"))
    return bound


def at_home(desk: Desk) -> dict[str, str]:
    """The environment of the machine where all was set up."""
    return {"LEDGERSTONE_HOME": str(desk.home / "ledgerstone")}


def test_a_backup_with_its_key_is_all_that_another_machine_needs(other: Desk) -> None:
    """Backed up by one program, restored by another from the two files and the passphrase alone."""
    file = str(other.home / "b.db")
    made = other.run("backup", file, "--with-key", "--json", env=at_home(other) | WORDS)
    assert made.code == 0, made.err

    refused = other.refuse("restore", file)
    moved = other.run("keys", "import", f"{file}.key", env=WORDS)
    restored = other.run("restore", file, "--json")

    assert refused[0] == 5
    assert "keys import" in refused[1]["hint"]
    assert (moved.code, restored.code) == (0, 0), restored.err
    assert json.loads(restored.out)["head"] == json.loads(made.out)["head"]
    assert b"the kettle is copper" in other.run("recall", "kettle").out
    assert other.ask("remember", "and the pot is tin")["sequence"]


def test_a_backup_comes_with_its_key_or_not_at_all(other: Desk) -> None:
    """A passphrase that is too short leaves neither file; nor does a backup that cannot be made leave a key."""
    file = other.home / "b.db"

    short = other.run("backup", str(file), "--with-key", env=at_home(other) | {"LEDGERSTONE_PASSPHRASE": "short"})
    assert short.code == 2
    assert not file.exists()
    file.write_bytes(b"in the way")
    blocked = other.run("backup", str(file), "--with-key", env=at_home(other) | WORDS)

    assert blocked.code == 2
    assert file.read_bytes() == b"in the way"
    assert not file.with_name("b.db.key").exists()


def test_a_pipe_is_not_waited_for(bound: Desk) -> None:
    """What is no file is refused by name, for an import and for a head to compare with."""
    pipe = bound.home / "pipe"
    os.mkfifo(pipe)

    for words in (("import", str(pipe)), ("verify", "--expected", str(pipe))):
        code, error = bound.refuse(*words)
        assert code == 2
        assert "is not a file" in error["message"]


def test_a_backup_says_its_head_and_that_the_key_is_not_in_it(bound: Desk) -> None:
    """The head that ``doctor`` names stands in the answer; another file of the name is refused."""
    file = str(bound.home / "b.db")

    done = bound.invoke("backup", file)

    assert bound.ask("doctor")["store"]["head"] in done.stdout
    assert "the key is not in it" in done.stderr
    assert bound.refuse("backup", file)[0] == 2


def test_a_passphrase_is_asked_twice_and_shown_never(bound: Desk) -> None:
    """At a terminal it is typed blind, and again; without one and without the variable nothing is sealed."""
    file = bound.home / "moved.key"

    code, error = bound.refuse("keys", "export", str(file))
    ended, shown = at_prompts("keys", "export", str(file), words=("correct horse battery",) * 2)

    assert (code, error["hint"]) == (2, "set LEDGERSTONE_PASSPHRASE, or run it at a terminal")
    assert ended == 0
    assert b"correct" not in shown
    assert json.loads(file.read_text())["what"] == "ledgerstone sealed key"


def test_a_short_passphrase_is_refused_before_it_is_asked_again(bound: Desk) -> None:
    """And two that differ in the words of every refusal; nothing is sealed then."""
    file = str(bound.home / "moved.key")

    short, once = at_prompts("keys", "export", file, words=("abc", "abc"))
    differ, twice = at_prompts("keys", "export", file, words=("correct horse", "incorrect horse"))

    assert (short, differ) == (2, 2)
    assert b"at least 8 characters" in once
    assert b"Again" not in once
    assert b"the two passphrases differ" in twice
    assert not (bound.home / "moved.key").exists()


def at_prompts(*arguments: str, words: tuple[str, ...]) -> tuple[int, bytes]:
    """Run a command at a terminal and type one of the words at each prompt; what is typed before one is thrown away."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as child:
        os.close(theirs)
        shown, answered = b"", 0
        while piece := _shown(ours):
            shown += piece
            if answered < min(len(words), shown.count(b": ")):
                os.write(ours, f"{words[answered]}\n".encode())
                answered += 1
        os.close(ours)
        return child.wait(SECONDS), shown


def test_a_wrong_passphrase_moves_no_key(other: Desk) -> None:
    """The key file is not made; by the right one it is."""
    file = str(other.home / "moved.key")
    assert other.run("keys", "export", file, env=at_home(other) | WORDS).code == 0

    wrong = other.run("keys", "import", file, env={"LEDGERSTONE_PASSPHRASE": "correct horse"})

    assert wrong.code == 2
    assert not (other.home / "another" / "config" / "key.json").exists()
    assert other.run("keys", "import", file, env=WORDS).code == 0


def test_a_restore_is_asked_first_and_says_what_it_gave_up(bound: Desk) -> None:
    """Refused over newer commits; told to accept them lost, asked, and answered no, nothing happens; yes does it."""
    file = str(bound.home / "b.db")
    bound.ask("backup", file)
    address = bound.ask("remember", "written after the backup")["address"]

    ahead, no, yes = (
        bound.sit("restore", file, *more, types=answer)
        for more, answer in ((["--yes"], ""), (["--accept"], "n\n"), (["--accept"], "y\n"))
    )

    assert (ahead.code, no.code, yes.code) == (8, 130, 0)
    assert b"--accept" in ahead.out
    assert b"[y/N]" in no.out
    assert b"given up" in yes.out
    assert b"ledgerstone.db.replaced-1" in yes.out
    assert bound.refuse("get", address)[0] == 3
    assert "restore" in {event["operation"] for event in json.loads(bound.sit("audit", "--json").out)["events"]}


def test_a_restore_that_is_refused_is_not_asked_for(bound: Desk) -> None:
    """Over newer commits, out of what is no store, and while somebody has the store open; each says so at once."""
    file, other = str(bound.home / "b.db"), bound.home / "other.db"
    bound.ask("backup", file)
    address = bound.ask("remember", "written after the backup")["address"]
    other.write_bytes(b"no store")
    with sqlite3.connect(bound.home / "ledgerstone" / "data" / "ledgerstone.db") as connection:
        connection.execute("BEGIN").execute("SELECT count(*) FROM sqlite_schema").fetchone()
        held = bound.sit("restore", file, "--accept", types="y\n")
    connection.close()

    ahead, damaged = (bound.sit("restore", each, types="y\n") for each in (file, str(other)))

    assert (held.code, ahead.code, damaged.code) == (5, 8, 5)
    assert not any(b"[y/N]" in done.out for done in (held, ahead, damaged))
    assert bound.ask("get", address)["text"] == "written after the backup"


def test_a_program_gives_nothing_up(bound: Desk) -> None:
    """Without a terminal a restore that loses commits is refused, whatever it is told."""
    file = str(bound.home / "b.db")
    bound.ask("backup", file)
    bound.ask("remember", "written after the backup")

    assert bound.refuse("restore", file)[0] == 8
    assert bound.refuse("restore", file, "--accept")[0] == 3


def test_an_export_is_imported_where_nothing_is(other: Desk) -> None:
    """By the pinned public key alone another machine makes the same store of it, and again changes nothing."""
    file = other.home / "e.jsonl"
    assert other.sit("export", str(file), env=at_home(other)).code == 0
    public = other.run("keys", "show", env=at_home(other)).out.decode().strip()
    pin = {"LEDGERSTONE_PUBLIC_KEY": public}

    first = other.run("import", "-", "--json", given=file.read_bytes(), env=pin)
    again = other.sit("import", str(file), "--yes", "--json", env=pin)

    assert first.code == 0, first.err
    assert sum(json.loads(first.out)["new"].values()) == json.loads(first.out)["commits"]
    assert json.loads(again.out)["new"] == {}
    assert b"the kettle is copper" in other.run("recall", "kettle", env=pin).out
    assert other.run("remember", "x", env=pin).code == 5


def test_a_program_exports_what_it_is_bound_to_and_no_more(bound: Desk) -> None:
    """The project's lines go into a pipe; the whole store takes a terminal; no file is made of a refusal."""
    bound.ask("remember", "the kettle is copper")
    project = bound.ask("namespaces")["bound"]["project"]

    lines = bound.invoke("export", "--namespace", project).stdout.splitlines()

    assert json.loads(lines[0])["namespaces"] == [project]
    assert bound.refuse("export", str(bound.home / "e.jsonl"))[0] == 3
    assert not (bound.home / "e.jsonl").exists()


def test_an_export_for_people_keeps_texts_in_their_fences(bound: Desk) -> None:
    """A text that closes a fence, or hides a character, stays within; what was superseded is not shown."""
    bound.ask("remember", "old", "--key", "k`1")
    bound.ask("remember", "-", "--key", "k`1", given=b"```\n# not a heading\n\xe2\x80\xaehidden")
    bound.ask("remember", "water the ferns", "--kind", "task")
    project = bound.ask("namespaces")["bound"]["project"]

    page = bound.invoke("export", "--markdown", "--namespace", project).stdout

    assert "````text\n```\n# not a heading\n\\u202ehidden\n````\n" in page
    assert "key `` k`1 ``" in page
    assert [line for line in page.splitlines() if line.startswith("### ")] == ["### note", "### task"]
    assert "old" not in page


def test_an_export_is_not_mixed_with_anything(bound: Desk) -> None:
    """With --json, and on a terminal, standard output is no place for its lines."""
    assert bound.refuse("export")[0] == 2

    assert bound.sit("export").code == 2


def test_a_file_that_is_no_export_is_named(bound: Desk) -> None:
    """A missing file, and one that is something else, each with its own error."""
    assert bound.refuse("import", str(bound.home / "missing"))[1]["code"] == "unavailable"

    text = Path(bound.home / "text")
    text.write_text("hello\n")

    assert bound.run("import", str(text), env={"LEDGERSTONE_STORE": str(bound.home / "new.db")}).code == 5
    assert not (bound.home / "new.db").exists()


@pytest.mark.parametrize("how", ["flag", "variable", "pin"])
def test_a_store_is_only_read(bound: Desk, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By flag, by variable, or for want of its key: reads answer, writes say what to do, doctor says so."""
    bound.ask("remember", "the kettle is copper")
    flag = ["--read-only"] if how == "flag" else []
    if how == "variable":
        monkeypatch.setenv("LEDGERSTONE_READ_ONLY", "yes")
    if how == "pin":
        pin = bound.home / "pin"
        pin.write_text(bound.invoke("keys", "show").stdout)
        key = bound.home / "ledgerstone" / "config" / "key.json"
        os.rename(key, bound.home / "kept.json")  # noqa: PTH104 - as a user would
        assert bound.refuse("recall")[0] == 5
        monkeypatch.setenv("LEDGERSTONE_PUBLIC_KEY", str(pin))

    code, error = bound.refuse(*flag, "remember", "x")

    assert (code, error["message"]) == (5, "this store is open read-only")
    assert bound.ask(*flag, "recall", "kettle")["items"][0]["text"] == "the kettle is copper"
    assert bound.ask(*flag, "verify")["ok"]
    assert bound.ask(*flag, "doctor")["store"]["writable"] is False
    assert bound.ask(*flag, "keys")["keys"][0]["signs"] is (how != "pin")


def test_a_setting_that_is_neither_yes_nor_no_is_refused(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that might have meant read-only is not taken for writable."""
    monkeypatch.setenv("LEDGERSTONE_READ_ONLY", "on")
    assert bound.refuse("recall")[0] == 2

    monkeypatch.setenv("LEDGERSTONE_READ_ONLY", "0")
    assert bound.ask("remember", "x")["sequence"]


@pytest.mark.parametrize("command", ["backup", "export", "keys export", "prove"])
def test_a_file_in_no_folder_is_the_callers_to_mend(bound: Desk, command: str) -> None:
    """Whatever writes a file says alike that the folder is not there, and makes none."""
    address = bound.ask("remember", "one")["address"]
    target = bound.home / "none" / "file"
    words = [*command.split(), *([address] if command == "prove" else []), str(target)]

    done = bound.sit(*words, env=WORDS)

    assert (done.code, f"{target.parent} is no folder".encode() in done.out) == (2, True), done.out
    assert not target.parent.exists()


def test_adding_to_a_store_is_asked_for(bound: Desk, tmp_path: Path) -> None:
    """At a terminal: a no adds nothing. Where no store is, nothing is asked."""
    bound.ask("remember", "one")
    target = str(tmp_path / "all.jsonl")
    assert bound.sit("export", target).code == 0

    no = bound.sit("import", target, types="n\n")
    yes = bound.sit("import", target, types="y\n")
    fresh = bound.sit("--store", str(tmp_path / "other.db"), "import", target)

    assert (no.code, yes.code, fresh.code) == (130, 0, 0)
    assert b"Add what is new in" in no.out
    assert b"Add what is new in" not in fresh.out
    assert bound.sit("import", target, "--yes").code == 0


def test_nobody_is_asked_about_an_export_that_is_refused(bound: Desk, tmp_path: Path) -> None:
    """It is judged before anybody is asked, and judging adds nothing."""
    bound.ask("remember", "one")
    whole, cut = tmp_path / "all.jsonl", tmp_path / "cut.jsonl"
    assert bound.sit("export", str(whole)).code == 0
    cut.write_bytes(whole.read_bytes()[:-40])

    refused = bound.sit("import", str(cut), types="y\n")

    assert (refused.code, b"Add what is new in" in refused.out) == (4, False), refused.out
