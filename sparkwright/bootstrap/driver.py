"""The driver: whether it is new enough, and what keeps bootstrap from installing another one."""

from __future__ import annotations

from sparkwright.bootstrap.box import Box, Kind
from sparkwright.bootstrap.findings import HOSTS, error
from sparkwright.catalog.gpus import driver_major
from sparkwright.checks.host.gpu import LEAST_DRIVER
from sparkwright.checks.host.remedies import install
from sparkwright.findings.finding import Finding
from sparkwright.host.bootstrap.inspection import BootstrapState

_NEEDED = f"NVIDIA driver >= {LEAST_DRIVER}"
_ON_UBUNTU = "https://docs.nvidia.com/dgx/dgx-os-7-user-guide/installing_on_ubuntu.html"


def is_new_enough(state: BootstrapState) -> bool:
    """Whether a driver answers that serves."""
    return (driver_major(state.driver) or 0) >= LEAST_DRIVER


def found(state: BootstrapState) -> str:
    """What is there, in words."""
    return f"driver {state.driver}" if state.driver else "no driver that answers"


def obstacle(box: Box, state: BootstrapState) -> Finding | None:
    """Why no driver is installed here; None where one may be."""
    update = install("driver", state.distribution)
    if box.kind is Kind.DGX:
        why = "DGX OS keeps driver, kernel and firmware to each other: it is never changed here"
        return _error(found(state), _NEEDED, why, update)
    if box.kind is Kind.GB10:
        why = (
            "on a GB10 the driver needs NVIDIA's kernel too, and a person at the console where "
            "Secure Boot is on (timothystewart6/ubuntu-gb10): it is never changed here"
        )
        return _error(found(state), _NEEDED, why, f"NVIDIA's guide: {_ON_UBUNTU}")
    if not state.nvidia:
        return _error(
            "no GPU of NVIDIA's on the PCI bus", "a GPU", "a driver would have nothing to drive",
            "look for it with 'lspci | grep -i nvidia'",
        )  # fmt: skip
    if state.driver_installer:
        return _error(
            f"{found(state)}; NVIDIA's own installer (.run) put files here",
            "a driver of packages, or none", "the two overwrite each other's files",
            "sudo nvidia-uninstall, reboot, then run again",
        )  # fmt: skip
    if state.secure_boot:
        return _error(
            f"{found(state)}, and Secure Boot is on", _NEEDED,
            "the kernel loads a new module only once a person at the console has enrolled its key",
            f"{update}, with mokutil at the console; or turn Secure Boot off",
        )  # fmt: skip
    return None


def reboot_needed(state: BootstrapState) -> Finding:
    """The driver is installed, and the host was not rebooted since."""
    return _error(
        f"a new driver is installed, and {state.driver or 'none'} runs",
        "a boot since the driver came", "a kernel module is loaded at boot",
        "sudo reboot, then run again; or have bootstrap do it: sparkwright bootstrap INVENTORY "
        "--reboot, or --data bootstrap_reboot=True",
    )  # fmt: skip


def _error(observed: str, expected: str, reason: str, remedy: str) -> Finding:
    return error("bootstrap-driver", observed, expected, reason, remedy, HOSTS)
