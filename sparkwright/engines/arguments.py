"""Check arguments and variables of a service against its engine's version.

Parsers accept many mistakes (unknown backends, shares above 1, negative lengths, abbreviations),
and the engine reports them only after minutes of boot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwright.engines.tables import Argument, Table, Tables, release
from sparkwright.findings.check import Judgement, Symptom
from sparkwright.findings.finding import Severity
from sparkwright.findings.user_error import Fault, suggest
from sparkwright.text.shipped_yaml import beside, read

if TYPE_CHECKING:  # commands that query hosts must not load the catalog
    from sparkwright.catalog.data import ArgumentValue

#: Texts of the checks on arguments, for any engine.
TEXTS = Path(__file__).with_name("checks.yaml")
_IDS = (
    "unknown-argument", "argument-type", "argument-choice", "argument-range", "argument-twice",
    "unknown-name", "speculative-key", "removed-variable", "misspelt-variable", "engine-format",
)  # fmt: skip
#: Checks that may be wrong for a version without a table.
_UNSURE = ("unknown-argument", "argument-choice", "unknown-name", "speculative-key")
#: Names that engines accept in any case.
_ANY_CASE = ("attention_backend", "speculative_algorithm")
#: The fewest letters that count as an abbreviation, which Python's parsers accept.
_LETTERS = 3


class Parser:
    """Arguments and variables that an engine accepts, by version.

    Attributes:
        title: the engine's name in messages.
        tables: arguments by version.
        spellings: name of an argument in rules -> other facts that set the argument, each with the
            equivalent values; a fact without values has the same value.
        plugins: argument that names a parser -> argument with a file that may provide the parser.
    """

    def __init__(self, title: str, folder: Path, data: Mapping[str, Any]) -> None:
        """Read the tables in a folder; ``data`` is engine.yaml beside it."""
        self.title, self.tables, self.data = title, Tables(folder / "tables"), data
        self.spellings: Mapping[str, Mapping[str, Mapping[str, Any]]] = data.get("spellings", {})
        self.plugins: Mapping[str, str] = data.get("plugins", {})
        self._variables = folder / "variables.yaml"

    @cached_property
    def variables(self) -> dict[str, dict[str, Any]]:
        """Entry of each variable in variables.yaml."""
        return read(self._variables) if self._variables.is_file() else {}

    def spelling(self, key: str, version: str | None) -> str:
        """Name of an argument in the tables of a version: ``--max-num-seqs`` and a second name as
        ``max_num_seqs``.
        """
        name = key.replace("-", "_").removeprefix("__")
        tables = self.tables
        return tables.table(tables.nearest(version)).aliases.get(name, name) if version else name

    def own_setting(self, argument: str) -> str | None:
        """Return the setting that an argument belongs to, in any spelling; None for other
        arguments.
        """
        name = argument.replace("-", "_").strip("_")
        for own, setting in self.data["settings"].items():
            if len(name) >= _LETTERS and own.startswith(name):
                return str(setting)
        return None

    def misplaced(self, arguments: Iterable[str]) -> Iterator[Fault]:
        """Arguments that are settings of the service."""
        for argument in arguments:
            if setting := self.own_setting(argument):
                reason = "this is a setting of the service, not an argument"
                yield argument, reason, f"write {setting}"

    def judgement(self, id_: str) -> Judgement[Any]:
        """The check of a service's arguments and variables, with this id of the engine."""

        def judge(context: Any) -> Iterator[Symptom]:
            form = context.body.format
            if form is not None and form not in context.engine.formats:
                yield Symptom("engine-format", engine=self.title, model=context.body)
            builds = self.data.get("builds", {}).get(context.image.name, {})
            also = {**self.data.get("replaced", {}), **builds}
            yield from self.check(context.version, context.arguments, context.environment, also)
            for fact, spellings in self.spellings.items():
                first = fact.removeprefix("argument.")
                parts = [
                    name.removeprefix("argument.") for name in spellings if name.count(".") > 1
                ]
                for part in parts if first in context.written else ():
                    if part in context.parts:
                        yield self.symptom("argument-twice", part, "part", first=first)

        return Judgement((id_, *_IDS), judge)

    def symptom(self, id_: str, argument: str, case: str = "", **values: object) -> Symptom:
        """A symptom in an argument."""
        symptom = Symptom(id_, case, engine=self.title, argument=argument)
        symptom.values.update(values)
        return symptom

    def check(
        self,
        version: str | None,
        arguments: Mapping[str, ArgumentValue],
        environment: Mapping[str, str],
        also: Mapping[str, Collection[str]],
    ) -> Iterator[Symptom]:
        """Return the arguments and variables that a version does not accept.

        Args:
            version: None if no card gives it; then arguments are not checked.
            arguments: arguments with underscores, as in recipes.
            also: argument -> values that this build accepts in addition to the stock engine's
                values.
        """
        yield from self._check_variables(version, environment)
        if version is not None:
            yield from _Checker(self, version, also).check(arguments)

    def _check_variables(
        self, version: str | None, environment: Mapping[str, str]
    ) -> Iterator[Symptom]:
        variables, prefix = self.variables, self.data.get("variables", "")
        for name in environment:
            own = variables.get(name, {})
            near = get_close_matches(name, variables, n=1, cutoff=0.9)
            if not own and prefix and name.startswith(prefix) and near:
                values = {"near": near[0], "source": variables[near[0]]["source"]}
                yield Symptom("misspelt-variable", engine=self.title, name=name, **values)
            until = own.get("until")
            if version and until and release(version) >= release(until):
                values = {"remedy": own["instead"], "source": own["source"]}
                yield Symptom(
                    "removed-variable", engine=self.title, name=name, until=until, **values
                )


class _Checker:
    def __init__(self, parser: Parser, version: str, also: Mapping[str, Collection[str]]) -> None:
        self.parser, self.also, self.plugins = parser, also, set[str]()
        self.table: Table = parser.tables.table(parser.tables.nearest(version))
        # An argument that another version's table lacks may still be right.
        self.exact = self.table.version == version
        note = "" if self.exact else f"; there is no table of {version}"
        self.source = f"{parser.title} {self.table.version}'s own parser{note}"

    def check(self, arguments: Mapping[str, ArgumentValue]) -> Iterator[Symptom]:
        spelt: dict[str, str] = {}
        named = {
            self.parser.spelling(key, self.table.version) for key in arguments if arguments[key]
        }
        self.plugins = {name for name, plugin in self.parser.plugins.items() if plugin in named}
        for key, value in arguments.items():
            name = self.parser.spelling(key, self.table.version)
            argument = self.table.arguments.get(name)
            if name in spelt:
                yield self._symptom("argument-twice", key, first=spelt[name])
            elif argument is None:
                yield self._unknown(key, name)
            elif self.table.speculative_keys and name == "speculative_config":
                yield from self._speculative(key, value)
            else:
                yield from self._value(key, name, argument, value)
            spelt.setdefault(name, key)

    def _unknown(self, key: str, name: str) -> Symptom:
        tables = map(self.parser.tables.table, self.parser.tables.versions())
        elsewhere = [each.version for each in tables if name in {**each.arguments, **each.aliases}]
        full = [argument for argument in self.table.arguments if argument.startswith(name)]
        case = "elsewhere" if elsewhere else "abbreviated" if full else ""
        if name.startswith("no_") and name[3:] in self.table.arguments:
            remedy = f"{name[3:]}: false"
        else:
            remedy = full[0] if len(full) == 1 else suggest(name, [*self.table.arguments])
        return self._symptom(
            "unknown-argument", key, case, versions=", ".join(elsewhere),
            own=self.table.version, remedy=remedy if len(remedy) < 200 else "",
        )  # fmt: skip

    def _value(
        self, key: str, name: str, argument: Argument, value: ArgumentValue
    ) -> Iterator[Symptom]:
        if problems := _wrong_type(argument, value):
            right = _type_remedy(name, argument)
            yield self._symptom("argument-type", key, value=value, faults=problems, right=right)
            return
        choices = [*argument.choices, *self.also.get(name, ())]
        for choice in value if isinstance(value, list) else [value]:
            text = str(choice)
            if argument.kind == "folded":
                text = text.lower().replace("-", "_")
            if argument.choices and text not in choices:
                near = suggest(text, choices)
                yield self._symptom("argument-choice", key, value=choice, name=name, near=near)
        yield from self._name(key, name, value)
        low, high = self.parser.data["ranges"].get(name, (None, None))
        number = None if argument.kind == "auto-size" and is_auto(value) else amount(value)
        if low is not None and number is not None and not low <= number <= high:
            near = min(max(number, low), high)
            yield self._symptom("argument-range", key, value=value, low=low, high=high, near=near)

    def _name(self, key: str, name: str, value: object) -> Iterator[Symptom]:
        """Check parsers and backends, for which argparse accepts any text."""
        if name not in self.table.names or value is None or name in self.plugins:
            return
        names = (*self.table.names[name], *self.also.get(name, ()))
        fold: Callable[[str], str] = str.upper if name in _ANY_CASE else str
        if fold(str(value)) not in {fold(own) for own in names}:
            meant = self.parser.data.get("meant", {}).get(name, {})
            near = meant.get(str(value)) or suggest(fold(str(value)), names)
            kind = name.replace("_", " ")
            yield self._symptom("unknown-name", key, value=value, kind=kind, near=near)

    def _speculative(self, key: str, value: ArgumentValue) -> Iterator[Symptom]:
        if not isinstance(value, dict):
            right = "method, model and num_speculative_tokens"
            yield self._symptom(
                "argument-type", key, value=value, faults="not a mapping", right=right
            )
            return
        for name in value:
            if name not in self.table.speculative_keys:
                near = suggest(name, self.table.speculative_keys)
                near = f"leave it out ({near})" if near.startswith("known") else near
                yield self._symptom("speculative-key", f"{key}.{name}", name=name, near=near)
        yield from self._name(f"{key}.method", "speculative_method", value.get("method"))
        for name in ("attention_backend", "quantization"):
            yield from self._name(f"{key}.{name}", name, value.get(name))

    def _symptom(self, id_: str, argument: str, case: str = "", **values: object) -> Symptom:
        unsure = id_ in _UNSURE and not self.exact
        symptom = self.parser.symptom(id_, argument, case, **{"source": self.source, **values})
        symptom.severity = Severity.WARNING if unsure else None
        return symptom


#: Kinds of a single value: pattern, fault and remedy.
_kinds = cache(partial(beside, __file__, "kinds.yaml"))


def mapping(value: Any) -> dict[str, Any] | None:
    """Keys of an argument of several values, as a mapping or JSON; None for another value."""
    with suppress(ValueError, RecursionError):
        value = json.loads(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None


#: Text that begins like a mapping, not like a template.
_MAPPING = re.compile(r"\s*\{\s*[\"'}]")


def _wrong_type(argument: Argument, value: ArgumentValue) -> str | None:
    """Return the fault of a value's type; None without a fault."""
    if argument.kind == "flag":
        if not isinstance(value, bool):
            return "a flag takes no value"
        return None if value or argument.negatable else "this flag has no --no- form"
    if isinstance(value, bool):
        return "the argument needs a value"
    if isinstance(value, list):
        return None if argument.kind == "many" else "the argument takes one value"
    if isinstance(value, dict):
        return None if argument.kind == "any" else "the argument takes no mapping"
    if argument.kind == "any" and isinstance(value, str) and _MAPPING.match(value):
        return None if mapping(value) is not None else "the value is not JSON"
    kind = _kinds().get(argument.kind)
    if kind is None or re.fullmatch(kind["pattern"], str(value).strip(), re.ASCII):
        return None
    return str(kind["fault"])


#: Decimals go with k (1000), not with K (1024): human_readable_int of vLLM and SGLang.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt])|(\d+)([KMGT])", re.ASCII)


def is_auto(value: object) -> bool:
    """Return whether -1 or auto leaves the length to the engine (human_readable_int_or_auto)."""
    return str(value).strip().lower() in ("-1", "auto")


def amount(value: object) -> float | None:
    """Read a number, also with a suffix: 32768, "32K" (1024 each), "32k" (1000 each)."""
    if (size := _SIZE.fullmatch(str(value).strip())) is None:
        return _number(value)
    digits, suffix = (size[1], size[2]) if size[1] else (size[3], size[4])
    base = 1000 if suffix.islower() else 1024
    return _number(float(digits) * base ** ("kmgt".index(suffix.lower()) + 1))


def whole(arguments: Mapping[str, Any], name: str) -> int | None:
    """An argument's whole number; None for a missing number or a number not above 0."""
    number = amount(arguments.get(name))
    return int(number) if number is not None and number > 0 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None  # inf and nan are not numbers here


def _type_remedy(name: str, argument: Argument) -> str:
    if argument.kind == "flag":
        return f"{name}: true ({'or false' if argument.negatable else 'or leave it out'})"
    kind = _kinds().get(argument.kind, {"remedy": "one value, or a mapping of keys to values"})
    return str(kind["remedy"])
