"""Files of our own making beside the store: private, whole or not there, and never over another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from ledgerstone.errors import UnavailableError, UsageError

MAX_KEPT: Final = 1000


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A new file that is there whole or not at all: the block writes the draft it is given, an empty file.

    Mode 0600, and durable when the block has ended. Raises UsageError when the target is there already, names no file,
    or one in no folder.
    """
    if not target.name:
        raise UsageError(f"{target} is no file", hint="name a file that is not there")
    draft = beside(target, "draft")
    with suppress(OSError):
        sweep(target, "draft")
    try:
        # The name is taken first, so that nobody's file is replaced in the end.
        make(target)
    except FileExistsError:
        raise UsageError(f"{target} is there already", hint="name a file that is not there") from None
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{target.parent} is no folder", hint="name a file in a folder that is there") from None
    except OSError as error:
        raise UnavailableError(f"{target}: {error.strerror}") from error
    try:
        make(draft)
        yield draft
        sync(draft)
        draft.replace(target)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UnavailableError(f"{target}: {error.strerror}") from error
        raise
    finally:
        draft.unlink(missing_ok=True)
    sync(target.parent)


def beside(target: Path, what: str) -> Path:
    """A name for a file of this process in the folder of another one."""
    return target.with_name(f".{target.name}.{what}-{os.getpid()}")


def left(target: Path, what: str) -> Iterator[Path]:
    """What processes that were killed have left under such names, with the logs beside them."""
    start = f".{target.name}.{what}-"
    for each in target.parent.iterdir() if target.parent.is_dir() else ():
        number = each.name.removeprefix(start).partition("-")[0]
        if each.name.startswith(start) and number.isdigit() and not _lives(int(number)):
            yield each


def sweep(target: Path, what: str) -> None:
    """Remove what killed processes have ``left``."""
    for each in left(target, what):
        each.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # It is somebody else's.
        return True
    return True


def sync(path: Path) -> None:
    """Make a file or a folder durable; where a file system cannot do so with folders, nothing is done."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError) if path.is_dir() else nullcontext():
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make(path: Path) -> None:
    """A new empty file, mode 0600; FileExistsError when there is one."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def appear(draft: Path, path: Path) -> None:
    """Give a finished file its name, unless there is one of that name by now."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise UnavailableError(f"{path} was made meanwhile", hint="nothing was changed; look at it first") from None
    except OSError:  # A file system without hard links.
        draft.rename(path)
    else:
        draft.unlink()
    sync(path.parent)


def keep(path: Path, word: str) -> Path:
    """A second name for a file, ``NAME.word-1`` or the next that is free; without hard links its only one."""
    for number in range(1, MAX_KEPT + 1):
        kept = path.with_name(f"{path.name}.{word}-{number}")
        try:
            os.link(path, kept)
        except FileExistsError:
            continue
        except OSError:
            if kept.exists():
                continue
            path.rename(kept)
        return kept
    raise UnavailableError(f"{path}: {MAX_KEPT} files are kept beside it already", hint="remove some of them")
