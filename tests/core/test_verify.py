"""Replay judges a chain by the rules that admitted it: every fault is found, and what is right has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledgerstone.core import canonical, chain, entries, merkle, rules, state
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    ErasedEntry,
    ErasureEntry,
    ExportEntry,
    GenesisEntry,
    Idempotency,
    KeyEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RevokeEntry,
    StorePoint,
)
from ledgerstone.core.facts import Slot
from ledgerstone.core.projection import Folded, project
from ledgerstone.core.signing import COMMIT, RECEIPT, Keyring, SigningKey
from ledgerstone.core.values import (
    LIBRARY_LIMITS,
    Act,
    AliasOf,
    Draft,
    Ending,
    Finding,
    Kind,
    Limits,
    Origin,
    Report,
    Scope,
    Trust,
)
from ledgerstone.core.verify import Authorities, Base, Granted, Replay, check_head, check_signature
from ledgerstone.errors import RuleError
from tests.core.chains import (
    ADA,
    BOB,
    FORGET,
    KEYS,
    NONCE,
    NOON,
    PROJECT,
    STORE,
    Pen,
    continued,
    faults,
    forged,
    grant,
    named,
    opaque,
    project_chain,
    replay,
    store_chain,
    writing,
)


def lived() -> Pen:
    """A chain in which everything that can happen has happened."""
    pen = project_chain()
    note = pen.remember(Draft(text="The cedar is old.", key="cedar"))
    pen.remember(Draft(text="Cedars.", kind=Kind.SUMMARY, sources=(canonical.address(note.memory, 1),)))
    pen.remember(Draft(text="The cedar is young.", key="cedar"), Origin.MODEL)
    pen.remember(Draft(text="The cedar is ancient.", key="cedar"))
    task = pen.remember(Draft(text="Water it.", kind=Kind.TASK))
    pen.end(pen.end(task, close=True))
    pen.end(pen.remember("It is a fir."), reject=b"r" * 32)
    gone = pen.remember(Draft(text="Ada sleeps under the cedar.", key="ada"))
    pen.remember(Draft(text="Ada.", kind=Kind.SUMMARY, sources=(canonical.address(gone.memory, 1),)))
    pen.erase(gone, pen.end(pen.remember(Draft(text="Wake Ada.", kind=Kind.TASK)), close=True))
    pen.remember(Draft(text="Ada is awake.", key="ada"))
    return pen


def test_a_chain_that_was_written_rightly_has_no_faults() -> None:
    """Versions, contested ones, summaries that went stale, tasks, retractions, erasures: all are admitted again."""
    pen = lived()

    replayed = replay(pen)

    assert replayed.findings == []
    assert replayed.head == pen.head
    assert (replayed.counts, replayed.size) == (pen.counts, pen.counts.entries)


def test_replay_knows_how_everything_ended() -> None:
    """Each position with the sequence that ended it and why."""
    pen = lived()

    ended = replay(pen).ended

    reasons = [Ending(reason) for _, (_, reason) in sorted(ended.items())]
    assert reasons == [
        Ending.SUPERSEDED,
        Ending.STALE,
        Ending.CONTESTED,
        Ending.CLOSED,
        Ending.RETRACTED,
        Ending.RETRACTED,
        Ending.RETRACTED,
        Ending.RETRACTED,
        Ending.ERASED,
        Ending.STALE,
        Ending.ERASED,
        Ending.ERASED,
    ]


def test_replay_hands_on_what_it_read() -> None:
    """Of each commit its entries in their order, with what they do and what they hold."""
    pen = project_chain()
    note = pen.remember("Cedar.")
    authorities = Authorities()
    replay(pen.store or pen, authorities)
    replayed = Replay(pen.namespace, authorities, store=False)

    read = [replayed.commit(*chain.read(written.header), written.bodies, written.contents) for written in pen.commits]

    assert [[entries.digest_of(entries.encode_entry(one.entry)) for one in commit] for commit in read] == [
        list(map(entries.digest_of, written.bodies)) for written in pen.commits
    ]
    assert read[-1][0].change.added == note
    assert read[-1][0].content == Content(text="Cedar.")


def test_replay_gives_the_leaves_of_the_state_tree() -> None:
    """One leaf a position, over digest, stamp, sequence and ending."""
    pen = lived()
    replayed = replay(pen)

    leaves = list(replayed.leaves())

    assert len(leaves) == replayed.size
    assert len(set(leaves)) == len(leaves)
    first = replayed.folded.known[1]
    stamp: canonical.Json = {"at": NOON, "grant": opaque("grt", 2), "origin": "user", "principal": ADA}
    stamp_digest = canonical.digest(b"stamp", canonical.encode(stamp))
    assert leaves[1] == state.leaf(first.digest, stamp_digest, sequence=1, ended_by=4, reason=Ending.SUPERSEDED)
    genesis, begun = entries.digest_of(pen.commits[0].bodies[0]), chain.read(pen.commits[0].header)[1].stamp
    assert leaves[0] == state.leaf(genesis, entries.stamp_digest(begun), sequence=0, ended_by=0, reason=0)


def test_the_roots_of_whole_tiles_are_kept() -> None:
    """The root over the first 256 commits, as the RFC computes it at once; none before."""
    pen = Pen(STORE)
    first = KeyEntry(key=KEYS.signer or "", public=KEYS.public[KEYS.signer or ""])
    pen.write(rules.plain(GenesisEntry(scope=Scope.STORE, nonce=NONCE, owner=ADA)), rules.plain(first))
    ids = [merkle.leaf_hash(pen.commits[0].header)]
    for number in range(255):
        assert replay_tiles(pen, number) == {}
        pen.write(rules.plain(grant(number + 3, Act.READ)))
        ids.append(merkle.leaf_hash(pen.commits[-1].header))

    replayed = replay(pen)

    assert replayed.findings == []
    assert replayed.tiles == {0: merkle.tree_root(ids)}


def replay_tiles(pen: Pen, number: int) -> dict[int, bytes]:
    """The tiles so far, looked at now and then."""
    return replay(pen).tiles if number in {0, 100} else {}


@pytest.mark.parametrize(
    ("forgery", "fault"),
    [
        ({"parent": b"p" * 32}, "chain"),
        ({"parent": None}, "chain"),
        ({"history": b"h" * 32}, "chain"),
        ({"namespace": opaque("ns", 9)}, "chain"),
        ({"rules": 2}, "chain"),
        ({"entries": (b"e" * 32,)}, "entries"),
        ({"store": None}, "store"),
        ({"store": StorePoint(sequence=0, id=b"s" * 32)}, "store"),
        ({"store": StorePoint(sequence=7, id=b"s" * 32)}, "store"),
    ],
)
def test_a_forged_header_is_found(forgery: dict[str, Any], fault: str) -> None:
    """Its place, its links, its rules, its entries and its point of the store chain are judged."""
    pen = project_chain()
    assert faults(pen) == []

    pen.remember("Cedar.", **forgery)

    assert faults(pen) == [(fault, 1)]


def test_wrong_counts_are_found_once() -> None:
    """The header's word is taken from there on, so that one lie is one finding."""
    pen = project_chain()
    pen.remember("Cedar.", counts=replace(pen.counts, entries=2, records=7, live=1, current=1, indexed=1))
    pen.counts = pen.head.counts if pen.head is not None else pen.counts
    pen.remember("Oak.")

    assert faults(pen) == [("counts", 1)]


def test_time_that_runs_backwards_is_found() -> None:
    """A stamp before its parent's."""
    pen = project_chain()

    pen.write(rules.enter(Draft(text="Cedar."), writing(), pen.folded), stamp=pen.stamp(at=NOON - 1))

    assert faults(pen) == [("chain", 1)]


def test_bytes_that_are_no_header_are_found() -> None:
    """And what came before is judged all the same."""
    pen = lived()
    pen.commits[1] = pen.commits[1]._replace(contents={})
    pen.commits[-1] = pen.commits[-1]._replace(header=b"{}")

    found = faults(pen)

    assert found == [("header", len(pen.commits) - 1), ("missing", 1)]
    assert "format" in replay(pen).findings[0].message


def test_bytes_that_are_no_entry_are_found() -> None:
    """They take their place, so that what follows keeps its own."""
    pen = project_chain()
    admitted = rules.enter(Draft(text="Cedar."), writing(), pen.folded)
    pen.write(admitted)
    pen.commits[1] = pen.commits[1]._replace(bodies=[admitted.data.replace(b"note", b"ode")], contents={})

    assert faults(pen) == [("entries", 1), ("entry", 1), ("counts", 1)]


def test_an_entry_that_the_rules_refuse_is_found() -> None:
    """By the rule's own name, with the place."""
    pen = project_chain()
    admitted = rules.enter(Draft(text="Cedar."), writing(), pen.folded)
    pen.write(forged(admitted, version=7))

    [finding] = replay(pen).findings

    assert (finding.code, finding.sequence) == ("rule", 1)
    assert finding.message == "entry 1 breaks the rule version: 7 does not follow 0"


def test_what_no_single_entry_shows_is_found() -> None:
    """Each entry of a commit may pass, and the commit break a rule all the same."""
    pen = project_chain()
    first, second, other = (
        rules.enter(Draft(text=text), writing(seed=seed), pen.folded) for seed, text in enumerate("abc")
    )
    pen.write(first, other)
    assert faults(pen) == []
    narrow = Limits(drafts=1)

    pen.write(second, rules.enter(Draft(text="d"), writing(seed=9), pen.folded), limits=narrow)

    [finding] = replay(pen).findings
    assert (finding.code, finding.sequence) == ("rule", 2)
    assert finding.message == "it breaks the rule drafts: 1 to 1 a commit, not 2"


def test_an_idempotency_key_is_used_once() -> None:
    """The second use of it in one chain is found."""
    pen = project_chain()
    once = Idempotency(key=b"k" * 32, content=b"c" * 32)
    pen.remember("Cedar.", idempotency=once)
    assert replay(pen).idempotencies == {once.key: 1}

    pen.remember("Cedar.", idempotency=once)

    assert faults(pen) == [("header", 2)]


SALT, OTHER = b"w" * 32, b"v" * 32


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda _salt, _data: None, "missing"),
        (lambda _salt, data: (OTHER, data), "content"),
        (lambda salt, data: (salt[:-1], data), "content"),
        (lambda salt, data: (salt, data.replace(b"Cedar", b"Cadar")), "content"),
        (lambda salt, data: (salt, data + b" "), "content"),
    ],
    ids=["gone", "another salt", "a short salt", "another text", "a longer text"],
)
def test_a_spoilt_content_is_found(spoil: Callable[[bytes, bytes], tuple[bytes, bytes] | None], fault: str) -> None:
    """A content that is gone, or not the one that was committed to."""
    pen = project_chain()
    pen.remember("Cedar.")
    written = pen.commits[1]
    spoilt = spoil(*written.contents[1])
    pen.commits[1] = written._replace(contents={} if spoilt is None else {1: spoilt})

    found = faults(pen)

    assert found[0] == (fault, 1)
    assert set(found[1:]) <= {("counts", 1)}


def test_a_content_that_nothing_commits_to_is_found() -> None:
    """An entry without content cannot be given one."""
    pen = project_chain()
    pen.commits[0].contents[0] = SALT, b"{}"

    assert faults(pen) == [("content", 0)]


@pytest.mark.parametrize("size", ["bytes", "text_bytes"])
def test_a_wrong_size_is_found(size: str) -> None:
    """What an entry says of its content's size is held to the content."""
    pen = project_chain()
    admitted = rules.enter(Draft(text="Cedar."), writing(), pen.folded)
    sealed = replace(admitted.entry.content, **{size: 5})  # type: ignore[attr-defined]

    pen.write(forged(admitted, content=sealed))

    assert faults(pen) == [("content", 1)]


def test_a_content_that_is_none_is_found() -> None:
    """Committed to or not: it must be readable."""
    pen = project_chain()
    admitted = rules.enter(Draft(text="Cedar."), writing(), pen.folded)
    salt, data = SALT, b'{"format":2}'
    sealed = replace(admitted.entry.content, commitment=canonical.commitment(salt, data))  # type: ignore[attr-defined]

    pen.write(forged(admitted, content=sealed)._replace(salt=salt, content_data=data))

    assert faults(pen)[0] == ("content", 1)


def test_a_namespace_begins_once() -> None:
    """A second genesis is found, and a first entry that is none."""
    pen = project_chain()
    pen.write(rules.plain(GenesisEntry(scope=Scope.PROJECT, nonce=NONCE, owner=ADA)))
    headless = Pen(PROJECT, store_chain())
    headless.write(rules.enter(Draft(text="Cedar."), writing(), headless.folded))

    assert faults(pen) == [("rule", 1)]
    assert faults(headless) == [("rule", 0)]


@pytest.mark.parametrize("genesis", [{"nonce": b"m" * 16}, {"owner": BOB}, {"owner": None}, {"scope": Scope.USER}])
def test_a_namespace_begins_as_the_store_says(genesis: dict[str, Any]) -> None:
    """Scope, nonce and owner are those under which the store chain made it."""
    assert faults(project_chain()) == []

    assert faults(project_chain(**genesis)) == [("genesis", 0)]


def test_a_namespace_that_the_store_did_not_make_is_found() -> None:
    """Whatever it says of itself."""
    store = Pen(STORE)
    store.write(
        rules.plain(GenesisEntry(scope=Scope.STORE, nonce=NONCE, owner=ADA)),
        rules.plain(KeyEntry(key=KEYS.signer or "", public=KEYS.public[KEYS.signer or ""])),
        rules.plain(grant(1, Act.CREATE)),
    )

    assert faults(project_chain(store)) == [("grant", 0), ("genesis", 0)]


def test_the_first_chain_is_the_stores() -> None:
    """It begins as one of scope ``store``."""
    pen = Pen(STORE)

    pen.write(rules.plain(GenesisEntry(scope=Scope.GLOBAL, nonce=NONCE)))

    assert faults(pen) == [("genesis", 0), ("rule", 0)]


def test_a_commit_names_no_older_point_of_the_store_than_its_parent() -> None:
    """Revocations have an order, and nobody steps behind one."""
    store = store_chain()
    first = StorePoint(sequence=0, id=store.head.id if store.head is not None else b"")
    pen = project_chain(store)
    store.write(rules.plain(grant(7, Act.READ)))
    pen.remember("Cedar.")
    assert faults(pen) == []

    pen.remember("Oak.", store=first)

    assert faults(pen) == [("store", 2)]


GRANTED = [
    pytest.param({"scope": None, "namespace": PROJECT}, True, id="on the namespace"),
    pytest.param({"scope": None, "namespace": opaque("ns", 9)}, False, id="on another namespace"),
    pytest.param({"scope": Scope.PROJECT}, True, id="on the scope"),
    pytest.param({"scope": Scope.USER}, False, id="on another scope"),
    pytest.param({"act": Act.READ}, False, id="another act"),
    pytest.param({"principal": BOB}, False, id="somebody else's"),
    pytest.param({"expires": NOON + 1}, True, id="not yet expired"),
    pytest.param({"expires": NOON}, False, id="expired"),
]


@pytest.mark.parametrize(("fields", "allows"), GRANTED)
def test_the_grant_of_a_commit_is_judged(fields: dict[str, Any], *, allows: bool) -> None:
    """It reaches the namespace, is for this act and this principal, and has not expired."""
    pen = project_chain(store_chain(grant(9, **{"act": Act.WRITE} | fields)))

    pen.write(rules.enter(Draft(text="Cedar."), writing(), pen.folded), stamp=pen.stamp(grant=opaque("grt", 9)))

    assert faults(pen) == ([] if allows else [("grant", 1)])


def test_a_grant_that_ran_out_between_two_commits_is_found() -> None:
    """That it allowed the one before, by the same hand and at the same point of the store, says nothing."""
    pen = project_chain(store_chain(grant(9, Act.WRITE, expires=NOON + 2)))

    for after in (0, 1, 2, 3):
        entry = rules.enter(Draft(text="Cedar."), writing(seed=after), pen.folded)
        pen.write(entry, stamp=pen.stamp(grant=opaque("grt", 9), at=NOON + after))

    assert faults(pen) == [("grant", 3), ("grant", 4)]


@pytest.mark.parametrize(
    ("stamp", "header", "code"),
    [
        ({"principal": BOB}, {}, "grant"),
        ({"grant": opaque("grt", 8)}, {}, "grant"),
        ({"grant": None}, {}, "grant"),
        ({}, {"signer": opaque("key", 8)}, "rule"),
        ({}, {"store": StorePoint(sequence=0, id=bytes(32))}, "store"),
    ],
)
def test_who_made_a_commit_is_judged_after_a_right_one(
    stamp: dict[str, Any], header: dict[str, Any], code: str
) -> None:
    """Each time that it is wrong, and not when it is right again."""
    pen = project_chain()
    pen.remember("Cedar.")

    for seed in (1, 2):
        pen.write(rules.enter(Draft(text="Elm."), writing(seed=seed), pen.folded), stamp=pen.stamp(**stamp), **header)
    pen.remember("Oak.")

    assert faults(pen) == [(code, 2), (code, 3)]


@pytest.mark.parametrize(("act", "allows"), [(Act.FORGET, True), (Act.WRITE, False)])
def test_an_erasure_takes_a_grant_of_its_own(act: Act, *, allows: bool) -> None:
    """To forget; a grant to write is not enough, and that to forget is not enough to write."""
    pen = project_chain(store_chain(grant(9, act)))
    note = pen.remember("Cedar.")

    pen.write(rules.plain(ErasureEntry(erases=(note.digest,))), stamp=pen.stamp(grant=opaque("grt", 9)))
    pen.commits[1].contents.clear()
    assert faults(pen) == ([] if allows else [("grant", 2)])

    pen.write(rules.enter(Draft(text="Elm."), writing(), pen.folded), stamp=pen.stamp(grant=opaque("grt", 9)))
    assert faults(pen) == ([("grant", 3)] if allows else [("grant", 2)])


@pytest.mark.parametrize(("act", "allows"), [(Act.PROMOTE, True), (Act.WRITE, False), (Act.READ, False)])
def test_a_promotion_takes_a_grant_of_its_own(act: Act, *, allows: bool) -> None:
    """To write is not enough; what came is kept for when all chains were read."""
    pen = project_chain(store_chain(grant(9, act)))
    promotion = rules.plain(
        PromotionEntry(source_namespace=opaque("ns", 9), source=b"s" * 32, trust=Trust.MODEL_INFERRED)
    )
    folded, slot = Folded(), Slot(0, 0, promotion.digest)
    folded.apply(project(promotion.entry, None, slot, folded), slot)
    record = rules.enter(Draft(text="Elm."), writing(), folded, (), promotion.digest)
    pen.write(promotion, record, stamp=pen.stamp(grant=opaque("grt", 9)))
    known = Authorities()

    replayed = replay(pen, known)

    assert [finding.code for finding in replayed.findings] == ([] if allows else ["grant"])
    assert [tuple(one) for one in known.promotions] == [(PROJECT, 1, promotion.entry, record.entry)]


def test_a_content_is_gone_if_it_was_erased_and_only_then() -> None:
    """One that is there although it was erased is found, and so is one that is gone although it was not."""
    pen = project_chain(store_chain(grant(9, Act.FORGET)))
    note = pen.remember("Cedar.")
    pen.remember("Elm.")
    pen.write(rules.plain(ErasureEntry(erases=(note.digest,))), stamp=pen.stamp(grant=opaque("grt", 9)))
    assert faults(pen) == [("content", 3)]

    pen.commits[1].contents.clear()
    assert faults(pen) == []

    pen.commits[2].contents.clear()
    assert faults(pen) == [("missing", 2)]


def test_what_is_there_or_gone_wrongly_is_named_by_its_place_and_address() -> None:
    """Each finding tells which content it is and what is wrong with it."""
    pen = project_chain()
    note, other = pen.remember("Cedar."), pen.remember("Elm.")
    pen.write(rules.plain(ErasureEntry(erases=(note.digest,))), stamp=pen.stamp(grant=FORGET))
    pen.commits[2].contents.clear()

    found = replay(pen).findings

    assert [finding.message for finding in found] == [
        f"the content of entry 2, {other.memory}@1, is gone, and no erasure explains it",
        f"the content of entry 1, {note.memory}@1, is there, though it was erased",
    ]


def resumed_after(pen: Pen, split: int, write: Callable[[], object]) -> list[tuple[str, int | None]]:
    """What is found in the rest of a chain, from a trusted head on, once more was written to it and its store."""
    assert pen.store is not None
    before = Authorities()
    ground = replay(pen.store, before)
    begun = replay(pen, before, end=split)
    write()
    after, length = Authorities(before), 0 if ground.head is None else ground.head.sequence + 1
    continued(Replay(STORE, after, store=True, base=based(ground)), pen.store, length)
    resumed = Replay(PROJECT, after, store=False, base=based(begun))
    continued(resumed, pen, split)
    return [(finding.code, finding.sequence) for finding in resumed.findings]


def based(replayed: Replay) -> Base:
    """Where a replay stands, to go on from there."""
    assert replayed.head is not None
    return Base(replayed.head, replayed.folded)


def test_the_first_content_after_a_trusted_head_is_looked_for_too() -> None:
    """Erased and still there, it is found where it is the very first entry of what is new."""
    pen = project_chain()
    pen.remember("Oak.")
    note = pen.remember("Cedar.")

    def erase() -> None:
        pen.write(rules.plain(ErasureEntry(erases=(note.digest,))), stamp=pen.stamp(grant=FORGET))

    assert resumed_after(pen, 2, erase) == [("content", 3)]

    pen.commits[2].contents.clear()
    assert resumed_after(pen, 2, lambda: None) == []


@pytest.mark.parametrize(("sequence", "found"), [(1, [("erasure", 1)]), (2, []), (3, [("erasure", 3)])])
def test_a_noted_erasure_is_in_one_of_the_commits_since(sequence: int, found: list[tuple[str, int]]) -> None:
    """From the first commit after a trusted head to the newest; a note about one before or after is found."""
    store = store_chain()
    pen = project_chain(store)
    pen.erase(pen.remember("Cedar."))
    noted = rules.plain(ErasedEntry(namespace=PROJECT, sequence=sequence, count=1))

    assert resumed_after(pen, 2, lambda: store.write(noted)) == found


def test_a_name_is_gone_if_it_was_struck_and_only_then() -> None:
    """On the store chain as in a namespace: there although it was struck, and gone although it was not."""
    store = store_chain()
    ada = store.commits[0].contents
    (digest,) = (entries.digest_of(body) for body in store.commits[0].bodies if b'"entry":"name"' in body)
    store.write(rules.plain(ErasureEntry(strikes=(digest,))))
    assert faults(store) == [("content", 1)]

    del ada[2]
    assert faults(store) == []

    ada.clear()
    assert faults(store) == [("missing", 0)]


def test_an_export_names_a_commit_that_is_there() -> None:
    """Of a namespace once its chain gets there, of the whole store among the commits before."""
    store = store_chain()
    pen = project_chain(store)
    assert pen.head is not None
    assert store.head is not None
    right = [
        ExportEntry(namespace=PROJECT, sequence=0, head=pen.head.id),
        ExportEntry(namespace=PROJECT, sequence=7, head=b"h" * 32),
        ExportEntry(sequence=0, head=store.head.id),
    ]
    store.write(*map(rules.plain, right))
    assert faults(pen) == faults(store) == []

    for wrong, found in (
        (ExportEntry(namespace=PROJECT, sequence=0, head=b"h" * 32), ([("export", 0)], [])),
        (ExportEntry(sequence=0, head=b"h" * 32), ([], [("export", 1)])),
        (ExportEntry(sequence=9, head=store.head.id), ([], [("export", 1)])),
    ):
        store = store_chain()
        pen = project_chain(store)
        store.write(rules.plain(wrong))
        assert (faults(pen), faults(store)) == found


def test_the_namespaces_that_a_store_goes_on_without_are_known() -> None:
    """Their presence is a fault."""
    pen = project_chain(store_chain(PartingEntry(without=(PROJECT,))))

    assert faults(pen) == [("namespace", 0)]


def test_what_an_erasure_takes_changes_no_state() -> None:
    """Replayed with the contents still there or without them: the same counts, endings and leaves."""
    pen = project_chain()
    task = pen.remember(Draft(text="Wake Ada.", kind=Kind.TASK, key="ada"))
    pen.end(pen.end(task, close=True))
    kept = [written._replace(contents=dict(written.contents)) for written in pen.commits]
    pen.erase(task)

    gone = replay(pen)
    pen.commits[: len(kept)] = kept
    there = replay(pen)

    assert gone.findings == []
    assert [(finding.code, finding.sequence) for finding in there.findings] == [("content", 4)]
    assert (there.counts, there.ended, list(there.leaves())) == (gone.counts, gone.ended, list(gone.leaves()))


@pytest.mark.parametrize("grant_id", [None, opaque("grt", 8)])
def test_a_commit_without_a_grant_is_found(grant_id: str | None) -> None:
    """None, or one that the store chain does not know."""
    pen = project_chain()

    pen.write(rules.enter(Draft(text="Cedar."), writing(), pen.folded), stamp=pen.stamp(grant=grant_id))

    assert faults(pen) == [("grant", 1)]


def test_a_revoked_grant_allows_what_came_before() -> None:
    """A commit at a point before the revocation stands; one at or after it is found."""
    write = rules.plain(grant(2, Act.WRITE))
    store = store_chain()
    pen = project_chain(store)
    pen.remember("Before.")

    store.write(rules.plain(RevokeEntry(revokes=write.digest)))
    assert faults(pen) == []
    pen.remember("After.")

    assert faults(pen) == [("grant", 2)]


def test_a_second_revocation_does_not_move_the_first() -> None:
    """It is found itself, and what was written between the two stays without a grant."""
    write = rules.plain(grant(2, Act.WRITE))
    store = store_chain()
    pen = project_chain(store)
    store.write(rules.plain(RevokeEntry(revokes=write.digest)))
    pen.remember("Between.")

    store.write(rules.plain(RevokeEntry(revokes=write.digest)))

    assert faults(store) == [("rule", 2)]
    assert faults(pen) == [("grant", 1)]


def test_the_store_chain_names_no_point_of_itself() -> None:
    """Its own commits have an order without one."""
    store = store_chain()

    store.write(rules.plain(grant(9, Act.READ)), store=StorePoint(sequence=0, id=b"s" * 32))

    assert faults(store) == [("store", 1)]


def test_revoking_what_is_no_grant_takes_no_grant() -> None:
    """An alias that ends leaves the grants alone."""
    alias = named("/src", lambda sealed: AliasEntry(namespace=PROJECT, of=AliasOf.PATH, content=sealed))
    store = store_chain(alias)
    store.write(rules.plain(RevokeEntry(revokes=alias.digest)))
    pen = project_chain(store)

    pen.remember("Cedar.")

    assert faults(pen) == faults(store) == []
    assert replay(store).ended == {7: (1, Ending.REVOKED)}


def test_what_belongs_to_nobody_takes_a_grant_on_its_scope() -> None:
    """A global namespace has no owner, and a grant on the scope reaches it."""
    made = NamespaceEntry(namespace=PROJECT, scope=Scope.GLOBAL, nonce=NONCE)
    store = store_chain(made, grant(1, Act.CREATE, scope=Scope.GLOBAL), grant(2, Act.WRITE, scope=Scope.GLOBAL))
    pen = project_chain(store, scope=Scope.GLOBAL, owner=None)

    pen.remember("Cedar.")

    assert faults(pen) == []


@pytest.mark.parametrize(("limit", "fits"), [(6, True), (5, False)])
def test_a_commit_is_judged_by_the_limits_in_its_header(limit: int, *, fits: bool) -> None:
    """What was admitted under a wide limit stays admitted, and a narrow one holds."""
    pen = project_chain()

    pen.remember("Cedar.", limits=Limits(drafts=1, text_bytes=limit))

    assert faults(pen) == ([] if fits else [("rule", 1)])


def test_a_signature_is_judged_by_key_prefix_and_commit() -> None:
    """Only that of a trusted key, over this commit, as a commit."""
    pen = project_chain()
    assert pen.head is not None
    head = pen.head
    signature = KEYS.sign(COMMIT, head.id)
    replayed = Replay(PROJECT, Authorities(), store=False)

    check_signature(replayed, KEYS, head.id, head.header, signature)
    assert replayed.findings == []

    check_signature(replayed, KEYS, head.id, head.header, KEYS.sign(RECEIPT, head.id))
    check_signature(replayed, KEYS, b"c" * 32, head.header, signature)
    check_signature(replayed, Keyring(), head.id, head.header, signature)
    assert [(finding.code, finding.sequence) for finding in replayed.findings] == [("signature", 0)] * 3


def handed_over(store: Pen, *, at: dict[str, bytes], key: Keyring, by: Keyring = KEYS) -> None:
    """The commit that hands a store over to a key at these heads, and whose signer is the key before."""
    name = key.signer or ""
    entry = KeyEntry(key=name, public=key.public[name], retires=by.signer, heads=rules.heads_root(at))
    store.write(rules.plain(entry), signer=by.signer)


NEXT = Keyring(SigningKey(seed=b"n" * 32, secret=b"t" * 32))


def test_a_key_signs_until_its_successor_does() -> None:
    """By the order of the store chain; the old key's commit after that breaks a rule, and so does one slipped in."""
    pen = project_chain()
    assert pen.store is not None
    assert pen.head is not None
    handed_over(pen.store, at={PROJECT: pen.head.id}, key=NEXT)
    pen.store.write(rules.plain(grant(9, Act.READ)), signer=NEXT.signer)
    pen.remember("Cedar.", signer=NEXT.signer)
    authorities = Authorities()
    assert replay(pen, authorities).findings == []
    assert authorities.findings(STORE) == []

    pen.remember("Oak.")
    pen.store.write(rules.plain(grant(10, Act.READ)))

    assert faults(pen) == [("rule", 2)]
    assert faults(pen.store) == [("rule", 3)]


def test_a_commit_that_names_the_handing_over_is_of_the_new_key() -> None:
    """The head before it is the old key's last, as that commit of the store chain is there."""
    pen = project_chain()
    assert pen.store is not None
    assert pen.head is not None
    handed_over(pen.store, at={PROJECT: pen.head.id}, key=NEXT)

    pen.remember("Cedar.", signer=NEXT.signer)

    authorities = Authorities()
    replayed = replay(pen, authorities)
    assert (replayed.findings, replayed.lasts, authorities.findings(STORE)) == ([], {0}, [])
    assert replay(pen.store).lasts == {1}


def test_a_key_that_ended_at_other_heads_is_found() -> None:
    """Whoever has the old key slips a commit in below the handing over: the named heads are no longer the last."""
    pen = project_chain()
    assert pen.store is not None
    assert pen.store.head is not None
    assert pen.head is not None
    before, genuine = StorePoint(sequence=0, id=pen.store.head.id), pen.head.id
    handed_over(pen.store, at={PROJECT: genuine}, key=NEXT)
    authorities = Authorities()
    assert replay(pen, authorities).lasts == {0}
    assert authorities.findings(STORE) == []

    pen.remember("Forged.", store=before)
    authorities = Authorities()

    assert replay(pen, authorities).findings == []
    assert [(each.code, each.sequence) for each in authorities.findings(STORE)] == [("rule", 1)]


def test_a_head_is_signed_by_the_key_in_force() -> None:
    """Trusted itself, or by way of the keys before it; an old key's signature over a head counts no more."""
    pen = project_chain()
    assert pen.store is not None
    assert pen.head is not None
    head = pen.head
    handed_over(pen.store, at={PROJECT: head.id}, key=NEXT)
    authorities = Authorities()
    replayed = replay(pen, authorities)
    old, new = (keys.sign(COMMIT, head.id) for keys in (KEYS, NEXT))

    for keys in (KEYS, NEXT):
        check_head(replayed, keys, head.id, head.header, new)
    check_signature(replayed, NEXT, head.id, head.header, old)
    assert replayed.findings == []

    check_head(replayed, KEYS, head.id, head.header, old)
    check_head(replayed, Keyring(), head.id, head.header, new)
    check_head(Replay(STORE, Authorities(), store=True), KEYS, head.id, head.header, old)
    assert [finding.code for finding in replayed.findings] == ["signature"] * 2


def test_a_name_that_is_gone_is_missed() -> None:
    """The store chain's own contents are held to their commitments too."""
    store = store_chain()
    del store.commits[0].contents[2]

    assert faults(store) == [("missing", 0)]


def test_the_limits_of_a_pen_are_the_librarys() -> None:
    """The chains of these tests are sealed as the library seals."""
    pen = project_chain()

    assert pen.head is not None
    assert pen.head.header.limits == LIBRARY_LIMITS
    assert chain.read(pen.commits[0].header) == (pen.head.id, pen.head.header)
    assert Content() == Content(text=None)


def test_what_follows_a_gap_is_judged_all_the_same() -> None:
    """A commit that is gone is one finding, and so is each fault after it; totals and history are followed no more."""
    pen = project_chain()
    for text in ("Cedar.", "Oak.", "Elm."):
        pen.remember(text)
    pen.write(forged(rules.enter(Draft(text="Fir."), writing(), pen.folded), version=7))
    pen.remember("Ash.")
    assert faults(pen) == [("rule", 4)]

    del pen.commits[2]

    assert faults(pen) == [("chain", 3), ("rule", 4)]


def test_a_replay_goes_on_from_a_trusted_head_as_if_it_had_begun_there() -> None:
    """At every commit of a chain: the same verdict, totals, frontier, endings and leaves of what is new."""
    pen = lived()
    whole = replay(pen)
    leaves = list(whole.leaves())

    for split in range(1, len(pen.commits)):
        known = Authorities()
        begun = replay(pen, known, end=split)
        assert begun.head is not None
        resumed = Replay(PROJECT, known, store=False, base=Base(begun.head, begun.folded))
        continued(resumed, pen, split)

        assert (resumed.findings, resumed.since, resumed.first) == ([], split, begun.size)
        assert (resumed.head, resumed.counts, resumed.size) == (whole.head, whole.counts, whole.size)
        assert {**begun.ended, **resumed.ended} == whole.ended
        assert list(resumed.leaves()) == leaves[begun.size :]


def test_what_the_store_said_before_is_asked_of_the_base() -> None:
    """Grants, namespaces and points of the store chain: the newer word first."""
    store = store_chain()
    before = Authorities()
    begun = replay(store, before)
    assert begun.head is not None
    store.write(
        rules.plain(grant(7, Act.READ)), rules.plain(RevokeEntry(revokes=rules.plain(grant(7, Act.READ)).digest))
    )
    after = Authorities(before)

    resumed = Replay(STORE, after, store=True, base=Base(begun.head, begun.folded))
    continued(resumed, store, 1)

    assert resumed.findings == []
    assert (after.point(0), after.point(1), after.point(2)) == (begun.head.id, store.head and store.head.id, None)
    assert after.granted(opaque("grt", 7)) == Granted(grant(7, Act.READ), 1, 1)
    assert (after.granted(opaque("grt", 2)), after.granted(opaque("grt", 8))) == (
        before.granted(opaque("grt", 2)),
        None,
    )
    assert after.made(PROJECT) == before.made(PROJECT)
    assert after.made(opaque("ns", 9)) is None


@pytest.mark.parametrize(
    ("codes", "hint"),
    [
        ((), None),
        (("words", "link"), "ledgerstone rebuild"),
        (("schema", "link"), "taken out, and what is derived made anew; run: ledgerstone rebuild"),
        (("anchor",), "ledgerstone verify --accept"),
        (("words", "content"), "ledgerstone restore"),
    ],
)
def test_a_report_says_what_to_do_next(codes: tuple[str, ...], hint: str | None) -> None:
    """What can be derived is made anew, what is gone is put back or given up, and what is damaged is restored."""
    findings = tuple(Finding(code, PROJECT, 0, "wrong") for code in codes)

    report = Report(findings=findings, namespaces=1, commits=1, entries=1, heads={})

    assert (report.hint is None) if hint is None else (hint in (report.hint or ""))


@pytest.mark.parametrize(
    ("sequence", "count", "found"),
    [(4, 2, []), (4, 1, [("erasure", 4)]), (3, 2, [("erasure", 3)]), (3, 1, []), (5, 2, [("erasure", 5)])],
)
def test_what_the_store_notes_of_erasures_is_held_to_the_chain(
    sequence: int, count: int, found: list[tuple[str, int]]
) -> None:
    """How many versions lost their text, up to which commit: two erasures may have one note, or each its own."""
    store = store_chain()
    pen = project_chain(store)
    first, second = pen.remember("Cedar."), pen.remember("Oak.")
    pen.erase(first)
    pen.erase(second)
    assert faults(pen) == []

    store.write(rules.plain(ErasedEntry(namespace=PROJECT, sequence=sequence, count=count)))

    assert faults(pen) == found


@pytest.mark.parametrize(("ending", "stands"), [("none", True), ("superseded", True), ("erased", False)])
def test_a_procedure_rests_on_no_erased_text(ending: str, *, stands: bool) -> None:
    """What it was once taken from is not there to be read; a superseded one still is."""
    pen = project_chain()
    ground = pen.remember(Draft(text="Water it daily.", key="water"))
    if ending == "superseded":
        pen.remember(Draft(text="Water it weekly.", key="water"))
    if ending == "erased":
        pen.erase(ground)
    draft = Draft(text="Fill the can.", kind=Kind.PROCEDURE, sources=(canonical.address(ground.memory, 1),))

    if stands:
        pen.remember(draft)
        assert faults(pen) == []
    else:
        with pytest.raises(RuleError, match="nor erased"):
            pen.remember(draft)
