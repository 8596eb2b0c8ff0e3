"""Checks of the system: sudo, systemd, Python, kernel, clock, paths, ports, HAProxy, units."""

import re
from collections.abc import Iterator
from shlex import quote

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.plan.changes import OWN_UNITS, is_ours

#: Seconds that a host's clock may differ from the controller's clock before TLS fails and logs
#: mislead.
CLOCK_TOLERANCE = 30
LEAST_HAPROXY = (2, 5)


@check("sudo", "systemd", "wsl", "python", "kernel", "clock")
def _system(host: HostFacts) -> Iterator[Symptom]:
    observed, kernel = host.observed, host.observed.kernel
    if observed.sudo is not None:
        yield Symptom("sudo", user=observed.user, answer=observed.sudo)
    if observed.systemd_version is None:
        yield Symptom("systemd")
    elif observed.system_state == "degraded":
        yield Symptom("systemd", "degraded")
    if "microsoft" in kernel.lower():
        yield Symptom("wsl", kernel=kernel)
    major, minor, *_ = observed.python
    if (major, minor) < (3, 10):
        yield Symptom("python", major=major, minor=minor)
    version = re.match(r"(\d{1,9})\.(\d{1,9})", kernel)
    if version and (int(version[1]), int(version[2])) < (5, 15):
        yield Symptom("kernel", kernel=kernel)
    skew = observed.time - host.now
    if abs(skew) > CLOCK_TOLERANCE:
        yield Symptom("clock", skew=skew, tolerance=CLOCK_TOLERANCE)
    elif not observed.clock_synchronised:
        yield Symptom("clock", "drifts")


@check("not-a-directory", "exposed-directory")
def _directories(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    for setting in ("models_root", "services_root"):
        root = getattr(settings, setting)
        disk = host.observed.disks.get(root)
        if disk and disk.obstacle:
            away = f"{quote(disk.obstacle)} {quote(disk.obstacle + '.old')}"
            yield Symptom(obstacle=disk.obstacle, root=root, setting=setting, away=away)
    for directory in host.observed.exposed:
        yield Symptom("exposed-directory", directory=directory, settings=settings)


@check("no-rank")
def _former_replicas(host: HostFacts) -> Iterator[Symptom]:
    """Check for followers whose host serves the same service without ranks: no program on this host
    would query the head.
    """
    for service in host.plan.services:
        state = host.observed.services.get(service.name)
        if service.follower and state and state.current and not state.rank:
            yield Symptom(service=service.name, host=host.plan.host)


@check("haproxy")
def _haproxy(host: HostFacts) -> Iterator[Symptom]:
    if (package := host.observed.packages.get("haproxy")) is None:
        return
    version = package.version or package.candidate
    if version and _number(version) < LEAST_HAPROXY:
        later = "" if package.version else " would be installed"
        yield Symptom("haproxy", "old", version=version, later=later)
    elif not package.version and package.unreachable:
        yield Symptom(obstacle=package.unreachable)


def _number(version: str) -> tuple[int, int]:
    number = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    return (int(number[1]), int(number[2])) if number else LEAST_HAPROXY


@check("port")
def _ports(host: HostFacts) -> Iterator[Symptom]:
    """Ports of services and of the fleet's address that other programs hold."""
    settings = host.plan.settings
    users = {settings.address.port: "the address of all models"} if settings.address else {}
    if settings.address and (page := settings.address.open_webui):
        users[page.port] = "Open WebUI"
    for service in host.plan.services:
        users[service.port] = f"service {service.name}"
    for port, user in sorted(users.items()):
        listener = host.observed.ports.get(port)
        if listener is None or is_ours(listener, host.observed):
            continue
        if listener.container is None:
            yield Symptom(port=port, user=user, holder=listener.command)
        else:
            case = "taken-over" if settings.take_over else "container"
            holder = listener.container.partition(" ")[0]
            yield Symptom("port", case, port=port, user=user, holder=f"the container {holder}")


@check("stray-service")
def _stray(host: HostFacts) -> Iterator[Symptom]:
    """Units of sparkwright without a service in the inventory."""
    planned = {service.unit for service in host.plan.services}
    for unit in host.observed.unit_files:
        if unit not in planned and unit not in OWN_UNITS:
            name = unit.removeprefix("sparkwright-").removesuffix(".service")
            yield Symptom(unit=unit, name=name, root=host.plan.settings.services_root)
