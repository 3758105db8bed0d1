"""Two small benchmarks of what a context holds: an old fact, a correction, an obligation, one hit among much noise.

Their shape is that of an earlier memory's own benchmarks, with contents of ours: 2,400 bytes and four items a recall,
in which the newest notes alone, the words alone and the balanced context stand side by side. They are contracts
rather than measurements: a handful of questions, each of which asks for one thing that a context must be able to do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.quality.measuring import opened
from ledgerstone import Budget, Draft, Kind, Memory, Mode, Scope

BUDGET: Final = Budget(bytes=2_400, items=4, candidates=64)
MODES: Final = (Mode.RECENT, Mode.LEXICAL, Mode.BALANCED)
TIDES: Final = 120
FILLER: Final = "Wind from the west, some spray over the wall, boats at their moorings, gulls about. "
FILLER_CHARACTERS: Final = 320
ERRANDS: Final = 80


@dataclass(frozen=True, slots=True)
class Case:
    """A question and the words of the one record that answers it; None where nothing does."""

    query: str
    evidence: str | None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is remembered, what is asked, and which words may never be in a context or stand there as open."""

    name: str
    remember: Callable[[Memory], None]
    cases: tuple[Case, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one mode came to: the queries whose evidence was there, and how many stale records were.

    ``idle`` counts the records that came for questions that nothing answers.
    """

    hits: tuple[str, ...]
    stale: int
    idle: int
    most_bytes: int
    most_items: int


def _evidence(memory: Memory) -> None:
    """Five opening notes, a summary and a correction, then observations without end."""
    code = _note(memory, "The boathouse gate opens with the code larch-319.", key="boathouse-gate", kind=Kind.FACT)
    _note(memory, "The parcel goes to Tromsø.", key="parcel", kind=Kind.FACT)
    _note(memory, "Bring the projector back to Ines.", key="projector", kind=Kind.TASK)
    _note(memory, "The truck carries plate ZM-5518.", key="truck", kind=Kind.FACT)
    _note(memory, "Зонт Марины висит в кладовой за синей дверью.", key="зонт", kind=Kind.FACT)
    _note(memory, "The boathouse has a gate code.", kind=Kind.SUMMARY, sources=(code,), covers=(code,))
    _note(memory, "The parcel goes to Porto.", key="parcel", kind=Kind.FACT)
    for number in range(TIDES):
        filler = (FILLER * 4)[:FILLER_CHARACTERS]
        _note(memory, f"Tide observation {number}: {filler}", kind=Kind.EPISODE)


EVIDENCE: Final = Benchmark(
    "evidence",
    _evidence,
    (
        Case("boathouse gate code", "larch-319"),
        Case("where does the parcel go", "Porto"),
        Case("tide today", "projector"),
        Case("зонт Марины", "кладовой"),
        Case("lorry registration", "ZM-5518"),
        Case("tide observation 119", "Tide observation 119:"),
    ),
    ("Tromsø",),
)


def _answers(memory: Memory) -> None:
    """Ninety-one notes: facts, a correction, a closed task and an open one, errands, and a fact at the end."""
    code = _note(memory, "The darkroom safe opens with alder-2087.", key="darkroom-safe", kind=Kind.FACT)
    _note(memory, "The night ferry sails to Gdynia.", key="ferry", kind=Kind.FACT)
    kite = _note(memory, "Mend the kite for Paulo.", key="kite", kind=Kind.TASK)
    _note(memory, "My bicycle has the frame mark TK-903-W.", key="frame", kind=Kind.FACT)
    _note(memory, "Словарь Нины стоит в жёлтом шкафу.", key="словарь", kind=Kind.FACT)
    _note(memory, "Hand the drone in at the club; charge both batteries first.", key="drone", kind=Kind.TASK)
    _note(memory, "The darkroom safe has a code.", kind=Kind.SUMMARY, sources=(code,), covers=(code,))
    _note(memory, "The night ferry sails to Ystad.", key="ferry", kind=Kind.FACT)
    memory.close_task(kite, reason="It flies again.")
    for number in range(ERRANDS):
        _note(memory, f"Errand {number}: went round by the market, it was quiet, and came home.", kind=Kind.EPISODE)
        if number == ERRANDS // 2:
            _note(memory, "The towels are in cabin 4471.", key="towels", kind=Kind.FACT)
    _note(memory, "The rehearsal begins at 18:40.", key="rehearsal", kind=Kind.FACT)


ANSWERS: Final = Benchmark(
    "answers",
    _answers,
    (
        Case("darkroom safe code", "alder-2087"),
        Case("where does the night ferry sail", "Ystad"),
        Case("bike number", "TK-903-W"),
        Case("словарь Нины", "жёлтом"),
        Case("what is still to be done with the drone", "batteries"),
        Case("in which cabin are the towels", "4471"),
        Case("when does the rehearsal begin", "18:40"),
        Case("hotel wifi password", None),
    ),
    ("Gdynia",),
)


def _note(memory: Memory, text: str, **draft: object) -> str:
    return memory.remember(Draft(text=text, **draft), scope=Scope.USER).record.address  # type: ignore[arg-type]


def outcome(memory: Memory, benchmark: Benchmark, mode: Mode) -> Outcome:
    """Every case asked in one mode. An unanswerable one is a hit of no mode."""
    hits: list[str] = []
    stale = idle = most_bytes = most_items = 0
    for case in benchmark.cases:
        recalled = memory.recall(case.query, mode=mode, budget=BUDGET)
        texts = [item.record.text or "" for item in recalled.items]
        if case.evidence is None:
            idle += len(texts)
        elif any(case.evidence in text for text in texts):
            hits.append(case.query)
        stale += sum(any(words in text for words in benchmark.stale) for text in texts)
        most_bytes, most_items = max(most_bytes, recalled.bytes), max(most_items, len(texts))
    return Outcome(tuple(hits), stale, idle, most_bytes, most_items)


def outcomes(benchmark: Benchmark, path: Path) -> dict[Mode, Outcome]:
    """A benchmark in a new store at a path, in each of the modes."""
    with opened(path) as memory:
        benchmark.remember(memory)
        return {mode: outcome(memory, benchmark, mode) for mode in MODES}


def table() -> Sequence[tuple[str, ...]]:
    """Both benchmarks, a row a question: which modes' contexts hold the evidence."""
    rows: list[tuple[str, ...]] = [("benchmark", "question", *MODES)]
    for benchmark in (EVIDENCE, ANSWERS):
        with tempfile.TemporaryDirectory(prefix="ledgerstone-quality-") as folder:
            came = outcomes(benchmark, Path(folder) / "origin.db")
        answerable = [case for case in benchmark.cases if case.evidence is not None]
        rows += [
            (benchmark.name, case.query, *("yes" if case.query in one.hits else "" for one in came.values()))
            for case in answerable
        ]
        of = len(answerable)
        rows.append((benchmark.name, "all", *(f"{len(one.hits)} of {of}" for one in came.values())))
        rows.append((benchmark.name, "stale", *(str(one.stale) for one in came.values())))
    return rows
