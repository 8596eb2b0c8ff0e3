"""``sparkwright catalog search``: words in the catalog and in registries of recipes."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.cli.lib.options import catalog_directories, json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.places import catalogs
from sparkwright.extras.imports.formats import format_of
from sparkwright.extras.imports.sources import registries_of
from sparkwright.recipes.recipe import Refused, Text
from sparkwright.recipes.yaml_mapping import line, mapping, read_yaml
from sparkwright.text.visible import visible


@dataclass(frozen=True)
class Found:
    """An entry or a recipe.

    Attributes:
        place: ``catalog``, or ``@NAME`` of the registry.
        kind: ``recipe``, ``model`` or ``image``.
        name: what commands call it.
    """

    place: str
    kind: str
    name: str
    title: str


def _in_catalog(catalog: Catalog) -> Iterator[tuple[Found, str]]:
    """Every entry, with the rest of what is looked through."""
    for kind, name, entry in catalog.every():
        if kind == "recipe":
            title = f"{entry.title} ({entry.status})"
            yield Found("catalog", kind, name, title), entry.body.model
        elif kind in ("model", "image"):
            yield Found("catalog", kind, name, entry.repository), getattr(entry, "family", "")


def _in_registry(name: str, texts: Iterable[Text]) -> Iterator[tuple[Found, str]]:
    """Every recipe of a registry, with its model and description."""
    for text in texts:
        with suppress(Refused):
            data = read_yaml(text.text)
            if format_of(data):
                about = mapping(data, "meta") or mapping(data, "metadata")
                model = data["model"]
                named = model if isinstance(model, str) else str(model.get("model_id"))
                titles = (about.get("title"), about.get("description"), data.get("description"))
                title = f"{named}: {next(filter(None, titles), '')}"
                yield Found(f"@{name}", "recipe", text.name, line(title, 100)), title


DOCUMENT = list[Found]


@click.command("search")
@click.argument("arguments", nargs=-1, required=True, metavar="WORD...")
@catalog_directories
@click.option(
    "--inventory", type=click.Path(path_type=Path, dir_okay=False),
    help="Look through the `registries` of this inventory; else the site's own.",
)  # fmt: skip
@json_option
def command(
    arguments: tuple[str, ...], directories: tuple[Path, ...], inventory: Path | None, as_json: bool
) -> None:
    """Look for words in the catalog, your own and the registries of recipes.

    A registry is fetched once per commit. Its recipes are imported with `sparkwright import
    @NAME/RECIPE`.
    """
    rows = [*_in_catalog(load_catalog(catalogs(directories)))]
    rows.sort(key=lambda row: (row[0].kind, row[0].name))
    for registry, texts in registries_of(inventory):
        rows += _in_registry(registry, texts)
    entries = [
        entry
        for entry, more in rows
        if all(word.lower() in f"{entry.name} {entry.title} {more}".lower() for word in arguments)
    ]
    if as_json:
        print_json([vars(entry) for entry in entries])
        return
    for entry in entries:
        name = entry.name if entry.place == "catalog" else f"{entry.place}/{entry.name}"
        echo(visible(f"{entry.kind:7} {name}  {entry.title}"))
    echo(f"{len(entries)} found")
