"""Preflight: one observation, every finding at once, and a failing host stays unchanged."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.host.jobs import JobStatus
from sparkwright.operations.lib.switching import UNIT
from sparkwright.run import fabric_addresses, observation, preflight
from sparkwright.run.state import HostRun, host_run
from tests.operations.harness import ANN, FakeHost, as_json
from tests.operations.sites import site, spark
from tests.unit.builders import gpus, probe
from tests.unit.checks.fabric.test_addresses import host as state_of_host


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's clock equals a fresh Spark's clock."""
    monkeypatch.setattr(preflight, "time", SimpleNamespace(time=lambda: 1000.0))


def _judged(host: FakeHost, *, dry: bool = False, **data: Any) -> tuple[HostRun, bool]:
    item = site(host, spark("spark-2"), **data).hosts[host.name]
    return item, preflight.judged(host, item, dry=dry)  # type: ignore[arg-type]


def test_every_fault_of_a_refused_host_is_reported_at_once() -> None:
    host = spark(
        observe=probe(gpu=gpus("NVIDIA GB10, 12.1, 570.1, [N/A]\n"), docker=None,
                      clock_synchronised=False),
    )  # fmt: skip
    item, on = _judged(host)
    assert not on
    assert {finding.id for finding in item.findings} >= {"nvidia-driver", "docker"}
    ids = [line for line in host.lines if line.startswith("error: ")]
    assert ids[:2] == ["error: nvidia-driver", "error: docker"]
    assert host.memory.failure == "refused by preflight: nvidia-driver, docker"
    assert host.lines[-1] == f"{host.memory.failure}: this host stays unchanged"
    # The refused host leaves the run; the other hosts continue.
    assert host not in host.state.active_hosts
    assert host_run(host) is None  # type: ignore[arg-type]
    assert len(host.state.active_hosts) == 1


@pytest.fixture
def balanced(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An address in front of a replica whose name only the controller's ssh_config resolves."""
    monkeypatch.setattr(observation, "_reached_from_here", lambda _: {"spark-1": "10.0.0.1"})
    return {"address": {"port": 8080}, "ssh_hostname": "kitchen"}


def test_an_address_has_the_replicas_that_its_host_reaches(
    balanced: dict[str, Any],
) -> None:
    """The host tries the replica's addresses in the same execution as the observation."""
    result = {"address": "10.0.0.1", "written": "10.0.0.1", "tried": ["kitchen: unknown"]}
    host = spark(observe=probe(reached={"spark-1": result}))
    item, on = _judged(host, **balanced)
    assert on
    assert host.programs == ["observe"]
    (asked,) = host.request("observe")["reach"]
    assert (asked["name"], asked["addresses"]) == ("spark-1", ["kitchen", "10.0.0.1"])
    assert item.proxies is not None
    config, _ = item.proxy_files[item.proxies.config]
    assert "server spark-1 10.0.0.1:8000 check" in config
    assert "kitchen" not in config
    assert item.findings == []


def test_an_unreachable_replica_is_a_warning(balanced: dict[str, Any]) -> None:
    host = spark(
        observe=probe(reached={"spark-1": {"tried": ["kitchen: unknown", "10.0.0.1: timed out"]}})
    )
    item, on = _judged(host, **balanced)
    assert on
    assert [finding.id for finding in item.findings] == ["replica-unreachable"]
    arguments = "does not reach spark-1: kitchen: unknown; 10.0.0.1: timed out"
    assert any(arguments in line for line in host.lines)


def test_a_warning_is_reported_and_refuses_no_host() -> None:
    host = spark(observe=probe(docker_socket=False))
    item, on = _judged(host)
    assert on
    assert [finding.id for finding in item.findings] == ["docker-user"]
    assert host.lines[0] == "warning: docker-user"


def test_rules_are_checked_again_with_the_observed_hardware() -> None:
    host = spark(observe=probe(memory={"total": 40 << 30, "available": 40 << 30}))
    item, on = _judged(host)
    assert not on
    assert any("silence this rule on the service" in finding.remedy for finding in item.findings)


def _switching(*looks: Any, **changes: Any) -> FakeHost:
    """A host in the middle of a switch; its observations in order."""
    left = [probe(switching=look, **changes) for look in looks]
    return spark(observe=lambda _: left.pop(0))


def test_preflight_waits_for_an_earlier_switch() -> None:
    host = _switching(True, False)
    host.answers["jobs"] = {UNIT: JobStatus(False, False, {"id": "x", "step": "ended"})}
    _, on = _judged(host)
    assert on
    assert host.programs == ["observe", "jobs", "observe"]
    assert host.request("jobs")["start"] == []
    assert host.lines == [
        "an earlier switch is still under way: waiting for its end"
    ]  # fmt: skip


def test_a_dry_run_waits_for_no_switch() -> None:
    host = _switching(True)
    _, on = _judged(host, dry=True)
    assert on
    assert host.programs == ["observe"]


def test_preflight_does_not_wait_for_another_runs_switch() -> None:
    host = _switching(True, lock=as_json(ANN))
    _, on = _judged(host)
    assert not on
    assert (host.memory.failure or "").startswith("ann@laptop (for 3 min) is at work on this host")
    host = _switching(True, False, lock=as_json(ANN))
    host.answers["jobs"] = {UNIT: JobStatus(False, False, {"id": "x", "step": "ended"})}
    assert _judged(host, break_lock=True)[1]


def test_the_clock_is_compared_with_the_middle_of_the_round_trip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = [900.0, 1100.0]
    monkeypatch.setattr(preflight, "time", SimpleNamespace(time=lambda: ticks.pop(0)))
    item, on = _judged(spark(observe=probe()))
    assert (on, item.findings) == (True, [])
    ticks[:] = [2000.0, 2000.0]
    item, _ = _judged(spark(observe=probe()))
    assert [finding.id for finding in item.findings] == ["clock"]


def test_a_host_that_another_version_deployed_is_refused() -> None:
    host = spark(observe=probe(services={"qwen36": {"current": "0123456789ab", "format": 0}}))
    item, on = _judged(host)
    assert not on
    assert "another version of sparkwright deployed this host" in str(item.memory.failure)
    assert "sparkwright remove" in str(item.memory.failure)


def test_a_host_without_a_cable_stays_unchanged() -> None:
    hosts = [spark(f"spark-{number}", fabric=state_of_host()) for number in (1, 2)]
    wanted = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}
    run = site(*hosts, fabric_addresses=wanted)
    host: Any = hosts[0]
    fabric_addresses.addresses(host, run.hosts["spark-1"], {})
    assert host.programs == ["fabric"]
    assert host.memory.failure == "refused: fabric-addresses"
    assert any("0 network devices" in line for line in host.lines)
