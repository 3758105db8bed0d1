"""SQLite keeps what every backend keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.contract import StoreContract


class TestSqlite(StoreContract):
    """A store in a file of its own."""

    @pytest.fixture
    def location(self, tmp_path: Path) -> Path:
        """A file in a folder of its own."""
        return tmp_path / "made" / "store.db"
