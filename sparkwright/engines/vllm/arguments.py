"""Checking arguments and variables against what a vLLM version takes.

argparse alone lets much pass (unknown backends and parsers, shares above 1, negative lengths,
abbreviations), and vLLM finds it only after minutes of boot: see the reference capture of 0.24.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.data import DATA
from sparkwright.engines.vllm.table import Argument, nearest, release, table, versions
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity
from sparkwright.findings.user_error import suggest
from sparkwright.text.shipped_yaml import beside

#: Checks that may be mistaken where the version has no table of its own.
_UNSURE = ("unknown-argument", "argument-choice", "unknown-name", "speculative-key")


@check(
    "vllm-arguments", "unknown-argument", "argument-type", "argument-choice", "argument-range",
    "argument-twice", "unknown-name", "speculative-key", "removed-variable", "misspelt-variable",
)  # fmt: skip
def _arguments(context: Configuration) -> Iterator[Symptom]:
    also = DATA["builds"].get(context.image.name, {})
    yield from check_arguments(context.version, context.arguments, context.environment, also)
    for fact, spellings in DATA["spellings"].items():
        first = fact.removeprefix("argument.")
        parts = [other.removeprefix("argument.") for other in spellings if other.count(".") > 1]
        for part in parts if first in context.written else ():
            if part in context.parts:
                yield Symptom("argument-twice", "part", argument=part, first=first)


@check("variable-not-read")
def _not_read(context: Configuration) -> Iterator[Symptom]:
    for name, value in context.environment.items():
        own = known_variables().get(name, {})
        if context.image.name in own.get("not_in", ()) and value not in ("", "0", "off"):
            source = own["source"]
            yield Symptom(name=name, image=context.image, remedy=own["instead"], source=source)


def check_arguments(
    vllm: str | None,
    arguments: Mapping[str, ArgumentValue],
    environment: Mapping[str, str],
    also: Mapping[str, Collection[str]],
) -> Iterator[Symptom]:
    """Everything that a vLLM version does not take.

    Args:
        vllm: the version; None where no card says it, and then arguments are not judged.
        arguments: with underscores, as recipes have them.
        also: argument -> values that this build takes besides stock vLLM's.
    """
    yield from _variables(vllm, environment)
    if vllm is not None:
        yield from _Checker(vllm, also).check(arguments)


def spelling(key: str, version: str | None) -> str:
    """``--max-num-seqs`` -> ``max_num_seqs``; a second name -> the argument that it is."""
    name = key.replace("-", "_").removeprefix("__")
    return table(nearest(version)).aliases.get(name, name) if version else name


class _Checker:
    def __init__(self, vllm: str, also: Mapping[str, Collection[str]]) -> None:
        self.table = table(nearest(vllm))
        self.also = also
        # Judged by another version's table, what is unknown may still be right.
        self.exact = self.table.version == vllm
        note = "" if self.exact else f"; there is no table of {vllm}"
        self.source = f"vLLM {self.table.version}'s own parser{note}"

    def check(self, arguments: Mapping[str, ArgumentValue]) -> Iterator[Symptom]:
        spelt: dict[str, str] = {}
        for key, value in arguments.items():
            name = spelling(key, self.table.version)
            argument = self.table.arguments.get(name)
            if name in spelt:
                yield self._symptom("argument-twice", key, first=spelt[name])
            elif argument is None:
                yield self._unknown(key, name)
            elif name == "speculative_config":
                yield from self._speculative(key, value)
            else:
                yield from self._value(key, name, argument, value)
            spelt.setdefault(name, key)

    def _unknown(self, key: str, name: str) -> Symptom:
        elsewhere = [
            v for v in versions() if name in table(v).arguments or name in table(v).aliases
        ]
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
        low, high = DATA["ranges"].get(name, (None, None))
        number = None if argument.kind == "auto-size" and is_auto(value) else amount(value)
        if low is not None and number is not None and not low <= number <= high:
            near = min(max(number, low), high)
            yield self._symptom("argument-range", key, value=value, low=low, high=high, near=near)

    def _name(self, key: str, name: str, value: object) -> Iterator[Symptom]:
        """Parsers and backends, which argparse takes as any text."""
        if name not in self.table.names or value is None:
            return
        more = (*self.also.get(name, ()), *DATA["replaced"].get(name, ()))
        names = (*self.table.names[name], *more)
        fold: Callable[[str], str] = str.upper if name == "attention_backend" else str
        if fold(str(value)) not in {fold(own) for own in names}:
            near = DATA["meant"].get(name, {}).get(str(value)) or suggest(fold(str(value)), names)
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
        severity = Severity.WARNING if unsure else None
        symptom = Symptom(id_, case, severity=severity, argument=argument, source=self.source)
        symptom.values.update(values)
        return symptom


def _wrong_type(argument: Argument, value: ArgumentValue) -> str | None:
    """Fault of a value's type; None where there is none."""
    if argument.kind == "flag":
        if not isinstance(value, bool):
            return "a flag takes no value"
        return None if value or argument.negatable else "this flag has no --no- form"
    if isinstance(value, bool):
        return "it needs a value"
    if isinstance(value, list):
        return None if argument.kind == "many" else "it takes one value"
    if isinstance(value, dict):
        return None if argument.kind == "any" else "it takes no mapping"
    kind = DATA["kinds"].get(argument.kind)
    if kind is None or re.fullmatch(kind["pattern"], str(value).strip(), re.ASCII):
        return None
    return str(kind["fault"])


#: Decimals go with k (1000), not with K (1024): vLLM's human_readable_int.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt])|(\d+)([KMGT])", re.ASCII)


def is_auto(value: object) -> bool:
    """-1 and ``auto`` leave the length to what fits: vLLM's human_readable_int_or_auto."""
    return str(value).strip().lower() in ("-1", "auto")


def amount(value: object) -> float | None:
    """A number, also with a suffix: 32768, "32K" (1024 each), "32k" (1000 each)."""
    size = _SIZE.fullmatch(str(value).strip())
    if size is None:
        return _number(value)
    digits, suffix = (size[1], size[2]) if size[1] else (size[3], size[4])
    base = 1000 if suffix.islower() else 1024
    return _number(float(digits) * base ** ("kmgt".index(suffix.lower()) + 1))


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None  # inf and nan are no numbers here


def _type_remedy(name: str, argument: Argument) -> str:
    if argument.kind == "flag":
        return f"{name}: true ({'or false' if argument.negatable else 'or leave it out'})"
    kind = DATA["kinds"].get(argument.kind, {"remedy": "one value, without brackets"})
    return str(kind["remedy"])


@cache
def known_variables() -> dict[str, dict[str, Any]]:
    """Entry of each variable in variables.yaml."""
    variables: dict[str, dict[str, Any]] = beside(__file__, "variables.yaml")
    return variables


def _variables(vllm: str | None, environment: Mapping[str, str]) -> Iterator[Symptom]:
    variables = known_variables()
    for name in environment:
        own = variables.get(name, {})
        near = get_close_matches(name, variables, n=1, cutoff=0.9)
        if not own and name.startswith("VLLM_") and near:
            source = variables[near[0]]["source"]
            yield Symptom("misspelt-variable", name=name, near=near[0], source=source)
        until = own.get("until")
        if vllm and until and release(vllm) >= release(until):
            values = {"remedy": own["instead"], "source": own["source"]}
            yield Symptom("removed-variable", name=name, until=until, **values)
