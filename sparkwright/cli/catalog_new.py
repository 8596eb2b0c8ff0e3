"""``sparkwright catalog new`` and ``schema``: entries of a user's own, and help for editors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from sparkwright.catalog import load_catalog
from sparkwright.catalog.data import Name
from sparkwright.catalog.draft import PLACEHOLDERS, SCHEMAS, draft
from sparkwright.catalog.gpus import GPUS
from sparkwright.catalog.schema import KINDS, schema
from sparkwright.cli.lib.completion import recipes
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.inventory import HostInput
from sparkwright.config.places import catalogs
from sparkwright.engines import DEFAULT, engine
from sparkwright.findings.user_error import Problems, mistake, refusal, suggest
from sparkwright.site.fleet import plan_fleet


@click.command("schema")
@click.argument("kind", type=click.Choice(list(KINDS)))
@json_option
def show_schema(kind: str, as_json: bool) -> None:
    """Print the JSON Schema of a KIND of entry, for editors; it is JSON with and without --json."""
    del as_json
    print_json(schema(kind))


@click.command("new")
@click.argument("kind", type=click.Choice(("recipe", "model", "image")))
@click.argument("name")
@click.option(
    "--from", "base", metavar="RECIPE", shell_complete=recipes,
    help="Begin with an entry of that kind.",
)  # fmt: skip
@click.option("--model", metavar="REPOSITORY", help="Begin with what its own files say.")
@click.option(
    "--gpu", type=click.Choice(sorted(GPUS)), default="spark", show_default=True,
    help="With --model: what it is sized for.",
)  # fmt: skip
@click.option(
    "--directory", type=click.Path(path_type=Path, file_okay=False), default=Path("catalog"),
    show_default=True, help="The catalog of your own that it goes into.",
)  # fmt: skip
@json_option
def new(
    kind: str, name: str, base: str | None, model: str | None, gpu: str, directory: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Write an entry of your own, with every key explained.

    A recipe that --model makes comes with its model's entry. Check it with `sparkwright check
    --recipe NAME`.
    """
    if base and model:
        raise click.UsageError("--from or --model, not both")
    if model and kind == "image":
        raise click.UsageError("--model is for a recipe or a model")
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        remedy = "small letters, digits, '.', '_' and '-', such as my-qwen3"
        raise refusal("NAME", f"{name!r} is not a valid name", remedy) from None
    if base:
        texts = {kind: draft(kind, name, _from(kind, base, directory))}
    elif model:
        texts = _by_model(kind, name, model, gpu, directory)
    else:
        texts = {kind: draft(kind, name, PLACEHOLDERS[kind])}
    paths = [str(path) for path in _write(directory, name, texts)]
    if as_json:
        print_json(paths)
    for path in [] if as_json else paths:
        echo(f"{path}: written")


def _from(kind: str, base: str, directory: Path) -> dict[str, Any]:
    """The keys of an entry that extends another: only a recipe's title is its own."""
    catalog = load_catalog(catalogs([directory] if directory.is_dir() else []))
    known: Mapping[str, Any] = getattr(catalog, f"{kind}s")
    if base not in known:
        raise refusal("--from", f"no {kind} {base!r}", suggest(base, list(known)))
    values: dict[str, Any] = {"extends": base}
    if kind == "recipe":
        values["title"] = f"{known[base].title}, as we run it"
        values |= known[base].model_dump(mode="json", include={"served_names", "arguments"})
    return values


def _by_model(kind: str, name: str, repository: str, gpu: str, directory: Path) -> dict[str, str]:
    """A recipe and its model, or the model alone."""
    more = [str(directory)] if directory.is_dir() else []
    # An image that is named leaves the catalog's own recipes aside.
    service = {"model": repository, "image": engine(DEFAULT).stock_image}
    data = {"services": {"new": service}, "gpu": gpu, "catalog_directories": more}
    fleet = plan_fleet([HostInput("", data, lambda _: "command line")])
    (host,) = fleet.or_raise().values()
    (planned,) = host.plan.services
    recipe = planned.recipe
    body = host.catalog.models[recipe.body.model]
    keys = body.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "name"})
    texts = {"model": draft("model", name, keys)}
    if kind == "recipe":
        left_out = {"kind", "name", "boot_seconds", "status"}
        values = recipe.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
        values["body"]["model"] = name
        sources = {key: planned.origins[f"argument.{key}"] for key, _ in planned.arguments}
        texts["recipe"] = draft("recipe", name, values, sources)
    return texts


def _write(directory: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write the files, with the schemas that they name; nothing is written over."""
    files = {directory / f"{kind}s" / f"{name}.yaml": text for kind, text in texts.items()}
    remedy = "nothing was written: take another name, or edit that file"
    there = [path for path in files if path.exists() or path.is_symlink()]
    Problems(mistake(str(path), "this file exists", remedy) for path in there).stop()
    schemas = {
        directory / SCHEMAS / f"{kind}.json": json.dumps(schema(kind), indent=1) + "\n"
        for kind in texts
    }
    for path, text in (files | schemas).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
