"""The system's own ssh to a host of the inventory, with pyinfra's connection data."""

import shlex
import shutil
from collections.abc import Sequence

from sparkwright.cli.lib import hosts, output
from sparkwright.config.inventory import HostInput, ssh_address
from sparkwright.config.ssh import ssh


def ssh_command(host: HostInput, command: Sequence[str], *, tty: bool) -> list[str]:
    """Return the ssh command line that runs a command on a host, quoted for a POSIX shell.

    Args:
        tty: whether the command gets a terminal, so that a user can answer prompts of ssh and sudo.

    Raises:
        UserError: this machine has no ssh, or pyinfra does not reach the host by SSH.
    """
    program = shutil.which("ssh")
    if program is None:
        raise output.MESSAGES.refusal("no-ssh", "command line")
    name = host.name.removeprefix("@ssh/")
    if ssh_address(name, host.data).startswith("@"):
        raise output.MESSAGES.refusal("not-by-ssh", "command line", host.name, host=host.name)
    # Like pyinfra by default, ssh stores a new host's key and refuses a changed key.
    checking = host.data.get("ssh_strict_host_key_checking") or "accept-new"
    arguments = ssh(
        name, {**host.data, **hosts.given()}, "-t" if tty else "-T",
        BatchMode="no" if tty else "yes", StrictHostKeyChecking=str(checking),
        ForwardAgent="yes" if host.data.get("ssh_forward_agent") else "no",
    )  # fmt: skip
    return [program, *arguments[1:], shlex.join(command)]
