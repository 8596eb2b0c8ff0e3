"""Neighbours are asked for over real devices: two ends of a veth, in network namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")
_ROOT = Path(__file__).parents[3]
_CABLE = """
set -e
ip link set lo up
mount -t tmpfs none /run
mount -t sysfs none /sys
mkdir -p /run/netns
ip netns add far
ip link add enp1s0f1np1 type veth peer name enp1s0f0np0 netns far
ip link set enp1s0f1np1 up
ip -n far link set enp1s0f0np0 address 02:00:00:00:00:02 up
exec "$@"
"""
_LOOK = """
import time
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest
for _ in range(20):  # an address is of use two seconds after its link is up
    (rail,) = fabric.main(FabricRequest()).rails
    if rail.neighbours:
        break
    time.sleep(0.5)
print(rail.name, rail.cage, rail.carrier, [one.mac for one in rail.neighbours])
"""


def test_the_other_end_of_a_cable_is_found() -> None:
    words = ["unshare", "--net", "--mount", "sh", "-c", _CABLE, "sh", sys.executable, "-c", _LOOK]
    done = subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "enp1s0f1np1 1 True ['02:00:00:00:00:02']\n"
