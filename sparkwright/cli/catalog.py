"""``sparkwright catalog``: what there is, and who says so."""

from collections.abc import Iterator
from pathlib import Path

import click

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.checks.configuration import RULES
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.cli.catalog_new import new, show_schema
from sparkwright.cli.lib.completion import recipes
from sparkwright.cli.lib.extras import ExtensibleGroup
from sparkwright.cli.lib.options import catalog_directories, json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.places import catalogs
from sparkwright.findings.user_error import refusal, suggest
from sparkwright.text.table import columns


@click.group("catalog", cls=ExtensibleGroup)
def command() -> None:
    """Images, models, recipes, published numbers and rules."""


command.add_command(new)
command.add_command(show_schema)


@command.command("list")
@click.option(
    "--kind",
    type=click.Choice(["recipes", "models", "images", "measurements", "rules"]),
    help="List entries of this kind alone.",
)
@catalog_directories
@json_option
def list_entries(kind: str | None, directories: tuple[Path, ...], as_json: bool) -> None:
    """List entries, a line each."""
    tables = _tables(load_catalog(catalogs(directories)))
    chosen = {kind: tables[kind]} if kind else tables
    if as_json:
        print_json({name: sorted(row[0] for row in rows) for name, rows in chosen.items()})
        return
    for name, rows in chosen.items():
        echo(click.style(name, bold=True))
        for line in columns(sorted(rows)) if rows else ():
            echo(f"  {line}")


def _tables(catalog: Catalog) -> dict[str, list[tuple[str, str, str]]]:
    """Name, state and text of every entry."""
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
            *((name, each.severity, each.what) for name, each in all_issues(catalog).items()),
        ],
    }


@command.command("show")
@click.argument("name", shell_complete=recipes)
@catalog_directories
@json_option
def show(name: str, directories: tuple[Path, ...], as_json: bool) -> None:
    """Show one entry whole, with its file."""
    catalog = load_catalog(catalogs(directories))
    entries = {key: (kind, entry) for kind, key, entry in catalog.every()}
    if name not in entries:
        raise refusal("catalog", f"no entry {name!r}", suggest(name, list(entries)))
    kind, entry = entries[name]
    data = entry.model_dump(mode="json", exclude_defaults=True)
    if as_json:
        print_json(data)
        return
    import yaml

    echo(f"# {catalog.files[kind, name]}")
    click.echo(yaml.safe_dump(data, sort_keys=False, width=78, allow_unicode=True).rstrip())


@command.command("sources")
@catalog_directories
@json_option
def sources(directories: tuple[Path, ...], as_json: bool) -> None:
    """Say for every entry, tag, alias and rule who says so."""
    rows = {
        name: source for name, source in _sources(load_catalog(catalogs(directories))) if source
    }
    if as_json:
        print_json(rows)
        return
    for name, source in rows.items():
        echo(f"{name}: {source}")


def _sources(catalog: Catalog) -> Iterator[tuple[str, str | None]]:
    for kind, name, entry in catalog.every():
        yield f"{kind} {name}", getattr(entry, "source", None)
    for image in catalog.images.values():
        yield from ((f"tag {image.name}:{tag}", data.source) for tag, data in image.tags.items())
    for recipe in catalog.recipes.values():
        for name, alias in recipe.aliases.items():
            yield f"alias {recipe.name}:{name}", alias.source
    for group in catalog.causes.values():
        yield from ((f"cause {cause.id}", cause.source) for cause in group.causes)
    yield from ((f"rule {rule.id}", rule.source) for rule in RULES.texts.values())
    yield from ((f"rule {name}", issue.source) for name, issue in all_issues(catalog).items())
