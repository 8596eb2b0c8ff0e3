"""Faults of a host with a real GPU, and the time until the host serves again.

See `lab.gpu.prove`. The machine's own GPU is never reset, and its settings stay: devices are
removed only from the virtual host.
"""

import time
from pathlib import Path
from typing import Any

from lab import base, machines
from lab.gpu.controls import (
    HOME,
    HOST,
    INVENTORY,
    SERVICE,
    SOCKET,
    UNIT,
    beside,
    control,
    deploy,
    doctor,
    journal,
    ssh,
    streams,
    text,
    timed,
    until_well,
)


def _state() -> list[str]:
    return ssh(f"systemctl show {UNIT} -p ActiveState,SubState,NRestarts,ExecMainStatus").split()


def _fault(name: str, command: str) -> dict[str, Any]:
    """A fault that the host repairs by itself: seconds until the host serves, and the doctor's
    output.
    """
    seconds = timed(lambda: ssh(f"{command}; sleep 2"))
    journal(f"{name}.log")
    return {"seconds to health": seconds, "state": _state(), "doctor": doctor(name)}


def killed() -> dict[str, Any]:
    """EngineCore is killed while 8 streams run: exit code, and seconds until the engine serves
    again.
    """
    beside(lambda: streams(SOCKET, 8, 40, 512))
    time.sleep(3)
    return _fault("killed", "date +%s.%N >/run/lab-killed; pkill -KILL -f VLLM::EngineCor[e]")


def container() -> dict[str, Any]:
    """The container is killed."""
    return _fault("container", f"docker kill {UNIT}")


def docker() -> dict[str, Any]:
    """Docker is restarted."""
    return _fault("docker", "systemctl restart docker")


def reload() -> dict[str, Any]:
    """systemd reloads its units: the test shows whether the container keeps its GPU."""
    look = f"docker exec {UNIT} nvidia-smi -L"
    before = ssh(look)
    ssh("systemctl daemon-reload")
    time.sleep(1)
    text("reload.txt", f"{before}{ssh(look)}{ssh('docker info | grep -i cgroup')}")
    return {"before": before, "after": ssh(look), "state": _state(), "doctor": doctor("reload")}


def devices() -> dict[str, Any]:
    """The host loses the GPU's device nodes, restarts the service, and gets them back."""
    nodes = " ".join(Path(node).name for node in HOST.devices)
    keep = f"cd /dev && stat -c '%n %Hr %Lr' {nodes}".replace("'", '"')
    listed = [line.split() for line in ssh(keep).splitlines()]
    text("devices.txt", f"{listed}\n{ssh('systemctl is-active lab-gpu-nodes; ls /dev/nvidia*')}")
    ssh(f"cd /dev && for n in {nodes}; do umount -l $n; rm -f $n; done")
    gone: dict[str, Any] = {"nvidia-smi": ssh("nvidia-smi; echo $?")}
    ssh(f"systemctl restart {UNIT}", seconds=60)
    time.sleep(20)
    gone |= {"state": _state(), "doctor": doctor("devices-gone")}
    journal("devices-gone.log")
    gone["deploy"] = deploy("devices-gone")
    made = "; ".join(f"rm -f /dev/{n}; mknod -m 666 /dev/{n} c {major} {minor}"
                     for n, major, minor in listed)  # fmt: skip
    back = timed(lambda: ssh(f"{made}; nvidia-smi -L; systemctl reset-failed {UNIT}; "
                             f"systemctl restart {UNIT}"))  # fmt: skip
    return {"gone": gone, "seconds to health": back, "doctor": doctor("devices-back"),
            "deploy": deploy("devices-back")}  # fmt: skip


def power() -> dict[str, Any]:
    """The virtual host's power is cut while 8 streams run."""
    beside(lambda: streams(SOCKET, 8, 40, 512))
    time.sleep(3)
    started = time.monotonic()
    machines.cut_power(HOST)
    machines.start(HOST, base.path())
    while "running" not in ssh("echo running", seconds=20) and time.monotonic() - started < 60:
        time.sleep(0.5)
    until_well()
    seconds = round(time.monotonic() - started, 2)
    journal("power.log")
    return {"seconds to health": seconds, "state": _state(), "doctor": doctor("power"),
            "deploy": deploy("power")}  # fmt: skip


def disk() -> dict[str, Any]:
    """Only 4 MB are left for the engine's compiled code of a first start."""
    ssh(f"systemctl stop {UNIT}")
    ssh(f"mount -t tmpfs -o size=4m,mode=700 tmpfs {HOME}/caches")
    code, output, seconds = control("sparkwright", "start", INVENTORY, SERVICE, "--yes")
    text("disk-start.txt", output + ssh(f"df {HOME}/caches; find {HOME}/caches | head -50"))
    journal("disk.log")
    result = {"start": code, "seconds": seconds, "state": _state(), "doctor": doctor("disk")}
    ssh(f"systemctl stop {UNIT}; umount -l {HOME}/caches")
    back = timed(lambda: ssh(f"systemctl reset-failed {UNIT}; systemctl restart {UNIT}"))
    return {**result, "seconds to health": back}
