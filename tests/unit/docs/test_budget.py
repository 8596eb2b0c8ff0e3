"""The budget of code (.ci/budget.py) counts lines and names whatever is over its ceiling."""

import runpy
from pathlib import Path
from typing import Any

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


def test_code_over_its_ceiling_is_listed(tmp_path: Path) -> None:
    budget: Any = type("budget", (), runpy.run_path(str(ROOT / ".ci/budget.py")))
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
    present = budget.count(tmp_path, files, longest=3)
    assert present.lines == {"sparkwright/plan": 9, "lab": 1}
    assert present.longer == {"sparkwright/plan/plan.py:long": 4}
    assert budget.overruns(present, present) == []
    assert budget.overruns(present, budget.Budget({"sparkwright/plan": 8}, 3, {})) == [
        "lab: 1 lines of code, no ceiling in .ci/budget.toml",
        "sparkwright/plan: 9 lines of code, at most 8",
        "sparkwright/plan/plan.py:long: 4 lines, at most 3",
    ]
    (tmp_path / "budget.toml").write_text(present.text())
    assert budget.Budget.read(tmp_path / "budget.toml") == present
    ceilings = budget.Budget.read(ROOT / ".ci/budget.toml")
    assert "sparkwright/host" in ceilings.lines
    assert ceilings.longest == 60
