"""Smoke: over SSH, bounded: health, every alias, the key, and a real generation."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from sparkwright.host.smoke import check as program
from sparkwright.smoke import smoke_of, smoke_request


def smoke() -> None:
    """Ask each service for real answers; a failure shows the service's last journal lines."""
    steps.verify("Smoke: health, models, key, generation", _look)


def _look(host: Host, run: site.HostRun) -> Sequence[str]:
    services = [smoke_request(release, warm_ups=0) for release in run.wanted.releases]
    longest = max(
        (service["boot_seconds"] + 4 * service["first_answer_seconds"] for service in services),
        default=0,
    )
    answers = remote.ask(
        host, "sparkwright-smoke", program, {"services": services}, timeout=longest + 60
    )
    wrong: list[str] = []
    for name, answer in answers.items():
        verdict = smoke_of(answer)
        run.smoke[name] = verdict
        if verdict.failures:
            wrong.extend(
                f"service {name} fails its smoke test: {failure}" for failure in verdict.failures
            )
            wrong.extend(f"    journal: {line}" for line in answer["journal"])
    return wrong
