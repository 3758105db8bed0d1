"""Which key a store is signed with now, for whoever trusts that key or an earlier one that handed over to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ledgerstone.core import chain, entries
from ledgerstone.core.entries import KeyEntry
from ledgerstone.core.signing import COMMIT, Keyring
from ledgerstone.errors import CorruptionError
from ledgerstone.store.protocol import ChainRow, Reader


class Enrolment(NamedTuple):
    """A key as the store chain enrolled it: by which of its commits, and when."""

    entry: KeyEntry
    sequence: int
    at: int


def in_force(reader: Reader, row: ChainRow, keyring: Keyring) -> Keyring:
    """The key alone that signs the store chain's head, if it is trusted or a trusted key handed over to it.

    Each handing over is a key entry, alone in a commit whose signature by the key that it retires is kept; from then on
    that key is believed no more. Without such a key nothing is trusted.
    """
    trusted, kept = keyring, reader.signatures(row.number)
    for sequence, entry in _entries(reader, row.number):
        data, signature = reader.header(row.number, sequence), kept.get(sequence)
        if entry.retires not in trusted.public or data is None or signature is None:
            continue
        commit, header = chain.read(data)
        listed = header.entries == (entries.digest_of(entries.encode_entry(entry)),)
        if listed and trusted.verifies(entry.retires or "", COMMIT, commit, signature):
            trusted = keyring.alone(entry.public)
    signer = trusted.signer_of(COMMIT, row.commit, row.signature)
    return Keyring() if signer is None else trusted.alone(trusted.public[signer])


def enrolled(reader: Reader) -> Iterator[Enrolment]:
    """The keys that a verified store enrolled, oldest first."""
    row = reader.chain(reader.first_chain() or "")
    for sequence, entry in () if row is None else _entries(reader, row.number):
        header = reader.header(row.number, sequence) if row is not None else None
        # What cannot be read is a fault that the verification names.
        with suppress(CorruptionError):
            if header is not None:
                yield Enrolment(entry, sequence, entries.read_stamp(header)[0].at)


def _entries(reader: Reader, number: int) -> Iterator[tuple[int, KeyEntry]]:
    for position, sequence in sorted((row.position, row.sequence) for row in reader.catalog(number, "key")):
        data = reader.entry(number, position)
        entry = None if data is None else entries.decode_entry(data)
        if isinstance(entry, KeyEntry):
            yield sequence, entry
