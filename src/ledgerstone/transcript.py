"""A store as lines of JSON that carry its canonical bytes, and the way back (``docs/backup.md``).

The lines are those of the golden ledger, so that ``tools/verify_format.py`` reads them as they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import orjson

from ledgerstone.core import canonical, chain, entries, merkle
from ledgerstone.core.entries import AliasEntry, ErasureEntry, GenesisEntry, GrantEntry, NameEntry, NamespaceEntry
from ledgerstone.core.merkle import leaf_hash
from ledgerstone.core.projection import PARTED
from ledgerstone.errors import ConflictError, CorruptionError, FormatError
from ledgerstone.store.protocol import LAST, ChainRow, Reader, Row, Writer

FORMAT: Final = 1
# A content of 8 MiB, written as JSON within JSON, with room to spare.
MAX_LINE_BYTES: Final = 1 << 26


class Title(NamedTuple):
    """The first line: which store this is, and the one namespace that it is about, if it is not the whole store."""

    store: str
    namespace: str | None


class Taken(NamedTuple):
    """What came of reading a transcript into a store: how many commits of each namespace are new.

    ``struck`` are commitments whose contents went, since new commits erase them; ``returned`` counts by namespace
    the new contents that were erased on this machine.
    """

    title: Title
    commits: dict[str, int]
    struck: frozenset[bytes]
    returned: dict[str, int]


def lines(reader: Reader, namespace: str | None = None) -> Iterator[bytes]:
    """Every line of a store; of one namespace, its own chain, and the store chain with the names that it needs.

    The store chain goes whole, for the others rest on it, but what it calls other namespaces is left out.
    """
    store, *others = reader.chains()
    named = {} if namespace is None else {"namespaces": [namespace]}
    yield _line({"line": "ledger", "format": FORMAT, "store": store.namespace, **named})
    wanted = None if namespace is None else _wanted(reader, store, namespace)
    yield from _chain(reader, store, wanted)
    for row in others:
        if namespace in {None, row.namespace}:
            yield from _chain(reader, row, None)


def _chain(reader: Reader, row: ChainRow, wanted: Container[int] | None) -> Iterator[bytes]:
    """The lines of one chain; with ``wanted`` only the contents at those positions."""
    number, namespace, signatures = row.number, row.namespace, reader.signatures(row.number)
    for sequence, _, data in reader.headers(number, newest=0, oldest=LAST):
        yield _line({"line": "commit", "namespace": namespace, "sequence": sequence, "header": data.decode()})
        header = entries.decode_header(data)
        places = header.positions.start, header.positions.stop - 1
        for position, body in reader.entries(number, *places):
            yield _line({"line": "entry", "namespace": namespace, "position": position, "entry": body.decode()})
        for position, salt, body in reader.contents(number, *places):
            if wanted is None or position in wanted:
                said = {"salt": salt.hex(), "content": body.decode()}
                yield _line({"line": "content", "namespace": namespace, "position": position, **said})
    for sequence, signature in sorted(signatures.items()):
        kept = {"sequence": sequence, "signature": signature.hex()}
        yield _line({"line": "signature", "namespace": namespace, **kept})
    head = {"sequence": row.sequence, "id": row.commit.hex(), "signature": row.signature.hex()}
    yield _line({"line": "head", "namespace": namespace, **head})


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _wanted(reader: Reader, store: ChainRow, namespace: str) -> set[int]:
    """The entries of the store chain whose contents a namespace's own commits need to be read by people."""
    ids: set[str | None] = set()
    own = reader.chain(namespace)
    for _, _, data in () if own is None else reader.headers(own.number, newest=0, oldest=LAST):
        stamp = entries.decode_header(data).stamp
        ids |= {stamp.principal, stamp.session, stamp.host}
    wanted: set[int] = set()
    named: dict[str, int] = {}
    for position, body in reader.entries(store.number, 0, LAST):
        match entries.decode_entry(body):
            case NamespaceEntry(namespace=name) | AliasEntry(namespace=name) as entry if name == namespace:
                wanted.add(position)
                ids.add(entry.owner if isinstance(entry, NamespaceEntry) else None)
            case GrantEntry(namespace=name, principal=principal) if name == namespace:
                ids.add(principal)
            case GenesisEntry(owner=owner):
                ids.add(owner)
            case NameEntry(id=opaque):
                named[opaque] = position
            case _:
                pass
    return wanted | {position for opaque, position in named.items() if opaque in ids}


class _Line(NamedTuple):
    """A line that was read: a canonical row or a head, of which chain, and where it stood in the file."""

    number: int
    namespace: str
    row: Row | None
    head: tuple[int, bytes, bytes] | None


_FIELDS: Final = {
    "commit": {"namespace": str, "sequence": int, "header": str},
    "entry": {"namespace": str, "position": int, "entry": str},
    "content": {"namespace": str, "position": int, "salt": str, "content": str},
    "signature": {"namespace": str, "sequence": int, "signature": str},
    "head": {"namespace": str, "sequence": int, "id": str, "signature": str},
}


def take(writer: Writer, given: Iterable[bytes], gone: Container[bytes] = ()) -> Taken:
    """Write into a store whatever of a transcript it does not have yet; derived rows are not touched.

    ``gone`` are commitments that were erased on this machine. What was written is judged by replaying it, before it
    is committed. Raises FormatError when the lines are none of ours, CorruptionError when they are cut short or out
    of order, ConflictError when they are of another store, or go on otherwise than the store did.
    """
    numbered = enumerate(given, 1)
    title = _title(next(numbered, (1, b""))[1])
    known = writer.first_chain()
    if known not in {None, title.store}:
        raise ConflictError(f"the export is of store {title.store}, and this one is {known}")
    done: dict[str, int] = {}
    struck: set[bytes] = set()
    returned: dict[str, int] = {}
    for namespace, group in groupby((_read(*each) for each in numbered), key=lambda line: line.namespace):
        if namespace in done or (not done and namespace != title.store):
            raise CorruptionError(f"{namespace}: its lines are not together, or do not follow the store chain's")
        if known is not None and _parted(writer, known, namespace):
            raise ConflictError(
                f"this store goes on without {namespace}: it began as an export of another namespace",
                hint="import it where no store is",
            )
        transcription = _Transcription(
            writer,
            namespace,
            gone,
            names_left_out=title.namespace is not None and not done,
            rekeyed=done.get(title.store, 0) > 0,
        )
        for line in group:
            transcription.take(line)
        done[namespace] = transcription.finish()
        struck |= transcription.struck
        returned |= {namespace: transcription.returned} if transcription.returned else {}
    if not done:
        raise CorruptionError("the export is cut short: it has no chain")
    return Taken(title, {name: commits for name, commits in done.items() if commits}, frozenset(struck), returned)


def _parted(reader: Reader, store: str, namespace: str) -> bool:
    row = reader.chain(store)
    return row is not None and bool(reader.lookup(row.number, PARTED, namespace))


def _forked(reader: Reader, row: ChainRow, sequence: int) -> ConflictError:
    """The refusal of an export that goes on otherwise than the store did; one that began as an export always did."""
    refused = f"{row.namespace}: commit {sequence} of the export is not the one that is here: a fork"
    if any(reader.catalog(row.number, PARTED)):
        return ConflictError(
            f"{refused}, since this store began as an export of one namespace and goes on by itself",
            hint="import it where no store is (LEDGERSTONE_STORE), and use the two side by side",
        )
    return ConflictError(
        refused, hint="the two went on separately; restore --accept keeps one of them, and the other on record"
    )


class _Transcription:
    """One chain of a transcript on its way into a store, line by line."""

    __slots__ = (
        "_before",
        "_commit",
        "_content",
        "_end",
        "_entries",
        "_frontier",
        "_gone",
        "_grown",
        "_head",
        "_kept",
        "_left_out",
        "_namespace",
        "_next",
        "_old",
        "_rekeyed",
        "_sealed",
        "_signed",
        "_strikes",
        "_there",
        "_writer",
        "returned",
        "struck",
    )

    def __init__(
        self, writer: Writer, namespace: str, gone: Container[bytes], *, names_left_out: bool, rekeyed: bool
    ) -> None:
        self._writer = writer
        # The store chain leads on, maybe to another key: then heads that are here may have been signed anew by it.
        self._rekeyed = rekeyed
        self._namespace = namespace
        self._gone = gone
        self._left_out = names_left_out
        self._old = writer.chain(namespace)
        self._kept = {} if self._old is None else writer.signatures(self._old.number)
        self._before = 0 if self._old is None else self._size(self._old)
        self._next = 0
        self._commit = b""
        # The frontier of the history before the newest commit, and with it.
        self._frontier: tuple[bytes, ...] = ()
        self._grown: tuple[bytes, ...] = ()
        # How many entries were read, and how many the newest commit leads to.
        self._entries = self._end = 0
        self._content = self._signed = -1
        # By position, whether the export has a content there; and the new entries that commit to one.
        self._there = bytearray()
        self._sealed: dict[int, bytes] = {}
        # What new erasures take of what entries say of their own.
        self._strikes: set[bytes] = set()
        self._head: tuple[int, bytes, bytes] | None = None
        self.struck: set[bytes] = set()
        self.returned = 0

    def _size(self, row: ChainRow) -> int:
        data = self._writer.header(row.number, row.sequence)
        return 0 if data is None else entries.decode_header(data).counts.entries

    @property
    def _is_new(self) -> bool:
        """Whether the commit that is being read is one that the store does not have."""
        return self._old is None or self._next - 1 > self._old.sequence

    def take(self, line: _Line) -> None:
        """Take the next line of the chain."""
        if self._head is not None:
            raise self._misplaced(line.number)
        if line.row is None:
            self._head = line.head
            return
        row = line.row
        match row.table:
            case "header":
                in_order = (row.place, self._entries) == (self._next, self._end) and self._signed < 0
            case "entry":
                in_order = self._entries == row.place < self._end
            case "content":
                in_order = self._content < row.place < self._entries
            case _:
                in_order = self._signed < row.place < self._next
        if not in_order:
            raise self._misplaced(line.number)
        if row.table == "header":
            self._header(row)
        elif row.table == "entry":
            self._entry(row)
        elif row.table == "content":
            self._take_content(row)
        else:
            self._signed = row.place
            if self._old is None or row.place > self._old.sequence or (self._rekeyed and row.place not in self._kept):
                self._write(row)

    def _misplaced(self, number: int) -> CorruptionError:
        return CorruptionError(f"line {number} of the export is out of order")

    def _write(self, row: Row) -> None:
        self._writer.transcribe(self._namespace, [row])

    def _header(self, row: Row) -> None:
        sequence, self._next = row.place, row.place + 1
        self._end = entries.decode_header(row.body).counts.entries
        self._commit = leaf_hash(row.body)
        self._frontier = self._grown
        self._grown, tile = merkle.append(self._frontier, sequence, self._commit)
        if not self._is_new:
            if self._old is not None and self._writer.header(self._old.number, sequence) != row.body:
                raise _forked(self._writer, self._old, sequence)
            return
        self._write(row._replace(beside=self._commit))
        if tile is not None:
            self._write(Row("tile", sequence // chain.SIGNATURE_EVERY, tile))

    def _entry(self, row: Row) -> None:
        self._entries += 1
        self._there.append(0)
        if self._is_new:
            entry = entries.decode_entry(row.body)
            if getattr(entry, "content", None) is not None:
                self._sealed[row.place] = entries.digest_of(row.body)
            if isinstance(entry, ErasureEntry):
                self._strikes.update(entry.strikes)
            self._write(row)

    def _take_content(self, row: Row) -> None:
        self._content = row.place
        self._there[row.place] = 1
        if row.place >= self._before:
            self._sealed.pop(row.place, None)
            self.returned += canonical.commitment(row.beside, row.body) in self._gone
            self._write(row)

    def finish(self) -> int:
        """End the chain: its head is that of the lines, if they lead on; how many commits are new."""
        newest = self._next - 1, self._commit
        if self._head is None or self._head[:2] != newest or self._entries != self._end:
            raise CorruptionError(f"{self._namespace}: the export is cut short, or its head is not its newest commit")
        if not self._is_new:
            if self._rekeyed and self._old is not None and self._old.sequence == self._head[0]:
                self._writer.place_head(self._old._replace(signature=self._head[2]))
            return 0
        missed = set(self._sealed.values()) - self._strikes
        if self._left_out and missed and self._old is not None:
            raise ConflictError(
                f"the export leaves out {len(missed)} names of the store chain that are not here yet",
                hint="import an export of the whole store",
            )
        sequence, commit, signature = self._head
        number = 0 if self._old is None else self._old.number
        if self._old is not None:
            self._strike(self._old)
        self._writer.place_head(ChainRow(number, self._namespace, sequence, commit, signature, self._frontier))
        return sequence - (-1 if self._old is None else self._old.sequence)

    def _strike(self, old: ChainRow) -> None:
        """Take out what the new commits erase; replay then refuses what no erasure explains."""
        lost = [
            (position, canonical.commitment(salt, body))
            for position, salt, body in self._writer.contents(old.number, 0, self._before - 1)
            if not self._there[position] and (not self._left_out or self._named(old.number, position))
        ]
        self._writer.strike(old.number, [position for position, _ in lost])
        self.struck |= {commitment for _, commitment in lost}

    def _named(self, number: int, position: int) -> bool:
        """Whether a new erasure strikes an entry; of a chain that names were left out of, nothing else tells."""
        body = self._writer.entry(number, position) if self._strikes else None
        return body is not None and entries.digest_of(body) in self._strikes


def _title(data: bytes) -> Title:
    refusal = FormatError("not an export of a Ledgerstone store: its first line is not the title of one")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise refusal from None
    if type(value) is not dict or value.get("line") != "ledger":
        raise refusal
    if value.get("format") != FORMAT:
        raise FormatError(f"an export of format {value.get('format')!r}; this program knows {FORMAT}")
    namespaces = value.get("namespaces", [None])
    if (
        value.keys() - {"namespaces"} != {"line", "format", "store"}
        or type(value["store"]) is not str
        or type(namespaces) is not list
        or len(namespaces) != 1
        or not isinstance(namespaces[0], str | None)
    ):
        raise refusal
    return Title(value["store"], namespaces[0])


def _read(number: int, data: bytes) -> _Line:
    """A line after the first."""
    try:
        _need(len(data) <= MAX_LINE_BYTES, "it is too long")
        value = orjson.loads(data)
        what = value.pop("line")
        fields = _FIELDS[what]
        _need({name: type(part) for name, part in value.items()} == fields, "it has other fields")
        namespace = value["namespace"]
        place = value["sequence" if "sequence" in fields else "position"]
        _need(0 <= place <= LAST, "there is no such place")
        match what:
            case "head":
                head = place, bytes.fromhex(value["id"]), bytes.fromhex(value["signature"])
                return _Line(number, namespace, None, head)
            case "commit":
                row = Row("header", place, value["header"].encode())
            case "entry":
                row = Row("entry", place, value["entry"].encode())
            case "content":
                salt = bytes.fromhex(value["salt"])
                _need(len(salt) == canonical.SALT_BYTES, "its salt has another length")
                row = Row("content", place, value["content"].encode(), salt)
            case _:
                row = Row("signature", place, bytes.fromhex(value["signature"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"line {number} of the export is not one of ours: {error}") from error
    return _Line(number, namespace, row, None)


def _need(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
