"""A verification accuses what was altered, and nothing beside it."""

from __future__ import annotations

from ledgerstone import Memory
from tests.memories import ADA, Scratch
from tests.stores import plain_client


def test_an_altered_text_is_the_only_record_that_is_accused(scratch: Scratch) -> None:
    """Those before and behind it are sound, and so are their words."""
    for text in ("The first.", "A second one.", "And the third."):
        scratch.memory.remember(text)
    second = scratch.memory.list_records("all").items[1].address
    scratch.memory.close()
    client = plain_client(scratch.path)
    client.execute("UPDATE content SET body = CAST(replace(body, 'second', 'secret') AS BLOB)")
    client.close()

    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=None, check=False) as memory:
        found = memory.verify(full=True).findings

    assert [(finding.code, finding.message) for finding in found] == [
        ("content", f"the content of entry 2, {second}, was altered")
    ]
