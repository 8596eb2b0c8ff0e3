"""Checking arguments and variables against what a vLLM version takes.

argparse alone lets much pass (unknown backends and parsers, shares above 1, negative lengths,
abbreviations), and vLLM finds it only after minutes of boot: see the reference capture of 0.24.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from sparkwright.catalog.data import ArgumentValue
from sparkwright.problems import suggest
from sparkwright.vllm.table import Argument, Table, nearest, table, versions

Level = Literal["error", "warning"]
_SOURCE = "vLLM {version}'s own parser"
_LATE = "vLLM's parser lets it pass, and the engine ends minutes later"

#: Every rule of this module.
RULE_IDS = (
    "unknown-argument",
    "argument-type",
    "argument-choice",
    "argument-range",
    "argument-twice",
    "unknown-name",
    "speculative-key",
    "removed-variable",
    "misspelt-variable",
)

#: Arguments with a range that argparse does not check: (lowest, highest).
_RANGES: dict[str, tuple[float, float]] = {
    "gpu_memory_utilization": (0.01, 1.0),
    "max_model_len": (1, 1e8),
    "max_num_seqs": (1, 1e6),
    "max_num_batched_tokens": (1, 1e8),
    "tensor_parallel_size": (1, 1024),
    "pipeline_parallel_size": (1, 1024),
    "block_size": (1, 4096),
    "port": (1, 65535),
}


@dataclass(frozen=True)
class ArgumentFinding:
    """Something that the version does not take. ``key`` is below the service's settings."""

    rule: str
    severity: Level
    key: str
    what: str
    why: str
    instead: str
    source: str


def check_arguments(
    vllm: str | None,
    arguments: Mapping[str, ArgumentValue],
    environment: Mapping[str, str],
    also: Mapping[str, Collection[str]],
) -> list[ArgumentFinding]:
    """Everything that a vLLM version does not take.

    Args:
        vllm: the version; None where no card tells it, and then arguments are not judged.
        arguments: with underscores, as recipes have them.
        also: argument -> values that this build takes besides stock vLLM's.
    """
    found = list(_variables(vllm, environment))
    if vllm is not None:
        found += _Checker(vllm, also).check(arguments)
    return found


class _Checker:
    def __init__(self, vllm: str, also: Mapping[str, Collection[str]]) -> None:
        self.vllm = vllm
        self.table: Table = table(nearest(vllm))
        self.also = also
        self.source = _SOURCE.format(version=self.table.version)
        # Judged by another version's table, what is unknown may still be right.
        self.level: Level = "error" if self.table.version == vllm else "warning"

    def check(self, arguments: Mapping[str, ArgumentValue]) -> Iterator[ArgumentFinding]:
        spelt: dict[str, str] = {}
        for key, value in arguments.items():
            name = key.replace("-", "_").removeprefix("__")
            if name in spelt:
                yield self._finding(
                    "argument-twice", "error", key, f"{spelt[name]!r} is the same argument",
                    "vLLM takes the last one without a word", "write it once",
                )  # fmt: skip
                continue
            spelt[name] = key
            known = self.table.arguments.get(name)
            if known is None:
                yield self._unknown(key, name)
                continue
            yield from self._value(key, name, known, value)

    def _unknown(self, key: str, name: str) -> ArgumentFinding:
        elsewhere = [v for v in versions() if name in table(v).arguments]
        abbreviated = [known for known in self.table.arguments if known.startswith(name)]
        if elsewhere:
            why = f"vLLM {', '.join(elsewhere)} has it, {self.table.version} does not"
        elif abbreviated:
            why = "vLLM would take it for an abbreviation"
        else:
            why = "vLLM ends at start with 'unrecognized arguments'"
        if name.startswith("no_") and name[3:] in self.table.arguments:
            instead = f"{name[3:]}: false"
        else:
            instead = (
                abbreviated[0] if len(abbreviated) == 1 else suggest(name, [*self.table.arguments])
            )
        return self._finding(
            "unknown-argument", self.level, key, f"unknown argument {key!r}", why,
            instead if len(instead) < 200 else "drop it, or see 'vllm serve --help=all'",
        )  # fmt: skip

    def _value(
        self, key: str, name: str, known: Argument, value: ArgumentValue
    ) -> Iterator[ArgumentFinding]:
        if name == "speculative_config":
            yield from self._speculative(key, value)
            return
        wrong = _wrong_type(known, value)
        if wrong:
            yield self._finding(
                "argument-type", "error", key, f"{value!r}: {wrong}",
                "vLLM ends at start", _type_remedy(name, known),
            )  # fmt: skip
            return
        choices = [*known.choices, *self.also.get(name, ())]
        if known.choices and str(value) not in choices:
            yield self._finding(
                "argument-choice", self.level, key, f"{value!r} is no choice of {name}",
                "vLLM ends at start with 'invalid choice'", suggest(str(value), choices),
            )  # fmt: skip
        yield from self._name(key, name, value)
        low_high = _RANGES.get(name)
        number = _number(value)
        if low_high and number is not None and not low_high[0] <= number <= low_high[1]:
            yield self._finding(
                "argument-range", "error", key, f"{value!r} is out of range", _LATE,
                f"from {low_high[0]:g} to {low_high[1]:g}",
            )  # fmt: skip

    def _name(self, key: str, name: str, value: object) -> Iterator[ArgumentFinding]:
        """Parsers and backends, which argparse takes as any text."""
        known = self.table.names.get(name)
        if known is None or value is None:
            return
        fold: Callable[[str], str] = str.upper if name == "attention_backend" else str
        if fold(str(value)) not in {fold(one) for one in known}:
            yield self._finding(
                "unknown-name", self.level, key, f"{value!r} is no {name.replace('_', ' ')}",
                _LATE, suggest(fold(str(value)), list(known)),
            )  # fmt: skip

    def _speculative(self, key: str, value: ArgumentValue) -> Iterator[ArgumentFinding]:
        if not isinstance(value, dict):
            yield self._finding(
                "argument-type", "error", key, f"{value!r}: not a mapping", "vLLM ends at start",
                "method, model and num_speculative_tokens",
            )  # fmt: skip
            return
        for name in value:
            if name not in self.table.speculative_keys:
                yield self._finding(
                    "speculative-key", self.level, f"{key}.{name}",
                    f"unknown speculative setting {name!r}", _LATE,
                    suggest(name, list(self.table.speculative_keys)),
                )  # fmt: skip
        method = value.get("method")
        if method is not None and method not in self.table.names["speculative_method"]:
            yield self._finding(
                "unknown-name", self.level, f"{key}.method",
                f"{method!r} is no speculative method", _LATE,
                suggest(str(method), list(self.table.names["speculative_method"])),
            )  # fmt: skip
        part = value.get("attention_backend")
        yield from self._name(f"{key}.attention_backend", "attention_backend", part)

    def _finding(
        self, rule: str, severity: Level, key: str, what: str, why: str, instead: str
    ) -> ArgumentFinding:
        note = "" if self.table.version == self.vllm else f"; there is no table of {self.vllm}"
        return ArgumentFinding(
            rule, severity, f"arguments.{key}", what, why, instead, f"{self.source}{note}"
        )


def _wrong_type(known: Argument, value: ArgumentValue) -> str | None:
    """What is wrong with a value's type; None where nothing is."""
    if known.kind == "flag":
        if not isinstance(value, bool):
            return "a flag takes no value"
        return None if value or known.negatable else "this flag has no --no- form"
    if isinstance(value, bool):
        return "it needs a value"
    if isinstance(value, list):
        return None if known.kind == "many" else "it takes one value"
    if isinstance(value, dict):
        return None if known.kind == "any" else "it takes no mapping"
    number = _number(value)
    if known.kind == "int" and (number is None or number != int(number)):
        return "not a whole number"
    if known.kind == "float" and number is None:
        return "not a number"
    if known.kind == "size" and number is None and not _SIZE.fullmatch(str(value)):
        return "not a number of tokens"
    return None


_SIZE = re.compile(r"auto|-1|\d+(\.\d+)?[kKmMgG]")


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None  # inf and nan are no numbers here


def _type_remedy(name: str, known: Argument) -> str:
    return {
        "flag": f"{name}: true" + (" or false" if known.negatable else ", or leave it out"),
        "int": "a whole number",
        "float": "a number",
        "size": "a number, such as 32768 or 32k",
    }.get(known.kind, "one value, without brackets")


@cache
def _known_variables() -> dict[str, dict[str, Any]]:
    text = (Path(__file__).resolve().parent / "variables.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return loaded


def _variables(vllm: str | None, environment: Mapping[str, str]) -> Iterator[ArgumentFinding]:
    known = _known_variables()
    for name in environment:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.9)
            if name.startswith("VLLM_") and near:
                yield ArgumentFinding(
                    "misspelt-variable", "warning", f"environment.{name}",
                    f"{name} is almost {near[0]}", "vLLM ignores variables it does not know",
                    near[0], known[near[0]]["source"],
                )  # fmt: skip
            continue
        until = known[name].get("until")
        if vllm and until and _parts(vllm) >= _parts(until):
            yield ArgumentFinding(
                "removed-variable", "error", f"environment.{name}",
                f"vLLM {until} removed {name}", "it is ignored, and the backend is another one",
                known[name]["instead"], known[name]["source"],
            )  # fmt: skip


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
