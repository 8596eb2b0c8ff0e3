"""docs/known-issues.yaml names only existing entries, and the catalog has a recipe for each
system.
"""

from docs.generate.cards import CARDS
from docs.generate.real_hosts import groups
from sparkwright.checks.configuration import rule_ids
from sparkwright.checks.service.diagnose import CHECKS
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog


def test_twelve_systems_and_several_sparks_have_a_recipe() -> None:
    numbers = {recipe.system.partition(".")[0] for recipe in catalog().recipes.values()}
    assert numbers == {str(number) for number in range(1, 16)}


def test_known_issues_name_rules_that_exist() -> None:
    entries = safe_load((ROOT / "docs/known-issues.yaml").read_text())
    expected = rule_ids(catalog())
    cards = tuple(name for name, *_ in CARDS)
    for entry in entries:
        assert entry["source"].startswith(tuple(cards))
        if entry["by"] == "rule":
            assert entry["how"] in expected
        assert set(entry.get("doctor", ())) <= set(CHECKS.texts)
        assert entry["by"] != "doctor" or entry["doctor"]


def test_the_list_of_real_hosts_names_existing_tests() -> None:
    tests = [path for rows in groups().values() for row in rows for path in row["tests"]]
    assert len(tests) > 100
    assert [path for path in tests if not (ROOT / path).is_file()] == []
