"""A reboot is done where it was asked for, waited for, and never unasked."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.bootstrap.inspection import BootstrapState
from sparkwright.run import bootstrap
from tests.operations.harness import FakeHost, fake, run
from tests.unit.bootstrap.states import UBUNTU, but
from tests.unit.builders import probe

FRESH = but(UBUNTU, driver=None, boot="before")


class Rebooting(FakeHost):
    """A host that is away for a while after it was told to reboot."""

    connected = True
    #: What becomes of each attempt to connect.
    attempts: list[bool]

    def disconnect(self) -> None:
        self.connected = False

    def connect(self, show_errors: bool = True) -> None:
        self.connected = self.attempts.pop(0)
        if not self.connected:
            self.memory.failure = "not reached: connection refused"


def _host(boots: list[Any], attempts: list[bool]) -> Rebooting:
    made = fake(probe(), reboot="before", inspection=lambda _: boots.pop(0))
    host = Rebooting(answers=made.answers, connector_data=made.connector_data, state=made.state)
    host.state.active_hosts = {host}
    host.attempts = attempts
    return host


def state(boot: str) -> BootstrapState:
    return but(UBUNTU, boot=boot)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.gevent, "sleep", lambda _: None)  # type: ignore[attr-defined]


def test_it_is_waited_for_and_the_host_known_anew() -> None:
    # Still up, away twice, up but not asked yet, back.
    boots = [state("before"), HostError("the connection is lost"), state("after")]
    host = _host(boots, [True, False, False, True, True])
    ran = run(host, bootstrap.rebooted, FRESH, asked=True, execute=True)
    assert ran.well, host.lines
    assert host.programs == [
        "lock",
        "reboot",
        "lock",
        "inspection",
        "inspection",
        "inspection",
        "observe",
    ]
    assert host.asked[2].request["release"]  # before the host is away
    assert ran.memory.changes == ["rebooted"]
    assert (ran.memory.failure, ran.memory.locked, ran.memory.stale) == (None, None, False)


def test_one_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_SECONDS", -1.0)
    host = _host([], [])
    ran = run(host, bootstrap.rebooted, FRESH, asked=True, execute=True)
    assert not ran.well
    assert "is not back" in (ran.memory.failure or "")


def test_unasked_it_fails_the_host_with_what_to_do() -> None:
    host = _host([], [])
    dry = run(host, bootstrap.rebooted, FRESH)
    assert host.programs == []
    assert [line for line in host.lines if "--reboot" in line]
    assert len(dry.commands) == 1
    ran = run(host, bootstrap.rebooted, FRESH, execute=True)
    assert not ran.well
    assert host.programs == []
    assert "bootstrap_reboot=True" in (ran.memory.failure or "")
