"""Read an inventory and its group_data by pyinfra's rules, without importing pyinfra.

pyinfra takes half a second to import; ``sparkwright check`` must answer in less than a second. This
module reads a part of pyinfra's inventory format: a Python file whose top-level lists of names, or
of (name, data) pairs, are groups, and ``group_data/<group>.py``. A test compares the result with
pyinfra's result.

``with_host`` adds a host as one line of Python at the end of an inventory.
"""

import ast
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sparkwright.config import python_files
from sparkwright.config.groups import Group, groups_of
from sparkwright.documents.bounds import Unusable, bounded
from sparkwright.findings.user_error import Messages, Problems, UserError, mistake, suggest
from sparkwright.host.lib.records import dataclass

_MESSAGES = Messages(__file__)
#: Environment variable with the path of the inventory, for a site with several inventories.
VARIABLE = "SPARKWRIGHT_INVENTORY"
_USUAL = Path("inventory/lab.py")


@dataclass(frozen=True)
class HostInput:
    """A host with the data of the user's files.

    Attributes:
        data: all of the host's data, by key.
        origin: key -> the last file that sets the key.
        groups: the host's groups, ``all`` among them.
    """

    name: str
    data: Mapping[str, Any]
    origin: Callable[[str], str]
    groups: frozenset[str] = frozenset()


def site_inventory() -> Path:
    """Return the site's inventory for a command that names no inventory.

    The first of these sources counts: SPARKWRIGHT_INVENTORY, the only file in inventory/,
    `inventory` of group_data/all.py, inventory/lab.py.

    Raises:
        UserError: the inventory is ambiguous.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    files = sorted(Path("inventory").glob("*.py"))
    if len(files) == 1:
        return files[0]
    if named := _inventory_setting():
        return Path(named)
    if _USUAL not in files:
        there = f"there are {', '.join(map(str, files))}" if files else "./inventory has no *.py"
        raise _MESSAGES.refusal("no-inventory", "INVENTORY", there=there)
    return _USUAL


def _inventory_setting() -> str | None:
    """Return `inventory` of group_data/all.py. A fault of this file is reported when the hosts are
    read.
    """
    with suppress(UserError):
        value = python_files.run(Path("group_data/all.py")).get("inventory")
        return value if isinstance(value, str) else None
    return None


def ssh_address(name: str, data: Mapping[str, Any]) -> str:
    """Return the address at which the controller reaches a host."""
    return str(data.get("ssh_hostname") or name)


def lan_address(name: str, data: Mapping[str, Any]) -> str:
    """Return the address at which other hosts of the LAN reach this host: ``lan_address`` of its
    settings, otherwise the address that the controller uses.
    """
    return str(data.get("lan_address") or ssh_address(name, data))


def read_inventory(
    path: Path,
    overrides: Iterable[str] = (),
    *,
    for_pyinfra: bool = False,
    group_data: bool = True,
) -> list[HostInput]:
    """Return the hosts of an inventory file, in the file's order.

    Args:
        overrides: ``key=value`` texts, as for pyinfra's ``--data``.
        for_pyinfra: whether pyinfra reads the files next. Files that import pyinfra are then only
            compiled, since pyinfra's own context does not exist yet.
        group_data: whether to also read the inventory's group_data.

    Raises:
        UserError: a file can't be read or run, or the inventory has no hosts.
    """
    if not path.exists():
        raise _MESSAGES.refusal("no-file", str(path))
    problems = Problems()
    groups: dict[str, Group] = {}
    variables: Mapping[str, Any] | None = None
    given: dict[str, Any] = {}
    with problems.collected():
        variables = _run(path, for_pyinfra=for_pyinfra)[1]
        groups = groups_of(str(path), variables or {})
    with problems.collected():
        given = overrides_by_key(overrides)
    if group_data:
        folders = (Path("group_data").resolve(), path.parent.resolve() / "group_data")
        for folder in dict.fromkeys(folders):
            _add_group_data(folder, groups, problems, for_pyinfra=for_pyinfra)
    problems.stop()
    every = groups.pop("all", None) or Group([], {}, {})
    listed = every.hosts or [pair for group in groups.values() for pair in group.hosts]
    names = list(dict.fromkeys(name for name, _ in listed))
    if not names and variables is not None:
        raise _MESSAGES.refusal("no-hosts", str(path))
    # pyinfra also puts all hosts into a group with the file's name.
    alone = groups.get(path.stem)
    if alone is not None and not alone.hosts:
        groups[path.stem] = Group([(name, {}) for name in names], alone.data, alone.places)
    return [_host(name, path, every, groups, given) for name in names]


def check_inventory(
    inventory: str,
    group_data: Iterable[str],
    overrides: Iterable[str] = (),
    *,
    own_folder: bool = True,
) -> None:
    """Read inventory and group_data files once, before pyinfra does, so a typo shows no traceback.

    Args:
        group_data: further folders of group_data.
        overrides: ``key=value`` texts of pyinfra's ``--data``.
        own_folder: whether to read the site's group_data besides the inventory.

    Raises:
        UserError: a file can't be read or run; the message names every such file and the line.
    """
    problems = Problems()
    path = Path(inventory)
    folders = [Path(folder) for folder in group_data]
    for folder in folders:
        if not folder.is_dir():
            problems.append(_MESSAGES.mistake("no-folder", f"command line: --group-data {folder}"))
    if path.suffix == ".py" or (inventory and path.exists()):
        with problems.collected():
            read_inventory(path, overrides, for_pyinfra=True, group_data=own_folder)
    elif own_folder:  # hosts named on the command line: only group_data has their settings
        folders.insert(0, Path("group_data"))
    for folder in folders:
        _add_group_data(folder, {}, problems, for_pyinfra=True)
    problems.stop()


def _add_group_data(
    folder: Path, groups: dict[str, Group], problems: Problems, *, for_pyinfra: bool
) -> None:
    """Add the data of a group_data folder to its groups."""
    for file in sorted(folder.glob("*.y*ml")):
        problems.append(_MESSAGES.mistake("not-python", _shown(file), stem=file.stem))
    for file in sorted(folder.glob("*.py")):
        with problems.collected():
            # Messages show the path as the user would write it.
            tree, values = _run(Path(_shown(file)), for_pyinfra=for_pyinfra)
            if values is not None:
                group = groups.setdefault(file.stem, Group([], {}, {}))
                own = values.keys() - python_files.imported(tree)
                group.data.update({key: values[key] for key in values if key in own})
                group.places.update(dict.fromkeys(own, _shown(file)))


def _host(
    name: str,
    path: Path,
    every: Group,
    groups: Mapping[str, Group],
    overrides: Mapping[str, Any],
) -> HostInput:
    """Return a host with the data of all its groups; later groups override earlier groups."""
    data: dict[str, Any] = {}
    origins: dict[str, str] = {}
    member = {key: group for key, group in groups.items() if name in dict(group.hosts)}
    layers: list[tuple[Mapping[str, Any], Mapping[str, str]]]
    layers = [(group.data, group.places) for group in (every, *member.values())]
    own = [pair for group in (*member.values(), every) for pair in group.hosts]
    layers += [(values, {}) for host, values in own if host == name]
    for values, places in (*layers, (overrides, dict.fromkeys(overrides, "--data"))):
        data.update(values)
        origins.update({key: places.get(key, str(path)) for key in values})

    def origin(key: str) -> str:
        return origins.get(key, str(path))

    return HostInput(name, data, origin, frozenset(("all", path.stem, *member)))


def limited(
    hosts: Sequence[HostInput], limit: Sequence[str], option: str = "limit"
) -> list[HostInput]:
    """Return the hosts that ``--limit`` selects by pyinfra's rules: by name, by group, or by a
    pattern of names.

    Raises:
        UserError: a pattern has no host; the message names every such pattern.
    """
    chosen: set[str] = set()
    problems = Problems()
    for pattern in limit:
        chosen |= (meant := matching(hosts, pattern))
        if not meant:
            groups = {group for host in hosts for group in host.groups}
            near = suggest(pattern, [*(host.name for host in hosts), *sorted(groups)])
            where = f"command line: --{option} {pattern}"
            problems.append(_MESSAGES.mistake("neither-host-nor-group", where, near=near))
    problems.stop()
    return [host for host in hosts if host.name in chosen] if limit else list(hosts)


def matching(hosts: Iterable[HostInput], pattern: str) -> set[str]:
    """Return the names of a group's hosts, or, without a group of this name, the names that the
    pattern matches.
    """
    hosts = list(hosts)
    group = {host.name for host in hosts if pattern in host.groups}
    return group or {host.name for host in hosts if fnmatch(host.name, pattern)}


def _run(path: Path, *, for_pyinfra: bool) -> tuple[ast.Module, dict[str, Any] | None]:
    tree, code = python_files.source(path)
    if for_pyinfra and python_files.imports_pyinfra(tree):
        return tree, None
    return tree, python_files.run(path, code)


def _shown(file: Path) -> str:
    """Return a path in the form that a user would write."""
    here = Path.cwd().resolve()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def overrides_by_key(overrides: Iterable[str]) -> dict[str, Any]:
    """Parse the values of ``--data`` by pyinfra's rules, by key.

    Raises:
        UserError: a value can't be used; the message names every such value.
    """
    result = {}
    problems = Problems()
    for text in overrides:
        try:
            key, sign, value = text.partition("=")
            if not (sign and key):
                raise Unusable("this is not KEY=VALUE", "write --data KEY=VALUE")
            result[key] = _as_pyinfra(value)
        except Unusable as error:
            problems.append(mistake(f"command line: --data {text[:80]}", error.fault, error.remedy))
    problems.stop()
    return result


def _as_pyinfra(value: str) -> Any:
    """Parse a value of the command line like ``pyinfra_cli.util.parse_cli_arg``."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    with suppress(ValueError):
        return int(value)
    try:
        data = json.loads(value)
    except ValueError:
        return value
    except RecursionError:
        raise Unusable("the value is nested too deeply", "use fewer nested levels") from None
    bounded(data)
    return data


def hosts_of(path: Path) -> list[HostInput]:
    """Return the hosts of an inventory; an empty list if the inventory does not exist yet.

    Raises UserError for a broken inventory.
    """
    if not path.exists():
        return []
    groups = groups_of(str(path), python_files.run(path))
    return read_inventory(path) if any(group.hosts for group in groups.values()) else []


def with_host(path: Path, text: str, group: str, name: str, data: Mapping[str, Any]) -> str:
    """Return an inventory's text with one more host in a group.

    Args:
        text: the file's current text.

    Raises:
        UserError: no line at the end of the file can add the host; the message has the host's
            entry.
    """
    before = _written(path, text).get(group)
    host = repr((name, dict(data)))
    line = f"{group} = [{host}]"
    if isinstance(before, list):
        line = f"{group} = [*{group}, {host}]"
    elif isinstance(before, tuple):  # a group with data
        line = f"{group} = ([*{group}[0], {host}], *{group}[1:])"
    result = "\n".join([*([text.rstrip("\n"), ""] if text.strip() else []), line, ""])
    with suppress(UserError, KeyError, IndexError):
        groups = groups_of(str(path), _written(path, result))
        every = groups.get("all")
        if groups[group].hosts[-1] == (name, data) and (every is None or not every.hosts):
            return result
    raise _MESSAGES.refusal("host-by-hand", str(path), name=name, group=group, host=host)


def _written(path: Path, text: str) -> dict[str, Any]:
    return python_files.run(path, compile(ast.parse(text), str(path), "exec", dont_inherit=True))
