"""What a machine remembers of a store outside it: a store that was cut, rolled back or exchanged is refused."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import stat
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    CorruptionError,
    Draft,
    FormatError,
    Kind,
    Memory,
    Report,
    Scope,
    UnavailableError,
    UsageError,
    anchors,
    verifying,
)
from ledgerstone.anchors import MAX_OPEN_FILES, Anchor, Anchors
from ledgerstone.core import signing
from ledgerstone.entrypoints import wire
from ledgerstone.ledger import Ledger
from ledgerstone.store.sqlite import SqliteStore
from tests.store.tampering import EDITS
from tests.stores import KEYS, OWNER, Home, furnish, open_memory, plain_client, process, rebuilt, report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAM: Final = replace(OWNER, acts=frozenset({Act.READ, Act.WRITE, Act.CREATE}))
ALTERED: Final = "UPDATE words SET length = length + 1 WHERE words LIKE '% first %'"
MENDED: Final = "UPDATE words SET length = length - 1 WHERE words LIKE '% first %'"


@dataclass(frozen=True, slots=True)
class Desk:
    """A store at a path, and the state directory of the machine that uses it."""

    path: Path
    state: Path

    def open(self, *, create: bool = False, check: bool = True, model: bool = False) -> Memory:
        """Open the store as its owner, or as a program of the owner's."""
        caller = PROGRAM if model else OWNER
        return open_memory(self.path, caller=caller, create=create, state=self.state, check=check)

    def say(self, *texts: str) -> None:
        """Open the store, remember something, and close it."""
        with self.open() as memory:
            for text in texts:
                memory.remember(text, scope=Scope.USER)

    def put(self, data: bytes) -> None:
        """Another file in the store's place."""
        self.path.write_bytes(data)

    def edit(self, script: str) -> None:
        """What somebody else's SQL client does."""
        connection = plain_client(self.path)
        connection.execute(script)
        connection.close()

    @property
    def anchors(self) -> Anchors:
        """What is remembered."""
        return Anchors(self.state, str(self.path.resolve()))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A store in use: made, closed, opened again and written."""
    made = Desk(tmp_path / "store.db", tmp_path / "state")
    made.open(create=True).close()
    made.say("the first thing")
    return made


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """The full verifications that are made."""
    made: list[Report] = []
    verify = verifying.verify

    def counted(*arguments: object) -> Report:
        made.append(verify(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(verifying, "verify", counted)
    return made


def rolled_back(desk: Desk) -> bytes:
    """Write once more and put the older copy back; returns the newer file."""
    older = desk.path.read_bytes()
    desk.say("one more genuine write")
    newer = desk.path.read_bytes()
    desk.put(older)
    return newer


def test_a_store_rolled_back_after_one_more_write_is_refused(desk: Desk) -> None:
    """The older copy is sound in itself; the head that was seen tells. The newer file opens again."""
    newer = rolled_back(desk)
    assert report(desk.path).ok

    with pytest.raises(CorruptionError, match=r"the head is commit \d+, behind commit \d+ seen here") as refusal:
        desk.open()

    assert "a restored backup?" in refusal.value.hint
    assert "ledgerstone verify --accept" in refusal.value.hint
    desk.put(newer)
    desk.open().close()


def test_the_last_two_records_cannot_be_taken_away(tmp_path: Path) -> None:
    """Cut off with all that belongs to them, under the signature that their predecessor once had, they are missed."""
    home = furnish(tmp_path / "store.db", fillers=2)
    desk = Desk(home.path, tmp_path / "state")
    desk.open().close()
    whole = desk.path.read_bytes()

    cut_short(home)

    assert report(desk.path).ok
    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()
    desk.put(whole)
    desk.open().close()


def cut_short(home: Home) -> None:
    """Take the last two records of the user's chain away so that nothing in the store tells."""
    cut = next(edit for edit in EDITS if edit.name == "the last two records gone")
    connection = plain_client(home.path)
    rows = home.rows()
    cut.apply(connection, rows)
    where = (rows["user_chain"],)
    head = connection.execute("SELECT head FROM chain WHERE number = ?", where).get
    # The signature of an Ed25519 key over the same bytes is the one that was there before.
    connection.execute("UPDATE chain SET signature = ? WHERE number = ?", (KEYS.sign(signing.COMMIT, head), *where))
    connection.close()
    rebuilt(home.path)


@pytest.fixture
def twin(desk: Desk, tmp_path: Path) -> Desk:
    """A copy of the store as another machine has it, which goes on by itself."""
    made = Desk(tmp_path / "twin.db", tmp_path / "state of another machine")
    shutil.copy2(desk.path, made.path)
    return made


@pytest.mark.parametrize("there", [1, 2])
def test_two_continuations_of_one_head_are_refused_both_ways(desk: Desk, twin: Desk, there: int) -> None:
    """A copy that went on by itself, as long as ours or longer, is not ours; and ours is not that one."""
    desk.say("said here")
    twin.say(*("said there", "and more")[:there])
    files = {desk: desk.path.read_bytes(), twin: twin.path.read_bytes()}

    for mine, other in ((desk, twin), (twin, desk)):
        mine.put(files[other])
        with pytest.raises(CorruptionError, match=r"another history|behind commit"):
            mine.open()
        mine.put(files[mine])
        mine.open().close()


def test_rebuilding_makes_no_other_history_ours(desk: Desk, twin: Desk) -> None:
    """A longer copy that went on by itself can be rebuilt by anybody, and is refused as before."""
    desk.say("said here")
    twin.say("said there", "and more")
    desk.put(twin.path.read_bytes())

    with desk.open(check=False, model=True) as memory:
        assert memory.rebuild().ok

    with pytest.raises(CorruptionError, match="another history"):
        desk.open()


@pytest.mark.parametrize("create", [False, True])
def test_a_deleted_store_is_never_made_anew(desk: Desk, create: bool) -> None:
    """Where a store was and is none, nothing is made, also when asked to; put back, it opens."""
    kept = desk.path.read_bytes()
    desk.path.unlink()

    with pytest.raises(UnavailableError, match="is gone") as refusal:
        desk.open(create=create)

    assert "restore a backup" in refusal.value.hint
    assert not desk.path.exists()
    desk.put(kept)
    desk.open(create=create).close()


@pytest.mark.parametrize("create", [False, True])
def test_an_emptied_file_is_no_place_for_a_new_store(desk: Desk, create: bool) -> None:
    """A file of no bytes is where a store was all the same; the store that is remembered stays the known one."""
    kept = desk.path.read_bytes()
    desk.put(b"")

    with pytest.raises((CorruptionError, FormatError), match=r"the store at this path is empty|holds no store"):
        desk.open(create=create)

    desk.put(kept)
    desk.open(create=create).close()


def test_another_store_at_the_path_is_refused(desk: Desk, tmp_path: Path) -> None:
    """Also one that the same key signed: it is named by verify, not even accepted, and the right one opens."""
    kept = desk.path.read_bytes()
    open_memory(tmp_path / "other.db").close()
    desk.put((tmp_path / "other.db").read_bytes())

    with pytest.raises(CorruptionError, match="that was here before"):
        desk.open()
    with desk.open(check=False) as memory:
        found = [memory.verify(accept=accept) for accept in (False, True)]

    assert [[finding.code for finding in report.findings] for report in found] == [["other"], ["other"]]
    assert all("ledgerstone doctor" in (report.hint or "") for report in found)
    desk.put(kept)
    desk.open().close()


def test_verify_names_the_head_that_is_gone(desk: Desk) -> None:
    """A store that is refused can be verified: what is missing is a finding, and nothing else is."""
    namespace, sequence = newest(desk)
    rolled_back(desk)

    with desk.open(check=False) as memory:
        checked = memory.verify()

    assert [(finding.code, finding.namespace, finding.sequence) for finding in checked.findings] == [
        ("anchor", namespace, sequence + 1)
    ]
    with pytest.raises(CorruptionError):
        desk.open()


def newest(desk: Desk) -> tuple[str, int]:
    """The user's chain and its newest sequence."""
    with desk.open() as memory:
        namespace = memory.bound()["user"]
        return namespace, memory.verify().heads[namespace][0]


def test_an_owner_takes_an_older_store_back(desk: Desk) -> None:
    """It opens from then on, its past and what it abandons stand in the audit trail, and the new head counts."""
    namespace, _ = newest(desk)
    newer = rolled_back(desk)

    with desk.open(check=False) as memory:
        assert memory.verify(accept=True).ok
        memory.remember("we go on from here", scope=Scope.USER)

    with desk.open() as memory:
        restored = [event for event in memory.audit() if event.operation == "restore"]
        texts = [record.text for record in memory.list_records().items]
    assert [(event.target, event.principal) for event in restored] == [(namespace, OWNER.principal)]
    assert texts == ["we go on from here", "the first thing"]
    desk.put(newer)
    with pytest.raises(CorruptionError):
        desk.open()


def test_only_an_administrator_takes_a_store_back(desk: Desk) -> None:
    """A program of the owner's is refused, and the store with it; the owner may."""
    rolled_back(desk)

    with pytest.raises(AuthorityError), desk.open(check=False, model=True) as memory:
        memory.verify(accept=True)

    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()
    with desk.open(check=False) as memory:
        assert memory.verify(accept=True).ok


def test_a_damaged_store_is_not_taken_back(desk: Desk) -> None:
    """With any fault beside, every one is named and nothing is accepted; mended, the store is taken."""
    rolled_back(desk)
    desk.edit(ALTERED)

    with desk.open(check=False) as memory:
        checked = memory.verify(accept=True)
        with pytest.raises(CorruptionError, match="changed by another program"):
            memory.bound()

    assert {finding.code for finding in checked.findings} == {"anchor", "words"}
    desk.edit(MENDED)
    with desk.open(check=False) as memory:
        assert memory.verify(accept=True).ok
    desk.open().close()


def test_a_store_that_nobody_touched_is_not_verified_again(desk: Desk, checks: list[Report]) -> None:
    """After a clean close an opening costs no full verification, whatever was written."""
    desk.say("the second thing")

    with desk.open() as memory:
        assert len(memory.list_records().items) == 2

    assert checks == []


def test_the_owner_that_sqlite_gives_its_log_is_no_edit(desk: Desk, checks: list[Report]) -> None:
    """Run by root it sets that whenever it opens the log; one byte more in the log is an edit."""
    log = Path(f"{desk.path}-wal")
    with desk.open() as memory:
        memory.remember("the second thing", scope=Scope.USER)
        log.chmod(0o600)
        desk.open().close()
        memory.list_records()
        untouched = len(checks)
        with log.open("ab") as file:
            file.write(b"x")
        memory.list_records()

    assert (untouched, len(checks)) == (0, 1)


def test_an_opening_waits_for_a_look_that_is_just_being_recorded(
    desk: Desk, checks: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit whose writer is a moment behind with remembering it costs whoever opens the store no verification."""
    with desk.open() as memory:
        record, held = Anchors.record, threading.Event()

        def late(*arguments: Any, **named: Any) -> None:
            held.set()
            time.sleep(0.05)
            record(*arguments, **named)

        monkeypatch.setattr(Anchors, "record", late)
        writer = threading.Thread(target=memory.remember, args=("the second thing",), kwargs={"scope": Scope.USER})
        writer.start()
        assert held.wait(10)
        monkeypatch.setattr(Anchors, "record", record)
        with desk.open() as other:
            assert len(other.list_records().items) == 2
        writer.join()

    assert checks == []


def test_a_touch_costs_one_verification(desk: Desk, checks: list[Report]) -> None:
    """Another time on the file, and nothing else: it is verified in full, passes, and is known from then on."""
    os.utime(desk.path)

    desk.open().close()
    after_touch = len(checks)
    desk.open().close()

    assert (after_touch, len(checks)) == (1, 1)


def test_an_edit_under_an_open_store_is_noticed_at_the_next_use(desk: Desk) -> None:
    """Reads and writes are refused from the next one on; once it is undone, both go on."""
    with desk.open() as memory:
        kept = memory.remember("before", scope=Scope.USER).record
        alone(desk.edit, ALTERED)

        with pytest.raises(CorruptionError, match="changed by another program"):
            memory.get(kept.address)
        with pytest.raises(CorruptionError, match="changed by another program"):
            memory.remember("after", scope=Scope.USER)

        alone(desk.edit, MENDED)
        assert memory.get(kept.address) == kept
        memory.remember("after", scope=Scope.USER)


def alone(target: Callable[..., object], *arguments: object) -> None:
    """Run a function in a process of its own, which must end well."""
    started = process(target, *arguments)
    started.join()
    assert started.exitcode == 0


def test_closing_makes_no_edit_ours(desk: Desk) -> None:
    """A store that is closed without another look, after somebody edited it, is refused when it is opened."""
    memory = desk.open()
    alone(desk.edit, ALTERED)

    memory.close()

    with pytest.raises(CorruptionError, match="changed by another program"):
        desk.open()
    desk.edit(MENDED)
    desk.open().close()


def slipped_in(
    monkeypatch: pytest.MonkeyPatch, where: tuple[type, str], edit: Callable[[], None], *, before: bool
) -> None:
    """Let somebody edit right before or right after a step of ours, once."""
    owner, name = where
    step = getattr(owner, name)

    def both(self: Any, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, step)
        if before:
            edit()
        done = step(self, *arguments, **options)
        if not before:
            edit()
        return done

    monkeypatch.setattr(owner, name, both)


def write(memory: Memory) -> None:
    """Commit one thing."""
    memory.remember("the second thing", scope=Scope.USER)


def erase(memory: Memory) -> None:
    """Erase one thing."""
    memory.forget(memory.remember("the third thing", scope=Scope.USER).record.address, dry_run=False)


def look(memory: Memory) -> None:
    """Read one thing."""
    memory.list_records(limit=1)


def prove(memory: Memory) -> None:
    """Verify all of it."""
    assert memory.verify(full=True).ok


GAPS: Final[dict[str, tuple[Any, type, str, bool]]] = {
    "a commit and what is remembered of it": (write, Anchors, "record", True),
    "a cleaning and what is remembered of it": (erase, SqliteStore, "scrub", False),
    "a verification and what is remembered of it": (prove, Ledger, "trust", True),
    "the last use and closing": (Memory.close, SqliteStore, "close", True),
    "closing and what is remembered of it": (Memory.close, SqliteStore, "close", False),
}


@pytest.mark.parametrize("gap", GAPS)
def test_an_edit_in_a_gap_of_ours_is_not_taken_for_ours(desk: Desk, monkeypatch: pytest.MonkeyPatch, gap: str) -> None:
    """Between what we did and what is remembered of it others may edit: they are refused at the next opening."""
    act, owner, step, before = GAPS[gap]
    with desk.open() as memory:
        slipped_in(monkeypatch, (owner, step), lambda: alone(desk.edit, ALTERED), before=before)

        act(memory)

    with pytest.raises(CorruptionError, match="changed by another program"):
        desk.open()
    desk.edit(MENDED)
    desk.open().close()


def test_an_edit_between_commit_and_record_is_noticed_at_the_next_use(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the store open need not open it again; without an edit nothing is refused."""
    with desk.open() as memory:
        write(memory)
        look(memory)
        slipped_in(monkeypatch, (Anchors, "record"), lambda: alone(desk.edit, ALTERED), before=True)

        write(memory)

        with pytest.raises(CorruptionError, match="changed by another program"):
            look(memory)


@pytest.mark.parametrize("opened", [True, False])
def test_an_edit_right_before_a_snapshot_is_not_in_what_it_answers(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, opened: bool
) -> None:
    """Once the files were looked at, others may still edit before the read begins: that read is refused already."""
    desk.open().close()
    memory = desk.open(check=opened)
    slipped_in(monkeypatch, (SqliteStore, "read"), lambda: alone(desk.edit, ALTERED), before=True)

    with pytest.raises(CorruptionError, match="changed by another program"):
        look(memory)

    alone(desk.edit, MENDED)
    look(memory)
    memory.close()


def test_closing_while_others_have_it_open_costs_no_verification(desk: Desk, checks: list[Report]) -> None:
    """What the first one to close took in from the log is ours for the other one, and for the next."""
    with desk.open() as one:
        with desk.open() as other:
            write(other)
        look(one)
        write(one)
    desk.open().close()

    assert checks == []


TURNS: Final = 150


def write_and_read(desk: Desk, name: str) -> None:
    """Write and read, so many times; now and then with another opening."""
    for start in range(0, TURNS, TURNS // 3):
        with desk.open() as memory:
            for number in range(start, start + TURNS // 3):
                kept = memory.remember(f"{name} {number}", scope=Scope.USER)
                assert kept.notices == ()
                assert memory.get(kept.record.address) == kept.record


def test_honest_writers_in_turn_are_never_taken_for_others(desk: Desk) -> None:
    """Two processes write while a third opens, reads and verifies: nothing is refused, and nothing is lost."""
    writers = [process(write_and_read, desk, name) for name in ("one", "other")]

    while any(writer.is_alive() for writer in writers):
        with desk.open() as memory:
            memory.list_records(limit=1)
            assert memory.verify().findings == ()

    assert [writer.exitcode for writer in writers] == [0, 0]
    with desk.open() as memory:
        assert memory.verify().ok
        assert next(one["records"] for one in memory.namespaces() if one["scope"] == "user") == 2 * TURNS + 1


def die_recording(desk: Desk, remembering: str) -> None:
    """Commit, and be killed before anything is remembered of it, or with only its head remembered."""
    record = Anchors.record

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def dying(
        self: Anchors, look: Callable[[], bytes | None], heads: Mapping[str, tuple[int, bytes]], *, back: bool = False
    ) -> None:
        del look
        if remembering == "nothing":
            die()
        record(self, die, heads, back=back)

    memory = desk.open()
    Anchors.record = dying  # type: ignore[method-assign]
    memory.remember("the last words", scope=Scope.USER)


@pytest.mark.parametrize("remembering", ["nothing", "the head"])
def test_a_writer_killed_before_it_recorded_is_verified_and_gone_on_from(
    desk: Desk, checks: list[Report], remembering: str
) -> None:
    """A process that has the store open, and one that opens it, find the commit; a rollback of it is refused."""
    before = desk.path.read_bytes()
    with desk.open() as memory:
        killed = process(die_recording, desk, remembering)
        killed.join()
        assert killed.exitcode == -signal.SIGKILL

        texts = [record.text for record in memory.list_records().items]

    assert texts == ["the last words", "the first thing"]
    assert [check.ok for check in checks] == [True]
    desk.say("and on")
    assert len(checks) == 1
    desk.put(before)
    with pytest.raises(CorruptionError):
        desk.open()


def test_a_head_remembered_by_a_writer_that_died_holds_at_once(desk: Desk) -> None:
    """Killed between the head and the look at the files, it left a head that no older copy passes."""
    before = desk.path.read_bytes()
    killed = process(die_recording, desk, "the head")
    killed.join()

    desk.put(before)
    for name in ("-wal", "-shm"):
        Path(f"{desk.path}{name}").unlink()

    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()


def test_a_state_directory_that_cannot_be_written_is_said_with_each_write(tmp_path: Path) -> None:
    """The write is done and the notice is in its answer, on the wire too; with room for it there is none."""
    (tmp_path / "a file").write_bytes(b"")
    desk = Desk(tmp_path / "store.db", tmp_path / "a file" / "state")

    with desk.open(create=True) as memory:
        done = memory.remember("kept all the same", scope=Scope.USER)
        assert memory.get(done.record.address) == done.record

    assert [notice.partition(":")[0] for notice in done.notices] == [
        "committed, but not remembered outside the store",
        "anchor",
    ]
    assert wire.remembered(done)["notices"] == list(done.notices)
    with replace(desk, state=tmp_path / "state").open() as memory:
        assert memory.verify(accept=True).ok
        again = memory.remember("and remembered", scope=Scope.USER)
        assert "notices" not in wire.remembered(again)


def notices(memory: Memory, address: str) -> list[tuple[str, ...]]:
    """What each sort of answer says of what is remembered of the store."""
    task = memory.remember(Draft(text="a task", kind=Kind.TASK), scope=Scope.USER).record
    answers: list[Any] = [
        memory.get(address),
        *filter(None, memory.get_many([address])),
        *memory.history(address.partition("@")[0]),
        memory.recall("thing"),
        memory.list_records(),
        *(memory.remember("one more", scope=Scope.USER, idempotency_key=key) for key in (None, "named", "named")),
        memory.close_task(task.address),
    ]
    return [tuple(notice for notice in answer.notices if notice.startswith("anchor: ")) for answer in answers]


def test_a_store_that_nothing_is_known_of_says_so_until_it_is_accepted(desk: Desk, tmp_path: Path) -> None:
    """On another machine every answer says it, and opening and writing change nothing in that; where it was made, none.

    Accepted, it says it no more, and the acceptance stands in the audit trail.
    """
    with desk.open() as memory:
        address = memory.list_records().items[0].address
        assert set(notices(memory, address)) == {()}
    elsewhere = replace(desk, state=tmp_path / "another machine")

    for _ in range(2):
        with elsewhere.open() as memory:
            said = notices(memory, address)
            assert {found[0].partition(",")[0] for found in said} == {"anchor: none"}
            assert memory.status()["anchor"] == "none"
    with elsewhere.open() as memory:
        assert memory.verify(accept=True).ok
        accepted = [event for event in memory.audit() if event.operation == "restore"]
        assert set(notices(memory, address)) == {()}

    with elsewhere.open() as memory:
        store = memory.status()["store"]
        assert set(notices(memory, address)) == {()}
    assert [(event.target, event.principal) for event in accepted] == [(store, OWNER.principal)]


def test_what_is_not_accepted_yet_is_remembered_all_the_same(desk: Desk, tmp_path: Path) -> None:
    """A rollback behind what was seen of it is refused before anybody accepted it."""
    elsewhere = replace(desk, state=tmp_path / "another machine")
    elsewhere.open().close()

    rolled_back(elsewhere)

    with pytest.raises(CorruptionError, match="behind commit"):
        elsewhere.open()


def test_without_a_state_directory_nothing_can_be_accepted(desk: Desk) -> None:
    """Every answer says that nothing is remembered, and accepting is refused as the misuse it is."""
    with open_memory(desk.path, create=False) as memory:
        assert memory.list_records().notices[-1] == (
            "anchor: none, so an older copy of this store would pass; open it with a state directory"
        )
        with pytest.raises(UsageError, match="state directory"):
            memory.verify(accept=True)


def test_an_unknown_store_says_so_on_the_wire(desk: Desk, tmp_path: Path) -> None:
    """In the notices of each shape, once; where it was made the shapes have none."""
    for found, expected in ((replace(desk, state=tmp_path / "another machine"), 1), (desk, 0)):
        with found.open() as memory:
            address = memory.list_records().items[0].address
            shapes: list[dict[str, Any]] = [
                wire.record(memory.get(address)),
                wire.recalled(memory.recall("thing")),
                wire.page(memory.list_records()),
                wire.history(memory.history(address.partition("@")[0])),
                wire.remembered(memory.remember("one more", scope=Scope.USER)),
            ]

        said = [sum(notice.startswith("anchor: none") for notice in shape.get("notices", [])) for shape in shapes]
        assert said == [expected] * 5


def test_a_full_disk_costs_the_memory_of_the_write_and_not_the_write(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, checks: list[Report]
) -> None:
    """What could not be remembered is said; the next opening verifies, and remembers it."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with desk.open() as memory, monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        done = memory.remember("kept all the same", scope=Scope.USER)
    namespace, sequence = newest(desk)

    assert os.strerror(errno.ENOSPC) in done.notices[0]
    assert checks[0].ok
    assert desk.anchors.newest(namespace) is not None
    assert done.sequence == sequence


def test_what_cannot_be_read_is_not_taken_for_nothing(desk: Desk) -> None:
    """With something else in place of the remembered head the store is refused; with the head back it opens."""
    namespace, _ = newest(desk)
    head = desk.anchors.folder / "heads" / namespace
    aside = head.rename(head.with_name("aside"))
    head.mkdir()

    with desk.open() as memory, pytest.raises(UnavailableError, match="cannot be read") as refusal:
        memory.list_records()

    assert str(desk.anchors.folder) in refusal.value.hint
    head.rmdir()
    aside.rename(head)
    desk.open().close()


GARBAGE: Final = {
    "another alphabet": "\N{SNOWMAN}" * 9,
    "half a line": "00000000000000000002 53216f0e16270950",
    "no id": f"{2:020d} {'00' * 31} {3:020d}\n",
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_head_that_cannot_be_told_any_more_is_not_taken_for_none(desk: Desk, garbage: str) -> None:
    """An older copy would pass: reads are refused, verify names it, and what was there opens the store again."""
    namespace, _ = newest(desk)
    head = desk.anchors.folder / "heads" / namespace
    kept = head.read_bytes()
    head.write_text(GARBAGE[garbage], encoding="utf-8")

    with desk.open() as memory, pytest.raises(CorruptionError, match="cannot be read any more") as refusal:
        memory.list_records()
    with desk.open(check=False) as memory:
        found = memory.verify().findings

    assert "verify --accept" in refusal.value.hint
    assert [(one.code, one.namespace, one.sequence) for one in found] == [("anchor", namespace, None)]
    head.write_bytes(kept)
    desk.say("and on it goes")


def test_an_owner_takes_a_store_whose_head_nobody_can_tell(desk: Desk) -> None:
    """That is put on record, without a head that would be given up; from then on its head is known again."""
    namespace, _ = newest(desk)
    (desk.anchors.folder / "heads" / namespace).write_text("spoilt")

    with desk.open(check=False) as memory:
        assert memory.verify(accept=True).ok

    with desk.open() as memory:
        assert [event.target for event in memory.audit() if event.operation == "restore"] == [namespace]
        assert len(memory.list_records().items) == 1
    rolled_back(desk)
    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()


def test_a_head_that_a_power_cut_left_empty_was_never_kept(desk: Desk) -> None:
    """Without a byte of its own a file says nothing, and the first head that is seen is remembered."""
    namespace, sequence = newest(desk)
    (desk.anchors.folder / "heads" / namespace).write_bytes(b"\0" * 117)

    desk.say("the second thing")

    anchor = desk.anchors.newest(namespace)
    assert anchor is not None
    assert anchor.sequence == sequence + 1


def test_a_commit_beside_a_head_that_cannot_be_told_says_so(desk: Desk) -> None:
    """What is open goes on, since it has proven its head by itself; that it is not remembered is in the answer."""
    namespace, _ = newest(desk)
    with desk.open() as memory:
        memory.list_records()
        (desk.anchors.folder / "heads" / namespace).write_text("spoilt")

        done = memory.remember("the second thing", scope=Scope.USER)

    assert "not remembered outside the store" in done.notices[0]
    with pytest.raises(CorruptionError, match="cannot be read any more"):
        desk.open()


@pytest.mark.parametrize("fence", [None, b"", b"\xff spoilt"])
def test_a_lost_fence_excuses_no_rollback(desk: Desk, fence: bytes | None) -> None:
    """It says how often something was remembered: without it an older copy is refused all the same, and ours opens."""
    newer = rolled_back(desk)
    file = desk.anchors.folder / "fence"
    file.unlink() if fence is None else file.write_bytes(fence)

    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()

    desk.put(newer)
    desk.say("and on it goes")
    desk.open().close()


def test_a_write_that_is_done_is_not_refused_over_what_its_answer_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether something vouches for the store cannot be read just then: the answer says so; the next one can again."""

    def unreadable(_: Anchors) -> str | None:
        raise UnavailableError("what is remembered of this store outside it cannot be read")

    with desk.open() as memory:
        with monkeypatch.context() as patched:
            patched.setattr(Anchors, "store", unreadable)
            done = memory.remember("done all the same", scope=Scope.USER)
        again = memory.remember("and once more", scope=Scope.USER)
        there = memory.get(done.record.address)

    assert done.notices == ("what is remembered of this store outside it cannot be read",)
    assert again.notices == ()
    assert there.text == "done all the same"


def test_heads_go_forward_only(tmp_path: Path) -> None:
    """An older head changes nothing, a newer one counts, and back goes only what is told to."""
    kept = Anchors(tmp_path, "a path")
    names = iter(range(99))

    def record(sequence: int, *, back: bool = False) -> Anchor | None:
        kept.record(lambda: None, {"ns": (sequence, bytes([next(names)]) * 32)}, back=back)
        return kept.newest("ns")

    found = [record(5), record(4), record(5), record(6), record(2, back=True)]

    assert [anchor and (anchor.sequence, anchor.commit[0]) for anchor in found] == [
        (5, 0),
        (5, 0),
        (5, 0),
        (6, 3),
        (2, 4),
    ]


def test_threads_record_in_turn(tmp_path: Path) -> None:
    """Who comes while another thread records waits, and its later look at the files is the one that stands."""
    kept = Anchors(tmp_path, "a path")
    second = threading.Thread(target=kept.record, args=(lambda: bytes([2]) * 32, {"ns": (6, bytes(32))}))

    def look() -> bytes:
        second.start()
        second.join(0.1)
        return bytes([1]) * 32

    kept.record(look, {"ns": (5, bytes(32))})
    second.join()

    assert kept.newest("ns") == (6, bytes(32), 2)
    assert kept.unchanged(bytes([2]) * 32)


def test_a_lock_that_is_never_given_back_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds it may have been stopped: recording fails then, and reading goes on."""
    monkeypatch.setattr(anchors, "LOCK_TRIES", 2)
    held, kept = Anchors(tmp_path, "a path"), Anchors(tmp_path, "a path")

    with held._locked():
        with pytest.raises(OSError, match="locked by another process"):
            kept.record(lambda: bytes(32), {"ns": (1, bytes(32))})
        assert kept.newest("ns") is None

    kept.record(lambda: bytes(32), {"ns": (1, bytes(32))})
    assert kept.newest("ns") == (1, bytes(32), 1)


def fork_and_go_on(desk: Desk) -> None:
    """Write in a forked child that opens the store anew, and in its parent."""
    memory = desk.open()
    child = os.fork()
    if child == 0:
        memory.close()
        desk.say("by the child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [record.text for record in memory.list_records().items] == ["by the child", "the first thing"]
    assert memory.remember("by the parent", scope=Scope.USER).notices == ()
    memory.close()


def test_a_fork_shares_no_memory_of_the_store(desk: Desk, checks: list[Report]) -> None:
    """Parent and child go on, each with descriptors of its own, and what both wrote is remembered."""
    before = desk.path.read_bytes()

    alone(fork_and_go_on, desk)

    with desk.open() as memory:
        assert len(memory.list_records().items) == 3
    assert checks == []
    desk.put(before)
    with pytest.raises(CorruptionError, match="behind commit"):
        desk.open()


def fork_while_recording(state: Path) -> None:
    """Fork under the lock; the child must not get it."""
    kept = Anchors(state, "a path")
    with kept._locked():
        child = os.fork()
        if child == 0:
            anchors.LOCK_TRIES = 2  # type: ignore[misc]
            try:
                kept.record(lambda: bytes(32), {})
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    kept.record(lambda: bytes(32), {})


def test_a_forked_child_has_no_share_in_the_lock(tmp_path: Path) -> None:
    """While the parent records the child cannot; afterwards the parent can again."""
    alone(fork_while_recording, tmp_path)

    assert Anchors(tmp_path, "a path").unchanged(bytes(32))


def test_what_is_remembered_is_private(tmp_path: Path) -> None:
    """Folders are 0700 and files 0600, whatever the umask."""
    before = os.umask(0)
    try:
        desk = Desk(tmp_path / "store.db", tmp_path / "state")
        with desk.open(create=True) as memory:
            memory.remember("mine alone", scope=Scope.USER)
        desk.anchors.keep_erased([bytes(32)])
    finally:
        os.umask(before)

    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (desk.state, *desk.state.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}
    assert {path.name for path in desk.anchors.folder.iterdir()} == {"erased", "fence", "heads", "store"}


def test_another_name_of_the_file_meets_the_same_anchor(desk: Desk, tmp_path: Path) -> None:
    """Through a link nothing is remembered apart, and what was rolled back is refused as well."""
    link = replace(desk, path=tmp_path / "link.db")
    link.path.symlink_to(desk.path)
    link.say("through the link")
    newer = rolled_back(desk)

    with pytest.raises(CorruptionError, match="behind commit"):
        link.open()

    assert len(list((desk.state / "stores").iterdir())) == 1
    desk.put(newer)
    link.open().close()


def record_with_few_descriptors(state: Path, heads: dict[str, tuple[int, bytes]]) -> None:
    """Record heads where no more than ninety files may be open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
    kept = Anchors(state, "a path")
    kept.record(lambda: bytes(32), heads)
    assert len(kept._descriptors) <= MAX_OPEN_FILES
    assert {name: anchor[:2] for name in heads if (anchor := kept.newest(name)) is not None} == heads


def test_three_hundred_namespaces_need_few_descriptors(tmp_path: Path) -> None:
    """All heads are remembered and found again where few files may be open."""
    heads = {f"ns_{number:016}": (number, number.to_bytes(32, "big")) for number in range(300)}

    alone(record_with_few_descriptors, tmp_path, heads)

    kept = Anchors(tmp_path, "a path")
    assert kept.newest("ns_0000000000000299") == (299, (299).to_bytes(32, "big"), 1)


def test_a_new_connection_counts_edits_apart(desk: Desk) -> None:
    """What others did while a connection was lost is not taken for known, however few edits there were."""
    store = SqliteStore(desk.path)

    with store.read() as reader:
        first, again = reader.edits(), reader.edits()
    store._connection.close()
    store._lost = True
    with store.read() as reader:
        after = reader.edits()
    store.close()

    assert first == again != after
