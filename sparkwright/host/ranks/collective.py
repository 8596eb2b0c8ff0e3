"""Variables with which NCCL, GLOO and UCX find the fabric, from a host's part of it.

The controller and the host both compute the variables: the controller for the plan, the host at
each start, since the cable may have moved to the other cage. The variables contain no GID index,
which differs between hosts and changes with an address; NCCL finds the GID by address family and
RoCE version.
"""

from sparkwright.host.fabric import FabricState, Rail

#: Cabling of hosts: two by one cable, three or four each to the next, or all to a switch.
SHAPES = ("pair", "ring", "switch")
#: Variables that name the interface for one library each; an image may set any of them.
_INTERFACE = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES",
              "OMPI_MCA_btl_tcp_if_include", "MN_IF_NAME")  # fmt: skip
_ROCE = {
    "NCCL_NET": "IB",
    "NCCL_IB_DISABLE": "0",
    "NCCL_IB_ADDR_FAMILY": "AF_INET",
    "NCCL_IB_ROCE_VERSION_NUM": "2",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_NVLS_ENABLE": "0",
}
_RING = {
    "NCCL_NET_PLUGIN": "none",
    "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
    "NCCL_IB_MERGE_NICS": "0",
}


class NoFabric(ValueError):
    """The host has no usable port; the text names the missing part."""


def used_rails(state: FabricState, shape: str) -> tuple[Rail, ...]:
    """Return the rails that carry traffic: both twins of one cage, or of both cages in a ring.

    If both cages of a pair have a cable, the cage with addresses is used.
    """
    up = [rail for rail in state.rails if rail.carrier and rail.rdma]
    if shape == "ring":
        return tuple(up)
    cages = sorted(
        {item.cage for item in up},
        key=lambda cage: -sum(item.ipv4 is not None for item in up if item.cage == cage),
    )
    return tuple(item for item in up if cages and item.cage == cages[0])


def entrance(state: FabricState, shape: str) -> tuple[str, str]:
    """Return the interface and address at which the other ranks reach a host.

    Args:
        shape: pair, ring or switch.

    Raises:
        NoFabric: no port is up with RDMA and an address.
    """
    if not (rails := used_rails(state, shape)):
        raise NoFabric("no port of a ConnectX is up with an RDMA device")
    if shape == "ring":
        interface, address = state.management, _ipv4(state.interfaces.get(state.management, ()))
        if address is None:
            raise NoFabric("the management interface, which a ring needs, has no IPv4 address")
    else:
        interface, address = rails[0].name, _ipv4(rails[0].addresses)
        if address is None:
            raise NoFabric(f"{interface} has no IPv4 address")
    return interface, address


def collective_environment(state: FabricState, shape: str, *, ranks: int = 2) -> dict[str, str]:
    """Return the variables of one host's rank.

    Args:
        shape: pair, ring or switch.
        ranks: number of hosts in the cluster.

    Raises:
        NoFabric: no port is up with RDMA and an address.
    """
    interface, _ = entrance(state, shape)
    result = {**dict.fromkeys(_INTERFACE, interface), **_ROCE}
    result["NCCL_IB_HCA"] = ",".join(
        rail.rdma.name for rail in used_rails(state, shape) if rail.rdma
    )
    if shape != "ring":
        return {**result, "NCCL_CROSS_NIC": "1"}
    return {**result, **_RING, **({"NCCL_ALGO": "Ring"} if ranks > 3 else {})}


def plain_environment(interface: str) -> dict[str, str]:
    """Return the variables for a network without RDMA, which works but is slow."""
    sockets = {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1"}
    return {**dict.fromkeys(_INTERFACE, interface), **sockets}


def _ipv4(addresses: tuple[str, ...]) -> str | None:
    return next((address.partition("/")[0] for address in addresses if "." in address), None)
