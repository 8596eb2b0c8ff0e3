"""Recall of earlier text in a conversation: a message's statement, or a tool's result."""

import json
import re
from typing import Any

_STATED = re.compile(r"\b[Tt]he ([a-z]+ [a-z]+) is ([\w-]+)\.")
_ASKED = re.compile(r"\b[Ww]hat is the ([a-z]+ [a-z]+)\b")


def recalled(question: str, expected: str) -> str | None:
    """The answer to `What is the access word`, if the prompt has `The access word is x.`."""
    asked = _ASKED.search(question)
    if not asked:
        return None
    return next(
        (value for name, value in _STATED.findall(expected) if name == asked.group(1)), None
    )


def tool_said(messages: list[dict[str, Any]]) -> str | None:
    """A sentence about a tool's result; None if the last message is not from a tool."""
    if not messages or messages[-1].get("role") != "tool":
        return None
    content = messages[-1].get("content")
    try:
        result = json.loads(content) if isinstance(content, str) else content
    except ValueError:
        result = content
    if isinstance(result, dict):
        result = ", ".join(f"{name} {value}" for name, value in result.items())
    return f"The tool says: {result}."


def proper_name(question: str) -> str | None:
    """A name in a question, as in `the weather in Oslo`: the argument for a tool."""
    match = re.search(r"\b(?:in|of|for|at) ([A-Z]\w+)", question)
    return match.group(1) if match else None
