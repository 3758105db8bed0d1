"""The static token table: a vector for each piece of a vocabulary, taken once from a small model.

``data/README.md`` says where it comes from, and ``tools/make_table.py`` makes it. A text is the weighted mean of its
pieces (Arora et al., A Simple but Tough-to-Beat Baseline for Sentence Embeddings, 2017); a query is matched word by
word as in late interaction (Khattab and Zaharia, ColBERT, 2020).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgerstone.core.ranking import SCORE_UNITS
from ledgerstone.core.wordpiece import WordPiece
from ledgerstone.errors import CorruptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLE: Final = Path(__file__).parent / "data" / "table.npz"
TABLE_SHA256: Final = "2bcc8ae1ad4d4871254b0e7c6c714f7be0285b9fd5e4977868f6261a57c34c08"
# How a text is made of the table's rows; another way is another model, whose vectors are made anew.
WAY: Final = 3
# Products of this many pairs of rows stay on one thread: waking others for so little takes longer, and burns a core.
ONE_THREAD: Final = 1024
LEAST_BLOCK: Final = 8
LAST_LATIN: Final = "\u024f"
# Only the beginning of a long text is matched word by word; the mean takes all of it.
MATCHED_PIECES: Final = 512


@dataclass(frozen=True, slots=True)
class StaticTable:
    """The table as an encoder: 256 numbers a text, all in integers until the last rounding.

    What is mostly in another script than Latin is not ``readable``: it has no meaning here, and no vector.
    """

    cutter: WordPiece
    rows: NDArray[np.int8]
    weights: NDArray[np.int64]
    unit: int
    name: str = "static-minilm"
    version: str = f"{TABLE_SHA256[:12]}.{WAY}"

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return int(self.rows.shape[1])

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """The sum of each text's pieces, each as heavy as it is rare; zero for a text without any."""
        return [self._sum(self._pieces(text)) for text in texts]

    def _pieces(self, text: str) -> list[int]:
        """The pieces of a text; none where most are of a script that is not known here."""
        return self.cutter.cut(text) if readable(text) else []

    def _sum(self, pieces: list[int]) -> list[float]:
        import numpy as np  # noqa: PLC0415 - an extra

        # Whole numbers far below 2**53: exact in whatever order they are added.
        rows = self.rows[pieces].astype(np.float64)
        found: list[float] = (rows * self.weights[pieces, None]).sum(0).tolist()
        return found

    def match(self, query: str, texts: Sequence[str], weigh: Callable[[Sequence[str]], Sequence[int]]) -> list[int]:
        """How well each text answers the query, piece by piece; millionths.

        For each piece of the query the closest of a text's, as heavy as its word weighs in the store. A query that has
        more pieces than the texts have in the mean says more than any of them could answer: then for each piece of a
        text the closest of the query's, as heavy as it is rare.
        """
        import numpy as np  # noqa: PLC0415 - an extra

        words = self.cutter.words(query)
        heavy = [
            (piece, weight)
            for word, weight in zip(words, weigh(words), strict=True)
            for piece in self.cutter.word(word)
            if weight
        ][:MATCHED_PIECES]
        total = sum(weight for _, weight in heavy) * self.unit
        if not total or not self._pieces(query):
            return [0] * len(texts)
        asked = self.rows[[piece for piece, _ in heavy]].astype(np.float32)
        weights = np.array([weight for _, weight in heavy], np.int64)
        cut = [self._pieces(text)[:MATCHED_PIECES] for text in texts]
        # A piece that several texts share is compared once. Products of bytes are exact in 32 bits.
        pieces, places = np.unique([piece for each in cut for piece in each], return_inverse=True)
        rows = self.rows[pieces.astype(np.int64)].astype(np.float32)
        close = np.empty((len(asked), len(rows)), np.int32)
        step = max(LEAST_BLOCK, ONE_THREAD // len(asked))
        for start in range(0, len(rows), step):
            close[:, start : start + step] = asked @ rows[start : start + step].T
        sizes = np.array([len(each) for each in cut], np.int64)
        held = sizes > 0
        best = np.zeros(len(cut), np.int64)
        totals = np.full(len(cut), total, np.int64)
        if held.any():
            # What is of each text: from where its pieces begin to where those of the next one do.
            starts = (np.cumsum(sizes) - sizes)[held]
            if len(asked) * int(held.sum()) <= len(places):
                best[held] = weights @ np.maximum.reduceat(close[:, places], starts, axis=1)
            else:
                rarity = self.weights[pieces.astype(np.int64)]
                best[held] = np.add.reduceat((close.max(0) * rarity)[places], starts)
                totals[held] = np.add.reduceat(rarity[places], starts) * self.unit
        return [int(each) * SCORE_UNITS // int(most) for each, most in zip(best, totals, strict=True)]


@cache
def static_table() -> StaticTable:
    """The table that comes with this package; CorruptionError when its bytes are not those that were made."""
    data = TABLE.read_bytes()
    if hashlib.sha256(data).hexdigest() != TABLE_SHA256:
        raise CorruptionError(
            f"not the table of this version: {TABLE}",
            hint="install it again, from the checkout: pip install '.[semantic]'",
        )
    return read(data)


def read(data: bytes) -> StaticTable:
    """A table out of the bytes of its file."""
    import numpy as np  # noqa: PLC0415 - an extra

    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        rows: Any = stored["rows"]
        weights: Any = stored["weights"]
        pieces = stored["pieces"].tobytes().decode("utf-8").split("\n")
    # The square of a row's length, which all rows have but for rounding.
    return StaticTable(WordPiece(pieces), rows, weights.astype(np.int64), 1024 * rows.shape[1])


def readable(text: str) -> bool:
    """Whether at least half of a text's letters are Latin: of other scripts the vocabulary has little but letters.

    A whole run of Thai is one unknown piece, so pieces could not tell.
    """
    if text.isascii():
        return True
    letters = [sign for sign in text if sign.isalpha()]
    return 2 * sum(sign <= LAST_LATIN for sign in letters) >= len(letters)
