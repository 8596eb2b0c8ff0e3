"""Tables of a pydantic model's keys, with type, default, and text from the docstring."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from docs.generate.markdown import table
from sparkwright.catalog.reader import documented

#: Placeholder for a key without text in its docstring; a test checks that no placeholder is left.
UNDOCUMENTED = "(not documented)"
_SCALARS = ("boolean", "integer", "number", "string")


def sections(model: type[BaseModel], value: Callable[[Any], str]) -> dict[str, str]:
    """Name -> section of a page, for a model and every model that its keys refer to.

    A section has a heading, a summary and a table of keys.

    Args:
        value: function that formats a default.
    """
    schema = model.model_json_schema(by_alias=False)
    types: dict[str, Any] = {model.__name__: schema, **schema.pop("$defs", {})}
    names = [model.__name__, *_reached(schema, types)]
    return {name: _section(name, types[name], value) for name in names}


def _reached(schema: Any, types: Mapping[str, Any]) -> list[str]:
    """Names of the models that a schema refers to, each after the first model with a reference."""
    names: list[str] = []
    for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)):
        names += [name, *_reached(types[name], types)]
    return list(dict.fromkeys(names))


def _section(name: str, schema: Any, value: Callable[[Any], str]) -> str:
    summary, text = documented(schema.get("description", ""))
    required = schema.get("required", ())
    rows = []
    for key, field in schema["properties"].items():
        default = "required" if key in required else value(field.get("default"))
        kind = in_words(field, lambda name: f"[{name}](#{name.lower()})").removesuffix(" or none")
        form = ", ".join(filter(None, (kind, default)))
        rows.append((f"`{key}`", form, text.get(key) or UNDOCUMENTED))
    return "\n\n".join([f"## {name}", summary, table(("key", "value", "meaning"), rows)])


def in_words(schema: Any, reference: Callable[[str], str]) -> str:
    """Describe a key's type.

    Args:
        reference: function that formats the name of another type.
    """
    if "$ref" in schema:
        return reference(schema["$ref"].rpartition("/")[2])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _one_of(options, reference)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{item}`" for item in schema["enum"])
    match schema.get("type"):
        case "array":
            inner = schema.get("items") or schema["prefixItems"][0]
            return f"list of {in_words(inner, reference)}"
        case "object":
            return f"mapping to {in_words(_values(schema), reference)}"
        case "string":
            return "date" if schema.get("format") == "date" else "text"
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


def _one_of(options: list[Any], reference: Callable[[str], str]) -> str:
    kinds = {option.get("type") for option in options}
    if kinds.issuperset(_SCALARS):
        texts = ["any value"]
    else:
        texts = [in_words(option, reference) for option in options if option.get("type") != "null"]
    return " or ".join(dict.fromkeys(texts + (["none"] if "null" in kinds else [])))


def _bounds(schema: Any) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" {low:g} to {high:g}"
    if low is not None:
        return f" from {low:g}"
    if above is not None:
        return f" above {above:g}" + (f" to {high:g}" if high is not None else "")
    return ""
