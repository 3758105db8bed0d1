"""What no door would write is refused on replay by the same rules, each by its name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ledgerstone.core import rules
from ledgerstone.core.canonical import address
from ledgerstone.core.entries import (
    AliasEntry,
    Content,
    Entry,
    ErasedEntry,
    ErasureEntry,
    ExportEntry,
    GenesisEntry,
    KeyEntry,
    NameEntry,
    NamespaceEntry,
    PartingEntry,
    PromotionEntry,
    RecordEntry,
    RefusalEntry,
    RestoreEntry,
    RevokeEntry,
    Sealed,
    SettingEntry,
    Stamp,
    ValuesEntry,
    WakeEntry,
    digest_of,
)
from ledgerstone.core.facts import Known, Own
from ledgerstone.core.rules import Admitted, Promoted
from ledgerstone.core.signing import key_id
from ledgerstone.core.values import (
    LIBRARY_LIMITS,
    MAX_INTEGER,
    Act,
    AliasOf,
    Draft,
    Ending,
    Kind,
    Limits,
    NameOf,
    Origin,
    Refusal,
    Scope,
    Status,
    Trust,
)
from ledgerstone.errors import ConflictError, NotFoundError, RuleError, UsageError
from tests.core.chains import (
    ADA,
    KEYS,
    NONCE,
    PROJECT,
    Pen,
    forged,
    grant,
    opaque,
    project_chain,
    store_chain,
    tombstone,
    writing,
)

NOBODY = opaque("mem", 0)


@pytest.fixture
def pen() -> Pen:
    """A project in which nothing was remembered yet."""
    return project_chain()


def judge(pen: Pen, admitted: Admitted, *, origin: Origin = Origin.USER, limits: Limits = LIBRARY_LIMITS) -> None:
    """Judge an entry as replay would, as the next one."""
    stamp = Stamp(at=0, principal=ADA, origin=origin)
    rules.judge(admitted.entry, admitted.content, stamp, limits, pen.folded)


def refused(pen: Pen, admitted: Admitted, **changes: Any) -> str:
    """What is said of an entry once it was forged; as it was it is admitted."""
    judge(pen, admitted)
    with pytest.raises(RuleError) as error:
        judge(pen, forged(admitted, **changes))
    assert error.value.message.startswith(f"{error.value.rule}: ")
    return error.value.message


def entered(pen: Pen, draft: Draft | str = "Elm.", origin: Origin = Origin.USER) -> Admitted:
    """A draft as the rules let it in."""
    made = Draft(text=draft) if isinstance(draft, str) else draft
    return rules.enter(made, writing(origin, 99), pen.folded)


def where(known: Known) -> str:
    """The address of a version."""
    return address(known.memory, known.version)


def test_a_source_must_be_an_earlier_record(pen: Pen) -> None:
    """Neither an unknown digest nor an entry that is no record will do, for sources, covers or a contest."""
    note = pen.remember("Cedar.")
    genesis = rules.plain(GenesisEntry(scope=Scope.PROJECT, nonce=NONCE, owner=ADA)).digest
    summary = entered(pen, Draft(text="C.", kind=Kind.SUMMARY, sources=(where(note),), covers=(where(note),)))

    for digest in (b"?" * 32, genesis):
        assert refused(pen, summary, sources=(digest,)) == "sources: names no earlier record of this namespace"
        assert refused(pen, summary, covers=(digest,)) == "covers: names no earlier record of this namespace"
        assert refused(pen, entered(pen), contests=digest) == "contests: names no earlier record of this namespace"


def test_the_limit_is_that_of_the_header(pen: Pen) -> None:
    """A size beyond what the commit says was allowed, or none at all."""
    admitted = entered(pen)
    judge(pen, admitted, limits=Limits(text_bytes=4))
    assert isinstance(admitted.entry, RecordEntry)

    assert "1 to 8192 bytes, not 0" in refused(pen, admitted, content=replace(admitted.entry.content, text_bytes=0))
    with pytest.raises(RuleError, match="text: 1 to 3 bytes, not 4"):
        judge(pen, admitted, limits=Limits(text_bytes=3))


def test_an_origin_is_no_more_than_the_stamps(pen: Pen) -> None:
    """A record may say less than its caller, and not more."""
    with pytest.raises(RuleError, match="origin: user is more than the caller's model"):
        judge(pen, entered(pen), origin=Origin.MODEL)

    judge(pen, entered(pen, Draft(text="Elm.", external=True), Origin.MODEL), origin=Origin.MODEL)


@pytest.mark.parametrize("trust", [trust for trust in Trust if trust is not Trust.UNKNOWN])
def test_a_trust_is_what_origin_and_sources_allow(pen: Pen, trust: Trust) -> None:
    """Exactly that: neither more nor less."""
    stranger = pen.remember("They say.", Origin.UNKNOWN)
    resting = entered(pen, Draft(text="So.", sources=(where(stranger),)))

    assert refused(pen, resting, trust=trust) == f"trust: origin and sources allow unknown, not {trust.word}"


@pytest.mark.parametrize("version", [2, 3])
def test_a_memory_begins_at_its_first_version(pen: Pen, version: int) -> None:
    """Nothing is skipped."""
    assert refused(pen, entered(pen), version=version) == f"version: {version} does not follow 0"


@pytest.mark.parametrize("version", [1, 3])
def test_a_version_follows_the_one_before(pen: Pen, version: int) -> None:
    """Neither again nor ahead."""
    pen.remember(Draft(text="Cedar.", key="tree"))

    admitted = entered(pen, Draft(text="Elm.", key="tree"))

    assert refused(pen, admitted, version=version) == f"version: {version} does not follow 1"


def test_lower_trust_is_not_written_over_higher(pen: Pen) -> None:
    """What a door would have set aside as contested cannot be passed off as the next version."""
    users = pen.remember(Draft(text="Old.", key="tree"))
    models = entered(pen, Draft(text="Young.", key="tree"), Origin.MODEL)

    assert refused(pen, models, memory=users.memory, version=2, contests=None) == (
        "trust: model_inferred may not replace user_explicit"
    )


def test_an_open_task_is_not_written_over(pen: Pen) -> None:
    """By no record at all, its key aside."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))

    message = refused(pen, entered(pen), memory=task.memory, version=2)

    assert message == f"open_task: {where(task)} is an open task; no write replaces it"


def test_only_what_is_current_and_higher_is_contested(pen: Pen) -> None:
    """A contest with an equal, with what has ended, or by a next version is none."""
    equal = pen.remember("Equal.")
    ended = pen.remember("Ended.")
    pen.end(ended)
    users = pen.remember(Draft(text="Old.", key="tree"))
    contest = entered(pen, Draft(text="Young.", key="tree"), Origin.MODEL)
    models = pen.remember("Model's.", Origin.MODEL)
    offence = "contests: only a new memory contests, and only a current record of higher trust"

    assert refused(pen, entered(pen), contests=equal.digest) == offence
    assert refused(pen, contest, contests=ended.digest) == offence
    assert refused(pen, contest, contests=users.digest, memory=models.memory, version=2) == offence


def test_a_held_value_is_a_memory_of_its_own(pen: Pen) -> None:
    """It follows no version, and names what rejected it."""
    wrong = pen.remember(Draft(text="8080", key="port"), Origin.MODEL)
    pen.end(wrong, reject=tombstone("port", "8080"))
    held = entered(pen, Draft(text="8080", key="port"), Origin.MODEL)

    assert isinstance(held.entry, RecordEntry)
    assert held.entry.held_by is not None
    assert refused(pen, held, held_by=b"?" * 32) == "held_by: names no earlier rejection of this namespace"
    assert refused(pen, held, memory=wrong.memory, version=3) == "held_by: a held value is a memory of its own"


def test_a_key_has_one_holder(pen: Pen) -> None:
    """A new memory does not take a key that another holds, and a memory does not change its own."""
    holder = pen.remember(Draft(text="Cedar.", key="tree"))
    admitted = entered(pen, Draft(text="Elm.", key="tree"))
    other = entered(pen, Draft(text="Elm.", key="shrub"))

    assert refused(pen, admitted, memory=NOBODY, version=1) == f"key: 'tree' is held by {where(holder)}"
    assert refused(pen, other, memory=holder.memory, version=2) == "key: a memory keeps its key 'tree'"


def test_an_erased_content_has_no_key_to_judge(pen: Pen) -> None:
    """Once it is gone, everything else about the entry is still judged."""
    pen.remember(Draft(text="Cedar.", key="tree"))
    admitted = entered(pen, Draft(text="Elm.", key="tree"))._replace(content=None)

    judge(pen, admitted)
    assert refused(pen, admitted, version=7) == "version: 7 does not follow 1"


@pytest.mark.parametrize(("depth", "offence"), [(0, "stands 1 levels up, not 0"), (2, "stands 1 levels up, not 2")])
def test_a_summary_says_its_own_height(pen: Pen, depth: int, offence: str) -> None:
    """One more than the highest of its sources, and nothing else has any."""
    note = pen.remember("Cedar.")
    summary = entered(pen, Draft(text="C.", kind=Kind.SUMMARY, sources=(where(note),)))

    assert refused(pen, summary, depth=depth) == f"summary: {offence}"
    assert refused(pen, entered(pen), depth=1) == "covers: only a summary covers, not a note"


@pytest.mark.parametrize("close", [True, False])
def test_an_ending_is_the_next_version_of_what_it_ends(pen: Pen, *, close: bool) -> None:
    """Of that memory, of that version, by that origin, at that trust."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))
    other = pen.remember("Cedar.")
    by = writing(seed=99)
    admitted = rules.close(task, by, "Done.") if close else rules.retract(task, by, "Wrong.", None)
    noun = "close" if close else "retract"
    name = "closes" if close else "retracts"

    assert refused(pen, admitted, version=3) == f"{noun}: is not the next version of what it ends"
    assert refused(pen, admitted, memory=other.memory) == f"{noun}: is not the next version of what it ends"
    assert refused(pen, admitted, origin=Origin.TOOL) == "origin: tool is not the caller's user"
    assert refused(pen, admitted, trust=Trust.UNKNOWN) == "trust: stays user_explicit, as the text it refers to"
    assert refused(pen, admitted, **{name: b"?" * 32}) == f"{noun}: names no earlier record of this namespace"


def test_what_has_ended_is_not_ended_again(pen: Pen) -> None:
    """On replay as at the door."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))
    closing, retracting = rules.close(task, writing(seed=99), None), rules.retract(task, writing(), None, None)
    judge(pen, closing)
    pen.end(task)

    with pytest.raises(RuleError, match=f"close: {where(task)} is not an open task"):
        judge(pen, closing)
    with pytest.raises(RuleError, match=f"retract: {where(task)} no longer stands"):
        judge(pen, retracting)


def test_what_is_no_record_is_not_judged(pen: Pen) -> None:
    """Entries of other sorts have no past to break a rule of."""
    judge(pen, rules.plain(GenesisEntry(scope=Scope.PROJECT, nonce=NONCE)))


def test_nothing_rests_on_what_is_of_the_same_commit(pen: Pen) -> None:
    """A record is earlier when its commit is; the next commit may cite it."""
    first = pen.add(rules.enter(Draft(text="Cedar.", key="tree"), writing(seed=1), pen.folded))
    assert first is not None

    with pytest.raises(RuleError, match=f"sources: {where(first)} is of this very commit"):
        entered(pen, Draft(text="So.", sources=(where(first),)))

    pen.folded.boundary = pen.counts.entries
    assert isinstance(entered(pen, Draft(text="So.", sources=(where(first),))).entry, RecordEntry)


def test_a_commit_has_its_limit_of_records_and_each_key_once(pen: Pen) -> None:
    """What no single entry shows is judged over all of them; erased contents have no keys to compare."""
    drawn = [
        (one.entry, one.content)
        for seed, key in enumerate(("a", "b", "b"))
        for one in (rules.enter(Draft(text="Oak.", key=key), writing(seed=seed), pen.folded),)
    ]

    rules.check_commit(drawn[:2], Limits(drafts=2))
    rules.check_commit([drawn[1], (drawn[2][0], None)], Limits(drafts=2))

    with pytest.raises(RuleError, match="drafts: 1 to 1 a commit, not 2"):
        rules.check_commit(drawn[:2], Limits(drafts=1))
    with pytest.raises(RuleError, match="key: each key once a commit"):
        rules.check_commit(drawn, Limits(drafts=3))


def test_a_commit_has_each_memory_once(pen: Pen) -> None:
    """A second version of it in one commit is refused, key or no key."""
    note = pen.remember("Oak.")
    next_version = entered(pen, Draft(text="Elm.", replaces=where(note)))
    other = entered(pen)

    rules.check_commit([(next_version.entry, None), (other.entry, None)], LIBRARY_LIMITS)

    with pytest.raises(RuleError, match="replaces: each memory once a commit"):
        rules.check_commit([(next_version.entry, None)] * 2, LIBRARY_LIMITS)


SEALED = Sealed(commitment=b"c" * 32, bytes=20)
OF_THE_STORE: list[Entry] = [
    KeyEntry(key=KEYS.signer or "", public=KEYS.public[KEYS.signer or ""]),
    NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=SEALED),
    NamespaceEntry(namespace=PROJECT, scope=Scope.PROJECT, nonce=NONCE),
    AliasEntry(namespace=PROJECT, of=AliasOf.PATH, content=SEALED),
    grant(1, Act.READ),
    RevokeEntry(revokes=b"r" * 32),
    RefusalEntry(act=Act.READ, reason=Refusal.HOST, count=1, first=0, last=0),
    RestoreEntry(namespace=PROJECT, abandoned_sequence=0, abandoned=b"a" * 32),
    ErasedEntry(namespace=PROJECT, sequence=1, count=1),
    ExportEntry(namespace=PROJECT, sequence=0, head=b"h" * 32),
    PartingEntry(without=(PROJECT,)),
    SettingEntry(id=opaque("set", 1), setting="isolated", value=1, namespace=PROJECT),
]
OF_NOBODY: list[Entry] = [
    ValuesEntry(content=SEALED),
    WakeEntry(),
]


@pytest.mark.parametrize("entry", [*OF_THE_STORE, *OF_NOBODY], ids=lambda entry: str(entry.noun))
def test_an_entry_stands_in_a_chain_of_its_kind(pen: Pen, entry: Entry) -> None:
    """What arranges is the store's, what remembers a namespace's, and what is kept for later is nobody's."""
    with pytest.raises(RuleError, match=f"{entry.noun}: has no place in the chain of a namespace"):
        rules.check_place(entry, None, position=1, store=False)

    if entry in OF_NOBODY:
        with pytest.raises(RuleError, match=f"{entry.noun}: has no place in the chain of a store"):
            rules.check_place(entry, None, position=1, store=True)
    else:
        rules.check_place(entry, None, position=1, store=True)
    record = entered(pen)
    rules.check_place(record.entry, record.content, position=1, store=False)
    with pytest.raises(RuleError, match="record: has no place in the chain of a store"):
        rules.check_place(record.entry, record.content, position=1, store=True)


@pytest.mark.parametrize("store", [True, False])
def test_a_chain_begins_with_its_genesis_alone(pen: Pen, *, store: bool) -> None:
    """It is the first entry, and the first entry is it."""
    genesis = GenesisEntry(scope=Scope.STORE if store else Scope.PROJECT, nonce=NONCE)
    other = grant(1, Act.READ) if store else entered(pen).entry

    rules.check_place(genesis, None, position=0, store=store)
    rules.check_place(other, None, position=1, store=store)

    for entry, position in ((genesis, 1), (other, 0)):
        with pytest.raises(RuleError, match="genesis: is the first entry of a chain, and only the first"):
            rules.check_place(entry, None, position=position, store=store)


@pytest.mark.parametrize(
    ("noun", "right", "wrong"),
    [
        ("record", Content(text="t", key="k", source="s", title="t", place="p", tags=("t",), due=1), Content(key="k")),
        ("record", Content(text="t", valid_from=1, valid_until=2, triggers=("t",)), Content(text="t", name="n")),
        ("close", Content(reason="r"), Content(text="t")),
        ("close", Content(reason="r"), Content()),
        ("erasure", Content(reason="r"), Content(text="t")),
        ("alias", Content(name="n"), Content(name="n", reason="r")),
    ],
)
def test_a_content_says_what_its_entry_may(pen: Pen, noun: str, right: Content, wrong: Content) -> None:
    """A record has a text and what goes with it, an ending a reason, and all that arranges a name."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))
    entry = {
        "record": entered(pen).entry,
        "close": rules.close(task, writing(), "Done.").entry,
        "erasure": ErasureEntry(erases=(task.digest,), content=SEALED),
        "alias": AliasEntry(namespace=PROJECT, of=AliasOf.PATH, content=SEALED),
    }[noun]

    rules.check_place(entry, right, position=1, store=noun == "alias")

    with pytest.raises(RuleError, match=f"content: of a {noun} entry says "):
        rules.check_place(entry, wrong, position=1, store=noun == "alias")


def arranged(entry: Entry) -> None:
    """Judge an entry of the store chain by itself."""
    rules.check_place(entry, None, position=1, store=True)


def test_a_grant_is_for_one_of_two() -> None:
    """A scope or a namespace, neither both nor none."""
    for fields in ({"scope": None}, {"namespace": PROJECT}):
        with pytest.raises(RuleError, match="grant: is for a scope or for a namespace, one of the two"):
            arranged(grant(9, Act.READ, **fields))

    arranged(grant(9, Act.READ))
    arranged(grant(9, Act.READ, scope=None, namespace=PROJECT))


def test_a_restore_names_a_head_whole_or_none() -> None:
    """Sequence and id, or neither where nothing was known."""
    whole = RestoreEntry(namespace=PROJECT, abandoned_sequence=3, abandoned=b"a" * 32)

    for half in (replace(whole, abandoned=None), replace(whole, abandoned_sequence=None)):
        with pytest.raises(RuleError, match="restore: names the head that it abandons by sequence and id, or none"):
            arranged(half)

    arranged(whole)
    arranged(RestoreEntry(namespace=PROJECT))


def test_a_key_has_the_id_of_its_public_half() -> None:
    """Neither can be swapped alone."""
    right = OF_THE_STORE[0]
    assert isinstance(right, KeyEntry)

    arranged(right)

    with pytest.raises(RuleError, match="key_entry: has an id that is not its public key's"):
        arranged(replace(right, public=b"p" * 32))


@pytest.mark.parametrize("of", NameOf)
def test_a_name_has_an_id_of_its_sort(of: NameOf) -> None:
    """A principal's, a session's, a host's."""
    ids = {NameOf.PRINCIPAL: opaque("prn", 9), NameOf.SESSION: opaque("ses", 9), NameOf.HOST: opaque("hst", 9)}

    for sort, opaque_id in ids.items():
        entry = NameEntry(id=opaque_id, of=of, content=SEALED)
        if sort is of:
            arranged(entry)
        else:
            with pytest.raises(RuleError, match=f"name: of a {of.value} has the id {opaque_id}"):
                arranged(entry)


def test_only_what_stands_is_revoked() -> None:
    """A grant once, and neither a namespace nor what was never there."""
    store = store_chain()
    granted, made = rules.plain(grant(2, Act.WRITE)), store.commits[0].bodies[5]

    judge(store, rules.plain(RevokeEntry(revokes=granted.digest)))
    store.write(rules.plain(RevokeEntry(revokes=granted.digest)))

    for digest in (granted.digest, digest_of(made), b"?" * 32):
        with pytest.raises(RuleError, match="revoke: names nothing that stands and can be revoked"):
            judge(store, rules.plain(RevokeEntry(revokes=digest)))


def successor(public: bytes, **fields: Any) -> KeyEntry:
    """The entry that hands the store over to a key, or as the fields say."""
    entry = KeyEntry(key=key_id(public), public=public, retires=KEYS.signer, heads=rules.heads_root({}))
    return replace(entry, **fields)


@pytest.mark.parametrize("fields", [{"retires": None}, {"heads": None}])
def test_a_key_retires_another_at_heads_that_it_names(fields: dict[str, None]) -> None:
    """Both or neither: a key that ends at no heads ends nowhere."""
    arranged(successor(b"p" * 32))

    with pytest.raises(RuleError, match="key_entry: retires a key at heads that it names, or does neither"):
        arranged(successor(b"p" * 32, **fields))


def test_a_key_retires_the_one_in_force() -> None:
    """The newest, whose place it takes: not one that it took over before, nor one beside it."""
    store = store_chain()
    one, two = successor(b"p" * 32), successor(b"q" * 32, retires=key_id(b"p" * 32))

    for wrong in (two, successor(b"q" * 32, retires=None, heads=None)):
        with pytest.raises(RuleError, match=r"key_entry: retires .*, and the key in force is"):
            judge(store, rules.plain(wrong))

    judge(store, rules.plain(one))
    store.write(rules.plain(one))
    judge(store, rules.plain(two))


def test_a_key_is_retired_in_a_commit_of_its_own() -> None:
    """Nothing else is signed by it there; the first key retires none, and comes with the store."""
    rules.check_commit([(successor(b"p" * 32), None)], LIBRARY_LIMITS)
    rules.check_commit([(OF_THE_STORE[0], None), (grant(9, Act.READ), None)], LIBRARY_LIMITS)

    with pytest.raises(RuleError, match="key_entry: that retires a key is the only entry of its commit"):
        rules.check_commit([(successor(b"p" * 32), None), (grant(9, Act.READ), None)], LIBRARY_LIMITS)


def test_a_key_ends_at_the_heads_that_are_named() -> None:
    """Those of all namespaces, in whatever order they come; another one, one less or one more is refused."""
    heads = {opaque("ns", 1): b"1" * 32, opaque("ns", 2): b"2" * 32}
    entry = successor(b"p" * 32, heads=rules.heads_root(heads))

    rules.check_heads(entry, dict(reversed(heads.items())))

    for wrong in ({}, {**heads, opaque("ns", 2): b"3" * 32}, {**heads, opaque("ns", 3): b"3" * 32}):
        with pytest.raises(RuleError, match="key_entry: names other heads than those"):
            rules.check_heads(entry, wrong)


def test_a_commit_is_signed_by_the_key_in_force() -> None:
    """By no other, and not where there is none."""
    rules.check_signer("key_a", "key_a")

    for key in ("key_b", None):
        with pytest.raises(RuleError, match="signer: key_a signs, and the key in force was"):
            rules.check_signer("key_a", key)


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        (grant(1, Act.READ), grant(9, Act.READ)),
        (
            NamespaceEntry(namespace=PROJECT, scope=Scope.USER, nonce=NONCE),
            NamespaceEntry(namespace=opaque("ns", 9), scope=Scope.USER, nonce=NONCE),
        ),
        (
            NameEntry(id=ADA, of=NameOf.PRINCIPAL, content=SEALED),
            NameEntry(id=opaque("prn", 9), of=NameOf.PRINCIPAL, content=SEALED),
        ),
        (successor(KEYS.public[KEYS.signer or ""]), successor(b"p" * 32)),
    ],
    ids=["grant", "namespace", "name", "key"],
)
def test_an_id_is_given_once(taken: Entry, free: Entry) -> None:
    """An id that stands for something cannot be made to stand for something else."""
    store = store_chain()

    judge(store, rules.plain(free))

    with pytest.raises(RuleError, match=f"{taken.noun}.*: .* is taken"):
        judge(store, rules.plain(taken))


def test_nobody_makes_a_second_chain_of_the_store() -> None:
    """A namespace has any scope but the store's."""
    made = NamespaceEntry(namespace=opaque("ns", 9), scope=Scope.GLOBAL, nonce=NONCE)

    arranged(made)

    with pytest.raises(RuleError, match="namespace: of scope store is the store's own"):
        arranged(replace(made, scope=Scope.STORE))


def test_what_the_user_says_is_not_held(pen: Pen) -> None:
    """Only what somebody else repeats is; the user's own word is a change of mind."""
    wrong = pen.remember(Draft(text="8080", key="port"), Origin.MODEL)
    pen.end(wrong, reject=tombstone("port", "8080"))
    held = entered(pen, Draft(text="8080", key="port"), Origin.MODEL)

    message = refused(pen, held, origin=Origin.USER, trust=Trust.USER_EXPLICIT)

    assert message == "held_by: what the user says is not held"


def test_only_the_newest_version_is_ended(pen: Pen) -> None:
    """A summary that fell can be retracted, until its memory went on."""
    ground = pen.remember("A cedar stands here.")
    fallen = pen.remember(Draft(text="Cedar.", kind=Kind.SUMMARY, sources=(where(ground),), key="tree"))
    pen.end(ground)
    retracting = rules.retract(fallen, writing(seed=99), None, None)
    judge(pen, retracting)
    pen.remember(Draft(text="Elm.", key="tree"))

    with pytest.raises(RuleError, match="retract: is of a version that is not the newest of its memory"):
        judge(pen, retracting)


def test_what_stands_aside_can_be_withdrawn(pen: Pen) -> None:
    """A contested record is retracted once, and the key stays where it was."""
    users = pen.remember(Draft(text="Old.", key="tree"))
    contested = pen.remember(Draft(text="Young.", key="tree"), Origin.MODEL)

    pen.end(contested)

    assert pen.folded.holder("tree") == users
    with pytest.raises(RuleError, match="retract: is of a version that is not the newest of its memory"):
        judge(pen, rules.retract(contested, writing(seed=99), None, None))
    assert pen.remember(Draft(text="Older.", key="tree")).memory == users.memory


def test_an_erasure_names_what_is_there(pen: Pen) -> None:
    """Versions that are not yet erased, and nothing else."""
    note, other = pen.remember("Cedar."), pen.remember("Elm.")
    erasing = rules.plain(ErasureEntry(erases=(note.digest,)))
    genesis = rules.plain(GenesisEntry(scope=Scope.PROJECT, nonce=NONCE, owner=ADA)).digest

    assert refused(pen, erasing, erases=(genesis,)) == "erasure: names no earlier record of this namespace"
    pen.write(erasing)

    assert refused(pen, forged(erasing, erases=(other.digest,)), erases=(other.digest, note.digest)) == (
        f"erasure: {note.digest.hex()[:16]} was erased before"
    )


def test_an_erasure_takes_texts_or_what_others_say(pen: Pen) -> None:
    """One of the two; a strike is of an entry that has a content of its own and is no record, once."""
    note, task = pen.remember("Cedar."), pen.remember(Draft(text="Water.", kind=Kind.TASK))
    silent = pen.end(task, close=True)
    told = pen.write(rules.retract(note, writing(seed=7), "Wrong.", None))
    assert told is not None
    striking = ErasureEntry(strikes=(told.digest,))

    for wrong in (ErasureEntry(), ErasureEntry(erases=(note.digest,), strikes=(told.digest,))):
        with pytest.raises(RuleError, match="erasure: takes texts, or what other entries say of their own"):
            rules.check_arranged(wrong, pen.folded)
    for digest in (note.digest, silent.digest, b"?" * 32):
        assert refused(pen, rules.plain(striking), strikes=(digest,)) == (
            f"erasure: {digest.hex()[:16]} has no content of its own here"
        )
    rules.check_place(striking, None, position=1, store=True)
    pen.write(rules.plain(striking))

    with pytest.raises(RuleError, match="has no content of its own here"):
        judge(pen, rules.plain(striking))
    assert pen.folded.known[told.position].sealed is False


def test_what_was_erased_has_nothing_of_its_own(pen: Pen) -> None:
    """The reason of a close went with its text; that of another one can still be struck."""
    closed = []
    for number, text in enumerate(("Water.", "Weed.")):
        task = pen.remember(Draft(text=text, kind=Kind.TASK))
        closed.append(pen.write(rules.close(task, writing(seed=number), "Done.")))
    assert closed[0] is not None
    assert closed[1] is not None
    pen.erase(closed[0])

    assert pen.folded.own(closed[0].digest) is None
    assert pen.folded.own(closed[1].digest) == Own(closed[1].position)


@pytest.mark.parametrize(
    "leaving", [PartingEntry(without=(PROJECT,)), ExportEntry(namespace=PROJECT, sequence=0, head=b"h" * 32)]
)
def test_what_leaves_a_store_was_made_there(leaving: Entry) -> None:
    """A namespace that was never made here neither leaves nor stays behind; nor one that was left before."""
    store = store_chain()
    other = opaque("ns", 9)

    rules.check_arranged(leaving, store.folded)

    with pytest.raises(RuleError, match=f"{leaving.noun}: {other} was never made here"):
        rules.check_arranged(
            replace(leaving, **({"without": (other,)} if leaving.noun == "parting" else {"namespace": other})),  # type: ignore[type-var]
            store.folded,
        )
    store.write(rules.plain(PartingEntry(without=(PROJECT,))))
    with pytest.raises(RuleError, match=f"{leaving.noun}: {PROJECT} was never made here, or was left before"):
        rules.check_arranged(leaving, store.folded)
    rules.check_arranged(ExportEntry(sequence=0, head=b"h" * 32), store.folded)


CAME = rules.plain(PromotionEntry(source_namespace=opaque("ns", 9), source=b"s" * 32, trust=Trust.MODEL_INFERRED))


def promoted_after(pen: Pen, **fields: Any) -> Admitted:
    """What comes by a promotion of a model's word, which is the entry right before it."""
    pen.add(CAME)
    return rules.enter(Draft(text="Elm.", **fields), writing(), pen.folded, (), CAME.digest)


def test_a_promoted_record_names_the_promotion_right_before_it(pen: Pen) -> None:
    """And no other entry; its trust is at most what that says."""
    rules.check_place(CAME.entry, None, position=1, store=False)
    record = promoted_after(pen)
    judge(pen, record)
    assert isinstance(record.entry, RecordEntry)
    assert record.entry.trust is Trust.MODEL_INFERRED

    unnamed = "promotion: names the promotion right before it, and no other entry"
    assert refused(pen, record, trust=Trust.USER_EXPLICIT).startswith("trust: origin and sources allow")
    assert refused(pen, record, promotion=b"?" * 32) == unnamed
    pen.add(entered(pen, "In between."))
    with pytest.raises(RuleError, match=unnamed):
        judge(pen, record)


def test_what_is_promoted_rests_on_nothing_here(pen: Pen) -> None:
    """It has no sources, is no summary and no open task; a procedure it may be, and a closed task."""
    ground = where(pen.remember("Ground.", Origin.MODEL))

    for kind, status in ((Kind.PROCEDURE, None), (Kind.TASK, Status.CLOSED), (Kind.FACT, None)):
        judge(pen, promoted_after(pen, kind=kind, status=status))

    for kind, sources in ((Kind.NOTE, (ground,)), (Kind.SUMMARY, (ground,)), (Kind.SUMMARY, ())):
        with pytest.raises(RuleError, match="promotion: rests on what it came from"):
            promoted_after(pen, kind=kind, sources=sources)
    with pytest.raises(RuleError, match="promotion: an open task stays"):
        promoted_after(pen, kind=Kind.TASK)


def test_a_promotion_and_its_record_are_a_commit(pen: Pen) -> None:
    """Of these two entries, in this order."""
    record, other = promoted_after(pen), entered(pen)

    rules.check_commit([(CAME.entry, None), (record.entry, None)], LIBRARY_LIMITS)

    for drawn in ([CAME], [record, CAME], [CAME, other], [CAME, record, other], [CAME, CAME]):
        with pytest.raises(RuleError, match="promotion: and the record that came by it"):
            rules.check_commit([(one.entry, None) for one in drawn], LIBRARY_LIMITS)


def test_a_promotion_makes_no_more_of_what_it_names(pen: Pen) -> None:
    """A version that is there, no more trusted, of the same sort and size, into another scope that is no narrower."""
    source, record = entered(pen).entry, promoted_after(pen).entry
    closed = rules.close(pen.remember(Draft(text="Elm.", kind=Kind.TASK)), writing(), None).entry
    promotion = CAME.entry
    assert isinstance(promotion, PromotionEntry)
    assert isinstance(record, RecordEntry)
    assert isinstance(source, RecordEntry)
    other = opaque("ns", 2)
    right = Promoted((PROJECT, Scope.PROJECT), (other, Scope.USER), source, source, record)

    for fine in (right, right._replace(source=closed), right._replace(goal=(other, Scope.PROJECT))):
        rules.check_promotion(promotion, fine)

    wrong: list[tuple[dict[str, Any], str]] = [
        ({"goal": right.origin}, "goes to another namespace"),
        ({"origin": (other, Scope.USER), "goal": right.origin}, "goes to another .* from user to project"),
        ({"goal": (other, Scope.STORE)}, "goes to another namespace"),
        ({"origin": (other[::-1], Scope.STORE)}, "goes to another namespace"),
        ({"source": None}, f"names no record of {PROJECT}"),
        ({"source": promotion}, f"names no record of {PROJECT}"),
        ({"body": None}, f"names no record of {PROJECT}"),
        ({"source": replace(source, trust=Trust.UNKNOWN)}, "unknown there, and model_inferred here"),
        ({"body": replace(source, kind=Kind.FACT)}, "is not what it came from"),
        ({"record": replace(record, expires=1)}, "is not what it came from"),
    ]
    for changes, message in wrong:
        with pytest.raises(RuleError, match=f"promotion: {message}"):
            rules.check_promotion(promotion, right._replace(**changes))


def test_a_setting_is_one_that_is_known() -> None:
    """Of a namespace that was made here, at a value that it has, under an id of its own."""
    store, setting = store_chain(), SettingEntry(id=opaque("set", 1), setting="isolated", value=1, namespace=PROJECT)

    for entry in (setting, replace(setting, value=0)):
        rules.check_arranged(entry, store.folded)

    for wrong in ({"setting": "colour"}, {"value": 2}, {"namespace": None}):
        with pytest.raises(RuleError, match=r"setting: \w+ \d is none that rules 1 know, or of no namespace"):
            rules.check_arranged(replace(setting, **wrong), store.folded)
    with pytest.raises(RuleError, match=r"setting: ns_.* was never made here"):
        rules.check_arranged(replace(setting, namespace=opaque("ns", 9)), store.folded)
    store.write(rules.plain(setting))
    with pytest.raises(RuleError, match=r"setting: set_.* is taken"):
        rules.check_arranged(replace(setting, value=0), store.folded)


def test_what_was_erased_is_neither_ended_nor_grounds(pen: Pen) -> None:
    """No close, no retraction, no summary, no replacing; its memory goes on by its key, as a next version."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK, key="tree"))
    closing, retracting = rules.close(task, writing(seed=99), None), rules.retract(task, writing(), None, None)
    judge(pen, closing)
    judge(pen, retracting)
    assert pen.folded.open_tasks()[0] == 1
    pen.erase(task)

    assert pen.folded.open_tasks() == (0, 0)
    for ending in (closing, retracting):
        with pytest.raises(RuleError, match=r"close: .* is not an open task|retract: .* no longer stands"):
            judge(pen, ending)
    with pytest.raises(RuleError, match=r"summary: .* is no longer current"):
        entered(pen, Draft(text="W.", kind=Kind.SUMMARY, sources=(where(task),)))
    with pytest.raises(ConflictError, match="is no longer current"):
        entered(pen, Draft(text="Elm.", replaces=where(task)))
    assert pen.remember(Draft(text="Elm.", key="tree")).version == 2


def test_an_erasure_stands_alone(pen: Pen) -> None:
    """It takes a grant that allows nothing else, and nothing else passes under it."""
    note = entered(pen)
    erasure = ErasureEntry(erases=(b"e" * 32,))

    rules.check_commit([(erasure, None)], LIBRARY_LIMITS)
    rules.check_commit([(note.entry, note.content)], LIBRARY_LIMITS)

    with pytest.raises(RuleError, match="erasure: is the only entry of its commit"):
        rules.check_commit([(note.entry, note.content), (erasure, None)], LIBRARY_LIMITS)


@pytest.mark.parametrize("spelling", ["{0}", "{0}@1", "{0}@2"])
def test_a_record_is_cited_by_its_newest_or_by_any_version(pen: Pen, spelling: str) -> None:
    """The memory alone means its newest version."""
    first = pen.remember(Draft(text="Oak.", key="tree"))
    second = pen.remember(Draft(text="Elm.", key="tree"))

    resting = entered(pen, Draft(text="So.", sources=(spelling.format(first.memory),)))

    assert isinstance(resting.entry, RecordEntry)
    assert resting.entry.sources == ((first if spelling == "{0}@1" else second).digest,)


@pytest.mark.parametrize("version", [0, 3])
def test_a_version_that_is_not_there_is_not_cited(pen: Pen, version: int) -> None:
    """Neither below the first nor above the newest."""
    note = pen.remember("Oak.")

    with pytest.raises((RuleError, UsageError)):
        entered(pen, Draft(text="So.", sources=(f"{note.memory}@{version}",)))


def test_replacing_names_what_is_there_and_stands(pen: Pen) -> None:
    """Absent is not found, ended is a conflict."""
    note = pen.remember("Oak.")
    pen.end(note)

    with pytest.raises(NotFoundError, match=f"no memory {NOBODY} here"):
        entered(pen, Draft(text="Elm.", replaces=NOBODY))
    with pytest.raises(ConflictError, match=re.escape(f"replaces: {where(note)} is no longer current")):
        entered(pen, Draft(text="Elm.", replaces=where(note)))


def test_rejected_and_contested_at_once(pen: Pen) -> None:
    """A rejected value on a key that the user holds is both, and held."""
    wrong = pen.remember(Draft(text="8080", key="port"), Origin.MODEL)
    pen.end(wrong, reject=tombstone("port", "8080"))
    users = pen.remember(Draft(text="443", key="port"))

    again = pen.remember(Draft(text="8080", key="port"), Origin.MODEL)

    assert again.ending is Ending.HELD
    assert pen.folded.holder("port") == users


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Cedar", "cedar"),
        ("  a\t\nb  ", "a b"),
        ("\uff23\uff25\uff24\uff21\uff32", "cedar"),
        ("stra\u00dfe", "strasse"),
        ("e\u0301", "\u00e9"),
        ("e\u200d\u0301", "\u00e9"),
        ("a\u00adb\ufeff", "ab"),
        ("\u200b\u2060", ""),
    ],
)
def test_a_normal_value(text: str, normal: str) -> None:
    """Case, width, spacing and what is not seen are gone."""
    assert rules.normal_value(text) == normal


@pytest.mark.parametrize(
    ("field", "wrong", "right"),
    [
        *((field, "", "x") for field in ("text", "key", "source", "title", "place")),
        ("text", "x" * 8193, "x" * 8192),
        ("key", "x" * 129, "x" * 128),
        *((field, "x" * 1025, "x" * 1024) for field in ("source", "title", "place")),
        *((field, ("",), ("x",)) for field in ("tags", "triggers")),
        *((field, ("x" * 65,), ("x" * 64,)) for field in ("tags", "triggers")),
        *((field, tuple("bcdefghjklmnopqrs"), tuple("bcdefghjklmnopqr")) for field in ("tags", "triggers")),
        ("triggers", ("to the",), ("to the cedar",)),
        *((field, -1, 0) for field in rules.TIMES),
        *((field, MAX_INTEGER + 1, MAX_INTEGER) for field in rules.TIMES),
        *((field, True, 1) for field in rules.TIMES),
        *((field, 2.0, 2) for field in rules.TIMES),
    ],
)
def test_a_draft_that_is_refused_says_which_field_is_wrong(field: str, wrong: Any, right: Any) -> None:
    """One byte, member or microsecond beyond what a field takes; the refusal goes by the name of the field."""
    note = Draft(text="Cedar.")

    with pytest.raises(RuleError) as refusal:
        rules.check_text(replace(note, **{field: wrong}), LIBRARY_LIMITS)

    assert refusal.value.rule == field
    rules.check_text(replace(note, **{field: right}), LIBRARY_LIMITS)


def test_the_time_of_a_draft_is_not_a_matter_of_its_type() -> None:
    """What is no time is refused as a text is, with its limits; what is no text is refused by its type."""
    wrong: Any = 2.0

    with pytest.raises(RuleError, match="due: whole microseconds UTC from 0 to"):
        rules.check_types(Draft(text="Cedar.", due=wrong))
    rules.check_types(Draft(text="Cedar.", due=2))

    with pytest.raises(UsageError, match="key: text or None, not float"):
        rules.check_types(Draft(text="Cedar.", key=wrong))


def test_a_record_holds_all_that_its_draft_says(pen: Pen) -> None:
    """Every text, every time that is of its content."""
    said: dict[str, Any] = {"key": "tree", "source": "Ada", "title": "Trees", "place": "Oslo", "tags": ("a",)}
    said |= {"due": 1, "valid_from": 2, "valid_until": 3, "triggers": ("cedar",)}

    admitted = entered(pen, Draft(text="Cedar.", kind=Kind.PROSPECTIVE, **said))

    assert admitted.content == Content(text="Cedar.", **said)


def test_one_draft_is_a_commit() -> None:
    """And none is not."""
    rules.check_drafts((Draft(text="Cedar."),), LIBRARY_LIMITS)

    with pytest.raises(RuleError, match="drafts: 1 to 256 a commit, not 0"):
        rules.check_drafts((), LIBRARY_LIMITS)


def test_a_commit_takes_as_many_drafts_as_its_limit_whose_keys_differ() -> None:
    """Not one more, and no key twice; drafts without a key do not share one."""
    bare, keyed = Draft(text="Cedar."), Draft(text="Elm.", key="tree")

    rules.check_drafts((bare, bare, keyed), Limits(drafts=3))

    with pytest.raises(RuleError, match="drafts: 1 to 2 a commit, not 3"):
        rules.check_drafts((bare, bare, keyed), Limits(drafts=2))
    with pytest.raises(RuleError, match="key: each key once a commit"):
        rules.check_drafts((bare, keyed, keyed), Limits(drafts=3))


@pytest.mark.parametrize("close", [True, False])
def test_an_ending_holds_the_reason_that_was_given(pen: Pen, *, close: bool) -> None:
    """Sealed with it, as it was said; without one there is no content."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))

    def ending(reason: str | None) -> Admitted:
        return rules.close(task, writing(), reason) if close else rules.retract(task, writing(), reason, None)

    assert ending("It rained.").content == Content(reason="It rained.")
    assert (ending(None).content, ending(None).content_data) == (None, None)


def test_an_ending_that_is_refused_says_why(pen: Pen) -> None:
    """By the name of the rule: a reason is a text within its limit, and less trust ends nothing."""
    task = pen.remember(Draft(text="Water.", kind=Kind.TASK))

    with pytest.raises(RuleError, match="reason: 1 to 4096 bytes, not 4097") as long:
        rules.close(task, writing(), "x" * 4097)
    with pytest.raises(RuleError, match="model_inferred may not close user_explicit") as weak:
        rules.close(task, writing(Origin.MODEL), None)

    assert (long.value.rule, weak.value.rule) == ("reason", "trust")
    rules.close(task, writing(), "x" * 4096)


def test_a_count_says_its_limit() -> None:
    """At most so many, and each once."""
    rules.count_of("tags", ("a", "b"), 2)

    with pytest.raises(RuleError, match="tags: at most 2, not 3"):
        rules.count_of("tags", ("a", "b", "c"), 2)
    with pytest.raises(RuleError, match="tags: each one once"):
        rules.count_of("tags", ("a", "a"), 2)


@pytest.mark.parametrize("size", [0, 1025])
def test_a_name_can_be_read_back(size: int) -> None:
    """A name has the bytes that its reader takes, or it is not written."""

    def make(sealed: Any) -> RecordEntry:
        return RecordEntry(
            memory=NOBODY,
            version=1,
            kind=Kind.NOTE,
            status=Status.ACTIVE,
            retention=Draft(text="x").retention,
            origin=Origin.USER,
            trust=Trust.UNKNOWN,
            content=sealed,
        )

    with pytest.raises(RuleError, match=f"name: 1 to 1024 bytes, not {size}"):
        rules.with_content(make, Content(name="n" * size), bytes(32))

    assert rules.with_content(make, Content(name="n" * 1024), bytes(32)).content == Content(name="n" * 1024)


def test_replacing_keeps_the_key(pen: Pen) -> None:
    """Said again or left out; another one is refused, and one that somebody else holds."""
    tree = pen.remember(Draft(text="Cedar.", key="tree"))
    fern = pen.remember(Draft(text="Fern.", key="shrub"))
    bare = pen.remember("Nothing.")

    for key in (None, "tree"):
        made = entered(pen, Draft(text="Elm.", replaces=where(tree), key=key))
        assert isinstance(made.entry, RecordEntry)
        assert made.content is not None
        assert (made.content.key, made.entry.memory, made.entry.version) == ("tree", tree.memory, 2)
    named = entered(pen, Draft(text="Something.", replaces=where(bare), key="herb"))
    assert named.content is not None
    assert named.content.key == "herb"

    assert not_entered(pen, replaces=where(tree), key="shrub") == (
        "key: the replaced memory's key is 'tree', not 'shrub'"
    )
    assert not_entered(pen, replaces=where(bare), key="shrub") == f"key: 'shrub' is held by {where(fern)}"


def not_entered(pen: Pen, **draft: Any) -> str:
    """What is said of a draft that the rules do not let in, after the name of its rule."""
    with pytest.raises(RuleError) as error:
        entered(pen, Draft(**{"text": "Elm.", **draft}))
    assert error.value.message.startswith(f"{error.value.rule}: ")
    return error.value.message


def test_what_is_cited_is_here_and_once(pen: Pen) -> None:
    """As a source and as covered: no foreign record, no more than may be, no address and no record twice."""
    note = pen.remember("Oak.")
    many = tuple(f"{opaque('mem', number)}@1" for number in range(33))

    for name in ("sources", "covers"):
        assert not_entered(pen, **{name: (NOBODY,)}) == f"{name}: no earlier record {NOBODY} in this namespace"
        assert not_entered(pen, **{name: many}) == f"{name}: at most 32, not 33"
        assert not_entered(pen, **{name: (where(note), where(note))}) == f"{name}: each one once"
        assert not_entered(pen, **{name: (where(note), note.memory)}) == f"{name}: each one once"
    assert isinstance(entered(pen, Draft(text="So.", sources=(where(note),))).entry, RecordEntry)


def test_a_status_is_one_of_its_kind(pen: Pen) -> None:
    """A task is open or closed, all else active, and nothing begins as retracted."""
    offence = "status: a task is open or closed, and nothing else is"

    assert not_entered(pen, kind=Kind.TASK, status=Status.ACTIVE) == offence
    assert not_entered(pen, status=Status.OPEN) == offence
    assert not_entered(pen, status=Status.CLOSED) == offence
    assert not_entered(pen, status=Status.RETRACTED) == "status: retracting is an act of its own, not a record"
    for kind, status in ((Kind.TASK, Status.OPEN), (Kind.TASK, Status.CLOSED), (Kind.NOTE, Status.ACTIVE)):
        assert isinstance(entered(pen, Draft(text="Elm.", kind=kind, status=status)).entry, RecordEntry)


def test_a_procedure_rests_on_what_is_no_summary_and_still_there(pen: Pen) -> None:
    """One such source is enough, be it superseded; a summary, a retracted and an erased one are none."""
    note, other, third = pen.remember("Oak."), pen.remember("Elm."), pen.remember("Fir.")
    condensed = pen.remember(Draft(text="T.", kind=Kind.SUMMARY, sources=(where(third),)))
    retracted = pen.end(note)
    pen.erase(other)
    offence = "procedure: needs a source that is neither a summary nor retracted nor erased"

    for poor in ((), (where(condensed),), (where(note),), (where(retracted),), (where(other),)):
        assert not_entered(pen, kind=Kind.PROCEDURE, sources=poor) == offence

    pen.remember(Draft(text="Firs.", replaces=where(third)))
    for rich in ((where(third),), (where(condensed), where(third))):
        assert isinstance(entered(pen, Draft(text="Do.", kind=Kind.PROCEDURE, sources=rich)).entry, RecordEntry)


def test_a_summary_stands_on_firm_ground(pen: Pen) -> None:
    """It has sources, all current, none of which it ends; what it covers is among them, no open task, and longer."""
    note = pen.remember(Draft(text="A cedar stands here.", key="tree"))
    task = pen.remember(Draft(text="Water the cedar.", kind=Kind.TASK))
    above = pen.remember(Draft(text="Cedar.", kind=Kind.SUMMARY, sources=(where(note),)))
    model = pen.remember("A model says so.", Origin.UNKNOWN)

    def said(**draft: Any) -> str:
        return not_entered(pen, kind=Kind.SUMMARY, **draft)

    assert said() == "summary: needs at least one source"
    assert said(sources=(where(task),), covers=(where(note),)) == "covers: each one is also a source"
    assert said(sources=(where(task),), covers=(where(task),)) == f"covers: {where(task)} is an open task"
    assert said(text="Cedar!", sources=(where(above),), covers=(where(above),)) == (
        "covers: shorter than the 6 bytes covered, not 6"
    )
    for ground in (note, above):
        ends = f"summary: {where(ground)} would end with this very write"
        assert said(key="tree", sources=(where(ground),)) == ends
    assert said(sources=(where(model),), covers=(where(model),)) == (
        "covers: takes trust model_inferred or higher, not unknown"
    )
    for fine in ((where(note),), (where(above),)):
        made = entered(pen, Draft(text="Tree.", kind=Kind.SUMMARY, sources=fine, covers=fine))
        assert isinstance(made.entry, RecordEntry)


def test_open_tasks_fit_into_a_recall(pen: Pen) -> None:
    """So many and no more, and so many bytes; those below the floor do not count."""
    big = rules.MAX_OPEN_TASK_BYTES - rules.TASK_OVERHEAD_BYTES
    said = not_entered(pen, text="w" * big, kind=Kind.TASK)
    assert said.startswith("open_tasks: 16 open tasks and 7168 bytes in all; this one would make it 1 and ")
    frame = int(said.rpartition(" ")[2]) - rules.MAX_OPEN_TASK_BYTES
    assert isinstance(entered(pen, Draft(text="w" * (big - frame), kind=Kind.TASK)).entry, RecordEntry)
    assert not_entered(pen, text="w" * (big - frame + 1), kind=Kind.TASK).endswith("it 1 and 7169")

    for number in range(rules.MAX_OPEN_TASKS):
        pen.remember(Draft(text=f"Task {number}.", kind=Kind.TASK))

    assert "this one would make it 17 and " in not_entered(pen, kind=Kind.TASK)
    with pytest.raises(RuleError, match="would make it 17 and "):
        entered(pen, Draft(text="A model says.", kind=Kind.TASK), Origin.MODEL)
    assert pen.remember(Draft(text="Somebody says.", kind=Kind.TASK), Origin.UNKNOWN).open_task


def test_an_open_task_takes_its_content_and_224_bytes(pen: Pen) -> None:
    """Each of them, the new one too; to the last byte of the 7168."""
    first = pen.remember(Draft(text="Water.", kind=Kind.TASK))
    frame = first.content_bytes - len("Water.")
    rest = 7168 - (first.content_bytes + 224) - (frame + 224)

    assert isinstance(entered(pen, Draft(text="w" * rest, kind=Kind.TASK)).entry, RecordEntry)
    assert not_entered(pen, text="w" * (rest + 1), kind=Kind.TASK).endswith("this one would make it 2 and 7169")
