"""``sparkwright advise``: which recipe for a workload on a GPU, and who says why."""

from dataclasses import asdict
from typing import get_args

import click

from sparkwright.catalog import load_catalog
from sparkwright.catalog.advice import Workload
from sparkwright.catalog.gpus import GPUS, VRAM, spark_only, unified
from sparkwright.catalog.spread import spread
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.places import catalogs
from sparkwright.config.templates import template

_SPREAD = {
    "ranks": "one model over all of them (docs/clusters.md)",
    "replicas": "a replica on each, behind a load balancer (docs/proxy.md)",
}


@click.command("advise")
@click.argument("workload", type=click.Choice(get_args(Workload)))
@option("advise --gpu", type=click.Choice(sorted(GPUS)))
@option("advise --hosts", type=click.IntRange(1, 64))
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
    together = [
        recipe
        for recipe in catalog.recipes.values()
        if recipe.ranks and recipe.ranks.world == hosts and GPUS[gpu] in recipe.needs.compute_caps
    ]
    page = template("plan/advice.txt.j2").render(
        workload=workload, gpu=gpu, hosts=hosts, rows=rows, together=together, ways=_SPREAD,
        own_memory=not unified(GPUS[gpu]), style=click.style,
    )  # fmt: skip
    echo(page.removesuffix("\n"))
