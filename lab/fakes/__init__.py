"""Fakes for hardware that this machine lacks: the GPU, NVIDIA's tools, a Spark's memory.

Each file is marked as a fake in its first lines, and behaves like captures of the real hardware. A
small file of the machine names its GPU and its faults, so that tests can change them:
``/etc/sparkwright-lab/gpu.json``.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from lab.layout import Machine

HERE = Path(__file__).parent
#: Files of the package nvidia-container-toolkit.
TOOLKIT = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-runtime-hook")
GPU_FILE = "etc/sparkwright-lab/gpu.json"


def _card(name: str, mib: int, watts: int, number: int) -> dict[str, Any]:
    """An idle card of sm_120: its memory, its power limit, and the number in its UUID."""
    return {
        "name": f"NVIDIA {name}", "compute_cap": "12.0", "driver_version": "580.95.05",
        "memory.total": f"{mib} MiB", "memory.free": f"{mib - mib // 64} MiB",
        "memory.used": "2 MiB", "power.draw": "21.33 W", "power.limit": f"{watts}.00 W",
        "temperature.gpu": "38", "utilization.gpu": "0 %", "clocks.sm": "180 MHz",
        "clocks.max.sm": "3090 MHz", "clocks_event_reasons.active": "0x0000000000000001",
        "pci.bus_id": "00000000:01:00.0", "uuid": f"GPU-57a4d100-0000-0000-0000-{number:012}",
    }  # fmt: skip


#: Values as real drivers print them; sources: captures/ (H200) and public reports (GB10, 5090).
#: Cards below an RTX 5090 have no captures: their memory is in catalog/gpus.yaml.
GPUS: dict[str, dict[str, Any]] = {
    "gb10": {
        "name": "NVIDIA GB10",
        "compute_cap": "12.1",
        "driver_version": "580.95.05",
        "memory.total": "[N/A]",
        "memory.free": "[N/A]",
        "memory.used": "[N/A]",
        "power.draw": "10.20 W",
        "power.limit": "[N/A]",
        "temperature.gpu": "41",
        "utilization.gpu": "0 %",
        "clocks.sm": "208 MHz",
        "clocks.max.sm": "3003 MHz",
        "clocks_event_reasons.active": "0x0000000000000001",
        "pci.bus_id": "0000000F:01:00.0",
        "uuid": "GPU-57a4d100-0000-0000-0000-000000000001",
    },
    "rtx5060": _card("GeForce RTX 5060", 8151, 145, 4),
    "rtx5070": _card("GeForce RTX 5070", 12227, 250, 5),
    "rtx5080": _card("GeForce RTX 5080", 16303, 360, 6),
    "rtx5090-laptop": _card("GeForce RTX 5090 Laptop GPU", 24463, 175, 7),
    "rtx5090": _card("GeForce RTX 5090", 32607, 575, 2),
    "rtxpro6000": _card("RTX PRO 6000 Blackwell Workstation Edition", 97887, 600, 3),
    "h200": {
        "name": "NVIDIA H200",
        "compute_cap": "9.0",
        "driver_version": "580.159.04",
        "memory.total": "143771 MiB",
        "memory.free": "143156 MiB",
        "memory.used": "0 MiB",
        "power.draw": "126.76 W",
        "power.limit": "700.00 W",
        "temperature.gpu": "41",
        "utilization.gpu": "0 %",
        "clocks.sm": "1980 MHz",
        "clocks.max.sm": "1980 MHz",
        "clocks_event_reasons.active": "0x0000000000000001",
        "pci.bus_id": "00000000:00:06.0",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "plain": "nvidia-smi-h200.txt",
        "xml": "nvidia-smi-h200.xml",
    },
}


def gpu_file(kind: str, mode: str = "ok") -> str:
    """Text of the machine's GPU file. Modes: ok, driver-dead, hang, none."""
    return json.dumps({"mode": mode, "gpus": [GPUS[kind]]}, indent=1) + "\n"


def install(machine: Machine) -> None:
    """Put the fakes into a machine's root file system, before it boots."""
    if machine.gpu is None:
        return
    for name in ("nvidia-smi", *(() if machine.bare else TOOLKIT)):
        target = machine.root / "usr/bin" / name
        shutil.copyfile(HERE / name, target)
        target.chmod(0o755)
    captures = machine.root / "usr/share/sparkwright-lab"
    shutil.copytree(HERE / "captures", captures, dirs_exist_ok=True)
    _write(machine, GPU_FILE, gpu_file(machine.gpu))
    if machine.dgx:
        _write(machine, "etc/dgx-release", (HERE / "dgx-release").read_text())
        _write(machine, "etc/fastos-release", (HERE / "fastos-release").read_text())
        # DGX OS has this package preinstalled; the fake is an entry in dpkg's database.
        _write(machine, "var/lib/dpkg/info/nv-docker-options.list", "")
        status, entry = "var/lib/dpkg/status", (HERE / "nv-docker-options").read_text()
        before = (machine.root / status).read_text()
        _write(machine, status, before if entry in before else f"{before}\n{entry}")
    if machine.memory_kib:
        _write(machine, "etc/sparkwright-lab/meminfo", _meminfo(machine.memory_kib))
        unit = "etc/systemd/system/lab-memory.service"
        _write(machine, unit, (HERE / "lab-memory.service").read_text())
        wants = machine.root / "etc/systemd/system/sysinit.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        link = wants / "lab-memory.service"
        link.unlink(missing_ok=True)
        link.symlink_to("/etc/systemd/system/lab-memory.service")


def _meminfo(total_kib: int) -> str:
    """Text of /proc/meminfo of an idle host of this size, with about 3 % in use."""
    available = int(total_kib * 0.97)
    values = {
        "MemTotal": total_kib,
        "MemFree": int(total_kib * 0.93),
        "MemAvailable": available,
        "Buffers": 120000,
        "Cached": int(total_kib * 0.03),
        "SwapTotal": 0,
        "SwapFree": 0,
        "Dirty": 100,
        "Shmem": 20000,
        "Slab": 300000,
    }
    return "".join(f"{f'{name}:':15} {value:>8} kB\n" for name, value in values.items())


def _write(machine: Machine, path: str, text: str) -> None:
    folder = machine.root / path
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text(text)
