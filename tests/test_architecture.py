"""The rooms hold: imports run one way, and ARCHITECTURE.md names what exists."""

import pkgutil
import re
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[\w./-]*\w\.(?:py|md|toml|txt)")
FOLDER = re.compile(r"[\w.-][\w./-]*/")
DOTTED = re.compile(r"[a-z_]\w*(?:\.\w+)+")


def modules() -> dict[str, list[str]]:
    """Every module of the package by its last name: ``{"rules": ["ledgerstone.core.rules"], ...}``."""
    found: dict[str, list[str]] = {}
    for path in (SOURCE / "ledgerstone").rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found.setdefault(parts[-1], []).append(".".join(parts))
    return found


def resolves(dotted: str) -> bool:
    """Whether a dotted name can be imported, down to its last attribute."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def names_nothing(text: str) -> list[str]:
    """The names in a document's code that stand for nothing: files, folders, modules and what is in them.

    A path may be shortened from the left (``core/rules.py``), and so may a module (``rules.admit``). A dotted
    name that begins with no module of ours is somebody else's and not looked at.
    """
    known = modules()
    paths = [
        "/" + path.relative_to(ROOT).as_posix()
        for room in (SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "docs", ROOT / "tools")
        for path in (room, *room.rglob("*"))
    ] + ["/" + path.name for path in ROOT.iterdir()]
    lost = []
    for word in (word.split("(")[0].strip("`,;:") for code in CODE.findall(text) for word in code.split()):
        first, _, rest = word.partition(".")
        if FILE.fullmatch(word) or FOLDER.fullmatch(word):
            exists = any(path.endswith("/" + word.rstrip("/")) for path in paths)
        elif DOTTED.fullmatch(word) and first in known:
            exists = resolves(word) or any(resolves(f"{module}.{rest}") for module in known[first])
        else:
            continue
        if not exists:
            lost.append(word)
    return lost


def test_imports_run_one_way() -> None:
    """Every contract in pyproject.toml is kept: who may import whom, and what core never touches."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True) == 0


def test_architecture_names_only_what_exists() -> None:
    """Each file, folder, module and function that ARCHITECTURE.md names in code is there under that name."""
    page = ROOT / "ARCHITECTURE.md"
    assert page.is_file(), "ARCHITECTURE.md is missing"

    assert names_nothing(page.read_text(encoding="utf-8")) == []


def test_every_decision_is_in_the_index() -> None:
    """The list of decisions leads to each record, once and in order."""
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))

    listed = re.findall(
        r"^\| \[(\d{4})\]\((.*?)\) \|", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )

    assert listed == [(name[:4], name) for name in records]


def test_every_variable_that_is_read_is_documented() -> None:
    """What the host looks for in the environment, by its whole name, docs/cli.md names."""
    host = (SOURCE / "ledgerstone" / "entrypoints" / "host.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', host))

    assert {"CODEX_HOME", "LEDGERSTONE_HOME"} <= read
    assert {name for name in read - {"HOME"} if f"`{name}`" not in page} == set()


def test_a_wrong_name_is_noticed() -> None:
    """The check above tells a name that stands for nothing from its neighbour that stands for something."""
    right = "`errors.py`, `core/`, `errors.NotFoundError`, `ledgerstone.errors`, `somebody.elses`"
    wrong = "`mistakes.py`, `heart/`, `errors.FoundError`, `ledgerstone.mistakes`"
    tree = "```\ncore/\n  absent.py   the heart\n```"

    assert names_nothing(right) == []
    assert names_nothing(f"{wrong}\n{tree}") == [
        "mistakes.py",
        "heart/",
        "errors.FoundError",
        "ledgerstone.mistakes",
        "absent.py",
    ]
