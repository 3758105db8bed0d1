"""Stream a store through replay: what history proves, and whether every derived row says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain as joined
from typing import Final, NamedTuple, TypeVar

from ledgerstone.anchors import Anchor, Anchors
from ledgerstone.core import chain, rules, state
from ledgerstone.core.entries import CloseEntry, Content, Entry, RecordEntry, decode_entry, digest_of
from ledgerstone.core.facts import Change
from ledgerstone.core.signing import Keyring
from ledgerstone.core.values import Ending, Finding, Report, Scope
from ledgerstone.core.verify import Authorities, Replay, Replayed, check_head, check_signature
from ledgerstone.core.words import ANALYZER
from ledgerstone.errors import CorruptionError, FormatError, RuleError
from ledgerstone.following import check_fits
from ledgerstone.settling import Settled
from ledgerstone.store.protocol import (
    AHEAD,
    FOLD_EVERY,
    LAST,
    NODE_LEVELS,
    ChainRow,
    Derived,
    Reader,
    Shape,
    Store,
    Vectored,
    WordRow,
    Writer,
    ahead,
)
from ledgerstone.writing import word_row

K = TypeVar("K")
V = TypeVar("V")
# How many commits of a chain lie between two words of progress.
PROGRESS_EVERY: Final = 256


# What to do when history is damaged.
RESTORED: Final = "nothing was changed; restore a backup; ledgerstone verify lists every fault"
# What is said of an error that ended a check.
UNCHECKED: Final = "{}; beyond that {} could not be checked"
# What is said of a store whose derived rows cannot be read.
UNDERIVED: Final = "history was replayed; derived rows, promotions, receipts and erasures are checked after a rebuild"


def _unheard(_: object, __: object = None) -> None:
    """Tell nobody."""


class Watch(NamedTuple):
    """Who is told of a verification while it runs: commits done and of how many, and each finding once it is made."""

    progress: Callable[[int, int], None] = _unheard
    found: Callable[[Finding], None] = _unheard


UNWATCHED: Final = Watch()


def named(what: str, reader: Reader, run: Callable[[], Iterable[Finding]], *, damaged: bool) -> Iterator[Finding]:
    """What a check of ``what`` finds, and in words what kept it from the rest: no fault hides another.

    An error that damage alone does not explain is raised, unless something is ``damaged`` for sure.
    """
    try:
        yield from run()
    except reader.damaged as error:
        yield Finding("unread", "", None, UNCHECKED.format(error, what))
    except (TypeError, ValueError, AttributeError) as error:
        if not damaged:
            raise
        yield Finding("unread", "", None, UNCHECKED.format(error, what))


def verify(reader: Reader, keyring: Keyring, watch: Watch = UNWATCHED) -> Report:
    """Every fault of a store: bytes, links, signatures, rules, derived rows, the file itself."""
    findings: list[Finding] = []

    def tell(new: Iterable[Finding]) -> None:
        for finding in new:
            findings.append(finding)
            watch.found(finding)

    shape = reader.shape()
    tell(named("the file as a whole", reader, lambda: _of_file(reader, shape), damaged=True))
    if shape.lost:
        return Report(findings=tuple(findings), namespaces=0, commits=0, entries=0, heads={})
    sound = len(findings) == len(shape.foreign)
    heads: dict[str, tuple[int, bytes]] = {}
    done = records = posted = 0
    authorities = Authorities()
    wrong: list[str] = []
    rows = reader.chains(wrong)
    tell(Finding("chain", "", None, line) for line in wrong)
    total = sum(row.sequence + 1 for row in rows)
    for index, row in enumerate(rows):
        namespace = row.namespace
        settled = Settled(reader, row.number) if sound and shape.derived else None
        replay = Replay(namespace, authorities, store=index == 0, settled=settled)
        told = 0
        try:
            check = _Derivation(reader, replay, row.number, settled, there=shape.derived)
            for sequence, one in commits(reader, replay, row, keyring):
                check.entry(sequence, one)
                if sequence % PROGRESS_EVERY == 0 or len(replay.findings) > told:
                    tell(replay.findings[told:])
                    told = len(replay.findings)
                    watch.progress(done + sequence, total)
            posted += check.finish()
        except reader.damaged as error:
            replay.find("unread", None, UNCHECKED.format(error, "this chain"))
        except (TypeError, ValueError, AttributeError) as error:
            # A column of a wrong type; the file's own check has named it, or else it is a fault of this program.
            if not findings:
                raise
            replay.find("unread", None, UNCHECKED.format(error, "this chain"))
        tell(replay.findings[told:])
        if replay.head is not None:
            heads[namespace] = replay.head.sequence, replay.head.id
            done += replay.head.sequence + 1
            watch.progress(done, total)
        records += replay.size
    tell(
        Finding("namespace", namespace, None, "the store chain made it, but its chain is missing")
        for namespace in authorities.namespaces
        if namespace not in heads and namespace not in authorities.parted
    )
    tell(authorities.findings(rows[0].namespace if rows else ""))
    if shape.derived:
        tell(named("promotions", reader, lambda: promotions(reader, authorities), damaged=bool(findings)))
        tell(named("the word index", reader, lambda: _posted(reader, posted), damaged=bool(findings)))
    else:
        tell([Finding("schema", "", None, UNDERIVED)])
    return Report(findings=tuple(findings), namespaces=len(rows[1:]), commits=done, entries=records, heads=heads)


def _of_file(reader: Reader, shape: Shape) -> Iterator[Finding]:
    """What is wrong with the file itself: its schema, what SQLite says of it, rows of no chain."""
    for line in shape.foreign:
        yield Finding("schema", "", None, line)
    for line in shape.lost:
        yield Finding("lost", "", None, f"{line}; history stands in it, so nothing else was checked")
    if shape.derived and not shape.lost:
        for code, line in reader.amiss():
            yield Finding(code, "", None, line)


def _posted(reader: Reader, posted: int) -> Iterator[Finding]:
    """What is wrong with the one index of all chains."""
    if reader.posted() != posted:
        yield Finding("index", "", None, "the word index does not hold the words of the records")


def promotions(reader: Reader, authorities: Authorities) -> Iterator[Finding]:
    """What is wrong with what came from other namespaces, once all chains were read.

    Of a namespace that the store goes on without nobody can tell.
    """
    for namespace, sequence, entry, record in authorities.promotions:
        came, went = authorities.made(entry.source_namespace), authorities.made(namespace)
        row = reader.chain(entry.source_namespace)
        if entry.source_namespace in authorities.parted or went is None:
            continue
        source = body = None
        if came is not None and row is not None:
            source = body = _entry_of(reader, row.number, entry.source)
        while row is not None and isinstance(body, CloseEntry):
            body = _entry_of(reader, row.number, body.closes)
        promoted = rules.Promoted(
            (entry.source_namespace, Scope.STORE if came is None else came.entry.scope),
            (namespace, went.entry.scope),
            source,
            body if isinstance(body, RecordEntry) else None,
            record,
        )
        try:
            rules.check_promotion(entry, promoted)
        except RuleError as error:
            yield Finding("rule", namespace, sequence, f"it breaks the rule {error.message}")


def _entry_of(reader: Reader, number: int, digest: bytes) -> Entry | None:
    """The entry of a chain that has a digest: a row leads to it, or else all of them are looked through."""
    led = (reader.entry(number, position) for one, position in reader.digests(digest) if one == number)
    every = (data for _, data in reader.entries(number, 0, LAST))
    data = next((each for each in joined(led, every) if each is not None and digest_of(each) == digest), None)
    return None if data is None else decode_entry(data)


def commits(reader: Reader, replay: Replay, row: ChainRow, keyring: Keyring) -> Iterator[tuple[int, Replayed]]:
    """Replay a chain commit by commit from where it stands, with its signatures, up to its head row."""
    number, first = row.number, replay.due
    signatures = {at: one for at, one in reader.signatures(number).items() if at >= first}
    rows = _Rows(reader, number, replay.size)
    kept: set[int] = set()
    for sequence, stored, data in ahead(reader.headers(number, newest=first, oldest=LAST)):
        found = replay.header(sequence, data)
        if found is None:
            continue
        commit, header = found
        if header.sequence != sequence:
            replay.find("chain", sequence, f"it says of itself that it is commit {header.sequence}")
        if stored != commit:
            replay.find("chain", sequence, "its id column is not the hash of its bytes")
        place = replay.place(header)
        bodies = rows.bodies(place, len(header.entries))
        if len(bodies) != len(header.entries):
            replay.find("entries", sequence, "an entry is missing or out of place")
        for one in replay.commit(commit, header, bodies, rows.contents(place + len(bodies))):
            yield sequence, one
        signature = signatures.pop(sequence, None)
        if signature is not None:
            kept.add(sequence)
            check_signature(replay, keyring, commit, header, signature)
    replay.finish()
    _finish_chain(replay, row, keyring, reader.tiles(number))
    every = chain.SIGNATURE_EVERY
    due = {at for at in replay.lasts if at >= first} | set(range(-(-first // every) * every, replay.due, every))
    for sequence in sorted(due - kept):
        replay.find("signature", sequence, "its kept signature is missing")
    if signatures or kept - due:
        replay.find("signature", min([*signatures, *(kept - due)]), "a signature is kept that nothing asks for")
    if rows.left():
        replay.find("entries", None, "there are entries or contents that no commit lists")


class _Rows:
    """Entries and contents of one chain in step with its commits, each table read once from a position on."""

    __slots__ = ("_bodies", "_body", "_content", "_contents", "_unlisted")

    def __init__(self, reader: Reader, number: int, first: int) -> None:
        self._bodies = ahead(reader.entries(number, first, LAST))
        self._contents = ahead(reader.contents(number, first, LAST))
        self._body = next(self._bodies, None)
        self._content = next(self._contents, None)
        self._unlisted = False

    def bodies(self, first: int, count: int) -> list[bytes]:
        """The bytes of the entries from a position on, as far as they stand there one after another."""
        while self._body is not None and self._body[0] < first:
            self._unlisted = True
            self._body = next(self._bodies, None)
        taken: list[bytes] = []
        while self._body is not None and len(taken) < count and self._body[0] == first + len(taken):
            taken.append(self._body[1])
            self._body = next(self._bodies, None)
        return taken

    def contents(self, end: int) -> dict[int, tuple[bytes, bytes]]:
        """The salts and contents not yet taken, up to a position."""
        taken: dict[int, tuple[bytes, bytes]] = {}
        while self._content is not None and self._content[0] < end:
            taken[self._content[0]] = self._content[1], self._content[2]
            self._content = next(self._contents, None)
        return taken

    def left(self) -> bool:
        """Whether anything was not taken."""
        return self._unlisted or self._body is not None or self._content is not None


def _finish_chain(replay: Replay, row: ChainRow, keyring: Keyring, tiles: dict[int, bytes]) -> None:
    head = replay.head
    if head is None or (row.sequence, row.commit) != (head.sequence, head.id):
        replay.find("head", row.sequence, "the head row is not the newest commit of the chain")
        return
    check_head(replay, keyring, head.id, head.header, row.signature)
    if not replay.whole:
        return
    if row.frontier != head.frontier:
        replay.find("head", row.sequence, "the head row's frontier is not that of the chain")
    since = replay.since // chain.SIGNATURE_EVERY
    if {at: root for at, root in tiles.items() if at >= since} != replay.tiles:
        replay.find("tile", None, "the kept roots of 256 commits are not those of the chain")


class _Derivation:
    """Compares the derived rows of one chain with what replay derives."""

    __slots__ = (
        "_catalog",
        "_documents",
        "_length",
        "_links",
        "_number",
        "_pending",
        "_posted",
        "_reader",
        "_replay",
        "_rows",
        "_settled",
        "_tail",
        "_texts",
        "_there",
        "_unread",
        "_words",
    )

    def __init__(self, reader: Reader, replay: Replay, number: int, settled: Settled | None, *, there: bool) -> None:
        # Without its tables there is nothing to compare.
        self._there = there
        self._settled = settled
        self._reader = reader
        self._replay = replay
        self._number = number
        self._rows = ahead(reader.word_rows(number, 0, LAST))
        self._unread: set[int] = set()
        self._texts: dict[int, Content] = {}
        # What words are yet to be cut from: sequence, position and content of some entries.
        self._pending: list[tuple[int, int, Content]] = []
        self._catalog: dict[tuple[str, str, int], int] = {}
        self._links: set[tuple[int, int, int]] = set()
        # What is folded into the word index, and the rows that are not yet.
        self._words: Counter[str] = Counter()
        self._documents = self._length = self._posted = 0
        self._tail: list[WordRow] = []

    def entry(self, sequence: int, one: Replayed) -> None:
        """Take one entry in: its word row is compared together with those of others, the rest at the end."""
        if not self._there:
            return
        change = one.change
        if self._settled is not None and self._replay.whole:
            self._settled.settle(change, self._replay.folded)
        for noun, value in change.lookups:
            self._catalog[noun, value, change.position] = sequence
        for source in change.sources:
            self._links.add((source, change.position, source in change.covers))
        text = indexed_text(change, one.content, self._texts)
        if text is not None:
            self._pending.append((sequence, change.position, text))
            if len(self._pending) == AHEAD:
                self._cut()
        elif change.indexed:
            self._unread.add(change.position)

    def _cut(self) -> None:
        """Compare the word rows of the entries that wait for it with the words of their texts."""
        rows = [word_row(position, text) for _, position, text in self._pending]
        for (sequence, position, _), row in zip(self._pending, rows, strict=True):
            if self._tail and self._tail[0].position // FOLD_EVERY < position // FOLD_EVERY:
                self._fold()
            self._tail.append(row)
            if self._next() != row:
                self._replay.find("words", sequence, f"the words of entry {position} are not those of its text")
                self._rows = ahead(self._reader.word_rows(self._number, position + 1, LAST))
        self._pending.clear()

    def _next(self) -> WordRow | None:
        """The next word row, but for those of a text that cannot be read, about which nothing can be said."""
        row = next(self._rows, None)
        while row is not None and row.position in self._unread:
            row = next(self._rows, None)
        return row

    def finish(self) -> int:
        """Compare everything else that is derived; what the full-text index must hold of this chain."""
        replay, reader, number = self._replay, self._reader, self._number
        if not self._there:
            return 0
        self._cut()
        if self._next() is not None:
            replay.find("words", None, "there are words of no record")
        if self._settled is None or not self._settled.whole(replay.folded):
            self._records()
        if set(reader.links(number)) != self._links:
            replay.find("link", None, "the links are not those that the entries name")
        catalog = {
            (noun, value, position): (sequence, *replay.ended.get(position, (0, 0)))
            for (noun, value, position), sequence in self._catalog.items()
        }
        found = {
            (row.noun, row.value, row.position): (row.sequence, row.ended_by, row.ending)
            for row in reader.catalog(number)
        }
        expected_catalog = {
            key: value if value[2] == Ending.REVOKED else (value[0], 0, 0) for key, value in catalog.items()
        }
        if found != expected_catalog:
            differing = {key[0] for key in found.keys() ^ expected_catalog.keys()} | {
                key[0] for key in found.keys() & expected_catalog.keys() if found[key] != expected_catalog[key]
            }
            replay.find("catalog", None, f"rows of the catalog are not what history says: {sorted(differing)}")
        if not _equal(reader.idempotencies(number), replay.idempotencies):
            replay.find("idempotency", None, "the idempotency keys are not those of the commits")
        self._state()
        self._index()
        self._vectors()
        return self._posted

    def _records(self) -> None:
        """The record rows against the versions, one by one."""
        replay = self._replay
        settled = () if self._settled is None else self._settled.positions()
        known = map(replay.folded.version, sorted({*replay.folded.known, *settled}))
        for row in self._reader.knowns(self._number, 0, LAST):
            expected = next(known, None)
            if expected is None or expected.position != row.position:
                replay.find("record", None, f"record rows are missing or too many near entry {row.position}")
                break
            if row != expected:
                replay.find("record", row.sequence, f"the row of entry {row.position} is not what history says")
        else:
            if next(known, None) is not None:
                replay.find("record", None, "record rows are missing at the end")

    def _state(self) -> None:
        """The state tree, built from replay at once, against the signed root and every stored node."""
        replay = self._replay
        if not replay.whole:
            return
        levels = [_Level(self._reader.nodes(self._number, level)) for level in range(NODE_LEVELS)]
        wrong = 0

        def compare(level: int, index: int, children: bytes) -> None:
            nonlocal wrong
            wrong += levels[level].at(index) != children

        root = state.build(replay.leaves(), compare)
        if replay.head is not None and root != replay.head.header.state:
            replay.find("state", replay.head.sequence, "the head does not sign for the state that history leads to")
        wrong += sum(level.left() for level in levels)
        if wrong:
            replay.find("node", None, f"{wrong} nodes of the state tree are not what history says")

    def _vectors(self) -> None:
        """That a vector stands only where words do; what it says of them, its encoder alone could tell."""
        reader, number = self._reader, self._number
        reach = reader.vectored(number) or Vectored("", 1, 0)
        through, width = 0, max(reach.dimension, 1)
        sound = reach.through <= self._replay.size and reach.dimension == width
        for first, body in reader.vector_blocks(number):
            slots = [body[start : start + width] for start in range(0, len(body), width)]
            there = [first + place for place, vector in enumerate(slots) if any(vector)]
            sound &= first == through and sum(1 for _ in reader.words_of(number, there)) == len(there)
            through += len(slots)
        if through != reach.through or not sound:
            self._replay.find("vectors", None, "the vectors are not those of the records; rebuild drops them")

    def _fold(self) -> None:
        """Take the words of a block of positions into the totals of the index."""
        words = [row.words.split() for row in self._tail]
        self._words.update(joined.from_iterable(words))
        for row, own in zip(self._tail, words, strict=True):
            self._posted += self._reader.posting(self._number, row.position, own)
        self._documents += len(self._tail)
        self._length += sum(row.length for row in self._tail)
        self._tail.clear()

    def _index(self) -> None:
        replay = self._replay
        through = replay.size // FOLD_EVERY * FOLD_EVERY
        if self._tail and self._tail[0].position < through:
            self._fold()
        if not _equal(self._reader.frequencies(self._number), self._words):
            replay.find("index", None, "the word frequencies are not those of the records")
        if self._reader.corpus(self._number) != (through, self._documents, self._length):
            replay.find("index", None, "the totals of the word index are not those of the records")


class _Level:
    """The stored nodes of one level, each taken in its turn."""

    __slots__ = ("_left", "_next", "_rows")

    def __init__(self, rows: Iterator[tuple[int, bytes]]) -> None:
        self._rows = rows
        self._next = next(rows, None)
        self._left = 0

    def at(self, index: int) -> bytes | None:
        """The children of the node at an index, which is greater each time."""
        while self._next is not None and self._next[0] < index:
            self._left += 1
            self._next = next(self._rows, None)
        if self._next is None or self._next[0] != index:
            return None
        children = self._next[1]
        self._next = next(self._rows, None)
        return children

    def left(self) -> int:
        """How many nodes nobody asked for; asked once, at the end."""
        return self._left + (self._next is not None) + sum(1 for _ in self._rows)


def _equal(rows: Iterable[tuple[K, V]], expected: Mapping[K, V]) -> bool:
    """Whether rows with a key each are those expected, without holding them."""
    left = len(expected)
    for key, value in rows:
        if expected.get(key) != value:
            return False
        left -= 1
    return not left


def indexed_text(change: Change, content: Content | None, texts: dict[int, Content]) -> Content | None:
    """What the words of one replayed entry are cut from; ``texts`` keeps those of open tasks, which closing needs."""
    known = change.added
    if known is None:
        return None
    if known.open_task and content is not None:
        texts[change.position] = content
    if not change.indexed:
        return None
    return texts.get(known.body) if known.body != change.position else content


Gone = Mapping[str, Anchor | None]
"""By namespace the head that was seen here and is gone; None where nobody can tell any more which one that was."""


def abandoned(
    reader: Reader, heads: Mapping[str, tuple[int, bytes]], anchors: Anchors, since: int
) -> dict[str, Anchor | None]:
    """The anchors that a verified store does not contain: heads that were seen here and are gone.

    What was remembered after ``since`` may be newer than the snapshot, and tells nothing.
    """
    gone: dict[str, Anchor | None] = {}
    for namespace, (sequence, _) in heads.items():
        try:
            row = reader.chain(namespace)
        except CorruptionError:
            # The verification has named it; what was not followed has no head to hold to anything.
            continue
        try:
            anchor = anchors.newest(namespace)
        except CorruptionError:
            gone[namespace] = None
            continue
        if anchor is None or row is None or (anchor.sequence > sequence and anchors.later(anchor, since)):
            continue
        data = reader.header(row.number, anchor.sequence) if anchor.sequence <= sequence else None
        if data is None or chain.link(data)[0] != anchor.commit:
            gone[namespace] = anchor
    return gone


def naming(report: Report, gone: Gone) -> Report:
    """The report, with each head that is gone as a finding."""
    found = tuple(
        Finding("anchor", name, anchor.sequence, f"commit {anchor.commit.hex()[:16]} was seen here, and is gone")
        if anchor is not None
        else Finding("anchor", name, None, "which head was seen here cannot be read any more")
        for name, anchor in sorted(gone.items())
    )
    return replace(report, findings=report.findings + found)


def renew(store: Store, keyring: Keyring, *, read_only: bool) -> bool:
    """Write the derived rows anew if another analyzer cut the words of the index; whether that was needed.

    Raises as ``rebuild`` does, and FormatError where nothing may be written.
    """
    with store.read() as reader:
        found = reader.analyzer()
        if found == ANALYZER or reader.first_chain() is None:
            return False
    if read_only:
        raise FormatError(
            f"the word index was cut by {found or 'an older program'}, and is written anew before it is read",
            hint="open the store once without --read-only (LEDGERSTONE_READ_ONLY)",
        )
    with store.write() as writer:
        rebuild(writer, keyring)
    return True


def rebuild(writer: Writer, keyring: Keyring, *, alone: bool = False) -> Report:
    """Write every derived row anew from history; CorruptionError, and nothing changed, when history is damaged.

    What in the schema is not ours is taken out first, and the word index made anew, whatever state it is in. Damaged is
    also a file in which derived rows share pages with history, or that is not sound in the end.
    With ``alone`` other namespaces, and contents of the store chain, may have been left out.
    """
    mended = writer.shape().foreign
    kept = writer.mend()
    check_fits(writer, keyring)
    heads: dict[str, tuple[int, bytes]] = {}
    commits = entries = 0
    authorities = Authorities()
    rows = writer.chains()
    if not rows:
        raise CorruptionError("canonical history is damaged: no chain is there", hint=RESTORED)
    mended += writer.clear_derived()
    for index, row in enumerate(rows):
        namespace = row.namespace
        replay = Replay(namespace, authorities, store=index == 0)
        writer.restore_derived(row.number, _derive(writer, replay, row, keyring, alone=alone and index == 0))
        if replay.findings or replay.head is None:
            first = replay.findings[0] if replay.findings else None
            raise CorruptionError(
                f"{namespace}: canonical history is damaged: {first.message if first else 'it is empty'}",
                hint=RESTORED,
            )
        heads[namespace] = replay.head.sequence, replay.head.id
        commits += replay.head.sequence + 1
        entries += replay.size
    for finding in () if alone else (*authorities.findings(rows[0].namespace), *promotions(writer, authorities)):
        raise CorruptionError(f"{finding.namespace}: canonical history is damaged: {finding.message}")
    missing = authorities.namespaces.keys() - heads.keys() - authorities.parted.keys()
    if missing and not alone:
        raise CorruptionError(
            f"{', '.join(sorted(missing))}: the store chain made it, but its chain is missing",
            hint=RESTORED,
        )
    writer.analyzed(ANALYZER)
    writer.check_mended(kept)
    return Report(findings=(), namespaces=len(rows[1:]), commits=commits, entries=entries, heads=heads, mended=mended)


def _derive(reader: Reader, replay: Replay, row: ChainRow, keyring: Keyring, *, alone: bool) -> Derived:
    texts: dict[int, Content] = {}

    def changes() -> Iterator[tuple[int, Change, WordRow | None]]:
        for sequence, one in commits(reader, replay, row, keyring):
            text = indexed_text(one.change, one.content, texts)
            yield sequence, one.change, None if text is None else word_row(one.change.position, text)
        if alone:
            replay.findings[:] = [finding for finding in replay.findings if finding.code != "missing"]
        if replay.findings:
            raise CorruptionError(
                f"{replay.namespace}: canonical history is damaged: {replay.findings[0].message}",
                hint=RESTORED,
            )

    def nodes() -> Iterator[tuple[int, int, bytes]]:
        built: list[tuple[int, int, bytes]] = []
        root = state.build(replay.leaves(), lambda level, index, children: built.append((level, index, children)))
        if replay.head is None or root != replay.head.header.state:
            raise CorruptionError(f"{replay.namespace}: the head does not sign for the state that history leads to")
        yield from built

    def ended() -> Iterator[tuple[int, tuple[int, int]]]:
        yield from replay.ended.items()

    def idempotencies() -> Iterator[tuple[bytes, int]]:
        yield from replay.idempotencies.items()

    return Derived(changes(), ended(), nodes(), idempotencies(), lambda: replay.size)
