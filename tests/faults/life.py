"""A short life of a store in which anything may fail, what its writer was told, and whether that is true."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw

from ledgerstone import CorruptionError, Memory, Scope, UnavailableError, UnknownOutcomeError
from tests.stores import open_memory

# With these the namespace stands just before the 256th entry, at which its words are folded into the index: the third
# write brings it.
_FURNITURE: Final = 251
# What is written, commit by commit; the fifth holds several.
WRITES: Final = tuple(
    tuple(f"write {number} text {part}" for part in range(6 if number == 4 else 1)) for number in range(12)
)
DOOMED: Final = "the combination of the safe is three, nine and twenty-seven"


@dataclass(slots=True)
class Told:
    """What the writer was told of each write: done, not done, or that nobody knows. The last write is an erasure.

    ``anchored`` are those of which nobody said that they are not remembered outside the store.
    """

    done: set[tuple[str, ...]] = field(default_factory=set)
    anchored: set[str] = field(default_factory=set)
    refused: set[tuple[str, ...]] = field(default_factory=set)
    unknown: set[tuple[str, ...]] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Verdict:
    """Where what is there is not what was told: each list names the writes, or what verify found.

    ``misreported`` is apart, since nothing that was wanted is gone: an erasure that was done and told as not done.
    ``hidden`` is what an older copy in the store's place takes away in silence, or brings back.
    """

    corrupt: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    undead: list[str] = field(default_factory=list)
    misreported: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether everything is as it was told."""
        return not (self.corrupt or self.partial or self.lost or self.undead or self.hidden)


def furnish(path: Path, state: Path | None = None) -> None:
    """A store at rest, before its short life."""
    with open_memory(path, seed=1, state=state) as memory:
        memory.remember(DOOMED, scope=Scope.USER, idempotency_key="doomed")
        texts = [f"old text {number}" for number in range(_FURNITURE)]
        for start in range(0, _FURNITURE, 64):
            memory.remember_many(texts[start : start + 64], scope=Scope.USER)


def live(path: Path, told: Told, state: Path | None = None) -> None:
    """Open, write a dozen commits, erase one text, close; whatever fails is noted, and life goes on."""
    memory = _opened(path, state)
    if memory is None:
        return
    try:
        for texts in WRITES:
            try:
                kept = memory.remember_many(texts, scope=Scope.USER, idempotency_key=texts[0])
                told.done.add(texts)
                if not kept[0].notices:
                    told.anchored.add(texts[0])
            except UnavailableError:
                told.refused.add(texts)
            except UnknownOutcomeError:
                told.unknown.add(texts)
        _erase(memory, told)
    finally:
        # SQLite overlooks an error of its last checkpoint; the VFS tells it to us all the same.
        with suppress(apsw.Error):
            memory.close()


def _opened(path: Path, state: Path | None) -> Memory | None:
    for _ in range(2):
        with suppress(UnavailableError):
            return open_memory(path, create=False, seed=2, state=state)
    return None


def _erase(memory: Memory, told: Told) -> None:
    try:
        done = memory.forget("write:doomed", dry_run=False)
        if done.erased:
            told.erased.add(DOOMED)
            if not done.left:
                told.anchored.add(DOOMED)
    except UnavailableError as error:
        # Only what says that nothing was changed is held to it.
        if "nothing was changed" in error.hint:
            told.kept.add(DOOMED)
    except UnknownOutcomeError:
        pass


def judge(path: Path, told: Told, state: Path | None = None) -> Verdict:
    """Compare what is there with what was told, without a fault; and write once more."""
    verdict = Verdict()
    try:
        with open_memory(path, create=False, seed=3, state=state) as memory:
            verdict.corrupt += [finding.message for finding in memory.verify().findings]
            _compare(memory, told, verdict)
            kept = memory.remember("life goes on", scope=Scope.USER).record
            assert memory.get(kept.address) == kept
    except CorruptionError as refusal:
        verdict.corrupt.append(str(refusal))
    return verdict


def judge_older(path: Path, older: Path, told: Told, state: Path) -> list[str]:
    """Put an older copy in the store's place: what that hides of what was said to be remembered; then put all back."""
    aside = path.with_name("aside")
    shutil.copytree(path.parent, aside)
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    shutil.copy2(older, path)
    hidden = []
    try:
        open_memory(path, create=False, seed=4, state=state).close()
        hidden += sorted(told.anchored)
    except CorruptionError:
        with open_memory(path, create=False, seed=4, state=state, check=False) as memory:
            accepted = memory.verify(accept=True)
            doomed = memory.remember(DOOMED, scope=Scope.USER, idempotency_key="doomed").record.text
        if not accepted.ok or (DOOMED in told.anchored and doomed is not None):
            hidden.append(f"{DOOMED}: {accepted.findings}")
    shutil.move(aside, aside_home := path.parent.with_name("aside"))
    shutil.rmtree(path.parent)
    aside_home.rename(path.parent)
    return hidden


def _compare(memory: Memory, told: Told, verdict: Verdict) -> None:
    there = {record.text for record in memory.list_records("all", limit=100).items}
    for texts in WRITES:
        found = there.intersection(texts)
        if found and found != set(texts):
            verdict.partial.append(texts[0])
        if texts in told.done and not found:
            verdict.lost.append(texts[0])
        if texts in told.refused and found:
            verdict.undead.append(texts[0])
    doomed = memory.remember(DOOMED, scope=Scope.USER, idempotency_key="doomed").record.text
    if told.erased and doomed is not None:
        verdict.undead.append(DOOMED)
    if told.kept and doomed is None:
        verdict.misreported.append(DOOMED)
