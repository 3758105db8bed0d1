"""The doctor: what of this installation is well, what is not, and what to do about it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from ledgerstone import files
from ledgerstone.entrypoints import host, projects, shown
from ledgerstone.entrypoints.frame import MCP_HINT, UNWELL, Door, verb
from ledgerstone.errors import LedgerstoneError, StoreError, UnavailableError

if TYPE_CHECKING:
    from ledgerstone.memory import Memory

# Below this much room a write may soon be refused, and below this much an erasure too, which needs some.
LITTLE_ROOM: Final = 256 * 1024 * 1024
NO_ROOM: Final = 16 * 1024 * 1024
# And below this much an opening where nobody has the store open: SQLite's file of what they share takes that.
SHARED: Final = 32 * 1024
# SQLite folds its log in every 1,000 pages; so much that is not means that somebody keeps it from that.
MANY_PAGES: Final = 2_000
MAX_USERS: Final = 8
# From here on a number of bytes is shown in the next unit.
MOST_SHOWN: Final = 10_000
_COLOURS: Final = {"ok": "green", "warning": "yellow", "fault": "red"}

_AS_RETIRED: Final = "under the name of a retired key"

State = Literal["ok", "warning", "fault"]


class Check(NamedTuple):
    """One thing that was looked at: how it is, and what to do where it is not well."""

    name: str
    state: State
    says: str
    hint: str = ""

    def wire(self) -> dict[str, str]:
        """As JSON; without a hint where there is nothing to do."""
        return {name: value for name, value in self._asdict().items() if value or name != "hint"}


@click.command
@verb
def doctor(door: Door) -> None:
    """Look at the whole installation, and say what to do.

    Shows every setting with what decided it. Exits 1 when there is a fault; a warning is none.
    """
    checks = [_sqlite(), _mcp()]
    answer: dict[str, Any] = {"versions": _versions()}
    try:
        settings = door.settings()
    except LedgerstoneError as error:
        checks.append(Check("settings", "fault", error.message, error.hint))
    else:
        answer["settings"] = _settings(settings)
        answer["files"] = [_file("store", settings.store), _file("key", settings.key_file)]
        place = _place(settings)
        checks += [place, *_surroundings(settings)]
        # Where it may not stand it is not opened, which would only say the same again.
        if place.state != "fault":
            checks += _opened(door, settings, answer)
    answer["checks"] = [check.wire() for check in checks]
    door.answer(answer, lambda: _diagnosis(answer, checks, door.width))
    if any(check.state == "fault" for check in checks):
        click.get_current_context().exit(UNWELL)


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import version

    import apsw

    return {
        "ledgerstone": version("ledgerstone"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "system": platform.platform(terse=True),
    }


def _sqlite() -> Check:
    """Whether the one SQLite of this process is what the store needs."""
    import apsw

    from ledgerstone.store.sqlite import LEAST_SQLITE

    found = f"SQLite {apsw.sqlite_lib_version()}"
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_SQLITE:
        return Check("sqlite", "fault", f"{found} can lose commits", "install apsw 3.51.3 or newer")
    if "ENABLE_FTS5" not in apsw.compile_options:
        return Check("sqlite", "fault", f"{found} has no full-text search", "install apsw as pip gives it")
    if _installed("apsw-sqlite3mc"):
        says = "apsw-sqlite3mc is installed beside apsw, and either may have overwritten the other"
        return Check(
            "sqlite", "warning", says, "keep one of the two: pip uninstall apsw-sqlite3mc, then reinstall apsw"
        )
    return Check("sqlite", "ok", f"{found} with full-text search, by apsw {apsw.apsw_version()}")


def _mcp() -> Check:
    from importlib import metadata, util

    if util.find_spec("mcp") is None:
        return Check("mcp", "warning", "the MCP SDK is not installed", MCP_HINT)
    return Check("mcp", "ok", f"SDK {metadata.version('mcp')}" if _installed("mcp") else "the SDK is there")


def _installed(distribution: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _surroundings(settings: host.Settings) -> Iterator[Check]:
    """What can be told of a store from outside, by names and ``stat`` alone."""
    yield _room(settings.store)
    yield _access(settings)
    log = Path(f"{settings.store}-wal")
    if log.exists() and not settings.store.exists():
        says = f"{log} is the log of a store that is gone, and may hold its newest commits"
        yield Check("log", "fault", says, "put the store's file back beside it, or move the log away")
    for draft in sorted(files.left(settings.store, "new")):
        says = f"{draft} was left by a restore or an import that was killed, and may hold what was erased since"
        yield Check("draft", "warning", says, "remove it; the next one does so too")


def _place(settings: host.Settings) -> Check:
    from ledgerstone import volumes

    try:
        volumes.check(settings.store)
    except StoreError as error:
        if not (settings.anywhere or settings.read_only):
            return Check("place", "fault", error.message, error.hint)
        hint = "bring it to a disk of this machine: ledgerstone --read-only backup FILE, and restore that there"
        return Check("place", "warning", error.message, hint)
    carrier = volumes.carrier(settings.store.resolve())
    where = f"on {carrier.kind}" if carrier else "this system does not tell what file system it is on"
    return Check("place", "ok", f"{where}, in no synchronised folder that is known")


def _room(path: Path) -> Check:
    there = next(each for each in (path, *path.parents) if each.exists())
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Check("room", "warning", f"the room left at {there} is not known: {error.strerror}")
    if free < LITTLE_ROOM:
        state: State = "fault" if free < NO_ROOM else "warning"
        refused = "writes, and programs that open the store" if free < SHARED else "writes"
        return Check("room", state, f"only {_size(free)} left on the disk", f"make room: {refused} will be refused")
    return Check("room", "ok", f"{_size(free)} left on the disk")


def _access(settings: host.Settings) -> Check:
    """Who else may read or change the store, and what is remembered of it."""
    store = settings.store
    files = (store, *(Path(f"{store}{log}") for log in ("-wal", "-shm", "-journal")))
    anchors = host.anchors(settings)
    folders = {store.parent, settings.key_file.parent, settings.state, anchors.folder}
    for path in (*files, *sorted(folders)):
        found = _stat(path)
        if found is None:
            continue
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        if found.st_uid != os.geteuid():
            hint = "use it as its owner, or give it to yourself: chown"
            # Folders like /tmp are the system's, and keep users apart by their sticky bit.
            if path in files or not found.st_mode & stat.S_ISVTX:
                return Check("access", "warning", f"{path} belongs to another user ({found.st_uid})", hint)
        if path in files and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return Check("access", "warning", f"{path} is open to others ({mode})", f"chmod 600 {path}")
        if path in folders and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return Check("access", "warning", f"others may exchange files in {path} ({mode})", f"chmod go-w {path}")
    return Check("access", "ok", "nobody else may read or change the store")


def _opened(door: Door, settings: host.Settings, answer: dict[str, Any]) -> Iterator[Check]:
    """What the opened store says of itself; one fault when it does not open."""
    try:
        if settings.store.exists():
            host.keyring(settings)
    except LedgerstoneError as error:
        yield Check("key", "fault", error.message, error.hint)
        return
    try:
        # Before it is opened: opening a store that is in order makes its files known.
        answer["remembered"] = known = _remembered(settings)
        with door.memory() as memory:
            answer["store"], answer["bound"] = found, bound = memory.status(), memory.bound()
            meaning = _meaning(settings, memory, answer)
            project, answer["found_by"] = projects.found(memory, bound)
    except LedgerstoneError as error:
        yield Check("store", "fault", error.message, error.hint)
        return
    commits, spaces = shown.count(found["sequence"] + 1, "commit"), shown.count(found["namespaces"], "namespace")
    yield Check("store", "ok", f"{found['store']}: {commits} in its own chain, {spaces}")
    yield _writing(settings, found)
    yield from _waiting(settings)
    yield _log(settings.store, found["log"])
    yield meaning
    yield _anchor(settings, found, known)
    yield _project(settings, project, answer["found_by"])


def _writing(settings: host.Settings, found: Mapping[str, Any]) -> Check:
    if found["writable"]:
        from ledgerstone.keys import to_its_place

        moves = to_its_place(settings.key_file)
        says = f"{found['signer']} signs"
        return Check("key", "ok", says) if moves is None else Check("key", "warning", f"{says}, {_AS_RETIRED}", moves)
    if found["fixed"]:
        hint = f"see to the modes of {settings.store}, or put it where it can be written"
        return Check("key", "warning", "nothing can be written where the store is; it is only read", hint)
    why = "it was asked to" if settings.read_only else f"no key file is at {settings.key_file}"
    return Check("key", "ok" if settings.read_only else "warning", f"the store is only read: {why}")


def _waiting(settings: host.Settings) -> Iterator[Check]:
    from ledgerstone.keys import WAITS, waiting

    follows = waiting(settings.key_file)
    if follows is not None:
        yield Check("key", "ok", WAITS.format(follows))


def _meaning(settings: host.Settings, memory: Memory, answer: dict[str, Any]) -> Check:
    """What a recall looks by beside words, and how much of what is in sight is indexed."""
    why = host.words_alone(settings)
    if why is not None:
        return Check("meaning", "ok", f"a recall looks by words alone: {why.says}", why.hint)
    from ledgerstone.semantic.lane import FRESH

    try:
        found = memory.coverage()
    except UnavailableError as error:
        return Check("meaning", "warning", f"a recall looks by words alone: {error.message}", error.hint)
    answer["semantic"] = {name: value for name, value in found._asdict().items() if value is not None}
    if found.other is not None:
        says = f"the vectors here are of {found.other}, not of {found.model}"
        return Check("meaning", "warning", says, host.OTHER_HINT)
    says = f"{found.model}, {found.texts - found.left:,} of {found.texts:,} texts indexed"
    if found.left <= FRESH:
        return Check("meaning", "ok", f"{says}; a recall encodes up to {FRESH} more itself")
    return Check("meaning", "warning", says, "run: ledgerstone index")


def _log(path: Path, log: Mapping[str, int]) -> Check:
    says = f"{_size(log['bytes'])} in the log beside the store" if log["bytes"] else "no log beside the store"
    if log["unfolded"] < MANY_PAGES:
        return Check("log", "ok", says)
    users = list(_users(path.resolve()))[:MAX_USERS]
    by = f" It is open in {', '.join(users)}." if users else ""
    says += f", of which {log['unfolded']} pages wait to be taken in: somebody has been reading for long.{by}"
    return Check("log", "warning", says, "end or restart what reads; the next write takes the log in")


def _users(path: Path) -> Iterator[str]:
    """Other processes that have a file open, as far as this user may see them, and the system tells."""
    try:
        processes = [each for each in Path("/proc").iterdir() if each.name.isdigit() and each.name != str(os.getpid())]
    except OSError:
        return
    for process in processes:
        try:
            if any(os.readlink(each) == str(path) for each in (process / "fd").iterdir()):  # noqa: PTH115 - no Path
                yield f"process {process.name} ({(process / 'comm').read_text(errors='replace').strip()})"
        except OSError:
            continue


def _anchor(settings: host.Settings, found: Mapping[str, Any], known: Mapping[str, str | None]) -> Check:
    if found["anchor"] == "none":
        says = "nothing outside the store says how far it went, so an older copy would pass for the newest"
        return Check("anchor", "warning", says, "if it is the right one: ledgerstone verify --accept")
    there = next(each for each in (settings.state, *settings.state.parents) if each.exists())
    if not os.access(there, os.W_OK):
        return Check("anchor", "fault", f"nothing can be remembered in {settings.state}", "see to its owner and modes")
    if known["files"] != "as last written":
        says = "the store is the one that was here; another program touched its files, so it was verified in full now"
        return Check("anchor", "ok", says)
    return Check("anchor", "ok", "the store is the one that was here, as last written")


def _project(settings: host.Settings, project: str | None, found_by: str) -> Check:
    if project is not None:
        return Check("project", "ok", f"{project}, by {found_by}" if found_by else project)
    if settings.place is None or found_by.startswith(projects.NEW):
        return Check("project", "ok", found_by)
    says, _, hint = found_by.partition("; run: ")
    return Check("project", "warning", says, f"run: {hint}" if hint else "")


def _diagnosis(answer: Mapping[str, Any], checks: Iterable[Check], width: int | None) -> str:
    found = list(checks)
    wide = max(len(check.name) for check in found)
    versions = answer["versions"]
    parts = [shown.dim(f"ledgerstone {versions['ledgerstone']} · Python {versions['python']} · {versions['system']}")]
    parts.append("\n".join(_line(check, wide, width) for check in found))
    if "settings" in answer:
        rows = [(each["name"], shown.one_line(each["value"]), each["source"]) for each in answer["settings"]]
        if "remembered" in answer:
            rows.append(("remembered in", answer["remembered"]["folder"], ""))
        # The project and whose store it is were shown above.
        bound = ((scope, answer.get("bound", {}).get(scope)) for scope in ("session", "user"))
        rows += [(f"bound {scope}", shown.one_line(str(each)), "") for scope, each in bound if each is not None]
        parts.append(shown.columns(rows))
    counts = {state: sum(check.state == state for check in found) for state in ("fault", "warning")}
    said = [shown.count(count, state) for state, count in counts.items() if count]
    parts.append(", ".join(said) or "all is well")
    return "\n\n".join(parts)


def _line(check: Check, wide: int, width: int | None) -> str:
    from textwrap import wrap

    margin = " " * (len("warning") + 2 + wide + 2)
    # In a pipe nothing is wrapped, and a path stays whole everywhere.
    room = sys.maxsize if width is None else max(width - len(margin), shown.LEAST_WIDTH)
    state = click.style(check.state.ljust(len("warning")), fg=_COLOURS[check.state])
    says, hint = (
        wrap(shown.one_line(text), room, break_on_hyphens=False, break_long_words=False)
        for text in (check.says, check.hint)
    )
    lines = [*says, *(shown.dim(line) for line in hint)]
    return f"{state}  {check.name.ljust(wide)}  " + f"\n{margin}".join(lines)


def _settings(settings: host.Settings) -> list[dict[str, str]]:
    values = {
        "store": str(settings.store),
        "store_on": "anywhere" if settings.anywhere else "local",
        "key_file": str(settings.key_file),
        "public_key": settings.public_key or "none pinned",
        "read_only": "yes" if settings.read_only else "no",
        "principal": settings.principal,
        "session": settings.session or "none",
        "project": settings.project or "by its place",
        "place": str(settings.place) if settings.place is not None else f"none: {settings.no_place}",
        "new_places": "allow" if settings.new_places else "confirm",
        "allow_secrets": ", ".join(settings.allow_secrets) or "none",
        "below_floor_bytes": str(settings.below_floor_bytes),
        "origin": f"{settings.origin.value} (of what comes by MCP)",
        "semantic": settings.semantic,
        "text_bytes": str(settings.limits.text_bytes),
        "recall.bytes": str(settings.budget.bytes),
        "recall.items": str(settings.budget.items),
    }
    return [
        {"name": name, "value": value, "source": settings.won.get(name, "default")} for name, value in values.items()
    ]


def _file(name: str, path: Path) -> dict[str, str]:
    found = _stat(path)
    return {
        "name": name,
        "path": str(path),
        **({} if found is None else {"mode": f"{stat.S_IMODE(found.st_mode):04o}"}),
    }


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _remembered(settings: host.Settings) -> dict[str, str | None]:
    """What this machine remembers of the store outside it: which one, where, and whether the files still look so."""
    from ledgerstone.store.sqlite import mark

    anchors = host.anchors(settings)
    found = "not known"
    if anchors.recorded():
        found = "as last written" if anchors.unchanged(mark(str(settings.store.resolve()))) else "not as last written"
    known = anchors.store()
    anchors.close()
    return {"folder": str(anchors.folder), "store": known, "files": found}


def _size(number: int) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < MOST_SHOWN:
            return f"{number:,} {unit}"
        number //= 1000
    return f"{number:,} TB"
