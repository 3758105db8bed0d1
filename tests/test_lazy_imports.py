"""Starting is cheap: the command line loads what a command needs when it needs it."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"Stemmer", "apsw", "cryptography", "importlib.metadata", "mcp", "orjson", "pydantic"}


def test_the_command_line_starts_without_its_heavy_parts() -> None:
    """Importing the command line loads no database, cryptography, JSON, stemmer or MCP SDK, and no metadata."""
    program = f"import sys, ledgerstone.entrypoints.cli; print(*sorted({HEAVY} & sys.modules.keys()))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.split() == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a store and a project in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LEDGERSTONE_HOME", str(tmp_path / "ledgerstone"))
    project = tmp_path / "project"
    project.mkdir()
    for arguments in (["init"], ["namespaces", "use", "--new"]):
        run(project, *arguments)
    return project


def run(place: Path, *arguments: str) -> tuple[str, bool]:
    """What a command answers, and whether it loaded NumPy."""
    program = (
        "import atexit, sys\n"
        "from ledgerstone.entrypoints.cli import main\n"
        "atexit.register(lambda: print('numpy' in sys.modules))\n"
        "main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, cwd=place
    )
    *answer, loaded = done.stdout.splitlines()
    return "\n".join(answer), loaded == "True"


def test_numpy_is_loaded_by_a_recall_that_looks_by_meaning_and_by_nothing_before(home: Path) -> None:
    """The version, a write, a read and a search by words do not pay for it; a search by meaning has it."""
    address, by_write = run(home, "remember", "My physician is called Ruth.")

    assert not by_write
    for arguments in (["--version"], ["get", address], ["recall", "Ruth", "--mode", "lexical"], ["recall"]):
        assert not run(home, *arguments)[1]
    assert run(home, "recall", "who is the doctor")[1]
