"""Judging a host before anything is changed on it: every check, all findings at once."""

from __future__ import annotations

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
from sparkwright.checks.host.facts import HostCheck
from sparkwright.findings.finding import Finding, errors_first
from sparkwright.host.observation import Observation
from sparkwright.plan.desired import Desired

#: What a host with services must have; one with a load balancer alone needs neither GPU nor Docker.
_SERVING = (driver.check, gpu.check, docker.check, gpu.check_architecture)
_EVERY = (
    haproxy.check,
    exposed.check,
    disks.check,
    memory.check,
    ports.check,
    units.check,
    system.check,
    weights.check,
)


def judge(desired: Desired, observed: Observation, now: float) -> list[Finding]:
    """Every finding of a host, errors first; violations of rules are ``hardware.new_violations``.

    Args:
        now: the controller's clock at the time of the observation, seconds since the epoch.
    """
    host = HostCheck(desired, observed, now)
    serving = _SERVING if desired.plan.services else ()
    checks = (system.check_sudo, *serving, *_EVERY)
    return errors_first(
        finding.on(desired.plan.host) for check in checks for finding in check(host)
    )
