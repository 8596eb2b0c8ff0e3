"""The plan of an inventory, for commands that need no host.

Apart from the options: what plans takes 0.2 s to import, and most commands let pyinfra plan.
"""

from contextlib import suppress
from pathlib import Path

from sparkwright.config.inventory import limited, read_inventory
from sparkwright.findings.user_error import UserError
from sparkwright.site.fleet import Fleet, plan_fleet
from sparkwright.site.judged import site_problems
from sparkwright.site.resolution import with_locked_geometry


def load(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], *, anew: bool = False
) -> Fleet:
    """Plan the hosts of an inventory; with ``anew``, models that services name are asked for."""
    fleet = plan_fleet(limited(read_inventory(inventory, overrides), limit), anew=anew)
    return Fleet(with_locked_geometry(fleet.hosts), fleet.problems)


def load_judged(inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...]) -> Fleet:
    """Plan the hosts of an inventory, and judge all that a deploy judges before it begins."""
    inputs = read_inventory(inventory, overrides)
    everyone = {host.name: host.data for host in inputs}
    fleet = plan_fleet(limited(inputs, limit))
    problems = [*fleet.problems, *site_problems(fleet.hosts, everyone)]
    hosts = fleet.hosts
    with suppress(UserError):  # a lock that can't be read is among the problems
        hosts = with_locked_geometry(hosts)
    return Fleet(hosts, tuple(dict.fromkeys(problems)))
