"""Validates a JSON value by a schema, with the keywords that the checks' own schemas use."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def misfits(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """What is not valid, each with its place; empty for a valid value.

    Raises:
        ValueError: for a schema with another keyword.
    """
    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "minimum"}
    if unknown := set(schema) - known - {"description"}:
        raise ValueError(f"the validator does not know {', '.join(sorted(unknown))}")
    kind = schema["type"]
    wrong: list[str] = []
    # In Python a bool is an int, in JSON it is not.
    fits: bool = isinstance(value, _TYPES[kind])
    if not fits or (isinstance(value, bool) and kind != "boolean"):
        return [f"{at} is {type(value).__name__}, not {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"{at} is {value!r}; allowed: {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        wrong.append(f"{at} is {value}, below {schema['minimum']}")
    if kind == "array" and "items" in schema:
        for number, part in enumerate(value):
            wrong += misfits(part, schema["items"], f"{at}[{number}]")
    if kind == "object":
        properties = schema.get("properties", {})
        wrong += [
            f"{at}.{key} is missing" for key in schema.get("required", ()) if key not in value
        ]
        for key, part in value.items():
            if key in properties:
                wrong += misfits(part, properties[key], f"{at}.{key}")
            elif schema.get("additionalProperties") is False:
                wrong.append(f"{at}.{key} is not in the schema")
    return wrong
