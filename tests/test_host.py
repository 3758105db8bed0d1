"""The host binds: settings by precedence, each with its source, and callers that nothing they say can widen."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from ledgerstone import Act, Budget, Limits, Origin, StoreError, UnavailableError, UsageError
from ledgerstone.core.values import time_text
from ledgerstone.entrypoints import host, wire

UTC_MIDNIGHT = 1_796_083_200_000_000
FORBIDDEN = [
    "store",
    "key_file",
    "principal",
    "namespace",
    "project",
    "grants",
    "trust",
    "floor",
    "origin",
    "new_places",
    "allow_secrets",
    "below_floor_bytes",
    "text_bytes",
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a repository in it, and no configuration."""
    (tmp_path / "home" / "repo" / ".git").mkdir(parents=True)
    return tmp_path / "home"


def settle(home: Path, flags: dict[str, str | None] | None = None, /, **environ: str) -> host.Settings:
    """Settings of somebody in the repository of this home."""
    surroundings = {"HOME": str(home), "LEDGERSTONE_HOME": str(home / "ls"), **environ}
    return host.settle(flags, environ=surroundings, cwd=home / "repo")


def write(path: Path, text: str) -> None:
    """A configuration file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_flags_beat_environment_beats_project_beats_user_beats_default(home: Path) -> None:
    """The first of the five that speaks decides, and its name is kept for the doctor."""
    found = [settle(home)]
    write(home / "ls" / "config" / "config.toml", "[recall]\nitems = 2\nbytes = 1000\n")
    found.append(settle(home))
    write(home / "repo" / ".ledgerstone.toml", "recall.items = 3\n")
    found.append(settle(home))
    found.append(settle(home, LEDGERSTONE_RECALL_ITEMS="4"))
    found.append(settle(home, {"recall.items": "5"}, LEDGERSTONE_RECALL_ITEMS="4"))

    assert [each.budget.items for each in found] == [Budget().items, 2, 3, 4, 5]
    assert [each.won["recall.items"].split(" /")[0] for each in found] == [
        "default",
        "user file",
        "project file .ledgerstone.toml",
        "environment",
        "flag",
    ]
    assert [each.budget.bytes for each in found[1:]] == [1000] * 4


@pytest.mark.parametrize(
    "setting",
    [
        "store",
        "key_file",
        "keys",
        "principal",
        "namespace",
        "project",
        "grants",
        "trust",
        "floor",
        "origin",
        "new_places",
        "allow_secrets",
        "below_floor_bytes",
        "text_bytes",
        "semantic",
    ],
)
def test_a_project_file_may_not_choose(home: Path, setting: str) -> None:
    """A clone that would choose store, key, principal, namespace, grants or trust is refused by name."""
    file = home / "repo" / ".ledgerstone.toml"
    write(file, f'[recall]\nitems = 3\n[{setting}]\nx = "y"\n')
    with pytest.raises(UsageError, match=f"may not set '{setting}.x'"):
        settle(home)
    write(file, f'{setting} = "x"\n')
    with pytest.raises(UsageError, match=f"may not set '{setting}'"):
        settle(home)

    write(file, "[recall]\nitems = 3\n")
    assert settle(home).budget.items == 3


def test_only_the_top_of_the_repository_is_read(home: Path) -> None:
    """A file deeper in, and one outside every repository, is nobody's configuration."""
    write(home / "repo" / "sub" / ".ledgerstone.toml", "recall.items = 3\n")
    write(home / ".ledgerstone.toml", "recall.items = 4\n")

    deeper = host.settle(environ={"HOME": str(home), "LEDGERSTONE_HOME": str(home / "ls")}, cwd=home / "repo" / "sub")

    assert deeper.budget.items == Budget().items


def test_a_project_file_that_is_a_link_is_not_followed(home: Path) -> None:
    """It could name a file that the clone's author may not read; a plain file is read."""
    write(home / "secret", "recall.items = 3\n")
    (home / "repo" / ".ledgerstone.toml").symlink_to(home / "secret")

    with pytest.raises(UsageError, match="not a file of its own"):
        settle(home)


def test_a_file_that_is_no_toml_is_refused(home: Path) -> None:
    """A broken file is an error that names it, never silently nothing."""
    write(home / "ls" / "config" / "config.toml", "store = \n")

    with pytest.raises(UsageError, match=r"config\.toml: not TOML"):
        settle(home)


@pytest.mark.parametrize(
    ("variable", "bad", "good"),
    [
        ("LEDGERSTONE_STORE", "relative.db", "/absolute.db"),
        ("LEDGERSTONE_KEY_FILE", "key.json", "~/key.json"),
        ("LEDGERSTONE_NEW_PLACES", "yes", "allow"),
        ("LEDGERSTONE_ORIGIN", "root", "tool"),
        ("LEDGERSTONE_SEMANTIC", "minilm", "table"),
        ("LEDGERSTONE_RECALL_BYTES", "-1", "1024"),
        ("LEDGERSTONE_RECALL_ITEMS", "1_0", "10"),
    ],
)
def test_a_value_nobody_takes_is_refused(home: Path, variable: str, bad: str, good: str) -> None:
    """A wrong value is a usage error, and its right neighbour is taken."""
    with pytest.raises(UsageError):
        settle(home, **{variable: bad})

    settle(home, **{variable: good})


def test_an_empty_variable_is_none(home: Path) -> None:
    """Set to nothing is as good as not set."""
    assert settle(home, LEDGERSTONE_STORE="", LEDGERSTONE_SESSION="").won["store"] == "LEDGERSTONE_HOME"


def test_home_moves_every_directory(home: Path) -> None:
    """LEDGERSTONE_HOME holds data, configuration and state, and only what is named outright leaves it."""
    found = settle(home)
    named = settle(home, LEDGERSTONE_STORE="/elsewhere/store.db")

    assert {each.parent for each in (found.data, found.config, found.state)} == {home / "ls"}
    assert (found.store, found.key_file) == (home / "ls/data/ledgerstone.db", home / "ls/config/key.json")
    assert (named.store, named.key_file) == (Path("/elsewhere/store.db"), found.key_file)
    with pytest.raises(UsageError, match="absolute"):
        settle(home, LEDGERSTONE_HOME="ls")


def test_the_principal_is_the_user_of_the_system(home: Path) -> None:
    """Names that the environment gives for the user do not count; a principal named outright does."""
    user = pwd.getpwuid(os.getuid()).pw_name

    assert settle(home, USER="root2", LOGNAME="root3").principal == f"local:{user}"
    assert settle(home, LEDGERSTONE_PRINCIPAL="bot").principal == "bot"


def test_a_session_is_what_somebody_says_it_is(home: Path) -> None:
    """A flag, else our variable, else the host's; nobody's guess."""
    host_says = {"CLAUDE_CODE_SESSION_ID": "c"}

    assert settle(home).session is None
    assert settle(home, **host_says).session == "c"
    assert settle(home, LEDGERSTONE_SESSION="l", **host_says).session == "l"
    assert settle(home, {"session": "f"}, LEDGERSTONE_SESSION="l").session == "f"


def test_the_place_is_the_hosts_then_the_working_directory(home: Path) -> None:
    """One folder from a host is the place; several, or a relative one, name no one project."""
    other = home / "other"
    other.mkdir()

    assert settle(home).place == home / "repo"
    assert settle(home, CLAUDE_PROJECT_DIR=str(other)).place == other
    assert settle(home, WORKSPACE_FOLDER_PATHS=str(other)).place == other
    for several in (f"{other},{home / 'repo'}", f"{other}:{home}", "other"):
        assert settle(home, WORKSPACE_FOLDER_PATHS=several).place == home / "repo"


@pytest.mark.parametrize("where", ["", ".claude/plugins/cache/x", ".codex/plugins/cache/x"])
def test_home_root_and_plugin_directories_are_no_place(home: Path, where: str) -> None:
    """From there nobody's project is meant, so a caller has none; below a directory of one's own it has."""
    place = home / where
    place.mkdir(parents=True, exist_ok=True)
    environ = {"HOME": str(home), "LEDGERSTONE_HOME": str(home / "ls")}

    for nowhere in (place, Path("/")):
        found = host.settle(environ=environ, cwd=nowhere)
        assert found.place is None
        assert host.caller(found, door="cli", terminal=True).project is None
    assert host.caller(settle(home), door="cli", terminal=True).project is not None


def test_a_flag_is_explicit_and_a_variable_is_a_binding(home: Path) -> None:
    """Both name the project outright; the stamp tells them apart."""
    by_flag = host.project_hints(settle(home, {"project": "ns_1"}))
    by_variable = host.project_hints(settle(home, LEDGERSTONE_PROJECT="ns_2"))

    assert by_flag is not None
    assert by_variable is not None
    assert (by_flag.explicit, by_flag.binding) == ("ns_1", None)
    assert (by_variable.explicit, by_variable.binding) == (None, "ns_2")


def test_unreadable_git_data_leaves_the_project_unresolved(home: Path) -> None:
    """A broken .git is a reason that is said, never 'no remote'."""
    (home / "repo" / ".git").rmdir()
    (home / "repo" / ".git").write_text("nonsense", encoding="utf-8")

    hints = host.project_hints(settle(home))

    assert hints is not None
    assert hints.reason is not None
    assert "neither a git directory nor names one" in hints.reason
    assert (hints.remotes, hints.paths) == ((), ())


@pytest.mark.parametrize(
    ("door", "terminal", "origin", "acts"),
    [
        ("cli", True, Origin.USER, frozenset(Act)),
        ("cli", False, Origin.TOOL, host.PROGRAM_ACTS),
        ("mcp", False, Origin.MODEL, host.PROGRAM_ACTS),
        ("mcp", True, Origin.MODEL, host.PROGRAM_ACTS),
    ],
)
def test_only_a_person_at_a_terminal_may_administer(
    home: Path, door: host.Door, terminal: bool, origin: Origin, acts: frozenset[Act]
) -> None:
    """The door and the terminal decide origin and acts; programs and models read, write and create."""
    found = host.caller(settle(home), door=door, terminal=terminal)

    assert (found.origin, found.acts) == (origin, acts)
    assert frozenset({Act.READ, Act.WRITE, Act.CREATE}) == host.PROGRAM_ACTS


def test_a_client_names_itself_and_nothing_else(home: Path) -> None:
    """An MCP client's name is shortened, freed of what is not printable, and only a name; eight drafts a commit."""
    found = host.caller(settle(home), door="mcp", terminal=False, session="s", client="evil\x1b[2J\n" + "x" * 99)
    unnamed = host.caller(settle(home), door="mcp", terminal=False, client="\n ")

    assert (found.host, len(found.host or "")) == ("evil[2J" + "x" * 57, 64)
    assert (found.session, found.limits, found.origin) == ("s", Limits(drafts=8), Origin.MODEL)
    assert unnamed.host == "mcp"


def test_the_origin_of_mcp_is_the_hosts_word(home: Path) -> None:
    """Configuration may say that what comes by MCP has another origin; the command line's is its own."""
    found = settle(home, LEDGERSTONE_ORIGIN="tool")

    assert host.caller(found, door="mcp", terminal=False).origin is Origin.TOOL
    assert host.caller(found, door="cli", terminal=True).origin is Origin.USER


def test_a_store_and_a_key_are_made_together_or_not_at_all(home: Path) -> None:
    """Opening makes nothing; creating makes both; a store whose key is gone gets no other."""
    settings = settle(home)
    caller = host.caller(settings, door="cli", terminal=True)
    with pytest.raises(UnavailableError) as missing:
        host.open_memory(settings, caller)
    assert missing.value.hint == "run: ledgerstone init"
    assert not (home / "ls").exists()

    host.open_memory(settings, caller, create=True).close()
    with host.open_memory(settings, caller) as memory:
        assert memory.status()["owner"] == settings.principal
    settings.key_file.unlink()

    for create in (False, True):
        with pytest.raises(StoreError, match="no key file"):
            host.open_memory(settings, caller, create=create)
    assert not settings.key_file.exists()


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2026-12-01", UTC_MIDNIGHT),
        ("2026-12-01T00:00:00Z", UTC_MIDNIGHT),
        ("2026-12-01t01:30:00.000001+01:30", UTC_MIDNIGHT + 1),
        ("2026-11-30 19:00:00.5-05:00", UTC_MIDNIGHT + 500_000),
        ("1970-01-01", 0),
    ],
)
def test_times_are_read_as_rfc_3339(text: str, microseconds: int) -> None:
    """A date is its first moment in UTC, a time needs its offset, and the text made of it reads back the same."""
    assert wire.parse_time(text) == microseconds
    assert wire.parse_time(time_text(microseconds)) == microseconds


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-12-01T00:00:00", "20261201", "2026-13-01", "2026-12-01T25:00:00Z", "9999-01-01"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """Words, times of nowhere in particular and days that are none are usage errors."""
    with pytest.raises(UsageError, match="time:"):
        wire.parse_time(text)


def test_a_time_before_any_that_can_be_kept_is_refused_in_words() -> None:
    """As the date that was given, and with the first and the last that there can be; the first is taken."""
    with pytest.raises(UsageError, match=r"since: from 1970-01-01T00:00:00.* to 2255-06-05T.*, not '1969-12-31'"):
        wire.parse_time("1969-12-31", "since")

    assert wire.parse_time("1970-01-01", "since") == 0


def test_the_longest_text_is_the_users_to_set(home: Path) -> None:
    """8,192 bytes by either door, up to 1 MiB as the user says; more is refused with the limit and the offence."""
    found = [settle(home), settle(home, LEDGERSTONE_TEXT_BYTES="1048576")]
    write(home / "ls" / "config" / "config.toml", "text_bytes = 20000\n")
    found.append(settle(home))

    limits = [[host.caller(each, door=door, terminal=False).limits for door in ("cli", "mcp")] for each in found]

    assert [[(each.drafts, each.text_bytes) for each in pair] for pair in limits] == [
        [(256, most), (8, most)] for most in (8192, 1_048_576, 20_000)
    ]
    for wrong in ("0", "1048577"):
        with pytest.raises(UsageError, match=f"text_bytes from 1 to 1048576, not {wrong}"):
            settle(home, LEDGERSTONE_TEXT_BYTES=wrong)
