"""`python3 -m lab.gpu.up GPUS`, in the control root: boots the depot and a host for each GPU."""

from __future__ import annotations

import subprocess
import sys
import time

from lab import base, fleet, machines, network
from lab.layout import DEPOT, GPU_HOSTS, HUB_PORT, REGISTRY_PORT, STATE


def up(gpus: int) -> None:
    """Bring up what is not up."""
    started = time.monotonic()
    STATE.mkdir(parents=True, exist_ok=True)
    fleet.keys()
    network.up()
    for machine in (DEPOT, *GPU_HOSTS[:gpus]):
        machines.start(machine, base.path())
    fleet.wait("registry", DEPOT, REGISTRY_PORT)
    fleet.wait("hub", DEPOT, HUB_PORT)
    for host in GPU_HOSTS[:gpus]:
        fleet.wait("SSH", host, 22)
        look = "until docker version >/dev/null 2>&1; do sleep 0.2; done; nvidia-smi -L"
        command = [*fleet.ssh_command(host), f"timeout 60 sh -c '{look}'"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"{host.name}: {done.stdout.strip() or done.stderr.strip()}", flush=True)
    print(f"up in {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    up(int(sys.argv[1]))
