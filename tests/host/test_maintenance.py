"""A host taken out of every pool and put back: what is written, and what keeps it out."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sparkwright.host import maintenance, status
from sparkwright.host.lib import files, homes, systemd
from sparkwright.host.lib.homes import Maintenance, Stopped
from sparkwright.host.lib.records import encode
from sparkwright.host.maintenance import MaintenanceAnswer, MaintenanceRequest
from sparkwright.host.proxy import health, place
from sparkwright.host.proxy.pool import HealthService
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.smoke.check import SmokeAnswer
from tests.unit.builders import kept_service

ON = MaintenanceRequest(True, by="ann@laptop", why="a new fan")


@dataclass
class Host:
    """A host in a folder: a service behind a proxy, and one without."""

    root: Path
    mark: Path
    message: list[str] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    fault: str | None = None
    unit: dict[str, str] = field(default_factory=lambda: {"ActiveState": "active"})

    def ask(self, _: str, line: str) -> str:
        # The mark is written last: a host that can't be drained is in no maintenance.
        self.message.append(f"{line}{' (marked)' if self.mark.exists() else ''}")
        return ""

    def check(self, asked: SmokeRequest, _: object) -> SmokeAnswer:
        ok = asked.name not in self.bad
        return SmokeAnswer((CheckResult("health", ok, 0.0, "no answer"),))

    def do(self, *, on: bool) -> MaintenanceAnswer:
        return maintenance.main(replace(ON, on=on, services_root=str(self.root)))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path, tmp_path / "var/maintenance.json")
    (tmp_path / "state").mkdir()
    for name, door in (("a", ("127.0.0.1", 1)), ("bare", None)):
        home = tmp_path / "services" / name
        kept = kept_service("r", name, tmp_path, proxy=door)
        files.write(home / "releases/r/release.json", kept.record, 0o640)
        files.point(home / "current", "releases/r")
    for module in (homes, maintenance):
        monkeypatch.setattr(module, "MAINTENANCE", str(host.mark))
    monkeypatch.setattr(place, "ask", host.ask)
    monkeypatch.setattr(place, "busy", lambda *_: 0)
    monkeypatch.setattr(check, "run", host.check)
    monkeypatch.setattr(check, "proxy_fault", lambda _: host.fault)
    monkeypatch.setattr(systemd, "unit", lambda _: host.unit)
    return host


def test_it_is_drained_and_then_marked_with_who_and_why(host: Host) -> None:
    answer = host.do(on=True)
    assert host.message == ["set server stay-a/stay state maint", "set server a/self state drain"]
    assert answer.done == ("a: out of every pool, and drained",)
    assert answer.left[0].startswith("bare: it has no proxy here")
    mark = homes.maintenance()
    assert mark == answer.now
    assert mark is not None
    assert (mark.by, mark.why) == ("ann@laptop", "a new fan")
    assert host.mark.stat().st_mode & 0o777 == 0o644
    # Again by somebody else: who has it stays named.
    again = maintenance.main(replace(ON, by="bob", services_root=str(host.root)))
    assert again == MaintenanceAnswer(mark)


def test_it_comes_back_once_every_service_answers(host: Host) -> None:
    host.do(on=True)
    host.bad = {"bare"}
    answer = host.do(on=False)
    assert answer.faults == ("bare: health: no answer",)
    assert answer.now == homes.maintenance()
    assert len(host.message) == 2  # and no pool was told anything
    host.bad = set()
    answer = host.do(on=False)
    assert (answer.now, answer.faults, homes.maintenance()) == (None, (), None)
    assert host.message[2:] == [
        "set server a/self state ready",
        "set server stay-a/stay state ready",
    ]
    assert answer.done == (
        "a: answers, and is back in its pools", "bare: answers, and is back in its pools",
    )  # fmt: skip
    did = status.entries(homes.Action, host.root / "state/actions.jsonl")
    assert [each.done for each in did] == ["maintenance on", "maintenance off"]


def test_a_proxy_that_does_not_answer_puts_it_back_into_maintenance(host: Host) -> None:
    host.do(on=True)
    mark, host.fault = homes.maintenance(), "HTTP 503 with the key"
    assert host.do(on=False).faults == ("a: proxy: HTTP 503 with the key",)
    assert homes.maintenance() == mark


def test_what_was_stopped_by_request_is_not_waited_for(host: Host) -> None:
    host.do(on=True)
    text = json.dumps(encode(Stopped("ann@laptop", 1.0)))
    files.write(host.root / "services/bare" / homes.STOPPED, text, 0o644)
    host.unit, host.bad = {"ActiveState": "inactive"}, {"bare"}
    answer = host.do(on=False)
    assert answer.faults == ()
    assert answer.left == ("bare: it is stopped, and was not asked",)


def test_without_a_mark_off_only_opens_what_was_left_closed(host: Host) -> None:
    answer = host.do(on=False)
    assert (answer.now, answer.faults) == (None, ())
    assert host.message == ["set server a/self state ready", "set server stay-a/stay state ready"]


def test_a_mark_that_is_none_is_none(host: Host) -> None:
    for text in ("", "{}", "[1]", "[" * 200_000, '{"by": 1, "at": "x"}'):
        files.write(host.mark, text, 0o644)
        assert homes.maintenance() is None
    files.write(host.mark, json.dumps(encode(Maintenance("ann", 1.0))), 0o644)
    assert homes.maintenance() == Maintenance("ann", 1.0)


def test_health_says_so_whatever_the_engine_does(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a boot HAProxy knows nothing of it any more."""
    service = health.Service(HealthService("a", "/no.sock", "none", "m", 1.0), 30.0, {})
    monkeypatch.setattr(service, "_count", lambda: (1.0,))
    monkeypatch.setattr(service, "_call", lambda *_: type("A", (), {"status": 200})())
    service.look()
    assert service.well
    host.do(on=True)
    service.look()
    assert (service.well, service.observed) == (False, "in maintenance")
    host.do(on=False)
    service.look()
    assert service.well


def test_of_a_group_only_the_one_that_runs_has_to_answer(host: Host) -> None:
    groups = {"groups": {"day": {"members": ["a", "bare"]}}}
    files.write(host.root / "state/exclusive.json", json.dumps(groups), 0o600)
    host.do(on=True)
    host.bad = {"bare"}
    answer = host.do(on=False)
    assert (answer.faults, answer.done) == ((), ("a: answers, and is back in its pools",))
