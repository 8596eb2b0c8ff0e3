"""A container without a GPU: Docker's and NVIDIA's messages, and the remedy that cures each.

Only a container that sees the GPU proves anything: a runtime named nvidia is not needed for
Compose's device request, which takes nvidia-container-runtime-hook or CDI on dockerd's path (moby
v28.5.2, daemon/devices_nvidia_linux.go; dgx-spark-playbooks#26).
"""

from __future__ import annotations

import re

from sparkwright.checks.host import remedies
from sparkwright.host.observation import Distribution

_CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
_RESTART = "sudo systemctl restart docker"
#: name, pattern, cause, remedy, source; exact ones first.
ENTRIES: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "docker-without-gpu",
        r'could not select device driver "\S*" with capabilities: \[\[gpu\]\]',
        "Docker has no driver for GPUs: nvidia-container-toolkit is missing, or Docker was not "
        "restarted after it was installed",
        f"{remedies.toolkit(Distribution())} (DGX OS has that repository)",
        "NVIDIA's playbooks and reports of users; card of vllm-spark-omni-q36, hard requirements",
    ),
    (
        "docker-without-runtime", r"unknown or invalid runtime name: nvidia",
        "something asks for a runtime named nvidia, and Docker has none: not the compose files of "
        "sparkwright, but perhaps default-runtime in /etc/docker/daemon.json",
        f"take default-runtime out of /etc/docker/daemon.json, or {_CONFIGURE}",
        "NVIDIA's playbooks and reports of users; dgx-spark-playbooks#26",
    ),
    (
        "cdi-without-devices",
        r"unresolvable CDI devices|CDI device injection failed|Using requested mode 'cdi'",
        "Docker hands out GPUs by CDI, and the description of this host's devices is missing or "
        "older than its driver",
        f"sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && {_RESTART}",
        "spark-vllm-docker#129; NVIDIA container toolkit, CDI support",
    ),
    (
        "nvml-mismatch", r"[Dd]river/library version mismatch",
        "the driver was updated and the old kernel module is still loaded",
        "reboot the host",
        "NVIDIA's playbooks and reports of users",
    ),
    (
        "driver-not-loaded", r"nvml error: driver not loaded|nvidia-modprobe: .*failed",
        "the driver's kernel module is not loaded: a new kernel without it, or Secure Boot "
        "refuses it",
        "sudo modprobe nvidia, and what 'sudo dmesg | tail' says of it; reboot after a driver or "
        "kernel update",
        "NVIDIA container toolkit, troubleshooting",
    ),
    (
        "driver-library-missing",
        r"libnvidia-ml\.so\S*: cannot open shared object file|load library failed: libnvidia-ml",
        "the driver's libraries are not installed on the host, only its kernel module or tools",
        "Ubuntu: sudo apt install nvidia-utils-580-server libnvidia-compute-580-server (the same "
        "version as the driver); Debian: sudo apt install --reinstall nvidia-open, from NVIDIA's "
        "repository; DGX OS: sudo apt install --reinstall nvidia-system-core",
        "NVIDIA container toolkit, troubleshooting",
    ),
    (
        "driver-too-old-for-image", r"unsatisfied condition: (cuda|driver)\s*[>=]",
        "the image needs a newer CUDA than the driver offers",
        "update the driver to 580 or later and reboot",
        "NVIDIA container toolkit: NVIDIA_REQUIRE_CUDA of the image",
    ),
)  # fmt: skip


def explained(line: str) -> str:
    """A failure's own words, and where they are known what they mean and what cures them."""
    for _, pattern, cause, remedy, _ in ENTRIES:
        if re.search(pattern, line):
            return f"{line} ({cause}; remedy: {remedy})"
    return line
