"""Decide which steps bootstrap still has to do on a host, or why it can't."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from sparkwright.bootstrap import steps
from sparkwright.bootstrap.box import box_of
from sparkwright.bootstrap.findings import finding
from sparkwright.bootstrap.judged import Judged
from sparkwright.bootstrap.package_sources import every_package
from sparkwright.bootstrap.steps import StepPlan
from sparkwright.config.bootstrap_settings import Packaged, Step
from sparkwright.config.settings import HostSettings
from sparkwright.findings.finding import Finding, errors
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.host.observe import ObservationRequest
from sparkwright.plan.plan import HostPlan

#: Findings of preflight that are gone once a step is done.
CURES: dict[str, frozenset[str]] = {
    "docker": frozenset({"docker", "docker-compose"}),
    "nvidia-container-toolkit": frozenset({"nvidia-container-toolkit"}),
    "driver": frozenset({"nvidia-driver"}),
    "docker-group": frozenset({"docker-user"}),
}


@dataclass(frozen=True)
class Decision:
    """Bootstrap steps to do on a host.

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
        names = [*(step.name for step in self.steps), *(["driver"] if self.reboot else [])]
        return frozenset[str]().union(*(CURES.get(name, frozenset()) for name in names))


def request_of(settings: HostSettings) -> BootstrapRequest:
    """Files and packages to inspect on a host, whichever type of machine it is."""
    names = ["docker.io", "docker-ce"]
    for step in get_args(Packaged):
        source = settings.bootstrap_sources.get(step)
        names += [*every_package(step), *((source and source.packages) or ())]
    texts = tuple(path for files in steps.FILES.values() for path in files)
    return BootstrapRequest(ObservationRequest(texts=texts), tuple(dict.fromkeys(names)))


def decide(plan: HostPlan, state: BootstrapState, addresses: Sequence[str]) -> Decision:
    """The steps that are asked for and not done.

    Args:
        addresses: the host's own in the LAN, as numbers.
    """
    asked, user = plan.settings.bootstrap, state.observed.user
    if state.observed.sudo is not None:
        return Decision(findings=(finding("sudo", user=user, sudo=state.observed.sudo),))
    box = box_of(state)
    if isinstance(box, Finding):
        return Decision(findings=(box,))
    if not state.passwordless and "sudoers" not in asked:
        return Decision(findings=(finding("password", user=user),))
    judged = Judged(plan, box, state, tuple(addresses))
    results = [result for name in get_args(Step) if name in asked for result in judged.of(name)]
    findings = tuple(result for result in results if isinstance(result, Finding))
    if errors(findings):
        return Decision(findings=findings)
    todo = tuple(result for result in results if isinstance(result, StepPlan))
    installs = any(step.name == "driver" for step in todo)
    reboot = "driver" in asked and (installs or judged.waits_for_reboot)
    return Decision(todo, reboot, findings)
