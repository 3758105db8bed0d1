"""What a writer was told is durable survives the death of every writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kill import Figures, kill_writers


def nothing_lost(figures: Figures) -> bool:
    """Whether a run lost, altered or doubled nothing and left a sound store."""
    return (figures.lost, figures.altered, figures.doubled, figures.findings) == (0, 0, 0, 0)


def test_killing_writers_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Three writers killed over and over, mid-commit too: all that was acknowledged is there, once, and verifies."""
    figures = kill_writers(tmp_path / "store.db", seconds=8)

    assert nothing_lost(figures), figures
    assert figures.kills >= 9
    assert figures.acknowledged >= 20


@pytest.mark.soak
def test_killing_writers_for_minutes_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The same until two thousand and more were acknowledged."""
    figures = kill_writers(tmp_path / "store.db", acknowledged=2500, seed=2)
    print(figures)

    assert nothing_lost(figures), figures
    assert figures.acknowledged >= 2000
