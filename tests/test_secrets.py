"""What looks like a credential is not written, through no door, unless somebody who may says that it is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ledgerstone import Act, Draft, Kind, Memory, Mode, Policy, ProjectHints, RuleError, Scope, UsageError
from ledgerstone.core.entries import RecordEntry, decode_entry
from ledgerstone.store import open_store
from tests.core.test_credentials import REAL
from tests.memories import ADA, Scratch
from tests.stores import OWNER, open_memory

TOKEN: Final = REAL["gitlab_pat"]
OTHER: Final = REAL["github_pat"]


def overrides(scratch: Scratch) -> list[tuple[str, ...]]:
    """What the entries of all records name, in the order in which they were written."""
    store = open_store(scratch.path)
    with store.read() as reader:
        row = reader.chains()[1]
        found = [decode_entry(data) for _, data in reader.entries(row.number, 0, 1000)]
    store.close()
    return [entry.overrides for entry in found if isinstance(entry, RecordEntry)]


@pytest.mark.parametrize("field", ["text", "key", "title", "source", "tags"])
def test_a_credential_is_not_written(scratch: Scratch, field: str) -> None:
    """By one verb or the other, wherever in a draft it stands; without it the same draft is."""
    scratch.memory.remember("The project is there.")
    before = scratch.heads()
    held: Any = (TOKEN,) if field == "tags" else TOKEN
    draft = replace(Draft(text="a note"), **{field: held})

    for write in (lambda: scratch.memory.remember(draft), lambda: scratch.memory.remember_many(["fine", draft])):
        with pytest.raises(RuleError, match=f"looks like a credential: {field}, characters 1 to 26: gitlab_pat"):
            write()

    assert scratch.heads() == before
    assert scratch.memory.remember(Draft(text="a note")).record.text == "a note"


def test_a_reason_passes_by_the_name_of_its_rule(scratch: Scratch) -> None:
    """To close, retract or forget; without the name, or with another rule's, nothing is done."""
    memory = scratch.memory
    task = memory.remember(Draft(text="mend the kettle", kind=Kind.TASK)).record.address
    pot, pan = (memory.remember(text).record.address for text in ("the pot is tin", "the pan is iron"))
    acts: list[Callable[[list[str]], object]] = [
        lambda allowed: memory.close_task(task, reason=TOKEN, allow_secrets=allowed),
        lambda allowed: memory.retract(pot, reason=TOKEN, allow_secrets=allowed),
        lambda allowed: memory.forget(pan, reason=TOKEN, allow_secrets=allowed, dry_run=False),
    ]

    for act in acts:
        before = scratch.heads()
        for allowed in ([], ["github_pat"]):
            with pytest.raises(RuleError, match="reason, characters 1 to 26: gitlab_pat"):
                act(allowed)
        assert scratch.heads() == before
        act(["gitlab_pat"])
        assert scratch.heads() != before

    assert memory.get(pot.partition("@")[0]).reason == TOKEN


def test_what_was_let_pass_is_on_record(scratch: Scratch) -> None:
    """The entry of the one record names the rule that found something; no other, and no rule that found nothing."""
    scratch.memory.remember_many(["plain", f"with {TOKEN}"], allow_secrets=["gitlab_pat", "jwt"])

    assert overrides(scratch) == [(), ("gitlab_pat",)]
    assert scratch.memory.verify().findings == ()
    with pytest.raises(RuleError, match="github_pat"):
        scratch.memory.remember(f"{TOKEN} {OTHER}", allow_secrets=["gitlab_pat"])
    with pytest.raises(UsageError, match="no secret rule 'all'"):
        scratch.memory.remember(TOKEN, allow_secrets=["all"])


def test_a_host_may_let_a_rule_pass(scratch: Scratch) -> None:
    """Whoever binds the caller says so, and the entry does as well."""
    scratch.by(replace(ADA, allow_secrets=("gitlab_pat",))).remember(TOKEN)

    assert overrides(scratch) == [("gitlab_pat",)]
    with pytest.raises(RuleError, match="gitlab_pat"):
        scratch.memory.remember(TOKEN)


def test_a_repeated_write_is_scanned_as_the_first_was(scratch: Scratch) -> None:
    """A retry is let pass by the same word, and is not written again."""
    first = scratch.memory.remember(TOKEN, idempotency_key="once", allow_secrets=["gitlab_pat"])

    again = scratch.memory.remember(TOKEN, idempotency_key="once", allow_secrets=["gitlab_pat"])

    assert again.repeated
    assert again.commit == first.commit


NAMED: Final[dict[str, Callable[[Memory, str], object]]] = {
    "a shared namespace": lambda memory, name: memory.share(name),
    "an alias": lambda memory, name: memory.alias(str(memory.bound()["project"]), path=f"/srv/{name}"),
    "a principal": lambda memory, name: memory.grant(name, Act.READ, scope=Scope.USER),
    "a session": lambda memory, name: memory.bind(replace(memory.caller, session=name)).remember("a note"),
    "a host": lambda memory, name: memory.bind(replace(memory.caller, host=name)).remember("a note"),
    "a project": lambda memory, name: memory.bind(
        replace(memory.caller, project=ProjectHints(paths=(f"/src/{name}",)))
    ).use_project(),
    "a reason to forget": lambda memory, name: memory.forget(
        memory.list_records().items[0].address, reason=name, dry_run=False
    ),
}


@pytest.mark.parametrize("what", NAMED)
def test_a_credential_is_no_name(scratch: Scratch, what: str) -> None:
    """Whatever a caller names, and the reason that it gives: refused, and nothing is written; a plain one is taken."""
    scratch.memory.remember_many(["The project is there.", "And so is this."])
    before = scratch.heads()

    with pytest.raises(RuleError, match=r"looks like a credential: (name|reason), .*: gitlab_pat"):
        NAMED[what](scratch.memory, TOKEN)

    assert scratch.heads() == before
    NAMED[what](scratch.by(replace(ADA, allow_secrets=("gitlab_pat",))), TOKEN)
    NAMED[what](scratch.memory, "a plain one")


def test_no_store_is_made_for_a_principal_that_is_a_credential(tmp_path: Path) -> None:
    """It would be the name of whoever owns it."""
    with pytest.raises(RuleError, match="principal, characters 1 to 26: gitlab_pat"):
        open_memory(tmp_path / "store.db", caller=replace(OWNER, principal=TOKEN))

    open_memory(tmp_path / "store.db").close()


ASKED: Final = {
    "the query": (f"what is {TOKEN}", Policy(mode=Mode.LEXICAL)),
    "a key": ("what is it", Policy(mode=Mode.LEXICAL, key=TOKEN)),
    "a tag": ("what is it", Policy(mode=Mode.LEXICAL, tags=("cedar", TOKEN))),
    "a synonym": ("what is it", Policy(mode=Mode.LEXICAL, synonyms={"it": [TOKEN]})),
}


@pytest.mark.parametrize("where", ASKED)
def test_a_query_that_looks_like_a_credential_is_not_kept(scratch: Scratch, where: str) -> None:
    """It is answered, the receipt holds without it, a notice says so, and no byte of it is in the file."""
    memory = scratch.memory
    memory.remember("The cedar is wet.")
    query, policy = ASKED[where]

    context = memory.recall(query, policy=policy, receipt=True)
    plain = memory.recall("what is it", receipt=True)

    assert "receipt: the query looks like a credential (gitlab_pat), and was not kept with it" in context.notices
    assert not any("credential" in notice for notice in plain.notices)
    assert [memory.explain(str(each.receipt)).query for each in (context, plain)] == [None, "what is it"]
    assert memory.verify().ok
    memory.close()
    assert TOKEN.encode() not in scratch.path.read_bytes()
