"""Words of a command line as arguments of ``vllm serve``, by what a version takes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.engines.vllm.data import own_setting
from sparkwright.engines.vllm.table import Argument, Table, table, versions
from sparkwright.recipes.recipe import Remarks

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: vLLM's short options (0.23.0 to 0.33.0).
SHORT = {
    "asc": "api_server_count", "q": "quantization", "pp": "pipeline_parallel_size",
    "n": "nnodes", "r": "node_rank", "tp": "tensor_parallel_size",
    "dcp": "decode_context_parallel_size", "pcp": "prefill_context_parallel_size",
    "dp": "data_parallel_size", "dpn": "data_parallel_rank", "dpr": "data_parallel_start_rank",
    "dpl": "data_parallel_size_local", "dpa": "data_parallel_address",
    "dpp": "data_parallel_rpc_port", "dpb": "data_parallel_backend",
    "dph": "data_parallel_hybrid_lb", "dpe": "data_parallel_external_lb",
    "dpm": "data_parallel_multi_port_external_lb", "ep": "enable_expert_parallel",
    "sc": "speculative_config", "dc": "diffusion_config", "cc": "compilation_config",
    "ac": "attention_config", "O": "optimization_level",
}  # fmt: skip
#: What a service is without being told.
_USUAL = (("port", "8000"), ("host", "0.0.0.0"))
_NUMBER = re.compile(r"-\d+(\.\d+)?")


@dataclass
class Arguments:
    """What a command line sets.

    Attributes:
        values: argument, with underscores -> value.
        model: the positional one, or ``--model``.
        served_names: of ``--served-model-name``.
    """

    values: dict[str, ArgumentValue] = field(default_factory=dict)
    model: str | None = None
    served_names: tuple[str, ...] = ()


def known_to(vllm: str | None) -> Sequence[Table]:
    """The table of a version; all of them, the newest first, where there is none of it."""
    return [table(vllm)] if vllm in versions() else [table(one) for one in reversed(versions())]


def read_arguments(words: Sequence[str], vllm: str | None, remarks: Remarks) -> Arguments:
    """The arguments; what can't be carried over is said.

    Args:
        vllm: the version that judges; None where nobody says it.
    """
    return _Reader(known_to(vllm), vllm, remarks).read(list(words))


class _Reader:
    def __init__(self, tables: Sequence[Table], vllm: str | None, remarks: Remarks) -> None:
        self.tables = tables
        self.of = vllm if len(tables) == 1 else "any version that there is a table of"
        self.remarks = remarks
        self.found = Arguments()
        self.nested: dict[str, dict[str, Any]] = {}

    def read(self, words: list[str]) -> Arguments:
        while words:
            word = words.pop(0)
            if not _is_option(word):
                self._positional(word)
                continue
            option, equals, value = word.partition("=")
            self._option(option, value if equals else None, words)
        for name, inner in self.nested.items():
            self.found.values[name] = _fitting(inner)
        return self.found

    def _positional(self, word: str) -> None:
        if self.found.model is None:
            self.found.model = word
        else:
            self.remarks.left_out("command", f"the word {word!r}", "no argument takes it")

    def _option(self, option: str, value: str | None, words: list[str]) -> None:
        name, _, path = option.lstrip("-").partition(".")
        if not option.startswith("--"):
            if option.startswith("-O") and len(option) == 3:  # -O3
                name, value = "O", option[2:]
            name = SHORT.get(name, name)
        name, known = self._known(name.replace("-", "_"))
        negated = False
        if known is None and name.startswith("no_"):
            name, known = self._known(name[3:])
            negated = known is not None
        given = [value] if value is not None else []
        takes_none = known is not None and known.kind == "flag"
        if not given and not takes_none:
            while words and not _is_option(words[0]):
                given.append(words.pop(0))
                if known is not None and known.kind != "many" and not path:
                    break
                if path:
                    break
        if takes_none and not given and words and words[0].lower() in ("true", "false"):
            given = [words.pop(0)]
        self._set(option, name, path, known, given, negated=negated)

    def _known(self, name: str) -> tuple[str, Argument | None]:
        """An argument by its own name, another one, or an unambiguous beginning of it."""
        for one in self.tables:
            own = one.aliases.get(name, name)
            if own in one.arguments:
                return own, one.arguments[own]
        for one in self.tables:
            begun = [own for own in one.arguments if own.startswith(name)]
            if len(begun) == 1 and len(name) > 3:
                return begun[0], one.arguments[begun[0]]
        return name, None

    def _set(
        self, option: str, name: str, path: str, known: Argument | None, given: list[str], *,
        negated: bool,
    ) -> None:  # fmt: skip
        key = f"command {option}"
        if any(expands(one) for one in given):
            what = f"{option} {' '.join(given)}"
            self.remarks.left_out(key, what, "a shell would fill it in, and none is run")
        elif any(PLACEHOLDER.fullmatch(one) for one in given):
            self.remarks.left_out(key, f"{option} {given[0]}", "nothing gives it a value")
        elif name == "model" and given:
            self.found.model = given[0]
        elif name == "served_model_name":
            self.found.served_names = tuple(given)
        elif setting := own_setting(name):
            self._own(key, option, name, given, setting)
        elif known is None:
            what = " ".join([option, *given])
            self.remarks.left_out(key, what, f"vLLM of {self.of} has no such argument")
        elif path:
            self._nest(name, path, given)
        else:
            self._value(option, name, known, given, negated=negated)

    def _own(self, key: str, option: str, name: str, given: list[str], setting: str) -> None:
        """A setting of the service, whose defaults are the recipes' usual ones."""
        if (name, *given) in _USUAL:
            return
        shown = option if "key" in name else f"{option} {' '.join(given)}"
        self.remarks.left_out(key, shown, f"this is the service's own setting: {setting}")

    def _nest(self, name: str, path: str, given: list[str]) -> None:
        """``--a.b=c``, as vLLM reads it: the value is JSON where it can be."""
        before = self.found.values.pop(name, None)
        inner = self.nested.setdefault(name, before if isinstance(before, dict) else {})
        *parents, last = path.replace("-", "_").split(".")
        for one in parents:
            below = inner.setdefault(one, {})
            if not isinstance(below, dict):
                below = inner[one] = {}
            inner = below
        inner[last] = _json(given[0]) if given else True

    def _value(
        self, option: str, name: str, known: Argument, given: list[str], *, negated: bool
    ) -> None:
        # One that is there twice: vLLM takes the last one.
        key, values = f"command {option}", self.found.values
        if known.kind == "flag":
            if given and given[0].lower() not in ("true", "false"):
                self.remarks.left_out(key, f"{option} {given[0]}", "a flag takes no value")
                return
            wanted = not (given and given[0].lower() == "false") and not negated
            if wanted or known.negatable:
                values[name] = wanted
            return
        if not given:
            self.remarks.left_out(key, option, "it needs a value, and has none")
        elif known.kind == "many":
            values[name] = [*map(_scalar, given)] if len(given) > 1 else given[0]
        elif known.kind in ("int", "float", "size", "auto-size"):
            values[name] = _scalar(given[0])
        else:
            parsed = _json(given[0]) if given[0].lstrip().startswith("{") else given[0]
            if isinstance(parsed, dict):
                inner = self.nested.setdefault(name, {})
                inner.update(parsed)
            else:
                values[name] = given[0]


def expands(word: str) -> bool:
    """Whether a shell would look something up, or run it."""
    return "$" in word or "`" in word


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _scalar(text: str) -> int | float | str:
    if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"-?\d{0,18}\.\d{1,18}", text, re.ASCII):
        return float(text)
    return text


def _fitting(value: dict[str, Any]) -> ArgumentValue:
    """A flat mapping as it is, a deeper one as JSON's text, which vLLM reads as well."""
    flat = all(one is None or isinstance(one, bool | int | float | str) for one in value.values())
    return value if flat else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
