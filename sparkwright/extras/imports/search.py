"""``sparkwright catalog search``: words in the catalog and in registries of recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """One entry or recipe.

    Attributes:
        place: ``catalog``, or ``@NAME`` of the registry.
        kind: ``recipe``, ``model`` or ``image``.
        name: what commands call it.
    """

    place: str
    kind: str
    name: str
    title: str


def in_catalog(catalog: Catalog, words: Iterable[str]) -> Iterator[Found]:
    """Entries that have every word in name, title or repository."""
    wanted = [word.lower() for word in words]
    rows = [
        *(("recipe", one.name, f"{one.title} ({one.status})", one.body.model)
          for one in catalog.recipes.values()),
        *(("model", one.name, one.repository, one.family) for one in catalog.models.values()),
        *(("image", one.name, one.repository, "") for one in catalog.images.values()),
    ]  # fmt: skip
    for kind, name, title, more in sorted(rows):
        if _has(wanted, name, title, more):
            yield Found("catalog", kind, name, title)


def in_registry(name: str, texts: Iterable[Text], words: Iterable[str]) -> Iterator[Found]:
    """Recipes of a registry that have every word in path, model or description."""
    wanted = [word.lower() for word in words]
    for text in texts:
        try:
            data = read_yaml(text.text)
            if format_of(data) is None:
                continue
            about = mapping(data, "meta") or mapping(data, "metadata")
        except Refused:
            continue
        model = data["model"]
        named = model if isinstance(model, str) else str(model.get("model_id"))
        said = about.get("title") or about.get("description") or data.get("description") or ""
        if _has(wanted, text.name, named, str(said)):
            yield Found(f"@{name}", "recipe", text.name, line(f"{named}: {said}", 100))


def _has(wanted: list[str], *texts: str) -> bool:
    everything = " ".join(texts).lower()
    return all(word in everything for word in wanted)


DOCUMENT = list[Found]


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@catalog_directories
@click.option(
    "--inventory",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Look through the `registries` of this inventory; else the site's own.",
)
@json_option
def command(
    words: tuple[str, ...], directories: tuple[Path, ...], inventory: Path | None, as_json: bool
) -> None:
    """Look for words in the catalog, your own and the registries of recipes.

    A registry is fetched once per commit. Its recipes are imported with `sparkwright import
    @NAME/RECIPE`.
    """
    found = list(in_catalog(load_catalog(catalogs(directories)), words))
    for name, texts in registries_of(inventory):
        found += in_registry(name, texts, words)
    if as_json:
        print_json([vars(one) for one in found])
        return
    for one in found:
        name = one.name if one.place == "catalog" else f"{one.place}/{one.name}"
        echo(visible(f"{one.kind:7} {name}  {one.title}"))
    echo(f"{len(found)} found")
