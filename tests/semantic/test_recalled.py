"""Promises of a recall with an encoder: it says which one had a say, and what became of one that failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from ledgerstone import Memory, Mode, UnavailableError
from ledgerstone.core.receipts import SCORER
from ledgerstone.semantic import Function, Lane, static_table
from tests.stores import KEYS, OWNER, clock

NOTES: Final = ("My physician is called Ruth Adler.", "The bridge over the river is closed until May.")


def opened(path: Path, lane: Lane) -> Memory:
    """A store with an encoder, and two notes in it."""
    memory = Memory.open(path, keys=KEYS, caller=OWNER, state=path.parent, create=True, semantic=lane, clock=clock())
    memory.remember_many(NOTES)
    return memory


def broken(texts: Sequence[str]) -> list[list[float]]:
    """An encoder that has run out of luck."""
    raise RuntimeError(f"no luck with {len(texts)}")


class MuteError(Exception):
    """An error that cannot say what is wrong."""

    def __str__(self) -> str:
        """Raise in its turn."""
        raise RuntimeError


def mute(texts: Sequence[str]) -> list[list[float]]:
    """An encoder that fails and cannot say why."""
    raise MuteError(texts)


def torn(texts: Sequence[str]) -> list[list[float]]:
    """An encoder whose complaint is no text that UTF-8 can hold."""
    raise ValueError(f"f\udcff\x1b\n\u202e{len(texts)}")


def missing() -> Function:
    """An encoder that cannot even be loaded."""
    raise ModuleNotFoundError("no", name="numpy")


def test_receipt_names_the_encoder_that_had_a_say(tmp_path: Path) -> None:
    """Signed with the rest: the ranking, the model, its weight. A mode or a query that asks no encoder names none."""
    lane = Lane(static_table)
    with opened(tmp_path / "store.db", lane) as memory:

        def ranked_by(query: str, mode: Mode) -> str:
            kept = memory.recall(query, mode=mode, receipt=True).receipt
            return memory.explain(kept or "").receipt.scorer

        with_a_say = {mode: ranked_by("who is the doctor", mode) for mode in Mode if mode is not Mode.TASK_MAINTENANCE}
        asked_nothing = ranked_by("", Mode.BALANCED)

    both = f"{SCORER} {lane.model}:{lane.weight}"
    assert with_a_say == {
        Mode.BALANCED: both,
        Mode.HYBRID: both,
        Mode.SEMANTIC: both,
        Mode.LEXICAL: SCORER,
        Mode.RECENT: SCORER,
    }
    assert asked_nothing == SCORER


@pytest.mark.parametrize(
    ("lane", "said"),
    [
        (Lane(lambda: Function(broken, "broken", "1", 2)), "RuntimeError: no luck with 1"),
        (Lane(missing), "numpy is not installed; from the checkout: pip install '.[semantic]'"),
        (Lane(lambda: Function(torn, "torn", "1", 2)), "ValueError: f\\udcff\\x1b\\n\\u202e1"),
        (Lane(lambda: Function(mute, "mute", "1", 2)), "MuteError: it cannot say what is wrong"),
        (
            Lane(lambda: Function(broken, "\ud800", "1", 2)),
            "UsageError: a model's name and version: 1 to 64 bytes, printable, without /, not '\\ud800'",
        ),
    ],
    ids=["raises", "cannot be loaded", "says no text", "says nothing", "has no name"],
)
def test_failing_encoder_is_told_and_words_stand(tmp_path: Path, lane: Lane, said: str) -> None:
    """The answer says so once, its receipt names no model, and in every mode there is what words find without it."""
    with opened(tmp_path / "store.db", lane) as memory:
        plain = Memory(memory._ledger, OWNER)
        for mode in (Mode.BALANCED, Mode.HYBRID, Mode.SEMANTIC):
            found, without = memory.recall("bridge", mode=mode), plain.recall("bridge", mode=mode)

            assert found.notices == (f"semantic: unavailable: {said}",)
            assert found.scorer == SCORER
            assert found.items == without.items
            assert found.items[0].record.text == NOTES[1]


def test_encoder_that_cannot_say_what_is_wrong_ends_indexing_with_an_error_of_ours(tmp_path: Path) -> None:
    """As any other that fails; one that works indexes the same texts."""
    with opened(tmp_path / "store.db", Lane(lambda: Function(mute, "mute", "1", 2))) as memory:
        with pytest.raises(UnavailableError, match="MuteError: it cannot say what is wrong"):
            memory.index_vectors()
        assert Memory(memory._ledger, OWNER, Lane(static_table)).index_vectors().done == len(NOTES)


class Growing:
    """An encoder that another dimension is set for while it is at work."""

    name, version, dimension = "growing", "1", 2

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """As many numbers as its dimension."""
        return [[1.0, *([float(len(text))] * (self.dimension - 1))] for text in texts]


def test_another_dimension_is_another_model(tmp_path: Path) -> None:
    """What was encoded before it changed is encoded anew: nothing is damaged, and nothing is said to be."""
    encoder = Growing()
    with opened(tmp_path / "store.db", Lane(lambda: encoder)) as memory:
        before = memory.recall("bridge")
        encoder.dimension = 3
        after = memory.recall("bridge")

    assert before.notices == after.notices == ()
    assert (before.scorer, after.scorer) == (f"{SCORER} growing/1/2:200", f"{SCORER} growing/1/3:200")


def test_encoder_is_not_asked_where_meaning_has_no_part(tmp_path: Path) -> None:
    """Lexical, recent and an empty query load none; a failing one leaves no word there."""
    with opened(tmp_path / "store.db", Lane(missing)) as memory:
        found = [memory.recall("bridge", mode=Mode.LEXICAL), memory.recall("bridge", mode=Mode.RECENT), memory.recall()]

    assert [each.notices for each in found] == [(), (), ()]


def test_score_is_never_below_nothing(tmp_path: Path) -> None:
    """What meaning speaks against more than a common word speaks for it has a score of zero, and a readable receipt."""

    def turned(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "cedar" in text else [-1.0, 0.0] if "apart" in text else [0.0, 1.0] for text in texts]

    with opened(tmp_path / "store.db", Lane(lambda: Function(turned, "turned", "1", 2))) as memory:
        memory.remember_many(["The cedar gate.", "The gate apart.", *(f"The gate of day {day}." for day in range(4))])
        found = memory.recall("cedar gate", mode=Mode.HYBRID, receipt=True)

        scores = {item.record.text: item.score for item in found.items}
        assert (scores["The cedar gate."] or 0) > (scores["The gate of day 1."] or 0) > 0
        assert scores["The gate apart."] == 0
        explained = memory.explain(found.receipt or "").items
        assert [item.score for item in explained] == [item.score for item in found.items]


def test_what_is_average_in_meaning_is_shown_as_recent(tmp_path: Path) -> None:
    """Of two notes the one that is closer is found by meaning; the other has no score, and comes for being new."""
    with opened(tmp_path / "store.db", Lane(static_table)) as memory:
        found = memory.recall("who is the doctor", mode=Mode.SEMANTIC)

        assert [item.record.text for item in found.items] == list(NOTES)
        assert [item.score is None for item in found.items] == [False, True]
