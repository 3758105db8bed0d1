"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_library_example_runs_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one Python block of the README is run from top to bottom, its assertions included."""
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - our own document

    assert (tmp_path / "agent.db").is_file()


def test_the_library_example_fits_twenty_lines() -> None:
    """Somebody new reads it in one look."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert len(example.splitlines()) <= 20
