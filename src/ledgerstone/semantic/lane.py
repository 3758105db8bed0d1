"""The semantic lane: what words found, and what an encoder finds close in meaning, as one order with words leading.

Vectors never decide truth, isolation or currency: they order what the sieve lets through, and nothing else.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ledgerstone.core import fusion, ranking
from ledgerstone.core.authority import Caller
from ledgerstone.core.entries import decode_content
from ledgerstone.core.projection import searchable
from ledgerstone.core.rendering import MAX_TOLD, one_line, told
from ledgerstone.core.words import STOP_WORDS, index_words, token
from ledgerstone.errors import UnavailableError, UsageError
from ledgerstone.identity import Identity
from ledgerstone.ledger import Ledger
from ledgerstone.search import Sieve
from ledgerstone.semantic.encoders import Encoder, EncoderError, Matcher, encoded, model_of, weight_of
from ledgerstone.store.protocol import LAST, VECTOR_BLOCK, Reader, Vectored, WordRow, Writer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Up to so many positions every vector of a namespace is compared; above, only those of what words found.
COMPARED: Final = 200_000
# How many of the closest that may be recalled are candidates, and how many of the best are matched word by word.
CLOSEST: Final = 128
MATCHED: Final = 60
# How many texts that are not indexed yet one search encodes itself, unless the lane says otherwise.
FRESH: Final = 128
# How many texts are encoded between two commits of vectors.
INDEX_BATCH: Final = 256
DAMAGED: Final = "the vectors of this namespace are damaged; run: ledgerstone rebuild"
# What stands after an apostrophe and says nothing: Ann's, don't.
APOSTROPHES: Final = frozenset("'\u2019")
CLITICS: Final = frozenset({"d", "ll", "m", "re", "s", "t", "ve"})
_ROWS: Final = 1024


class Raised(NamedTuple):
    """Scores by position, what a reader should know, and the model that had a say; None when it failed at once."""

    scores: dict[int, int]
    notices: tuple[str, ...]
    model: str | None


class Indexed(NamedTuple):
    """How many texts were encoded, and how many are still to be."""

    done: int
    left: int


class Coverage(NamedTuple):
    """Which model's vectors are meant, how many texts there are, and how many are not indexed by it yet.

    ``other`` is a model of another name whose vectors stand there; to index replaces them.
    """

    model: str
    texts: int
    left: int
    other: str | None


class Batch(NamedTuple):
    """What is to be encoded next: up to which position, after which one, and the texts."""

    reach: Vectored
    after: int
    texts: dict[int, str]


class _Matrix(NamedTuple):
    """The vectors of a chain up to a position, less those that are zero, and the positions they stand for, in order."""

    changes: int
    through: int
    positions: NDArray[np.int64]
    rows: NDArray[np.int8]


class BrokenError(Exception):
    """The lane cannot be used; the reason in words."""


# What the extra brings; whatever else an encoder misses is its own.
EXTRA: Final = frozenset({"numpy"})


@contextmanager
def guarded() -> Iterator[None]:
    """Whatever an encoder raises is its own fault, and ends nothing but its lane."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = one_line(str(error.name)[:MAX_TOLD])[:MAX_TOLD]
        extra = "; from the checkout: pip install '.[semantic]'" if missing.partition(".")[0] in EXTRA else ""
        raise BrokenError(f"{missing} is not installed{extra}") from error
    except Exception as error:
        raise BrokenError(told(error)) from error


class Lane:
    """An encoder at work on a store; keeps what it has read of the vectors, for as long as they stay the same.

    ``load`` gives the encoder, and is first called when one is needed. ``fresh`` is how many texts that nobody has
    indexed yet a search may encode itself: a slow encoder takes few, and 0 is none.
    """

    __slots__ = ("_encoder", "_fresh", "_load", "_matrices", "fresh")

    def __init__(self, load: Callable[[], Encoder], *, fresh: int = FRESH) -> None:
        if type(fresh) is not int or fresh < 0:
            offence = fresh if type(fresh) is int else type(fresh).__name__
            raise UsageError(f"fresh: a whole number of texts, not {offence}")
        self._load = load
        self._encoder: Encoder | None = None
        # By store and chain, since one encoder may be at work on several stores.
        self._matrices: dict[tuple[str | None, int], _Matrix] = {}
        # By model and text: the model may change under its encoder.
        self._fresh: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.fresh = fresh

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded once."""
        if self._encoder is None:
            self._encoder = self._load()
        return self._encoder

    @property
    def model(self) -> str:
        """The name under which its vectors are kept."""
        return model_of(self.encoder)

    @property
    def weight(self) -> int:
        """What being closest in meaning of all counts, in thousandths of the best score by words."""
        return weight_of(self.encoder)

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """Texts as vectors of bytes."""
        return encoded(self.encoder, texts)

    def newest(self, texts: Mapping[int, str]) -> dict[int, bytes]:
        """Vectors of texts that are not indexed yet, each encoded once."""
        model = self.model
        missing = [text for text in dict.fromkeys(texts.values()) if (model, text) not in self._fresh]
        self._fresh.update(zip(((model, text) for text in missing), self.encode(missing), strict=True))
        found = {position: self._fresh[model, text] for position, text in texts.items()}
        while len(self._fresh) > 4 * max(self.fresh, 1):
            self._fresh.popitem(last=False)
        return found

    def matrix(self, reader: Reader, number: int, reach: Vectored) -> _Matrix:
        """All vectors of a chain as rows of one matrix."""
        import numpy as np  # noqa: PLC0415 - an extra

        key = reader.first_chain(), number
        kept = self._matrices.get(key)
        if kept is not None and (kept.changes, kept.through) == (reach.changes, reach.through):
            return kept
        blocks = list(reader.vector_blocks(number))
        expected = [
            (first, min(VECTOR_BLOCK, reach.through - first) * reach.dimension)
            for first in range(0, reach.through, VECTOR_BLOCK)
        ]
        if [(first, len(body)) for first, body in blocks] != expected:
            raise BrokenError(DAMAGED)
        rows = np.frombuffer(b"".join(body for _, body in blocks), np.int8).reshape(-1, reach.dimension)
        present = np.any(rows, axis=1)
        found = _Matrix(reach.changes, reach.through, np.flatnonzero(present), rows[present])
        self._matrices[key] = found
        return found


class _Look(NamedTuple):
    """One search of one namespace, as its steps share it."""

    reader: Reader
    number: int
    query: str
    sieve: Sieve
    lane: Lane
    tail: _Tail
    notices: list[str]


def raised(reader: Reader, number: int, query: str, scores: Mapping[int, int], sieve: Sieve, *, lane: Lane) -> Raised:
    """Scores of what words found, raised by what the encoder makes of the query, with what only meaning finds.

    ``scores`` are by position and have passed the sieve; the more there are, the better. What the lane adds has passed
    it too. Whatever the encoder does, nothing is raised for it: the scores stand, and a notice says what was wrong.
    """
    found, model = dict(scores), None
    look = _Look(reader, number, query, sieve, lane, _Tail(reader, number), [])
    try:
        found = _closest(look, found)
        model = f"{lane.model}:{lane.weight}"
        found = _matched(look, found)
    except BrokenError as broken:
        look.notices.append(f"semantic: unavailable: {broken}")
    return Raised(found, tuple(look.notices), model)


class _Tail:
    """The word rows that are not folded into the index yet, and what they make of its totals."""

    __slots__ = ("_number", "_reader", "documents", "rows")

    def __init__(self, reader: Reader, number: int) -> None:
        corpus = reader.corpus(number)
        self._reader = reader
        self._number = number
        self.rows: list[WordRow] = list(reader.word_rows(number, corpus.through, LAST))
        self.documents = corpus.documents + len(self.rows)

    def weigh(self, words: Sequence[str]) -> list[int]:
        """What each word of a query weighs here, as in BM25; nothing for a sign, or a stop word beside others."""
        after = ["", *words]
        telling = [
            word not in STOP_WORDS and not (before in APOSTROPHES and word in CLITICS)
            for before, word in zip(after, words, strict=False)
        ]
        stems = [
            index_words(word)[:1] if told or not any(telling) else [] for word, told in zip(words, telling, strict=True)
        ]
        asked = {token(stem) for each in stems for stem in each}
        holding = self._reader.holding(self._number, sorted(asked))
        for row in self.rows:
            for each in asked.intersection(row.words.split()):
                holding[each] += 1
        return [ranking.idf(self.documents, holding[token(stem[0])]) if stem else 0 for stem in stems]


def _closest(look: _Look, scores: dict[int, int]) -> dict[int, int]:
    """The scores, raised by closeness in meaning, with the closest of all that may be recalled."""
    reader, number, lane, tail, notices = look.reader, look.number, look.lane, look.tail, look.notices
    with guarded():
        import numpy as np  # noqa: F401, PLC0415 - an extra: asked for before it is needed

        model, weight, (asked,) = lane.model, lane.weight, lane.encode([look.query])
    if not any(asked):
        return scores
    reach = reader.vectored(number)
    if reach is not None and (reach.model, reach.dimension) != (model, len(asked)):
        notices.append(f"semantic: degraded: the vectors here are of {reach.model}, not of {model}")
        reach = None
    through = reach.through if reach is not None else 0
    behind = reader.tally(number, through).indexed
    late = [row.position for row in tail.rows if row.position >= through]
    fresh = dict(texts(reader, number, late[max(len(late) - lane.fresh, 0) :]))
    if behind > len(fresh):
        left = f"{behind - len(fresh):,} of {tail.documents:,}"
        notices.append(f"semantic: degraded: {left} not yet indexed; run: ledgerstone index")
    with guarded():
        vectors = lane.newest(fresh)
    positions, products = _compared(look, asked, reach, vectors, scores)
    if not len(positions):
        return scores
    mean = int(products.sum()) // len(products)
    return fusion.fuse(scores, _chosen(look, positions, products, scores), mean, weight)


def _compared(
    look: _Look, asked: bytes, reach: Vectored | None, fresh: Mapping[int, bytes], scores: Mapping[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions that have a vector, in order, and the product of each with the query's."""
    import numpy as np  # noqa: PLC0415 - an extra

    given = dict(fresh)
    kept = None
    if reach is not None and reach.through > COMPARED:
        look.notices.append(f"semantic: above {COMPARED:,} entries only what words found is compared")
        given |= look.reader.vectors_of(look.number, sorted(scores))
    elif reach is not None and reach.through:
        kept = look.lane.matrix(look.reader, look.number, reach)
    if any(len(vector) != len(asked) for vector in given.values()):
        raise BrokenError(DAMAGED)
    found = sorted(position for position, vector in given.items() if any(vector))
    rows = np.frombuffer(b"".join(given[position] for position in found), np.int8).reshape(len(found), len(asked))
    positions, products = np.array(found, np.int64), _products(rows, asked)
    if kept is not None:
        # What is not indexed yet is newer than what is.
        positions = np.concatenate([kept.positions, positions])
        products = np.concatenate([_products(kept.rows, asked), products])
    return positions, products


def _products(rows: NDArray[np.int8], asked: bytes) -> NDArray[np.int64]:
    """The product of each row with the query; whole numbers that 32-bit floats hold exactly, in any order."""
    import numpy as np  # noqa: PLC0415 - an extra

    vector = np.frombuffer(asked, np.int8).astype(np.float32)
    # Part by part through one small buffer, which stays in the processor's cache.
    buffer = np.empty((min(_ROWS, len(rows)), len(vector)), np.float32)
    products = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        np.copyto(buffer[: len(part)], part)
        np.dot(buffer[: len(part)], vector, out=products[start : start + len(part)])
    return products.astype(np.int64)


def _chosen(
    look: _Look, positions: NDArray[np.int64], products: NDArray[np.int64], scores: Mapping[int, int]
) -> dict[int, int]:
    """The ``CLOSEST`` that the sieve lets through, and whatever words found, each with its product."""
    import numpy as np  # noqa: PLC0415 - an extra

    chosen: dict[int, int] = {}
    wanted, seen = CLOSEST + CLOSEST // 8, 0
    while seen < len(positions) and len(chosen) < CLOSEST:
        order = _greatest(positions, products, wanted)
        asked = {int(positions[place]): int(products[place]) for place in order[seen:]}
        rows = look.reader.candidates(look.number, list(asked), look.sieve.view)
        chosen |= {row.position: asked[row.position] for row in rows if look.sieve.passes(row)}
        # What may not be recalled takes nobody's place.
        seen, wanted = len(order), wanted * 8
    chosen = dict(list(chosen.items())[:CLOSEST])
    by_words = np.fromiter(scores, np.int64, len(scores))
    places = np.searchsorted(positions, by_words)
    places = places[positions.take(places, mode="clip") == by_words]
    return chosen | dict(zip(positions[places].tolist(), products[places].tolist(), strict=True))


def _greatest(positions: NDArray[np.int64], products: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Where the greatest products stand, greatest first, the newer first among equals."""
    import numpy as np  # noqa: PLC0415 - an extra

    if count < len(products):
        bar = np.partition(products, len(products) - count)[len(products) - count]
        among = np.flatnonzero(products >= bar)
    else:
        among = np.arange(len(products))
    order: NDArray[np.int64] = among[np.lexsort((-positions[among], -products[among]))][:count]
    return order


def _matched(look: _Look, scores: dict[int, int]) -> dict[int, int]:
    """The scores, the best of them raised by how well each text answers the query word by word."""
    encoder = look.lane.encoder
    if not isinstance(encoder, Matcher):
        return scores
    best = heapq.nlargest(MATCHED, ((score, position) for position, score in scores.items()))
    found = dict(texts(look.reader, look.number, [position for _, position in best]))
    with guarded():
        matches = encoder.match(look.query, list(found.values()), look.tail.weigh)
        if len(matches) != len(found) or not all(type(each) is int for each in matches):
            raise EncoderError(f"{len(matches)} matches for {len(found)} texts, or not whole numbers")
    return fusion.rerank(scores, dict(zip(found, matches, strict=True)))


def texts(reader: Reader, number: int, positions: Iterable[int]) -> Iterator[tuple[int, str]]:
    """What is searched of each position that holds a text; unproven, and good for an order only."""
    for position, content in reader.bodies(number, list(positions)):
        yield position, searchable(decode_content(content))


def pending(reader: Reader, number: int, lane: Lane, head: int, *, limit: int = INDEX_BATCH) -> Batch | None:
    """The next texts to be encoded of a chain with ``head`` positions; None when nothing is left.

    Vectors of another model count for nothing: the first batch begins anew.
    """
    model, dimension = lane.model, lane.encoder.dimension
    reach = reader.vectored(number)
    after = reach.through if reach is not None and reach.model == model else 0
    if after >= head:
        return None
    rows: list[int] = []
    for row in reader.word_rows(number, after, head - 1):
        rows.append(row.position)
        if len(rows) == limit:
            break
    through = rows[-1] + 1 if len(rows) == limit else head
    return Batch(Vectored(model, dimension, through), after, dict(texts(reader, number, rows)))


def index(ledger: Ledger, caller: Caller, lane: Lane, limit: int | None = None) -> Indexed:
    """Encode what is not indexed yet of the namespaces that a caller sees, at most ``limit`` texts, batch by batch.

    Texts are encoded outside the lock; what a batch gave is kept in a short write block of its own. UnavailableError
    when the encoder fails: what was kept before that stays.
    """
    if limit is not None and limit < 0:
        raise UsageError(f"limit: 0 or more texts, not {limit}")
    done = 0
    while limit is None or done < limit:
        most = INDEX_BATCH if limit is None else min(INDEX_BATCH, limit - done)
        try:
            with ledger.reads(caller) as (reading, identity):
                found = next(_unindexed(reading.reader, identity, lane, most), None)
            if found is None:
                return Indexed(done, 0)
            namespace, batch = found
            with guarded():
                vectors = lane.encode(list(batch.texts.values()))
        except BrokenError as broken:
            raise _unusable(broken) from broken
        with ledger.writes(caller) as block:
            row = block.writer.chain(namespace)
            if row is not None and write(block.writer, row.number, batch, vectors):
                done += len(vectors)
    return Indexed(done, coverage(ledger, caller, lane).left)


def coverage(ledger: Ledger, caller: Caller, lane: Lane) -> Coverage:
    """How far the index of vectors reaches in the namespaces that a caller sees; UnavailableError without the model."""
    try:
        with guarded():
            model = lane.model
    except BrokenError as broken:
        raise _unusable(broken) from broken
    texts, left, other = 0, 0, None
    with ledger.reads(caller) as (reading, identity):
        for where, _ in identity.in_sight():
            reach = reading.reader.vectored(where.number)
            through = reach.through if reach is not None and reach.model == model else 0
            if reach is not None and reach.model.partition("/")[0] != model.partition("/")[0]:
                other = reach.model
            texts += reading.reader.tally(where.number, 0).indexed
            left += reading.reader.tally(where.number, through).indexed
    return Coverage(model, texts, left, other)


def _unusable(broken: BrokenError) -> UnavailableError:
    return UnavailableError(f"the encoder cannot be used: {broken}", hint="see what it needs")


def _unindexed(reader: Reader, identity: Identity, lane: Lane, most: int) -> Iterator[tuple[str, Batch]]:
    for where, _ in identity.in_sight():
        with guarded():
            lane.model  # noqa: B018 - loads the encoder
        batch = pending(reader, where.number, lane, where.head.counts.entries, limit=most)
        if batch is not None:
            yield where.namespace, batch


def write(writer: Writer, number: int, batch: Batch, vectors: Sequence[bytes]) -> bool:
    """Keep the vectors of a batch, less what was erased since; False when somebody else was first."""
    reach = writer.vectored(number)
    if reach is not None and reach.model != batch.reach.model:
        if batch.after:
            return False
        writer.clear_vectors(number)
        reach = None
    if (reach.through if reach is not None else 0) != batch.after:
        return False
    writer.add_vectors(number, batch.reach, dict(zip(batch.texts, vectors, strict=True)))
    return True
