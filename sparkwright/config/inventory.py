"""Reading an inventory and its group_data as pyinfra does, without pyinfra.

pyinfra takes half a second to import; ``sparkwright check`` must answer in less than one. What
is read here is the part of pyinfra's inventories that the project's own use: a Python file whose
top-level lists of names, or of (name, data) pairs, are groups, and ``group_data/<group>.py``. A
test compares it with pyinfra's own reading.
"""

from __future__ import annotations

import ast
import json
import runpy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from sparkwright.findings.user_error import UserError, mistake, suggest


@dataclass(frozen=True)
class HostInput:
    """One host as the user's files give it.

    Attributes:
        data: everything that is said of it, by key.
        origin: key -> the file that has the last word on it.
        groups: that it is in, ``all`` among them.
    """

    name: str
    data: Mapping[str, Any]
    origin: Callable[[str], str]
    groups: frozenset[str] = frozenset()


def site_inventory() -> Path:
    """The site's inventory, where none is named: inventory/lab.py, or the only one.

    Raises:
        UserError: when it is not clear which one.
    """
    usual = Path("inventory/lab.py")
    found = [usual] if usual.is_file() else sorted(Path("inventory").glob("*.py"))
    if len(found) != 1:
        there = ", ".join(map(str, found)) or "none in ./inventory"
        remedy = "name one, or run this in the folder of a site (`sparkwright init` makes one)"
        raise UserError([mistake("INVENTORY", f"none is named, and there is {there}", remedy)])
    return found[0]


def ssh_address(name: str, data: Mapping[str, Any]) -> str:
    """Where the controller reaches a host."""
    return str(data.get("ssh_hostname") or name)


def lan_address(name: str, data: Mapping[str, Any]) -> str:
    """Where other hosts of the LAN reach it: as the controller does, unless it says otherwise."""
    return str(data.get("lan_address") or ssh_address(name, data))


def read_inventory(path: Path, overrides: Iterable[str] = ()) -> list[HostInput]:
    """Hosts of an inventory file, in its order.

    Args:
        overrides: ``key=value``, as pyinfra's ``--data``.

    Raises:
        UserError: for files that can't be read or run, and for an inventory without hosts.
    """
    if not path.is_file():
        raise UserError(
            [mistake(str(path), "this file does not exist", "name one, such as inventory/lab.py")]
        )
    groups = _groups(_run(path))
    for folder in dict.fromkeys(
        (Path("group_data").resolve(), path.parent.resolve() / "group_data")
    ):
        for file in sorted(folder.glob("*.py")):
            group = groups.setdefault(file.stem, _Group([], {}, {}))
            values = _without_imports(file, _run(file))
            place = _shown(file)
            group.data.update(values)
            group.places.update(dict.fromkeys(values, place))
    every = groups.pop("all", None) or _Group([], {}, {})
    names = list(dict.fromkeys(name for group in groups.values() for name, _ in group.hosts))
    names = list(dict.fromkeys([name for name, _ in every.hosts])) or names
    # pyinfra puts all hosts into a group of the file's name too.
    alone = groups.get(path.stem)
    if alone is not None and not alone.hosts:
        groups[path.stem] = _Group([(name, {}) for name in names], alone.data, alone.places)
    if not names:
        raise UserError(
            [
                mistake(
                    str(path),
                    "this inventory has no hosts",
                    "name some in a list, such as sparks = ['spark-1']",
                )
            ]
        )
    given = dict(map(override, overrides))
    found = []
    for name in names:
        data: dict[str, Any] = {}
        origins: dict[str, str] = {}
        named = [one for one, group in groups.items() if name in dict(group.hosts)]
        member = [groups[one] for one in named]
        for group in (every, *member):
            data.update(group.data)
            origins.update({key: group.places.get(key, str(path)) for key in group.data})
        for group in (*member, every):
            for host, own in group.hosts:
                if host == name:
                    data.update(own)
                    origins.update(dict.fromkeys(own, str(path)))
        data.update(given)
        origins.update(dict.fromkeys(given, "--data"))
        origin = partial(_origin, origins, str(path))
        found.append(HostInput(name, data, origin, frozenset(("all", path.stem, *named))))
    return found


def limited(hosts: Sequence[HostInput], limit: Sequence[str]) -> list[HostInput]:
    """The hosts that ``--limit`` means, as pyinfra has it: names, groups, and patterns of names.

    Raises:
        UserError: for each that means none.
    """
    if not limit:
        return list(hosts)
    groups = {group for host in hosts for group in host.groups}
    chosen: set[str] = set()
    problems = []
    for one in limit:
        meant = {host.name for host in hosts if one in host.groups}
        meant = meant or {host.name for host in hosts if fnmatch(host.name, one)}
        chosen |= meant
        if not meant:
            known = [*(host.name for host in hosts), *sorted(groups)]
            problems.append(
                mistake(
                    f"--limit {one}", "no host or group of the inventory is meant",
                    suggest(one, known),
                )
            )  # fmt: skip
    if problems:
        raise UserError(problems)
    return [host for host in hosts if host.name in chosen]


def _origin(origins: Mapping[str, str], default: str, key: str) -> str:
    return origins.get(key, default)


def _run(path: Path) -> dict[str, Any]:
    try:
        return {
            key: value
            for key, value in runpy.run_path(str(path)).items()
            if not (key.startswith("__") and key.endswith("__"))
        }
    except SyntaxError as error:
        where, what = f"{path}: line {error.lineno}", f"not valid Python: {error.msg}"
    except Exception as error:
        where, what = str(path), f"{type(error).__name__}: {error}"
    raise UserError([mistake(where, what, "fix that file")])


@dataclass(frozen=True)
class _Group:
    """Hosts with their own data, the group's data, and the files that it comes from."""

    hosts: list[tuple[str, dict[str, Any]]]
    data: dict[str, Any]
    places: dict[str, str]


def _groups(variables: Mapping[str, Any]) -> dict[str, _Group]:
    """The groups among an inventory's top-level variables."""
    groups: dict[str, _Group] = {}
    for name, value in variables.items():
        if name.startswith("_") or not isinstance(value, list | tuple):
            continue
        hosts: Any = value
        data: dict[str, Any] = {}
        if isinstance(value, tuple):
            hosts, data = value[0], value[1] if len(value) > 1 else {}
        if all(isinstance(host, str | tuple) for host in hosts):
            pairs = [host if isinstance(host, tuple) else (host, {}) for host in hosts]
            groups[name] = _Group([(pair[0], dict(pair[1])) for pair in pairs], dict(data), {})
    return groups


def _without_imports(file: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a group_data file says, without the names it imports."""
    imported: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
    return {key: value for key, value in values.items() if key not in imported}


def _shown(file: Path) -> str:
    """A path as the user would write it."""
    here = Path.cwd().resolve()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def override(text: str) -> tuple[str, Any]:
    """``key=value`` of ``--data``: the key, and the value, read as pyinfra does."""
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value.strip("\"'")
