"""What makes a store with a lane of meaning, for ``run --opened``: the packaged table, or a packaged model."""

from __future__ import annotations

from pathlib import Path

from bench.quality.measuring import opened
from ledgerstone import Memory
from ledgerstone.semantic import Lane, static_table
from ledgerstone.semantic.minilm import load


def table(path: Path) -> Memory:
    """With the extra ``semantic``: the static table."""
    return opened(path, semantic=Lane(static_table))


def minilm(path: Path) -> Memory:
    """With all-MiniLM-L6-v2 plugged in, as a package brings it."""
    return opened(path, semantic=Lane(load))
