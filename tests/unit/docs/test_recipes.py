"""The recipes that docs/catalog.md shows are whole, break no rule and can be rendered."""

from typing import Any

import pytest

from sparkwright.catalog import Recipe, load_catalog
from sparkwright.catalog.entries import Alias, Mounted, Needs, TagChange
from sparkwright.config.inventory import HostInput
from sparkwright.findings.finding import Severity
from sparkwright.plan.service import render_service
from sparkwright.site.fleet import plan_fleet
from tests.libyaml import safe_load
from tests.unit.builders import resolution
from tests.unit.docs.markdown import ROOT

EXAMPLES = ROOT / "docs/examples"
NAMES = {"minimal": "my-gemma4", "complete": "my-qwen36"}


def example(file: str) -> dict[str, Any]:
    """An example, unchanged."""
    data: dict[str, Any] = safe_load((EXAMPLES / f"{file}.yaml").read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize("file", NAMES)
def test_the_example_recipe_breaks_no_rule_and_renders(file: str) -> None:
    data = {"services": {"mine": {"recipe": NAMES[file]}}, "catalog_directories": (str(EXAMPLES),)}
    fleet = plan_fleet([HostInput("spark-1", data, lambda _: "inventory")])
    assert list(fleet.problems) == []
    host = fleet.hosts["spark-1"]
    # A lock, which a site has, pins the base of its patches.
    faults = [each for each in host.violations if each.id != "patched-base"]
    assert [each.observed for each in faults if each.severity is Severity.ERROR] == []
    release = render_service(host.plan, host.plan.services[0], resolution(host.plan))
    assert f"container_name: sparkwright-{host.plan.services[0].name}" in release.compose


def test_the_minimal_example_has_only_required_keys() -> None:
    needed = {name for name, field in Recipe.model_fields.items() if field.is_required()}
    assert set(example("minimal")) == needed


@pytest.mark.parametrize("key", [k for k in example("minimal") if k not in ("kind", "name")])
def test_the_minimal_example_is_refused_if_a_key_is_missing(key: str) -> None:
    data = example("minimal")
    del data[key]
    with pytest.raises(ValueError, match=key):
        Recipe.model_validate(data)


def test_the_complete_example_has_every_key() -> None:
    data = example("complete")
    assert set(data) == set(Recipe.model_fields)
    assert set(data["aliases"]["my-qwen36"]) == set(Alias.model_fields)
    assert set(data["needs"]) == set(Needs.model_fields)
    assert set(data["body"]) == set(Mounted.model_fields)
    assert all(set(change) == set(TagChange.model_fields) for change in data["by_tag"].values())


def test_the_extension_on_the_page_changes_only_its_argument(tmp_path: Any) -> None:
    text = (ROOT / "docs/catalog.md").read_text(encoding="utf-8")
    block = text.partition("    # my-catalog/fewer-sequences.yaml\n")[2].partition("\n\n")[0]
    lines = [line.removeprefix("    ") for line in block.splitlines()]
    (tmp_path / "fewer-sequences.yaml").write_text("\n".join(lines), encoding="utf-8")
    recipe = load_catalog([ROOT / "catalog", tmp_path]).recipes["qwen36-35b-a3b-heretic-dflash"]
    assert recipe.arguments["max_num_seqs"] == 16
    assert recipe.arguments["max_model_len"] == 262144
