"""Preflight: every check of a host before the first change on the host."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sparkwright.checks.configuration import check_host
from sparkwright.checks.host import capacity as memory
from sparkwright.checks.host import docker, hardware, system
from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Checks
from sparkwright.findings.finding import Finding
from sparkwright.host.observe import Observation
from sparkwright.plan.desired import Desired

CHECKS = Checks[HostFacts](
    [Path(__file__).with_name("checks.yaml")], [system, hardware, docker, memory]
)


def judge(desired: Desired, observed: Observation, now: float) -> list[Finding]:
    """Return every finding on a host, errors first; ``new_violations`` returns violations of rules.

    Args:
        now: the controller's clock at the time of the observation, seconds since the epoch.
    """
    findings = CHECKS.findings(HostFacts(desired, observed, now))
    return [finding.on(desired.plan.host) for finding in findings]


def new_violations(
    desired: Desired, observed: Observation, earlier: Sequence[Finding]
) -> Iterator[Finding]:
    """Return violations that only the host's own state reveals. Silenced rules are left out."""
    hardware = memory.hardware_of(HostFacts(desired, observed, observed.time))
    reported = {(finding.id, finding.subject.key) for finding in earlier}
    for finding in check_host(desired.plan, desired.catalog, hardware):
        if finding.silenced is None and (finding.id, finding.subject.key) not in reported:
            silence = f"silenced = {{{finding.id!r}: 'why it does not apply here'}}"
            remedy = f"{finding.remedy}; or silence this rule on the service: {silence}"
            yield replace(finding, remedy=remedy)
