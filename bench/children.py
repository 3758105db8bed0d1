"""Programs that a benchmark starts: what each takes in CPU time, and at most in memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time

from bench.workload import filled, opened, queries

ROOT = Path(__file__).parent.parent
IMPORT = 256
GREETING = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}\n'
)


def peak(verb: str, path: Path, size: int) -> tuple[float, float]:
    """The CPU seconds of one verb in a process of its own, and its peak resident size in MB."""
    command = [sys.executable, "-m", "bench.children", verb, str(path), str(size)]
    seconds, resident = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    return seconds, resident


def spent(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> float:
    """The CPU seconds of a program from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def talk(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> float:
    """The CPU seconds of an MCP server that is greeted, answers, and is let go."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd, env=environ
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(GREETING)
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        server.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _resident() -> float:
    """The peak resident size of this process in MB; what the parent had before the start does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1e6 if sys.platform == "darwin" else size * 1024 / 1e6


def main(verb: str, where: str, size: str) -> None:
    """Do one verb, and print its CPU seconds and its peak resident size."""
    path = Path(where)
    asked = queries(int(size)) if verb == "recall" else []
    begin = process_time()
    if verb == "fill":
        filled(path, int(size), batch=IMPORT)
    else:
        with opened(path) as memory:
            if verb == "verify":
                assert not memory.verify(full=True).findings
            for words in asked:
                memory.recall(words)
    print(json.dumps((process_time() - begin, _resident())))


if __name__ == "__main__":
    main(*sys.argv[1:])
