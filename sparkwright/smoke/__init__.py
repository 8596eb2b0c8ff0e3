"""Judging what a service answered: pure, so that every verdict can be tested without a server."""

from __future__ import annotations

from typing import Any

from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.release import Release
from sparkwright.smoke.result import Check, Smoke


def smoke_of(answer: dict[str, Any]) -> Smoke:
    """A host program's answer for one service as a verdict."""
    checks = answer["checks"]
    failures = tuple(f"{check['name']}: {check['detail']}" for check in checks if not check["ok"])
    return Smoke(
        passed=sum(bool(check["ok"]) for check in checks),
        total=len(checks),
        seconds=sum(float(check["seconds"]) for check in checks),
        failures=failures,
        checks=tuple(
            Check(str(check["name"]), bool(check["ok"]), float(check["seconds"]), check["detail"])
            for check in checks
        ),
    )


def own_address(service: ServicePlan) -> str:
    """Where a service is reached from its own host."""
    return _from_here(service.bind)


def _from_here(bind: str) -> str:
    return "127.0.0.1" if bind in ("0.0.0.0", "::", "*") else bind


def smoke_request(release: Release, *, warm_ups: int) -> dict[str, Any]:
    """What the host program needs to know of a service."""
    service = release.service
    return {
        "name": service.name,
        "unit": service.unit,
        "address": own_address(service),
        "port": service.port,
        "secrets": release.secrets,
        "served_names": list(service.served_names),
        "boot_seconds": service.boot_seconds,
        "first_answer_seconds": service.first_answer_seconds,
        "warm_ups": warm_ups,
        "door": [_from_here(service.door.bind), service.client_port] if service.door else None,
        "speculates": "speculative_config" in dict(service.arguments),
        "thinking": service.smoke.thinking,
        "max_tokens": service.smoke.max_tokens,
    }
