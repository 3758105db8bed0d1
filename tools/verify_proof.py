#!/usr/bin/env python3
"""Checks a proof of one record by public keys alone: a second verifier, written from docs/proofs.md.

``verify_proof.py PROOF PUBLIC_KEY_HEX...`` prints what the proof proves, or what is wrong with it and ends with 1. It
needs nothing of Ledgerstone, only Python and ``cryptography``. Numbers are those of the page's section 5.
"""
# ruff: noqa: T201 - a script, and what it finds it prints

from __future__ import annotations

import json
import re
import sys
from base64 import b32encode
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 2**53 - 1
MOST_BYTES = 2**25
ENDINGS = ("current", "superseded", "closed", "retracted", "erased", "stale", "contested", "held", "revoked")
ERASED = ENDINGS.index("erased")
SHAPE = {
    "format": True,
    "proof": True,
    "entries": True,
    "position": True,
    "path": True,
    "head": True,
    "commit": False,
    "ended_by": False,
    "ending": False,
    "content": False,
    "reason": False,
}


class Refused(Exception):  # noqa: N818 - it is what a verifier says, and not an error of its own
    """What is wrong with a proof."""


def need(holds: object, otherwise: str) -> None:
    """Go on only if it holds."""
    if not holds:
        raise Refused(otherwise)


def digest(noun: str, *parts: bytes) -> bytes:
    """``H(noun, parts)``."""
    return sha256(b"ledgerstone/" + noun.encode() + b"/1\0" + b"".join(parts)).digest()


def parse(text: str) -> Any:
    """The value of canonical JSON."""

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(members)) == len(members) and all(name.isascii() for name, _ in members), "no canonical JSON")
        return dict(members)

    def inexact(number: str) -> None:
        raise Refused(f"no canonical JSON: {number}")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_float=inexact, parse_constant=inexact)
        again = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"no canonical JSON: {error}") from None
    # An even run of backslashes before it is text that spells an escape, not an escape.
    need(again == text and not re.search(r"(?<!\\)(?:\\\\)*\\u0000", text), "no canonical JSON")
    return value


def inside(text: Any) -> tuple[dict[str, Any], bytes]:
    """The object that stands in the proof as a string, and its bytes."""
    need(type(text) is str, "bytes that are no string")
    value = parse(text)
    need(type(value) is dict and type(value.get("format")) is int and value["format"] == 1, "an object not of format 1")
    return value, text.encode()


def fields(value: Any, shape: dict[str, bool]) -> dict[str, Any]:
    """An object with all the required fields, and none that is not named."""
    need(type(value) is dict and value.keys() <= shape.keys(), "an unknown field")
    need({name for name, required in shape.items() if required} <= value.keys(), "a field is missing")
    found: dict[str, Any] = value
    return found


def octets(value: Any, size: int) -> bytes:
    """So many bytes in lower hex."""
    need(type(value) is str and re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value), f"not {size} bytes in lower hex")
    return bytes.fromhex(value)


def integer(value: Any, least: int = 0, most: int = MOST) -> int:
    """An integer within bounds."""
    need(type(value) is int and least <= value <= most, f"not an integer from {least} to {most}")
    found: int = value
    return found


def array(value: Any, most: int) -> list[Any]:
    """1 to so many different values."""
    need(type(value) is list and 1 <= len(value) <= most and all(type(each) is str for each in value), "not an array")
    need(len(set(value)) == len(value), "a member stands twice")
    found: list[Any] = value
    return found


def key_id(public: bytes) -> str:
    """The id of a public key."""
    letters = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")
    return "key_" + b32encode(digest("key", public)[:10]).decode().translate(letters)


def verify(data: bytes, public_keys: Iterable[bytes]) -> dict[str, Any]:
    """What a proof proves under these keys; raises Refused."""
    need(len(data) <= MOST_BYTES and data.endswith(b"\n"), "not one line")
    try:
        proof = fields(parse(data[:-1].decode()), SHAPE)
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None
    need(
        type(proof["format"]) is int and proof["format"] == 1 and proof["proof"] == "record", "not a proof of a record"
    )

    head, head_id, signer = _head(proof, {key_id(public): public for public in public_keys})
    header, commit_id = _commit(proof, head, head_id)
    _standing(proof, header, head)
    version, record, contents = _contents(proof)
    stamp = header["stamp"]
    return {
        "address": f"{version['memory']}@{version['version']}",
        "namespace": head["namespace"],
        "standing": ENDINGS[proof.get("ending", 0)],
        **({"ended_by": proof["ended_by"]} if "ended_by" in proof else {}),
        "kind": record["kind"],
        "status": {"close": "closed", "retract": "retracted"}.get(version["entry"], record["status"]),
        "text": contents["content"].get("text"),
        **({"reason": contents["reason"].get("reason")} if "reason" in proof else {}),
        **{name: stamp[name] for name in ("at", "principal", "session", "host", "grant") if name in stamp},
        "origin": version["origin"],
        "trust": version["trust"],
        "sequence": header["sequence"],
        "commit": commit_id.hex(),
        "head_sequence": head["sequence"],
        "head": head_id.hex(),
        "head_at": head["stamp"]["at"],
        "signer": signer,
    }


def _header(text: Any) -> tuple[dict[str, Any], bytes]:
    """A header, and the id of its commit."""
    header, data = inside(text)
    need(header.get("rules") == 1, "made under other rules")
    return header, sha256(b"\0" + data).digest()


def _head(proof: dict[str, Any], keys: dict[str, bytes]) -> tuple[dict[str, Any], bytes, str]:
    """2. The head, and the trusted key that signed it."""
    given = fields(proof["head"], {"header": True, "signature": True})
    head, commit = _header(given["header"])
    signature = octets(given["signature"], 64)
    for name, public in keys.items():
        with suppress(ValueError, InvalidSignature):
            Ed25519PublicKey.from_public_bytes(public).verify(signature, b"ledgerstone/commit/1\0" + commit)
            return head, commit, name
    raise Refused("no trusted key signed its head")


def _commit(proof: dict[str, Any], head: dict[str, Any], head_id: bytes) -> tuple[dict[str, Any], bytes]:
    """3. The version's commit: the head, or one of those before it (RFC 9162, 2.1.3.2)."""
    if "commit" not in proof:
        return head, head_id
    given = fields(proof["commit"], {"header": True, "inclusion": False})
    header, commit = _header(given["header"])
    siblings = [octets(each, 32) for each in array(given["inclusion"], 64)] if "inclusion" in given else []
    index, last, node = integer(header.get("sequence")), head["sequence"] - 1, commit
    need(index <= last, "its commit is not before the head")
    for sibling in siblings:
        need(last, "its commit is not in the history of the head")
        if index & 1 or index == last:
            node = sha256(b"\1" + sibling + node).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = sha256(b"\1" + node + sibling).digest()
        index, last = index >> 1, last >> 1
    need(last == 0 and node.hex() == head["history"], "its commit is not in the history of the head")
    return header, commit


def _standing(proof: dict[str, Any], header: dict[str, Any], head: dict[str, Any]) -> None:
    """4. and 5. The commit lists the entry, and its leaf stands under the head's state."""
    position, count = integer(proof["position"]), head["counts"]["entries"]
    ended_by = integer(proof["ended_by"], 1) if "ended_by" in proof else 0
    ending = integer(proof["ending"], 1, len(ENDINGS) - 1) if "ending" in proof else 0
    entry = digest("entry", inside(array(proof["entries"], 3)[0])[1])
    place = position - (header["counts"]["entries"] - len(header["entries"]))
    need(0 <= place < len(header["entries"]), "its commit does not list that position")
    need(header["entries"][place] == entry.hex(), "its commit does not list the entry")
    stamp = json.dumps(header["stamp"], ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    ending_bytes = b"".join((header["sequence"].to_bytes(8), ended_by.to_bytes(8), ending.to_bytes(1)))
    node = digest("leaf", entry, digest("stamp", stamp), ending_bytes)
    path = array(proof["path"], 16)
    need(position < count and len(path) == next(h for h in range(1, 20) if 16**h >= count), "a path of another height")
    for level, given in enumerate(path):
        above, last = position // 16 ** (level + 1), (count - 1) // 16**level
        children = octets(given, 32 * (16 if above < last // 16 else last % 16 + 1))
        slot = position // 16**level % 16
        need(children[32 * slot : 32 * slot + 32] == node, "it does not stand so under the head")
        node = digest("node", children)
    need(node.hex() == head["state"], "it does not stand so under the head")


def _contents(proof: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]:
    """6. and 7. The version's entry, the record that has its text, and the contents."""
    entries = [inside(each) for each in array(proof["entries"], 3)]
    for (entry, _), (_, below) in pairwise(entries):
        names = {"close": "closes", "retract": "retracts"}.get(entry.get("entry", ""))
        need(names and entry[names] == digest("entry", below).hex(), "an entry that is not named")
    version, record = entries[0][0], entries[-1][0]
    need(record.get("entry") == "record", "its entries do not lead to a record")
    found: dict[str, dict[str, Any]] = {"content": {}, "reason": {}}
    for name, entry in (("content", record), ("reason", version)):
        if name not in proof:
            continue
        need(name == "content" or version is not record, "a reason of a record")
        need(proof.get("ending") != ERASED, "a content that was erased")
        given = fields(proof[name], {"salt": True, "content": True})
        found[name], data = inside(given["content"])
        commitment = digest("content", octets(given["salt"], 32), data).hex()
        need(entry.get("content", {}).get("commitment") == commitment, "a content that its entry does not commit to")
    return version, record, found


def main(arguments: list[str]) -> int:
    """Check the proof that is named."""
    if len(arguments) < len(("proof", "key")):
        print(__doc__, file=sys.stderr)
        return 2
    path, *keys = arguments
    try:
        data, named = Path(path).read_bytes(), [bytes.fromhex(key) for key in keys]
    except (OSError, ValueError) as error:
        print(f"a file, then public keys in hex: {error}", file=sys.stderr)
        return 2
    try:
        proven = verify(data, named)
    except Refused as refused:
        print(f"{path}: {refused}")
        return 1
    print(json.dumps(proven, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
