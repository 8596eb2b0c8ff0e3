"""Activation of a group's member in place of another member: the transaction, its preconditions,
and the calendar of a host, which activates members unattended.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host import switch as transaction
from sparkwright.host.exclusive import activate, room, setup, unattended
from sparkwright.host.exclusive.activate import ActivateAnswer, ActivateRequest
from sparkwright.host.exclusive.setup import SetupRequest
from sparkwright.host.lib import exclusive, files, gpu, homes, memory, nap, systemd
from sparkwright.host.lib.exclusive import NOBODY, Group, Groups
from sparkwright.host.lib.gpu import Gpu, Gpus
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.lib.nap import Nap
from sparkwright.host.lib.records import decode
from sparkwright.host.proxy import place
from sparkwright.host.proxy.pool import Pool
from sparkwright.host.release import SwitchRequest
from tests.host.exclusive.waking import declare
from tests.host.switch.test_transaction import NEW, OLD, Host, host
from tests.tables import Tables
from tests.unit.builders import kept_service

cases = Tables(__file__)

__all__ = ["host"]
STEPS = ["writing", "draining", "stopping", "switching", "starting", "proving", "reverting"]
GROUPS = Groups({"evening": Group(("a", "b"))}, settle=("true",), recover="recover unit")


def _unit(home: Path) -> str:
    """The service as a deploy writes it: enabled, and skipped while it sleeps."""
    return f"[Unit]\nConditionPathExists=!{home}/asleep\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture
def pair(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """``a`` runs and starts at boot, and ``b`` sleeps."""
    monkeypatch.setattr(homes, "maintenance", lambda: None)
    for name in ("a", "b"):
        home = host.place / "services" / name
        files.write(home / "releases" / OLD / "unit.service", _unit(home), 0o640)
        kept = kept_service(OLD, name, host.place, boot_seconds=1)
        files.write(home / "releases" / OLD / "release.json", kept.record, 0o640)
        files.write(home / "secrets.env", "key", 0o600)
        files.write(systemd.UNITS / f"sparkwright-{name}.service", _unit(home), 0o644)
        systemd.want_at_boot(f"sparkwright-{name}.service", wanted=True)
        files.point(home / "current", f"releases/{OLD}")
        files.point(home / "good", f"releases/{OLD}")
    (host.place / "running-a").write_text(OLD)
    exclusive.mark(host.place / "services/b", "sparkwright-b.service", asleep=True)
    declare(host.place, GROUPS)
    return host


def _ask(host: Host, service: str = "b", **more: Any) -> ActivateAnswer:
    return activate.main(ActivateRequest(service, str(host.place), "ann@laptop", **more))


def _request(host: Host) -> dict[str, Any]:
    return dict(json.loads((host.place / "state/switch/request.json").read_text()))


def _switch(host: Host) -> transaction.Switch:
    return transaction.Switch(host.place / "state/switch", decode(SwitchRequest, _request(host)))


def _state(host: Host) -> tuple[set[str], set[str], str]:
    """Services that run, that start at boot, and that the host reports as active."""
    return (
        {path.name.removeprefix("running-") for path in host.place.glob("running-*")},
        {
            name
            for name in ("a", "b")
            if not (host.place / "services" / name / "asleep").exists()
            and systemd.is_enabled(f"sparkwright-{name}.service")
        },
        exclusive.running(host.place / "state")["evening"],
    )


A, B = ({"a"}, {"a"}, "a"), ({"b"}, {"b"}, "b")


def test_the_first_service_is_active_until_another_service_is_activated(pair: Host) -> None:
    assert _state(pair) == A
    assert exclusive.sleeping(pair.place / "state") == {"b": "a"}
    answer = _ask(pair)
    assert (answer.service_names, answer.group, answer.was, answer.faults) == (
        ("a", "b"), "evening", "a", ())  # fmt: skip
    assert answer.switch == _request(pair)["id"]
    assert _switch(pair).run() == "good"
    assert _state(pair) == B
    assert exclusive.sleeping(pair.place / "state") == {"a": "b"}
    result = exclusive.active(pair.place / "state")["evening"]
    assert (result.service, result.by) == ("b", "ann@laptop")
    # The former service is activated again; a running service needs no switch.
    _ask(pair, "a")
    assert _switch(pair).run() == "good"
    assert _state(pair) == A
    assert _ask(pair, "a") == ActivateAnswer(("a", "b"), "evening", "a")


def test_a_new_release_of_a_sleeping_service_is_written_and_not_started(pair: Host) -> None:
    unit = _unit(pair.place / "services/b")
    service = pair.service("b", sleeps=True, slept=True, restart=False, unit=unit)
    assert pair.switch(service, active={"evening": "a"}).run() == "good"
    assert _state(pair) == A
    home = pair.place / "services/b"
    assert (home / "current").readlink().name == NEW
    assert (home / "good").readlink().name == OLD  # the new release is not proved yet
    assert "start sparkwright-b.service" not in (pair.place / "said").read_text()
    # The activation runs the gate, and a failure restores the service that ran before.
    _ask(pair)
    (new, _) = _request(pair)["services"]
    assert (new["service"]["release"], new["slept"]) == (NEW, True)
    assert _switch(pair).run() == "good"
    assert (home / "good").readlink().name == NEW


def test_two_running_services_become_a_group(pair: Host) -> None:
    """State after ``exclusive`` was added to services that were deployed without it."""
    (pair.place / "running-b").write_text(OLD)
    (pair.place / "services/b/asleep").unlink()
    service = pair.service("b", sleeps=True, to=OLD, files={})
    assert pair.switch(service, active={"evening": "a"}).run() == "good"
    assert _state(pair) == A


RESTS: Any = (set(), set(), NOBODY)


@pytest.fixture
def idle(pair: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Host whose service ``a`` may be stopped while it gets no requests."""
    monkeypatch.setattr(transaction, "_ASSIGNED", 0)
    kept = kept_service(OLD, "a", pair.place, boot_seconds=1)
    record = replace(kept, pool=Pool("a", "/nowhere", "/nowhere", 0, 0)).record
    files.write(pair.place / "services/a/releases" / OLD / "release.json", record, 0o640)
    declare(pair.place, replace(GROUPS, groups={"evening": Group(("a", "b", NOBODY))}))
    return pair


def test_an_idle_service_is_stopped_and_stays_stopped_after_a_boot(idle: Host) -> None:
    assert _ask(idle, "b", rests=True).switch is None  # ``b`` does not run
    assert _ask(idle, "a", rests=True).service_names == ("a", "b")
    assert _switch(idle).run() == "good"
    assert _state(idle) == RESTS
    assert exclusive.sleeping(idle.place / "state") == {"a": NOBODY, "b": NOBODY}
    assert _ask(idle, "a", rests=True).switch is None
    assert _ask(idle, "a").was == NOBODY
    assert _switch(idle).run() == "good"
    assert (_state(idle), exclusive.sleeping(idle.place / "state")) == (A, {"b": "a"})


def test_a_request_from_before_the_switch_is_not_cut(
    idle: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask(idle, "a", rests=True)
    asleep = []

    def in_flight(pool: Pool) -> int:
        asleep.append(exclusive.sleeping(idle.place / "state")[pool.proxy])
        return 1

    monkeypatch.setattr(place, "in_flight", in_flight)
    assert _switch(idle).run() == "reverted"
    assert asleep == [NOBODY]  # later requests wait
    assert _state(idle) == A
    assert "stop" not in (idle.place / "said").read_text()


def _cut(switch: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """End a switch at this step, as if the program had been killed."""
    note = switch._note

    def cut(name: str, *more: Any) -> None:
        note(name, *more)
        if name == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(switch, "_note", cut)
    with pytest.raises(KeyboardInterrupt):
        switch.run()


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power"])
@pytest.mark.parametrize(
    ("rests", "step"), [*((False, step) for step in STEPS), *((True, step) for step in STEPS[:-1])]
)
def test_after_an_interruption_at_any_step_the_active_service_runs(
    idle: Host, *, rests: bool, step: str, power: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = idle
    _ask(pair, "a" if rests else "b", rests=rests)
    ill = step == "reverting"
    run = pair.check.run

    def asked(row: Any, *look: Any) -> Any:
        pair.check.bad = {OLD} if ill and row.name == "b" else set()
        return run(row, *look)

    monkeypatch.setattr(pair.check, "run", asked)
    _cut(_switch(pair), step, monkeypatch)
    again = _switch(pair)
    if power:
        for name in ("a", "b"):
            (pair.place / f"running-{name}").unlink(missing_ok=True)
        assert again.settle()
        for name in _state(pair)[1]:
            systemd.systemctl("start", f"sparkwright-{name}.service")
        assert len(_state(pair)[0]) <= 1  # the memory has room for one service
        again = _switch(pair)
    result = again.run()
    assert (result, _state(pair)) in (("good", RESTS if rests else B), ("reverted", A))


# --- An engine that sleeps


class Engine:
    """Fake of vLLM's sleep; ``fails`` names the request that fails, ``enter`` or ``leave``."""

    def __init__(self, fails: str = "") -> None:
        self.asleep, self.fails = False, fails

    def sleeps(self, *_: object) -> bool:
        return self.asleep

    def enter(self, *_: object) -> bool:
        self.asleep = self.asleep or self.fails != "enter"
        return self.asleep

    def leave(self, *_: object) -> bool:
        self.asleep = self.fails == "leave"
        return not self.asleep


@pytest.fixture
def napping(idle: Host, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Engine]:
    """The engine of ``a``, the only member of the group ``evening``, sleeps when idle."""
    kept = kept_service(OLD, "a", idle.place, boot_seconds=1)
    record = replace(kept, pool=Pool("a", "/nowhere", "/nowhere", 0, 0), nap=Nap("/", (), ()))
    files.write(idle.place / "services/a/releases" / OLD / "release.json", record.record, 0o640)
    declare(idle.place, replace(GROUPS, groups={"evening": Group(("a", NOBODY))}))

    def engine(fails: str) -> Engine:
        result = Engine(fails)
        for name in ("sleeps", "enter", "leave"):
            monkeypatch.setattr(nap, name, getattr(result, name))
        return result

    return engine


def _rest_and_wake(host: Host, verb: str) -> list[bool]:
    """Whether systemctl got the verb for ``a`` when ``a`` fell asleep, and when ``a`` woke up."""
    result, verbs = [], host.place / "said"
    for rests in (True, False):
        verbs.write_text("")
        _ask(host, "a", rests=rests)
        assert _switch(host).run() == "good"
        result.append(f"{verb} sparkwright-a.service" in verbs.read_text())
    return result


@cases("fails", "stops")
def test_an_idle_engine_sleeps_and_its_unit_stops_only_if_sleeping_fails(
    idle: Host, napping: Callable[[str], Engine], fails: str, stops: list[bool]
) -> None:
    napping(fails)
    assert _rest_and_wake(idle, "stop") == stops
    assert _state(idle) == A


def test_an_engine_that_wakes_up_with_wrong_answers_restarts(
    idle: Host, napping: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = napping("")
    _ask(idle, "a", rests=True)
    assert _switch(idle).run() == "good"
    assert (engine.asleep, _state(idle)) == (True, ({"a"}, set(), NOBODY))
    run = idle.check.run

    def asked(*row: Any) -> Any:
        fresh = "stop sparkwright-a.service" in (idle.place / "said").read_text()
        idle.check.bad = set() if fresh else {OLD}
        return run(*row)

    monkeypatch.setattr(idle.check, "run", asked)
    _ask(idle, "a")
    assert _switch(idle).run() == "good"
    assert _state(idle) == A


@pytest.mark.parametrize("step", STEPS[:-1])
@pytest.mark.parametrize("rests", [True, False])
def test_an_interrupted_switch_of_a_sleeping_engine_ends_in_either_state(
    idle: Host, napping: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch, step: str,
    rests: bool,
) -> None:  # fmt: skip
    engine = napping("")
    if not rests:
        _ask(idle, "a", rests=True)
        assert _switch(idle).run() == "good"
    _ask(idle, "a", rests=rests)
    _cut(_switch(idle), step, monkeypatch)
    assert _switch(idle).run() in ("good", "reverted")
    active = exclusive.running(idle.place / "state")["evening"]
    assert engine.asleep is (active == NOBODY)
    assert _state(idle)[0] == {"a"}


@pytest.mark.parametrize("to", [NEW, OLD], ids=["release", "key"])
def test_a_deploy_stops_a_changed_service_that_sleeps(
    idle: Host, napping: Callable[[str], Engine], to: str
) -> None:
    napping("")
    _ask(idle, "a", rests=True)
    assert _switch(idle).run() == "good"
    service = idle.service("a", to=to, sleeps=True, unit=_unit(idle.place / "services/a"))
    service = replace(service, service=replace(service.service, nap=Nap("/", (), ())))
    assert idle.switch(service, active={"evening": NOBODY}).run() == "good"
    assert _state(idle) == RESTS


# Obstacles


@cases("case", "why")
def test_an_obstacle_to_an_activation_is_reported_and_changes_nothing(
    pair: Host, case: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = pair.place / "state"
    if case == "lock":
        lock = {"token": "theirs", "by": "bob@desk"}
        files.write(state / "lock.json", json.dumps(lock), 0o644)
    elif case == "maintenance":
        mark = Maintenance("bob", 1.0)
        monkeypatch.setattr(homes, "maintenance", lambda: mark)
    elif case == "switching":
        monkeypatch.setattr(systemd, "unit", lambda *_, **__: {"ActiveState": "active"})
    else:
        (pair.place / "services/b/current").unlink()
    for dry in (True, False):
        answer = _ask(pair, dry=dry)
        assert answer.faults[0].startswith(why)
        assert answer.switch is None
    assert not (state / "switch/request.json").exists()
    assert _state(pair) == A


def test_an_activation_runs_under_its_own_lock_and_a_dry_run_writes_nothing(pair: Host) -> None:
    lock = {"token": "ours", "by": "ann@laptop"}
    files.write(pair.place / "state/lock.json", json.dumps(lock), 0o644)
    assert _ask(pair, token="ours", dry=True).faults == ()
    assert not (pair.place / "state/switch/request.json").exists()
    assert _ask(pair, token="ours", boot_lines={"Capturing": "graphs"}).switch
    request = json.loads((pair.place / "state/switch/request.json").read_text())
    assert request["boot_lines"] == {"Capturing": "graphs"}


def test_a_deploy_planned_before_another_activation_changes_nothing(pair: Host) -> None:
    exclusive.activate(pair.place / "state", {"evening": "b"}, "calendar", "")
    assert pair.switch(pair.service("a"), active={"evening": "a"}).run() == "failed"
    assert pair.journal()["reasons"] == [
        "evening: b was activated meanwhile: run the command again"
    ]
    text = pair.place / "said"
    assert "stop" not in (text.read_text() if text.exists() else "")


def test_a_service_without_a_group_is_not_activated(pair: Host) -> None:
    for name in ("c", "../a", "evening"):
        assert _ask(pair, name) == ActivateAnswer(("a", "b"))


def test_a_sleeping_release_older_than_its_group_is_not_started_at_boot(pair: Host) -> None:
    unit = "[Install]\nWantedBy=multi-user.target\n"
    files.write(pair.place / "services/a/releases" / OLD / "unit.service", unit, 0o640)
    _ask(pair)
    assert _switch(pair).run() == "good"
    assert not systemd.is_enabled("sparkwright-a.service")
    assert _state(pair) == B


def test_a_removed_group_leaves_no_state(pair: Host) -> None:
    setup.main(SetupRequest(str(pair.place)))
    assert exclusive.groups(pair.place / "state") == Groups()
    assert not list((pair.place / "state").glob("*.json"))
    # If a running member is removed, the first remaining member becomes active.
    exclusive.activate(pair.place / "state", {"evening": "c"}, "ann", "")
    declare(pair.place, GROUPS)
    assert exclusive.active(pair.place / "state")["evening"].service == "a"


_CARD = Gpu("NVIDIA RTX 5090", memory_mib=100 << 10)


@cases("name", "free", "lacks")
def test_a_service_whose_memory_another_program_has_taken_is_not_started(
    pair: Host, monkeypatch: pytest.MonkeyPatch, name: str, free: int, lacks: str
) -> None:
    declare(pair.place, replace(GROUPS, memory={"a": 40.0, "b": 50.0, "c": 20.0}))
    card = replace(_CARD, name=name, memory_used_mib=(100 - free) << 10)
    monkeypatch.setattr(gpu, "ask", lambda _: Gpus(True, 0, "", (card,)))
    monkeypatch.setattr(memory, "meminfo", lambda: {"MemAvailable": free << 30})
    other = pair.place / "running-c"
    other.write_text(OLD)
    _ask(pair)
    assert _switch(pair).run() == ("reverted" if lacks else "good")
    other.unlink()
    assert _state(pair) == (A if lacks else B)
    assert ("stop" in (pair.place / "said").read_text()) is not bool(lacks)
    journal = json.loads((pair.place / "state/switch/progress.json").read_text())
    assert journal["reasons"] == ([lacks] if lacks else [])


def test_an_unattended_activation_reports_the_lack_of_memory(
    calendar: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "lacking", lambda *_: "no room")
    assert unattended.run(calendar.place, "b", "request") == "no room"
    assert _state(calendar) == A


def test_an_idle_stop_measures_the_freed_memory(
    idle: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free = iter([10.0, 60.5])
    monkeypatch.setattr(room, "measured", lambda: next(free))
    _ask(idle, "a", rests=True)
    assert _switch(idle).run() == "good"
    assert "50.5 GiB of memory are free again" in capsys.readouterr().out


@pytest.fixture
def calendar(pair: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """``b`` runs on Mondays from 08:00 to 18:00; units that systemd starts are run at once."""
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
    """Set the clock to a time on Monday, 2026-11-23."""
    now = time.strptime(f"2026-11-23 {clock}", "%Y-%m-%d %H:%M")
    monkeypatch.setattr(time, "localtime", lambda: now)


def test_the_calendar_activates_a_service_and_later_the_default(
    calendar: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for clock, runs in (("07:59", "a"), ("08:00", "b"), ("17:59", "b"), ("18:00", "a")):
        _at(clock, monkeypatch)
        assert unattended.main(str(calendar.place)) == 0
        assert _state(calendar) == ({runs}, {runs}, runs)
    assert "b: starts, and a stops" in capsys.readouterr().out
    result = exclusive.active(calendar.place / "state")["evening"]
    assert result.by.startswith("calendar@")
    # The lock is released and names its last owner, so that a deploy with an older observation
    # stops.
    assert not (calendar.place / "state/lock.json").exists()
    last = json.loads((calendar.place / "state/lock-last.json").read_text())
    assert last["by"].startswith("calendar@")


def test_a_failed_activation_is_reverted_and_not_repeated_every_minute(
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


def test_the_calendar_waits_for_a_deploy(calendar: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = {"token": "theirs", "by": "bob@desk", "machine": "desk", "pid": 1, "since": 1.0}
    files.write(calendar.place / "state/lock.json", json.dumps(lock), 0o644)
    _at("08:00", monkeypatch)
    assert unattended.main(str(calendar.place)) == unattended.AGAIN
    assert _state(calendar)[2] == "a"
    assert json.loads((calendar.place / "state/lock.json").read_text())["by"] == "bob@desk"


@pytest.mark.parametrize("over", ["another boot", "a process that has ended"])
def test_a_lock_left_by_a_power_cut_is_taken_over(
    calendar: Host, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = "on the host itself, boot gone" if over == "another boot" else unattended._boot()
    lock = {"token": "x", "by": "calendar@here", "machine": machine, "pid": 1 << 22, "since": 1.0}
    files.write(calendar.place / "state/lock.json", json.dumps(lock), 0o644)
    _at("08:00", monkeypatch)
    assert unattended.main(str(calendar.place)) == 0
    assert _state(calendar)[2] == "b"


def test_a_manual_activation_stays_without_a_calendar(
    pair: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    exclusive.activate(pair.place / "state", {"evening": "b"}, "ann", "")
    _at("08:00", monkeypatch)
    assert unattended.main(str(pair.place)) == 0
    assert exclusive.running(Path(pair.place, "state")) == {"evening": "b"}
