"""Each attack of the security page names the tests that perform it."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_ROWS = [
    line.strip("| ").split(" | ")
    for line in (_ROOT / "docs/security.md")
    .read_text()
    .partition("## What stops them")[2]
    .splitlines()
    if line.startswith("| ") and not line.startswith(("| attack |", "| --- |"))
]


@pytest.mark.parametrize("row", _ROWS, ids=[row[0][:60] for row in _ROWS])
def test_each_row_names_tests_that_exist(row: list[str]) -> None:
    attack, defence, tests = row
    assert attack
    assert defence
    assert re.fullmatch(r"(tests/[\w/]+/test_\w+\.py(, |$))+", tests)
    assert [name for name in tests.split(", ") if not (_ROOT / name).is_file()] == []
