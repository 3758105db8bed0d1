"""What looks like a credential is not written, through no door, unless somebody who may says that it is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from ledgerstone import Draft, RuleError, UsageError
from ledgerstone.core.entries import RecordEntry, decode_entry
from ledgerstone.store import open_store
from tests.core.test_credentials import REAL
from tests.memories import ADA, Scratch

TOKEN: Final = REAL["gitlab_pat"]
OTHER: Final = REAL["github_pat"]


def overrides(scratch: Scratch) -> list[tuple[str, ...]]:
    """What the entries of all records name, in the order in which they were written."""
    store = open_store(scratch.path)
    with store.read() as reader:
        row = reader.chain(list(reader.chains())[1])
        assert row is not None
        found = [decode_entry(data) for _, data in reader.entries(row.number, 0, 1000)]
    store.close()
    return [entry.overrides for entry in found if isinstance(entry, RecordEntry)]


@pytest.mark.parametrize("field", ["text", "key", "title", "source", "tags"])
def test_a_credential_is_not_written(scratch: Scratch, field: str) -> None:
    """By one verb or the other, wherever in a draft it stands; without it the same draft is."""
    scratch.memory.remember("The project is there.")
    before = scratch.heads()
    held: Any = (TOKEN,) if field == "tags" else TOKEN
    draft = replace(Draft(text="a note"), **{field: held})

    for write in (lambda: scratch.memory.remember(draft), lambda: scratch.memory.remember_many(["fine", draft])):
        with pytest.raises(RuleError, match=f"looks like a credential: {field}, characters 0 to 26: gitlab_pat"):
            write()

    assert scratch.heads() == before
    assert scratch.memory.remember(Draft(text="a note")).record.text == "a note"


def test_what_was_let_pass_is_on_record(scratch: Scratch) -> None:
    """The entry of the one record names the rule that found something; no other, and no rule that found nothing."""
    scratch.memory.remember_many(["plain", f"with {TOKEN}"], allow_secrets=["gitlab_pat", "jwt"])

    assert overrides(scratch) == [(), ("gitlab_pat",)]
    assert scratch.memory.verify().findings == ()
    with pytest.raises(RuleError, match="github_pat"):
        scratch.memory.remember(f"{TOKEN} {OTHER}", allow_secrets=["gitlab_pat"])
    with pytest.raises(UsageError, match="no secret rule 'all'"):
        scratch.memory.remember(TOKEN, allow_secrets=["all"])


def test_a_host_may_let_a_rule_pass(scratch: Scratch) -> None:
    """Whoever binds the caller says so, and the entry does as well."""
    scratch.by(replace(ADA, allow_secrets=("gitlab_pat",))).remember(TOKEN)

    assert overrides(scratch) == [("gitlab_pat",)]
    with pytest.raises(RuleError, match="gitlab_pat"):
        scratch.memory.remember(TOKEN)


def test_a_repeated_write_is_scanned_as_the_first_was(scratch: Scratch) -> None:
    """A retry is let pass by the same word, and is not written again."""
    first = scratch.memory.remember(TOKEN, idempotency_key="once", allow_secrets=["gitlab_pat"])

    again = scratch.memory.remember(TOKEN, idempotency_key="once", allow_secrets=["gitlab_pat"])

    assert again.repeated
    assert again.commit == first.commit
