"""Ports of a host that services can't have, because something else of the host has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.config.settings import PROXY_STEP, HostSettings

#: Where sshd listens, whatever port the controller reaches it by.
_SSH = 22


def taken_ports(
    settings: HostSettings, data: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, str]]:
    """Services and load balancers on a port of SSH's, or of the hosts that serve each other.

    Args:
        data: the host's data, in which pyinfra's own settings stand too.

    Yields:
        top-level key, key below it, what is wrong, what to write.
    """
    ssh = data.get("ssh_port", _SSH)
    taken = {_SSH: "of SSH", **({ssh: "of SSH (ssh_port)"} if isinstance(ssh, int) else {})}
    if settings.peer_sharing:
        taken[settings.peer_port] = "on which hosts serve each other (peer_port)"
    for name, service in settings.services.items():
        ports = {service.port: "port"}
        if service.proxy:
            ports[service.port + PROXY_STEP] = "vLLM's own port behind the proxy"
            ports[service.port + 2 * PROXY_STEP] = "the port for its health"
        for port, what in ports.items():
            if port in taken:
                said = f"{what}, {port}, is the one {taken[port]}"
                yield "services", f"{name}.port", said, "another port, such as 8000"
    for name, balancer in settings.load_balancer.items():
        if balancer.port in taken:
            said = f"port, {balancer.port}, is the one {taken[balancer.port]}"
            yield "load_balancer", f"{name}.port", said, "another port, such as 9000"
