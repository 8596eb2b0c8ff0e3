"""Return to an image's rollback tag: every recipe of the image has a plan for that tag, without an
error.
"""

import json
from typing import Any

import pytest

from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.findings.finding import errors
from sparkwright.plan.service import render_service
from tests.libyaml import safe_load
from tests.unit.builders import catalog, plan, resolution
from tests.unit.cli.answering import run

AEON = catalog().images["aeon-vllm-ultimate"]
#: The tag of the cards' commands and figures, and its rollback tag.
OF_CARDS, BACK = "2026-07-01-v0.24.0", "2026-06-18-v0.23.0-dflashfix"
CORRUPTS = "2026-06-04-pr44389"
OF_AEON = sorted(name for name, item in catalog().recipes.items() if item.image == AEON.name)
#: Recipe A of the cards, with each of its three bodies.
DFLASH_27B = ("qwen36-27b-dflash-fp8", "qwen36-27b-nvfp4-dflash-fp8", "qwen36-27b-xs-dflash-fp8")
GEMMA = sorted(name for name in OF_AEON if name.startswith("gemma4"))
#: Recipes for an sm_120 card in an arm64 machine: image-architecture reports them on every tag.
ELSEWHERE = {name for name in OF_AEON if "rtx" in name}


def _service(recipe: str, tag: str) -> dict[str, Any]:
    host = plan({"s": {"recipe": recipe, "image_tag": tag}})
    release = render_service(host, host.services[0], resolution(host))
    service: dict[str, Any] = safe_load(release.compose)["services"]["engine"]
    return service


@pytest.mark.parametrize("tag", [None, OF_CARDS, BACK])
@pytest.mark.parametrize("recipe", sorted(set(OF_AEON) - ELSEWHERE))
def test_a_recipe_is_planned_on_the_newest_tag_and_its_rollback_tags(
    recipe: str, tag: str | None
) -> None:
    """No vLLM version refuses an argument or variable of a recipe."""
    host = plan({"s": {"recipe": recipe}}, **({"image_tag": tag} if tag else {}))
    assert host.services[0].image.tag == (tag or AEON.newest_tag)
    result = errors(check_host(host, catalog(), assumed_hardware(host)))
    assert [(item.id, item.observed) for item in result] == []


@pytest.mark.parametrize("recipe", [*DFLASH_27B, *GEMMA])
def test_prefix_caching_is_turned_off_on_a_corrupting_version(recipe: str) -> None:
    """vLLM 0.22.1 enables prefix caching unless a flag disables it."""
    command = _service(recipe, CORRUPTS)["command"]
    assert "--no-enable-prefix-caching" in command
    assert "--enable-prefix-caching" not in command


def test_one_setting_moves_a_whole_fleet_to_an_older_tag() -> None:
    arguments = ["check", "inventory/lab.py", "--data", f"image_tag={BACK}", "--json"]
    result = run(*arguments)
    data = json.loads(result.output)
    assert result.exit_code == 0, data
