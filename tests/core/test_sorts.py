"""What an annotation allows, and how what it does not is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledgerstone import Act, Draft, Kind, Origin, Trust, UsageError
from ledgerstone.core.canonical import MAX_INTEGER
from ledgerstone.core.sorts import check_fields, check_moment, checked, sort_of

OF_ACTS = "acts: a frozenset of Acts (read, write, forget, create, promote, admin)"


@checked
class Desk:
    """A class of every sort of parameter; it keeps what it was told last."""

    def __init__(self) -> None:
        self.told: Any = None

    def one(self, text: str, number: int = 1, *, sure: bool = False) -> None:
        """By position and by name."""
        self.told = (text, number, sure)

    def some(self, texts: Sequence[str] = (), pair: tuple[str, ...] = (), acts: frozenset[Act] = frozenset()) -> None:
        """Collections."""
        self.told = (texts, pair, acts)

    def either(self, kind: Kind | None = None, trust: Trust | None = None, place: str | Path = "") -> None:
        """One of several."""
        self.told = (kind, trust, place)

    def whole(
        self,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        lines: Iterable[bytes] = (),
        data: bytes = b"",
        count: Callable[[str], int] | None = None,
    ) -> None:
        """What only has a shape."""
        self.told = (synonyms, lines, data, count)

    @classmethod
    def make(cls, text: str) -> Desk:
        """Another one."""
        desk = cls()
        desk.one(text)
        return desk

    def _own(self, text: str) -> None:
        self.told = text


@pytest.mark.parametrize(
    ("verb", "wrong", "right", "said"),
    [
        ("one", {"text": None}, {"text": ""}, "text: text, not None"),
        ("one", {"text": b"x"}, {"text": "x"}, "text: text, not bytes"),
        ("one", {"text": Kind.NOTE}, {"text": "note"}, "text: text, not Kind"),
        ("one", {"text": "x", "number": True}, {"text": "x", "number": -3}, "number: a whole number, not bool"),
        ("one", {"text": "x", "sure": 1}, {"text": "x", "sure": True}, "sure: True or False, not int"),
        ("some", {"texts": "abc"}, {"texts": ["abc"]}, "texts: a list of texts, not str"),
        ("some", {"texts": ("x", 3)}, {"texts": ("x", "3")}, "texts: a list of texts, not tuple of int, str"),
        ("some", {"texts": {}}, {"texts": []}, "texts: a list of texts, not dict"),
        ("some", {"pair": ["x"]}, {"pair": ("x",)}, "pair: a tuple of texts, not list of str"),
        ("some", {"acts": {Act.READ}}, {"acts": frozenset({Act.READ})}, f"{OF_ACTS}, not set of Act"),
        ("either", {"trust": 3}, {"trust": Trust.UNKNOWN}, "trust: a Trust or None, not int"),
        ("either", {"place": 3}, {"place": Path()}, "place: text or a Path, not int"),
        (
            "whole",
            {"synonyms": {"car": "auto"}},
            {"synonyms": {"car": ["auto"]}},
            "synonyms: a mapping of texts to lists of texts or None, not dict of str",
        ),
        ("whole", {"lines": b"x"}, {"lines": iter([b"x"])}, "lines: an iterable, not bytes"),
        ("whole", {"data": "x"}, {"data": b"x"}, "data: bytes, not str"),
        ("whole", {"count": 3}, {"count": len}, "count: a function or None, not int"),
    ],
)
def test_what_is_of_another_sort_is_refused_by_name(
    verb: str, wrong: dict[str, Any], right: dict[str, Any], said: str
) -> None:
    """The refusal says parameter, expectation and offence, and the method was not begun; its neighbour is taken."""
    desk = Desk()

    with pytest.raises(UsageError) as refused:
        getattr(desk, verb)(**wrong)

    assert (str(refused.value), desk.told) == (said, None)
    getattr(desk, verb)(**right)
    assert next(iter(right.values())) in desk.told


def test_a_field_of_another_sort_is_refused_by_name() -> None:
    """As a parameter is; a field whose sort somebody else looks at may be anything."""
    wrong: Any = 3

    with pytest.raises(UsageError) as refused:
        check_fields(Draft(text="Cedar.", key=wrong))

    assert str(refused.value) == "key: text or None, not int"
    check_fields(Draft(text="Cedar.", key=wrong), but=("key",))
    check_fields(Draft(text="Cedar.", key="3"))


def test_a_word_is_no_member_of_an_enumeration() -> None:
    """And the refusal says which words there are."""
    with pytest.raises(UsageError, match=r"kind: a Kind \(note, fact, .*prospective\) or None, not str"):
        Desk().either("note")  # type: ignore[arg-type]

    Desk().either(Kind.NOTE)


def test_classmethods_are_checked_and_what_is_private_is_not() -> None:
    """By position as by name; what a class calls itself is its own affair."""
    desk = Desk()

    with pytest.raises(UsageError, match="text: text, not int"):
        Desk.make(3)  # type: ignore[arg-type]
    desk._own(3)  # type: ignore[arg-type]

    assert (desk.told, Desk.make("x").told) == (3, ("x", 1, False))


def test_what_is_no_parameter_is_still_pythons_to_refuse() -> None:
    """A misspelt name is an error of the program's, as ever."""
    with pytest.raises(TypeError, match="unexpected keyword"):
        Desk().one("x", nmuber=3)  # type: ignore[call-arg]


def test_a_moment_is_from_0_to_the_last() -> None:
    """Both are moments, and so is none at all; one before and one after are refused."""
    for moment in (None, 0, MAX_INTEGER):
        check_moment("before", moment)

    for wrong in (-1, MAX_INTEGER + 1):
        with pytest.raises(UsageError, match=f"before: whole microseconds UTC from 0 to {MAX_INTEGER}, not {wrong}"):
            check_moment("before", wrong)


@pytest.mark.parametrize(
    ("hint", "one", "many"),
    [
        (Origin, f"an Origin ({', '.join(Origin)})", f"Origins ({', '.join(Origin)})"),
        (str | None, "text or None", "text or None"),
        (tuple[str | int, ...], "a tuple of text or a whole number", "tuples of text or a whole number"),
    ],
)
def test_a_sort_says_what_one_is_and_what_many_are(hint: Any, one: str, many: str) -> None:
    """In words, with the article that is spoken."""
    sort = sort_of(hint)

    assert (sort.one, sort.many) == (one, many)
