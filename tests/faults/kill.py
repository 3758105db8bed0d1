"""Writers killed in the middle of their work: ``python -m tests.faults.kill`` says how many, and what was lost."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from ledgerstone import Memory, Scope
from tests.stores import open_memory, process

WRITERS: Final = 3
# How long a writer lives after it was started, in seconds: from dead on arrival to a hundred commits.
LIFE: Final = 0.02, 0.4


@dataclass(slots=True)
class Figures:
    """What came of it. ``unheard`` were durable, but their writer died before it could say so."""

    rounds: int = 0
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    altered: int = 0
    doubled: int = 0
    unheard: int = 0
    findings: int = 0


def write(path: Path, name: str, channel: Connection) -> None:
    """Remember one thing after another, and say of each that it was acknowledged, until killed."""
    with open_memory(path) as memory:
        for number in range(1 << 30):
            text = f"{name} said {number}"
            kept = memory.remember(text, scope=Scope.USER, idempotency_key=text)
            # Short enough that a pipe takes all of it or none, also from a writer that dies.
            os.write(channel.fileno(), f"{kept.record.address} {text}\n".encode())


def kill_writers(path: Path, *, acknowledged: int = 0, seconds: float = 0.0, seed: int = 1) -> Figures:
    """Start and kill writers until so much was acknowledged and so much time has passed; then compare."""
    chance = random.Random(seed)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    os.set_blocking(receiver.fileno(), False)
    figures = Figures()
    heard: dict[str, str] = {}
    end = time.monotonic() + seconds
    while len(heard) < acknowledged or time.monotonic() < end:
        names = [f"writer {figures.rounds}.{number}" for number in range(WRITERS)]
        writers = [process(write, path, name, sender) for name in names]
        for writer in chance.sample(writers, WRITERS):
            time.sleep(chance.uniform(*LIFE))
            writer.kill()
            figures.kills += 1
        for writer in writers:
            writer.join()
            assert writer.exitcode == -9, "killed, and not gone of itself"
        heard |= listen(receiver)
        figures.rounds += 1
    figures.acknowledged = len(heard)
    with open_memory(path) as memory:
        compare(memory, heard, figures)
    return figures


def listen(receiver: Connection) -> dict[str, str]:
    """What was acknowledged since: addresses with their texts."""
    data = b""
    while True:
        try:
            data += os.read(receiver.fileno(), 1 << 16)
        except BlockingIOError:
            break
    lines = (line.decode().split(" ", 1) for line in data.splitlines())
    return dict(lines)


def compare(memory: Memory, heard: dict[str, str], figures: Figures) -> None:
    """What is in the store against what was acknowledged."""
    there: dict[str, str | None] = {}
    cursor = None
    while True:
        page = memory.list_records("all", cursor=cursor, limit=100)
        there |= {record.address: record.text for record in page.items}
        cursor = page.cursor
        if cursor is None:
            break
    figures.lost = len(heard.keys() - there.keys())
    figures.altered = sum(there[address] != text for address, text in heard.items() if address in there)
    figures.doubled = len(there) - len(set(there.values()))
    figures.unheard = len(there.keys() - heard.keys())
    figures.findings = len(memory.verify().findings)


def main() -> None:
    """Say the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acknowledged", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = kill_writers(Path(folder) / "store.db", acknowledged=given.acknowledged, seed=given.seed)
    print(figures)


if __name__ == "__main__":
    main()
