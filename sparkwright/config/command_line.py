"""pyinfra's command line, judged before anything is read or run: no host is a mistake too."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch

from sparkwright.config.groups import name_problems
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, suggest

_MESSAGES = Messages(__file__)


def choice_problems(
    inventory: str,
    hosts: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    chosen: Mapping[str, Sequence[str]],
) -> Iterator[Finding]:
    """An inventory without hosts, and a ``--limit`` that matches none.

    Args:
        groups: hosts by group.
        chosen: ``limit`` and ``exclude`` -> the patterns that were given.
    """
    if not hosts:
        yield _MESSAGES.mistake("gives-no-hosts", "command line: INVENTORY", inventory=inventory)
        return
    yield from name_problems(hosts, "command line: INVENTORY")
    names = [name for name, members in groups.items() if members]
    for option, patterns in chosen.items():
        for pattern in patterns:
            if pattern not in names and not any(fnmatch(host, pattern) for host in hosts):
                where, near = (
                    f"command line: --{option} {pattern}",
                    suggest(pattern, [*hosts, *names]),
                )
                yield _MESSAGES.mistake("neither-host-nor-group", where, near=near)


def stray_group_data(
    groups: Mapping[str, Sequence[str]], with_data: Sequence[str]
) -> Iterator[Finding]:
    """group_data of a group that has no hosts, when a group without data is spelt almost so."""
    bare = [name for name, hosts in groups.items() if hosts and name not in with_data]
    for name in with_data:
        if not groups.get(name):
            remedy = suggest(name, bare)
            if remedy.startswith("did you mean"):
                facts = {"group": name, "near": remedy}
                yield _MESSAGES.mistake("no-such-group", f"group_data/{name}.py", **facts)
