"""Ledgerstone: durable, verifiable memory for AI agents."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgerstone.core.authority import Caller
    from ledgerstone.core.namespaces import ProjectHints
    from ledgerstone.core.proofs import Attested, verify_proof
    from ledgerstone.core.signing import Keyring, SigningKey
    from ledgerstone.core.values import (
        Act,
        Budget,
        Condensable,
        Draft,
        Event,
        Finding,
        Forgotten,
        Kind,
        Lane,
        Limits,
        Mode,
        Origin,
        Page,
        Policy,
        Recall,
        Recalled,
        Record,
        Remembered,
        Report,
        Retention,
        Scope,
        Similar,
        Standing,
        Status,
        Trust,
    )
    from ledgerstone.errors import (
        AuthorityError,
        CapacityError,
        ConflictError,
        CorruptionError,
        FormatError,
        LedgerstoneError,
        NamespaceError,
        NotFoundError,
        RuleError,
        StoreError,
        UnavailableError,
        UnknownOutcomeError,
        UsageError,
    )
    from ledgerstone.keys import load_keys
    from ledgerstone.memory import Memory

__all__ = [
    "Act",
    "Attested",
    "AuthorityError",
    "Budget",
    "Caller",
    "CapacityError",
    "Condensable",
    "ConflictError",
    "CorruptionError",
    "Draft",
    "Event",
    "Finding",
    "Forgotten",
    "FormatError",
    "Keyring",
    "Kind",
    "Lane",
    "LedgerstoneError",
    "Limits",
    "Memory",
    "Mode",
    "NamespaceError",
    "NotFoundError",
    "Origin",
    "Page",
    "Policy",
    "ProjectHints",
    "Recall",
    "Recalled",
    "Record",
    "Remembered",
    "Report",
    "Retention",
    "RuleError",
    "Scope",
    "SigningKey",
    "Similar",
    "Standing",
    "Status",
    "StoreError",
    "Trust",
    "UnavailableError",
    "UnknownOutcomeError",
    "UsageError",
    "load_keys",
    "verify_proof",
]

# Where the names live, light to heavy. They load when they are first asked for, so that a door which needs few of
# them starts fast.
_ROOMS = ("errors", "core.values", "core.namespaces", "core.authority", "core.signing", "core.proofs", "keys", "memory")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            found = getattr(import_module(f"{__name__}.{room}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
