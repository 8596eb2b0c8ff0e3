"""JSON Schema of every kind of entry, for editors: from the types and their docstrings."""

import re
from typing import Any

from pydantic import BaseModel

from sparkwright.catalog.advice import Advice
from sparkwright.catalog.causes import Causes
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.catalog.measurements import Measurement

KINDS: dict[str, type[BaseModel]] = {
    "recipe": Recipe, "model": Model, "image": Image, "measurement": Measurement,
    "advice": Advice, "causes": Causes,
}  # fmt: skip
#: What keys mean that several types share, where a docstring says nothing.
COMMON = {
    "kind": "what the file is an entry of",
    "name": "what other entries, settings and commands call it",
    "title": "one line for people",
    "source": "who says so: a card and its section, or your own measurement",
    "date": "the day of that statement: of two that disagree, the newer one holds",
    "why": "the reason",
}
_WORDS = {
    "array": "a list", "object": "a mapping", "integer": "a whole number", "number": "a number",
}  # fmt: skip
EXTENDS = (
    "true: over the entry of the same name in an earlier catalog; a name: over that entry, under "
    "this one's own name. Mappings are merged key by key, everything else is replaced"
)


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind; what extends another entry needs no key of its own."""
    result = KINDS[kind].model_json_schema()
    for item in (result, *result.get("$defs", {}).values()):
        _describe(item)
    result["properties"]["extends"] = {
        "description": EXTENDS, "anyOf": [{"const": True}, {"type": "string"}],
    }  # fmt: skip
    needed = result.pop("required")
    result["required"] = ["kind", "name"]
    result["if"] = {"required": ["extends"]}
    result["else"] = {"required": needed}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **result}


def _describe(part: dict[str, Any]) -> None:
    summary, text = documented(part.get("description", ""))
    part["description"] = summary
    for key, field in part.get("properties", {}).items():
        meaning = text.get(key) or COMMON.get(key)
        if meaning:
            field["description"] = meaning


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text and its ``Attributes`` by name."""
    text, _, attributes = docstring.partition("Attributes:\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in attributes.splitlines():
        begun = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if begun:
            names = begun[1].split(", ")
            texts |= dict.fromkeys(names, begun[2])
        else:
            texts |= {name: f"{texts[name]} {line.strip()}".strip() for name in names}
    return _markdown(text), {name: _markdown(arguments) for name, arguments in texts.items()}


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def allowed(kind: str, path: tuple[str, ...]) -> str:
    """Allowed values of a key, in a few words; empty where any value of its type is allowed."""
    whole = KINDS[kind].model_json_schema()
    result: Any = whole
    for part in path:
        result = _inner(result, whole).get("properties", {}).get(part)
        if result is None:
            return ""
    result = _inner(result, whole)
    if "const" in result:
        return str(result["const"])
    if "enum" in result:
        return ", ".join(map(str, result["enum"]))
    if "properties" in result:
        return f"a mapping with {', '.join(result.get('required', result['properties']))}"
    return _WORDS.get(str(result.get("type")), str(result.get("format", "")))


def _inner(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Where a reference, or the one type beside null, leads to."""
    some = [item for item in part.get("anyOf", []) if item.get("type") != "null"]
    if len(some) == 1:
        part = some[0]
    if "$ref" in part:
        target: dict[str, Any] = whole["$defs"][part["$ref"].rpartition("/")[2]]
        return target
    return part
