"""What looks like a credential is refused on the command line; only who sits at a terminal can say that it is none."""

from __future__ import annotations

from typing import Final

import pytest

from tests.cli.conftest import Desk
from tests.core.test_credentials import REAL

TOKEN: Final = REAL["gitlab_pat"]


def test_a_program_on_the_command_line_lets_nothing_pass(bound: Desk) -> None:
    """It is refused with the rule and without the token, as an argument or from standard input, option or not."""
    for words, given in (((TOKEN,), None), (("-",), TOKEN.encode())):
        result = bound.invoke("remember", *words, "--json", given=given)
        assert result.exit_code == 7
        assert "gitlab_pat" in result.stderr
        assert TOKEN[:12] not in result.output + result.stderr
    code, error = bound.refuse("remember", TOKEN, "--allow-secret", "gitlab_pat")

    assert (code, error["message"]) == (2, "--allow-secret is for the user at a terminal")
    assert bound.ask("list")["items"] == []


def test_the_user_at_a_terminal_lets_it_pass(bound: Desk) -> None:
    """By the name of the rule; without it the terminal is refused too."""
    refused = bound.sit("remember", TOKEN)
    allowed = bound.sit("remember", TOKEN, "--allow-secret", "gitlab_pat")

    assert (refused.code, allowed.code) == (7, 0), allowed.out
    assert [each["text"] for each in bound.ask("list")["items"]] == [TOKEN]


def test_every_text_and_reason_can_be_let_pass_at_a_terminal(bound: Desk) -> None:
    """By the option that the refusal names, whatever command it was; elsewhere the option is refused."""
    texts = [bound.ask("remember", f"{'a long episode of the ' * 4}{word}")["address"] for word in ("pot", "pan")]
    task = bound.ask("remember", "mend the kettle", "--kind", "task")["address"]
    acts = [
        ("compact", f"both; {TOKEN}", "--covers", texts[0], "--covers", texts[1]),
        ("close", task, "--reason", TOKEN),
        ("retract", texts[0], "--reason", TOKEN),
        ("forget", texts[1], "--reason", TOKEN, "--yes"),
    ]

    for act in acts:
        refused = bound.sit(*act)
        elsewhere = bound.run(*act, "--allow-secret", "gitlab_pat")
        allowed = bound.sit(*act, "--allow-secret", "gitlab_pat")

        assert (refused.code, b"--allow-secret RULE" in refused.out) == (7, True), refused.out
        assert (elsewhere.code, "for the user at a terminal" in elsewhere.err) == (2, True), elsewhere.err
        assert allowed.code == 0, allowed.out


@pytest.mark.parametrize(
    "act", [("grants", "add", TOKEN, "read", "--scope", "user"), ("namespaces", "create", "--shared", TOKEN)]
)
def test_a_name_is_let_pass_by_the_setting_alone(bound: Desk, act: tuple[str, ...]) -> None:
    """The refusal of a command without the option names the setting, which lets it pass, and no option."""
    refused = bound.sit(*act, "--yes")
    allowed = bound.sit(*act, "--yes", env={"LEDGERSTONE_ALLOW_SECRETS": "gitlab_pat"})

    assert (refused.code, allowed.code) == (7, 0), allowed.out
    assert b"allow_secrets" in refused.out
    assert b"--allow-secret" not in refused.out


def test_what_was_let_pass_is_shown(bound: Desk) -> None:
    """With the record and in the audit trail, to programs and to people; of others nothing is said."""
    plain = bound.ask("remember", "the token is in the vault")["address"]
    bound.sit("remember", TOKEN, "--allow-secret", "gitlab_pat")
    address = bound.ask("list")["items"][0]["id"]

    events = {event.get("target"): event for event in bound.ask("audit")["events"]}

    assert bound.ask("get", address)["overrides"] == events[address]["overrides"] == ["gitlab_pat"]
    assert "overrides" not in bound.ask("get", plain) | events[plain]
    assert b"let pass" in bound.sit("get", address).out
    assert f"remember {address} (let pass: gitlab_pat)" in bound.invoke("audit").stdout
