"""``sparkwright shell``: into a service's container, over the system's own ssh."""

import os
import sys

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.connecting import ssh_options
from sparkwright.cli.lib.messages import MESSAGES
from sparkwright.cli.lib.options import (
    Selection,
    data_option,
    one_service_option,
    option,
    optional_inventory,
)
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.ssh import ssh_command
from sparkwright.config.inventory import HostInput
from sparkwright.findings.user_error import suggest
from sparkwright.text.visible import visible

#: What an image has of the two.
_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")


class _WithCommand(click.Command):
    """A command whose words after ``--`` are another's, also where INVENTORY is left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words after ``--``."""
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("shell", cls=_WithCommand, options_metavar="[OPTIONS]")
@ssh_options
@optional_inventory
@data_option
@option("shell --host", shell_complete=completion.hosts)
@one_service_option
@click.pass_context
def command(ctx: click.Context, hosts: Selection, host: str, service: str | None) -> None:
    """Open a shell in a service's container, or run the command that stands after `--` there.

    By `ssh -t`, with the inventory's own user, port, key and known hosts; sudo may ask on this
    terminal. `sparkwright shell --host spark-1 -- nvidia-smi`. The exit code is the command's, 255
    where ssh fails.
    """
    chosen = hosts.only((host,)).read()
    if [each.name for each in chosen] != [host]:
        raise MESSAGES.refusal("several-shell-hosts", "--host", host=host)
    name = _service(chosen[0], service)
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    inside = ["docker", "exec", "-it" if tty else "-i", f"sparkwright-{name}", *(ctx.obj or _SHELL)]
    arguments = ssh_command(chosen[0], ["sudo", *([] if tty else ["-n"]), *inside], tty=tty)
    sys.stdout.flush()
    os.execv(arguments[0], arguments)


def _service(host: HostInput, wanted: str | None) -> str:
    """The name of one service of a host, by the inventory."""
    named = host.data.get("services")
    services = [str(name) for name in named] if isinstance(named, dict) else []
    if wanted in services or (wanted is None and len(services) == 1):
        return wanted or services[0]
    problem = f"{host.name} has {', '.join(services) or 'no service'}: name one with --service"
    if wanted is not None:
        problem = f"{host.name} has no service {visible(wanted, 80)!r}: {suggest(wanted, services)}"
    echo(click.style(problem, fg="red"), err=True)
    sys.exit(1)
