"""``sparkwright advise``: which recipe for a workload on a GPU, by the cards' decision tables."""

from __future__ import annotations

from typing import get_args

import click

from sparkwright.catalog import load_catalog
from sparkwright.catalog.advice import Workload
from sparkwright.catalog.gpus import GPUS, VRAM, spark_only
from sparkwright.cli.options import json_option, print_json
from sparkwright.config.places import catalogs


@click.command("advise")
@click.argument("workload", type=click.Choice(get_args(Workload)))
@click.option("--gpu", type=click.Choice(sorted(GPUS)), default="spark", show_default=True)
@json_option
def command(workload: str, gpu: str, as_json: bool) -> None:
    """Name recipes for a WORKLOAD, the first choice first, each with its reason and its card."""
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
    if as_json:
        print_json(
            [
                {
                    **choice.model_dump(mode="json"),
                    "spark_only": spark_only(catalog.recipes[choice.recipe], catalog),
                }
                for choice in choices
            ]
        )
        return
    if not choices:
        click.echo(f"The cards name nothing for {workload} on {gpu}. Other workloads do: --help")
        return
    for number, choice in enumerate(choices, 1):
        recipe = catalog.recipes[choice.recipe]
        click.echo(f"{number}. {click.style(recipe.name, bold=True)}: {recipe.title}")
        click.echo(f"   {choice.why} ({choice.source}, {choice.date})")
        needs = recipe.needs
        own = f", {needs.vram_gib:g} GiB of its own" if needs.vram_gib else ""
        click.echo(f"   needs compute capability {' or '.join(needs.compute_caps)}{own}")
        if spark_only(recipe, catalog):
            click.echo("   for DGX Sparks only: its image is for arm64 alone")
