#!/usr/bin/env python3
"""Verifies a store of format 1 from its lines alone: a second implementation, written from docs/format.md.

``verify_format.py LEDGER PUBLIC_KEY_HEX...`` prints every fault and ends with 1 if there is any. It needs nothing of
Ledgerstone, only Python and ``cryptography``. Where a check stands, the number is that of the page's section. An
export of one namespace says so in its first line; what it leaves out is then counted, and no fault.
"""
# ruff: noqa: T201 - a script, and what it finds it prints

from __future__ import annotations

import json
import re
import sys
from base64 import b32encode
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST = 2**53 - 1
ORIGINS = {"user": 6, "system": 5, "project": 4, "tool": 3, "model": 2, "external": 1, "import": 0, "unknown": 0}
TRUSTS = (
    "unknown",
    "external_untrusted",
    "model_inferred",
    "tool_verified",
    "project_verified",
    "system_verified",
    "user_explicit",
)
FLOOR = TRUSTS.index("model_inferred")
SUPERSEDED, CLOSED, RETRACTED, ERASED, STALE, CONTESTED, HELD, REVOKED = range(1, 9)
OBLIGATIONS, OBLIGATION_BYTES, OVERHEAD, LEVELS = 16, 7168, 224, 8
MOST_ENTRIES, MOST_TEXT, MOST_DEPTH = 256, 2**20, 32
KEPT_EVERY = 256
WIDER = ("session", "project", "user", "shared", "global")


class Fault(Exception):  # noqa: N818 - it is what a verifier finds, and not an error of its own
    """Something the format forbids: the name of the check, and what is wrong."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check = check


# 1. Canonical JSON.


def parse(text: str, check: str) -> Any:
    """The value of canonical JSON."""

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) != len(members) or not all(name.isascii() for name, _ in members):
            raise Fault(check, "a field stands twice, or its name is not ASCII")
        return dict(members)

    try:
        value = json.loads(text, object_pairs_hook=pairs)
        again = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:
        raise Fault(check, f"no canonical JSON: {error}") from None
    if again != text or not plain(value, 1):
        raise Fault(check, "no canonical JSON")
    return value


def plain(value: Any, depth: int) -> bool:
    """Strings, booleans, null, arrays, objects and integers; 32 levels; no U+0000 and no lone surrogate."""
    if type(value) is str:
        return not re.search("[\0\ud800-\udfff]", value)
    if type(value) is int:
        return -MOST <= value <= MOST
    if type(value) in {dict, list}:
        members = [*value, *value.values()] if type(value) is dict else value
        return depth <= MOST_DEPTH and all(plain(member, depth + 1) for member in members)
    return value is None or type(value) is bool


# 2. Hashes. 3. Ids.


def digest(noun: str, *parts: bytes) -> bytes:
    """``H(noun, parts)``."""
    return sha256(b"ledgerstone/" + noun.encode() + b"/1\0" + b"".join(parts)).digest()


def key_id(public: bytes) -> str:
    """The id of a public key."""
    letters = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")
    return "key_" + b32encode(digest("key", public)[:10]).decode().translate(letters)


def signed(keys: dict[str, bytes], signer: str, commit: bytes, signature: str) -> bool:
    """Whether a trusted key of that id signed a commit."""
    try:
        Ed25519PublicKey.from_public_bytes(keys[signer]).verify(
            bytes.fromhex(signature), b"ledgerstone/commit/1\0" + commit
        )
    except (KeyError, ValueError, InvalidSignature):
        return False
    return True


# 4. Types. A field is ``name:type`` or, where both are called the same, ``name``; with ``?`` it may be missing. No type
# takes the absent value, so that a field which stands at it is malformed.


def matches(pattern: str) -> Callable[[Any], bool]:
    """A string of a form."""
    return lambda value: type(value) is str and re.fullmatch(pattern, value) is not None


def words(*listed: str) -> Callable[[Any], bool]:
    """One of the listed strings."""
    return lambda value: type(value) is str and value in listed


def integer(least: int = 0, most: int = MOST) -> Callable[[Any], bool]:
    """An integer within bounds."""
    return lambda value: type(value) is int and least <= value <= most


def text(most: int) -> Callable[[Any], bool]:
    """A string of 1 to so many bytes."""
    return lambda value: type(value) is str and 1 <= len(value.encode()) <= most


def array(most: int, of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """1 to so many different values."""
    return lambda value: (
        type(value) is list and 1 <= len(value) <= most and all(map(of, value)) and len(set(value)) == len(value)
    )


def within(fields: str) -> Callable[[Any], bool]:
    """An object inside another."""
    return lambda value: misshapen(value, fields) is None


def misshapen(value: Any, fields: str) -> str | None:
    """What is wrong with an object's fields, or None."""
    if type(value) is not dict:
        return "not an object"
    known = set()
    for declared in fields.split():
        name, _, kind = declared.partition(":")
        optional, name = name.endswith("?"), name.rstrip("?")
        known.add(name)
        if name not in value:
            if not optional:
                return f"{name} is missing"
        elif not TYPES[kind or name](value[name]):
            return f"{name} is malformed"
    unknown = value.keys() - known
    return f"unknown field {min(unknown)}" if unknown else None


HASH = matches("[0-9a-f]{64}")
ID = "_[0-9a-hjkmnp-tv-z]{16}"
TYPES: dict[str, Callable[[Any], bool]] = {
    "format": integer(1, 1),
    "hash": HASH,
    "nonce": matches("[0-9a-f]{32}"),
    "time": integer(),
    "count": integer(),
    "number": integer(1),
    "next": integer(2),
    "levels": integer(1, LEVELS),
    "limit": integer(1, MOST_ENTRIES),
    "size": integer(1, MOST_TEXT),
    "longer": integer(1, 8 * MOST_TEXT),
    "text": text(MOST_TEXT),
    "noun": matches("[a-z]+"),
    "title": text(128),
    "line": text(1024),
    "reasons": text(4096),
    "labels": array(16, text(64)),
    "slug": matches("[a-z_]{1,64}"),
    "slugs": array(16, matches("[a-z_]{1,64}")),
    "hashes": array(32, HASH),
    "listed": array(MOST_ENTRIES, HASH),
    "places": array(MOST_ENTRIES, matches("ns" + ID)),
    **{prefix: matches(prefix + ID) for prefix in ("mem", "ns", "prn", "ses", "hst", "grt", "key", "set")},
    "named": matches("(?:prn|ses|hst)" + ID),
    "scope": words("session", "project", "user", "global", "shared", "store"),
    "kind": words("note", "fact", "episode", "task", "summary", "procedure", "prospective"),
    "status": words("active", "open", "closed", "retracted"),
    "retention": words("working", "session", "short_term", "long_term", "durable"),
    "origin": words(*ORIGINS),
    "trust": words(*TRUSTS),
    "act": words("read", "write", "forget", "create", "promote", "admin"),
    "refusal": words("no_grant", "expired", "host", "unbound"),
    "binding": words("explicit", "binding", "remote", "alias", "new"),
    "naming": words("principal", "session", "host"),
    "evidence": words("remote", "path"),
    "content": within("commitment:hash bytes:longer text_bytes?:size"),
    "limits": within("drafts:limit text_bytes:size"),
    "counts": within("entries:count records:count live:count current:count open:count indexed:count"),
    "stamp": within("at:time principal:prn origin grant?:grt session?:ses host?:hst binding?"),
    "point": within("sequence:count id:hash"),
    "idempotency": within("key:hash content:hash"),
}

# 5. Content, and the fields that it must and may have by the noun of its entry; all others have a name.
CONTENT = (
    "format text? key?:title source?:line title?:line place?:line tags?:labels due?:time valid_from?:time "
    "valid_until?:time triggers?:labels name?:line reason?:reasons"
)
TEXTS = {"text", "key", "source", "title", "place", "tags", "due", "valid_from", "valid_until", "triggers"}
WHY = {"reason"}, {"reason"}
SAYS = {"record": ({"text"}, TEXTS), "close": WHY, "retract": WHY, "erasure": WHY, "restore": WHY}

# 6. Entries. Rules version 1 admits none of those that are reserved.
GENESIS = "scope nonce owner?:prn"
ENDS = "memory:mem version:next origin trust content?"
IN_NAMESPACES = {
    "genesis": GENESIS,
    "record": "memory:mem version:number kind status retention origin trust content expires?:time depth?:levels "
    "sources?:hashes covers?:hashes contests?:hash held_by?:hash promotion?:hash overrides?:slugs",
    "close": f"{ENDS} closes:hash",
    "retract": f"{ENDS} retracts:hash tombstone?:hash",
    "erasure": "erases?:listed strikes?:listed content?",
    "promotion": "source_namespace:ns source:hash trust",
}
ON_STORE = {
    "genesis": GENESIS,
    "namespace": f"namespace:ns {GENESIS} content?",
    "name": "id:named of:naming content owner?:prn",
    "alias": "namespace:ns of:evidence content",
    "grant": "grant:grt principal:prn act scope? namespace?:ns expires?:time",
    "revoke": "revokes:hash",
    "key": "key public:hash retires?:key heads?:hash",
    "refusal": "act reason:refusal count:number first:time last:time principal?:prn scope? namespace?:ns",
    "erased": "namespace:ns sequence:number count:number",
    "restore": "namespace:ns abandoned_sequence?:count abandoned?:hash content?",
    "erasure": "erases?:listed strikes?:listed content?",
    "export": "sequence:count head:hash namespace?:ns",
    "parting": "without:places",
    "setting": "id:set setting:slug value:count namespace?:ns",
}
RESERVED = {"token", "adopt", "inbox", "values", "wake"}
NOUNS = IN_NAMESPACES.keys() | ON_STORE.keys() | RESERVED
REVOCABLE = {"alias", "grant", "setting"}
OWN_IDS = {"grant": "grant", "namespace": "namespace", "key": "key", "name": "id", "setting": "id"}

# 7. Header.
HEADER = (
    "format namespace:ns sequence:count rules:number limits history:hash state:hash counts stamp signer:key "
    "entries:listed parent?:hash store?:point idempotency? receipt?:hash"
)


# 8. History. 10. State.


def history(commits: list[bytes]) -> bytes:
    """The root over commit ids, as RFC 9162 defines it in section 2.1.1."""
    if len(commits) <= 1:
        return commits[0] if commits else sha256(b"").digest()
    split = 1 << (len(commits) - 1).bit_length() - 1
    return sha256(b"\1" + history(commits[:split]) + history(commits[split:])).digest()


def state(leaves: list[bytes]) -> bytes:
    """The root over the leaves of all positions."""
    while True:
        leaves = [digest("node", *leaves[start : start + 16]) for start in range(0, len(leaves), 16)]
        if len(leaves) == 1:
            return leaves[0]


# 11. How entries stand.


class Standing(NamedTuple):
    """An entry as it stands: what it is, where, and how it ended."""

    digest: str
    noun: str
    sequence: int
    stamp: bytes
    sealed: bool = False
    by: int = 0
    reason: int = 0


class Version(NamedTuple):
    """One version of a memory, whose text stands at ``body``; whether it is current says its standing."""

    position: int
    body: int
    memory: str
    number: int
    kind: str
    status: str
    trust: int
    size: int
    whole: int
    depth: int
    key: str | None
    sources: tuple[int, ...] = ()
    lasts: tuple[str, int | None] = ("", None)


@dataclass
class Chain:
    """One chain as far as it was read."""

    namespace: str
    is_store: bool
    commits: list[bytes] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=dict)
    begun: int = 0  # the position of the first entry of the commit that is being read
    entries: list[Standing] = field(default_factory=list)
    where: dict[str, int] = field(default_factory=dict)
    versions: dict[int, Version] = field(default_factory=dict)
    latest: dict[str, Version] = field(default_factory=dict)
    holders: dict[str | None, str] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    idempotency: set[str] = field(default_factory=set)
    present: set[int] = field(default_factory=set)
    ended_keys: int = 0  # how many of the store's keys came before the point that was read last
    lasts: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    struck: set[int] = field(default_factory=set)
    tally: Counter[str] = field(default_factory=Counter)
    came: tuple[str, dict[str, Any]] | None = None  # the promotion right before, and its digest
    promotions: list[tuple[int, dict[str, Any], Version]] = field(default_factory=list)

    @property
    def kinds(self) -> dict[str, str]:
        """The nouns that have a place here, with their fields."""
        return ON_STORE if self.is_store else IN_NAMESPACES

    def current(self, version: Version) -> bool:
        """Whether nothing ended a version."""
        return self.entries[version.position].reason == 0

    def open(self, version: Version) -> bool:
        """Whether a version is a task to be done."""
        return version.status == "open" and self.current(version)

    def obligations(self) -> list[Version]:
        """Open tasks that are trusted enough."""
        return [version for version in self.latest.values() if self.open(version) and version.trust >= FLOOR]

    def named(self, reference: str, rule: str) -> Version:
        """The earlier version that a digest names."""
        version = self.versions.get(self.where.get(reference, -1))
        if version is None:
            raise Fault("rule", f"{rule}: names no earlier version")
        return version

    def earlier(self, reference: str, rule: str) -> Version:
        """The version of an earlier commit that a digest names."""
        version = self.named(reference, rule)
        if version.position >= self.begun:
            raise Fault("rule", f"{rule}: names a version of this very commit")
        return version

    def undermined(self, ended: Version) -> list[int]:
        """What goes stale when a version ends: what rests on it, or on the version whose text it carries on."""
        stale: list[int] = []
        ground = [ended.position, ended.body]
        while ground:
            below = ground.pop()
            for version in self.versions.values():
                rests = version.depth and below in version.sources and self.current(version)
                if rests and version.position not in stale:
                    stale.append(version.position)
                    ground.append(version.position)
        return stale

    def reason(self, version: Version) -> int:
        """How a version ended."""
        return self.entries[version.position].reason

    def end(self, position: int, reason: int, by: int) -> None:
        """End an entry, and what goes stale by it."""
        stale = self.undermined(self.versions[position]) if reason in {SUPERSEDED, RETRACTED} else []
        for ended, why in ((position, reason), *((one, STALE) for one in stale)):
            self.entries[ended] = self.entries[ended]._replace(by=by, reason=why)

    def erase(self, references: list[str], by: int) -> None:
        """End every version that holds a text of those named, and what goes stale by that."""
        bodies = {
            self.versions[position].body for position in map(self.where.get, references) if position in self.versions
        }
        gone = {
            one.position: one for one in self.versions.values() if one.body in bodies and self.reason(one) != ERASED
        }
        stale = {position for one in gone.values() for position in self.undermined(one)} - gone.keys()
        for position in stale:
            self.entries[position] = self.entries[position]._replace(by=by, reason=STALE)
        for position, version in gone.items():
            entry = self.entries[position]
            self.tally["live"] -= entry.sealed and position not in self.struck
            self.tally["indexed"] -= entry.noun in {"record", "close"}
            self.entries[position] = entry._replace(by=by, reason=ERASED)
            self.versions[position] = version._replace(key=None)
            if self.latest[version.memory].position == position:
                self.latest[version.memory] = self.versions[position]

    def strike(self, references: list[str]) -> None:
        """Let entries lose what they say of their own, and stand without it."""
        struck = {self.where[reference] for reference in references if reference in self.where}
        self.tally["live"] -= len(struck)
        self.struck |= struck

    def add(self, version: Version) -> None:
        """Take up a version as the latest of its memory."""
        self.versions[version.position] = self.latest[version.memory] = version
        self.tally["records"] += 1
        if version.key is not None and self.reason(version) not in {CONTESTED, HELD}:
            self.holders[version.key] = version.memory

    def counts(self) -> dict[str, int]:
        """9. The totals as they are now."""
        current = sum(map(self.current, self.versions.values()))
        tallied = {name: self.tally[name] for name in ("records", "live", "indexed")}
        return {"entries": len(self.entries), **tallied, "current": current, "open": len(self.obligations())}


def apply(chain: Chain, entry: dict[str, Any], key: str | None, standing: Standing) -> None:
    """11. What an entry does, once it was judged."""
    position, noun, by, came = len(chain.entries), entry["entry"], standing.sequence, chain.came
    chain.tally["live"] += "content" in entry
    chain.tally["indexed"] += noun in {"record", "close"}
    chain.where[standing.digest] = position
    chain.entries.append(standing)
    chain.came = (standing.digest, entry) if noun == "promotion" else None
    if noun == "record":
        previous = chain.latest.get(entry["memory"])
        if previous is not None and chain.current(previous):
            chain.end(previous.position, SUPERSEDED, by)
        born = HELD if "held_by" in entry else CONTESTED if "contests" in entry else 0
        if born:
            chain.entries[position] = standing._replace(by=by, reason=born)
        sources = tuple(chain.where[source] for source in entry.get("sources", ()) if source in chain.where)
        trust, size = TRUSTS.index(entry["trust"]), entry["content"].get("text_bytes", 0)
        whole = entry["content"]["bytes"]
        what = (entry["memory"], entry["version"], entry["kind"], entry["status"])
        lasts = (entry["retention"], entry.get("expires"))
        version = Version(position, position, *what, trust, size, whole, entry.get("depth", 0), key, sources, lasts)
        chain.add(version)
        if came is not None and entry.get("promotion") == came[0]:
            chain.promotions.append((by, came[1], version))
    elif noun in {"close", "retract"}:
        target = chain.versions.get(chain.where.get(entry.get("closes") or entry.get("retracts", ""), -1))
        if target is None:
            return
        aside = chain.reason(target) in {CONTESTED, HELD}
        if not aside:
            chain.end(target.position, CLOSED if noun == "close" else RETRACTED, by)
        if noun == "retract":
            chain.entries[position] = standing._replace(by=by, reason=RETRACTED)
            if "tombstone" in entry:
                chain.tombstones.add(standing.digest)
        status = "closed" if noun == "close" else "retracted"
        key = None if aside else target.key
        chain.add(target._replace(position=position, number=entry["version"], status=status, key=key, sources=()))
    elif noun == "erasure":
        chain.erase(entry.get("erases", []), by)
        chain.strike(entry.get("strikes", []))
    elif noun == "revoke" and entry["revokes"] in chain.where:
        chain.end(chain.where[entry["revokes"]], REVOKED, by)


# 12. Rules, version 1.


def need(holds: object, rule: str, message: str) -> None:
    """Refuse what breaks a rule."""
    if not holds:
        raise Fault("rule", f"{rule}: {message}")


def judge_record(chain: Chain, entry: dict[str, Any], content: dict[str, Any] | None, header: dict[str, Any]) -> None:
    """Judge a record by its past; without its content all but its key."""
    sources = [chain.earlier(source, "sources") for source in entry.get("sources", ())]
    covers = [chain.earlier(cover, "covers") for cover in entry.get("covers", ())]
    size, trust, kind = entry["content"].get("text_bytes", 0), TRUSTS.index(entry["trust"]), entry["kind"]
    need(1 <= size <= header["limits"]["text_bytes"], "text", f"{size} bytes")
    need(ORIGINS[entry["origin"]] <= ORIGINS[header["stamp"]["origin"]], "origin", "more than the caller's")
    came = []
    if "promotion" in entry:
        need(chain.came and chain.came[0] == entry["promotion"], "promotion", "names not the promotion right before it")
        came = [TRUSTS.index(chain.came[1]["trust"])] if chain.came else []
        fits = kind != "summary" and not sources and entry["status"] != "open"
        need(fits, "promotion", "is an open task, or rests on what is here")
    lowest = min([ORIGINS[entry["origin"]], *(source.trust for source in sources), *came])
    need(trust == lowest, "trust", f"origin and sources allow {TRUSTS[lowest]}, not {entry['trust']}")
    previous = chain.latest.get(entry["memory"])
    need(entry["version"] == (previous.number + 1 if previous else 1), "version", "does not follow")
    need(previous is None or not chain.open(previous), "open_task", "an open task is replaced")
    standing = previous is not None and chain.current(previous)
    need(not standing or (previous and previous.trust <= trust), "trust", "higher trust is replaced")
    if "contests" in entry:
        contested = chain.named(entry["contests"], "contests")
        need(previous is None and chain.current(contested) and contested.trust > trust, "contests", "without cause")
    if "held_by" in entry:
        held = previous is None and entry["origin"] != "user" and entry["held_by"] in chain.tombstones
        need(held, "held_by", "names no rejection, or is no new memory")
    if content is not None:
        key = content.get("key")
        holder = chain.holders.get(key, entry["memory"])
        need(holder == entry["memory"] or entry.keys() & {"contests", "held_by"}, "key", "is held by another memory")
        need(previous is None or previous.key in {None, key}, "key", "is not the one the memory has")
    fitting = {"open", "closed"} if kind == "task" else {"active"}
    need(entry["status"] in fitting, "status", f"{entry['status']} {kind}")
    if entry["status"] == "open" and trust >= FLOOR:
        sizes = [entry["content"]["bytes"], *(task.whole for task in chain.obligations())]
        fits = len(sizes) <= OBLIGATIONS and sum(sizes) + OVERHEAD * len(sizes) <= OBLIGATION_BYTES
        need(fits, "open_tasks", "too many obligations")
    if kind == "summary":
        judge_summary(chain, entry, sources, covers, previous)
    else:
        need(not covers and "depth" not in entry, "covers", f"a {kind} covers nothing")
    if kind == "procedure":
        ground = [s for s in sources if s.kind != "summary" and chain.reason(s) not in {RETRACTED, ERASED}]
        need(ground or "promotion" in entry, "procedure", "has no ground")


def judge_summary(
    chain: Chain, entry: dict[str, Any], sources: list[Version], covers: list[Version], previous: Version | None
) -> None:
    """Judge a summary by what it rests on."""
    need(sources, "summary", "has no source")
    need(set(entry.get("covers", ())) <= set(entry["sources"]), "covers", "what is no source")
    ending = set()
    if previous is not None and chain.current(previous):
        ending = {previous.position, *chain.undermined(previous)}
    for source in sources:
        need(chain.current(source) and source.position not in ending, "summary", "rests on what does not stand")
    need(not any(map(chain.open, covers)), "covers", "an open task")
    depth = 1 + max(source.depth for source in sources)
    need(entry.get("depth") == depth <= LEVELS, "summary", f"stands {depth} levels up")
    if covers:
        need(TRUSTS.index(entry["trust"]) >= FLOOR, "covers", "is not trusted enough")
        covered = sum(cover.size for cover in covers)
        need(entry["content"]["text_bytes"] < covered, "covers", f"is not shorter than {covered} bytes")


def judge_end(chain: Chain, entry: dict[str, Any], header: dict[str, Any]) -> None:
    """Judge a close or a retract by the version that it ends."""
    noun = entry["entry"]
    target = chain.named(entry["closes" if noun == "close" else "retracts"], noun)
    need((entry["memory"], entry["version"]) == (target.memory, target.number + 1), noun, "is not the next version")
    need(entry["origin"] == header["stamp"]["origin"], "origin", "is not the caller's")
    need(TRUSTS.index(entry["trust"]) == target.trust, "trust", "is not that of the text")
    fits = chain.open(target) if noun == "close" else chain.reason(target) in {0, STALE, CONTESTED, HELD}
    need(fits, noun, "what does not stand")
    need(target.trust <= ORIGINS[entry["origin"]], "trust", f"too low to {noun}")
    need(chain.latest[target.memory].position == target.position, noun, "is not of the latest version")


def judge_erasure(chain: Chain, entry: dict[str, Any]) -> None:
    """Judge an erasure by what it erases."""
    need(
        ("erases" in entry) != ("strikes" in entry), "erasure", "takes texts, or what other entries say, one of the two"
    )
    for reference in entry.get("erases", ()):
        need(chain.reason(chain.named(reference, "erasure")) != ERASED, "erasure", "was erased before")
    for reference in entry.get("strikes", ()):
        position = chain.where.get(reference, -1)
        one = chain.entries[position]
        says = position >= 0 and one.sealed and one.noun != "record" and one.reason != ERASED
        need(says and position not in chain.struck, "erasure", "has no content of its own")


def judge_place(chain: Chain, entry: dict[str, Any], content: dict[str, Any] | None) -> None:
    """Judge an entry by itself: where it stands, whether it is of one piece, and what its content says."""
    noun = entry["entry"]
    need((noun == "genesis") == (not chain.entries), "genesis", "is the first entry, and only that")
    if noun == "grant":
        need(("scope" in entry) != ("namespace" in entry), "grant", "takes a scope or a namespace")
    elif noun == "key":
        need(entry["key"] == key_id(bytes.fromhex(entry["public"])), "key_entry", "its id is another key's")
        need(
            ("retires" in entry) == ("heads" in entry), "key_entry", "retires a key at no heads, or names some for none"
        )
    elif noun == "name":
        prefix = {"principal": "prn", "session": "ses", "host": "hst"}[entry["of"]]
        need(entry["id"].startswith(prefix), "name", "its id is of another sort")
    elif noun == "namespace":
        need(entry["scope"] != "store", "namespace", "is a second chain of the store")
    elif noun == "restore":
        need(("abandoned" in entry) == ("abandoned_sequence" in entry), "restore", "names half a head")
    if content:
        needed, allowed = SAYS.get(noun, ({"name"}, {"name"}))
        need(needed <= content.keys() - {"format"} <= allowed, "content", f"is not what a {noun} says")


def judge_promotion(store: Store, chains: tuple[Chain | None, Chain], entry: dict[str, Any], made: Version) -> None:
    """Judge a promotion by what it names in another chain; to be asked once all were read."""
    source, goal = chains
    came = None if source is None else source.versions.get(source.where.get(entry["source"], -1))
    standing = "" if source is None or came is None else source.entries[came.position].noun
    if source is None or came is None or standing == "retract":
        raise Fault("rule", "promotion: names no record there")
    scopes = [store.made.get(one.namespace, ({"scope": "store"}, 0))[0]["scope"] for one in (source, goal)]
    wider = set(scopes) <= set(WIDER) and WIDER.index(scopes[0]) <= WIDER.index(scopes[1])
    need(source is not goal and wider, "promotion", "goes to no other namespace that is wider")
    need(TRUSTS.index(entry["trust"]) <= came.trust, "promotion", "is trusted more than there")
    same = (came.kind, came.lasts, came.size) == (made.kind, made.lasts, made.size)
    need(same, "promotion", "is not what it came from")


def judge_commit(chain: Chain, header: dict[str, Any]) -> None:
    """Judge the records of a commit together."""
    positions = range(chain.begun, len(chain.entries))
    records = [chain.versions[position] for position in positions if chain.entries[position].noun == "record"]
    keys = [record.key for record in records if record.key is not None]
    need(len(records) <= header["limits"]["drafts"], "drafts", f"{len(records)} are too many")
    need(len(set(keys)) == len(keys), "key", "stands twice in a commit")
    need(len({record.memory for record in records}) == len(records), "replaces", "a memory stands twice in a commit")
    erasure = any(chain.entries[position].noun == "erasure" for position in positions)
    need(not erasure or len(positions) == 1, "erasure", "is not alone in its commit")
    nouns = [chain.entries[position].noun for position in positions]
    pair = nouns == ["promotion", "record"] and chain.promotions and chain.promotions[-1][0] == len(chain.commits)
    need("promotion" not in nouns or pair, "promotion", "is not alone with its record")


# 13. Store chain and authority.


class Granted(NamedTuple):
    """A grant, since and until which commit of the store chain."""

    entry: dict[str, Any]
    since: int
    until: int


@dataclass
class Store:
    """What the store chain says of the others."""

    commits: list[bytes] = field(default_factory=list)
    grants: dict[str, Granted] = field(default_factory=dict)
    granted: dict[str, str] = field(default_factory=dict)
    made: dict[str, tuple[dict[str, Any], int]] = field(default_factory=dict)
    exports: dict[tuple[str, int], str] = field(default_factory=dict)
    erased: dict[str, dict[int, int]] = field(default_factory=dict)
    parted: dict[str, int] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    # 14. The keys in order, since which commit, and the heads at which the key before each of them ended.
    keys: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    ends: dict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def key_at(self, sequence: int) -> dict[str, Any]:
        """The key in force once that commit was made; none before the first."""
        return next((entry for entry, since in reversed(self.keys) if since <= sequence), {"key": None})


def judge_store(chain: Chain, store: Store, entry: dict[str, Any]) -> None:
    """Judge an entry of the store chain."""
    noun = entry["entry"]
    if noun == "key":
        need(entry.get("retires") == store.key_at(MOST)["key"], "key_entry", "does not retire the key in force")
    if noun == "revoke":
        target = chain.where.get(entry["revokes"], -1)
        stands = target >= 0 and chain.entries[target].reason == 0 and chain.entries[target].noun in REVOCABLE
        need(stands, "revoke", "names nothing that stands")
    elif noun in {"export", "parting", "setting"}:
        if noun == "setting":
            known = entry["setting"] == "isolated" and entry["value"] <= 1 and "namespace" in entry
            need(known, noun, "is none of rules version 1")
            need(entry["id"] not in store.ids, noun, "its id stands twice")
        named = {*entry.get("without", ()), *([entry["namespace"]] if "namespace" in entry else [])}
        need(named <= store.made.keys() - store.parted.keys(), noun, "was never made here, or was left before")
        if noun == "export" and not named:
            here = entry["sequence"] < len(chain.commits) and chain.commits[entry["sequence"]].hex() == entry["head"]
            if not here:
                raise Fault("export", "names no earlier commit of the store chain")
    elif noun in OWN_IDS:
        need(entry[OWN_IDS[noun]] not in store.ids, "key_entry" if noun == "key" else noun, "its id stands twice")


def take(store: Store, entry: dict[str, Any], sequence: int, reference: str) -> None:
    """Take up what an entry of the store chain says, be it right or not."""
    match entry["entry"]:
        case "grant":
            store.grants[entry["grant"]] = Granted(entry, sequence, MOST)
            store.granted[reference] = entry["grant"]
        case "key":
            store.keys.append((entry, sequence))
        case "namespace":
            store.made[entry["namespace"]] = entry, sequence
        case "export" if "namespace" in entry:
            store.exports[entry["namespace"], entry["sequence"]] = entry["head"]
        case "erased":
            store.erased.setdefault(entry["namespace"], {})[entry["sequence"]] = entry["count"]
        case "parting":
            store.parted |= dict.fromkeys(entry["without"], sequence)
        case "revoke" if entry["revokes"] in store.granted:
            grant = store.granted[entry["revokes"]]
            store.grants[grant] = store.grants[grant]._replace(until=min(sequence, store.grants[grant].until))
    if entry["entry"] in OWN_IDS:
        store.ids.add(entry[OWN_IDS[entry["entry"]]])


def judge_keys(chain: Chain, store: Store, header: dict[str, Any]) -> None:
    """Judge who signed a commit, and that one by which a key is retired does nothing else."""
    here = len(chain.commits)
    at = max(here - 1, 0) if chain.is_store else header.get("store", {"sequence": -1})["sequence"]
    need(at < 0 or header["signer"] == store.key_at(at)["key"], "signer", "was not the key in force")
    retires = chain.is_store and any(since == here and "retires" in entry for entry, since in store.keys)
    need(not retires or len(header["entries"]) == 1, "key_entry", "that retires a key is not alone in its commit")


def judge_heads(entry: dict[str, Any], ends: dict[str, str]) -> None:
    """Judge which heads a key entry names, by those at which the key before it ended."""
    leaves = [sha256(f"\0{namespace} {head}".encode()).digest() for namespace, head in sorted(ends.items())]
    need("heads" not in entry or entry["heads"] == history(leaves).hex(), "key_entry", "names other heads")


def authorised(store: Store, header: dict[str, Any], before: dict[str, Any], act: str) -> None:
    """Judge a namespace's commit by what the store chain had said by then."""
    point, stamp, namespace = header.get("store", {}), header["stamp"], header["namespace"]
    at = point.get("sequence", MOST)
    if at >= len(store.commits) or store.commits[at].hex() != point["id"]:
        raise Fault("store", "names no commit of the store chain")
    if at < before.get("store", point)["sequence"]:
        raise Fault("store", "names an older one than its parent")
    made, since = store.made.get(namespace, ({}, MOST))
    if since > at:
        raise Fault("store", "the namespace was not made by then")
    granted = store.grants.get(stamp.get("grant"))
    if granted is None or not granted.since <= at < granted.until:
        raise Fault("grant", "names no grant that stood")
    grant = granted.entry
    if (grant["principal"], grant["act"]) != (stamp["principal"], act):
        raise Fault("grant", "is another's, or for another act")
    own = made.get("owner") == grant["principal"] or ("owner" not in made and made["scope"] == "global")
    if grant["namespace"] != namespace if "namespace" in grant else not (grant.get("scope") == made["scope"] and own):
        raise Fault("grant", "does not reach this namespace")
    if grant.get("expires", MOST + 1) <= stamp["at"]:
        raise Fault("grant", "had expired")


# 16. Verifying.


@dataclass
class Rows:
    """The lines of one chain."""

    headers: list[str] = field(default_factory=list)
    entries: dict[int, str] = field(default_factory=dict)
    contents: dict[int, tuple[str, str]] = field(default_factory=dict)
    signatures: dict[int, str] = field(default_factory=dict)
    head: dict[str, Any] | None = None


def gather(lines: Iterable[str]) -> tuple[str, set[str] | None, dict[str, Rows]]:
    """18. The lines of a store by chain, with its own name, and the namespaces that they keep to, if they do."""
    store, only, chains = "", None, defaultdict[str, Rows](Rows)
    for line in map(json.loads, lines):
        rows = chains[line["namespace"]] if "namespace" in line else Rows()
        match line["line"]:
            case "ledger" if line["format"] == 1:
                store, only = line["store"], set(line["namespaces"]) if "namespaces" in line else None
            case "commit":
                rows.headers.append(line["header"])
            case "entry":
                rows.entries[line["position"]] = line["entry"]
            case "content":
                rows.contents[line["position"]] = line["salt"], line["content"]
            case "signature":
                rows.signatures[line["sequence"]] = line["signature"]
            case "head":
                rows.head = line
            case other:
                raise Fault("lines", f"unknown line {other}")
    return store, only, chains


def content_of(entry: dict[str, Any], row: tuple[str, str] | None) -> dict[str, Any] | None:
    """An entry's content, checked against what the entry says of it; empty when it has none, None when it is gone."""
    sealed = entry.get("content")
    if sealed is None:
        if row is not None:
            raise Fault("content", "no entry commits to it")
        return {}
    if row is None:
        return None
    if not HASH(row[0]):
        raise Fault("content", "its salt is not 32 bytes")
    salt, data = bytes.fromhex(row[0]), row[1].encode()
    if digest("content", salt, data).hex() != sealed["commitment"]:
        raise Fault("content", "was altered")
    content: dict[str, Any] = parse(row[1], "content")
    if wrong := misshapen(content, CONTENT):
        raise Fault("content", wrong)
    if (sealed["bytes"], sealed.get("text_bytes", 0)) != (len(data), len(content.get("text", "").encode())):
        raise Fault("content", "its sizes are not as said")
    return content


def links(chain: Chain, header: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Steps 2 to 5: how a header follows the one before."""
    commits = chain.commits
    if header["namespace"] != chain.namespace:
        yield "chain", "belongs to another chain"
    if header["sequence"] != len(commits):
        yield "chain", f"stands at {header['sequence']}"
    if header.get("parent") != (commits[-1].hex() if commits else None):
        yield "chain", "does not name its parent"
    if header["history"] != history(commits).hex():
        yield "history", "does not bind what was before"
    if chain.header and header["stamp"]["at"] < chain.header["stamp"]["at"]:
        yield "time", "is before its parent's"
    if chain.is_store and "store" in header:
        yield "store", "the store chain names itself"


class Verification:
    """One run over a store: ``faults`` collects (check, where, what is wrong).

    ``only`` are the namespaces that the lines keep to, or None; ``left_out`` counts the names that they then leave out.
    """

    def __init__(self, lines: Iterable[str], keys: Iterable[bytes]) -> None:
        self.keys = {key_id(key): key for key in keys}
        self.faults: list[tuple[str, str, str]] = []
        self.store = Store()
        self.left_out = 0
        first, self.only, chains = gather(lines)
        read = {name: Chain(name, name == first) for name in sorted(chains, key=lambda name: name != first)}
        for namespace, chain in read.items():
            self.chain(chain, chains[namespace])
        for namespace, chain in read.items():
            for sequence, entry, version in chain.promotions:
                source = read.get(entry["source_namespace"])
                if source is not None or (self.only is None and entry["source_namespace"] not in self.store.parted):
                    where = f"{namespace} commit {sequence}"
                    self.attempt(where, judge_promotion, self.store, (source, chain), entry, version)
        unseen = max(self.store.parted.values(), default=-1) if self.only is None else MOST
        for index, (entry, since) in enumerate(self.store.keys):
            if since <= unseen:
                continue
            self.attempt(f"{first} commit {since}", judge_heads, entry, self.store.ends[index])
        expected = self.store.made.keys() - self.store.parted.keys() if self.only is None else self.only
        for namespace in expected ^ (chains.keys() - {first}):
            self.find("namespace", namespace, "was made and is missing, or is there and was not made")

    def find(self, check: str, where: str, message: str) -> None:
        """Add a fault."""
        self.faults.append((check, where, message))

    def attempt(self, where: str, check: Callable[..., Any], *subjects: Any) -> Any:
        """The result of a check, or None and a fault."""
        try:
            return check(*subjects)
        except Fault as fault:
            self.find(fault.check, where, str(fault))
            return None

    def chain(self, chain: Chain, rows: Rows) -> None:
        """Verify one chain."""
        erased = 0
        for data in rows.headers:
            where = f"{chain.namespace} commit {len(chain.commits)}"
            header = self.attempt(where, parse, data, "header")
            wrong = misshapen(header, HEADER)
            if wrong or header["rules"] != 1:
                self.find("header", where, wrong or "is of later rules")
                return
            for check, message in links(chain, header):
                self.find(check, where, message)
            if not chain.is_store:
                erases = len(header["entries"]) == 1 and '"entry":"erasure"' in rows.entries.get(len(chain.entries), "")
                first = rows.entries.get(len(chain.entries), "")
                act = "forget" if erases else "promote" if '"entry":"promotion"' in first else "write"
                act = "create" if not chain.commits else act
                self.attempt(where, authorised, self.store, header, chain.header, act)
            self.end_keys(chain, header.get("store", {}).get("sequence", -1))
            chain.begun = len(chain.entries)
            stamp = json.dumps(header["stamp"], sort_keys=True, separators=(",", ":"))
            for listed in header["entries"]:
                standing = Standing(listed, "", len(chain.commits), digest("stamp", stamp.encode()))
                if not self.entry(chain, rows, header, standing):
                    return
            self.attempt(where, judge_keys, chain, self.store, header)
            self.totals(chain, header, where)
            chain.commits.append(sha256(b"\0" + data.encode()).digest())
            exported = self.store.exports.get((chain.namespace, len(chain.commits) - 1))
            if exported not in {None, chain.commits[-1].hex()}:
                self.find("export", where, "is not the commit that was exported")
            noted = self.store.erased.get(chain.namespace, {}).pop(len(chain.commits) - 1, None)
            if noted is not None:
                total = sum(entry.reason == ERASED for entry in chain.entries)
                if noted != total - erased:
                    self.find("erased", where, f"erased {total - erased} versions, and {noted} are noted")
                erased = total
            chain.header = header
            self.signature(chain, rows, where)
        if chain.is_store:
            self.store.commits = chain.commits
            chain.lasts = {since for entry, since in self.store.keys if "retires" in entry}
        else:
            self.end_keys(chain, MOST)
        for sequence in self.store.erased.get(chain.namespace, {}):
            self.find("erased", f"{chain.namespace} commit {sequence}", "is noted to have erased, and is not there")
        self.head(chain, rows)

    def entry(self, chain: Chain, rows: Rows, header: dict[str, Any], standing: Standing) -> bool:
        """Steps 6 to 9 for the next entry; False when it cannot be read, which ends the chain."""
        position = len(chain.entries)
        where = f"{chain.namespace} entry {position}"
        body = rows.entries.pop(position, "")
        if digest("entry", body.encode()).hex() != standing.digest:
            self.find("entry", where, "is not the one that its commit lists")
        entry = self.attempt(where, parse, body, "entry")
        noun = str(entry.get("entry")) if type(entry) is dict else ""
        if noun in NOUNS - chain.kinds.keys():
            self.find("rule", where, f"rule: {noun}: has no place in this chain")
            return False
        wrong = misshapen(entry, f"format entry:noun {chain.kinds[noun]}") if noun in NOUNS else "is of no kind"
        if wrong:
            self.find("entry", where, wrong)
            return False
        chain.present |= {position} & rows.contents.keys()
        content = self.attempt(where, content_of, entry, rows.contents.pop(position, None))
        self.attempt(where, judge_place, chain, entry, content)
        self.attempt(where, self.judge, chain, entry, content, header)
        apply(chain, entry, (content or {}).get("key"), standing._replace(noun=noun, sealed="content" in entry))
        if chain.is_store:
            take(self.store, entry, standing.sequence, standing.digest)
        return True

    def judge(
        self,
        chain: Chain,
        entry: dict[str, Any],
        content: dict[str, Any] | None,
        header: dict[str, Any],
    ) -> None:
        """Step 9."""
        noun = entry["entry"]
        if noun == "record":
            judge_record(chain, entry, content, header)
        elif noun in {"close", "retract"}:
            judge_end(chain, entry, header)
        elif noun == "erasure":
            judge_erasure(chain, entry)
        elif noun != "genesis":
            judge_store(chain, self.store, entry)
        elif chain.is_store:
            if entry["scope"] != "store":
                raise Fault("genesis", "is not the store's own")
        else:
            made = self.store.made.get(chain.namespace, ({}, 0))[0]
            if any(entry.get(name) != made.get(name) for name in ("scope", "nonce", "owner")):
                raise Fault("genesis", "is not as the store chain says")

    def totals(self, chain: Chain, header: dict[str, Any], where: str) -> None:
        """Steps 10 to 12: what a commit is as a whole, and what its header says of the chain with it in."""
        self.attempt(where, judge_commit, chain, header)
        if header["counts"] != chain.counts():
            self.find("counts", where, f"says {header['counts']}, not {chain.counts()}")
        named = header.get("idempotency", {}).get("key")
        if named in chain.idempotency:
            self.find("idempotency", where, "an idempotency key occurs twice")
        chain.idempotency |= {named} - {None}
        leaves = [
            digest(
                "leaf",
                *(bytes.fromhex(one.digest), one.stamp, one.sequence.to_bytes(8, "big"), one.by.to_bytes(8, "big")),
                bytes([one.reason]),
            )
            for one in chain.entries
        ]
        if header["state"] != state(leaves).hex():
            self.find("state", where, "is not what the entries lead to")

    def end_keys(self, chain: Chain, at: int) -> None:
        """Note the head at which the keys ended whose successors came up to a commit of the store chain."""
        while not chain.is_store and chain.ended_keys < len(self.store.keys):
            entry, since = self.store.keys[chain.ended_keys]
            if since > at:
                return
            if chain.commits:
                self.store.ends[chain.ended_keys][chain.namespace] = chain.commits[-1].hex()
                chain.lasts |= {len(chain.commits) - 1} if "retires" in entry else set()
            chain.ended_keys += 1

    def trusted(self) -> dict[str, bytes]:
        """The key in force, if it is trusted or took over from one that is."""
        trusted = set(self.keys)
        for entry, _ in self.store.keys:
            trusted |= {entry["key"]} if entry.get("retires") in trusted else set()
        newest = self.store.key_at(MOST)
        return {newest["key"]: bytes.fromhex(newest["public"])} if newest["key"] in trusted else {}

    def signature(self, chain: Chain, rows: Rows, where: str) -> None:
        """Step 13: a signature that is kept."""
        kept = rows.signatures.pop(len(chain.commits) - 1, None)
        if kept is not None:
            chain.kept.add(len(chain.commits) - 1)
            keys = self.keys | {entry["key"]: bytes.fromhex(entry["public"]) for entry, _ in self.store.keys}
            if not signed(keys, chain.header["signer"], chain.commits[-1], kept):
                self.find("signature", where, "its signer did not make the one that is kept")

    def head(self, chain: Chain, rows: Rows) -> None:
        """Steps 14 and 15: the head, that nothing is left over, and that what was erased is gone and nothing else."""
        where, claimed = f"{chain.namespace} head", rows.head
        newest = (len(chain.commits) - 1, chain.commits[-1].hex()) if chain.commits else None
        if claimed is None or newest is None or (claimed["sequence"], claimed["id"]) != newest:
            self.find("head", where, "is not the newest commit")
        elif not any(signed(self.trusted(), key, chain.commits[-1], claimed["signature"]) for key in self.trusted()):
            self.find("signature", where, "no trusted key made it")
        for sequence in chain.kept ^ (chain.lasts | set(range(0, len(chain.commits), KEPT_EVERY))):
            self.find("signature", f"{chain.namespace} commit {sequence}", "must be kept and is not, or the reverse")
        for position, entry in enumerate(chain.entries):
            if chain.is_store and self.only is not None and position not in chain.present:
                self.left_out += entry.sealed
            elif (position in chain.present) != (
                says := entry.sealed and entry.reason != ERASED and position not in chain.struck
            ):
                what = "is missing" if says else "is there, and should not be"
                self.find("content", f"{chain.namespace} entry {position}", what)
        if rows.entries or rows.contents or rows.signatures:
            self.find("left", where, "entries, contents or signatures belong to no commit")


def verify(lines: Iterable[str], keys: Iterable[bytes]) -> list[tuple[str, str, str]]:
    """Every fault of a store: the name of the check, where, and what is wrong."""
    return Verification(lines, keys).faults


def main(arguments: list[str]) -> int:
    """Verify the ledger that is named first by the public keys that follow."""
    if len(arguments) < 2:  # noqa: PLR2004 - a ledger and a key
        print(__doc__, file=sys.stderr)
        return 2
    try:
        named = [bytes.fromhex(key) for key in arguments[1:]]
        file = Path(arguments[0]).open(encoding="utf-8")  # noqa: SIM115 - what the block raises is not about opening it
    except (OSError, ValueError) as error:
        print(f"a file, then public keys in hex: {error}", file=sys.stderr)
        return 2
    with file as lines:
        found = Verification(lines, named)
    for check, where, message in found.faults:
        print(f"{check}\t{where}\t{message}")
    if found.only is not None:
        print(f"of {', '.join(sorted(found.only))} alone: {found.left_out} names of the store chain are left out")
    print(f"{len(found.faults)} faults")
    return bool(found.faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
