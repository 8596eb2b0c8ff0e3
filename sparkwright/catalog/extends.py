"""Entries that say only in what they differ from another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake, suggest

#: Kind and name.
Key = tuple[str, str]
#: A file, and what it says with everything that it extends under the same name.
Read = tuple[Path, dict[str, Any]]


def over_earlier(
    path: Path, data: dict[str, Any], earlier: Read | None
) -> dict[str, Any] | Finding:
    """An entry with ``extends: true`` over the one of the same name from an earlier directory."""
    if data.get("extends") is not True:
        return data
    if earlier is None:
        return mistake(
            f"{path}: extends",
            f"there is no {data.get('kind')} {data.get('name')!r} to extend",
            "fix the name, name another entry in 'extends', or drop it and write the whole entry",
        )
    return merged(earlier[1], {key: value for key, value in data.items() if key != "extends"})


def under_new_names(raw: Mapping[Key, Read]) -> tuple[dict[Key, Read], list[Finding]]:
    """Every entry whole: those with ``extends: NAME`` over that entry, wherever it stands."""
    found: dict[Key, Read] = {}
    problems: list[Finding] = []

    def whole(key: Key, within: tuple[Key, ...]) -> dict[str, Any] | None:
        path, data = raw[key]
        base = data.get("extends")
        if not isinstance(base, str):
            return data
        other = (key[0], base)
        where = f"{path}: extends"
        if other in (*within, key):
            problems.append(mistake(where, f"{base!r} extends this entry", "extend another one"))
            return None
        if other not in raw:
            known = [name for kind, name in raw if kind == key[0]]
            problems.append(mistake(where, f"no such {key[0]}: {base!r}", suggest(base, known)))
            return None
        under = whole(other, (*within, key))
        own = {name: value for name, value in data.items() if name != "extends"}
        return None if under is None else merged(under, own)

    for key, (path, _) in raw.items():
        data = whole(key, ())
        if data is not None:
            found[key] = path, data
    return found, list(dict.fromkeys(problems))


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Mappings key by key; everything else is replaced."""
    both = dict(base)
    for key, value in over.items():
        before = both.get(key)
        both[key] = (
            merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
        )
    return both
