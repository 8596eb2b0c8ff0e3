"""Ports of a host that services can't have, because something else of the host has them."""

from collections.abc import Iterator

from sparkwright.config.inventory import HostInput
from sparkwright.config.settings import PROXY_STEP, HostSettings
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake

#: Where sshd listens, whatever port the controller reaches it by.
_SSH = 22


def taken_ports(host: HostInput, settings: HostSettings) -> Iterator[Finding]:
    """Services and load balancers on a port of SSH's, or of the hosts that serve each other."""
    ssh = host.data.get("ssh_port", _SSH)
    taken = {_SSH: "of SSH", **({ssh: "of SSH (ssh_port)"} if isinstance(ssh, int) else {})}
    if settings.peer_sharing:
        taken[settings.peer_port] = "on which hosts serve each other (peer_port)"
    wanted = [
        ("load_balancer", name, item.port, "port") for name, item in settings.load_balancer.items()
    ]
    for name, service in settings.services.items():
        wanted.append(("services", name, service.port, "port"))
        if service.proxy:
            inner, health = service.port + PROXY_STEP, service.port + 2 * PROXY_STEP
            wanted.append(("services", name, inner, "the engine's own port behind the proxy"))
            wanted.append(("services", name, health, "the port for its health"))
    for key, name, port, role in wanted:
        if port in taken:
            what = f"{role}, {port}, is the one {taken[port]}"
            other = f"another port, such as {8000 if key == 'services' else 9000}"
            yield mistake(f"{host.origin(key)}: {key}.{name}.port", what, other, host.name)
