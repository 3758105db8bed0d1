"""Promises of a caller's own scorer: it orders what was found, is named, and breaks nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from ledgerstone import Memory, Mode, UsageError
from ledgerstone.core.receipts import SCORER
from ledgerstone.semantic import Lane, Scorer, static_table
from ledgerstone.semantic.scorer import JUDGED
from tests.stores import KEYS, OWNER, clock

LAMPS: Final = tuple(f"The lamp in room {number} was replaced." for number in range(4))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A base install with four notes on lamps."""
    path = tmp_path / "store.db"
    with Memory.open(path, keys=KEYS, caller=OWNER, state=tmp_path, create=True, clock=clock()) as opened:
        opened.remember_many(LAMPS)
        yield opened


def likes(word: str) -> Scorer:
    """A scorer to which one word is all."""
    return Scorer(lambda _, texts: [float(word in text) for text in texts], name="likes", version="1")


def found(memory: Memory, scorer: Scorer | None, mode: Mode = Mode.BALANCED) -> list[str]:
    """The texts found for lamps, best first."""
    return [item.record.text or "" for item in memory.recall("lamp", mode=mode, semantic_scorer=scorer).items]


@pytest.mark.parametrize("mode", [Mode.BALANCED, Mode.HYBRID, Mode.SEMANTIC])
@pytest.mark.parametrize("room", range(4))
def test_what_the_scorer_likes_comes_first(memory: Memory, mode: Mode, room: int) -> None:
    """Whatever it is, in every mode that looks by meaning, and nothing is lost or added for it."""
    order = found(memory, likes(f"room {room}"), mode)

    assert order[0] == LAMPS[room]
    assert sorted(order) == sorted(LAMPS)


def test_lexical_and_recent_do_not_ask_the_scorer(memory: Memory) -> None:
    """They are baselines; it would raise."""
    scorer = Scorer(lambda _, texts: [1 / 0 for _ in texts], name="never", version="1")

    for mode in (Mode.LEXICAL, Mode.RECENT):
        assert found(memory, scorer, mode) == found(memory, None, mode)
        assert memory.recall("lamp", mode=mode, semantic_scorer=scorer).notices == ()


def test_scorer_is_given_the_query_and_the_texts_of_the_best(memory: Memory) -> None:
    """At most so many of a namespace, as they are searched."""
    given: list[tuple[str, Sequence[str]]] = []

    def noted(query: str, texts: Sequence[str]) -> list[float]:
        given.append((query, texts))
        return [0.0] * len(texts)

    memory.remember_many([f"lamp {number}" for number in range(2 * JUDGED)])
    memory.recall("lamp", semantic_scorer=Scorer(noted, "noted", "1"))

    [(query, texts)] = given
    assert query == "lamp"
    assert len(texts) == JUDGED
    assert all("lamp" in text for text in texts)


def test_receipt_names_the_scorer_that_had_a_say(memory: Memory) -> None:
    """Behind the ranking, and behind the encoder if there is one; nobody is named who was not asked."""
    both = Memory(memory._ledger, OWNER, Lane(static_table))

    def named(asked: Memory, query: str) -> str:
        kept = asked.recall(query, semantic_scorer=likes("room 1"), receipt=True).receipt
        return asked.explain(kept or "").receipt.scorer

    assert named(memory, "lamp") == f"{SCORER} likes/1"
    assert named(both, "lamp") == f"{SCORER} {Lane(static_table).model}:{Lane(static_table).weight} likes/1"
    assert named(memory, "") == named(memory, "bridge") == SCORER


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda _, texts: [1 / 0 for _ in texts], "ZeroDivisionError: division by zero"),
        (lambda _, texts: [1.0] * (len(texts) + 1), "5 scores for 4 texts"),
        (lambda _, texts: [float("nan")] * len(texts), "not finite numbers"),
        (lambda _, texts: [float("inf")] * len(texts), "not finite numbers"),
        (lambda _, __: None, "TypeError"),
        (lambda _, texts: [float(f"f\udcff\n{len(texts)}")], "could not convert string to float: 'f\\udcff\\n4'"),
    ],
    ids=["raises", "count", "nan", "infinite", "nothing", "surrogate"],
)
def test_failing_scorer_is_told_and_the_order_stands(
    memory: Memory, function: Callable[[str, Sequence[str]], Iterable[float]], said: str
) -> None:
    """The answer says which one and why, the receipt does not name it, and what words found stands as it did."""
    recalled = memory.recall("lamp", semantic_scorer=Scorer(function, "mine", "2"))

    [notice] = recalled.notices
    assert notice.startswith("semantic: scorer mine/2 unavailable: ")
    assert said in notice
    assert recalled.scorer == SCORER
    assert recalled.items == memory.recall("lamp").items


def test_only_the_order_of_its_numbers_and_their_distance_count(memory: Memory) -> None:
    """Small or huge, below or above zero, equal ones change nothing."""
    small = found(memory, Scorer(lambda _, texts: [-1e-9 * ("room 2" in text) for text in texts], "s", "1"))
    huge = found(memory, Scorer(lambda _, texts: [-1.7e308 if "room 2" in t else 1.7e308 for t in texts], "h", "1"))
    equal = found(memory, Scorer(lambda _, texts: [5.0] * len(texts), "e", "1"))

    assert small == huge
    assert small[-1] == LAMPS[2]
    assert equal == found(memory, None)


def test_scorer_without_a_name_is_refused(memory: Memory) -> None:
    """It could not be told from another; with one, and with the longest names of all, a receipt can hold it."""
    for name, version in (("", "1"), ("x", ""), ("x/y", "1"), ("x" * 65, "1"), ("\ud800", "1"), ("x", "1\n")):
        with pytest.raises(UsageError, match="1 to 64 bytes"):
            memory.recall("lamp", semantic_scorer=Scorer(lambda _, texts: [0.0] * len(texts), name, version))

    longest = Scorer(lambda _, texts: [0.0] * len(texts), "x" * 64, "y" * 64)
    assert memory.recall("lamp", semantic_scorer=longest, receipt=True).receipt is not None
