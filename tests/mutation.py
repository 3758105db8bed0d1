"""Core with one thing changed at a time, and whether a test minds: ``./dev mutate`` says how often none did.

mutmut makes the changes, all of a module's in one file, of which the environment switches one on. Each meets the tests
that are about its module and no others: what these let pass may still be noticed elsewhere. What an error says is not
changed. A draw by seed is the same every time.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
WORK: Final = ROOT / ".mutation"
# The modules in order of weight, each with the tests that are about it.
MODULES: Final = {
    "chain": ("chain", "verify"),
    "state": ("state",),
    "merkle": ("merkle",),
    "canonical": ("canonical",),
    "projection": ("projection", "verify"),
    "rules": ("rules", "verify"),
    "authority": ("authority", "verify"),
    "verify": ("verify",),
    "recall": ("recall",),
    "ranking": ("ranking",),
    "signing": ("signing",),
    "proofs": ("proofs",),
    "entries": ("entries", "verify"),
    "fields": ("fields",),
    "words": ("words",),
}
NEEDED: Final = ("src", "tests", "docs", "tools", "pyproject.toml")
OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutation")
# Seconds of the processor, not of the clock: how busy the machine is decides nothing.
MOST_SECONDS: Final = 60
SWITCH: Final = "MUTANT_UNDER_TEST"
_UNCHANGED: Final = ""


def mutants(home: Path, module: str) -> list[str]:
    """Write all changes of a module into its file; their names."""
    from mutmut.configuration import config  # noqa: PLC0415 - only ./dev mutate installs it
    from mutmut.mutation.file_mutation import mutate_file_contents  # noqa: PLC0415

    os.chdir(home)
    config().do_not_mutate_patterns.append(r"raise \w+Error\(")
    path = home / "src" / "ledgerstone" / "core" / f"{module}.py"
    made = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
    path.write_text(made.code, encoding="utf-8")
    return [f"ledgerstone.core.{module}.{name}" for name in made.mutant_names]


def prepare(module: str) -> Path:
    """A copy of what its tests need."""
    home = WORK / module
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, home)
    return home


def passes(home: Path, module: str, name: str) -> bool | None:
    """Whether the module's tests pass with a change; None when they take too long. In a process of its own."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.environ[SWITCH] = name
        sys.path.insert(0, str(home / "src"))
        os.chdir(home)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os._exit(pytest.main([*OPTIONS, *(f"tests/core/test_{about}.py" for about in MODULES[module])]))
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status) == 0


def difference(home: Path, name: str) -> str:
    """What a change is: the lines that go and those that come."""
    module, _, changed = name.rpartition(".")
    original = changed.rpartition("__mutmut_")[0] + "__mutmut_orig"
    path = home / "src" / Path(*module.split(".")).with_suffix(".py")
    lines = path.read_text(encoding="utf-8").splitlines()
    before, after = (_body(lines, each) for each in (original, changed))
    return "\n".join(line for line in unified_diff(before, after, n=0) if line[:2] not in {"--", "++", "@@"})


def _body(lines: list[str], name: str) -> list[str]:
    start = next(number for number, line in enumerate(lines) if line.lstrip().startswith(f"def {name}("))
    depth = len(lines[start]) - len(lines[start].lstrip())
    rest = lines[start + 1 :]
    # A signature over several lines closes at the depth of its function.
    ends = (
        n for n, line in enumerate(rest) if line.strip() and not line.startswith((" " * (depth + 1), " " * depth + ")"))
    )
    return rest[: next(ends, len(rest))]


def mutate(module: str, *, sample: int | None, seed: int) -> None:
    """Say of a module how many changes were tried, how many of them no test noticed, and which these are."""
    home = prepare(module)
    every = mutants(home, module)
    if not passes(home, module, _UNCHANGED):
        raise SystemExit(f"{module}: its tests fail without a change")
    names = every if sample is None else random.Random(f"{seed} {module}").sample(every, min(sample, len(every)))
    told = {name: passes(home, module, name) for name in names}
    survivors = [name for name in names if told[name]]
    slow = sum(each is None for each in told.values())
    print(f"{module}: {len(names)} of {len(every)} changes, {len(survivors)} unnoticed, {slow} too slow", flush=True)
    for name in survivors:
        print(f"{name.rpartition('.')[2]}\n{difference(home, name)}", flush=True)


def main() -> None:
    """Each module in a process of its own, since mutmut keeps to one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(MODULES)}; all without any")
    parser.add_argument("--sample", type=int, help="so many changes of each module, drawn by the seed, and not all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if len(given.modules) == 1:
        mutate(given.modules[0], sample=given.sample, seed=given.seed)
        return
    sample = [] if given.sample is None else ["--sample", str(given.sample)]
    for module in given.modules or MODULES:
        command = [sys.executable, "-m", "tests.mutation", module, "--seed", str(given.seed), *sample]
        subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
