"""Words: what a text is found by, cut here once for every backend, and what a query looks up."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain, pairwise
from threading import Lock
from typing import Final
from unicodedata import category, normalize

import Stemmer

ANALYZER: Final[str] = f"words/2 snowball english+russian {Stemmer.version()}"
MAX_WORD_CHARACTERS: Final = 64
MAX_QUERY_WORDS: Final = 32

STOP_WORDS: Final = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could
    did do does doing during each either for from had has have having he her hers him his how i if in
    into is it its just me might more most my no nor not of off on once only or other our ours out
    over own same shall she should so some such than that the their theirs them then there these they this
    those through to too under until up upon very was we were what when where whether which while
    who whom whose why will with would you your yours

    а без бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть еще
    ещё же за и из или им их к как какая какие какое какой когда которая которые который кто ли меня мне
    мы на над не него нее неё нет них но ну о об он она они оно от по под почему при с со так такой там
    то того тоже только ты у уже чего чем что чтобы эта эти это этот я
    """.split()  # noqa: RUF001, SIM905 (Cyrillic looks like Latin; words read best as prose)
)


def index_words(text: str) -> list[str]:
    """The words that a text is found by, in order and with repeats; none for a text without any.

    Compatibility forms, case and invisible characters make no difference. An identifier (hyphenated or
    dotted name, path, URL, address, version) counts whole and again by its parts; only what holds no
    punctuation is stemmed. Scripts written without spaces give single characters and overlapping pairs.
    A word keeps its first 64 characters.
    """
    if text.isascii():
        return _stemmed(text)
    words: list[str] = []
    for place, piece in enumerate(_unspaced_runs().split(_plain(text))):
        words += map(_stem, _unspaced(piece, singles=True)) if place % 2 else _stemmed(piece)
    return words


def query_words(text: str, limit: int | None = MAX_QUERY_WORDS) -> list[str]:
    """The words to look up for a query: unique, in order, the first ``limit`` of them (None: all).

    Cut as ``index_words`` cuts, but a script written without spaces is looked up by its pairs (by the
    single character where it stands alone), and stop words are left out unless nothing else remains.
    """
    words = _cut(text)
    telling = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(map(_stem, telling or words)))[:limit]


def characters(words: Iterable[str]) -> list[str]:
    """The Han characters that a query's words are pairs of, unique and in order, less those that are words of it.

    Most mean something by themselves, as no letter or syllable does: texts that say one thing often share no pair.
    Nie, Gao, Zhang and Zhou, On the Use of Words and N-grams for Chinese Information Retrieval (2000).
    """
    there = dict.fromkeys(words)
    text = "".join(there)
    return [] if text.isascii() else [sign for sign in dict.fromkeys(text) if _is_han(sign) and sign not in there]


def _is_han(sign: str) -> bool:
    return any(first <= sign <= last for first, last in _HAN)


_HAN: Final = (("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))


def telling(text: str) -> bool:
    """Whether a text has a word that is no stop word: only then can a query call it by its words."""
    return not STOP_WORDS.issuperset(_cut(text))


def postings(words: Iterable[str]) -> str:
    """A record's words as one text, for a full-text index to split and for ``ranking`` to count in.

    Each different word stands once, as its ``token`` between spaces, on the line whose number is how
    often it occurs. SQLite's FTS5 with its ``ascii`` tokenizer sees exactly one token a word.
    """
    times = Counter(words)
    lines: list[list[str]] = [[] for _ in range(max(times.values(), default=0))]
    for word, occurrences in times.items():
        lines[occurrences - 1].append(word)
    text = "\n".join([f" {' '.join(line)} " for line in lines])
    return text if "".join(times).isalnum() else token(text)


def token(word: str) -> str:
    """A word as it stands in ``postings``: each ASCII punctuation character has a private-use stand-in.

    Nothing in it is syntax to a full-text engine, and FTS5's ``ascii`` tokenizer does not split it: there
    ASCII letters, ASCII digits and every character beyond ASCII belong to a token. Words hold no
    private-use characters of their own, so different words stay different.
    """
    return _PUNCTUATION.sub(_stand_in, word)


_PUNCTUATION: Final = re.compile(f"[{re.escape(string.punctuation)}]")
_PRIVATE_USE: Final = 0xE000


def _stand_in(mark: re.Match[str]) -> str:
    return chr(_PRIVATE_USE + ord(mark[0]))


# Han, Kana and Hangul; Thai and Lao, Burmese, Khmer. Korean has spaces, but its particles cling to the
# noun, and no stemmer here takes them off.
@cache
def _unspaced_runs() -> re.Pattern[str]:
    """Runs of those scripts; compiled when a text first needs it, since that takes longer than most texts."""
    return re.compile(
        "([\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
        "\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff]+)"
    )


# After _plain every character beyond ASCII belongs to a word. A joiner and a word share no character, so
# that a match never backtracks further than one joiner.
_IN_WORD = r"[^\x00-/:-@\[-^`{-\x7f]"  # by what it is not: sre is slow to compile what goes beyond ASCII
_JOINER = r"(?:://|[-./\\:@&+=#?~%]{1,2})"
_LANGUAGE = rf"(?:\+\+|#)(?!{_IN_WORD})"  # C++, C#
_CLITIC = rf"'(?i:[dmst]|ll|re|ve)(?!{_IN_WORD})"  # left out: Ann's, don't
_TOKEN: Final = re.compile(rf"({_IN_WORD}+(?:{_JOINER}{_IN_WORD}+)*(?:{_LANGUAGE})?)(?:{_CLITIC})?")
_AROUND_PLAIN_WORDS: Final = ".,;:!?()[]{}*`\"'"

# From the loosest bond to the tightest: python-3.11.2 keeps 3.11.2, and src/foo_bar.py keeps foo_bar.
_BONDS: Final = tuple(re.compile(bond).split for bond in (r"[/\\:@&+=#?~%]+", "-+", r"\.+", "_+"))
_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")


def _cut(text: str) -> list[str]:
    """The words of a query, folded and not yet stemmed."""
    words: list[str] = []
    for place, piece in enumerate([text] if text.isascii() else _unspaced_runs().split(_plain(text))):
        words += _unspaced(piece, singles=False) if place % 2 else chain.from_iterable(map(_chunk, piece.split()))
    return words


def _unspaced(run: str, *, singles: bool) -> list[str]:
    """A run's overlapping pairs; also its single characters when indexing, or where one stands alone."""
    pairs = [first + second for first, second in pairwise(run)]
    return [*run, *pairs] if singles or not pairs else pairs


def _stemmed(text: str) -> list[str]:
    """The stems of a text whose scripts have spaces."""
    chunks = text.split()
    try:
        return list(chain.from_iterable(map(_stems, chunks)))
    except OverflowError:
        return list(chain.from_iterable(map(_cut_stems, chunks)))


@lru_cache(maxsize=1 << 15)
def _stems(chunk: str) -> tuple[str, ...]:
    """The same of what comes again and again; OverflowError for what is long, so that little is kept."""
    if len(chunk) > MAX_WORD_CHARACTERS:
        raise OverflowError
    return _cut_stems(chunk)


def _cut_stems(chunk: str) -> tuple[str, ...]:
    """The stems of what stands between two spaces."""
    bare = chunk.strip(_AROUND_PLAIN_WORDS)
    if bare.isascii() and bare.isalnum() and bare.islower():
        # What follows makes just this of most words, in five steps.
        with _STEMMING:
            return (_ENGLISH.stemWord(bare[:MAX_WORD_CHARACTERS]),)
    return tuple(map(_stem, _chunk(chunk)))


def _chunk(chunk: str) -> list[str]:
    """The folded words of what stands between two spaces."""
    bare = chunk.strip(_AROUND_PLAIN_WORDS)
    if bare.isalnum() and bare.islower():
        return [_fold(bare)]
    return [_fold(word) for found in _TOKEN.findall(chunk) for word in _named(found)]


def _named(name: str, bond: int = 0) -> list[str]:
    """A name, then the same for each piece that its loosest bond, from ``bond`` on, holds together."""
    if name.isalnum():
        humps = _HUMP.split(name)
        return [name, *humps] if len(humps) > 1 else humps
    for tighter, split in enumerate(_BONDS[bond:], bond + 1):
        pieces = [piece for piece in split(name) if piece]
        if pieces != [name]:
            parts = [part for piece in pieces for part in _named(piece, tighter)]
            return [name, *parts] if parts else []
    return [name]


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()[:MAX_WORD_CHARACTERS]
    return normalize("NFKC", word.casefold())[:MAX_WORD_CHARACTERS]


_ENGLISH: Final = Stemmer.Stemmer("english", 0)
_RUSSIAN: Final = Stemmer.Stemmer("russian", 0)
_STEMMING: Final = Lock()  # a Stemmer has inner state, and must not be called by two threads at once


def _stem(word: str) -> str:
    """A word's stem; one with punctuation in it is a name, which has none.

    Each stemmer knows the letters of its own alphabet only, and leaves every other word as it is.
    """
    if not word.isalnum() and _PUNCTUATION.search(word):
        return word
    with _STEMMING:
        stem: str = _ENGLISH.stemWord(word)
        return stem if stem.isascii() else _RUSSIAN.stemWord(stem)


def _plain(text: str) -> str:
    """A text in which every character beyond ASCII belongs to a word: NFKC, signs settled."""
    settled = _SIGNS.sub(_settle, text)
    composed = normalize("NFKC", settled)
    return composed if composed == settled else _SIGNS.sub(_settle, composed)


_SIGNS: Final = re.compile(r"[^\w\x00-\x7f]+")
# As in Unicode's stream-safe text (UAX 15): to put a longer run of marks in order takes quadratic time.
_MAX_SIGNS: Final = 30


def _settle(run: re.Match[str]) -> str:
    signs = "".join(map(_sign, run[0]))
    return signs if len(signs) <= _MAX_SIGNS else f"{signs[:_MAX_SIGNS]} "


@lru_cache(maxsize=1 << 12)
def _sign(sign: str) -> str:
    """What a character that is neither letter nor digit is to the words.

    An invisible one is nothing, a combining mark stays, an apostrophe, a hyphen or the wide form of an
    ASCII sign becomes that sign; any other separates, with the letters that it may hold.
    """
    kind = category(sign)
    if kind == "Cf" or _INVISIBLE_MARK.match(sign):
        return ""
    if kind.startswith("M"):
        return sign
    folded = normalize("NFKC", _TYPOGRAPHIC.get(sign, sign))
    if any(map(str.isalnum, folded)):
        return f" {folded} "
    return folded if folded.isascii() else " "


_INVISIBLE_MARK: Final = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_TYPOGRAPHIC: Final = {"\u2019": "'", "\u2010": "-", "\u2011": "-"}
