"""A database tool that leaves statistics in the store, and the way out of that by the hints alone."""

from __future__ import annotations

from tests.cli.conftest import Desk
from tests.stores import plain_client


def test_the_hints_lead_out_of_what_another_tool_left(bound: Desk) -> None:
    """Refused by reads and by the doctor, named by verify, taken out by rebuild; then everything works as before."""
    bound.ask("remember", "deploys go out on Tuesdays")
    connection = plain_client(bound.home / "ledgerstone" / "data" / "ledgerstone.db")
    connection.execute("ANALYZE")
    connection.close()

    commands = (["recall", "deploys"], ["export", "out.jsonl"], ["backup", "copy.db"])
    refused = [bound.refuse(*command) for command in commands]
    accepted = bound.invoke("verify", "--accept", "--yes", "--json")
    verified, doctor = bound.invoke("verify"), bound.invoke("doctor")
    rebuilt, again = bound.invoke("rebuild"), bound.invoke("verify", "--full")

    for code, error in refused:
        assert (code, error["code"]) == (4, "corruption")
        assert "table sqlite_stat1" in error["message"]
        assert "ledgerstone rebuild" in error["hint"]
    assert accepted.exit_code != 0
    assert verified.exit_code == 4
    assert "table sqlite_stat1: foreign" in verified.stdout
    assert "ledgerstone rebuild" in verified.stderr
    assert doctor.exit_code == 1
    assert "ledgerstone rebuild" in doctor.stdout.replace("\n", " ")
    assert (rebuilt.exit_code, again.exit_code) == (0, 0)
    assert bound.ask("recall", "deploys")["items"][0]["text"] == "deploys go out on Tuesdays"
