"""catalog/DEVIATIONS.md: differences between rendered services and their cards' commands, with
reasons.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.catalog.entries import TagChange

_INTRODUCTION = """\
Everything else in a rendered service equals its card's command, setting for setting. A test
compares the two, and fails on a difference that is not in these tables and on a line of them that
no recipe has (tests/unit/catalog/test_card_commands.py)."""

_TAGS = """\
A card's command is of one tag. What a recipe says otherwise on another one, the image's newest
included, stands in its `by_tag` with the reason."""


def page(catalog: Catalog, deviations: Path) -> str:
    """The whole page."""
    declared: list[dict[str, Any]] = yaml.safe_load(deviations.read_text(encoding="utf-8"))
    parts = [
        "# Where we write something else than the cards, and why",
        GENERATED.format(source="docs/deviations.yaml or the catalog"),
        _INTRODUCTION,
        table(
            ("card", "here", "why", "recipes"),
            ((item["card"], item["here"], item["why"], _recipes(item)) for item in declared),
        ),
        "## Other tags",
        _TAGS,
        table(("recipe", "tag", "here", "why", "source"), _by_tag(catalog)),
    ]
    return "\n\n".join(parts) + "\n"


def concerned(row: Mapping[str, Any], recipes: Collection[str]) -> list[str]:
    """The recipes that a deviation concerns, if their cards have a command."""
    named = row.get("recipes", recipes)
    return [name for name in named if name not in row.get("except", ())]


def _recipes(row: Mapping[str, Any]) -> str:
    if "recipes" in row:
        return ", ".join(f"`{name}`" for name in row["recipes"])
    left_out = ", ".join(f"`{name}`" for name in row.get("except", ()))
    return f"all but {left_out}" if left_out else "all"


def _by_tag(catalog: Catalog) -> Iterable[Sequence[str]]:
    for name, recipe in sorted(catalog.recipes.items()):
        for tag, change in recipe.by_tag.items():
            yield f"`{name}`", f"`{tag}`", _changed(change), change.why, change.source


def _changed(change: TagChange) -> str:
    parts = [
        f"no `{key}`" if value is None else f"`{key}: {_value(value)}`"
        for each in (change.arguments, change.environment)
        for key, value in each.items()
    ]
    return ", ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {item}' for key, item in value.items())}}}"
    return str(value)
