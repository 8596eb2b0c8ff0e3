"""``sparkwright catalog``: entries with their sources, new entries, and schemas for editors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from sparkwright.catalog import Catalog, gpus, load_catalog, reader
from sparkwright.catalog.data import Name
from sparkwright.catalog.draft import PLACEHOLDERS, SCHEMAS, draft
from sparkwright.checks.configuration import RULES
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.cli.lib import completion, extras, options
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.config import inventory, places
from sparkwright.findings.user_error import Problems, refusal, suggest
from sparkwright.site.fleet import plan_fleet
from sparkwright.text.table import columns


@click.group("catalog", cls=extras.ExtensibleGroup)
def command() -> None:
    """Images, models, recipes, published numbers and rules."""


@command.command("list")
@options.catalog_directories
@options.json_option
def list_entries(directories: tuple[Path, ...], as_json: bool) -> None:
    """List entries, one per line."""
    tables = _tables(load_catalog(places.catalogs(directories)))
    if as_json:
        options.print_json({name: sorted(row[0] for row in rows) for name, rows in tables.items()})
        return
    for name, rows in tables.items():
        echo(click.style(name, bold=True))
        for line in columns(sorted(rows), headed=False) if rows else ():
            echo(f"  {line}")


def _tables(catalog: Catalog) -> dict[str, list[tuple[str, str, str]]]:
    """Return name, state and text of every entry, by kind."""
    return {
        "recipes": [(r.name, r.status, r.title) for r in catalog.recipes.values()],
        "models": [
            (m.name, m.status, f"{m.repository} ({m.format or 'format unknown'})")
            for m in catalog.models.values()
        ],
        "images": [
            (i.name, f"{len(i.tags)} tags", f"{i.repository}, newest {i.newest_tag}")
            for i in catalog.images.values()
        ],
        "measurements": [
            (m.name, m.status, f"{m.title} ({m.date})") for m in catalog.measurements.values()
        ],
        "rules": [
            *((rule.id, str(rule.severity), rule.title) for rule in RULES.texts.values()),
            *((name, each.severity, each.problem) for name, each in all_issues(catalog).items()),
        ],
    }


@command.command("show")
@click.argument("name", shell_complete=completion.recipes)
@options.catalog_directories
@options.json_option
def show(name: str, directories: tuple[Path, ...], as_json: bool) -> None:
    """Show an entry and its file's path."""
    catalog = load_catalog(places.catalogs(directories))
    entries = {key: (kind, entry) for kind, key, entry in catalog.every()}
    if name not in entries:
        raise refusal("catalog", f"no entry {name!r}", suggest(name, list(entries)))
    kind, entry = entries[name]
    data = entry.model_dump(mode="json", exclude_defaults=True)
    if as_json:
        options.print_json(data)
        return
    import yaml

    echo(f"# {catalog.files[kind, name]}")
    click.echo(yaml.safe_dump(data, sort_keys=False, width=78, allow_unicode=True).rstrip())


@command.command("schema")
@click.argument("kind", type=click.Choice(list(reader.KINDS)))
@options.json_option
def show_schema(kind: str, as_json: bool) -> None:
    """Print the JSON Schema of a KIND of entry, for editors, with or without --json."""
    del as_json
    options.print_json(reader.schema(kind))


@command.command("new")
@click.argument("kind", type=click.Choice(("recipe", "model", "image")))
@click.argument("name")
@options.option("catalog new --from", shell_complete=completion.recipes)
@options.option("catalog new --model")
@options.option("catalog new --gpu", type=click.Choice(sorted(gpus.GPUS)))
@options.option(
    "catalog new --directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("catalog"),
)
@options.json_option
def new(
    kind: str, name: str, base: str | None, model: str | None, gpu: str, directory: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Write an entry of your own, with every key explained.

    A recipe made by --model comes with its model's entry. Check the recipe with `sparkwright check
    --recipe NAME`.
    """
    if base and model:
        raise click.UsageError("use --from or --model, not both")
    if model and kind == "image":
        raise click.UsageError("--model needs the KIND recipe or model")
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise MESSAGES.refusal("no-entry-name", "NAME", name=name) from None
    if base:
        texts = {kind: draft(kind, name, _from(kind, base, directory))}
    elif model:
        texts = _by_model(kind, name, model, gpu, directory)
    else:
        texts = {kind: draft(kind, name, PLACEHOLDERS[kind])}
    paths = [str(path) for path in _write(directory, name, texts)]
    if as_json:
        options.print_json(paths)
    for path in [] if as_json else paths:
        echo(f"{path}: written")


def _from(kind: str, base: str, directory: Path) -> dict[str, Any]:
    """Return the keys of an entry that extends another entry; only a recipe needs a title."""
    own = [directory] if directory.is_dir() else []
    entries = load_catalog(places.catalogs(own)).of_kind(kind)
    if base not in entries:
        raise refusal("--from", f"no {kind} {base!r}", suggest(base, list(entries)))
    values: dict[str, Any] = {"extends": base}
    if kind == "recipe":
        values["title"] = f"{entries[base].title}, as we run it"
        values |= entries[base].model_dump(mode="json", include={"served_names", "arguments"})
    return values


def _by_model(kind: str, name: str, repository: str, gpu: str, directory: Path) -> dict[str, str]:
    """Draft a recipe and its model, or the model alone."""
    more = [str(directory)] if directory.is_dir() else []
    # A named revision excludes the catalog's own recipes.
    service = {"model": repository, "revision": "main"}
    data = {"services": {"new": service}, "gpu": gpu, "catalog_directories": more}
    fleet = plan_fleet([inventory.HostInput("", data, lambda _: "command line")])
    (host,) = fleet.or_raise().values()
    (planned,) = host.plan.services
    recipe = planned.recipe
    body = host.catalog.models[recipe.body.model]
    keys = body.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "name", "gguf"})
    texts = {"model": draft("model", name, keys)}
    if kind == "recipe":
        left_out = {"kind", "name", "boot_seconds", "status"}
        values = recipe.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
        values["body"]["model"] = name
        sources = {key: planned.origins[f"argument.{key}"] for key, _ in planned.arguments}
        texts["recipe"] = draft("recipe", name, values, sources)
    return texts


def _write(directory: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write the files and the schemas that the files name; existing entries are not overwritten."""
    files = {directory / f"{kind}s" / f"{name}.yaml": text for kind, text in texts.items()}
    there = [path for path in files if path.exists() or path.is_symlink()]
    Problems(MESSAGES.mistake("entry-exists", str(path)) for path in there).stop()
    schemas = {
        directory / SCHEMAS / f"{kind}.json": json.dumps(reader.schema(kind), indent=1) + "\n"
        for kind in texts
    }
    for path, text in (files | schemas).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
