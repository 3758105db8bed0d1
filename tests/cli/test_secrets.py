"""What looks like a credential is refused on the command line; only who sits at a terminal can say that it is none."""

from __future__ import annotations

from typing import Final

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
