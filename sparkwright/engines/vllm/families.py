"""Parsers of tool calls and reasoning, from a model's own files."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from sparkwright.text.shipped_yaml import beside

#: Sign of a template whose ``enable_thinking`` switches the thinking of a request.
SWITCH = "enable_thinking"
Kind = Literal["tools", "reasoning"]
ARGUMENT: Mapping[Kind, str] = {"tools": "tool_call_parser", "reasoning": "reasoning_parser"}


@cache
def families() -> Mapping[str, Mapping[Kind, Mapping[str, str]]]:
    """model_type -> kind of parser -> text of the chat template -> parser, in order."""
    result: dict[str, dict[Kind, dict[str, str]]] = beside(__file__, "families.yaml")
    return result


@cache
def marks() -> tuple[str, ...]:
    """Every text that a chat template is searched for."""
    result = {mark for family in families().values() for kind in family.values() for mark in kind}
    return tuple(sorted({*result, SWITCH} - {""}))
