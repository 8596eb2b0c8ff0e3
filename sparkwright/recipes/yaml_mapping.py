"""Foreign YAML, read with bounds."""

import re
from typing import Any

from sparkwright.documents import bounds, yaml_text
from sparkwright.recipes.recipe import Unfit

#: Largest size of a recipe in bytes; the largest known recipe has 40 KiB.
MOST_BYTES = 256 * 1024
#: Largest number of values of a recipe; each alias counts with all of its content.
MOST_VALUES = 20_000
#: Pattern of an option before a value in the same item.
_PAIR = re.compile(r"\A(--[\w.-]+)\s+(?=\S)")


def read_yaml(text: str) -> dict[str, Any]:
    """Read a mapping from YAML text.

    Raises:
        Unfit: the value has another type, or grows without bounds when it is read.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise Unfit("", f"larger than {MOST_BYTES // 1024} KiB", "recipes are smaller")
    try:
        data = yaml_text.load(text, MOST_VALUES)
    except bounds.Unusable as error:
        remedy = f"import a corrected copy: {error.remedy}"
        raise Unfit(
            "", error.place(error.fault[:200]), "sparkwright can't read the file", remedy
        ) from None
    if not isinstance(data, dict):
        raise Unfit("", "not a mapping of keys to values", "a recipe is a mapping")
    return {str(key): value for key, value in data.items()}


def mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Mapping at a key; empty if the key is missing or null.

    Raises:
        Unfit: the value has another type.
    """
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unfit(key, f"{type(value).__name__}, not a mapping", "this key must be a mapping")
    return {str(name): entry for name, entry in value.items()}


def environment(given: dict[str, Any]) -> dict[str, str]:
    """Variables as text; no variable of the controller is filled in."""
    return {name: "" if value is None else str(value) for name, value in given.items()}


def strings(data: dict[str, Any], key: str) -> list[str]:
    """Strings of a key's list; empty if the key is missing or null. An item such as
    ``--max-model-len auto`` is an option and its value.
    """
    value = data.get(key)
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [part for item in items for part in _PAIR.split(str(item)) if part or not item]


def positive(value: Any) -> int | None:
    """A whole number above 0; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def line(value: Any, longest: int = 200) -> str:
    """Foreign text on one line, cut to ``longest``."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
