"""One storage boundary, native backends."""

from __future__ import annotations

from pathlib import Path

from ledgerstone.store.protocol import Store


def open_store(location: str | Path, *, create: bool = False) -> Store:
    """Open the store at a location with the backend that serves it: a path is a SQLite file."""
    # Imported here: another backend's driver is never loaded for nothing.
    from ledgerstone.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(Path(location), create=create)
