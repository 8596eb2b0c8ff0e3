"""The machine's NVIDIA driver, and a fake of NVIDIA's container toolkit, in a virtual host."""

import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "fakes"
#: A copy of the machine's own driver, made by `start.sh`: its libraries, and nvidia-smi.
DRIVER = Path("/srv/driver")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
#: Names of the libraries, for the fake runtime.
MANIFEST = "usr/share/sparkwright-lab/driver.txt"
#: Multicast over NVLink can put GPUs that other machines share out of service.
WITHOUT_MULTICAST = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
#: Root's nvidia-smi makes the missing nodes of all GPUs of the machine, unless the driver's
#: parameters forbid this, as in containers of NVIDIA's own toolkit.
_OWN_NODES = """\
[Unit]
Description=Lab: this host keeps to its own GPU
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
ExecStart=sh -c "sed 's/ModifyDeviceFiles:.*/ModifyDeviceFiles: 0/' \\
  /proc/driver/nvidia/params >/run/lab-gpu-params"
ExecStart=mount --bind /run/lab-gpu-params /proc/driver/nvidia/params

[Install]
WantedBy=sysinit.target
"""


def install(root: Path, driver: Path = DRIVER) -> dict[str, Any]:
    """Put driver and toolkit into a root file system; return Docker's settings for them."""
    names = sorted(path.name for path in (driver / "lib").iterdir())
    for name in names:
        target = root / LIBRARIES / name
        shutil.copy2(driver / "lib" / name, target, follow_symlinks=False)
    runtime = HERE / "nvidia-container-runtime"
    programs = {
        "nvidia-smi": driver / "nvidia-smi",
        "nvidia-ctk": HERE.parents[1] / "fakes/nvidia-ctk",
        "nvidia-container-runtime": runtime,
        "nvidia-container-by-hook": runtime,
        "nvidia-container-runtime-hook": HERE / "nvidia-container-runtime-hook",
    }
    for name, program in programs.items():
        target = root / "usr/bin" / name
        shutil.copyfile(program, target)
        target.chmod(0o755)
    manifest = root / MANIFEST
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text("".join(f"/{LIBRARIES}/{name}\n" for name in names))
    variables = [f"{name}={value}" for name, value in WITHOUT_MULTICAST.items()]
    (root / "etc/environment").write_text("".join(f"{line}\n" for line in variables))
    settings = root / "etc/systemd/system.conf.d/lab-gpu.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"[Manager]\nDefaultEnvironment={' '.join(variables)}\n")
    if root.parent.is_mount():  # a unit's files in memory count as the unit's memory
        for kind in ("pull", "fetch"):
            limit = root / f"etc/systemd/system/sparkwright-{kind}-.service.d/lab.conf"
            limit.parent.mkdir(parents=True, exist_ok=True)
            limit.write_text("[Service]\nMemoryMax=infinity\n")
    unit = root / "etc/systemd/system/lab-gpu-nodes.service"
    unit.write_text(_OWN_NODES)
    wants = root / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit.name).symlink_to(f"/{unit.relative_to(root)}")
    # Docker requests a GPU through NVIDIA's hook; the fake runtime must get the request first.
    by_hook = {"args": [], "path": "/usr/bin/nvidia-container-by-hook"}
    nvidia = {"args": [], "path": "nvidia-container-runtime"}
    return {"runtimes": {"nvidia": nvidia, "lab-by-hook": by_hook},
            "default-runtime": "lab-by-hook"}  # fmt: skip
