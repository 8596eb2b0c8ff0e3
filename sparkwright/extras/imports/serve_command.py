"""The command line of a recipe: words, without a shell.

Placeholders are filled in as the recipe's own project does it, lines are joined, and what is left
is split as a shell would split it. Nothing is expanded: what a shell would run or look up is left
out by name, and a script is refused.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.engines import ENGINES, engine
from sparkwright.recipes.recipe import Refused, texts
from sparkwright.recipes.serve_arguments import PLACEHOLDER

_ROUNDS = 10
_LONGEST = 64 * 1024
#: Of str.format: a brace, a field, or a brace that is open.
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True)
class Command:
    """Command that a recipe starts.

    Attributes:
        engine: name of the engine that it starts.
        arguments: everything after ``vllm serve`` or the like.
        environment: assignments before it.
        used: placeholders that it has.
    """

    engine: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    used: frozenset[str]


def filled(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Fill in ``{key}`` again and again, as sparkrun does; a key without a value stays, as JSON
    does. Also the keys that were used."""
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        used.add(match[1])
        return str(values[match[1]])

    for _ in range(_ROUNDS):
        before, text = text, _bounded(PLACEHOLDER.sub(value, text))
        if text == before:
            break
    return text, frozenset(used)


def formatted(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Fill in ``{key}`` once, by the rules of ``str.format``: ``{{`` is a brace.

    Raises:
        Refused: for a field that reaches into a value, or formats it.
    """
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if (name := match[1]) is None:
            raise Refused("command", f"its braces are wrong: {match[0]!r}", "str.format reads it")
        if not name.isidentifier():
            raise Refused("command", f"the field {match[0]}", "only a key's name is filled in")
        used.add(name)
        return str(values.get(name, match[0]))

    return _bounded(_FIELD.sub(value, text)), frozenset(used)


def command(text: str, used: frozenset[str]) -> Command:
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
    program = re.sub(r"^(.*/)?(python)?[\d.]*", r"\2", split[0]) if split else ""
    for name, starts in texts()["starts"].items():
        for start in map(str.split, starts if name in ENGINES else ()):
            if [program, *split[1:]][: len(start)] == start:
                arguments = tuple(split[len(start) :])
                return Command(name, arguments, environment, used)
    for word in (program, *split[1:3]):
        if engine := texts()["engines"].get(word):
            raise Refused("command", f"{engine} ({word})", f"this tool serves with {_titles()}")
    observed = f"it starts {split[0]!r}" if split and split[0] else "it is empty"
    raise Refused("command", observed, f"only servers of {_titles()} are known")


def _titles() -> str:
    return ", ".join(engine(name).title for name in ENGINES)


def _split(text: str) -> list[str]:
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    lines = [
        each for each in joined.splitlines() if each.strip() and not each.lstrip().startswith("#")
    ]
    reader = shlex.shlex("\n".join(lines), posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        split = list(reader)
    except ValueError as error:
        raise Refused("command", f"it can't be split: {error}", "a quote is open") from None
    scripts = [word for word in split if word and set(word) <= set("();<>|&")]
    if len(lines) > 1 or scripts:
        observed = f"{scripts[0]!r} in it" if scripts else f"{len(lines)} commands"
        reason = "a recipe here is one vllm serve, started without a shell"
        remedy = "import a copy in which the command is vllm serve alone"
        raise Refused("command", f"a script: {observed}", reason, remedy)
    return split


def _bounded(text: str) -> str:
    if len(text) > _LONGEST:
        raise Refused("command", f"longer than {_LONGEST // 1024} KiB", "its values repeat")
    return text
