"""Smoke tests: real answers of the services on a host, or the host fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.answers import invalid, of_each
from sparkwright.facts.asking import ask
from sparkwright.host.contracts.smoke import SmokeAnswer, SmokeRequest, SmokeRequests
from sparkwright.host.smoke import check as program
from sparkwright.operations.changing import Commands, look, operation
from sparkwright.smoke import smoke_of
from sparkwright.smoke.result import Smoke

_LABEL = "sparkwright-check"


@operation()
def answers(
    services: Sequence[SmokeRequest], *, judged: Callable[[str, Smoke], None] | None = None
) -> Commands:
    """Ask each service for health, its names, the key and a real generation. Changes nothing.

    Over SSH, from the host itself, within each service's deadlines. A failure shows the service's
    last journal lines.

    Args:
        judged: called with the result of each service, by name.
    """

    def inspect(host: Host) -> Sequence[str]:
        deadlines = [one.boot_seconds + 4 * one.first_answer_seconds for one in services]
        found = ask(
            host,
            program,
            SmokeRequests(tuple(services)),
            dict[str, SmokeAnswer],
            timeout=max(deadlines, default=0) + 60,
            secrets=False,
        )
        of_each(_LABEL, [one.name for one in services], found)
        wrong: list[str] = []
        for name, answer in found.items():
            if not answer.checks:
                invalid(_LABEL, f"no check of service {name}")
            result = smoke_of(answer.checks)
            if judged:
                judged(name, result)
            if result.failures:
                wrong += [f"service {name} fails its smoke test: {one}" for one in result.failures]
                wrong += [f"    journal: {line}" for line in answer.journal]
        return wrong

    if not services:
        ctx_host.get().noop("no service of this host")
        return
    yield from look(inspect)
