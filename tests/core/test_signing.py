"""Signatures are of one key, one prefix and one message; secrets are of one namespace, and never shown."""

from __future__ import annotations

from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from ledgerstone.core import canonical
from ledgerstone.core.signing import CHECKPOINT, COMMIT, RECEIPT, Keyring, SigningKey, key_id

# RFC 8032, 7.1, test 1.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
OTHER = Keyring(SigningKey(seed=b"o" * 32, secret=b"p" * 32))
KEYS = Keyring(SigningKey(seed=SEED, secret=b"t" * 32))
SIGNER = KEYS.signer or ""


def test_the_id_of_a_key_is_a_hash_of_its_public_half() -> None:
    """Ten bytes of it, under the noun of keys."""
    named = sha256(b"ledgerstone/key/1\x00" + PUBLIC).digest()

    assert SIGNER == key_id(PUBLIC) == canonical.identifier("key", named[:10])
    assert SIGNER.startswith("key_")


def test_a_key_has_its_published_public_half() -> None:
    """RFC 8032's first vector, under an id made from the public half alone."""
    assert KEYS.public == {key_id(PUBLIC): PUBLIC}
    assert KEYS.signer == key_id(PUBLIC)


@given(message=st.binary(max_size=64))
def test_a_signature_is_verified(message: bytes) -> None:
    """By the keyring, and by anybody's Ed25519 over prefix and message."""
    signature = KEYS.sign(COMMIT, message)

    assert KEYS.verifies(SIGNER, COMMIT, message, signature)
    Ed25519PublicKey.from_public_bytes(PUBLIC).verify(signature, COMMIT + message)


@given(message=st.binary(max_size=64), other=st.binary(max_size=64), bit=st.integers(0, 511))
def test_nothing_else_is_verified(message: bytes, other: bytes, bit: int) -> None:
    """Neither another message, prefix, key or signature, nor one of the wrong length."""
    signature = KEYS.sign(COMMIT, message)
    flipped = bytearray(signature)
    flipped[bit // 8] ^= 1 << bit % 8

    assert KEYS.verifies(SIGNER, COMMIT, other, signature) == (other == message)
    assert not KEYS.verifies(SIGNER, RECEIPT, message, signature)
    assert not KEYS.verifies(SIGNER, CHECKPOINT, message, signature)
    assert not KEYS.verifies(SIGNER, COMMIT, message, bytes(flipped))
    assert not KEYS.verifies(SIGNER, COMMIT, message, signature[:-1])
    assert not KEYS.verifies(OTHER.signer or "", COMMIT, message, signature)
    assert not OTHER.verifies(SIGNER, COMMIT, message, signature)


def test_a_pinned_key_checks_and_does_not_sign() -> None:
    """With only a public key a keyring verifies; signing and secrets take the private one."""
    pinned = Keyring(pins=(PUBLIC,))

    assert pinned.signer is None
    assert pinned.verifies(SIGNER, COMMIT, b"m", KEYS.sign(COMMIT, b"m"))
    assert pinned.secret("ns_0000000000000000") is None
    with pytest.raises(ValueError, match="no private key"):
        pinned.sign(COMMIT, b"m")


def test_a_signer_trusts_its_pins_too() -> None:
    """One key signs, several check."""
    both = Keyring(SigningKey(seed=SEED, secret=b"t" * 32), pins=tuple(OTHER.public.values()))

    assert both.signer == SIGNER
    assert both.verifies(OTHER.signer or "", COMMIT, b"m", OTHER.sign(COMMIT, b"m"))
    assert list(both.public) == [SIGNER, OTHER.signer]


def test_every_namespace_has_a_secret_of_its_own() -> None:
    """The same every time, and neither another namespace's nor another key's."""
    one, two = KEYS.secret("ns_0000000000000001"), KEYS.secret("ns_0000000000000002")

    assert one == KEYS.secret("ns_0000000000000001") != two
    assert one != OTHER.secret("ns_0000000000000001")
    assert one is not None
    assert len(one) == 32


def test_a_secret_is_the_same_among_many() -> None:
    """Asked for a thousand namespaces, the first one's is what it was."""
    names = [f"ns_{number:016}" for number in range(1000)]

    secrets = [KEYS.secret(name) for name in names]

    assert len(set(secrets)) == len(names)
    assert [KEYS.secret(name) for name in reversed(names)] == secrets[::-1]


def test_a_private_key_is_not_printed() -> None:
    """Neither its seed nor its secret is in its repr."""
    key = SigningKey(seed=SEED, secret=b"t" * 32)

    assert repr(key) == str(key) == "SigningKey(...)"


def test_an_empty_keyring_trusts_nobody() -> None:
    """Without keys nothing is verified."""
    assert Keyring().public == {}
    assert not Keyring().verifies(SIGNER, COMMIT, b"m", KEYS.sign(COMMIT, b"m"))


def test_a_key_alone_signs_where_its_private_half_is_held() -> None:
    """Of a key and the one to follow it, either; of any other one only the public half."""
    following = SigningKey(seed=b"f" * 32, secret=b"t" * 32)
    both = KEYS.followed_by(following)

    assert (both.signer, both.following, list(both.public)) == (SIGNER, key_id(following.public), [SIGNER])
    assert both.alone(PUBLIC).signer == SIGNER
    assert both.alone(following.public).signer == both.following
    assert both.alone(OTHER.public[OTHER.signer or ""]).signer is None
    assert KEYS.alone(PUBLIC) is KEYS


def test_what_is_pinned_stays_pinned_when_a_key_follows() -> None:
    """All of it: the one that signs stands first, and once."""
    pins = tuple(OTHER.public.values()), tuple(Keyring(SigningKey(seed=b"x" * 32, secret=b"y" * 32)).public.values())
    keys = Keyring(SigningKey(seed=SEED, secret=b"t" * 32), pins=(*pins[0], *pins[1]))

    both = keys.followed_by(SigningKey(seed=b"f" * 32, secret=b"t" * 32))

    assert list(both.public.values()) == [PUBLIC, *pins[0], *pins[1]]


def test_a_key_follows_with_the_same_secret() -> None:
    """What was hashed under another one would not be found again; and a pin is followed by nobody."""
    for keys in (OTHER, Keyring(pins=(PUBLIC,))):
        with pytest.raises(ValueError, match="has the secret of the one that signs"):
            keys.followed_by(SigningKey(seed=b"f" * 32, secret=b"t" * 32))


def test_a_signature_names_its_signer() -> None:
    """Among the trusted keys, whichever it is; nobody else's has one."""
    both = Keyring(SigningKey(seed=SEED, secret=b"t" * 32), pins=tuple(OTHER.public.values()))

    for keys in (KEYS, OTHER):
        assert both.signer_of(COMMIT, b"m", keys.sign(COMMIT, b"m")) == keys.signer
    assert KEYS.signer_of(COMMIT, b"m", OTHER.sign(COMMIT, b"m")) is None


def test_the_secret_of_a_namespace_is_its_own() -> None:
    """A keyed hash of its id under the noun of such secrets, the same every time; none without a signing key."""
    expected = canonical.keyed(b"t" * 32, b"namespace-secret", b"ns_one")

    assert KEYS.secret("ns_one") == KEYS.secret("ns_one") == expected
    assert KEYS.secret("ns_two") == canonical.keyed(b"t" * 32, b"namespace-secret", b"ns_two")
    assert Keyring(pins=(PUBLIC,)).secret("ns_one") is None


def test_a_key_alone_is_checked_with_where_its_private_half_is_not_held() -> None:
    """It signs where that is held."""
    other = next(iter(OTHER.public.values()))

    assert (list(KEYS.alone(other).public.values()), KEYS.alone(other).signer) == ([other], None)
    assert (list(KEYS.alone(PUBLIC).public.values()), KEYS.alone(PUBLIC).signer) == ([PUBLIC], SIGNER)
