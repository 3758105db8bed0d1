"""Key files: one signing key and its secret, outside the store, for the owner's eyes only."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import orjson

from ledgerstone.core.signing import Keyring, SigningKey, key_id
from ledgerstone.errors import FormatError, StoreError, UnavailableError

FORMAT: Final = 1
MAX_KEY_FILE_BYTES: Final = 4096


def load_keys(path: str | Path, *, create: bool = False) -> Keyring:
    """The keyring of a key file; with ``create`` a new key is made when there is none, mode 0600.

    Raises UnavailableError when there is no such file, FormatError when it is not a key file, and StoreError when
    others may read it.
    """
    where = Path(path)
    if create and not where.exists():
        _write(where, SigningKey(seed=os.urandom(32), secret=os.urandom(32)))
    try:
        with where.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MAX_KEY_FILE_BYTES + 1)
    except FileNotFoundError:
        raise UnavailableError(f"no key file at {where}", hint="run: ledgerstone init") from None
    except OSError as error:
        raise UnavailableError(f"the key file cannot be read: {error}") from error
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StoreError(f"{where} is open to others (mode {stat.S_IMODE(mode):04o})", hint=f"run: chmod 600 {where}")
    return Keyring(_parse(where, data))


def _parse(where: Path, data: bytes) -> SigningKey:
    try:
        value = orjson.loads(data)
        seed, secret = bytes.fromhex(value["seed"]), bytes.fromhex(value["secret"])
        found = value["format"], len(seed), len(secret)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{where} is not a Ledgerstone key file") from error
    if found != (FORMAT, 32, 32):
        raise FormatError(f"{where} is not a key file of format {FORMAT}")
    keyring = Keyring(SigningKey(seed=seed, secret=secret))
    if value.get("public") != keyring.public[keyring.signer or ""].hex():
        raise FormatError(f"{where}: its public key is not that of its seed")
    return SigningKey(seed=seed, secret=secret)


def _write(where: Path, key: SigningKey) -> None:
    """Make the file whole or not at all: written beside, synced, then linked to its name."""
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    public = Keyring(key).public
    name, raw = next(iter(public.items()))
    body = orjson.dumps(
        {
            "format": FORMAT,
            "id": name,
            "public": raw.hex(),
            "seed": key.seed.hex(),
            "secret": key.secret.hex(),
        },
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    draft = where.with_name(f".{where.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, where)
        except FileExistsError:
            return  # Another process was first; its key is the key.
    finally:
        draft.unlink()


def describe(keyring: Keyring) -> list[dict[str, object]]:
    """The public side of a keyring, for people: ids, public keys in hex, and which one signs."""
    return [
        {"key": name, "public": raw.hex(), "signs": name == keyring.signer}
        for name, raw in keyring.public.items()
        if key_id(raw) == name
    ]
