"""Format 1 stays what it is: the golden files come out byte for byte, are read back, and are what the page says."""

from __future__ import annotations

import dataclasses
import hmac
import json
import re
from hashlib import sha256
from typing import Any

import pytest

from ledgerstone.core import canonical, chain, entries, merkle, rules, signing, state
from ledgerstone.core.entries import Content, Header, Sealed, Stamp
from ledgerstone.core.values import MAX_DRAFTS, MAX_SUMMARY_DEPTH
from ledgerstone.errors import CorruptionError
from tests.golden import ledger, make

PAGE = make.PAGE.read_text(encoding="utf-8")
NAMES = (*make.MADE, "ledger.jsonl", "standing.json", "keyed.json", "parted.jsonl")


def golden(name: str) -> Any:
    """What a golden file holds."""
    return json.loads((make.HERE / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Every golden file as it is made now."""
    return make.files()


@pytest.mark.parametrize("name", NAMES)
def test_golden_file_comes_out_byte_for_byte(name: str, made: dict[str, str]) -> None:
    """Today's code writes what the file has kept."""
    kept = (make.HERE / name).read_text(encoding="utf-8")

    assert made[name] == kept


def test_every_golden_file_is_made() -> None:
    """No file lies there that nothing makes."""
    assert {path.name for path in make.HERE.glob("*.json*")} == set(NAMES)


def test_canonical_spellings_are_read_and_others_refused() -> None:
    """Each accepted text is the one form of its value; each refused one raises."""
    vectors = golden("canonical.json")

    for text in vectors["accepted"]:
        assert canonical.encode(canonical.decode(text.encode())) == text.encode()
    for refused in vectors["refused"]:
        with pytest.raises(CorruptionError):
            canonical.decode(bytes.fromhex(refused["hex"]))


def test_every_kind_of_entry_is_there_and_read_back() -> None:
    """Each noun stands with its fewest and with all fields, and reading loses nothing."""
    shown = golden("entries.json")

    assert {(one["noun"], one["form"]) for one in shown} == {
        (noun, form) for noun in entries._ENTRIES for form in ("least", "full")
    }
    for one in shown:
        entry = entries.decode_entry(one["bytes"].encode())
        assert entries.encode_entry(entry).decode() == one["bytes"]
        assert entries.digest_of(one["bytes"].encode()).hex() == one["digest"]


def test_contents_are_read_back_under_their_commitments() -> None:
    """A content's bytes and salt give the commitment and sizes that an entry says."""
    for one in golden("contents.json"):
        content = entries.decode_content(one["bytes"].encode())
        sealed, data = entries.seal_content(content, bytes.fromhex(one["salt"]))

        assert data.decode() == one["bytes"]
        assert (sealed.commitment.hex(), sealed.bytes, sealed.text_bytes) == (
            one["commitment"],
            one["size"],
            one["text_size"],
        )


def test_headers_are_read_back_under_their_signatures() -> None:
    """A header's bytes give id and stamp digest, and the signature is by the key whose id it names."""
    vectors = golden("headers.json")
    keyring = signing.Keyring(pins=(bytes.fromhex(vectors["public"]),))

    for one in vectors["headers"]:
        commit, header = chain.read(one["bytes"].encode())
        assert entries.encode_header(header).decode() == one["bytes"]
        assert commit.hex() == one["id"]
        assert entries.read_stamp(one["bytes"].encode())[1].hex() == one["stamp_digest"]
        assert keyring.verifies(header.signer, signing.COMMIT, commit, bytes.fromhex(one["signature"]))


def test_history_proofs_hold() -> None:
    """Every proof in the file is accepted under the file's roots."""
    vectors = golden("merkle.json")
    leaves = [bytes.fromhex(leaf) for leaf in vectors["leaves"]]
    roots = [bytes.fromhex(tree["root"]) for tree in vectors["trees"]]
    size = len(leaves)

    assert leaves == [merkle.leaf_hash(data.encode()) for data in vectors["data"]]
    for one in vectors["inclusion"]:
        proof = [bytes.fromhex(node) for node in one["proof"]]
        assert merkle.verify_inclusion(leaves[one["index"]], one["index"], size, proof, roots[size])
    for one in vectors["consistency"]:
        proof = [bytes.fromhex(node) for node in one["proof"]]
        assert merkle.verify_consistency(one["first"], size, roots[one["first"]], roots[size], proof)


def test_state_grows_to_the_same_roots() -> None:
    """The roots of whole trees are those that a tree reaches leaf by leaf."""
    nodes: dict[tuple[int, int], bytes] = {}
    grown = {}

    def read(level: int, index: int) -> bytes | None:
        return nodes.get((level, index))

    for count in range(257):
        root, written = state.update(read, count, {count: make.state_leaf(count)}, count + 1)
        nodes |= written
        grown[count + 1] = root.hex()

    for tree in golden("state.json")["trees"]:
        assert grown.get(tree["count"], tree["root"]) == tree["root"]


def test_golden_ledger_is_admitted_by_its_own_rules() -> None:
    """Replay finds no fault, and reaches the heads that the ledger claims."""
    rows = ledger.lines()

    replays = ledger.replayed(rows)

    assert [replay.findings for replay in replays] == [[], []]
    for replay in replays:
        head = ledger.the(rows, "head", namespace=replay.namespace)
        assert replay.head is not None
        assert (replay.head.sequence, replay.head.id.hex()) == (head["sequence"], head["id"])


def test_golden_ledger_leads_to_the_standing_on_file() -> None:
    """Replay ends the entries that the file says ended, and its leaves lead to the signed state."""
    kept = golden("standing.json")

    for replay in ledger.replayed(ledger.lines()):
        standing = kept[replay.namespace]
        leaves = list(replay.leaves())
        assert [leaf.hex() for leaf in leaves] == [leaf["leaf"] for leaf in standing["leaves"]]
        assert state.build(leaves).hex() == standing["state"]


def test_golden_ledger_shows_every_ending_there_is() -> None:
    """Each ending that a rule leads to occurs."""
    standing = golden("standing.json")

    shown = {leaf["reason"] for chain_ in standing.values() for leaf in chain_["leaves"]}

    assert shown == set(range(9))


def test_keyed_values_are_made_as_the_page_says() -> None:
    """Plain HMAC over the domain and the bytes on file gives what stands in the ledger."""
    vectors = golden("keyed.json")

    def keyed(secret: str, noun: str, data: str) -> str:
        framed = f"ledgerstone/{noun}/1\0".encode() + data.encode()
        return hmac.new(bytes.fromhex(secret), framed, sha256).hexdigest()

    secret = vectors["namespace_secret"]
    named, tombstone = vectors["idempotency"], vectors["tombstone"]
    assert keyed(vectors["secret"], "namespace-secret", vectors["namespace"]) == secret
    assert keyed(secret, "idempotency-key", named["key"]) == named["key_digest"]
    assert keyed(secret, "idempotency-content", named["hashed"]) == named["content_digest"]
    assert keyed(secret, "tombstone", tombstone["hashed"]) == tombstone["digest"]


def table(heading: str) -> dict[str, list[str]]:
    """The first table after a heading or a line of the page: its rows by their first cell."""
    rest = PAGE[PAGE.index(f"\n{heading}\n") :]
    rows = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert rows is not None
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[0].splitlines()[2:]]
    return {first.strip("| `"): rest for first, *rest in cells}


def declared(cls: type[Any]) -> dict[str, bool]:
    """The fields of a class, and whether each is required."""
    return {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(cls)}


@pytest.mark.parametrize("noun", list(entries._ENTRIES))
def test_page_lists_the_fields_of_every_entry(noun: str) -> None:
    """The page has exactly the fields that the code has, and calls the same ones required."""
    listed = {name: cells[1] == "required" for name, cells in table(f"#### {noun}").items()}

    assert listed == declared(entries._ENTRIES[noun])


@pytest.mark.parametrize(
    ("heading", "cls"),
    [
        ("## 5. Content", Content),
        ("An entry says of its content, as the object `content`:", Sealed),
        ("## 7. Header", Header),
        ("**stamp**:", Stamp),
    ],
)
def test_page_lists_the_fields_of_content_header_and_stamp(heading: str, cls: type[Any]) -> None:
    """As for entries."""
    listed = {name: cells[1] == "required" for name, cells in table(heading).items()}

    assert listed == declared(cls)


def test_page_gives_the_numbers_of_the_rules() -> None:
    """The numbers that the rules judge by are those on the page."""
    numbers = {name: int(cells[0].strip("| ")) for name, cells in table("Numbers of rules version 1:").items()}

    assert numbers == {
        "obligations at most": rules.MAX_OPEN_TASKS,
        "bytes of obligations at most": rules.MAX_OPEN_TASK_BYTES,
        "overhead of an obligation in bytes": rules.TASK_OVERHEAD_BYTES,
        "levels of summaries at most": MAX_SUMMARY_DEPTH,
        "entries a commit at most": MAX_DRAFTS,
    }


def test_worked_example_is_out_of_the_golden_ledger() -> None:
    """Every byte that the page shows is what the ledger has or what follows from it."""
    assert make.with_example(PAGE, ledger.TEXT) == PAGE
