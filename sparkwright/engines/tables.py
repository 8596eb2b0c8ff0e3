"""Tables of an engine's arguments by version, made from its real parser."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sparkwright.host.lib.records import dataclass, field

if TYPE_CHECKING:  # commands that query hosts must not load the catalog
    from sparkwright.catalog.data import ArgumentValue


@dataclass(frozen=True)
class Argument:
    """An argument of an engine.

    Attributes:
        kind: ``flag``, ``int``, ``float``, ``size`` (also ``32k``), ``auto-size`` (also ``auto``),
            ``folded`` (a choice in any case, with dashes or underscores), ``many`` or ``any``.
        negatable: whether a flag has a ``--no-`` form.
        default: the version's value if the argument is not written; None if its parser leaves the
            value to the engine.
    """

    kind: str
    choices: Sequence[str]
    negatable: bool
    default: ArgumentValue | None = None


@dataclass(frozen=True)
class Table:
    """Arguments of a version.

    Attributes:
        names: argument that accepts any text -> the names that the engine supports.
        aliases: a second long name -> its argument.
        decided: argument -> kind of model (``decoder``, or ``hybrid``: some of its layers keep a
            state instead of keys and values) -> the engine's default for such a model.
    """

    version: str
    arguments: dict[str, Argument]
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    speculative_keys: Sequence[str] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    decided: dict[str, dict[str, bool]] = field(default_factory=dict)


@cache
def release(version: str) -> tuple[int, int, int]:
    """The release of a version: ``0.24.0rc1`` and ``0.24.0+local`` belong to 0.24.0; ``b9842`` is a
    build.
    """
    match = re.match(r"[vb]?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version, re.ASCII)
    if match is None:
        return (0, 0, 0)
    major, minor, patch = (int(part or 0) for part in match.groups())
    return (major, minor, patch)


class Tables:
    """The tables of an engine: a folder with one ``VERSION.json`` per version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.versions = cache(self._versions)
        self.table = cache(self._table)

    def _versions(self) -> tuple[str, ...]:
        """Versions with a table, oldest first."""
        return tuple(sorted((path.stem for path in self.folder.glob("*.json")), key=release))

    def _table(self, version: str) -> Table:
        """The table of a version, read from its file."""
        data = json.loads((self.folder / f"{version}.json").read_text(encoding="utf-8"))
        data["arguments"] = {name: Argument(*item) for name, item in data["arguments"].items()}
        return Table(**data)

    def nearest(self, version: str, listed: Collection[str] = ()) -> str:
        """Version of the table that applies: the version itself, the next lower version, or,
        without a lower version, the lowest version.

        Args:
            listed: versions to choose from; default: versions with a table.
        """
        candidates = tuple(sorted(listed, key=release)) if listed else self.versions()
        lower = [other for other in candidates if release(other) <= release(version)]
        return lower[-1] if lower else candidates[0]

    def known_to(self, version: str | None) -> Sequence[Table]:
        """The table of a version; all tables, the newest first, for a version without a table."""
        names = [version] if version in self.versions() else reversed(self.versions())
        return [self.table(name) for name in names]

    def defaults(self, version: str, hybrid: bool) -> Mapping[str, ArgumentValue]:
        """Values that a version, or the nearest version with a table, takes for unwritten
        arguments; without unknown values.
        """
        own, kind = self.table(self.nearest(version)), "hybrid" if hybrid else "decoder"
        values = {name: item.default for name, item in own.arguments.items()}
        values |= {name: by_kind[kind] for name, by_kind in own.decided.items()}
        return {name: value for name, value in values.items() if value is not None}
