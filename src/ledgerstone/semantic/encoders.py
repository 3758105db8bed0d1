"""Encoders: what turns a text into numbers, as a plug; and those numbers as bytes that are the same on every run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from ledgerstone.core.fusion import COSINE_THOUSANDTHS
from ledgerstone.errors import UsageError

# Up to here the product of two vectors of bytes stays within what a 32-bit float holds exactly, in any order.
MAX_DIMENSION: Final = 1024
# Where the closest in meaning counts as much as the best by words.
MAX_WEIGHT: Final = 1000
# So that ranking, encoder and scorer fit in what a receipt says of them.
MAX_NAME_BYTES: Final = 64
_TOP: Final = 127


class Encoder(Protocol):
    """Turns texts into vectors of ``dimension`` numbers; close in meaning is close in angle.

    ``name`` and ``version`` say which model it is: another of either is another model, and its vectors are made anew.
    """

    @property
    def name(self) -> str:
        """Which model."""
        ...

    @property
    def version(self) -> str:
        """Which state of it."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    def encode(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """One vector a text, in order; zeros for one that it knows nothing of, which is then left to words."""
        ...


@runtime_checkable
class Weighty(Protocol):
    """An encoder that says what being closest of all counts, in thousandths of the best score by words.

    ``COSINE_THOUSANDTHS`` suits one that knows words only, out of their context; one that reads texts earns more.
    """

    @property
    def weight(self) -> int:
        """From 1 to ``MAX_WEIGHT``."""
        ...


@runtime_checkable
class Matcher(Protocol):
    """An encoder that can also compare a query with texts word by word.

    ``weigh`` says what each word of the query weighs in the store that is searched. Answers are in millionths.
    """

    def match(self, query: str, texts: Sequence[str], weigh: Callable[[Sequence[str]], Sequence[int]]) -> list[int]:
        """How well each text answers the query, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Function:
    """Any callable as an encoder: a list of texts in, as many vectors out."""

    function: Callable[[Sequence[str]], Iterable[Iterable[float]]]
    name: str
    version: str
    dimension: int
    weight: int = COSINE_THOUSANDTHS

    def encode(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        """What the callable says."""
        return self.function(texts)


class EncoderError(Exception):
    """What an encoder gave is not one finite vector of its dimension for each text."""


def model_of(encoder: Encoder) -> str:
    """The name under which an encoder's vectors are kept; UsageError for one that cannot be told from others."""
    if type(encoder.dimension) is not int or not 1 <= encoder.dimension <= MAX_DIMENSION:
        raise UsageError(f"an encoder's dimension: 1 to {MAX_DIMENSION}, not {encoder.dimension!r}")
    return f"{check_name(encoder.name)}/{check_name(encoder.version)}/{encoder.dimension}"


def weight_of(encoder: Encoder) -> int:
    """What being closest of all counts with an encoder, in thousandths; UsageError outside 1 to ``MAX_WEIGHT``."""
    weight = encoder.weight if isinstance(encoder, Weighty) else COSINE_THOUSANDTHS
    if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
        raise UsageError(f"an encoder's weight: 1 to {MAX_WEIGHT}, not {weight!r}")
    return weight


def check_name(part: object) -> str:
    """A name or version of a model, if it can stand for one; else UsageError."""
    # What is printable is no surrogate either, and has bytes to be counted.
    if (
        not isinstance(part, str)
        or not part.isprintable()
        or "/" in part
        or not 1 <= len(part.encode()) <= MAX_NAME_BYTES
    ):
        raise UsageError(f"a model's name and version: 1 to {MAX_NAME_BYTES} bytes, printable, without /, not {part!r}")
    return part


def encoded(encoder: Encoder, texts: Sequence[str]) -> list[bytes]:
    """Texts as vectors of signed bytes; EncoderError when the encoder did not keep its promise."""
    vectors = [[float(number) for number in vector] for vector in encoder.encode(texts)]
    if len(vectors) != len(texts):
        raise EncoderError(f"{len(vectors)} vectors for {len(texts)} texts")
    return [quantised(vector, encoder.dimension) for vector in vectors]


def quantised(vector: Sequence[float], dimension: int) -> bytes:
    """A vector brought to the length ``radius``, each number rounded to a signed byte; zero stays zero.

    The sum of squares is rounded once (``fsum``), so that no processor's order of addition shows.
    """
    if len(vector) != dimension or not all(map(math.isfinite, vector)):
        raise EncoderError(f"not a vector of {dimension} finite numbers")
    # Brought near one first, so that no square leaves the range.
    most = max(map(abs, vector))
    if not most:
        return bytes(dimension)
    near = [number / most for number in vector]
    factor = radius(dimension) / math.sqrt(math.fsum(number * number for number in near))
    return bytes(max(-_TOP, min(_TOP, round(number * factor))) & 0xFF for number in near)


def radius(dimension: int) -> float:
    """How long a vector of bytes is: its numbers spread by 32, so that hardly one in 10,000 is cut at 127."""
    return 32 * math.sqrt(dimension)
