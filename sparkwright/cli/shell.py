"""``sparkwright shell``: a shell in a service's container, over the system's own ssh."""

import os
import sys

import click

from sparkwright.cli.lib import output, selection, ssh
from sparkwright.cli.lib.hosts import ssh_options
from sparkwright.config import inventory, targets

#: Start bash if the image has it, otherwise sh.
_SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash; exec sh")


class _WithCommand(click.Command):
    """A command whose arguments after ``--`` are the command to run in the container."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments after ``--``."""
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command("shell", cls=_WithCommand, options_metavar="[OPTIONS]")
@ssh_options
@selection.names_argument(services=True)
@click.pass_context
def command(ctx: click.Context, hosts: selection.Selection) -> None:
    """Open a shell in a service's container, or run the command after `--` there.

    The command connects with `ssh -t` and the inventory's user, port, key and known hosts; sudo may
    prompt on this terminal. Example: `sparkwright shell spark-1 -- nvidia-smi`. The exit code is
    the command's code, or 255 if ssh fails.
    """
    host, name = _service(hosts)
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    inside = ["docker", "exec", "-it" if tty else "-i", f"sparkwright-{name}", *(ctx.obj or _SHELL)]
    arguments = ssh.ssh_command(host, ["sudo", *([] if tty else ["-n"]), *inside], tty=tty)
    sys.stdout.flush()
    os.execv(arguments[0], arguments)


def _service(hosts: selection.Selection) -> tuple[inventory.HostInput, str]:
    """Return the selected service and its host. Raises UserError unless the selection is unique."""
    every = [(host, name) for host in hosts.read() for name in targets.services_of(host)]
    chosen = [(host, name) for host, name in every if hosts.means(host.name, name)]
    if len(chosen) == 1:
        return chosen[0]
    names = [f"{host.name}/{name}" for host, name in chosen or every]
    shown = ", ".join(names) or "no service"
    first = names[0] if names else "HOST/SERVICE"
    raise output.MESSAGES.refusal("several-services", "command line", services=shown, first=first)
