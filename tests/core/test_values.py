"""Values: times as they are written, the limits of a host, and what a report says to do."""

from __future__ import annotations

from typing import Any

import pytest

from ledgerstone import Limits, Report, UsageError
from ledgerstone.core.values import DERIVED_CODES, MAX_TEXT_BYTES, UNSURE_CODES, Finding, time_text


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


LEADS: dict[str, list[set[str]]] = {
    # What is derived alone, and what is foreign besides.
    "only rows": [
        {"words"},
        {"node"},
        {"idempotency", "vectors"},
        {"record", "anchor"},
        {*DERIVED_CODES} - {"schema", "stray"},
    ],
    "foreign can be taken out": [
        {"schema"},
        {"stray", "index"},
        {"schema", "erased", "anchor"},
        {"stray", "receipt"},
        {*DERIVED_CODES},
    ],
    # What may be derived alone, or history.
    "then restore a backup": [
        {"file"},
        {"unread"},
        {"file", "words"},
        {"unread", "other"},
        {"file", "receipt"},
        {*DERIVED_CODES, *UNSURE_CODES},
    ],
    "only a backup has what the receipts said": [{"receipt"}, {"receipt", "anchor"}],
    "history itself is damaged": [{"content"}, {"words", "chain"}, {"file", "state"}, {"anchor", "lost"}],
    # No damage at all.
    "verify --accept": [{"anchor"}, {"erased"}, {"anchor", "erased"}, {"anchor", "expected"}],
    "accepted here says: ledgerstone doctor": [{"other"}, {"other", "erased"}, {"other", "expected"}],
    "ledgerstone checkpoint": [{"expected"}],
}


@pytest.mark.parametrize(("codes", "lead"), [(codes, lead) for lead, each in LEADS.items() for codes in each])
def test_what_was_found_leads_to_what_mends_it(codes: set[str], lead: str) -> None:
    """By the worst of it; where nothing was found there is nothing to do."""
    found = Report(
        findings=tuple(Finding(code, "", None, "it is wrong") for code in sorted(codes)),
        namespaces=1,
        commits=1,
        entries=1,
        heads={},
    )

    assert lead in (found.hint or "")
    assert Report(findings=(), namespaces=1, commits=1, entries=1, heads={}).hint is None
