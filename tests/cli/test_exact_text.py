"""What goes in through the command line comes out of it, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Desk

TEXTS = [
    "a line\r\nand another\r\n",
    "trailing blanks  \t \n\n",
    " leading",
    "zero\u200bwidth\u200d, \ufeffmark and \u202eorder",
    "\ufeffa mark at the start",
    "family \U0001f468\u200d\U0001f469\u200d\U0001f467, flag \U0001f1e8\U0001f1ed",
    "Cafe\u0301 is not Caf\u00e9",
    "\x1b[31mred\x07\x9b",
    "-",
    "--json",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_standard_input_comes_back_byte_for_byte(bound: Desk, text: str) -> None:
    """Bytes through a pipe into ``remember -`` are the bytes that ``get`` puts into a pipe."""
    kept = bound.invoke("remember", "-", given=text.encode())

    got = bound.invoke("get", kept.stdout.strip())

    assert (kept.exit_code, got.exit_code) == (0, 0)
    assert got.stdout_bytes == text.encode()
    assert got.stderr == ""


def test_a_real_pipe_keeps_every_byte_across_processes(bound: Desk) -> None:
    """Two programs, one after the other: the second gives the bytes the first was given."""
    data = "".join(TEXTS).encode()

    address = bound.run("remember", "-", given=data).out.decode().strip()
    got = bound.run("get", address)

    assert (got.code, got.out, got.err) == (0, data, "")


def test_an_argument_is_kept_as_it_is(bound: Desk) -> None:
    """A text given as an argument is not trimmed, joined or read as an option behind ``--``."""
    text = "  --kind is no option here \n"

    address = bound.run("remember", "--", text).out.decode().strip()

    assert bound.run("get", address).out == text.encode()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=64))
def test_any_text_survives(bound: Desk, text: str) -> None:
    """Whatever Unicode holds, U+0000 aside, comes back in JSON and in bytes alike."""
    address = bound.ask("remember", "-", given=text.encode())["address"]

    assert bound.ask("get", address)["text"] == text
    assert bound.invoke("get", address).stdout_bytes == text.encode()


def test_bytes_that_are_no_text_are_refused(bound: Desk) -> None:
    """Invalid UTF-8 is refused with its byte named, not repaired; its valid neighbour is kept."""
    refused = bound.invoke("remember", "-", given=b"caf\xe9")
    kept = bound.invoke("remember", "-", given="caf\xe9".encode())

    assert refused.exit_code == 2
    assert "UTF-8, not 0xe9 at byte 4" in refused.stderr
    assert kept.exit_code == 0


def test_the_limit_counts_bytes(bound: Desk) -> None:
    """8192 bytes are kept; one more is refused by rule, and so is none at all."""
    assert bound.invoke("remember", "-", given=b"x" * 8192).exit_code == 0
    assert bound.invoke("remember", "-", given=b"x" * 8193).exit_code == 7
    assert bound.invoke("remember", "-", given=b"").exit_code == 7
    assert bound.invoke("remember", "-", given=b"x" * (2**20 + 2)).exit_code == 7


def test_a_shown_text_cannot_pass_for_a_line_of_ours(bound: Desk) -> None:
    """In a listing every line of a text stands behind a margin, and what steers terminals is spelled out."""
    bound.ask("remember", "-", given=b"first\nmem_0000000000000000@1  note \x1b[2Jsecond")

    shown = bound.invoke("list").stdout

    assert [line for line in shown.splitlines() if line.startswith("mem_0")] in ([], [shown.splitlines()[0]])
    assert "    mem_0000000000000000@1  note \\x1b[2Jsecond" in shown
    assert "\x1b" not in shown


def test_a_document_is_kept_where_the_setting_lets_it(bound: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of 1 MiB is refused with the setting that would let it, then kept byte for byte and verified whole."""
    text = ("the kettle is copper\n" * 50_000)[: 1 << 20].encode()

    refused = bound.invoke("remember", "-", given=text)
    monkeypatch.setenv("LEDGERSTONE_TEXT_BYTES", str(len(text)))
    longer = bound.invoke("remember", "-", given=text + b".")
    address = bound.ask("remember", "-", given=text)["address"]

    assert (refused.exit_code, longer.exit_code) == (7, 7)
    assert "text: 1 to 8192 bytes" in refused.stderr
    assert "text_bytes" in refused.stderr
    assert "split it" in longer.stderr
    assert "text_bytes" not in longer.stderr
    assert bound.run("get", address).out == text
    monkeypatch.delenv("LEDGERSTONE_TEXT_BYTES")
    assert bound.ask("verify", "--full")["findings"] == []
