"""A reboot is done where it was asked for, waited for, and never unasked."""

import pytest

from sparkwright.run import bootstrap
from tests.operations.harness import fake, run
from tests.unit.bootstrap.states import UBUNTU, but
from tests.unit.builders import probe

FRESH = but(UBUNTU, driver=None, boot="before")


def test_one_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_SECONDS", -1.0)
    host = fake(probe(), reboot="before")
    monkeypatch.setattr(host, "disconnect", lambda: None, raising=False)
    ran = run(host, bootstrap.rebooted, FRESH, asked=True, execute=True)
    assert not ran.well
    assert "is not back" in (ran.memory.failure or "")


def test_unasked_it_fails_the_host_with_what_to_do() -> None:
    host = fake(probe(), reboot="before")
    dry = run(host, bootstrap.rebooted, FRESH)
    assert host.programs == []
    assert [line for line in host.lines if "--reboot" in line]
    assert len(dry.commands) == 1
    ran = run(host, bootstrap.rebooted, FRESH, execute=True)
    assert not ran.well
    assert host.programs == []
    assert "bootstrap_reboot=True" in (ran.memory.failure or "")
