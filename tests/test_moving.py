"""A store leaves its place and comes to another one whole, proven, and without what was erased."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    ConflictError,
    CorruptionError,
    Draft,
    FormatError,
    Keyring,
    LedgerstoneError,
    Memory,
    Mode,
    NotFoundError,
    Origin,
    Scope,
    StoreError,
    UnavailableError,
    UsageError,
    files,
    moving,
)
from ledgerstone.anchors import Anchors
from ledgerstone.moving import Moved
from ledgerstone.store.sqlite import SqliteStore
from tests.golden import ledger as golden
from tests.golden.make import KEYS as GOLDEN_KEYS
from tests.stores import (
    KEYS,
    OTHER_KEYS,
    OWNER,
    READ_ONLY,
    Home,
    dump,
    later,
    plain_client,
    process,
    report,
    survey,
)

(PUBLIC,) = KEYS.public.values()
VERIFIER = Path(__file__).parent.parent / "tools" / "verify_format.py"
# What an agent at the command line is, and may do.
TOOL = replace(OWNER, origin=Origin.TOOL, acts=frozenset({Act.READ, Act.WRITE, Act.CREATE}))
SECRET = "the vault opens with heliotrope"


def opened(path: Path, *, caller: Caller = OWNER, keys: Keyring = KEYS, **options: Any) -> Memory:
    """The store at a path, as this machine remembers it."""
    return Memory.open(path, keys=keys, caller=caller, state=path.parent / "state", clock=later, **options)


def restored(backup: Path, path: Path, *, caller: Caller = OWNER, keys: Keyring = KEYS, **options: Any) -> Moved:
    """Restore, on this machine."""
    return Memory.restore(backup, path, keys=keys, caller=caller, state=path.parent / "state", clock=later, **options)


def imported(
    lines: list[bytes], path: Path, *, caller: Caller = OWNER, keys: Keyring = KEYS, dry_run: bool = False
) -> Moved:
    """Import, on this machine."""
    state = path.parent / "state"
    return Memory.import_lines(iter(lines), path, keys=keys, caller=caller, state=state, dry_run=dry_run, clock=later)


def exported(path: Path, namespace: str | None = None) -> list[bytes]:
    """All lines of an export that is not put on record, and so changes nothing."""
    with opened(path, keys=READ_ONLY) as memory:
        return list(memory.export(namespace).pieces)


def said(path: Path, text: str, **draft: Any) -> str:
    """Say one thing more; its address."""
    with opened(path) as memory:
        return memory.remember(Draft(text=text, **draft), scope=Scope.USER).record.address


def erased(path: Path, address: str) -> None:
    """Erase what was said."""
    with opened(path) as memory:
        assert memory.forget(address, dry_run=False).left == ()


def answers(path: Path, home: Home) -> dict[str, Any]:
    """What a store says to everything that can be asked."""
    with opened(path) as memory:
        return survey(memory, home)


def bytes_of(path: Path) -> bytes:
    """All bytes of a store's files, in its place."""
    names = (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")))
    return b"".join(each.read_bytes() for each in names if each.exists())


def stranger(lines: list[bytes], folder: Path) -> list[str]:
    """What somebody without the program says of an export, by the public key: one line a fault, and the sum."""
    file = folder / "export.jsonl"
    file.write_bytes(b"".join(lines))
    done = subprocess.run(
        [sys.executable, "-I", VERIFIER, file, PUBLIC.hex()], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


# Backups.


def test_a_backup_is_the_store_and_answers_as_it_does(home: Home, tmp_path: Path) -> None:
    """The same heads, nothing beside the file, nobody else's business, and the same answers to every question."""
    target = tmp_path / "b.db"

    with opened(home.path) as memory:
        moved = memory.backup(target)

    assert (moved.path, moved.head.hex()) == (target, report(home.path).heads[moved.store][1].hex())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.glob("*b.db*")] == ["b.db"]
    assert report(target).heads == report(home.path).heads
    assert answers(target, home) == answers(home.path, home)


def writing(path: Path, ready: Any, stop: Any) -> None:
    """Write until told to stop, as another process does."""
    with opened(path) as memory:
        while not stop.is_set():
            memory.remember("another line", scope=Scope.USER)
            ready.set()


def test_a_backup_of_a_busy_store_is_of_one_moment(home: Home, tmp_path: Path) -> None:
    """While another process writes, each backup verifies, and a later one goes further."""
    ready, stop = (multiprocessing.get_context("forkserver").Event() for _ in range(2))
    writer = process(writing, home.path, ready, stop)
    assert ready.wait(30)

    with opened(home.path) as memory:
        moved = [memory.backup(tmp_path / "one.db")]
        # The writer may have had no turn meanwhile; the second backup waits until it has had one.
        seen = sum(row["sequence"] for row in memory.namespaces())
        deadline = time.monotonic() + 60
        while sum(row["sequence"] for row in memory.namespaces()) == seen and time.monotonic() < deadline:
            time.sleep(0.01)
        moved.append(memory.backup(tmp_path / "two.db"))
    stop.set()
    writer.join(30)

    assert [report(each.path).ok for each in moved] == [True, True]
    assert moved[0].commits < moved[1].commits


def test_a_backup_never_replaces_a_file(home: Home, tmp_path: Path) -> None:
    """A file of that name is left as it is; another name is taken."""
    target = tmp_path / "b.db"
    target.write_text("mine")

    with opened(home.path) as memory, pytest.raises(UsageError, match="is there already"):
        memory.backup(target)

    assert target.read_text() == "mine"
    with opened(home.path) as memory:
        assert memory.backup(tmp_path / "c.db").commits


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_backup_takes_the_name_of_a_file(home: Home, tmp_path: Path, path: str) -> None:
    """What names none is refused as what it is; a name is taken."""
    with opened(home.path) as memory:
        with pytest.raises(UsageError, match="is no file"):
            memory.backup(path)
        assert memory.backup(tmp_path / "c.db").commits


def test_a_copy_that_does_not_verify_gets_no_name(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failing disk makes of a copy is noticed, and nothing is left that could be taken for a backup."""
    copy = SqliteStore.copy

    def failing(store: SqliteStore, target: Path) -> None:
        copy(store, target)
        damaged(target)

    monkeypatch.setattr(SqliteStore, "copy", failing)
    with opened(home.path) as memory, pytest.raises(CorruptionError, match="the copy does not verify"):
        memory.backup(tmp_path / "b.db")

    assert list(tmp_path.glob("*b.db*")) == []


def damaged(path: Path) -> None:
    """Alter a text as a plain SQL client does."""
    client = plain_client(path)
    client.execute("UPDATE content SET body = CAST(replace(body, 'lantern', 'lentern') AS BLOB)")
    client.close()


# Restoring.


@pytest.fixture
def backup(home: Home, tmp_path: Path) -> Path:
    """A backup of the home as it is; the home goes on from there."""
    with opened(home.path) as memory:
        memory.backup(tmp_path / "b.db")
    return tmp_path / "b.db"


def test_a_backup_comes_back_where_nothing_is(home: Home, backup: Path, tmp_path: Path) -> None:
    """On another machine the store is there again, with the same heads and answers; the backup is left as it was."""
    (tmp_path / "other").mkdir()
    path, before = tmp_path / "other" / "store.db", backup.read_bytes()

    moved = restored(backup, path)

    assert (moved.replaced, moved.abandoned) == (None, {})
    assert report(path).heads == report(home.path).heads
    assert answers(path, home) == answers(home.path, home)
    assert backup.read_bytes() == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["state", "store.db"]


def test_a_store_that_is_ahead_is_not_replaced_unasked(home: Home, backup: Path) -> None:
    """A restore over newer commits is refused and changes nothing; over the same ones it is done."""
    restored(backup, home.path)
    said(home.path, "written after the backup")
    before = dump(home.path)

    with pytest.raises(ConflictError, match="does not contain commit") as refused:
        restored(backup, home.path)

    assert "--accept" in refused.value.hint
    assert dump(home.path) == before


def test_newer_commits_are_not_replaced_beside_what_is_foreign(home: Home, backup: Path) -> None:
    """A store that is refused for its schema still says how far it goes, though nothing is remembered of it."""
    said(home.path, "written after the backup")
    connection = plain_client(home.path)
    connection.execute("CREATE VIEW planted AS SELECT 1")
    connection.close()
    shutil.rmtree(home.path.with_name("state"))
    before = dump(home.path)

    with pytest.raises(ConflictError, match="does not contain commit"):
        restored(backup, home.path)

    assert dump(home.path) == before
    assert restored(backup, home.path, accept=True).abandoned


def test_what_a_restore_gives_up_stays_on_record(home: Home, backup: Path) -> None:
    """Accepted, the head that was given up stands in the audit trail, and its commits in the file beside."""
    address = said(home.path, "written after the backup")
    heads = report(home.path).heads

    moved = restored(backup, home.path, accept=True)

    with opened(home.path) as memory:
        event = next(event for event in memory.audit() if event.operation == "restore")
        assert event.target in heads
        assert memory.verify().ok
        with pytest.raises(LedgerstoneError):
            memory.get(address)
    assert moved.abandoned == {event.target: heads[str(event.target)][0]}
    assert moved.replaced == home.path.with_name("store.db.replaced-1")
    assert report(moved.replaced).heads == heads


def test_a_copy_that_went_on_by_itself_is_another_head(home: Home, backup: Path, tmp_path: Path) -> None:
    """Two continuations of one head: neither replaces the other unless told so."""
    copy = Path(shutil.copy2(backup, tmp_path / "copy.db"))
    said(copy, "here")
    said(copy, "and on")
    said(home.path, "there")

    with pytest.raises(ConflictError):
        restored(copy, home.path)

    assert restored(copy, home.path, accept=True).abandoned


def test_another_store_is_not_replaced_unasked(home: Home, backup: Path, tmp_path: Path) -> None:
    """A new store that somebody made in the meantime stays, until the restore is told to replace it."""
    path = tmp_path / "fresh.db"
    with opened(path, create=True):
        pass

    with pytest.raises(ConflictError, match="the place of another store"):
        restored(backup, path)

    restored(backup, path, accept=True)
    assert answers(path, home) == answers(home.path, home)


def test_a_backup_that_does_not_verify_replaces_nothing(home: Home, backup: Path, tmp_path: Path) -> None:
    """A damaged one, one by another key, a file that is none, an empty one: refused, and all is as before."""
    altered, other, empty = Path(shutil.copy2(backup, tmp_path / "altered.db")), tmp_path / "text", tmp_path / "empty"
    damaged(altered)
    other.write_text("no database " * 100)
    empty.touch()
    before = home.path.read_bytes()

    with pytest.raises(CorruptionError, match="does not verify"):
        restored(altered, home.path)
    with pytest.raises(CorruptionError, match="the key does not fit this store"):
        restored(backup, home.path, keys=OTHER_KEYS)
    for strange in (other, empty):
        with pytest.raises(FormatError):
            restored(strange, home.path)

    assert home.path.read_bytes() == before
    assert list(tmp_path.glob(".store.db*")) == []
    assert restored(backup, home.path).replaced


def holding(path: Path, ready: Any, stop: Any) -> None:
    """Have a store open, as a server has, and do nothing."""
    with opened(path, caller=TOOL):
        ready.set()
        stop.wait(60)


def test_a_backup_with_a_foreign_schema_is_named_and_can_be_put_right(home: Home, backup: Path, tmp_path: Path) -> None:
    """Analysed by another program, it replaces nothing; what is said is of the backup, and a rebuild of that helps."""
    before = dump(home.path)
    analysed = Path(shutil.copy(backup, tmp_path / "a backup.db"))
    client = plain_client(analysed)
    client.execute("ANALYZE")
    client.close()

    with pytest.raises(CorruptionError) as refusal:
        restored(analysed, home.path)
    kept = dump(home.path)
    with opened(analysed, check=False) as memory:
        memory.rebuild()
    moved = restored(analysed, home.path)

    assert refusal.value.message.startswith(f"the schema of {analysed} is not its own: table sqlite_stat1")
    assert f"ledgerstone --store '{analysed}' rebuild" in refusal.value.hint
    assert kept == before
    assert moved.replaced is not None


def test_nothing_is_replaced_under_a_process_that_has_it_open(home: Home, backup: Path) -> None:
    """A server that runs is named as what is in the way; once it has ended, the restore is done."""
    ready, stop = (multiprocessing.get_context("forkserver").Event() for _ in range(2))
    server = process(holding, home.path, ready, stop)
    assert ready.wait(30)

    with pytest.raises(UnavailableError, match="in use by another process"):
        restored(backup, home.path)

    stop.set()
    server.join(30)
    assert restored(backup, home.path).replaced


def test_a_restore_beside_a_head_that_nobody_can_tell_takes_a_word(home: Home, backup: Path) -> None:
    """The store is gone, and what was seen of it may be newer than the backup: with that word done, and on record."""
    namespace = said_in(home.path)
    home.path.unlink()
    [head] = (home.path.parent / "state").glob(f"stores/*/heads/{namespace}")
    head.write_text("spoilt")

    with pytest.raises(ConflictError, match=r"does not contain the head of .*, which was seen here and cannot be read"):
        restored(backup, home.path)
    restored(backup, home.path, accept=True)

    with opened(home.path) as memory:
        assert namespace in {event.target for event in memory.audit() if event.operation == "restore"}
        assert memory.verify().ok


def said_in(path: Path) -> str:
    """The namespace that everything is said in, once something was."""
    said(path, "one more thing")
    with opened(path) as memory:
        return str(memory.bound()["user"])


def test_a_restore_that_is_broken_off_leaves_the_store(
    home: Home, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails on the way, the store that was there opens and answers as before."""
    before = answers(home.path, home)
    for name in ("sync", "keep"):
        with monkeypatch.context() as patch:
            patch.setattr(files, name, failing)
            with pytest.raises(UnavailableError):
                restored(backup, home.path)

        assert answers(home.path, home) == before


def dying(backup: Path, path: Path) -> None:
    """Restore, and be killed before the exchange, with the draft as it is."""
    moving._exchange = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    restored(backup, path)


def test_what_a_killed_restore_left_is_swept_away(home: Home, backup: Path, tmp_path: Path) -> None:
    """The store is as before; the draft beside it goes with the next restore, that of a living process stays."""
    before = answers(home.path, home)
    living = tmp_path / f".store.db.new-{os.getppid()}"
    living.touch()
    process(dying, backup, home.path).join(30)
    drafts = set(tmp_path.glob(".store.db.new-*"))

    restored(backup, home.path)

    assert len(drafts) > 1
    assert set(tmp_path.glob(".store.db.new-*")) == {living}
    assert answers(home.path, home) == before


def failing(*_: object) -> None:
    """Fail as a disk does."""
    raise OSError(5, "Input/output error")


def test_a_store_damaged_past_reading_is_replaced(home: Home, backup: Path) -> None:
    """The very case a backup is for: a file that is no database any more is put aside, its log with it."""
    with opened(home.path) as memory:
        memory.remember("in the log", scope=Scope.USER)
        Path(shutil.copy2(f"{home.path}-wal", home.path.with_name("log")))
    log = home.path.with_name("log").rename(f"{home.path}-wal")
    home.path.write_bytes(b"\xff" * 8192)
    shutil.rmtree(home.path.with_name("state"))

    moved = restored(backup, home.path)

    assert moved.replaced is not None
    assert moved.replaced.read_bytes() == b"\xff" * 8192
    assert not log.exists()
    assert report(home.path).ok


def test_the_replaced_file_goes_if_told_so(home: Home, backup: Path, tmp_path: Path) -> None:
    """By default each replaced file stays under a number of its own; with ``discard`` none does."""
    restored(backup, home.path)
    restored(backup, home.path)

    assert restored(backup, home.path, discard=True).replaced is None

    assert sorted(each.name for each in tmp_path.glob("*replaced*")) == ["store.db.replaced-1", "store.db.replaced-2"]


def test_giving_up_commits_takes_admin(home: Home, backup: Path) -> None:
    """A program in the user's name restores what loses nothing, and may give up nothing."""
    restored(backup, home.path, caller=TOOL)
    said(home.path, "newer")

    with pytest.raises(AuthorityError):
        restored(backup, home.path, caller=TOOL, accept=True)

    assert restored(backup, home.path, accept=True).abandoned


def test_erased_text_does_not_come_back_with_a_backup(home: Home, tmp_path: Path) -> None:
    """A backup from before an erasure is restored without the text: no file in the place has it at any moment."""
    address = said(home.path, SECRET)
    with opened(home.path) as memory:
        memory.backup(tmp_path / "b.db")
    erased(home.path, address)
    assert SECRET.encode() in (tmp_path / "b.db").read_bytes()

    restored(tmp_path / "b.db", home.path, accept=True)

    with opened(home.path) as memory:
        assert memory.get(address).text is None
        assert memory.verify().ok
    assert SECRET.encode() not in bytes_of(home.path)


def test_nobody_brings_back_what_they_cannot_erase_again(home: Home, tmp_path: Path) -> None:
    """Elsewhere on the machine too, an old backup is refused to a caller who may not forget."""
    address = said(home.path, SECRET)
    with opened(home.path) as memory:
        memory.backup(tmp_path / "b.db")
    erased(home.path, address)
    path = tmp_path / "elsewhere.db"

    for caller, keys in ((TOOL, KEYS), (OWNER, READ_ONLY)):
        with pytest.raises(AuthorityError, match="erased on this machine, in it again"):
            restored(tmp_path / "b.db", path, caller=caller, keys=keys)

    assert not path.exists()
    restored(tmp_path / "b.db", path)
    assert SECRET.encode() not in bytes_of(path)


# Exports and imports.


def test_an_export_has_the_form_of_the_golden_ledger(tmp_path: Path) -> None:
    """The golden ledger is imported as it stands, and comes out again line for line."""
    lines = golden.TEXT.encode().splitlines(keepends=True)

    Memory.import_lines(lines, tmp_path / "g.db", keys=GOLDEN_KEYS, caller=replace(OWNER, principal="local:ada"))

    with Memory.open(tmp_path / "g.db", keys=GOLDEN_KEYS, caller=OWNER, state=None, read_only=True) as memory:
        assert list(memory.export().pieces) == lines


def test_a_stranger_verifies_an_export(home: Home, tmp_path: Path) -> None:
    """The second verifier finds no fault by the public key, and names the text that was altered."""
    lines = exported(home.path)

    assert stranger(lines, tmp_path) == ["0 faults"]

    found = stranger([line.replace(b"zanzibar", b"zanzibor") for line in lines], tmp_path)
    assert [fault.partition("\t")[0] for fault in found] == ["content", "1 faults"]


def test_an_import_makes_the_same_store(home: Home, tmp_path: Path) -> None:
    """The same heads, signatures and answers, and an export that is the same byte for byte."""
    path, lines = tmp_path / "copy.db", exported(home.path)

    moved = imported(lines, path)

    assert moved.new == {name: sequence + 1 for name, (sequence, _) in report(home.path).heads.items()}
    assert answers(path, home) == answers(home.path, home)
    assert exported(path) == lines
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_import_can_be_tried(home: Home, tmp_path: Path) -> None:
    """It says what would be added, and adds nothing: not to a store, and not where none is."""
    older = exported(home.path)
    copy = tmp_path / "copy" / "store.db"
    copy.parent.mkdir()
    imported(older, copy)
    said(home.path, "one thing more")
    newer, before = exported(home.path), dump(copy)

    tried = imported(newer, copy, dry_run=True)
    nowhere = imported(newer, tmp_path / "no" / "store.db", dry_run=True)

    assert list((tried.new or {}).values()) == [1]
    assert sum((nowhere.new or {}).values()) == nowhere.commits
    assert dump(copy) == before
    assert not (tmp_path / "no" / "store.db").exists()
    assert imported(newer, copy).new == tried.new


def test_importing_twice_changes_nothing(home: Home, tmp_path: Path) -> None:
    """Neither where it was imported nor where it came from, and nor does an older export."""
    lines = exported(home.path)
    said(home.path, "newer")
    imported(lines, tmp_path / "copy.db")
    before = [dump(path) for path in (tmp_path / "copy.db", home.path)]

    assert [imported(lines, path).new for path in (tmp_path / "copy.db", home.path)] == [{}, {}]

    assert [dump(path) for path in (tmp_path / "copy.db", home.path)] == before


def test_a_newer_export_adds_only_what_is_new(home: Home, tmp_path: Path) -> None:
    """New commits of a chain, and new chains, are added to the copy, by a public key alone."""
    path = tmp_path / "copy.db"
    imported(exported(home.path), path)
    address = said(home.path, "a new thing, under quince")
    with opened(home.path, caller=replace(OWNER, session="another")) as memory:
        memory.remember("in a new chain", scope=Scope.SESSION)

    moved = imported(exported(home.path), path, keys=READ_ONLY)

    assert moved.new is not None
    assert sorted(moved.new.values()) == [1, 1, 2]
    assert report(path).heads == report(home.path).heads
    with opened(path) as memory:
        assert [item.record.address for item in memory.recall("quince").items if "quince" in str(item.record.text)] == [
            address
        ]


def test_a_fork_is_refused(home: Home, tmp_path: Path) -> None:
    """Of two that went on separately neither is imported into the other, and both stay as they are."""
    path = tmp_path / "copy.db"
    imported(exported(home.path), path)
    said(path, "here")
    said(home.path, "there")
    said(home.path, "and on")
    before = dump(path)

    with pytest.raises(ConflictError, match="a fork"):
        imported(exported(home.path), path)

    assert dump(path) == before


def test_an_export_of_another_store_is_refused(home: Home, tmp_path: Path) -> None:
    """A store takes in its own history and nobody else's."""
    with opened(tmp_path / "other.db", create=True):
        pass

    with pytest.raises(ConflictError, match="is of store"):
        imported(exported(tmp_path / "other.db"), home.path)


Edit = Callable[[list[dict[str, Any]]], object]


def _last(lines: list[dict[str, Any]], what: str) -> int:
    return max(place for place, line in enumerate(lines) if line["line"] == what)


def _swap(lines: list[dict[str, Any]]) -> None:
    last = _last(lines, "commit")
    lines[last], lines[last + 1] = lines[last + 1], lines[last]


EDITS: dict[str, Edit] = {
    "a text altered": lambda lines: lines[_last(lines, "content")].update(
        content=lines[_last(lines, "content")]["content"].replace("quarry", "quarrel")
    ),
    "a text left out": lambda lines: lines.pop(_last(lines, "content")),
    "an entry left out": lambda lines: lines.pop(_last(lines, "entry")),
    "a commit left out": lambda lines: lines.pop(_last(lines, "commit")),
    "lines swapped": _swap,
    "a line twice": lambda lines: lines.insert(_last(lines, "content"), lines[_last(lines, "content")]),
    "cut short": lambda lines: lines.pop(),
    "a chain left out": lambda lines: lines.__delitem__(slice(_last(lines, "commit") - 10, None)),
    "another signature": lambda lines: lines[-1].update(signature="00" * 64),
    "another head": lambda lines: lines[-1].update(id="00" * 32),
    "a field added": lambda lines: lines[-1].update(more=1),
    "a place below none": lambda lines: lines[-1].update(sequence=-1),
    "a number for a text": lambda lines: lines[-1].update(id=7),
    "an unknown line": lambda lines: lines.append({"line": "tail", "namespace": lines[-1]["namespace"]}),
    "no object": lambda lines: lines.append([]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_altered_export_leaves_nothing(home: Home, tmp_path: Path, edit: Edit) -> None:
    """Whatever was altered, no store appears, and a store that is there stays; as it was given it is imported."""
    whole = exported(home.path)
    (tmp_path / "new").mkdir()
    path = tmp_path / "new" / "copy.db"
    lines = [json.loads(line) for line in whole]
    edit(lines)

    with pytest.raises(CorruptionError):
        imported([json.dumps(line, ensure_ascii=False).encode() for line in lines], path)

    assert [each.name for each in path.parent.iterdir() if each.is_file()] == []
    assert imported(whole, path).new


OTHERS = [b"", b"\xff", b"[]", b'{"line":"ledger","format":2,"store":"x"}', b'{"line":"head"}']


@pytest.mark.parametrize("first", OTHERS, ids=range(len(OTHERS)))
def test_what_is_no_export_is_called_so(tmp_path: Path, first: bytes) -> None:
    """An empty file, another format and other people's JSON are no damaged exports of ours."""
    with pytest.raises(FormatError):
        imported([first], tmp_path / "copy.db")


def test_an_export_is_judged_by_the_key_that_is_trusted(home: Home, tmp_path: Path) -> None:
    """Another key's store is refused; the public key alone makes one that can be read."""
    lines = exported(home.path)

    with pytest.raises(CorruptionError, match="the key does not fit this store"):
        imported(lines, tmp_path / "copy.db", keys=OTHER_KEYS)

    imported(lines, tmp_path / "copy.db", keys=READ_ONLY)
    with opened(tmp_path / "copy.db", keys=READ_ONLY) as memory:
        assert memory.get(home.memories["last"]).text == "the last lantern"


def test_erased_text_is_in_no_export_and_comes_back_with_none(home: Home, tmp_path: Path) -> None:
    """An export has nothing of it; an older one, imported where the store was or elsewhere, does not bring it back."""
    address = said(home.path, SECRET)
    older = exported(home.path)
    erased(home.path, address)

    newer = exported(home.path)
    imported(older, home.path)
    imported(older, tmp_path / "copy.db")

    assert SECRET.encode() in b"".join(older)
    assert SECRET.encode() not in b"".join(newer)
    for path in (home.path, tmp_path / "copy.db"):
        with opened(path) as memory:
            assert memory.get(address).text is None
        assert SECRET.encode() not in bytes_of(path)
        assert report(path).ok


def test_an_erasure_travels_with_an_export(home: Home, tmp_path: Path) -> None:
    """A copy on another machine loses a text when it imports the commits that erase it."""
    (tmp_path / "other").mkdir()
    path, address = tmp_path / "other" / "copy.db", said(home.path, SECRET)
    imported(exported(home.path), path)
    assert SECRET.encode() in bytes_of(path)
    erased(home.path, address)

    imported(exported(home.path), path)

    assert report(path).heads == report(home.path).heads
    assert SECRET.encode() not in bytes_of(path)


def test_one_namespace_leaves_without_the_others(home: Home, tmp_path: Path) -> None:
    """Its export verifies, has no word of the others, and brings its news to a copy."""
    copy = tmp_path / "copy.db"
    imported(exported(home.path), copy)
    said(home.path, "news of the user")
    with opened(home.path) as memory:
        user = memory.bound()["user"]

    lines = exported(home.path, user)

    text = b"".join(lines).decode()
    assert "news of the user" in text
    assert "cedar" not in text
    assert [line.partition(":")[0] for line in stranger(lines, tmp_path)] == [f"of {user} alone", "0 faults"]
    assert imported(lines, copy).new == {user: 1}
    assert report(copy).heads == report(home.path).heads


def test_one_namespace_begins_a_store_of_its_own(home: Home, tmp_path: Path) -> None:
    """Its records are there and it verifies; it says what it goes on without, and has no byte of the others' names."""
    path = tmp_path / "alone.db"
    with opened(home.path) as memory:
        user, project = memory.bound()["user"], memory.bound()["project"]
        expected = {record.address: record.text for record in memory.records(user).pieces}

    moved = imported(exported(home.path, user), path)

    assert (moved.namespaces, report(path).findings) == (1, ())
    assert report(path).heads[user] == report(home.path).heads[user]
    assert b"cedar" not in bytes_of(path)
    with opened(path) as memory:
        assert {record.address: record.text for record in memory.records(user).pieces} == expected
        assert [each["namespace"] for each in memory.namespaces()] == [user]
        events = {event.operation: event.count for event in memory.audit(limit=1000)}
        assert (events["parting"], events["forget"]) == (2, 6)
        with pytest.raises(NotFoundError):
            memory.remember("there", namespace=project)
        memory.remember("goes on", scope=Scope.USER)
        memory.remember("a new project", scope=Scope.PROJECT)
        assert memory.rebuild().namespaces == 2
        assert memory.verify().ok
    assert stranger(exported(path), tmp_path) == ["0 faults"]


def test_a_store_that_began_so_takes_it_again_and_no_other_history(home: Home, tmp_path: Path) -> None:
    """The same export changes nothing; what the first store wrote since, and its other namespaces, are refused."""
    path = tmp_path / "alone.db"
    with opened(home.path) as memory:
        user = memory.bound()["user"]
    lines, whole = exported(home.path, user), exported(home.path)
    imported(lines, path)
    before = dump(path)

    assert imported(lines, path).new == {}
    with pytest.raises(ConflictError, match="goes on without"):
        imported(whole, path)
    with opened(home.path) as memory:
        memory.grant("local:eve", Act.READ, scope=Scope.USER)
    for each in (exported(home.path, user), exported(home.path)):
        with pytest.raises(ConflictError, match="a fork, since this store began as an export") as refused:
            imported(each, path)
        assert "import it where no store is" in refused.value.hint
    with pytest.raises(ConflictError, match=r"a fork$"):
        imported(exported(path), home.path)

    assert dump(path) == before


def test_a_store_of_its_own_takes_the_key(home: Home, tmp_path: Path) -> None:
    """By a public key alone it cannot say what it goes on without, and nothing is made."""
    with opened(home.path) as memory:
        user = memory.bound()["user"]
    lines = exported(home.path, user)

    with pytest.raises(StoreError, match="read-only"):
        imported(lines, tmp_path / "alone.db", keys=READ_ONLY)

    assert not (tmp_path / "alone.db").exists()
    assert imported(lines, tmp_path / "alone.db").new


def test_a_name_that_was_struck_leaves_a_copy_too(home: Home, tmp_path: Path) -> None:
    """With an export of the whole store, and with one of a namespace, which has no names of the others."""
    copies = [tmp_path / "whole.db", tmp_path / "part.db"]
    with opened(home.path, caller=replace(OWNER, session="wombat")) as memory:
        memory.remember("said by it", scope=Scope.USER)
        user = memory.bound()["user"]
    for copy in copies:
        imported(exported(home.path), copy)
        assert b"wombat" in bytes_of(copy)
    with opened(home.path) as memory:
        memory.forget("session:wombat", dry_run=False)
    shutil.rmtree(home.path.with_name("state"))

    imported(exported(home.path), copies[0])
    imported(exported(home.path, user), copies[1])

    for copy in copies:
        assert report(copy).findings == ()
        assert b"wombat" not in bytes_of(copy)


def test_what_an_import_erases_is_remembered_at_last_though_not_at_once(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be noted after the commit, the answer says so, and the next opening notes it."""
    folder = tmp_path / "other"
    folder.mkdir(mode=0o700)
    copy, address = folder / "copy.db", said(home.path, "said once")
    imported(exported(home.path), copy)
    with opened(home.path) as memory:
        memory.forget(address.partition("@")[0], dry_run=False)
    gone = exported(home.path)

    with monkeypatch.context() as broken:
        broken.setattr(Anchors, "keep_erased", _no_room)
        moved = imported(gone, copy)
    anchors = Anchors(folder / "state", str(copy))
    at_once = anchors.erased()
    opened(copy).close()
    at_last = anchors.erased()
    anchors.close()

    assert moved.new
    assert any("not remembered outside the store" in notice for notice in moved.notices)
    assert (len(at_once), len(at_last)) == (0, 1)


def _no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_names_that_were_left_out_are_not_missed_in_silence(home: Home, tmp_path: Path) -> None:
    """A copy that does not have them yet refuses the part, and takes the whole."""
    copy = tmp_path / "copy.db"
    imported(exported(home.path), copy)
    with opened(home.path) as memory:
        memory.alias(memory.bound()["project"], path="/srv/larch")
        user = memory.bound()["user"]

    with pytest.raises(ConflictError, match="leaves out 1 names"):
        imported(exported(home.path, user), copy)

    assert imported(exported(home.path), copy).new


def test_a_program_takes_along_only_what_it_is_bound_to(home: Home) -> None:
    """Without admin: a namespace that is bound and may be read, and neither the store nor another's namespace."""
    with opened(home.path) as memory:
        bound = memory.bound()
    elsewhere = replace(TOOL, project=None)

    with opened(home.path, caller=TOOL) as memory:
        assert list(memory.export(bound["project"]).pieces)
        with pytest.raises(AuthorityError):
            memory.export()
    with opened(home.path, caller=elsewhere) as memory, pytest.raises(AuthorityError):
        memory.export(bound["project"])
    with opened(home.path) as memory, pytest.raises(NotFoundError):
        memory.export("ns_0000000000000000")


@pytest.mark.parametrize("way", ["export", "records"])
def test_an_export_is_in_the_audit_trail(home: Home, way: str) -> None:
    """Who took which namespace along, when and by which grant, before any of it leaves; and the whole store."""
    with opened(home.path) as memory:
        user = memory.bound()["user"]
        heads = report(home.path).heads

        of_one = getattr(memory, way)(user)
        of_all = getattr(memory, way)()

        assert (of_one.notices, of_all.notices) == ((), ())
        whole, one = (event for event in memory.audit() if event.operation == "export")
        assert (one.target, whole.target) == (user, None)
        assert (one.principal, one.at) == ("local:ada", later())
        grants = {grant["grant"]: grant["act"] for grant in memory.grants()}
        assert [grants[str(event.grant)] for event in (one, whole)] == ["read", "admin"]
        assert list(of_all.pieces)
        assert memory.verify().ok
    assert report(home.path).heads[user] == heads[user]


def test_an_export_that_cannot_be_recorded_says_so(home: Home) -> None:
    """A store that is open read-only gives it all the same; nobody who may not have it gets it."""
    before = home.path.read_bytes()

    with opened(home.path, read_only=True) as memory:
        exported = memory.export()
        assert exported.notices == ("this export is not in the audit trail: the store is open read-only",)
        assert list(exported.pieces)
    with opened(home.path, read_only=True, caller=TOOL) as memory, pytest.raises(AuthorityError):
        memory.export()

    assert home.path.read_bytes() == before


def test_an_export_s_record_is_judged(home: Home) -> None:
    """A copy that imports it verifies, whether it has the namespace up to that head or not."""
    with opened(home.path) as memory:
        lines = list(memory.export(memory.bound()["user"]).pieces)

    imported(lines, home.path.with_name("alone.db"))
    imported(exported(home.path), home.path.with_name("copy.db"))

    assert [report(home.path.with_name(name)).findings for name in ("alone.db", "copy.db")] == [(), ()]


def test_importing_into_a_store_takes_admin(home: Home) -> None:
    """A program may make a store of an export, and add to none."""
    lines = exported(home.path)

    with pytest.raises(AuthorityError):
        imported(lines, home.path, caller=TOOL)

    assert imported(lines, home.path.with_name("new.db"), caller=TOOL).new


def test_the_records_of_a_store_are_those_that_stand(home: Home) -> None:
    """Each namespace's in turn, neither superseded nor retracted ones, with their texts."""
    with opened(home.path) as memory:
        records = list(memory.records().pieces)
        mine = list(memory.records(memory.bound()["user"]).pieces)

    texts = {record.text for record in records}
    assert {"the door is painted green", "cedar builds with make"} <= texts
    assert not {"the door is painted blue", "the lake is salty"} & texts
    assert {record.namespace for record in mine} == {mine[0].namespace}


# Reading only.


def test_nothing_is_written_read_only(home: Home) -> None:
    """Every verb that writes is refused with what to do; every answer is the same; no byte of the file changes."""
    before, expected = home.path.read_bytes(), answers(home.path, home)

    with opened(home.path, read_only=True) as memory:
        for write in writes(memory, home):
            with pytest.raises(StoreError, match="read-only") as refused:
                write()
            assert "LEDGERSTONE_READ_ONLY" in refused.value.hint
        assert {name: expected[name] for name in expected if name != "status"}.items() <= survey(memory, home).items()
        assert memory.verify().ok
        assert memory.forget(home.memories["last"]).addresses

    assert home.path.read_bytes() == before
    with opened(home.path) as memory:
        assert memory.remember("and now", scope=Scope.USER).sequence


def writes(memory: Memory, home: Home) -> Iterator[Callable[[], object]]:
    """Everything that would write."""
    user = memory.bound()["user"]
    yield lambda: memory.remember("x", scope=Scope.USER)
    yield lambda: memory.close_task(home.memories["task"])
    yield lambda: memory.retract(home.memories["last"], reason="x")
    yield lambda: memory.forget(home.memories["last"], dry_run=False)
    yield lambda: memory.expire(dry_run=False)
    yield lambda: memory.verify(accept=True)
    yield memory.rebuild
    yield memory.use_project
    yield lambda: memory.alias(user, path="/x")
    yield lambda: memory.detach(user, "/x")
    yield lambda: memory.grant("x", Act.READ, scope=Scope.USER)
    yield lambda: memory.revoke(memory.grants()[0]["grant"])


def reading_as_nobody(path: Path, answer: Any) -> None:
    """Read a store that this process cannot write, neither file nor folder."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        with Memory.open(path, keys=READ_ONLY, caller=OWNER, state=None, read_only=True) as memory:
            answer.put(memory.recall("last lantern", mode=Mode.LEXICAL).items[0].record.text)
            answer.put(memory.verify().ok)
    except LedgerstoneError as error:
        answer.put(error.message)


@pytest.fixture
def medium() -> Iterator[Path]:
    """A folder that everybody may look into."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_store_is_read_where_nothing_can_be_written(backup: Path, medium: Path) -> None:
    """From a folder that forbids it, as a read-only medium does, a backup is read and verified."""
    shutil.copy(backup, medium / "store.db")
    (medium / "store.db").chmod(0o444)
    medium.chmod(0o555)
    answer = multiprocessing.get_context("forkserver").Queue()

    process(reading_as_nobody, medium / "store.db", answer).join(30)

    assert [answer.get(timeout=5), answer.get(timeout=5)] == ["the last lantern", True]
    assert [each.name for each in medium.iterdir()] == ["store.db"]


def test_an_older_schema_is_not_read_before_it_was_brought_up(home: Home) -> None:
    """Read-only a file of an older schema is refused with what to do, and left as it is."""
    client = plain_client(home.path)
    client.execute("PRAGMA user_version = 0")
    client.close()

    with pytest.raises(FormatError, match="schema 0") as refused:
        opened(home.path, read_only=True)

    assert "once without --read-only" in refused.value.hint
