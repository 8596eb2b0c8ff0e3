"""Command line of the user's own ssh, with a host's connection data from the inventory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.config.inventory import ssh_address

#: pyinfra's key -> ssh's option.
_OPTIONS = {
    "ssh_port": "Port",
    "ssh_user": "User",
    "ssh_known_hosts_file": "UserKnownHostsFile",
    "ssh_key": "IdentityFile",
}
#: ssh never prompts, and rejects unknown hosts.
_SAFE = {"BatchMode": "yes", "ConnectTimeout": "5", "StrictHostKeyChecking": "yes",
         "ForwardAgent": "no", "ForwardX11": "no", "ClearAllForwardings": "yes"}  # fmt: skip


def ssh(name: str, data: Mapping[str, Any], *arguments: str, **options: str) -> list[str]:
    """Return the ssh command up to the host's address.

    By default, the command does not prompt, and does not accept the key of an unknown host.

    Args:
        name, data: name and data of the host in the inventory.
        arguments: further arguments of ssh, such as ``-T``.
        options: options of ssh that override the defaults and the inventory's options.
    """
    result = dict(_SAFE)
    for key, option in _OPTIONS.items():
        if data.get(key):
            value = str(data[key])
            result[option] = _path(value) if option.endswith("File") else value
    if data.get("ssh_key"):
        result["IdentitiesOnly"] = "yes"
    if data.get("ssh_strict_host_key_checking"):
        result["StrictHostKeyChecking"] = str(data["ssh_strict_host_key_checking"])
    config = data.get("ssh_config_file")
    command = ["ssh", *(("-F", str(Path(str(config)).expanduser())) if config else ())]
    for key, value in {**result, **options}.items():
        command += ["-o", f"{key}={' '.join(value.split())}"]  # a line break begins an option
    # ssh reads no option after --, even if a host's name looks like an option.
    return [*command, *arguments, "--", ssh_address(name, data)]


def _path(value: str) -> str:
    """Quote a text as one word for ssh."""
    path = str(Path(value).expanduser()).replace("%", "%%").replace("\\", "\\\\")
    return '"' + path.replace('"', '\\"') + '"'
