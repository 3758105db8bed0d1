"""Core with one thing changed at a time, and whether a test minds: ``./dev mutate`` says how often none did.

mutmut says what can be changed. The tests about a module are loaded once. Each change is made in memory, in a process
forked from there, and meets those of them that reach the changed function, the quickest first, up to the first that
fails. Where that function ran while they were loaded, they are loaded anew with the change in it. What an error or a
finding says to people is not changed. A draw by seed is the same every time.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property, partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
CORE: Final = ROOT / "src" / "ledgerstone" / "core"
# In order of weight.
MODULES: Final = (
    *("chain", "merkle", "state", "rules", "sorts", "authority", "verify", "projection", "canonical", "fields"),
    *("namespaces", "signing", "proofs", "receipts", "credentials", "entries", "values", "recall", "ranking", "fusion"),
    *("words", "concepts", "rendering", "wordpiece"),
)
# The tests about a module are those in its own file and these.
BESIDE: Final = {
    "chain": ("core/test_verify.py",),
    "authority": ("core/test_verify.py",),
    "namespaces": ("test_namespaces.py",),
    "projection": ("core/test_rules.py",),
    "rules": ("core/test_projection.py", "core/test_verify.py"),
}
OPTIONS: Final = ("-q", "-p", "no:cacheprovider", "--tb=no", "--hypothesis-profile=mutation")
# How long a test may take with a change, beside a multiple of what it takes without. Seconds of the processor, not of
# the clock: how busy the machine is decides nothing. What waits and does not work is stopped by the clock.
LEAST_SECONDS: Final = 3
TIMES: Final = 4
LOADING_SECONDS: Final = 60
MOST_WAITING: Final = 1800
MOST_BYTES: Final = 4 << 30
# The calls that carry words for people, and what makes words of a string.
_TELLING: Final = frozenset({"refuse", "find", "Finding"})
_WORDS: Final = r".*[A-Za-z]{2,}[,:;]? [A-Za-z]{2,}.*"
_ERRORS: Final = r"\w+Error\("
Say: TypeAlias = Callable[[Any], None]


class Place(NamedTuple):
    """A function of core, or a method of one of its classes."""

    module: str
    owner: str
    name: str

    def __str__(self) -> str:
        return ".".join(filter(None, self))


@dataclass(frozen=True)
class Change:
    """One thing changed in a function: the tree of its module, its class, itself, the node that goes, the new one."""

    place: Place
    number: int
    tree: Any
    owner: Any
    whole: Any
    old: Any
    new: Any

    @cached_property
    def changed(self) -> Any:
        """The function with the change in it."""
        from mutmut.mutation.file_mutation import deep_replace  # noqa: PLC0415

        return deep_replace(self.whole, self.old, self.new)

    @property
    def difference(self) -> str:
        """The lines that go and those that come."""
        before, after = (self.tree.code_for_node(each).splitlines() for each in (self.whole, self.changed))
        lines = unified_diff(before, after, n=0, lineterm="")
        return "\n".join(line for line in lines if line[:2] not in {"--", "++", "@@"})

    @property
    def function(self) -> str:
        """The text of the function, within its class."""
        cst: Any = import_module("libcst")
        within = None if self.owner is None else cst.ClassDef(self.owner.name, cst.IndentedBlock([self.changed]))
        return str(self.tree.code_for_node(within or self.changed))

    @property
    def module(self) -> str:
        """The text of the module."""
        return str(self.tree.deep_replace(self.whole, self.changed).code)

    def apply(self) -> None:
        """Put it into the loaded function."""
        module = sys.modules[f"ledgerstone.core.{self.place.module}"]
        scope = dict(vars(module))
        exec(compile(self.function, str(module.__file__), "exec"), scope)  # noqa: S102 - our own code, changed
        old, new = (_function(names, self.place) for names in (vars(module), scope))
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__

    def load(self) -> None:
        """Have its module loaded with it."""
        path, changed = str(CORE / f"{self.place.module}.py"), self.module
        loading: Any = SourceFileLoader
        genuine = loading.get_code

        def read(loader: SourceFileLoader, fullname: str) -> Any:
            if loader.path != path:
                return genuine(loader, fullname)
            return compile(changed, path, "exec", dont_inherit=True)

        loading.get_code = read


def _function(names: Any, place: Place) -> Any:
    found = vars(names[place.owner])[place.name] if place.owner else names[place.name]
    return getattr(found, "__func__", found)


def changes(module: str) -> list[Change]:
    """All of a module's, in the order of its text."""
    # Only ./dev mutate installs these; what has no types elsewhere has none here.
    cst: Any = import_module("libcst")
    m: Any = import_module("libcst.matchers")
    from mutmut.configuration import config  # noqa: PLC0415
    from mutmut.mutation.file_mutation import create_mutations  # noqa: PLC0415

    if _ERRORS not in config().do_not_mutate_patterns:
        config().do_not_mutate_patterns.append(_ERRORS)
    path = CORE / f"{module}.py"
    made: Any = create_mutations(str(path), path.read_text(encoding="utf-8"))
    tree, mutations, *_ = made
    name = m.Name(m.MatchIfTrue(_TELLING.__contains__))
    telling = m.Call(func=name | m.Attribute(attr=name))
    words = m.SimpleString(m.MatchRegex(_WORDS))
    said = [arg.value for call in m.findall(tree, telling) for arg in call.args]
    said = [each for each in said if m.matches(each, words | m.FormattedString() | m.ConcatenatedString())]
    spared = {id(node) for each in said for node in _nodes(each)}
    owners = {id(each): owner for owner in m.findall(tree, m.ClassDef()) for each in owner.body.body}
    numbers: Counter[Place] = Counter()
    found = []
    for mutation in mutations:
        function, old, new = mutation.contained_by_top_level_function, mutation.original_node, mutation.mutated_node
        if not isinstance(function, cst.FunctionDef) or id(old) in spared or m.matches(old, words):
            continue
        if m.matches(old, telling):
            kept = {id(arg.value) for arg in new.args}
            if all(id(arg.value) in spared | kept for arg in old.args):
                continue
        owner = owners.get(id(function))
        place = Place(module, "" if owner is None else owner.name.value, function.name.value)
        numbers[place] += 1
        found.append(Change(place, numbers[place], tree, owner, function, old, new))
    return found


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for child in tree.children:
        yield from _nodes(child)


def apart(work: Callable[[Say], None], *, bounded: bool = False) -> Iterator[Any]:
    """What some work says, one after the other, in a process forked for it, silent otherwise.

    A bounded one takes only so much time and memory. One that is stopped says nothing more.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _alone(work, sending, bounded=bounded)
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as told:
        while True:
            try:
                yield pickle.load(told)  # noqa: S301 - what a process of ours says
            except EOFError:
                break
    os.waitpid(child, 0)


def _alone(work: Callable[[Say], None], sending: int, *, bounded: bool) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    if bounded:
        _allow(LOADING_SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        signal.alarm(MOST_WAITING)

    def say(said: Any) -> None:
        with os.fdopen(os.dup(sending), "wb") as out:
            pickle.dump(said, out)

    work(say)


def _allow(seconds: float) -> None:
    """Let this process go on for so long."""
    most = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def watch() -> dict[int, CodeType]:
    """Note from now on whatever is called."""
    called: dict[int, CodeType] = {}

    def note(frame: FrameType, _event: str, _given: Any) -> None:
        called[id(frame.f_code)] = frame.f_code

    sys.settrace(note)
    return called


def reached(called: dict[int, CodeType]) -> frozenset[Place]:
    """Stop noting: the functions of core among what was called."""
    sys.settrace(None)
    codes = [(Path(code.co_filename), code.co_qualname.partition(".<locals>")[0]) for code in called.values()]
    return frozenset(
        Place(path.stem, name.rpartition(".")[0], name.rpartition(".")[2])
        for path, name in codes
        if path.parent == CORE
    )


class Loaded:
    """A run of pytest that loads its tests and then hands them over."""

    def __init__(self, work: Callable[[list[pytest.Item]], None]) -> None:
        self._work = work

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of running them."""
        self._work(session.items)
        return True


class Test(NamedTuple):
    """One test: its name, how long it takes, and what it reaches."""

    name: str
    seconds: float
    reached: frozenset[Place]


def measure(items: Sequence[pytest.Item], say: Say) -> None:
    """Run all tests without a change, and say of each that passes what it is."""
    for item in items:
        began, called = time.process_time(), watch()
        passed = passes([item], {})
        if passed:
            say(Test(item.nodeid, time.process_time() - began, reached(called)))


def passes(items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> bool:
    """Whether all of these tests pass, of which each takes so long without a change."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        if item.nodeid in seconds:
            _allow(LEAST_SECONDS + TIMES * seconds[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            return False
    return True


def meet(change: Change, tests: Sequence[Test], by_name: Mapping[str, pytest.Item], say: Say) -> None:
    """Say whether loaded tests pass with a change."""
    change.apply()
    say(passes([by_name[test.name] for test in tests], {test.name: test.seconds for test in tests}))


def meet_anew(change: Change, tests: Sequence[Test], options: Sequence[str], say: Say) -> None:
    """Say whether tests pass that are loaded with a change."""

    def work(items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        passes([by_name[test.name] for test in tests], {test.name: test.seconds for test in tests})

    change.load()
    files = sorted({test.name.partition("::")[0] for test in tests})
    say(pytest.main([*options, *files], plugins=[Loaded(work)]) == 0)


def serve(wanted: Sequence[Change], options: Sequence[str], paths: Sequence[str], say: Say) -> None:
    """Load all tests, and say of each change whether they pass with it, or which of them have to be loaded anew."""

    def work(items: list[pytest.Item]) -> None:
        early = reached(called)
        tests = sorted(apart(partial(measure, items)), key=lambda test: test.seconds)
        say(sorted({item.nodeid for item in items} - {test.name for test in tests}))
        by_name = {item.nodeid: item for item in items}
        for change in wanted:
            place = change.place
            if place in early:
                say([test for test in tests if any(each.module == place.module for each in test.reached)])
            else:
                reaching = [test for test in tests if place in test.reached]
                say(told(partial(meet, change, reaching, by_name)) if reaching else True)

    called = watch()
    pytest.main([*options, *paths], plugins=[Loaded(work)])


def told(work: Callable[[Say], None]) -> Any:
    """What some bounded work says at the end, or None when it was stopped before."""
    return next(reversed([None, *apart(work, bounded=True)]))


def mutate(wanted: Sequence[Change], paths: Sequence[str]) -> Iterator[tuple[Change, bool | None]]:
    """Of each change whether no test minds it; None when they took too long."""
    with tempfile.TemporaryDirectory() as folder:
        options = (*OPTIONS, f"--basetemp={folder}/tests")
        answers = apart(partial(serve, wanted, options, paths))
        red = next(answers, None)
        if red is None or red:
            raise SystemExit(f"tests fail without a change: {red}")
        later = []
        for change, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, list):
                later.append((change, answer))
            else:
                yield change, answer
        for change, tests in later:
            yield change, told(partial(meet_anew, change, tests, options)) if tests else True


def main() -> None:
    """Say of each module how many changes were tried, how many of them no test noticed, and which these are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", metavar="MODULE", help="or MODULE.FUNCTION; all modules without any")
    parser.add_argument("--sample", type=int, help="so many changes of each, drawn by the seed, and not all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", help="with those in these files, and not those about the module")
    given = parser.parse_args()
    os.chdir(ROOT)
    for place in given.places or MODULES:
        module = place.partition(".")[0]
        every = [each for each in changes(module) if f"{each.place}.".startswith(f"{place}.")]
        few = len(every) if given.sample is None else min(given.sample, len(every))
        wanted = random.Random(f"{given.seed} {place}").sample(every, few)
        outcomes = Counter[bool | None]()
        for change, survived in mutate(wanted, given.tests or about(module)):
            outcomes[survived] += 1
            if survived is not False:
                print(
                    f"{change.place} {change.number}{'' if survived else ', too slow'}\n{change.difference}", flush=True
                )
        unnoticed, slow = outcomes[True], outcomes[None]
        print(f"{place}: {few} of {len(every)} changes, {unnoticed} unnoticed, {slow} too slow", flush=True)


def about(module: str) -> list[str]:
    """The files with the tests about a module."""
    own = ROOT / "tests" / "core" / f"test_{module}.py"
    return [*([str(own)] if own.exists() else []), *(f"tests/{each}" for each in BESIDE.get(module, ()))]


if __name__ == "__main__":
    main()
