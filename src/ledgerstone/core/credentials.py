"""Whether a draft holds what looks like a credential: which sort, and where, and never the credential itself."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, starmap
from math import log2
from typing import Final, NamedTuple

from ledgerstone.core.credential_rules import CREDENTIALS, Credential
from ledgerstone.core.rules import UNSEEN
from ledgerstone.core.values import Draft
from ledgerstone.errors import RuleError, UsageError

# What has no form of its own, and is known by the name that it is given to.
PASSWORD: Final = "password_assignment"  # noqa: S105 - the name of a rule
SECRET: Final = "secret_assignment"  # noqa: S105 - the name of a rule
NAMES: Final = frozenset({PASSWORD, SECRET, *(sort.name for sort in CREDENTIALS)})
# What is said of one draft: more would not help.
MAX_SAID: Final = 8
# As many as an entry names.
MAX_PASSED: Final = 16
# How much of a credential that a line's end cuts in two stands on either side: less may be two words of a list.
LEAST_SIDE: Final = 6
_KEYWORDS: Final = tuple((keyword, number) for number, sort in enumerate(CREDENTIALS) for keyword in sort.keywords)
# The shortest word that a keyword stands in, which is how a private key begins.
_LEAST: Final = len("-----BEGIN")
_DIGIT: Final = re.compile("[0-9]")
_BREAK: Final = re.compile(r"(?<=\S)[ \t]*(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[ \t]*(?=\S)")

# How a value is given to a name; quotes that the name stands in end before it.
_SIGN: Final = r"[\"'`\]]{0,2}[ \t]{0,3}(=>|:=|==?|[:\uff1a])[ \t]{0,3}"
_VALUE: Final = r"(?:([\"'`])([^\"'`\s]{6,200})\4|([^\s\"'`,;]{6,200}))"
# Each name by how it begins, in lower case, and all that may follow there.
_PASSWORD_NAMES: Final = ("pass", "pwd", "curl")
_PASSWORD: Final = re.compile(
    rf"(?:(passw(?:or)?d|passphrase|passcode|pwd|(?<![a-z])pass)(?:{_SIGN}|([ \t]{{1,3}})(?=\S*[0-9]))"
    r"|(?<=ssh)pass[ \t]+-p[ \t]?|curl\b[^\n]{0,100}?[ \t](?:-u|--user)[ \t=]?[\"'`]?[^\s:\"'`]{1,64}:)"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_COLONS: Final = frozenset(":\uff1a")
# Names that directories and tests have too.
_LOOSE: Final = frozenset({"pass", "pwd"})
_SECRET_NAMES: Final = ("secret", "token", "api", "access", "account", "private")
_SECRET: Final = re.compile(
    rf"(?:token|secret(?:[_ -]?key)?|(?:api|access|account|private)[_ -]?key){_SIGN}[\"'`]?"
    r"([A-Za-z0-9+/_.~=-]{12,200})(?![A-Za-z0-9+/_.~=(\[{$-])",
    re.IGNORECASE,
)
_HEADER_NAMES: Final = ("authorization",)
_HEADER: Final = re.compile(
    rf"authorization{_SIGN}[\"'`]?(?:(basic)|bearer)[ \t]{{1,3}}([A-Za-z0-9+/_.~=-]{{8,200}})", re.IGNORECASE
)
_GIVEN_NAMES: Final = (*_PASSWORD_NAMES, *_SECRET_NAMES, *_HEADER_NAMES)
# Words and numbers, joined: a name, a path, a release.
_WORDS: Final = re.compile(r"(?:[^\W\d_]+\d*|\d+)(?:[-_/.:|]+(?:[^\W\d_]+\d*|\d+))+[-_/.:|]*")
# Words in the place of a value, and how values are referred to that stand elsewhere.
_PLACEHOLDER: Final = re.compile(
    r"(?:[x*.\u2022_?#0-]+"
    r"|(?:(?:your|my|the|some|an?|new|old|db|user|admin|root|test|example|sample|dummy|fake|default|super|strong)[._-]?)*"
    r"(?:passw(?:or)?d|passphrase|passcode|pwd|pass|secret|token|key)(?:[._-]?(?:here|goes[._-]?here|value|example|\d{1,4}))?"
    r"|change[._-]?(?:me|it|this)\d{0,4}|replace[._-]?(?:me|this)|insert[._-].*|redacted|masked|filtered|hidden|removed"
    r"|(?:an?[._-]|my[._-])?(?:example|sample|placeholder)\d{0,4}|todo|unset|none|null|undefined|empty|false|string|required"
    r"|optional|mandatory|in(?:valid|correct)|unknown|(?:dis|en)abled|prompt|postgres|mysql|guest|admin(?:\d{0,4}|12345\d*)"
    r"|(?:test|dummy|fake|demo)[a-z]{0,8}\d{0,4}|foo(?:bar)?(?:baz)?\d{0,4})[!?.]*",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    # A variable has no small letter after a digit.
    r"[%@!&/~<{\[(\\-]|\$(?![A-Z_]\w*\d(?-i:[a-z]))"
    r"|.*(?:[({]|\$\{|::|->|\.\.\.)|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Za-z_][\w.]*\["
    r"|(?:https?|file|env|vault|secrets?|sops|op|ssm|arn|keyring)[:/]",
    re.IGNORECASE,
)
_METHOD: Final = re.compile(
    r"(?:argon2|b?s?crypt|pbkdf2|sha-?[0-9]|md5|hmac|base64|utf-?8|oauth2|tls1|ed25519)", re.IGNORECASE
)
_SAMPLE: Final = re.compile(r"example|sample|placeholder|x{4}|your|changeme|dummy|fake", re.IGNORECASE)


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
    return _passed(scan(draft), allowed)


def check_text(field: str, text: str | None, allowed: Collection[str] = ()) -> None:
    """The same for a name or a reason, whose entry cannot say what was allowed."""
    if text is not None:
        _passed(_found([(field, text)]), allowed)


def sorts(texts: Sequence[str], allowed: Collection[str] = ()) -> tuple[str, ...]:
    """The rules that find something in some texts and are not allowed to pass, in order."""
    return tuple(sorted({rule for text in texts for rule, *_ in _within(text)} - set(allowed)))


def _passed(places: Iterable[Found], allowed: Collection[str]) -> tuple[str, ...]:
    if not NAMES.issuperset(allowed):
        strange = min(set(allowed) - NAMES)
        raise UsageError(f"no secret rule {strange[:64]!r}", hint="a refusal names the rule: allow that one")
    found = list(places)
    if not found:
        return ()
    refused = [each for each in found if each.rule not in allowed]
    if refused:
        said = "; ".join(
            f"{one.field}, characters {one.start + 1} to {one.end}: {one.rule}" for one in refused[:MAX_SAID]
        )
        raise RuleError(
            f"secret: looks like a credential: {said}",
            rule="secret",
            hint="leave it out, and say where it is kept; if it is none, the user lets its rule pass: allow_secrets",
        )
    passed = tuple(sorted({each.rule for each in found}))
    if len(passed) > MAX_PASSED:
        raise RuleError(f"secret: at most {MAX_PASSED} rules let something pass, not {len(passed)}", rule="secret")
    return passed


def scan(draft: Draft) -> Iterator[Found]:
    """Every place in a draft that looks like a credential, each text by itself."""
    return _found(_texts(draft))


def _found(texts: Iterable[tuple[str, str]]) -> Iterator[Found]:
    for field, text in texts:
        for rule, start, end in _within(text):
            yield Found(rule, field, start, end)


_Spot = tuple[str, int, int]


def _within(text: str) -> Iterator[_Spot]:
    """What looks like a credential in a text, whatever is unseen in it, also where a line's end cuts it in two."""
    # Of most it can be told at once that nothing is.
    seen = text if text.isascii() and text.isprintable() else UNSEEN.sub("", text)
    spots = [*_by_form(seen)]
    for spot in _by_name(seen):
        # What has a form is known by it, whatever it is given to.
        if not any(spot[1] < end and start < spot[2] for _, start, end in spots):
            spots.append(spot)
    lines = seen.splitlines()
    if len(lines) > 1 and any(starmap(_is_cut, pairwise(lines))) and (whole := [*_by_form(_BREAK.sub("", seen))]):
        places = _kept(seen, _BREAK)
        for rule, start, end in whole:
            spot = rule, places[start], places[end - 1] + 1
            within = range(start + LEAST_SIDE, end - LEAST_SIDE + 1)
            if any(places[at] > places[at - 1] + 1 for at in within) and spot not in spots:
                spots.append(spot)
    if spots:
        places = _kept(text, UNSEEN)
        yield from ((rule, places[start], places[end - 1] + 1) for rule, start, end in spots)


def _is_cut(line: str, following: str) -> bool:
    """Whether the last word of a line and the first of the next may be one that is drawn."""
    last, first = line.rstrip().rpartition(" ")[2], following.lstrip().partition(" ")[0]
    return min(len(last), len(first)) >= LEAST_SIDE and _suspect(last + first)


def _kept(text: str, without: re.Pattern[str]) -> list[int]:
    """Where each character stood of what is left without some."""
    places: list[int] = []
    at = 0
    for gone in without.finditer(text):
        places += range(at, gone.start())
        at = gone.end()
    return [*places, *range(at, len(text))]


def _by_form(text: str) -> Iterator[_Spot]:
    # Nearly every draft is done here: few words are long, and hardly one of those has a keyword in it.
    suspects = " ".join([word for word in text.split() if len(word) >= _LEAST and _suspect(word)]).lower()
    if not suspects:
        return
    for number in sorted({number for keyword, number in _KEYWORDS if keyword in suspects}):
        for start, end in _places(CREDENTIALS[number], text):
            yield CREDENTIALS[number].name, start, end


def _by_name(text: str) -> Iterator[_Spot]:
    """What is given to a name that is a password's or a secret's, as ``password = "..."`` and ``DB_PASSWORD=...``."""
    # The one letter that is two in lower case would shift what follows it.
    lower = text.replace("\u0130", "I").lower()
    if not any(map(lower.__contains__, _GIVEN_NAMES)):
        return
    for match in _matches(_PASSWORD, _PASSWORD_NAMES, text, lower):
        name, sign, blank, quote, within, bare = match.groups()
        value = bare.rstrip(".,:!?)]}") if quote is None else within
        start = match.start(6 if quote is None else 5)
        if _is_password(value, name or "", sign=sign or blank or "=", quoted=quote is not None):
            yield PASSWORD, start, start + len(value)
    for match in _matches(_SECRET, _SECRET_NAMES, text, lower):
        value = match[2].rstrip(".")
        if _is_secret(value):
            yield SECRET, match.start(2), match.start(2) + len(value)
    for match in _matches(_HEADER, _HEADER_NAMES, text, lower):
        if _is_basic(match[3]) if match[2] else _is_secret(match[3]):
            yield SECRET, *match.span(3)


def _matches(pattern: re.Pattern[str], names: tuple[str, ...], text: str, lower: str) -> Iterator[re.Match[str]]:
    """Where a pattern matches from the beginning of a name: to look for the names first is many times as fast."""
    for name in names:
        at = lower.find(name)
        while at >= 0:
            if match := pattern.match(text, at):
                yield match
            at = lower.find(name, at + len(name))


def _is_secret(value: str) -> bool:
    """Whether a value may be drawn at random, and is no name or place of one."""
    return (
        _mixed(value)
        and _entropy(value) > 3.0  # noqa: PLR2004 - as most borrowed rules have it
        and not (_SAMPLE.search(value) or _ELSEWHERE.match(value) or _WORDS.fullmatch(value))
    )


def _is_basic(value: str) -> bool:
    """Whether a value is a name and a password, in base 64."""
    try:
        password = b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:
        return False
    return _is_password(password, "", sign="=", quoted=False)


def _is_password(value: str, name: str, *, sign: str, quoted: bool) -> bool:
    """Whether a value may be a password and not a word in its place; the less it is marked as a value, the more so."""
    if _PLACEHOLDER.fullmatch(value) or _ELSEWHERE.match(value) or _METHOD.match(value):
        return False
    if _entropy(value) <= 2.2:  # noqa: PLR2004 - a word of six letters, two of them the same
        return False
    if sign.isspace() and not quoted and (value.islower() or value.isupper()):
        # Such words follow a password's name in a sentence.
        return False
    if sign.isspace() or (not quoted and (sign in _COLONS or name.lower() in _LOOSE)):
        # As people write, and as they explain.
        return len(value) >= 8 and _mixed(value) and value[-1].isalnum() and not _WORDS.fullmatch(value)  # noqa: PLR2004
    if _DIGIT.search(value) or re.search(r"[^\w.-]", value) or re.search("[a-z][A-Z]", value):
        return True
    # Letters alone: a word of a translation, or of a language, unless the name is one of an environment.
    return (
        sign not in _COLONS and value.isascii() and ((quoted and len(value) >= 10) or name.isupper())  # noqa: PLR2004
    )


def _mixed(value: str) -> bool:
    """Whether it has letters and digits."""
    return _DIGIT.search(value) is not None and re.search("[A-Za-z]", value) is not None


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
