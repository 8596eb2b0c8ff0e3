"""docs/catalog.md: what the catalog has, from its entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docs.generate.cards import CARDS
from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog, Recipe
from sparkwright.catalog.gpu import family
from sparkwright.catalog.gpus import MACHINES, architectures, spark_only

_INTRODUCTION = """\
Twelve systems that sparkwright serves without a file of yours, each as its card publishes it.
AEON's images are for arm64, so for DGX Sparks only; RTX 50 boxes run stock vLLM, by vLLM's own
recipes.
`sparkwright advise agents` names recipes for a workload, `sparkwright catalog show NAME` prints an
entry whole. What is known to go wrong: [Rules](rules.md). What to do when it did:
[Diagnoses](diagnoses.md). How to write entries: [The catalog's YAML](catalog-yaml.md). Where a
recipe differs from its card: [Deviations](../catalog/DEVIATIONS.md).

Another tag, recipe or model is one setting: `image_tag`, `recipe`, or a YAML file of your own."""

_CARDS = """\
Facts and figures come from the publishers' cards, as they were read on the given day. Pages,
messages and the catalog's `source` cite them by these names, with the section. Where two contradict
each other for the same tag, the newer dated statement holds, and a comment in the catalog's file
names both. "Field reports" are NVIDIA's playbooks and public reports of users; "vLLM as observed"
is what real vLLM servers accepted, printed and answered."""


def page(catalog: Catalog) -> str:
    """The whole page."""
    recipes = sorted(catalog.recipes.values(), key=in_order)
    parts = [
        "# The catalog",
        GENERATED.format(what="the catalog"),
        _INTRODUCTION,
        "## Cards",
        _CARDS,
        table(
            ("name", "of", "read", "published at"),
            ((name, of, day, f"<{at}>") for name, of, day, at in CARDS),
        ),
        "## Systems",
        table(
            ("system", "recipe", "GPU", "status", "image and tag", "source"),
            (
                (
                    recipe.system,
                    f"`{recipe.name}`",
                    _machines(recipe, catalog),
                    recipe.status,
                    f"{recipe.image}:{recipe.tag or catalog.images[recipe.image].newest_tag}",
                    recipe.source,
                )
                for recipe in recipes
            ),
        ),
        "## Aliases",
        "Names of one model, and what clients should send with them "
        "(`sparkwright endpoints` writes it into their configuration).",
        table(
            ("alias", "for", "T", "top P", "top K", "presence", "thinking", "source", "recipes"),
            _aliases(catalog),
        ),
        "## Tags",
        table(
            ("image", "tag", "date", "vLLM", "for", "roll back to", "breaks"),
            (
                (
                    image.name,
                    f"`{tag}`",
                    str(data.date),
                    data.vllm or "unknown",
                    ", ".join(data.architectures),
                    data.rollback or "-",
                    "; ".join(data.breaks) or "-",
                )
                for image in catalog.images.values()
                for tag, data in image.tags.items()
            ),
        ),
        "## Models",
        table(
            ("model", "repository", "format", "GiB", "status"),
            (
                (
                    f"`{model.name}`",
                    model.repository,
                    model.format or "unknown",
                    f"{model.size_gib:g}" if model.size_gib else "unknown",
                    f"{model.status}{': ' + model.reason if model.reason else ''}",
                )
                for model in sorted(catalog.models.values(), key=lambda model: model.name)
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def in_order(recipe: Recipe) -> tuple[int, str, str]:
    """Systems by their numbers."""
    return int(recipe.system.partition(".")[0]), recipe.system, recipe.name


def _machines(recipe: Recipe, catalog: Catalog) -> str:
    """The GPUs that it is made for, and what its image makes of that."""
    words = ", ".join(family(cap) for cap in recipe.needs.compute_caps)
    published = architectures(recipe, catalog)
    if any(MACHINES[cap] not in published for cap in recipe.needs.compute_caps):
        return f"{words}, as its card says; its image is for {', '.join(published)} alone"
    return f"{words} only" if spark_only(recipe, catalog) else words


def _aliases(catalog: Catalog) -> Iterable[Sequence[str]]:
    """A line per alias; recipes of the same model share it."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for recipe in sorted(catalog.recipes.values(), key=in_order):
        for name, alias in recipe.aliases.items():
            line = (
                f"`{name}`",
                alias.title,
                _figure(alias.temperature),
                _figure(alias.top_p),
                _figure(alias.top_k),
                _figure(alias.presence_penalty),
                {None: "-", True: "on", False: "off"}[alias.thinking],
                alias.source,
            )
            lines.setdefault(line, []).append(f"`{recipe.name}`")
    for shared, recipes in lines.items():
        yield *shared, ", ".join(recipes)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
