"""A first version of a user's own entry, with every key explained."""

import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from sparkwright.catalog.reader import COMMON, KINDS, documented
from sparkwright.text.shipped_yaml import beside

#: The schemas' folder, beside the folders of entries.
SCHEMAS = ".schema"
#: Placeholders for keys without a known value, by kind: valid values that the user must change.
PLACEHOLDERS: dict[str, dict[str, Any]] = beside(__file__, "placeholders.yaml")


def draft(
    kind: str, name: str, values: Mapping[str, Any], origins: Mapping[str, str] | None = None
) -> str:
    """The text of a file: keys with values first, then the other keys, commented out.

    Args:
        values: values of the entry's keys; ``extends`` may be one of the keys.
        origins: argument of a recipe -> source of its value, written beside it.
    """
    model = KINDS[kind]
    summary, docs = documented(inspect.getdoc(model) or "")
    lines = [
        f"# yaml-language-server: $schema=../{SCHEMAS}/{kind}.json",
        f"# {summary} Every key: sparkwright catalog schema {kind}.",
        f"kind: {kind}",
        f"name: {name}",
    ]
    if "extends" in values:
        lines += [f"extends: {values['extends']}    # keys not written here come from that entry"]
    rest: list[str] = []
    for key, field in model.model_fields.items():
        if key in ("kind", "name"):
            continue
        explained = docs.get(key) or COMMON.get(key, "")
        comment = textwrap.wrap(explained, 96, initial_indent="# ", subsequent_indent="# ")
        if key in values:
            lines += ["", *comment, *_lines(key, values[key], origins or {})]
        else:
            default = field.get_default(call_default_factory=True)
            shown = "..." if field.is_required() else _flow(default)
            rest += [*comment, f"# {key}: {shown}"]
    return "\n".join([*lines, "", "# Other keys:", *rest, ""])


def _lines(key: str, value: Any, origins: Mapping[str, str]) -> list[str]:
    if key != "arguments" or not isinstance(value, dict):
        return _dumped({key: value})
    if not value:
        return ["arguments: {}"]
    result = ["arguments:"]
    for name, item in value.items():
        *before, last = _dumped({name: item})
        origin = f"    # {origins[name]}" if name in origins else ""
        result += [f"  {line}" for line in before] + [f"  {last}{origin}"]
    return result


def _dumped(data: dict[str, Any]) -> list[str]:
    (value,) = data.values()
    # With None, PyYAML writes a mapping of plain values in brackets on one line.
    style = None if isinstance(value, dict | list | tuple) else False
    text = yaml.safe_dump(
        data, sort_keys=False, default_flow_style=style, allow_unicode=True, width=96
    )
    return text.rstrip("\n").split("\n")


def _flow(value: Any) -> str:
    plain = list(value) if isinstance(value, tuple) else value
    if hasattr(plain, "model_dump"):
        plain = plain.model_dump(mode="json")
    text = yaml.safe_dump(plain, default_flow_style=True, width=10**6)
    return text.removesuffix("...\n").strip()
