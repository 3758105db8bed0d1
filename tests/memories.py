"""A store to scratch in and the callers of it: what tests of the library share."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from ledgerstone import Act, Caller, Keyring, Limits, Memory, Mode, Origin, ProjectHints, SigningKey, resuming
from ledgerstone.core.values import MAX_DRAFTS, MAX_TEXT_BYTES
from ledgerstone.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

KEY: Final = SigningKey(seed=b"a seed of thirty-two bytes, test", secret=b"and a secret of thirty-two bytes")
SECOND: Final = 1_000_000
NOON: Final = 1_767_268_800 * SECOND
NOBODY: Final = "mem_0000000000000000"
# The modes that look for records by themselves.
FREE_MODES: Final = tuple(mode for mode in Mode if mode is not Mode.TASK_MAINTENANCE)

HERE: Final = ProjectHints(remotes=(("origin", "https://example.org/team/here.git"),), paths=("/src/here",))
THERE: Final = ProjectHints(remotes=(("origin", "https://example.org/team/there.git"),), paths=("/src/there",))
NOWHERE: Final = ProjectHints(paths=("/nowhere",))

# Ada made the store. The others are her programs, her other desks, and Bob.
# As much as a caller can be let.
MOST = Limits(drafts=MAX_DRAFTS, text_bytes=MAX_TEXT_BYTES)
ADA: Final = Caller(principal="ada", origin=Origin.USER, host="terminal", session="morning", project=HERE)
MODEL: Final = replace(ADA, origin=Origin.MODEL, host="mcp", limits=Limits())
TOOL: Final = replace(ADA, origin=Origin.TOOL, host="script")
STRANGER: Final = replace(ADA, origin=Origin.UNKNOWN, host=None)
READER: Final = replace(ADA, acts=frozenset({Act.READ}))
ELSEWHERE: Final = replace(ADA, project=THERE)
EVENING: Final = replace(ADA, session="evening")
LOST: Final = replace(ADA, project=NOWHERE)
HOMELESS: Final = replace(ADA, project=None)
BOB: Final = replace(ADA, principal="bob", new_places=True)

# Whatever is valid Unicode text, but for U+0000; and the same with something to it.
characters: Final = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts: Final = st.text(characters, min_size=1, max_size=200)


class Scratch:
    """A store in a file of its own, made by Ada, with a clock that only the test moves and chance that repeats."""

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        self.path = path
        self.now = NOON
        self.keys = Keyring(KEY)
        self._chance = random.Random(seed)
        self._verified: dict[str, tuple[int, bytes]] = {}
        self.memory = self.open(create=True)

    def open(self, caller: Caller = ADA, *, create: bool = False) -> Memory:
        """Another opening of the same file, as another process would have it; the test closes it."""
        return Memory.open(
            self.path,
            keys=self.keys,
            caller=caller,
            state=None,
            create=create,
            clock=lambda: self.now,
            entropy=self._chance.randbytes,
        )

    def by(self, caller: Caller) -> Memory:
        """The store as another caller sees it."""
        return self.memory.bind(caller)

    def wait(self, seconds: int) -> None:
        """Move the clock."""
        self.now += seconds * SECOND

    def reopen(self) -> Memory:
        """Close the store and open it again: nothing but the file goes on."""
        self.memory.close()
        self.memory = self.open()
        return self.memory

    def heads(self) -> dict[str, tuple[int, bytes]]:
        """The newest commit of every chain, as the file alone has it, after a verification without findings.

        One that goes on from where the one before ended says the same, or that only a whole one can tell.
        """
        with self.open() as witness:
            report = witness.verify()
        assert report.findings == ()
        if self._verified:
            store = open_store(self.path)
            with closing(store), store.read() as reader:
                try:
                    resumed = resuming.verify(reader, self.keys, self._verified, self._chance.randbytes)
                except resuming.UnsettledError as error:
                    assert "cannot be told any more" in str(error)  # noqa: PT017 - nothing else is unsettled
                else:
                    assert (resumed.heads, resumed.entries) == (report.heads, report.entries)
        self._verified = report.heads
        return report.heads
