"""Calls every tool of the real MCP server with somebody else's client, the MCP Inspector (see package.json).

Exits non-zero when a tool is missing or unknown here, when a schema would not travel, when an answer is not
the expected one, or when the server lets an unknown argument pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
NODE_PACKAGES = ROOT / ".interop" / "node_modules" / ".bin"
LEDGERSTONE = Path(sys.executable).parent / "ledgerstone"
SECONDS = 120
TOOL_SAID_NO = 5  # the Inspector's exit code for an answer with isError

TEXT = "Cafe\u0301, a line\r\nand another \u200b\tkept as given  "
TASK = "Water the cedar on Friday"

# In this order, since each needs what came before; {note} and {task} are the addresses that remember gave.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_remember", {"memory": TEXT, "scope": "project"}),
    ("memory_remember", {"memory": TASK, "kind": "task", "due": "2027-01-01"}),
    ("memory_recall", {"query": "line kept as given"}),
    ("memory_get", {"ids": ["{note}", "{task}"]}),
    ("memory_list", {"what": "tasks"}),
    ("memory_close", {"id": "{task}", "reason": "watered"}),
    ("memory_retract", {"id": "{note}", "reason": "only a trial"}),
]


class InteropError(Exception):
    """What this run found wrong, in a sentence."""


def main() -> None:
    """Make a store in a scratch directory, look at the tools, call each of them, and say what was called."""
    with tempfile.TemporaryDirectory(prefix="ledgerstone-interop-") as scratch:
        environment = surroundings(Path(scratch))
        try:
            prepare(environment)
            look_at_tools(environment)
            call_tools(environment)
        except InteropError as error:
            sys.exit(f"interop: {error}")
    print(f"interop: {len(CALLS)} calls answered, and one refused as it should be")


def surroundings(scratch: Path) -> dict[str, str]:
    """An environment in which nothing of the person at the keyboard is found or touched."""
    for name in ("home", "project"):
        (scratch / name).mkdir()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch / "home"),
        "PWD": str(scratch / "project"),
        "LEDGERSTONE_HOME": str(scratch / "ledgerstone"),
        "LEDGERSTONE_STORE": str(scratch / "ledgerstone" / "store.db"),
    }


def prepare(environment: dict[str, str]) -> None:
    """A store with a project bound to the scratch directory, as the hints of the command line advise."""
    for arguments in (["init"], ["namespaces", "use", "--new"]):
        done = run([str(LEDGERSTONE), *arguments], environment)
        if done.returncode:
            raise InteropError(f"ledgerstone {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")


def look_at_tools(environment: dict[str, str]) -> None:
    """The server offers exactly the tools called here, in schemas that every client can read."""
    answer = inspect(environment, "--method", "tools/list", "--strict")

    offered = sorted(tool["name"] for tool in answer["result"]["tools"])
    called = sorted({name for name, _ in CALLS})
    if offered != called:
        raise InteropError(f"the server offers {offered}, and this run calls {called}")


def call_tools(environment: dict[str, str]) -> None:
    """Each call is answered, the text comes back exactly, and an argument nobody knows is refused."""
    addresses: dict[str, str] = {}
    for tool, template in CALLS:
        arguments = {name: fill(value, addresses) for name, value in template.items()}
        result = call(environment, tool, arguments)["result"]
        seen = json.dumps(result["structuredContent"], ensure_ascii=False)
        if tool == "memory_remember":
            addresses["task" if "kind" in arguments else "note"] = address_in(seen)
        if tool == "memory_get" and json.dumps(TEXT, ensure_ascii=False) not in seen:
            raise InteropError(f"memory_get: the text did not come back as it was given: {seen}")
        if tool in ("memory_recall", "memory_list") and TASK not in seen:
            raise InteropError(f"{tool}: the open task is missing: {seen}")

    call(environment, "memory_list", {"principal": "root"}, expect=TOOL_SAID_NO)


def fill(value: object, addresses: dict[str, str]) -> object:
    """A value with the addresses put in for their names."""
    if isinstance(value, list):
        return [fill(member, addresses) for member in value]
    return value.format(**addresses) if value in ("{note}", "{task}") else value


def address_in(answer: str) -> str:
    """The first address of a record in an answer."""
    found = re.search(r"mem_[0-9a-z]{16}@\d+", answer)
    if found is None:
        raise InteropError(f"no address in the answer: {answer}")
    return found[0]


def call(environment: dict[str, str], tool: str, arguments: dict[str, object], *, expect: int = 0) -> dict[str, Any]:
    """The Inspector's answer to one call, which it says aloud first."""
    given = json.dumps(arguments, ensure_ascii=False)
    print(f"{tool} {given}", flush=True)
    return inspect(environment, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", given, expect=expect)


def inspect(environment: dict[str, str], *arguments: str, expect: int = 0) -> dict[str, Any]:
    """One run of the Inspector against a server of its own; it passes on only the variables it is told to."""
    command = [str(NODE_PACKAGES / "node"), str(NODE_PACKAGES / "mcp-inspector"), "--cli"]
    command += [str(LEDGERSTONE), "mcp", "--cwd", environment["PWD"]]
    for name in ("LEDGERSTONE_HOME", "LEDGERSTONE_STORE"):
        command += ["-e", f"{name}={environment[name]}"]

    done = run([*command, *arguments, "--format", "json", "-q"], environment)

    if done.returncode != expect:
        raise InteropError(f"{' '.join(arguments)}: exit {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One program, in the scratch project, with nothing on its standard input."""
    return subprocess.run(
        command,
        cwd=environment["PWD"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


if __name__ == "__main__":
    main()
