"""What a host says of its fabric, checked: names and addresses of it go into others' commands."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_interface

from sparkwright.host.fabric import FabricState

_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5,19}")


def wrong(state: FabricState) -> str | None:
    """What of an answer is no name of a device or no address; None for nothing."""
    names = [one.name for one in state.rails]
    names += [one.rdma.name for one in state.rails if one.rdma]
    names += [*state.interfaces, *filter(None, [state.management])]
    for name in names:
        if not _DEVICE.fullmatch(name):
            return f"{name[:40]!r} is no name of a device"
    written = [at for one in state.rails for at in one.addresses]
    written += [at for every in state.interfaces.values() for at in every]
    gids = [gid.address for one in state.rails if one.rdma for gid in one.rdma.gids]
    for text, read in [
        *((one, ip_interface) for one in written),
        *((one, ip_address) for one in gids),
    ]:
        try:
            read(text)
        except ValueError:
            return f"{text[:40]!r} is no address"
    for rail in state.rails:
        for mac in (rail.mac, *(one.mac for one in rail.neighbours)):
            if mac and not _MAC.fullmatch(mac):
                return f"{mac[:40]!r} is no MAC address"
    return None
