"""The setting ``fabric_addresses``: static addresses of the ConnectX-7 ports of some hosts."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
#: Least and largest number of hosts of each shape. Larger rings are not supported.
_HOSTS = {"pair": (2, 2), "ring": (3, 4), "switch": (2, 64)}


class FabricAddresses(BaseModel):
    """Addresses that ``sparkwright fabric addresses`` writes with netplan.

    Attributes:
        shape: ``pair`` (one cable), ``ring`` (port 0 of each host to the next host's port 1) or
            ``switch``.
        hosts: hosts in the order of a ring's cables. The first host's addresses end in .11.
        network: network of the first rail; each further rail has the next network of that size.
        mtu: MTU of every rail and the switch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    shape: Literal["pair", "ring", "switch"]
    hosts: tuple[str, ...]
    network: Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$")] = (
        "192.168.177.0/24"
    )
    mtu: int = Field(default=9000, ge=1500, le=9978)

    @model_validator(mode="after")
    def _fits(self) -> FabricAddresses:
        least, most = _HOSTS[self.shape]
        number = len(self.hosts)
        if not least <= number <= most:
            many = f"{least}" if least == most else f"{least} to {most}"
            raise ValueError(f"a {self.shape} has {many} hosts, but 'hosts' names {number}")
        if len(set(self.hosts)) < number:
            raise ValueError("'hosts' names a host twice")
        try:
            first = IPv4Network(self.network)
        except ValueError as error:
            raise ValueError(f"network: {error}") from None
        if not _is_private(first) or first.num_addresses < number + 12:
            raise ValueError("'network' must be a private IPv4 network with addresses from .11 on")
        if not _is_private(self.networks[-1]):
            raise ValueError("the networks of all further rails must be private, too")
        return self

    @property
    def networks(self) -> tuple[IPv4Network, ...]:
        """Networks of the fabric: one per rail of a pair or switch, two per cable of a ring."""
        first = IPv4Network(self.network)
        number = 2 * len(self.hosts) if self.shape == "ring" else 2
        starts = (int(first.network_address) + item * first.num_addresses for item in range(number))
        return tuple(IPv4Network((start, first.prefixlen)) for start in starts)


def _is_private(network: IPv4Network) -> bool:
    return any(network.subnet_of(item) for item in _PRIVATE)
