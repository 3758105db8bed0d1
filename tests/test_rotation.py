"""A store is handed over to a new key: the old one is believed no more, and leads whoever trusts it to the new one."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ledgerstone import (
    AuthorityError,
    CorruptionError,
    Keyring,
    Memory,
    Scope,
    SigningKey,
    StoreError,
    UsageError,
    verify_proof,
)
from ledgerstone.core import signing
from ledgerstone.entrypoints import host
from ledgerstone.keys import import_key, load_keys, prepare, seal, settle
from ledgerstone.store import open_store
from ledgerstone.store.protocol import ChainRow, Row
from ledgerstone.transcript import lines
from ledgerstone.verifying import rebuild, verify
from tests.stores import KEY, KEYS, OTHER_KEYS, OWNER, READ_ONLY, STRANGER, open_memory, plain_client, process
from tests.test_verify_format import verify_format

NEXT: Final = SigningKey(seed=b"n" * 32, secret=KEY.secret)
NEXT_KEYS: Final = Keyring(NEXT)
THIRD: Final = SigningKey(seed=b"3" * 32, secret=KEY.secret)
PIN: Final = Keyring(pins=(NEXT.public,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with commits in four chains, still signed by its first key."""
    path = tmp_path / "store.db"
    with open_memory(path) as memory:
        for scope in (Scope.PROJECT, Scope.USER, Scope.SESSION):
            memory.remember(f"of the {scope.value}, under the first key", scope=scope)
    return path


def rotated(path: Path, new: SigningKey = NEXT, keys: Keyring = KEYS) -> str:
    """The store handed over to a key; its id."""
    with open_memory(path, keys=keys) as memory:
        return memory.rotate(new)


def texts(path: Path, keys: Keyring) -> set[str | None]:
    """All that somebody with these keys can read."""
    with Memory.open(path, keys=keys, caller=OWNER, state=None, read_only=True) as memory:
        return {record.text for record in memory.list_records("all").items}


def test_what_follows_is_signed_by_the_new_key(path: Path) -> None:
    """In the process that rotated, and in one that opens the store with the new key alone; everything verifies."""
    with open_memory(path) as memory:
        name = memory.rotate(NEXT)
        memory.remember("under the next key, at once", scope=Scope.USER)
        assert memory.status()["signer"] == memory.signer == name
        assert memory.verify().findings == ()

    with open_memory(path, keys=NEXT_KEYS) as memory:
        memory.remember("under the next key, again", scope=Scope.USER)
        assert memory.verify().findings == ()
        exported = b"".join(memory.export().pieces).decode().splitlines()

    signers = [line.partition('signer\\":\\"')[2][:20] for line in exported if '"under' in line or "signer" in line]
    assert {KEYS.signer, name} <= set(signers)


def test_the_last_signatures_of_a_key_are_kept(path: Path) -> None:
    """One for the head of every chain, made by the key that went, whatever was committed since."""
    rotated(path)
    with open_memory(path, keys=NEXT_KEYS) as memory:
        memory.remember("under the next key", scope=Scope.USER)

    store = open_store(path)
    with store.read() as reader:
        for row in reader.chains():
            sequence, signature = max(reader.signatures(row.number).items())
            headers = {at: commit for at, commit, _ in reader.headers(row.number, newest=0, oldest=1 << 30)}
            assert KEYS.verifies(KEYS.signer or "", signing.COMMIT, headers[sequence], signature)
            assert NEXT_KEYS.signer_of(signing.COMMIT, row.commit, row.signature) == NEXT_KEYS.signer
    store.close()


def test_whoever_pinned_the_old_key_is_led_to_the_new_one(path: Path) -> None:
    """Through two rotations; a pin of the newest reads too, and one of a foreign key reads nothing."""
    rotated(path)
    rotated(path, THIRD, NEXT_KEYS)
    with open_memory(path, keys=Keyring(THIRD)) as memory:
        memory.remember("under the third key", scope=Scope.USER)

    for keys in (READ_ONLY, PIN, Keyring(pins=(THIRD.public,))):
        assert "under the third key" in texts(path, keys)
    with pytest.raises(CorruptionError, match="no trusted key signed the head"):
        texts(path, Keyring(pins=tuple(OTHER_KEYS.public.values())))


def test_a_retired_key_reads_and_does_not_write(path: Path) -> None:
    """Another machine, and a program that was running meanwhile, are told what to do."""
    other = open_memory(path)
    rotated(path)

    for memory in (other, open_memory(path)):
        with pytest.raises(StoreError, match="the signing key was retired") as refused:
            memory.remember("by the old key", scope=Scope.USER)
        assert "start this program again" in refused.value.hint
        assert len(memory.list_records("all").items) == 3
        memory.close()

    assert open_store(path).read().__enter__().first_chain()


def test_refusals_noted_under_a_retired_key_do_not_stop_the_program(path: Path) -> None:
    """They stay noted, as with no key at all, and closing raises nothing."""
    memory = open_memory(path)
    with pytest.raises(AuthorityError):
        memory.bind(STRANGER).remember("let me in", scope=Scope.USER)
    rotated(path)

    memory.close()


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Somebody's own hand on the rows of a store at rest."""
    store = open_store(path)
    with store.write() as writer:
        change(writer)
    store.close()


def forged(path: Path, before: Path) -> None:
    """What a thief of the old key appends to the rotated store: a commit made on a copy from before, made to fit."""
    with open_memory(before) as thief:
        thief.remember("forged with the stolen key", scope=Scope.USER)
    client = plain_client(path)
    client.execute("ATTACH ? AS thief", (str(before),))
    for table in ("header", "entry", "content", "record", "words", "node"):
        client.execute(f"INSERT OR REPLACE INTO main.{table} SELECT * FROM thief.{table} WHERE row >> 40 = 3")  # noqa: S608
    client.execute(
        "UPDATE main.chain SET (sequence, head, signature, frontier) = "
        "(SELECT sequence, head, signature, frontier FROM thief.chain WHERE number = 3) WHERE number = 3"
    )
    client.close()


@pytest.mark.parametrize("keys", [NEXT_KEYS, PIN, READ_ONLY], ids=["key", "new pin", "old pin"])
def test_a_forger_with_the_old_key_is_refused(path: Path, tmp_path: Path, keys: Keyring) -> None:
    """On the read path, and in verify, which also names the heads that the key ended at; untouched it is accepted."""
    before = tmp_path / "before.db"
    shutil.copy(path, before)
    rotated(path)
    assert len(texts(path, keys)) == 3
    assert len(findings(path, keys)) == 0

    forged(path, before)

    with pytest.raises(CorruptionError, match="no trusted key signed the head"):
        texts(path, keys)
    found = findings(path, keys)
    assert {code for code, _ in found} >= {"signature", "rule"}
    assert any("names other heads" in message for _, message in found)


def _rebuild(writer: Any) -> None:
    rebuild(writer, NEXT_KEYS)


def findings(path: Path, keys: Keyring) -> list[tuple[str, str]]:
    """What a verification finds."""
    store = open_store(path)
    with store.read() as reader:
        found = [(each.code, each.message) for each in verify(reader, keys).findings]
    store.close()
    return found


def test_a_commit_by_the_old_key_after_the_rotation_is_a_finding(path: Path) -> None:
    """Also where it names the store chain as it stands, and the head was signed by the new key over it."""
    rotated(path)
    with open_memory(path, keys=NEXT_KEYS) as memory:
        # A thief who could also have the new key sign: the signer named in the header is still the wrong one.
        memory._ledger.keyring = keyring = Keyring(NEXT)
        keyring.signer = KEYS.signer  # type: ignore[misc]
        memory.remember("in the name of the old key", scope=Scope.USER)

    assert any("breaks the rule signer" in message for _, message in findings(path, NEXT_KEYS))


@pytest.mark.parametrize("gone", ["rotation", "last"])
def test_a_signature_that_must_be_kept_is_missed(path: Path, gone: str) -> None:
    """That of the commit which hands over, without which nobody is led on, and those of the last heads."""
    rotated(path)
    number, keys = (1, NEXT_KEYS) if gone == "rotation" else (3, NEXT_KEYS)
    client = plain_client(path)
    client.execute("DELETE FROM signature WHERE row = (SELECT max(row) FROM signature WHERE row >> 40 = ?)", (number,))
    client.close()

    assert ("signature", "its kept signature is missing") in findings(path, keys)
    if gone == "rotation":
        with pytest.raises(CorruptionError, match="no trusted key signed"):
            texts(path, READ_ONLY)
    assert len(texts(path, NEXT_KEYS)) == 3


def test_a_signature_that_nothing_asks_for_is_a_finding(path: Path) -> None:
    """Kept are every 256th and a key's last, and no other."""
    with open_memory(path) as memory:
        memory.remember("one more", scope=Scope.USER)
    edit(path, lambda writer: writer.transcribe(writer.chains()[2].namespace, [Row("signature", 1, bytes(64))]))

    assert ("signature", "a signature is kept that nothing asks for") in findings(path, KEYS)


def test_what_left_before_stays_verifiable_by_the_old_key(path: Path, tmp_path: Path) -> None:
    """A backup, an export and a proof from before; and the export from after by either, as the page says it."""
    with open_memory(path) as memory:
        memory.backup(tmp_path / "before.db")
        before = b"".join(memory.export().pieces).decode().splitlines()
        proof = memory.prove(memory.list_records("all").items[0].address)
        memory.rotate(NEXT)
        later = memory.prove(memory.list_records("all").items[0].address)
        memory.remember("under the next key", scope=Scope.USER)
        after = b"".join(memory.export().pieces).decode().splitlines()

    assert len(texts(tmp_path / "before.db", READ_ONLY)) == 3
    assert (
        verify_format.verify(before, [KEY.public])
        == verify_format.verify(after, [KEY.public])
        == verify_format.verify(after, [NEXT.public])
        == []
    )
    assert verify_format.verify(after, [THIRD.public])
    assert verify_proof(proof, [KEY.public]).signer == KEYS.signer
    assert verify_proof(later, [NEXT.public]).signer == NEXT_KEYS.signer
    with pytest.raises(CorruptionError):
        verify_proof(later, [KEY.public])


def test_checkpoints_of_the_old_key_still_count(path: Path) -> None:
    """What was kept elsewhere before the rotation is looked for after it; a foreign key's is refused."""
    with open_memory(path) as memory:
        kept = "".join(memory.checkpoint())
        memory.rotate(NEXT)
        assert "".join(memory.checkpoint()) != kept

    with open_memory(path, keys=NEXT_KEYS) as memory:
        assert memory.verify(expected=kept).findings == ()
    with open_memory(path.with_name("other.db"), keys=OTHER_KEYS) as other:
        foreign = "".join(other.checkpoint())
    with open_memory(path, keys=NEXT_KEYS) as memory, pytest.raises(CorruptionError, match="no trusted key"):
        memory.verify(expected=foreign)


def test_an_import_brings_the_rotation_along(path: Path, tmp_path: Path) -> None:
    """A copy elsewhere, whose heads are here already, gets their new signatures; an older export undoes nothing."""
    with open_memory(path) as memory:
        before = list(memory.export().pieces)
    there = tmp_path / "there.db"
    Memory.import_lines(before, there, keys=KEYS, caller=OWNER)
    rotated(path)
    with open_memory(path, keys=NEXT_KEYS) as memory:
        after = list(memory.export().pieces)

    moved = Memory.import_lines(after, there, keys=KEYS, caller=OWNER)
    again = Memory.import_lines(before, there, keys=NEXT_KEYS, caller=OWNER)

    # The new key, and that its store was exported.
    assert sum((moved.new or {}).values()) == 2
    assert not again.new
    assert findings(there, NEXT_KEYS) == []
    assert len(texts(there, PIN)) == 3


def test_rotating_takes_admin_and_the_same_secret(path: Path) -> None:
    """A stranger's, and a key that would find no earlier idempotency key again, change nothing."""
    with open_memory(path) as memory:
        head = memory.status()["head"]
        with pytest.raises(AuthorityError):
            memory.bind(replace(OWNER, principal="local:bob")).rotate(NEXT)
        with pytest.raises(UsageError, match="has the secret of the one that signs"):
            memory.rotate(replace(NEXT, secret=bytes(32)))
        assert (memory.status()["head"], memory.signer) == (head, KEYS.signer)

        memory.remember("before", scope=Scope.USER, idempotency_key="once")
        memory.rotate(NEXT)
        assert memory.remember("before", scope=Scope.USER, idempotency_key="once").repeated


def test_a_key_that_reads_only_hands_nothing_over(path: Path) -> None:
    """Nor does a store that does not verify: no new key vouches for what is wrong."""
    with (
        Memory.open(path, keys=READ_ONLY, caller=OWNER, state=None) as memory,
        pytest.raises(UsageError, match="has the secret of the one that signs"),
    ):
        memory.rotate(NEXT)
    client = plain_client(path)
    client.execute("UPDATE record SET trust = 0")
    client.close()

    with open_memory(path) as memory, pytest.raises(CorruptionError, match="no new key is to vouch for it"):
        memory.rotate(NEXT)
    assert len(texts(path, READ_ONLY)) == 3


def test_rebuilding_takes_the_heads_of_a_rotation_in(path: Path, tmp_path: Path) -> None:
    """A rebuilt store is the same; one with other heads than were named is refused."""
    before = tmp_path / "before.db"
    shutil.copy(path, before)
    rotated(path)
    edit(path, _rebuild)
    assert findings(path, NEXT_KEYS) == []

    forged(path, before)

    def place(writer: Any) -> None:
        row: ChainRow = writer.chains()[2]
        writer.place_head(row._replace(signature=NEXT_KEYS.sign(signing.COMMIT, row.commit)))

    edit(path, place)
    with pytest.raises(CorruptionError, match="canonical history is damaged"):
        edit(path, _rebuild)


# Processes that die in the middle.


@pytest.fixture
def settings(tmp_path: Path) -> host.Settings:
    """A machine with a store of its own."""
    found = host.settle(environ={"HOME": str(tmp_path), "LEDGERSTONE_HOME": str(tmp_path / "ls")}, cwd=tmp_path)
    with host.open_memory(found, _user(found), create=True) as memory:
        memory.remember("before the rotation", scope=Scope.USER)
    return found


def _user(settings: host.Settings) -> Any:
    return host.caller(settings, door="cli", terminal=True)


def _dies(settings: host.Settings, where: str) -> None:
    """Rotate, and be killed at one point of it."""

    def die(*_: object) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    if where == "before the commit":
        Memory.rotate = die  # type: ignore[assignment,method-assign]
    else:
        from ledgerstone import keys  # noqa: PLC0415

        keys.settle = die  # type: ignore[assignment]
    with host.open_memory(settings, _user(settings)) as memory:
        host.rotate(settings, memory)


@pytest.mark.parametrize("where", ["before the commit", "after the commit"])
def test_a_rotation_that_is_killed_leaves_a_usable_store(settings: host.Settings, where: str) -> None:
    """The next opening writes by whichever key is in force, and the next rotation goes through."""
    old = load_keys(settings.key_file)
    killed = process(_dies, settings, where)
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    following = load_keys(settings.key_file).following
    assert following is not None

    with host.open_memory(settings, _user(settings)) as memory:
        assert memory.signer == (old.signer if where == "before the commit" else following)
        memory.remember("after the kill", scope=Scope.USER)
        assert memory.verify().findings == ()
    assert (load_keys(settings.key_file).signer == following) == (where == "after the commit")

    with host.open_memory(settings, _user(settings)) as memory:
        host.rotate(settings, memory)
        memory.remember("after the next rotation", scope=Scope.USER)
        assert memory.verify().findings == ()
    with host.open_memory(settings, _user(settings)) as memory:
        assert memory.signer == load_keys(settings.key_file).signer != old.signer
        assert len(memory.list_records("all").items) == 3


def test_the_old_key_file_is_kept_and_the_new_one_private(settings: host.Settings) -> None:
    """For backups from before; nothing else is left beside the key file."""
    old = load_keys(settings.key_file)

    with host.open_memory(settings, _user(settings)) as memory:
        kept = host.rotate(settings, memory)

    assert kept is not None
    assert load_keys(kept).signer == old.signer
    assert {each.name: each.stat().st_mode & 0o777 for each in settings.key_file.parent.iterdir()} == {
        "key.json": 0o600,
        "key.json.retired-1": 0o600,
    }


def test_a_refused_rotation_leaves_no_key_behind(settings: host.Settings) -> None:
    """A program may not rotate; the user at a terminal may."""
    program = host.caller(settings, door="cli", terminal=False)

    with host.open_memory(settings, program) as memory, pytest.raises(AuthorityError):
        host.rotate(settings, memory)

    assert [each.name for each in settings.key_file.parent.iterdir()] == ["key.json"]


def test_a_refused_rotation_takes_no_key_from_one_that_goes_through(settings: host.Settings) -> None:
    """A store that is handed over meanwhile is still written by its owner."""
    program = host.caller(settings, door="cli", terminal=False)

    with host.open_memory(settings, _user(settings)) as memory, host.open_memory(settings, program) as other:
        new = prepare(settings.key_file)
        with pytest.raises(AuthorityError):
            host.rotate(settings, other)
        memory.rotate(new)

    with host.open_memory(settings, _user(settings)) as memory:
        assert memory.signer == load_keys(settings.key_file).signer
        memory.remember("by the new key", scope=Scope.USER)


def test_two_who_settle_leave_one_key(settings: host.Settings) -> None:
    """The second finds nothing to do; what follows is made once."""
    assert prepare(settings.key_file) == prepare(settings.key_file)

    assert settle(settings.key_file) is not None
    assert settle(settings.key_file) is None


def test_a_new_key_that_is_imported_follows_when_the_store_says_so(settings: host.Settings) -> None:
    """Another machine's file goes on with the old key until its store is handed over; a foreign key is refused."""
    moved = settings.key_file.with_name("moved.key")
    old = load_keys(settings.key_file)
    new = SigningKey(seed=b"n" * 32, secret=old._held[0].secret)
    moved.write_bytes(seal(new, "correct horse"))
    import_key(moved, settings.key_file, "correct horse")

    with host.open_memory(settings, _user(settings)) as memory:
        assert memory.signer == old.signer
        memory.rotate(new)
        memory.remember("by the new one", scope=Scope.USER)
    with host.open_memory(settings, _user(settings)) as memory:
        assert memory.signer == Keyring(new).signer
    assert load_keys(settings.key_file).signer == Keyring(new).signer


# The second verifier, which was written from the page.


def exported(path: Path) -> list[dict[str, Any]]:
    """A store's lines, whatever it holds."""
    store = open_store(path)
    with store.read() as reader:
        found = [json.loads(line) for line in lines(reader)]
    store.close()
    return found


def by_page(rows: list[dict[str, Any]], key: SigningKey = NEXT) -> set[str]:
    """The checks that find a fault."""
    return {check for check, _, _ in verify_format.verify(map(json.dumps, rows), [key.public])}


def test_the_page_finds_what_a_thief_slipped_in(path: Path, tmp_path: Path) -> None:
    """Other heads than were named, and a head that the key in force did not sign."""
    before = tmp_path / "before.db"
    shutil.copy(path, before)
    rotated(path)
    assert by_page(exported(path)) == set()

    forged(path, before)

    assert by_page(exported(path)) == {"signature", "rule"}


def _end(row: dict[str, Any]) -> int:
    return int(row["sequence"])


@pytest.mark.parametrize("edit", ["drop", "old head", "add"])
def test_the_page_finds_signatures_that_are_not_as_they_must_be(path: Path, edit: str) -> None:
    """A kept one that is gone, a head's by the old key, one that nothing asks for."""
    with open_memory(path) as memory:
        memory.remember("one more", scope=Scope.USER)
        memory.remember("and another", scope=Scope.USER)
    rotated(path)
    rows = exported(path)
    longest = max((row for row in rows[2:] if row["line"] == "head" and row["namespace"] != rows[0]["store"]), key=_end)
    user = [row for row in rows if row.get("namespace") == longest["namespace"]]
    kept, head = [row for row in user if row["line"] == "signature"][-1], user[-1]

    if edit == "drop":
        rows.remove(kept)
    elif edit == "old head":
        head["signature"] = KEYS.sign(signing.COMMIT, bytes.fromhex(head["id"])).hex()
    else:
        rows.insert(rows.index(kept), {**kept, "sequence": 1, "signature": kept["signature"]})

    assert by_page(rows) == {"signature"}


def test_verification_goes_on_across_a_rotation(path: Path, tmp_path: Path) -> None:
    """From where it got to under the old key, by the new one; in full as well."""
    with open_memory(path, state=tmp_path / "state") as memory:
        assert memory.verify().findings == ()
        memory.remember("under the first key, again", scope=Scope.USER)
        memory.rotate(NEXT)
        memory.remember("under the next key", scope=Scope.USER)
        assert memory.verify().findings == ()

    with open_memory(path, keys=NEXT_KEYS, state=tmp_path / "state") as memory:
        memory.remember("under the next key, again", scope=Scope.USER)
        assert memory.verify().findings == ()
        assert memory.verify(full=True).findings == ()
