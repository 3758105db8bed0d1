"""Every canonical object of format 1 comes back as it was written, and has no second form."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone.core import canonical, entries, fields
from ledgerstone.core.canonical import MAX_INTEGER
from ledgerstone.core.entries import (
    Content,
    Counts,
    Entry,
    Header,
    Idempotency,
    Sealed,
    Stamp,
    StorePoint,
)
from ledgerstone.core.values import (
    MAX_DRAFTS,
    MAX_TEXT_BYTES,
    Act,
    AliasOf,
    Kind,
    Limits,
    NameOf,
    Origin,
    Refusal,
    Retention,
    Scope,
    Status,
    Trust,
)
from ledgerstone.errors import CorruptionError
from tests.memories import characters

Strategy = st.SearchStrategy[Any]

hashes = st.binary(min_size=32, max_size=32)
integers = st.integers(0, MAX_INTEGER)
counts = st.integers(1, MAX_INTEGER)
short = st.text(characters, min_size=1, max_size=16)
slugs = st.text("abcz_", min_size=1, max_size=64)


def ids(prefix: str) -> Strategy:
    """Opaque ids."""
    return st.binary(min_size=10, max_size=10).map(lambda random: canonical.identifier(prefix, random))


def several(members: Strategy, most: int = 4) -> Strategy:
    """A tuple of different members."""
    return st.lists(members, unique=True, min_size=1, max_size=most).map(tuple)


sealed = st.builds(
    Sealed, commitment=hashes, bytes=st.integers(1, 8 * MAX_TEXT_BYTES), text_bytes=st.integers(0, MAX_TEXT_BYTES)
)
stamps = st.builds(
    Stamp,
    at=integers,
    principal=ids("prn"),
    origin=st.sampled_from(Origin),
    grant=st.none() | ids("grt"),
    session=st.none() | ids("ses"),
    host=st.none() | ids("hst"),
    binding=st.none() | st.sampled_from(["explicit", "binding", "remote", "alias", "new"]),
)

# What a field may hold, by its name; where a class uses the name otherwise, under both.
VALUES: dict[str, Strategy] = {
    "memory": ids("mem"),
    "version": st.integers(2, MAX_INTEGER),
    "kind": st.sampled_from(Kind),
    "status": st.sampled_from(Status),
    "retention": st.sampled_from(Retention),
    "origin": st.sampled_from(Origin),
    "trust": st.sampled_from(Trust),
    "content": sealed,
    "depth": st.integers(1, 8),
    "promotion": hashes,
    "overrides": several(slugs),
    "namespace": ids("ns"),
    "source_namespace": ids("ns"),
    "principal": ids("prn"),
    "owner": ids("prn"),
    "grant": ids("grt"),
    "key": ids("key"),
    "retires": ids("key"),
    "signer": ids("key"),
    "token": ids("tok"),
    "event": ids("evt"),
    "scope": st.sampled_from(Scope),
    "nonce": st.binary(min_size=16, max_size=16),
    "act": st.sampled_from(Act),
    "reason": st.sampled_from(Refusal),
    "setting": slugs,
    "reasons": several(slugs),
    "rules": counts,
    "limits": st.builds(Limits, drafts=st.integers(1, MAX_DRAFTS), text_bytes=st.integers(1, MAX_TEXT_BYTES)),
    "counts": st.builds(Counts, **{field.name: integers for field in dataclasses.fields(Counts)}),
    "stamp": stamps,
    "SettingEntry.id": ids("set"),
    "NameEntry.id": ids("prn") | ids("ses") | ids("hst"),
    "NameEntry.of": st.sampled_from(NameOf),
    "AliasEntry.of": st.sampled_from(AliasOf),
    "Header.store": st.builds(StorePoint, sequence=integers, id=hashes),
    "Header.idempotency": st.builds(Idempotency, key=hashes, content=hashes),
    "Content.key": short,
    "Content.reason": short,
    "Content.tags": several(short),
    "Content.triggers": several(short),
    **dict.fromkeys(("expires", "value", "asked", "granted", "first", "last", "abandoned_sequence"), integers),
    **dict.fromkeys(("sequence", "count"), counts),
    **dict.fromkeys(("sources", "covers", "erases", "strikes", "entries"), several(hashes)),
    "without": several(ids("ns")),
    **{f"Content.{name}": short for name in ("text", "source", "title", "place", "name")},
    **{f"Content.{name}": integers for name in ("due", "valid_from", "valid_until")},
}


def objects(cls: type[Any]) -> Strategy:
    """Objects of a class, with and without each field that may be left out."""
    values = {}
    for field in dataclasses.fields(cls):
        value = VALUES.get(f"{cls.__name__}.{field.name}", VALUES.get(field.name, hashes))
        absent = field.default
        values[field.name] = value if absent is dataclasses.MISSING else st.just(absent) | value
    return st.builds(cls, **values)


NOUNS = sorted(entries._ENTRIES)
CLASSES = [entries._ENTRIES[noun] for noun in NOUNS]
Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
CODECS: list[tuple[type[Any], Encode, Decode]] = [
    *((cls, entries.encode_entry, entries.decode_entry) for cls in CLASSES),
    (Content, entries.encode_content, entries.decode_content),
    (Header, entries.encode_header, entries.decode_header),
]
every = pytest.mark.parametrize(("cls", "encode", "decode"), CODECS, ids=[cls.__name__ for cls, _, _ in CODECS])


@every
@settings(max_examples=10)
@given(data=st.data())
def test_an_object_comes_back(cls: type[Any], encode: Encode, decode: Decode, data: st.DataObject) -> None:
    """Read from its bytes it is equal, and writes the very same bytes again."""
    made = data.draw(objects(cls))

    written = encode(made)

    assert decode(written) == made
    assert encode(decode(written)) == written


@every
@settings(max_examples=4)
@given(data=st.data())
def test_no_field_can_be_missing_or_added(cls: type[Any], encode: Encode, decode: Decode, data: st.DataObject) -> None:
    """Without a required field, and with one that nobody declared, there is no object."""
    value: Any = canonical.decode(encode(data.draw(objects(cls))))
    required = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]

    for name in required:
        with pytest.raises(CorruptionError, match=f"{name} is missing"):
            decode(canonical.encode({key: member for key, member in value.items() if key != name}))
    with pytest.raises(CorruptionError, match="unknown field: surprise"):
        decode(canonical.encode(value | {"surprise": 1}))


@every
@settings(max_examples=4)
@given(data=st.data())
def test_no_field_stands_at_its_absent_value(
    cls: type[Any], encode: Encode, decode: Decode, data: st.DataObject
) -> None:
    """What may be left out must be, or the object would have two forms."""
    value: Any = canonical.decode(encode(data.draw(objects(cls))))

    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            spelt = [] if field.default == () else field.default
            with pytest.raises(CorruptionError, match=field.name):
                decode(canonical.encode(value | {field.name: spelt}))


@every
@settings(max_examples=4)
@given(data=st.data())
def test_another_byte_is_another_object(cls: type[Any], encode: Encode, decode: Decode, data: st.DataObject) -> None:
    """No byte of an object can change and leave it the same."""
    made = data.draw(objects(cls))
    written = bytearray(encode(made))
    place = data.draw(st.integers(0, len(written) - 1))
    written[place] ^= data.draw(st.integers(1, 255))

    try:
        read = decode(bytes(written))
    except CorruptionError:
        return

    assert read != made


@pytest.mark.parametrize(("what", "decode"), [("content", entries.decode_content), ("header", entries.decode_header)])
def test_what_is_unreadable_is_named(what: str, decode: Decode) -> None:
    """What it should have been, and what is wrong with it."""
    for data, offence in ((b"[]", "not a format 1 object"), (b'{"format":1,"tree":1}', "")):
        with pytest.raises(CorruptionError, match=f"^{what}: {offence}"):
            decode(data)


@every
@pytest.mark.parametrize("spoilt", [{"format": 2}, {"format": "1"}, {"format": True}, {"format": None}, {}])
def test_another_format_is_refused(cls: type[Any], encode: Encode, decode: Decode, spoilt: dict[str, Any]) -> None:
    """Format 1 reads format 1, whatever else it may look like."""
    noun = {"entry": cls.noun} if issubclass(cls, Entry) else {}
    del encode

    with pytest.raises(CorruptionError, match="format 1"):
        decode(canonical.encode(noun | spoilt))


@pytest.mark.parametrize("decode", [entries.decode_entry, entries.decode_content, entries.decode_header])
@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"null", b'"entry"', b"\xff", b'{"format":1.0}'])
def test_what_is_no_object_is_refused(decode: Decode, data: bytes) -> None:
    """Bytes that are not canonical JSON, and values that are no object."""
    with pytest.raises(CorruptionError):
        decode(data)


@pytest.mark.parametrize("noun", ["", "Record", "header", "content", None, 1, ["record"]])
def test_an_entry_of_no_known_sort_is_refused(noun: Any) -> None:
    """A noun that nobody declared."""
    with pytest.raises(CorruptionError, match="not a format 1 entry of a known sort"):
        entries.decode_entry(canonical.encode({"format": 1, "entry": noun}))


def test_every_noun_is_named_once() -> None:
    """The sorts of entries of format 1; one more is a new format."""
    assert NOUNS == [
        "adopt",
        "alias",
        "close",
        "erased",
        "erasure",
        "export",
        "genesis",
        "grant",
        "inbox",
        "key",
        "name",
        "namespace",
        "parting",
        "promotion",
        "record",
        "refusal",
        "restore",
        "retract",
        "revoke",
        "setting",
        "token",
        "values",
        "wake",
    ]


@given(header=objects(Header))
def test_a_stamp_is_read_alone(header: Header) -> None:
    """From a header's bytes: the stamp, and the digest that leaves bind."""
    stamp, digest = entries.read_stamp(entries.encode_header(header))

    assert stamp == header.stamp
    assert digest == entries.stamp_digest(header.stamp)


@pytest.mark.parametrize("data", [b"{}", b"[]", b'{"stamp":{}}', b'{"stamp":1}'])
def test_a_header_without_a_stamp_is_refused(data: bytes) -> None:
    """As corruption, by name."""
    with pytest.raises(CorruptionError, match="stamp: "):
        entries.read_stamp(data)


usual = st.builds(
    Header,
    **{
        field.name: VALUES.get(f"Header.{field.name}", VALUES.get(field.name, hashes))
        for field in dataclasses.fields(Header)
        if field.name not in {"entries", "idempotency", "receipt"}
    },
    entries=st.tuples(hashes),
)


@given(header=usual, data=st.data())
def test_what_is_new_in_a_header_is_read_after_one_like_it(header: Header, data: st.DataObject) -> None:
    """As it is written, whatever header with bytes of the same length was read before."""
    entries.decode_header(entries.encode_header(header))
    digests: dict[str, Any] = {name: data.draw(hashes) for name in ("history", "state", "parent")}
    numbers = {field.name: data.draw(integers) for field in dataclasses.fields(Counts)}
    stamp = dataclasses.replace(header.stamp, at=data.draw(integers))
    new = dataclasses.replace(header, counts=Counts(**numbers), stamp=stamp, entries=(data.draw(hashes),), **digests)

    assert entries.decode_header(entries.encode_header(new)) == new
    assert entries.decode_header(entries.encode_header(header)) == header


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("current", b"120", b"020"),
        ("records", b"120", b"-20"),
        ("live", b"120", b" 20"),
        ("open", b"120", b"1_0"),
        ("indexed", b"120", b"abc"),
        ("sequence", b"120", b"+20"),
        ("at", b"%d" % MAX_INTEGER, b"%d" % (MAX_INTEGER + 1)),
        ("history", b"ab" * 32, b"AB" * 32),
        ("state", b"ab" * 32, b"xb" * 32),
        ("rules", b"120", b"020"),
        ("principal", b"prn_0123456789abcdef", b"prn_0123456789ABCDEF"),
    ],
)
@given(header=usual)
def test_another_spelling_is_refused_after_a_header_like_it(
    name: str, value: bytes, other: bytes, header: Header
) -> None:
    """However much of its bytes was read before."""
    quote = b"" if value.isdigit() else b'"'
    pattern = b'("%b":)(?:[0-9]+|"[^"]*")' % name.encode()
    data = re.sub(pattern, b"\\g<1>" + quote + value + quote, entries.encode_header(header), count=1)

    decoded = entries.decode_header(data)
    with pytest.raises(CorruptionError):
        entries.decode_header(
            data.replace(b'"%b":%b%b' % (name.encode(), quote, value), b'"%b":%b%b' % (name.encode(), quote, other), 1)
        )

    assert entries.encode_header(decoded) == data


@pytest.mark.parametrize(
    "limits",
    [
        {"drafts": 0, "text_bytes": 1},
        {"drafts": 257, "text_bytes": 1},
        {"drafts": 1, "text_bytes": 0},
        {"drafts": 1, "text_bytes": MAX_TEXT_BYTES + 1},
        {"drafts": 1},
        {"drafts": 1, "text_bytes": 1, "more": 1},
        [8, 8192],
    ],
)
def test_limits_have_limits(limits: Any) -> None:
    """A header's limits are both there, and within those of the format."""
    with pytest.raises(ValueError, match=r"not (the limits|an integer)"):
        entries.LIMITS.read(limits)

    assert entries.LIMITS.read({"drafts": 256, "text_bytes": MAX_TEXT_BYTES}) == Limits(256, MAX_TEXT_BYTES)


@given(content=objects(Content), salt=hashes)
def test_a_sealed_content_says_its_sizes(content: Content, salt: bytes) -> None:
    """The commitment under the salt, the bytes stored, and the bytes of the text alone."""
    made, data = entries.seal_content(content, salt)

    assert made.commitment == canonical.commitment(salt, data)
    assert made.bytes == len(data) == len(entries.encode_content(content))
    assert made.text_bytes == len((content.text or "").encode())
    assert fields.write_object(made)["bytes"] == len(data)


@given(data=st.binary(max_size=64))
def test_a_digest_is_that_of_the_bytes(data: bytes) -> None:
    """Under the domain of entries and of nothing else."""
    assert entries.digest_of(data) == canonical.digest(b"entry", data)
    assert entries.digest_of(data) != canonical.digest(b"stamp", data)


def test_an_entry_is_named_by_its_place_and_the_version_it_is() -> None:
    """By its place alone where it is none, or where nothing is known of it."""
    closing = entries.CloseEntry(
        memory="mem_60rk4csm6mv3ee1s",
        version=2,
        closes=b"c" * 32,
        origin=Origin.USER,
        trust=Trust.UNKNOWN,
    )

    assert entries.spot(3, closing) == "entry 3, mem_60rk4csm6mv3ee1s@2,"
    assert entries.spot(0, entries.GenesisEntry(scope=Scope.USER, nonce=b"n" * 16)) == "entry 0"
    assert entries.spot(4, None) == "entry 4"


def test_an_entry_that_cannot_be_read_is_named_by_its_noun() -> None:
    """As well as by what is wrong with it."""
    genesis = entries.encode_entry(entries.GenesisEntry(scope=Scope.USER, nonce=b"n" * 16))
    assert entries.decode_entry(genesis).noun == "genesis"

    with pytest.raises(CorruptionError, match=r"^genesis entry: "):
        entries.decode_entry(genesis.replace(b'"user"', b'"uses"'))
