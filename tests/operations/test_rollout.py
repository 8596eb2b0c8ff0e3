"""Roll-outs: one batch after the other, canaries first, and no batch after a failure; hosts
whose switch did not end as planned, and rollback.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.release import HistoryEntry, SwitchJournal
from sparkwright.host.service import CheckResult
from sparkwright.host.status import HostStatus, KeptRelease, ServiceStatus
from sparkwright.operations import services
from sparkwright.run import rollout
from sparkwright.run.state import HostRun, Run
from tests.operations.harness import FakeHost, Said, run
from tests.operations.sites import looked_at, running, site, spark
from tests.unit.builders import kept_service, probe

GOOD = SwitchJournal("", "ended", "good", (), 1.0, {})
BAD = SwitchJournal("", "ended", "reverted", ("no answer within 900 s", "more"), 1.0, {})


class Clock(SimpleNamespace):
    """Clock that only ``sleep`` advances."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    result = Clock(slept=[])
    monkeypatch.setattr(rollout, "time", result)
    return result


def _four(**rollout: Any) -> tuple[Run, list[FakeHost]]:
    hosts = [spark(f"spark-{n}") for n in range(1, 5)]
    return site(*hosts, rollout=rollout), hosts


def _turn(
    host: FakeHost, result: SwitchJournal | HostError = GOOD, left: Callable[[], None] | None = None
) -> str:
    """Switch the host in its turn; return a short result."""

    def switch(_: Any) -> SwitchJournal:
        if isinstance(result, HostError):
            raise result
        return result

    try:
        return rollout.in_turn(host, switch, left=left or (lambda: None)).result or ""  # type: ignore[arg-type]
    except HostError as error:
        return str(error)


def test_batches_are_named_by_number_and_hosts() -> None:
    run, _ = _four(canaries=1, batch="100%")
    assert list(rollout.named(run)) == [
        ("Batch 1 of 2 (spark-1)", ["spark-1"]),
        ("Batch 2 of 2 (spark-2, spark-3, spark-4)", ["spark-2", "spark-3", "spark-4"]),
    ]
    run, _ = _four(canaries=0, batch=4)
    assert [title for title, _ in rollout.named(run)] == ["Batch 1 of 1 (spark-1 and 3 more)"]


@pytest.mark.parametrize(
    ("result", "message", "why"),
    [
        (BAD, "reverted", "spark-1 failed: no answer within 900 s"),
        (SwitchJournal("", "ended", "failed", ("boom",)), "failed",
         "spark-1 failed: boom"),
        (HostError("the connection is lost\nx"), "the connection is lost\nx",
         "spark-1 can't be followed any more: the connection is lost"),
    ],
)  # fmt: skip
def test_after_a_failure_no_host_is_switched(
    result: SwitchJournal | HostError, message: str, why: str
) -> None:
    run, hosts = _four()
    left: list[str] = []
    assert _turn(hosts[0], result) == message
    for host in hosts[1:]:
        message = _turn(host, left=partial(left.append, host.name))
        assert message == f"not switched, since {why}"
    assert left == ["spark-2", "spark-3", "spark-4"]
    # A later reason does not replace the first reason.
    run.rollout.stop("another")
    assert run.rollout.stopped == why


def test_the_canary_starts_at_once_and_each_further_batch_after_the_pause(clock: Clock) -> None:
    _, hosts = _four(pause_seconds=60)
    _turn(hosts[0])
    assert clock.slept == [0.0]
    clock.now += 10
    _turn(hosts[1])
    assert clock.slept[-1] == 50.0
    clock.now += 100
    _turn(hosts[2])
    assert clock.slept[-1] == 0.0


def test_after_a_failure_no_host_waits_for_the_pause(clock: Clock) -> None:
    _, hosts = _four(pause_seconds=60)
    _turn(hosts[0], BAD)
    _turn(hosts[1])
    assert clock.slept == [0.0]


def test_without_a_usable_canary_no_host_is_switched() -> None:
    run, hosts = _four(canaries=2, batch=2)
    run.hosts["spark-1"].memory.failure = "not reached"
    # One of two canaries is enough.
    assert _turn(hosts[1]) == "good"
    assert _turn(hosts[2]) == "good"
    run, hosts = _four(canaries=2, batch=2)
    for name in ("spark-1", "spark-2"):
        run.hosts[name].memory.failure = "not reached"
    assert _turn(hosts[2]) == (
        "not switched, since no canary could be tried (spark-1, spark-2)"
    )  # fmt: skip


def test_without_canaries_the_first_batch_is_empty() -> None:
    run, hosts = _four(canaries=0, batch=1)
    run.hosts["spark-1"].memory.failure = "not reached"
    assert _turn(hosts[1]) == "good"


def test_unprepared_hosts_are_left_out_or_stop_the_rollout() -> None:
    for unprepared, text in (
        ("leave", "good"),
        ("stop", "not switched, since spark-4 could not be prepared"),
    ):
        run, hosts = _four(unprepared=unprepared)
        run.hosts["spark-4"].memory.failure = "no space left"
        assert _turn(hosts[0]) == text
    # A host that fails in its switch does not count as unprepared.
    run, hosts = _four(unprepared="stop", canaries=0, batch=1)
    assert _turn(hosts[0]) == "good"
    run.hosts["spark-1"].memory.failure = "smoke"
    assert _turn(hosts[1]) == "good"


def test_a_canary_in_maintenance_does_not_stop_the_rollout() -> None:
    run, hosts = _four()
    run.hosts["spark-1"].left = "in maintenance"
    assert [_turn(host) for host in hosts[1:]] == ["good"] * 3
    run, hosts = _four(canaries=2)
    run.hosts["spark-1"].left = "in maintenance"
    run.hosts["spark-2"].memory.failure = "not reached"
    assert _turn(hosts[2]) == "not switched, since no canary could be tried (spark-2)"


OLD, OLDER = "0123456789ab", "ba9876543210"
CHECKS = (CheckResult("health", False, 2.0, "no answer"),)


def _host(**changes: Any) -> tuple[Run, FakeHost, HostRun]:
    """A host that serves an earlier release."""
    host = spark()
    run = site(host, spark("spark-2"))
    item = run.hosts["spark-1"]
    looked_at(host, item, **{**running(item, OLD), **changes})
    return run, host, item


def _ended(result: str, checks: Any = None) -> SwitchJournal:
    return SwitchJournal(
        "", "ended", result, ("no answer", "journal"), 1.0, {"qwen36": checks or CHECKS}
    )


def _switch(row: HostRun) -> list[Any]:
    (service,) = row.services
    return services.to_desired([(service, ["release new after old"])], row.secrets, row.observed)


def _to_take_back(host: FakeHost, run: Run, row: HostRun) -> list[Any]:
    host.answers["status"] = _status(row.services[0].release, OLD)
    return rollout.to_take_back(host, run, row)  # type: ignore[arg-type]


def test_a_successful_switch_can_be_reverted() -> None:
    run, host, item = _host()
    rollout.remember(item, _switch(item), _ended("good"), run)
    assert item.outcomes == {}
    assert run.rollout.switched == {"spark-1": {"qwen36": OLD}}
    assert _to_take_back(host, run, item) == []
    run.rollout.stop("spark-2 failed")
    (back,) = _to_take_back(host, run, item)
    assert (back.to, back.from_release) == (OLD, item.services[0].release)
    assert back.why == ("spark-2 failed",)
    # Hosts that were not switched, or had no release before, have no release for a rollback.
    assert _to_take_back(host, run, run.hosts["spark-2"]) == []


def test_a_first_start_is_not_reverted() -> None:
    run, host, item = _host(services={"qwen36": {}}, units={})
    rollout.remember(item, _switch(item), _ended("good"), run)
    run.rollout.stop("spark-2 failed")
    assert _to_take_back(host, run, item) == []


# --- Going back on request ------------------------------------------------------------------------


def _status(
    current: str | None, *kept: str, history: tuple[HistoryEntry, ...] = (), proxy: bool = True
) -> HostStatus:
    releases = {
        name: KeptRelease(
            float(n), kept_service(name, proxy=("127.0.0.1", 8001) if proxy else None)
        )
        for n, name in enumerate(kept)
    }
    state = ServiceStatus(current, current, releases, None, {}, None)
    return HostStatus(1000.0, None, None, history, {"qwen36": state} if current else {})


def _went(before: str, to: str, result: str = "good") -> HistoryEntry:
    return HistoryEntry("qwen36", before, to, "ann", 1.0, (), 1.0, result, ())


def _back(
    status: Any, to: str | None = None, only: tuple[str, ...] | None = None, **data: Any
) -> tuple[FakeHost, list[Any] | None]:
    host = spark(observe=probe(), status=status)
    run = site(host, spark("spark-2"), **data)
    return host, rollout.targets_of(host, run.hosts["spark-1"], to=to, only=only)  # type: ignore[arg-type]


def test_a_rollback_goes_to_the_former_release() -> None:
    host, result = _back(_status("now", OLDER, OLD, "now", history=(_went(OLD, "now"),)))
    assert host.programs == ["observe", "status"]
    assert result is not None
    (entry,) = result
    assert (entry.name, entry.to, entry.from_release) == ("qwen36", OLD, "now")
    assert entry.why == ("rolled back by request",)
    # A failed switch does not count in the service's history.
    history = (_went(OLDER, "now"), _went(OLD, "now", "reverted"))
    _, result = _back(_status("now", OLDER, OLD, "now", history=history))
    assert [item.to for item in result or ()] == [OLDER]


def test_a_release_with_an_earlier_good_switch_is_watched_briefly() -> None:
    """The run reports the short time; a release that was never proved here is unknown."""
    proved = (_went(OLDER, OLD), _went(OLD, "now"))
    for history, seconds, reason in (
        (proved, 10.0, ", the release was good here before: watched for 10 s"),
        ((_went(OLD, "now"),), 75.0, ""),
        ((_went(OLDER, OLD, "reverted"), _went(OLD, "now")), 75.0, ""),
    ):
        host, result = _back(_status("now", OLDER, OLD, "now", history=history), to=OLD)
        assert [item.service.soak_seconds for item in result or ()] == [seconds]
        run(host, services.switched_back, lambda result=result: result)
        assert host.lines[-1] == f"would service qwen36: now back to {OLD}{reason}"


@pytest.mark.parametrize(
    ("status", "to", "why"),
    [
        (_status(None), None, "service qwen36 was never started here"),
        (_status("now", "now"), None, "service qwen36 has no earlier release here"),
        (_status("now", OLD, "now"), "x",
         f"service qwen36 has no release x here; there are {OLD}, now"),
        (Said(err="no python3", ok=False), None, "sparkwright-status: no python3"),
    ],
)  # fmt: skip
def test_a_host_without_a_former_release_is_refused_before_any_change(
    status: Any, to: str | None, why: str
) -> None:
    host, result = _back(status, to)
    assert result is None
    assert host.memory.failure == why
    assert host not in host.state.active_hosts
    assert "lock" not in host.programs
