"""What is looked for in files is found, wherever it lies in them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone import traces

# So few letters that pieces overlap, repeat and begin alike.
few_letters = st.binary(min_size=traces.LEAST_BYTES, max_size=12).map(
    lambda data: bytes(b"abc"[byte % 3] for byte in data)
)


@given(
    st.lists(few_letters, min_size=1, max_size=8, unique=True),
    st.lists(few_letters, max_size=40).map(b"".join),
    st.booleans(),
    st.integers(12, 40),
)
def test_every_piece_is_found(pieces: list[bytes], data: bytes, many: bool, block: int) -> None:
    """Whether there are few pieces or many, and wherever a block of the file ends: found is what is there."""
    asked = pieces + [b"never there %d" % number for number in range(traces.FEW * many)]
    with tempfile.NamedTemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces, "_BLOCK", block)
        file.write(data)
        file.flush()

        found = traces.seek(Path(file.name), asked)

    assert found == {number for number, piece in enumerate(asked) if piece in data}


@given(st.integers(0, 9000), st.integers(0, 9000))
def test_a_remnant_of_a_long_text_holds_a_piece(size: int, start: int) -> None:
    """Whatever part of it is left in a page, if it has the length of a stride, has something that is looked for."""
    text = b"".join(b"%08d" % number for number in range(1200))[:size]
    pieces = traces.pieces_of(text)
    remnant = text[start : start + traces.STRIDE_BYTES + traces.PIECE_BYTES]

    assert all(piece in text for piece in pieces)
    assert bool(pieces) == (size >= traces.LEAST_BYTES)
    if len(remnant) == traces.STRIDE_BYTES + traces.PIECE_BYTES:
        assert any(piece in remnant for piece in pieces)


def test_another_process_looks(tmp_path: Path) -> None:
    """Files are told apart, one that is gone holds nothing, and one that cannot be read is an error."""
    for name, text in (("one", "the quokka"), ("two", "the numbat"), ("three", "nobody")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [tmp_path / name for name in ("one", "two", "three", "gone")]

    found = traces.look(paths, [b"quokka", b"numbat", b"the nu"])

    assert found == {str(paths[0]): {0}, str(paths[1]): {1, 2}}
    with pytest.raises(OSError, match="Is a directory"):
        traces.look([tmp_path], [b"quokka"])
