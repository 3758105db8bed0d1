"""A bit that flips in a file of a store never becomes an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.flips import Figures, flip_bits


def noticed(figures: Figures) -> int:
    """How many flips were noticed by this program, those that only an older head can tell included."""
    return figures.at_opening + figures.at_reading + figures.by_verify + figures.rolled_back


def test_a_flipped_bit_is_noticed_and_never_answered(tmp_path: Path) -> None:
    """Each flip that changes what a store holds is met at opening, by a read, by verify or against a kept head."""
    figures = flip_bits(tmp_path, flips=60)

    assert figures.unnoticed == []
    assert figures.false == []
    assert noticed(figures) == figures.changed >= 20
    assert figures.at_reading > figures.sqlite, "which SQLite's own check would mostly have missed"


@pytest.mark.soak
def test_hundreds_of_flipped_bits_are_noticed_and_never_answered(tmp_path: Path) -> None:
    """The same for six hundred."""
    figures = flip_bits(tmp_path, flips=600, seed=2)
    print(figures)

    assert figures.unnoticed == []
    assert figures.false == []
    assert noticed(figures) == figures.changed >= 200
