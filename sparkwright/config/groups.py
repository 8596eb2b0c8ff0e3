"""The groups of an inventory file: permitted forms of hosts and their data."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, mistake
from sparkwright.host.lib.records import dataclass
from sparkwright.text.values import short

_MESSAGES = Messages(__file__)
#: A host's name becomes a directory of `sparkwright render`, a file of the site's CA and a server
#: of HAProxy.
_NAME = re.compile(r"@[a-z]+|(@[a-z]+/)?[A-Za-z0-9_:][A-Za-z0-9._:%-]{0,252}")
_HOST = 'write "name" or ("name", {"key": value})'
_GROUP = "write a list of hosts, or (hosts, {data}); the name of any other variable begins with _"


@dataclass(frozen=True)
class Group:
    """Hosts with their own data, the group's data, and the file of each key of the group's data."""

    hosts: list[tuple[str, dict[str, Any]]]
    data: dict[str, Any]
    places: dict[str, str]


def groups_of(file: str, variables: Mapping[str, Any]) -> dict[str, Group]:
    """Return the groups among an inventory's top-level variables.

    Raises:
        UserError: pyinfra can't read the form of a host or group; the message names every such host
            and group.
    """
    groups: dict[str, Group] = {}
    problems = Problems()
    for name, value in variables.items():
        if name.startswith("_") or not isinstance(value, list | tuple):
            continue
        where, data, hosts = f"{file}: {name}", {}, value
        if isinstance(value, tuple):
            if not _is_pair(value, list | tuple):
                problems.append(mistake(where, "this tuple is not a pair (hosts, data)", _GROUP))
                continue
            hosts, data = value
        like_hosts = [isinstance(host, str | tuple) or _is_pair(host, str) for host in hosts]
        if hosts and not any(like_hosts):
            continue  # pyinfra ignores other lists, too
        if problem := list(_problems(where, hosts, data)):
            problems += problem
        else:
            pairs = [(host, {}) if isinstance(host, str) else host for host in hosts]
            groups[name] = Group([(host, dict(own)) for host, own in pairs], dict(data), {})
    problems.stop()
    return groups


def name_problems(names: Any, where: str) -> Iterator[Finding]:
    """Report invalid names of hosts."""
    for name in names:
        port = re.fullmatch(r"([^:]+):(\d{1,5})", name) if isinstance(name, str) else None
        if port:
            yield _MESSAGES.mistake("host-and-port", where, name=port[1], port=int(port[2]))
        elif not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield _MESSAGES.mistake("no-host-name", where, name=short(name))


def _problems(where: str, hosts: Any, data: Mapping[Any, Any]) -> Iterator[Finding]:
    yield from _data_problems(where, data)
    for host in hosts:
        if isinstance(host, str):
            yield from name_problems([host], where)
        elif isinstance(host, tuple) and _is_pair(host, str):
            yield from name_problems(host[:1], where)
            yield from _data_problems(where, host[1])
        else:
            yield mistake(where, f"{short(host)} is not a valid host", _HOST)


def _data_problems(where: str, data: Mapping[Any, Any]) -> Iterator[Finding]:
    for key in data:
        if not isinstance(key, str):
            yield mistake(
                where, f"{short(key)} is not a valid name of a setting", "write it in quotes"
            )


def _is_pair(value: Any, first: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and isinstance(value[0], first)
        and isinstance(value[1], dict)
    )
