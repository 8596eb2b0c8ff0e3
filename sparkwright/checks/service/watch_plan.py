"""The watch of a host: its configuration and units."""

import json
from collections.abc import Sequence

from sparkwright.config.templates import template
from sparkwright.engines import metric_names
from sparkwright.findings import thresholds
from sparkwright.host.lib.records import dataclass, encode
from sparkwright.host.service import Service
from sparkwright.host.watch.state import WatchConfig, WatchedService
from sparkwright.plan.plan import HostPlan

TIMER = "sparkwright-watch.timer"
SERVICE = "sparkwright-watch.service"


@dataclass(frozen=True)
class Watch:
    """A host's watch without its programs.

    Attributes:
        home: directory of the watch's programs on the host.
        config: text of the watch's configuration (sparkwright/host/watch/watch.py).
        service, timer: texts of the watch's units.
    """

    home: str
    config_path: str
    config: str
    service: str
    timer: str


def watch_of(plan: HostPlan, services: Sequence[Service]) -> Watch | None:
    """Return a host's watch; None if the host has no services, or its settings turn the watch
    off.
    """
    settings = plan.settings
    if not settings.watch or not plan.services:
        return None
    home, state = f"{settings.services_root}/watch", f"{settings.services_root}/state"
    config = WatchConfig(
        services=tuple(
            WatchedService(
                service.name, service.gate.address, service.gate.port, service.gate.boot_seconds
            )
            for service in services
        ),
        services_root=settings.services_root,
        paths=("/", settings.models_root, settings.services_root, "/var/lib/docker"),
        metric_names=metric_names(),
        limits=thresholds.limits(),
    )
    context = {"home": home, "state": state, "config": f"{home}/config.json"}
    return Watch(
        home=home,
        config_path=context["config"],
        config=json.dumps(encode(config), indent=1) + "\n",
        service=template("watch/unit.service.j2").render(context, services=services, plan=plan),
        timer=template("watch/unit.timer.j2").render(context),
    )
