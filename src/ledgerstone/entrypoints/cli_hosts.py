"""Telling a host of the MCP server: our one entry in its file, and not a byte of anything else."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from ledgerstone.entrypoints.host import CHOSEN_HOME, Settings, repository_top
from ledgerstone.errors import ConflictError, UnavailableError, UsageError

NAME: Final = "ledgerstone"
MAX_FILE_BYTES: Final = 1 << 20
BEGIN: Final = "# >>> ledgerstone: written by `ledgerstone init codex`, taken out by `ledgerstone init codex --remove`"
END: Final = "# <<< ledgerstone"
# Codex begins its first turn without waiting for a server that is not required.
CODEX_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers: where its file is, how to change it, and what to do next there.

    ``container`` is the table in which servers stand, ``extra`` and ``env``
    what an entry holds beside command and arguments. ``personal``: one file for all projects.
    """

    path: str
    container: str
    follows: str
    extra: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    personal: bool = False


HOSTS: Final = {
    "claude-code": Host(".mcp.json", "mcpServers", "start claude here and approve the server", {"type": "stdio"}),
    "codex": Host(
        "config.toml",
        "mcp_servers",
        "the next codex session has it",
        {"required": True, "startup_timeout_sec": CODEX_SECONDS},
        personal=True,
    ),
    "cursor": Host(".cursor/mcp.json", "mcpServers", "enable it in Cursor's settings, under MCP", {}),
    "vscode": Host(
        ".vscode/mcp.json",
        "servers",
        "start it in VS Code: MCP: List Servers",
        # VS Code names the folder only to those who ask.
        {"type": "stdio"},
        {"WORKSPACE_FOLDER_PATHS": "${workspaceFolder}"},
    ),
}


class Change(NamedTuple):
    """What a file would become; ``after`` is None when it would go. ``what`` is the word for it."""

    path: Path
    before: str | None
    after: str | None
    what: str
    mode: int


def plan(name: str, settings: Settings, *, remove: bool) -> Change:
    """What telling a host, or taking that back, would do to its file. Nothing is written.

    Raises UsageError for a file that cannot be parsed, ConflictError when an entry of our name is not ours.
    """
    host = HOSTS[name]
    path = _file_of(host, settings)
    before, mode = _read(path)
    wanted = None if remove else _entry(host, settings)
    edit = _edit_toml if host.personal else _edit_json
    after = edit(path, before or "", host.container, wanted)
    if after == (before or ""):
        what = "not there" if remove else "there already"
        return Change(path, before, before, what, mode)
    if remove:
        return Change(path, before, after or None, "removed", mode)
    return Change(path, before, after, "written" if NAME not in _servers(before, host, path) else "updated", mode)


def carry_out(change: Change) -> None:
    """Write a file anew, whole or not at all, if it would change."""
    if change.before == change.after:
        return
    path = change.path
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if change.after is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, change.mode)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), change.mode)
                file.write(change.after.encode())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UnavailableError(f"{error.filename}: {error.strerror}") from error


def _file_of(host: Host, settings: Settings) -> Path:
    if host.personal:
        # Whoever keeps it elsewhere and links to it means that file.
        return Path(os.path.realpath(settings.codex / host.path))
    if settings.place is None:
        raise UsageError("no project here to write into", hint="run it in the project's directory")
    path = (repository_top(settings.place, settings.home) or settings.place) / host.path
    if path.is_symlink() or path.parent.is_symlink():
        raise UsageError(f"{path} is a link, and may lead out of the project", hint="put a file in its place")
    return path


def _read(path: Path) -> tuple[str | None, int]:
    """A file's text and mode; None where there is none."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None, 0o644
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path}: at most {MAX_FILE_BYTES} bytes")
    try:
        return data.decode(), mode
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8, so it is left alone") from None


def _entry(host: Host, settings: Settings) -> dict[str, Any]:
    # A host may start us without the variables that this shell has; then another store would answer.
    said = {name: str(getattr(settings, name)) for name in ("store", "key_file") if _is_chosen(settings.won[name])}
    env = {**host.env, **{f"LEDGERSTONE_{name.upper()}": value for name, value in said.items()}}
    return {"command": _command(), "args": ["mcp"], **host.extra, **({"env": env} if env else {})}


def _is_chosen(source: str) -> bool:
    """Whether a setting was said in a way that a program started elsewhere does not hear."""
    return source in {"flag", "environment", CHOSEN_HOME}


def _command() -> str:
    """The absolute path of our program, since hosts start servers with hardly a PATH."""
    beside = Path(sys.executable).parent / NAME
    found = str(beside) if beside.exists() else shutil.which(NAME)
    if found is None:
        raise UsageError("the ledgerstone command is nowhere to be found", hint="install it, then run this again")
    return str(Path(found).absolute())


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    return isinstance(command, str) and Path(command).name == NAME and arguments == ["mcp"]


def _foreign(path: Path) -> ConflictError:
    return ConflictError(f"{path}: its server {NAME!r} is not ours", hint="rename or remove that entry by hand")


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path}: cannot be parsed, so it is left alone: {error}", hint="add the entry by hand: --show")


def _servers(text: str | None, host: Host, path: Path) -> Mapping[str, Any]:
    if not (text or "").strip():
        return {}
    found = (_toml if host.personal else _json)(path, text or "").get(host.container, {})
    if not isinstance(found, dict):
        raise UsageError(f"{path}: {host.container} is no table, so it is left alone")
    return found


# TOML: one block between two comments, since the standard library reads TOML and does not write it.


def _toml(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from error


def _edit_toml(path: Path, text: str, container: str, wanted: dict[str, Any] | None) -> str:
    """The text with our block put at its end, put anew or taken out; never another byte."""
    before = _toml(path, text)
    servers = before.get(container, {})
    if not isinstance(servers, dict):
        raise UsageError(f"{path}: {container} is no table, so it is left alone")
    start = text.find(BEGIN)
    end = text.find(END, max(start, 0))
    tagged = 0 <= start < end
    if NAME in servers and not (tagged and _is_ours(servers[NAME])):
        raise _foreign(path)
    rest = text
    if tagged:
        # The line's end before the block is ours too: it was put there with it.
        after = end + len(END)
        rest = text[: max(start - 1, 0)] + text[after:].removeprefix("\n")
    others = {name: server for name, server in servers.items() if name != NAME}
    if wanted is None:
        found = rest
    else:
        if tagged and servers.get(NAME) == wanted:
            return text
        block = "\n".join(
            [
                BEGIN,
                f"[{container}.{NAME}]",
                *(f"{name} = {_toml_value(value)}" for name, value in wanted.items()),
                END,
                "",
            ]
        )
        found = f"{rest}\n{block}" if rest else block
        others[NAME] = wanted
    now = _toml(path, found)
    if (now.get(container, {}), {**now, container: None}) != (others, {**before, container: None}):
        raise UsageError(f"{path}: our entry cannot be told from the rest", hint="change it by hand: --show")
    return found


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml_value(each)}" for name, each in value.items()) + " }"
    # Strings, lists of them, numbers and booleans read alike in both. DEL alone does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# JSON: the spans of its members, so that only ours is replaced.


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _unreadable(path, error) from error
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not an object, so it is left alone")
    return found


class _Member(NamedTuple):
    """A member of an object in a text: from its key to the end of its value."""

    key: str
    start: int
    value: int
    end: int


def _members(text: str, at: int) -> Iterator[_Member]:
    """The members of the object that begins at a brace; the text is known to be valid JSON."""
    at = _skip(text, at + 1)
    decoder = json.JSONDecoder()
    while text[at] != "}":
        start = at
        key, at = decoder.raw_decode(text, at)
        value = _skip(text, _skip(text, at) + 1)
        _, at = decoder.raw_decode(text, value)
        yield _Member(key, start, value, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _edit_json(path: Path, text: str, container: str, wanted: dict[str, Any] | None) -> str:
    """The text with our member put in, put anew or taken out; never another byte."""
    fresh = not text.strip()
    if fresh:
        return "" if wanted is None else _written({container: {NAME: wanted}}, "\n") + "\n"
    servers = _json(path, text).get(container, {})
    if not isinstance(servers, dict):
        raise UsageError(f"{path}: {container} is no object, so it is left alone")
    if NAME in servers and not _is_ours(servers[NAME]):
        raise _foreign(path)
    if wanted is None:
        found = text if NAME not in servers else _without(text, _inner(path, text, container), NAME)
        return "" if found == _written({container: {}}, "\n") + "\n" else found
    if servers.get(NAME) == wanted:
        return text
    top = _skip(text, 0)
    if container not in _json(path, text):
        return _with(text, top, container, {NAME: wanted})
    return _with(text, _inner(path, text, container), NAME, wanted)


def _inner(path: Path, text: str, container: str) -> int:
    """Where the container's object begins; an object that names it twice means nothing certain."""
    found = [member for member in _members(text, _skip(text, 0)) if member.key == container]
    if len(found) != 1:
        raise UsageError(f"{path}: {container} stands there twice, so it is left alone")
    return found[0].value


def _with(text: str, brace: int, key: str, value: dict[str, Any]) -> str:
    """The text with a member of the object at a brace set: in its place, else after the last one."""
    members = list(_members(text, brace))
    if not members:
        outer = text[text.rfind("\n", 0, brace) + 1 : brace]
        margin = outer[: len(outer) - len(outer.lstrip())]
        line = f"\n{margin}  "
        closing = _skip(text, brace + 1)
        return f"{text[: brace + 1]}{line}{json.dumps(key)}: {_written(value, line)}\n{margin}{text[closing:]}"
    last = members[-1]
    between = text[_gap(text, last.start) : last.start]
    for member in members:
        if member.key == key:
            return text[: member.value] + _written(value, between) + text[member.end :]
    return f"{text[: last.end]},{between}{json.dumps(key)}: {_written(value, between)}{text[last.end :]}"


def _without(text: str, brace: int, key: str) -> str:
    """The text with a member of the object at a brace taken out, and one comma with it."""
    members = list(_members(text, brace))
    index = next(index for index, member in enumerate(members) if member.key == key)
    if index:
        return text[: members[index - 1].end] + text[members[index].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    return text[: brace + 1] + text[_skip(text, members[0].end) :]


def _gap(text: str, at: int) -> int:
    """Where the blanks before a member begin."""
    while text[at - 1] in " \t\r\n":
        at -= 1
    return at


def _written(value: Mapping[str, Any], line: str) -> str:
    """A value as the file's members are laid out: over lines with their margin, or all in one."""
    if "\n" not in line:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", line[line.rindex("\n") :])
