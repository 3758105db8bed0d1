"""Promises of the one byte form and of the addresses made from it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import canonical
from ledgerstone.core.canonical import MAX_INTEGER, Json
from ledgerstone.errors import CorruptionError, RuleError, UsageError

MEMORY = "mem_60rk4csm6mv3ee1s"
RANDOM = b"0123456789"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
names = st.text(st.characters(max_codepoint=127, exclude_characters="\x00"))
scalars = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=30)


class Colour(StrEnum):
    """A str that is an enum."""

    RED = "red"


class Level(IntEnum):
    """An int that is an enum."""

    ONE = 1


class Plain(Enum):
    """An enum of its own."""

    ONE = 1


class Field(str):
    """A str with another name."""

    __slots__ = ()


@dataclass
class Point:
    """A dataclass."""

    x: int = 1


def nested(levels: int) -> Json:
    """A list in a list, and so on."""
    value: Json = []
    for _ in range(levels - 1):
        value = [value]
    return value


PUBLISHED: list[tuple[Json, bytes]] = [
    # RFC 8785, 3.2.2 to 3.2.4, without its floats.
    (
        {"string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/", "literals": [None, True, False]},
        bytes.fromhex(
            "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c"
            "22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d"
        ),
    ),
    # RFC 8785, 3.2.3, without the names beyond ASCII.
    ({"1": "One", "\r": "Carriage Return"}, b'{"\\r":"Carriage Return","1":"One"}'),
    # The authors' test data: structures, arrays, unicode, weird.
    (
        {"1": {"f": {"f": "hi", "F": 5}, "\n": 56}, "10": {}, "": "empty", "a": {}, "111": [{}], "A": {}},
        b'{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}',
    ),
    ([56, {"d": True, "10": None, "1": []}], b'[56,{"1":[],"10":null,"d":true}]'),
    ({"Unnormalized Unicode": "A\u030a"}, b'{"Unnormalized Unicode":"A\xcc\x8a"}'),
    (
        {"</script>": "Browser Challenge", "1": "\U0001f602"},
        b'{"1":"\xf0\x9f\x98\x82","</script>":"Browser Challenge"}',
    ),
]

FOREIGN = [
    1.0,
    b"bytes",
    {1},
    datetime(2026, 1, 1, tzinfo=UTC),
    UUID(int=1),
    Point(),
    Colour.RED,
    Level.ONE,
    Plain.ONE,
    Field("text"),
    orjson.Fragment(b"1"),
]


@pytest.mark.parametrize(("value", "data"), PUBLISHED)
def test_published_vectors_come_out_byte_for_byte(value: Json, data: bytes) -> None:
    """What RFC 8785 and its authors publish, as far as this format goes, is what encode makes."""
    assert canonical.encode(value) == data
    assert canonical.decode(data) == value


@given(values)
def test_encode_agrees_with_another_implementation(value: Json) -> None:
    """Every value has the bytes that the rfc8785 package gives it."""
    data = canonical.encode(value)

    assert data == rfc8785.dumps(value)


@given(values)
def test_decode_gives_the_value_back(value: Json) -> None:
    """Encoding loses nothing."""
    assert canonical.decode(canonical.encode(value)) == value


@given(st.dictionaries(names, scalars))
def test_order_of_fields_does_not_matter(value: dict[str, Json]) -> None:
    """Equal objects have equal bytes, in whatever order they were put together."""
    backwards = dict(reversed(value.items()))

    assert canonical.encode(backwards) == canonical.encode(value)


def test_tuple_is_an_array() -> None:
    """A tuple has the bytes of the list with its members."""
    assert canonical.encode((1, ("a", ()))) == canonical.encode([1, ["a", []]]) == b'[1,["a",[]]]'


@pytest.mark.parametrize("value", FOREIGN, ids=lambda value: type(value).__name__)
def test_foreign_types_are_refused_at_any_depth(value: object) -> None:
    """Floats, and types that a JSON library would write somehow, have no canonical form."""
    for foreign in (value, [value], [1, (value,)], {"a": [{"b": value}]}):
        with pytest.raises(UsageError, match=f"no canonical form for {type(value).__name__}"):
            canonical.encode(foreign)  # type: ignore[arg-type]
    neighbours: list[Json] = [1, [1], [1, (1,)], {"a": [{"b": 1}]}]
    for plain in neighbours:
        assert canonical.encode(plain)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_end_where_doubles_stop_counting(sign: int) -> None:
    """2^53 - 1 is the largest integer either way."""
    with pytest.raises(UsageError, match="Integer exceeds"):
        canonical.encode(sign * (MAX_INTEGER + 1))
    with pytest.raises(UsageError, match="Integer exceeds"):
        canonical.encode([sign * 2**70])
    assert canonical.decode(canonical.encode(sign * MAX_INTEGER)) == sign * MAX_INTEGER


@pytest.mark.parametrize("key", [True, 1, None, 1.5, "\u00e9", "\ud800", Field("b"), Colour.RED], ids=ascii)
def test_field_names_are_ascii_strings(key: object) -> None:
    """Any other name is refused; ASCII ones may hold anything but U+0000."""
    with pytest.raises(UsageError, match="field names are ASCII strings"):
        canonical.encode({"a": 1, key: 2})  # type: ignore[dict-item]
    assert canonical.encode({"a": 1, "~\x7f\x01": 2}) == b'{"a":1,"~\x7f\\u0001":2}'


@pytest.mark.parametrize("bad", ["\ud800", "a\udfff", "\udc00\ud800"], ids=ascii)
def test_lone_surrogates_are_refused(bad: str) -> None:
    """Text that no UTF-8 can hold is refused; the character two of them were meant for is not."""
    with pytest.raises(UsageError, match="surrogates"):
        canonical.encode({"a": bad})
    assert canonical.encode({"a": "\U00010000"}) == b'{"a":"\xf0\x90\x80\x80"}'


@pytest.mark.parametrize("text", ["\x00", "a\x00", "\\\x00", "\\\\\x00", '"\x00', "\\u0000\x00"], ids=ascii)
def test_nul_is_refused_and_its_spelling_is_not(text: str) -> None:
    """U+0000 fails in text and names; six characters that spell its escape are text like any other."""
    spelled = text.replace("\x00", "\\u0000")

    for value in (text, [text], {"a": text}, {text: 1}):
        with pytest.raises(UsageError, match=r"U\+0000"):
            canonical.encode(value)
    for value in (spelled, [spelled], {"a": spelled}, {spelled: 1}):
        assert canonical.decode(canonical.encode(value)) == value


def test_depth_has_a_limit() -> None:
    """32 levels are taken, 33 are not, and a value that contains itself is refused the same way."""
    circle: list[Json] = []
    circle.append(circle)

    for deep in (nested(33), {"a": nested(32)}, circle):
        with pytest.raises(UsageError, match="at most 32 levels deep"):
            canonical.encode(deep)
    assert canonical.decode(canonical.encode(nested(32))) == nested(32)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (b'{"a":1,"a":1}', b'{"a":1}'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"b":1,"a":2}', b'{"a":2,"b":1}'),
        (b'{"a": 1}', b'{"a":1}'),
        (b"1\n", b"1"),
        (b"\xef\xbb\xbf1", b"1"),
        (b"1.0", b"1"),
        (b"1e2", b"100"),
        (b"-0", b"0"),
        (b"01", b"1"),
        (b"9007199254740992", b"9007199254740991"),
        (b"18446744073709551616", b"-9007199254740991"),
        (b"NaN", b"null"),
        (b"Infinity", b"true"),
        (b'"\\u0041"', b'"A"'),
        (b'"\\/"', b'"/"'),
        (b'"\\u000F"', b'"\\u000f"'),
        (b'"\\u000a"', b'"\\n"'),
        (b'"\\u20ac"', b'"\xe2\x82\xac"'),
        (b'"\\u0000"', b'"\\u0001"'),
        (b'"\\ud800"', b'"\xed\x9f\xbf"'),
        (b'"\xff"', b'"\xc3\xbf"'),
        (b'{"\xc3\xa9":1}', b'{"e":1}'),
        (b"[1,]", b"[1]"),
        (b"[" * 33 + b"]" * 33, b"[" * 32 + b"]" * 32),
        pytest.param(b"[" * 5000 + b"]" * 5000, b"[]", id="deep"),
        (b"", b'""'),
        (b"1 2", b"12"),
    ],
)
def test_only_the_one_spelling_is_decoded(bad: bytes, good: bytes) -> None:
    """Whatever encode would not have written is corruption; its canonical neighbour is not."""
    with pytest.raises(CorruptionError, match="not canonical JSON"):
        canonical.decode(bad)
    assert canonical.encode(canonical.decode(good)) == good


@given(values, st.data())
def test_inserted_bytes_never_mean_the_same(value: Json, data: st.DataObject) -> None:
    """Bytes with one more byte anywhere are refused or are another value."""
    clean = canonical.encode(value)
    at = data.draw(st.integers(0, len(clean)))
    changed = clean[:at] + data.draw(st.sampled_from([b" ", b"\n", b"0", b"\\", b'"', b","])) + clean[at:]

    try:
        other = canonical.decode(changed)
    except CorruptionError:
        return
    assert canonical.encode(other) == changed != clean


def test_digest_is_sha256_behind_the_nouns_domain() -> None:
    """The format fixes the prefix: project, noun, format number, NUL."""
    expected = hashlib.sha256(b"ledgerstone/node/1\x00ab").digest()

    assert canonical.digest(b"node", b"a", b"b") == canonical.digest(b"node", b"ab") == expected
    assert canonical.digest(b"leaf", b"ab") != expected
    assert canonical.digest(b"node") == hashlib.sha256(b"ledgerstone/node/1\x00").digest()


def test_keyed_digest_is_hmac_over_the_same_bytes() -> None:
    """What could be guessed is hashed under a secret, in the same domain."""
    secret = b"s" * 32
    expected = hmac.digest(secret, b"ledgerstone/key/1\x00ab", "sha256")

    assert canonical.keyed(secret, b"key", b"a", b"b") == expected
    assert canonical.keyed(b"t" * 32, b"key", b"ab") != expected


def test_keyed_digest_refuses_a_short_secret() -> None:
    """Fifteen bytes are too few, sixteen will do."""
    with pytest.raises(UsageError, match="secret: at least 16 bytes, not 15"):
        canonical.keyed(b"s" * 15, b"key", b"a")
    assert canonical.keyed(b"s" * 16, b"key", b"a")


def test_commitment_hashes_salt_and_content() -> None:
    """The salt stands first, and is of one length so that nothing moves between the two."""
    salt = bytes(range(32))

    assert canonical.commitment(salt, b"{}") == canonical.digest(b"content", salt + b"{}")
    for bad in (b"", salt[:31], salt + b"{"):
        with pytest.raises(UsageError, match=f"salt: 32 bytes, not {len(bad)}"):
            canonical.commitment(bad, b"}")


def test_identifier_spells_ten_bytes_in_crockford() -> None:
    """Five bits a character, most significant first, in lower case."""
    assert canonical.identifier("mem", RANDOM) == MEMORY
    assert canonical.identifier("ns", bytes(10)) == "ns_0000000000000000"
    assert canonical.identifier("prn", b"\xff" * 10) == "prn_zzzzzzzzzzzzzzzz"
    number = int.from_bytes(RANDOM)
    spelled = ["0123456789abcdefghjkmnpqrstvwxyz"[number >> shift & 31] for shift in range(75, -1, -5)]
    assert "mem_" + "".join(spelled) == MEMORY


@pytest.mark.parametrize("size", [0, 9, 11])
def test_identifier_takes_ten_bytes(size: int) -> None:
    """Eighty bits are an id, and nothing else is."""
    with pytest.raises(UsageError, match=f"random: 10 bytes, not {size}"):
        canonical.identifier("mem", bytes(size))


@pytest.mark.parametrize("version", [1, 2, 10, MAX_INTEGER])
def test_address_reads_back(version: int) -> None:
    """An address is a memory and a version, or a memory alone."""
    assert canonical.address(MEMORY, version) == f"{MEMORY}@{version}"
    assert canonical.parse_address(f"{MEMORY}@{version}") == (MEMORY, version)
    assert canonical.parse_address(MEMORY) == (MEMORY, None)


@pytest.mark.parametrize(
    "version", ["", "0", "01", "-1", "+1", "1.0", "1_0", " 1", "1 ", "1\n", "\u0661", "9007199254740992", "x"]
)
def test_address_has_one_spelling(version: str) -> None:
    """A version is a plain number from 1 to 2^53 - 1."""
    with pytest.raises(UsageError, match="address: mem_ and 16 of"):
        canonical.parse_address(f"{MEMORY}@{version}")
    assert canonical.parse_address(f"{MEMORY}@9007199254740991") == (MEMORY, MAX_INTEGER)


@pytest.mark.parametrize("memory", ["", "mem_", MEMORY.upper(), MEMORY[:-1], "ns" + MEMORY[3:], f"{MEMORY}@1"])
def test_address_refuses_what_would_not_read_back(memory: str) -> None:
    """What is no memory id has no address, and no version below 1 or beyond the limit has one."""
    with pytest.raises(UsageError, match="address: mem_"):
        canonical.address(memory, 1)
    for version in (0, -1, True, MAX_INTEGER + 1):
        with pytest.raises(UsageError, match="address: mem_"):
            canonical.address(MEMORY, version)


@given(texts)
def test_text_is_given_back_as_utf8(value: str) -> None:
    """Valid text within the limits passes as it is, never normalised."""
    assert canonical.text(value, name="text", least=0, most=10_000) == value.encode()


@pytest.mark.parametrize("value", ["", "a" * 9, "\u20ac" * 3])
def test_text_says_limit_and_offence(value: str) -> None:
    """Length counts in UTF-8 bytes; the error says what is allowed and what was given."""
    with pytest.raises(RuleError, match=f"^title: 1 to 8 bytes, not {len(value.encode())}$") as caught:
        canonical.text(value, name="title", least=1, most=8)
    assert caught.value.rule == "title"
    assert canonical.text("a", name="title", least=1, most=8) == b"a"
    assert canonical.text("\u20ac\u20acaa", name="title", least=1, most=8) == b"\xe2\x82\xac\xe2\x82\xacaa"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("\u20aca\x00", r"^text: valid text, not U\+0000 at character 3$"),
        ("\u20ac\ud800", "^text: valid Unicode, not a lone surrogate at character 2$"),
    ],
    ids=ascii,
)
def test_text_names_the_character_that_cannot_stay(value: str, message: str) -> None:
    """U+0000 and lone surrogates are refused by their place; without them the text passes."""
    with pytest.raises(RuleError, match=message) as caught:
        canonical.text(value, name="text", least=1, most=8)
    assert caught.value.hint == "leave that character out"
    assert canonical.text(value[:-1], name="text", least=1, most=8) == value[:-1].encode()


@pytest.mark.parametrize("value", [b"text", 1, None, Field("text")], ids=repr)
def test_text_takes_nothing_but_str(value: object) -> None:
    """Another type is a wrong argument, not a broken rule."""
    with pytest.raises(UsageError, match=r"^text: text, not "):
        canonical.text(value, name="text", least=1, most=8)  # type: ignore[arg-type]
    assert canonical.text("text", name="text", least=1, most=8) == b"text"


def test_the_first_character_that_cannot_stay_is_named() -> None:
    """Of several U+0000 the first."""
    with pytest.raises(RuleError, match=r"text: valid text, not U\+0000 at character 2$"):
        canonical.text("a\x00b\x00", name="text", least=1, most=8)
