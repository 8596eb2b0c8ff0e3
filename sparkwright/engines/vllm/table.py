"""Tables of ``vllm serve`` arguments by version: what the checks go by.

``.ci/vllm_table.py`` makes them of what the real parser says.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
    choices: Sequence[str]
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
    names: dict[str, Sequence[str]]
    speculative_keys: Sequence[str]
    aliases: dict[str, str]
    decided: dict[str, dict[str, bool]]


@cache
def versions() -> tuple[str, ...]:
    """Versions that there is a table of, oldest first."""
    return tuple(sorted((path.stem for path in TABLES.glob("*.json")), key=release))


@cache
def release(version: str) -> tuple[int, int, int]:
    """The release that a version belongs to: ``0.24.0rc1`` and ``0.24.0+local`` are of 0.24.0."""
    match = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version, re.ASCII)
    if match is None:
        return (0, 0, 0)
    major, minor, patch = (int(part or 0) for part in match.groups())
    return (major, minor, patch)


def nearest(version: str, listed: Collection[str] = ()) -> str:
    """The version to go by: itself, else the next lower one, else the lowest.

    Args:
        listed: versions to choose from; those that have a table where none are given.
    """
    candidates = tuple(sorted(listed, key=release)) if listed else versions()
    lower = [other for other in candidates if release(other) <= release(version)]
    return lower[-1] if lower else candidates[0]


@cache
def architectures() -> Mapping[str, set[str]]:
    """Version -> the classes that it serves, of which a model's config.json names one.

    The lists come from vLLM's own registry, read as text from its wheels (``.ci/vllm_table.py``).
    The file has for each class the versions that serve it.
    """
    result: defaultdict[str, set[str]] = defaultdict(set)
    path = TABLES.with_name("architectures.json")
    for name, listed in json.loads(path.read_text(encoding="utf-8")).items():
        for version in listed.split():
            result[version].add(name)
    return result


@cache
def table(version: str) -> Table:
    """The table of a version that has one."""
    data = json.loads((TABLES / f"{version}.json").read_text(encoding="utf-8"))
    data["arguments"] = {name: Argument(*item) for name, item in data["arguments"].items()}
    return Table(version=data.pop("vllm"), **data)


def defaults(version: str, hybrid: bool) -> Mapping[str, ArgumentValue]:
    """Values that a version, or the nearest one with a table, takes for unwritten arguments;
    without unknown ones."""
    own, kind = table(nearest(version)), "hybrid" if hybrid else "decoder"
    values = {name: item.default for name, item in own.arguments.items()}
    values |= {name: by_kind[kind] for name, by_kind in own.decided.items()}
    return {name: value for name, value in values.items() if value is not None}
