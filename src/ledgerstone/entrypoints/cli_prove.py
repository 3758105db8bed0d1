"""The commands that prove something to somebody who does not have the store."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ledgerstone.entrypoints import host
from ledgerstone.entrypoints.frame import Door, verb
from ledgerstone.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from ledgerstone.core.proofs import Attested
    from ledgerstone.core.signing import Keyring

_ID_DIGITS: Final = 64
# How much of a path that is not there is said.
_SHOWN: Final = 200


@click.command
@click.option("--namespace", metavar="ID", help="Of this chain alone.  [default: of every chain here]")
@verb
def checkpoint(door: Door, namespace: str | None) -> None:
    """Print a signed note that says how far each chain goes.

    Keep it elsewhere: ledgerstone verify --expected FILE finds a store that lacks what it says. It is a checkpoint as
    transparency logs have them (c2sp.org/tlog-checkpoint).
    """
    with door.memory() as memory:
        notes = memory.checkpoint(namespace)
    door.answer({"checkpoints": list(notes)}, lambda: "\n".join(notes).removesuffix("\n"))


@click.command
@click.argument("target", metavar="ID")
@click.argument("file", metavar="[FILE|-]", default="-")
@click.option("--without-text", is_flag=True, help="Leave out the text and all else that can be erased.")
@verb
def prove(door: Door, target: str, file: str, *, without_text: bool) -> None:
    """Write out what proves a record to a stranger.

    By its id (the newest version), address or digest. Whoever has the public key (ledgerstone keys show) checks it
    without a store: ledgerstone verify-proof, or the script tools/verify_proof.py.
    """
    if file == "-" and sys.stdout.isatty():
        raise UsageError("prove: to standard output as it is, in a pipe", hint="name a FILE")
    with door.memory() as memory:
        proof = memory.prove(target, text=not without_text)
    if file == "-":
        click.echo(proof, nl=False)
        return

    from ledgerstone.files import whole

    with whole(Path(file)) as draft:
        draft.write_bytes(proof)
    door.answer({"file": file, "bytes": len(proof)}, file)
    if "content" in json.loads(proof):
        door.say("whoever has it has the text too (--without-text leaves it out)")
    elif not without_text:
        door.say("its text was erased, and is not in it")


@click.command("verify-proof")
@click.argument("file", metavar="FILE|-")
@click.option("--public-key", "keys", multiple=True, metavar="HEX|FILE", help="A key to trust.  [default: this host's]")
@verb
def verify_proof(door: Door, file: str, keys: tuple[str, ...]) -> None:
    """Check a proof, and say what it proves. Needs no store.

    Exits 4 unless every byte of it fits and a trusted key signed it.
    """
    keyring = _trusted(door, keys)

    from ledgerstone.core.proofs import MAX_PROOF_BYTES, check
    from ledgerstone.core.rendering import NOTICE
    from ledgerstone.entrypoints import shown, wire

    attested = check(given(file, MAX_PROOF_BYTES), keyring)
    door.answer(wire.attested(attested), lambda: shown.columns(_rows(attested)))
    whose = "a key that was named" if keys else "the key of this host" if keyring.signer else "the pinned key"
    door.say(f"it holds: every byte fits, and {whose} signed it")
    if attested.text is not None:
        door.say(NOTICE)


def _trusted(door: Door, keys: tuple[str, ...]) -> Keyring:
    if not keys:
        settings = door.settings()
        if settings.public_key is None and not settings.key_file.exists():
            raise UnavailableError(
                f"no key to check by: none was named, and no key file is at {settings.key_file}",
                hint="name the key that you trust, by --public-key HEX or FILE: "
                "ledgerstone keys show prints it where the proof was made",
            )
        return host.keyring(settings)

    from ledgerstone.core.signing import Keyring
    from ledgerstone.keys import pinned

    return Keyring(pins=tuple(public for key in keys for public in pinned(key).public.values()))


def expected(head: str) -> bytes | str:
    """A head that was kept elsewhere: its id in hex, or a file of checkpoints."""
    if len(head) == _ID_DIGITS and set(head) <= set("0123456789abcdef"):
        return bytes.fromhex(head)

    if head != "-" and not Path(head).exists():
        raise UsageError(
            f"--expected: not the {_ID_DIGITS} hex digits of a head, and no file of checkpoints: {head[:_SHOWN]!r}",
            hint="a head is shown by: ledgerstone recall --heads --json; checkpoints by: ledgerstone checkpoint",
        )

    from ledgerstone.core.proofs import MAX_NOTE_BYTES

    # What is not UTF-8 is no note, and refused as such.
    return given(head, MAX_NOTE_BYTES).decode(errors="replace")


def given(file: str, most: int) -> bytes:
    """The bytes of a file or of standard input; of more than may be, one more."""
    if file == "-":
        return sys.stdin.buffer.read(most + 1)
    if Path(file).exists() and not Path(file).is_file():
        raise UsageError(f"{file} is not a file", hint="a pipe is read from standard input: name it -")
    try:
        with Path(file).open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise UnavailableError(f"{file}: {error.strerror}") from error


def _rows(found: Attested) -> list[tuple[str, str]]:
    from ledgerstone.entrypoints import shown

    text = f"erased by commit {found.ended_by}" if found.erased else "(withheld)"
    ended = "" if found.ended_by is None else f", by commit {found.ended_by}"
    return [
        ("record", found.address),
        ("text", text if found.text is None else shown.one_line(found.text)),
        ("kind", f"{found.kind.value}, {found.status.value}"),
        ("standing", f"{found.standing.value}{ended}, at commit {found.head_sequence}"),
        ("said by", f"{found.origin.value}, {found.principal}, trust {found.trust.word}"),
        ("at", f"{shown.moment(found.at)}, commit {found.sequence} {found.commit.hex()}"),
        ("namespace", found.namespace),
        ("head", f"{found.head.hex()}, {shown.moment(found.head_at)}"),
        ("signed by", f"{found.signer} {found.public.hex()}"),
    ]


COMMANDS: Final = (checkpoint, prove, verify_proof)
