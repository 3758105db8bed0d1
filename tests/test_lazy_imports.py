"""Starting is cheap: the command line loads what a command needs when it needs it."""

import subprocess
import sys

HEAVY = {"Stemmer", "apsw", "cryptography", "mcp", "orjson", "pydantic"}


def test_the_command_line_starts_without_its_heavy_parts() -> None:
    """Importing the command line loads no database, no cryptography, no JSON, no stemmer and no MCP SDK."""
    program = f"import sys, ledgerstone.entrypoints.cli; print(*sorted({HEAVY} & sys.modules.keys()))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.split() == []
