"""Which key a store is signed with now, for whoever trusts that key or an earlier one that handed over to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ledgerstone.core import chain, entries
from ledgerstone.core.entries import KeyEntry
from ledgerstone.core.signing import COMMIT, Keyring
from ledgerstone.errors import CorruptionError
from ledgerstone.store.protocol import ChainRow, Reader

# How the bytes of a key's entry tell it from others.
_MARK: Final = b'"entry":"key"'


class Enrolment(NamedTuple):
    """A key as the store chain enrolled it: by which of its commits."""

    entry: KeyEntry
    sequence: int


def in_force(reader: Reader, row: ChainRow, keyring: Keyring) -> Keyring:
    """The key alone that signs the store chain's head, if it is trusted or a trusted key handed over to it.

    Each handing over is a key entry, alone in a commit whose signature by the key that it retires is kept; from then on
    that key is believed no more. Without such a key nothing is trusted.
    """
    trusted, kept = keyring, reader.signatures(row.number)
    for entry, sequence in _entries(reader, row.number):
        data, signature = reader.header(row.number, sequence), kept.get(sequence)
        if entry.retires not in trusted.public or data is None or signature is None:
            continue
        commit, header = chain.read(data)
        listed = header.entries == (entries.digest_of(entries.encode_entry(entry)),)
        if listed and trusted.verifies(entry.retires or "", COMMIT, commit, signature):
            trusted = keyring.alone(entry.public)
    signer = trusted.signer_of(COMMIT, row.commit, row.signature)
    return Keyring() if signer is None else trusted.alone(trusted.public[signer])


def check_fits(reader: Reader, keyring: Keyring) -> None:
    """Refuse keys that a store knows nothing of, while a key of its own did sign its head.

    That is no damage: a key file was taken for another, or a store for another. A head that not even the store's own
    keys signed is left for the verification to name.
    """
    signer = None
    # What cannot be read is a fault that the verification names.
    with suppress(TypeError, ValueError, AttributeError, *reader.damaged):
        row = reader.first()
        data = None if row is None else reader.header(row.number, row.sequence)
        header = None if data is None else chain.read(data)[1]
        if row is None or header is None or header.signer in keyring.public:
            return
        # No row leads to the keys: of an export there is none yet.
        bodies = (
            entries.decode_entry(body)
            for _, body in reader.entries(row.number, 0, header.counts.entries)
            if _MARK in body
        )
        own = Keyring(pins=tuple(one.public for one in bodies if isinstance(one, KeyEntry)))
        if not own.public.keys() & keyring.public.keys():
            signer = own.signer_of(COMMIT, row.commit, row.signature)
    if signer is not None:
        raise CorruptionError(
            f"the key does not fit this store: {signer} signs it, and here is {', '.join(keyring.public) or 'none'}",
            hint="nothing was changed; if the key file was moved, or was kept as a retired one, name it by "
            "LEDGERSTONE_KEY_FILE; else this is another store",
        )


def enrolled(reader: Reader) -> Iterator[Enrolment]:
    """The keys that a verified store enrolled, oldest first."""
    row = reader.first()
    return iter(()) if row is None else _entries(reader, row.number)


def _entries(reader: Reader, number: int) -> Iterator[Enrolment]:
    for position, sequence in sorted((row.position, row.sequence) for row in reader.catalog(number, "key")):
        data = reader.entry(number, position)
        entry = None if data is None else entries.decode_entry(data)
        if isinstance(entry, KeyEntry):
            yield Enrolment(entry, sequence)
