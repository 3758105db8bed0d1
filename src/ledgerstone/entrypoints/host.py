"""What the host says: the only reader of environment and configuration, and the only maker of callers.

A setting comes from a flag, else the environment (``LEDGERSTONE_*``), else the project's file, else the user's file,
else its default, and remembers which one won. The project's file is tracked, so a hostile clone may bring one: it
may say nothing but how much a recall gives.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ledgerstone.core.values import MAX_DRAFTS, Act, Budget, Limits, Origin
from ledgerstone.errors import (
    NamespaceError,
    StoreError,
    UnavailableError,
    UsageError,
)

if TYPE_CHECKING:
    from ledgerstone.anchors import Anchors
    from ledgerstone.core.authority import Caller
    from ledgerstone.core.namespaces import ProjectHints
    from ledgerstone.core.signing import Keyring
    from ledgerstone.memory import Memory
    from ledgerstone.semantic import Lane

PROJECT_FILE: Final = ".ledgerstone.toml"
USER_FILE: Final = "config.toml"
MAX_CONFIG_BYTES: Final = 65_536
MAX_HOST_CHARACTERS: Final = 64
# What a program may do in its user's name; the rest is for somebody at a terminal.
PROGRAM_ACTS: Final = frozenset({Act.READ, Act.WRITE, Act.CREATE})

# What hosts set for the programs they start.
SESSION_VARIABLES: Final = ("CLAUDE_CODE_SESSION_ID",)
PLACE_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS")
# Where hosts keep plugins: a server started from there stands in nobody's project.
PLUGIN_CACHES: Final = ("/.claude/plugins/", "/.codex/plugins/", "/.cursor/plugins/")

PROJECT_SETTINGS: Final = frozenset({"recall.bytes", "recall.items"})
USER_SETTINGS: Final = PROJECT_SETTINGS | {
    *("allow_secrets", "below_floor_bytes", "key_file", "new_places", "origin", "principal", "public_key", "read_only"),
    *("semantic", "store", "store_on", "text_bytes"),
}
SETTINGS: Final = USER_SETTINGS | {"project", "session"}

# The source of what stands below LEDGERSTONE_HOME.
CHOSEN_HOME: Final = "LEDGERSTONE_HOME"

# A recall looks by meaning too where that can be had (auto), must (table), or does not (none).
SEMANTIC: Final = ("auto", "table", "none")
SEMANTIC_HINT: Final = "install it from the checkout: pip install '.[semantic]'"
OTHER_HINT: Final = "to replace them: ledgerstone index --replace; to leave them: the setting semantic, none"

Door = Literal["cli", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that the host decided. ``won`` names the source of each setting; ``place`` is where hints are gathered.

    ``project`` is a namespace's id that was named outright, ``no_place`` says why there is no ``place``, ``codex`` is
    where Codex keeps its configuration. ``public_key`` is a pinned key, or the path of a file that has one.
    ``limits`` are those of a model's writes; by the command line come more drafts at once.
    ``below_floor_bytes`` is what a recall may give of what lies below the trust floor.
    ``anywhere`` lets the store stand where files are known to be lost. ``semantic`` is one of ``SEMANTIC``.
    """

    store: Path
    key_file: Path
    public_key: str | None
    read_only: bool
    config: Path
    data: Path
    state: Path
    principal: str
    origin: Origin
    session: str | None
    project: str | None
    place: Path | None
    no_place: str | None
    home: Path
    codex: Path
    new_places: bool
    allow_secrets: tuple[str, ...]
    limits: Limits
    below_floor_bytes: int
    anywhere: bool
    semantic: str
    budget: Budget
    won: Mapping[str, str]


def settle(
    flags: Mapping[str, str | None] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Every setting and its source. ``flags`` are by name of setting: store, key_file, project, session and so on.

    Raises UsageError for a value that no setting takes, for a file that is no TOML, and for a setting that its file
    may not hold.
    """
    environ = os.environ if environ is None else environ
    where = _cwd() if cwd is None else cwd
    home = _home(environ)
    data, config, state, directories = _directories(environ)
    place, no_place, place_won = _place(environ, where, home)
    user_file = config / USER_FILE
    layers: list[tuple[str, Mapping[str, str]]] = [
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
        ("environment", _of_environment(environ)),
        (f"project file {PROJECT_FILE}", _of_file(_project_file(place, home), PROJECT_SETTINGS)),
        (f"user file {user_file}", _of_file(user_file, USER_SETTINGS)),
        ("host variable", _session(environ)),
        (
            directories,
            {"store": str(data / "ledgerstone.db"), "key_file": str(config / "key.json")},
        ),
        (
            "default",
            {
                "principal": f"local:{_user()}",
                "origin": "model",
                "new_places": "confirm",
                "allow_secrets": "",
                "below_floor_bytes": "0",
                "read_only": "no",
                "store_on": "local",
                "semantic": "auto",
                "text_bytes": str(Limits().text_bytes),
                "recall.bytes": str(Budget().bytes),
                "recall.items": str(Budget().items),
            },
        ),
    ]
    values: dict[str, str] = {}
    won: dict[str, str] = {"place": place_won}
    for source, layer in layers:
        for name, value in layer.items():
            if name not in SETTINGS:
                raise UsageError(f"{source}: no setting {name}")
            if name not in values:
                values[name], won[name] = value, source
    return Settings(
        store=_path("store", values["store"], home),
        key_file=_path("key_file", values["key_file"], home),
        public_key=_public_key(values.get("public_key"), home),
        read_only=_truth("read_only", values["read_only"]),
        config=config,
        data=data,
        state=state,
        principal=values["principal"],
        origin=_origin(values["origin"]),
        session=values.get("session"),
        project=values.get("project"),
        place=place,
        no_place=no_place,
        home=home,
        codex=Path(environ.get("CODEX_HOME") or home / ".codex"),
        new_places=_one_of("new_places", values["new_places"], "allow", "confirm") == "allow",
        allow_secrets=tuple(filter(None, map(str.strip, values["allow_secrets"].split(",")))),
        limits=Limits(text_bytes=_number("text_bytes", values["text_bytes"])),
        below_floor_bytes=_number("below_floor_bytes", values["below_floor_bytes"]),
        anywhere=_one_of("store_on", values["store_on"], "anywhere", "local") == "anywhere",
        semantic=_one_of("semantic", values["semantic"], *SEMANTIC),
        budget=replace(
            Budget(),
            bytes=_number("recall.bytes", values["recall.bytes"]),
            items=_number("recall.items", values["recall.items"]),
        ),
        won=won,
    )


def at_terminal() -> bool:
    """Whether somebody sits there: standard input and standard error are both terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def caller(
    settings: Settings,
    *,
    door: Door,
    terminal: bool,
    session: str | None = None,
    client: str | None = None,
) -> Caller:
    """Who is asking through a door.

    At a terminal the command line speaks for the user and may do all that is granted. Everywhere else it is a
    tool, since an agent can run it, and MCP is a model; both may only read, write and create. ``session`` is what
    the door itself was told of one; ``client`` is the name that an MCP client gives itself, which decides nothing.
    """
    from ledgerstone.core.authority import Caller

    cli = door == "cli"
    by_hand = Origin.USER if terminal else Origin.TOOL
    name = "".join(character for character in client or "" if character.isprintable())
    return Caller(
        principal=settings.principal,
        origin=by_hand if cli else settings.origin,
        host=name[:MAX_HOST_CHARACTERS].strip() or door,
        session=session or settings.session,
        project=project_hints(settings),
        new_places=settings.new_places,
        allow_secrets=settings.allow_secrets,
        below_floor_bytes=settings.below_floor_bytes,
        acts=frozenset(Act) if cli and terminal else PROGRAM_ACTS,
        limits=replace(settings.limits, drafts=MAX_DRAFTS) if cli else settings.limits,
    )


def project_hints(settings: Settings) -> ProjectHints | None:
    """What suggests a project; None when there is neither an id nor a place to speak of.

    Git data that cannot be read leaves the project unresolved, with the reason, and never counts as none.
    """
    from ledgerstone.core.namespaces import ProjectHints
    from ledgerstone.entrypoints.projects import discover

    found = None
    if settings.place is not None:
        try:
            found = discover(settings.place, settings.home)
        except NamespaceError as error:
            found = ProjectHints(reason=f"{error.message}; {error.hint}")
    if settings.project is None:
        return found
    if settings.won["project"] == "flag":
        return replace(found or ProjectHints(), explicit=settings.project)
    return replace(found or ProjectHints(), binding=settings.project)


def open_memory(settings: Settings, caller: Caller, *, create: bool = False, check: bool = True) -> Memory:
    """The store as a caller sees it; only with ``create`` are a missing store and its key made.

    No key is ever made for a store that exists, and no store where one is missing, unless that was asked for.
    Without ``check`` a store that is refused can be verified and rebuilt. Without its key file, but with a pinned
    public key, it is read-only. UsageError where the setting asks for the table and NumPy is missing.
    """
    from ledgerstone import volumes

    there = _exists(settings.store)
    if not there:
        anchors(settings).check_path(settings.store)
    if create and not settings.anywhere and not settings.read_only:
        # Before a key or a folder is made for it.
        volumes.check(settings.store)
    if not there and not create:
        raise UnavailableError(f"no store at {settings.store}", hint="run: ledgerstone init")

    from ledgerstone.memory import Memory

    try:
        if create and not settings.read_only:
            settings.store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = keyring(settings, create=create and not there and not settings.read_only)
    except OSError as error:
        raise UnavailableError(f"{error.filename}: {error.strerror}") from error
    lane = encoder(settings)
    memory = Memory.open(
        settings.store,
        keys=keys,
        caller=caller,
        create=create,
        state=settings.state,
        check=check,
        read_only=settings.read_only or keys.signer is None,
        anywhere=settings.anywhere,
        semantic=lane,
    )
    if keys.following is not None and memory.signer == keys.following:
        from ledgerstone.keys import settle

        # A rotation that was cut short after its commit. Where the file cannot be put in its place, both are read.
        with suppress(OSError, UnavailableError):
            settle(settings.key_file)
    return memory


def encoder(settings: Settings) -> Lane | None:
    """What a recall looks by beside words, loaded when one needs it; None where ``words_alone`` says why."""
    why = words_alone(settings)
    if why is None:
        from ledgerstone.semantic import Lane, static_table

        return Lane(static_table)
    if settings.semantic == "table":
        raise UsageError(f"semantic: the table cannot be used: {why.says}", hint=why.hint)
    return None


class WordsAlone(NamedTuple):
    """Why a recall looks by words alone, and what to do for more."""

    says: str
    hint: str


def words_alone(settings: Settings) -> WordsAlone | None:
    """Why there is no encoder; None where there is one. Looks whether NumPy is there and does not load it."""
    from importlib.util import find_spec

    if settings.semantic == "none":
        return WordsAlone("the setting semantic is none", "set it to auto")
    if find_spec("numpy") is None:
        return WordsAlone("NumPy is not installed", SEMANTIC_HINT)
    return None


def rotate(settings: Settings, memory: Memory) -> Path | None:
    """Make a new key, hand the store over to it, and put it in the place of the key file; where the old one is kept."""
    from ledgerstone import keys

    memory.check_rotation()
    # Once made it is never removed: another process may be handing the store over to it. The next rotation takes it.
    memory.rotate(keys.prepare(settings.key_file))
    return keys.settle(settings.key_file)


def keyring(settings: Settings, *, create: bool = False) -> Keyring:
    """The keys to sign and check with; only the pinned one where that is all there is, or all that is wanted."""
    from ledgerstone.keys import load_keys, pinned

    if settings.public_key is not None and (settings.read_only or not _exists(settings.key_file)):
        return pinned(settings.public_key)
    if not _exists(settings.key_file) and _exists(settings.store):
        raise StoreError(
            f"no key file at {settings.key_file}, and the store at {settings.store} has one already",
            hint="put its key file back, or name it: LEDGERSTONE_KEY_FILE; to read only: LEDGERSTONE_PUBLIC_KEY",
        )
    return load_keys(settings.key_file, create=create)


def moving_keys(settings: Settings) -> Keyring:
    """The keys by which a store that comes from elsewhere is judged, before it is put where this one belongs."""
    if settings.read_only:
        raise StoreError("nothing is put in place read-only", hint="leave out --read-only (LEDGERSTONE_READ_ONLY)")
    if settings.public_key is None and not _exists(settings.key_file):
        raise StoreError(
            f"no key file at {settings.key_file} to judge the store by",
            hint="bring it along: ledgerstone keys import FILE; or name the public key: LEDGERSTONE_PUBLIC_KEY",
        )
    return keyring(settings)


def passphrase() -> str | None:
    """The passphrase that the environment gives, or None."""
    return os.environ.get("LEDGERSTONE_PASSPHRASE") or None


def anchors(settings: Settings) -> Anchors:
    """What this machine remembers of the store outside it."""
    from ledgerstone.anchors import Anchors

    return Anchors(settings.state, str(settings.store.resolve()))


def _directories(environ: Mapping[str, str]) -> tuple[Path, Path, Path, str]:
    """Data, configuration and state, and what decided them."""
    if home := environ.get("LEDGERSTONE_HOME"):
        root = _absolute("LEDGERSTONE_HOME", Path(home))
        return root / "data", root / "config", root / "state", CHOSEN_HOME
    from platformdirs import PlatformDirs

    found = PlatformDirs("ledgerstone", appauthor=False)
    return found.user_data_path, found.user_config_path, found.user_state_path, "default"


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings of the environment; an empty variable is none."""
    named = {f"LEDGERSTONE_{name.upper().replace('.', '_')}": name for name in sorted(SETTINGS)}
    return {name: environ[variable] for variable, name in named.items() if environ.get(variable)}


def _session(environ: Mapping[str, str]) -> dict[str, str]:
    found = next((environ[name] for name in SESSION_VARIABLES if environ.get(name)), None)
    return {} if found is None else {"session": found}


def _place(environ: Mapping[str, str], cwd: Path | None, home: Path) -> tuple[Path | None, str | None, str]:
    """The directory whose project is meant, or why there is none, and what decided it."""
    for name in PLACE_VARIABLES:
        value = environ.get(name, "")
        # Several folders (joined by a comma, or as PATH is) name no one project.
        if value and not {",", os.pathsep} & set(value) and Path(value).is_absolute():
            place, by = Path(value), name
            break
    else:
        if cwd is None:
            return None, "the working directory is gone", "none"
        place, by = cwd, "working directory"
    real = Path(os.path.realpath(place))
    if real == Path(os.path.realpath(home)):
        return None, "it is the home directory", by
    if real == real.parent:
        return None, "it is the root of the file system", by
    if any(cache in f"{real}/" for cache in PLUGIN_CACHES):
        return None, "it is a host's plugin directory", by
    return place, None, by


def repository_top(place: Path, home: Path) -> Path | None:
    """The top of the nearest repository around a place and below home, or None."""
    here, end = Path(os.path.realpath(place)), Path(os.path.realpath(home))
    upward = takewhile(lambda each: each not in (end, each.parent), (here, *here.parents))
    return next((each for each in upward if (each / ".git").exists()), None)


def _project_file(place: Path | None, home: Path) -> Path | None:
    """The project's file: at the top of its repository, and nowhere else."""
    top = None if place is None else repository_top(place, home)
    return None if top is None else top / PROJECT_FILE


def _of_file(path: Path | None, allowed: frozenset[str]) -> dict[str, str]:
    """The settings of a TOML file; none without a file. What it may not set is refused by name."""
    if path is None:
        return {}
    try:
        if not stat.S_ISREG(path.lstat().st_mode) and path.name == PROJECT_FILE:
            raise UsageError(f"{path}: not a file of its own")
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise UsageError(f"{path}: at most {MAX_CONFIG_BYTES} bytes")

    import tomllib

    try:
        tables = tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    found = _flat(tables)
    refused = sorted(found.keys() - allowed)
    if refused:
        raise UsageError(
            f"{path}: may not set {', '.join(map(repr, refused[:8]))}",
            hint=f"it may set {', '.join(sorted(allowed))}",
        )
    return {name: str(value) for name, value in found.items()}


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _path(name: str, value: str, home: Path) -> Path:
    return _absolute(name, home / value[2:] if value.startswith("~/") else Path(value))


def _absolute(name: str, path: Path) -> Path:
    # A path that depended on where a host starts us would be another store each time.
    if not path.is_absolute():
        raise UsageError(f"{name}: an absolute path, not {str(path)!r}")
    return path


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= len("1048576")):
        raise UsageError(f"{name}: a whole number, not {value[:40]!r}")
    return int(value)


def _one_of(name: str, value: str, *words: str) -> str:
    if value not in words:
        raise UsageError(f"{name}: {' or '.join(words)}, not {value[:40]!r}")
    return value


def _truth(name: str, value: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    found = words.get(value.lower())
    if found is None:
        raise UsageError(f"{name}: yes or no, not {value[:40]!r}")
    return found


def _public_key(value: str | None, home: Path) -> str | None:
    """A public key in hex as it is, and all else as a path."""
    if value is None or (len(value) == len("00" * 32) and "/" not in value):
        return value
    if "/" not in value:
        raise UsageError(
            f"public_key: 64 hex digits, or the absolute path of a file that has them, not {value[:80]!r}",
            hint="print it where the key is: ledgerstone keys show",
        )
    return str(_path("public_key", value, home))


def _origin(value: str) -> Origin:
    return Origin(_one_of("origin", value, *(origin.value for origin in Origin)))


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    return True


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/")


def _user() -> str:
    """The user as the operating system knows it, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def without_colour() -> bool:
    """Whether colours are unwelcome (no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))
