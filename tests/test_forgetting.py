"""What is forgotten is gone from every file, and everything else goes on as if it had been left alone."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from ledgerstone import (
    Act,
    AuthorityError,
    Caller,
    ConflictError,
    CorruptionError,
    Draft,
    Keyring,
    Kind,
    Memory,
    Mode,
    NotFoundError,
    Record,
    Retention,
    Scope,
    Standing,
    Status,
    UnavailableError,
    UsageError,
    traces,
)
from ledgerstone.anchors import Anchors
from ledgerstone.store import sqlite
from tests.memories import ADA, BOB, ELSEWHERE, EVENING, KEY, MODEL, NOBODY, SECOND, Scratch
from tests.stores import dump, plain_client, process

if TYPE_CHECKING:
    import apsw

TEXT = "The zanzibar quokka\nsaid \u00abxylophone\u00bb at \u201cmidnight\u201d"
WORDS = ("zanzibar", "quokka", "xylophon", "midnight")
MANY = 300


def held(folder: Path, *words: str) -> set[str]:
    """Which of some words stand in any file of a folder, in whatever case."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            found |= {word for word in words if word.lower().encode() in data}
    return found


def fill(memory: Memory, count: int = MANY) -> tuple[str, ...]:
    """Enough other records for the word index to be folded."""
    drafts = [Draft(text=f"filler {number} of the cedar shelf", key=f"shelf-{number}") for number in range(count)]
    parts = [drafts[start : start + 250] for start in range(0, count, 250)]
    return tuple(one.record.address for part in parts for one in memory.remember_many(part))


def summarise(memory: Memory, *covered: Record, text: str = "in short") -> Record:
    """A summary that covers some records."""
    addresses = tuple(record.address for record in covered)
    return memory.remember(Draft(text=text, kind=Kind.SUMMARY, sources=addresses, covers=addresses)).record


@pytest.mark.parametrize("others", [0, MANY])
def test_an_erased_text_is_in_no_file(scratch: Scratch, ada: Memory, tmp_path: Path, others: int) -> None:
    """Neither the text nor its words, key, title, source, place, tags and triggers stay anywhere, folded or not."""
    details = ("opossum-key", "Numbat title", "https://bilby.example", "chapter dunnart", "potoroo", "wombat sighted")
    key, title, source, place, tag, trigger = details
    draft = Draft(
        text=TEXT, key=key, title=title, source=source, place=place, tags=(tag,), triggers=(trigger,), kind=Kind.TASK
    )
    record = ada.remember(draft).record
    ada.close_task(record.memory, reason="The echidna was there.")
    fill(ada, others)
    words = (*WORDS, *details, "bilby", "dunnart", "echidna", record.text or "")
    assert held(tmp_path, *words) >= {*WORDS, *details, "echidna"}

    done = ada.forget(record.memory, dry_run=False)

    assert done.left == ()
    assert held(tmp_path, *words) == set()
    scratch.reopen()
    assert held(tmp_path, *words) == set()
    scratch.heads()


def test_a_long_text_is_gone_from_every_page(ada: Memory, tmp_path: Path) -> None:
    """A text that lies in several pages of the file leaves nothing in any of them."""
    text = " ".join(f"walrus{number}" for number in range(600))
    record = ada.remember(text).record
    words = [f"walrus{number}" for number in range(600)]
    assert held(tmp_path, *words) == set(words)

    assert ada.forget(record.memory, dry_run=False).left == ()

    assert held(tmp_path, *words) == set()


def test_get_names_the_erasing_commit(scratch: Scratch, ada: Memory) -> None:
    """An erased record says so, with the commit that did it, and keeps what is no content."""
    record = ada.remember(TEXT).record

    done = ada.forget(record.address, reason="It was a joke.", dry_run=False)

    gone = ada.get(record.memory)
    assert (gone.text, gone.standing, gone.digest) == (None, Standing.ERASED, record.digest)
    assert done.commits == ((record.namespace, gone.ended_by),)
    assert scratch.heads()[record.namespace][0] == gone.ended_by
    told = ada.audit(target=record.memory)[0]
    assert (told.operation, told.target, told.sequence) == ("forget", record.address, gone.ended_by)


def test_a_dry_run_changes_nothing(scratch: Scratch, ada: Memory) -> None:
    """It says what would go, the same that then goes, and no head and no row moves."""
    first = ada.remember(Draft(text="one", key="k")).record
    second = ada.remember(Draft(text="two", key="k")).record
    heads, rows = scratch.heads(), dump(scratch.path)

    plan = ada.forget(first.memory)

    assert (plan.erased, plan.addresses) == (False, (first.address, second.address))
    assert (scratch.heads(), dump(scratch.path)) == (heads, rows)
    assert ada.forget(first.memory, dry_run=False).addresses == plan.addresses


def test_one_version_goes_and_the_others_stay(scratch: Scratch, ada: Memory) -> None:
    """An address takes out one version; what follows goes on from it, under the same key."""
    for text in ("the first", "the second", "the third"):
        memory = ada.remember(Draft(text=text, key="k")).record.memory
    ada.forget(f"{memory}@2", dry_run=False)
    assert [record.text for record in ada.history(memory)] == ["the first", None, "the third"]

    ada.forget(f"{memory}@3", dry_run=False)
    following = ada.remember(Draft(text="the fourth", key="k")).record

    assert following.address == f"{memory}@4"
    standings = [record.standing for record in ada.history(memory)]
    assert standings == [Standing.SUPERSEDED, Standing.ERASED, Standing.ERASED, Standing.CURRENT]
    scratch.heads()


def test_an_erased_key_is_free(scratch: Scratch, ada: Memory) -> None:
    """Once all of its memory is erased a key belongs to whoever takes it next."""
    first = ada.remember(Draft(text="one", key="k")).record

    ada.forget("key:k", dry_run=False)
    second = ada.remember(Draft(text="two", key="k")).record

    assert (second.version, second.memory == first.memory) == (1, False)
    scratch.heads()
    with pytest.raises(NotFoundError):
        ada.forget("key:other")


def test_a_key_takes_what_contests_it_too(scratch: Scratch, ada: Memory) -> None:
    """Everything that has the key goes, also what never held it; another key stays."""
    ada.remember(Draft(text="by the user", key="k"))
    scratch.by(MODEL).remember(Draft(text="by a model", key="k"))
    other = ada.remember(Draft(text="something else", key="l")).record

    done = ada.forget("key:k", dry_run=False)

    assert len(done.addresses) == 2
    assert [record.text for record in ada.list_records("all").items] == [other.text, None, None]
    scratch.heads()


@pytest.mark.parametrize("version", [1, 2])
def test_a_closed_task_goes_with_the_text_it_carries(scratch: Scratch, ada: Memory, version: int) -> None:
    """Whichever of the two versions is named, both lose their text, and the close its reason."""
    task = ada.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    ada.close_task(task.memory, reason="It rained.")

    done = ada.forget(f"{task.memory}@{version}", dry_run=False)

    assert done.addresses == (f"{task.memory}@1", f"{task.memory}@2")
    history = [(record.text, record.reason, record.status) for record in ada.history(task.memory)]
    assert history == [(None, None, Status.OPEN), (None, None, Status.CLOSED)]
    scratch.heads()


def test_an_erased_task_is_no_obligation(scratch: Scratch, ada: Memory) -> None:
    """An open task that is erased is counted no more; another one still is."""
    first, second = (ada.remember(Draft(text=text, kind=Kind.TASK)).record for text in ("one", "two"))

    ada.forget(first.memory, dry_run=False)

    assert [item.record.address for item in ada.recall("").items] == [second.address]
    scratch.heads()


def test_a_summary_goes_with_what_it_covers(scratch: Scratch, ada: Memory) -> None:
    """Also the summary of that summary; one of something else stays."""
    long = [ada.remember(f"{TEXT}, the {number}th of those that were heard").record for number in range(3)]
    lower = summarise(ada, long[0], long[1], text="two quokkas, in rather many words still")
    upper = summarise(ada, lower, text="quokkas")
    other = summarise(ada, long[2])

    done = ada.forget(long[0].address, dry_run=False)

    assert done.summaries == (*sorted((lower.address, upper.address)),)
    assert [ada.get(record.address).text for record in (long[1], other)] == [long[1].text, other.text]
    assert ada.get(upper.address).standing is Standing.ERASED
    scratch.heads()


def test_a_summary_that_is_kept_is_stale(scratch: Scratch, ada: Memory) -> None:
    """Named by its address it keeps its text, and leaves recall with the ground under it."""
    long = ada.remember(TEXT).record
    summary = summarise(ada, long)

    done = ada.forget(long.address, keep=[summary.address], dry_run=False)

    kept = ada.get(summary.address)
    assert (done.addresses, done.summaries, done.rests) == ((long.address,), (), (summary.address,))
    assert (kept.text, kept.standing) == (summary.text, Standing.STALE)
    scratch.heads()


def test_keeping_what_would_not_go_is_refused(ada: Memory) -> None:
    """A slip in the address of what is to be kept must not cost it; the right one is taken."""
    long = ada.remember(TEXT).record
    summary = summarise(ada, long)

    for wrong in (f"{NOBODY}@1", long.address, summary.memory):
        with pytest.raises(UsageError, match="is no summary that would go"):
            ada.forget(long.address, keep=[wrong], dry_run=False)

    with pytest.raises(UsageError, match="is itself among what is to go"):
        ada.forget([long.address, summary.memory], keep=[summary.address], dry_run=False)

    assert ada.get(long.address).text == TEXT
    assert ada.forget(long.address, keep=[summary.address]).addresses == (long.address,)


def test_what_rests_on_it_stays_and_is_listed(scratch: Scratch, ada: Memory) -> None:
    """A record of its own words that names it as a source keeps them; a summary that only rests on it is stale."""
    source = ada.remember(TEXT).record
    note = ada.remember(Draft(text="So they say.", sources=(source.address,))).record
    summary = ada.remember(Draft(text="in short", kind=Kind.SUMMARY, sources=(source.address,))).record

    done = ada.forget(source.memory, dry_run=False)

    assert done.rests == (*sorted((note.address, summary.address)),)
    standing = [ada.get(record.address).standing for record in (note, summary)]
    assert standing == [Standing.CURRENT, Standing.STALE]
    scratch.heads()


@pytest.mark.parametrize("others", [0, MANY])
def test_counts_and_index_are_right_at_once(scratch: Scratch, ada: Memory, others: int) -> None:
    """Nothing needs to be rebuilt: a rebuild writes the same rows, and a search finds what is left."""
    gone, stays = ada.remember(TEXT).record, ada.remember("Another quokka entirely").record
    fill(ada, others)

    ada.forget(gone.memory, dry_run=False)

    found = [item.record.address for item in ada.recall("quokka zanzibar", mode=Mode.LEXICAL).items]
    assert found == [stays.address]
    heads, rows = scratch.heads(), _rows(scratch)
    ada.rebuild()
    assert (scratch.heads(), _rows(scratch)) == (heads, rows)


def _rows(scratch: Scratch) -> list[object]:
    """All rows but those in which the word index arranges itself."""
    return [
        part for part in dump(scratch.path) if not str(part[0] if isinstance(part, tuple) else "").startswith("post")
    ]


def test_a_repeated_write_answers_erased(scratch: Scratch, ada: Memory) -> None:
    """Said again under its idempotency key, an erased text is not written again; under another key it is."""
    draft = Draft(text=TEXT)
    first = ada.remember(draft, idempotency_key="once")
    ada.forget(first.record.memory, dry_run=False)
    heads = scratch.heads()

    again = ada.remember(draft, idempotency_key="once")

    assert (again.repeated, again.commit) == (True, first.commit)
    assert (again.record.text, again.record.standing) == (None, Standing.ERASED)
    assert scratch.heads() == heads
    assert ada.remember(draft, idempotency_key="twice").record.text == TEXT


def test_a_rejected_value_stays_rejected(scratch: Scratch, ada: Memory, model: Memory) -> None:
    """The tombstone outlives the text: restated by a model it is held, and another value is not."""
    wrong = ada.remember(Draft(text="The lake is salty", key="lake")).record
    ada.retract(wrong.memory, reason="It is fresh.", reject=True)

    ada.forget(wrong.memory, dry_run=False)

    assert model.remember(Draft(text="the lake is SALTY", key="lake")).record.standing is Standing.HELD
    assert model.remember(Draft(text="The lake is deep", key="lake")).record.standing is Standing.CURRENT
    scratch.heads()


def test_content_that_no_erasure_explains_is_missed(scratch: Scratch, ada: Memory) -> None:
    """A content deleted by another program is damage, on reading and in verify; an erased one is not."""
    erased, deleted = (ada.remember(text).record for text in ("one of them", "the other"))
    ada.forget(erased.memory, dry_run=False)
    scratch.heads()

    with _by_hand(scratch) as execute:
        execute("DELETE FROM content WHERE instr(body, CAST('the other' AS BLOB))")

    assert ada.get(erased.memory).standing is Standing.ERASED
    with pytest.raises(CorruptionError, match="is missing"):
        ada.get(deleted.memory)
    assert "missing" in {finding.code for finding in ada.verify().findings}


def test_content_put_back_is_corruption(scratch: Scratch, ada: Memory) -> None:
    """The very bytes that were erased are refused when somebody puts them back."""
    record = ada.remember(TEXT).record
    with _by_hand(scratch) as execute:
        row = execute("SELECT row, salt, body FROM content WHERE instr(body, CAST('zanzibar' AS BLOB))").fetchone()
    ada.forget(record.memory, dry_run=False)
    scratch.heads()

    with _by_hand(scratch) as execute:
        execute("INSERT INTO content(row, salt, body) VALUES(?, ?, ?)", row)

    with pytest.raises(CorruptionError, match="was erased, yet has content"):
        ada.get(record.memory)
    assert "content" in {finding.code for finding in ada.verify().findings}


@contextmanager
def _by_hand(scratch: Scratch) -> Iterator[Callable[..., apsw.Cursor]]:
    connection = plain_client(scratch.path)
    try:
        yield connection.execute
    finally:
        connection.close()


def test_forgetting_takes_a_grant_of_its_own(scratch: Scratch, ada: Memory) -> None:
    """Whoever may read and write may not erase, nor may a door whose host lets nobody; both are on record."""
    record = ada.remember(TEXT).record
    for act in (Act.READ, Act.WRITE):
        ada.grant("bob", act, namespace=record.namespace)
    bob = scratch.by(BOB)
    door = scratch.by(replace(ADA, acts=frozenset(Act) - {Act.FORGET}))

    with pytest.raises(AuthorityError, match="bob may not forget in scope project: no grant"):
        bob.forget(record.memory, dry_run=False)
    for target in (record.memory, "session:morning", f"namespace:{record.namespace}"):
        with pytest.raises(
            AuthorityError, match=r"ada may not forget (in scope \w+|anywhere): not through this door"
        ) as refused:
            door.forget(target, dry_run=False)
        assert "at a terminal" in refused.value.hint
    with pytest.raises(AuthorityError):
        door.expire(dry_run=False)

    assert {event.refusal for event in ada.audit() if event.operation == "forget"} == {"no_grant", "host"}
    assert bob.forget(record.memory).addresses == (record.address,)
    ada.grant("bob", Act.FORGET, namespace=record.namespace)
    assert bob.forget(record.memory, dry_run=False).erased


def test_a_dry_run_shows_what_may_be_read(scratch: Scratch, ada: Memory) -> None:
    """A host that lets nobody erase still lets its caller look at what would go, as far as it may read."""
    record = ada.remember(TEXT).record
    looks = scratch.by(replace(ADA, acts=frozenset({Act.READ})))
    writes = scratch.by(replace(ADA, acts=frozenset({Act.WRITE})))

    for target in (record.memory, "session:morning", f"namespace:{record.namespace}"):
        assert looks.forget(target) == ada.forget(target)
        assert looks.forget(target).addresses == (record.address,)
    for target in (record.memory, f"namespace:{record.namespace}"):
        with pytest.raises(NotFoundError):
            writes.forget(target)
    assert writes.forget("session:morning").addresses == ()
    assert looks.expire() == ada.expire()


def test_what_is_elsewhere_is_not_found(scratch: Scratch, ada: Memory) -> None:
    """A memory of another project and one that never was get the same answer; from there it is found."""
    record = ada.remember(TEXT).record
    there = scratch.by(ELSEWHERE)
    there.remember("Something there.")

    for target in (record.memory, record.digest.hex(), NOBODY, "key:k"):
        with pytest.raises(NotFoundError, match="no memory"):
            there.forget(target, dry_run=False)

    assert ada.forget(record.digest.hex(), dry_run=False).addresses == (record.address,)


def test_a_session_goes_wherever_it_spoke(scratch: Scratch, ada: Memory) -> None:
    """All that was said in it, in every namespace, and nothing that was said in another session."""
    evening = scratch.by(EVENING)
    stays = [ada.remember("Said in the morning.").record, evening.bind(ADA).remember("Also then.").record]
    goes = [
        evening.remember("Said in the evening.").record,
        evening.remember("For the user.", scope=Scope.USER).record,
        evening.remember("For the session.", scope=Scope.SESSION).record,
        scratch.by(replace(ELSEWHERE, session="evening")).remember("In another project.").record,
    ]

    done = ada.forget("session:evening", dry_run=False)

    assert sorted(done.addresses) == sorted(record.address for record in goes)
    assert len(done.commits) == 5
    assert [ada.get(record.memory).text for record in stays] == [record.text for record in stays]
    scratch.heads()
    with pytest.raises(NotFoundError):
        ada.forget("session:midnight")


def test_a_session_does_not_take_the_text_of_another(scratch: Scratch, ada: Memory) -> None:
    """A task that it closed was said elsewhere and stays, closed; the reason that it gave goes."""
    task = ada.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    closed = scratch.by(EVENING).close_task(task.memory, reason="It rained.").record

    done = ada.forget("session:evening", dry_run=False)

    assert (done.addresses, done.reasons, done.left) == ((), (closed.address,), ())
    now = ada.get(task.memory)
    assert (now.text, now.status, now.standing, now.reason) == (task.text, Status.CLOSED, Standing.CURRENT, None)
    scratch.heads()
    assert ada.forget("session:morning", dry_run=False).addresses == (task.address, closed.address)


def test_what_a_principal_said_goes(scratch: Scratch, ada: Memory) -> None:
    """Bob's words go wherever Ada may erase, and hers stay."""
    own = ada.remember("By Ada.").record
    for act in (Act.READ, Act.WRITE):
        ada.grant("bob", act, namespace=own.namespace)
    his = scratch.by(BOB).remember("By Bob.").record

    done = ada.forget("principal:bob", dry_run=False)

    assert (his.namespace, done.addresses) == (own.namespace, (his.address,))
    assert ada.get(own.memory).text == "By Ada."


def test_what_one_write_wrote_goes(scratch: Scratch, ada: Memory) -> None:
    """All records of the commit with that idempotency key, and no other."""
    wrote = ada.remember_many(["one of a pair", "the other of it"], idempotency_key="pair")
    stays = ada.remember("a third", idempotency_key="third").record

    done = ada.forget("write:pair", dry_run=False)

    assert done.addresses == tuple(one.record.address for one in wrote)
    assert ada.get(stays.memory).text == "a third"
    scratch.heads()
    with pytest.raises(NotFoundError):
        ada.forget("write:never")


def test_all_of_a_namespace_goes(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """More than 256 texts take several commits; the namespace stays, empty, and the others are untouched."""
    fill(ada)
    namespace = ada.remember("the last of the cedar shelf").record.namespace
    stays = ada.remember("For the user.", scope=Scope.USER).record

    done = ada.forget(f"namespace:{namespace}", dry_run=False)

    assert (len(done.addresses), len(done.commits), done.left) == (MANY + 1, 3, ())
    assert held(tmp_path, "filler", "cedar shelf", "shelf-7") == set()
    assert ada.get(stays.memory).text == "For the user."
    scratch.heads()
    assert ada.remember("anew", namespace=namespace).record.namespace == namespace
    with pytest.raises(NotFoundError):
        ada.forget(f"namespace:{namespace[:-1]}0")


def test_the_name_of_a_session_goes_with_it(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """From every file, the namespace's too; what else was said there is told by its id, and so it can be named."""
    wombat = scratch.by(replace(ADA, session="wombat-session"))
    wombat.remember("For the session.", scope=Scope.SESSION)
    task = ada.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    closed = wombat.close_task(task.memory).record
    plan = ada.forget("session:wombat-session")
    assert closed.session == "wombat-session"

    done = ada.forget("session:wombat-session", dry_run=False)

    assert (plan.names, len(plan.names)) == (done.names, 2)
    assert (done.left, held(tmp_path, "wombat")) == ((), set())
    opaque = ada.get(closed.address).session
    assert opaque in done.names
    with pytest.raises(NotFoundError):
        ada.forget("session:wombat-session")
    wombat.close_task(ada.remember(Draft(text="Weed", kind=Kind.TASK)).record.memory, reason="by the old name")
    ada.remember("said under the id")
    assert ada.forget(f"session:{opaque}").names == ()
    assert wombat.remember("anew", scope=Scope.SESSION).record.session == "wombat-session"
    heads, rows = scratch.heads(), _rows(scratch)
    ada.rebuild()
    assert (scratch.heads(), _rows(scratch)) == (heads, rows)


def test_the_name_of_a_principal_goes_with_what_it_said(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """And the names of its sessions; its grants then are nobody's, and the next of that name is somebody else."""
    namespace = ada.remember("By Ada.").record.namespace
    for act in (Act.READ, Act.WRITE):
        ada.grant("bandicoot", act, namespace=namespace)
    bandicoot = scratch.by(replace(BOB, principal="bandicoot", session="numbat-session"))
    his = bandicoot.remember("By the other.").record

    done = ada.forget("principal:bandicoot", dry_run=False)

    assert (done.addresses, len(done.names), done.left) == ((his.address,), 2, ())
    assert held(tmp_path, "bandicoot", "numbat") == set()
    gone = ada.get(his.memory)
    assert (gone.principal, gone.session) == (done.names[0], done.names[1])
    with pytest.raises(AuthorityError):
        bandicoot.remember("I am back.")
    ada.grant("bandicoot", Act.READ, namespace=namespace)
    assert bandicoot.get(his.memory).principal == done.names[0]
    scratch.heads()


def test_your_own_name_stays_and_that_is_told(scratch: Scratch, ada: Memory) -> None:
    """Nobody locks themselves out, nor the owner; the texts go all the same, and another's name too."""
    record = ada.remember("By Ada.").record
    for act, scope in ((Act.FORGET, Scope.PROJECT), (Act.ADMIN, Scope.STORE)):
        ada.grant("bob", act, scope=scope)
    ada.grant("bob", Act.FORGET, namespace=record.namespace)

    by_bob = scratch.by(BOB).forget("principal:ada")
    own = ada.forget("principal:ada", dry_run=False)

    assert by_bob.left == ("the name of the store's owner stays: by it the store knows whose it is",)
    assert own.left == ("your own name stays: by it the store knows which grants are yours",)
    assert (own.addresses, own.names) == ((record.address,), (own.names[0],))
    assert own.names[0].startswith("ses_")
    assert ada.remember("Still here.").record.principal == "ada"
    assert ada.forget("principal:bob", dry_run=False).names[0].startswith("prn_")
    scratch.heads()


def test_what_leads_to_a_namespace_goes_with_it(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """Its name, remotes and paths, also those that were detached; its id leads there, and its remote to a new one."""
    namespace = ada.remember("Here.").record.namespace
    ada.alias(namespace, path="/home/quoll/cedar")
    ada.detach(namespace, "/home/quoll/cedar")
    stays = scratch.by(ELSEWHERE).remember("There.").record

    done = ada.forget(f"namespace:{namespace}", dry_run=False)

    assert done.names == (namespace, f"{namespace} remote", f"{namespace} path", f"{namespace} path")
    assert (done.left, held(tmp_path, "here.git", "/src/here", "quoll")) == ((), set())
    scratch.heads()
    assert ada.remember("by its id", namespace=namespace).record.namespace == namespace
    assert ada.remember("by its remote").record.namespace != namespace
    assert scratch.by(ELSEWHERE).get(stays.memory).text == "There."


def test_a_program_s_name_goes_alone(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """What was said through it stays, under its id."""
    record = scratch.by(replace(ADA, host="dunnart")).remember("Through it.").record

    done = ada.forget("host:dunnart", dry_run=False)

    assert (done.addresses, done.left, held(tmp_path, "dunnart")) == ((), (), set())
    assert (ada.get(record.memory).text, ada.get(record.memory).host) == ("Through it.", done.names[0])
    scratch.heads()


def test_a_name_takes_the_grant_to_administer(scratch: Scratch, ada: Memory) -> None:
    """Without it the texts go and the names stay, which is told."""
    record = scratch.by(EVENING).remember("In the evening.").record
    (admin,) = (grant["grant"] for grant in ada.grants() if grant["act"] == "admin")
    ada.revoke(admin)

    done = ada.forget("session:evening", dry_run=False)

    assert (done.addresses, done.names) == ((record.address,), ())
    assert done.left == ("the names in the store chain stay: to erase them takes the grant to administer",)
    assert ada.get(record.memory).session == "evening"


def test_a_reason_goes_by_itself(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """That of a close, of a retraction and of an erasure; text, version and tombstone stay, and a rebuild agrees."""
    task = ada.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    ada.close_task(task.memory, reason="A kowari said so.")
    wrong = ada.remember(Draft(text="The lake is salty", key="lake")).record
    ada.retract(wrong.memory, reason="A planigale tasted it.", reject=True)
    (commit,) = ada.forget(ada.remember("gone").record.memory, reason="The mulgara asked.", dry_run=False).commits
    targets = [f"reason:{task.memory}@2", f"reason:{wrong.memory}@2", f"reason:{commit[0]}@{commit[1]}"]

    done = ada.forget(targets, dry_run=False)

    assert (done.reasons, done.addresses) == (
        (f"{task.memory}@2", f"{wrong.memory}@2", f"{commit[0]}@{commit[1]}"),
        (),
    )
    assert (done.left, held(tmp_path, "kowari", "planigale", "mulgara")) == ((), set())
    assert [ada.get(record.memory).reason for record in (task, wrong)] == [None, None]
    assert scratch.by(MODEL).remember(Draft(text="the lake is SALTY", key="lake")).record.standing is Standing.HELD
    heads, rows = scratch.heads(), _rows(scratch)
    ada.rebuild()
    assert (scratch.heads(), _rows(scratch)) == (heads, rows)
    for target in (*targets, f"reason:{task.memory}@1", f"reason:{NOBODY}@2"):
        with pytest.raises(NotFoundError):
            ada.forget(target)
    with pytest.raises(UsageError, match="a reason is named by"):
        ada.forget(f"reason:{task.memory}")
    assert ada.forget(task.memory, dry_run=False).addresses == (f"{task.memory}@1", f"{task.memory}@2")
    scratch.heads()


@pytest.mark.parametrize("what", ["name", "reason"])
def test_what_was_struck_is_not_put_back(scratch: Scratch, ada: Memory, what: str) -> None:
    """The very bytes of a name or a reason, put back by another program, are refused where they are read."""
    evening = scratch.by(replace(ADA, session="potoroo-session"))
    task = evening.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    ada.close_task(task.memory, reason="The potoroo came.")
    with _by_hand(scratch) as execute:
        rows = execute("SELECT row, salt, body FROM content WHERE instr(body, CAST('potoroo' AS BLOB))").fetchall()
    ada.forget("session:potoroo-session" if what == "name" else f"reason:{task.memory}@2", dry_run=False)
    scratch.heads()
    gone = [row for row in rows if (b'"name"' in bytes(row[2])) == (what == "name")]  # type: ignore[arg-type]

    with _by_hand(scratch) as execute:
        execute("INSERT INTO content(row, salt, body) VALUES(?, ?, ?)", gone[0])

    with pytest.raises(CorruptionError, match="was erased, yet has content"):
        scratch.reopen().get(f"{task.memory}@1" if what == "name" else task.memory)
    assert "content" in {finding.code for finding in scratch.memory.verify().findings}


def test_a_backup_does_not_bring_a_name_back(scratch: Scratch, tmp_path: Path) -> None:
    """An older copy that is accepted loses again the names and reasons that were erased here."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state, replace(ADA, session="wombat-session")) as memory:
        task = memory.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record
    with _anchored(scratch, state) as memory:
        memory.close_task(task.memory, reason="The kowari came.")
    backup = Path(shutil.copy(scratch.path, tmp_path / "backup"))
    with _anchored(scratch, state) as memory:
        memory.forget(["session:wombat-session", f"reason:{task.memory}@2"], dry_run=False)
    shutil.move(backup, scratch.path)

    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=state, check=False) as memory:
        assert memory.verify(accept=True).ok

    assert held(tmp_path, "wombat", "kowari") == set()
    scratch.memory = scratch.open()
    scratch.heads()


def test_erasing_twice_is_erasing_once(scratch: Scratch, ada: Memory) -> None:
    """The second time there is nothing to do, and no commit says there was."""
    record = ada.remember(TEXT).record
    ada.forget(record.memory, dry_run=False)
    heads = scratch.heads()

    again = ada.forget([record.memory, record.address], dry_run=False)

    assert (again.erased, again.addresses, again.commits, again.left) == (True, (), (), ())
    assert scratch.heads() == heads


def test_a_target_that_is_nothing_stops_all(scratch: Scratch, ada: Memory) -> None:
    """One wrong target among several, none, and too many: nothing is erased."""
    record = ada.remember(TEXT).record
    heads = scratch.heads()

    with pytest.raises(NotFoundError):
        ada.forget([record.memory, NOBODY], dry_run=False)
    for targets in ([], [record.memory] * 257):
        with pytest.raises(UsageError, match="1 to 256 targets"):
            ada.forget(targets, dry_run=False)

    assert scratch.heads() == heads
    assert ada.forget([record.memory] * 256).addresses == (record.address,)


def test_a_text_that_others_say_too_is_told(ada: Memory, tmp_path: Path) -> None:
    """The same text in a record that was not named stays with it, and the report says so."""
    one, two = (ada.remember(TEXT).record for _ in range(2))

    first = ada.forget(one.memory, dry_run=False)
    second = ada.forget(two.memory, dry_run=False)

    assert (first.left, second.left) == ((), ())
    assert [line for line in first.unreached if "stand in other records too" in line]
    assert not [line for line in second.unreached if "stand in other records too" in line]
    assert held(tmp_path, *WORDS) == set()


def test_a_reader_that_holds_the_log_is_told(
    scratch: Scratch, ada: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody reads the old state its pages stay in the log, which is said; afterwards it is cleaned."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    record = ada.remember(TEXT).record
    memory = scratch.open()
    with _by_hand(scratch) as execute:
        execute("BEGIN")
        execute("SELECT count(*) FROM content").fetchall()
        held_up = memory.forget(record.memory, dry_run=False)
    assert held_up.erased
    assert any("is being read by another process" in line for line in held_up.left)
    assert any("-wal still holds" in line for line in held_up.left)
    assert memory.get(record.memory).text is None

    again = memory.forget(record.memory, dry_run=False)

    memory.close()
    assert again.left == ()
    assert held(tmp_path, *WORDS) == set()


def test_a_copy_beside_the_store_is_told(scratch: Scratch, ada: Memory) -> None:
    """A file that lies beside the store under its name, and holds the text, is named."""
    record = ada.remember(TEXT).record
    ada.close()
    copy = Path(shutil.copy(scratch.path, f"{scratch.path}.backup"))
    scratch.memory = scratch.open()

    done = scratch.memory.forget(record.memory, dry_run=False)

    assert [line for line in done.left if line.startswith(f"{copy} still holds")] == list(done.left)
    assert len(done.left) == 1


def test_the_store_is_sound_before_it_is_cleaned(
    scratch: Scratch, ada: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies between the commit and the cleaning leaves a store that verifies and does not find it."""
    monkeypatch.setattr(sqlite.SqliteStore, "scrub", lambda _, before: ([], before))
    gone = ada.remember(TEXT).record
    fill(ada)

    ada.forget(gone.memory, dry_run=False)

    assert ada.recall("quokka zanzibar", mode=Mode.LEXICAL).items == ()
    scratch.heads()
    fill(ada)
    scratch.heads()


def test_what_could_not_be_looked_at_is_told(scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is erased, and it is said that nobody looked, or that a backup could bring it back."""
    record = scratch.memory.remember(TEXT).record
    scratch.memory.close()
    with _anchored(scratch, tmp_path / "state") as memory:
        remembered = next((tmp_path / "state").rglob("fence")).with_name("erased")
        remembered.mkdir()

        def refuse(*_: object) -> NoReturn:
            raise OSError("no such program")

        monkeypatch.setattr(traces, "look", refuse)

        done = memory.forget(record.memory, dry_run=False)

        assert memory.get(record.memory).text is None
    assert [line.partition(":")[0] for line in done.left] == [
        "what was erased is not remembered outside the store, so that a backup could bring it back",
        "the files could not be looked through",
    ]
    scratch.memory = scratch.open()


@pytest.mark.parametrize("column", ["memory", "version", "digest"])
def test_a_row_that_leads_astray_erases_nothing(scratch: Scratch, ada: Memory, column: str) -> None:
    """What is erased is what its signed entry says it is, whatever a row says; untouched rows lead to it."""
    named, other = (ada.remember(text).record for text in ("the one named", "another one"))
    value = {"memory": named.memory, "version": 2, "digest": named.digest}[column]
    target = named.digest.hex() if column == "digest" else named.memory
    assert ada.forget(target).addresses == (named.address,)
    with _by_hand(scratch) as execute:
        execute(
            f"UPDATE record SET {column} = ?, prefix = (SELECT prefix FROM record WHERE memory = ?) "  # noqa: S608
            "WHERE memory = ?",
            (value, named.memory, named.memory if column == "version" else other.memory),
        )

    with pytest.raises(CorruptionError):
        ada.forget(target, dry_run=False)

    with _by_hand(scratch) as execute:
        assert execute("SELECT count(*) FROM content WHERE instr(body, CAST('another one' AS BLOB))").get == 1


def test_another_reader_goes_on_after_an_erasure(scratch: Scratch, ada: Memory) -> None:
    """Somebody who counted the rows before somebody else erased some is not told of damage."""
    records = [ada.remember(f"text {number}").record for number in range(3)]
    with scratch.open() as other:
        other.list_records()
        ada.forget(records[0].memory, dry_run=False)

        listed = other.list_records().items

        assert [record.text for record in listed] == ["text 2", "text 1"]
        assert other.get(records[0].memory).standing is Standing.ERASED


def _anchored(scratch: Scratch, state: Path, caller: Caller = ADA) -> Memory:
    return Memory.open(scratch.path, keys=scratch.keys, caller=caller, state=state, clock=lambda: scratch.now)


def test_a_backup_does_not_bring_an_erased_text_back(scratch: Scratch, tmp_path: Path) -> None:
    """An older copy that is accepted loses again whatever was erased here, however much; the rest comes back."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        fill(memory)
        stays = memory.remember("That stays.").record
        goes = memory.remember(TEXT).record
    backup = Path(shutil.copy(scratch.path, tmp_path / "backup"))
    with _anchored(scratch, state) as memory:
        memory.forget(goes.memory, dry_run=False)
        memory.forget([f"key:shelf-{number}" for number in range(256)], dry_run=False)
        memory.forget([f"key:shelf-{number}" for number in range(256, MANY)], dry_run=False)
    shutil.move(backup, scratch.path)
    with pytest.raises(CorruptionError, match="behind commit"):
        _anchored(scratch, state)

    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=state, check=False) as memory:
        assert memory.verify(accept=True).ok

    with _anchored(scratch, state) as memory:
        assert memory.get(goes.memory).standing is Standing.ERASED
        assert [record.text for record in memory.list_records().items] == [stays.text]
        assert memory.verify().ok
    assert held(tmp_path, *WORDS, "filler") == set()
    scratch.memory = scratch.open()


def _put_back(scratch: Scratch, backup: Path, state: Path) -> None:
    """An older copy in the place of the store, which its owner accepts."""
    shutil.move(backup, scratch.path)
    for suffix in ("-wal", "-shm"):
        Path(f"{scratch.path}{suffix}").unlink(missing_ok=True)
    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=state, check=False) as memory:
        assert memory.verify(accept=True).ok


def _dying(path: Path, state: Path, target: str, name: str) -> None:
    """Erase, and be killed in place of a step, or after it if it comes before the commit."""
    step = getattr(Anchors, name)

    def kill(anchors: Anchors, commitments: Iterable[bytes]) -> NoReturn:
        if name == "intend":
            step(anchors, commitments)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    setattr(Anchors, name, kill)
    with Memory.open(path, keys=Keyring(KEY), caller=ADA, state=state) as memory:
        memory.forget(target, dry_run=False)


@pytest.mark.parametrize("reopened", [True, False])
def test_whoever_dies_after_erasing_has_said_so(scratch: Scratch, tmp_path: Path, *, reopened: bool) -> None:
    """Killed right after the commit: an older copy does not bring the text back, whether opened in between or not."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        record = memory.remember(TEXT).record
    backup = Path(shutil.copy(scratch.path, tmp_path / "backup"))

    process(_dying, scratch.path, state, record.memory, "keep_erased").join(60)

    if reopened:
        with _anchored(scratch, state) as memory:
            assert memory.get(record.memory).standing is Standing.ERASED
        files = b"".join(path.read_bytes() for path in scratch.path.parent.glob(f"{scratch.path.name}*"))
        assert not [word for word in WORDS if word.encode() in files]
    _put_back(scratch, backup, state)
    with _anchored(scratch, state) as memory:
        assert memory.get(record.memory).standing is Standing.ERASED
    assert held(tmp_path, *WORDS) == set()
    scratch.memory = scratch.open()


@pytest.mark.parametrize("also", [True, False], ids=["somebody else erases on", "nobody erases on"])
def test_whoever_dies_after_erasing_is_not_drowned_by_another(scratch: Scratch, tmp_path: Path, *, also: bool) -> None:
    """Somebody open all the while erases something else: an older copy brings neither text back."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        record, other = memory.remember(TEXT).record, memory.remember("An echidna at noon.").record
        backup = tmp_path / "backup"
        memory.backup(backup)

        process(_dying, scratch.path, state, record.memory, "keep_erased").join(60)
        if also:
            assert memory.forget(other.memory, dry_run=False).left == ()

    _put_back(scratch, backup, state)
    with _anchored(scratch, state) as memory:
        assert memory.get(record.memory).standing is Standing.ERASED
        assert (memory.get(other.memory).standing is Standing.ERASED) == also
    assert held(tmp_path, *WORDS) == set()
    scratch.memory = scratch.open()


def test_what_one_means_to_erase_is_taken_back_by_nobody_else(tmp_path: Path) -> None:
    """Of two who erase at a time each takes out its own lines, and the file is empty after both."""
    one, two = Anchors(tmp_path, "/a/store"), Anchors(tmp_path, "/a/store")
    first, second = bytes([1]) * 32, bytes([2]) * 32
    one.intend([first])
    two.intend([second])

    two.drop_intended([second])

    assert one.intended() == one.erased(intended=True) == {first}
    one.drop_intended([first])
    assert two.intended() == frozenset()
    assert (one.folder / "erasing").stat().st_size == 0
    one.close()
    two.close()


def _full(_: Anchors, __: Iterable[bytes]) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("how", ["full", "a folder in its place"])
def test_a_store_opens_though_its_erasures_cannot_be_remembered(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Nowhere to write what was erased: every answer says so until an opening can, and nothing is refused for it."""
    state = tmp_path / "state"
    scratch.memory.close()
    erased = Anchors(state, str(scratch.path)).folder / "erased"
    with _anchored(scratch, state) as memory, monkeypatch.context() as patch:
        stays, record = memory.remember("That stays.").record, memory.remember(TEXT).record
        patch.setattr(Anchors, "keep_erased", _full)
        assert [line for line in memory.forget(record.memory, dry_run=False).left if "could bring it back" in line]

    with monkeypatch.context() as patch:
        if how == "full":
            patch.setattr(Anchors, "keep_erased", _full)
        else:
            erased.mkdir()
        with _anchored(scratch, state) as memory:
            listed, found = memory.list_records(), memory.recall("stays")
            assert [one.text for one in listed.items] == [stays.text]
            assert [line for line in listed.notices if "could bring it back" in line]
            assert [line for line in found.notices if "could bring it back" in line]
            assert [line for line in memory.remember("Later.").notices if "could bring it back" in line]

    if how != "full":
        erased.rmdir()
    with _anchored(scratch, state) as memory:
        assert not [line for line in memory.list_records().notices if "could bring it back" in line]
        anchors = Anchors(state, str(scratch.path))
        assert (len(anchors.erased()), anchors.intended()) == (1, frozenset())
        anchors.close()
    scratch.memory = scratch.open()


def test_what_was_erased_is_remembered_though_the_intent_was_not(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the note before the commit fails, the one after it is made, and nothing is left to say."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        record = memory.remember(TEXT).record
        monkeypatch.setattr(Anchors, "intend", _full)

        erased = memory.forget(record.memory, dry_run=False)

        anchors = Anchors(state, str(scratch.path))
        assert erased.left == ()
        assert len(anchors.erased()) == 1
        anchors.close()
    scratch.memory = scratch.open()


def test_whoever_dies_before_erasing_has_erased_nothing(scratch: Scratch, tmp_path: Path) -> None:
    """Killed right before the commit: the text is there, nothing calls it erased, and it can be erased."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        record = memory.remember(TEXT).record

    process(_dying, scratch.path, state, record.memory, "intend").join(60)

    with _anchored(scratch, state) as memory:
        assert memory.get(record.memory).text == TEXT
        assert memory.verify().ok
        anchors = Anchors(state, str(scratch.path))
        assert (anchors.intended(), anchors.erased(intended=True)) == (frozenset(), frozenset())
        assert memory.forget(record.memory, dry_run=False).left == ()
        assert (len(anchors.erased()), anchors.intended()) == (1, frozenset())
        anchors.close()
    scratch.memory = scratch.open()


def test_an_erasure_that_is_not_committed_is_not_remembered(
    scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the commit fails the text stays, and nothing outside the store calls it erased."""
    state = tmp_path / "state"
    scratch.memory.close()
    with _anchored(scratch, state) as memory:
        record = memory.remember(TEXT).record
        anchors, intend = Anchors(state, str(scratch.path)), Anchors.intend

        def fail(anchors: Anchors, commitments: Iterable[bytes]) -> NoReturn:
            intend(anchors, commitments)
            raise ConflictError("not committed")

        monkeypatch.setattr(Anchors, "intend", fail)

        with pytest.raises(ConflictError):
            memory.forget(record.memory, dry_run=False)

        assert memory.get(record.memory).text == TEXT
        assert anchors.erased(intended=True) == frozenset()
        anchors.close()
    scratch.memory = scratch.open()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("signat", "words that the store's own files hold"),
        ("SQLite format", "words that the store's own files hold"),
        ("CREATE TABLE record", "words that the store's own files hold"),
        ("closed", "words that the store's own files hold"),
        ("noteactive", "words that the store's own files hold"),
        ("commitment", "words that the store's own files hold"),
    ],
)
def test_a_word_of_the_store_s_own_is_no_trace(ada: Memory, tmp_path: Path, text: str, why: str) -> None:
    """What the file holds anyway is not taken for what stayed behind, and is told; the rest of it is gone."""
    ada.close_task(ada.remember(Draft(text="Water the ferns", kind=Kind.TASK)).record.memory)
    ada.remember("another note")
    record = ada.remember(Draft(text=text, title=f"zanzibar {text}")).record

    done = ada.forget(record.memory, dry_run=False)

    assert done.left == ()
    assert [line for line in done.unreached if why in line]
    assert held(tmp_path, "zanzibar") == set()


def test_a_line_half_written_hides_no_other(tmp_path: Path) -> None:
    """Of what is remembered as erased, a power cut costs the line that it met, and none before or after."""
    anchors = Anchors(tmp_path, "/a/store")
    before, torn, after = (bytes([number]) * 32 for number in range(3))
    anchors.keep_erased([before, torn])
    file = anchors.folder / "erased"
    file.write_bytes(file.read_bytes().rstrip()[:-7])

    anchors.keep_erased([after])

    assert anchors.erased() == {before, after}
    anchors.close()


SPOILT = {
    "zeros": bytes(65),
    "blanks": b" " * 65,
    "a longer line": b"\n" + b"0" * 65,
    "other letters": b"\n" + b"g" * 64,
    "no text": b"\xff" * 65,
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_what_was_erased_is_not_forgotten_with_a_spoilt_file(tmp_path: Path, spoilt: bytes) -> None:
    """What was never written there is refused, alone or behind what was, and not taken for nothing."""
    anchors = Anchors(tmp_path, "/a/store")
    anchors.keep_erased([bytes(32)])
    file = anchors.folder / "erased"
    kept = file.read_bytes()

    for data in (spoilt, kept + spoilt):
        file.write_bytes(data)
        with pytest.raises(UnavailableError, match="cannot be read"):
            anchors.erased()

    file.write_bytes(kept)
    assert anchors.erased() == {bytes(32)}
    anchors.close()


def test_what_cannot_be_erased_again_is_a_finding(scratch: Scratch, tmp_path: Path) -> None:
    """Who accepts an older copy in which it had no grant to forget is told what came back, and erases it with one."""
    state = tmp_path / "state"
    record = scratch.memory.remember(TEXT).record
    own = [grant for grant in scratch.memory.grants() if (grant["act"], grant["scope"]) == ("forget", "project")]
    scratch.memory.revoke(own[0]["grant"])
    scratch.memory.close()
    backup = Path(shutil.copy(scratch.path, tmp_path / "backup"))
    with _anchored(scratch, state) as memory:
        memory.grant("ada", Act.FORGET, namespace=record.namespace)
        memory.forget(record.memory, dry_run=False)
    shutil.move(backup, scratch.path)

    with Memory.open(scratch.path, keys=scratch.keys, caller=ADA, state=state, check=False) as memory:
        accepted = memory.verify(accept=True)

    assert [(finding.code, finding.namespace) for finding in accepted.findings] == [("erased", record.namespace)]
    with _anchored(scratch, state) as memory:
        assert memory.verify().findings == accepted.findings
        memory.grant("ada", Act.FORGET, namespace=record.namespace)
        assert memory.verify(accept=True).ok
        assert memory.get(record.memory).standing is Standing.ERASED
    scratch.memory = scratch.open()


def test_expired_texts_go_when_they_are_told_to(scratch: Scratch, ada: Memory, tmp_path: Path) -> None:
    """An expired record leaves recall at once, and its text goes by an act that says why, not before."""
    goes = ada.remember(Draft(text=TEXT, expires=scratch.now + SECOND)).record
    stays = ada.remember(Draft(text="For longer.", expires=scratch.now + 9 * SECOND)).record
    always = ada.remember("For ever.").record
    assert ada.expire(dry_run=False).addresses == ()
    scratch.wait(1)
    assert {item.record.address for item in ada.recall("").items} == {stays.address, always.address}
    assert held(tmp_path, *WORDS) == set(WORDS)

    plan, done = ada.expire(), ada.expire(dry_run=False)

    assert (plan.erased, plan.addresses) == (False, (goes.address,))
    assert (done.addresses, done.left) == ((goes.address,), ())
    assert held(tmp_path, *WORDS) == set()
    assert [ada.get(record.memory).text for record in (stays, always)] == ["For longer.", "For ever."]
    scratch.heads()


def test_an_expiry_is_that_of_its_version(scratch: Scratch, ada: Memory) -> None:
    """The older version goes by its own expiry, and the newer, which has none, stays."""
    first = ada.remember(Draft(text="for a moment", key="k", expires=scratch.now + SECOND)).record
    second = ada.remember(Draft(text="for good", key="k")).record
    scratch.wait(2)

    ada.expire(dry_run=False)

    assert [record.text for record in ada.history(first.memory)] == [None, second.text]
    scratch.heads()


def test_expiring_reaches_namespaces_that_nobody_is_bound_to(scratch: Scratch, ada: Memory) -> None:
    """Past sessions and other projects are expired too, wherever the caller may erase."""
    draft = Draft(text="for a moment", expires=scratch.now + SECOND)
    records = [
        scratch.by(EVENING).remember(draft, scope=Scope.SESSION).record,
        scratch.by(ELSEWHERE).remember(draft).record,
    ]
    scratch.wait(2)

    done = ada.expire(dry_run=False)

    assert sorted(done.addresses) == sorted(record.address for record in records)


@pytest.mark.parametrize("retention", [Retention.WORKING, Retention.SESSION, Retention.SHORT_TERM])
def test_a_retention_is_let_go_by_name(scratch: Scratch, ada: Memory, retention: Retention) -> None:
    """Of that retention goes what was said before the time; later words, other retentions and open tasks stay."""
    goes = ada.remember(Draft(text="early", retention=retention)).record
    dated = ada.remember(Draft(text="dated", retention=retention, expires=scratch.now + 99 * SECOND)).record
    task = ada.remember(Draft(text="to do", retention=retention, kind=Kind.TASK)).record
    ada.remember("early, but lasting")
    scratch.wait(1)
    ada.remember(Draft(text="late", retention=retention))

    done = ada.expire(retention=retention, before=scratch.now, dry_run=False)

    assert done.addresses == (goes.address,)
    assert done.left == (f"{task.address} is an open task: close or retract it first",)
    assert ada.get(dated.memory).text == "dated"
    assert len(ada.list_records().items) == 4
    scratch.heads()


def test_what_lasts_is_not_let_go_by_retention(scratch: Scratch, ada: Memory) -> None:
    """Long-term and durable memories go by an expiry of their own or by name; half a question is refused."""
    for retention in (Retention.LONG_TERM, Retention.DURABLE):
        record = ada.remember(Draft(text="to stay", retention=retention)).record
        scratch.wait(1)
        with pytest.raises(UsageError, match="session, short_term, working, not"):
            ada.expire(retention=retention, before=scratch.now, dry_run=False)
        assert ada.get(record.memory).text == "to stay"
    with pytest.raises(UsageError, match="or neither"):
        ada.expire(retention=Retention.SESSION)
    with pytest.raises(UsageError, match="or neither"):
        ada.expire(before=scratch.now)

    assert ada.expire(retention=Retention.SESSION, before=scratch.now).addresses == ()


def test_a_text_that_others_say_in_part_is_not_one_that_they_say(scratch: Scratch) -> None:
    """Two texts with one end: nothing more is to be told of the erased one, which stands nowhere as a whole."""
    end = " the build of the report job failed, and was started again by hand a little later that day"
    gone = scratch.memory.remember(f"Row 1:{end}").record
    scratch.memory.remember(f"Row 2:{end}")

    found = scratch.memory.forget(gone.address, dry_run=False)

    assert not [line for line in found.unreached if "other records too" in line]
