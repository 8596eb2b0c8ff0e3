"""Each attack of the security page names the tests that perform it."""

import re
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_TABLE = (_ROOT / "docs/security.md").read_text().partition("## What stops them")[2]
_ROWS = [line.strip("| ").split(" | ") for line in _TABLE.splitlines()
         if line.startswith("| ") and not line.startswith(("| attack |", "| --- |"))]  # fmt: skip


def test_each_row_names_tests_that_exist() -> None:
    for attack, defence, tests in _ROWS:
        assert attack
        assert defence
        assert re.fullmatch(r"(tests/[\w/]+/test_\w+\.py(, |$))+", tests), attack
        assert [name for name in tests.split(", ") if not (_ROOT / name).is_file()] == [], attack
