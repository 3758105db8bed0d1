"""Promises of encoders: any callable will do, and what it gives becomes the same bytes on every run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone import UsageError
from ledgerstone.core.fusion import COSINE_THOUSANDTHS
from ledgerstone.semantic import static_table
from ledgerstone.semantic.encoders import (
    MAX_DIMENSION,
    MAX_WEIGHT,
    EncoderError,
    Function,
    encoded,
    model_of,
    quantised,
    radius,
    weight_of,
)

numbers = st.floats(-1e300, 1e300).filter(lambda number: not 0 < abs(number) < 1e-200)


def signed(data: bytes) -> list[int]:
    """Bytes as signed numbers."""
    return [byte - 256 if byte > 127 else byte for byte in data]


def answers(*vectors: Sequence[float]) -> Function:
    """An encoder of two dimensions that answers these vectors, whatever it is asked."""
    return Function(lambda _: vectors, "fixed", "1", 2)


@given(st.lists(numbers, min_size=4, max_size=4), st.sampled_from([0.5, 2.0, 1024.0]))
def test_length_of_a_vector_makes_no_difference(vector: list[float], factor: float) -> None:
    """Only the direction is kept: every vector becomes one of the same length, or stays zero."""
    found = signed(quantised(vector, 4))

    assert not any(vector) or abs(math.hypot(*found) - radius(4)) <= 1
    assert quantised([factor * number for number in vector], 4) == quantised(vector, 4)


def test_vector_of_zeros_stays_zero() -> None:
    """A text in which there is nothing to find has the zero vector."""
    assert quantised([0.0, 0.0], 2) == bytes(2)
    assert quantised([0.0, 3.0], 2) == bytes([0, 45])


@pytest.mark.parametrize("vector", [[1.0], [1.0, 2.0, 3.0], [1.0, math.nan], [math.inf, 0.0]])
def test_vector_that_is_none_is_refused(vector: list[float]) -> None:
    """Another dimension, or a number that is not finite; a vector as promised is taken."""
    assert encoded(answers([1.0, 0.0]), ["text"]) == [bytes([45, 0])]

    with pytest.raises(EncoderError, match="2 finite numbers"):
        encoded(answers(vector), ["text"])


def test_answer_for_other_texts_is_refused() -> None:
    """As many vectors as texts, no more and no fewer."""
    with pytest.raises(EncoderError, match="1 vectors for 2 texts"):
        encoded(answers([1.0, 0.0]), ["one", "two"])


@pytest.mark.parametrize(
    ("name", "version", "dimension", "offence"),
    [
        ("", "1", 2, "not ''"),
        ("a/b", "1", 2, "not 'a/b'"),
        ("x" * 65, "1", 2, "1 to 64 bytes"),
        ("a", "", 2, "not ''"),
        ("a", "1", 0, "1 to 1024, not 0"),
        ("a", "1", MAX_DIMENSION + 1, "1 to 1024, not 1025"),
    ],
)
def test_encoder_that_cannot_be_told_from_others_is_refused(
    name: str, version: str, dimension: int, offence: str
) -> None:
    """Name, version and dimension name the vectors; the limits themselves are accepted."""
    assert model_of(Function(lambda _: [], "x" * 64, "1", MAX_DIMENSION)).endswith("/1/1024")

    with pytest.raises(UsageError, match=offence):
        model_of(Function(lambda _: [], name, version, dimension))


@pytest.mark.parametrize("weight", [0, MAX_WEIGHT + 1, 200.0])
def test_weight_outside_its_limits_is_refused(weight: int) -> None:
    """The limits themselves are taken, and words lead where an encoder says nothing."""
    assert [weight_of(answers_with(one)) for one in (1, MAX_WEIGHT)] == [1, MAX_WEIGHT]
    assert weight_of(static_table()) == weight_of(answers()) == COSINE_THOUSANDTHS

    with pytest.raises(UsageError, match=f"an encoder's weight: 1 to {MAX_WEIGHT}, not {weight}"):
        weight_of(answers_with(weight))


def answers_with(weight: int) -> Function:
    """An encoder that says what it counts."""
    return Function(lambda _: [], "fixed", "1", 2, weight)
