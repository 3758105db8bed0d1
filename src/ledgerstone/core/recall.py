"""Which candidates make up a context: obligations first, lanes interleaved, the budget kept, nothing cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from ledgerstone.core import canonical, concepts
from ledgerstone.core.sorts import check_fields, check_moment
from ledgerstone.core.values import (
    MAX_INTEGER,
    MAX_KEY_BYTES,
    MAX_MAINTAINED,
    MAX_NAMED,
    MAX_TAG_BYTES,
    MAX_TAGS,
    Budget,
    Kind,
    Lane,
    Mode,
    Policy,
    Recalled,
    Record,
    Scope,
    Standing,
    Status,
    time_text,
)
from ledgerstone.errors import CapacityError, UsageError

LEAST_TOKENS: Final = 256
ENVELOPE_BYTES_A_TOKEN: Final = 2
LEAST_BUDGET: Final = Budget(bytes=512, items=1, candidates=1)
MOST_BUDGET: Final = Budget(bytes=1_048_576, items=256, candidates=512)
# What the envelope around the entries may take: mode, notice, receipt, every reason for what was left out.
ENVELOPE_BYTES: Final = 264
# What the name and the brackets of the section below the floor may take of its budget.
SECTION_BYTES: Final = 24
T = TypeVar("T")
# What a text costs a model, in its tokens.
Count = Callable[[str], int]


def check_budget(budget: Budget) -> None:
    """Every part of a budget within its limits; UsageError says limit and offence."""
    for name in ("bytes", "items", "candidates"):
        least, value, most = getattr(LEAST_BUDGET, name), getattr(budget, name), getattr(MOST_BUDGET, name)
        if type(value) is not int or not least <= value <= most:
            raise UsageError(f"budget {name}: {least} to {most}, not {value!r}")
    tokens = budget.tokens
    if tokens is not None and not (type(tokens) is int and LEAST_TOKENS <= tokens <= MOST_BUDGET.bytes):
        raise UsageError(f"budget tokens: {LEAST_TOKENS} to {MOST_BUDGET.bytes}, not {tokens!r}")


def check_policy(policy: Policy) -> None:
    """A policy that can be followed: nothing in it contradicts itself; UsageError says what does."""
    check_fields(policy)
    maintained = policy.mode is Mode.TASK_MAINTENANCE
    if maintained != bool(policy.tasks):
        raise UsageError("tasks: mode task_maintenance shows the open tasks that are named, and no other mode does")
    if len(policy.tasks) > MAX_MAINTAINED or len(set(policy.tasks)) != len(policy.tasks):
        raise UsageError(f"tasks: 1 to {MAX_MAINTAINED}, each once, not {len(policy.tasks)}")
    if len(policy.namespaces) > MAX_NAMED:
        raise UsageError(f"namespaces: at most {MAX_NAMED}, not {len(policy.namespaces)}")
    _check_worded_filters(policy)
    if policy.synonyms:
        # Also where no mode asks for them: a receipt says them.
        concepts.checked(policy.synonyms)
    past = policy.as_of is not None or policy.at is not None
    if policy.as_of is not None and policy.at is not None:
        raise UsageError("as_of and at: one of them says which past state is meant")
    if policy.at is not None and (len(policy.namespaces) != 1 or policy.scopes):
        raise UsageError("at: a sequence is of one namespace, so exactly one namespace is named with it")
    if maintained and (past or policy.history):
        raise UsageError("task_maintenance: open tasks are settled as they stand now")
    for name in ("as_of", "since", "until"):
        check_moment(name, getattr(policy, name))
    if policy.at is not None and not 0 <= policy.at <= MAX_INTEGER:
        raise UsageError(f"at: a sequence from 0 to {MAX_INTEGER}, not {policy.at}")
    if policy.since is not None and policy.until is not None and policy.since > policy.until:
        raise UsageError("since: not after until")


def _check_worded_filters(policy: Policy) -> None:
    """A key and tags that a record can have."""
    if policy.key is not None:
        canonical.text(policy.key, name="key", least=1, most=MAX_KEY_BYTES)
    if len(policy.tags) > MAX_TAGS or len(set(policy.tags)) != len(policy.tags):
        raise UsageError(f"tags: at most {MAX_TAGS}, each once, not {len(policy.tags)}")
    for tag in policy.tags:
        canonical.text(tag, name="tags", least=1, most=MAX_TAG_BYTES)


def lean(record: Record, lane: Lane | None = None) -> dict[str, Any]:
    """A record as an entry of a context: what a model needs and no more, since the budget pays for it.

    Always address, text, kind, scope and trust; key, status, due, standing and lane where they say something, and of a
    shared namespace its name, or its id where that was erased.
    """
    entry: dict[str, Any] = {
        "id": record.address,
        "text": record.text,
        "kind": record.kind.value,
        "scope": record.scope.value,
        "trust": record.trust.word,
    }
    if record.scope is Scope.SHARED:
        entry["namespace_name"] = record.namespace_name or record.namespace
    if record.key is not None:
        entry["key"] = record.key
    if record.status is not Status.ACTIVE:
        entry["status"] = record.status.value
    if record.due is not None:
        entry["due"] = time_text(record.due)
    if record.standing is not Standing.CURRENT:
        entry["standing"] = record.standing.value
    if lane is not None and lane is not Lane.LEXICAL:
        entry["lane"] = lane.value
    return entry


def envelope(notices: Iterable[str]) -> int:
    """The bytes that a context needs beside its entries."""
    return ENVELOPE_BYTES + sum(map(_noticed, notices))


def headed(heads: Mapping[str, tuple[int, bytes]]) -> int:
    """The bytes of the heads that a context was read at, where they are sent along."""
    named = {name: {"sequence": sequence, "commit": commit.hex()} for name, (sequence, commit) in heads.items()}
    return len(orjson.dumps({"heads": named}))


def _noticed(notice: str) -> int:
    return len(orjson.dumps(notice)) + 24


def select(
    tasks: Iterable[Recalled],
    rest: Iterable[T],
    prove: Callable[[T, int], Recalled | str],
    *,
    budget: Budget,
    overhead: int,
    notices: Sequence[str] = (),
    count: Count | None = None,
) -> Selection:
    """Fill a context: all tasks, then of the notices and of the rest, in order, whatever fits.

    It is shown lane by lane, by rank in each. No notice is cut, and none costs the tasks their place: those that do not
    fit are counted as left out.

    ``prove`` turns a candidate and its place in the context into an entry, which may give itself another rank among
    those of its lane, or says why it is left out. ``count`` says what a text costs of the budget's tokens; without it
    they are estimated. CapacityError when the ``overhead`` or the tasks alone do not fit; it names what they need.
    """
    spent = _Spent(budget, count or estimate, overhead)
    if spent.over():
        raise CapacityError(
            f"what stands around the entries needs {spent}; the budget has {_amount(budget.bytes, budget.tokens)}",
            hint=f"raise the budget to {spent.enough()}, or ask for fewer namespaces",
        )
    chosen = list(tasks)
    for task in chosen:
        spent.add(lean(task.record, task.lane))
    if len(chosen) > budget.items or spent.over():
        raise CapacityError(
            f"the {len(chosen)} open tasks need {spent} and {len(chosen)} items; "
            f"the budget has {_amount(budget.bytes, budget.tokens)} and {budget.items} items",
            hint=f"raise the budget to {spent.enough()} and {max(len(chosen), budget.items)} items, "
            "or close tasks: ledgerstone list tasks names them, "
            f"and ledgerstone recall --tasks ADDRESS shows up to {MAX_MAINTAINED} of them to settle",
        )
    told = [notice for notice in notices if spent.note(notice)]
    untold = len(notices) - len(told)
    left_out: dict[str, int] = {"notices": untold} if untold else {}
    there = {task.record.address for task in chosen}
    for candidate in rest:
        if len(chosen) == budget.items:
            left_out["items"] = left_out.get("items", 0) + 1
            continue
        found = prove(candidate, len(chosen))
        if isinstance(found, str):
            left_out[found] = left_out.get(found, 0) + 1
            continue
        if found.record.address in there:
            continue
        short = spent.add(lean(found.record, found.lane), only_if_it_fits=True)
        if short is not None:
            left_out[short] = left_out.get(short, 0) + 1
            continue
        there.add(found.record.address)
        chosen.append(found)
    chosen.sort(key=lambda item: (_SHOWN[item.lane], item.rank))
    ranked = enumerate(_specific_first(chosen))
    shown = tuple(item if item.rank == rank else replace(item, rank=rank) for rank, item in ranked)
    return Selection(shown, left_out, spent.bytes, None if budget.tokens is None else spent.tokens, tuple(told))


def _specific_first(chosen: Sequence[Recalled]) -> list[Recalled]:
    """The same entries, but that of those with one key the more specific take the places before the more general.

    Open tasks stay where they are: they are ordered by when they are due.
    """
    places: dict[str, list[int]] = {}
    for place, item in enumerate(chosen):
        if item.record.key is not None and item.lane is not Lane.TASKS:
            places.setdefault(item.record.key, []).append(place)
    ordered = list(chosen)
    for same in places.values():
        items = sorted([chosen[place] for place in same], key=lambda item: _SPECIFIC[item.record.scope])
        for place, item in zip(same, items, strict=True):
            ordered[place] = item
    return ordered


_SPECIFIC: Final = {scope: place for place, scope in enumerate(Scope)}

# Words before what is only new: what stays the same from one recall to the next stands first.
_SHOWN: Final = {Lane.TASKS: 0, Lane.LEXICAL: 1, Lane.SEMANTIC: 1, Lane.PROCEDURAL: 2, Lane.RECENT: 3}


def section(
    rest: Iterable[T],
    prove: Callable[[T, int], Recalled | str],
    *,
    most_bytes: int,
    budget: Budget,
    count: Count | None,
) -> Selection:
    """What lies below the floor, within bytes of its own; of items as many as a context, of tokens what is left."""
    around = SECTION_BYTES // ENVELOPE_BYTES_A_TOKEN
    tokens = None if budget.tokens is None else max(budget.tokens - around, 0)
    room = replace(budget, bytes=max(most_bytes - SECTION_BYTES, 0), tokens=tokens)
    found = select((), rest, prove, budget=room, overhead=0, count=count)
    if not found.items:
        return found
    return found._replace(
        bytes=found.bytes + SECTION_BYTES, tokens=None if found.tokens is None else found.tokens + around
    )


class Selection(NamedTuple):
    """A filled context: its entries, what was left out by reason, the bytes, the tokens if limited, and the notices."""

    items: tuple[Recalled, ...]
    left_out: dict[str, int]
    bytes: int
    tokens: int | None
    notices: tuple[str, ...]


NOTHING: Final = Selection((), {}, 0, None, ())


class _Spent:
    """What a context has cost so far."""

    __slots__ = ("_budget", "_count", "bytes", "tokens")

    def __init__(self, budget: Budget, count: Count, overhead: int) -> None:
        self._budget = budget
        self._count = count
        self.bytes = overhead
        # The envelope is plain ASCII words and marks: its bytes are more than its tokens.
        self.tokens = overhead // ENVELOPE_BYTES_A_TOKEN if budget.tokens is not None else 0

    def __str__(self) -> str:
        return _amount(self.bytes, None if self._budget.tokens is None else self.tokens)

    def enough(self) -> str:
        """A budget that suffices for it, and is no smaller than the one there is."""
        least = self._budget.tokens
        return _amount(max(self.bytes, self._budget.bytes), None if least is None else max(self.tokens, least))

    def over(self) -> bool:
        """Whether it is more than there is."""
        return self.bytes > self._budget.bytes or self.tokens > (self._budget.tokens or 0)

    def note(self, notice: str) -> bool:
        """Charge a notice, if it fits."""
        size = self.bytes + _noticed(notice)
        tokens = 0 if self._budget.tokens is None else self.tokens - (-_noticed(notice) // ENVELOPE_BYTES_A_TOKEN)
        if size > self._budget.bytes or tokens > (self._budget.tokens or 0):
            return False
        self.bytes, self.tokens = size, tokens
        return True

    def add(self, entry: Mapping[str, Any], *, only_if_it_fits: bool = False) -> str | None:
        """Charge an entry; what there is too little of, if it may not be charged then."""
        data = canonical.encode(dict(entry))
        total, tokens = self.bytes + len(data) + 1, 0
        if self._budget.tokens is not None:
            counted = self._count(data.decode())
            if type(counted) is not int or counted < 0:
                raise UsageError(f"count: a whole number of tokens, not {counted!r}")
            tokens = self.tokens + counted + 1
        if only_if_it_fits and total > self._budget.bytes:
            return "bytes"
        if only_if_it_fits and tokens > (self._budget.tokens or 0):
            return "tokens"
        self.bytes, self.tokens = total, tokens
        return None


def _amount(size: int, tokens: int | None) -> str:
    return f"{size} bytes" if tokens is None else f"{size} bytes and {tokens} tokens"


def estimate(text: str) -> int:
    """No fewer tokens than a byte-pair encoder makes of a text, as a rule; for a model that brings no counter.

    A run of letters counts a token for every three, a run of digits one for every two, every other visible ASCII
    character and every line break one, and a run of spaces one; beyond ASCII each character counts its bytes in UTF-8
    less one. Bytes are never passed off as tokens: English comes to a third or so of its bytes.
    """
    total = 0
    for run in _RUNS.finditer(text):
        size = run.end() - run.start()
        match run.lastgroup:
            case "letters":
                total += -(-size // 3)
            case "digits":
                total += -(-size // 2)
            case "marks":
                total += size
            case "spaces":
                total += 1
            case _:
                total += len(run[0].encode("utf-8", "surrogatepass")) - size
    return total


_RUNS: Final = re.compile(
    "(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<marks>[!-/:-@\\[-`{-~\n\r\t]+)|(?P<spaces>  +)|[^\x00-\x7f]+"
)


def is_open(record: Record) -> bool:
    """An open task that nothing ended, though its time may be over."""
    return record.kind is Kind.TASK and record.status is Status.OPEN and record.standing in _OPEN


_OPEN: Final = frozenset({Standing.CURRENT, Standing.COVERED, Standing.EXPIRED})
