"""vLLM's parsing of the text of one argument; each function raises argparse's error."""

import argparse
import json
import re
from collections.abc import Callable
from typing import Any

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def human_readable_int(text: str) -> int:
    """Parse `32768`, `32k` (32000), `32K` (32768) or `25.6k`; a binary suffix needs an integer."""
    text = text.strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text)
    if not match:
        return int(text)
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    if "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {suffix}. "
            f"Did you mean to use {number}{suffix.lower()} instead?"
        )
    return int(number) * _BINARY[suffix]


def human_readable_int_or_auto(text: str) -> int:
    """Parse as `human_readable_int` does; `auto` is -1."""
    return -1 if text.strip().lower() == "auto" else human_readable_int(text)


def loads(text: str) -> Any:
    """JSON; argparse reports other text as `invalid loads value`."""
    return json.loads(text)


def backend(text: str) -> str:
    """Name of a kernel backend, in any case, with dashes or underscores."""
    return text.lower().replace("-", "_")


def json_value(text: str) -> Any:
    """JSON, with vLLM's own message for invalid text."""
    return _converted(json.loads, "<function loads>", text)


def json_object_or_text(text: str) -> Any:
    """JSON for a text that looks like an object, otherwise the text."""
    return json_value(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


def dataclass(text: str) -> Any:
    """JSON of a config class; its fields are not checked here."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Invalid JSON: {error}") from None


def optional(inner: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    """A parser like `inner` that reads `None` and the empty text as None."""

    def read(text: str) -> Any:
        return None if text in ("", "None") else _converted(inner, name, text)

    return read


def _converted(inner: Callable[[str], Any], name: str, text: str) -> Any:
    try:
        return inner(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {name}.") from None


READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "human_readable_int": human_readable_int,
    "human_readable_int_or_auto": human_readable_int_or_auto,
    "loads": loads,
    "json": json_value,
    "union_dict_and_str": json_object_or_text,
    "dataclass": dataclass,
    "backend": backend,
    "optional str": optional(str, "<class 'str'>"),
    "optional int": optional(int, "<class 'int'>"),
    "optional float": optional(float, "<class 'float'>"),
    "optional size": optional(human_readable_int, "<function human_readable_int>"),
    "optional json": optional(json.loads, "<function loads>"),
}
"""Parsers by the type in the tables in `flags/`."""
