"""Somebody else's YAML, read with bounds."""

from __future__ import annotations

from typing import Any

import yaml

from sparkwright.recipes.recipe import Refused

#: Bytes of a recipe; the largest real one has 40 KiB.
MOST_BYTES = 256 * 1024
#: Values of a recipe, each alias counted with all that it stands for.
MOST_VALUES = 20_000
_DEEPEST = 40


def read_yaml(text: str) -> dict[str, Any]:
    """A mapping.

    Raises:
        Refused: for everything else, and for what grows without bounds when it is read.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise Refused("", f"larger than {MOST_BYTES // 1024} KiB", "no recipe is so large")
    try:
        _shallow(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            _count(node, 0, 0)
        data = yaml.load(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        raise Refused("", f"not valid YAML: {said[:200]}", "it can't be read") from None
    if not isinstance(data, dict):
        raise Refused("", "not a mapping of keys to values", "a recipe is one")
    return {str(key): value for key, value in data.items()}


def _shallow(text: str) -> None:
    """Refuse what nests deeper than anybody writes, before the rest of it is read."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise Refused("", f"deeper than {_DEEPEST} levels", "no recipe is so deep")


def _count(node: yaml.Node, seen: int, depth: int) -> int:
    """Values below a node; an alias is a node that is met once more."""
    seen += 1
    if seen > MOST_VALUES or depth > _DEEPEST:
        raise Refused("", "its aliases or its depth have no end", "such YAML fills the memory")
    if isinstance(node, yaml.SequenceNode):
        for one in node.value:
            seen = _count(one, seen, depth + 1)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            seen = _count(value, _count(key, seen, depth + 1), depth + 1)
    return seen


def mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    """A key's mapping; empty where it is missing, or says nothing.

    Raises:
        Refused: for another type.
    """
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused(key, f"{type(value).__name__}, not a mapping", "its keys are read by name")
    return {str(name): one for name, one in value.items()}


def environment(given: dict[str, Any]) -> dict[str, str]:
    """Variables as text; nothing of the controller's environment is filled in."""
    return {name: "" if value is None else str(value) for name, value in given.items()}


def words(data: dict[str, Any], key: str) -> list[str]:
    """A key's list, as text; empty where it is missing, or says nothing."""
    value = data.get(key)
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def line(value: Any, longest: int = 200) -> str:
    """One line of somebody else's words."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
