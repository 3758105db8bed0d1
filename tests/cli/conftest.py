"""A scratch home for each test, and ways to run the command line in it: in process, as a program, on a terminal."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledgerstone.entrypoints.cli import main

PROGRAM = (sys.executable, "-m", "ledgerstone")
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

    def sit(self, *arguments: str, types: str = "", env: dict[str, str] | None = None) -> Done:
        """Run a command at a terminal, where somebody types; what it shows is ``out``, both streams together."""
        return _at_terminal([*PROGRAM, *arguments], types, os.environ | {"COLUMNS": "80"} | (env or {}))


def _at_terminal(command: Sequence[str], types: str, env: dict[str, str]) -> Done:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    ) as child:
        os.close(theirs)
        try:
            os.write(ours, types.encode())
            shown = b"".join(iter(lambda: _shown(ours), b""))
            return Done(child.wait(SECONDS), shown, "")
        finally:
            # Whoever still waits to be answered would be waited for.
            child.kill()
            os.close(ours)


def _shown(terminal: int) -> bytes:
    if not select.select([terminal], [], [], SECONDS)[0]:
        pytest.fail("the program at the terminal neither speaks nor ends: does it ask something?")
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when nobody holds the other side any more.
        return b""


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
