"""What bootstrap will do on a host: the steps that are asked for and not done yet; or why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from sparkwright.bootstrap import steps
from sparkwright.bootstrap.box import Box, Kind, box_of
from sparkwright.bootstrap.findings import error
from sparkwright.bootstrap.judged import Judged
from sparkwright.bootstrap.sources import packages_of
from sparkwright.bootstrap.steps import StepPlan
from sparkwright.config.bootstrap import Packaged, Step
from sparkwright.config.settings import HostSettings
from sparkwright.findings.finding import Finding, errors
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.plan.plan import HostPlan

#: Findings of preflight that are gone once a step is done.
CURES: dict[str, frozenset[str]] = {
    "docker": frozenset({"docker", "docker-compose"}),
    "nvidia-container-toolkit": frozenset({"nvidia-container-toolkit"}),
    "driver": frozenset({"nvidia-driver"}),
    "docker-group": frozenset({"docker-user"}),
}
#: Every box, for the question which comes before its answer.
_BOXES = (
    *(Box(Kind.DGX, 24, "noble", one) for one in ("arm64", "amd64")),
    Box(Kind.GB10, 24, "noble", "arm64"),
    *(Box(Kind.UBUNTU, major, "", "amd64") for major in (22, 24)),
    *(Box(Kind.DEBIAN, major, "", "amd64") for major in (12, 13)),
)
_FILES = {**steps.EARLYOOM, **steps.UPDATES, **steps.SWAP, **steps.CLOCK_CAP}


@dataclass(frozen=True)
class Decision:
    """What will be done on a host.

    Attributes:
        steps: in their order; nothing where everything is as asked for.
        reboot: whether the driver needs a reboot after them.
        findings: why something is not done; with an error, nothing is.
    """

    steps: tuple[StepPlan, ...] = ()
    reboot: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def cures(self) -> frozenset[str]:
        """Findings of preflight that these steps answer."""
        names = [*(one.name for one in self.steps), *(["driver"] if self.reboot else [])]
        return frozenset[str]().union(*(CURES.get(name, frozenset()) for name in names))


def request_of(settings: HostSettings) -> BootstrapRequest:
    """What has to be looked at, whichever box it is."""
    names = ["docker.io", "docker-ce"]
    for step in get_args(Packaged):
        for box in _BOXES:
            found = packages_of(step, box, settings.bootstrap_sources.get(step))
            names += found.names if found else ()
    return BootstrapRequest(tuple(dict.fromkeys(names)), tuple(_FILES))


def decide(plan: HostPlan, state: BootstrapState, addresses: Sequence[str]) -> Decision:
    """The steps that are asked for and not done.

    Args:
        addresses: the host's own in the LAN, as numbers.
    """
    asked = plan.settings.bootstrap
    if state.sudo is not None:
        return Decision(findings=(_sudo(state),))
    box = box_of(state)
    if isinstance(box, Finding):
        return Decision(findings=(box,))
    if not state.passwordless and "sudoers" not in asked:
        return Decision(findings=(_password(state),))
    judged = Judged(plan, box, state, tuple(addresses))
    found: list[StepPlan] = []
    findings: list[Finding] = []
    for one in (one for name in get_args(Step) if name in asked for one in judged.of(name)):
        if isinstance(one, Finding):
            findings.append(one)
        else:
            found.append(one)
    if errors(findings):
        return Decision(findings=tuple(findings))
    installs = any(one.name == "driver" for one in found)
    reboot = "driver" in asked and (installs or judged.waits_for_reboot)
    return Decision(tuple(found), reboot, tuple(findings))


def _sudo(state: BootstrapState) -> Finding:
    return error(
        "sudo", f"user {state.user}: {state.sudo}", "a user who can become root",
        "bootstrap installs packages and writes files of the system's",
        "sparkwright bootstrap INVENTORY --password asks for sudo's password once",
    )  # fmt: skip


def _password(state: BootstrapState) -> Finding:
    return error(
        "bootstrap-sudo", f"sudo asks {state.user} for a password",
        "sudo without a password, before anything else is installed",
        "pyinfra's operations would put the password into a command line, which every user of the "
        "host can read",
        'put "sudoers" into bootstrap, or let sudo ask for none by hand (docs/install.md, sudo)',
    )  # fmt: skip
