"""The system's own ssh to a host of the inventory, with the data by which pyinfra connects."""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkwright.cli.lib.hosts import given
from sparkwright.cli.lib.messages import MESSAGES
from sparkwright.config.inventory import HostInput, ssh_address

#: pyinfra's data, and what ssh_config calls it.
_OPTIONS = {
    "ssh_port": "Port",
    "ssh_user": "User",
    "ssh_key": "IdentityFile",
    "ssh_known_hosts_file": "UserKnownHostsFile",
}


def ssh_command(host: HostInput, command: Sequence[str], *, tty: bool) -> list[str]:
    """The command line that runs a command on a host; its words are quoted for a POSIX shell.

    Args:
        tty: whether it gets a terminal there, so that somebody may answer: ssh, and sudo.

    Raises:
        UserError: where there is no ssh here, or the host is not reached by it.
    """
    program = shutil.which("ssh")
    if program is None:
        raise MESSAGES.refusal("no-ssh", "command line")
    address = ssh_address(host.name.removeprefix("@ssh/"), host.data)
    if address.startswith("@"):
        raise MESSAGES.refusal("not-by-ssh", "command line", host.name, host=host.name)
    arguments = [program, "-t" if tty else "-T", *_options({**host.data, **given()})]
    arguments += [] if tty else ["-o", "BatchMode=yes"]
    # Nothing after -- is an option, whatever the inventory calls the host.
    return [*arguments, "--", address, shlex.join(command)]


def _options(data: Mapping[str, Any]) -> Iterator[str]:
    if file := data.get("ssh_config_file"):
        yield from ("-F", str(Path(str(file)).expanduser()))
    for key, name in _OPTIONS.items():
        if (value := data.get(key)) not in (None, ""):
            text = str(Path(str(value)).expanduser()) if "File" in name else str(value)
            # A path with a blank is one path.
            yield from ("-o", f'{name}="{text}"' if "File" in name else f"{name}={text}")
    if data.get("ssh_key"):
        yield from ("-o", "IdentitiesOnly=yes")
    # pyinfra's own default: a host that is new is taken down, another key is refused.
    checking = data.get("ssh_strict_host_key_checking") or "accept-new"
    yield from ("-o", f"StrictHostKeyChecking={checking}")
    if data.get("ssh_forward_agent"):
        yield "-A"
