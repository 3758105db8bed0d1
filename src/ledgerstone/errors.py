"""The errors that Ledgerstone raises, and the exit code of each family.

LedgerstoneError            .code (stable), .hint (what to do next)
├── UsageError              an argument that no door accepts
├── NamespaceError          nothing fits the hints, or several do
├── AuthorityError          no grant for this act (only where existence may be known)
├── RuleError               .rule: the draft breaks a named admission rule
├── NotFoundError           no such record, or none this caller may know of
├── ConflictError           the chain moved underneath, or an idempotency key came back with other content
├── CapacityError           the obligations alone exceed the budget
├── CorruptionError         canonical history fails; never repaired from a cache
└── StoreError
    ├── UnavailableError    busy, locked, disk full, disconnected: try again
    ├── UnknownOutcomeError a COMMIT failed and its fate could not be looked up
    └── FormatError         written by a newer version, or not a store
"""

from __future__ import annotations

from typing import ClassVar


class LedgerstoneError(Exception):
    """Whatever Ledgerstone refuses or cannot do: a stable code, a message, and a hint that says what to do."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint

    def wire(self) -> dict[str, str]:
        """The one shape in which every door reports an error."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class UsageError(LedgerstoneError):
    """An argument that no door accepts: an unknown field, a wrong type, a value out of range."""

    code = "usage"
    exit_code = 2


class NamespaceError(LedgerstoneError):
    """Nothing fits the hints, or several namespaces do; ``confirms`` is the one that a user's yes would settle on."""

    code = "namespace"
    exit_code = 6

    def __init__(self, message: str, *, hint: str = "", confirms: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.confirms = confirms


class AuthorityError(LedgerstoneError):
    """No grant allows this act here; raised only where existence may be known."""

    code = "authority"
    exit_code = 3


class RuleError(LedgerstoneError):
    """A draft breaks the admission rule named in ``rule``; nothing was written."""

    code = "rule"
    exit_code = 7

    def __init__(self, message: str, *, rule: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule

    def wire(self) -> dict[str, str]:
        """The one shape, with the rule's name."""
        return {**super().wire(), "rule": self.rule}


class NotFoundError(LedgerstoneError):
    """No such record, or none that this caller may know of: the two look alike."""

    code = "not_found"
    exit_code = 3
    default_hint = "check the id, and the project and scopes this caller is bound to"


class ConflictError(LedgerstoneError):
    """The chain moved underneath, or an idempotency key came back with other content."""

    code = "conflict"
    exit_code = 8


class CapacityError(LedgerstoneError):
    """The obligations alone exceed the budget; nothing was charged or cut."""

    code = "capacity"
    exit_code = 9


class CorruptionError(LedgerstoneError):
    """Canonical history fails its own proof; it is never repaired from a cache."""

    code = "corruption"
    exit_code = 4
    default_hint = "run: ledgerstone verify"


class StoreError(LedgerstoneError):
    """The store cannot serve."""

    code = "store"
    exit_code = 5


class UnavailableError(StoreError):
    """Busy, locked, full or disconnected: nothing was changed, unless only the answer found no room; try again."""

    code = "unavailable"


class UnknownOutcomeError(StoreError):
    """A COMMIT failed and its fate could not be looked up."""

    code = "unknown_outcome"
    default_hint = "repeat the call with the same idempotency key: it is answered, never doubled"


class FormatError(StoreError):
    """The file was written by a newer version, or is not a Ledgerstone store."""

    code = "format"
