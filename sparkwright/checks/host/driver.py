"""The NVIDIA driver: present, answering, and new enough for CUDA 13."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog.gpu import driver_major
from sparkwright.checks.host import remedies
from sparkwright.checks.host.facts import CARDS, HostCheck, error
from sparkwright.findings.finding import Finding
from sparkwright.host.lib.gpu import Gpus
from sparkwright.host.observation import Distribution

LEAST_DRIVER = 580
_NAME = "nvidia-driver"
_ANSWERS = "a driver that answers"


def check(host: HostCheck) -> Iterator[Finding]:
    """The driver, by what nvidia-smi says."""
    yield from findings(host.observed.gpu, LEAST_DRIVER, host.observed.distribution)


def findings(smi: Gpus, least: int, distribution: Distribution) -> Iterator[Finding]:
    """What is wrong with a driver.

    Args:
        least: the major version that is needed.
        distribution: what the host runs, for the remedy.
    """
    update = remedies.driver(distribution)
    needed = f"NVIDIA driver >= {least}"
    reason = "the images are built for CUDA 13, which needs driver 580"
    if not smi.found:
        yield error(_NAME, "nvidia-smi is not installed", needed, reason, update, CARDS)
    elif smi.code is None:
        yield error(
            _NAME, f"nvidia-smi hangs: {smi.said}", _ANSWERS,
            "a hanging nvidia-smi means a wedged driver or GPU",
            "reboot the host; look for 'NVRM: Xid' in 'sudo dmesg'",
        )  # fmt: skip
    elif smi.code != 0:
        said = smi.said.strip().splitlines()
        yield error(
            _NAME,
            f"nvidia-smi exits with {smi.code}: {said[0] if said else 'no message'}", _ANSWERS,
            "the kernel module and nvidia-smi do not match, or the module is not loaded",
            f"reboot after a driver or kernel update; else {update}",
        )  # fmt: skip
    elif not smi.gpus:
        yield error(
            _NAME, "nvidia-smi lists no GPU", "a GPU", "there is nothing to serve on",
            "look for the GPU with 'lspci | grep -i nvidia'",
        )  # fmt: skip
    elif any((driver_major(gpu.driver) or 0) < least for gpu in smi.gpus):
        found = f"driver {smi.gpus[0].driver or 'unknown'}"
        yield error(_NAME, found, needed, reason, update, CARDS)
