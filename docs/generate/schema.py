"""Keys of a pydantic model as a table: type, default, and what the docstring says of each."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from docs.generate.markdown import table
from sparkwright.catalog.reader import documented

#: What stands where a docstring says nothing of a key; a test finds none of it.
UNDOCUMENTED = "(not documented)"
_SCALARS = ("boolean", "integer", "number", "string")


def sections(
    model: type[BaseModel], *, level: int, common: Mapping[str, str], value: Callable[[Any], str]
) -> dict[str, str]:
    """A model and every model that its keys lead to, by name: heading, summary and table.

    Args:
        level: of the first heading; those of the others are one deeper.
        common: what keys mean that several models share, where a docstring says nothing.
        value: writes a default.
    """
    schema = model.model_json_schema(by_alias=False)
    types: dict[str, Any] = schema.pop("$defs", {})
    result = {model.__name__: _section(model.__name__, schema, level, common, value)}
    for name in _reached(schema, types):
        result[name] = _section(name, types[name], level + 1, common, value)
    return result


def _reached(schema: Any, types: Mapping[str, Any]) -> list[str]:
    """Names of the models that a schema leads to, each after the one that names it first."""
    names: list[str] = []
    for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)):
        names += [name, *_reached(types[name], types)]
    return list(dict.fromkeys(names))


def _section(
    name: str, schema: Any, level: int, common: Mapping[str, str], value: Callable[[Any], str]
) -> str:
    summary, text = documented(schema.get("description", ""))
    required = schema.get("required", ())
    rows = [
        (
            f"`{key}`",
            in_words(field),
            "required" if key in required else value(field.get("default")),
            text.get(key) or common.get(key) or UNDOCUMENTED,
        )
        for key, field in schema["properties"].items()
    ]
    head = ("key", "type", "default", "meaning")
    return "\n\n".join([f"{'#' * level} {name}", summary, table(head, rows)])


def in_words(schema: Any) -> str:
    """A key's type."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return _one_of(schema["anyOf"])
    if "oneOf" in schema:
        return _one_of(schema["oneOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{item}`" for item in schema["enum"])
    match schema.get("type"):
        case "array":
            if "prefixItems" in schema:
                return f"{len(schema['prefixItems'])} times {in_words(schema['prefixItems'][0])}"
            return f"list of {in_words(schema['items'])}"
        case "object":
            return f"mapping to {in_words(_values(schema))}"
        case "string":
            return _text(schema)
        case "integer" | "number" as kind:
            return f"{kind}{_bounds(schema)}"
        case "null":
            return "none"
        case kind:
            return str(kind or "anything")


def _values(schema: Any) -> Any:
    if "patternProperties" in schema:
        return next(iter(schema["patternProperties"].values()))
    values = schema.get("additionalProperties") or {}
    return {} if values is True else values


def _one_of(options: list[Any]) -> str:
    kinds = {option.get("type") for option in options}
    some = [option for option in options if option.get("type") != "null"]
    if kinds.issuperset(_SCALARS):
        lists = ", list or mapping" if "array" in kinds else ""
        arguments = [f"boolean, number, text{lists}"]
    else:
        arguments = [in_words(option) for option in some]
    return " or ".join(arguments + (["none"] if "null" in kinds else []))


def _text(schema: Any) -> str:
    if schema.get("format") == "date":
        return "date"
    if "pattern" in schema:
        return f"text like `{schema['pattern']}`"
    return f"text of {schema['minLength']} letters at least" if "minLength" in schema else "text"


def _bounds(schema: Any) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low:g} to {high:g}"
    if low is not None:
        return f", at least {low:g}"
    above = schema.get("exclusiveMinimum")
    if above is None:
        return ""
    return f", above {above:g}" + (f", at most {high:g}" if high is not None else "")
