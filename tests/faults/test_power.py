"""What was acknowledged is on the disk when the power goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.power import Figures, cut_power


def nothing_lost(figures: Figures) -> bool:
    """Whether no cut lost an acknowledged commit, left a part of one, or a damaged store."""
    return (figures.corrupt, figures.partial, figures.lost) == (0, 0, 0)


def test_a_power_cut_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Cut at any moment, with unsynced writes dropped, torn or reordered: all that was acknowledged is there."""
    figures = cut_power(tmp_path, seeds=range(60))

    assert nothing_lost(figures), figures.failures[:1]
    assert figures.cuts == 60
    assert figures.acknowledged > 200


@pytest.mark.soak
def test_hundreds_of_power_cuts_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """The same four hundred times, at other moments."""
    figures = cut_power(tmp_path, seeds=range(1000, 1400))
    print(figures)

    assert nothing_lost(figures), figures.failures[:1]
    assert figures.acknowledged > 1500


def test_a_disk_that_ignores_syncs_loses_what_was_acknowledged(tmp_path: Path) -> None:
    """The cut is a real one: where syncs do nothing, which nobody can make up for, acknowledged commits are gone."""
    figures = cut_power(tmp_path, seeds=range(10), syncs=False)

    assert not nothing_lost(figures)
    assert figures.failures[0].startswith("seed ")
