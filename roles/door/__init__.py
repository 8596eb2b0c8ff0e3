"""Door: HAProxy before the services of a host, and before the replicas of a fleet.

Made here where nothing serves yet, or nothing is to be switched. Otherwise a door is part of the
switch (roles/serving): it changes between the stop and the start, and goes back with the service.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.contents import unwritten
from roles.serving.state import rolls
from sparkwright.host.proxy import configure as program
from sparkwright.host.proxy import health as health_program
from sparkwright.proxy.haproxy import UNIT, Gateway, kept_servers, key_file, render_gateway
from sparkwright.proxy.proxies import HEALTH_UNIT, health_file, health_unit

_UNITS = "/etc/systemd/system"


def door() -> None:
    """Have the doors that the plan wants, and no other."""
    steps.step("Door: HAProxy, health", _pending, _act)


def files(run: site.HostRun) -> dict[str, tuple[str, int]]:
    """Every file of the doors: text and mode, by path."""
    gateway = run.gateway
    if gateway is None:
        return {}
    rendered = render_gateway(gateway)
    found = {
        gateway.config: (rendered.config, 0o644),
        gateway.waiting_room: (rendered.waiting_room, 0o644),
        gateway.keys: (key_file([run.key]), 0o600),
        f"{_UNITS}/{UNIT}": (rendered.unit, 0o644),
    }
    health = health_file(run.plan)
    if health:
        found |= {
            f"{gateway.home}/health.json": (health, 0o644),
            f"{gateway.home}/health.py": (inspect.getsource(health_program), 0o644),
            f"{_UNITS}/{HEALTH_UNIT}": (health_unit(run.plan), 0o644),
        }
    return found


def units(run: site.HostRun) -> list[str]:
    """The units of the doors."""
    if run.gateway is None:
        return []
    return [UNIT, *([HEALTH_UNIT] if health_file(run.plan) else [])]


def ports(run: site.HostRun) -> list[int]:
    """The ports that clients use."""
    return [door.port for door in run.gateway.doors] if run.gateway else []


def _pending(run: site.HostRun) -> Sequence[str]:
    return [] if rolls(run) else pending(run)


def pending(run: site.HostRun) -> list[str]:
    """What of the doors is not as planned."""
    wanted = files(run)
    if not wanted:
        there = UNIT in run.seen.unit_files
        return ["remove the door"] if there else []
    found = unwritten(run, wanted)
    if _free(run):
        found += [f"start {unit}" for unit in units(run) if not _active(run, unit)]
    return found


def _active(run: site.HostRun, unit: str) -> bool:
    return run.seen.units.get(unit, {}).get("ActiveState") == "active"


def _free(run: site.HostRun) -> bool:
    """Whether nothing else listens where the doors shall: a service may not be switched yet."""
    listeners = [run.seen.ports.get(str(port)) for port in ports(run)]
    return all(one is None or UNIT in one.cgroup for one in listeners)


def request(run: site.HostRun) -> dict[str, Any]:
    """What roles/door/host/doors.py is to make."""
    gateway = _gateway(run)
    return {
        "files": files(run),
        "unit": UNIT,
        "health": HEALTH_UNIT if health_file(run.plan) else None,
        "config": gateway.config,
        "admin": gateway.admin_socket,
        "states": gateway.states,
        "keep": kept_servers(gateway),
        "start": _free(run),
    }


def switched(run: site.HostRun) -> dict[str, Any] | None:
    """The doors' part of a switch; None where they are as planned."""
    if not pending(run):
        return None
    gateway = _gateway(run)
    managed = [gateway.config, gateway.waiting_room, gateway.keys, f"{_UNITS}/{UNIT}"]
    health = [f"{gateway.home}/health.json", f"{gateway.home}/health.py", f"{_UNITS}/{HEALTH_UNIT}"]
    return {
        "to": request(run),
        "managed": [*managed, *health],
        "health": HEALTH_UNIT,
        "health_path": health[-1],
    }


def _gateway(run: site.HostRun) -> Gateway:
    """The host's doors; none, where there were some perhaps, in a plan without."""
    return run.gateway or Gateway((), home=f"{run.plan.settings.services_root}/gateway")


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    done: list[str] = remote.ask(host, "sparkwright-door", program, request(run), timeout=300)
    return done
