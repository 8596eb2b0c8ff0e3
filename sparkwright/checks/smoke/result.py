"""Result of the short smoke test of a service."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwright.host.lib.records import dataclass
from sparkwright.host.service import CheckResult


@dataclass(frozen=True)
class Smoke:
    """Counts of a service's checks, their seconds, and the failed checks."""

    passed: int
    total: int
    seconds: float
    failures: tuple[str, ...]
    checks: tuple[CheckResult, ...] = ()

    @classmethod
    def of(cls, checks: Sequence[CheckResult]) -> Smoke:
        """Make the result from a service's checks."""
        return cls(
            passed=sum(check.ok for check in checks),
            total=len(checks),
            seconds=sum(check.seconds for check in checks),
            failures=tuple(f"{check.name}: {check.detail}" for check in checks if not check.ok),
            checks=tuple(checks),
        )
