"""What a working directory says about its project, by git's own files, read without git; and what came of it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgerstone.core.namespaces import ProjectHints, choose_remote, normalise_remote, readable
from ledgerstone.core.values import Scope
from ledgerstone.errors import LedgerstoneError, NamespaceError

if TYPE_CHECKING:
    from ledgerstone.memory import Memory

# How the library says that a project is made by the first write to it.
NEW: Final = "new:"
MAX_GIT_FILE_BYTES: Final = 1 << 20

REPAIR_HINT: Final = "repair it, or name the project by its id"


def discover(cwd: Path, home: Path) -> ProjectHints:
    """Gather the hints of a working directory, from the nearest repository below home and ``/``.

    Linked worktrees give the hints of the repository they belong to, a submodule its own; directories
    above a repository count up to the next repository. A bare repository counts only outside every other
    one, since inside it could be tracked files. Neither git, nor its environment, nor any tracked file is
    consulted. Git data that cannot be read or parsed is a NamespaceError that names the file. A linked
    worktree of a submodule shares that submodule's remote, but not its path.
    """
    here = _real(cwd)
    home = Path(os.path.realpath(home))
    above = _upward(here, home)
    if not above:
        place = "home directory" if here == home else "root of the file system"
        return ProjectHints(reason=f"the working directory is the {place}")
    repository = _repository(above)
    if repository is None:
        return ProjectHints(paths=_texts(above), reason=f"no repository at {_shown(here)} or above")
    remotes = read_remotes(repository.common / "config")
    has_remote = any(normalise_remote(url) for _, url in remotes)
    root = repository.root
    inside = above[: above.index(repository.top)]
    enclosing = takewhile(lambda place: not _present(place / ".git"), _upward(root, home)[1:])
    return ProjectHints(
        remotes=remotes,
        paths=_texts([root, *enclosing]),
        reason=None if has_remote else f"the repository {_shown(root)} has no remote with a host",
        inside=_texts(root / place.relative_to(repository.top) for place in inside),
    )


def read_remotes(config: Path) -> tuple[tuple[str, str], ...]:
    """Read each remote's first url from a git config file, as written: ``insteadOf`` does not apply."""
    urls: dict[str, str] = {}
    for section, key, value in _entries(config):
        kind, _, name = section.partition(".")
        if kind == "remote" and key == "url":
            if value is None:
                raise NamespaceError(f"{_shown(config)} gives a remote no url", hint=REPAIR_HINT)
            urls.setdefault(name, value)
    return tuple(urls.items())


@dataclass(frozen=True, slots=True)
class _Repository:
    """A checkout's top level, the git directory its worktrees share, and the root that names them all."""

    top: Path
    common: Path
    root: Path


def _repository(above: tuple[Path, ...]) -> _Repository | None:
    for top in above:
        if _present(top / ".git"):
            git = _git_directory(top)
            common = _common_directory(git)
            return _Repository(top, common, _root(common) if _linked(top, git, common) else top)
    return next((_Repository(place, place, place) for place in above if _is_bare(place)), None)


def _upward(start: Path, home: Path) -> tuple[Path, ...]:
    """List a directory and those around it, nearest first, short of home and of the file system's root."""
    return tuple(takewhile(lambda place: place not in (home, place.parent), (start, *start.parents)))


def _git_directory(top: Path) -> Path:
    """Follow ``.git``: a directory, or a file that names one (worktree, submodule, separate directory)."""
    entry = top / ".git"
    real = _real(entry)
    if real.is_dir():
        return real
    text = _read(entry)
    if not text.startswith("gitdir: "):
        raise NamespaceError(f"{_shown(entry)} is neither a git directory nor names one", hint=REPAIR_HINT)
    return _target(entry, text.removeprefix("gitdir: "))


def _common_directory(git: Path) -> Path:
    """Find what all worktrees of a repository share: its config and objects."""
    pointer = git / "commondir"
    return _target(pointer, _read(pointer)) if _present(pointer) else git


def _linked(top: Path, git: Path, common: Path) -> bool:
    """Say whether the repository itself lists this worktree.

    A ``.git`` file alone proves nothing: one that came in an archive could point at any repository.
    """
    back = git / "gitdir"
    if git.parent != common / "worktrees" or not _present(back):
        return False
    return os.path.realpath(git / _read(back).rstrip("\r\n")) == str(top / ".git")


def _root(common: Path) -> Path:
    """Name a repository by the directory whose ``.git`` it is, else, being bare, by itself."""
    owner = common.parent
    return owner if _present(owner / ".git") and _git_directory(owner) == common else common


def _is_bare(place: Path) -> bool:
    # A directory named .git belongs to its parent; only home's is met here, and that does not count.
    return place.name != ".git" and all(_present(place / name) for name in _BARE)


_BARE: Final = ("HEAD", "config", "objects", "refs")

_VALUE: Final = r"""(?: [^\n"\\#;] | \\(?:[tbn\\"\n]|\Z) | "(?:[^\n"\\]|\\[tbn\\"\n])*" )*"""
_ITEM: Final = re.compile(
    rf"""
      (?P<blank> [ \t\r\n]+ | [\#;][^\n]* )
    | \[ (?P<section>[A-Za-z0-9.-]*) (?: [ \t\r]+ "(?P<name>(?:[^\n"\\]|\\[^\n])*)" )? \]
    | (?P<key>[A-Za-z][A-Za-z0-9-]*) [ \t]* (?: = (?P<value>{_VALUE}) (?:[\#;][^\n]*)? )? (?:\n|\Z)
    """,
    re.VERBOSE,
)
_PIECE: Final = re.compile(
    r"""(?P<blank>[ \t\r]+) | "(?P<quoted>(?:[^"\\]|\\.)*)" | (?:[^ \t\r"\\]|\\.?)+""",
    re.VERBOSE | re.DOTALL,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "\n": ""}


def _entries(config: Path) -> Iterator[tuple[str, str, str | None]]:
    """Yield (section, key, value) of a git config file, strictly. Source: git-config, "Syntax"."""
    text = _read(config).removeprefix("\ufeff").replace("\r\n", "\n")
    section, at = "", 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            line = text.count("\n", 0, at) + 1
            raise NamespaceError(f"{_shown(config)} is malformed at line {line}", hint=REPAIR_HINT)
        if item["section"] is not None:
            section = item["section"].lower()
            if item["name"] is not None:
                section += "." + re.sub(r"\\(.)", r"\1", item["name"])
        elif item["key"] is not None:
            value = item["value"]
            yield section, item["key"].lower(), None if value is None else _plain(value)
        at = item.end()


def _plain(raw: str) -> str:
    """Undo quotes and escapes; unquoted blanks count only between other characters."""
    value = blanks = ""
    for piece in _PIECE.finditer(raw):
        if piece["blank"] is not None:
            blanks += piece["blank"] if value else ""
        else:
            text = piece[0] if piece["quoted"] is None else piece["quoted"]
            value += blanks + _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)
            blanks = ""
    return value


def _present(path: Path) -> bool:
    """Say whether something is there; not being allowed to look is an error, not an absence."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from error
    return True


def _read(path: Path) -> str:
    try:
        # Checked before it is opened: a pipe in its place would never answer.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_GIT_FILE_BYTES:
            raise NamespaceError(
                f"{_shown(path)} is not a file of at most {MAX_GIT_FILE_BYTES} bytes", hint=REPAIR_HINT
            )
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    if b"\0" in data:
        raise NamespaceError(f"{_shown(path)} is malformed: it holds a zero byte", hint=REPAIR_HINT)
    return os.fsdecode(data)


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise _unreadable(path, error) from error


def _target(pointer: Path, text: str) -> Path:
    """Follow a path written in one of git's files, relative to the directory of that file."""
    written = text.rstrip("\r\n")
    try:
        return Path(os.path.realpath(pointer.parent / written, strict=True))
    except OSError as error:
        raise NamespaceError(
            f"{_shown(pointer)} points to {readable(written)}, which cannot be reached", hint=REPAIR_HINT
        ) from error


def _unreadable(path: Path, error: OSError) -> NamespaceError:
    return NamespaceError(f"cannot read {_shown(path)}: {error.strerror}", hint=REPAIR_HINT)


def _texts(paths: Iterable[Path]) -> tuple[str, ...]:
    """Keep the paths that are valid Unicode, as the ledger requires; others cannot be aliased."""
    return tuple(text for path in paths if not _SURROGATE.search(text := str(path)))


def _shown(path: Path) -> str:
    return readable(str(path))


def found(memory: Memory, bound: Mapping[str, Any]) -> tuple[str | None, str]:
    """The project that is bound, and by which rule it was found; or None, and why."""
    project = bound.get(Scope.PROJECT.value)
    known = {each["namespace"]: each["aliases"] for each in memory.namespaces()}
    if project is None:
        return None, "no place to speak of: work in a project's directory"
    if project not in known:
        return None, str(project)
    hints = memory.caller.project
    return str(project), "" if hints is None else _rule(hints, known[project])


def _rule(hints: ProjectHints, aliases: Iterable[str]) -> str:
    """Which hint led to a project that has these aliases, in the order in which hints are weighed."""
    known = set(aliases)
    if hints.explicit or hints.binding:
        return "named outright"
    inside = next((f"path {path}" for path in hints.inside if path in known), None)
    if inside is not None:
        return inside
    try:
        remote = choose_remote(hints.remotes)
    except LedgerstoneError:
        remote = None
    if remote in known:
        return f"remote {remote}"
    return next((f"path {path}" for path in hints.paths if path in known), "")
