"""WordPiece: a text as the numbers of its pieces, as an uncased BERT vocabulary cuts it.

Schuster and Nakajima, Japanese and Korean Voice Search (2012); Devlin et al., BERT (2019). Checked against the
tokenizers package of the same vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final
from unicodedata import category, normalize

UNKNOWN: Final = "[UNK]"
# A longer word is one unknown piece, as in BERT.
MAX_WORD_CHARACTERS: Final = 100
_KEPT_WORDS: Final = 1 << 15


class WordPiece:
    """Cuts texts by a vocabulary: its pieces in the order of their numbers, ``##`` before one inside a word."""

    __slots__ = ("_pieces", "vocabulary", "word")

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._pieces: Mapping[str, int] = {piece: number for number, piece in enumerate(vocabulary)}
        self.word = lru_cache(maxsize=_KEPT_WORDS)(self._word)

    def words(self, text: str) -> list[str]:
        """The words of a text before they are cut: lower case, without accents, each sign on its own."""
        plain = _plain(text).lower()
        return _ASCII_WORDS(plain) if plain.isascii() else "".join(map(_spaced, normalize("NFD", plain))).split()

    def cut(self, text: str) -> list[int]:
        """The numbers of a text's pieces, in order; none for a text without any."""
        return list(chain.from_iterable(map(self.word, self.words(text))))

    def _word(self, word: str) -> tuple[int, ...]:
        """A word's pieces, the longest first; the unknown piece alone where any part of it fits none."""
        pieces = self._pieces
        found: list[int] = []
        start = 0
        while start < len(word) <= MAX_WORD_CHARACTERS:
            end = len(word)
            while start < end and ("##" if start else "") + word[start:end] not in pieces:
                end -= 1
            if start == end:
                return (pieces[UNKNOWN],)
            found.append(pieces[("##" if start else "") + word[start:end]])
            start = end
        return tuple(found) or (pieces[UNKNOWN],)


def _plain(text: str) -> str:
    return text if text.isascii() and text.isprintable() else "".join(map(_cleaned, text))


@lru_cache(maxsize=1 << 12)
def _cleaned(sign: str) -> str:
    """Nothing for what cannot be seen, one space for any, and a space around each sign that is a word in Chinese."""
    if sign in "\t\n\r" or category(sign) == "Zs":
        return " "
    if sign == "\ufffd" or category(sign).startswith("C"):
        return ""
    return f" {sign} " if any(first <= sign <= last for first, last in _HAN) else sign


_HAN: Final = (
    ("\u4e00", "\u9fff"),
    ("\u3400", "\u4dbf"),
    ("\U00020000", "\U0002a6df"),
    ("\U0002a700", "\U0002b73f"),
    ("\U0002b740", "\U0002b81f"),
    ("\U0002b820", "\U0002ceaf"),
    ("\uf900", "\ufaff"),
    ("\U0002f800", "\U0002fa1f"),
)


# What ``_spaced`` makes of ASCII without what cannot be seen, at a tenth of the cost.
_ASCII_WORDS: Final = re.compile(r"[a-z0-9]+|[^a-z0-9 ]").findall


@lru_cache(maxsize=1 << 12)
def _spaced(sign: str) -> str:
    """Nothing for an accent, and a space around a punctuation sign; ASCII counts all of its signs as such."""
    if sign.isalnum():
        return sign
    kind = category(sign)
    if kind == "Mn":
        return ""
    return f" {sign} " if kind.startswith("P") or "!" <= sign <= "~" else sign
