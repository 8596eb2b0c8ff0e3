"""A host that activates by its calendar: the lock, what is tried again, and what time it is."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host import switch as transaction
from sparkwright.host.exclusive import activate, unattended
from sparkwright.host.lib import exclusive, files
from sparkwright.host.lib.exclusive import Group
from sparkwright.host.lib.records import decode
from sparkwright.host.release import SwitchRequest
from tests.host.exclusive.test_activation import GROUPS, _state, pair
from tests.host.exclusive.waking import declare
from tests.host.switch.test_transaction import Host, host

__all__ = ["host", "pair"]


@pytest.fixture
def calendar(pair: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """``b`` is to run on Mondays from 08:00 to 18:00; what systemd starts is run at once."""
    expected = replace(GROUPS, groups={"evening": Group(("a", "b"), ((480, 1080, "b"),))})
    declare(pair.place, expected)

    def started(*_: object) -> object:
        path = pair.place / "state/switch"
        request = decode(SwitchRequest, json.loads((path / "request.json").read_text()))
        transaction.Switch(path, request).run()
        return type("Done", (), {"ok": True})()

    monkeypatch.setattr(activate, "run", started)
    return pair


def _at(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2026-11-23 is a Monday."""
    now = time.strptime(f"2026-11-23 {clock}", "%Y-%m-%d %H:%M")
    monkeypatch.setattr(time, "localtime", lambda: now)


def test_the_calendar_is_followed_there_and_back(
    calendar: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for clock, runs in (("07:59", "a"), ("08:00", "b"), ("17:59", "b"), ("18:00", "a")):
        _at(clock, monkeypatch)
        assert unattended.main(str(calendar.place)) == 0
        assert _state(calendar) == ({runs}, {runs}, runs)
    assert "b: a makes room for it" in capsys.readouterr().out
    result = exclusive.active(calendar.place / "state")["evening"]
    assert result.by.startswith("calendar@")
    # The lock is let go, and says who was here: a deploy that looked before knows it.
    assert not (calendar.place / "state/lock.json").exists()
    last = json.loads((calendar.place / "state/lock-last.json").read_text())
    assert last["by"].startswith("calendar@")


def test_a_model_that_does_not_come_up_is_taken_back_and_not_tried_every_minute(
    calendar: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = calendar.check.run

    def ill(asked: object, *look: object) -> object:
        calendar.check.bad = {"a" * 12} if asked.name == "b" else set()  # type: ignore[attr-defined]
        return run(asked, *look)  # type: ignore[arg-type]

    monkeypatch.setattr(calendar.check, "run", ill)
    _at("08:00", monkeypatch)
    assert unattended.main(str(calendar.place)) == 0
    assert _state(calendar)[2] == "a"


def test_a_deploy_is_waited_for(calendar: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = {"token": "theirs", "by": "bob@desk", "machine": "desk", "pid": 1, "since": 1.0}
    files.write(calendar.place / "state/lock.json", json.dumps(lock), 0o644)
    _at("08:00", monkeypatch)
    assert unattended.main(str(calendar.place)) == unattended.AGAIN
    assert _state(calendar)[2] == "a"
    assert json.loads((calendar.place / "state/lock.json").read_text())["by"] == "bob@desk"


@pytest.mark.parametrize("over", ["another boot", "a process that has ended"])
def test_a_lock_of_its_own_that_a_power_cut_left_is_taken_over(
    calendar: Host, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = "on the host itself, boot gone" if over == "another boot" else unattended._boot()
    lock = {"token": "x", "by": "calendar@here", "machine": machine, "pid": 1 << 22, "since": 1.0}
    files.write(calendar.place / "state/lock.json", json.dumps(lock), 0o644)
    _at("08:00", monkeypatch)
    assert unattended.main(str(calendar.place)) == 0
    assert _state(calendar)[2] == "b"


def test_what_was_activated_by_hand_stays_without_a_calendar(
    pair: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    exclusive.activate(pair.place / "state", {"evening": "b"}, "ann", "")
    _at("08:00", monkeypatch)
    assert unattended.main(str(pair.place)) == 0
    assert exclusive.running(Path(pair.place, "state")) == {"evening": "b"}
