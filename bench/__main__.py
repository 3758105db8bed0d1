"""``python -m bench``: run all benchmarks or those named, print one table, and keep that of a whole run."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from bench import meaning, proving, reading, recalling, starting, writing
from bench.figures import FULL, QUICK, Figure, Scale

Row = tuple[str, str, str, str]
Benchmark = Callable[[Scale, Path], Iterator[Figure]]
BENCHMARKS: Final[dict[str, Benchmark]] = {
    "remember": writing.remember,
    "remember_many": writing.remember_many,
    "get": reading.get,
    "recall": reading.recall,
    "recalling": recalling.recalling,
    "crowded": recalling.crowded,
    "large": recalling.large,
    "meaning": meaning.meaning,
    "opening": reading.opening,
    "verify": proving.verify,
    "resume": proving.resume,
    "bulk": proving.bulk,
    "starting": starting.starting,
}
RESULTS: Final = Path(__file__).with_name("RESULTS.md")
INTRODUCTION: Final = """\
# What it costs

CPU time, user and system, never wall time; medians over rounds. Two things compared were run in turns within one
process, and their ratio is the median of the rounds' ratios. The rows of one benchmark are of one run, those of two
perhaps of two. The notes are made from a fixed seed: 12 to 40 words out of 50,000 by Zipf's law, about 173 characters
each; those of `recalling`, `crowded`, `large` and `meaning` as `bench/natural.py` says, nearer to language. Targets are
what we are after; nothing asserts them. Beside other work the same costs up to half more.
"""


def main(arguments: Sequence[str]) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument(
        "--stores", type=Path, metavar="FOLDER", help="take the stores there, and leave those made there"
    )
    parser.add_argument("--keep", action="store_true", help="keep the rows of those named in place of their last ones")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: under a minute")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if asked.keep and (asked.quick or not asked.names):
        parser.error("--keep: for benchmarks that are named, at their full size")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="ledgerstone-bench-") as made:
        folder = asked.stores or made
        for name in asked.names or BENCHMARKS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            for figure in BENCHMARKS[name](QUICK if asked.quick else FULL, Path(folder)):
                print(f"  {figure.what}: {_number(figure.value)} {figure.unit}", file=sys.stderr, flush=True)
                figures.append(figure)
    rows = [_row(figure) for figure in figures]
    print(_table(rows))
    if asked.keep:
        rows = _merged(RESULTS.read_text(encoding="utf-8"), rows)
    if asked.keep or not (asked.names or asked.quick):
        text = f"{INTRODUCTION}\nTo repeat it: `./dev bench`. {_machine()}\n\n{_table(rows)}\n"
        RESULTS.write_text(text, encoding="utf-8")


def _merged(results: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of earlier results with those of some benchmarks in place of their last ones."""
    named, order = {row[0] for row in rows}, list(BENCHMARKS)
    table = [line for line in results.splitlines() if line.startswith("| ")][1:]
    earlier = (tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table)
    kept = [(name, what, measured, target) for name, what, measured, target in earlier if name not in named]
    return sorted([*kept, *rows], key=lambda row: order.index(row[0]))


def _row(figure: Figure) -> Row:
    return figure.benchmark, figure.what, f"{_number(figure.value)} {figure.unit}".strip(), figure.target or ""


def _number(value: float) -> str:
    """Three figures, and all of a large whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(figures: Sequence[Row]) -> str:
    rows = [("benchmark", "what", "measured", "target"), *figures]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _machine() -> str:
    """The machine in general words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"This run: {os.cpu_count()} {platform.machine()} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
