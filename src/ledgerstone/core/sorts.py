"""What an annotation allows: whatever else a caller passes is refused by name, before anything comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, wraps
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from ledgerstone.core.values import MAX_INTEGER
from ledgerstone.errors import UsageError

T = TypeVar("T")


class Sort(NamedTuple):
    """What may be passed: a test, and how it is called for one and for many.

    Whatever is of one of the types in ``whole`` passes it, which is asked first, since that is many times as fast.
    """

    fits: Callable[[Any], bool]
    one: str
    many: str
    whole: frozenset[type] = frozenset()


def checked(cls: type[T]) -> type[T]:
    """A class whose public methods refuse, before they do anything, what their own annotations do not allow.

    UsageError says the parameter, what it takes, and what came. Which texts and numbers are taken is for the method
    to say.
    """
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, _checking(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(_checking(member.__func__)))
    return cls


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount]

    @wraps(function)
    def call(owner: Any, /, *args: Any, **named: Any) -> Any:
        sorts = _sorts(function)
        for name, value in (*zip(names, args, strict=False), *named.items()):
            sort = sorts.get(name)
            if sort is not None and type(value) not in sort.whole and not sort.fits(value):
                raise _refusal(name, value, sort)
        return function(owner, *args, **named)

    return call


def check_fields(value: Any, *, but: Iterable[str] = ()) -> None:
    """Refuse an instance whose fields, all but some, are not what its class says of them; UsageError as ``checked``."""
    kind: Any = type(value)
    for name, sort in _sorts(kind).items():
        held = getattr(value, name)
        if type(held) not in sort.whole and not sort.fits(held) and name not in but:
            raise _refusal(name, held, sort)


def check_limit(limit: int, most: int) -> None:
    """Raise UsageError unless a list is asked for one entry at least and no more than it may have."""
    if not 1 <= limit <= most:
        raise UsageError(f"limit: 1 to {most}, not {limit}")


def check_moment(name: str, value: int | None) -> None:
    """Refuse a time that is none: whole microseconds UTC within what an integer of ours may be."""
    if value is not None and not 0 <= value <= MAX_INTEGER:
        raise UsageError(f"{name}: whole microseconds UTC from 0 to {MAX_INTEGER}, not {value}")


def _refusal(name: str, value: object, sort: Sort) -> UsageError:
    return UsageError(f"{name}: {sort.one}, not {_called(value)}")


def _called(value: object) -> str:
    """What came, by its type alone: it may be long, or a secret."""
    if value is None:
        return "None"
    named = type(value).__name__
    if isinstance(value, list | tuple | set | frozenset | dict) and value:
        named += f" of {', '.join(sorted({type(member).__name__ for member in value}))}"
    return named


@cache
def _sorts(annotated: Any) -> dict[str, Sort]:
    """The sorts of what a function takes, or of a class's fields, made when they are first needed."""
    return {name: sort_of(hint) for name, hint in get_type_hints(annotated).items() if name != "return"}


def sort_of(hint: Any) -> Sort:
    """The sort that an annotation stands for."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        members = [sort_of(one) for one in inner]
        either = " or ".join(member.one for member in members)
        whole = frozenset[type]().union(*(member.whole for member in members))
        return Sort(_either([member.fits for member in members]), either, either, whole)
    if origin in {tuple, frozenset, Sequence}:
        kinds: Any = (list, tuple) if origin is Sequence else origin
        member = sort_of(inner[0])
        named = "list" if origin is Sequence else origin.__name__
        return _plain(
            lambda value: isinstance(value, kinds) and all(map(member.fits, value)), named, f" of {member.many}"
        )
    if origin is Mapping:
        key, held = map(sort_of, inner)
        return _plain(
            lambda value: (
                isinstance(value, Mapping) and all(map(key.fits, value)) and all(map(held.fits, value.values()))
            ),
            "mapping",
            f" of {key.many} to {held.many}",
        )
    if origin is Iterable:
        return _plain(lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes), "iterable")
    if origin is Callable:
        return _plain(callable, "function")
    return _NAMED.get(hint) or _of_class(hint)


def _either(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    return lambda value: any(test(value) for test in tests)


def _plain(fits: Callable[[Any], bool], named: str, of: str = "", whole: frozenset[type] = frozenset()) -> Sort:
    article = "an" if named[0] in "aeiouAEIOU" else "a"
    return Sort(fits, f"{article} {named}{of}", f"{named}s{of}", whole)


def _of_class(cls: type) -> Sort:
    """An instance; of an enumeration of words it says which there are."""
    words = f" ({', '.join(cls)})" if issubclass(cls, StrEnum) else ""
    return _plain(lambda value: isinstance(value, cls), cls.__name__, words, frozenset({cls}))


def _exactly(cls: type, one: str, many: str) -> Sort:
    return Sort(lambda value: type(value) is cls, one, many, frozenset({cls}))


# True is no number here, and a subclass of text no text: what is kept is exactly what was given.
_NAMED: Final[dict[Any, Sort]] = {
    NoneType: _exactly(NoneType, "None", "None"),
    str: _exactly(str, "text", "texts"),
    int: _exactly(int, "a whole number", "whole numbers"),
    bool: _exactly(bool, "True or False", "truths"),
    bytes: _exactly(bytes, "bytes", "bytes"),
}
