"""Roll-outs: one batch after the other, canaries first, and none any more after a failure."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.release import SwitchJournal
from sparkwright.run import rollout
from sparkwright.run.state import Run
from tests.operations.harness import FakeHost
from tests.operations.sites import site, spark

GOOD = SwitchJournal("", "ended", "good", (), 1.0, {})
BAD = SwitchJournal("", "ended", "reverted", ("no answer within 900 s", "more"), 1.0, {})


class Clock(SimpleNamespace):
    """A clock that sleeping moves."""

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
    """The host's turn; what became of it, in short."""

    def switch(_: Any) -> SwitchJournal:
        if isinstance(result, HostError):
            raise result
        return result

    try:
        return rollout.in_turn(host, switch, left=left or (lambda: None)).result or ""  # type: ignore[arg-type]
    except HostError as error:
        return str(error)


def test_names_of_batches() -> None:
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
        (BAD, "reverted", "spark-1 did not get through: no answer within 900 s"),
        (SwitchJournal("", "ended", "failed", ("boom",)), "failed",
         "spark-1 did not get through: boom"),
        (HostError("the connection is lost\nx"), "the connection is lost\nx",
         "spark-1 was lost sight of: the connection is lost"),
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
    # The first reason stays.
    run.rollout.stop("another")
    assert run.rollout.stopped == why


def test_the_canary_goes_at_once_and_each_further_batch_after_the_pause(clock: Clock) -> None:
    _, hosts = _four(pause_seconds=60)
    _turn(hosts[0])
    assert clock.slept == [0.0]
    clock.now += 10
    _turn(hosts[1])
    assert clock.slept[-1] == 50.0
    clock.now += 100
    _turn(hosts[2])
    assert clock.slept[-1] == 0.0


def test_after_a_failure_nobody_waits_for_the_pause(clock: Clock) -> None:
    _, hosts = _four(pause_seconds=60)
    _turn(hosts[0], BAD)
    _turn(hosts[1])
    assert clock.slept == [0.0]


def test_without_a_canary_that_could_be_tried_nobody_goes() -> None:
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


def test_without_canaries_the_first_batch_is_none() -> None:
    run, hosts = _four(canaries=0, batch=1)
    run.hosts["spark-1"].memory.failure = "not reached"
    assert _turn(hosts[1]) == "good"


def test_unprepared_hosts_are_left_out_or_stop_everything() -> None:
    for unprepared, text in (
        ("leave", "good"),
        ("stop", "not switched, since spark-4 could not be prepared"),
    ):
        run, hosts = _four(unprepared=unprepared)
        run.hosts["spark-4"].memory.failure = "no space left"
        assert _turn(hosts[0]) == text
    # Who fails by being switched is not unprepared.
    run, hosts = _four(unprepared="stop", canaries=0, batch=1)
    assert _turn(hosts[0]) == "good"
    run.hosts["spark-1"].memory.failure = "smoke"
    assert _turn(hosts[1]) == "good"


def test_a_canary_in_maintenance_is_no_reason_to_leave_all_others() -> None:
    run, hosts = _four()
    run.hosts["spark-1"].left = "in maintenance"
    assert [_turn(host) for host in hosts[1:]] == ["good"] * 3
    run, hosts = _four(canaries=2)
    run.hosts["spark-1"].left = "in maintenance"
    run.hosts["spark-2"].memory.failure = "not reached"
    assert _turn(hosts[2]) == "not switched, since no canary could be tried (spark-2)"
