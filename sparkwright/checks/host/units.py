"""Our units on the host that the inventory has no service for any more."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.plan.changes import OWN_UNITS


@check("stray-service")
def _stray(host: HostFacts) -> Iterator[Symptom]:
    planned = {service.unit for service in host.plan.services}
    for unit in host.observed.unit_files:
        if unit not in planned and unit not in OWN_UNITS:
            name = unit.removeprefix("sparkwright-").removesuffix(".service")
            yield Symptom(
                f"{unit} is on the host, but the host has no service {name!r} any more",
                "services as the inventory has them",
                remedy=f"sudo systemctl disable --now {unit} && sudo rm /etc/systemd/system/{unit} "
                f"&& sudo rm -r {host.plan.settings.services_root}/services/{name}",
            )
