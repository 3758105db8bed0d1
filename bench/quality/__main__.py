"""``python -m bench.quality``: how well recall brings back what answers a question.

``convert`` reads a public set as its authors publish it and writes it in the plain form; ``run`` measures sets in the
plain form through the product and prints one table; ``compare`` says how sure the difference between two runs is;
``origin`` asks two small benchmarks what a context must be able to hold.
Every set, metric and file is described in docs/quality.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from bench.quality import origin, scoring
from bench.quality.measuring import Configuration, Opened, Row, Run, measure, output
from bench.quality.public import FORMATS, pooled
from bench.quality.sets import SetError, read, write
from ledgerstone import LedgerstoneError, Mode

OWN: Final = Path(__file__).with_name("notes.jsonl")
USUAL: Final = Configuration("balanced")
BASELINES: Final = tuple(mode for mode in ("recent", "lexical", "balanced", "hybrid") if mode in list(Mode))


def main(arguments: Sequence[str]) -> None:
    """Do what was asked for."""
    asked = _parser().parse_args(arguments)
    try:
        asked.act(asked)
    except (SetError, OSError, LedgerstoneError) as error:
        sys.exit(f"quality: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("run", help="measure sets, print one table")
    command.add_argument("sets", nargs="*", type=Path, default=[OWN], help="in the plain form (default: our own notes)")
    command.add_argument("--categories", action="store_true", help="a row for each category of questions too")
    command.add_argument("--modes", default=",".join(BASELINES), help=f"of {', '.join(Mode)} (default: %(default)s)")
    command.add_argument("--out", type=Path, help="a directory for one file of answers a set and configuration")
    command.add_argument("--depth", type=_number, default=USUAL.depth, help="length of a ranking")
    command.add_argument("--candidates", type=_number, default=USUAL.candidates, help="of a ranking, a lane")
    command.add_argument("--bytes", type=_number, default=USUAL.bytes, help="the small budget")
    command.add_argument("--every", type=_number, default=USUAL.every, metavar="N", help="ask each Nth question only")
    command.add_argument(
        "--opened",
        default=USUAL.opened,
        metavar="MODULE:FUNCTION",
        help="what makes a store of a path, for lanes beyond the base install",
    )
    command.set_defaults(act=_run)
    command = commands.add_parser("convert", help="a public set into the plain form")
    command.add_argument("format", choices=FORMATS)
    command.add_argument("files", nargs="+", type=Path, help="as published, perhaps compressed (.gz)")
    command.add_argument("--pool", action="store_true", help="all its stores as one")
    command.add_argument("--out", type=Path, required=True)
    command.set_defaults(act=_convert)
    command = commands.add_parser("compare", help="two runs over one set, with paired bootstrap intervals")
    command.add_argument("first", type=Path)
    command.add_argument("second", type=Path)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--gate", action="store_true", help="exit with 1 if the second is surely lower in anything")
    command.set_defaults(act=_compare)
    command = commands.add_parser("origin", help="two small benchmarks of what a context holds")
    command.set_defaults(act=_origin)
    return parser


def _number(text: str) -> int:
    """A number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"from 1 on, not {text}")
    return number


def _run(asked: argparse.Namespace) -> None:
    names = asked.modes.split(",")
    unknown = [name for name in names if name not in list(Mode)]
    if unknown:
        raise SetError(f"recall has no mode {unknown[0]!r}; there are {', '.join(Mode)}")
    configurations = [
        Configuration(mode, asked.opened, asked.depth, asked.candidates, asked.bytes, asked.every) for mode in names
    ]
    opening = _opening(asked.opened)
    rows: list[tuple[str, ...]] = []
    hashes = []
    for path in asked.sets:
        collection = read(path)
        if not any(store.questions for store in collection.stores):
            raise SetError(f"{path.name}: nothing is asked in it")
        print(f"{collection.name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="ledgerstone-quality-") as folder:
            runs = measure(collection, configurations, Path(folder), opening)
        for run in runs:
            answers = output(run)
            rows.append(_row(run, "all", run.rows))
            categories = sorted({row.category for row in run.rows}) if asked.categories else []
            rows += [_row(run, one or "none", [row for row in run.rows if row.category == one]) for one in categories]
            hashes.append((run.name, run.configuration.label, run.data_sha256, hashlib.sha256(answers).hexdigest()))
            if asked.out is not None:
                asked.out.mkdir(parents=True, exist_ok=True)
                (asked.out / f"{run.name}.{run.configuration.label}.jsonl").write_bytes(answers)
    measures = list(runs[0].means)
    print(_table([("set", "mode", "questions", "n", *measures, "stale", "ms"), *rows]))
    print()
    print(_table([("set", "mode", "data, SHA-256", "answers, SHA-256"), *hashes]))


def _row(run: Run, questions: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """A line of the table; only that of all questions has a time."""
    numbers = [f"{mean:.3f}" for mean in scoring.means([row.scores for row in rows]).values()]
    stale = sum(row.stale for row in rows)
    took = f"{run.milliseconds:.1f}" if questions == "all" else ""
    return (run.name, run.configuration.label, questions, str(len(rows)), *numbers, str(stale), took)


def _opening(name: str) -> Opened:
    """The function that a command line names."""
    module, _, function = name.partition(":")
    try:
        opening: Opened = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise SetError(f"opened: a module and a function of it, not {name!r}") from error
    return opening


def _convert(asked: argparse.Namespace) -> None:
    try:
        stores = FORMATS[asked.format](asked.files)
    except (KeyError, TypeError, ValueError) as error:
        raise SetError(f"not as {asked.format} is published: {error!r}") from error
    if asked.pool:
        stores = pooled(stores)
    write(asked.out, stores)
    documents, questions = (sum(len(getattr(s, part)) for s in stores) for part in ("documents", "questions"))
    print(f"{asked.out}: {len(stores)} stores, {documents} documents, {questions} questions")


def _compare(asked: argparse.Namespace) -> None:
    (first, rows), (second, others) = _answers(asked.first), _answers(asked.second)
    if first["data_sha256"] != second["data_sha256"] or rows.keys() != others.keys():
        raise SetError("these are runs over different data")
    table = [("measure", str(asked.first), str(asked.second), "difference", "95 % of resamples")]
    lower = []
    for name in next(iter(rows.values())):
        pairs = [(row[name], others[key][name]) for key, row in rows.items()]
        low, high = scoring.interval([b - a for a, b in pairs], seed=asked.seed)
        if high < 0:
            lower.append(name)
        means = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
        spread = f"{low:+.3f} to {high:+.3f}{'' if low <= 0 <= high else ' *'}"
        table.append((name, f"{means[0]:.3f}", f"{means[1]:.3f}", f"{means[1] - means[0]:+.3f}", spread))
    print(_table(table))
    print(f"\n{len(rows)} questions; * marks an interval without zero in it.")
    if asked.gate and lower:
        sys.exit(f"quality: {asked.second.stem} is lower: {', '.join(lower)}")


def _origin(_: argparse.Namespace) -> None:
    print(_table(origin.table()))


def _answers(path: Path) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, float]]]:
    """A file of answers: what it was made of, and the measures of every question."""
    try:
        head, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return head, {(row["store"], row["id"]): row["scores"] for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise SetError(f"{path}: not a file of answers") from error


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
