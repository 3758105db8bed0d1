"""How the tests run: no example has a deadline, and in CI every run draws the same ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

from tests.memories import MODEL, Scratch
from tests.stores import Home, furnish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ledgerstone import Memory

settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
# For changes to the code, of which there are thousands: whether one of a few examples fails is all that is asked.
settings.register_profile(
    "mutation", deadline=None, derandomize=True, max_examples=20, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    """A new store."""
    made = Scratch(tmp_path / "memory.ledger")
    yield made
    made.memory.close()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """One store for all examples of a property, and for all tests of a file that only add to it."""
    made = Scratch(tmp_path_factory.mktemp("shelf") / "memory.ledger")
    yield made
    made.memory.close()


@pytest.fixture
def ada(scratch: Scratch) -> Memory:
    """The new store as its owner has it at a terminal, in a project."""
    return scratch.memory


@pytest.fixture
def model(scratch: Scratch) -> Memory:
    """The same store as a model has it, working for the owner."""
    return scratch.by(MODEL)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A store at rest that holds one of everything, for all tests of a file; each takes a copy."""
    return furnish(tmp_path_factory.mktemp("home") / "store.db", fillers=2)


@pytest.fixture
def home(untouched: Home, tmp_path: Path) -> Home:
    """A copy of it, to be changed at will."""
    return untouched.copy(tmp_path)
