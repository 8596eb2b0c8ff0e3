"""The lab's fake fabric, between two processes in namespaces of their own as machines are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.fabric import rails
from sparkwright.checks.fabric.cabling import cables, shape_of
from sparkwright.checks.fabric.groups import Fabric
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.host.fabric import FabricState
from sparkwright.host.lib.records import decode

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
_ROOT = Path(__file__).parents[3]
_MACHINE = """
mount --make-rprivate / && mount -t sysfs none /sys && mount -t tmpfs none /run &&
mkdir -p "$1/etc/netplan" "$1/up" "$1/work" "$1/local" &&
mount -t overlay overlay -o lowerdir=/etc,upperdir="$1/up",workdir="$1/work" /etc &&
mkdir -p /etc/netplan && mount --bind "$1/local" /usr/local/sbin &&
ip link set lo up && echo ready && exec sleep 300
"""
_LOOK = """
import json, time
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest
from sparkwright.host.lib.records import encode
for _ in range(20):
    state = fabric.main(FabricRequest())
    if all(rail.neighbours for rail in state.rails):
        break
    time.sleep(0.5)
print(json.dumps(encode(state)))
"""


@pytest.fixture
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, int]]:
    """Number of a Spark -> process id."""
    started = []
    for _ in range(2):
        folder = tmp_path_factory.mktemp("machine")
        words = ["unshare", "--net", "--mount", "sh", "-c", _MACHINE, "sh", str(folder)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started.append(process)
    yield {number: one.pid for number, one in enumerate(started, 1)}
    for one in started:
        one.kill()
        one.wait()


def _in(pid: int, *words: str) -> str:
    done = subprocess.run(
        ["nsenter", f"--target={pid}", "--mount", "--net", f"--wd={_ROOT}", "--", *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def _looked(machines: dict[int, int]) -> dict[str, FabricState]:
    return {
        f"spark-{number}": decode(FabricState, json.loads(_in(pid, sys.executable, "-c", _LOOK)))
        for number, pid in machines.items()
    }


def test_it_is_found_as_a_real_one_and_lacks_addresses_alone(machines: dict[int, int]) -> None:
    rails.plug(machines)
    states = _looked(machines)
    assert [(one.name, one.speed, one.carrier) for one in states["spark-1"].rails] == [
        ("enp1s0f1np1", 200000, True), ("enP2p1s0f1np1", 200000, True),
    ]  # fmt: skip
    assert shape_of(states) == "pair"
    assert [(one.rail.name, one.other_rail.name) for one in cables(states)] == [
        ("enp1s0f1np1", "enp1s0f1np1"), ("enP2p1s0f1np1", "enP2p1s0f1np1"),
    ]  # fmt: skip
    found = {one.id for one in CHECKS.findings(Fabric(states, "pair"))}
    assert found == {"fabric-no-address", "fabric-mtu"}


def test_with_addresses_nothing_is_wrong_and_streams_meet(machines: dict[int, int]) -> None:
    rails.plug(machines)
    for number, pid in machines.items():
        text = "network:\n  version: 2\n  ethernets:\n" + "".join(
            f"    {name}:\n      mtu: 9000\n      addresses: [192.168.{net}.{10 + number}/24]\n"
            for name, net in (("enp1s0f1np1", 177), ("enP2p1s0f1np1", 178))
        )
        _in(
            pid,
            "sh",
            "-c",
            f"echo '{text}' > /etc/netplan/60-x.yaml; /usr/local/sbin/netplan apply",
        )
    states = _looked(machines)
    assert {one.id for one in CHECKS.findings(Fabric(states, "pair"))} <= {"fabric-cma"}
    words = ["/usr/local/sbin/ib_write_bw", "-d", "rocep1s0f1", "-p", "12000"]
    server = subprocess.Popen(
        ["nsenter", f"--target={machines[1]}", "--mount", "--net", "--", *words]
    )
    said = _in(machines[2], *words, "192.168.177.11")
    assert server.wait(timeout=10) == 0
    assert "92.57" in said


def test_nothing_is_left_of_it(machines: dict[int, int]) -> None:
    rails.plug(machines)
    rails.unplug(machines)
    for _ in range(20):
        if "enp1s0f1np1" not in _in(machines[1], "ls", "/sys/class/net"):
            break
        time.sleep(0.1)
    for pid in machines.values():
        assert "np1" not in _in(pid, "ls", "/sys/class/net")
        assert _in(pid, "ls", "/usr/local/sbin") == ""
    rails.plug(machines)  # and it can be plugged in again
