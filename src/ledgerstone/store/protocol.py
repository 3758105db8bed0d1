"""The storage boundary: what a backend reads, appends and replaces. It stores; it judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

from ledgerstone.core.chain import Commit
from ledgerstone.core.facts import Change, Known
from ledgerstone.core.receipts import Drawn
from ledgerstone.core.rules import Admitted
from ledgerstone.core.values import Kind

# No position of a chain, and no sequence, is beyond this one.
LAST = (1 << 40) - 1
# Every so many positions of a namespace fold its newest words into the word index.
FOLD_EVERY = 256
# So many positions share a block of vectors.
VECTOR_BLOCK = 64
# So many levels a state tree can have. A node of it, by level and index.
NODE_LEVELS = 16
NodeKey = tuple[int, int]
# So many rows that are needed one by one are read at a time.
AHEAD = 64
T = TypeVar("T")


def ahead(rows: Iterator[T]) -> Iterator[T]:
    """The same rows, some of which are read before they are needed: what is done many times in a row is done faster."""
    while block := list(islice(rows, AHEAD)):
        yield from block


class ChainRow(NamedTuple):
    """A chain as stored; ``number`` is the backend's own name for it."""

    number: int
    namespace: str
    sequence: int
    commit: bytes
    signature: bytes
    frontier: tuple[bytes, ...]


class Tally(NamedTuple):
    """What derived rows add up to, counted and not remembered."""

    records: int
    current: int
    open: int
    indexed: int


class Corpus(NamedTuple):
    """The word index of a namespace: how far it is folded, how many records it holds and their words in all."""

    through: int
    documents: int
    length: int


class WordRow(NamedTuple):
    """One record's words: how many, and the words themselves in the form that the index holds.

    ``source`` is a number for the source that the record names, the same for the same source; ``due`` its due time.
    """

    position: int
    length: int
    words: str
    source: int | None = None
    due: int | None = None


class View(NamedTuple):
    """Which versions are looked at: those that stand; those that stood after a commit; or, with ``every``, all."""

    sequence: int | None = None
    every: bool = False


NOW = View()


class Candidate(NamedTuple):
    """A record in view, as its columns preselect it; what is returned is read from the signed entry instead."""

    position: int
    trust: int
    expires: int | None
    kind: str


class Terms(NamedTuple):
    """What a record's columns must say: its least trust, not expired at a time (None: whenever), one of the kinds.

    And that it is trusted less than ``below``, if that is given.
    """

    floor: int
    now: int | None
    kinds: frozenset[Kind]
    below: int | None = None


class Standing(NamedTuple):
    """What a row says of a version's leaf, to be proven: its commit, and what ended it."""

    sequence: int
    ended_by: int
    ending: int


class Stored(NamedTuple):
    """All that a version is made of: what a row says of its leaf, its entry, and salt and bytes of its own content.

    ``covered`` says that some summary, whether it stands or not, covers it.
    """

    position: int
    standing: Standing
    entry: bytes | None
    content: tuple[bytes, bytes] | None
    covered: bool


class Listed(NamedTuple):
    """An entry as the catalog lists it: what it is found by, and what its leaf must say of it."""

    noun: str
    value: str
    position: int
    sequence: int
    ended_by: int
    ending: int


class Vectored(NamedTuple):
    """How far the vectors of a chain reach: one of ``model`` for each position before ``through``.

    A vector has ``dimension`` bytes, all zero where there is nothing to find; ``changes`` counts what was done to them.
    """

    model: str
    dimension: int
    through: int
    changes: int = 0


class Derived(NamedTuple):
    """All derived rows of one chain, as a replay gives them, lazily and to be taken in this order.

    ``changes``: (sequence, change, words). ``entries`` counts them once the others were taken.
    """

    changes: Iterable[tuple[int, Change, WordRow | None]]
    ended: Iterable[tuple[int, tuple[int, int]]]
    nodes: Iterable[tuple[int, int, bytes]]
    idempotencies: Iterable[tuple[bytes, int]]
    entries: Callable[[], int]


class Step(NamedTuple):
    """One commit and all that it changes. ``number`` is None for the first commit of a new chain.

    ``ended`` gives (sequence, ending) for positions that stood before; ``words`` the index form by position.
    """

    number: int | None
    commit: Commit
    first: int
    admitted: Sequence[Admitted]
    changes: Sequence[Change]
    ended: Mapping[int, tuple[int, int]]
    nodes: Mapping[NodeKey, bytes]
    words: Sequence[WordRow]


class Shape(NamedTuple):
    """How a database differs from what its schema should be, one line for each object, which begins with its name.

    ``foreign``: what is not ours, and what is derived and not as it should be: all that ``mend`` can put right.
    ``lost``: what history stands in, altered or gone. ``derived`` says that the tables of what is derived are as made.
    """

    foreign: tuple[str, ...]
    lost: tuple[str, ...]
    derived: bool


class Row(NamedTuple):
    """A canonical row of a chain as it travels: its table, its sequence or position there, and its bytes.

    ``beside`` is the id of a header and the salt of a content.
    """

    table: Literal["header", "entry", "content", "signature", "tile"]
    place: int
    body: bytes
    beside: bytes = b""


class Reader(Protocol):
    """One consistent view of the store. Positions and sequences are those of the chain numbered ``number``.

    ``damaged`` are the errors that say, of what it reads or of what is read out of that, that nobody wrote it so.
    """

    @property
    def damaged(self) -> tuple[type[Exception], ...]: ...
    def shape(self) -> Shape: ...
    def check_shape(self) -> None: ...
    def chain(self, namespace: str) -> ChainRow | None: ...
    def edits(self) -> int: ...
    def first(self) -> ChainRow | None: ...
    def first_chain(self) -> str | None: ...
    def chains(self, wrong: list[str] | None = None) -> list[ChainRow]: ...
    def header(self, number: int, sequence: int) -> bytes | None: ...
    def headers_of(self, number: int, sequences: Sequence[int]) -> dict[int, bytes]: ...
    def headers(self, number: int, *, newest: int, oldest: int) -> Iterator[tuple[int, bytes, bytes]]: ...
    def signatures(self, number: int) -> dict[int, bytes]: ...
    def tiles(self, number: int) -> dict[int, bytes]: ...
    def entry(self, number: int, position: int) -> bytes | None: ...
    def entries(self, number: int, first: int, last: int) -> Iterator[tuple[int, bytes]]: ...
    def content(self, number: int, position: int) -> tuple[bytes, bytes] | None: ...
    def contents(self, number: int, first: int, last: int) -> Iterator[tuple[int, bytes, bytes]]: ...
    def bodies(self, number: int, positions: Sequence[int]) -> Iterable[tuple[int, bytes]]: ...
    def node(self, number: int, level: int, index: int) -> bytes | None: ...
    def nodes_of(self, number: int, keys: Sequence[NodeKey]) -> dict[NodeKey, bytes]: ...
    def nodes(self, number: int, level: int) -> Iterator[tuple[int, bytes]]: ...
    def standing(self, number: int, position: int) -> Standing | None: ...
    def stored(self, number: int, positions: Sequence[int]) -> Iterator[Stored]: ...
    def ended_since(self, number: int, sequence: int) -> list[int]: ...
    def known(self, number: int, position: int) -> Known | None: ...
    def knowns(self, number: int, first: int, last: int) -> Iterator[Known]: ...
    def versions(self, memory: str) -> list[tuple[int, int, int]]: ...
    def newest(self, number: int, memory: str) -> int | None: ...
    def version_at(self, number: int, memory: str, version: int) -> int | None: ...
    def digests(self, digest: bytes) -> list[tuple[int, int]]: ...
    def holder(self, number: int, key: str) -> int | None: ...
    def keyed(self, number: int, key: str) -> list[int]: ...
    def tagged(self, number: int, tag: str) -> list[int]: ...
    def expired(self, number: int, now: int) -> list[int]: ...
    def resting_on(self, number: int, position: int) -> list[int]: ...
    def covering(self, number: int, position: int) -> list[int]: ...
    def links(self, number: int) -> Iterator[tuple[int, int, int]]: ...
    def lookup(self, number: int, noun: str, value: str) -> list[Listed]: ...
    def catalog(self, number: int, noun: str | None = None) -> Iterator[Listed]: ...
    def catalog_sizes(self, number: int) -> dict[str, int]: ...
    def idempotent(self, number: int, key: bytes) -> int | None: ...
    def idempotencies(self, number: int) -> Iterator[tuple[bytes, int]]: ...
    def tally(self, number: int, first: int) -> Tally: ...
    def tasks(self, number: int, floor: int, limit: int, view: View = NOW) -> list[int]: ...
    def cues(self, number: int, floor: int, limit: int, view: View = NOW) -> list[int]: ...
    def due(self, number: int, floor: int, now: int, view: View = NOW) -> list[tuple[int, int]]: ...
    def open_size(self, number: int, floor: int, now: int = -1) -> tuple[int, int]: ...
    def recent(self, number: int, *, before: int | None, limit: int, view: View = NOW) -> list[Candidate]: ...
    def candidates(self, number: int, positions: Sequence[int], view: View = NOW) -> Iterable[Candidate]: ...
    def beside(
        self, number: int, positions: Sequence[int], reach: int, view: View, terms: Terms
    ) -> list[tuple[int, list[int]]]: ...
    def covered(self, number: int, positions: Sequence[int], view: View = NOW) -> list[tuple[int, int]]: ...
    def offered(self, number: int, positions: Sequence[int], view: View, terms: Terms) -> Iterable[WordRow]: ...
    def words_of(self, number: int, positions: Sequence[int]) -> Iterable[WordRow]: ...
    def corpus(self, number: int) -> Corpus: ...
    def holding(self, number: int, words: Sequence[str]) -> dict[str, int]: ...
    def postings(self, number: int, word: str, limit: int | None) -> list[int]: ...
    def word_rows(self, number: int, first: int, last: int) -> Iterator[WordRow]: ...
    def frequencies(self, number: int) -> Iterator[tuple[str, int]]: ...
    def posting(self, number: int, position: int, words: Iterable[str]) -> int: ...
    def posted(self) -> int | None: ...
    def amiss(self) -> Iterator[tuple[str, str]]: ...
    def word_row(self, number: int, position: int) -> WordRow | None: ...
    def analyzer(self) -> str | None: ...
    def receipt(self, name: str) -> Drawn | None: ...
    def receipts(self, *, newest: bool) -> Iterator[Drawn]: ...
    def receipt_names(self) -> list[str]: ...
    def held(self, pieces: Iterable[bytes]) -> dict[bytes, set[str]]: ...
    def vectored(self, number: int) -> Vectored | None: ...
    def vector_blocks(self, number: int) -> Iterator[tuple[int, bytes]]: ...
    def vectors_of(self, number: int, positions: Sequence[int]) -> dict[int, bytes]: ...


class Writer(Reader, Protocol):
    """A reader that also appends, inside the one transaction in which everything shows or nothing.

    ``left``, after the commit, is how that left the store's files; None when somebody else has committed by then, the
    store has no files, or nobody wants to know.
    """

    @property
    def left(self) -> bytes | None: ...

    def mend(self) -> bytes: ...
    def check_mended(self, kept: bytes) -> None: ...
    def append(self, step: Step) -> int: ...
    def transcribe(self, namespace: str, rows: Iterable[Row]) -> None: ...
    def strike(self, number: int, positions: Iterable[int]) -> None: ...
    def place_head(self, head: ChainRow) -> None: ...
    def analyzed(self, analyzer: str) -> None: ...
    def keep_receipt(self, drawn: Drawn, most: int) -> None: ...
    def drop_receipts(self, names: Iterable[str]) -> None: ...
    def strike_queries(self, names: Iterable[str]) -> None: ...
    def add_vectors(self, number: int, reach: Vectored, vectors: Mapping[int, bytes]) -> None: ...
    def clear_vectors(self, number: int) -> None: ...
    def clear_derived(self) -> tuple[str, ...]: ...
    def restore_derived(self, number: int, derived: Derived) -> None: ...


class Store(Protocol):
    """One database. ``write`` commits at the end of its block, durably, or rolls everything back.

    ``mark`` is how its files look, or None for a store without files. ``scrub`` and ``close`` are told how they
    looked before, and tell how they left them, unless somebody else has touched them too.
    ``log`` is how many bytes its log has, and how many pages of that wait to be taken in.
    ``fixed`` says that it stands where nothing can be written, and was opened so, whatever was asked for.
    ``copy`` writes all of it, as of one moment, into an empty file.
    """

    @property
    def fixed(self) -> bool: ...
    def mark(self) -> bytes | None: ...
    def log(self) -> tuple[int, int]: ...

    def read(self) -> AbstractContextManager[Reader]: ...
    def write(self) -> AbstractContextManager[Writer]: ...
    def copy(self, target: Path) -> None: ...
    def scrub(self, before: bytes | None = None) -> tuple[list[str], bytes | None]: ...
    def files(self) -> tuple[Path, ...]: ...
    def close(self, before: bytes | None = None) -> bytes | None: ...
