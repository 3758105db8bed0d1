"""Values: times as they are written, and the limits of a host."""

from __future__ import annotations

from typing import Any

import pytest

from ledgerstone import Limits, UsageError
from ledgerstone.core.values import MAX_TEXT_BYTES, time_text


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


@pytest.mark.parametrize(("name", "most"), [("drafts", 256), ("text_bytes", MAX_TEXT_BYTES)])
def test_no_limit_of_a_host_is_wider_than_the_ledgers(name: str, most: int) -> None:
    """A host's limits are 1 to 256 drafts and 1 byte to 1 MiB, and nothing else can be configured."""
    for number in (0, -1, most + 1, True, 1.0):
        wrong: dict[str, Any] = {name: number}
        with pytest.raises(UsageError, match=f"limits: {name} from 1 to {most}, not {number}"):
            Limits(**wrong)

    for number in (1, most):
        right: dict[str, Any] = {name: number}
        assert getattr(Limits(**right), name) == number
