"""Places and talks that the tests of the MCP door start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mcp.talk import Home, Talk, in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bare(tmp_path: Path) -> Home:
    """A directory where nothing was set up yet."""
    return Home(tmp_path, tmp_path).at("cedar")


@pytest.fixture
def home(bare: Home) -> Home:
    """A store, and a project of the directory."""
    return bare.settle_in()


@pytest.fixture
def talk(home: Home) -> Iterator[Talk]:
    """A talk with a server that works for the project."""
    with in_memory(home) as opened:
        yield opened
