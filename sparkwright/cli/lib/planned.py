"""The plan of an inventory, for commands that need no host.

This module is separate because its import takes 0.2 s, and in most commands pyinfra makes the plan.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sparkwright.cli.lib import output, selection
from sparkwright.config import command_line, inventory
from sparkwright.findings import finding, user_error
from sparkwright.site.fleet import Fleet, plan_fleet
from sparkwright.site.resolution import site_problems, with_locked_geometry


def load(hosts: selection.Selection, *, anew: bool = False) -> Fleet:
    """Plan an inventory's hosts; ``anew`` queries the hub for the models that services name."""
    fleet = plan_fleet(hosts.read(), anew=anew)
    problems = (*fleet.problems, *_unknown_services(hosts, fleet))
    return Fleet(with_locked_geometry(fleet.hosts), problems)


def load_judged(hosts: selection.Selection) -> Fleet:
    """Plan an inventory's hosts, with every check of a deploy before its first connection."""
    inputs = hosts.only(()).read()
    fleet = plan_fleet(inventory.limited(inputs, hosts.limit))
    files = [file.stem for file in Path("group_data").glob("*.py")]
    problems = [
        *fleet.problems, *_unknown_services(hosts, fleet),
        *command_line.group_problems(inputs, files, hosts.inventory),
        *site_problems(fleet.hosts, {host.name: host.data for host in inputs}),
    ]  # fmt: skip
    planned = fleet.hosts
    with suppress(user_error.UserError):  # a lock that can't be read is among the problems
        planned = with_locked_geometry(planned)
    return Fleet(planned, tuple(dict.fromkeys(problems)))


def _unknown_services(hosts: selection.Selection, fleet: Fleet) -> Iterator[finding.Finding]:
    """Report services of ``--service`` that no host plans."""
    planned = sorted({each.name for host in fleet.hosts.values() for each in host.plan.services})
    for name in hosts.services:
        if name not in planned:
            where, near = f"command line: --service {name}", user_error.suggest(name, planned)
            yield output.MESSAGES.mistake("no-such-service", where, near=near)
