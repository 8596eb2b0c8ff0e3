"""``sparkwright advise``: which recipe for a workload on a GPU, and who says why."""

from dataclasses import asdict
from typing import get_args

import click

from sparkwright.catalog import load_catalog
from sparkwright.catalog.advice import Workload
from sparkwright.catalog.gpus import GPUS, VRAM, spark_only, unified
from sparkwright.catalog.spread import spread
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.places import catalogs

_SPREAD = {
    "ranks": "one model over all of them (docs/clusters.md)",
    "replicas": "a replica on each, behind a load balancer (docs/proxy.md)",
}


@click.command("advise")
@click.argument("workload", type=click.Choice(get_args(Workload)))
@click.option(
    "--gpu", type=click.Choice(sorted(GPUS)), default="spark", show_default=True,
    help="The GPU that the recipe is for.",
)  # fmt: skip
@click.option(
    "--hosts", type=click.IntRange(1, 64), default=1, show_default=True,
    help="How many hosts there are for it: one model over all, or a replica on each.",
)  # fmt: skip
@json_option
def command(workload: Workload, gpu: str, hosts: int, as_json: bool) -> None:
    """Name recipes for a WORKLOAD.

    Each has its reason with the card that says it and the GPU that its figures were measured on, or
    marked as this project's reading. The order is this project's.
    """
    catalog = load_catalog(catalogs())
    choices = [
        choice
        for advice in catalog.advice.values()
        for choice in advice.choices
        if choice.workload == workload
        and GPUS[gpu] in choice.gpus
        and (catalog.recipes[choice.recipe].needs.vram_gib or 0) <= VRAM.get(gpu, 1e9)
    ]
    choices.sort(key=lambda choice: choice.rank)
    rows = [
        (choice, recipe := catalog.recipes[choice.recipe], spark_only(recipe, catalog),
         spread(recipe, workload, hosts))
        for choice in choices
    ]  # fmt: skip
    if as_json:
        print_json([
            choice.model_dump(mode="json") | {"spark_only": sparks, "spread": over and asdict(over)}
            for choice, _, sparks, over in rows
        ])  # fmt: skip
        return
    if not choices:
        echo(f"The catalog names nothing for {workload} on {gpu}. Other workloads: --help")
        return
    echo(f"For {workload} on {gpu}; the order is this project's:")
    for number, (choice, recipe, sparks, over) in enumerate(rows, 1):
        measured = f"; measured on {choice.measured_on}" if choice.measured_on else ""
        reading = "this project's reading of: " if choice.by == "project" else ""
        needs = recipe.needs
        card = needs.vram_gib if not unified(GPUS[gpu]) else None
        memory = f", {card:g} GiB of its own" if card else ""
        echo(f"{number}. {click.style(recipe.name, bold=True)}: {recipe.title}")
        echo(f"   {choice.why}{measured}")
        echo(f"   {reading}{choice.source}, {choice.date}")
        echo(f"   needs compute capability {' or '.join(needs.compute_caps)}{memory}")
        if over:
            echo(f"   on {hosts} hosts: {_SPREAD[over.by]}: {over.why} ({over.source})")
        if sparks:
            echo("   for DGX Sparks only: its image is for arm64 alone")
    for recipe in catalog.recipes.values():
        if recipe.ranks and recipe.ranks.world == hosts and GPUS[gpu] in recipe.needs.compute_caps:
            name = click.style(recipe.name, bold=True)
            echo(f"What {hosts} hosts hold together, {recipe.status} here: {name}")
            echo(f"   {recipe.title} ({recipe.source})")
