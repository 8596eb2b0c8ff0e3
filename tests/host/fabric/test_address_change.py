"""A change of addresses that keeps hosts reachable: armed, applied, proved by the peer, or rolled
back; and echo requests of a given size, unfragmented.

The real programs run in a network namespace whose rail, a veth, leads to another namespace; netplan
and systemctl are fakes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host.programs import program
from tests.tables import Tables

cases = Tables(__file__)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
_ROOT = Path(__file__).parents[3]
_HOST = """
set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$1/etc":/etc /etc
for place in /run /var/lib /etc/systemd/system /etc/netplan; do
    mount -t tmpfs -o mode=755 none $place
done
mkdir -p /run/netns /etc/systemd/system/timers.target.wants
ip link set lo up
ip netns add far
ip link add enp1s0f1np1 type veth peer name enp1s0f1np1 netns far
ip link set enp1s0f1np1 up
ip -n far link set enp1s0f1np1 mtu 9000 up
ip -n far addr add 192.168.177.12/24 dev enp1s0f1np1
cd "$2"
exec "$3" -c "$4"
"""
_PROGRAM = """
import json, subprocess
from pathlib import Path
from sparkwright.host import fabric_addresses as program
from sparkwright.host.fabric import NETPLAN
from sparkwright.host.fabric_addresses import AddressesRequest, KEPT
from sparkwright.host.lib.icmp import Ping
RAIL = "enp1s0f1np1"
UNITS = Path("/etc/systemd/system")
def text(mtu=9000, key="mtu"):
    return ("network:\\n  version: 2\\n  ethernets:\\n    " + RAIL + ":\\n      dhcp4: false\\n"
            f"      {key}: {mtu}\\n      addresses: [192.168.177.11/24]\\n")
def arm(said):
    return program.main(AddressesRequest("arm", said, (RAIL,), seconds=60))
def put(said):
    Path(NETPLAN).write_text(said)
    subprocess.run(["netplan", "apply"], check=True)
def prove(address="192.168.177.12", size=8972, step="prove"):
    ping = Ping(address, RAIL, size)
    return program.main(AddressesRequest(step, pings=(ping,), seconds=3))
def keep(address="192.168.177.12"):
    return prove(address, step="keep")
def now():
    shown = json.loads(subprocess.check_output(["ip", "-j", "addr", "show", "dev", RAIL]))
    found = [one["local"] for one in shown[0]["addr_info"] if one["family"] == "inet"]
    units = sorted(one.name for one in UNITS.rglob("fabric-*"))
    return {"addresses": found, "file": Path(NETPLAN).exists(), "units": units,
            "kept": sorted(one.name for one in Path(KEPT).glob("*"))}
out = {}
"""


def _run(tmp_path: Path, steps: str) -> dict[str, Any]:
    tools = tmp_path / "bin"
    program(tools, "systemctl", f'# FAKE\necho "$@" >> {tmp_path}/systemctl')
    (tools / "netplan").symlink_to(_ROOT / "lab/fabric/netplan")
    for name in ("netplan", "systemd/system"):
        (tmp_path / "over/etc" / name).mkdir(parents=True)
    arguments = ["unshare", "--net", "--mount", "sh", "-c", _HOST, "sh", str(tmp_path / "over"),
             str(_ROOT), sys.executable, f"{_PROGRAM}{steps}\nprint(json.dumps(out))"]  # fmt: skip
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert isinstance(data, dict)
    return data


@cases("call", "why")
def test_an_unanswered_change_is_reverted_at_once(tmp_path: Path, call: str, why: str) -> None:
    out = _run(tmp_path, f"arm(text())\nput(text())\nout['said'] = {call}, now()")
    problem, now = out["said"]
    assert problem[0].startswith("ping -M do -s ")
    assert problem[0].endswith(why) or "unreachable" in problem[0].lower()
    assert problem[-1] == "the former addresses are restored"
    assert now == {"addresses": [], "file": False, "units": [], "kept": []}


def test_the_timer_reverts_an_unconfirmed_change(tmp_path: Path) -> None:
    """The unit on the disk reverts the change if the controller disappears or the power fails."""
    out = _run(tmp_path, """
arm(text()); put(text())
service = (UNITS / "fabric-addresses-back.service").read_text()
command = service.partition("ExecStart=")[2].split()
out["timer"] = (UNITS / "fabric-addresses-back.timer").read_text()
subprocess.run(command, check=True)
out["now"] = now()
""")  # fmt: skip
    assert "OnActiveSec=60\n" in out["timer"]
    assert "WantedBy=timers.target" in out["timer"]
    assert out["now"] == {"addresses": [], "file": False, "units": [], "kept": []}


def test_a_failed_second_change_keeps_the_first_change(tmp_path: Path) -> None:
    out = _run(tmp_path, """
arm(text()); put(text()); prove(); keep()
second = text().replace("177.11", "177.13")
arm(second); put(second)
out["second"] = prove("192.168.177.99"), now()
out["undone"] = program.undo(), now()
""")  # fmt: skip
    assert out["second"][1]["addresses"] == ["192.168.177.11"]
    assert out["second"][1]["file"] is True
    assert out["undone"] == [True, {"addresses": [], "file": False, "units": [], "kept": []}]


def test_the_former_file_is_restored(tmp_path: Path) -> None:
    out = _run(tmp_path, """
before = text().replace("177.11", "177.20")
put(before)
arm(text()); put(text())
out["proved"] = prove() + keep()
program.undo()
out["now"] = now()["addresses"], Path(NETPLAN).read_text() == before
""")  # fmt: skip
    assert out == {"proved": [], "now": [["192.168.177.20"], True]}


def test_a_file_that_netplan_refuses_changes_nothing(tmp_path: Path) -> None:
    out = _run(tmp_path, 'out["said"] = arm(text(key="mtuu")), now()')
    (problem,), now = out["said"]
    assert problem.startswith("netplan generate does not accept the new file: ")
    assert now == {"addresses": [], "file": False, "units": [], "kept": []}
    assert not (tmp_path / "systemctl").exists()


_LOOK = "from sparkwright.host.lib import icmp; print(icmp.{})"


def _output(mtu: int, call: str) -> str:
    """Output of a call in a separate network namespace, whose loopback has this MTU."""
    ready = f"ip link set lo mtu {mtu} up && exec {sys.executable} -c '{_LOOK.format(call)}'"
    arguments = ["unshare", "--net", "--map-root-user", "sh", "-c", ready]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@cases("mtu", "size", "message")
def test_only_packets_up_to_the_mtu_get_an_answer(mtu: int, size: int, message: str) -> None:
    assert _output(mtu, f'echo("127.0.0.1", "lo", {size})') == message


def test_a_missing_host_is_reported() -> None:
    assert _output(1500, 'echo("192.0.2.1", "lo", tries=1, wait=0.2)') != ""
    assert _output(1500, 'echo("127.0.0.1", "none", tries=1)') == "No such device"


def test_a_device_without_ipv6_has_no_neighbours() -> None:
    assert _output(1500, 'all_nodes("none")') == "set()"
