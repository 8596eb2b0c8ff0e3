"""Our units on the host that the inventory has no service for any more."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.host.facts import HostCheck, warning
from sparkwright.findings.finding import Finding
from sparkwright.plan.services import OWN_UNITS


def check(host: HostCheck) -> Iterator[Finding]:
    """Units of services that were taken out of the inventory."""
    planned = {service.unit for service in host.plan.services}
    for unit in host.observed.unit_files:
        if unit not in planned and unit not in OWN_UNITS:
            name = unit.removeprefix("sparkwright-").removesuffix(".service")
            yield warning(
                "stray-service",
                f"{unit} is on the host, but the host has no service {name!r} any more",
                "services as the inventory has them",
                "it may hold the port, the GPU and memory that others count on",
                f"sudo systemctl disable --now {unit} && sudo rm /etc/systemd/system/{unit} "
                f"&& sudo rm -r {host.plan.settings.services_root}/services/{name}",
            )
