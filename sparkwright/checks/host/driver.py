"""The NVIDIA driver: present, answering, and new enough for CUDA 13."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.catalog.gpus import driver_major
from sparkwright.checks.host import remedies
from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.host.lib.gpu import Gpus
from sparkwright.host.observation import Distribution

LEAST_DRIVER = 580
_ANSWERS = "a driver that answers"


@check("nvidia-driver")
def _driver(host: HostFacts) -> Iterator[Symptom]:
    if host.plan.services:
        yield from symptoms(host.observed.gpu, LEAST_DRIVER, host.observed.distribution)


def symptoms(smi: Gpus, least: int, distribution: Distribution) -> Iterator[Symptom]:
    """Faults of a driver, for a host that needs this major version.

    Args:
        distribution: the host's, for the remedy.
    """
    update = remedies.driver(distribution)
    needed = Symptom("", f"NVIDIA driver >= {least}", remedy=update, check="nvidia-driver")
    silent = replace(needed, expected=_ANSWERS, source="sparkwright")
    if not smi.found:
        yield replace(needed, observed="nvidia-smi is not installed")
    elif smi.code is None:
        yield replace(
            silent,
            observed=f"nvidia-smi hangs: {smi.said}",
            reason="a hanging nvidia-smi means a wedged driver or GPU",
            remedy="reboot the host; look for 'NVRM: Xid' in 'sudo dmesg'",
        )
    elif smi.code != 0:
        message = (smi.said.strip().splitlines() or ["no message"])[0]
        yield replace(
            silent,
            observed=f"nvidia-smi exits with {smi.code}: {message}",
            reason="the kernel module and nvidia-smi do not match, or the module is not loaded",
            remedy=f"reboot after a driver or kernel update; else {update}",
        )
    elif not smi.gpus:
        yield replace(
            silent,
            observed="nvidia-smi lists no GPU",
            expected="a GPU",
            reason="there is nothing to serve on",
            remedy="look for the GPU with 'lspci | grep -i nvidia'",
        )
    elif any((driver_major(gpu.driver) or 0) < least for gpu in smi.gpus):
        yield replace(needed, observed=f"driver {smi.gpus[0].driver or 'unknown'}")
