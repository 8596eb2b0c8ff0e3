"""The budget of code (.ci/budget.py) counts lines and names whatever is over its ceiling."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MODULE = '''"""Two lines
of docstring."""
# A comment.
TEXT = """kept
"""


def short() -> int:
    """Docstring."""
    return 1


def long() -> int:
    """A docstring that
    does not count."""
    # A comment counts for the length of a function.
    number = 1
    return number
'''


@pytest.fixture(scope="module")
def budget() -> Any:
    return type("budget", (), runpy.run_path(str(ROOT / ".ci/budget.py")))


@pytest.fixture
def present(budget: Any, tmp_path: Path) -> Any:
    files = {
        "sparkwright/plan/plan.py": MODULE,
        "sparkwright/plan/carried.lua": "-- one\n\nreturn 1\n",
        "sparkwright/plan/table.json": "{}\n",
        "tests/unit/text.lua": "return 1\n",
        "lab/fleet.py": "FLEET = 1\n",
        "catalog/readme.py": "NONE = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return budget.count(tmp_path, files, longest=3)


def test_code_counts_without_comments_and_docstrings(present: Any) -> None:
    assert present.lines == {"sparkwright/plan": 9, "lab": 1}
    assert present.longer == {"sparkwright/plan/plan.py:long": 4}


def test_packages_and_functions_over_their_ceiling_are_listed(budget: Any, present: Any) -> None:
    assert budget.overruns(present, present) == []
    assert budget.overruns(present, budget.Budget({"sparkwright/plan": 8}, 3, {})) == [
        "lab: 1 lines of code, no ceiling in .ci/budget.toml",
        "sparkwright/plan: 9 lines of code, at most 8",
        "sparkwright/plan/plan.py:long: 4 lines, at most 3",
    ]


def test_ceilings_are_read_as_they_were_written(budget: Any, present: Any, tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text(present.text())
    assert budget.Budget.read(tmp_path / "budget.toml") == present


def test_ceilings_of_this_repository_can_be_read(budget: Any) -> None:
    ceilings = budget.Budget.read(ROOT / ".ci/budget.toml")
    assert "sparkwright/host" in ceilings.lines
    assert ceilings.longest == 60
