"""YAML from outside, checked as a stream of events before any value is built."""

from collections.abc import Hashable
from typing import Any

import yaml

from sparkwright.documents.bounds import DEEPEST, MOST, Unusable, bounded

_BASE: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Number of levels that libyaml, a recursive parser, reads without a segmentation fault. PyYAML's
#: Python parser raises an exception much earlier.
_BUILT = 1000 if hasattr(yaml, "CSafeLoader") else 200


def load(text: str, most: int = MOST) -> Any:
    """Return the value of a YAML text of at most this many values; None for an empty text.

    Raises:
        Unusable: the text is not YAML, has a key twice, or is beyond the bounds.
    """
    try:
        if not _simple(text, most):
            _within_bounds(text, most)
        loader = _Loader(text)
        try:
            result = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _unusable(error) from None
    try:
        bounded(result, most)
    except Unusable:
        _within_bounds(text, most)  # names the line
        raise
    return result


def _simple(text: str, most: int) -> bool:
    """Return whether the text has no alias, and few lines and levels. A block level needs a column,
    and a list may start in the column of its parent; a level of a flow collection needs a bracket.
    """
    lines = text.splitlines()
    levels = text.count("[") + text.count("{") + 2 * max(map(len, lines), default=0)
    return "*" not in text and len(lines) + text.count(",") <= most and levels <= _BUILT


def _within_bounds(text: str, most: int) -> None:
    """Check the number of levels and values; an alias counts as many values as its anchor."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    count = 0
    for event in yaml.parse(text, Loader=_BASE):
        line = event.start_mark.line + 1 if event.start_mark else None
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in (name for name, _ in open_):
                problem = f"the alias *{event.anchor} refers to itself"
                raise Unusable(problem, "write the value instead of the alias", line)
            count += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor is not None:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
        if len(open_) > DEEPEST:
            problem = f"more than {DEEPEST} nested lists and mappings"
            raise Unusable(problem, "use fewer nested levels", line)
        if count > most:
            raise Unusable(f"more than {most} values, aliases expanded", "use fewer values", line)


class _Loader(_BASE):  # type: ignore[misc, valid-type]
    """Loader that names the line of every invalid value and every duplicate key."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            problem = f"{str(node.value)[:80]!r} is not a valid value: {error}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if (key.tag, key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} appears twice", key.start_mark
                    )
                seen.add((key.tag, key.value))
        result: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return result


def _unusable(error: yaml.YAMLError) -> Unusable:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None)
    text = " ".join(str(problem or error).split())
    return Unusable(f"not valid YAML: {text}", "fix that line", mark.line + 1 if mark else None)
