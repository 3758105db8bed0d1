"""Whether a draft holds what looks like a credential: which sort, and where, and never the credential itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from math import log2
from typing import Final, NamedTuple

from ledgerstone.core.credential_rules import CREDENTIALS, Credential
from ledgerstone.core.values import Draft
from ledgerstone.errors import RuleError, UsageError

NAMES: Final = frozenset(sort.name for sort in CREDENTIALS)
# What is said of one draft: more would not help.
MAX_SAID: Final = 8
# As many as an entry names.
MAX_PASSED: Final = 16
_KEYWORDS: Final = tuple((keyword, number) for number, sort in enumerate(CREDENTIALS) for keyword in sort.keywords)
# The shortest word that a keyword stands in, which is how a private key begins.
_LEAST: Final = len("-----BEGIN")
_DIGIT: Final = re.compile("[0-9]")


class Found(NamedTuple):
    """What looks like a credential: by which rule, in which field, from which character to which."""

    rule: str
    field: str
    start: int
    end: int


def check(draft: Draft, allowed: Collection[str] = ()) -> tuple[str, ...]:
    """The rules that found something in a draft and were allowed to pass, in order; RuleError for any other.

    UsageError for a name that is no rule's.
    """
    return _passed([*_texts(draft)], allowed)


def check_reason(reason: str | None, allowed: Collection[str] = ()) -> None:
    """The same for a reason; its entry cannot say what was allowed, so that only the caller's own allowance counts."""
    if reason is not None:
        _passed([("reason", reason)], allowed)


def _passed(texts: Sequence[tuple[str, str]], allowed: Collection[str]) -> tuple[str, ...]:
    strange = sorted(set(allowed) - NAMES)
    if strange:
        raise UsageError(f"no secret rule {strange[0][:64]!r}", hint="a refusal names the rule: allow that one")
    found = list(_found(texts))
    refused = [each for each in found if each.rule not in allowed]
    if refused:
        said = "; ".join(f"{one.field}, characters {one.start} to {one.end}: {one.rule}" for one in refused[:MAX_SAID])
        raise RuleError(
            f"secret: looks like a credential: {said}",
            rule="secret",
            hint="leave it out, and say where it is kept; if it is none, the user lets it pass: --allow-secret RULE",
        )
    passed = tuple(sorted({each.rule for each in found}))
    if len(passed) > MAX_PASSED:
        raise RuleError(f"secret: at most {MAX_PASSED} rules let something pass, not {len(passed)}", rule="secret")
    return passed


def scan(draft: Draft) -> Iterator[Found]:
    """Every place in a draft that looks like a credential, each text by itself."""
    yield from _found([*_texts(draft)])


def _found(texts: Sequence[tuple[str, str]]) -> Iterator[Found]:
    # Nearly every draft is done here: few words are long, and hardly one of those has a keyword in it.
    words = [word for _, text in texts for word in text.split() if len(word) >= _LEAST]
    suspects = " ".join(filter(_suspect, words)).lower()
    hits = [number for keyword, number in _KEYWORDS if keyword in suspects] if suspects else []
    for number in sorted(set(hits)):
        for field, text in texts:
            for start, end in _places(CREDENTIALS[number], text):
                yield Found(CREDENTIALS[number].name, field, start, end)


def _texts(draft: Draft) -> Iterator[tuple[str, str]]:
    for field in ("text", "key", "source", "title", "place"):
        text = getattr(draft, field)
        if text is not None:
            yield field, text
    for field in ("tags", "triggers"):
        for text in getattr(draft, field):
            yield field, text


def _places(sort: Credential, text: str) -> Iterator[tuple[int, int]]:
    for match in _compiled(sort.pattern).finditer(text):
        group = next((number for number, part in enumerate(match.groups(), 1) if part), 0)
        secret = match[group]
        if (
            (sort.entropy == 0 or _drawn(secret))
            and _entropy(secret) > sort.entropy
            and all(_compiled(each).search(secret) for each in sort.has)
            and not any(_compiled(each).search(secret) for each in sort.lacks)
            and not any(_compiled(each).search(match[0]) for each in sort.without)
        ):
            yield match.span(group)


def _suspect(word: str) -> bool:
    return _drawn(word) or "://" in word or "-----" in word


def _drawn(word: str) -> bool:
    """Whether it may be drawn at random: a word of small letters is a name of somebody's, whatever it begins with."""
    return _DIGIT.search(word) is not None or not (word.islower() or word.isupper())


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _entropy(text: str) -> float:
    """Shannon's, in bits a character."""
    return -sum(count / len(text) * log2(count / len(text)) for count in Counter(text).values())
