"""Starting: what a command, a recall at the command line and the MCP server's first answer take, process and all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

from bench.children import spent, talk
from bench.figures import MS, Figure, Scale
from bench.workload import BATCH, notes, queries
from ledgerstone.entrypoints import host

PROGRAM: Final = str(Path(sys.executable).with_name("ledgerstone"))
# What a recall cannot do without: the libraries that it stands on, and no more of them than it needs.
BARE: Final = "import apsw, click, orjson, platformdirs, Stemmer, cryptography.hazmat.primitives.asymmetric.ed25519"
BARE_SERVER: Final = "from mcp.server.mcpserver import MCPServer; MCPServer('bare').run('stdio')"
SIZE: Final = 1_000


def starting(scale: Scale, folder: Path) -> Iterator[Figure]:
    """CPU time of programs from start to end, started in turns."""
    home = folder / "home"
    place = home / "project"
    place.mkdir(parents=True)
    environ = {"PATH": os.defpath, "HOME": str(home), "LEDGERSTONE_HOME": str(home / "ledgerstone")}
    # The programs are those of the tree that is measured.
    environ |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    # With the words alone, as the base install has it; NumPy may be there for other things.
    environ["LEDGERSTONE_SEMANTIC"] = "none"
    settings = host.settle(environ=environ, cwd=place)
    with host.open_memory(settings, host.caller(settings, door="cli", terminal=True), create=True) as memory:
        memory.use_project()
        made = islice(notes(), SIZE)
        while drafts := list(islice(made, BATCH)):
            memory.remember_many(drafts)
    run = partial(spent, cwd=place, environ=environ)
    serve = partial(talk, cwd=place, environ=environ)
    python, version, bare, recall, meaning, server, theirs = [], [], [], [], [], [], []
    looking = environ | {"LEDGERSTONE_SEMANTIC": "auto"}
    spent([PROGRAM, "index"], cwd=place, environ=looking)
    for words in queries(SIZE, count=scale.starts):
        python.append(run([sys.executable, "-c", ""]))
        version.append(run([PROGRAM, "--version"]))
        bare.append(run([sys.executable, "-c", BARE]))
        recall.append(run([PROGRAM, "recall", words]))
        meaning.append(spent([PROGRAM, "recall", words], cwd=place, environ=looking))
        theirs.append(serve([sys.executable, "-c", BARE_SERVER]))
        server.append(serve([PROGRAM, "mcp"]))
    yield Figure("starting", "a Python that does nothing", median(python) * MS, "ms")
    yield Figure("starting", "`ledgerstone --version`", median(version) * MS, "ms", "at most 150")
    yield Figure("starting", f"`ledgerstone recall` among {SIZE:,} notes", median(recall) * MS, "ms")
    beyond = median(ours - least for ours, least in zip(recall, bare, strict=True))
    yield Figure("starting", "the same without importing the libraries below it", beyond * MS, "ms", "at most 150")
    yield Figure("starting", "`ledgerstone recall` likewise, by meaning too", median(meaning) * MS, "ms")
    yield Figure(
        "starting", "a bare server of the same SDK, to its first answer and its end", median(theirs) * MS, "ms"
    )
    yield Figure("starting", "`ledgerstone mcp`, likewise", median(server) * MS, "ms")
    ratio = median(ours / least for ours, least in zip(server, theirs, strict=True))
    yield Figure("starting", "`ledgerstone mcp` to the bare server", ratio, "times", "at most 1.2")
