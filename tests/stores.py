"""Scratch stores for tests: a fixed clock, seeded chance, known keys, callers, and everything that can be asked."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import apsw

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    CorruptionError,
    Draft,
    Keyring,
    Kind,
    Memory,
    Mode,
    NotFoundError,
    Origin,
    ProjectHints,
    Report,
    Scope,
    SigningKey,
)
from ledgerstone.store import open_store
from ledgerstone.verifying import rebuild, verify

# 1 January 2026, 00:00 UTC, in microseconds.
START: Final = 1_767_225_600_000_000
SECOND: Final = 1_000_000
KEY: Final = SigningKey(seed=bytes(range(32)), secret=bytes(range(32, 64)))
KEYS: Final = Keyring(KEY)
READ_ONLY: Final = Keyring(pins=tuple(KEYS.public.values()))
OTHER_KEYS: Final = Keyring(SigningKey(seed=bytes(reversed(range(32))), secret=bytes(range(32, 64))))
OWNER: Final = Caller(
    principal="local:ada",
    origin=Origin.USER,
    host="test",
    session="monday",
    project=ProjectHints(remotes=(("origin", "git@example.org:ada/cedar.git"),), paths=("/home/ada/cedar",)),
)
STRANGER: Final = Caller(principal="local:bob", origin=Origin.MODEL, session="tuesday")


def clock(start: int = START, step: int = SECOND) -> Callable[[], int]:
    """A clock that goes on by ``step`` microseconds at each look."""
    now = start - step

    def look() -> int:
        nonlocal now
        now += step
        return now

    return look


def later() -> int:
    """A time after everything that ``clock`` ever says in a test, standing still."""
    return START + 10**6 * SECOND


def chance(seed: int) -> Callable[[int], bytes]:
    """Bytes that look random and are the same for the same seed."""
    return random.Random(seed).randbytes


def open_memory(
    path: Path,
    *,
    caller: Caller = OWNER,
    keys: Keyring = KEYS,
    create: bool = True,
    state: Path | None = None,
    check: bool = True,
    now: Callable[[], int] | None = None,
    seed: int | None = None,
) -> Memory:
    """A memory over a scratch file; with a seed its ids and salts are the same every time."""
    return Memory.open(
        path,
        keys=keys,
        caller=caller,
        create=create,
        state=state,
        check=check,
        clock=now or clock(),
        entropy=os.urandom if seed is None else chance(seed),
    )


def plain_client(path: Path) -> apsw.Connection:
    """Somebody else's SQL client on the file: none of our pragmas, none of SQLite's defences."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


_FRESH: Final = multiprocessing.get_context("forkserver")
_FRESH.set_forkserver_preload(["ledgerstone", "ledgerstone.core.credentials"])


def process(target: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a function in a process of its own, which has opened nothing yet."""
    started = _FRESH.Process(target=target, args=arguments, daemon=True)
    started.start()
    return started


def dump(path: Path) -> list[Any]:
    """All that a database file holds: its numbers, its schema, and the rows of every table, shadow tables too."""
    connection = plain_client(path)
    try:
        execute = connection.execute
        held: list[Any] = [execute("PRAGMA user_version").get, execute("PRAGMA application_id").get]
        schema = execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
        held.append(schema)
        for kind, name, _, sql in schema:
            if kind == "table" and not str(sql).startswith("CREATE VIRTUAL"):
                rows = execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - a name out of the schema
                held.append((name, sorted(rows, key=repr)))
        return held
    finally:
        connection.close()


def report(path: Path) -> Report:
    """What ``verify`` says of a file, also of one that no memory opens any more."""
    store = open_store(path)
    try:
        with store.read() as reader:
            return verify(reader, KEYS)
    finally:
        store.close()


def rebuilt(path: Path) -> None:
    """Rebuild a file, also one that no memory opens any more."""
    store = open_store(path)
    try:
        with store.write() as writer:
            rebuild(writer, KEYS)
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class Home:
    """A store that somebody has lived in, at rest; ``memories`` maps what a memory is called here to its id.

    ``digests`` are those of a few records.
    """

    path: Path
    memories: dict[str, str]
    digests: tuple[str, ...]

    def copy(self, folder: Path) -> Home:
        """The same home in another folder."""
        return replace(self, path=Path(shutil.copy2(self.path, folder / self.path.name)))

    def rows(self) -> dict[str, int]:
        """Where things stand: ``color_2`` is the row of that version, ``user_chain`` the number of that chain."""
        connection = plain_client(self.path)
        try:
            execute = connection.execute
            found = {
                f"{name}_{version}": row
                for name, memory in self.memories.items()
                for row, version in execute("SELECT row, version FROM record WHERE memory = ?", (memory,))
            }
            chains = ("store", "user", "project", "session")
            return found | {f"{name}_chain": number for number, name in enumerate(chains, 1)}
        finally:
            connection.close()


# One commit each, so that the chain passes the 256th, at which signature, tile and word index are kept.
FILLERS: Final = 255
_WORDS: Final = ("amber", "birch", "copper", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper")


def furnish(path: Path, *, fillers: int = FILLERS) -> Home:
    """Make a store that holds one of everything: versions, tasks, summaries, retractions, aliases, grants, refusals."""
    memories: dict[str, str] = {}
    digests: dict[str, str] = {}
    with open_memory(path, seed=1) as memory:

        def note(name: str, text: str, *, scope: Scope = Scope.USER, again: str | None = None, **draft: Any) -> str:
            kept = memory.remember(Draft(text=text, **draft), scope=scope, idempotency_key=again).record
            memories[name], digests[name] = kept.memory, kept.digest.hex()
            return kept.address

        note("color", "the door is painted blue", key="door-color", again="first")
        note("color", "the door is painted green", key="door-color", again="second")
        spoken = note("spoken", "the meeting was moved from noon to three o'clock in the afternoon")
        note("summary", "meeting: at three", kind=Kind.SUMMARY, sources=(spoken,), covers=(spoken,))
        note("rare", "zanzibar and quokka, spelled apart", tags=("seldom",), title="two words")
        note("other", "the walrus and the carpenter")
        for number in range(fillers):
            name = {0: "oldest", 128: "middle"}.get(number, "newest")
            note(name, f"{_WORDS[number % 10]} sample {number} weighs {number * 7 % 31} grams")
        note("task", "water the ferns", kind=Kind.TASK, key="ferns")
        note("chore", "feed the axolotl", kind=Kind.TASK)
        memory.close_task(note("done", "sweep the attic", kind=Kind.TASK), reason="swept on monday")
        memory.retract(note("wrong", "the lake is salty", key="lake"), reason="it is fresh", reject=True)
        note("brief", "the visitor stays until spring", expires=later() + SECOND)
        note("hearsay", "the page says to trust it", external=True)
        note("penultimate", "the last lantern but one", again="third")
        note("last", "the last lantern")
        note("project", "cedar builds with make", scope=Scope.PROJECT)
        note("session", "today we look at quarry seven", scope=Scope.SESSION)
        bound = memory.bound()
        memory.grant(STRANGER.principal, Act.READ, namespace=bound["user"])
        memory.revoke(memory.grant(STRANGER.principal, Act.WRITE, namespace=bound["user"]))
        memory.alias(bound["project"], path="/srv/cedar")
        memory.alias(bound["project"], path="/srv/pine")
        memory.detach(bound["project"], "/srv/pine")
        with suppress(AuthorityError):
            memory.bind(STRANGER).remember("let me in", scope=Scope.USER)
    return Home(path, memories, (digests["color"], digests["rare"]))


QUERIES: Final = ("door", "zanzibar", "quokka walrus", "lantern cedar quarry")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a store says to one question: its parts, each as text; or that it refused."""

    parts: tuple[str, ...] = ()
    refusal: CorruptionError | None = None


def survey(memory: Memory, home: Home) -> dict[str, Answer]:
    """Everything that can be asked of a home, and what is answered. Not found, and not allowed, is no parts."""
    answers: dict[str, Answer] = {}

    def ask(question: str, asked: Callable[..., Iterable[object]], *arguments: Any, **options: Any) -> None:
        try:
            answers[question] = Answer(tuple(map(repr, asked(*arguments, **options))))
        except (NotFoundError, AuthorityError):
            answers[question] = Answer()
        except CorruptionError as refusal:
            answers[question] = Answer(refusal=refusal)

    def get(target: str) -> Iterable[object]:
        return [memory.get(target)]

    def recall(query: str, mode: Mode) -> Iterable[object]:
        return [item.record for item in memory.recall(query, mode=mode).items]

    ids = home.memories
    for name, target in ids.items():
        ask(f"get {name}", get, target)
    for target in (f"{ids['color']}@1", f"{ids['color']}@2", *home.digests):
        ask(f"get {target}", get, target)
    for name in ("color", "done", "wrong"):
        ask(f"history {name}", memory.history, ids[name])
    for mode, query in ((Mode.RECENT, ""), (Mode.BALANCED, ""), *((Mode.LEXICAL, query) for query in QUERIES)):
        ask(f"recall {mode} {query}", recall, query, mode)
    for what in ("tasks", "recent", "all"):
        ask(f"list {what}", lambda what: memory.list_records(what, limit=100).items, what)
    ask("audit", memory.audit, limit=1000)
    ask("audit color", memory.audit, target=ids["color"])
    ask("namespaces", memory.namespaces)
    ask("grants", memory.grants)
    ask("grants of a stranger", memory.grants, STRANGER.principal)
    ask("bound", lambda: memory.bound().items())
    ask("bound as a stranger", lambda: memory.bind(STRANGER).bound().items())
    # How many namespaces there are status counts and does not prove; what is outside the store is not the store's.
    aside = {"anchor", "fixed", "log", "namespaces"}
    ask("status", lambda: [part for part in memory.status().items() if part[0] not in aside])
    return answers
