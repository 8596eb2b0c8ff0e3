"""Page catalog/DEVIATIONS.md: differences between rendered services and their cards' commands."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.catalog.entries import TagChange

_INTRODUCTION = """\
All other settings of a rendered service equal its card's command. A test compares both, and fails
on a difference that these tables lack, and on a row that applies to no recipe
(tests/unit/catalog/test_card_commands.py)."""

_TAGS = """\
A card's command is for one tag. A recipe's `by_tag` holds the changes for other tags, including
the image's newest tag, with reasons."""


def page(catalog: Catalog, deviations: Path) -> str:
    """Text of the page."""
    declared: list[dict[str, Any]] = yaml.safe_load(deviations.read_text(encoding="utf-8"))
    parts = [
        "# Differences between recipes and cards",
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
    """Recipes that a deviation applies to, from all ``recipes`` whose cards have a command."""
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
