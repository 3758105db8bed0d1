"""Makes the golden files: format 1 as text that people read and any implementation is checked against.

``python -m tests.golden.make`` writes them anew. The clock is fixed, chance repeats and the key is known, so a file
changes only when the format or the scenario does.
"""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    Draft,
    Keyring,
    Kind,
    Memory,
    Origin,
    ProjectHints,
    Retention,
    Scope,
    SigningKey,
    Status,
    Trust,
)
from ledgerstone.core import canonical, chain, entries, merkle, rules, signing, state
from ledgerstone.core.entries import Content, Counts, Header, Idempotency, Sealed, Stamp, StorePoint
from ledgerstone.core.values import AliasOf, Limits, NameOf, Refusal
from ledgerstone.store import open_store
from ledgerstone.store.protocol import Reader

HERE: Final = Path(__file__).parent
KEY: Final = SigningKey(seed=bytes(range(32)), secret=bytes(range(32, 64)))
KEYS: Final = Keyring(KEY)
PUBLIC: Final = next(iter(KEYS.public.values()))
NEXT_KEY: Final = SigningKey(seed=bytes(range(64, 96)), secret=KEY.secret)
NEXT_KEYS: Final = Keyring(NEXT_KEY)
NEXT_PUBLIC: Final = next(iter(NEXT_KEYS.public.values()))
# 1 January 2026, 00:00 UTC, in microseconds.
START: Final = 1_767_225_600_000_000
SECOND: Final = 1_000_000
LAST: Final = (1 << 40) - 1

ADA: Final = Caller(
    principal="local:ada",
    origin=Origin.USER,
    host="terminal",
    session="monday",
    project=ProjectHints(remotes=(("origin", "git@example.org:ada/cedar.git"),), paths=("/home/ada/cedar",)),
)
MODEL: Final = dataclasses.replace(ADA, origin=Origin.MODEL, host="mcp", limits=Limits())
BOB: Final = Caller(principal="local:bob", origin=Origin.MODEL)

AWKWARD: Final = 'Quote ", backslash \\, newline \n, tab \t, bell \x07, del \x7f, é, e\u0301, \u20ac, \U0001f332 </end>'


def _hash(what: str) -> bytes:
    """Some hash, told apart by what it stands for."""
    return sha256(what.encode()).digest()


def _id(prefix: str) -> str:
    return canonical.identifier(prefix, _hash(prefix)[:10])


def canonical_forms() -> Any:
    """Values whose one spelling is given, spellings that are refused, domains, keyed hashes and ids."""
    accepted: list[canonical.Json] = [
        None,
        [],
        {},
        [True, False, None, 0, -1, canonical.MAX_INTEGER, -canonical.MAX_INTEGER],
        AWKWARD,
        {"b": 1, "a": {"B": [], "A": "", "_": [[]]}, "": 0, "ab": 2, "a-": 3},
        "unnormalised: A\u030a is not \u00c5",
    ]
    refused = {
        "whitespace": b'{"a": 1}',
        "unsorted fields": b'{"b":1,"a":2}',
        "a field twice": b'{"a":1,"a":1}',
        "a float": b"1.0",
        "an exponent": b"1e3",
        "minus zero": b"-0",
        "an integer past 2^53 - 1": b"9007199254740992",
        "a needless escape": b'"\\u0041"',
        "an escaped solidus": b'"\\/"',
        "upper-case hex in an escape": b'"\\u001F"',
        "a long escape for a newline": b'"\\u000a"',
        "an escape for what is beyond ASCII": b'"\\u20ac"',
        "U+0000": b'"\\u0000"',
        "a lone surrogate": b'"\\ud800"',
        "a surrogate in UTF-8": b'"\xed\xa0\x80"',
        "an overlong form": b'"\xc0\x80"',
        "a byte order mark": b"\xef\xbb\xbf1",
        "a field name beyond ASCII": '{"é":1}'.encode(),
        "something after the value": b"1 ",
        "nothing": b"",
    }
    parts = [b"one", b"two"]
    return {
        "accepted": [canonical.encode(value).decode() for value in accepted],
        "refused": [{"why": why, "hex": data.hex()} for why, data in refused.items()],
        "digests": [{"noun": "noun", "parts": ["one", "two"], "digest": canonical.digest(b"noun", *parts).hex()}],
        "keyed": [
            {
                "secret": KEY.secret.hex(),
                "noun": "noun",
                "parts": ["one", "two"],
                "digest": canonical.keyed(KEY.secret, b"noun", *parts).hex(),
            }
        ],
        "identifiers": [
            {"prefix": prefix, "hex": data.hex(), "id": canonical.identifier(prefix, data)}
            for prefix, data in (("mem", bytes(10)), ("ns", b"\xff" * 10), ("prn", bytes(range(10))))
        ],
    }


SEALED: Final = Sealed(commitment=_hash("commitment"), bytes=64, text_bytes=24)
UNSPOKEN: Final = Sealed(commitment=_hash("commitment"), bytes=64)
# A value for each field, and where a noun needs another one, for that noun.
FIELDS: Final[dict[str, Any]] = {
    "memory": _id("mem"),
    "namespace": _id("ns"),
    "source_namespace": _id("ns"),
    "principal": _id("prn"),
    "owner": _id("prn"),
    "id": _id("prn"),
    "grant": _id("grt"),
    "token": _id("tok"),
    "event": _id("evt"),
    "key": signing.key_id(PUBLIC),
    "retires": _id("key"),
    "public": PUBLIC,
    "nonce": _hash("nonce")[:16],
    "version": 2,
    "kind": Kind.TASK,
    "status": Status.OPEN,
    "retention": Retention.DURABLE,
    "origin": Origin.TOOL,
    "trust": Trust.TOOL_VERIFIED,
    "content": UNSPOKEN,
    "expires": START,
    "depth": 1,
    "sources": (_hash("one"), _hash("another")),
    "covers": (_hash("another"),),
    "erases": (_hash("one"), _hash("another")),
    "strikes": (_hash("one"),),
    "without": (_id("ns"),),
    "overrides": ("secrets",),
    "reasons": ("quiet_hours",),
    "setting": "isolated",
    "value": 1,
    "scope": Scope.PROJECT,
    "act": Act.WRITE,
    "reason": Refusal.NO_GRANT,
    "sequence": 7,
    "abandoned_sequence": 9,
    "count": 3,
    "first": START,
    "last": START + SECOND,
    "asked": START,
    "granted": START + SECOND,
}
OTHERWISE: Final[dict[tuple[str, str], Any]] = {
    ("record", "content"): SEALED,
    ("name", "of"): NameOf.PRINCIPAL,
    ("alias", "of"): AliasOf.REMOTE,
    ("setting", "id"): _id("set"),
}


def entry_kinds() -> Any:
    """Every kind of entry with the fewest fields it can have, and with all: bytes and digest. Shape only."""
    shown = []
    for noun, cls in entries._ENTRIES.items():
        full: dict[str, Any] = {}
        least: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            full[field.name] = OTHERWISE.get((noun, field.name), FIELDS.get(field.name, _hash(field.name)))
            if field.default is dataclasses.MISSING:
                least[field.name] = full[field.name]
        for form, values in (("least", least), ("full", full)):
            data = entries.encode_entry(cls(**values))
            shown.append({"noun": noun, "form": form, "bytes": data.decode(), "digest": entries.digest_of(data).hex()})
    return shown


def contents() -> Any:
    """Contents with their salts, and what an entry says of them."""
    given = {
        "a text": Content(text="The build uses make."),
        "every awkward character": Content(text=AWKWARD),
        "all that a record can have": Content(
            text="Water the cedar on Fridays.",
            key="cedar.water",
            source="https://example.org/notes#3",
            title="Notes on cedars",
            place="paragraph 3",
            tags=("garden", "weekly"),
            due=START,
            valid_from=START,
            valid_until=START + SECOND,
            triggers=("friday",),
        ),
        "a name": Content(name="local:ada"),
        "a reason": Content(reason="It was moved to Thursdays."),
    }
    shown = []
    for what, content in given.items():
        salt = _hash(what)
        sealed, data = entries.seal_content(content, salt)
        shown.append(
            {
                "what": what,
                "salt": salt.hex(),
                "bytes": data.decode(),
                "commitment": sealed.commitment.hex(),
                "size": sealed.bytes,
                "text_size": sealed.text_bytes,
            }
        )
    return shown


def headers() -> Any:
    """A header with the fewest fields, and one with all: bytes, id, its stamp's digest, the signature over it."""
    least = Header(
        namespace=_id("ns"),
        sequence=0,
        rules=1,
        limits=Limits(),
        history=merkle.root(()),
        state=_hash("state"),
        counts=Counts(entries=1, records=0, live=0, current=0, open=0, indexed=0),
        stamp=Stamp(at=START, principal=_id("prn"), origin=Origin.SYSTEM),
        signer=signing.key_id(PUBLIC),
        entries=(_hash("entry"),),
    )
    full = dataclasses.replace(
        least,
        sequence=7,
        counts=Counts(entries=12, records=9, live=8, current=6, open=1, indexed=9),
        stamp=Stamp(
            at=START,
            principal=_id("prn"),
            origin=Origin.MODEL,
            grant=_id("grt"),
            session=_id("ses"),
            host=_id("hst"),
            binding="remote",
        ),
        entries=(_hash("entry"), _hash("next entry")),
        parent=_hash("parent"),
        store=StorePoint(sequence=3, id=_hash("store")),
        idempotency=Idempotency(key=_hash("key"), content=_hash("content")),
        receipt=_hash("receipt"),
    )
    shown = []
    for header in (least, full):
        data = entries.encode_header(header)
        commit = merkle.leaf_hash(data)
        shown.append(
            {
                "bytes": data.decode(),
                "id": commit.hex(),
                "stamp_digest": entries.stamp_digest(header.stamp).hex(),
                "signature": KEYS.sign(signing.COMMIT, commit).hex(),
            }
        )
    return {"seed": KEY.seed.hex(), "public": PUBLIC.hex(), "signer": KEYS.signer, "headers": shown}


MERKLE_SIZES: Final = 9


def history_tree() -> Any:
    """The history tree of up to nine leaves: roots, frontiers, and every proof under the largest."""
    data = [f"commit {number}" for number in range(MERKLE_SIZES)]
    leaves = [merkle.leaf_hash(one.encode()) for one in data]
    frontier: tuple[bytes, ...] = ()
    trees = [{"size": 0, "root": merkle.root(()).hex(), "frontier": list[str]()}]
    for size, leaf in enumerate(leaves):
        frontier, _ = merkle.append(frontier, size, leaf)
        trees.append(
            {"size": size + 1, "root": merkle.root(frontier).hex(), "frontier": [node.hex() for node in frontier]}
        )
    return {
        "data": data,
        "leaves": [leaf.hex() for leaf in leaves],
        "trees": trees,
        "inclusion": [
            {"index": index, "proof": [node.hex() for node in merkle.inclusion_proof(leaves, index)]}
            for index in range(MERKLE_SIZES)
        ],
        "consistency": [
            {"first": first, "proof": [node.hex() for node in merkle.consistency_proof(leaves, first)]}
            for first in range(1, MERKLE_SIZES + 1)
        ],
    }


STATE_SIZES: Final = (1, 2, 15, 16, 17, 255, 256, 257, 4096, 4097)


def state_leaf(position: int) -> bytes:
    """The made-up leaf at a position: its 8 bytes, hashed."""
    return sha256(position.to_bytes(8, "big")).digest()


def state_tree() -> Any:
    """Leaves, nodes, and roots of trees whose leaf at position p is SHA-256 of p in 8 bytes, big-endian."""
    endings = [(0, 0, 0), (5, 9, 1), (2**53 - 1, 2**53 - 1, 8)]
    return {
        "leaves": [
            {
                "entry": _hash("entry").hex(),
                "stamp": _hash("stamp").hex(),
                "sequence": sequence,
                "ended_by": by,
                "reason": reason,
                "leaf": state.leaf(_hash("entry"), _hash("stamp"), sequence=sequence, ended_by=by, reason=reason).hex(),
            }
            for sequence, by, reason in endings
        ],
        "nodes": [
            {"children": size, "node": state.node(b"".join(map(state_leaf, range(size)))).hex()} for size in (1, 2, 16)
        ],
        "trees": [
            {"count": size, "height": state.height(size), "root": state.build(map(state_leaf, range(size))).hex()}
            for size in STATE_SIZES
        ],
    }


# What the scenario says to be found again in the keyed hashes.
NAMED_KEY: Final = "import-2026-01-01#7"
NAMED_DRAFT: Final = Draft(text="Release notes live in docs/news.", key="release.notes")
REJECTED: Final = Draft(text="The port is  8080.", key="dev.port")


def live(path: Path) -> None:
    """The scenario: a project of two people and a model, with one of everything that ends an entry."""
    ticks = count(START, SECOND)
    entropy = random.Random(1).randbytes
    with Memory.open(
        path, keys=KEYS, caller=ADA, state=None, create=True, clock=ticks.__next__, entropy=entropy
    ) as ada:
        model = ada.bind(MODEL)
        note = ada.remember(Draft(text="The build uses make.", key="build.tool", tags=("build",)))
        ada.remember(Draft(text="The build uses just.", key="build.tool", sources=(note.record.address,)))
        model.remember(NAMED_DRAFT, idempotency_key=NAMED_KEY)
        first, second = model.remember_many(
            [
                Draft(text="The tests take forty seconds on the small machine."),
                Draft(text=AWKWARD, kind=Kind.EPISODE, source="https://example.org/a", title="A", place="line 2"),
            ]
        )
        grounds = (first.record.address, second.record.address)
        summary = model.remember(
            Draft(text="Tests take forty seconds.", kind=Kind.SUMMARY, sources=grounds, covers=grounds[:1])
        )
        model.remember(Draft(text="Tests: slow.", kind=Kind.SUMMARY, sources=(summary.record.address,)))
        model.remember(Draft(text="Run just test before a merge.", kind=Kind.PROCEDURE, sources=grounds[:1]))
        model.remember(
            Draft(
                text="Renew the certificate.",
                kind=Kind.PROSPECTIVE,
                retention=Retention.DURABLE,
                due=START + 86_400 * SECOND,
                expires=START + 7 * 86_400 * SECOND,
                triggers=("certificate",),
            )
        )
        task = model.remember(Draft(text="Write the changelog.", kind=Kind.TASK, key="changelog"))
        review = model.remember(Draft(text="Answer the review.", kind=Kind.TASK))
        model.close_task(task.record.address, reason="It is in docs/news.")
        port = model.remember(REJECTED)
        model.retract(port.record.address, reason="Nothing listens there.", reject=True)
        model.remember(dataclasses.replace(REJECTED, text="the PORT is 8080."))
        model.remember(Draft(text="The build uses cmake.", key="build.tool"))
        model.remember(Draft(text="A page says: trust me.", external=True))
        ada.retract(first.record.address, reason="It is a new machine.")
        project = ada.bound()["project"]
        ada.grant(BOB.principal, Act.READ, namespace=project)
        grant = ada.grant(BOB.principal, Act.WRITE, namespace=project, expires=START + 3600 * SECOND)
        ada.bind(BOB).remember("Bob was here.", namespace=project)
        ada.revoke(grant)
        with suppress(AuthorityError):
            ada.bind(BOB).remember("And again.", namespace=project)
        ada.alias(project, path="/srv/cedar")
        ada.detach(project, "/srv/cedar")
        ada.remember("Two people work here.")
        model.remember(Draft(text="A review waits.", kind=Kind.SUMMARY, sources=(review.record.address,)))
        answered = model.close_task(review.record.address)
        ada.retract(answered.record.address, reason="It was another review.")
        secret = model.remember(Draft(text="Send Mia the code 4711.", kind=Kind.TASK, key="mia"))
        model.remember(Draft(text="Mia.", kind=Kind.SUMMARY, sources=(secret.record.address,)))
        model.close_task(secret.record.address, reason="Sent to Mia.")
        ada.forget(secret.record.memory, reason="It is hers.", dry_run=False)
        contested = model.remember(Draft(text="The build uses ninja.", key="build.tool"))
        ada.retract(contested.record.address, reason="It never did.")
        ada.remember(Draft(text="The build uses just, everywhere.", key="build.tool"))


def part(folder: Path) -> Path:
    """The other scenario: a store changes its key, loses names, is exported, and one of its projects goes on alone."""
    ticks = count(START, SECOND)
    entropy = random.Random(2).randbytes
    path = folder / "parted.ledger"
    with Memory.open(
        folder / "whole.ledger",
        keys=KEYS,
        caller=ADA,
        state=None,
        create=True,
        clock=ticks.__next__,
        entropy=entropy,
    ) as ada:
        ada.remember(Draft(text="The build uses make.", key="build.tool"))
        ada.remember("Ada reads in the evening.", scope=Scope.USER)
        spoken = ada.bind(dataclasses.replace(ADA, session="a session that nobody is to know of"))
        spoken.remember("Said in passing.")
        ada.rotate(NEXT_KEY)
        ada.remember(Draft(text="The build uses just.", key="build.tool"))
        ada.forget("session:a session that nobody is to know of", reason="It is hers.", dry_run=False)
        for _ in ada.export().pieces:
            pass
        project = ada.export(str(ada.bound()["project"])).pieces
        Memory.import_lines(project, path, keys=NEXT_KEYS, caller=ADA, clock=ticks.__next__, entropy=entropy)
    with Memory.open(path, keys=NEXT_KEYS, caller=ADA, state=None, clock=ticks.__next__, entropy=entropy) as ada:
        ada.remember("It goes on alone.")
    return path


def lines(reader: Reader) -> Iterator[dict[str, Any]]:
    """A store as lines: its chains, the store's own first; of each the commits, what they hold, signatures, head."""
    rows = reader.chains()
    yield {"line": "ledger", "format": 1, "store": rows[0].namespace}
    for row in rows:
        namespace = row.namespace
        for sequence, _, header in reader.headers(row.number, newest=0, oldest=LAST):
            yield {"line": "commit", "namespace": namespace, "sequence": sequence, "header": header.decode()}
            counts, listed = entries.decode_header(header).counts, entries.decode_header(header).entries
            first, last = counts.entries - len(listed), counts.entries - 1
            for position, data in reader.entries(row.number, first, last):
                yield {"line": "entry", "namespace": namespace, "position": position, "entry": data.decode()}
            for position, salt, data in reader.contents(row.number, first, last):
                yield {
                    "line": "content",
                    "namespace": namespace,
                    "position": position,
                    "salt": salt.hex(),
                    "content": data.decode(),
                }
        for sequence, signature in reader.signatures(row.number).items():
            yield {
                "line": "signature",
                "namespace": namespace,
                "sequence": sequence,
                "signature": signature.hex(),
            }
        yield {
            "line": "head",
            "namespace": namespace,
            "sequence": row.sequence,
            "id": row.commit.hex(),
            "signature": row.signature.hex(),
        }


def standing(reader: Reader) -> Any:
    """How every entry stands at the heads, and the leaf that says so."""
    shown = {}
    for row in reader.chains():
        namespace = row.namespace
        data = reader.header(row.number, row.sequence)
        assert data is not None
        head = chain.read(data)[1]
        leaves: list[dict[str, Any]] = []
        rows = {known.position: (known.ended_by, known.ending.value) for known in reader.knowns(row.number, 0, LAST)}
        rows |= {one.position: (one.ended_by, one.ending) for one in reader.catalog(row.number) if one.ended_by}
        for sequence, _, bytes_ in reader.headers(row.number, newest=0, oldest=LAST):
            header = chain.read(bytes_)[1]
            stamp = entries.stamp_digest(header.stamp)
            for digest in header.entries:
                by, reason = rows.get(len(leaves), (0, 0))
                leaf = state.leaf(digest, stamp, sequence=sequence, ended_by=by, reason=reason)
                leaves.append(
                    {
                        "position": len(leaves),
                        "sequence": sequence,
                        "entry": digest.hex(),
                        "ended_by": by,
                        "reason": reason,
                        "leaf": leaf.hex(),
                    }
                )
        shown[namespace] = {"state": head.state.hex(), "leaves": leaves}
    return shown


def keyed(reader: Reader) -> Any:
    """The keyed hashes in the scenario, and what went into them."""
    row = reader.chains()[1]
    namespace = row.namespace
    secret = KEYS.secret(namespace)
    assert secret is not None
    found = [entries.decode_entry(data) for _, data in reader.entries(row.number, 0, LAST)]
    tombstones = [one.tombstone for one in found if isinstance(one, entries.RetractEntry) and one.tombstone]
    named = [
        header.idempotency
        for _, _, data in reader.headers(row.number, newest=0, oldest=LAST)
        if (header := chain.read(data)[1]).idempotency is not None
    ]
    assert named[0] is not None
    draft = {**dataclasses.asdict(NAMED_DRAFT), "kind": "note", "retention": "long_term"}
    return {
        "secret": KEY.secret.hex(),
        "namespace": namespace,
        "namespace_secret": secret.hex(),
        "tombstone": {
            "key": REJECTED.key,
            "text": REJECTED.text,
            "hashed": canonical.encode([REJECTED.key, rules.normal_value(REJECTED.text)]).decode(),
            "digest": tombstones[0].hex(),
        },
        "idempotency": {
            "key": NAMED_KEY,
            "hashed": canonical.encode(["remember", [draft]]).decode(),
            "key_digest": named[0].key.hex(),
            "content_digest": named[0].content.hex(),
        },
    }


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


MADE: Final[dict[str, Callable[[], Any]]] = {
    "canonical.json": canonical_forms,
    "entries.json": entry_kinds,
    "contents.json": contents,
    "headers.json": headers,
    "merkle.json": history_tree,
    "state.json": state_tree,
}


def files() -> dict[str, str]:
    """Every golden file by its name."""
    made = {name: _pretty(make()) for name, make in MADE.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.ledger"
        live(path)
        store = open_store(path)
        try:
            with store.read() as reader:
                made["ledger.jsonl"] = _spelled(reader)
                made["standing.json"] = _pretty(standing(reader))
                made["keyed.json"] = _pretty(keyed(reader))
        finally:
            store.close()
        parted = open_store(part(Path(folder)))
        try:
            with parted.read() as reader:
                made["parted.jsonl"] = _spelled(reader)
        finally:
            parted.close()
    return made


def _spelled(reader: Reader) -> str:
    """A store as its lines of text."""
    return "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines(reader))


PAGE: Final = HERE.parent.parent / "docs" / "format.md"
BEGIN, END = "<!-- example -->\n", "<!-- /example -->\n"


def example(ledger: str) -> str:
    """The worked example of docs/format.md: the first record of the golden ledger, step by step."""
    rows = [json.loads(line) for line in ledger.splitlines()]
    namespace = rows[-1]["namespace"]

    def row(what: str, **where: int) -> dict[str, Any]:
        found = {"line": what, "namespace": namespace, **where}
        return next(row for row in rows if found.items() <= row.items())

    content, entry, commit = row("content", position=1), row("entry", position=1), row("commit", sequence=1)
    header = entries.decode_header(commit["header"].encode())
    stamp = json.loads(commit["header"])["stamp"]
    digest = entries.digest_of(entry["entry"].encode())
    stamp_digest = entries.stamp_digest(header.stamp)

    def leaf(by: int, reason: int) -> str:
        return state.leaf(digest, stamp_digest, sequence=1, ended_by=by, reason=reason).hex()

    identity = merkle.leaf_hash(commit["header"].encode())
    steps = (
        ("salt", content["salt"]),
        ("content", content["content"]),
        (
            'commitment = H("content", salt, content)',
            canonical.commitment(bytes.fromhex(content["salt"]), content["content"].encode()).hex(),
        ),
        ("entry, position 1", entry["entry"]),
        ('entry digest = H("entry", entry)', digest.hex()),
        ("header, sequence 1", commit["header"]),
        ("commit id = SHA-256(0x00 || header)", identity.hex()),
        ("stamp", canonical.encode(stamp).decode()),
        ('stamp digest = H("stamp", stamp)', stamp_digest.hex()),
        ("leaf while it stands: sequence 1, ended_by 0, reason 0", leaf(0, 0)),
        ("leaf once commit 2 superseded it: sequence 1, ended_by 2, reason 1", leaf(2, 1)),
        ("public key", PUBLIC.hex()),
        (
            'signature over "ledgerstone/commit/1" 0x00 and the commit id',
            KEYS.sign(signing.COMMIT, identity).hex(),
        ),
    )
    return "\n".join(f"{what}:\n\n```\n{value}\n```\n" for what, value in steps)


def with_example(page: str, ledger: str) -> str:
    """The page with its worked example as it must read."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{example(ledger)}{END}{rest.split(END)[1]}"


def main() -> None:
    """Write every golden file, and the worked example into the page."""
    made = files()
    for name, text in made.items():
        (HERE / name).write_text(text, encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_example(page, made["ledger.jsonl"]), encoding="utf-8")


if __name__ == "__main__":
    main()
