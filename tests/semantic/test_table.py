"""Promises of the static token table: pinned bytes, close in meaning is close in angle, the same on every run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ledgerstone import CorruptionError
from ledgerstone.semantic import static_table, table
from ledgerstone.semantic.encoders import Matcher, encoded


def product(one: bytes, other: bytes) -> int:
    """How close two vectors of bytes are."""
    pairs = zip(memoryview(one).cast("b"), memoryview(other).cast("b"), strict=True)
    return sum(a * b for a, b in pairs)


def alike(words: Sequence[str]) -> list[int]:
    """Every word weighs the same."""
    return [1] * len(words)


def test_other_words_for_the_same_are_closer_than_other_things() -> None:
    """A physician is nearer to a doctor than to a bridge."""
    doctor, physician, bridge = encoded(static_table(), ["a doctor", "the physician", "a bridge"])

    assert product(doctor, physician) > 2 * product(doctor, bridge)


def test_text_without_pieces_has_the_zero_vector() -> None:
    """Nothing to find, nothing found."""
    assert encoded(static_table(), ["", " \n", "word"])[:2] == [bytes(256), bytes(256)]


@pytest.mark.parametrize(
    "other",
    [
        "\u4e2d\u56fd\u7684\u5929\u6c14",
        "\u0433\u0434\u0435 \u043c\u0430\u0448\u0438\u043d\u0430",
        "\u0e23\u0e16\u0e22\u0e19\u0e15\u0e4c\u0e2d\u0e22\u0e39\u0e48\u0e17\u0e35\u0e48\u0e44\u0e2b\u0e19",
    ],
)
def test_text_mostly_of_a_script_that_is_not_known_has_no_meaning(other: str) -> None:
    """Single letters of it would only mislead: no vector, no match. Beside more words that are known it has one."""
    found = static_table()

    assert encoded(found, [other, f"{other} car"]) == [bytes(256)] * 2
    assert found.match(other, [other, "the car here"], alike) == [0, 0]
    assert found.match("car", [other], alike) == [0]
    assert encoded(found, [f"{other} in the car of a very old friend with a red and a green hat"]) != [bytes(256)]


def test_vectors_are_the_same_in_another_process() -> None:
    """Whole numbers all the way: alone or among others, here or there, the bytes are the same."""
    texts = ["The plate of the car is ABC-123.", "Wo steht das Auto?", "中国"]
    script = (
        "from ledgerstone.semantic import static_table\n"
        "from ledgerstone.semantic.encoders import encoded\n"
        f"print([encoded(static_table(), [text])[0].hex() for text in {texts!r}])"
    )

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert said.strip() == str([vector.hex() for vector in encoded(static_table(), texts)])


def test_text_that_answers_word_by_word_matches_best() -> None:
    """The word itself beats a related one, which beats none; no text and no weight match nothing."""
    found = static_table().match("car", ["the car here", "the vehicle here", "the bridge here", ""], alike)

    assert found[0] > found[1] > found[2] > found[3] == 0
    assert static_table().match("car", ["car"], lambda words: [0] * len(words)) == [0]
    assert isinstance(static_table(), Matcher)


def test_of_a_query_and_shorter_texts_the_texts_are_looked_for_in_the_query() -> None:
    """A text that a long query says whole matches wholly; a short query is looked for in what is longer."""
    long = "yesterday my brother drove the old car over a bridge to see the trees before the rain came"

    whole, part, none, empty = static_table().match(long, ["the car", "the car flew", "a senate vote", ""], alike)

    assert whole > 990_000
    assert whole > part > none > empty == 0
    assert static_table().match("the car", [long, long], alike)[0] > 990_000
    assert static_table().match(long, [long, long], alike)[0] > 990_000


def test_table_of_other_bytes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One byte changed is another table; the one that was shipped is taken."""
    data = bytearray(table.TABLE.read_bytes())
    data[len(data) // 2] ^= 1
    other = tmp_path / "table.npz"
    other.write_bytes(data)
    assert static_table().dimension == 256

    monkeypatch.setattr(table, "TABLE", other)
    with pytest.raises(CorruptionError, match="not the table of this version"):
        static_table.__wrapped__()
