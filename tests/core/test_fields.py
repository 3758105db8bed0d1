"""A declared field has one form: what it writes it reads, and whatever else it refuses by name."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import fields
from ledgerstone.core.fields import Shape, field
from ledgerstone.core.values import TRUST_OF_WORD, Kind, Trust
from ledgerstone.errors import CorruptionError

GOOD = "0123456789abcdef"


NUMBER = fields.integer(1, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """An object within an object."""

    size: int = field(NUMBER)


NAME, LEAF, HASH = fields.string(8), fields.nested(Leaf), fields.octets(2)
SIZE, KIND, TAGS = fields.integer(0, 9), fields.word(Kind), fields.array(NAME, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """An object with a field of each sort."""

    name: str = field(NAME)
    leaf: Leaf = field(LEAF)  # noqa: RUF009 (declared by a call, as dataclasses.field is)
    hash: bytes | None = field(HASH, absent=None)
    size: int = field(SIZE, absent=0)
    kind: Kind = field(KIND, absent=Kind.NOTE)  # noqa: RUF009 (the same)
    tags: tuple[str, ...] = field(TAGS, absent=())


SHAPES: list[tuple[str, Shape, list[tuple[Any, Any]], list[Any]]] = [
    (
        "not a mem id",
        fields.identifier("mem"),
        [(f"mem_{GOOD}", f"mem_{GOOD}")],
        [f"ns_{GOOD}", f"mem_{GOOD}0", f"mem_{GOOD[1:]}", f"mem_{GOOD[1:]}u", f"MEM_{GOOD}", f"mem_{GOOD}\n", 1, None],
    ),
    (
        "not 2 bytes in lower hex",
        fields.octets(2),
        [("00ff", b"\x00\xff")],
        ["00f", "00fff", "00FF", "0x0f", "00f\n", " 0ff", b"\x00\xff", 255, None],
    ),
    ("not an integer from 1 to 9", fields.integer(1, 9), [(1, 1), (9, 9)], [0, 10, True, 1.0, "1", None]),
    ("not an integer from 0 to 9007199254740991", fields.integer(), [(0, 0), (2**53 - 1, 2**53 - 1)], [-1, 2**53]),
    ("not a kind", fields.word(Kind), [("task", Kind.TASK)], ["Task", "", "tasks", None, 1, ["task"], {}]),
    (
        "not a known word",
        fields.one_of(TRUST_OF_WORD, lambda trust: trust.word),
        [("unknown", Trust.UNKNOWN), ("user_explicit", Trust.USER_EXPLICIT)],
        ["USER_EXPLICIT", "", 0, None, ["unknown"]],
    ),
    (
        "not a text of 1 to 4 bytes",
        fields.string(4),
        [("a", "a"), ("\u00e9\u00e9", "\u00e9\u00e9"), ("\U0001f511", "\U0001f511")],
        ["", "abcde", "\u00e9\u00e9a", None, 1, ["a"]],
    ),
    (
        "not a word of a to z and _",
        fields.slug(),
        [("no_grant", "no_grant"), ("a" * 64, "a" * 64)],
        ["", "a" * 65, "No", "no-grant", "a1", "a\n", "\u0430", None, 1, ["a"]],
    ),
    (
        "not an array of 1 to 2",
        fields.array(fields.integer(), 2),
        [([2, 1], (2, 1)), ([1], (1,))],
        [[], [1, 2, 3], (1, 2), "12", None],
    ),
    ("a member stands twice", fields.array(fields.integer(), 3), [([1, 2], (1, 2))], [[1, 1], [2, 1, 2]]),
    ("size: not an integer", fields.nested(Leaf), [({"size": 1}, Leaf(size=1))], [{"size": 0}]),
    ("not an object", fields.nested(Leaf), [({"size": 1}, Leaf(size=1))], [[1], "size", None]),
]


@pytest.mark.parametrize(("offence", "shape", "right", "wrong"), SHAPES)
def test_a_shape_reads_what_it_writes(
    offence: str, shape: Shape, right: list[tuple[Any, Any]], wrong: list[Any]
) -> None:
    """Each value has one written form; anything else is refused and says what it is not."""
    for written, value in right:
        assert shape.read(written) == value
        assert shape.write(value) == written

    for refused in wrong:
        with pytest.raises(ValueError, match=offence):
            shape.read(refused)


@pytest.mark.parametrize(("offence", "shape", "right", "wrong"), SHAPES)
def test_an_object_reads_a_field_as_its_shape_does(
    offence: str, shape: Shape, right: list[tuple[Any, Any]], wrong: list[Any]
) -> None:
    """The straight code of an object takes what a shape reads, and refuses what it refuses in the same words."""
    cls = make_dataclass("One", [("it", Any, field(shape))], frozen=True, slots=True, kw_only=True)

    for written, value in right:
        assert fields.read_object(cls, {"it": written}) == cls(it=value)

    for refused in wrong:
        with pytest.raises(ValueError, match=f"it: {offence}"):
            fields.read_object(cls, {"it": refused})


@given(value=st.integers())
def test_an_integer_has_exact_ends(value: int) -> None:
    """Within its limits it is itself, outside it is nothing."""
    shape = fields.integer(-3, 3)

    if -3 <= value <= 3:
        assert shape.read(value) == value
    else:
        with pytest.raises(ValueError, match="not an integer from -3 to 3"):
            shape.read(value)


trees = st.builds(
    Tree,
    name=st.text(st.characters(max_codepoint=127, exclude_characters="\x00"), min_size=1, max_size=8),
    leaf=st.builds(Leaf, size=st.integers(1, 9)),
    hash=st.none() | st.binary(min_size=2, max_size=2),
    size=st.integers(0, 9),
    kind=st.sampled_from(Kind),
    tags=st.lists(st.sampled_from("abcdef"), unique=True, max_size=2).map(tuple),
)


@given(tree=trees)
def test_an_object_reads_what_it_writes(tree: Tree) -> None:
    """Fields at their absent value are left out, and only these."""
    written = fields.write_object(tree)

    assert fields.read_object(Tree, written) == tree
    assert {"name", "leaf"} <= set(written)
    assert {name for name in written if getattr(tree, name) in (None, 0, Kind.NOTE, ())} == set()


@given(tree=trees, name=st.sampled_from(["name", "leaf"]))
def test_a_missing_field_is_refused(tree: Tree, name: str) -> None:
    """A field without an absent value must be there."""
    written = fields.write_object(tree)
    del written[name]

    with pytest.raises(ValueError, match=f"^{name} is missing$"):
        fields.read_object(Tree, written)


@pytest.mark.parametrize(("name", "value"), [("size", 0), ("kind", "note"), ("hash", None), ("tags", [])])
def test_an_absent_value_is_not_written(name: str, value: object) -> None:
    """Left out is its only form: written, it is refused, so that no object has two."""
    written = {"name": "cedar", "leaf": {"size": 1}}
    assert fields.read_object(Tree, written) == Tree(name="cedar", leaf=Leaf(size=1))

    with pytest.raises(ValueError, match=f"^{name}"):
        fields.read_object(Tree, written | {name: value})


@given(tree=trees, name=st.text(min_size=1, max_size=8))
def test_an_object_is_renewed_in_the_fields_named(tree: Tree, name: str) -> None:
    """All others are as they were."""
    renew = fields.renewing(Tree, "name", "hash")

    assert renew(tree, name, None) == replace(tree, name=name, hash=None)


@given(tree=trees, names=st.sets(st.sampled_from(["age", "Name", "leaf_", ""]), min_size=1))
def test_an_unknown_field_is_refused(tree: Tree, names: set[str]) -> None:
    """All of them are named."""
    written = fields.write_object(tree) | dict.fromkeys(names, 1)

    with pytest.raises(ValueError, match="unknown field: ") as refused:
        fields.read_object(Tree, written)

    assert str(refused.value) == f"unknown field: {', '.join(sorted(names))}"


def test_fields_that_the_caller_has_read_are_counted() -> None:
    """``beside`` makes room for them, and for no others."""
    written = {"format": 1, "name": "cedar", "leaf": {"size": 1}}

    assert fields.read_object(Tree, written, beside=1) == Tree(name="cedar", leaf=Leaf(size=1))
    with pytest.raises(ValueError, match="unknown field"):
        fields.read_object(Tree, written | {"age": 1}, beside=1)


@pytest.mark.parametrize("value", [None, [], "name", 1])
def test_what_is_no_object_is_refused(value: object) -> None:
    """Only a dict is one."""
    with pytest.raises(ValueError, match="not an object"):
        fields.read_object(Tree, value)


@pytest.mark.parametrize(("value", "right"), [(1, True), (True, False), (1.0, False), ("1", False), (2, False)])
def test_a_format_has_one_spelling(value: object, *, right: bool) -> None:
    """The number, and nothing that is merely equal to it."""
    assert fields.is_format(value) == right


def test_what_is_malformed_is_corruption() -> None:
    """Readers of history raise one error, which says what and why."""
    error = fields.corrupt("tree", ValueError("name is missing"))

    assert isinstance(error, CorruptionError)
    assert error.message == "tree: name is missing"
