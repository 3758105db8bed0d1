"""Receipts from the command line: kept when asked for, shown, taken out."""

from __future__ import annotations

from ledgerstone.core import receipts, signing
from ledgerstone.core.signing import Keyring
from tests.cli.conftest import Desk
from tests.core.test_credentials import REAL


def test_a_receipt_is_kept_and_explained(bound: Desk) -> None:
    """The recall names it; explain says what was chosen and why, to a program and to a person."""
    address = bound.ask("remember", "Deploys go out on Tuesdays")["address"]

    name = bound.ask("recall", "when do deploys go out", "--receipt")["receipt"]
    found = bound.ask("explain", name)
    shown = bound.run("explain", name).out.decode()

    assert [(item["address"], item["lane"], item["rank"], item["standing"]) for item in found["items"]] == [
        (address, "lexical", 0, "current")
    ]
    assert found["query"] == "when do deploys go out"
    assert f"receipt    {name}" in shown
    assert address in shown


def test_a_recall_explains_itself_when_asked_to(bound: Desk) -> None:
    """After the context stands what explain shows of the receipt that was kept; as Markdown it is refused."""
    address = bound.ask("remember", "Deploys go out on Tuesdays")["address"]

    found = bound.ask("recall", "deploys", "--explain")
    said = bound.run("recall", "deploys", "--explain")
    shown = said.out.decode()
    code, refused = bound.refuse("recall", "deploys", "--explain", "--format", "markdown")

    assert found["explained"] == bound.ask("explain", found["receipt"])
    assert [item["id"] for item in found["items"]] == [address]
    assert shown.index("    Deploys go out") < shown.index("receipt    rcp_") < shown.index(f"{address}  lexical")
    assert "rcp_" not in said.err
    assert (code, refused["code"]) == (2, "usage")
    assert len(bound.ask("receipts")["receipts"]) == 2


def test_a_write_cites_the_receipt_it_was_made_under(bound: Desk) -> None:
    """The commit carries its hash, which the chain then vouches for; a receipt that is not there is refused."""
    bound.ask("remember", "Deploys go out on Tuesdays")
    name = bound.ask("recall", "deploys", "--receipt")["receipt"]
    cited = receipts.digest_of(bound.ask("explain", name)["signed"]["data"].encode())

    written = bound.ask("remember", "Deploys need a second reader", "--receipt", name)
    code, refused = bound.refuse("remember", "Deploys are quick", "--receipt", "rcp_0000000000000000")

    bound.sit("export", str(bound.home / "all.jsonl"), types="yes\n")
    assert cited.hex() in (bound.home / "all.jsonl").read_text()
    assert written["sequence"] > 0
    assert (code, refused["code"]) == (3, "not_found")


def test_a_stranger_checks_what_explain_gives(bound: Desk) -> None:
    """Bytes, signature and public key are all in it."""
    bound.ask("remember", "Deploys go out on Tuesdays")
    signed = bound.ask("explain", bound.ask("recall", "deploys", "--receipt")["receipt"])["signed"]
    keys = Keyring(pins=(bytes.fromhex(signed["public"]),))
    digest = receipts.digest_of(signed["data"].encode())

    genuine = keys.verifies(
        receipts.read(signed["data"].encode()).signer, signing.RECEIPT, digest, bytes.fromhex(signed["signature"])
    )

    assert genuine


def test_receipts_are_listed_and_taken_out(bound: Desk) -> None:
    """Newest first; one by its id, then all; one that is not there is refused and takes nothing with it."""
    bound.ask("remember", "Deploys go out on Tuesdays")
    names = [bound.ask("recall", f"deploys {n}", "--receipt")["receipt"] for n in range(3)]

    shown = bound.ask("receipts")["receipts"]
    listed = [one["receipt"] for one in shown]
    code, refused = bound.refuse("receipts", "--drop", "rcp_0000000000000000")
    one = bound.ask("receipts", "--drop", names[0])
    rest = bound.ask("receipts", "--drop-all")

    assert listed == names[::-1]
    assert not any("items" in one for one in shown)
    assert (code, refused["code"]) == (3, "not_found")
    assert (one, rest) == ({"dropped": 1}, {"dropped": 2})
    assert bound.ask("receipts") == {"receipts": []}
    assert "no receipts" in bound.run("receipts").err


def test_an_explanation_can_be_read(bound: Desk) -> None:
    """By what was ranked, in words; each entry with how its text begins while it is there; --json has the string."""
    address = bound.ask("remember", "Deploys go out on Tuesdays")["address"]
    name = bound.ask("recall", "deploys", "--receipt")["receipt"]

    shown = bound.run("explain", name, env={"COLUMNS": "200"}).out.decode()
    raw = bound.ask("explain", name)["scorer"]
    bound.sit("forget", address, "--yes")
    later = bound.run("explain", name).out.decode()

    assert "ranked by  words (bm25), related words" in shown
    assert "current · Deploys go out on Tuesdays" in shown
    assert raw.startswith("bm25/")
    assert raw not in shown
    assert "erased" in later
    assert "Tuesdays" not in later


def test_a_query_that_was_not_kept_is_shown_as_that(bound: Desk) -> None:
    """In the list and alone; one that was kept is shown as it was put."""
    names = [bound.ask("recall", query, "--receipt")["receipt"] for query in (REAL["gitlab_pat"], "the cedar")]

    listed = bound.invoke("receipts").stdout.splitlines()

    assert ["(not kept)" in line for line in listed] == [False, True]
    assert "the cedar" in listed[0]
    assert ["(not kept)" in bound.invoke("explain", name).stdout for name in names] == [True, False]
