"""The plan of an inventory, for commands that need no host.

Apart from the options: what plans takes 0.2 s to import, and most commands let pyinfra plan.
"""

from contextlib import suppress
from pathlib import Path

from sparkwright.cli.lib.options import Selection
from sparkwright.config.command_line import group_problems
from sparkwright.config.inventory import limited
from sparkwright.findings.user_error import UserError
from sparkwright.site.fleet import Fleet, plan_fleet
from sparkwright.site.judged import site_problems
from sparkwright.site.resolution import with_locked_geometry


def load(hosts: Selection, *, anew: bool = False) -> Fleet:
    """Plan hosts of an inventory; with ``anew``, models that services name are asked for."""
    fleet = plan_fleet(hosts.read(), anew=anew)
    return Fleet(with_locked_geometry(fleet.hosts), fleet.problems)


def load_judged(hosts: Selection) -> Fleet:
    """Plan hosts of an inventory, and judge all that a deploy judges before it begins."""
    inputs = hosts.only(()).read()
    fleet = plan_fleet(limited(inputs, hosts.limit))
    files = [file.stem for file in Path("group_data").glob("*.py")]
    problems = [
        *fleet.problems, *group_problems(inputs, files, hosts.inventory),
        *site_problems(fleet.hosts, {host.name: host.data for host in inputs}),
    ]  # fmt: skip
    planned = fleet.hosts
    with suppress(UserError):  # a lock that can't be read is among the problems
        planned = with_locked_geometry(planned)
    return Fleet(planned, tuple(dict.fromkeys(problems)))
