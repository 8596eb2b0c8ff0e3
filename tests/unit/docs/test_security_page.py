"""Each attack of the security page names the tests that perform it."""

import re

from docs.generate.attacks import attacks
from tests.unit.builders import ROOT

_NAME = re.compile(r"tests/[\w/]+/test_\w+\.py")


def test_each_attack_names_tests_that_exist() -> None:
    rows = attacks()
    assert len(rows) > 75
    for row in rows:
        assert all(row[key] for key in ("attack", "defence", "tests")), row
        assert not [path for path in row["tests"] if not _NAME.fullmatch(path)], row["attack"]
        assert not [path for path in row["tests"] if not (ROOT / path).is_file()], row["attack"]
