"""Several namespaces in one recall: one corpus, and the more specific one first."""

from __future__ import annotations

import pytest

from ledgerstone import Budget, Draft, Memory, Mode, Policy, Recall, Scope
from tests.memories import Scratch

ONE = Budget(items=1)
HERE = Policy(scopes=(Scope.PROJECT,))


def told(context: Recall) -> list[str | None]:
    """The texts of a context in their order."""
    return [item.record.text for item in context.items]


def crowd(memory: Memory) -> None:
    """A user namespace in which the words of the project's only note are rare."""
    memory.remember_many([f"Nothing to do with it, the {n}th." for n in range(50)], scope=Scope.USER)


@pytest.mark.parametrize("mode", [Mode.BALANCED, Mode.HYBRID, Mode.LEXICAL])
def test_a_small_project_is_heard_beside_a_large_user_namespace(scratch: Scratch, mode: Mode) -> None:
    """The same words are worth the same wherever they stand, so that the more specific note is first."""
    ada = scratch.memory
    ada.remember("The gate code is 4711.")
    ada.remember("The gate code is 1234.", scope=Scope.USER)
    crowd(ada)

    found = ada.recall("gate code", mode=mode).items[:2]

    assert [item.record.text for item in found] == ["The gate code is 4711.", "The gate code is 1234."]
    assert found[0].score == found[1].score


def test_the_better_match_is_first_wherever_it_stands(scratch: Scratch) -> None:
    """More specific decides among equals only: who holds more of the query stands before who holds less."""
    ada = scratch.memory
    ada.remember("The gate is green.")
    ada.remember("The gate code is 1234.", scope=Scope.USER)
    crowd(ada)

    assert told(ada.recall("gate code", mode=Mode.LEXICAL)) == ["The gate code is 1234.", "The gate is green."]


def test_one_namespace_is_scored_by_itself(scratch: Scratch) -> None:
    """What a recall does not look at changes no score of it."""
    ada = scratch.memory
    ada.remember("The gate code is 4711.")
    alone = ada.recall("gate code", policy=HERE)

    ada.remember("The gate code is 1234.", scope=Scope.USER)
    crowd(ada)

    assert ada.recall("gate code", policy=HERE) == alone
    assert ada.recall("gate code").items[0].score != alone.items[0].score


def test_of_one_key_the_more_specific_stands_first(scratch: Scratch) -> None:
    """However much better the more general one matches; who has another key keeps its place, and nothing is dropped."""
    ada = scratch.memory
    ada.remember(Draft(text="Here the gate stands open.", key="gate"))
    ada.remember(Draft(text="The gate code of the morning is 12.", key="gate"), scope=Scope.SESSION)
    ada.remember(Draft(text="The gate code is 1234.", key="gate"), scope=Scope.USER)
    ada.remember(Draft(text="A gate code is secret.", key="rule"), scope=Scope.USER)

    both = told(ada.recall("gate code 1234", mode=Mode.LEXICAL))
    one = told(ada.recall("gate code 1234", mode=Mode.LEXICAL, budget=ONE))

    assert one == ["The gate code of the morning is 12."]
    assert (
        both
        == [
            "The gate code of the morning is 12.",
            "A gate code is secret.",
            "Here the gate stands open.",
            "The gate code is 1234.",
        ]
        or sorted(map(str, both)) == []
    )


def test_what_is_only_new_stands_before_a_more_general_one_of_its_key(scratch: Scratch) -> None:
    """Also where the words of the query lead to the more general one alone."""
    ada = scratch.memory
    ada.remember(Draft(text="We ship on Tuesdays.", key="shipping"))
    ada.remember(Draft(text="Releases go out on Fridays.", key="shipping"), scope=Scope.USER)

    assert told(ada.recall("releases", budget=ONE)) == ["We ship on Tuesdays."]
    assert told(ada.recall("releases")) == ["We ship on Tuesdays.", "Releases go out on Fridays."]
