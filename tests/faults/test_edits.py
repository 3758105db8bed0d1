"""What a plain SQL client does to the rows of a store never becomes an answer, and the remedy that is named helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.edits import edit_rows


def test_edited_rows_are_noticed_and_put_right_as_verify_says(tmp_path: Path) -> None:
    """Whatever verify does not notice changes no answer; what it says to do mends the store, or history was damaged."""
    figures = edit_rows(tmp_path, stores=60)

    assert figures.faults == []
    assert min(figures.rebuilt, figures.history) >= 5, figures


@pytest.mark.soak
def test_thousands_of_edited_rows_are_noticed_and_put_right_as_verify_says(tmp_path: Path) -> None:
    """The same for two thousand stores."""
    figures = edit_rows(tmp_path, stores=2000, seed=2)
    print(figures)

    assert figures.faults == []
    assert min(figures.rebuilt, figures.history) >= 200, figures
