"""``sparkwright catalog``: what there is, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.checks.configuration import RULES
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.cli.catalog_new import new, show_schema
from sparkwright.cli.lib.completion import recipes
from sparkwright.cli.lib.extras import ExtensibleGroup
from sparkwright.cli.lib.options import catalog_directories, json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.places import catalogs
from sparkwright.findings.user_error import UserError, mistake, suggest


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
    catalog = load_catalog(catalogs(directories))
    table: dict[str, list[tuple[str, str, str]]] = {
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
        "rules": _rules(catalog),
    }
    chosen = {kind: table[kind]} if kind else table
    if as_json:
        print_json({name: [row[0] for row in sorted(rows)] for name, rows in chosen.items()})
        return
    for name, rows in chosen.items():
        echo(click.style(name, bold=True))
        width = max((len(row[0]) for row in rows), default=0)
        for entry, state, text in sorted(rows):
            echo(f"  {entry:{width}}  {state:11}  {text}")


def _rules(catalog: Catalog) -> list[tuple[str, str, str]]:
    rows = [(rule.id, str(rule.severity), rule.title) for rule in RULES.texts.values()]
    rows += [(name, issue.severity, issue.what) for name, issue in all_issues(catalog).items()]
    return rows


@command.command("show")
@click.argument("name", shell_complete=recipes)
@catalog_directories
@json_option
def show(name: str, directories: tuple[Path, ...], as_json: bool) -> None:
    """Show one entry whole, with its file."""
    catalog = load_catalog(catalogs(directories))
    entries: dict[str, tuple[str, BaseModel]] = {}
    for kind, group in _groups(catalog).items():
        for key, entry in group.items():
            entries[key] = (kind, entry)
    if name not in entries:
        raise UserError([mistake("catalog", f"no entry {name!r}", suggest(name, list(entries)))])
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
    catalog = load_catalog(catalogs(directories))
    rows: list[tuple[str, str]] = []
    for kind, group in _groups(catalog).items():
        for name, entry in group.items():
            source = getattr(entry, "source", None)
            if source:
                rows.append((f"{kind} {name}", source))
    for image in catalog.images.values():
        rows += [(f"tag {image.name}:{tag}", data.source) for tag, data in image.tags.items()]
    rows += [
        (f"alias {recipe.name}:{name}", alias.source)
        for recipe in catalog.recipes.values()
        for name, alias in recipe.aliases.items()
    ]
    rows += [
        (f"cause {cause.id}", cause.source)
        for group in catalog.causes.values()
        for cause in group.causes
    ]
    rows += [(f"rule {rule.id}", rule.source) for rule in RULES.texts.values()]
    rows += [(f"rule {name}", issue.source) for name, issue in all_issues(catalog).items()]
    if as_json:
        print_json(dict(rows))
        return
    for name, source in rows:
        echo(f"{name}: {source}")


def _groups(catalog: Catalog) -> dict[str, Any]:
    return {
        "recipe": catalog.recipes,
        "model": catalog.models,
        "image": catalog.images,
        "measurement": catalog.measurements,
        "advice": catalog.advice,
        "causes": catalog.causes,
    }
