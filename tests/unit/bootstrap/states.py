"""Hosts before their bootstrap, and plans that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkwright.bootstrap.decide import Decision, decide
from sparkwright.config.bootstrap import PackageSource
from sparkwright.host.bootstrap.inspection import BootstrapState
from sparkwright.host.observation import Distribution
from tests.unit.builders import RTX, SPARK, plan

DRIVER = "580.95.05"
#: Bare boxes: a GPU with its driver, and nothing else.
DGX = BootstrapState(
    user="me", architecture="aarch64", passwordless=True, apt=True, docker=True, compose=True,
    toolkit=True, driver=DRIVER, gb10=True, nvidia=True, codename="noble",
    distribution=Distribution("ubuntu", "24.04", dgx=True), packages=("nv-docker-options",),
    networks=("192.168.1.21/24",),
)  # fmt: skip
UBUNTU = BootstrapState(
    user="me", architecture="x86_64", passwordless=True, apt=True, driver=DRIVER, nvidia=True,
    codename="noble", distribution=Distribution("ubuntu", "24.04"), networks=("192.168.1.22/24",),
)  # fmt: skip
JAMMY = replace(UBUNTU, codename="jammy", distribution=Distribution("ubuntu", "22.04"))
TRIXIE = replace(UBUNTU, codename="trixie", distribution=Distribution("debian", "13"))
BOOKWORM = replace(UBUNTU, codename="bookworm", distribution=Distribution("debian", "12"))
GB10 = replace(UBUNTU, architecture="aarch64", gb10=True)
ALL = (
    *("sudoers", "docker", "nvidia-container-toolkit", "driver", "docker-group", "earlyoom"),
    *("unattended-upgrades", "swap", "firewall", "clocks"),
)


def decided(
    state: BootstrapState,
    *steps: str,
    sources: Mapping[str, Mapping[str, Any]] | None = None,
    address: str | None = None,
) -> Decision:
    """What is left to do on a host that is asked for these steps."""
    given = {key: PackageSource(**one) for key, one in (sources or {}).items()}
    services = SPARK if state.gb10 else RTX
    return decide(
        plan(services, bootstrap=steps, bootstrap_sources=given),
        state,
        [address] if address else [],
    )
