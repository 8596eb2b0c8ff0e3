"""Words of a command line as arguments of an engine's version."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.engines import engine
from sparkwright.engines.arguments import Parser
from sparkwright.engines.tables import Argument, Table
from sparkwright.recipes.recipe import Remarks

#: Arguments that name the served model, for each engine.
_MODELS = ("model", "model_path", "hf_repo")
PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: Arguments that repeat a service's defaults.
_USUAL = (("port", "8000"), ("host", "0.0.0.0"))
_NUMBER = re.compile(r"-\d+(\.\d+)?")
_INT, _FLOAT = re.compile(r"-?\d{1,18}", re.ASCII), re.compile(r"-?\d{0,18}\.\d{1,18}", re.ASCII)


def read_arguments(arguments: Sequence[str], version: str | None, remarks: Remarks) -> Arguments:
    """Read the arguments, and note the parts that can't be carried over.

    Args:
        version: version of the engine, for its checks; None if unknown.
    """
    parser = engine(remarks.engine).parser
    tables, left = parser.tables.known_to(version), list(arguments)
    version = version if len(tables) == 1 else "any version with a table"
    read = Arguments(parser, tables, version, remarks)
    while left:
        word = left.pop(0)
        if _is_option(word):
            read.option(word, left)
        elif read.model is None:
            read.model = word
        else:
            remarks.note("no-place", "command", f"the word {word!r}")
    read.values |= read.nested
    return read


@dataclass
class Arguments:
    """Arguments that a command line sets.

    Attributes:
        parser: parser of the engine.
        tables: tables of the engine's version, or of all versions.
        version: text of the version in messages.
        values: argument, with underscores -> value.
        nested: arguments with a mapping as value, set as a whole or key by key.
        model: the positional argument, or ``--model``.
        served_names: values of ``--served-model-name``.
    """

    parser: Parser
    tables: Sequence[Table]
    version: str | None
    remarks: Remarks
    values: dict[str, Any] = field(default_factory=dict)
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: str | None = None
    served_names: tuple[str, ...] = ()

    def option(self, word: str, arguments: list[str]) -> None:
        """Read an option, and the following words that are its values."""
        option, equals, value = word.partition("=")
        name, _, path = option.lstrip("-").partition(".")
        given = [value] if equals else []
        if not option.startswith("--"):
            if option.startswith("-O") and len(option) == 3:  # -O3
                name, given = "O", [option[2:]]
            name = self.parser.data.get("short", {}).get(name, name)
        name, argument = self._known(name.replace("-", "_"))
        negated = False
        if argument is None and name.startswith("no_"):
            name, argument = self._known(name[3:])
            negated = argument is not None
        if argument is not None and argument.kind == "flag":
            if not given and arguments and arguments[0].lower() in ("true", "false"):
                given = [arguments.pop(0)]
        elif not given:
            several = not path and (argument is None or argument.kind == "many")
            while arguments and not _is_option(arguments[0]) and (several or not given):
                given.append(arguments.pop(0))
        self._set(option, name, path, argument, given, negated=negated)

    def _known(self, name: str) -> tuple[str, Argument | None]:
        """Return an argument by its own name, another name, or an unambiguous prefix."""
        for each in self.tables:
            full = each.aliases.get(name, name)
            if full in each.arguments:
                return full, each.arguments[full]
        for each in self.tables:
            begun = [full for full in each.arguments if full.startswith(name)]
            if len(begun) == 1 and len(name) > 1:
                return begun[0], each.arguments[begun[0]]
        return name, None

    def _set(
        self, option: str, name: str, path: str, argument: Argument | None, given: list[str], *,
        negated: bool,
    ) -> None:  # fmt: skip
        key, shown, note = f"command {option}", " ".join([option, *given]), self.remarks.note
        if {"$", "`"} & set("".join(given)):  # a shell would expand or run this value
            note("no-shell", key, f"{option} {' '.join(given)}")
        elif any(PLACEHOLDER.fullmatch(word) for word in given):
            note("no-value-for-it", key, f"{option} {given[0]}")
        elif name in _MODELS and given:
            self.model = given[0]
        elif name == "hf_file" and given:  # this argument names one file of the model
            self.values[name] = given[0]
        elif name in ("served_model_name", "alias"):
            self.served_names = tuple(given if name != "alias" else ",".join(given).split(","))
        elif setting := self.parser.own_setting(name):
            if (name, *given) not in _USUAL:
                hidden = option if "key" in name else f"{option} {' '.join(given)}"
                note("service-setting", key, hidden, setting=setting)
        elif argument is None:
            facts = {"engine": self.parser.title, "version": self.version}
            note("unknown-argument", key, shown, **facts)
        elif path:
            self._nest(name, path, given)
        elif argument.kind == "flag":
            self._flag(option, name, argument, given, negated=negated)
        elif not given:
            note("value-missing", key, option)
        else:
            self._value(name, argument, given)

    def _flag(
        self, option: str, name: str, argument: Argument, given: list[str], *, negated: bool
    ) -> None:
        if given and given[0].lower() not in ("true", "false"):
            self.remarks.note("flag-with-value", f"command {option}", f"{option} {given[0]}")
            return
        wanted = "false" not in map(str.lower, given) and not negated
        if wanted or argument.negatable:
            self.values[name] = wanted

    def _nest(self, name: str, path: str, given: list[str]) -> None:
        """``--a.b=c``, as vLLM reads it: the value is JSON if possible."""
        before = self.values.pop(name, None)
        inner = self.nested.setdefault(name, before if isinstance(before, dict) else {})
        *parents, last = path.replace("-", "_").split(".")
        for parent in parents:
            if not isinstance(inner.get(parent), dict):
                inner[parent] = {}
            inner = inner[parent]
        inner[last] = _json(given[0]) if given else True

    def _value(self, name: str, argument: Argument, given: list[str]) -> None:
        """Set a value; vLLM takes the last value of a repeated argument."""
        value: ArgumentValue = given[0]
        if argument.kind == "many":
            value = [*map(_scalar, given)] if len(given) > 1 else given[0]
        elif argument.kind in ("int", "float", "size", "auto-size"):
            value = _scalar(given[0])
        elif given[0].lstrip().startswith("{") and isinstance(parsed := _json(given[0]), dict):
            self.nested.setdefault(name, {}).update(parsed)
            return
        self.values[name] = value


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word)


def _json(text: str) -> Any:
    """JSON, also with doubled braces as in a template; otherwise the text."""
    for each in (text, text.replace("{{", "{").replace("}}", "}")):
        with suppress(ValueError, RecursionError):
            return json.loads(each)
    return text


def _scalar(text: str) -> int | float | str:
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def fitting(value: Any) -> ArgumentValue:
    """Convert a nested mapping to JSON text, which vLLM also reads; other values are unchanged."""
    deep = isinstance(value, dict) and any(isinstance(v, list | dict) for v in value.values())
    return value if not deep else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
