"""Bits flipped in the files of a store: ``python -m tests.faults.flips`` says how many, and who noticed."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import apsw

from ledgerstone import CorruptionError, FormatError, UnavailableError
from tests.store.faults import crash_image
from tests.stores import READ_ONLY, Answer, Home, dump, furnish, later, open_memory, plain_client, survey

# The log holds the newest commits when a process dies; the index beside it is made anew by whoever opens.
DATABASE: Final = "store.db"
WEIGHTS: Final = {DATABASE: 16, "store.db-wal": 3, "store.db-shm": 1}


@dataclass(slots=True)
class Figures:
    """What came of it. Of the flips that ``changed`` what the database holds: who noticed, and how.

    ``rolled_back`` lost commits out of the log and left a sound older store, which only a head kept elsewhere can
    tell. ``sqlite`` counts what SQLite itself noticed, by its check or an error. ``unnoticed`` and ``false`` (an
    answer that was never written) list the flips themselves.
    """

    flips: int = 0
    changed: int = 0
    at_opening: int = 0
    at_reading: int = 0
    by_verify: int = 0
    rolled_back: int = 0
    sqlite: int = 0
    unnoticed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Subject:
    """A store, and all that it holds and answers."""

    home: Home
    held: list[Any]
    answers: dict[str, Answer]
    heads: dict[str, tuple[int, bytes]]


def prepare(folder: Path) -> tuple[Subject, Subject]:
    """A store at rest, and one as a crash leaves it: its newest commits in the log."""
    home = furnish(folder / DATABASE, fillers=60)
    with open_memory(home.path, create=False) as memory:
        memory.remember("one more before the crash")
        image = crash_image(home.path, folder / "crashed")
        shutil.copy(f"{home.path}-shm", folder / "crashed")
    return subject_of(home), subject_of(replace(home, path=image))


def subject_of(home: Home) -> Subject:
    """Note what a store holds and answers."""
    with copied(home) as copy:
        held = dump(copy.path)
    with copied(home) as copy, open_memory(copy.path, keys=READ_ONLY, create=False, now=later) as memory:
        return Subject(home, held, survey(memory, copy), memory.verify().heads)


@contextmanager
def copied(home: Home, *, name: str = "", bit: int = 0) -> Iterator[Home]:
    """All files of a home in a folder of their own, with one bit of one of them flipped."""
    with tempfile.TemporaryDirectory() as folder:
        for file in WEIGHTS:
            path = home.path.with_name(file)
            if not path.exists():
                continue
            data = bytearray(path.read_bytes())
            if file == name:
                data[bit // 8] ^= 1 << bit % 8
            (Path(folder) / file).write_bytes(data)
        yield replace(home, path=Path(folder) / home.path.name)


def flip(subject: Subject, name: str, bit: int, figures: Figures) -> None:
    """Flip one bit and see who notices."""
    figures.flips += 1
    where = f"{name} bit {bit}"
    try:
        with copied(subject.home, name=name, bit=bit) as copy:
            changed = dump(copy.path) != subject.held
    except (apsw.Error, UnicodeDecodeError):
        changed = True
    noticed = notice(subject, name, bit, where, figures)
    if not changed:
        return
    figures.changed += 1
    figures.sqlite += sqlite_notices(subject, name, bit)
    if noticed == "":
        figures.unnoticed.append(where)
    else:
        setattr(figures, noticed, getattr(figures, noticed) + 1)


def notice(subject: Subject, name: str, bit: int, where: str, figures: Figures) -> str:
    """Who of us notices first: opening, reading, verify, or a head kept elsewhere."""
    first = ""
    try:
        with (
            copied(subject.home, name=name, bit=bit) as copy,
            open_memory(copy.path, keys=READ_ONLY, create=False, now=later) as memory,
        ):
            answers = survey(memory, copy)
            if any(answer.refusal for answer in answers.values()):
                first = "at_reading"
            checked = memory.verify()
    except (CorruptionError, FormatError, UnavailableError):
        return first or "at_opening"
    if not first and not checked.ok:
        first = "by_verify"
    if not first and checked.heads != subject.heads:
        first = "rolled_back"
    genuine = {part for answer in subject.answers.values() for part in answer.parts}
    if first in {"", "at_reading"}:
        figures.false += [
            f"{where}: {question}" for question, answer in answers.items() if not genuine.issuperset(answer.parts)
        ]
    return first


def sqlite_notices(subject: Subject, name: str, bit: int) -> bool:
    """Whether SQLite's own check, or reading everything, says that something is wrong."""
    with copied(subject.home, name=name, bit=bit) as copy:
        try:
            connection = plain_client(copy.path)
            sound: bool = connection.execute("PRAGMA integrity_check").get == "ok"
            connection.close()
            dump(copy.path)
        except (apsw.Error, UnicodeDecodeError):
            return True
    return not sound


def flip_bits(folder: Path, *, flips: int, seed: int = 1) -> Figures:
    """Flip so many bits, one at a time, each in a fresh copy of the same store."""
    at_rest, crashed = prepare(folder)
    chance = random.Random(seed)
    figures = Figures()
    for name in chance.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()), k=flips):
        subject = at_rest if name == DATABASE else crashed
        bits = 8 * subject.home.path.with_name(name).stat().st_size
        flip(subject, name, chance.randrange(bits), figures)
    return figures


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(flip_bits(Path(folder), flips=given.flips, seed=given.seed))


if __name__ == "__main__":
    main()
