"""``python -m bench.conversation FILE``: put a real conversation in through MCP, and recall from it.

The server is the real one, a process that is started anew before anything is recalled; the client is the official
one. A turn is a line of JSON: ``{"speaker": ..., "text": ..., "time": ...}``. See docs/conversation.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

MAX_IDS: Final = 32
COMMAND: Final = (sys.executable, "-m", "ledgerstone")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, as it is remembered."""

    speaker: str
    text: str
    time: str

    @property
    def memory(self) -> str:
        """What goes in: who said it and when stand before the words, since both are asked about."""
        return f"[{self.time}] {self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the turns (from 0) any of which answers it."""

    text: str
    turns: frozenset[int]


def main(arguments: Sequence[str]) -> None:
    """Load a conversation into a scratch store and print what it took and what was found again."""
    parser = argparse.ArgumentParser(prog="python -m bench.conversation", description=__doc__)
    parser.add_argument("turns", type=Path, help='lines of {"speaker", "text", "time"}')
    parser.add_argument("--questions", type=Path, help='lines of {"question", "turns": [0, ...]}')
    parser.add_argument("--spots", type=int, default=50, help="turns asked for by their own rarest words")
    asked = parser.parse_args(arguments)
    turns = [Turn(line["speaker"], line["text"], line.get("time", "")) for line in _lines(asked.turns)]
    questions = []
    if asked.questions is not None:
        questions = [Question(line["question"], frozenset(line["turns"])) for line in _lines(asked.questions)]
    with tempfile.TemporaryDirectory(prefix="ledgerstone-conversation-") as scratch:
        here = _settle_in(Path(scratch))
        anyio.run(partial(converse, here, turns, questions, spots=asked.spots))
        print(f"verify: {here.run('verify')}")


@dataclass(frozen=True, slots=True)
class Here:
    """A store and a project that nobody else uses."""

    place: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> str:
        """What the command line says, in its first line."""
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=self.place, env=self.environment, capture_output=True, text=True, check=True
        )
        return (done.stdout or done.stderr).partition("\n")[0]


async def converse(here: Here, turns: Sequence[Turn], questions: Sequence[Question], *, spots: int) -> None:
    """Remember every turn, then ask a new server process for all of them, for some and for answers."""
    async with _server(here) as client:
        addresses = await _remember(client, turns)
    async with _server(here) as client:
        await _get(client, turns, addresses)
        await _find(client, turns, addresses, spots)
        await _answer(client, addresses, questions)


async def _remember(client: Client, turns: Sequence[Turn]) -> list[str]:
    """Every turn in its order, one call each; the idempotency key lets a broken run be repeated."""
    addresses, took = [], []
    start = time.perf_counter()
    for number, turn in enumerate(turns):
        before = time.perf_counter()
        answer = await call(client, "remember", memory=turn.memory, kind="episode", idempotency_key=f"turn {number}")
        took.append(time.perf_counter() - before)
        addresses.append(answer["address"])
    size = sum(len(turn.memory.encode()) for turn in turns)
    spent = time.perf_counter() - start
    print(f"remembered: {len(turns)} turns, {size} bytes, in {spent:.1f} s ({_median(took)} a turn)")
    return addresses


async def _get(client: Client, turns: Sequence[Turn], addresses: Sequence[str]) -> None:
    """Every turn comes back as it went in."""
    texts: dict[str, str] = {}
    for first in range(0, len(addresses), MAX_IDS):
        wanted = list(addresses[first : first + MAX_IDS])
        while wanted:
            answer = await call(client, "get", ids=wanted)
            texts |= {record["address"]: record["text"] for record in answer["records"]}
            wanted = answer.get("later", [])
    same = sum(texts[address] == turn.memory for address, turn in zip(addresses, turns, strict=True))
    print(f"got again after a restart: {same} of {len(turns)} exactly")
    assert same == len(turns)


async def _find(client: Client, turns: Sequence[Turn], addresses: Sequence[str], spots: int) -> None:
    """Turns from all over the conversation, asked for by their own longest words, within the default budget."""
    took, found = [], 0
    asked = range(0, len(turns), max(1, len(turns) // max(spots, 1)))
    for number in asked:
        words = sorted(set(turns[number].text.split()), key=lambda word: (-len(word), word))[:6]
        before = time.perf_counter()
        answer = await call(client, "recall", query=" ".join(words))
        took.append(time.perf_counter() - before)
        found += addresses[number] in {item["id"] for item in answer["items"]}
    print(f"recalled by their own words: {found} of {len(asked)} turns ({_median(took)} a recall)")


async def _answer(client: Client, addresses: Sequence[str], questions: Sequence[Question]) -> None:
    """For each question, whether a turn that answers it is in the recalled context."""
    if not questions:
        return
    number_of = {address: number for number, address in enumerate(addresses)}
    found = every = items = 0
    for question in questions:
        answer = await call(client, "recall", query=question.text)
        there = {number_of[item["id"]] for item in answer["items"]}
        found += bool(there & question.turns)
        every += question.turns <= there
        items += len(there)
    print(
        f"answers: {found} of {len(questions)} contexts hold a turn that answers, {every} hold all of them "
        f"({items / len(questions):.1f} turns a context)"
    )


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """One tool's structured answer; an error ends the run with its words."""
    result = await client.call_tool(f"memory_{tool}", arguments)
    answer: dict[str, Any] = result.structured_content or {}
    if result.is_error:
        sys.exit(f"{tool}: {answer.get('message')}\n{answer.get('hint')}")
    return answer


@asynccontextmanager
async def _server(here: Here) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=here.environment, cwd=str(here.place)
    )
    async with Client(stdio_client(parameters)) as client:
        yield client


def _settle_in(scratch: Path) -> Here:
    place = scratch / "project"
    place.mkdir()
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        "LEDGERSTONE_HOME": str(scratch / "ledgerstone"),
    }
    here = Here(place, environment)
    here.run("init")
    here.run("namespaces", "use", "--new")
    return here


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file if line.strip()]


def _median(seconds: Sequence[float]) -> str:
    return f"median {statistics.median(seconds) * 1000:.1f} ms" if seconds else "none"


if __name__ == "__main__":
    main(sys.argv[1:])
