"""FAKE cables between machines: veths with the names of a ConnectX-7's devices, and its part of
/sys mounted over the real files. MTU, addresses and carrier come from the kernel; speed and RDMA
are invented.
"""

import subprocess
from pathlib import Path

from lab.fabric.tree import DEVICES, Spark

HERE = Path(__file__).parent
#: Folder in each machine for the files that are mounted over /sys/class.
_FAKE = "/run/sparkwright-lab/fabric"
TOOLS = ("netplan", "ib_write_bw")
_SYS = """
set -e
mkdir -p {fake}/over/infiniband
if ! grep -q ' /sys/class overlay' /proc/mounts; then
    mount -t overlay overlay -o lowerdir={fake}/over:/sys/class /sys/class
    mount --bind {fake}/infiniband /sys/class/infiniband
fi
"""
_UNSYS = """
umount /sys/class/infiniband 2>/dev/null
umount /sys/class 2>/dev/null
rm -rf {fake} /usr/local/sbin/netplan /usr/local/sbin/ib_write_bw
true
"""


def plug(ends: dict[int, int], cage: int = 1) -> None:
    """Connect two machines with a cable, in the same port of both machines.

    Args:
        ends: number of the Spark -> process id of its process 1.
    """
    (item, first), (two, second) = ends.items()
    for twin in (0, 1):
        name = DEVICES[cage, twin][0]
        arguments = ["ip", "link", "add", name, "address", Spark(item).mac(cage, twin),
                 "netns", str(first), "type", "veth", "peer", "name", name, "address",
                 Spark(two).mac(cage, twin), "netns", str(second)]  # fmt: skip
        subprocess.run(arguments, check=True)
    for pid in ends.values():
        _devices(pid, cage)


def unplug(ends: dict[int, int], cage: int = 1) -> None:
    """Remove the cable, and the files over /sys."""
    for pid in ends.values():
        for twin in (0, 1):
            _inside(pid, f"ip link delete {DEVICES[cage, twin][0]} 2>/dev/null; true")
        _inside(pid, _UNSYS.format(fake=_FAKE))


def _devices(pid: int, cage: int) -> None:
    for twin in (0, 1):
        name, hca, _ = DEVICES[cage, twin]
        net, port = f"{_FAKE}/over/net/{name}", f"{_FAKE}/infiniband/{hca}/ports/1"
        real = f"/sys/devices/virtual/net/{name}"
        kept = " ".join(("address", "mtu", "carrier", "operstate"))
        _inside(pid, f"""
set -e
ip link set {name} up
mkdir -p {net} {port}/gids {port}/gid_attrs/types {port}/gid_attrs/ndevs
for key in {kept}; do ln -sfn {real}/$key {net}/$key; done
echo 200000 > {net}/speed
echo '4: ACTIVE' > {port}/state
echo '200 Gb/sec (4X HDR)' > {port}/rate
echo {name} > {port}/gid_attrs/ndevs/0
""")  # fmt: skip
    _inside(pid, _SYS.format(fake=_FAKE))
    for tool in TOOLS:
        text = (HERE / tool).read_text()
        _inside(pid, f"cat > /usr/local/sbin/{tool}; chmod 755 /usr/local/sbin/{tool}", text)


def _inside(pid: int, script: str, given: str = "") -> None:
    arguments = ["nsenter", f"--target={pid}", "--mount", "--net", "--", "sh", "-c", script]
    done = subprocess.run(arguments, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"setup of the fake fabric failed: {done.stderr.strip()}")
