"""Within 2,400 bytes and four items a balanced context holds what the newest notes and the words alone do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench.quality.origin import ANSWERS, BUDGET, EVIDENCE, Benchmark, Outcome, outcomes

from ledgerstone import Mode

if TYPE_CHECKING:
    from pathlib import Path

BOTH = [EVIDENCE, ANSWERS]
# Asked in words that the record does not have: found by what words mean, and by nothing else.
SYNONYM_ONLY = {"lorry registration", "bike number"}


@pytest.fixture(scope="module")
def came(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[Mode, Outcome]]:
    """Both benchmarks in all modes, asked once."""
    folder: Path = tmp_path_factory.mktemp("origin")
    return {one.name: outcomes(one, folder / f"{one.name}.db") for one in BOTH}


def answerable(benchmark: Benchmark) -> set[str]:
    """The questions that some record answers."""
    return {case.query for case in benchmark.cases if case.evidence is not None}


@pytest.mark.parametrize(("benchmark", "cases"), [(EVIDENCE, 6), (ANSWERS, 7)], ids=["evidence", "answers"])
def test_balanced_holds_all_evidence(came: dict[str, dict[Mode, Outcome]], benchmark: Benchmark, cases: int) -> None:
    """Covered originals, corrections, other scripts, obligations, synonyms, one hit among noise: each is there."""
    assert len(answerable(benchmark)) == cases
    assert set(came[benchmark.name][Mode.BALANCED].hits) == answerable(benchmark)


@pytest.mark.parametrize(("benchmark", "missed"), [(EVIDENCE, 2), (ANSWERS, 1)], ids=["evidence", "answers"])
def test_words_alone_miss_what_is_said_in_others(
    came: dict[str, dict[Mode, Outcome]], benchmark: Benchmark, missed: int
) -> None:
    """The lexical baseline finds all but synonyms, and a task of which the question says nothing."""
    gone = answerable(benchmark) - set(came[benchmark.name][Mode.LEXICAL].hits)

    assert len(gone) == missed
    assert gone & SYNONYM_ONLY


@pytest.mark.parametrize("benchmark", BOTH, ids=["evidence", "answers"])
def test_the_newest_alone_hold_one_answer(came: dict[str, dict[Mode, Outcome]], benchmark: Benchmark) -> None:
    """What was said last is there, and nothing else that is asked."""
    assert len(came[benchmark.name][Mode.RECENT].hits) == 1


@pytest.mark.parametrize("mode", [Mode.RECENT, Mode.LEXICAL, Mode.BALANCED])
@pytest.mark.parametrize("benchmark", BOTH, ids=["evidence", "answers"])
def test_no_context_is_stale_or_over_its_budget(
    came: dict[str, dict[Mode, Outcome]], benchmark: Benchmark, mode: Mode
) -> None:
    """What was corrected is in no context, and each keeps to its bytes and items."""
    outcome = came[benchmark.name][mode]

    assert outcome.stale == 0
    assert 0 < outcome.most_bytes <= BUDGET.bytes
    assert 0 < outcome.most_items <= BUDGET.items


def test_words_alone_bring_nothing_where_nothing_answers(came: dict[str, dict[Mode, Outcome]]) -> None:
    """A question of which no word was ever said has an empty lexical context; the balanced one shows what is new."""
    assert came["answers"][Mode.LEXICAL].idle == 0
    assert came["answers"][Mode.BALANCED].idle > 0
