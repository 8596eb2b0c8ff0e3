"""Checks of pyinfra's command line, which must select a host; a host has one kind of GPU."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sparkwright.catalog.gpus import FAMILIES
from sparkwright.config.groups import name_problems
from sparkwright.config.inventory import HostInput, limited
from sparkwright.documents import bounds, text_files
from sparkwright.findings import finding, user_error

_MESSAGES = user_error.Messages(__file__)
_FAMILIES = {family.group for family in FAMILIES.values()}
#: Least similarity at which a group's name counts as a misspelled GPU family: `here` and `home` are
#: not typos of `hopper`.
_ALIKE = 0.7


def choice_problems(
    inventory: str, hosts: Sequence[HostInput], chosen: Mapping[str, Sequence[str]]
) -> list[finding.Finding]:
    """Report an inventory without hosts, and a ``--limit`` or ``--exclude`` that matches no host.

    Args:
        chosen: ``limit`` and ``exclude`` -> the given patterns.
    """
    problems, where = user_error.Problems(), "command line: INVENTORY"
    if not hosts:
        return [_MESSAGES.mistake("gives-no-hosts", where, inventory=inventory)]
    problems += name_problems([host.name for host in hosts], where)
    for option, patterns in chosen.items():
        with problems.collected():
            limited(hosts, patterns, option)
    return problems


def group_problems(
    hosts: Sequence[HostInput], with_data: Collection[str], inventory: Path
) -> Iterator[finding.Finding]:
    """Report hosts in the groups of two kinds of GPU, and group_data of a missing group whose name
    resembles a group of the inventory.
    """
    for host in hosts:
        if len(own := sorted(_FAMILIES & host.groups)) > 1:
            where = f"{inventory}: {own[-1]}"
            yield _MESSAGES.mistake("two-families", where, host.name, groups=" and ".join(own))
    groups = {group for host in hosts for group in host.groups}
    strays = sorted(set(with_data) - groups)
    texts = [*_texts(inventory.parent)] if strays else []
    for name in strays:
        # A family may have no hosts while a group with a similar name and file has hosts.
        separate = name in _FAMILIES or any(name in text for text in texts)
        among = sorted(groups.difference(with_data) if separate else groups)
        near = user_error.suggest(name, among, _ALIKE if name in _FAMILIES else 0.6)
        if near.startswith("did you mean"):
            facts = {"group": name, "near": near}
            yield _MESSAGES.mistake("no-such-group", f"group_data/{name}.py", **facts)


def _texts(folder: Path) -> Iterator[str]:
    """Yield the texts of a folder's inventories; unreadable files are skipped."""
    for file in folder.glob("*.py"):
        with suppress(bounds.Unusable):
            yield text_files.read(file)
