"""One storage boundary, native backends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ledgerstone.store.protocol import Reader, Store


def open_store(
    location: str | Path, *, create: bool = False, read_only: bool = False, watched: bool = True, check: bool = True
) -> Store:
    """Open the store at a location with the backend that serves it: a path is a SQLite file.

    ``watched`` says that somebody wants to know how its own writes left its files. Without ``check`` also one whose
    schema is not its own; what it is then is asked of its readers.
    """
    # Imported here: another backend's driver is never loaded for nothing.
    from ledgerstone.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(Path(location), create=create, read_only=read_only, watched=watched, check=check)


def copy_store(location: Path, target: Path) -> None:
    """Copy the file of a store as of one moment, whatever its schema, into an empty file; nothing of it is changed."""
    from ledgerstone.store.sqlite import copy_file  # noqa: PLC0415 - as above

    copy_file(location, target)


def alone(location: Path) -> AbstractContextManager[Reader | None]:
    """Hold a store's file so that nobody else has it open, with no log beside it, as long as the block runs.

    Gives a reader of it, or None where the file is damaged past reading. UnavailableError when it is in use.
    """
    from ledgerstone.store.sqlite import hold_file  # noqa: PLC0415 - as above

    return hold_file(location)
