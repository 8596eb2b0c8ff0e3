"""Hosts before their bootstrap, and plans with bootstrap steps."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sparkwright.bootstrap.decide import Decision, decide
from sparkwright.config.bootstrap_settings import PackageSource
from sparkwright.host.bootstrap.inspection import BootstrapState
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.observe import Distribution, Observation
from tests.unit.builders import RTX, SPARK, gpus, plan, probe

#: Values of ``compose`` and ``toolkit`` in an observation: a program that answers, and no program.
_ANSWERED = {"installed": True, "code": 0, "err": "", "out": "1.17.8\n"}
_ABSENT = {"installed": False, "code": None, "err": "", "out": ""}


def but(state: BootstrapState, **changes: Any) -> BootstrapState:
    """The host with changes of its state, of its observation, or of its installed packages."""
    seen: dict[str, Any] = encode(state.observed)
    if "driver" in changes:
        driver = changes.pop("driver")
        seen["gpu"] = gpus(f"GPU, 12.0, {driver}, 32607 MiB\n" if driver else "")
    for program in ("compose", "toolkit"):
        if program in changes:
            seen[program] = _ANSWERED if changes.pop(program) else _ABSENT
    if "docker" in changes:
        seen["docker_found"] = changes.pop("docker")
    if "swap" in changes:
        seen["memory"] = {**seen["memory"], "swap": changes.pop("swap")}
    own = {field.name for field in fields(BootstrapState)}
    seen |= {name: encode(changes.pop(name)) for name in list(changes) if name not in own}
    return replace(state, observed=decode(Observation, seen), **changes)


#: Bare boxes: a GPU with its driver, without further software.
DGX = but(
    BootstrapState(
        probe(user="me"), passwordless=True, apt=True, gb10=True, nvidia=True, codename="noble",
        packages=("nv-docker-options",), networks=("192.168.1.21/24",),
    ),
    distribution=Distribution("ubuntu", "24.04", dgx=True),
)  # fmt: skip
UBUNTU = but(
    DGX, architecture="x86_64", driver="580.95.05", docker=False, compose=False, toolkit=False,
    gb10=False, packages=(), networks=("192.168.1.22/24",),
    distribution=Distribution("ubuntu", "24.04"),
)  # fmt: skip
JAMMY = but(UBUNTU, codename="jammy", distribution=Distribution("ubuntu", "22.04"))
RESOLUTE = but(UBUNTU, codename="resolute", distribution=Distribution("ubuntu", "26.04"),
               secure_boot=True)  # fmt: skip
TRIXIE = but(UBUNTU, codename="trixie", distribution=Distribution("debian", "13"))
BOOKWORM = but(UBUNTU, codename="bookworm", distribution=Distribution("debian", "12"))
GB10 = but(UBUNTU, architecture="aarch64", gb10=True)
ALL = (
    *("sudoers", "docker", "nvidia-container-toolkit", "driver", "docker-group", "earlyoom"),
    *("unattended-upgrades", "swap", "firewall", "clocks", "watchdog"),
)


def decided(
    state: BootstrapState,
    *steps: str,
    sources: Mapping[str, Mapping[str, Any]] | None = None,
    address: str | None = None,
) -> Decision:
    """Remaining steps on a host, of the given steps."""
    given = {key: PackageSource(**item) for key, item in (sources or {}).items()}
    services = SPARK if state.gb10 else RTX
    return decide(
        plan(services, bootstrap=steps, bootstrap_sources=given),
        state,
        [address] if address else [],
    )
