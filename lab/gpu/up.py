"""`python3 -m lab.gpu.up HOSTS`, in the control root: boots the depot and a host for each GPU."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from lab import base, fleet, machines, network
from lab.layout import DEPOT, GPU_HOSTS, HUB_PORT, REGISTRY_PORT, STATE

#: With at least this number of GPUs, all hosts are in memory: 190 GB for four.
MANY = 4


def up(hosts: int) -> None:
    """Start the missing machines; if there are more hosts than GPUs, hosts share a GPU."""
    started = time.monotonic()
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    wanted = [
        replace(host, devices=(f"/dev/nvidia{number % gpus}", *host.devices[1:]))
        for number, host in enumerate(GPU_HOSTS[:hosts])
    ]
    STATE.mkdir(parents=True, exist_ok=True)
    fleet.keys()
    network.up()
    # The other hosts are in memory: the disk of a machine with one GPU has room for one host, and
    # is too slow for four hosts that fetch at once. Preflight requires room for two copies of the
    # image and for the weights, and refused a host of 40 GB.
    for host in wanted[gpus if gpus < MANY else 0 :]:
        host.home.mkdir(parents=True, exist_ok=True)
        if not host.home.is_mount():
            options = ["-t", "tmpfs", "-o", "size=90g,mode=755", "tmpfs", str(host.home)]
            subprocess.run(["mount", *options], check=True)
    for machine in (DEPOT, *wanted):
        machines.start(machine, base.path())
    fleet.wait("registry", DEPOT, REGISTRY_PORT)
    fleet.wait("hub", DEPOT, HUB_PORT)
    for host in wanted:
        fleet.wait("SSH", host, 22)
        look = "until docker version >/dev/null 2>&1; do sleep 0.2; done; nvidia-smi -L"
        command = [*fleet.ssh_command(host), f"timeout 60 sh -c '{look}'"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"{host.name}: {done.stdout.strip() or done.stderr.strip()}", flush=True)
    print(f"up in {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    up(int(sys.argv[1]))
