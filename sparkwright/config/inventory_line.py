"""A further host in an inventory file of the user's: one line at its end, which is valid Python."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.config import python_files
from sparkwright.config.groups import groups_of
from sparkwright.config.inventory import HostInput, read_inventory
from sparkwright.findings.user_error import Messages, UserError

_MESSAGES = Messages(__file__)


def hosts_of(path: Path) -> list[HostInput]:
    """Hosts of an inventory; none where it has none yet. Raises UserError for a broken one."""
    if not path.exists():
        return []
    groups = groups_of(str(path), python_files.run(path))
    return read_inventory(path) if any(group.hosts for group in groups.values()) else []


def with_host(path: Path, text: str, group: str, name: str, data: Mapping[str, Any]) -> str:
    """An inventory's text with a host more in a group.

    Args:
        text: of the file, as it is to be continued.

    Raises:
        UserError: for a file in which such a line would not add the host, with the line.
    """
    before = _run(path, text).get(group)
    host = repr((name, dict(data)))
    line = f"{group} = [{host}]"
    if isinstance(before, list):
        line = f"{group} = [*{group}, {host}]"
    elif isinstance(before, tuple):  # hosts, and data of theirs
        line = f"{group} = ([*{group}[0], {host}], *{group}[1:])"
    result = "\n".join([*([text.rstrip("\n"), ""] if text.strip() else []), line, ""])
    try:
        groups = groups_of(str(path), _run(path, result))
        every = groups.get("all")
        if groups[group].hosts[-1] == (name, data) and (every is None or not every.hosts):
            return result
    except (UserError, KeyError, IndexError):
        pass
    raise _MESSAGES.refusal("host-by-hand", str(path), name=name, group=group, host=host)


def _run(path: Path, text: str) -> dict[str, Any]:
    return python_files.run(path, compile(ast.parse(text), str(path), "exec", dont_inherit=True))
