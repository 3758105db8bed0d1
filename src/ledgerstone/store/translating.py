"""SQLite's errors as Ledgerstone's."""

from __future__ import annotations

import struct
from typing import Final

import apsw

from ledgerstone.errors import CorruptionError, FormatError, UnavailableError, UsageError
from ledgerstone.store.inspecting import integrity

# What a column of a wrong type trips.
TRIPPED: Final = (TypeError, ValueError, AttributeError, struct.error)


class Translated:
    """A block whose errors of SQLite come out as Ledgerstone's. It holds nothing, so that one serves all."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            _translate(error)


def _translate(error: BaseException) -> None:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            raise UnavailableError(
                f"the store is locked by another process: {error}", hint="nothing was changed; try again"
            ) from error
        case apsw.CorruptError() | apsw.ConstraintError():
            raise CorruptionError(f"the database is damaged: {error}") from error
        case apsw.ConnectionClosedError():
            raise UnavailableError("this store was closed", hint="open it again") from error
        case apsw.NotADBError():
            raise FormatError(f"not a Ledgerstone store: {error}") from error
        case apsw.FullError() | apsw.IOError() | apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            raise UnavailableError(
                f"the store cannot be used: {error}", hint="nothing was changed; see to its disk: ledgerstone doctor"
            ) from error
        case UnicodeEncodeError():
            raise UsageError("text: valid Unicode, without lone surrogates") from error
        case apsw.SQLError() | UnicodeDecodeError():
            raise CorruptionError(f"the database is not as it was made: {error}") from error
        case _:
            pass


TRANSLATED: Final = Translated()


def check_tripped(connection: apsw.Connection, error: Exception) -> None:
    """CorruptionError if SQLite finds any damage that tripped somebody; else it is a fault of this program."""
    damage = integrity(connection)
    if damage:
        raise CorruptionError(f"the database is damaged: {damage[0]}") from error
