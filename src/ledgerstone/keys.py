"""Key files: one signing key and its secret, outside the store, for the owner's eyes only.

A key leaves its machine sealed under a passphrase (``docs/backup.md`` says how); without one only its public half
does, as a pin.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from itertools import count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import orjson
from cryptography.exceptions import InvalidTag

from ledgerstone.core.signing import Keyring, SigningKey, key_id
from ledgerstone.errors import FormatError, StoreError, UnavailableError, UsageError
from ledgerstone.files import keep, sync, whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

FORMAT: Final = 1
MAX_KEY_FILE_BYTES: Final = 4096
LEAST_PASSPHRASE: Final = 8
# scrypt, RFC 7914: 128 MiB and about half a second for each guess.
COST: Final = {"n": 1 << 17, "r": 8, "p": 1}
# What a file may ask of us: 1 GiB, and no more.
MOST_COST: Final = {"n": 1 << 20, "r": 8, "p": 4}
_SEALED: Final = "ledgerstone sealed key"
_RETIRED: Final = ".retired-"
_PINNED_BYTES: Final = 32


def load_keys(path: str | Path, *, create: bool = False) -> Keyring:
    """The keyring of a key file; with ``create`` a new key is made when there is none, mode 0600.

    A key beside it that is to follow it (see ``prepare``) is held too. Raises UnavailableError when there is no such
    file, FormatError when it is not a key file, and StoreError when others may read it.
    """
    where = Path(path)
    if create and not where.exists():
        _write(where, SigningKey(seed=os.urandom(32), secret=os.urandom(32)))
    following = _following(where)
    return Keyring(_load(where), following=_load(following) if following.exists() else None)


def prepare(path: str | Path) -> SigningKey:
    """The key that is to follow that of a key file, in a file of its own beside it, ``NAME.next``; made once.

    It has a seed of its own, and the same secret: what was hashed by that must be found again. From here until
    ``settle`` whoever loads the key file holds both, so that a process that ends in between locks nobody out.
    UsageError where the key file has the name of a retired one, or where a key that was imported waits there: a new
    key is one that nobody else has.
    """
    check_following(path)
    where, key = _following(Path(path)), _load(Path(path))
    if not where.exists():
        try:
            _write(where, SigningKey(seed=os.urandom(32), secret=key.secret))
        except OSError as error:
            raise UnavailableError(
                f"no key can be put at {where}: {error.strerror}",
                hint="nothing was changed; the folder of the key file must be writable",
            ) from error
    return _load(where)


def check_following(path: str | Path) -> None:
    """Refuse to make a key that follows one under the name of a retired key, or where an imported one waits.

    A key in force under ``NAME.retired-1`` would be removed by whoever clears retired keys away.
    """
    moves = to_its_place(path)
    if moves is not None:
        raise UsageError(f"{path}: that is the name of a retired key, and a key in force has another", hint=moves)
    where, brought = _following(Path(path)), waiting(path)
    if brought is not None:
        aside = next(one for at in count(1) if not (one := where.with_name(f"{where.name}-{at}")).exists())
        raise UsageError(
            f"{where} holds {brought}, which was imported and is not in force in the store",
            hint=f"a new key is made once that is out of the way: mv {quote(str(where))} {quote(str(aside))}",
        )


# What is said of a key that is ``waiting``.
WAITS: Final = "{} was imported, and waits beside the key file for a store that is signed by it"


def waiting(path: str | Path) -> str | None:
    """The id of a key that was imported beside a key file, to follow that once a store says so; None without one."""
    where = _following(Path(path))
    if not where.exists():
        return None
    data = _private(where)
    key = _parse(where, data)
    return str(Keyring(key).signer) if orjson.loads(data).get("imported") else None


def settle(path: str | Path) -> Path | None:
    """Put the key that followed in the place of the key file, which is kept as ``NAME.retired-1``; where that went.

    To be asked once a store is signed by it. None when another process was first.
    """
    where = Path(path).resolve()
    following = _following(where)
    if not following.exists():
        return None
    kept = keep(where, "retired")
    try:
        following.replace(where)
    except FileNotFoundError:
        kept.unlink(missing_ok=True)
        return None
    sync(where.parent)
    return kept


def to_its_place(path: str | Path) -> str | None:
    """How a key under the name of a retired one is brought to the place of the key file; None for any other name."""
    where = Path(path).resolve()
    name, _, number = where.name.rpartition(_RETIRED)
    if not (name and number.isdigit()):
        return None
    place = where.with_name(name)
    free = next(aside for at in count(1) if not (aside := place.with_name(f"{name}.replaced-{at}")).exists())
    first = f"mv {quote(str(place))} {quote(str(free))} && " if place.exists() else ""
    return (
        f"bring it to the place of the key file: {first}mv {quote(str(where))} {quote(str(place))}; "
        "then go on without LEDGERSTONE_KEY_FILE"
    )


def _following(path: Path) -> Path:
    where = path.resolve()
    return where.with_name(f"{where.name}.next")


def pinned(text: str) -> Keyring:
    """A keyring that checks and cannot sign, from a public key: 64 hex digits, or the path of a file that has them."""
    if not _is_public(text):
        if not Path(text).expanduser().exists():
            raise FormatError(
                f"{text}: not 64 hex digits, and no such file", hint="the public key: ledgerstone keys show"
            )
        try:
            found = _read(Path(text).expanduser())[0].decode("ascii").strip()
        except UnicodeDecodeError:
            found = ""
        if not _is_public(found):
            raise FormatError(f"{text}: no public key", hint="a file with 64 hex digits: ledgerstone keys show")
        text = found
    return Keyring(pins=(bytes.fromhex(text),))


def _is_public(text: str) -> bool:
    return len(text) == 2 * _PINNED_BYTES and all(character in "0123456789abcdef" for character in text)


def export_key(key_file: str | Path, target: str | Path, passphrase: str) -> str:
    """Write a key file's key, sealed under a passphrase, to a new file; returns the key's id."""
    key = _load(Path(key_file))
    sealed = seal(key, passphrase)
    with whole(Path(target)) as draft:
        draft.write_bytes(sealed)
    return str(Keyring(key).signer)


def import_key(source: str | Path, key_file: str | Path, passphrase: str) -> tuple[str, Path]:
    """Make the key file anew from a sealed one; returns the key's id, and the file that holds it.

    The same key again changes nothing. One that has the secret of the key that is there was made by rotating it, here
    or elsewhere: it is put beside that, to follow it once a store says that it is in force. UsageError for any other.
    """
    key = unseal(_read(Path(source))[0], passphrase, name=str(source))
    where = Path(key_file)
    if where.exists() and (there := _load(where)) != key and there.secret == key.secret:
        where = _following(where)
    if not where.exists():
        _write(where, key, imported=where != Path(key_file))
    if _load(where) != key:
        raise UsageError(f"{where} holds another key", hint="name another key file: LEDGERSTONE_KEY_FILE")
    return str(Keyring(key).signer), where


def seal(key: SigningKey, passphrase: str) -> bytes:
    """A key under a passphrase: scrypt, then ChaCha20-Poly1305 (RFC 8439) over everything else in the file."""
    check_passphrase(passphrase)
    name, public = next(iter(Keyring(key).public.items()))
    salt, nonce = os.urandom(16), os.urandom(12)
    open_part = {
        "format": FORMAT,
        "what": _SEALED,
        "id": name,
        "public": public.hex(),
        "kdf": "scrypt",
        **COST,
        "salt": salt.hex(),
        "cipher": "chacha20-poly1305",
        "nonce": nonce.hex(),
    }
    sealed = _cipher(passphrase, salt, COST).encrypt(nonce, key.seed + key.secret, _beside(open_part))
    return orjson.dumps({**open_part, "sealed": sealed.hex()}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def unseal(data: bytes, passphrase: str, *, name: str = "the file") -> SigningKey:
    """The key of a sealed file. Raises FormatError when it is none, UsageError when the passphrase is not its own."""
    refusal = FormatError(f"{name} is not a sealed Ledgerstone key of format {FORMAT}")
    try:
        value = orjson.loads(data)
        sealed = bytes.fromhex(value.pop("sealed"))
        salt, nonce = bytes.fromhex(value["salt"]), bytes.fromhex(value["nonce"])
        cost = {part: value[part] for part in COST}
        known = value["format"], value["what"], value["kdf"], value["cipher"], len(nonce)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refusal from None
    fits = all(type(asked) is int and 1 <= asked <= MOST_COST[part] for part, asked in cost.items())
    if known != (FORMAT, _SEALED, "scrypt", "chacha20-poly1305", 12) or not fits or cost["n"].bit_count() != 1:
        raise refusal
    try:
        raw = _cipher(passphrase, salt, cost).decrypt(nonce, sealed, _beside(value))
    except (InvalidTag, ValueError):
        raise UsageError(f"{name}: not its passphrase, or the file was altered") from None
    return SigningKey(seed=raw[:32], secret=raw[32:])


def _cipher(passphrase: str, salt: bytes, cost: dict[str, int]) -> ChaCha20Poly1305:
    # Loaded here, since every start reads a key file, and next to none a sealed one.
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415

    # Composed first, since keyboards differ in how they spell the same letter.
    written = unicodedata.normalize("NFC", passphrase).encode()
    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=cost["n"], r=cost["r"], p=cost["p"]).derive(written))


def _beside(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def check_passphrase(passphrase: str) -> None:
    """Refuse a passphrase that is too short."""
    if len(passphrase) < LEAST_PASSPHRASE:
        raise UsageError(f"passphrase: at least {LEAST_PASSPHRASE} characters, not {len(passphrase)}")


def _load(where: Path) -> SigningKey:
    return _parse(where, _private(where))


def _private(where: Path) -> bytes:
    """What a key file holds, once nobody else may read it."""
    data, mode = _read(where)
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StoreError(f"{where} is open to others (mode {stat.S_IMODE(mode):04o})", hint=f"run: chmod 600 {where}")
    return data


def _read(where: Path) -> tuple[bytes, int]:
    """What a key file holds, as far as one may be long, and its mode."""
    if where.exists() and not where.is_file():
        raise FormatError(f"{where} is not a file")
    try:
        with where.open("rb") as file:
            return file.read(MAX_KEY_FILE_BYTES + 1), os.fstat(file.fileno()).st_mode
    except FileNotFoundError:
        raise UnavailableError(f"no key file at {where}", hint="run: ledgerstone init") from None
    except OSError as error:
        raise UnavailableError(
            f"the key file {where} cannot be read: {error.strerror}",
            hint="see to its owner and its mode (0600), and to those of its folder",
        ) from error


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


def _write(where: Path, key: SigningKey, *, imported: bool = False) -> None:
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
            **({"imported": True} if imported else {}),
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
