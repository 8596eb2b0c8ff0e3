"""``sparkwright import``: recipes of other projects into the site's own catalog."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from sparkwright.catalog import load_catalog
from sparkwright.catalog.gpus import GPUS
from sparkwright.cli.lib.findings import format_option, paint, print_findings
from sparkwright.config.places import catalogs
from sparkwright.extras.imports.files import write
from sparkwright.extras.imports.formats import Result, import_texts
from sparkwright.extras.imports.sources import chosen, texts_of
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import count, text
from sparkwright.findings.user_error import UserError
from sparkwright.recipes.recipe import Options
from sparkwright.text.visible import visible

DOCUMENT = list[Finding]


@click.command("import")
@click.argument("source")
@click.argument("recipes", nargs=-1)
@click.option("--name", help="What the recipe is called here; for one recipe.")
@click.option(
    "--gpu", type=click.Choice(list(GPUS)), default="gb10", show_default=True,
    help="What it is to run on.",
)  # fmt: skip
@click.option("--variant", "variants", multiple=True, help="Of vLLM's recipes: only this variant.")
@click.option("--image", help="An image instead of the recipe's container.")
@click.option("--vllm", metavar="VERSION", help="The vLLM in its image, where nobody says it.")
@click.option(
    "--allow-remote-code", "remote_code", is_flag=True,
    help="Keep trust_remote_code: it runs Python files of the model's repository.",
)  # fmt: skip
@click.option(
    "--cluster", is_flag=True,
    help="Spread what needs several GPUs over the hosts of a cluster, one on each.",
)  # fmt: skip
@click.option(
    "--directory", type=click.Path(path_type=Path, file_okay=False), default=Path("catalog"),
    show_default=True, help="The catalog that is written to.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Overwrite what is there with another content.")
@click.option("--dry", is_flag=True, help="Say what would be written, and write nothing.")
@click.option(
    "--inventory", type=click.Path(path_type=Path, dir_okay=False),
    help="Whose `registries` and lock are meant by @NAME; else the site's own.",
)  # fmt: skip
@format_option
def command(
    source: str,
    recipes: tuple[str, ...],
    name: str | None,
    gpu: str,
    variants: tuple[str, ...],
    image: str | None,
    vllm: str | None,
    remote_code: bool,
    cluster: bool,
    directory: Path,
    replace: bool,
    dry: bool,
    inventory: Path | None,
    form: str,
) -> None:
    """Write recipes of other projects into the site's catalog.

    Of sparkrun, eugr/spark-vllm-docker and vllm-project/recipes.

    SOURCE is a file, a folder, https://HOST/REPOSITORY, or @NAME of the setting `registries`;
    RECIPES are the names of some of its recipes, and @NAME/RECIPE is short for one. The original
    is kept beside the new recipe, whose status is "unproven". Every key that could not be carried
    over is named with the reason. Nothing of a recipe is run: no hook, no mod, no shell.

    Exit code 1 when a recipe could not be imported.
    """
    texts = texts_of(source, inventory)
    if source.startswith("@") and "/" in source:
        recipes = (source.partition("/")[2], *recipes)
    texts = chosen(texts, recipes)
    own = [directory] if directory.is_dir() else []
    catalog = load_catalog(catalogs(own))
    options = Options(gpu, name, vllm, image, variants, remote_code, cluster)
    results = list(import_texts(texts, catalog, options))
    if name is not None and len(results) > 1:
        raise click.UsageError(f"--name is for one recipe, and there are {len(results)}")
    lines: list[str] = []
    problems: list[Finding] = []
    for result in results:
        try:
            lines += _one(result, directory, replace=replace, dry=dry)
        except UserError as error:
            problems += error.findings
    findings = [*(one for result in results for one in result.findings), *problems]
    lines += [text(problems, paint=paint)] if problems else []
    print_findings(findings, form, "\n".join([*lines, _summary(results, len(problems))]))
    sys.exit(int(bool(problems) or any(result.imported is None for result in results)))


def _one(result: Result, directory: Path, *, replace: bool, dry: bool) -> list[str]:
    """Write one recipe; what is said of it."""
    imported = result.imported
    said = text(result.findings, indent=2, paint=paint)
    if imported is None:
        head = f"{click.style('not imported', fg='red')}: {visible(result.source)}"
        return list(filter(None, [head, said]))
    head = f"{click.style(imported.name, bold=True)}: {visible(result.source)} ({result.format})"
    if dry:
        where = [f"  would write {kind} {name}" for kind, name in imported.entries]
    else:
        done = write(imported, directory, replace=replace)
        where = [f"  wrote {path}" for path in done.written]
        where += [f"  unchanged {path}" for path in done.unchanged if not done.written]
    return list(filter(None, [head, *where, said]))


def _summary(results: list[Result], failed: int) -> str:
    made = [result.imported for result in results if result.imported]
    whole = sum(one.whole for one in made)
    refused = Counter(result.imported is None for result in results)[True] + failed
    said = f"{count(len(results), 'recipe')}: {whole} imported whole, {len(made) - whole - failed} "
    said += f"with something left out, {refused} not imported"
    if made and not failed:
        said += f". Next: sparkwright check --recipe {made[0].name}"
    return said
