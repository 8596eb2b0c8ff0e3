"""Tables of ``vllm serve`` arguments by version: what the checks go by.

``.ci/vllm_table.py`` makes them of what the real parser says.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sparkwright.catalog.data import ArgumentValue

TABLES = Path(__file__).resolve().parent / "tables"


@dataclass(frozen=True)
class Argument:
    """An argument of vLLM.

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
    """Arguments of a vLLM version.

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
        """The version's defaults for arguments that are not written; without unknown defaults."""
        kind = "hybrid" if hybrid else "decoder"
        own = {name: item.default for name, item in self.arguments.items()}
        own |= {name: by_kind[kind] for name, by_kind in self.decided.items()}
        return {name: value for name, value in own.items() if value is not None}


def versions() -> list[str]:
    """Versions that there is a table of, oldest first."""
    return sorted((path.stem for path in TABLES.glob("*.json")), key=release)


def release(version: str) -> tuple[int, int, int]:
    """The release that a version belongs to: ``0.24.0rc1`` and ``0.24.0+local`` are of 0.24.0."""
    match = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version, re.ASCII)
    if match is None:
        return (0, 0, 0)
    major, minor, patch = (int(part or 0) for part in match.groups())
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
