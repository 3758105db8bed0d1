"""Ed25519 signatures over commits, receipts and checkpoints, each under a prefix of its own (RFC 8032)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledgerstone.core import canonical

COMMIT: Final = b"ledgerstone/commit/1\x00"
RECEIPT: Final = b"ledgerstone/receipt/1\x00"
MAX_SECRETS: Final = 512
# A checkpoint is a signed note, which has no prefix: what its text begins with takes the place of one.
CHECKPOINT: Final = b"ledgerstone/ns_"


def key_id(public: bytes) -> str:
    """The id of a key is a function of its public half, so that neither can be swapped alone."""
    return canonical.identifier("key", canonical.digest(b"key", public)[:10])


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """A private key (a 32-byte seed) and the secret beside it for what could be guessed; never printed."""

    seed: bytes
    secret: bytes

    def __repr__(self) -> str:
        return "SigningKey(...)"

    @property
    def public(self) -> bytes:
        """Its public half, 32 bytes."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()


class Keyring:
    """The keys a host trusts: at most one to sign with, and public keys by id to check with.

    ``pins`` are public keys (32 bytes each) that may be checked but not signed with. ``following`` is a key that is
    held to take over from ``signing``; nothing is signed with it, and nothing believed by it, before a store says so.
    """

    __slots__ = ("_held", "_private", "_public", "_secret", "_secrets", "following", "public", "signer")

    def __init__(
        self,
        signing: SigningKey | None = None,
        pins: tuple[bytes, ...] = (),
        *,
        following: SigningKey | None = None,
    ) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(signing.seed) if signing else None
        self._secret = signing.secret if signing else None
        self._held = tuple(key for key in (signing, following) if key is not None)
        self.following: Final = None if following is None else key_id(following.public)
        self._secrets: dict[str, bytes] = {}
        publics = list(pins)
        if self._private is not None:
            publics.insert(0, self._private.public_key().public_bytes_raw())
        self.public: Final = {key_id(public): public for public in publics}
        self._public = {name: Ed25519PublicKey.from_public_bytes(raw) for name, raw in self.public.items()}
        self.signer: Final = key_id(publics[0]) if signing else None

    def sign(self, prefix: bytes, message: bytes) -> bytes:
        """The 64-byte signature over prefix and message; the caller has made sure that there is a signer."""
        if self._private is None:
            raise ValueError("this keyring holds no private key")
        return self._private.sign(prefix + message)

    def verifies(self, signer: str, prefix: bytes, message: bytes, signature: bytes) -> bool:
        """True when a trusted key of that id made the signature."""
        key = self._public.get(signer)
        if key is None:
            return False
        try:
            key.verify(signature, prefix + message)
        except InvalidSignature:
            return False
        return True

    def signer_of(self, prefix: bytes, message: bytes, signature: bytes) -> str | None:
        """The id of the trusted key that made the signature; None when none did."""
        return next((name for name in self.public if self.verifies(name, prefix, message, signature)), None)

    def followed_by(self, following: SigningKey) -> Keyring:
        """The same keyring, with a key at hand that is to take over; ValueError unless it brings the same secret."""
        if following.secret != self._secret or self._private is None:
            raise ValueError("the key that follows has the secret of the one that signs")
        return Keyring(self._held[0], tuple(self.public.values())[1:], following=following)

    def alone(self, public: bytes) -> Keyring:
        """One public key alone: to sign with where its private half is held, else to check with; what follows stays."""
        if [*self.public.values()] == [public]:
            return self
        held = next((key for key in self._held if key.public == public), None)
        return Keyring(held) if held is not None else Keyring(pins=(public,))

    def secret(self, namespace: str) -> bytes | None:
        """A namespace's own secret for keyed hashes; None without a signing key."""
        if self._secret is None:
            return None
        if namespace not in self._secrets:
            if len(self._secrets) >= MAX_SECRETS:
                self._secrets.clear()
            self._secrets[namespace] = canonical.keyed(self._secret, b"namespace-secret", namespace.encode())
        return self._secrets[namespace]
