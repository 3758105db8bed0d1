"""Memory: one method a verb, each with its promise; what a verb is made of stands in the module of its name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from ledgerstone import (
    administration,
    auditing,
    beginning,
    checking,
    compacting,
    forgetting,
    getting,
    moving,
    pages,
    recalling,
    receipts,
    remembering,
    verifying,
    volumes,
)
from ledgerstone.anchors import Anchors
from ledgerstone.core.authority import Caller
from ledgerstone.core.signing import Keyring, SigningKey
from ledgerstone.core.sorts import checked
from ledgerstone.core.values import (
    Act,
    Budget,
    Condensable,
    Draft,
    Event,
    Finding,
    Forgotten,
    Mode,
    Page,
    Policy,
    Recall,
    Record,
    Remembered,
    Report,
    Retention,
    Scope,
)
from ledgerstone.errors import LedgerstoneError, UsageError
from ledgerstone.ledger import Ledger
from ledgerstone.moving import Exported, Moved
from ledgerstone.receipts import Explained
from ledgerstone.semantic import Coverage, Indexed, Scorer
from ledgerstone.semantic import Lane as SemanticLane
from ledgerstone.semantic import coverage as semantic_coverage
from ledgerstone.semantic import index as semantic_index
from ledgerstone.store import open_store
from ledgerstone.verifying import UNWATCHED, Watch

DEFAULT: Final = Budget()
POLICY: Final = Policy()


def _now() -> int:
    return time.time_ns() // 1000


@checked
class Memory:
    """A store as one caller sees it. Every method is one transaction; none of them trusts what it reads.

    ``Memory.open`` gives one; ``bind`` gives another for another caller of the same store. May be shared by
    threads, not by forked processes. Used in a ``with`` block it closes the store at the end.
    """

    __slots__ = ("_lane", "_ledger", "caller")

    def __init__(self, ledger: Ledger, caller: Caller, lane: SemanticLane | None = None) -> None:
        self._ledger = ledger
        self._lane = lane
        self.caller = caller

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        keys: Keyring,
        caller: Caller,
        state: str | Path | None,
        create: bool = False,
        check: bool = True,
        read_only: bool = False,
        anywhere: bool = False,
        semantic: SemanticLane | None = None,
        clock: Callable[[], int] = _now,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Memory:
        """Open the store in a file; with ``create`` make it when there is none, and its owner the caller.

        ``state`` is a directory outside the store where this machine remembers which store is at the path, its newest
        heads and how its files looked: with it, a store that was cut, rolled back, exchanged or edited by another
        program is refused. None says that nothing is to be remembered: then edits of derived rows are found by
        ``verify``, and not always by a read. ``check=False`` looks at nothing yet, for ``verify`` and
        ``rebuild`` of a store that is refused. With ``read_only`` nothing is written, whatever the keys; public ones
        suffice, and the file may stand on a medium that cannot be written; there it is opened so in any case, and every
        answer says so.

        A place where SQLite loses files (a network file system, a folder that another program synchronises) is refused
        with StoreError, unless the store is only read there, or ``anywhere`` says that it may stand there.

        ``semantic`` is an encoder at work, such as ``Lane(static_table)``; nothing of it is loaded before it is used.

        ``clock`` gives microseconds UTC, ``entropy`` that many random bytes. Raises UnavailableError when there is
        no store, FormatError for a foreign or newer file, CorruptionError when what it holds fails its proof.
        """
        if create and read_only:
            raise UsageError("a store is not made read-only")
        where, folder = _place(path, anywhere=anywhere or read_only), _folder(state)
        anchors = None if folder is None else Anchors(folder, str(where))
        if anchors is not None:
            anchors.check_path(where)
        store = open_store(where, create=create, read_only=read_only, watched=anchors is not None, check=check)
        if read_only or store.fixed:
            keys = Keyring(pins=tuple(keys.public.values()))
        memory = cls(Ledger(store, keys, clock, entropy, anchors), caller, semantic)
        try:
            if create:
                beginning.begin(memory._ledger, caller)
            if check:
                verifying.renew(store, keys, read_only=read_only)
                memory._check()
                forgetting.recover(memory._ledger)
        except BaseException:
            memory._ledger.close()
            raise
        return memory

    @property
    def signer(self) -> str | None:
        """The id of the key that signs what is written here; None when nothing can be."""
        return self._ledger.keyring.signer

    def _check(self) -> None:
        """What opening proves: the store's own head, its anchor and fence."""
        with self._ledger.reads(self.caller):
            pass

    def bind(self, caller: Caller) -> Memory:
        """The same store for another caller."""
        return Memory(self._ledger, caller, self._lane)

    def close(self) -> None:
        """Write the refusals that were noted, and give the store back."""
        try:
            self._ledger.flush(self.caller)
        finally:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What went wrong in the block is told, not that the refusals could not be written for the same reason.
        with suppress(LedgerstoneError) if kind is not None else nullcontext():
            self.close()

    def remember(
        self,
        draft: Draft | str,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
        receipt: str | None = None,
        similar: bool = False,
    ) -> Remembered:
        """Commit one memory durably and return it as committed.

        A text alone is a note. Raises RuleError when a rule is broken, ConflictError when what it replaces is no
        longer current or the idempotency key came with other content, NamespaceError when no project is resolved,
        AuthorityError without a grant. Nothing is half-done.

        What looks like a credential is refused by the rule ``secret``, which names what sort it is and where it stands.
        ``allow_secrets`` lets sorts pass by these names, as the caller's own do; the record's entry says which did.
        With ``similar`` the answer names up to three records of the same namespace that stand and say the same, or
        share 60 % of their words with it: advice, on which nothing acts.

        ``receipt`` cites the receipt of the context that it was made under: the commit then carries its hash. When a
        record of that context was ended since by a commit that does not cite it too, that is a ConflictError; when its
        bytes or signature do not hold, a CorruptionError.
        """
        return remembering.remember(
            self._ledger,
            self.caller,
            (draft,),
            scope=scope,
            namespace=namespace,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
            receipt=receipt,
            similar=similar,
        )[0]

    def remember_many(
        self,
        drafts: Sequence[Draft | str],
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
        receipt: str | None = None,
        similar: bool = False,
    ) -> tuple[Remembered, ...]:
        """Commit several memories in one commit: all of them or none. At most ``caller.limits.drafts``."""
        return remembering.remember(
            self._ledger,
            self.caller,
            drafts,
            scope=scope,
            namespace=namespace,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
            receipt=receipt,
            similar=similar,
        )

    def compact(
        self,
        summary: str,
        covers: str | Sequence[str],
        *,
        sources: Sequence[str] = (),
        key: str | None = None,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
    ) -> Remembered:
        """Commit a summary that stands for what it ``covers``, in the namespace where that is; as ``remember``.

        At most 32 addresses, current ones and no open tasks, whose texts together are longer than the summary. It may
        cover summaries, up to 8 levels. What is covered leaves the recent lane and the words of the summary take its
        place; its address and precise words still lead to it. When anything below is superseded, retracted or erased,
        the summary is stale. ``sources`` are what it rests on besides, and does not cover.
        """
        return compacting.compact(
            self._ledger,
            self.caller,
            summary,
            covers,
            sources=sources,
            key=key,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
        )

    def compaction_candidates(
        self,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        before: int | None = None,
        limit: int = 8,
    ) -> tuple[Condensable, ...]:
        """Groups of records that a summary could cover, those with the most bytes first; nothing is written.

        They are current episodes and notes without a key and without an expiry, covered by no summary, trusted enough
        to be covered, and of one source, else one session. ``before`` (microseconds UTC) keeps to what was said before
        a time; without it the newest 64 records of each namespace are left out. Of each namespace in sight, or of the
        one that is named, the 4,096 oldest that fit are looked at. The same store gives the same answer.
        """
        with self._ledger.reads(self.caller) as (reading, identity):
            return compacting.candidates(
                reading, identity, scope=scope, namespace=namespace, before=before, limit=limit
            )

    def promote(
        self,
        target: str,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
    ) -> Remembered:
        """Copy a current record to a wider scope, as a memory of its own there; the first stays where it is.

        Takes a grant to promote there, which no other act includes. The copy says the same under the same key, names by
        digest what it came from (``Record.promoted``), and is trusted no more than that, nor than whoever promotes it.
        Under a key that is held there it is the next version, or contested. Where a copy of this very version stands
        already, trusted no less, that is the answer (``repeated``), and nothing is written. From then on each goes its
        own way, except that whoever erases the first erases its copies. A summary and an open task are not promoted
        (RuleError); what no longer stands is a ConflictError.
        """
        return remembering.promote(
            self._ledger,
            self.caller,
            target,
            scope=scope,
            namespace=namespace,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
        )

    def get(self, target: str) -> Record:
        """One record by memory id (its newest version), address or digest, exactly as it was given.

        Looks in the namespaces this caller is bound to and may read; what is not there, and what the caller may
        not know of, is the same NotFoundError.
        """
        with self._ledger.reads(self.caller) as (reading, identity):
            return getting.noticed(getting.get(reading, identity, target), self._ledger.notices())

    def get_many(self, targets: Sequence[str]) -> tuple[Record | None, ...]:
        """Several records of one snapshot, in the order asked; None for what is not there. At most 32."""
        with self._ledger.reads(self.caller) as (reading, identity):
            found = getting.several(reading, identity, targets)
            notices = self._ledger.notices()
        return tuple(None if record is None else getting.noticed(record, notices) for record in found)

    def history(self, memory: str) -> tuple[Record, ...]:
        """All versions of a memory, oldest first, each with its standing."""
        with self._ledger.reads(self.caller) as (reading, identity):
            versions, notices = getting.history(reading, identity, memory), self._ledger.notices()
        return tuple(getting.noticed(version, notices) for version in versions)

    def close_task(
        self,
        target: str,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
        receipt: str | None = None,
    ) -> Remembered:
        """Close an open task; its text stays as it was, its next version says closed.

        ``receipt`` as in ``remember``, and ``allow_secrets`` too, but that no entry says what passed in a reason.
        """
        return remembering.end(
            self._ledger,
            self.caller,
            target,
            "close",
            reason=reason,
            reject=False,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
            receipt=receipt,
        )

    def retract(
        self,
        target: str,
        *,
        reason: str,
        reject: bool = False,
        idempotency_key: str | None = None,
        allow_secrets: Sequence[str] = (),
        receipt: str | None = None,
    ) -> Remembered:
        """Withdraw a memory: it leaves recall, history keeps it.

        With ``reject`` its value is remembered as wrong: said again under the same key it is held, and not current.
        What has the origin user is never held. ``allow_secrets`` and ``receipt`` as in ``close_task``.
        """
        return remembering.end(
            self._ledger,
            self.caller,
            target,
            "retract",
            reason=reason,
            reject=reject,
            idempotency_key=idempotency_key,
            allow_secrets=allow_secrets,
            receipt=receipt,
        )

    def forget(
        self,
        targets: str | Sequence[str],
        *,
        reason: str | None = None,
        keep: Sequence[str] = (),
        allow_secrets: Sequence[str] = (),
        dry_run: bool = True,
    ) -> Forgotten:
        """Erase texts for good. As a dry run, which is the default, only say what would go.

        A target is a memory with all its versions, one version by address or digest, or ``key:NAME``, the memories
        with that key; and, wherever this caller may erase and no isolation hides it, ``session:NAME``,
        ``principal:NAME`` (what was said so), ``write:KEY`` (what was written under an idempotency key) or
        ``namespace:ID`` (all of it). At most 256.

        For real, contents and salts are gone from database, log and index, together with the summaries that cover
        them, unless their addresses are in ``keep``; an erasure entry proves that something was there, and the chain
        still verifies. Takes the grant to forget, and a host that lets its caller; where the host does not, a dry run
        says what would go elsewhere, of what the caller may read. Raises NotFoundError when a target is nothing here.
        ``allow_secrets`` as in ``close_task``.
        """
        wanted = (targets,) if isinstance(targets, str) else tuple(targets)
        # What passes here is written by a block that asks its caller.
        caller = replace(self.caller, allow_secrets=(*self.caller.allow_secrets, *allow_secrets))
        return forgetting.forget(self._ledger, caller, wanted, reason=reason, keep=keep, dry_run=dry_run)

    def expire(
        self,
        *,
        retention: Retention | None = None,
        before: int | None = None,
        keep: Sequence[str] = (),
        dry_run: bool = True,
    ) -> Forgotten:
        """Erase, wherever this caller may, the texts whose own expiry has passed; see ``forget`` for how.

        With a ``retention`` (working, session or short_term) instead those of that retention that were said
        ``before`` a time (microseconds UTC), unless they have an expiry of their own or are open tasks. Nothing ever
        expires by itself: it leaves recall, and stays until this is called.
        """
        return forgetting.expire(
            self._ledger, self.caller, retention=retention, before=before, keep=keep, dry_run=dry_run
        )

    def recall(
        self,
        query: str = "",
        *,
        mode: Mode | None = None,
        policy: Policy = POLICY,
        budget: Budget = DEFAULT,
        count: Callable[[str], int] | None = None,
        semantic_scorer: Scorer | None = None,
        receipt: bool = False,
        heads: bool = False,
    ) -> Recall:
        """A context for a query within a budget: every open task, then the lanes of the mode, taking turns.

        Only what is current, unexpired and at or above the caller's trust floor, unless the ``policy`` asks for
        history or for a past state; ``mode`` alone is short for a policy with that mode. Nothing is cut, and what was
        left out is counted by reason. Balanced looks for words, for related words when those find little, for
        procedures and what is due, and for what is new; hybrid always looks for related words, semantic for nothing
        else. Lexical and recent are baselines without the tasks. What lies below the floor comes apart, within the
        ``below_floor_bytes`` that the caller is given. ``count`` says what a text costs of ``budget.tokens``, which are
        estimated without it. ``semantic_scorer`` has a say in the order of the best that a namespace gives; one that
        fails costs a notice. Raises CapacityError when the open tasks alone do not fit.

        With ``receipt`` signed evidence of what was chosen is kept in the store: see ``explain``. With ``heads`` the
        budget pays for ``Recall.heads`` too, for whoever sends them along.
        """
        asked = policy if mode is None else replace(policy, mode=mode)
        recalling.check(query, asked, budget)
        unkept = receipts.unkept(query, asked, self.caller.allow_secrets) if receipt else ()
        with self._ledger.reads(self.caller) as (reading, identity):
            context = recalling.assemble(
                reading,
                identity,
                query,
                asked,
                budget,
                semantic=self._lane,
                scorer=semantic_scorer,
                count=count,
                said=(*self._ledger.notices(), *unkept),
                headed=heads,
            )
            at = reading.now
        if not receipt:
            return context
        return receipts.keep(self._ledger, self.caller, context, asked, at, worded=not unkept)

    def explain(self, receipt: str) -> Explained:
        """What one recall was asked, chose, and left out, by its receipt, whose hash and signature hold.

        The newest 10,000 receipts of a store are kept. Only their own principal may see them; NotFoundError else.
        """
        with self._ledger.reads(self.caller) as (reading, identity):
            return receipts.explain(reading, identity, self._ledger.keyring, receipt)

    def receipts(self, limit: int = 20) -> tuple[Explained, ...]:
        """The caller's newest receipts, without their entries. At most 100. CorruptionError if one was altered."""
        with self._ledger.reads(self.caller) as (reading, identity):
            return receipts.listed(reading, identity, self._ledger.keyring, limit)

    def drop_receipts(self, names: Sequence[str] = ()) -> int:
        """Take these receipts of the caller's out of the store, or all without names; how many that were.

        Their queries are gone with them. A write that cited one goes on naming its hash.
        """
        return receipts.drop(self._ledger, self.caller, names)

    def list_records(self, what: str = "recent", *, cursor: str | None = None, limit: int = 20) -> Page:
        """A page of what this caller may see, most specific namespace first, newest first within each.

        ``what``: tasks (open ones), recent (what stands) or all (every version, with its standing), each without what
        lies below the caller's trust floor, which is counted; or below_floor, what stands there alone, which is for a
        person to look at and no tool's to ask for. ``cursor`` continues a page. At most 100 a page.
        """
        with self._ledger.reads(self.caller) as (reading, identity):
            page = pages.page(reading, identity, what, cursor=cursor, limit=limit)
        return replace(page, notices=page.notices + self._ledger.notices())

    def audit(self, *, target: str | None = None, limit: int = 50, before: int | None = None) -> tuple[Event, ...]:
        """The newest events of what this caller may read, and its own refusals, newest first.

        ``target`` keeps to one memory; ``before`` continues before a time (microseconds UTC). The chain is walked from
        the signed head, so that an event is proven by its links.
        """
        self._ledger.flush(self.caller)
        with self._ledger.reads(self.caller) as (reading, identity):
            return auditing.trail(reading, identity, target=target, limit=limit, before=before)

    def checkpoint(self, namespace: str | None = None) -> tuple[str, ...]:
        """A signed note for the head of every chain that this caller may know of, the store's own first; or of one.

        Kept elsewhere, it lets ``verify`` find a store that was rolled back or forked. Other programs read it too:
        it is a checkpoint as c2sp.org/tlog-checkpoint has them. Raises StoreError without a signing key.
        """
        from ledgerstone import proving  # noqa: PLC0415

        return proving.checkpoints(self._ledger, self.caller, namespace)

    def prove(self, target: str, *, text: bool = True) -> bytes:
        """All it takes to prove a record to a stranger, in one file: see ``verify_proof`` and ``docs/proofs.md``.

        By memory id (its newest version), address or digest. The proof shows the record as it stands at the newest
        head, and stays valid. Without ``text`` it holds nothing that was erasable: no text, key, source or reason.
        """
        from ledgerstone import proving  # noqa: PLC0415

        with self._ledger.reads(self.caller) as (reading, identity):
            record = getting.get(reading, identity, target)
            where, _, position = getting.find(reading, identity, record.address)
            return proving.prove(reading, where, position, reading.keyring, text=text)

    def verify(
        self,
        *,
        full: bool = False,
        accept: bool = False,
        expected: bytes | str | None = None,
        progress: Callable[[int, int], None] | None = None,
        found: Callable[[Finding], None] | None = None,
    ) -> Report:
        """Replay commits under the rules that admitted them and compare whatever is derived: all faults at once.

        Those since the last time that a verification of this store succeeded on this machine, and of the older ones
        a sample drawn by chance; all of them with ``full``, and whenever that does not suffice: the first time, when
        another program touched the files, when anything is wrong. The report says which of the two was done, and why.

        ``progress`` is told how many commits are done and of how many, ``found`` each finding as soon as it is made.

        With ``accept`` a store that is behind or beside what was seen here, or of which nothing is known here, and that
        has no other fault, is taken as it is from now on; that, and the heads that it abandons, is put on record in
        the store chain. What was erased here and came back with an older copy is erased again; what the caller may not
        erase is a finding. Takes admin.

        ``expected`` is what was kept elsewhere and must be contained in the store: the id of a head, or checkpoints as
        text. Raises CorruptionError for checkpoints that no trusted key signed.
        """
        watch = Watch(progress or UNWATCHED.progress, found or UNWATCHED.found)
        return checking.verify(self._ledger, self.caller, full=full, accept=accept, expected=expected, watch=watch)

    def rebuild(self) -> Report:
        """Replay every chain and write its derived rows anew; no head moves.

        Whatever is in the file's schema and not of a store (views, triggers, tables, statistics) is taken out.
        Raises CorruptionError, and changes nothing, when canonical history is damaged. What was written is verified
        before anything is read again.
        """
        return checking.rebuild(self._ledger)

    def index_vectors(self, limit: int | None = None) -> Indexed:
        """Encode what is not indexed yet of the namespaces in sight, at most ``limit`` texts; says what is left.

        No head moves, and no write waits for it but for the moment in which a batch is kept. Vectors of another model
        are replaced. UsageError without an encoder, UnavailableError when it fails.
        """
        return semantic_index(self._ledger, self.caller, self._semantic(), limit)

    def coverage(self) -> Coverage:
        """How many texts of the namespaces in sight are not indexed yet, and by which model; as ``index_vectors``."""
        return semantic_coverage(self._ledger, self.caller, self._semantic())

    def _semantic(self) -> SemanticLane:
        if self._lane is None:
            raise UsageError("no encoder: this store was opened without one", hint="Memory.open(semantic=...)")
        return self._lane

    def backup(self, path: str | Path) -> Moved:
        """Copy the whole store, as of now, into a new file of mode 0600, and verify the copy in full.

        The store goes on meanwhile. The key is not in it. Raises UsageError when the file is there already.
        """
        return moving.backup(self._ledger, self.caller, _path("path", path))

    @classmethod
    def restore(
        cls,
        backup: str | Path,
        path: str | Path,
        *,
        keys: Keyring,
        caller: Caller,
        state: str | Path | None = None,
        accept: bool = False,
        discard: bool = False,
        anywhere: bool = False,
        confirm: Callable[[], None] | None = None,
        clock: Callable[[], int] = _now,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Moved:
        """Put a backup in the place of a store, once it was verified in full; nobody may have that open.

        ConflictError when the store there, or what this machine remembers of it, has commits that the backup lacks:
        with ``accept``, which takes admin, they are given up, and stay on record in the store chain. What was erased
        on this machine is erased again before anybody sees it. The file that stood there is kept beside it, unless
        ``discard``. ``confirm`` is called once all that was judged; when it raises, everything is as it was.
        """
        where = _place(path, anywhere=anywhere)
        opening = moving.Opening(keys, caller, _folder(state), clock, entropy)
        return moving.restore(_path("backup", backup), where, opening, accept=accept, discard=discard, confirm=confirm)

    def export(self, namespace: str | None = None) -> Exported[bytes]:
        """All canonical bytes of the store as lines of JSON, once it was verified; of one namespace, what it rests on.

        Takes admin, or for a namespace that this caller is bound to, read. A stranger can verify them by the public
        key alone (``docs/backup.md``). Erased texts are not in it. First it is put on record who takes what along; a
        store that is open read-only says in ``notices`` that it cannot.
        """
        return moving.export(self._ledger, self.caller, namespace)

    @classmethod
    def import_lines(
        cls,
        lines: Iterable[bytes],
        path: str | Path,
        *,
        keys: Keyring,
        caller: Caller,
        state: str | Path | None = None,
        accept: bool = False,
        dry_run: bool = False,
        anywhere: bool = False,
        clock: Callable[[], int] = _now,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Moved:
        """Make a store of an export, the same in every id and head, or add to the same store what it lacks.

        Everything is verified before any of it shows; a public key suffices for that. An export of one namespace makes
        a store of its own, which takes the signing key: it says what it goes on without. What is here already changes
        nothing. A store that went on otherwise is a ConflictError. What was erased on this machine does not come
        back. Adding takes admin; for ``accept`` see ``restore``. With ``dry_run`` all is judged, and no store made
        or changed.
        """
        where = _place(path, anywhere=anywhere)
        opening = moving.Opening(keys, caller, _folder(state), clock, entropy)
        return moving.import_lines(lines, where, opening, accept=accept, dry_run=dry_run)

    def records(self, namespace: str | None = None) -> Exported[Record]:
        """Every current record, of the whole store or of one namespace, oldest first, each proven. As ``export``."""
        return moving.records(self._ledger, self.caller, namespace)

    def use_project(self, namespace: str | None = None) -> str:
        """Bind the caller's place to a project: a known one by its id, or a new one. Returns the id.

        The place is the directory inside a repository where the caller stands, else the repository's root, else
        the directory itself. Its remote is added as evidence when nobody else has it. A known project takes the place
        from any other that it led to, which takes admin unless the caller made that one. NamespaceError when a place
        that belongs to a project is to be made a new one, and when another project has its remote, which comes first.
        """
        return administration.use_project(self._ledger, self.caller, namespace)

    def alias(
        self, namespace: str, *, remote: str | None = None, path: str | None = None, dry_run: bool = False
    ) -> None:
        """Let a remote or a path suggest a project from now on. Takes admin.

        With ``dry_run``, here and in the acts that follow, whatever would be refused is refused, and nothing is done:
        to know it before somebody is asked.
        """
        administration.alias(self._ledger, self.caller, namespace, remote=remote, path=path, dry_run=dry_run)

    def detach(self, namespace: str, value: str, *, dry_run: bool = False) -> None:
        """End every alias of a project that has this remote or path as its value. Takes admin."""
        administration.detach(self._ledger, self.caller, namespace, value, dry_run=dry_run)

    def share(self, name: str, *, dry_run: bool = False) -> str:
        """Make a shared namespace, reached by grants on it alone; returns its id. Takes admin.

        Its maker may read, write and forget there; others by ``grant(..., namespace=...)``. Whoever may read it finds
        it in every recall, after what is its own. The name has up to 120 characters, all seen; none that reads like a
        scope or an id, or differs from that of another only by case, width or spacing.
        """
        return administration.share(self._ledger, self.caller, name, dry_run=dry_run)

    def isolate(self, namespace: str, *, isolated: bool = True, dry_run: bool = False) -> None:
        """Let a project keep to itself: where it is bound, no read shows user, global or shared. Takes admin.

        Whoever asks, and whatever is granted. What is written to those by name is written there.
        """
        administration.isolate(self._ledger, self.caller, namespace, isolated=isolated, dry_run=dry_run)

    def namespaces(self) -> tuple[dict[str, Any], ...]:
        """Every namespace this caller may read or write, with its scope, name, aliases, head and totals."""
        return administration.namespaces(self._ledger, self.caller)

    def bound(self) -> dict[str, Any]:
        """Where this caller's reads and default writes go, by scope, without making anything."""
        return administration.bound(self._ledger, self.caller)

    def grants(self, principal: str | None = None, *, everyone: bool = False) -> tuple[dict[str, Any], ...]:
        """The standing grants of a principal (the caller without a name) or of everyone; others' take admin."""
        return administration.grants(self._ledger, self.caller, principal, everyone=everyone)

    def grant(
        self,
        principal: str,
        act: Act,
        *,
        scope: Scope | None = None,
        namespace: str | None = None,
        expires: int | None = None,
        dry_run: bool = False,
    ) -> str:
        """Let a principal act on its namespaces of a scope, or on one namespace, until a time; returns the grant's id.

        Takes admin. ``expires`` is microseconds UTC.
        """
        return administration.grant(
            self._ledger,
            self.caller,
            principal,
            act,
            scope=scope,
            namespace=namespace,
            expires=expires,
            dry_run=dry_run,
        )

    def revoke(self, grant: str, *, dry_run: bool = False) -> None:
        """End a grant; what was done under it stands. Takes admin."""
        administration.revoke(self._ledger, self.caller, grant, dry_run=dry_run)

    def rotate(self, new: SigningKey) -> str:
        """Hand the store over to a new key, which signs whatever follows; returns its id. Takes admin.

        The store is verified first. The entry that says so is signed by the old key, which is believed nowhere after
        it; its last signature of every chain is kept. Whoever trusts the old key alone is led to the new one by that
        entry. The new key brings the old one's secret, else UsageError. Keep it before: a store whose key is lost can
        be read, and never written again.
        """
        return administration.rotate(self._ledger, self.caller, new)

    def check_rotation(self) -> None:
        """Refuse whoever may not rotate, as ``rotate`` does, before a key is made for it."""
        administration.check_rotation(self._ledger, self.caller)

    def status(self) -> dict[str, Any]:
        """What a doctor wants to know of the opened store: owner, head, keys, anchor, log and number of namespaces."""
        return administration.status(self._ledger, self.caller)


def _place(path: str | Path, *, anywhere: bool) -> Path:
    """Where a store is to be put; a place that would lose it is refused."""
    where = _path("path", path).resolve()
    if not anywhere:
        volumes.check(where)
    return where


def _path(name: str, given: str | Path) -> Path:
    """A path that a file system can have, whatever stands there; UsageError else."""
    try:
        Path(given).stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "U+0000 or a lone surrogate in it"
        raise UsageError(f"{name}: a path, not {str(given)[:64]!a}: {why}") from None
    return Path(given)


def _folder(state: str | Path | None) -> Path | None:
    """The directory in which this machine is to remember what is put in place, if it is to; UsageError for a file."""
    where = None if state is None else _path("state", state)
    if where is not None and where.is_file():
        raise UsageError(f"state: a directory, and {where} is a file")
    return where
