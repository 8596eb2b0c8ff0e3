"""The watch of a host: what it looks at, what it expects, and what it said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.config.templates import template
from sparkwright.engines import metric_names
from sparkwright.host.lib.records import encode
from sparkwright.host.service import Service
from sparkwright.host.watch.state import Expected, ExpectedService, WatchConfig, WatchedService
from sparkwright.plan.plan import HostPlan

TIMER = "sparkwright-watch.timer"
SERVICE = "sparkwright-watch.service"


@dataclass(frozen=True)
class Watch:
    """Everything of a host's watch but its programs.

    Attributes:
        home: where its programs lie on the host.
        config: text of what it reads first (sparkwright/host/watch/watch.py).
        expected: text of what the last deploy left: digests by service.
        service, timer: texts of its units.
    """

    home: str
    config_path: str
    config: str
    expected_path: str
    expected: str
    service: str
    timer: str


def watch_of(plan: HostPlan, services: Sequence[Service]) -> Watch | None:
    """A host's watch; None where it has no services, or wants none."""
    settings = plan.settings
    if not settings.watch or not plan.services:
        return None
    home, state = f"{settings.services_root}/watch", f"{settings.services_root}/state"
    config = WatchConfig(
        services=tuple(
            WatchedService(
                name=service.name,
                unit=service.unit,
                address=service.gate.address,
                port=service.gate.port,
                home=service.home,
                boot_seconds=service.gate.boot_seconds,
            )
            for service in services
        ),
        paths=("/", settings.models_root, settings.services_root, "/var/lib/docker"),
        state=f"{state}/watch.json",
        expected=f"{state}/expected.json",
        switch=f"{state}/switch/progress.json",
        metrics=f"{home}/metrics/sparkwright.prom",
        metric_names=metric_names(),
    )
    expected = Expected(
        {
            service.name: ExpectedService(
                service.release, _digest(service.compose), _digest(service.unit_text)
            )
            for service in services
        }
    )
    context = {"home": home, "state": state, "config": f"{home}/config.json"}
    return Watch(
        home=home,
        config_path=context["config"],
        config=json.dumps(encode(config), indent=1) + "\n",
        expected_path=config.expected,
        expected=json.dumps(encode(expected), indent=1) + "\n",
        service=template("watch/unit.service.j2").render(context),
        timer=template("watch/unit.timer.j2").render(context),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
