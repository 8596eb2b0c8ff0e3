"""Services stopped and hosts in maintenance by request: lock, answer, and deploys without them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest

from sparkwright.host.control import RESTART, STOP, ControlAnswer, ControlRequest
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.maintenance import MaintenanceAnswer, MaintenanceRequest
from sparkwright.host.release import Phase, SwitchJournal
from sparkwright.operations import control
from sparkwright.operations.lib import progress, switching
from sparkwright.run import preflight
from sparkwright.run.state import HostRun
from tests.operations.emergencies import host, pyinfra, write_site
from tests.operations.harness import FakeHost, Ran, as_json, busy, fake, run
from tests.operations.sites import looked_at, site, spark
from tests.unit.builders import probe

REQUEST = ControlRequest(STOP, ("qwen36",))
DONE = ControlAnswer(("qwen36",), {"qwen36": "stopped"})
MARK = Maintenance("ann@laptop", 820.0, "a new fan")
ON = MaintenanceRequest(True)


def _controlled(request: ControlRequest = REQUEST, **answers: Any) -> tuple[Ran, list[Any]]:
    texts: list[Any] = []
    answers.setdefault("control", DONE)
    host = fake(probe(), **answers)
    return run(host, control.controlled, request, answered=texts.append, execute=True), texts


def test_phases_of_a_boot_are_shown_during_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[tuple[str, str]] = []
    monkeypatch.setattr(switching, "_EVERY", 0.01)
    monkeypatch.setattr(progress.LIVE, "notice", lambda *event: events.append(event))
    now = SwitchJournal(step="proving", phases={"qwen36": Phase("compiling", 100.0, 40.0)})
    jobs = {"sparkwright-control": JobStatus(False, False, as_json(now), now=112.0)}

    def restarted(request: Any) -> ControlAnswer:
        assert "compiling" in request["boot_lines"].values()
        gevent.sleep(0.1)
        return DONE

    ran, _ = _controlled(replace(REQUEST, action=RESTART), control=restarted, jobs=jobs)
    assert ran.well
    assert events[0] == ("spark-1", "qwen36: compiling for 12 s (40 s last time)")
    (asked, *_) = [item.request for item in ran.host.asked if item.program == "jobs"]
    assert asked["watch"][0]["state"] == "/opt/sparkwright/state/control"
    count = len(ran.host.asked)
    gevent.sleep(0.05)
    assert len(ran.host.asked) == count  # no further request is sent


def test_only_a_stop_continues_beside_a_run_that_may_have_died() -> None:
    ran, message = _controlled(lock=busy)
    assert (ran.well, message) == (True, [DONE])
    assert (
        ran.host.lines[0]
        == "ann@laptop (for 3 min) is at work on this host: continuing without the lock"
    )
    assert ran.memory.locked is None  # the other run keeps its lock
    for action in ("start", RESTART):
        ran, message = _controlled(replace(REQUEST, action=action), lock=busy)
        assert (ran.well, message, ran.host.programs) == (False, [], ["lock"])
        assert (ran.memory.failure or "").startswith("ann@laptop (for 3 min) is at work")


def test_a_failed_step_fails_the_host_and_is_reported() -> None:
    control_answer = ControlAnswer(("qwen36",), faults=("qwen36 does not stop", "    more"))
    ran, message = _controlled(control=control_answer)
    assert (ran.well, message, ran.memory.failure) == (
        False,
        [control_answer],
        "qwen36 does not stop",
    )


def test_after_a_silent_host_no_further_host_is_restarted() -> None:
    made = fake(probe(), control=DONE)
    ran = run(
        made, control.controlled, replace(REQUEST, action=RESTART),
        unless=lambda: "not restarted, since spark-1 does not answer", execute=True,
    )  # fmt: skip
    assert (ran.well, made.programs) == (False, ["lock"])


def test_maintenance_takes_the_lock_and_reports_changes() -> None:
    answer = MaintenanceAnswer(MARK, ("qwen36: out",))
    texts: list[Any] = []
    made = fake(probe(), maintenance=answer)
    ran = run(made, control.in_maintenance, ON, answered=texts.append, execute=True)
    assert (ran.well, texts, ran.memory.changes) == (True, [answer], ["qwen36: out"])
    made = fake(probe(), maintenance=answer, lock=busy)
    assert not run(made, control.in_maintenance, ON, execute=True).well
    made = fake(probe(), maintenance=replace(answer, faults=("qwen36: health: no answer",)))
    assert not run(made, control.in_maintenance, ON, execute=True).well


def _preflight(**changes: Any) -> tuple[FakeHost, HostRun, bool]:
    made = spark(observe=probe(**changes))
    item = site(made, spark("spark-2")).hosts["spark-1"]
    return made, item, preflight.judged(made, item, dry=False)  # type: ignore[arg-type]


def test_preflight_sets_a_host_in_maintenance_aside() -> None:
    """Other faults of a host in maintenance are ignored, since a user works on the host."""
    made, item, on = _preflight(maintenance=as_json(MARK), docker=None, switching=True)
    assert not on
    assert made.programs == ["observe"]
    assert (item.findings, made.memory.failure) == ([], None)
    assert item.left == "in maintenance for 3 min, by ann@laptop: a new fan"
    assert made.lines == [f"{item.left}: this run skips the host"]
    assert made not in made.state.active_hosts
    assert made.state.failed_hosts == set()


def test_a_host_in_maintenance_takes_no_part_in_the_run() -> None:
    """No host may fetch weights from a host that a user may switch off at any time."""
    hosts = [spark("spark-1"), spark("spark-2")]
    result = site(*hosts)
    for made in hosts:
        looked_at(made, result.hosts[made.name])
    result.hosts["spark-1"].left = "in maintenance"
    assert [item.name for item in result.live()] == ["spark-2"]


# --- A deploy by pyinfra's own command line


def test_a_deploy_over_a_host_in_maintenance_succeeds(tmp_path: Path) -> None:
    seen = probe(maintenance=as_json(MARK))
    write_site(
        tmp_path, host("spark-1", {"services": {}}, observe=seen),
        deploy="from roles.preflight import preflight\nfrom roles.smoke import smoke\n"
        "preflight()\nsmoke()\n",
    )  # fmt: skip
    done = pyinfra(tmp_path, "--yes", "inventory/lab.py", "deploy.py")
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / ".sparkwright/last-run.json").read_text())
    (row,) = record["hosts"]
    assert (row["refused"], row["changes"]) == (None, [])
    assert row["left"].endswith("by ann@laptop: a new fan")
    assert "a new fan: left alone" in done.stdout
    assert "NOT as planned" not in done.stdout
