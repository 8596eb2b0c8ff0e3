"""The driver: its minimum version, and obstacles to an upgrade."""

from sparkwright.bootstrap.box import Box, Kind
from sparkwright.bootstrap.findings import finding
from sparkwright.checks.host.hardware import LEAST_DRIVER, driver_symptoms
from sparkwright.checks.host.remedies import install
from sparkwright.findings.finding import Finding
from sparkwright.host.bootstrap.inspection import BootstrapState


def is_new_enough(state: BootstrapState) -> bool:
    """Return whether a driver answers that preflight accepts for serving."""
    gpus, distribution = state.observed.gpu, state.observed.distribution
    return not any(driver_symptoms(gpus, LEAST_DRIVER, distribution))


def obstacle(box: Box, state: BootstrapState) -> Finding | None:
    """Return why no driver is installed on this host; None if one may be installed."""
    causes = {
        "driver-of-dgx-os": box.kind is Kind.DGX,
        "driver-of-gb10": box.kind is Kind.GB10,
        "driver-without-gpu": not state.nvidia,
        "driver-of-installer": state.driver_installer,
        # From Ubuntu 26.04 on Canonical signs the modules (GLM-5.3-Flash-EXL3#47).
        "driver-under-secure-boot": state.secure_boot
        and (box.kind, box.major) != (Kind.UBUNTU, 26),
    }
    cause = next((cause for cause, applies in causes.items() if applies), None)
    if cause is None:
        return None
    return finding(
        cause,
        driver=f"driver {state.driver}" if state.driver else "no driver that answers",
        needed=f"NVIDIA driver >= {LEAST_DRIVER}",
        update=install("driver", state.observed.distribution),
    )
