"""``sparkwright advise``: recipes for a workload on a GPU, with reasons and sources."""

from collections.abc import Iterator
from typing import get_args

import click

from sparkwright.catalog import Catalog, entries, load_catalog
from sparkwright.catalog.advice import Choice, Workload
from sparkwright.catalog.gpus import GPUS, VRAM, spark_only, unified
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config import places, templates
from sparkwright.engines import ENGINES, engine

_UNITS = {
    "decode": "tokens/s of one stream", "tpot": "ms per token of one stream",
    "aggregate": "tokens/s in total", "aggregate_peak": "tokens/s in total at the peak",
}  # fmt: skip


def _figures(choice: Choice, catalog: Catalog) -> Iterator[str]:
    """Yield the range of each published table, with its engine, settings and source."""
    for item in (catalog.measurements[name] for name in choice.measurements):
        values = [getattr(row, choice.figure) for row in item.rows]
        ends = [end for value in values if value
                for end in (value if isinstance(value, tuple) else (value,))]  # fmt: skip
        image = catalog.images[item.image]
        tag = image.tags.get(item.tag or "")
        program = engine(image.engine).title if image.engine in ENGINES else image.engine
        version = (tag and tag.version) or "unknown"
        settings = [f"{key} {value}" for key, value in item.conditions.items()]
        yield (
            f"{min(ends):g} to {max(ends):g} {_UNITS[choice.figure]} ({item.title}, {item.status} "
            f"on {item.gpu}; {item.image}:{item.tag}, {program} {version}; "
            f"{', '.join(settings) or 'no settings named'}; {item.source}, {item.date})"
        )


def _additions(recipe: entries.Recipe) -> str:
    """Describe a recipe's parts other than its image and weights; often an empty text."""
    offload, steps = recipe.kv_offload, len(recipe.patches)
    parts = (
        *(f"file {file.at}" for file in recipe.files),
        f"a derived image (patches: {steps})" if steps else "",
        *(f"adapter {adapter.name}" for adapter in recipe.adapters),
        f"{offload.gib:g} GiB on {offload.disk or 'RAM'} for the KV cache" if offload else "",
    )
    return ", ".join(filter(None, parts))


@click.command("advise")
@click.argument("workload", type=click.Choice(get_args(Workload)))
@option("advise --gpu", type=click.Choice(sorted(GPUS)))
@option("advise --hosts", type=click.IntRange(1, 64))
@json_option
def command(workload: Workload, gpu: str, hosts: int, as_json: bool) -> None:
    """Name recipes for a WORKLOAD.

    Each recommendation has a reason, with the card as source or marked as this project's reading,
    and the full range of the card's figures with engine and settings. The project chose the order.
    """
    catalog = load_catalog(places.catalogs())
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
         None if hosts < 2 else "ranks" if recipe.ranks else "replicas",
         list(_figures(choice, catalog)))
        for choice in choices
    ]  # fmt: skip
    if as_json:
        print_json([
            choice.model_dump(mode="json")
            | {"spark_only": sparks, "spread": over, "figures": figures}
            for choice, _, sparks, over, figures in rows
        ])  # fmt: skip
        return
    if not choices:
        echo(f"The catalog has no recipe for {workload} on {gpu}. See --help for other workloads")
        return
    together = [
        recipe
        for recipe in catalog.recipes.values()
        if recipe.ranks and recipe.ranks.world == hosts and GPUS[gpu] in recipe.needs.compute_caps
    ]
    page = templates.template("plan/advice.txt.j2").render(
        workload=workload, gpu=gpu, hosts=hosts, rows=rows, together=together,
        ranked_by=[text for advice in catalog.advice.values()
                   if (text := advice.ranked_by.get(GPUS[gpu], {}).get(workload))],
        limits={recipe.name: engine(catalog.images[recipe.image].engine).limits(recipe.arguments)
                for _, recipe, *_ in rows},
        additions={recipe.name: _additions(recipe) for _, recipe, *_ in rows},
        own_memory=not unified(GPUS[gpu]), style=click.style,
    )  # fmt: skip
    echo(page.removesuffix("\n"))
