"""Judging a fabric: every check, all findings at once."""

from __future__ import annotations

from sparkwright.checks.fabric import host_checks, pair_checks
from sparkwright.checks.fabric.check import Check, Fabric
from sparkwright.findings.finding import Finding, errors_first

CHECKS: tuple[Check, ...] = (*host_checks.CHECKS, *pair_checks.CHECKS)


def judge(fabric: Fabric) -> list[Finding]:
    """Everything that is wrong with the hosts of a fabric and between them, errors first."""
    return errors_first(finding for check in CHECKS for finding in check.findings(fabric))
