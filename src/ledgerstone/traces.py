"""What stayed behind in files: a search for pieces of text, by a process of its own.

A descriptor on the database's files in this process would drop SQLite's locks when it is closed. Run as a program this
module is that process; so it imports nothing of ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

# Shorter texts occur by chance, and everywhere.
LEAST_BYTES: Final = 6
# A long text lies in many pages of a file, so it is looked for in pieces; each page that it filled holds a few.
PIECE_BYTES: Final = 64
STRIDE_BYTES: Final = 1024
# Up to here one search for each piece is faster than one look at each byte.
FEW: Final = 64
_BLOCK: Final = 1 << 20


def pieces_of(text: bytes) -> set[bytes]:
    """What to look for of one text: itself, or pieces of a long one; nothing when it is too short to be told apart."""
    if len(text) < LEAST_BYTES:
        return set()
    starts = {*range(0, max(len(text) - PIECE_BYTES, 0) + 1, STRIDE_BYTES), max(len(text) - PIECE_BYTES, 0)}
    return {text[start : start + PIECE_BYTES] for start in starts}


def look(paths: Iterable[Path], pieces: Sequence[bytes]) -> dict[str, set[int]]:
    """Which of the pieces stand in which files, by number; OSError when that could not be found out."""
    asked = json.dumps([piece.hex() for piece in pieces]).encode() + b"\n"
    command = [sys.executable, "-I", "-S", __file__, *map(str, paths)]
    done = subprocess.run(command, input=asked, capture_output=True, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "the search was stopped")
    return {path: set(found) for path, found in json.loads(done.stdout).items() if found}


def seek(path: Path, pieces: Sequence[bytes]) -> set[int]:
    """Which of the pieces stand in a file; none when it is gone."""
    starts: dict[bytes, list[int]] = {}
    for number, piece in enumerate(pieces):
        starts.setdefault(piece[:LEAST_BYTES], []).append(number)
    longest = max(map(len, pieces), default=1)
    found: set[int] = set()
    tail = b""
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                window = tail + block
                if len(pieces) <= FEW:
                    found.update(number for number, piece in enumerate(pieces) if piece in window)
                else:
                    found.update(_within(window, pieces, starts))
                tail = window[-longest:]
    except FileNotFoundError:
        pass
    return found


def _within(window: bytes, pieces: Sequence[bytes], starts: dict[bytes, list[int]]) -> Iterable[int]:
    for place in range(len(window) - LEAST_BYTES + 1):
        for number in starts.get(window[place : place + LEAST_BYTES], ()):
            if window.startswith(pieces[number], place):
                yield number


def main() -> None:
    """Look through the files that are named, for what standard input lists; answers with one JSON object."""
    pieces = [bytes.fromhex(piece) for piece in json.loads(sys.stdin.readline())]
    sys.stdout.write(json.dumps({path: sorted(seek(Path(path), pieces)) for path in sys.argv[1:]}))


if __name__ == "__main__":
    main()
