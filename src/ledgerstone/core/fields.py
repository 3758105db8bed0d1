"""How a frozen dataclass becomes a canonical object and back: one form each, unknown fields refused."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ledgerstone.core.values import MAX_INTEGER
from ledgerstone.errors import CorruptionError

FORMAT: Final = 1
_ABSENT: Final = object()
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})*\Z")
T = TypeVar("T")


class Shape(NamedTuple):
    """One kind of field value: how it is read (raising ValueError) and how it is written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


class Enumeration(Protocol):
    """What an enumeration must offer to be a field."""

    value: Any


def _same(value: Any) -> Any:
    return value


def identifier(prefix: str) -> Shape:
    """An opaque id: the prefix, an underscore, 16 Crockford characters."""
    matches = re.compile(prefix + r"_[0-9a-hjkmnp-tv-z]{16}\Z").match

    def read(value: Any) -> str:
        if type(value) is not str or not matches(value):
            raise ValueError(f"not a {prefix} id")
        return value

    return Shape(read, _same)


def octets(length: int) -> Shape:
    """Bytes of one fixed length, written in lower hex."""

    def read(value: Any) -> bytes:
        if type(value) is not str or len(value) != 2 * length or not _HEX.match(value):
            raise ValueError(f"not {length} bytes in lower hex")
        return bytes.fromhex(value)

    return Shape(read, bytes.hex)


def integer(least: int = 0, most: int = MAX_INTEGER) -> Shape:
    """A whole number within limits."""

    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"not an integer from {least} to {most}")
        return value

    return Shape(read, _same)


def word(enumeration: type[T]) -> Shape:
    """A member of a closed enumeration, written as its value."""
    members = {member.value: member for member in enumeration}  # type: ignore[attr-defined]

    def read(value: Any) -> T:
        try:
            member: T = members[value]
        except (KeyError, TypeError):
            raise ValueError(f"not a {enumeration.__name__.lower()}") from None
        return member

    return Shape(read, lambda member: member.value)


def one_of(names: dict[str, T], write: Callable[[T], str]) -> Shape:
    """A value with a word of its own."""

    def read(value: Any) -> T:
        try:
            return names[value]
        except (KeyError, TypeError):
            raise ValueError("not a known word") from None

    return Shape(read, write)


def string(most: int) -> Shape:
    """Text of 1 to ``most`` UTF-8 bytes."""

    def read(value: Any) -> str:
        if type(value) is not str or not value or len(value.encode()) > most:
            raise ValueError(f"not a text of 1 to {most} bytes")
        return value

    return Shape(read, _same)


def array(shape: Shape, most: int) -> Shape:
    """An array of 1 to ``most`` distinct values in the writer's order; the empty one is written by omission."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or not 1 <= len(value) <= most:
            raise ValueError(f"not an array of 1 to {most}")
        members = tuple(shape.read(item) for item in value)
        if len(set(members)) != len(members):
            raise ValueError("a member stands twice")
        return members

    def write(members: tuple[Any, ...]) -> list[Any]:
        return [shape.write(member) for member in members]

    return Shape(read, write)


def nested(cls: type[Any]) -> Shape:
    """An object within an object."""
    return Shape(lambda value: read_object(cls, value), write_object)


def field(shape: Shape, *, absent: Any = _ABSENT) -> Any:
    """Declare a field; with ``absent`` it may be left out, and then must be, at exactly that value."""
    if absent is _ABSENT:
        return dataclasses.field(metadata={"shape": shape})
    return dataclasses.field(default=absent, metadata={"shape": shape})


_SPECS: dict[type[Any], tuple[tuple[str, Shape, Any], ...]] = {}


def _specs(cls: type[Any]) -> tuple[tuple[str, Shape, Any], ...]:
    specs = _SPECS.get(cls)
    if specs is None:
        specs = tuple(
            (f.name, f.metadata["shape"], _ABSENT if f.default is dataclasses.MISSING else f.default)
            for f in dataclasses.fields(cls)
        )
        _SPECS[cls] = specs
    return specs


def write_object(value: Any) -> dict[str, Any]:
    """The canonical object of a declared dataclass; fields at their absent value are left out."""
    written = {}
    for name, shape, absent in _specs(type(value)):
        member = getattr(value, name)
        if absent is _ABSENT or member != absent:
            written[name] = shape.write(member)
    return written


def read_object(cls: type[T], value: Any, *, beside: int = 0) -> T:
    """The dataclass written in an object; ``beside`` counts fields that the caller itself has read."""
    if type(value) is not dict:
        raise ValueError("not an object")
    members = {}
    found = beside
    for name, shape, absent in _specs(cls):
        member = value.get(name, _ABSENT)
        if member is _ABSENT:
            if absent is _ABSENT:
                raise ValueError(f"{name} is missing")
            continue
        try:
            members[name] = shape.read(member)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        found += 1
        if absent is not _ABSENT and members[name] == absent:
            raise ValueError(f"{name} stands at its absent value")
    if found != len(value):
        known = {name for name, _, _ in _specs(cls)} | {"format", "entry"}
        raise ValueError(f"unknown field: {', '.join(sorted(set(value) - known))}")
    return cls(**members)


def corrupt(what: str, error: ValueError) -> CorruptionError:
    """A malformed canonical object, as the error every reader of history raises."""
    return CorruptionError(f"{what}: {error}")
