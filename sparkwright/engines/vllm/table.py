"""Tables of ``vllm serve`` arguments by version, and how one is made.

    docker run --rm -i --gpus all --entrypoint python3 IMAGE - \\
        < sparkwright/engines/vllm/dump.py > dump.json
    python -m sparkwright.engines.vllm.table dump.json \\
        > sparkwright/engines/vllm/tables/VERSION.json

A dump holds everything that the real parser says; a table only what the checks go by.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.catalog.data import ArgumentValue

TABLES = Path(__file__).resolve().parent / "tables"

#: What a parser's type means for a value; everything else is not checked.
_KINDS = {
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "auto-size",
}


@dataclass(frozen=True)
class Argument:
    """One argument.

    Attributes:
        kind: ``flag``, ``int``, ``float``, ``size`` (also ``32k``), ``auto-size`` (also ``auto``),
            ``folded`` (a choice in any case, with dashes or underscores), ``many`` or ``any``.
        negatable: whether a flag has a ``--no-`` form.
        default: what the version takes where nothing is written; None where its parser leaves that
            to the engine.
    """

    kind: str
    choices: tuple[str, ...]
    negatable: bool
    default: ArgumentValue | None = None


@dataclass(frozen=True)
class Table:
    """What one vLLM version takes.

    Attributes:
        aliases: a second long name -> the argument that it is.
        decided: argument -> kind of model (``decoder``, or ``hybrid``: some of its layers keep a
            state instead of keys and values) -> the engine's default for such a model.
    """

    version: str
    arguments: dict[str, Argument]
    names: dict[str, tuple[str, ...]]
    speculative_keys: tuple[str, ...]
    aliases: dict[str, str]
    decided: dict[str, dict[str, bool]]

    def defaults(self, *, hybrid: bool) -> Mapping[str, ArgumentValue]:
        """What the version takes for arguments that are not written; unknown ones are left out."""
        kind = "hybrid" if hybrid else "decoder"
        own = {name: one.default for name, one in self.arguments.items()}
        own |= {name: by_kind[kind] for name, by_kind in self.decided.items()}
        return {name: value for name, value in own.items() if value is not None}


def versions() -> list[str]:
    """Versions that there is a table of, oldest first."""
    return sorted((path.stem for path in TABLES.glob("*.json")), key=release)


def release(version: str) -> tuple[int, int, int]:
    """The release that a version belongs to: ``0.24.0rc1`` and ``0.24.0+local`` are of 0.24.0."""
    found = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version, re.ASCII)
    if found is None:
        return (0, 0, 0)
    major, minor, patch = (int(part or 0) for part in found.groups())
    return (major, minor, patch)


def nearest(version: str) -> str:
    """The table to go by: the version's own, else the next lower one, else the lowest."""
    known = versions()
    lower = [other for other in known if release(other) <= release(version)]
    return lower[-1] if lower else known[0]


@cache
def table(version: str) -> Table:
    """The table of a version that has one."""
    data = json.loads((TABLES / f"{version}.json").read_text(encoding="utf-8"))
    return Table(
        version=data["vllm"],
        arguments={
            name: Argument(kind, tuple(choices), negatable, default)
            for name, (kind, choices, negatable, default) in data["arguments"].items()
        },
        names={key: tuple(values) for key, values in data["names"].items()},
        speculative_keys=tuple(data["speculative_keys"]),
        aliases=data["aliases"],
        decided=data["decided"],
    )


def defaults(version: str, *, hybrid: bool) -> Mapping[str, ArgumentValue]:
    """Values that a version, or the nearest one with a table, takes for unwritten arguments."""
    return table(nearest(version)).defaults(hybrid=hybrid)


def from_dump(dump: dict[str, Any]) -> dict[str, Any]:
    """A table, as plain data, from a dump."""
    arguments: dict[str, list[Any]] = {}
    aliases: dict[str, str] = {}
    for flag in dump["flags"]:
        long = [name for name in flag["flags"] if name.startswith("--")]
        if not long or flag["action"] == "HelpAction":
            continue
        negatable = any(name.startswith("--no-") for name in long)
        names = [name for name in long if not (negatable and name.startswith("--no-"))]
        if flag["action"] == "EnableDisableAction":  # --disable-x takes --enable-x back: no alias
            names = names[:1]
        name, *others = [name[2:].replace("-", "_") for name in names]
        aliases |= dict.fromkeys(others, name)
        arguments[name] = [
            _kind(flag),
            [str(choice) for choice in flag["choices"] or ()],
            negatable,
            _default(flag["default"]),
        ]
    return {
        "vllm": dump["vllm"],
        "arguments": dict(sorted(arguments.items())),
        "names": {
            "tool_call_parser": sorted(dump["tool_parsers"]),
            "reasoning_parser": sorted(dump["reasoning_parsers"]),
            "attention_backend": sorted(dump["attention_backends"]),
            "speculative_method": sorted(dump["speculative_methods"]),
            # The parser takes any text; its names are in the drafter's annotation alone.
            "quantization": sorted(
                re.findall(r"'([^']+)'", dump["speculative_config_keys"].get("quantization", ""))
            ),
        },
        "speculative_keys": sorted(dump["speculative_config_keys"]),
        "aliases": dict(sorted(aliases.items())),
        "decided": dump.get("decided", {}),
    }


def _default(text: str) -> ArgumentValue | None:
    """A default as a recipe would write it; None for one that is no plain value."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _kind(flag: dict[str, Any]) -> str:
    if flag["nargs"] == 0:
        return "flag"
    if flag["nargs"] in ("+", "*") or flag["action"] == "AppendAction":
        return "many"
    if flag["choices"] and "<lambda>" in (flag["type"] or ""):
        return "folded"  # the choices of backends, which vLLM lowers and underscores
    return _KINDS.get(flag["type"] or "", "any")


def main(words: list[str]) -> int:
    """Print the table of a dump."""
    if len(words) != 1:
        print("usage: python -m sparkwright.engines.vllm.table DUMP.json", file=sys.stderr)
        return 2
    made = from_dump(json.loads(Path(words[0]).read_text(encoding="utf-8")))
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made["arguments"].items())
    rest = ",\n".join(
        f" {json.dumps(key)}: {json.dumps(value)}"
        for key, value in made.items()
        if key != "arguments"
    )
    print(f'{{\n "arguments": {{\n{lines}\n }},\n{rest}\n}}')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
