"""Erasure: the commits that take out what a request reaches, and a look at the files for what stayed behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from ledgerstone import reaching, traces
from ledgerstone.anchors import Anchors
from ledgerstone.block import Block
from ledgerstone.core import canonical, receipts, rules
from ledgerstone.core.authority import Caller, Place
from ledgerstone.core.entries import (
    CloseEntry,
    Content,
    ErasedEntry,
    ErasureEntry,
    RetractEntry,
)
from ledgerstone.core.namespaces import unknown
from ledgerstone.core.rendering import count
from ledgerstone.core.rules import Admitted
from ledgerstone.core.sorts import check_moment
from ledgerstone.core.values import (
    MAX_DRAFTS,
    MAX_REASON_BYTES,
    Act,
    Finding,
    Forgotten,
    Retention,
    Scope,
)
from ledgerstone.core.words import index_words, postings
from ledgerstone.errors import LedgerstoneError, UnavailableError, UsageError
from ledgerstone.identity import Identity, Target
from ledgerstone.ledger import Ledger
from ledgerstone.reaching import Reach
from ledgerstone.reading import Reading
from ledgerstone.store.protocol import Reader, Store, Writer
from ledgerstone.writing import parts

UNREACHED: Final = (
    "backups, exports and other copies, what was read before, blocks that the file system keeps by itself",
    "names and reasons that were not asked for",
    "sizes, times and ids, which stay in the chain and give no text away",
)
# Said whether there is anything or not.
WIDER: Final = (
    "what is wider than this project, which is isolated, and names of who was here: ask for them from outside"
)
SHORT: Final = f"texts under {traces.LEAST_BYTES} bytes are not looked for in the files: they occur everywhere"
# What may be let go by its retention; the rest goes by an expiry of its own, or when somebody forgets it.
PASSING: Final = frozenset({Retention.WORKING, Retention.SESSION, Retention.SHORT_TERM})
EXPIRED: Final = "expired"
ERASED_BEFORE: Final = "erased here before"

_Find = Callable[[Reading, Identity], list[Reach]]


def forget(
    ledger: Ledger, caller: Caller, targets: tuple[str, ...], *, reason: str | None, keep: Iterable[str], dry_run: bool
) -> Forgotten:
    """See ``Memory.forget``."""
    if not 1 <= len(targets) <= MAX_DRAFTS:
        raise UsageError(f"forget: 1 to {MAX_DRAFTS} targets, not {len(targets)}")
    # Loaded with the first write: a read does not pay for it.
    from ledgerstone.core import credentials  # noqa: PLC0415

    credentials.check_text("reason", reason, caller.allow_secrets)
    if reason is not None:
        canonical.text(reason, name="reason", least=1, most=MAX_REASON_BYTES)
    kept = frozenset(keep)

    def find(reading: Reading, identity: Identity) -> list[Reach]:
        return reaching.targeted(ledger, reading, identity, caller, targets, kept)

    return _carry_out(ledger, caller, find, reason=reason, keep=kept, dry_run=dry_run)


def expire(
    ledger: Ledger,
    caller: Caller,
    *,
    retention: Retention | None,
    before: int | None,
    keep: Iterable[str],
    dry_run: bool,
) -> Forgotten:
    """See ``Memory.expire``."""
    if (retention is None) != (before is None):
        raise UsageError("expire: a retention and the time before which it was said, or neither")
    if retention is not None and retention not in PASSING:
        words = ", ".join(sorted(each.value for each in PASSING))
        raise UsageError(f"expire: {words}, not {retention.value}", hint="what else is to go: ledgerstone forget")
    check_moment("before", before)
    kept = frozenset(keep)

    def find(reading: Reading, identity: Identity) -> list[Reach]:
        return reaching.lapsed(reading, identity, caller, retention=retention, before=before, keep=kept)

    return _carry_out(ledger, caller, find, reason=EXPIRED, keep=kept, dry_run=dry_run)


def again(ledger: Ledger, caller: Caller) -> tuple[Finding, ...]:
    """Erase what was erased on this machine before and has come back with an older copy of the store.

    Returns as findings what the caller may not erase.
    """
    # Whatever an older copy brings back of what somebody died over erasing, it was to go.
    gone = _erased_here(ledger, intended=True)

    def find(reading: Reading, identity: Identity) -> list[Reach]:
        return reaching.held(reading, identity, caller, gone)

    with ledger.store.read() as reader:
        back = returned(ledger, reader, intended=True)
    if not back or Act.FORGET not in caller.acts:
        return back
    _carry_out(ledger, caller, find, reason=ERASED_BEFORE, keep=frozenset(), dry_run=False)
    with ledger.store.read() as reader:
        return returned(ledger, reader, intended=True)


def returned(ledger: Ledger, reader: Reader, *, intended: bool = False) -> tuple[Finding, ...]:
    """What was erased on this machine before and is there all the same, with an older copy of the store."""
    said = "{} back that had been erased here; who may forget there: verify --accept"
    back = reaching.returned(reader, _erased_here(ledger, intended=intended))
    return tuple(
        Finding("erased", namespace, None, said.format(count(number, "content"))) for namespace, number in back.items()
    )


def _erased_here(ledger: Ledger, *, intended: bool) -> frozenset[bytes]:
    return frozenset() if ledger.anchors is None else ledger.anchors.erased(intended=intended)


class _Gone:
    """What is being erased: commitments to remember, and pieces of text to look for, each with its version's number.

    ``texts`` are the pieces of each text itself, in each form; the rest are of keys, tags and the like, and of words.
    """

    __slots__ = ("commitments", "pieces", "short", "texts", "versions")

    def __init__(self) -> None:
        self.commitments: set[bytes] = set()
        self.pieces: dict[bytes, int] = {}
        self.texts: list[tuple[int, frozenset[bytes]]] = []
        self.versions = 0
        self.short = False

    def add(self, *forms: bytes, text: bool = False) -> None:
        """Note what the newest version says, in each form that it is stored in."""
        parts = [frozenset(traces.pieces_of(form)) for form in forms]
        pieces = frozenset().union(*parts)
        self.short |= not pieces
        for piece in pieces:
            self.pieces.setdefault(piece, self.versions)
        if text:
            self.texts += [(self.versions, part) for part in parts if part]


def _carry_out(
    ledger: Ledger, caller: Caller, find: _Find, *, reason: str | None, keep: frozenset[str], dry_run: bool
) -> Forgotten:
    """Find what is reached, and unless it is a dry run erase it, clean up, and look whether it is gone."""
    if dry_run:
        with ledger.reads(caller) as (reading, here):
            # A program may look at what its user would erase elsewhere.
            elsewhere = replace(caller, acts=caller.acts | {Act.FORGET, Act.ADMIN})
            identity = here if Act.FORGET in caller.acts else Identity(reading, elsewhere, here.denials)
            reaches = reaching.followed(reading, identity, find(reading, identity), keep)
            _check_kept(reaches, keep)
            return _report(reaches, beyond=_hidden(identity), erased=False)
    gone = _Gone()
    commits: list[tuple[str, int]] = []
    try:
        with ledger.writes(caller) as block:
            block.reading.catalogued()
            reaches = reaching.followed(block.reading, block.identity, find(block.reading, block.identity), keep)
            _check_kept(reaches, keep)
            beyond = _hidden(block.identity)
            for reach in reaches:
                if reach.known or reach.own:
                    _note(block.reading, reach, gone)
                    commits += _erase(block, reach, reason)
            _strike_queries(block.writer, reaches, gone)
            # Before the commit: whoever dies after it has then said what it erased.
            if commits:
                remembering(ledger, lambda anchors: anchors.intend(gone.commitments))
    except BaseException:
        with suppress(LedgerstoneError, OSError):
            recover(ledger)
        raise
    left = [] if block.warning is None else [block.warning]
    left += remembering(ledger, lambda anchors: erased_now(anchors, gone.commitments))
    left += ledger.scrub()
    found, shared = _traces(ledger.store, gone)
    left += found
    beyond += [SHORT] if gone.short else []
    if shared.said:
        beyond.append(f"{shared.said} of the erased texts stand in other records too, which were not named")
    if shared.fixed:
        beyond.append(
            f"{shared.fixed} of the erased texts are words that the store's own files hold anyway, as they do"
        )
    return _report(reaches, tuple(commits), left=left, beyond=beyond, erased=True)


def _hidden(identity: Identity) -> list[str]:
    return [WIDER] if identity.hides(Scope.USER) else []


def _strike_queries(writer: Writer, reaches: list[Reach], gone: _Gone) -> None:
    """Take the query out of each receipt that chose something that goes, or whose query says it.

    Also out of whatever cannot be read, since nobody can tell what that chose.
    """
    digests = {known.digest for reach in reaches for known in reach.known.values()}
    writer.strike_queries(
        [
            drawn.id
            for drawn in writer.receipts(newest=False)
            if (receipt := receipts.readable(drawn)) is None
            or any(piece in said for said in _forms(drawn.query) for piece in gone.pieces)
            or not digests.isdisjoint(one.record for one in receipt.chosen)
        ]
    )


def _forms(query: bytes) -> tuple[bytes, bytes]:
    """A query as it was put, and its words as the index would hold them: it may say a text in another case."""
    return query, postings(index_words(query.decode("utf-8", "replace"))).encode()


def remembering(ledger: Ledger, remember: Callable[[Anchors], None]) -> list[str]:
    """Remember outside the store what is erased; in words, that this was not possible."""
    if ledger.anchors is None:
        return []
    try:
        remember(ledger.anchors)
    except (OSError, UnavailableError) as error:
        said = "what was erased is not remembered outside the store, so that a backup could bring it back"
        return [f"{said}: {error}"]
    return []


def erased_now(anchors: Anchors, commitments: Iterable[bytes]) -> None:
    """Remember what was erased, and that nobody means to any more."""
    anchors.keep_erased(commitments)
    anchors.drop_intended(commitments)


def recover(ledger: Ledger) -> None:
    """Finish what somebody who died was erasing: remember what is gone and clean up, and let be what is still there.

    Where that cannot be done now every answer says so, and it is tried again at the next opening.
    """
    if ledger.keyring.signer is not None:
        ledger.unkept = tuple(remembering(ledger, lambda anchors: _finish(ledger, anchors)))


def _finish(ledger: Ledger, anchors: Anchors) -> None:
    if not anchors.intended():
        return
    # Under the lock: whoever is erasing just now has committed by then, or has not.
    with ledger.store.write() as writer:
        intended = anchors.intended()
        held = {each for row in writer.chains() for _, each in reaching.committed(writer, row.number)}
        erased_now(anchors, intended - held)
        anchors.drop_intended(intended & held)
    if intended - held:
        ledger.scrub()


def _check_kept(reaches: list[Reach], keep: frozenset[str]) -> None:
    """Whoever keeps what would not have gone, or what is named to go, has made a slip that would cost it."""
    spared = {address for reach in reaches for address in reach.spared}
    gone = {known.address for reach in reaches for known in reach.known.values()}
    for address in sorted(keep):
        if address not in spared:
            raise UsageError(
                f"keep: {address} is no summary that would go with the rest",
                hint="a dry run lists them by address, as mem_...@1",
            )
        if address in gone:
            raise UsageError(f"keep: {address} is itself among what is to go")


def _note(reading: Reading, reach: Reach, gone: _Gone) -> None:
    """Note commitments, texts and words of what a reach holds, while it is still there."""
    for position in reach.known:
        found = reading.version(reach.where, position)
        if found is None:  # pragma: no cover - what is known has a version
            continue
        gone.versions += 1
        sealed = getattr(found.proven.entry, "content", None)
        if sealed is not None:
            gone.commitments.add(sealed.commitment)
        settled = isinstance(found.proven.entry, CloseEntry | RetractEntry)
        for content in (found.content, reading.content(reach.where, found.proven) if settled else None):
            if content is not None:
                for said in _said(content):
                    gone.add(said.encode(), canonical.encode(said)[1:-1], text=said is content.text)
        words = reading.reader.word_row(reach.where.number, position)
        if words is not None:
            gone.add(words.words.encode())
    for one in reach.own.values():
        gone.versions += 1
        gone.commitments.add(one.commitment)
        for said in _said(one.content):
            gone.add(said.encode(), canonical.encode(said)[1:-1], text=True)


def _said(content: Content) -> Iterator[str]:
    """Every text in a content."""
    single = (content.text, content.reason, content.name, content.key, content.title, content.source, content.place)
    yield from (text for text in single if text is not None)
    yield from (*content.tags, *content.triggers)


def _erase(block: Block, reach: Reach, reason: str | None) -> list[tuple[str, int]]:
    """The erasure commits of one namespace, each of one entry, and the note of them in the store chain."""
    digests = [known.digest for _, known in sorted(reach.known.items()) if known.body == known.position]
    strikes = [said.digest for said in reach.own.values()]
    if reach.where.namespace == block.reading.store.namespace:
        return [_strike_names(block, part, reason) for part in parts(strikes)]
    place = block.identity.place(reach.where.namespace)
    if place is None:  # pragma: no cover - a chain that was found has a place
        raise unknown(reach.where.namespace)
    commits = [_erase_part(block, place, _entry(block, reason, erases=part)) for part in parts(digests)]
    if commits:
        namespace, sequence = commits[-1]
        block.store_commit([rules.plain(ErasedEntry(namespace=namespace, sequence=sequence, count=len(reach.known)))])
    return commits + [_erase_part(block, place, _entry(block, reason, strikes=part)) for part in parts(strikes)]


def _erase_part(block: Block, place: Place, erasure: Admitted) -> tuple[str, int]:
    """One erasure commit of a namespace."""
    batch = block.batch(Target(place, None, ""), Act.FORGET)
    batch.add(erasure)
    return batch.namespace, batch.append(block.writer).head.sequence


def _strike_names(block: Block, strikes: tuple[bytes, ...], reason: str | None) -> tuple[str, int]:
    """One erasure commit of the store chain."""
    grant = block.administer()
    block.store_commit([_entry(block, reason, strikes=strikes)], grant=grant.grant)
    store = block.reading.store
    return store.namespace, store.head.sequence


def _entry(
    block: Block, reason: str | None, *, erases: tuple[bytes, ...] = (), strikes: tuple[bytes, ...] = ()
) -> Admitted:
    if reason is None:
        return rules.plain(ErasureEntry(erases=erases, strikes=strikes))
    return block.named(
        Content(reason=reason),
        lambda sealed: ErasureEntry(erases=erases, strikes=strikes, content=sealed),
    )


class _Shared(NamedTuple):
    """How many erased texts stand in the files with reason: others say the same, or it is how the store is written."""

    said: int = 0
    fixed: int = 0


# Where what somebody said is stored, and not how the store itself puts it.
_SAID: Final = frozenset({"content", "words", "frequency", "catalog"})


def _traces(store: Store, gone: _Gone) -> tuple[list[str], _Shared]:
    """In which files an erased text still stands, and how many stand there with reason."""
    if not gone.pieces:
        return [], _Shared()
    asked = list(gone.pieces)
    try:
        found = traces.look(store.files(), asked)
    except OSError as error:
        return [f"the files could not be looked through: {error}"], _Shared()
    still = {asked[number] for numbers in found.values() for number in numbers}
    shared: dict[bytes, set[str]] = {}
    if still:
        with store.read() as reader:
            shared = reader.held(still)
    left = []
    for path, numbers in sorted(found.items()):
        versions = {gone.pieces[asked[number]] for number in numbers if asked[number] not in shared}
        if versions:
            left.append(f"{path} still holds {len(versions)} of the erased texts")
    # Others may say part of a text, as the end of a sentence; only one that they say whole is worth a word.
    whole = [(number, pieces) for number, pieces in gone.texts if pieces <= shared.keys()]
    said = {number for number, pieces in whole if all(shared[piece] & _SAID for piece in pieces)}
    return left, _Shared(len(said), len({number for number, _ in whole} - said))


def _report(
    reaches: list[Reach],
    commits: tuple[tuple[str, int], ...] = (),
    *,
    erased: bool,
    left: Iterable[str] = (),
    beyond: Iterable[str] = (),
) -> Forgotten:
    addresses = [known.address for reach in reaches for _, known in sorted(reach.known.items())]
    gone = set(addresses)
    return Forgotten(
        addresses=tuple(addresses),
        summaries=tuple(sorted(address for reach in reaches for address in reach.summaries)),
        copies=tuple(sorted(address for reach in reaches for address in reach.copies)),
        rests=tuple(sorted(address for reach in reaches for address in reach.rests if address not in gone)),
        names=tuple(said.label for reach in reaches for said in reach.own.values() if said.content.name is not None),
        reasons=tuple(said.label for reach in reaches for said in reach.own.values() if said.content.name is None),
        erased=erased,
        commits=commits,
        left=(*sorted(line for reach in reaches for line in reach.left), *left),
        unreached=(*UNREACHED, *beyond),
    )
