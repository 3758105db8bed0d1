"""The demo: the official MCP client against the real server and the real command line, in a home of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import click
from mcp import Client, Implementation, StdioServerParameters

from ledgerstone.entrypoints.frame import Door
from ledgerstone.entrypoints.shown import MARGIN, dim, one_line
from ledgerstone.errors import LedgerstoneError

PROGRAM: Final = (sys.executable, "-m", "ledgerstone")
SECONDS: Final = 60
CORRUPT: Final = 4
BUDGET: Final = 1024

EXACT: Final = "Caf\u00e9 or Cafe\u0301: two spellings,\r\n\ta zero\u200bwidth space, an otter \U0001f9a6, two blanks  "
FIRST: Final = "Deploys go out on Tuesdays."
BETTER: Final = "Deploys go out on Wednesdays, after the freeze."
TASK: Final = "Renew the certificate before the deploy"
WRONG: Final = "The staging server is in Basel."

Call = tuple[str, dict[str, Any]]


class DemoError(LedgerstoneError):
    """What the demo shows did not happen."""

    code = "demo"


@dataclass
class _Story:
    """The steps as they are told, on standard output unless one object is wanted at the end."""

    door: Door
    steps: list[dict[str, Any]] = field(default_factory=list)

    def tell(self, what: str, *details: str) -> None:
        """One step: what was done, and what came of it."""
        self.steps.append({"step": len(self.steps) + 1, "what": what, "details": list(details)})
        if not self.door.json:
            click.echo(f"{dim(f'{len(self.steps):2}')}  {click.style(what, bold=True)}")
            for detail in details:
                click.echo(f"{MARGIN}{dim(one_line(detail))}")


@dataclass(frozen=True)
class _Home:
    """A scratch directory with a project, and nothing of whoever runs this around it."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def store(self) -> Path:
        return self.root / "ledgerstone" / "data" / "ledgerstone.db"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.root),
            "LEDGERSTONE_HOME": str(self.root / "ledgerstone"),
        }

    def run(self, *arguments: str, expect: int = 0) -> Any:
        """The JSON that one run of the command line gives: its answer, or the error where one is expected."""
        done = subprocess.run(  # noqa: S603 - our own program with arguments of ours
            [*PROGRAM, *arguments, "--json"],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        _hold(done.returncode == expect, f"ledgerstone {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout or done.stderr)

    def talk(self, *calls: Call) -> tuple[list[str], list[Any]]:
        """Start a server, call its tools in turn and stop it; gives the tools' names and the answers."""
        return anyio.run(self._talk, calls)

    async def _talk(self, calls: Sequence[Call]) -> tuple[list[str], list[Any]]:
        server = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "mcp"], env=self.environment, cwd=self.project
        )
        me = Implementation(name="ledgerstone-demo", version="1")
        answers: list[Any] = []
        async with Client(server, client_info=me, read_timeout_seconds=SECONDS) as client:
            tools = sorted(tool.name for tool in (await client.list_tools()).tools)
            for name, arguments in calls:
                answers.append((await client.call_tool(name, arguments)).structured_content)
        return tools, answers


def run(door: Door) -> None:
    """Tell the story; raises DemoError when anything in it does not hold. Leaves nothing behind."""
    story = _Story(door)
    with tempfile.TemporaryDirectory(prefix="ledgerstone-demo-") as scratch:
        home = _Home(Path(os.path.realpath(scratch)))
        home.project.mkdir()
        exact, wrong = _remember(home, story)
        _recall(home, story, exact, wrong)
        _prove(home, story, exact)
    _hold(not Path(scratch).exists(), f"{scratch} is still there")
    story.tell("The scratch home is gone.", "Nothing is left behind.")
    door.answer({"ok": True, "steps": story.steps}, "")


def _remember(home: _Home, story: _Story) -> tuple[str, str]:
    made = home.run("init")
    project = home.run("namespaces", "use", "--new")["namespace"]
    story.tell("A store and its key, in a scratch home.", f"signed by {made['key']}, project {project}")

    tools, (exact, first, task, wrong) = home.talk(
        ("memory_remember", {"memory": EXACT}),
        ("memory_remember", {"memory": FIRST, "key": "deploy-day"}),
        ("memory_remember", {"memory": TASK, "kind": "task"}),
        ("memory_remember", {"memory": WRONG}),
    )
    story.tell("An MCP client starts the server and sees its tools.", ", ".join(tools))
    story.tell("It remembers an awkward text.", EXACT, f"{exact['address']} {exact['digest'][:16]}…")
    story.tell(
        "And three more: one under a key, one an open task.", *(each["address"] for each in (first, task, wrong))
    )
    story.tell("The server is stopped, and another one started.", "what follows comes from another process")
    return exact["address"], wrong["address"]


def _recall(home: _Home, story: _Story, exact: str, wrong: str) -> None:
    _, (got, moved, found, withdrawn, after) = home.talk(
        ("memory_get", {"ids": [exact]}),
        ("memory_remember", {"memory": BETTER, "key": "deploy-day"}),
        ("memory_recall", {"query": "when is the next deploy?", "max_bytes": BUDGET}),
        ("memory_retract", {"id": wrong, "reason": "it is in Bern"}),
        ("memory_recall", {"query": "where is staging?"}),
    )
    record = got["records"][0]
    _hold(record["text"] == EXACT, f"the text came back as {record['text']!r}")
    story.tell(
        "The awkward text comes back, code point for code point.",
        f"{len(EXACT)} code points, {record['text_bytes']} bytes, equal; said by {record['origin']}, {record['trust']}",
    )
    _hold(moved["replaced"]["text"] == FIRST, "the new version does not follow the old one")
    story.tell("A key written again corrects without overwriting.", f"was: {FIRST}", f"now: {BETTER}")
    texts = [item["text"] for item in found["items"]]
    size = len(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode())
    _hold(TASK in texts and BETTER in texts and FIRST not in texts, f"recall gave {texts}")
    _hold(size <= BUDGET, f"recall gave {size} bytes of {BUDGET}")
    story.tell(
        f"A recall within {BUDGET} bytes: the open task, and what is current.",
        *(f"{item['kind']}: {item['text'].splitlines()[0]}" for item in found["items"]),
        f"{size} bytes",
    )
    _hold(withdrawn["status"] == "retracted" and WRONG not in [item["text"] for item in after["items"]], "still there")
    story.tell("What is wrong is withdrawn: recall forgets it, history keeps it.", WRONG)


def _prove(home: _Home, story: _Story, address: str) -> None:
    report = home.run("verify")
    _hold(report["ok"], "verify found a fault")
    events = home.run("audit")["events"]
    story.tell(
        "All of it is replayed and verified.",
        f"{report['commits']} commits, {report['entries']} entries, no fault; {len(events)} events in the audit trail",
    )

    copy = home.root / "copy.db"
    shutil.copy(home.store, copy)
    data = bytearray(copy.read_bytes())
    place = data.index(b"two spellings")
    data[place] ^= 1
    copy.write_bytes(data)
    damaged = home.run("--store", str(copy), "verify", expect=CORRUPT)
    refused = home.run("--store", str(copy), "get", address, expect=CORRUPT)
    _hold(not damaged["ok"] and refused["code"] == "corruption", "the flipped byte was not noticed")
    story.tell(
        "One bit is flipped in a copy of the store. It is noticed, and refused.",
        f"byte {place}: {chr(data[place] ^ 1)!r} became {chr(data[place])!r}",
        f"verify: {damaged['findings'][0]['message']}",
        f"get: {refused['message']}",
    )
    _hold(home.run("verify")["ok"], "the store itself was damaged")
    story.tell("The store itself still verifies.")


def _hold(condition: bool, message: str) -> None:  # noqa: FBT001 - as an assertion takes it
    if not condition:
        raise DemoError(f"the demo did not hold: {message}")
