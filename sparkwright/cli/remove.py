"""``sparkwright remove``: leave the hosts as they were found."""

from functools import partial
from typing import Any

import click

from sparkwright.cli.lib import options
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts, finish
from sparkwright.cli.lib.output import echo
from sparkwright.host.lib.records import encode
from sparkwright.text.visible import visible


@click.command("remove")
@hosts_argument
@options.service_option
@click.option("--weights", is_flag=True, help="Remove the models, too.")
@click.option("--bootstrap", is_flag=True, help="Undo what bootstrap did, too.")
@options.yes_option
@options.json_option
def command(hosts: Hosts, services: tuple[str, ...], yes: bool, as_json: bool, **more: Any) -> None:
    """Stop and remove services, units, releases and images; weights on request.

    Containers that were taken over from an installation by hand are started again. Exit code 0
    only when every host answered.
    """
    if services and more["bootstrap"]:
        raise click.UsageError("--bootstrap goes with everything, not with --service")
    subject = f"service {', '.join(services)}" if services else "everything of sparkwright's"
    options.confirm(f"Remove {subject} from {hosts}?", yes=yes, dry=False)
    from sparkwright.run import changes

    change = partial(changes.removed, services=services or None, **more)
    result = hosts.change(change, planless=True)
    if as_json:
        options.print_json(encode(result.answers))
    for name, answer in {} if as_json else result.answers.items():
        echo(f"{name}: removed {visible(', '.join(answer.done) or 'nothing')}")
        for line in answer.left:
            echo(f"{name}: left {visible(line)}")
    if result.failures:
        lost = ", ".join(result.failures)
        remedy = "run this again when they can be reached"
        echo(f"{lost}: nothing was removed; {remedy}", err=True)
    finish(result)
