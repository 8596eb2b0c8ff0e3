"""A host's part of the fabric: the answer is checked, since commands on other hosts contain its
names and addresses.
"""

import re
from ipaddress import ip_address, ip_interface

from pyinfra.api.host import Host

from sparkwright.facts.answers import invalid
from sparkwright.facts.asking import Sudo, ask
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState

_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5,19}")


def state_of(host: Host, image: str | None = None) -> FabricState:
    """Return the fabric's state and an image's id, in one remote execution. Raises HostError."""
    fabric_state = ask(
        host, fabric, FabricRequest(image=image), FabricState, sudo=Sudo.IF_POSSIBLE, timeout=60,
        secrets=False,
    )  # fmt: skip
    if why := malformed(fabric_state):
        invalid("sparkwright-fabric", why)
    return fabric_state


def malformed(state: FabricState) -> str | None:
    """Fault of a device name or an address in an answer; None if all names and addresses are
    valid.
    """
    names = [rail.name for rail in state.rails]
    names += [rail.rdma.name for rail in state.rails if rail.rdma]
    names += [*state.interfaces, *filter(None, [state.management])]
    for name in names:
        if not _DEVICE.fullmatch(name):
            return f"{name[:40]!r} is not a device name"
    written = [at for rail in state.rails for at in rail.addresses]
    written += [at for every in state.interfaces.values() for at in every]
    gids = [gid.address for rail in state.rails if rail.rdma for gid in rail.rdma.gids]
    for text, read in [
        *((item, ip_interface) for item in written),
        *((gid, ip_address) for gid in gids),
    ]:
        try:
            read(text)
        except ValueError:
            return f"{text[:40]!r} is not an address"
    for rail in state.rails:
        for mac in (rail.mac, *(neighbour.mac for neighbour in rail.neighbours)):
            if mac and not _MAC.fullmatch(mac):
                return f"{mac[:40]!r} is not a MAC address"
    return None
