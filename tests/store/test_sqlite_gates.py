"""The gates of a SQLite store: which files it opens, how it holds them, and when it lets go."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from ledgerstone import CorruptionError, FormatError, Memory, StoreError, UnavailableError, load_keys
from ledgerstone.store import open_store, schema, sqlite
from ledgerstone.store.sqlite import SqliteStore
from tests.fixtures.make import SCHEMAS, expected
from tests.stores import KEYS, OTHER_KEYS, OWNER, Home, dump, open_memory, plain_client, report

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def memory(home: Home) -> Iterator[Memory]:
    """The same store, open."""
    with open_memory(home.path, create=False) as memory:
        yield memory


def opens(path: Path) -> bool:
    """Whether a store opens and is sound."""
    with open_memory(path, create=False) as memory:
        return memory.verify().ok


def test_a_second_hard_link_is_refused(home: Home) -> None:
    """SQLite's locks hold for one name only; a file with two is opened by neither, with one again."""
    other = home.path.with_name("other.db")
    other.hardlink_to(home.path)

    for path in (home.path, other):
        with pytest.raises(FormatError, match="2 hard links"):
            opens(path)

    other.unlink()
    assert opens(home.path)


def test_a_symbolic_link_leads_to_one_store(home: Home, tmp_path: Path) -> None:
    """A store opened through a link is the one it leads to, with its WAL beside the file and not the link."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "link.db"
    link.symlink_to(home.path)

    with open_memory(link, create=False) as through, open_memory(home.path, create=False) as direct:
        kept = through.remember("through the link").record
        beside = sorted(path.name for path in elsewhere.iterdir())

        assert direct.get(kept.address) == kept
        assert beside == ["link.db"]


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    """What is no file is refused by name."""
    with pytest.raises(FormatError, match="is not a file"):
        open_store(tmp_path)


def test_a_missing_store_is_never_made_by_opening(tmp_path: Path) -> None:
    """Opening without ``create`` makes nothing; with it, a store."""
    path = tmp_path / "new" / "store.db"

    with pytest.raises(UnavailableError, match="no store at"):
        open_memory(path, create=False)
    nothing = list(tmp_path.iterdir())
    with open_memory(path, create=True) as memory:
        made = memory.verify().ok

    assert nothing == []
    assert made


@pytest.mark.parametrize("replaced", [False, True], ids=["unlinked", "replaced"])
def test_a_file_that_went_away_while_open_takes_no_writes(home: Home, memory: Memory, *, replaced: bool) -> None:
    """A write to a file that no longer has its name would be lost, and is refused; so is a read of another's."""
    kept = memory.remember("while it was there").record
    copy = home.path.with_name("copy.db")
    connection = plain_client(home.path)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    home.path.unlink()
    if replaced:
        copy.rename(home.path)

    with pytest.raises(UnavailableError):
        memory.remember("into nothing")
    with pytest.raises(UnavailableError):
        memory.get(kept.address)

    if not replaced:
        copy.rename(home.path)
    for aside in ("-wal", "-shm"):
        home.path.with_name(home.path.name + aside).unlink(missing_ok=True)
    with open_memory(home.path, create=False) as again:
        assert again.get(kept.address) == kept
        assert again.verify().ok


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A SQLite file that is not ours is not opened, nor made into one of ours, even with ``create``."""
    path = tmp_path / "shopping.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE milk(liters INTEGER)")
    connection.close()
    before = path.read_bytes()

    for create in (False, True):
        with pytest.raises(FormatError, match="another program's database"):
            open_memory(path, create=create)

    assert path.read_bytes() == before


def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A file that is not SQLite's is refused, and no byte of it is changed, even with ``create``."""
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk\n" * 100)
    before = path.read_bytes()

    for create in (False, True):
        with pytest.raises(FormatError, match="not a Ledgerstone store"):
            open_memory(path, create=create)

    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(home: Home) -> None:
    """A store that a newer program wrote is not touched by this one; at this program's own number it opens."""
    set_version(home.path, schema.current() + 1)
    before = home.path.read_bytes()

    with pytest.raises(FormatError, match=f"has schema {schema.current() + 1}; this program knows {schema.current()}"):
        open_memory(home.path, create=False)
    unchanged = home.path.read_bytes() == before
    set_version(home.path, schema.current())

    assert unchanged
    assert opens(home.path)


def set_version(path: Path, version: int) -> None:
    """Give a file another schema number."""
    connection = plain_client(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def migrations(monkeypatch: pytest.MonkeyPatch, script: str) -> int:
    """Let there be one more migration; its number."""
    number = schema.current() + 1
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, number: script})
    monkeypatch.setattr(schema, "_expected", schema._expected.__wrapped__)
    return number


def canonical_rows(path: Path) -> list[object]:
    """The tables that hold history."""
    history = {"chain", "header", "entry", "content", "signature", "tile"}
    return [table for table in dump(path) if isinstance(table, tuple) and table[0] in history]


def test_an_older_schema_is_migrated_over_a_backup(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration changes no byte of history, and the file as it was stands beside, private, from before it."""
    before, history = dump(home.path), canonical_rows(home.path)
    older = schema.current()
    number = migrations(monkeypatch, "CREATE TABLE later(row INTEGER PRIMARY KEY) STRICT;")

    sound = opens(home.path)

    backup = home.path.with_name(f"store.db.schema-{older}.backup")
    assert sound
    assert canonical_rows(home.path) == history
    assert dump(home.path)[0] == number
    assert dump(backup) == before
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_migration_that_fails_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one transaction, after the backup; the older program still opens what it left."""
    before = dump(home.path)
    with monkeypatch.context() as patched:
        # Two rows of one number, where there is any row of history.
        twice = "INSERT INTO later SELECT 1 FROM header;" * 2
        migrations(patched, f"CREATE TABLE later(row INTEGER PRIMARY KEY) STRICT; {twice}")

        with pytest.raises(CorruptionError):
            open_memory(home.path, create=False)

    assert dump(home.path) == before
    assert dump(home.path.with_name(f"store.db.schema-{schema.current()}.backup")) == before
    assert opens(home.path)


@pytest.mark.parametrize("number", SCHEMAS)
def test_a_store_of_every_released_schema_opens(number: int, tmp_path: Path) -> None:
    """The frozen store of each schema opens with its own key file, verifies, and says what it said when it was made."""
    path, key = (Path(shutil.copy(FIXTURES / f"schema-{number}.{kind}", tmp_path)) for kind in ("db", "key"))
    key.chmod(0o600)

    said = expected(number)

    with Memory.open(path, keys=load_keys(key), caller=OWNER, state=None) as memory:
        checked = memory.verify()
        texts = {name: memory.get(target).text for name, target in said["memories"].items()}

    assert checked.findings == ()
    assert {name: [sequence, head.hex()] for name, (sequence, head) in checked.heads.items()} == said["heads"]
    assert texts == said["texts"]


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER planted AFTER INSERT ON entry BEGIN DELETE FROM content; END",
        "CREATE VIEW planted AS SELECT * FROM content",
        "CREATE INDEX planted ON entry(body)",
        "CREATE TABLE planted(x)",
        "CREATE VIRTUAL TABLE planted USING fts5(x)",
        "DROP INDEX record_key",
        "DROP INDEX record_key; CREATE INDEX record_key ON record(memory) WHERE key IS NOT NULL",
        "DROP TABLE tile; CREATE TABLE tile(row INTEGER PRIMARY KEY, root BLOB NOT NULL DEFAULT x'00') STRICT",
        "ALTER TABLE tile ADD COLUMN more BLOB",
    ],
)
def test_a_schema_that_is_not_its_own_is_refused_at_opening(home: Home, planted: str) -> None:
    """Whatever somebody planted in the schema, or took from it, is named before any of it could run."""
    connection = plain_client(home.path)
    connection.execute(planted)
    connection.close()

    with pytest.raises(CorruptionError, match="schema is not its own"):
        open_memory(home.path, create=False)


def test_a_fork_leaves_the_store_to_the_parent(home: Home) -> None:
    """The child of a fork is refused and its closing harms nobody; the parent goes on, and the child may open anew."""
    program = """
import os, sys
from pathlib import Path
from ledgerstone import UnavailableError
from tests.stores import open_memory

path = Path(sys.argv[1])
memory = open_memory(path, create=False)
kept = memory.remember("before the fork").record
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: memory.get(kept.address), lambda: memory.remember("by the child")):
        try:
            use()
        except UnavailableError as error:
            refused += "fork" in error.message
    memory.close()
    with open_memory(path, create=False) as again:
        same = again.get(kept.address) == kept
        again.remember("by the child, opened anew")
    os._exit(0 if refused == 2 and same else 1)
_, status = os.waitpid(child, 0)
memory.remember("after the fork")
print(status, memory.verify().ok, len(memory.list_records("recent", limit=3).items))
memory.close()
"""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program, str(home.path)], capture_output=True, text=True, check=False, cwd=root
    )

    assert (done.stdout, done.stderr) == ("0 True 3\n", "")
    assert report(home.path).ok


def test_a_child_that_ends_by_itself_harms_nothing(home: Home) -> None:
    """A forked child that runs to its end, and so lets go of everything, takes neither log nor locks with it."""
    program = """
import os, sys
from pathlib import Path
from tests.stores import open_memory

path = Path(sys.argv[1])
memory = open_memory(path, create=False)
memory.remember("before the fork")
if os.fork() == 0:
    sys.exit(0)
os.wait()
memory.remember("after the fork")
with open_memory(path, create=False) as other:
    other.remember("by another opening")
memory.remember("after that")
print(memory.verify().ok, len(memory.list_records("recent", limit=4).items), os.path.exists(f"{path}-wal"))
memory.close()
"""

    assert run(program, home.path) == "True 4 True"
    assert report(home.path).ok


# Where each descriptor of this process leads that is opened while SQLite has a store open.
WATCH = """
import os, sys
import apsw

opened = []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        held = {os.path.realpath(connection.filename) for connection in apsw.connections() if connection.filename}
        opened.extend(path for each in held if path in {each, f"{each}-wal", f"{each}-shm", f"{each}-journal"})

sys.addaudithook(watch)
"""


def test_no_descriptor_of_ours_ever_lies_on_an_open_database(home: Home) -> None:
    """Closing one would drop SQLite's locks (howtocorrupt.html, 2.2): a whole life opens none; one would be noticed."""
    life = """
from pathlib import Path
from click.testing import CliRunner
from ledgerstone import Memory, Scope
from ledgerstone.entrypoints.cli import main
from tests.stores import KEYS, OWNER, open_memory

path = Path(sys.argv[1])
state = path.parent / "state"
memory = open_memory(path, state=state, create=False)
kept = memory.remember("the passphrase is walrus seven", scope=Scope.USER).record
memory.recall("walrus"), memory.get(kept.address), memory.list_records("all"), memory.audit(), memory.status()
memory.forget(kept.address, dry_run=False)
memory.verify(), memory.verify(accept=True), memory.rebuild(), memory.checkpoint()
memory.backup(path.with_name("backup"))
lines = list(memory.export().pieces)
memory.close()
keys = {"keys": KEYS, "caller": OWNER, "state": state}
Memory.restore(path.with_name("backup"), path.with_name("restored.db"), **keys)
Memory.restore(path.with_name("backup"), path, **keys, accept=True)
Memory.import_lines(lines, path.with_name("imported.db"), **keys)
Memory.import_lines(lines, path.with_name("imported.db"), **keys)
os.environ |= {"LEDGERSTONE_HOME": str(path.parent / "home"), "HOME": str(path.parent)}
for command in ("init", "remember x --scope user", "doctor", "verify", f"backup {path.parent}/again"):
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 0 or command == "doctor", (command, done.output)
print(opened)
with open_memory(path, state=state, create=False):
    open(path, "rb").close()
print([os.path.basename(each) for each in opened])
"""

    assert run(WATCH + life, home.path) == "[]\n['store.db']"


def run(program: str, path: Path) -> str:
    """What a program says that is run with a path, and must end well."""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False, cwd=root
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_only_one_sqlite_is_in_the_process(home: Home) -> None:
    """A second copy of the library would know nothing of the first one's locks: nothing of ours loads Python's own."""
    program = """
import pkgutil, sys
from importlib import import_module
from pathlib import Path
import ledgerstone
from tests.stores import open_memory

for found in pkgutil.walk_packages(ledgerstone.__path__, "ledgerstone."):
    import_module(found.name)
with open_memory(Path(sys.argv[1]), create=False) as memory:
    memory.verify()
print(sorted({"apsw", "sqlite3", "_sqlite3"} & set(sys.modules)))
"""

    assert run(program, home.path) == "['apsw']"


@pytest.fixture
def sealed(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store where nothing can be written: a read-only mount, or, where none can be made, by its modes."""
    folder = tmp_path / "sealed"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True).returncode == 0:
        path = Path(shutil.copy(home.path, folder))
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        yield path
        subprocess.run(["umount", folder], check=True)
        return
    path = Path(shutil.copy(home.path, folder))
    path.chmod(0o400)
    folder.chmod(0o500)
    if os.geteuid() == 0:
        writable = os.access
        monkeypatch.setattr(os, "access", lambda at, mode: folder not in (at, at.parent) and writable(at, mode))
    yield path
    folder.chmod(0o700)


def test_a_medium_that_cannot_be_written_is_read_and_said(home: Home, sealed: Path) -> None:
    """Every answer says that it is only read, a write says what to do, and no file is made; elsewhere none does."""
    with open_memory(sealed, create=False) as memory:
        found = memory.get(home.memories["color"])
        with pytest.raises(StoreError, match="open read-only") as refusal:
            memory.remember("in stone")
        assert memory.verify().ok
    with open_memory(home.path, create=False) as memory:
        beside = memory.get(home.memories["color"])

    assert found == beside
    assert set(found.notices) - set(beside.notices) == {"read-only: nothing can be written where this store is"}
    assert str(sealed) in refusal.value.hint
    assert [path.name for path in sealed.parent.iterdir()] == [sealed.name]


def test_a_store_is_not_made_beside_the_log_of_one_that_is_gone(tmp_path: Path) -> None:
    """SQLite would throw away what the log alone holds; with the file back beside it, everything is there."""
    path = tmp_path / "store.db"
    memory = open_memory(path)
    kept = memory.remember("in the log alone").record
    moved = Path(shutil.copy(path, tmp_path / "moved"))
    log = Path(shutil.copy(f"{path}-wal", tmp_path / "moved log"))
    memory.close()
    path.unlink()
    log.rename(tmp_path / "store.db-wal")

    with pytest.raises(UnavailableError, match="the log of a store that is gone"):
        open_memory(path)

    assert not path.exists()
    moved.rename(path)
    with open_memory(path, create=False) as memory:
        assert memory.get(kept.address) == kept


def test_a_copy_without_its_log_is_named_for_what_it_is(tmp_path: Path) -> None:
    """A file copied while its store was in use holds none, and is not made into one; a backup of it holds all."""
    memory = open_memory(tmp_path / "store.db")
    kept = memory.remember("still in the log").record
    copy = Path(shutil.copy(tmp_path / "store.db", tmp_path / "copy.db"))
    before = copy.read_bytes()

    with pytest.raises(FormatError, match="holds no store") as refusal:
        open_memory(copy, create=False)
    backup = memory.backup(tmp_path / "backup.db").path
    memory.close()

    assert "ledgerstone backup" in refusal.value.hint
    assert copy.read_bytes() == before
    with open_memory(backup, create=False) as memory:
        assert memory.get(kept.address) == kept


def test_a_log_that_grew_under_a_long_read_shrinks_after_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody reads, the log only grows; once they are done, it begins anew and is cut to its limit."""
    monkeypatch.setattr(sqlite, "LOG_BYTES", 1 << 20)
    log = home.path.with_name("store.db-wal")
    reader = plain_client(home.path)

    with open_memory(home.path, create=False) as memory:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchall()
        # 1,000 pages are when SQLite folds the log in by itself.
        while log.stat().st_size < 1100 * 4096:
            memory.remember_many([f"note {number} " + "of a certain length " * 300 for number in range(64)])
        grown = log.stat().st_size
        reader.execute("ROLLBACK")
        for number in range(2):
            memory.remember(f"after the reader, {number}")

        assert log.stat().st_size <= 1 << 20 < grown
        assert memory.verify().ok
    reader.close()


def test_every_file_of_a_store_is_private(tmp_path: Path) -> None:
    """Files are 0600 and the folder made for them 0700, whatever the umask, while open and at rest."""
    folder = tmp_path / "of its own"
    before = os.umask(0)
    try:
        with open_memory(folder / "store.db") as memory:
            memory.remember("mine alone")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)

    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


def test_a_lock_held_too_long_is_an_error_that_says_try_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for its turn so long and no longer, and then nothing was changed; reads do not wait."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    other = plain_client(home.path)

    with open_memory(home.path, create=False) as memory:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked") as refusal:
            memory.remember("while somebody writes")
        read = memory.get(home.memories["color"]).text
        other.execute("ROLLBACK")
        other.close()
        memory.remember("after that")

    assert "try again" in refusal.value.hint
    assert read == "the door is painted green"


def test_a_closed_store_serves_no_more(home: Home, memory: Memory) -> None:
    """After closing, which may be repeated, every use is refused as unavailable; opened again, it serves."""
    memory.close()
    memory.close()

    for use in (memory.bound, memory.verify, lambda: memory.remember("too late")):
        with pytest.raises(UnavailableError, match="closed"):
            use()

    assert opens(home.path)


def test_an_older_sqlite_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions before 3.51.3 can lose commits when the WAL starts anew; that version itself serves."""
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "_sqlite_version", lambda: (3, 51, 2))
        with pytest.raises(FormatError, match=r"older than 3\.51\.3"):
            open_store(home.path)

    monkeypatch.setattr(sqlite, "_sqlite_version", lambda: (3, 51, 3))
    assert opens(home.path)


def test_the_connection_is_as_promised(home: Home) -> None:
    """WAL with full synchronisation, deleted bytes overwritten, and nothing in the schema trusted."""
    store = SqliteStore(home.path)
    execute = store._connection.execute
    pragmas = ("journal_mode", "synchronous", "secure_delete", "trusted_schema", "temp_store")
    config = store._connection.config

    found = {name: execute(f"PRAGMA {name}").get for name in pragmas}
    guards = [
        config(option, -1)
        for option in (
            apsw.SQLITE_DBCONFIG_DEFENSIVE,
            apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
            apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
        )
    ]
    store.close()

    assert found == dict(zip(pragmas, ("wal", 2, 1, 0, 2), strict=True))
    assert guards == [1, 0, 0]


def test_a_key_of_somebody_else_opens_nothing(home: Home) -> None:
    """A store whose head no trusted key signed is refused; with its own key it opens."""
    with pytest.raises(CorruptionError, match="no trusted key signed"):
        open_memory(home.path, keys=OTHER_KEYS, create=False)

    assert KEYS.signer != OTHER_KEYS.signer
    assert opens(home.path)
