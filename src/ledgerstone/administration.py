"""Projects, aliases and grants: what an owner arranges, each act a commit of the store's own chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ledgerstone.block import Block
from ledgerstone.core import canonical, rules
from ledgerstone.core.authority import Caller, Place
from ledgerstone.core.entries import (
    AliasEntry,
    Entry,
    GrantEntry,
    KeyEntry,
    NamespaceEntry,
    RestoreEntry,
    RevokeEntry,
    SettingEntry,
)
from ledgerstone.core.namespaces import choose_remote, normalise_remote, readable, unknown
from ledgerstone.core.projection import alias_lookup
from ledgerstone.core.rendering import first
from ledgerstone.core.rules import Admitted
from ledgerstone.core.signing import COMMIT, Keyring, SigningKey, key_id
from ledgerstone.core.values import (
    ISOLATED,
    MAX_INTEGER,
    MAX_NAME_BYTES,
    Act,
    AliasOf,
    Ending,
    NameOf,
    Report,
    Scope,
)
from ledgerstone.errors import CorruptionError, NamespaceError, NotFoundError, UsageError
from ledgerstone.identity import Identity, Target
from ledgerstone.ledger import Ledger
from ledgerstone.reading import Listing, Reading
from ledgerstone.store.protocol import ChainRow, Row, Writer
from ledgerstone.verifying import Gone
from ledgerstone.writing import parts

# Every entry of a context that comes from a shared namespace says its name, and pays for it.
MAX_SHARED_NAME: Final = 120


def _administer(ledger: Ledger, caller: Caller, make: Callable[[Block], list[Admitted]], *, dry_run: bool) -> None:
    """One commit of the store chain by somebody who may administer."""
    with ledger.writes(caller, dry_run=dry_run) as block:
        block.reading.catalogued()
        grant = block.administer()
        block.store_commit(make(block), grant=grant.grant)


def use_project(ledger: Ledger, caller: Caller, namespace: str | None) -> str:
    """See ``Memory.use_project``."""
    hints = caller.project
    if hints is None or not (hints.inside or hints.paths):
        raise NamespaceError("no directory to bind", hint="run in the project's directory")
    path = (hints.inside or hints.paths)[0]
    with ledger.writes(caller) as block:
        identity = block.identity
        here = identity.by_alias(AliasOf.PATH, path)
        if namespace is None:
            if here:
                raise NamespaceError(
                    f"{readable(path)} belongs to project {here[0]} already",
                    hint="to move it to another: ledgerstone namespaces use ID",
                )
            remote = None if hints.inside else _free_remote(identity, caller)
            place = Place(None, Scope.PROJECT, identity.principal)
            name = remote or path.rpartition("/")[2] or path
            return block.batch(Target(place, "new", name, remote, path)).namespace
        found = identity.place(namespace)
        if found is None or not identity.exists(namespace) or found.scope is not Scope.PROJECT:
            raise unknown(namespace)
        grant = block.authorize(Act.WRITE, found)
        if not hints.inside:
            _check_remote(identity, caller, namespace)
        changes = _taken(block, namespace, path)
        if namespace not in here:
            changes.append(block.alias(namespace, AliasOf.PATH, path))
        if changes:
            block.store_commit(changes, grant=grant.grant)
        return namespace


def _taken(block: Block, namespace: str, path: str) -> list[Admitted]:
    """What takes a path from the other projects in sight, so that it leads to one; DeniedError if one is not ours."""
    identity, ended = block.identity, []
    for proven, name in block.reading.listings("alias", alias_lookup(AliasOf.PATH, path)):
        entry = proven.entry
        if not isinstance(entry, AliasEntry) or (entry.of, name) != (AliasOf.PATH, path):
            continue
        if entry.namespace == namespace or not identity.exists(entry.namespace):
            continue
        place = identity.place(entry.namespace)
        if place is None or place.owner != block.principal:
            block.administer()
        ended.append(rules.plain(RevokeEntry(revokes=proven.digest)))
    return ended


def _remote(identity: Identity, caller: Caller) -> tuple[str | None, tuple[str, ...]]:
    """The place's remote, None when there is none or it is ambiguous, and the projects that have it."""
    try:
        remote = choose_remote(caller.project.remotes) if caller.project is not None else None
    except NamespaceError:
        return None, ()
    return remote, () if remote is None else identity.by_alias(AliasOf.REMOTE, remote)


def _check_remote(identity: Identity, caller: Caller, namespace: str) -> None:
    """NamespaceError where another project has the place's remote, which would be found before its path."""
    remote, known = _remote(identity, caller)
    if remote is not None and len(known) == 1 and known[0] != namespace:
        raise NamespaceError(
            f"{readable(remote)} is project {known[0]}, and a remote comes before a path",
            hint=f"take it from there first: ledgerstone namespaces detach {known[0]} {readable(remote)}",
        )


def _free_remote(identity: Identity, caller: Caller) -> str | None:
    """The place's remote, unless it is ambiguous; NamespaceError when a project has it, which would be found first."""
    remote, known = _remote(identity, caller)
    if remote is not None and known:
        raise NamespaceError(
            f"{readable(remote)} is project {known[0]} already", hint=f"run: ledgerstone namespaces use {known[0]}"
        )
    return remote


def alias(
    ledger: Ledger, caller: Caller, namespace: str, *, remote: str | None, path: str | None, dry_run: bool
) -> None:
    """See ``Memory.alias``."""
    usable = None if remote is None else normalise_remote(remote)
    if remote is not None and usable is None:
        raise UsageError(f"remote: {readable(remote)} has no host; a path is given as a path")
    values = [(of, value) for of, value in ((AliasOf.REMOTE, usable), (AliasOf.PATH, path)) if value is not None]
    if not values:
        raise UsageError("alias: a remote or a path")

    def make(block: Block) -> list[Admitted]:
        if block.identity.place(namespace) is None:
            raise unknown(namespace)
        return [block.alias(namespace, of, value) for of, value in values]

    _administer(ledger, caller, make, dry_run=dry_run)


def detach(ledger: Ledger, caller: Caller, namespace: str, value: str, *, dry_run: bool) -> None:
    """See ``Memory.detach``."""
    values = {value, normalise_remote(value)}

    def make(block: Block) -> list[Admitted]:
        ended = [
            rules.plain(RevokeEntry(revokes=proven.digest))
            for proven, name in _standing(block.reading, "alias")
            if isinstance(proven.entry, AliasEntry) and proven.entry.namespace == namespace and name in values
        ]
        if not ended:
            raise NotFoundError(
                f"no alias {readable(value)} of {readable(namespace)}", hint="those there are: ledgerstone namespaces"
            )
        return ended

    _administer(ledger, caller, make, dry_run=dry_run)


def share(ledger: Ledger, caller: Caller, name: str, *, dry_run: bool) -> str:
    """See ``Memory.share``."""
    canonical.text(name, name="name", least=1, most=MAX_NAME_BYTES)
    seen = _shared_name(name)
    with ledger.writes(caller, dry_run=dry_run) as block:
        block.reading.catalogued()
        admin = block.administer()
        for proven, other in _standing(block.reading, "namespace"):
            shared = isinstance(proven.entry, NamespaceEntry) and proven.entry.scope is Scope.SHARED
            if shared and other is not None and rules.normal_value(other) == seen:
                raise UsageError(
                    f"name: {readable(other)} is there already, and {readable(name)} reads the same",
                    hint="see: ledgerstone namespaces",
                )
        return block.share(name, admin.grant).namespace


def _shared_name(name: str) -> str:
    """A name for a new shared namespace as it is compared; UsageError where an entry that says it could mislead.

    History may hold others, from before.
    """
    if len(name) > MAX_SHARED_NAME:
        raise UsageError(f"name: at most {MAX_SHARED_NAME} characters, not {len(name)}")
    seen = rules.normal_value(name)
    if not seen or not name.isprintable() or rules.UNSEEN.search(name):
        raise UsageError(f"name: of characters that are seen, and plain spaces, not {name!a}")
    if seen in {scope.value for scope in Scope} or seen.startswith("ns_"):
        raise UsageError(
            f"name: none that reads like a scope or the id of a namespace, not {readable(name)}",
            hint="say whose it is, such as 'gardeners'",
        )
    return seen


def isolate(ledger: Ledger, caller: Caller, namespace: str, *, isolated: bool, dry_run: bool) -> None:
    """See ``Memory.isolate``; as it is already, nothing is written."""
    with ledger.writes(caller, dry_run=dry_run) as block:
        identity = block.identity
        block.reading.catalogued()
        admin = block.administer()
        place = identity.place(namespace)
        if place is None:
            raise unknown(namespace)
        if place.scope is not Scope.PROJECT:
            raise UsageError(f"isolate: a project, and {namespace} is of scope {place.scope.value}")
        if identity.isolated(namespace) != isolated:
            made = canonical.identifier("set", ledger.entropy(10))
            entry = SettingEntry(id=made, setting=ISOLATED, value=int(isolated), namespace=namespace)
            block.store_commit([rules.plain(entry)], grant=admin.grant)


def _standing(reading: Reading, noun: str) -> Iterator[Listing]:
    """All entries of the store chain under a noun that nothing ended, each once."""
    seen: set[int] = set()
    for row in reading.reader.catalog(reading.store.number, noun):
        listing = reading.listed(row)
        if listing.proven.ending is Ending.NONE and row.position not in seen:
            seen.add(row.position)
            yield listing


def namespaces(ledger: Ledger, caller: Caller) -> tuple[dict[str, Any], ...]:
    """See ``Memory.namespaces``."""
    with ledger.reads(caller) as (reading, identity):
        reading.catalogued()
        aliases: dict[str, list[str]] = {}
        for proven, name in _standing(reading, "alias"):
            if isinstance(proven.entry, AliasEntry) and name is not None:
                aliases.setdefault(proven.entry.namespace, []).append(name)
        found = []
        for proven, name in _standing(reading, "namespace"):
            entry = proven.entry
            if not isinstance(entry, NamespaceEntry) or not identity.knows(entry.namespace):
                continue
            head = identity.chain(entry.namespace).head
            found.append(
                {
                    "namespace": entry.namespace,
                    "scope": entry.scope.value,
                    "name": name,
                    "aliases": aliases.get(entry.namespace, []),
                    "records": head.counts.records,
                    "current": head.counts.current,
                    "open": head.counts.open,
                    "sequence": head.sequence,
                    "head": head.id.hex(),
                    **({"isolated": True} if identity.isolated(entry.namespace) else {}),
                }
            )
        return tuple(found)


def bound(ledger: Ledger, caller: Caller) -> dict[str, Any]:
    """See ``Memory.bound``."""
    with ledger.reads(caller) as (_, identity):
        answer: dict[str, Any] = {"principal": caller.principal, "known": identity.principal is not None}
        visible, problems = identity.visible(named=False)
        for where, place in visible:
            if place.scope is Scope.SHARED:
                answer.setdefault(Scope.SHARED.value, []).append(where.namespace)
            else:
                answer[place.scope.value] = where.namespace
        if identity.hides(Scope.USER):
            answer[ISOLATED] = True
        return answer | problems


def accept(ledger: Ledger, caller: Caller) -> Report:
    """Take a store without any other fault as it is; that, and which heads are given up, is put on record in it."""

    def admit(block: Block, gone: Gone) -> None:
        give_up(block, gone, unknown=not ledger.anchored)

    return ledger.accept(caller, admit)


def give_up(block: Block, gone: Gone, *, unknown: bool = False) -> None:
    """Put on record which heads are given up, and that an unknown store is taken, by somebody who may administer."""
    grant = block.administer()
    rows = [rules.plain(RestoreEntry(namespace=block.reading.store.namespace))] if unknown and not gone else []
    rows += [
        rules.plain(
            RestoreEntry(namespace=name)
            if anchor is None
            else RestoreEntry(namespace=name, abandoned_sequence=anchor.sequence, abandoned=anchor.commit)
        )
        for name, anchor in sorted(gone.items())
    ]
    for part in parts(rows):
        block.store_commit(part, grant=grant.grant)


def grants(ledger: Ledger, caller: Caller, principal: str | None, *, everyone: bool) -> tuple[dict[str, Any], ...]:
    """See ``Memory.grants``."""
    if everyone and principal is not None:
        raise UsageError("grants: of everyone, or of one principal")
    with ledger.reads(caller) as (reading, identity):
        if everyone or principal not in {None, caller.principal}:
            identity.authorize(Act.ADMIN, identity.store_place)
        if everyone:
            reading.catalogued()
            found: Sequence[Entry] = [each.proven.entry for each in _standing(reading, "grant")]
        else:
            whose = identity if principal is None else Identity(reading, replace(caller, principal=principal), [])
            found = whose.grants
        return tuple(
            {
                "grant": entry.grant,
                "principal": reading.named(entry.principal) or entry.principal,
                "act": entry.act.value,
                "scope": entry.scope.value if entry.scope is not None else None,
                "namespace": entry.namespace,
                "expires": entry.expires,
            }
            for entry in found
            if isinstance(entry, GrantEntry)
        )


def grant(
    ledger: Ledger,
    caller: Caller,
    principal: str,
    act: Act,
    *,
    scope: Scope | None,
    namespace: str | None,
    expires: int | None,
    dry_run: bool,
) -> str:
    """See ``Memory.grant``."""
    if (scope is None) == (namespace is None):
        raise UsageError("grant: a scope or a namespace, one of the two")
    if expires is not None and not ledger.clock() < expires <= MAX_INTEGER:
        raise UsageError(f"expires: a time to come, in microseconds UTC up to {MAX_INTEGER}, not {expires}")
    canonical.text(principal, name="principal", least=1, most=MAX_NAME_BYTES)
    made = canonical.identifier("grt", ledger.entropy(10))

    def make(block: Block) -> list[Admitted]:
        if namespace is not None and block.identity.place(namespace) is None:
            raise unknown(namespace)
        named = Identity(block.reading, replace(caller, principal=principal), []).principal
        admitted = []
        if named is None:
            named, entry = block.name(NameOf.PRINCIPAL, "prn", principal)
            admitted.append(entry)
        new = GrantEntry(grant=made, principal=named, act=act, scope=scope, namespace=namespace, expires=expires)
        return [*admitted, rules.plain(new)]

    _administer(ledger, caller, make, dry_run=dry_run)
    return made


def revoke(ledger: Ledger, caller: Caller, grant_id: str, *, dry_run: bool) -> None:
    """See ``Memory.revoke``."""

    def make(block: Block) -> list[Admitted]:
        for proven, _ in _standing(block.reading, "grant"):
            if isinstance(proven.entry, GrantEntry) and proven.entry.grant == grant_id:
                return [rules.plain(RevokeEntry(revokes=proven.digest))]
        raise NotFoundError(f"no grant {readable(grant_id)}")

    _administer(ledger, caller, make, dry_run=dry_run)


def check_rotation(ledger: Ledger, caller: Caller) -> None:
    """See ``Memory.check_rotation``."""
    with ledger.writes(caller) as block:
        block.administer()


def rotate(ledger: Ledger, caller: Caller, new: SigningKey) -> str:
    """See ``Memory.rotate``."""
    name, successor = key_id(new.public), Keyring(new)
    with ledger.store.read() as reader:
        report, _ = ledger.verified(reader, ledger.tick())
    if not report.ok:
        raise CorruptionError(
            f"the store does not verify, and no new key is to vouch for it: {first(report.findings)}",
            hint="nothing was changed; run: ledgerstone verify",
        )
    try:
        # Held beside the old one before the store says so: the next block finds out which of the two is in force.
        ledger.keyring = ledger.keyring.followed_by(new)
    except ValueError as error:
        raise UsageError(f"rotate: {error}") from None
    with ledger.writes(caller) as block:
        reading, writer = block.reading, block.writer
        reading.catalogued()
        grant = block.administer()
        chains = [reading.chain(row.namespace) for row in writer.chains()[1:]]
        heads = {where.namespace: where.head.id for where in chains if where is not None}
        entry = KeyEntry(key=name, public=new.public, retires=reading.keyring.signer, heads=rules.heads_root(heads))
        rules.check_heads(entry, heads)
        block.store_commit([rules.plain(entry)], grant=grant.grant)
        for row in writer.chains():
            _resign(writer, row, successor)
        # Whatever was proven before was proven by the old key.
        ledger.doubt()
    return name


def _resign(writer: Writer, row: ChainRow, keyring: Keyring) -> None:
    """Sign a head with another key; the signature that its own signer made is kept."""
    if row.sequence not in writer.signatures(row.number):
        writer.transcribe(row.namespace, [Row("signature", row.sequence, row.signature)])
    writer.place_head(row._replace(signature=keyring.sign(COMMIT, row.commit)))


def status(ledger: Ledger, caller: Caller) -> dict[str, Any]:
    """See ``Memory.status``."""
    log = ledger.store.log()
    with ledger.reads(caller) as (reading, _):
        head = reading.store.head
        keys = list(reading.enrolled())
        ended = {one.entry.retires: one.sequence for one in keys if one.entry.retires is not None}
        return {
            "store": reading.store.namespace,
            "owner": reading.named(reading.owner),
            "sequence": head.sequence,
            "head": head.id.hex(),
            "signer": next(iter(reading.keyring.public)),
            "retired": [
                {"key": one.entry.key, "public": one.entry.public.hex(), "sequence": ended[one.entry.key]}
                for one in keys
                if one.entry.key in ended
            ],
            "writable": reading.signs,
            "anchor": "kept" if ledger.anchored else "none",
            "fixed": ledger.store.fixed,
            "log": dict(zip(("bytes", "unfolded"), log, strict=True)),
            "namespaces": len(reading.reader.chains()) - 1,
        }
