"""A host's part of the fabric: ports, twins, RDMA devices and neighbours.

The program runs on the host, as root if sudo permits it, since only root can probe for neighbours.
Missing parts are left out: a host without a ConnectX has no rails.
"""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path

from sparkwright.host.lib import docker, documents, icmp, memory, processes, records
from sparkwright.host.lib.annotations import Any

#: The file that ``sparkwright fabric addresses`` writes, and the copy of the file that it replaced.
NETPLAN = "/etc/netplan/60-sparkwright-fabric.yaml"


@records.dataclass(frozen=True)
class FabricRequest:
    """Request for the state of a host's fabric.

    Attributes:
        root: directory with /sys and /proc; in tests, a captured tree.
        ask: whether to probe each port for neighbours; otherwise only neighbours in the tables of
            the kernel and LLDP are reported.
        image: name of a Docker image whose id is reported.
    """

    root: str = "/"
    ask: bool = True
    image: str | None = None


@records.dataclass(frozen=True)
class Gid:
    """An RDMA device's address. ``type`` is the kernel's name of the address type: ``RoCE v2`` or
    ``IB/RoCE v1``.
    """

    index: int
    address: str
    type: str


@records.dataclass(frozen=True)
class Rdma:
    """An RDMA device of one port.

    Attributes:
        state: state of its port, ``ACTIVE`` or ``DOWN``.
        rate: Gb/s; None if the kernel does not report it.
    """

    name: str
    state: str
    rate: float | None = None
    gids: tuple[Gid, ...] = ()


@records.dataclass(frozen=True)
class Neighbour:
    """Neighbour of a port. ``how`` is ``lldp``, ``asked`` or ``kernel`` (the kernel's neighbour
    table).

    Attributes:
        name: host and port as LLDP reports them.
    """

    mac: str
    how: str
    address: str = ""
    name: str = ""


@records.dataclass(frozen=True)
class Rail:
    """A network device of a ConnectX-7 port.

    Attributes:
        cage: number of the cable's port, 0 or 1; each port has two twin devices.
        twin: 0 for the first PCIe link's device, 1 for the second link's device.
        carrier: whether a cable with a powered port at its other end is plugged in.
        speed: Mb/s; None without a link.
        addresses: addresses with their prefix lengths, ``192.168.177.11/24``.
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
        """Return the rail's first IPv4 address with its prefix length, or None."""
        return next((address for address in self.addresses if "." in address), None)


@records.dataclass(frozen=True)
class FabricState:
    """A host's part of the fabric.

    Attributes:
        rails: rails by cage and twin; empty without a ConnectX.
        interfaces: addresses by interface, of all interfaces.
        management: the interface of the default route; empty if there is none.
        cma_over: bytes of free contiguous memory beyond the CMA's total, which can't be pinned.
        driver: version of NVIDIA's kernel module.
        nccl: the loaded NCCL libraries of each process that has several libraries.
        tools: installed tools of the fabric: ib_write_bw, netplan, lldpcli.
        netplan: text of sparkwright's file; None if missing.
        configured: device -> another netplan file that names the device.
        image: id of the requested image; None if Docker does not have it.
    """

    rails: tuple[Rail, ...] = ()
    interfaces: dict[str, tuple[str, ...]] = records.field(default_factory=dict)
    management: str = ""
    kernel: str = ""
    cma_over: int = 0
    driver: str | None = None
    nccl: tuple[tuple[str, ...], ...] = ()
    tools: tuple[str, ...] = ()
    netplan: str | None = None
    configured: dict[str, str] = records.field(default_factory=dict)
    image: str | None = None


#: systemd's names of a PCI device's port, with domain and function: enP2p1s0f1np1.
NAME = re.compile(r"en(?:P(\d+))?p\d+s\d+f(\d)(?:np\d+)?")
_PCI = re.compile(r"([0-9a-f]{4}):[0-9a-f]{2}:[0-9a-f]{2}\.(\d)")
_TOOLS = ("ib_write_bw", "netplan", "lldpcli")
_NCCL = re.compile(r"/\S*/libnccl\.so[.\d]*")
#: Number of GIDs to read from a device: a ConnectX has 255, and fills them in order.
_GIDS = 64


def position(device: Path) -> tuple[int, int] | None:
    """Return PCI domain and function of a ConnectX network device; None for any other device."""
    driver = device / "device/driver"
    if driver.is_symlink() and driver.readlink().name != "mlx5_core":
        return None
    link = device / "device"
    pci = _PCI.fullmatch(link.readlink().name) if link.is_symlink() else None
    if pci and driver.is_symlink():
        return int(pci[1], 16), int(pci[2])
    parsed = NAME.fullmatch(device.name)
    return (int(parsed[1] or 0), int(parsed[2])) if parsed else None


def _text(path: Path) -> str:
    """Return a file's text without surrounding blanks; empty if it can't be read."""
    return (documents.text(path) or "").strip()


def number(path: Path) -> int | None:
    """Return the number in a file; None without a number, e.g. for the speed of a port without a
    link.
    """
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None


def gids(port: Path) -> tuple[Gid, ...]:
    """Return an RDMA port's addresses, without empty addresses."""
    entries = []
    for index in range(_GIDS):
        kind = _text(port / f"gid_attrs/types/{index}")
        with suppress(ValueError):
            address = IPv6Address(_text(port / f"gids/{index}"))
            if int(address) and kind:
                entries.append(Gid(index, str(address.ipv4_mapped or address), kind))
    return tuple(entries)


def rdma_devices(root: Path) -> dict[str, Rdma]:
    """Return the RDMA devices by their network devices."""
    devices = {}
    for device in sorted((root / "sys/class/infiniband").glob("*")):
        port = device / "ports/1"
        owners = [_text(path) for path in sorted(port.glob("gid_attrs/ndevs/*"))]
        owners += [network.name for network in device.glob("device/net/*")]
        if (owner := next(filter(None, owners), None)) is not None:
            rate = re.match(r"[\d.]+", _text(port / "rate"))
            state = _text(port / "state").rpartition(":")[2].strip()
            devices[owner] = Rdma(device.name, state, float(rate[0]) if rate else None, gids(port))
    return devices


def _listed(*arguments: str) -> list[dict[str, Any]]:
    """Return the entries that ``ip -j`` lists."""
    try:
        entries = json.loads(processes.Running("ip", "-j", *arguments).outcome().out or "[]")
    except ValueError:
        return []
    entries = entries if isinstance(entries, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def addresses() -> dict[str, tuple[str, ...]]:
    """Return each interface's addresses with their prefix lengths, IPv4 first."""
    interfaces = {}
    for entry in _listed("addr", "show"):
        infos = [info for info in entry.get("addr_info", ()) if info.get("scope") != "host"]
        infos.sort(key=lambda info: info.get("family") != "inet")
        texts = tuple(f"{info.get('local')}/{info.get('prefixlen')}" for info in infos)
        if texts:
            interfaces[str(entry.get("ifname"))] = texts
    return interfaces


def neighbours(names: list[str], ask: list[str]) -> dict[str, tuple[Neighbour, ...]]:
    """Find the neighbours at the other end of each device.

    Args:
        ask: ports with a link-local address, over which all neighbours are pinged.
    """
    lldp = processes.Running("lldpcli", "-f", "json", "show", "neighbors")
    with ThreadPoolExecutor(max(1, len(ask))) as pool:
        answered = dict(zip(ask, pool.map(icmp.all_nodes, ask), strict=True))
    answers: dict[str, dict[str, Neighbour]] = {name: {} for name in names}
    for entry in _listed("neigh", "show"):
        name, mac, at = (str(entry.get(key, "")) for key in ("dev", "lladdr", "dst"))
        if name in answers and mac and "FAILED" not in entry.get("state", ()):
            how = "asked" if at in answered.get(name, ()) else "kernel"
            earlier = answers[name].get(mac.lower())
            if earlier is None or earlier.how == "kernel":
                answers[name][mac.lower()] = Neighbour(mac.lower(), how, at)
    for name, mac, label in _of_lldp(lldp.outcome().out):
        if name in answers and mac:
            answers[name][mac] = Neighbour(mac, "lldp", name=label)
    return {name: tuple(each.values()) for name, each in answers.items()}


def _of_lldp(text: str) -> list[tuple[str, str, str]]:
    """Return device, neighbour's MAC, and neighbour's name and port. Only Sparks count, identified
    by their MAC.
    """
    rows = []
    try:
        listed = json.loads(text or "{}").get("lldp", {}).get("interface", [])
        for entry in listed if isinstance(listed, list) else [listed]:
            for device, about in entry.items():
                port = about.get("port", {})
                names = ", ".join(about.get("chassis", {}))
                identity = port.get("id", {})
                mac = str(identity.get("value", "")) if identity.get("type") == "mac" else ""
                rows.append((device, mac.lower(), f"{names} {port.get('descr', '')}".strip()))
    except (ValueError, AttributeError, TypeError):
        return []
    return rows


def several_nccl(root: Path) -> tuple[tuple[str, ...], ...]:
    """Return the NCCL libraries of each process that loaded more than one library."""
    several = set()
    for maps in (root / "proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            text = maps.read_text(errors="replace")
            loaded = sorted(set(_NCCL.findall(text))) if "libnccl.so" in text else []
            if len(loaded) > 1:
                several.add(tuple(loaded))
    return tuple(sorted(several))


def rails(root: Path, own: dict[str, tuple[str, ...]], *, ask: bool) -> tuple[Rail, ...]:
    """Return the network devices of the ConnectX, by cage and twin."""
    positions = {device: position(device) for device in (root / "sys/class/net").glob("*")}
    ports = {device: at for device, at in positions.items() if at is not None}
    domains = sorted({domain for domain, _ in ports.values()})
    names = [device.name for device in ports]
    local = [name for name in names if any(at.startswith("fe80:") for at in own.get(name, ()))]
    others = neighbours(names, local if ask else []) if names else {}
    devices = rdma_devices(root) if names else {}
    listed = [
        Rail(
            name=device.name,
            cage=function,
            twin=domains.index(domain),
            mac=_text(device / "address").lower(),
            carrier=number(device / "carrier") == 1,
            mtu=number(device / "mtu") or 0,
            speed=max(0, number(device / "speed") or 0) or None,
            addresses=own.get(device.name, ()),
            rdma=devices.get(device.name),
            neighbours=others.get(device.name, ()),
        )
        for device, (domain, function) in ports.items()
    ]
    return tuple(sorted(listed, key=lambda rail: (rail.cage, rail.twin)))


def configured(root: Path, names: set[str]) -> dict[str, str]:
    """Return the netplan file that names each device, except sparkwright's own file."""
    files = {}
    for file in sorted((root / "etc/netplan").glob("*.yaml")):
        if f"/etc/netplan/{file.name}" != NETPLAN:
            keys = set(re.findall(r"^ +[\"']?([\w.-]+)[\"']?:", documents.text(file) or "", re.M))
            files.update(dict.fromkeys(sorted(keys & names), f"/etc/netplan/{file.name}"))
    return files


def main(request: FabricRequest) -> FabricState:
    """Report the host's part of the fabric."""
    root = Path(request.root)
    interfaces = addresses()
    ports = rails(root, interfaces, ask=request.ask)
    routes = _listed("route", "show", "default")
    image = docker.image(request.image) if request.image else None
    return FabricState(
        rails=ports,
        interfaces=interfaces,
        management=str(routes[0].get("dev", "")) if routes else "",
        kernel=_text(root / "proc/sys/kernel/osrelease"),
        cma_over=memory.cma_over(memory.meminfo(root)),
        driver=_text(root / "sys/module/nvidia/version") or None,
        nccl=several_nccl(root),
        tools=tuple(name for name in _TOOLS if shutil.which(name)),
        netplan=documents.text(root / NETPLAN[1:]),
        image=image["Id"] if image else None,
        configured=configured(root, {rail.name for rail in ports}),
    )
