"""Rows edited by a plain SQL client: ``python -m tests.faults.edits`` says who noticed, and whether a remedy helped."""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from ledgerstone import LedgerstoneError, Memory, Report
from ledgerstone.semantic import Lane, static_table
from tests.faults.flips import DATABASE, copied
from tests.stores import KEYS, OWNER, Answer, Home, chance, dump, furnish, later, open_memory, plain_client, survey

# What a value is replaced by: one of each type, great and small, and what looks like something.
VALUES: Final = (None, 0, 1, -1, 7, 1 << 40, 1.5, "", "x", "ns_0000000000000000", b"", b"x", bytes(32))
MOST_EDITS: Final = 3
# The folder with what is remembered of a store.
REMEMBERED: Final = "state"


class Table(NamedTuple):
    """A table's name, its columns, and the columns that tell its rows apart."""

    name: str
    columns: tuple[str, ...]
    key: str


@dataclass(slots=True)
class Figures:
    """What came of it, store by store.

    Of those that verify ``noticed``: ``differing`` answered something otherwise and refused nothing, as only a store
    can of which nothing is remembered outside it; ``rebuilt`` are as they were after the rebuild that verify named,
    ``history`` those of which it said that only a backup helps. ``idle`` are those whose edits changed no answer and
    nothing that is checked, by table. All others are faults, and listed: a text that nobody gave, or another answer of
    a store that verify calls sound (``false``), a refusal of one (``contradicted``), an answer where the store is
    remembered and verify finds it altered (``unfenced``), a remedy that does not help (``circles``), an error that is
    not one of ours (``escaped``).
    """

    stores: int = 0
    noticed: int = 0
    differing: int = 0
    rebuilt: int = 0
    history: int = 0
    idle: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    unfenced: list[str] = field(default_factory=list)
    circles: list[str] = field(default_factory=list)
    escaped: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that may not be."""
        return [*self.false, *self.contradicted, *self.unfenced, *self.circles, *self.escaped]


class Subject(NamedTuple):
    """Where a store is remembered, a copy of it, all that its file holds, all that it answers, and every text in it."""

    known: Path
    home: Home
    held: list[Any]
    answers: dict[str, Answer]
    texts: set[str]


def prepare(folder: Path) -> Subject:
    """A store at rest that holds one of everything, receipts, vectors and an erased text among them."""
    known, kept = folder / "known" / DATABASE, folder / REMEMBERED
    known.parent.mkdir()
    home = furnish(known, fillers=270)
    with Memory.open(
        known, keys=KEYS, caller=OWNER, state=kept, clock=later, entropy=chance(2), semantic=Lane(static_table)
    ) as memory:
        memory.verify(accept=True)
        memory.forget(home.memories["other"], dry_run=False)
        for query in ("door", "lantern"):
            memory.recall(query, receipt=True)
        memory.index_vectors()
        memory.remember("after the vectors")
    home = home.copy(folder)
    with copied(home) as copy, open_memory(copy.path, create=False, now=later) as memory:
        pages = [memory.list_records("all", limit=100)]
        while pages[-1].cursor is not None:
            pages.append(memory.list_records("all", limit=100, cursor=pages[-1].cursor))
    every = {"all": Answer(tuple(repr(record) for page in pages for record in page.items))}
    answers = _answers(home)
    assert answers is not None
    return Subject(known, home, dump(home.path), answers, texts(answers | every))


def tables(connection: apsw.Connection) -> list[Table]:
    """The tables that a client can edit, those of the full-text index included."""
    found = []
    listed = "SELECT name, wr FROM pragma_table_list WHERE type IN ('table', 'shadow') AND name NOT LIKE 'sqlite_%'"
    for name, without_rowid in connection.execute(listed).fetchall():
        columns = tuple(str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})"))
        found.append(Table(str(name), columns, f"({', '.join(columns)})" if without_rowid else "rowid"))
    return found


def edits(path: Path, draw: random.Random) -> Iterator[str]:
    """Edit a row or a few, drawn by chance; each edit that the file took, in words."""
    connection = plain_client(path)
    try:
        known = tables(connection)
        for _ in range(draw.choice((1, 1, 1, 2, MOST_EDITS))):
            table = draw.choice(known)
            sql, given = _edit(table, connection.execute(f"SELECT count(*) FROM {table.name}").get, draw)  # noqa: S608
            try:
                connection.execute(sql, given)
            except apsw.Error:
                continue
            if connection.changes():
                yield f"{sql} {given}"
    finally:
        connection.close()


def _edit(table: Table, rows: int, draw: random.Random) -> tuple[str, tuple[Any, ...]]:
    """A statement that sets, copies, removes or doubles a row's value, with what it is given."""

    def of(what: str) -> str:
        return f"(SELECT {what} FROM {table.name} LIMIT 1 OFFSET {draw.randrange(max(rows, 1))})"  # noqa: S608

    column, value = draw.choice(table.columns), draw.choice(VALUES)
    where = f"{table.key} = {of(table.key.strip('()'))}"
    match draw.choice(("set", "set", "copy", "copy", "remove", "double")):
        case "set":
            return f"UPDATE {table.name} SET {column} = ? WHERE {where}", (value,)  # noqa: S608
        case "copy":
            other = draw.choice((column, column, draw.choice(table.columns)))
            return f"UPDATE {table.name} SET {column} = {of(other)} WHERE {where}", ()  # noqa: S608
        case "remove":
            return f"DELETE FROM {table.name} WHERE {where}", ()  # noqa: S608
        case _:
            columns = ", ".join("?" if each == column else each for each in table.columns)
            return f"INSERT INTO {table.name} SELECT {columns} FROM {table.name} WHERE {where}", (value,)  # noqa: S608


def edit(subject: Subject, seed: int, figures: Figures) -> None:
    """Edit a copy of a store, ask it everything, verify it, and do what verify says."""
    with copied(subject.home) as copy:
        made = list(edits(copy.path, random.Random(seed)))
        if dump(copy.path) == subject.held:
            return
        figures.stores += 1
        where = f"seed {seed}: {'; '.join(made)}"
        try:
            _judge(subject, copy, made, where, figures)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no answer
            figures.escaped.append(f"{where}: {error!r}")


def _judge(subject: Subject, copy: Home, made: list[str], where: str, figures: Figures) -> None:
    genuine, answers = subject.answers, _answers(copy)
    refused = answers is None or any(answer.refusal for answer in answers.values())
    differing = [question for question, answer in (answers or {}).items() if answer != genuine[question]]
    invented = texts(answers or {}) - subject.texts
    report = _report(copy)
    sound, hint = report is not None and report.ok, _hint(report)
    if invented or (sound and differing and not refused):
        figures.false.append(f"{where}: {invented or differing}")
    remembered = _where_remembered(subject.known, copy)
    if sound:
        if refused or remembered is None:
            figures.contradicted.append(where)
        figures.idle.update(one.split()[1 if one.startswith("UPDATE") else 2] for one in made)
        return
    figures.noticed += 1
    # No memory rests on a receipt, and an index cut by another program was made anew by whoever opened the store.
    if remembered is not None and any(finding.code != "receipt" for finding in remembered.findings):
        figures.unfenced.append(where)
    figures.differing += bool(differing) and not refused
    if "ledgerstone rebuild" not in hint:
        figures.history += 1
        return
    try:
        with open_memory(copy.path, create=False, now=later, check=False) as memory:
            memory.rebuild()
    except LedgerstoneError as error:
        # It was said that it may be so, and what helps then.
        if "restore" in hint and "restore" in error.hint:
            figures.history += 1
        else:
            figures.circles.append(f"{where}: {hint}: {error.message}; {error.hint}")
        return
    after = _report(copy)
    if after is not None and after.ok and _answers(copy) == genuine:
        figures.rebuilt += 1
    elif after is not None and not after.ok and "ledgerstone rebuild" not in _hint(after):
        figures.history += 1
    else:
        figures.circles.append(f"{where}: after the rebuild: {after}")


def _hint(report: Report | None) -> str:
    """What verify says to do; nothing where it said nothing."""
    return "" if report is None else report.hint or ""


def texts(answers: Mapping[str, Answer]) -> set[str]:
    """All texts of all answers."""
    return {text for answer in answers.values() for part in answer.parts for text in _TEXT.findall(part)}


_TEXT: Final = re.compile(r"""\btext=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None)""")


def _answers(home: Home) -> dict[str, Answer] | None:
    """What a copy of a store answers, in which a refusal may be put on record; None where it is refused as a whole."""
    try:
        with copied(home) as asked, open_memory(asked.path, create=False, now=later) as memory:
            return survey(memory, asked)
    except LedgerstoneError:
        return None


def _where_remembered(known: Path, copy: Home) -> Report | None:
    """What verify finds in a copy where its store is remembered, once it was read; None where it is refused."""
    state = known.parent / REMEMBERED
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(known.parent.parent / REMEMBERED, state)
    shutil.copy(copy.path, known)
    try:
        with open_memory(known, create=False, state=state, now=later) as memory:
            memory.list_records()
            return memory.verify(full=True)
    except LedgerstoneError:
        return None


def _report(copy: Home) -> Report | None:
    """What verify finds; None where the store is refused as a whole."""
    try:
        with open_memory(copy.path, create=False, now=later, check=False) as memory:
            return memory.verify(full=True)
    except LedgerstoneError:
        return None


def edit_rows(folder: Path, *, stores: int, seed: int = 1) -> Figures:
    """Edit so many copies of one store, each by a seed of its own."""
    subject, figures = prepare(folder), Figures()
    for number in range(stores):
        edit(subject, 1_000_000 * seed + number, figures)
    return figures


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = edit_rows(Path(folder), stores=given.stores, seed=given.seed)
    print(figures)


if __name__ == "__main__":
    main()
