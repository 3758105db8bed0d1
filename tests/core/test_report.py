"""What a verification's report says to do next."""

from __future__ import annotations

import pytest

from ledgerstone import Report
from ledgerstone.core.values import Finding

LEADS = {
    # What is derived alone, and what is foreign besides.
    "only rows": [{"words"}, {"node"}, {"idempotency", "vectors"}, {"record", "anchor"}],
    "foreign can be taken out": [{"schema"}, {"stray", "index"}, {"schema", "erased", "anchor"}, {"stray", "receipt"}],
    # What may be derived alone, or history.
    "then restore a backup": [{"file"}, {"unread"}, {"file", "words"}, {"unread", "other"}, {"file", "receipt"}],
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
