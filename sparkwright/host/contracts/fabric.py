"""The fabric between hosts: ConnectX-7 ports, what is at the other end of each, and RDMA."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The file that ``sparkwright fabric addresses`` writes, and where lies what it replaced.
NETPLAN = "/etc/netplan/60-sparkwright-fabric.yaml"
KEPT = "/var/lib/sparkwright/fabric"


@dataclass(frozen=True)
class FabricRequest:
    """What is looked at.

    Attributes:
        root: where /sys and /proc lie; another one for a capture.
        ask: whether neighbours are asked for on each port; without, only those are told that the
            kernel and LLDP know already.
        image: name of an image in Docker whose id is told.
    """

    root: str = "/"
    ask: bool = True
    image: str | None = None


@dataclass(frozen=True)
class Gid:
    """An RDMA device's address. ``type`` is the kernel's: ``RoCE v2`` or ``IB/RoCE v1``."""

    index: int
    address: str
    type: str


@dataclass(frozen=True)
class Rdma:
    """An RDMA device of one port.

    Attributes:
        state: of its port, ``ACTIVE`` or ``DOWN``.
        rate: in Gb/s; None where the kernel does not say.
    """

    name: str
    state: str
    rate: float | None = None
    gids: tuple[Gid, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """Who is at the other end. ``how`` is ``lldp``, ``asked`` or ``kernel`` (its neighbour table).

    Attributes:
        name: host and port, as LLDP tells them.
    """

    mac: str
    how: str
    address: str = ""
    name: str = ""


@dataclass(frozen=True)
class Rail:
    """A network device of a ConnectX-7 port.

    Attributes:
        cage: the port that the cable is in, 0 or 1: each has two twins.
        twin: 0 for the first PCIe link's device, 1 for the second's.
        carrier: whether a cable with somebody at its other end is in.
        speed: in Mb/s; None without a link.
        addresses: with their prefix lengths, ``192.168.177.11/24``.
    """

    name: str
    cage: int
    twin: int
    mac: str
    carrier: bool
    mtu: int
    speed: int | None = None
    addresses: tuple[str, ...] = ()
    rdma: Rdma | None = None
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def ipv4(self) -> str | None:
        """Its first IPv4 address, with the prefix length."""
        return next((one for one in self.addresses if "." in one), None)


@dataclass(frozen=True)
class FabricState:
    """A host's part of the fabric.

    Attributes:
        rails: by cage and twin; none where there is no ConnectX.
        interfaces: addresses by interface, of all interfaces.
        management: the interface of the default route; empty where there is none.
        cma_total: bytes that the kernel keeps for contiguous memory; None where it does not say.
        driver: version of NVIDIA's kernel module.
        nccl: of each process that has several, the NCCL libraries that it has loaded.
        tools: those of the fabric's tools that are installed: ib_write_bw, netplan, lldpcli.
        netplan: text of the file of ours; None where there is none.
        configured: device -> another file of netplan's that names it.
        image: id of the image of the request; None where it is not there.
    """

    rails: tuple[Rail, ...] = ()
    interfaces: dict[str, tuple[str, ...]] = field(default_factory=dict)
    management: str = ""
    kernel: str = ""
    cma_total: int | None = None
    driver: str | None = None
    nccl: tuple[tuple[str, ...], ...] = ()
    tools: tuple[str, ...] = ()
    netplan: str | None = None
    configured: dict[str, str] = field(default_factory=dict)
    image: str | None = None


@dataclass(frozen=True)
class Ping:
    """An IPv4 address that must answer over a device, to packets of ``size`` bytes of payload."""

    address: str
    device: str
    size: int


@dataclass(frozen=True)
class AddressesRequest:
    """A step of the change of addresses.

    Attributes:
        step: ``arm`` checks the text, keeps what is there, and starts the timer that takes it back;
            ``prove`` pings, and takes it back at once where somebody does not answer; ``keep`` does
            the same once everybody has proved, and stops the timer.
        text: of the new file.
        devices: that it configures.
        seconds: until the timer takes it back; of the others, how long is tried.
    """

    step: str
    text: str = ""
    devices: tuple[str, ...] = ()
    pings: tuple[Ping, ...] = ()
    seconds: int = 120


@dataclass(frozen=True)
class AddressesAnswer:
    """What is wrong; nothing where the step is done."""

    wrong: tuple[str, ...] = ()
