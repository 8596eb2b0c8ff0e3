"""docs/catalog.md: what the catalog has, from its entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docs.generate.cards import CARDS
from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.catalog.gpu import family

_INTRODUCTION = """\
Nine systems that sparkwright serves without a file of yours, each as its card publishes it.
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
    recipes = sorted(catalog.recipes.values(), key=lambda recipe: (recipe.system, recipe.name))
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
                    ", ".join(family(cap) for cap in recipe.needs.compute_caps),
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
            ("image", "tag", "date", "vLLM", "roll back to", "breaks"),
            (
                (
                    image.name,
                    f"`{tag}`",
                    str(data.date),
                    data.vllm or "unknown",
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


def _aliases(catalog: Catalog) -> Iterable[Sequence[str]]:
    """A line per alias; recipes of the same model share it."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for recipe in sorted(catalog.recipes.values(), key=lambda recipe: (recipe.system, recipe.name)):
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
