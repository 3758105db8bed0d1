"""Receipts by themselves: what one says, and each way in which one does not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from ledgerstone.core import canonical, receipts, signing
from ledgerstone.core.signing import Keyring, SigningKey
from ledgerstone.core.values import Budget, Kind, Lane, Mode, Origin, Policy, Recall, Recalled, Scope, Trust
from ledgerstone.errors import CorruptionError
from tests.core.chains import ADA, PROJECT
from tests.core.test_recall import record

KEYS = Keyring(SigningKey(seed=bytes(range(32)), secret=bytes(32)))
SALT = bytes(32)


def drawn(policy: Policy | None = None) -> receipts.Drawn:
    """The receipt of a context in which nothing was found."""
    asked = policy or Policy()
    context = Recall(mode=asked.mode, query="cedar", items=(), heads={}, budget=Budget(), bytes=264, scorer="bm25")
    return receipts.draw(context, asked, at=1, principal=None, floor=Trust.MODEL_INFERRED, salt=SALT, keyring=KEYS)


def signed(**changes: canonical.Json) -> receipts.Drawn:
    """The same, with some of its fields otherwise, and signed like that."""
    data = canonical.encode({**orjson.loads(drawn().data), **changes})
    digest = receipts.digest_of(data)
    return receipts.Drawn(receipts.identity(digest), data, KEYS.sign(signing.RECEIPT, digest), SALT, drawn().query)


def test_what_a_caller_worded_is_in_the_query_and_not_in_the_receipt() -> None:
    """The query, a key, tags and synonyms: committed to, and nowhere in the signed bytes."""
    found = drawn(Policy(mode=Mode.HYBRID, key="tree", tags=("wood",), synonyms={"cedar": ["larch"]}))

    receipt, wrong = receipts.check(found, KEYS)

    assert wrong is None
    assert receipt is not None
    assert receipt.mode is Mode.HYBRID
    assert orjson.loads(found.query) == {
        "format": 1,
        "key": "tree",
        "query": "cedar",
        "synonyms": [["cedar", ["larch"]]],
        "tags": ["wood"],
    }
    assert not any(word in found.data for word in (b"cedar", b"tree", b"larch", b"wood"))


def test_a_receipt_says_the_whole_of_a_recall() -> None:
    """What was asked, within what budget, at which heads, what was chosen in which place, and what was left out."""
    policy = Policy(
        mode=Mode.LEXICAL,
        scopes=(Scope.PROJECT,),
        history=True,
        as_of=7,
        kinds=(Kind.NOTE,),
        origins=(Origin.USER,),
        since=3,
        until=5,
    )
    items = (
        Recalled(record=record(1), lane=Lane.TASKS, rank=0),
        Recalled(record=record(2), lane=Lane.LEXICAL, rank=1, score=12),
    )
    context = Recall(
        mode=policy.mode,
        query="cedar",
        items=items,
        heads={PROJECT: (4, b"h" * 32)},
        budget=Budget(bytes=900, items=9, candidates=90, tokens=99),
        bytes=264,
        tokens=60,
        omitted={"items": 2, "budget": 1},
        scorer="bm25",
    )

    made = receipts.draw(context, policy, at=1, principal=ADA, floor=Trust.UNKNOWN, salt=SALT, keyring=KEYS)

    assert receipts.check(made, KEYS) == (
        receipts.Receipt(
            at=1,
            signer=KEYS.signer or "",
            principal=ADA,
            query=canonical.commitment(SALT, made.query),
            mode=Mode.LEXICAL,
            flags=("history",),
            scopes=(Scope.PROJECT,),
            kinds=(Kind.NOTE,),
            origins=(Origin.USER,),
            floor=Trust.UNKNOWN,
            as_of=7,
            since=3,
            until=5,
            most_bytes=900,
            most_items=9,
            candidates=90,
            most_tokens=99,
            bytes=264,
            tokens=60,
            scorer="bm25",
            heads=(receipts.Seen(namespace=PROJECT, sequence=4, id=b"h" * 32),),
            chosen=(
                receipts.Chosen(record=record(1).digest, lane=Lane.TASKS, rank=0),
                receipts.Chosen(record=record(2).digest, lane=Lane.LEXICAL, rank=1, score=12),
            ),
            left_out=(receipts.LeftOut(reason="budget", count=1), receipts.LeftOut(reason="items", count=2)),
        ),
        None,
    )
    assert receipts.read(drawn().data).flags == ()
    assert made.id.startswith("rcp_")
    assert made.salt == SALT
    assert receipts.readable(drawn(Policy(at=6))) == replace(receipts.read(drawn().data), at_sequence=6)


def test_a_receipt_holds_under_its_own_id_and_signer() -> None:
    """Another id and another signature are said to be what they are."""
    found, other = drawn(), signed(bytes=1)

    assert receipts.check(found._replace(id=other.id), KEYS) == (None, "its id is not that of its bytes")
    assert receipts.check(found._replace(signature=other.signature), KEYS) == (
        None,
        f"no trusted key signed it (signer {KEYS.signer})",
    )
    assert receipts.check(found, KEYS)[1] is None


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"bytes": 8193}, "it took more than its budget"),
        ({"most_tokens": 64, "tokens": 65}, "it took more than its budget"),
        ({"most_tokens": 64}, "it took more than its budget"),
        ({"below_floor_bytes": 1}, "it took more than its budget"),
        ({"below_floor": [{"record": "0" * 64, "lane": "recent", "rank": 0}]}, "it took more than its budget"),
        ({"chosen": [{"record": "0" * 64, "lane": "recent", "rank": 1}]}, "its ranks are not places in a context"),
        ({"mode": "guessing"}, "receipt: mode: not a mode"),
    ],
    ids=[
        "too large",
        "too many tokens",
        "tokens not counted",
        "a section that was not allowed",
        "one of no bytes",
        "a rank left out",
        "no mode of ours",
    ],
)
def test_a_signed_receipt_that_cannot_be_is_refused(changes: dict[str, canonical.Json], wrong: str) -> None:
    """Whoever signed it; as it was drawn it holds."""
    assert receipts.check(signed(**changes), KEYS) == (None, wrong)
    assert receipts.check(signed(), KEYS)[1] is None
    assert receipts.check(signed(most_tokens=64, tokens=64), KEYS)[1] is None


MET = receipts.Met(Lane.LEXICAL, Trust.MODEL_INFERRED, Kind.NOTE, Origin.MODEL, 7)


@pytest.mark.parametrize(
    ("limits", "wrong", "of_task"),
    [
        ({"floor": Trust.USER_EXPLICIT}, "is trusted less than its floor", True),
        ({"kinds": (Kind.FACT,)}, "is of no kind that it asked for", False),
        ({"origins": (Origin.USER,)}, "is of no origin that it asked for", False),
        ({"since": 8}, "is older than it asked for", False),
        ({"until": 6}, "is newer than it asked for", False),
    ],
)
def test_what_was_chosen_keeps_every_limit(limits: dict[str, Any], wrong: str, of_task: bool) -> None:
    """Each limit that a receipt names is held to what it chose; of an open task the floor alone."""
    asked = receipts.read(drawn().data)
    kept: dict[str, Any] = {
        "floor": Trust.MODEL_INFERRED,
        "kinds": (Kind.NOTE,),
        "origins": (Origin.MODEL,),
        "since": 7,
        "until": 7,
    }

    assert receipts.outside(replace(asked, **limits), MET) == wrong
    assert receipts.outside(replace(asked, **limits), MET._replace(lane=Lane.TASKS)) == (wrong if of_task else None)
    assert receipts.outside(replace(asked, **kept), MET) is None


def test_what_stood_below_the_floor_lies_below_it() -> None:
    """And keeps every other limit, whatever lane found it: nothing there is an obligation."""
    asked = replace(receipts.read(drawn().data), floor=Trust.MODEL_INFERRED, kinds=(Kind.FACT,))
    low = MET._replace(trust=Trust.UNKNOWN, kind=Kind.FACT, below_floor=True)

    assert receipts.outside(asked, low._replace(trust=Trust.MODEL_INFERRED)) == "is trusted more than its floor"
    assert receipts.outside(asked, low._replace(kind=Kind.TASK, lane=Lane.TASKS)) == "is of no kind that it asked for"
    assert receipts.outside(asked, low) is None


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ({"scopes": (Scope.SESSION,)}, "is of a scope that it did not ask for"),
        ({"at_sequence": 4}, "is not the one that it asked for"),
        ({"as_of": 6}, "is newer than the time that it asked for"),
    ],
)
def test_what_was_seen_keeps_every_limit(limits: dict[str, Any], wrong: str) -> None:
    """A head is of a scope, at a place and of a time that were asked for."""
    asked = receipts.read(drawn().data)
    seen = receipts.Seen(namespace="ns_0000000000000001", sequence=3, id=bytes(32))
    kept: dict[str, Any] = {"scopes": (Scope.USER,), "at_sequence": 3, "as_of": 7}

    assert receipts.beyond(replace(asked, **limits), seen, scope=Scope.USER, at=7) == wrong
    assert receipts.beyond(replace(asked, **kept), seen, scope=Scope.USER, at=7) is None


@pytest.mark.parametrize(
    ("points", "wrong"),
    [((), None), ((4, 2), None), ((4, 5), "it names a head from after its key was retired")],
)
def test_a_key_signs_no_receipt_that_saw_its_end(points: tuple[int, ...], wrong: str | None) -> None:
    """One that saw the commit by which another key took over was not signed before it; what saw less may have been."""
    receipt, _ = receipts.check(signed(), KEYS)
    assert receipt is not None

    found = receipts.outlived(receipt, 5, points)

    assert found == (None if wrong is None else f"{wrong} (signer {KEYS.signer})")


def test_a_receipt_holds_without_its_query() -> None:
    """Once it is erased; a query that is another one is found out, and one whose salt is no salt."""
    found = drawn()

    assert receipts.check(found._replace(query=b"", salt=b""), KEYS)[1] is None
    assert receipts.check(found._replace(query=receipts.worded("oak", Policy())), KEYS)[1] == "its query was altered"
    assert receipts.check(found._replace(salt=found.salt[1:]), KEYS)[1] == "its query was altered"


def test_bytes_that_are_no_receipt_are_refused() -> None:
    """Neither another object of ours nor what is not canonical."""
    receipt = receipts.read(drawn().data)

    assert replace(receipt) == receipt
    for data in (b"{}", b"[]", b'{"format":1}', drawn().data + b" "):
        with pytest.raises(CorruptionError):
            receipts.read(data)
        assert receipts.readable(drawn()._replace(data=data)) is None
    assert receipts.readable(drawn()) == receipt


def test_the_digest_of_a_receipt_is_of_no_other_noun() -> None:
    """The same bytes as an entry have another."""
    data = drawn().data

    assert receipts.digest_of(data) == canonical.digest(b"receipt", data)
