"""The smoke tests on the controller's side: requests from the plan, and results. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwright.checks.smoke.result import Smoke
from sparkwright.host.service import CheckResult


def smoke_of(checks: Sequence[CheckResult]) -> Smoke:
    """The result of one service's checks."""
    return Smoke(
        passed=sum(check.ok for check in checks),
        total=len(checks),
        seconds=sum(check.seconds for check in checks),
        failures=tuple(f"{check.name}: {check.detail}" for check in checks if not check.ok),
        checks=tuple(checks),
    )
