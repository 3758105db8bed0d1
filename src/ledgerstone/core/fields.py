"""How a frozen dataclass becomes a canonical object and back: one form each, unknown fields refused."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from ledgerstone.core.values import MAX_INTEGER
from ledgerstone.errors import CorruptionError

FORMAT: Final = 1
_ABSENT: Final = object()
_HEX: Final = re.compile(r"[0-9a-f]*\Z").match
T = TypeVar("T")


class Shape(NamedTuple):
    """One kind of field value: how it is read (raising ValueError) and how it is written.

    ``straight`` gives what ``read`` does as lines of code, for a variable of a name that holds the value and is to
    hold what is read; the names that the lines use go into a scope. They raise ValueError, KeyError or TypeError.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    straight: Callable[[str, dict[str, Any]], list[str]] | None = None


def _same(value: Any) -> Any:
    return value


def identifier(prefix: str, *, often: bool = True) -> Shape:
    """An opaque id: the prefix, an underscore, 16 Crockford characters.

    ``often`` says that one stands in object after object, so that it pays to remember which were looked at.
    """
    looked_at = re.compile(prefix + r"_[0-9a-hjkmnp-tv-z]{16}\Z").match
    matches = lru_cache(maxsize=256)(looked_at) if often else looked_at

    def read(value: Any) -> str:
        if type(value) is not str or not matches(value):
            raise ValueError(f"not a {prefix} id")
        return value

    def straight(name: str, scope: dict[str, Any]) -> list[str]:
        scope[f"_matches_{name}"] = matches
        return [f"if type({name}) is not str or not _matches_{name}({name}): raise ValueError"]

    return Shape(read, _same, straight)


def octets(length: int) -> Shape:
    """Bytes of one fixed length, written in lower hex."""

    def read(value: Any) -> bytes:
        if type(value) is not str or len(value) != 2 * length or not _HEX(value):
            raise ValueError(f"not {length} bytes in lower hex")
        return bytes.fromhex(value)

    def straight(name: str, scope: dict[str, Any]) -> list[str]:
        scope["_fromhex"] = bytes.fromhex
        # It takes capitals and spaces as well, and what it makes of them is written otherwise.
        wrong = f"if len({name}) != {length} or {name}.hex() != _hex: raise ValueError"
        return [f"_hex = {name}", f"{name} = _fromhex(_hex)", wrong]

    return Shape(read, bytes.hex, straight)


def integer(least: int = 0, most: int = MAX_INTEGER) -> Shape:
    """A whole number within limits."""

    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"not an integer from {least} to {most}")
        return value

    def straight(name: str, _: dict[str, Any]) -> list[str]:
        return [f"if type({name}) is not int or not {least} <= {name} <= {most}: raise ValueError"]

    return Shape(read, _same, straight)


def word(enumeration: type[T]) -> Shape:
    """A member of a closed enumeration, written as its value."""
    members = {member.value: member for member in enumeration}  # type: ignore[attr-defined]
    return _word(members, attrgetter("_value_"), f"not a {enumeration.__name__.lower()}")


def one_of(names: dict[str, T], write: Callable[[T], str]) -> Shape:
    """A value with a word of its own."""
    return _word(names, write, "not a known word")


def _word(words: dict[str, T], write: Callable[[T], str], fault: str) -> Shape:
    def read(value: Any) -> T:
        try:
            return words[value]
        except (KeyError, TypeError):
            raise ValueError(fault) from None

    def straight(name: str, scope: dict[str, Any]) -> list[str]:
        scope[f"_words_{name}"] = words
        return [f"{name} = _words_{name}[{name}]"]

    return Shape(read, write, straight)


def string(most: int) -> Shape:
    """Text of 1 to ``most`` UTF-8 bytes."""

    def read(value: Any) -> str:
        if type(value) is not str or not value or len(value.encode()) > most:
            raise ValueError(f"not a text of 1 to {most} bytes")
        return value

    return Shape(read, _same)


def slug() -> Shape:
    """A closed word of the program's own: 1 to 64 of a to z and the underscore."""
    matches = re.compile(r"[a-z_]{1,64}\Z").match

    def read(value: Any) -> str:
        if type(value) is not str or not matches(value):
            raise ValueError("not a word of a to z and _")
        return value

    return Shape(read, _same)


def is_format(value: Any) -> bool:
    """True for the one spelling of the format number."""
    return type(value) is int and value == FORMAT


def array(shape: Shape, most: int) -> Shape:
    """An array of 1 to ``most`` distinct values in the writer's order; the empty one is written by omission."""

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or not 1 <= len(value) <= most:
            raise ValueError(f"not an array of 1 to {most}")
        members = tuple(map(shape.read, value))
        if len(members) > 1 and len(set(members)) != len(members):
            raise ValueError("a member stands twice")
        return members

    def write(members: tuple[Any, ...]) -> list[Any]:
        return [shape.write(member) for member in members]

    return Shape(read, write)


def nested(cls: type[Any]) -> Shape:
    """An object within an object."""

    def straight(name: str, scope: dict[str, Any]) -> list[str]:
        return [f"if type({name}) is not dict: raise ValueError", *_reading(cls, name, scope)]

    return Shape(lambda value: read_object(cls, value), write_object, straight)


def field(shape: Shape, *, absent: Any = _ABSENT) -> Any:
    """Declare a field; with ``absent`` it may be left out, and then must be, at exactly that value."""
    if absent is _ABSENT:
        return dataclasses.field(metadata={"shape": shape})
    return dataclasses.field(default=absent, metadata={"shape": shape})


class _Codec(NamedTuple):
    """How one class is read and written: its fields in order, and both ways compiled to straight code."""

    specs: tuple[tuple[str, Shape, Any], ...]
    read: Callable[[dict[str, Any], int], Any]
    write: Callable[[Any], dict[str, Any]]


_CODECS: dict[type[Any], _Codec] = {}


def _codec(cls: type[Any]) -> _Codec:
    codec = _CODECS[cls] = _compile(cls)
    return codec


def _specs(cls: type[Any]) -> tuple[tuple[str, Shape, Any], ...]:
    return tuple(
        (f.name, f.metadata["shape"], _ABSENT if f.default is dataclasses.MISSING else f.default)
        for f in dataclasses.fields(cls)
    )


def _compile(cls: type[Any]) -> _Codec:
    """Straight code for one class, as dataclasses makes its own ``__init__``: history is read by the million."""
    specs = _specs(cls)
    # Names of its own begin with an underscore, so that no field can stand in for one.
    scope: dict[str, Any] = {}
    read = ["def _read(_wire, _beside):", *(f" {line}" for line in _reading(cls, "_wire", scope, "_beside"))]
    read.append(" return _wire")
    write = ["def _write(_object):", " _wire = {"]
    later = []
    for name, shape, absent in specs:
        scope |= {f"_write_{name}": shape.write, f"_absent_{name}": absent}
        written = f"_object.{name}" if shape.write is _same else f"_write_{name}(_object.{name})"
        if absent is _ABSENT:
            write.append(f"  {name!r}: {written},")
        else:
            later += [f" if _object.{name} != _absent_{name}: _wire[{name!r}] = {written}"]
    write += [" }", *later, " return _wire"]
    exec("\n".join([*read, *write]), scope)  # noqa: S102 - only names of fields declared in this package
    return _Codec(specs, scope["_read"], scope["_write"])


def _reading(cls: type[Any], wire: str, scope: dict[str, Any], beside: str = "0") -> list[str]:
    """Lines that make an object of a class out of the dict in a variable, what is nested in it included."""
    specs = _specs(cls)
    required = sum(absent is _ABSENT for _, _, absent in specs)
    scope |= {f"_blank{wire}": _blank(cls), f"_cls{wire}": cls}
    lines = [f"_found{wire} = {beside} + {required}"]
    for name, shape, absent in specs:
        made = f"{wire}_{name}"
        if shape.straight is None:
            scope[f"_read{made}"] = shape.read
            read = [f"{made} = _read{made}({made})"]
        else:
            read = shape.straight(made, scope)
        read = [f"{made} = {wire}[{name!r}]", *read]
        if absent is _ABSENT:
            lines += read
        else:
            scope[f"_absent{made}"] = absent
            lines += [
                f"if {name!r} in {wire}:",
                *(f" {line}" for line in read),
                f" if {made} == _absent{made}: raise ValueError",
                f" _found{wire} += 1",
                f"else: {made} = _absent{made}",
            ]
    lines += [f"if _found{wire} != len({wire}): raise ValueError", f"{wire} = _blank{wire}()"]
    lines += [f"{wire}.{name} = {wire}_{name}" for name, _, _ in specs]
    return [*lines, f"{wire}.__class__ = _cls{wire}"]


def _blank(cls: type[Any]) -> type[Any]:
    """A class with the slots of a frozen one, and free to fill them: what it makes is given the other's class then.

    A sixth of the cost of the frozen one's own ``__init__``.
    """
    return type(cls.__name__, cls.__bases__, {"__slots__": cls.__slots__})


def renewing(cls: type[T], *names: str) -> Callable[..., T]:
    """What makes an object of a declared dataclass like another one, with new values for the fields of those names.

    As ``dataclasses.replace``, values in the order of the names, at a fifth of the cost.
    """
    scope: dict[str, Any] = {"_blank": _blank(cls), "_cls": cls}
    lines = [f"def _renew(_like, {', '.join(names)}):", " _made = _blank()"]
    lines += [f" _made.{name} = {name if name in names else f'_like.{name}'}" for name, _, _ in _specs(cls)]
    exec("\n".join([*lines, " _made.__class__ = _cls", " return _made"]), scope)  # noqa: S102 - as above
    renew: Callable[..., T] = scope["_renew"]
    return renew


def write_object(value: Any) -> dict[str, Any]:
    """The canonical object of a declared dataclass; fields at their absent value are left out."""
    cls = type(value)
    return (_CODECS.get(cls) or _codec(cls)).write(value)


def read_object(cls: type[T], value: Any, *, beside: int = 0) -> T:
    """The dataclass written in an object; ``beside`` counts fields that the caller itself has read.

    Raises ValueError that names the field for a missing, unknown or malformed one, and for one that stands at its
    absent value.
    """
    if type(value) is not dict:
        raise ValueError("not an object")
    codec = _CODECS.get(cls) or _codec(cls)
    try:
        read: T = codec.read(value, beside)
    except (ValueError, KeyError, TypeError):
        raise ValueError(_fault(codec.specs, value)) from None
    return read


def _fault(specs: tuple[tuple[str, Shape, Any], ...], value: dict[str, Any]) -> str:
    """What is wrong with an object that could not be read."""
    for name, shape, absent in specs:
        if name not in value:
            if absent is _ABSENT:
                return f"{name} is missing"
            continue
        try:
            member = shape.read(value[name])
        except ValueError as error:
            return f"{name}: {error}"
        if absent is not _ABSENT and member == absent:
            return f"{name} stands at its absent value"
    unknown = set(value) - {name for name, _, _ in specs} - {"format", "entry"}
    return f"unknown field: {', '.join(sorted(unknown))}"


def corrupt(what: str, error: ValueError) -> CorruptionError:
    """A malformed canonical object, as the error every reader of history raises."""
    return CorruptionError(f"{what}: {error}")
