"""Preflight: every check of a host before anything is changed on it."""

from __future__ import annotations

from pathlib import Path

from sparkwright.checks.host import (
    disks,
    docker,
    driver,
    exposed,
    gpu,
    haproxy,
    memory,
    ports,
    system,
    units,
    weights,
)
from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Checks
from sparkwright.findings.finding import Finding
from sparkwright.host.observation import Observation
from sparkwright.plan.desired import Desired

CHECKS = Checks[HostFacts](
    [Path(__file__).with_name("checks.yaml")],
    [system, driver, gpu, docker, haproxy, exposed, disks, memory, ports, units, weights],
)


def judge(desired: Desired, observed: Observation, now: float) -> list[Finding]:
    """Every finding of a host, errors first; violations of rules are ``hardware.new_violations``.

    Args:
        now: the controller's clock at the time of the observation, seconds since the epoch.
    """
    findings = CHECKS.findings(HostFacts(desired, observed, now))
    return [finding.on(desired.plan.host) for finding in findings]
