"""The smoke tests on the controller's side: requests from the plan, and results. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwright.checks.smoke.result import Smoke
from sparkwright.config.settings import EVERY_ADDRESS, LOOPBACK
from sparkwright.engines import engine, metric_names
from sparkwright.host.release import CheckResult, SmokeRequest
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.release import Release
from sparkwright.tls.host import certificate_place


def smoke_of(checks: Sequence[CheckResult]) -> Smoke:
    """The result of one service's checks."""
    return Smoke(
        passed=sum(check.ok for check in checks),
        total=len(checks),
        seconds=sum(check.seconds for check in checks),
        failures=tuple(f"{check.name}: {check.detail}" for check in checks if not check.ok),
        checks=tuple(checks),
    )


def own_address(service: ServicePlan) -> str:
    """Where a service is reached from its own host."""
    return _local(service.bind)


def _local(bind: str) -> str:
    return LOOPBACK if bind in EVERY_ADDRESS else bind


def smoke_request(release: Release, *, warm_ups: int) -> SmokeRequest:
    """What the host's program must know of a service."""
    service = release.service
    return SmokeRequest(
        name=service.name,
        unit=service.unit,
        address=own_address(service),
        port=service.port,
        secrets=release.secrets,
        served_names=tuple(service.served_names),
        boot_seconds=service.boot_seconds,
        first_answer_seconds=service.first_answer_seconds,
        warm_ups=warm_ups,
        proxy=(_local(service.proxy.bind), service.client_port) if service.proxy else None,
        certificate=certificate_place(release.home) if service.proxy else None,
        speculates="speculative_config" in dict(service.arguments),
        thinking=service.smoke.thinking,
        max_tokens=service.smoke.max_tokens,
        follower=service.follower,
        engine=service.engine,
        metric_names=metric_names(),
        compiled=engine(service.engine).probes.compiled,
    )
