"""The command line of a recipe: words, without a shell.

Placeholders are filled in as the recipe's own project does it, lines are joined, and what is left
is split as a shell would split it. Nothing is expanded: what a shell would run or look up is left
out by name, and a script is refused.
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.recipes.recipe import Refused, Remarks
from sparkwright.recipes.serve_arguments import PLACEHOLDER

_ROUNDS = 10
_LONGEST = 64 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
#: Programs of other engines, by the first words of a command.
_ENGINES = {
    "sglang": "SGLang", "sglang.launch_server": "SGLang", "llama-server": "llama.cpp",
    "trtllm-serve": "TensorRT-LLM", "mpirun": "TensorRT-LLM", "atlas": "Atlas",
    "vllm-omni": "vLLM-Omni", "ollama": "Ollama",
}  # fmt: skip
_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main")


@dataclass(frozen=True)
class Command:
    """What a recipe starts.

    Attributes:
        words: everything after ``vllm serve``.
        environment: assignments before it.
        used: placeholders that it has.
    """

    words: tuple[str, ...]
    environment: dict[str, str]
    used: frozenset[str]


def filled(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """``{key}`` filled in again and again, as sparkrun does it; what has no value stays, as JSON
    does. Also the keys that were used."""
    used: set[str] = set()

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        used.add(found[1])
        return str(values[found[1]])

    for _ in range(_ROUNDS):
        before, text = text, PLACEHOLDER.sub(value, text)
        _bounded(text)
        if text == before:
            break
    return text, frozenset(used)


def formatted(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The same once, by the rules of ``str.format``: ``{{`` is a brace.

    Raises:
        Refused: for a field that reaches into a value, or formats it.
    """
    used: set[str] = set()
    parts: list[str] = []
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError as error:
        raise Refused("command", f"its braces are wrong: {error}", "str.format reads it") from None
    for literal, name, form, conversion in fields:
        parts.append(literal)
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise Refused("command", f"the field {{{name}}}", "only a key's name is filled in")
        used.add(name)
        parts.append(str(values[name]) if name in values else f"{{{name}}}")
    return _bounded("".join(parts)), frozenset(used)


def command(text: str, used: frozenset[str], remarks: Remarks) -> Command:
    """The words of a command whose placeholders are filled in.

    Raises:
        Refused: for another engine's, and for a script.
    """
    split = _split(text)
    environment: dict[str, str] = {}
    while split and _VARIABLE.match(split[0]):
        name, _, value = split.pop(0).partition("=")
        environment[name] = value
    while split and split[0] in ("exec", "env"):
        split.pop(0)
    return Command(tuple(_after_serve(split, remarks)), environment, used)


def _split(text: str) -> list[str]:
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    lines = [one for one in joined.splitlines() if one.strip() and not one.lstrip().startswith("#")]
    reader = shlex.shlex("\n".join(lines), posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        found = list(reader)
    except ValueError as error:
        raise Refused("command", f"it can't be split: {error}", "a quote is open") from None
    scripts = [one for one in found if one and set(one) <= set("();<>|&")]
    if len(lines) > 1 or scripts:
        what = f"{scripts[0]!r} in it" if scripts else f"{len(lines)} commands"
        raise Refused(
            "command", f"a script: {what}", "a recipe here is one vllm serve, started without "
            "a shell", "import a copy in which the command is vllm serve alone",
        )  # fmt: skip
    return found


def _after_serve(split: list[str], remarks: Remarks) -> list[str]:
    start = split[:3]
    for word in start:
        if word in _ENGINES:
            raise Refused("command", f"{_ENGINES[word]} ({word})", "this tool serves with vLLM")
    if start[:2] == ["vllm", "serve"]:
        return split[2:]
    if start and start[0].startswith("python") and start[1:2] == ["-m"] and start[2] in _MODULES:
        rest = split[3:]
        return rest[1:] if rest[:1] == ["serve"] else rest
    first = split[0] if split else ""
    raise Refused(
        "command", f"it starts {first!r}" if first else "it is empty", "only vllm serve is known"
    )


def _bounded(text: str) -> str:
    if len(text) > _LONGEST:
        raise Refused("command", f"longer than {_LONGEST // 1024} KiB", "its values repeat")
    return text
