"""A place of somebody's own, and a talk with the server that works there, as plain calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import jsonschema
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from ledgerstone.entrypoints import host, mcp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anyio.from_thread import BlockingPortal
    from mcp_types import CallToolResult, Tool

    from ledgerstone import Memory

LEGACY: Final = "legacy"
MODERN: Final = "auto"
ERAS: Final = (LEGACY, MODERN)
SERVER: Final = ("-m", "ledgerstone", "mcp")
SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Home:
    """What a host surrounds the server with: an environment of its own, and the directory it stands in."""

    root: Path
    place: Path
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of whoever runs the tests, except where programs are and how they are measured."""
        return {
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.root),
            "LEDGERSTONE_HOME": str(self.root / "ledgerstone"),
            **dict(self.variables),
        }

    def settings(self) -> host.Settings:
        """What the host decides here."""
        return host.settle(environ=self.environment, cwd=self.place)

    def at(self, name: str) -> Home:
        """The same store, seen from another directory, which no project was made for."""
        place = self.root / name
        place.mkdir(exist_ok=True)
        return replace(self, place=place)

    def under(self, **variables: str) -> Home:
        """The same place with more variables."""
        return replace(self, variables=(*self.variables, *variables.items()))

    def owner(self, *, create: bool = False) -> Memory:
        """The store as the user has it at a terminal."""
        settings = self.settings()
        return host.open_memory(settings, host.caller(settings, door="cli", terminal=True), create=create)

    def settle_in(self) -> Home:
        """Make the store if there is none, and a project of this place."""
        with self.owner(create=True) as memory:
            memory.use_project()
        return self


@dataclass(frozen=True, slots=True)
class Talk:
    """A client's talk with a server."""

    portal: BlockingPortal
    client: Client
    tools: Mapping[str, Tool]

    def send(self, tool: str, meta: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> CallToolResult:
        """One call: its two shapes are the same compact JSON, and keep to the tool's schema, errors too."""
        call = partial(self.client.call_tool, tool, dict(arguments), meta=None if meta is None else dict(meta))  # type: ignore[arg-type]
        result = self.portal.call(call)
        text = getattr(result.content[0], "text", "")
        assert text == json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
        assert len(text.encode()) <= mcp.MAX_ANSWER_BYTES
        if tool in self.tools:
            schema = self.tools[tool].output_schema
            jsonschema.validate(result.structured_content, schema or False)
        return result

    def __call__(self, tool: str, /, *, meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """The answer of ``memory_<tool>``."""
        result = self.send(f"memory_{tool}", meta, arguments)
        assert not result.is_error, result.structured_content
        return answer_of(result)

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error with which ``memory_<tool>`` refuses."""
        result = self.send(f"memory_{tool}", None, arguments)
        assert result.is_error, result.structured_content
        return answer_of(result)

    def text(self, address: str) -> Any:
        """The text at an address."""
        return self("get", ids=[address])["records"][0]["text"]


def answer_of(result: CallToolResult) -> dict[str, Any]:
    """The structured answer of a call."""
    answer: dict[str, Any] = result.structured_content or {}
    return answer


@contextmanager
def _talk(client: Client) -> Iterator[Talk]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        listed = portal.call(client.list_tools)
        yield Talk(portal, client, {tool.name: tool for tool in listed.tools})


@contextmanager
def in_memory(home: Home, era: str = LEGACY) -> Iterator[Talk]:
    """Talk to a server in this process."""
    with _talk(Client(mcp.build(home.settings), mode=era)) as talk:
        yield talk


@contextmanager
def over_stdio(home: Home, era: str = MODERN, *, server: tuple[str, ...] = SERVER) -> Iterator[Talk]:
    """Talk to the real server, a process of its own; what it logs is in ``log`` at the root."""
    parameters = StdioServerParameters(
        command=sys.executable, args=list(server), env=home.environment, cwd=str(home.place)
    )
    with (home.root / "log").open("w") as log, _talk(Client(stdio_client(parameters, log), mode=era)) as talk:
        yield talk


class Pipe:
    """Bare lines to and from the real server, for what no client would say."""

    def __init__(self, home: Home) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *SERVER],
            cwd=home.place,
            env=home.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=SECONDS)
        assert self._process.returncode == 0

    def say(self, line: bytes | dict[str, Any]) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self._process.stdin.write(data + b"\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next line."""
        assert self._process.stdout is not None
        heard: dict[str, Any] = json.loads(self._process.stdout.readline())
        return heard

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        """The answer to a line."""
        self.say(line)
        return self.hear()

    def greet(self, version: str) -> dict[str, Any]:
        """Open a connection of the older era; what the server says of itself."""
        parameters = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "bare", "version": "1"},
        }
        answer = self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call as it stands on the wire."""
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": f"memory_{tool}", "arguments": arguments},
    }
