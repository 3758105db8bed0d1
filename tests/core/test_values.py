"""Values as they are written: times."""

from __future__ import annotations

import pytest

from ledgerstone.core.values import time_text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (1_796_000_000_000_000, "2026-11-30T00:53:20.000000Z"),
    ],
)
def test_a_time_has_all_six_digits_and_ends_with_z(moment: int, text: str) -> None:
    """In UTC, and never in a second form."""
    assert time_text(moment) == text
