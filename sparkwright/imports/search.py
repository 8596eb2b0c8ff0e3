"""Words looked for in the catalog, the site's own and the registries of recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkwright.catalog import Catalog
from sparkwright.imports.foreign import Text
from sparkwright.imports.formats import format_of
from sparkwright.imports.remarks import Refused
from sparkwright.imports.text import line, mapping, read_yaml


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
