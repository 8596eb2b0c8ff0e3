"""docs/catalog.md: what the catalog has, from its entries."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from docs.generate import systems
from docs.generate.cards import CARDS
from docs.generate.markdown import GENERATED, table
from docs.generate.speeds import in_order
from sparkwright.catalog import Catalog, Image, Model

_INTRODUCTION = """\
Twelve systems that sparkwright serves without a file of yours, each as its card publishes it, and
recipes for several Sparks, and for newer models, as others publish them.
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
names both. "vLLM as observed" is what real vLLM servers accepted, printed and answered.
"sparkwright" marks this project's own values, "sparkwright, after …" its own words for what others
saw."""


_SYSTEMS = """\
"Run on hardware with this tool" is what was deployed with sparkwright on a real GPU, and seen to
answer. "Published figures" are the cards' own, on their GPUs and tags; `sparkwright catalog show
NAME` prints a table whole."""

_SWITCHES = """\
What a client may send beside the sampling. `thinking` of an alias is `enable_thinking`."""

_NOT_OURS = """\
Ways to run the models that the cards show and that sparkwright has not, and models that many run
and that the catalog lacks."""


def page(catalog: Catalog, not_ours: Path) -> str:
    """The whole page."""
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
        _SYSTEMS,
        *systems.sections(catalog),
        "## Aliases",
        "Names of one model, and what clients should send with them "
        "(`sparkwright endpoints` writes it into their configuration).",
        table(
            ("alias", "for", "T", "top P", "top K", "presence", "thinking", "source", "recipes"),
            _aliases(catalog),
        ),
        "## Tags",
        table(
            ("image", "tag", "date", "vLLM", "with", "for", "roll back to", "adds", "breaks"),
            (_tag(image, tag) for image in catalog.images.values() for tag in image.tags),
        ),
        "## Variables",
        "What images read beside vLLM's own variables, as their cards document it.",
        table(
            ("image", "variable", "default", "meaning", "source"),
            _variables(catalog),
        ),
        "## Switches of a request",
        _SWITCHES,
        table(("switch", "meaning", "models", "source"), _switches(catalog)),
        "## Images beside these",
        table(
            ("image", "of it", "source"),
            (
                (f"`{item.reference}`", item.remark, item.source)
                for image in catalog.images.values()
                for item in image.beside
            ),
        ),
        "## Not ours",
        _NOT_OURS,
        table(
            ("on the cards", "why not here", "source"),
            (tuple(way.values()) for way in yaml.safe_load(not_ours.read_text(encoding="utf-8"))),
        ),
        "## Models",
        table(
            ("model", "repository", "format", "GiB", "status"),
            map(_model, sorted(catalog.models.values(), key=lambda model: model.name)),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _variables(catalog: Catalog) -> Iterator[Sequence[str]]:
    for image in catalog.images.values():
        for setting in image.settings:
            yield (
                image.name,
                f"`{setting.name}`",
                setting.default or "-",
                setting.meaning,
                setting.source,
            )


def _tag(image: Image, name: str) -> Sequence[str]:
    tag = image.tags[name]
    return (
        image.name,
        f"`{name}`",
        str(tag.date),
        tag.version or "unknown",
        ", ".join(f"{part} {version}" for part, version in tag.components.items()) or "-",
        ", ".join(tag.architectures),
        tag.rollback or "-",
        "; ".join((*tag.adds, *tag.fixes)) or "-",
        "; ".join(tag.breaks) or "-",
    )


def _model(model: Model) -> Sequence[str]:
    return (
        f"`{model.name}`",
        model.repository,
        model.format or "unknown",
        f"{model.size_gib:g}" if model.size_gib else "unknown",
        f"{model.status}{': ' + model.reason if model.reason else ''}",
    )


def _switches(catalog: Catalog) -> Iterable[Sequence[str]]:
    """A line per switch; models with the same one share it."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for model in sorted(catalog.models.values(), key=lambda model: model.name):
        for switch in model.switches:
            sent = json.dumps({"chat_template_kwargs": {switch.key: switch.value}})
            line = f"`{sent}`", switch.meaning, switch.source
            lines.setdefault(line, []).append(f"`{model.name}`")
    for (sent, meaning, source), models in lines.items():
        yield sent, meaning, ", ".join(models), source


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
