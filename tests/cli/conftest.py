"""A scratch home for each test, and ways to run the command line in it: in process, as a program, on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledgerstone.entrypoints.cli import main

PROGRAM = (sys.executable, "-m", "ledgerstone.entrypoints.cli")
HOST_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS", "CODEX_HOME", "NO_COLOR")
SECONDS = 60


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    code: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Desk:
    """A scratch home, a project in it, and the command line."""

    home: Path
    project: Path

    def invoke(self, *arguments: str, given: bytes | None = None) -> Result:
        """Run a command in this process; standard input is no terminal."""
        return CliRunner().invoke(main, list(arguments), input=given, prog_name="ledgerstone")

    def ask(self, *arguments: str, given: bytes | None = None) -> Any:
        """The JSON answer of a command that must succeed."""
        result = self.invoke(*arguments, "--json", given=given)
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return json.loads(result.stdout)

    def refuse(self, *arguments: str) -> tuple[int, Any]:
        """The exit code and JSON error of a command that must fail."""
        result = self.invoke(*arguments, "--json")
        assert result.exit_code != 0, result.stdout
        assert result.stdout == ""
        return result.exit_code, json.loads(result.stderr)

    def run(self, *arguments: str, given: bytes = b"", env: dict[str, str] | None = None) -> Done:
        """Run a command as a program of its own."""
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=given,
            capture_output=True,
            env=os.environ | (env or {}),
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    def sit(self, *arguments: str, types: str = "") -> Done:
        """Run a command at a terminal, where somebody types; what it shows is ``out``, both streams together."""
        return _at_terminal([*PROGRAM, *arguments], types)


def _at_terminal(command: Sequence[str], types: str) -> Done:
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], list(command))  # noqa: S606 - our own program
    os.write(terminal, types.encode())
    shown = b""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other side is gone.
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return Done(os.waitstatus_to_exitcode(status), shown, "")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A home without a store, in a project that nothing is known of."""
    for name in [name for name in os.environ if name.startswith("LEDGERSTONE_")] + list(HOST_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    found = Desk(tmp_path / "home", tmp_path / "home" / "project")
    found.project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.setenv("LEDGERSTONE_HOME", str(found.home / "ledgerstone"))
    monkeypatch.chdir(found.project)
    return found


@pytest.fixture
def bound(desk: Desk) -> Desk:
    """The same, with a store, and the project bound."""
    for arguments in (["init"], ["namespaces", "use", "--new"]):
        assert desk.invoke(*arguments).exit_code == 0
    return desk
