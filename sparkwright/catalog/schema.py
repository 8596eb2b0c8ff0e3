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
    found = KINDS[kind].model_json_schema()
    for one in (found, *found.get("$defs", {}).values()):
        _describe(one)
    found["properties"]["extends"] = {
        "description": EXTENDS, "anyOf": [{"const": True}, {"type": "string"}],
    }  # fmt: skip
    needed = found.pop("required")
    found["required"] = ["kind", "name"]
    found["if"] = {"required": ["extends"]}
    found["else"] = {"required": needed}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _describe(one: dict[str, Any]) -> None:
    summary, said = documented(one.get("description", ""))
    one["description"] = summary
    for key, field in one.get("properties", {}).items():
        words = said.get(key) or COMMON.get(key)
        if words:
            field["description"] = words


def documented(docstring: str) -> tuple[str, dict[str, str]]:
    """What a docstring says: its text, and its ``Attributes`` by name."""
    text, _, attributes = docstring.partition("Attributes:\n")
    said: dict[str, str] = {}
    names: list[str] = []
    for line in attributes.splitlines():
        begun = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if begun:
            names = begun[1].split(", ")
            said |= dict.fromkeys(names, begun[2])
        else:
            said |= {name: f"{said[name]} {line.strip()}".strip() for name in names}
    return _markdown(text), {name: _markdown(words) for name, words in said.items()}


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def allowed(kind: str, path: tuple[str, ...]) -> str:
    """What may be written for a key, in a few words; empty where it is anything of its type."""
    whole = KINDS[kind].model_json_schema()
    found: Any = whole
    for part in path:
        found = _inner(found, whole).get("properties", {}).get(part)
        if found is None:
            return ""
    found = _inner(found, whole)
    if "const" in found:
        return str(found["const"])
    if "enum" in found:
        return ", ".join(map(str, found["enum"]))
    if "properties" in found:
        return f"a mapping with {', '.join(found.get('required', found['properties']))}"
    return _WORDS.get(str(found.get("type")), str(found.get("format", "")))


def _inner(found: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Where a reference, or the one type beside null, leads to."""
    some = [one for one in found.get("anyOf", []) if one.get("type") != "null"]
    if len(some) == 1:
        found = some[0]
    if "$ref" in found:
        target: dict[str, Any] = whole["$defs"][found["$ref"].rpartition("/")[2]]
        return target
    return found
