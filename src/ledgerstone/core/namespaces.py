"""Which namespace a caller means: hints in, exactly one namespace or an error out."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote, unquote_to_bytes

from ledgerstone.core.values import MAX_NAME_BYTES, AliasOf
from ledgerstone.errors import NamespaceError, NotFoundError

NEW_HINT: Final = "run: ledgerstone namespaces use --new"
CHOOSE_HINT: Final = "run: ledgerstone namespaces use ID, with the id of one of them"
ORIGIN_HINT: Final = f"name one of them origin, or {NEW_HINT}"

MAX_LISTED: Final = 8
# Of a project that the host named outright.
NAMED_HINT: Final = "it was named as the project; those there are: ledgerstone namespaces"
# By how many of its remotes and paths a choice is shown.
MAX_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class ProjectHints:
    """What suggests a project; entrypoints gather it, ``resolve`` weighs it.

    ``remotes`` are (name, raw url) and may hold credentials, so they are never shown. ``inside`` are the
    directories strictly inside the repository and ``paths`` its root and what encloses it, both nearest
    first and as every worktree spells them alike. ``reason`` says why a place gave no usable remote.
    """

    explicit: str | None = None
    binding: str | None = None
    remotes: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    paths: tuple[str, ...] = ()
    reason: str | None = None
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The one namespace that the hints mean, and by which rule: explicit, binding, remote or alias."""

    namespace: str
    by: str


class Namespaces(Protocol):
    """What resolution needs to know of a store, limited to what this caller may know of."""

    def exists(self, namespace_id: str) -> bool:
        """Say whether the namespace is there, and not hidden from this caller."""

    def by_alias(self, kind: AliasOf, value: str) -> tuple[str, ...]:
        """Name the distinct namespaces that this remote or path is an alias of."""

    def known_by(self, namespace_id: str) -> tuple[str, ...]:
        """List the remotes and paths that are aliases of a namespace."""


def resolve(hints: ProjectHints, facts: Namespaces) -> Match | None:
    """Find exactly one namespace, by the first rule that applies, and never guess; None when nothing fits.

    The order: explicit id, the host's binding, an alias of a directory inside the repository (an explicit
    act, and narrower than its remote), the remote, an alias of the repository's root or of what encloses
    it. An alias of the root also settles what the remotes leave open. Raises NotFoundError for an id that
    does not exist, as for one that is hidden, and NamespaceError when several namespaces fit.
    """
    for by, namespace in (("explicit", hints.explicit), ("binding", hints.binding)):
        if namespace is not None:
            if not facts.exists(namespace):
                raise unknown(namespace, hint=NAMED_HINT)
            return Match(namespace, by)
    return _by_path(hints.inside, facts) or _by_remote(hints, facts) or _by_path(hints.paths, facts)


def choose_remote(remotes: Sequence[tuple[str, str]]) -> str | None:
    """Return the normalised ``origin``, else the sole remote, else None; path remotes count as none.

    Raises NamespaceError, listing the choices, when several remotes differ and none is ``origin``.
    """
    usable = {name: remote for name, url in remotes if (remote := normalise_remote(url)) is not None}
    if "origin" in usable:
        return usable["origin"]
    if len(set(usable.values())) > 1:
        choices = _listed([f"{readable(name)} ({remote})" for name, remote in usable.items()])
        raise NamespaceError(f"several remotes and none is origin: {choices}", hint=ORIGIN_HINT)
    return next(iter(usable.values()), None)


def normalise_remote(url: str) -> str | None:
    """Give every spelling of one remote the same ``host/path``, free of credentials; None if it has no host.

    Read are ssh, git, http and https URLs and ``user@host:path``. Scheme, user, query, fragment, the
    default ports, ``.git`` and surplus slashes go; the host becomes lower case; the path keeps its case and
    is escaped in one way only. Put behind any of the schemes, a result gives itself again. User names go as
    well, so two users' ``~/repo`` on one host are the same remote here. ``file:`` URLs, local paths and
    whatever cannot be parsed are None. Sources: git-clone "GIT URLS"; RFC 3986, section 6.2.2.
    """
    if not url.isprintable():
        return None
    if parts := _URL.fullmatch(url):
        host = _host(parts["authority"].rpartition("@")[2]) if parts["scheme"].lower() in _SCHEMES else None
    elif parts := _SCP_LIKE.fullmatch(url):
        host = _scp_host(parts["user"], parts["host"], parts["path"])
    else:
        return None
    path = _path(parts["path"])
    if host is None or path is None or len(host) + 1 + len(path) > MAX_NAME_BYTES:
        return None
    return f"{host}/{path}"


def unknown(namespace_id: str, *, hint: str = "") -> NotFoundError:
    """Make the one refusal for a namespace that is absent, or that this caller may not know of."""
    return NotFoundError(f"no namespace {readable(namespace_id)}", hint=hint)


def readable(text: str) -> str:
    """Escape what could disturb a terminal or a log in text that came from elsewhere."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _by_path(paths: Sequence[str], facts: Namespaces) -> Match | None:
    for path in paths:
        if namespace := _by_alias(AliasOf.PATH, path, facts):
            return Match(namespace, "alias")
    return None


def _by_remote(hints: ProjectHints, facts: Namespaces) -> Match | None:
    try:
        remote = choose_remote(hints.remotes)
        namespace = None if remote is None else _by_alias(AliasOf.REMOTE, remote, facts)
    except NamespaceError:
        # Without this the hint "namespaces use" would not help: it can only bind the root's path.
        settled = _by_path(hints.paths[:1], facts)
        if settled is None:
            raise
        return settled
    return None if namespace is None else Match(namespace, "remote")


def _by_alias(kind: AliasOf, value: str, facts: Namespaces) -> str | None:
    namespaces = facts.by_alias(kind, value)
    if len(namespaces) > 1:
        choices = _listed([_choice(each, value, facts) for each in namespaces[: MAX_LISTED + 1]], len(namespaces))
        raise NamespaceError(f"several projects fit the {kind} {readable(value)}: {choices}", hint=CHOOSE_HINT)
    return namespaces[0] if namespaces else None


def unresolved(hints: ProjectHints) -> NamespaceError:
    """Make the error that says why nothing fits, and what to do about it."""
    remote = choose_remote(hints.remotes)
    known = "no project is known by any hint" if remote is None else f"no project is known by {remote}"
    return NamespaceError(hints.reason or known, hint=NEW_HINT)


def _choice(namespace: str, value: str, facts: Namespaces) -> str:
    """A namespace with what else it is known by than what it shares with the others."""
    others = [readable(name) for name in facts.known_by(namespace) if name != value]
    known = ", ".join(others[:MAX_NAMES]) + (", ..." if len(others) > MAX_NAMES else "")
    return f"{namespace} ({known or 'by nothing else'})"


def _listed(choices: Sequence[str], count: int | None = None) -> str:
    more = (len(choices) if count is None else count) - MAX_LISTED
    return ", ".join(choices[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


_SCHEMES = frozenset({"ssh", "git+ssh", "ssh+git", "git", "http", "https"})
_DEFAULT_PORTS = frozenset({22, 80, 443, 9418})
_MAX_PORT = 65535

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?:[?#].*)?",
)
# A second colon would be a remote helper (ext::...), two slashes a URL of no known kind.
_SCP_LIKE = re.compile(
    r"(?:(?P<user>[^/:\[]*)@)?(?P<host>\[[^\]/]*\]|[^/:@\[]+):(?!:|//)(?P<path>[^?#]+)(?:[?#].*)?",
)
_HOST = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\.?)"
    r"(?::(?P<port>[0-9]{0,5}))?",
)


def _scp_host(user: str | None, host: str, path: str) -> str | None:
    """Read the host of ``user@host:path``; in brackets it is an IPv6 address or carries a port."""
    if user is None:
        # C:\repo is a path, file:x and https:/x are botched URLs, and user:password@host:x would leak.
        no_host = len(host) == 1 or host.lower() in {*_SCHEMES, "file"} or "@" in path
        if no_host:
            return None
    return _host(host) or _host(host.strip("[]").rpartition("@")[2])


def _host(text: str) -> str | None:
    parts = _HOST.fullmatch(text)
    if parts is None:
        return None
    name = parts["name"].lower() if parts["v6"] is None else _address(parts["v6"])
    port = int(parts["port"] or 22)
    if name is None or not 0 < port <= _MAX_PORT:
        return None
    return name if port in _DEFAULT_PORTS else f"{name}:{port}"


def _address(text: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    # Python 3.13 began to print mapped addresses differently; an alias must outlive that.
    return f"[{address}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)


def _path(text: str | None) -> str | None:
    raw = unquote_to_bytes(text or "")
    end = len(raw)
    while raw.endswith((b"/", b".git"), 0, end):
        end -= 1 if raw.endswith(b"/", 0, end) else len(b".git")
    segments = [segment for segment in raw[:end].split(b"/") if segment]
    if not segments or not {b".", b".."}.isdisjoint(segments):
        return None
    return quote(b"/".join(segments), safe="/!$&'()*+,;=:")
