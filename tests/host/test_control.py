"""Start, stop and restart on a host, and maintenance: commands to systemd and HAProxy, the
record, and the holder of the lock.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host import control, lock, maintenance, status
from sparkwright.host.control import RESTART, START, STOP, ControlAnswer, ControlRequest
from sparkwright.host.lib import files, homes, systemd
from sparkwright.host.lib.homes import Maintenance, Stopped
from sparkwright.host.lock import LockRequest, Owner
from sparkwright.host.maintenance import MaintenanceAnswer, MaintenanceRequest
from sparkwright.host.proxy import health, place
from sparkwright.host.proxy.pool import HealthService
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.smoke.check import SmokeAnswer
from tests.unit.builders import kept_service

SINCE = "Sun 2026-11-22 05:00:00 UTC"
REQUEST = ControlRequest(STOP, by="ann@laptop", why="too loud")


@dataclass
class Host:
    """A host in a folder: ``a`` behind a proxy, ``b`` without a proxy, and the events, in order."""

    root: Path
    mark: Path
    message: list[str] = field(default_factory=list)
    asked: list[SmokeRequest] = field(default_factory=list)
    running: set[str] = field(default_factory=lambda: {"a", "b"})
    switching: bool = False
    stuck: str | None = None
    bad: set[str] = field(default_factory=set)
    fault: str | None = None

    def unit(self, name: str, **_: Any) -> dict[str, str]:
        if name == control.SWITCH:
            return {"ActiveState": "active" if self.switching else "inactive"}
        service = name.removeprefix("sparkwright-").removesuffix(".service")
        state = "active" if service in self.running else "inactive"
        return {"ActiveState": state, "ActiveEnterTimestamp": SINCE}

    def systemctl(self, verb: str, *units: str) -> Any:
        self.message.append(" ".join((verb, *units)))
        for name in units:
            service = name.removeprefix("sparkwright-").removesuffix(".service")
            if verb == "stop" and service != self.stuck:
                self.running.discard(service)
                self.switching = self.switching and name != control.SWITCH
            if verb == "start":
                self.running.add(service)
        return type("Done", (), {"ok": True, "message": ""})()

    def haproxy(self, _: str, line: str) -> str:
        # The mark is written last: a host that can't be drained does not enter maintenance.
        if line != place.SERVERS:
            self.message.append(f"{line}{' (marked)' if self.mark.exists() else ''}")
        return ""

    def check(self, asked: SmokeRequest, look: Callable[[], object] = bool) -> SmokeAnswer:
        self.asked.append(asked)
        look()
        ok = asked.name not in self.bad
        return SmokeAnswer((CheckResult("health", ok, 0.0, "no answer"),))

    def do(self, **changes: Any) -> ControlAnswer:
        return control.main(replace(REQUEST, services_root=str(self.root), **changes))

    def maintain(self, *, on: bool, by: str = "ann@laptop") -> MaintenanceAnswer:
        return maintenance.main(MaintenanceRequest(on, str(self.root), by, "a new fan"))

    def group(self) -> None:
        """Make both services one group."""
        groups = {"groups": {"day": {"members": ["a", "b"]}}}
        files.write(self.root / "state/exclusive.json", json.dumps(groups), 0o600)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path, tmp_path / "var/maintenance.json")
    (tmp_path / "state").mkdir()
    monkeypatch.setattr(systemd, "UNITS", tmp_path / "units")
    for name, door in (("a", ("127.0.0.1", 1)), ("b", None)):
        home = tmp_path / "services" / name
        kept = kept_service("r", name, tmp_path, proxy=door)
        files.write(home / "releases/r/release.json", kept.record, 0o640)
        files.point(home / "current", "releases/r")
        unit = "[Install]\nWantedBy=multi-user.target docker.service\n"
        files.write(tmp_path / "units" / homes.unit(name), unit, 0o644)
        systemd.want_at_boot(homes.unit(name), wanted=True)
    (tmp_path / "services/never-started").mkdir()
    for module in (homes, maintenance):
        monkeypatch.setattr(module, "MAINTENANCE", str(host.mark))
    monkeypatch.setattr(systemd, "unit", host.unit)
    monkeypatch.setattr(systemd, "systemctl", host.systemctl)
    monkeypatch.setattr(systemd, "is_active", lambda n: host.unit(n)["ActiveState"] == "active")
    monkeypatch.setattr(check, "run", host.check)
    monkeypatch.setattr(check, "proxy_fault", lambda _: host.fault)
    monkeypatch.setattr(place, "ask", host.haproxy)
    monkeypatch.setattr(place, "busy", lambda *_: 0)
    return host


def test_a_service_leaves_its_pool_before_it_stops_and_no_server_stays_drained(host: Host) -> None:
    answer = host.do(services=("a",))
    assert answer == ControlAnswer(("a", "b"), {"a": "stopped"})
    assert host.message == [
        "set server stay-a/stay state maint", "set server a/self state drain",
        "stop sparkwright-a.service",
        "set server a/self health down", "set server a/self state ready",
        "set server stay-a/stay state ready",
    ]  # fmt: skip
    assert host.running == {"b"}


def test_an_immediate_stop_waits_for_no_request(host: Host) -> None:
    host.do(services=("a",), now=True)
    assert host.message[0] == "stop sparkwright-a.service"


def test_a_stop_record_holds_until_the_next_start(host: Host) -> None:
    host.do(services=("a",))
    home = host.root / "services/a"
    mark = homes.stopped(home)
    assert mark is not None
    assert (mark.by, mark.why, mark.keep) == ("ann@laptop", "too loud", False)
    assert mark.holds({"ActiveState": "inactive", "ActiveEnterTimestamp": SINCE})
    assert not mark.holds({"ActiveState": "active", "ActiveEnterTimestamp": SINCE})
    # Another user has started the service later: this stop no longer explains the service's end.
    assert not mark.holds({"ActiveState": "failed", "ActiveEnterTimestamp": "later"})
    assert systemd.is_enabled("sparkwright-a.service")  # a boot starts the service
    host.do(action=START, services=("a",))
    assert homes.stopped(home) is None
    # The host's history keeps both actions.
    did = status.entries(homes.Action, host.root / "state/actions.jsonl")
    assert [(each.done, each.service, each.by, each.why) for each in did] == [
        ("stopped", "a", "ann@laptop", "too loud"), ("started", "a", "ann@laptop", "too loud"),
    ]  # fmt: skip


def test_a_kept_stop_survives_a_boot_until_the_next_start(host: Host) -> None:
    host.do(services=("a",), keep=True)
    assert not systemd.is_enabled("sparkwright-a.service")
    assert systemd.is_enabled("sparkwright-b.service")
    mark = homes.stopped(host.root / "services/a")
    assert mark is not None
    assert mark.holds({"ActiveState": "inactive", "ActiveEnterTimestamp": ""})
    host.do(action=START, services=("a",))
    assert systemd.is_enabled("sparkwright-a.service")


def test_a_started_service_must_answer(host: Host) -> None:
    host.running.clear()
    host.bad = {"b"}
    answer = host.do(action=START)
    assert host.message[:2] == [
        "reset-failed sparkwright-a.service sparkwright-b.service",
        "start sparkwright-a.service sparkwright-b.service",
    ]
    assert answer.done == {"a": "answers after 0 s", "b": "started"}
    # Both services are checked in parallel, in any order.
    assert {(asked.name, asked.proxy) for asked in host.asked} == {("a", None), ("b", None)}
    assert len(host.asked) == 2
    assert answer.faults == ("b: health: no answer",)
    host.asked.clear()
    assert host.do(action=START, wait=False).faults == ()
    assert host.asked == []


def test_a_service_that_does_not_stop_is_reported(host: Host) -> None:
    host.stuck = "a"
    answer = host.do()
    assert answer.done == {"b": "stopped"}
    assert answer.faults == ("a does not stop: its unit is active",)
    assert homes.stopped(host.root / "services/a") is None


def test_only_an_immediate_stop_ends_a_switch(host: Host) -> None:
    """A switch that continues would restart a service that a user has stopped."""
    host.switching = True
    answer = host.do()
    assert "a switch to another release is under way" in answer.faults[0]
    assert host.running == {"a", "b"}
    assert host.do(now=True).done == {"a": "stopped", "b": "stopped"}
    assert host.message[0] == "stop sparkwright-switch.service"


def test_a_full_disk_does_not_prevent_a_stop(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    answer = host.do(services=("a",))
    assert answer.done == {"a": "stopped, but the stop can't be recorded: No space left on device"}
    assert host.running == {"b"}


@pytest.mark.parametrize(
    "name", ["never-started", "gone", "--all", "../services/a", "a.service", "a b", "*", ""]
)
def test_an_unknown_service_name_reaches_no_command(host: Host, name: str) -> None:
    assert host.do(services=(name,), now=True) == ControlAnswer(("a", "b"))
    assert host.message == []
    assert host.running == {"a", "b"}


def test_a_sleeping_service_is_left_asleep_and_refused_by_name(host: Host) -> None:
    """Two services of a group do not fit into memory together; only `activate` exchanges them."""
    host.group()
    host.running = {"a"}
    for action in (START, RESTART):
        answer = host.do(action=action, services=("b",))
        assert answer.faults == ("b sleeps while a runs: sparkwright activate b exchanges them",)
        assert (answer.done, host.message) == ({}, [])
    assert set(host.do(action=RESTART).done) == {"a"}
    assert host.do(services=("b",)) == ControlAnswer(("a", "b"))
    assert not (host.root / "services/b" / homes.STOPPED).exists()
    assert set(host.do().done) == {"a"}


def test_a_stop_ends_an_engine_that_sleeps(host: Host) -> None:
    host.group()
    assert host.do(services=("b",)) == ControlAnswer(("a", "b"))
    assert (host.running, host.message) == ({"a"}, ["stop sparkwright-b.service"])


# Maintenance


def test_a_silent_proxy_returns_the_host_to_maintenance(host: Host) -> None:
    host.maintain(on=True)
    mark, host.fault = homes.maintenance(), "HTTP 503 with the key"
    assert host.maintain(on=False).faults == ("a: proxy: HTTP 503 with the key",)
    assert homes.maintenance() == mark


def test_the_end_of_maintenance_does_not_wait_for_a_stopped_service(host: Host) -> None:
    host.maintain(on=True)
    mark = Stopped("ann@laptop", 1.0, active=SINCE)
    files.write_record(host.root / "services/b" / homes.STOPPED, mark)
    host.running, host.bad = {"a"}, {"b"}
    answer = host.maintain(on=False)
    assert answer.faults == ()
    assert answer.left == ("b is stopped, so its health was not checked",)


def test_maintenance_off_without_a_mark_only_opens_closed_pools(host: Host) -> None:
    answer = host.maintain(on=False)
    assert (answer.now, answer.faults) == (None, ())
    assert host.message == ["set server a/self state ready", "set server stay-a/stay state ready"]


def test_an_invalid_mark_counts_as_missing(host: Host) -> None:
    for text in ("", "{}", "[1]", "[" * 200_000, '{"by": 1, "at": "x"}'):
        files.write(host.mark, text, 0o644)
        assert homes.maintenance() is None
    files.write_record(host.mark, Maintenance("ann", 1.0))
    assert homes.maintenance() == Maintenance("ann", 1.0)


def test_health_reports_maintenance_whatever_the_engine_does(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HAProxy has lost the state after a boot. The check names the model of the release that runs:
    after a rollback the configuration names another model.
    """
    config = HealthService("a", "/no.sock", f"{host.root}/services/a/secrets.env", "planned", 1.0)
    service = health.Service(config, 30.0, {})
    monkeypatch.setattr(service, "_count", lambda: (1.0,))
    monkeypatch.setattr(service, "_call", lambda *sent: host.message.append(sent[2]["model"]))
    service.look()
    assert (service.well, host.message) == (True, ["qwen36-fast"])
    host.maintain(on=True)
    service.look()
    assert (service.well, service.observed) == (False, "in maintenance")
    host.maintain(on=False)
    service.look()
    assert service.well


def test_health_sends_no_request_to_a_sleeping_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    config = HealthService("a", "/no.sock", "none", "m", 1.0, sleeps="/is_sleeping")
    service = health.Service(config, 30.0, {})
    monkeypatch.setattr(homes, "maintenance", lambda: None)
    monkeypatch.setattr(health, "sleeps", lambda _, state: state == "/is_sleeping")
    monkeypatch.setattr(service, "_call", lambda *_: pytest.fail("it was asked"))
    service.look()
    assert (service.well, service.observed) == (False, "sleeps")


def test_a_timer_starts_after_its_deleted_service_is_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """systemd has not loaded the service, whose file was missing at the last reload."""
    calls: Any = []
    done = type("Done", (), {"err": "", "ok": property(lambda _: "reload" in calls)})
    monkeypatch.setattr(systemd, "UNITS", tmp_path)
    monkeypatch.setattr(systemd, "systemctl", lambda verb, *_: calls.append(verb) or done())
    monkeypatch.setattr(systemd, "reload", lambda: calls.append("reload"))
    monkeypatch.setattr(systemd, "unit", lambda _: {"LoadState": "not-found"})
    (tmp_path / "a.service").touch()
    systemd.start("a.timer")
    assert calls == ["start", "reload", "start"]


def test_each_check_marks_a_well_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The unit's stop reads the mark, since a start that served has good caches."""
    config = HealthService("a", "/no.sock", "none", "m", 1.0, health=str(tmp_path / "a.sock"))
    service = health.Service(config, 30.0, {})
    states = iter((False, True, True))
    monkeypatch.setattr(service, "look", lambda: setattr(service, "well", next(states)))
    made, mark, old = [], tmp_path / "a.well", tmp_path / "old"
    monkeypatch.setattr("time.sleep", lambda _: made.append(mark.exists() and mark.rename(old)))
    with suppress(StopIteration):
        service.watch()
    assert [*map(bool, made)] == [False, True, True]


def test_only_the_running_service_of_a_group_must_answer(host: Host) -> None:
    host.group()
    host.maintain(on=True)
    host.bad = {"b"}
    answer = host.maintain(on=False)
    assert (answer.faults, answer.done) == ((), ("a answers, and is back in its pools",))


def test_a_lock_names_its_holder_and_an_empty_lock_can_be_broken(tmp_path: Path) -> None:
    held = {"token": "t", "by": "bob@desk", "machine": "m", "pid": 7, "since": 100.5}
    (tmp_path / "lock.json").write_text(json.dumps(held))
    ours = Owner("u", "ann@laptop", "n", 8)
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert not answer.held
    assert answer.by == Owner("t", "bob@desk", "m", 7, 100.5)
    (tmp_path / "lock.json").write_text("")
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert (answer.held, answer.by and answer.by.by) == (False, "somebody")
    assert lock.main(LockRequest(str(tmp_path), take=ours, instead_of=Owner())).held
    written = json.loads((tmp_path / "lock.json").read_text())
    assert list(written) == ["token", "by", "machine", "pid", "since", "batch"]
    lock.main(LockRequest(str(tmp_path), release="u"))
    assert json.loads((tmp_path / "lock-last.json").read_text()) == written
