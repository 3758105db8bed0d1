"""An opened store as all its callers share it: what was proven and seen of it, its blocks, refusals not yet written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from ledgerstone import resuming, verifying
from ledgerstone.anchors import Anchors, abandons
from ledgerstone.block import Block
from ledgerstone.core import rules
from ledgerstone.core.authority import Caller, Denial
from ledgerstone.core.rendering import first
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import Finding, Origin, Report
from ledgerstone.errors import (
    CorruptionError,
    LedgerstoneError,
    StoreError,
    UnavailableError,
    UsageError,
)
from ledgerstone.following import check_fits
from ledgerstone.identity import DeniedError, Identity
from ledgerstone.reading import Anchored, Heads, Reading
from ledgerstone.refusals import Refusals, refused
from ledgerstone.store.protocol import Reader, Store, Writer
from ledgerstone.verifying import UNWATCHED, Gone, Watch
from ledgerstone.writing import parts

# How long another process may take from its COMMIT to having recorded how the files look: 40 times 5 ms.
RECORDING_TRIES: Final = 40
RECORDING_SECONDS: Final = 0.005
# What an answer says when nothing outside the store vouches for it.
_UNANCHORED: Final = "anchor: none, so an older copy of this store would pass; {}"
_FIXED: Final = "read-only: nothing can be written where this store is"
RETIRED_HINT: Final = (
    "start this program again if the key was rotated meanwhile; else name the new key file by LEDGERSTONE_KEY_FILE"
)
READ_ONLY_HINT: Final = "name the key file by LEDGERSTONE_KEY_FILE; a key is never made for an existing store"


class UndoneError(Exception):
    """The end of a block that was only to be judged."""


class Ledger:
    """What every caller of one opened store shares: the store, the keys, proven heads, refusals not yet written.

    Refusals are counted in memory and written with the next ``flush``; a process that dies before loses at most
    those counts.
    """

    __slots__ = (
        "_bound",
        "_edits",
        "_formed",
        "_mark",
        "_refusals",
        "_signed",
        "anchors",
        "clock",
        "entropy",
        "heads",
        "keyring",
        "store",
        "unkept",
    )

    def __init__(
        self,
        store: Store,
        keyring: Keyring,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        anchors: Anchors | None,
    ) -> None:
        self.store = store
        self.anchors = anchors
        self._bound = False
        self._formed = False
        self._edits: int | None = None
        self._mark: bytes | None = None
        self.keyring = keyring
        self._signed = keyring.signer is not None
        self.clock = clock
        self.entropy = entropy
        self.heads = Heads()
        # What could not be remembered of erasures, in words: each answer says it.
        self.unkept: tuple[str, ...] = ()
        self._refusals = Refusals()

    @property
    def anchored(self) -> bool:
        """Whether this machine knows which store is here: it made it, put it here, or its owner accepted it."""
        if not self._bound and self.anchors is not None:
            self._bound = self.anchors.store() is not None
        return self._bound

    def notices(self) -> tuple[str, ...]:
        """What every answer of this store has to say of it."""
        always = (*self.unkept, *((_FIXED,) if self.store.fixed else ()))
        try:
            if self.anchored:
                return always
        except UnavailableError as error:
            # The answer is ready, and a write is done: it says so, and is not refused for that.
            return (str(error), *always)
        advice = (
            "to accept it: ledgerstone verify --accept"
            if self.anchors is not None
            else "open it with a state directory"
        )
        return (_UNANCHORED.format(advice), *always)

    @contextmanager
    def reads(self, caller: Caller) -> Iterator[tuple[Reading, Identity]]:
        """One snapshot, read with proof, and the caller within it; whatever it was denied is noted."""
        with self._noting(caller) as denials, self._snapshot() as reading:
            yield reading, Identity(reading, caller, denials)

    @contextmanager
    def writes(self, caller: Caller, *, dry_run: bool = False) -> Iterator[Block]:
        """A write block; of one that is denied something, nothing remains but the note of it.

        What was committed is remembered outside the store; if it could not be, the block's ``warning`` says so. Of a
        ``dry_run`` nothing remains either: all of it is judged as ever, and then undone.
        """
        with self._noting(caller) as denials:
            keys = self.keyring
            with suppress(UndoneError), self.store.write() as writer:
                since = self.tick()
                self._fence(writer, None, since)
                reading = self._follow(keys, Reading(writer, keys, self.heads, self.clock(), self._anchored(since)))
                block = self._block(writer, reading, caller, denials)
                yield block
                if dry_run:
                    raise UndoneError
            if not dry_run:
                block.warning = self.remember_heads(reading.committed, writer.left)

    def _block(self, writer: Writer, reading: Reading, caller: Caller, denials: list[Denial]) -> Block:
        if not reading.signs:
            raise self.read_only()
        return Block(writer, reading, Identity(reading, caller, denials), self.entropy)

    def accept(self, caller: Caller, admit: Callable[[Block, Gone], None]) -> Report:
        """Verify, and remember what is there in place of what was remembered, in one write block.

        ``admit`` judges the caller, and commits what is accepted; it is asked only when nothing else is wrong.
        """
        if self.anchors is None:
            raise UsageError("nothing is accepted without a state directory to remember it in")
        with self._noting(caller) as denials:
            with self.store.write() as writer:
                report, gone = self.verified(writer, self.tick())
                if not report.ok:
                    return verifying.naming(report, gone)
                # With heads of its own: these are not held to what is remembered.
                reading = Reading(writer, self.keyring, Heads(), self.clock())
                admit(self._block(writer, reading, caller, denials), gone)
            heads = {**report.heads, **reading.committed}
            warning = self.trust(heads, writer.left, back=True) or self.bind(reading.store.namespace)
            self.keep_verified(report.heads)
        if warning is not None:
            raise UnavailableError(warning, hint="see to the state directory, then run: ledgerstone verify --accept")
        return report

    def verified(
        self, reader: Reader, since: int, *, watch: Watch = UNWATCHED, full: bool = True
    ) -> tuple[Report, Gone]:
        """What a verification finds, and the heads that were seen here and are gone.

        Unless it is to be ``full``, what was verified here before is not replayed again. Raises CorruptionError for
        keys that do not fit the store.
        """
        lost = reader.shape().lost
        if not lost:
            check_fits(reader, self.keyring)
        report = self._resumed(reader, watch) if not full else verifying.verify(reader, self.keyring, watch)
        if self.anchors is None or lost or not (report.ok or report.heads):
            return report, {}
        known, found = self.anchors.store(), reader.first_chain()
        if known not in {None, found}:
            other = Finding("other", found or "", None, f"this is not the store {known} that was here before")
            return replace(report, findings=(*report.findings, other)), {}
        return report, verifying.abandoned(reader, report.heads, self.anchors, since)

    def _resumed(self, reader: Reader, watch: Watch) -> Report:
        """Verify from where that was last done on this machine; all of it, with the reason, when that cannot be."""
        milestones: resuming.Milestones = {}
        reason = "nothing is remembered of this store"
        if self.anchors is not None:
            reason = "no earlier verification of it is remembered here"
            try:
                milestones = self.anchors.verified().heads
            except UnavailableError as error:
                reason = error.message
        # Others may have changed what is old: none of it is to be taken on trust then.
        if milestones and not self._ours(self.store.mark()):
            milestones, reason = {}, "another program changed its files"
        if reader.shape().foreign or reader.shape().lost:
            milestones, reason = {}, "its schema is not its own"
        try:
            if milestones:
                return resuming.verify(reader, self.keyring, milestones, self.entropy, watch)
        except resuming.UnsettledError as error:
            reason = str(error)
        return replace(verifying.verify(reader, self.keyring, watch), reason=reason)

    def receipt_verified(self) -> str | None:
        """The newest receipt that was checked when all was verified here."""
        return None if self.anchors is None else self.anchors.verified().receipt

    def keep_verified(self, heads: Mapping[str, tuple[int, bytes]], receipt: str | None = None) -> None:
        """Remember up to where a store was verified; where that cannot be kept, all is verified the next time."""
        if self.anchors is not None:
            with suppress(OSError, UnavailableError):
                self.anchors.keep_verified(heads, receipt)

    def tick(self) -> int:
        """How often heads were remembered outside the store; to be asked before a snapshot begins."""
        return 0 if self.anchors is None else self.anchors.tick()

    def _anchored(self, since: int) -> Anchored | None:
        return None if self.anchors is None else Anchored(self.anchors, since)

    @contextmanager
    def _snapshot(self) -> Iterator[Reading]:
        # All are taken before the snapshot: whoever writes after it began cannot look like a rollback.
        keys, since = self.keyring, self.tick()
        mark = None if self.anchors is None else self.store.mark()
        with self.store.read() as reader:
            self._fence(reader, mark, since)
            yield self._follow(keys, Reading(reader, keys, self.heads, self.clock(), self._anchored(since)))

    def _follow(self, keys: Keyring, reading: Reading) -> Reading:
        """Trust the key in force from now on, and no earlier one; unless somebody has followed meanwhile."""
        if self.keyring is keys:
            self.keyring = reading.keyring
        return reading

    def read_only(self) -> StoreError:
        """Why nothing can be written."""
        if not self._signed:
            return StoreError("this store is open read-only: there is no signing key", hint=READ_ONLY_HINT)
        return StoreError("the signing key was retired: the store is signed by another one now", hint=RETIRED_HINT)

    def _fence(self, reader: Reader, before: bytes | None, since: int) -> None:
        """Let nobody's edit pass: files that changed otherwise than by our own writes are verified in full first.

        ``before`` is how they looked before the snapshot began; None under the lock, where nobody else commits.
        """
        if not self._formed:
            # A store may be open unchecked, to be verified or mended; nothing else is read of it.
            reader.check_shape()
            self._formed = True
        if self.anchors is None:
            return
        edits = reader.edits()
        # Whoever committed before the snapshot began shows in how the files look now; whoever did after, not in what
        # is verified.
        mark = self.store.mark()
        if edits == self._edits and mark == self._mark:
            return
        if not self._ours(mark):
            mark = mark if before is None else before
            self.heads.fenced = False
            self.anchors.check_store(reader.first_chain())
            report, gone = self.verified(reader, since)
            if not report.ok:
                raise CorruptionError(
                    f"the store was changed by another program: {first(report.findings)}",
                    hint="run: ledgerstone verify, which names every fault",
                )
            if gone:
                namespace, anchor = next(iter(gone.items()))
                raise abandons(namespace, anchor, report.heads[namespace][0])
            # What cannot be remembered is verified again at the next opening; a write says what is wrong with it.
            with suppress(OSError):
                # Only if nobody has touched it meanwhile is what was verified what is there.
                self.anchors.record(lambda: mark if mark == self.store.mark() else None, report.heads)
            # Of its receipts none was checked.
            self.keep_verified(report.heads)
        self.heads.fenced = True
        self._edits, self._mark = edits, mark

    def _ours(self, mark: bytes | None) -> bool:
        """Whether the files look as our last write left them; one that is just being recorded is waited for."""
        if mark is None or self.anchors is None:
            return True
        if not self.anchors.recorded():
            return False
        for _ in range(RECORDING_TRIES):
            if self.anchors.unchanged(mark):
                return True
            time.sleep(RECORDING_SECONDS)
            mark = self.store.mark() or mark
        return False

    def remember_heads(
        self, heads: Mapping[str, tuple[int, bytes]], left: bytes | None, *, back: bool = False
    ) -> str | None:
        """Remember heads and how the files were ``left`` outside the store; what went wrong with that, in words.

        Files that look otherwise by now, or of which nobody can tell what is ours, are verified before the next read.
        """
        if self.anchors is None:
            return None

        def look() -> bytes | None:
            if left is None or left != self.store.mark():
                return None
            self._mark = left
            return left

        try:
            self.anchors.record(look, heads, back=back)
        except (OSError, UnavailableError, CorruptionError) as error:
            return f"committed, but not remembered outside the store: {error}"
        return None

    def trust(self, heads: Mapping[str, tuple[int, bytes]], left: bytes | None, *, back: bool = False) -> str | None:
        """Take the files as they were ``left``: they were verified so, or written anew from verified history."""
        self.heads = Heads()
        self.heads.fenced = self.anchors is not None
        self._edits = None
        # Whoever verified all of it, receipts too, says so after that.
        self.keep_verified({})
        return self.remember_heads(heads, left, back=back)

    def doubt(self) -> None:
        """Verify what is there before it is read again: it was written anew, and not by commits."""
        self.heads = Heads()
        self._edits = None

    def close(self) -> None:
        """Give the store back, and remember how that left its files, unless others have touched them."""
        before = self._recorded()
        left = self.store.close(before)
        if self.anchors is not None:
            if left not in {None, before}:
                self.remember_heads({}, left)
            self.anchors.close()

    def _recorded(self) -> bytes | None:
        """How the files look, if that was recorded."""
        with suppress(OSError, UnavailableError):
            mark = self.store.mark()
            if self.anchors is not None and mark is not None and self.anchors.unchanged(mark):
                return mark
        return None

    def scrub(self) -> list[str]:
        """Let no trace of what was erased stay in the files; what could not be done, in words."""
        undone, left = self.store.scrub(self._recorded())
        warning = self.remember_heads({}, left)
        return undone if warning is None else [*undone, warning]

    @contextmanager
    def _noting(self, caller: Caller) -> Iterator[list[Denial]]:
        denials: list[Denial] = []
        try:
            yield denials
        except DeniedError as denied:
            denial = denied.denial
            denials.append(denial)
            raise refused(caller, denial) from None
        finally:
            for denial in denials:
                self._refusals.note(denial, self.clock())

    def flush(self, caller: Caller) -> None:
        """Write the noted refusals to the store chain; without a signing key they stay noted."""
        if self.keyring.signer is None:
            return
        noted = self._refusals.take()
        if not noted:
            return
        rows = list(map(rules.plain, noted))
        try:
            with self.writes(caller) as block:
                owner = block.reading.owner
                for part in parts(rows):
                    block.store_commit(part, principal=owner, origin=Origin.SYSTEM)
        except LedgerstoneError:
            self._refusals.put_back(noted)
            # A key that was retired meanwhile is none.
            if self.keyring.signer is not None:
                raise

    def bind(self, store: str) -> str | None:
        """Remember which store is at this path; what went wrong with that, in words, which each answer repeats."""
        if self.anchors is not None:
            try:
                self.anchors.bind(store)
            except OSError as error:
                return f"not remembered outside the store: {error}"
        return None
