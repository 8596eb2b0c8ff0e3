"""Clusters: hosts that serve one model together."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

#: Prefix of the default addresses of a ConnectX-7; the rank's number follows.
_RAIL = "192.168.177."
#: A network device's name: it becomes a variable of the container.
Interface = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$")]


def _ipv4(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("this is not an IPv4 address, such as 192.168.177.11") from None


class ClusterSettings(BaseModel):
    """Hosts that serve one model together. Set ``clusters`` in group_data/all.py.

    Attributes:
        hosts: hosts in rank order. The first host is the head, which answers clients.
        fabric: ``cx7`` (ConnectX-7 of Sparks) or ``network`` (any network that the hosts share).
        interface: network device between the hosts; ``enp1s0f1np1`` with ``cx7``.
        addresses: host -> IPv4 address on ``interface``; from 192.168.177.11 with ``cx7``.
        port: TCP port between the engines; the ranks use the next port.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    hosts: tuple[str, ...] = Field(min_length=2, max_length=64)
    fabric: Literal["cx7", "network"] = "cx7"
    interface: Interface | None = None
    addresses: dict[str, Annotated[str, AfterValidator(_ipv4)]] = {}
    port: int = Field(default=29501, ge=1024, le=65534)

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("fabric", "cx7") == "cx7":
            hosts = data.get("hosts")
            numbered = enumerate(hosts if isinstance(hosts, list | tuple) else ())
            usual = {str(name): f"{_RAIL}{11 + n}" for n, name in numbered}
            data = {"interface": "enp1s0f1np1", "addresses": usual, **data}
        return data

    @model_validator(mode="after")
    def _is_whole(self) -> ClusterSettings:
        if len(set(self.hosts)) < len(self.hosts):
            raise ValueError("'hosts' names a host twice")
        if self.interface is None:
            raise ValueError("fabric 'network' needs 'interface', the device that the hosts share")
        if set(self.addresses) != set(self.hosts):
            raise ValueError(
                "'addresses' must have one address for each host in 'hosts', and no others"
            )
        if len(set(self.addresses.values())) < len(self.hosts):
            raise ValueError("two hosts have the same address in 'addresses'")
        return self
