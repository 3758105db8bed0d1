"""Backups, restoring, exports and imports: how a whole store leaves its place, and how one is put in a place.

Whatever is to stand at a path is made beside it first, verified there, and exchanged in one step for what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Final, Generic, NamedTuple, TypeVar

from ledgerstone import administration, files, forgetting, reaching, transcript, verifying
from ledgerstone.anchors import Anchor, Anchors
from ledgerstone.core import entries, rules
from ledgerstone.core.authority import Caller
from ledgerstone.core.entries import ErasureEntry, ExportEntry, GrantEntry, NamespaceEntry, PartingEntry
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.rendering import count, first
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import Act, Record, Report
from ledgerstone.errors import (
    AuthorityError,
    ConflictError,
    CorruptionError,
    FormatError,
    UnavailableError,
    UsageError,
)
from ledgerstone.following import check_fits
from ledgerstone.identity import Identity
from ledgerstone.ledger import Ledger, UndoneError
from ledgerstone.past import SnapshotFacts
from ledgerstone.reading import Heads, Reading
from ledgerstone.store import alone, copy_store, open_store
from ledgerstone.store.protocol import LAST, Reader, Writer
from ledgerstone.verifying import Gone
from ledgerstone.writing import parts

T = TypeVar("T")

UNRECORDED: Final = "this export is not in the audit trail: the store is open read-only"


class Moved(NamedTuple):
    """A store that was written to a file or put in a place: which one, and how far it goes.

    ``namespaces`` and ``commits`` count what it holds; ``new`` what an import added, by namespace. ``replaced`` is
    where the file that stood there went, ``abandoned`` the heads that were given up, by namespace. ``notices`` say what
    could not be done beside it.
    """

    path: Path
    store: str
    sequence: int
    head: bytes
    namespaces: int
    commits: int
    new: Mapping[str, int] | None = None
    replaced: Path | None = None
    abandoned: Mapping[str, int] | None = None
    notices: tuple[str, ...] = ()


class Exported(NamedTuple, Generic[T]):
    """What leaves a store, piece by piece; ``notices`` say that it could not be put on record that it left."""

    pieces: Iterator[T]
    notices: tuple[str, ...]


class Opening(NamedTuple):
    """What it takes to open a store that is not there yet: see ``Memory.open``."""

    keyring: Keyring
    caller: Caller
    state: Path | None
    clock: Callable[[], int]
    entropy: Callable[[int], bytes]

    def anchors(self, path: Path) -> Anchors | None:
        """What this machine remembers of a path."""
        return None if self.state is None else Anchors(self.state, str(path))

    def ledger(self, path: Path) -> Ledger:
        """The store at a path."""
        store = open_store(path)
        try:
            verifying.renew(store, self.keyring, read_only=False)
        except BaseException:
            store.close()
            raise
        return Ledger(store, self.keyring, self.clock, self.entropy, self.anchors(path))


def backup(ledger: Ledger, caller: Caller, target: Path) -> Moved:
    """See ``Memory.backup``."""
    # Whoever may open the store may copy its file; what this adds is that the copy is whole and proven.
    with ledger.reads(caller):
        pass
    with files.whole(target) as draft:
        ledger.store.copy(draft)
        copied = open_store(draft, read_only=True)
        try:
            with copied.read() as reader:
                return _moved(target, verified(reader, ledger.keyring, "the copy").heads)
        finally:
            copied.close()


def export(ledger: Ledger, caller: Caller, namespace: str | None) -> Exported[bytes]:
    """See ``Memory.export``."""
    notices = _recorded(ledger, caller, namespace)
    return Exported(_lines(ledger, caller, namespace), notices)


def _recorded(ledger: Ledger, caller: Caller, namespace: str | None) -> tuple[str, ...]:
    """Put on record who takes what along, before anything leaves; what is read only says that it cannot."""
    if ledger.keyring.signer is None:
        with ledger.reads(caller) as (reading, identity):
            _may_leave(reading, identity, namespace)
        return (UNRECORDED,)
    with ledger.writes(caller) as block:
        grant = _may_leave(block.reading, block.identity, namespace)
        head = (block.reading.store if namespace is None else block.identity.chain(namespace)).head
        entry = ExportEntry(namespace=namespace, sequence=head.sequence, head=head.id)
        block.store_commit([rules.plain(entry)], grant=grant.grant)
    return () if block.warning is None else (block.warning,)


def _lines(ledger: Ledger, caller: Caller, namespace: str | None) -> Iterator[bytes]:
    with ledger.reads(caller) as (reading, identity):
        _may_leave(reading, identity, namespace)
        verified(reading.reader, ledger.keyring, "the store")
        yield from transcript.lines(reading.reader, namespace)


def records(ledger: Ledger, caller: Caller, namespace: str | None) -> Exported[Record]:
    """See ``Memory.records``."""
    notices = _recorded(ledger, caller, namespace)
    return Exported(_records(ledger, caller, namespace), notices)


def _records(ledger: Ledger, caller: Caller, namespace: str | None) -> Iterator[Record]:
    with ledger.reads(caller) as (reading, identity):
        _may_leave(reading, identity, namespace)
        for row in reading.reader.chains()[1:]:
            place = identity.place(row.namespace)
            if place is None or namespace not in {None, row.namespace}:
                continue
            where = identity.chain(row.namespace)
            reading.counted(where)
            for known in reading.reader.knowns(where.number, 0, LAST):
                if known.current:
                    yield reading.record(where, place.scope, known.position)


def _may_leave(reading: Reading, identity: Identity, namespace: str | None) -> GrantEntry:
    """Whoever is bound to a namespace and may read it may take it along; all else takes admin. The grant for it."""
    for where, place in identity.in_sight():
        allowed = identity.allowed(Act.READ, place)
        if where.namespace == namespace and isinstance(allowed, GrantEntry):
            return allowed
    grant = identity.authorize(Act.ADMIN, identity.store_place)
    if namespace is not None:
        named = identity.place(namespace)
        if named is None or reading.chain(namespace) is None or identity.hides(named.scope):
            raise unknown(namespace)
    return grant


def restore(
    source: Path,
    path: Path,
    opening: Opening,
    *,
    accept: bool,
    discard: bool,
    confirm: Callable[[], None] | None,
) -> Moved:
    """See ``Memory.restore``."""
    if source.resolve() == path:
        raise UsageError(f"{source} is the store itself", hint="name a backup of it")
    with _draft(path, opening) as draft:
        files.make(draft)
        copy_store(source.resolve(), draft)
        _check_own(draft, source)
        return _put(draft, path, opening, accept=accept, discard=discard, confirm=confirm)


def _check_own(draft: Path, source: Path) -> None:
    """Refuse a backup whose copy has another schema than its own, by the backup's name and with what helps there."""
    copied = open_store(draft, check=False)
    try:
        with copied.read() as reader:
            found = reader.shape()
    finally:
        copied.close()
    if found.foreign or found.lost:
        raise CorruptionError(
            f"the schema of {source} is not its own: {', '.join((*found.lost, *found.foreign))}",
            hint=f"nothing was changed; put it right by ledgerstone --store {quote(str(source))} rebuild, "
            "or restore another backup",
        )


def import_lines(given: Iterable[bytes], path: Path, opening: Opening, *, accept: bool, dry_run: bool) -> Moved:
    """See ``Memory.import_lines``."""
    if path.exists():
        ledger = opening.ledger(path)
        try:
            return _merge(given, path, ledger, opening.caller, dry_run=dry_run)
        finally:
            ledger.close()
    with _draft(path, opening) as draft:
        store = open_store(draft, create=True)
        try:
            alone = False
            with store.write() as writer:
                taken = transcript.take(writer, given)
                alone = taken.title.namespace is not None
                _rebuilt(writer, opening.keyring, alone=alone)
            if alone:
                _part(Ledger(store, opening.keyring, opening.clock, opening.entropy, None), opening.caller)
        finally:
            store.close()
        moved = _put(draft, path, opening, accept=accept, dry_run=dry_run)
        return moved._replace(new=taken.commits)


def _merge(given: Iterable[bytes], path: Path, ledger: Ledger, caller: Caller, *, dry_run: bool) -> Moved:
    """Take what is new of an export into the store that is there."""
    with ledger.reads(caller) as (reading, identity):
        identity.authorize(Act.ADMIN, identity.store_place)
    gone = frozenset() if ledger.anchors is None else ledger.anchors.erased(intended=True)
    notices: list[str] = []
    with suppress(UndoneError), ledger.store.write() as writer:
        taken = transcript.take(writer, given, gone)
        if taken.commits:
            _rebuilt(writer, ledger.keyring)
            reading = Reading(writer, ledger.keyring, Heads(), ledger.clock())
            _may_erase(reading, Identity(reading, caller, []), taken.returned)
        if dry_run:
            heads = _heads(writer)
            raise UndoneError
        if taken.struck:
            # Before the commit: whoever dies over it has said so.
            forgetting.remembering(ledger, lambda anchors: anchors.intend(taken.struck))
    if dry_run:
        return _moved(path, heads)._replace(new=taken.commits)
    if taken.struck:
        notices += forgetting.remembering(ledger, lambda anchors: forgetting.erased_now(anchors, taken.struck))
        notices += ledger.scrub()
    if taken.commits:
        ledger.doubt()
    if taken.returned:
        _erase_again(ledger, caller)
    with ledger.reads(caller) as (reading, _):
        heads = _heads(reading.reader)
    return _moved(path, heads)._replace(new=taken.commits, notices=tuple(notices))


def _part(ledger: Ledger, caller: Caller) -> None:
    """Let a store that began as an export of one namespace say what it goes on without: other namespaces, and names.

    What was left out is struck, so that nothing is missing which no erasure explains.
    """
    with ledger.writes(caller) as block:
        reading = block.reading
        reader, store, origin = reading.reader, reading.store, caller.origin
        principal = block.identity.principal or reading.owner
        rows = list(reader.catalog(store.number, "namespace"))
        made = (reading.prove(store, row.position, row.sequence, row.ended_by, row.ending).entry for row in rows)
        absent = [e.namespace for e in made if isinstance(e, NamespaceEntry) and reading.chain(e.namespace) is None]
        for part in parts(absent):
            parting = PartingEntry(without=part)
            block.store_commit([rules.plain(parting)], principal=principal, origin=origin)
        facts = SnapshotFacts(reading, store)
        bodies = reader.entries(store.number, 0, LAST)
        left_out = [entries.digest_of(body) for place, body in bodies if reader.content(store.number, place) is None]
        left_out = [digest for digest in left_out if facts.own(digest) is not None]
        for strikes in parts(left_out):
            erasure = ErasureEntry(strikes=strikes)
            block.store_commit([rules.plain(erasure)], principal=principal, origin=origin)


def _rebuilt(writer: Writer, keyring: Keyring, *, alone: bool = False) -> None:
    """Judge what an import wrote, and derive from it; whatever it raises undoes the import."""
    try:
        verifying.rebuild(writer, keyring, alone=alone)
    except (CorruptionError, UsageError) as error:
        raise CorruptionError(f"the export does not verify: {error.message}", hint="nothing was imported") from error


@contextmanager
def _draft(path: Path, opening: Opening) -> Iterator[Path]:
    """Where a store is made that is to stand at a path; of what is not put there nothing remains."""
    draft = files.beside(path, "new")
    anchors = opening.anchors(draft)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A draft may hold what was erased; whoever was killed over it left it there.
        files.sweep(path, "new")
        yield draft
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror or error}") from error
    finally:
        for each in (draft, *_logs(draft)):
            each.unlink(missing_ok=True)
        if anchors is not None:
            anchors.drop()


def _put(
    draft: Path,
    path: Path,
    opening: Opening,
    *,
    accept: bool,
    discard: bool = False,
    confirm: Callable[[], None] | None = None,
    dry_run: bool = False,
) -> Moved:
    """Prove the store in a draft, let it say what it gives up, erase what was erased here, and put it in its place."""
    ledger, known = opening.ledger(draft), opening.anchors(path)
    present = _present(path)
    try:
        mark = ledger.store.mark()
        with ledger.store.read() as reader:
            report = verified(reader, ledger.keyring, "what is to stand there")
            store = reader.first_chain() or ""
            gone = _abandoned(reader, report, present, known)
        strange = {present.store if present else None, known.store() if known else None} - {None, store}
        if not accept:
            _refuse_loss(path, gone, strange)
        ledger.trust(report.heads, mark)
        if gone:
            with ledger.writes(opening.caller) as block:
                administration.give_up(block, gone)
        before = frozenset() if known is None else known.erased()
        erased = frozenset() if known is None else known.erased(intended=True)
        with ledger.reads(opening.caller) as (reading, identity):
            returned = reaching.returned(reading.reader, erased)
            _may_erase(reading, identity, returned)
        if returned:
            _erase_again(ledger, opening.caller)
        with ledger.store.read() as reader:
            heads = _heads(reader)
        erased_now = frozenset() if ledger.anchors is None else ledger.anchors.erased() - before
    finally:
        ledger.close()
    if dry_run:
        return _moved(path, heads)
    if confirm is not None:
        if path.exists():
            # In use it is refused as well, and nobody is asked for nothing.
            with alone(path):
                pass
        confirm()
    if known is not None:
        known.keep_erased(erased_now)
    replaced = _exchange(draft, path, present, discard=discard)
    if known is not None:
        _remember(opening, path, store, heads)
    abandoned = {name: anchor.sequence for name, anchor in gone.items() if anchor is not None}
    return _moved(path, heads)._replace(replaced=replaced, abandoned=abandoned)


def verified(reader: Reader, keyring: Keyring, what: str) -> Report:
    """A full verification that found nothing; else CorruptionError, and FormatError where there is no store at all."""
    if reader.first_chain() is None:
        raise FormatError(f"{what} holds no store")
    check_fits(reader, keyring)
    report = verifying.verify(reader, keyring)
    if not report.ok:
        raise CorruptionError(f"{what} does not verify: {first(report.findings)}", hint="nothing was changed")
    return report


class _Present(NamedTuple):
    """What stands at a path: which store, and its heads as its rows have them."""

    store: str
    heads: dict[str, tuple[int, bytes]]


def _present(path: Path) -> _Present | None:
    """What stands at a path; None when nothing does, or nothing that can be read."""
    if not path.exists():
        return None
    try:
        # Whatever else is in its schema: the heads are what is to be known.
        store = open_store(path, read_only=True, check=False)
    except (CorruptionError, FormatError):
        return None
    try:
        with store.read() as reader:
            return _rows(reader)
    except CorruptionError:
        return None
    finally:
        store.close()


def _rows(reader: Reader) -> _Present | None:
    store = reader.first_chain()
    return None if store is None else _Present(store, _heads(reader))


def _heads(reader: Reader) -> dict[str, tuple[int, bytes]]:
    return {row.namespace: (row.sequence, row.commit) for row in reader.chains()}


def _abandoned(
    reader: Reader, report: Report, present: _Present | None, known: Anchors | None
) -> dict[str, Anchor | None]:
    """The heads that stand at a path, or were seen there, and that a store to be put there does not contain."""
    store = reader.first_chain()
    gone: dict[str, Anchor | None] = {}
    if known is not None and known.store() in {None, store}:
        gone |= verifying.abandoned(reader, report.heads, known, known.tick())
    if present is not None and present.store == store:
        for name, (sequence, commit) in present.heads.items():
            row = reader.chain(name)
            data = None if row is None or row.sequence < sequence else reader.header(row.number, sequence)
            seen = gone.get(name)
            if (data is None or leaf_hash(data) != commit) and (seen is None or seen.sequence < sequence):
                gone[name] = Anchor(sequence, commit, 0)
    return gone


def _refuse_loss(path: Path, gone: Gone, strange: Iterable[str | None]) -> None:
    """Refuse to give up heads, or another store, without being told so."""
    hint = "to give it up, add --accept; what is given up stays on record, and the file is kept beside the new one"
    for other in strange:
        raise ConflictError(f"{path} is the place of another store, {other}", hint=hint)
    for name, anchor in sorted(gone.items()):
        more = f", nor heads of {count(len(gone) - 1, 'more namespace')}" if len(gone) > 1 else ""
        lost = "the head" if anchor is None else f"commit {anchor.sequence}"
        known = (
            "which was seen here and cannot be read any more" if anchor is None else "which is here or was seen here"
        )
        raise ConflictError(
            f"what is to stand at {path} does not contain {lost} of {name}, {known}{more}",
            hint=hint,
        )


def _may_erase(reading: Reading, identity: Identity, returned: Mapping[str, int]) -> None:
    """Refuse a store that would bring back what was erased here, unless this caller can erase it again."""
    for name, number in returned.items():
        place, act = identity.place(name), Act.FORGET
        if name == reading.store.namespace and Act.FORGET in identity.caller.acts:
            place, act = identity.store_place, Act.ADMIN
        if place is None or not identity.may(act, place) or not reading.signs:
            raise AuthorityError(
                f"{name}: erased on this machine, in it again, and not this caller's to erase: {count(number, 'text')}",
                hint="do it at a terminal, with the signing key and the grant to forget there",
            )


def _erase_again(ledger: Ledger, caller: Caller) -> None:
    for finding in forgetting.again(ledger, caller):
        raise CorruptionError(f"{finding.namespace}: {finding.message}")


def _exchange(draft: Path, path: Path, present: _Present | None, *, discard: bool) -> Path | None:
    """Put a file in its place in one step, while nobody has open what stands there; where that went."""
    files.sync(draft)
    if not path.exists():
        for log in _logs(path):
            # Of a file that is gone; SQLite would take it for the new one's.
            log.unlink(missing_ok=True)
        files.appear(draft, path)
        return None
    with alone(path) as reader:
        if reader is not None and present is not None and _rows(reader) != present:
            raise UnavailableError(f"another process wrote to {path} meanwhile", hint="nothing was changed; try again")
        replaced = None if discard else files.keep(path, "replaced")
        for log in _logs(path):
            # What a damaged file did not take in goes with it.
            if reader is None and replaced is not None and log.exists():
                log.rename(replaced.with_name(replaced.name + log.name.removeprefix(path.name)))
            log.unlink(missing_ok=True)
        draft.replace(path)
    files.sync(path.parent)
    return replaced


def _logs(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))


def _remember(opening: Opening, path: Path, store: str, heads: Mapping[str, tuple[int, bytes]]) -> None:
    """Let this machine expect what was put in the place, and no longer what was there."""
    ledger = opening.ledger(path)
    try:
        warning = ledger.trust(heads, ledger.store.mark(), back=True) or ledger.bind(store)
    finally:
        ledger.close()
    if warning is not None:
        raise UnavailableError(warning, hint="see to the state directory, then run: ledgerstone verify --accept")


def _moved(path: Path, heads: Mapping[str, tuple[int, bytes]]) -> Moved:
    store = next(iter(heads))
    sequence, head = heads[store]
    commits = sum(newest + 1 for newest, _ in heads.values())
    return Moved(path=path, store=store, sequence=sequence, head=head, namespaces=len(heads) - 1, commits=commits)
