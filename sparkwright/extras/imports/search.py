"""``sparkwright catalog search``: words in the catalog and in registries of recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    def has(self, words: Iterable[str], more: str = "") -> bool:
        """Whether every word is in its name, its title, or more of it."""
        text = f"{self.name} {self.title} {more}".lower()
        return all(word.lower() in text for word in words)


def in_catalog(catalog: Catalog, words: Sequence[str]) -> Iterator[Found]:
    """Entries that have every word in name, title or repository."""
    rows = [
        *(("recipe", recipe.name, f"{recipe.title} ({recipe.status})", recipe.body.model)
          for recipe in catalog.recipes.values()),
        *(("model", model.name, model.repository, model.family)
          for model in catalog.models.values()),
        *(("image", image.name, image.repository, "") for image in catalog.images.values()),
    ]  # fmt: skip
    for kind, name, title, more in sorted(rows):
        if (entry := Found("catalog", kind, name, title)).has(words, more):
            yield entry


def in_registry(name: str, texts: Iterable[Text], words: Sequence[str]) -> Iterator[Found]:
    """Recipes of a registry that have every word in path, model or description."""
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
        title = about.get("title") or about.get("description") or data.get("description") or ""
        entry = Found(f"@{name}", "recipe", text.name, line(f"{named}: {title}", 100))
        if entry.has(words, f"{named} {title}"):
            yield entry


DOCUMENT = list[Found]


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@catalog_directories
@click.option(
    "--inventory", type=click.Path(path_type=Path, dir_okay=False),
    help="Look through the `registries` of this inventory; else the site's own.",
)  # fmt: skip
@json_option
def command(
    words: tuple[str, ...], directories: tuple[Path, ...], inventory: Path | None, as_json: bool
) -> None:
    """Look for words in the catalog, your own and the registries of recipes.

    A registry is fetched once per commit. Its recipes are imported with `sparkwright import
    @NAME/RECIPE`.
    """
    entries = list(in_catalog(load_catalog(catalogs(directories)), words))
    for registry, texts in registries_of(inventory):
        entries += in_registry(registry, texts, words)
    if as_json:
        print_json([vars(entry) for entry in entries])
        return
    for entry in entries:
        name = entry.name if entry.place == "catalog" else f"{entry.place}/{entry.name}"
        echo(visible(f"{entry.kind:7} {name}  {entry.title}"))
    echo(f"{len(entries)} found")
