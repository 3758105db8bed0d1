"""One namespace's words -> scored candidates: the word index for what is folded, the tail for what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from ledgerstone.core import concepts, ranking
from ledgerstone.core.values import Kind, Trust
from ledgerstone.core.words import MAX_QUERY_WORDS, characters, token
from ledgerstone.store.protocol import LAST, NOW, Candidate, Reader, Terms, View, WordRow

# How many postings one search may read from the index: so many, or a sixth of the records where those are more, since
# the best of a million hold common words too. And how many of the best by words alone are scored in full.
POSTING_BUDGET: Final = 20_000
POSTING_SHARE: Final = 6
SCORED: Final = 384
# Of how many of the best hits the sources are looked at for what stands beside them, and how far around each; of how
# many of what only stands there the own words are scored too.
BESIDE: Final = 96
AROUND: Final = 8
NEAR: Final = 64
# So many places in a list are read while one text is searched for a word.
LOOK: Final = 4
# What a query's own word counts; related ones count less.
OWN: Final = concepts.OWN_WEIGHT
# What a Han character of the query's pairs counts: it ranks what words found, and finds nothing by itself.
CHARACTER: Final = 100


class Hit(NamedTuple):
    """A position and its score in millionths; ``worded`` unless none of the query's own words led there."""

    score: int
    position: int
    worded: bool = True


# A hit: its score, its position, and a number for the source that it names.
Scored = tuple[int, int, int | None]
# Scores of what words found, by position, and the sieve -> scores that meaning has raised or added, and notices.
Meaning = Callable[[int, Mapping[int, int], "Sieve"], tuple[Mapping[int, int], tuple[str, ...]]]


class Found(NamedTuple):
    """The best hits, best first, what a reader should know, and how many of the query's own words occur here."""

    hits: list[Hit]
    notices: tuple[str, ...]
    occurring: int


class Index(NamedTuple):
    """How many records of a namespace have words, how many words, and who holds each word that is not folded yet."""

    documents: int
    length: int
    tail: Mapping[str, Sequence[int]]


class Counted(NamedTuple):
    """What a search needs to know of a namespace, or of several as one: its index, and who holds each word asked for.

    ``holding`` maps the ``token`` of each word to how many records hold it.
    """

    corpus: Index
    holding: Mapping[str, int]


class Gathered(NamedTuple):
    """Positions out of the index with the weights of the words they hold, and what of the index was read.

    ``postings``: all positions of those words that were read to the end. ``left_out`` counts words not read at all.
    """

    weights: dict[int, int]
    postings: dict[str, list[int]]
    left_out: int


# What was gathered in one snapshot, by namespace and by the weights of the words that were looked for.
Gatherings = dict[tuple[int, tuple[tuple[str, int], ...]], Gathered]


class Sieve:
    """Lets through what may be recalled by its columns, and counts what it holds back.

    That is what is in ``view``, not expired at ``now`` (None: whenever), trusted enough, of the kinds and within the
    first and last position asked for, and one of the positions ``only``, if there are any; and, where ``below`` is
    given, trusted less than that.
    """

    __slots__ = ("_below", "_floor", "_held_back", "_kinds", "_now", "_span", "only", "shown", "view")

    def __init__(
        self,
        floor: int,
        now: int | None,
        *,
        kinds: frozenset[Kind] = frozenset(),
        span: tuple[int, int] = (0, LAST),
        only: frozenset[int] | None = None,
        view: View = NOW,
        below: int | None = None,
    ) -> None:
        self._floor = floor
        self._below = below
        self._now = now
        self._kinds = kinds
        self._span = span
        self.only = only
        self.view = view
        # By position, since several lanes meet the same record.
        self._held_back: dict[int, str] = {}
        # What the context shows already, and no lane need find again.
        self.shown: set[int] = set()

    @property
    def omitted(self) -> Counter[str]:
        """How many records were held back, by reason."""
        return Counter([reason for position, reason in self._held_back.items() if position not in self.shown])

    @property
    def counts(self) -> bool:
        """Whether anybody is told what it held back: one for what is below the floor holds back the context itself."""
        return self._below is None

    @property
    def floor(self) -> int:
        """The least trust that is let through."""
        return self._floor

    @property
    def terms(self) -> Terms:
        """What a record's columns must say to be let through."""
        return Terms(self._floor, self._now, self._kinds, self._below)

    @property
    def first(self) -> int:
        """The first position that is let through."""
        return self._span[0]

    @property
    def last(self) -> int:
        """The last position that is let through."""
        return self._span[1]

    def admits(self, candidate: Candidate) -> bool:
        """Whether a record may be recalled; counts it, if not and if this one ``counts``."""
        if self.passes(candidate):
            return True
        if not self.counts:
            return False
        position, _, expires, kind = candidate
        if position in self.shown:
            return False
        expired = expires is not None and self._now is not None and expires <= self._now
        asked = (not self._kinds or kind in self._kinds) and self.spares(position)
        # The floor last: what would be there but for it is what its section may give.
        self._held_back[position] = "expired" if expired else "below_floor" if asked else "filtered"
        return False

    def passes(self, candidate: Candidate) -> bool:
        """Whether a record may be recalled."""
        position, trust, expires, kind = candidate
        return (
            self.trusts(trust)
            and (expires is None or self._now is None or expires > self._now)
            and (not self._kinds or kind in self._kinds)
            and self.spares(position)
        )

    def trusts(self, trust: int) -> bool:
        """Whether what is trusted so much may be recalled."""
        return trust >= self._floor and (self._below is None or trust < self._below)

    def underneath(self, now: int) -> Sieve:
        """One for what stands and is live at a time and is held back by the floor alone."""
        return Sieve(
            Trust.UNKNOWN.value,
            now,
            kinds=self._kinds,
            span=self._span,
            only=self.only,
            view=View(self.view.sequence),
            below=self._floor,
        )

    @property
    def picks(self) -> bool:
        """Whether it is asked for more than the columns: for a place, or for what is not shown yet."""
        return bool(self.shown) or self.only is not None or self._span != (0, LAST)

    def spares(self, position: int) -> bool:
        """Whether a record whose columns meet the ``terms`` may be recalled where it stands."""
        return (
            self._span[0] <= position <= self._span[1]
            and (self.only is None or position in self.only)
            and position not in self.shown
        )


def search(
    reader: Reader,
    number: int,
    words: Mapping[str, int],
    sieve: Sieve,
    *,
    limit: int,
    meaning: Meaning | None = None,
    here: Counted | None = None,
    among: Counted | None = None,
    earlier: Gatherings | None = None,
) -> Found:
    """The records that the sieve lets through and that answer a query best, by BM25 in integers.

    ``words`` maps each word to what it counts, in thousandths of a query's own word. The rarest words are read first,
    within what one search may read; a word that no longer fits is left out of the candidates (never of the score) and a
    notice says so. The Han characters of the query's own pairs only rank. ``meaning`` then has its say. What stands
    beside a hit in its source gains from it, as far as standing side by side means anything there. Ties go to the newer
    record. ``here`` is what was ``counted`` before of its ``query_tokens``; ``among`` all that is searched with it, by
    which words are chosen and weighed, so that scores can be compared. ``earlier`` takes up what the index says, for
    whoever searches for the same words through another sieve.
    """
    tokens = query_tokens(words)
    if not tokens and meaning is None:
        return Found([], (), 0)
    index, holding = here or counted(reader, number, indexed(reader, number), tokens.keys())
    corpus, spread = among or Counted(index, holding)
    fresh: dict[int, list[str]] = {}
    for word in tokens.keys() & index.tail.keys():
        for position in index.tail[word]:
            fresh.setdefault(position, []).append(word)
    worth = _worth(tokens, holding, corpus.documents, spread)
    weights = {word: weight for word, weight in worth.items() if tokens[word] != CHARACTER}
    gatherings = {} if earlier is None else earlier
    same = number, tuple(weights.items())
    if same not in gatherings:
        room = max(POSTING_BUDGET, index.documents // POSTING_SHARE)
        gatherings[same] = _gather(reader, number, weights, holding, room)
    gathered = gatherings[same]
    for position, held in fresh.items():
        weight = sum(weights.get(word, 0) for word in held)
        if weight:
            gathered.weights[position] = weight
    scored = ranking.scorer(worth, ranking.Corpus(corpus.documents, corpus.length))
    rows = _best(reader, number, gathered.weights, sieve)
    held_by = _held(rows, worth, gathered.postings, fresh)
    scores = {row.position: scored(row.words, row.length, held_by[row.position]) for row in rows}
    left = gathered.left_out
    notices = (f"{left} of {len(weights)} query words are too common here to find candidates by",) if left else ()
    if meaning is not None:
        raised, said = meaning(number, scores, sieve)
        more = list(reader.words_of(number, [position for position in raised if position not in scores]))
        held_by |= _held(more, worth, gathered.postings, fresh)
        rows += more
        scores, notices = dict(raised), (*notices, *said)
    if any(row.source is not None for row in rows):
        best = sorted([(scores[row.position], row.position, row.source) for row in rows], reverse=True)
        lines = _around(reader, number, best, sieve)
        gained = ranking.beside(scores, lines, ranking.cohesion(lines, gathered.weights))
        near = list(reader.words_of(number, _near(gained, scores, gathered.weights)))
        held_by |= _held(near, worth, gathered.postings, fresh)
        scores |= {row.position: scored(row.words, row.length, held_by[row.position]) for row in near}
        scores = _placed(best, scores, lines, gained, held_by)
    own = [word for word, thousandths in tokens.items() if thousandths == OWN]
    asked, looked_at = frozenset(own), {row.position: row.words for row in rows}
    # Beyond the limit of a query's words, none was looked for in the index.
    unasked = [f" {word} " for word in own if holding[word] and word not in weights]
    found = [
        Hit(
            score,
            position,
            position not in looked_at
            or not asked.isdisjoint(held_by[position])
            or any(needle in looked_at[position] for needle in unasked),
        )
        for score, position in _greatest(scores, limit)
    ]
    return Found(found, notices, sum(1 for word in own if holding[word]))


def query_tokens(words: Mapping[str, int]) -> dict[str, int]:
    """What a search looks up and what each counts: the tokens of its words, and the characters of the query's own."""
    found = {token(word): thousandths for word, thousandths in words.items()}
    signs = characters(word for word, thousandths in found.items() if thousandths == OWN)
    return found | {sign: CHARACTER for sign in signs if sign not in found}


def indexed(reader: Reader, number: int) -> Index:
    """What every search of a namespace needs of it, whatever it looks for."""
    corpus = reader.corpus(number)
    documents, length = corpus.documents, corpus.length
    tail: dict[str, list[int]] = {}
    for row in reader.word_rows(number, corpus.through, LAST):
        documents, length = documents + 1, length + row.length
        # By the type: a column of bytes, which a damaged file may hold, is refused.
        for word in str.split(row.words):
            tail.setdefault(word, []).append(row.position)
    return Index(documents, length, tail)


def counted(reader: Reader, number: int, index: Index, tokens: Collection[str]) -> Counted:
    """How many records of a namespace hold each of some words, by their tokens; ``index`` is what was ``indexed``."""
    holding = reader.holding(number, list(tokens))
    for word in tokens & index.tail.keys():
        holding[word] += len(index.tail[word])
    return Counted(index, holding)


def together(counts: Sequence[Counted]) -> Counted:
    """Several namespaces as one corpus; what is not folded yet stays with each."""
    documents = sum(each.corpus.documents for each in counts)
    length = sum(each.corpus.length for each in counts)
    holding = Counter[str]()
    for each in counts:
        holding.update(each.holding)
    return Counted(Index(documents, length, {}), holding)


def _worth(
    tokens: Mapping[str, int], holding: Mapping[str, int], documents: int, spread: Mapping[str, int]
) -> dict[str, int]:
    """What each word weighs that is looked for and occurs here, in the order in which they are read.

    A query's own words are not crowded out by words related to them. Which of them count is the same wherever it is
    searched, by how many of all ``documents`` hold each (``spread``); which are read first is a matter of what they
    cost here (``holding``).
    """
    own = [word for word, thousandths in tokens.items() if thousandths == OWN]
    related = [word for word, thousandths in tokens.items() if thousandths not in {OWN, CHARACTER}]
    signs = [word for word, thousandths in tokens.items() if thousandths == CHARACTER]
    chosen = [ranking.rarest(lane, spread, MAX_QUERY_WORDS) for lane in (own, related, signs)]
    kept = [word for lane in chosen for word in ranking.rarest(lane, holding, MAX_QUERY_WORDS) if holding[word]]
    return {word: max(1, ranking.idf(documents, spread[word]) * tokens[word] // OWN) for word in kept}


def _held(
    rows: Sequence[WordRow],
    weights: Mapping[str, int],
    postings: Mapping[str, Sequence[int]],
    fresh: Mapping[int, Collection[str]],
) -> dict[int, list[str]]:
    """Which of the words that count each of some records holds: by their postings, or by a look where that is less."""
    looked = {word: f" {word} " for word in weights if len(postings.get(word, ())) > LOOK * len(rows)}
    looked |= {word: f" {word} " for word in weights if word not in postings}
    needles = list(looked.items())
    held = {row.position: [word for word, needle in needles if needle in row.words] for row in rows}
    for word, positions in postings.items():
        if word not in looked:
            for position in held.keys() & positions:
                held[position].append(word)
    return held | {
        position: [word for word in fresh[position] if word in weights] for position in held.keys() & fresh.keys()
    }


def _greatest(scores: Mapping[int, int], limit: int) -> list[tuple[int, int]]:
    """The greatest scores, so many of them, each with its position, greatest first; the newer first among equals."""
    # Numbers alone are sorted in half the time of pairs.
    bar = sorted(scores.values(), reverse=True)[limit - 1 : limit]
    among = [(score, position) for position, score in scores.items() if not bar or score >= bar[0]]
    return sorted(among, reverse=True)[:limit]


def _around(reader: Reader, number: int, best: Sequence[Scored], sieve: Sieve) -> list[tuple[int, list[int]]]:
    """The best hits that name a source, each with what may be recalled around it there, in order."""
    named = [position for _, position, source in best if source is not None]
    lines = reader.beside(number, named[:BESIDE], AROUND, sieve.view, sieve.terms)
    if sieve.picks:
        return [(hit, [near for near in line if near == hit or sieve.spares(near)]) for hit, line in lines]
    return lines


def _near(gained: Mapping[int, int], scores: Mapping[int, int], gathered: Mapping[int, int]) -> list[int]:
    """Of what only stands beside hits and holds words of the query, the ``NEAR`` that gain most; newer among equals."""
    only = [(gain, position) for position, gain in gained.items() if position not in scores and position in gathered]
    return [position for _, position in sorted(only, reverse=True)[:NEAR]]


def _placed(
    best: Sequence[Scored],
    scores: Mapping[int, int],
    lines: Sequence[tuple[int, list[int]]],
    gained: Mapping[int, int],
    held_by: Mapping[int, Collection[str]],
) -> dict[int, int]:
    """The scores, with what a record gains from standing beside a hit, and from the rest of its source.

    ``best`` are the hits, best first.
    """
    # A record without a source is one of its own.
    sources: dict[int, Hashable] = {position: (position,) if source is None else source for _, position, source in best}
    # What stands behind the best holds words of the query by chance, and says nothing of its source.
    worth = ranking.of_sources([(sources[at], held_by[at]) for _, at, _ in best[: ranking.SPEAKING]])
    if gained:
        for hit, line in lines:
            sources.update(dict.fromkeys(line, sources[hit]))
    speaking = min(len(scores), ranking.SPEAKING)
    top = max(scores.values(), default=0) * ranking.SOURCE_THOUSANDTHS * speaking // ranking.SPEAKING
    lent = {source: top * thousandths // 1_000_000 for source, thousandths in worth.items()}
    result = {position: score + lent.get(sources[position], 0) for position, score in scores.items()}
    for position, gain in gained.items():
        result[position] = gain + (result[position] if position in result else lent.get(sources[position], 0))
    return result


def _best(reader: Reader, number: int, gathered: dict[int, int], sieve: Sieve) -> list[WordRow]:
    """The words of the first ``SCORED`` by weight, newer ones first among equals, that may be recalled."""
    bar = _least(gathered.values())
    above = sorted([(weight, position) for position, weight in gathered.items() if weight > bar], reverse=True)
    equal = sorted([position for position, weight in gathered.items() if weight == bar], reverse=True)
    asked = [*(position for _, position in above), *equal][:SCORED]
    ranked: list[int] = []
    found: list[WordRow] = []
    seen = 0
    while asked:
        rows = list(reader.offered(number, asked, sieve.view, sieve.terms))
        if sieve.picks:
            rows = [row for row in rows if sieve.spares(row.position)]
        if len(rows) < len(asked) and sieve.counts:
            let = {row.position for row in rows}
            for other in reader.candidates(number, [position for position in asked if position not in let], sieve.view):
                sieve.admits(other)
        found += rows
        seen += len(asked)
        if len(found) >= SCORED or seen >= len(gathered):
            break
        # What has ended or may not be recalled takes nobody's place.
        if not ranked:
            ranked = [position for _, position in sorted(zip(gathered.values(), gathered, strict=True), reverse=True)]
        asked = ranked[seen : seen + SCORED]
    return found[:SCORED]


def _least(weights: Collection[int]) -> int:
    """The least weight among the ``SCORED`` greatest; all are sums of a few, and so there are few different ones."""
    times = Counter(weights)
    left, weight = SCORED, 0
    for weight in sorted(times, reverse=True):
        left -= times[weight]
        if left <= 0:
            break
    return weight


def _gather(reader: Reader, number: int, weights: dict[str, int], holding: Mapping[str, int], room: int) -> Gathered:
    """What the index says of a query's words, rarest first, as far as there is room for so many postings."""
    gathered: dict[int, int] = {}
    read: dict[str, list[int]] = {}
    left_out = bar = most = done = 0
    left = sum(weights.values())
    for word, weight in weights.items():
        if holding[word] > room and gathered:
            left_out += 1
            continue
        rows = reader.postings(number, word, room if holding[word] > room else None)
        if holding[word] <= room:
            read[word] = rows
        room -= len(rows)
        if left < bar:
            # Whoever holds none of the words so far can no longer become one of the best.
            for position in gathered.keys() & rows:
                gathered[position] += weight
        else:
            more = dict.fromkeys(rows, weight)
            for position in gathered.keys() & rows:
                more[position] += gathered[position]
            gathered |= more
            # Nobody weighs more than all words so far together, nor more than the best did before by this word.
            most = min(most, done) + weight
            if len(gathered) >= SCORED and most > left - weight:
                bar = most = _least(gathered.values())
        done += weight
        left -= weight
    return Gathered(gathered, read, left_out)
