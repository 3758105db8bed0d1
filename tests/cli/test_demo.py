"""The demo is true, and cleans up after itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Desk


def test_the_demo_holds_and_leaves_nothing_behind(desk: Desk, tmp_path: Path) -> None:
    """Every step happens: a client, a restart, the exact text, a budget, a refusal; then no file is left anywhere."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    done = desk.run("demo", "--json", env={"TMPDIR": str(scratch)})

    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    told = " ".join(step["what"] for step in answer["steps"])
    assert answer["ok"]
    assert len(answer["steps"]) >= 12
    for part in ("restart", "code point for code point", "within 1024 bytes", "verified", "flipped", "gone"):
        assert part in told.replace("another one started", "restart")
    assert list(scratch.iterdir()) == []
    assert not (desk.home / "ledgerstone").exists()


@pytest.mark.parametrize("command", ["mcp", "demo"])
def test_without_the_sdk_it_says_what_to_install(desk: Desk, command: str) -> None:
    """The MCP SDK is an extra: without it the two commands that need it name it, and the others work."""
    program = "import sys; sys.modules['mcp'] = None; from ledgerstone.entrypoints.cli import main; main()"

    refused = subprocess.run([sys.executable, "-c", program, command], capture_output=True, check=False)
    others = subprocess.run([sys.executable, "-c", program, "init"], capture_output=True, check=False)

    assert (refused.returncode, others.returncode) == (2, 0)
    assert b"install it from the checkout: pip install '.[mcp]'" in refused.stderr
    assert (desk.home / "ledgerstone" / "data" / "ledgerstone.db").exists()
