"""Who is asking and which namespaces are meant, as the store chain proves it: resolution, then authority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ledgerstone.core import canonical
from ledgerstone.core.authority import Caller, Denial, Place, authorize
from ledgerstone.core.entries import AliasEntry, GrantEntry, NameEntry, NamespaceEntry, SettingEntry
from ledgerstone.core.namespaces import (
    NEW_HINT,
    Match,
    ProjectHints,
    choose_remote,
    readable,
    resolve,
    unknown,
    unresolved,
)
from ledgerstone.core.projection import PARTED, SCOPED, alias_lookup, name_lookup, scoped_lookup, setting_lookup
from ledgerstone.core.values import ISOLATED, Act, AliasOf, Ending, NameOf, Refusal, Scope
from ledgerstone.errors import CorruptionError, LedgerstoneError, NamespaceError, NotFoundError, UsageError
from ledgerstone.reading import Chain, Reading

# Most specific first: the order in which reads look and in which equals are shown.
VISIBLE_SCOPES: Final = (Scope.SESSION, Scope.PROJECT, Scope.USER, Scope.GLOBAL)
# What an isolated project does not see.
WIDER: Final = frozenset({Scope.USER, Scope.GLOBAL, Scope.SHARED})
DEFAULT_NAME: Final = "default"
SESSION_HINT: Final = (
    "name a scope, or run in a project; a session is its host's to name, or: ledgerstone --session NAME"
)


# Chains in sight, each as authority sees it, the most specific first.
Visible = list[tuple[Chain, Place]]


class DeniedError(Exception):
    """A denial on its way out of a block, so that it can be noted when nothing is held any more."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(denial.reason.value)
        self.denial = denial


class Target(NamedTuple):
    """A namespace that hints led to, and by which rule; ``namespace`` is None while it is yet to be made."""

    place: Place
    binding: str | None
    name: str
    remote: str | None = None
    path: str | None = None


class Identity:
    """One caller within one snapshot. Nothing here is taken from arguments of a tool."""

    __slots__ = ("_granted", "caller", "denials", "principal", "reading")

    def __init__(self, reading: Reading, caller: Caller, denials: list[Denial]) -> None:
        self.reading = reading
        self.caller = caller
        self.principal = self._id_of(NameOf.PRINCIPAL, caller.principal)
        self._granted: tuple[GrantEntry, ...] | None = None
        # Reads that are passed over in silence, for the audit trail.
        self.denials = denials

    def _id_of(self, of: NameOf, name: str, owner: str | None = None) -> str | None:
        # A row only leads here; what counts is that the entry's own content is this name.
        for proven, found in self.reading.listings("name", name_lookup(of, name, owner)):
            entry = proven.entry
            if isinstance(entry, NameEntry) and (entry.of, entry.owner, found) == (of, owner, name):
                return entry.id
        return None

    @property
    def session_id(self) -> str | None:
        """The id of the caller's session, once something was written in it."""
        if self.caller.session is None or self.principal is None:
            return None
        return self._id_of(NameOf.SESSION, self.caller.session, self.principal)

    @property
    def host_id(self) -> str | None:
        """The id of the caller's host, once something was written through it."""
        return None if self.caller.host is None else self._id_of(NameOf.HOST, self.caller.host)

    @property
    def grants(self) -> tuple[GrantEntry, ...]:
        """The caller's grants that stand."""
        if self._granted is None and self.principal is not None:
            known = self.reading.resolved
            self._granted = known.get(self.principal)
            if self._granted is None:
                self._granted = known[self.principal] = self.grants_of(self.principal)
        return self._granted or ()

    def grants_of(self, principal: str) -> tuple[GrantEntry, ...]:
        """The standing grants of a principal."""
        entries = (proven.entry for proven, _ in self.reading.listings("grant", principal))
        return tuple(e for e in entries if isinstance(e, GrantEntry) and e.principal == principal)

    def allowed(self, act: Act, place: Place, at: int | None = None) -> GrantEntry | Refusal:
        """The grant that allows an act at a place and a time (now, unless said otherwise), or why there is none."""
        return authorize(
            act,
            place,
            principal=self.principal,
            grants=self.grants,
            host_acts=self.caller.acts,
            now=self.reading.now if at is None else at,
        )

    def may(self, act: Act, place: Place) -> bool:
        """Whether an act is allowed at a place now."""
        return isinstance(self.allowed(act, place), GrantEntry)

    def authorize(self, act: Act, place: Place, at: int | None = None) -> GrantEntry:
        """The grant that allows an act at a place and a time; DeniedError without one."""
        grant = self.allowed(act, place, at)
        if isinstance(grant, Refusal):
            raise DeniedError(Denial(act, grant, place, self.principal))
        return grant

    @property
    def store_place(self) -> Place:
        """The store's own chain as authority sees it."""
        return Place(self.reading.store.namespace, Scope.STORE, None)

    def namespace(self, namespace: str) -> NamespaceEntry | None:
        """The entry that made a namespace, or None; also for one that this store goes on without."""
        if self.reading.listings(PARTED, namespace):
            return None
        for proven, _ in self.reading.listings("namespace", namespace):
            if isinstance(proven.entry, NamespaceEntry) and proven.entry.namespace == namespace:
                return proven.entry
        return None

    def place(self, namespace: str) -> Place | None:
        """A namespace as authority sees it."""
        entry = self.namespace(namespace)
        return None if entry is None else Place(namespace, entry.scope, entry.owner)

    def exists(self, namespace_id: str) -> bool:
        """A namespace exists for whoever may act in it; for all others it does not."""
        place = self.place(namespace_id)
        return place is not None and any(self.may(act, place) for act in (Act.READ, Act.WRITE))

    def by_alias(self, kind: AliasOf, value: str) -> tuple[str, ...]:
        """The namespaces that an alias suggests, of those that exist for this caller."""
        found = []
        for proven, name in self.reading.listings("alias", alias_lookup(kind, value)):
            entry = proven.entry
            if isinstance(entry, AliasEntry) and (entry.of, name) == (kind, value):
                found.append(entry.namespace)
        return tuple(name for name in dict.fromkeys(found) if self.exists(name))

    def known_by(self, namespace_id: str) -> tuple[str, ...]:
        """The remotes and paths that suggest a namespace, for whoever it exists for."""
        if not self.knows(namespace_id):
            return ()
        found = {}
        for row in self.reading.reader.catalog(self.reading.store.number, "alias"):
            proven, name = self.reading.listed(row)
            entry = proven.entry
            if proven.ending is Ending.NONE and isinstance(entry, AliasEntry) and entry.namespace == namespace_id:
                found[proven.position] = name
        return tuple(name for name in found.values() if name is not None)

    def scoped(self, scope: Scope, owner: str | None, name: str) -> str | None:
        """The namespace of a scope, an owner and a name."""
        for proven, found in self.reading.listings(SCOPED, scoped_lookup(scope, owner, name)):
            entry = proven.entry
            if isinstance(entry, NamespaceEntry) and (entry.scope, entry.owner, found) == (scope, owner, name):
                return entry.namespace
        return None

    def _lasting(self) -> bool:
        """True when none of the caller's grants can run out: what they let it see then changes by commits alone."""
        return all(grant.expires is None for grant in self.grants)

    def target(self, scope: Scope | None, namespace: str | None = None) -> Target:
        """Resolve where a caller means, without making anything. Authority is asked separately.

        ``namespace`` is an id that the host passes on; it must exist for this caller. Without a scope: the
        project when the host gave any hint of one, else the session; never anything wider. Raises NamespaceError
        when the hints do not lead to exactly one place, and NotFoundError, whatever the scope, for a project that the
        host named outright and that is not there for this caller.
        """
        hints = self.caller.project
        if hints is not None and (hints.explicit, hints.binding) != (None, None):
            self._project()
        return self._target(scope, namespace)

    def _target(self, scope: Scope | None, namespace: str | None = None) -> Target:
        if namespace is not None:
            entry = self.namespace(namespace) if self.exists(namespace) else None
            if entry is None or scope not in {None, entry.scope}:
                raise unknown(namespace)
            return Target(Place(namespace, entry.scope, entry.owner), "explicit", DEFAULT_NAME)
        if scope is None:
            scope = Scope.SESSION if self.caller.project is None else Scope.PROJECT
        if scope is Scope.PROJECT:
            return self._project()
        if scope is Scope.SESSION:
            if self.caller.session is None:
                raise NamespaceError("no session is bound", hint=SESSION_HINT)
            name, owner = self.caller.session, self.principal
        elif scope is Scope.USER:
            name, owner = DEFAULT_NAME, self.principal
        elif scope is Scope.GLOBAL:
            name, owner = DEFAULT_NAME, None
        else:
            raise NamespaceError(f"scope {scope.value} takes the id of a namespace")
        return Target(Place(self.scoped(scope, owner, name), scope, owner), None, name)

    def _project(self) -> Target:
        known = self.reading.resolved.get(self.caller)
        if known is None:
            known = self._resolve()
            if known.place.namespace is not None and self._lasting():
                self.reading.resolved[self.caller] = known
        found: Target = known
        return found

    def _resolve(self) -> Target:
        hints = self.caller.project
        if hints is None:
            raise NamespaceError("no project is bound", hint=NEW_HINT)
        root = hints.paths[0] if hints.paths else None
        match = resolve(hints, self)
        if match is None:
            remote = choose_remote(hints.remotes)
            if remote is None:
                raise unresolved(hints)
            # Nobody has seen this remote: whoever may create makes it a project by writing to it.
            self.reading.catalogued()
            return Target(Place(None, Scope.PROJECT, self.principal), "new", remote, remote, root)
        self._confirm(match, hints, root)
        place = self.place(match.namespace)
        if place is None or place.scope is not Scope.PROJECT:
            raise unknown(match.namespace)
        return Target(place, match.by, DEFAULT_NAME)

    def _confirm(self, match: Match, hints: ProjectHints, root: str | None) -> None:
        """A known remote at a place where it was not seen before is confirmed once: a copy could claim it."""
        if match.by != "remote" or root is None or self.caller.new_places:
            return
        if match.namespace not in self.by_alias(AliasOf.PATH, root):
            remote = choose_remote(hints.remotes) or ""
            raise NamespaceError(
                f"{readable(remote)} is a known project, but not yet at {readable(root)}",
                hint=f"if this checkout is yours, run there: ledgerstone namespaces use {match.namespace}",
                confirms=match.namespace,
            )

    def isolated(self, namespace: str) -> bool:
        """Whether a project keeps to itself, by the newest of its settings."""
        found = [
            (proven.position, proven.entry.value)
            for proven, _ in self.reading.listings("setting", setting_lookup(ISOLATED, namespace))
            if isinstance(proven.entry, SettingEntry)
            and (proven.entry.setting, proven.entry.namespace) == (ISOLATED, namespace)
        ]
        if not found:
            # That it was never set is believed once the rows were counted.
            self.reading.catalogued()
        return bool(found) and max(found)[1] == 1

    def hides(self, scope: Scope) -> bool:
        """Whether the project that this caller is bound to is isolated from a scope."""
        if scope not in WIDER or self.caller.project is None:
            return False
        try:
            project = self._project().place.namespace
        except CorruptionError:
            raise
        except LedgerstoneError:
            return False
        return project is not None and self.isolated(project)

    def sees(self, place: Place) -> bool:
        """Whether an answer may show what stands at a place that this caller wrote to."""
        return not self.hides(place.scope) and self.may(Act.READ, place)

    def hidden(self, namespace: str) -> bool:
        """Whether isolation hides a namespace: then no answer names it."""
        place = self.place(namespace)
        return place is not None and self.hides(place.scope)

    def knows(self, namespace: str) -> bool:
        """Whether an answer may tell of a namespace by its id: it exists for this caller, and no isolation hides it."""
        return self.exists(namespace) and not self.hidden(namespace)

    def _shared(self) -> list[Place]:
        """The shared namespaces that a grant to read names, each once, in the order of the grants."""
        named = dict.fromkeys(grant.namespace for grant in self.grants if grant.act is Act.READ)
        places = [self.place(namespace) for namespace in named if namespace is not None]
        return [place for place in places if place is not None and place.scope is Scope.SHARED]

    def visible(self, *, named: bool = True) -> tuple[Visible, dict[str, str]]:
        """The chains that this caller is bound to and may read, most specific first, and what was unresolved.

        Shared namespaces come last. An isolated project hides what is wider than itself, whoever asks. The second part
        says, for a scope that hints failed to resolve, what to do about it. NotFoundError for a project that the host
        named outright and that is not there for this caller; without ``named`` that is unresolved as well.
        """
        found: Visible = []
        problems: dict[str, str] = {}
        for scope in VISIBLE_SCOPES:
            if scope is Scope.PROJECT and self.caller.project is None:
                continue
            if scope is Scope.SESSION and self.caller.session is None:
                continue
            try:
                target = self._target(scope)
            except CorruptionError:
                raise
            except LedgerstoneError as error:
                if named and isinstance(error, NotFoundError):
                    raise
                problems[scope.value] = f"unresolved: {error.message}; {error.hint}"
                continue
            if target.place.namespace is None:
                if scope is Scope.PROJECT:
                    problems[scope.value] = "new: nothing was remembered here yet"
                continue
            self._see(target.place, found)
            if scope is Scope.PROJECT and self.isolated(target.place.namespace):
                return found, problems
        for place in self._shared():
            self._see(place, found)
        return found, problems

    def in_sight(self) -> Visible:
        """The chains of ``visible`` alone."""
        return self.visible()[0]

    def _see(self, place: Place, found: Visible) -> None:
        """Add a namespace to what is visible, or note that it is denied."""
        allowed = self.allowed(Act.READ, place)
        if place.namespace is not None and isinstance(allowed, GrantEntry):
            found.append((self.chain(place.namespace), place))
        elif isinstance(allowed, Refusal):
            self.denials.append(Denial(Act.READ, allowed, place, self.principal))

    def passed_over(self, act: Act) -> None:
        """Somebody named an id that exists outside what this caller is bound to."""
        self.denials.append(Denial(act, Refusal.UNBOUND, Place(None, Scope.STORE, None), self.principal))

    def chain(self, namespace: str) -> Chain:
        """The proven chain of a namespace that the store chain says was made."""
        where = self.reading.chain(namespace)
        if where is None:
            raise CorruptionError(f"{namespace}: the store chain knows it, but its chain is missing")
        return where


def problem_notices(problems: Mapping[str, str]) -> list[str]:
    """What an answer says of the scopes that no hint resolved."""
    return [f"{scope}: {problem}" for scope, problem in problems.items()]


def parse_target(text: str) -> tuple[str, int | None] | bytes:
    """What a caller gets by: a memory id, an address, or a digest of 64 hex characters."""
    if len(text) == 2 * 32 and all(c in "0123456789abcdef" for c in text):
        return bytes.fromhex(text)
    if text.startswith("key:"):
        raise UsageError(
            f"{text[:40]!r}: one memory is named by its id, address or digest, not by its key",
            hint="find its address: ledgerstone list --key NAME",
        )
    return canonical.parse_address(text)
