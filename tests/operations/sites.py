"""Runs over sites without hosts: plans of the shipped catalog, and observations."""

from collections.abc import Mapping
from typing import Any

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import RolloutSettings
from sparkwright.host.observe import Observation
from sparkwright.host.proxy.pool import HEALTH_UNIT, UNIT
from sparkwright.host.service import FORMAT
from sparkwright.plan.missing import digest
from sparkwright.plan.peer_keys import RunKeys
from sparkwright.plan.rollout import Rollout, batches
from sparkwright.proxy.pools import planned_pools
from sparkwright.proxy.proxies import proxies_of
from sparkwright.run.state import HostRun, Run, attach
from tests.operations.harness import FakeHost, fake
from tests.unit.builders import SPARK, plan, probe, wanted

KEY = Secret("sk-0123456789abcdef")
ENGINE = Secret("sk-of-the-engine-0123456789")
KEYS = Keys({"default": (KEY,)}, ENGINE)
#: A service behind its proxy.
BEHIND = {"qwen36": {**SPARK["qwen36"], "proxy": True}}
#: A time before any start in these tests.
CREATED = "2026-07-01T00:00:00Z"


def host_run(host: FakeHost, services: Mapping[str, Any] = SPARK, **data: Any) -> HostRun:
    """A host in a run, with settings as in group_data."""
    planned = plan(services, host=host.name, **data)
    everyone = {host.name: {"services": dict(services), **data}}
    return HostRun(
        wanted(planned), (), KEYS, None, {},
        proxies_of(planned, everyone, planned_pools([planned])), None,
        host.name, host.memory, f"10.0.0.{host.name[-1]}",
    )  # fmt: skip


def site(
    *hosts: FakeHost, services: Mapping[str, Any] = SPARK, rollout: Any = None, **data: Any
) -> Run:
    """A run of these hosts, with one pyinfra state for all of them."""
    settings = RolloutSettings.model_validate(rollout or {})
    named = {host.name: host for host in hosts}
    every = {name: host_run(host, services, **data) for name, host in named.items()}
    order = Rollout(batches(list(named), settings))
    run = Run("inventory/lab.py", every, RunKeys(Secret("peers")), order, settings, dry=False)
    attach(run, named)  # type: ignore[arg-type]
    for host in hosts:
        host.state = hosts[0].state
        host.state.active_hosts = set(hosts)
    return run


def spark(name: str = "spark-1", **answers: Any) -> FakeHost:
    """A host that was not observed yet."""
    host = fake(None, **answers)
    host.name = name
    return host


def looked_at(host: FakeHost, row: HostRun, **changes: Any) -> Observation:
    """Give the host an observation without faults, with ``changes``."""
    expected = host.memory
    expected.asked, expected.observation = row.request, probe(**changes)
    host.answers["observe"] = expected.observation
    return expected.observation


def running(run: HostRun, release: str | None = None) -> dict[str, Any]:
    """Observation of services that run as desired, or of an earlier release."""
    states, units = {}, {}
    for service in run.services:
        runs = release or service.release
        container = {
            "id": f"c-{service.name}", "running": True, "created": CREATED, "release": runs,
            "image": service.image,
        }  # fmt: skip
        states[service.name] = {
            "current": runs,
            "good": runs,
            "compose": digest(service.compose) if release is None else None,
            "format": FORMAT,
            "record": digest(service.record) if release is None else None,
            "unit": digest(service.unit_text),
            "secrets": {
                "sha256": digest(run.secrets[service.secrets].value),
                "mode": 0o600,
                "uid": 0,
            },
            "container": container,
        }
        units[service.unit] = {"ActiveState": "active", "UnitFileState": "enabled"}
    return {"services": states, "units": units}


def written(files: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    """Observation of files that are as desired."""
    return {
        path: {"sha256": digest(text), "mode": mode, "uid": 0}
        for path, (text, mode) in files.items()
    }


def proxied(row: HostRun) -> dict[str, Any]:
    """Observation of proxies that are in place."""
    units = {unit: {"ActiveState": "active"} for unit in (UNIT, HEALTH_UNIT)}
    return {"files": written(row.proxy_files), "units": units, "unit_files": [UNIT]}
