"""A key leaves its machine under a passphrase only, and its public half suffices to check."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerstone import FormatError, Keyring, SigningKey, UsageError, keys, load_keys
from ledgerstone.core.signing import COMMIT
from ledgerstone.keys import export_key, import_key, pinned, seal, unseal

KEY = SigningKey(seed=bytes(range(32)), secret=bytes(range(32, 64)))
WORDS = "correct horse battery"


@pytest.fixture(autouse=True, scope="module")
def _cheap() -> Any:
    """Guesses that cost next to nothing, for tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "COST", {"n": 1 << 4, "r": 8, "p": 1})
        yield


@settings(max_examples=20)
@given(seed=st.binary(min_size=32, max_size=32), secret=st.binary(min_size=32, max_size=32), words=st.text(min_size=8))
def test_a_sealed_key_comes_back_by_its_passphrase(seed: bytes, secret: bytes, words: str) -> None:
    """Whatever the key and the words, the same key; the file names neither seed nor secret."""
    key = SigningKey(seed=seed, secret=secret)
    sealed = seal(key, words)

    assert unseal(sealed, words) == key
    assert not {seed.hex(), secret.hex()} & set(json.loads(sealed).values())


def test_another_passphrase_opens_nothing() -> None:
    """A letter off is refused; the same letters typed on another keyboard are the same passphrase."""
    sealed = seal(KEY, "caf\u00e9 au lait")

    with pytest.raises(UsageError, match="not its passphrase"):
        unseal(sealed, "cafe au lait")

    assert unseal(sealed, "cafe\u0301 au lait") == KEY


@pytest.mark.parametrize("field", ["id", "public", "n", "salt", "nonce", "sealed"])
def test_an_altered_field_opens_nothing(field: str) -> None:
    """Every field is bound to the key, those in the clear too."""
    value = json.loads(seal(KEY, WORDS))
    changed = 2 * value[field] if field == "n" else ("0" if value[field][-1] != "0" else "1")
    value[field] = changed if field == "n" else value[field][:-1] + changed

    with pytest.raises(UsageError):
        unseal(json.dumps(value).encode(), WORDS)


@pytest.mark.parametrize("edit", [{"n": 1 << 40}, {"n": 3}, {"r": 0}, {"kdf": "none"}, {"format": 2}, {"salt": 1}])
def test_a_file_may_not_ask_for_more_than_a_machine_has(edit: dict[str, Any]) -> None:
    """Costs out of bounds, and forms that this program does not know, are refused before anything is derived."""
    value = {**json.loads(seal(KEY, WORDS)), **edit}

    with pytest.raises(FormatError):
        unseal(json.dumps(value).encode(), WORDS)


def test_a_short_passphrase_is_refused() -> None:
    """Seven characters seal nothing, eight do."""
    with pytest.raises(UsageError, match="at least 8 characters"):
        seal(KEY, "1234567")

    assert unseal(seal(KEY, "12345678"), "12345678") == KEY


def test_a_key_moves_to_another_machine(tmp_path: Path) -> None:
    """Exported and imported it signs as before; both files are private; again changes nothing."""
    here, sealed, there = tmp_path / "key.json", tmp_path / "moved.key", tmp_path / "other" / "key.json"
    made = load_keys(here, create=True)

    names = {export_key(here, sealed, WORDS), *(import_key(sealed, there, WORDS)[0] for _ in range(2))}

    assert names == {made.signer}
    assert load_keys(there).sign(COMMIT, b"x") == made.sign(COMMIT, b"x")
    assert load_keys(there).secret("ns") == made.secret("ns")
    assert {stat.S_IMODE(each.stat().st_mode) for each in (sealed, there)} == {0o600}


def test_no_key_is_written_over_another(tmp_path: Path) -> None:
    """Neither an exported file nor a key file that is there is replaced."""
    one, two, sealed = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "moved.key"
    load_keys(one, create=True)
    other = load_keys(two, create=True)
    export_key(one, sealed, WORDS)

    with pytest.raises(UsageError, match="is there already"):
        export_key(one, sealed, WORDS)
    with pytest.raises(UsageError, match="holds another key"):
        import_key(sealed, two, WORDS)

    assert load_keys(two).signer == other.signer


def test_a_pin_checks_and_cannot_sign(tmp_path: Path) -> None:
    """Given as hex or as a file with it, the public half verifies what the key signed."""
    keyring = Keyring(KEY)
    ((name, public),) = keyring.public.items()
    file = tmp_path / "public"
    file.write_text(f"{public.hex()}\n")

    for pin in (pinned(public.hex()), pinned(str(file))):
        assert pin.signer is None
        assert pin.verifies(name, COMMIT, b"x", keyring.sign(COMMIT, b"x"))


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "00" * 33])
def test_what_is_no_public_key_is_refused(tmp_path: Path, text: str) -> None:
    """In a file as little as by itself."""
    file = tmp_path / "public"
    file.write_text(text)

    with pytest.raises(FormatError, match="no public key"):
        pinned(str(file))
    for missing in ("abc", str(tmp_path / "missing")):
        with pytest.raises(FormatError, match="not 64 hex digits, and no such file"):
            pinned(missing)
