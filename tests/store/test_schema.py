"""A schema that is not its own: every read refuses it, verify names each object, rebuild puts right what it can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledgerstone import CorruptionError, Draft, Memory, Scope
from ledgerstone.store import alone, copy_store, sqlite
from tests.stores import READ_ONLY, Home, dump, furnish, later, open_memory, plain_client, survey

if TYPE_CHECKING:
    import apsw

# What somebody does to a schema, and how verify names it. Other programs analyse by themselves.
FOREIGN = {
    "ANALYZE": ["table sqlite_stat1: foreign", "table sqlite_stat4: foreign"],
    "CREATE TRIGGER planted AFTER INSERT ON entry BEGIN DELETE FROM content; END": ["trigger planted: foreign"],
    "CREATE TRIGGER planted AFTER DELETE ON words BEGIN DELETE FROM content; END": ["trigger planted: foreign"],
    "CREATE VIEW planted AS SELECT * FROM content": ["view planted: foreign"],
    'CREATE VIEW "a ""planted"" view" AS SELECT 1': ['view a "planted" view: foreign'],
    "CREATE INDEX planted ON entry(body)": ["index planted: foreign"],
    "CREATE TABLE planted(x UNIQUE)": ["index sqlite_autoindex_planted_1: foreign", "table planted: foreign"],
    "CREATE TABLE planted(x INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO planted VALUES(7)": [
        "table planted: foreign",
        "table sqlite_sequence: foreign",
    ],
    "CREATE TABLE a(x INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE b(x INTEGER PRIMARY KEY AUTOINCREMENT)": [
        "table a: foreign",
        "table b: foreign",
        "table sqlite_sequence: foreign",
    ],
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES"
    "('table', 'planted', 'planted', 0, 'create  /*x*/ virtual table planted using nomodule(a)')": [
        "table planted: foreign"
    ],
    "CREATE VIRTUAL TABLE planted USING fts5(x); INSERT INTO planted VALUES('words')": [
        *(f"table planted{name}: foreign" for name in ("", "_config", "_content", "_data", "_docsize", "_idx")),
    ],
    "DROP INDEX record_key": ["index record_key: gone"],
    "DROP INDEX record_key; CREATE INDEX record_key ON record(memory) WHERE key IS NOT NULL": [
        "index record_key: not as it was made"
    ],
}
DERIVED = {
    "DROP TABLE frequency": ["table frequency: gone"],
    "DROP TABLE frequency; CREATE VIEW frequency AS SELECT 1 AS number, 'door' AS word, 9 AS holding": [
        "table frequency: gone",
        "view frequency: foreign",
    ],
    "ALTER TABLE link ADD COLUMN more BLOB": ["table link: not as it was made"],
    "DROP TABLE record": [
        *(f"index record_{name}: gone" for name in ("cue", "digest", "key", "memory", "open")),
        "table record: gone",
    ],
    "DROP TABLE postings": [
        *(f"table postings{name}: gone" for name in ("", "_config", "_data", "_docsize", "_idx")),
    ],
    "DROP TABLE postings_config": ["table postings_config: gone"],
    "DROP TABLE catalog; DROP TABLE setting": ["table catalog: gone", "table setting: gone"],
}
HISTORY = {
    "DROP TABLE tile; CREATE TABLE tile(row INTEGER PRIMARY KEY, root BLOB NOT NULL DEFAULT x'00') STRICT": "tile",
    "ALTER TABLE tile ADD COLUMN more BLOB": "tile",
    "DROP TABLE entry": "entry",
    "DROP TABLE chain": "chain",
    "DROP TABLE receipt": "receipt",
    "ALTER TABLE content RENAME TO contents": "content",
}


def plant(home: Home, script: str) -> None:
    """Change the schema as somebody else's SQL client, which defends nothing."""
    connection = plain_client(home.path)
    connection.execute(script)
    connection.close()


def unchecked(home: Home, state: Path | None = None) -> Memory:
    """The store as verify and rebuild open it."""
    return open_memory(home.path, create=False, check=False, state=state)


def answers(home: Home) -> object:
    """All that a home answers."""
    with open_memory(home.path, keys=READ_ONLY, create=False, now=later) as memory:
        return survey(memory, home)


def named(memory: Memory) -> list[str]:
    """What a verification says, less what it says it did not look at."""
    findings = memory.verify().findings
    return [finding.message.split(";")[0] for finding in findings if "after a rebuild" not in finding.message]


@pytest.mark.parametrize("script", [*FOREIGN, *DERIVED])
def test_what_is_foreign_is_refused_named_and_taken_out(home: Home, script: str) -> None:
    """No read passes it, verify finds it and nothing else, and after a rebuild the store is what it was."""
    before, said = dump(home.path)[2], answers(home)
    plant(home, script)

    with unchecked(home) as memory:
        for use in (memory.recall, lambda: memory.remember("a note"), memory.list_records):
            with pytest.raises(CorruptionError, match="schema is not its own") as refusal:
                use()
        found = named(memory)
        hint = memory.verify().hint
        mended = memory.rebuild().mended
        whole = memory.verify()

    assert list(mended) == found
    assert "ledgerstone rebuild" in refusal.value.hint
    assert "ledgerstone rebuild" in (hint or "")
    assert found == (FOREIGN | DERIVED)[script]
    assert whole.ok
    assert dump(home.path)[2] == before
    assert answers(home) == said


STRAYS = {
    "INSERT INTO frequency VALUES(99, 'x', 1)": ["1 row of frequency belongs to no chain"],
    "INSERT INTO link VALUES(99 << 40, 1, 0), (99 << 40, 2, 0)": ["2 rows of link belong to no chain"],
    "INSERT INTO setting VALUES('other', 'x')": ["the setting 'other' is none of this program's"],
}


@pytest.mark.parametrize("script", STRAYS)
def test_what_no_chain_accounts_for_is_taken_out_by_name(home: Home, script: str) -> None:
    """Verify names it and leads to a rebuild, which says what it took out; then the store is what it was."""
    before = dump(home.path)[2]
    plant(home, script)

    with unchecked(home) as memory:
        report = memory.verify(full=True)
        mended = memory.rebuild().mended
        whole = memory.verify(full=True)

    assert [(finding.code, finding.message) for finding in report.findings] == [("stray", STRAYS[script][0])]
    assert "ledgerstone rebuild" in (report.hint or "")
    assert list(mended) == STRAYS[script]
    assert whole.ok
    assert dump(home.path)[2] == before


def test_history_without_its_chains_is_not_rebuilt(home: Home) -> None:
    """Where no chain is named, there is nothing to rebuild from: only a backup helps, and nothing is changed."""
    plant(home, "DELETE FROM chain")
    before = dump(home.path)

    with unchecked(home) as memory:
        report = memory.verify()
        with pytest.raises(CorruptionError, match="no chain is there") as refusal:
            memory.rebuild()

    for hint in (report.hint, refusal.value.hint):
        assert "restore" in (hint or "")
    assert dump(home.path) == before


@pytest.mark.parametrize("script", HISTORY)
def test_where_history_stood_only_a_backup_helps(home: Home, script: str) -> None:
    """A table of history altered or gone is named, nothing is rebuilt over it, and restore is what it says to run."""
    plant(home, script)
    before = dump(home.path)

    with unchecked(home) as memory:
        report = memory.verify()
        with pytest.raises(CorruptionError, match=f"table {HISTORY[script]}:") as refusal:
            memory.rebuild()
        with pytest.raises(CorruptionError, match="schema is not its own") as unread:
            memory.recall()

    assert any(finding.message.startswith(f"table {HISTORY[script]}: ") for finding in report.findings)
    for hint in (report.hint, refusal.value.hint, unread.value.hint):
        assert "ledgerstone restore" in (hint or "")
    assert dump(home.path) == before


def test_a_schema_that_nobody_can_read_leads_to_a_backup(home: Home) -> None:
    """Where SQLite makes nothing of the schema's text, no verification opens the file, and none is advised."""
    plant(home, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE link(' WHERE name = 'link'")

    with pytest.raises(CorruptionError, match="malformed database schema") as refusal:
        unchecked(home)

    assert "ledgerstone restore" in refusal.value.hint


def test_what_else_is_wrong_is_found_beside_what_is_foreign(home: Home) -> None:
    """A planted view hides no other fault, and a rebuild is refused as ever, so that the view stays too."""
    plant(home, "CREATE VIEW planted AS SELECT 1; UPDATE content SET salt = zeroblob(32) WHERE row = 2 << 40 | 1")
    before = dump(home.path)

    with unchecked(home) as memory:
        found = {finding.code for finding in memory.verify().findings}
        with pytest.raises(CorruptionError, match="history is damaged"):
            memory.rebuild()

    assert found > {"schema"}
    assert dump(home.path) == before


@pytest.mark.parametrize("full", [False, True])
def test_a_schema_changed_after_it_was_verified_is_named(home: Home, tmp_path: Path, full: bool) -> None:
    """Where a verification could go on from a milestone it looks at the schema all the same."""
    with open_memory(home.path, create=False, state=tmp_path / "state") as memory:
        assert memory.verify().ok
        plant(home, "ANALYZE")

        found = [finding.message for finding in memory.verify(full=full).findings]

    assert found == FOREIGN["ANALYZE"]


def test_nothing_that_is_planted_is_run(home: Home) -> None:
    """A trigger on what a rebuild deletes does not fire, and a view in the place of a table is not read."""
    plant(home, "CREATE TRIGGER planted AFTER DELETE ON record BEGIN DELETE FROM content; END")
    plant(
        home, "DROP TABLE link; CREATE VIEW link AS SELECT load_extension('planted') AS source, 1 AS row, 1 AS covers"
    )

    with unchecked(home) as memory:
        memory.rebuild()
        whole = memory.verify()

    assert whole.ok


def test_every_connection_is_guarded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the file, also to copy it or to hold it alone, trusts nothing that its schema says."""
    guarded: list[apsw.Connection] = []
    guard = sqlite._guard

    def seen(connection: apsw.Connection) -> None:
        guard(connection)
        guarded.append(connection)
        assert connection.execute("PRAGMA trusted_schema").get == 0

    monkeypatch.setattr(sqlite, "_guard", seen)

    open_memory(home.path, create=False).close()
    copy_store(home.path, home.path.with_name("copy.db"))
    with alone(home.path):
        pass

    assert len(guarded) == 3


# What somebody does to the tables that the word index keeps for itself.
INDEX = (
    "DELETE FROM postings_docsize",
    "DELETE FROM postings_docsize WHERE id = (SELECT min(id) FROM postings_docsize)",
    "UPDATE postings_docsize SET origin = 999999",
    "UPDATE postings_docsize SET sz = x''",
    "UPDATE postings_docsize SET origin = (SELECT min(origin) FROM postings_docsize)",
    "DELETE FROM postings_idx",
    "DELETE FROM postings_idx WHERE pgno = (SELECT max(pgno) FROM postings_idx)",
    "UPDATE postings_idx SET term = CAST(term || 'z' AS BLOB) WHERE pgno > 3",
    "UPDATE postings_idx SET term = CAST(substr(term, 1, 2) AS BLOB) WHERE pgno = (SELECT max(pgno) FROM postings_idx)",
    "DELETE FROM postings_config WHERE k = 'version'",
    "UPDATE postings_data SET block = substr(block, 1, length(block) / 2) WHERE id > 10",
    "UPDATE postings_data SET block = zeroblob(length(block)) WHERE id = 10",
    "DELETE FROM postings_data WHERE id = 1",
    "DELETE FROM postings_data WHERE id = 10",
    "DELETE FROM postings_data WHERE id > 10",
    "INSERT INTO postings(rowid, words) VALUES(5 << 40, 'alien')",
)


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a word index of more than one page."""
    home = furnish(tmp_path_factory.mktemp("home") / "store.db", fillers=2)
    with open_memory(home.path, create=False, seed=2) as memory:
        for block in range(8):
            numbers = range(block * 64, block * 64 + 64)
            drafts = [Draft(text=f"note {number} alone{number:05d} {number * 7919:07d}") for number in numbers]
            memory.remember_many(drafts, scope=Scope.USER)
    return home


@pytest.mark.parametrize("script", INDEX)
def test_a_damaged_word_index_is_found_and_made_anew(folded: Home, tmp_path: Path, script: str) -> None:
    """Whatever was done to its own tables, verify reports it and does not fail, and a rebuild puts it right."""
    home = folded.copy(tmp_path)
    before = answers(home)
    plant(home, script)

    with unchecked(home) as memory:
        found = [finding.message for finding in memory.verify(full=True).findings]
        memory.rebuild()
        whole = memory.verify(full=True)

    assert "the word index does not hold the words of the records" in found
    assert whole.ok
    assert answers(home) == before


def test_a_setting_that_nobody_made_is_found_and_taken_out(home: Home) -> None:
    """What the file notes of itself is two settings, and verify names any other; a rebuild leaves what it notes."""
    before = answers(home)
    plant(home, "INSERT INTO setting VALUES('floor', 'low')")

    with unchecked(home) as memory:
        found = [finding.message for finding in memory.verify(full=True).findings]
        memory.rebuild()
        whole = memory.verify(full=True)

    assert found == ["the setting 'floor' is none of this program's"]
    assert whole.ok
    assert answers(home) == before


def test_a_text_that_the_index_keeps_is_not_reported_as_erased(folded: Home, tmp_path: Path) -> None:
    """Where a deletion misses, nothing is erased and rebuild is named; after it, no word of the text is left."""
    home = folded.copy(tmp_path)
    target = home.memories["rare"]
    plant(home, "UPDATE postings_docsize SET origin = 999999")

    with unchecked(home) as memory:
        with pytest.raises(CorruptionError, match="does not let go of a text") as refusal:
            memory.forget(target, dry_run=False)
        kept = memory.get(target).text or ""
        memory.rebuild()
        erased = memory.forget(target, dry_run=False)

    assert "ledgerstone rebuild" in refusal.value.hint
    assert "zanzibar" in kept
    assert not erased.left
    assert b"zanzibar" not in home.path.read_bytes()


@pytest.mark.parametrize("derived", ["vectored", "corpus", "record", "node"])
@pytest.mark.parametrize("history", ["chain", "receipt"])
def test_a_rebuild_writes_over_no_page_of_history(home: Home, derived: str, history: str) -> None:
    """Where a derived table stands in the pages of history the rebuild is refused, and restore is what it says."""
    connection = plain_client(home.path)
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (history,)).get
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (page, derived))
    connection.close()
    before = home.path.read_bytes()

    with unchecked(home) as memory, pytest.raises(CorruptionError, match="a rebuild does not help") as refusal:
        memory.rebuild()

    assert "ledgerstone restore" in refusal.value.hint
    assert home.path.read_bytes() == before


@pytest.mark.parametrize("number", [-1, 0, 1, 3])
def test_a_schema_number_that_is_not_its_own_leads_to_a_backup(home: Home, number: int) -> None:
    """A file that says it has an older schema than it has is not migrated, and nothing is made beside it."""
    plant(home, f"PRAGMA user_version = {number}")
    before = home.path.read_bytes()

    with pytest.raises(CorruptionError, match=f"says that it has schema {number}, and holds") as refusal:
        unchecked(home)
    left = home.path.read_bytes(), [path.name for path in home.path.parent.glob("*.backup")]
    plant(home, "PRAGMA user_version = 4")

    assert "ledgerstone restore" in refusal.value.hint
    assert left == (before, [])
    with unchecked(home) as memory:
        assert memory.verify().ok
