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
from sparkwright.engines.vllm.table import Argument, Table, nearest, release, table, versions
from sparkwright.findings.user_error import suggest

Level = Literal["error", "warning"]
_SOURCE = "vLLM {version}'s own parser"
_LATE = "vLLM's parser lets it pass, and the engine ends minutes later"

#: Every rule of this module, by how bad it is where there is a table of the version.
RULE_IDS: dict[str, Level] = {
    "unknown-argument": "error",
    "argument-type": "error",
    "argument-choice": "error",
    "argument-range": "error",
    "argument-twice": "error",
    "unknown-name": "error",
    "speculative-key": "error",
    "removed-variable": "error",
    "misspelt-variable": "warning",
}

#: Names that are near others and mean something else: (argument, value) -> what to write.
_MEANT = {
    ("speculative_method", "speculators"): "method: dflash, which is vLLM's own speculator (the "
    'card of vllm-ultimate-dgx-spark, recipe A: not "speculators")'
}
#: Arguments with a range that argparse does not check: (lowest, highest).
_RANGES: dict[str, tuple[float, float]] = {
    "gpu_memory_utilization": (0.01, 1.0),
    "max_model_len": (1, 1e8),
    "max_num_seqs": (1, 1e6),
    "max_num_batched_tokens": (1, 1e8),
    "tensor_parallel_size": (1, 1024),
    "pipeline_parallel_size": (1, 1024),
    "data_parallel_size": (1, 1024),
    "decode_context_parallel_size": (1, 1024),
    "prefill_context_parallel_size": (1, 1024),
    "api_server_count": (0, 1024),
    "block_size": (1, 4096),
    "mamba_block_size": (1, 1e6),
    "cpu_offload_gb": (0, 1e5),
    "swap_space": (0, 1e5),
    "kv_cache_memory_bytes": (1, 1e15),
    "kv_offloading_size": (0, 1e5),
    "mm_processor_cache_gb": (0, 1e5),
    "num_gpu_blocks_override": (1, 1e9),
    "max_num_partial_prefills": (1, 1e6),
    "max_long_partial_prefills": (1, 1e6),
    "long_prefill_token_threshold": (0, 1e8),
    "stream_interval": (1, 1e6),
    "shutdown_timeout": (0, 1e6),
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
        vllm: the version; None where no card says it, and then arguments are not judged.
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
            name = self.table.aliases.get(name, name)
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
        elsewhere = [
            v for v in versions() if name in table(v).arguments or name in table(v).aliases
        ]
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
        for one in value if isinstance(value, list) else [value]:
            text = str(one).lower().replace("-", "_") if known.kind == "folded" else str(one)
            if known.choices and text not in choices:
                yield self._finding(
                    "argument-choice", self.level, key, f"{one!r} is no choice of {name}",
                    "vLLM ends at start with 'invalid choice'", suggest(text, choices),
                )  # fmt: skip
        yield from self._name(key, name, value)
        low_high = _RANGES.get(name)
        number = None if known.kind == "auto-size" and _is_auto(value) else amount(value)
        if low_high and number is not None and not low_high[0] <= number <= low_high[1]:
            yield self._finding(
                "argument-range", "error", key, f"{value!r} is out of range", _LATE,
                f"from {low_high[0]:g} to {low_high[1]:g}",
            )  # fmt: skip

    def _name(self, key: str, name: str, value: object) -> Iterator[ArgumentFinding]:
        """Parsers and backends, which argparse takes as any text."""
        known = (*self.table.names.get(name, ()), *self.also.get(name, ()))
        if name not in self.table.names or value is None:
            return
        fold: Callable[[str], str] = str.upper if name == "attention_backend" else str
        if fold(str(value)) not in {fold(one) for one in known}:
            yield self._finding(
                "unknown-name", self.level, key, f"{value!r} is no {name.replace('_', ' ')}",
                _LATE, _MEANT.get((name, str(value))) or suggest(fold(str(value)), list(known)),
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
        yield from self._name(f"{key}.method", "speculative_method", value.get("method"))
        for name in ("attention_backend", "quantization"):
            yield from self._name(f"{key}.{name}", name, value.get(name))

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
    if known.kind == "int" and not _is_int(value):
        return "not a whole number"
    if known.kind == "float" and _number(value) is None:
        return "not a number"
    size = _is_int(value) or _SIZE.fullmatch(str(value).strip())
    if known.kind == "size" and not size:
        return "not a whole number, nor one such as 32k"
    if known.kind == "auto-size" and not (size or _is_auto(value)):
        return "not a number of tokens"
    return None


#: Decimals go with k (1000), not with K (1024): vLLM's human_readable_int.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt])|(\d+)([KMGT])", re.ASCII)


def _is_int(value: object) -> bool:
    """Whether the parser's ``int()`` takes it: 16 and "16", not 16.0 or "1e3"."""
    try:
        int(str(value))
    except ValueError:
        return False
    return True


def _is_auto(value: object) -> bool:
    """-1 and ``auto`` leave the length to what fits: vLLM's human_readable_int_or_auto."""
    return str(value).strip().lower() in ("-1", "auto")


def amount(value: object) -> float | None:
    """A number, also with a suffix: 32768, "32K" (1024 each), "32k" (1000 each)."""
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        return _number(value)
    digits, suffix = (found[1], found[2]) if found[1] else (found[3], found[4])
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


def _type_remedy(name: str, known: Argument) -> str:
    return {
        "flag": f"{name}: true" + (" or false" if known.negatable else ", or leave it out"),
        "int": "a whole number",
        "float": "a number",
        "size": "a number, such as 32768 or 32k",
        "auto-size": "a number, such as 32768 or 32k, or auto",
    }.get(known.kind, "one value, without brackets")


@cache
def known_variables() -> dict[str, dict[str, Any]]:
    """What variables.yaml says of each variable."""
    text = (Path(__file__).resolve().parent / "variables.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return loaded


def _variables(vllm: str | None, environment: Mapping[str, str]) -> Iterator[ArgumentFinding]:
    known = known_variables()
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
        if vllm and until and release(vllm) >= release(until):
            yield ArgumentFinding(
                "removed-variable", "error", f"environment.{name}",
                f"vLLM {until} removed {name}", "it is ignored, and the backend is another one",
                known[name]["instead"], known[name]["source"],
            )  # fmt: skip
