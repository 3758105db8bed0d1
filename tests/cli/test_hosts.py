"""Telling a host of the server changes our entry and not a byte of anything else."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.entrypoints import cli_admin, cli_hosts
from tests.cli.conftest import Desk

FILES = {
    "claude-code": "project/.mcp.json",
    "codex": ".codex/config.toml",
    "cursor": "project/.cursor/mcp.json",
    "vscode": "project/.vscode/mcp.json",
}
CONTAINERS = {"claude-code": "mcpServers", "codex": "mcp_servers", "cursor": "mcpServers", "vscode": "servers"}
JSON_HOSTS = ["claude-code", "cursor", "vscode"]
OTHERS = [
    "{}",
    '{\n  "mcpServers": {}\n}\n',
    '{"other": 1}',
    '{\n\t"mcpServers": {\n\t\t"theirs": {"command": "x",   "args": []}\n\t},\n\t"z": [1,2 ]\n}\n\n',
    '{"mcpServers":{"a":{"command":"b"}},"n":1.50}',
    '{\r\n    "inputs": [],\r\n    "servers": {\r\n        "a": {"command": "caf\\u00e9"}\r\n    }\r\n}\r\n',
]
TOMLS = [
    "",
    "# mine\nmodel = 'x'   # kept\n",
    "model = 'x'",
    '[mcp_servers.theirs]\ncommand = "x"\n\n\n',
    'a = """\n[mcp_servers.ledgerstone]\n"""\r\nb = 1\r\n',
]


def servers(path: Path, host: str) -> Any:
    """The servers that a host would find in its file."""
    text = path.read_text(encoding="utf-8")
    found = tomllib.loads(text) if host == "codex" else json.loads(text)
    return found[CONTAINERS[host]]


def test_the_command_line_offers_every_host() -> None:
    """The names are written down where nothing heavy loads; they are the hosts that exist."""
    assert tuple(cli_hosts.HOSTS) == cli_admin.HOSTS


@pytest.mark.parametrize("host", FILES)
def test_an_entry_is_made_once_and_taken_out(desk: Desk, host: str) -> None:
    """The entry names an absolute command; made again nothing changes; removed the file is gone as it came."""
    path = desk.home / FILES[host]

    made = desk.ask("init", host)
    entry = servers(path, host)["ledgerstone"]
    inode, again = path.stat().st_ino, desk.ask("init", host)
    after, removed = path.stat().st_ino, desk.ask("init", host, "--remove")

    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["mcp"]
    assert [answer["done"] for answer in (made, again, removed)] == ["written", "there already", "removed"]
    assert inode == after
    assert not path.exists()
    assert desk.ask("init", host, "--remove")["done"] == "not there"


@pytest.mark.parametrize("host", FILES)
def test_showing_writes_nothing(desk: Desk, host: str) -> None:
    """--show prints the whole file as it would be, and makes neither file nor directory."""
    assert "(written)" not in desk.invoke("init", host, "--show").stderr
    shown = desk.ask("init", host, "--show")

    path = desk.home / FILES[host]
    assert (path.exists(), path.parent.exists()) == (False, path.parent == desk.project)
    desk.ask("init", host)
    assert path.read_text(encoding="utf-8") == shown["text"]


@pytest.mark.parametrize("host", JSON_HOSTS)
@pytest.mark.parametrize("before", OTHERS, ids=range(len(OTHERS)))
def test_what_others_wrote_keeps_every_byte(desk: Desk, host: str, before: str) -> None:
    """Into somebody's file our entry goes in between; everything else stands as it stood, after removal too."""
    path = desk.home / FILES[host]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(before.encode())

    desk.ask("init", host)
    with_ours = json.loads(path.read_text(encoding="utf-8"))
    desk.ask("init", host, "--remove")

    container = CONTAINERS[host]
    was = json.loads(before)
    assert "ledgerstone" in with_ours[container]
    del with_ours[container]["ledgerstone"]
    assert with_ours == {**was, container: was.get(container, {})}
    if was.get(container):
        assert path.read_bytes() == before.encode()


@pytest.mark.parametrize("before", TOMLS, ids=range(len(TOMLS)))
def test_a_toml_file_comes_back_byte_for_byte(desk: Desk, before: str) -> None:
    """Our block is put in and taken out again, and what others wrote is what it was."""
    path = desk.home / FILES["codex"]
    path.parent.mkdir()
    path.write_bytes(before.encode())

    desk.ask("init", "codex")
    data = path.read_bytes()
    desk.ask("init", "codex", "--remove")

    assert data.startswith(before.encode())
    assert (path.read_bytes() if path.exists() else b"") == before.encode()


def test_what_follows_our_block_is_kept(desk: Desk) -> None:
    """Somebody may write below our block; taking it out leaves that too."""
    path = desk.home / FILES["codex"]
    path.parent.mkdir()
    path.write_text("a = 1\n", encoding="utf-8")
    desk.ask("init", "codex")
    path.write_text(path.read_text(encoding="utf-8") + "[theirs]\nb = 2\n", encoding="utf-8")

    desk.ask("init", "codex", "--remove")

    assert path.read_text(encoding="utf-8") == "a = 1\n[theirs]\nb = 2\n"


@pytest.mark.parametrize("host", FILES)
def test_a_file_that_cannot_be_parsed_is_left_alone(desk: Desk, host: str) -> None:
    """A comment in JSON, a broken table in TOML: refused with exit 2 and not a byte changed."""
    path = desk.home / FILES[host]
    path.parent.mkdir(exist_ok=True)
    broken = "[mcp_servers\n" if host == "codex" else '{ // mine\n  "mcpServers": {} }\n'
    path.write_text(broken, encoding="utf-8")

    answers = [desk.refuse("init", host), desk.refuse("init", host, "--remove")]

    assert [(code, error["code"]) for code, error in answers] == [(2, "usage")] * 2
    assert path.read_text(encoding="utf-8") == broken


@pytest.mark.parametrize("host", FILES)
def test_an_entry_of_our_name_that_is_not_ours_is_left_alone(desk: Desk, host: str) -> None:
    """Somebody else's server of that name is neither replaced nor removed; ours, with another path, is updated."""
    path = desk.home / FILES[host]
    path.parent.mkdir(exist_ok=True)
    theirs: dict[str, Any] = {CONTAINERS[host]: {"ledgerstone": {"command": "docker", "args": ["run"]}}}
    text = '[mcp_servers.ledgerstone]\ncommand = "docker"\nargs = ["run"]\n' if host == "codex" else json.dumps(theirs)
    path.write_text(text, encoding="utf-8")

    answers = [desk.refuse("init", host), desk.refuse("init", host, "--remove")]
    assert [(code, error["code"]) for code, error in answers] == [(8, "conflict")] * 2
    assert path.read_text(encoding="utf-8") == text

    path.unlink()
    desk.ask("init", host)
    moved = path.read_text(encoding="utf-8")
    command = json.dumps(servers(path, host)["ledgerstone"]["command"])
    path.write_text(moved.replace(command, '"/old/bin/ledgerstone"'), encoding="utf-8")
    assert desk.ask("init", host)["done"] == "updated"
    assert path.read_text(encoding="utf-8") == moved


def test_a_file_keeps_its_mode(desk: Desk) -> None:
    """What was for its owner's eyes only still is."""
    path = desk.home / FILES["codex"]
    path.parent.mkdir()
    path.touch(mode=0o600)

    desk.ask("init", "codex")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_in_a_project_is_not_followed(desk: Desk) -> None:
    """A clone may bring a link that leads to a file of its user's: refused, and that file is as it was."""
    secret = desk.home / "settings.json"
    secret.write_text("{}", encoding="utf-8")
    (desk.project / ".mcp.json").symlink_to(secret)

    code, _ = desk.refuse("init", "claude-code")

    assert (code, secret.read_text(encoding="utf-8")) == (2, "{}")


def test_a_project_file_needs_a_project(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the home directory there is no project to write into; a personal file is written from anywhere."""
    monkeypatch.chdir(desk.home)

    assert desk.refuse("init", "cursor")[0] == 2
    assert desk.ask("init", "codex")["done"] == "written"


def test_the_entry_goes_to_the_top_of_the_repository(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a directory within a repository the file at its top is meant."""
    inner = desk.project / "src" / "deep"
    inner.mkdir(parents=True)
    (desk.project / ".git").mkdir()
    monkeypatch.chdir(inner)

    assert desk.ask("init", "claude-code", "--show")["file"] == str(desk.project / ".mcp.json")


def test_a_chosen_store_is_told_to_the_host(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store named by this shell is named in the entry, since a host may not pass the variable on."""
    monkeypatch.setenv("LEDGERSTONE_STORE", "/elsewhere/store.db")

    desk.ask("init", "cursor")

    env = servers(desk.home / FILES["cursor"], "cursor")["ledgerstone"]["env"]
    assert env["LEDGERSTONE_STORE"] == "/elsewhere/store.db"
    monkeypatch.delenv("LEDGERSTONE_STORE")
    monkeypatch.delenv("LEDGERSTONE_HOME")
    assert desk.ask("init", "cursor")["done"] == "updated"
    assert "env" not in servers(desk.home / FILES["cursor"], "cursor")["ledgerstone"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(
    rest=st.dictionaries(st.text(max_size=8), JSON, max_size=3),
    there=st.dictionaries(st.text(max_size=8), JSON, min_size=1, max_size=3),
    indent=st.sampled_from([None, 0, 2, "\t"]),
    escaped=st.booleans(),
)
def test_any_json_file_comes_back_byte_for_byte(
    rest: dict[str, Any], there: dict[str, Any], indent: int | str | None, *, escaped: bool
) -> None:
    """Put in and taken out again, our member leaves any object as it was, however it is laid out."""
    before = json.dumps({**rest, "mcpServers": there}, indent=indent, ensure_ascii=escaped)
    wanted = {"command": "/bin/ledgerstone", "args": ["mcp"]}
    path = Path("file.json")

    with_ours = cli_hosts._edit_json(path, before, "mcpServers", wanted)

    assert json.loads(with_ours) == {**rest, "mcpServers": {**there, "ledgerstone": wanted}}
    assert cli_hosts._edit_json(path, with_ours, "mcpServers", wanted) == with_ours
    assert cli_hosts._edit_json(path, with_ours, "mcpServers", None) == before


def test_a_server_that_cannot_start_is_said_when_a_host_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK the file is written and the answer says what to install; with it, or on removal, nothing."""
    said = desk.ask("init", "claude-code")
    monkeypatch.setattr(cli_admin, "find_spec", lambda _: None)

    lacking = desk.ask("init", "claude-code")
    gone = desk.ask("init", "claude-code", "--remove")

    assert ["notices" in answer for answer in (said, lacking, gone)] == [False, True, False]
    assert "pip install" in lacking["notices"][0]
    assert "pip install" in desk.invoke("init", "claude-code").stderr
