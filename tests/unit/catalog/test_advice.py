"""Advice: what a card says has its figures and their GPU; what this project reads is marked."""

import json
import re
from typing import Any, get_args

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from sparkwright.catalog.advice import Choice, Workload
from sparkwright.catalog.entries import Ranks
from sparkwright.catalog.gpus import GPUS, VRAM
from sparkwright.catalog.spread import spread
from sparkwright.cli import main
from tests.unit.builders import alone, catalog

CHOICES = [choice for advice in catalog().advice.values() for choice in advice.choices]
SPARK = "12.1"


def offered(workload: str, gpu: str) -> list[Choice]:
    """What the command offers, the first choice first."""
    result = CliRunner().invoke(main, ["advise", workload, "--gpu", gpu, "--json"])
    names = [choice["recipe"] for choice in json.loads(result.output)]
    items = [item for item in CHOICES if item.workload == workload and GPUS[gpu] in item.gpus]
    return [next(item for item in items if item.recipe == name) for name in names]


def _shown(workload: str, gpu: str) -> str:
    result = CliRunner().invoke(main, ["advise", workload, "--gpu", gpu])
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("choice", CHOICES, ids=lambda item: f"{item.workload}-{item.recipe}")
def test_a_speed_names_the_gpu_that_it_was_measured_on(choice: Choice) -> None:
    if re.search(r"tokens/s|\bms\b|%", choice.why) and choice.by == "card":
        assert choice.measured_on
    if choice.measured_on == "DGX Spark GB10":
        assert choice.gpus == (SPARK,)  # nobody measured it on another
    if choice.by == "card":
        assert choice.source.startswith(("card of ", "vLLM's recipes, "))
        assert "this project" not in choice.why


def test_a_speed_without_a_gpu_is_refused() -> None:
    item: dict[str, Any] = {**CHOICES[0].model_dump(), "measured_on": None}
    with pytest.raises(ValidationError, match="measured_on"):
        Choice.model_validate(item)


def test_the_order_and_the_readings_are_said_to_be_this_projects() -> None:
    for workload in get_args(Workload):
        for gpu in GPUS:
            choices = offered(workload, gpu)
            text = _shown(workload, gpu)
            if choices:
                assert "the order is this project's" in text
            readings = [item for item in choices if item.by == "project"]
            assert text.count("this project's reading of: ") == len(readings)
            assert text.count("; measured on ") == len([c for c in choices if c.measured_on])


@pytest.mark.parametrize("gpu", sorted(VRAM))
def test_nothing_measured_on_a_spark_is_promised_to_a_card(gpu: str) -> None:
    for workload in get_args(Workload):
        assert all(item.measured_on is None for item in offered(workload, gpu))
        assert "tokens/s" not in _shown(workload, gpu)


def test_a_body_that_loads_more_than_the_card_has_is_not_offered() -> None:
    stock = catalog().recipes["gemma4-26b-a4b-stock"]
    loaded = catalog().models[stock.body.model].loaded_gib
    assert loaded is not None
    assert loaded * 1.073741824 > 16
    assert offered("throughput", "rtx5080") == []
    assert [item.recipe for item in offered("throughput", "rtx5090")] == [stock.name]


def test_the_card_with_96_gb_gets_what_is_made_for_it_first() -> None:
    for workload in get_args(Workload):
        choices = offered(workload, "rtx-pro-6000")
        sizes = [catalog().recipes[item.recipe].needs.vram_gib or 0 for item in choices]
        assert sizes == sorted(sizes, reverse=True), (workload, sizes)
    (capacity,) = offered("capacity", "rtx-pro-6000")
    assert "MTP" in capacity.why


def test_the_smallest_body_is_the_smallest() -> None:
    recipes = [item for item in alone().values() if item.needs.compute_caps == (SPARK,)]
    sizes = {recipe.name: catalog().models[recipe.body.model].size_gib or 0 for recipe in recipes}
    first = offered("small", "spark")[0]
    assert sizes[first.recipe] == min(sizes.values())


def test_every_row_of_the_decision_table_is_there() -> None:
    rows = [item for item in CHOICES if item.source == "card of vllm-dflash, decision table"]
    dflash, turboquant = "qwen35-27b-dflash", "qwen35-27b-dflash-turboquant"
    assert {row.workload for row in rows if row.recipe == dflash} == {"chat", "latency"}
    others = {row.workload for row in rows if row.recipe == turboquant}
    assert others == {"agents", "long-context", "capacity"}
    assert {row.recipe for row in rows} == {dflash, turboquant}


# --- Several hosts


def _on(hosts: int, workload: str) -> list[dict[str, Any]]:
    arguments = ["advise", workload, "--hosts", str(hosts), "--json"]
    data: list[dict[str, Any]] = json.loads(CliRunner().invoke(main, arguments).output)
    return data


def test_one_host_is_not_spread() -> None:
    assert {item["spread"] for item in _on(1, "throughput")} == {None}


def test_what_fits_one_host_and_serves_many_is_better_served_by_replicas() -> None:
    for item in _on(2, "throughput"):
        assert item["spread"]["by"] == "replicas"
        assert "unproven here" in item["spread"]["source"]
    assert "a replica on each, behind a load balancer" in _text("throughput")


def test_what_drafts_is_slower_over_ranks() -> None:
    recipes = catalog().recipes
    drafting = (
        item for item in _on(2, "latency")
        if "speculative_config" in recipes[item["recipe"]].arguments
    )  # fmt: skip
    first = next(drafting)
    assert first["spread"]["by"] == "replicas"
    assert "8.1 tokens/s on two ranks" in first["spread"]["why"]


def test_what_no_host_holds_needs_ranks() -> None:
    (recipe, *_) = catalog().recipes.values()
    large = recipe.model_copy(update={"ranks": Ranks(tensor=2)})
    result = spread(large, "throughput", 2)
    assert result is not None
    assert result.by == "ranks"
    plain = recipe.model_copy(update={"drafter": None, "arguments": {}})
    result = spread(plain, "latency", 2)
    assert result is not None
    assert (result.by, "69.0 tokens/s" in result.why) == ("ranks", True)


def _text(workload: str) -> str:
    return CliRunner().invoke(main, ["advise", workload, "--hosts", "2"]).output


def test_what_several_sparks_hold_together_is_named_for_as_many_of_them() -> None:
    assert "unproven here: minimax-m27-nvfp4-2-sparks" in _text("chat")
    output = CliRunner().invoke(main, ["advise", "chat"]).output
    card = CliRunner().invoke(main, ["advise", "chat", "--gpu", "rtx5090", "--hosts", "2"]).output
    assert "hosts hold together" not in output + card
