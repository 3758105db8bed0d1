"""A verification accuses what was altered, and nothing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ledgerstone import Memory, Scope
from tests.memories import ADA, Scratch
from tests.stores import plain_client

if TYPE_CHECKING:
    import apsw


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


ROOTS = "SELECT name, rootpage FROM sqlite_schema WHERE name IN ('entry', 'header')"
# What is written into the file, and as what a verification names it.
DAMAGE = {
    "a chain of no number": ("UPDATE chain SET number = -1 WHERE number = 2", "chain"),
    "the first chain of no number": ("UPDATE chain SET number = 1 << 40 WHERE number = 1", "chain"),
    "a chain of no sequence": ("UPDATE chain SET sequence = -1 WHERE number = 2", "chain"),
    "the first chain of no sequence": ("UPDATE chain SET sequence = 1 << 40 WHERE number = 1", "chain"),
    "a chain of no name": ("UPDATE chain SET namespace = CAST(x'ff' AS TEXT) WHERE number = 2", "chain"),
    "the first chain of no name": ("UPDATE chain SET namespace = CAST(x'ff' AS TEXT) WHERE number = 1", "chain"),
    "a record of no text": ("UPDATE record SET memory = CAST(x'ff' AS TEXT)", "unread"),
    "words of no text": ("UPDATE words SET words = CAST(x'ff' AS TEXT)", "unread"),
    "a catalog of no sequence": ("UPDATE catalog SET sequence = -1 WHERE noun = 'key'", "unread"),
    "a catalog of no text": ("UPDATE catalog SET value = CAST(x'ff' AS TEXT) WHERE noun = 'grant'", "unread"),
    "a receipt of no name": ("UPDATE receipt SET id = CAST(x'ff' AS TEXT)", "unread"),
    "a content of no salt": ("UPDATE content SET salt = x''", "content"),
}


def _damaged(scratch: Scratch, *statements: str) -> None:
    client: apsw.Connection = plain_client(scratch.path)
    client.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        client.execute(statement)
    client.close()


def _codes(scratch: Scratch, *, full: bool) -> set[str]:
    """The codes of what a verification finds, with ``receipt`` also where receipts could not be read."""
    state = scratch.path.parent / "state"
    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=state, check=False) as memory:
        found = memory.verify(full=full).findings
    unread = {"receipt" for finding in found if finding.message.endswith("receipts could not be checked")}
    return {finding.code for finding in found} | unread


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("damage", "code"), DAMAGE.values(), ids=DAMAGE)
def test_whatever_stands_in_a_column_is_a_finding(scratch: Scratch, damage: str, code: str, *, full: bool) -> None:
    """It is named and ends nothing: what else is wrong, here a receipt that nobody signed, is named beside it."""
    scratch.memory.remember("The first.")
    scratch.memory.remember("Everywhere.", scope=Scope.USER)
    scratch.memory.recall("first", receipt=True)
    scratch.memory.close()
    assert _codes(scratch, full=full) == set()

    _damaged(scratch, damage, "UPDATE receipt SET signature = x'00'")

    assert _codes(scratch, full=full) >= {code, "receipt"}


def test_tables_that_lie_in_each_others_place_are_findings(scratch: Scratch) -> None:
    """Nothing of either is what it should be, and the verification goes through to the end all the same."""
    scratch.memory.remember("The first.")
    scratch.memory.recall("first", receipt=True)
    scratch.memory.close()
    client = plain_client(scratch.path)
    roots = dict(client.execute(ROOTS))
    client.close()

    swap = "UPDATE sqlite_schema SET rootpage = {} WHERE name = '{}'"
    _damaged(scratch, swap.format(roots["entry"], "header"), swap.format(roots["header"], "entry"))

    assert _codes(scratch, full=True) >= {"file", "receipt"}


@pytest.mark.parametrize("table", ["header", "entry", "content", "record", "words", "catalog", "receipt", "tile"])
def test_a_page_that_is_none_is_a_finding(scratch: Scratch, table: str) -> None:
    """Of whichever table: SQLite refuses to read it, and the verification says so and goes on."""
    scratch.memory.remember("The first.")
    scratch.memory.recall("first", receipt=True)
    scratch.memory.close()
    assert _codes(scratch, full=True) == set()
    client = plain_client(scratch.path)
    page = client.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    size = client.execute("PRAGMA page_size").get
    client.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    client.close()

    with scratch.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)

    assert "file" in _codes(scratch, full=True)
