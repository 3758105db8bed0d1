"""What every hash stands on: a value becomes one sequence of bytes, and bytes become one address."""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

import orjson

from ledgerstone.errors import CorruptionError, RuleError, UsageError

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
SALT_BYTES = 32
SECRET_BYTES_LEAST = 16
RANDOM_BYTES = 10

_SCALARS = frozenset({str, int, bool, type(None)})
_KEYS = frozenset({str})
# The walk below refuses what these options leave to the caller; they stand behind it, should it ever err.
_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_NUL = "\x00"
_LEAVE_OUT = "leave that character out"
# An even run of backslashes before it is text that spells an escape, not an escape.
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = b"0123456789abcdefghjkmnpqrstvwxyz"
_TO_CROCKFORD = bytes.maketrans(_BASE32, _CROCKFORD)
_ADDRESS = re.compile(r"(mem_[0-9a-hjkmnp-tv-z]{16})(?:@([1-9][0-9]{0,15}))?")
_SHOWN_CHARACTERS = 40


def encode(value: Json, *, shaped: bool = False) -> bytes:
    """The one byte form of a value: RFC 8785 without floats.

    Takes None, bool, int within 2^53 - 1, str, list or tuple, and dict with ASCII str keys, at most 32 deep;
    subclasses of these count as other types. Raises UsageError for anything else, and for lone surrogates
    and U+0000 in any text. ``shaped`` says that the type of every member is already certain, which saves a walk.
    """
    if not shaped and type(value) not in _SCALARS:
        _admit(value, 1)
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except TypeError as error:
        # orjson names lone surrogates and integers out of range itself.
        raise UsageError(f"value: no canonical form: {error}") from error
    if b"\\u0000" in data and _ESCAPED_NUL.search(data):
        raise UsageError("value: text holds U+0000", hint=_LEAVE_OUT)
    return data


def _admit(value: object, depth: int) -> None:
    """Refuse what orjson would write but a canonical value may not hold; members are checked at C speed."""
    if depth > MAX_DEPTH:
        raise UsageError(f"value: at most {MAX_DEPTH} levels deep")
    members: Iterable[object]
    if type(value) is dict:
        if not _KEYS.issuperset(map(type, value)) or not "".join(value).isascii():
            raise UsageError("value: field names are ASCII strings")
        members = value.values()
    elif type(value) is list or type(value) is tuple:
        members = value
    else:
        raise UsageError(f"value: no canonical form for {type(value).__name__}")
    if not _SCALARS.issuperset(map(type, members)):
        for member in members:
            if type(member) not in _SCALARS:
                _admit(member, depth + 1)


def decode(data: bytes, *, shaped: bool = False) -> Json:
    """The value of canonical bytes; arrays come back as lists.

    Raises CorruptionError unless ``data`` is exactly what ``encode`` makes of the value: duplicate or
    unsorted fields, whitespace, other escapes, floats and large integers all fail. ``shaped`` leaves the types of
    the members, floats among them, to a caller that checks each.
    """
    try:
        value: Json = orjson.loads(data)
        again = encode(value, shaped=shaped)
    except (orjson.JSONDecodeError, UsageError) as error:
        raise CorruptionError(f"bytes are not canonical JSON: {error}") from error
    if again != data:
        raise CorruptionError("bytes are not canonical JSON: another spelling of the same value")
    return value


def digest(noun: bytes, *parts: bytes) -> bytes:
    """SHA-256 over the noun's domain prefix and the parts, 32 bytes.

    Parts are joined without lengths: all but the last are of a length the noun fixes.
    """
    return sha256(b"".join((b"ledgerstone/", noun, b"/1\x00", *parts))).digest()


def keyed(secret: bytes, noun: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA-256 over the bytes ``digest`` takes, for what could be guessed; a secret has 16 or more."""
    if len(secret) < SECRET_BYTES_LEAST:
        raise UsageError(f"secret: at least {SECRET_BYTES_LEAST} bytes, not {len(secret)}")
    return hmac.digest(secret, b"".join((b"ledgerstone/", noun, b"/1\x00", *parts)), "sha256")


def commitment(salt: bytes, content: bytes) -> bytes:
    """What the chain holds of a content: nothing that could be guessed at without the salt of 32 bytes."""
    if len(salt) != SALT_BYTES:
        raise UsageError(f"salt: {SALT_BYTES} bytes, not {len(salt)}")
    return digest(b"content", salt, content)


def identifier(prefix: str, random: bytes) -> str:
    """``mem_`` and the like with 10 random bytes in 16 lower-case Crockford base32 characters."""
    if len(random) != RANDOM_BYTES:
        raise UsageError(f"random: {RANDOM_BYTES} bytes, not {len(random)}")
    return f"{prefix}_{b32encode(random).translate(_TO_CROCKFORD).decode()}"


def address(memory: str, version: int) -> str:
    """One version of a memory: ``mem_...@3``; UsageError unless ``parse_address`` takes it."""
    text = f"{memory}@{version}"
    parse_address(text)
    return text


def parse_address(text: str) -> tuple[str, int | None]:
    """The memory and version of ``mem_...@3``, or memory and None of ``mem_...``; UsageError otherwise."""
    match = _ADDRESS.fullmatch(text)
    version = int(match[2]) if match and match[2] else None
    if match is None or (version is not None and version > MAX_INTEGER):
        raise UsageError(
            "address: mem_ and 16 of 0-9 a-z without i, l, o, u, and if need be @ and a version from 1, "
            f"not {text[:_SHOWN_CHARACTERS]!r}",
            hint="as recall and list show it",
        )
    return match[1], version


def text(value: str, *, name: str, least: int, most: int, hint: str = "shorten it") -> bytes:
    """The UTF-8 bytes of a text argument, ``least`` to ``most`` of them: the one place that checks one.

    Raises RuleError with ``name`` as its rule for a wrong length, lone surrogates and U+0000, UsageError for
    what is no str. Text is never normalised. ``hint`` says what to do with one that is too long.
    """
    if type(value) is not str:
        raise UsageError(f"{name}: text, not {type(value).__name__}")
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        offence = f"not a lone surrogate at character {error.start + 1}"
        raise RuleError(f"{name}: valid Unicode, {offence}", rule=name, hint=_LEAVE_OUT) from None
    if not least <= len(data) <= most:
        hint = hint if data else "say something, or leave it out where it may be"
        raise RuleError(f"{name}: {least} to {most} bytes, not {len(data)}", rule=name, hint=hint)
    if _NUL in value:
        offence = f"not U+0000 at character {value.index(_NUL) + 1}"
        raise RuleError(f"{name}: valid text, {offence}", rule=name, hint=_LEAVE_OUT)
    return data
