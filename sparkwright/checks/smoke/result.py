"""The short smoke test's result on one service."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwright.host.service import CheckResult


@dataclass(frozen=True)
class Smoke:
    """How many checks of a service passed, in how many seconds, and which failed."""

    passed: int
    total: int
    seconds: float
    failures: tuple[str, ...]
    checks: tuple[CheckResult, ...] = ()
