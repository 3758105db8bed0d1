"""A state directory that fails on demand: whatever Python does with the files below a folder."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from tests.store.faults import Fault, Faults

# What is overwritten in place, at the beginning of its file: less than a sector, which no disk writes in part.
_LINES: Final = ("/fence", "/heads/")
LINE: Final = "state line"
# What can fail, as Faults names it, and the functions that do it; a write of a line goes by a name of its own.
OPERATIONS: Final[dict[str, tuple[str, ...]]] = {
    LINE: (),
    "state write": ("write", "pwrite", "truncate", "ftruncate"),
    "state sync": ("fsync", "fdatasync"),
    "state rename": ("replace", "rename", "link"),
    "state open": ("open", "mkdir"),
}


@contextmanager
def failing(faults: Faults, folder: Path) -> Iterator[None]:
    """Let operations on the files below a folder go through here."""
    names: dict[int, str] = {}
    genuine_open, genuine_io_open, genuine_close = os.open, io.open, os.close

    def spoil(operation: str, target: Any, work: Callable[..., Any], *given: Any) -> None:
        name = names.get(target, "") if isinstance(target, int) else str(target)
        if operation == "state write" and any(line in name for line in _LINES):
            operation = LINE
        if not name.startswith(str(folder)) or not faults.strikes(operation, name):
            return
        if faults.fault in {Fault.TORN, Fault.HALF} and isinstance(given[0], bytes):
            work(target, given[0][: len(given[0]) // 2], *given[1:])
        faults.die()
        code = errno.ENOSPC if faults.fault is Fault.FULL else errno.EIO
        raise OSError(code, os.strerror(code), name)

    def spoiled(operation: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(target: Any, *given: Any, **named: Any) -> Any:
            spoil(operation, target, work, *given)
            return work(target, *given, **named)

        return done

    def opened(path: Any, *given: Any, **named: Any) -> int:
        spoil("state open", path, genuine_open)
        descriptor = genuine_open(path, *given, **named)
        names[descriptor] = str(path)
        return descriptor

    def closed(descriptor: int) -> None:
        names.pop(descriptor, None)
        genuine_close(descriptor)

    with ExitStack() as stack:
        for operation, functions in OPERATIONS.items():
            for name in functions:
                stack.enter_context(mock.patch.object(os, name, spoiled(operation, getattr(os, name))))
        stack.enter_context(mock.patch.object(os, "open", opened))
        stack.enter_context(mock.patch.object(os, "close", closed))
        # What Path opens; its reading and writing is not looked into.
        stack.enter_context(mock.patch.object(io, "open", spoiled("state open", genuine_io_open)))
        yield
