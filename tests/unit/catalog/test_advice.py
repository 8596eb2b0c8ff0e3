"""Advice: a card's claim has its figures and their GPU; claims of this project are marked."""

import json
import re
from typing import Any, get_args

import pytest

from sparkwright.catalog.advice import Choice, Workload
from sparkwright.catalog.gpus import GPUS, VRAM
from tests.unit.builders import catalog
from tests.unit.cli.answering import exits, run

CHOICES = [choice for advice in catalog().advice.values() for choice in advice.choices]


def offered(workload: str, gpu: str) -> list[Choice]:
    """Recipes that the command offers, the first choice first."""
    result = run("advise", workload, "--gpu", gpu, "--json")
    names = [choice["recipe"] for choice in json.loads(result.output)]
    items = [item for item in CHOICES if item.workload == workload and GPUS[gpu] in item.gpus]
    return [next(item for item in items if item.recipe == name) for name in names]


def _shown(workload: str, gpu: str) -> str:
    result = exits(0, "advise", workload, "--gpu", gpu)
    return result.output


@pytest.mark.parametrize("choice", CHOICES, ids=lambda item: f"{item.workload}-{item.recipe}")
def test_a_speed_is_shown_with_its_range_engine_and_settings(choice: Choice) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"([\d.]) (on|to|at)\b", r"\1 ", choice.why.replace(",", "")))
    numbers = [float(n) for n in re.findall(r"\d+\.\d+", text)] if choice.measurements else []
    if re.search(r"tokens/s|\bms\b", choice.why):
        assert choice.measurements
        assert numbers or re.search(r"\d", choice.why)
    if choice.by == "card":
        assert choice.source.startswith(("card of ", "vLLM's recipes, "))
        assert "this project" not in choice.why
    if not choice.measurements:
        return
    assert choice.gpus == ("12.1",)  # no measurement on another GPU exists
    figures = next(item for item in _on(1, choice.workload) if item["recipe"] == choice.recipe)[
        "figures"
    ]
    assert len(figures) == len(choice.measurements)
    ranges = [[float(end) for end in re.match(r"([\d.e+]+) to ([\d.e+]+)", line).groups()]  # type: ignore[union-attr]
              for line in figures]  # fmt: skip
    for name, line in zip(choice.measurements, figures, strict=True):
        measured = catalog().measurements[name]
        assert all(
            part in line for part in (measured.source, measured.gpu, f"{measured.image}:", "vLLM ")
        )
        assert all(f"{key} {value}" in line for key, value in measured.conditions.items())
        body = catalog().recipes[choice.recipe].body.model
        assert measured.body == body or "XS" in choice.why
    for number in re.findall(r"([\d,.]+) (?:tokens/s|ms)", choice.why):
        speed = float(number.replace(",", ""))
        assert any(0.98 * low <= speed <= high for low, high in ranges), (speed, ranges)


#: Every workload on every card has a first recipe, and a figure that orders the recipes.
@pytest.mark.parametrize("workload", get_args(Workload))
@pytest.mark.parametrize("gpu", ["spark", "rtx5090"])
def test_every_answer_names_the_figure_that_orders_the_recipes(workload: str, gpu: str) -> None:
    text, items = _shown(workload, gpu), offered(workload, gpu)
    assert bool(items) is ((workload, gpu) not in NOTHING)
    if len(items) > 1:
        assert "the order is this project's, by " in text
    assert text.count("; no tool parser") + text.count("; tools by ") == len(items)
    if workload == "agents":
        assert "; no tool parser" not in text.split("\n2. ")[0]


#: Workloads and GPUs for which no card has a recipe.
NOTHING = {("latency", "rtx5090"), ("creative", "rtx5090"), ("capacity", "rtx5090")}


@pytest.mark.parametrize("gpu", sorted(VRAM))
def test_figures_of_a_spark_are_not_shown_for_a_card(gpu: str) -> None:
    for workload in get_args(Workload):
        assert not any(item.measurements for item in offered(workload, gpu))
        assert "tokens/s" not in _shown(workload, gpu)


def test_the_card_with_96_gb_gets_its_own_recipe_first() -> None:
    for workload in get_args(Workload):
        choices = offered(workload, "rtx-pro-6000")
        sizes = [catalog().recipes[item.recipe].needs.vram_gib or 0 for item in choices]
        assert sizes == sorted(sizes, reverse=True), (workload, sizes)
    (capacity,) = offered("capacity", "rtx-pro-6000")
    assert "MTP" in capacity.why


# --- Several hosts


def _on(hosts: int, workload: str) -> list[dict[str, Any]]:
    arguments = ["advise", workload, "--hosts", str(hosts), "--json"]
    data: list[dict[str, Any]] = json.loads(run(*arguments).output)
    return data


def test_a_single_host_gets_no_recipe_of_several_hosts() -> None:
    assert {item["spread"] for item in _on(1, "throughput")} == {None}


def test_a_recipe_that_fits_one_host_is_proposed_for_each_host() -> None:
    for workload in ("throughput", "latency"):
        assert {item["spread"] for item in _on(2, workload)} == {"replicas"}
        text = _text(workload)
        assert "a replica on each, behind one address" in text
        assert not re.search(r"\b(22\.6|568|472|69\.0|57\.5)\b", text)


def _text(workload: str) -> str:
    return run("advise", workload, "--hosts", "2").output


def test_recipes_of_several_sparks_are_named_for_their_number() -> None:
    assert "unproven here: minimax-m27-nvfp4-2-sparks" in _text("chat")
    output = run("advise", "chat").output
    card = run("advise", "chat", "--gpu", "rtx5090", "--hosts", "2").output
    assert "hosts hold together" not in output + card
