"""Deploys and activation of exclusive services: unchanged, written and stopped members."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.host.exclusive.activate import ActivateAnswer, ActivateRequest
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.records import decode
from sparkwright.host.release import SwitchJournal, SwitchRequest
from sparkwright.operations import exclusive, services
from sparkwright.operations.lib.switching import UNIT
from tests.operations.harness import FakeHost, Ran, as_json, busy, fake, run
from tests.operations.sites import host_run, looked_at, running, spark, written
from tests.operations.test_services import ROOT, ends, request_of
from tests.unit.builders import SPARK

RECIPE = SPARK["qwen36"]["recipe"]
EVENING: dict[str, Any] = {
    name: {"recipe": RECIPE, "port": port, "served_names": [name], "exclusive": "evening"}
    for name, port in (("writer", 8000), ("chat", 8001))
}
OLD = "0123456789ab"
ONE = host_run(fake(None), EVENING)
SERVICES = ONE.services
FILES = ONE.exclusive_files
CHAT, WRITER = SERVICES


def _seen(active: str | None = None, **changes: Any) -> dict[str, Any]:
    """State after a deploy: the default or the activated service runs; the other service sleeps."""
    seen = running(ONE)
    for service in SERVICES:
        if service.name != (active or "writer"):
            seen["services"][service.name] |= {"container": None, "asleep": True}
            seen["units"][service.unit] = {"ActiveState": "inactive", "UnitFileState": "enabled"}
    for name, more in changes.items():
        seen["services"][name] |= more
    if active:
        seen["active"] = {"evening": {"service": active, "by": "ann", "at": 1.0, "why": ""}}
    return seen


def _host(seen: dict[str, Any]) -> FakeHost:
    request = services.request_of(SERVICES, ROOT)
    fake_host = spark()
    looked_at(fake_host, host_run(fake_host, EVENING), **seen)
    fake_host.memory.asked = request
    fake_host.answers["jobs"] = ends()
    return fake_host


def _request(host: FakeHost) -> SwitchRequest:
    return decode(SwitchRequest, request_of(host.request("jobs")))


@pytest.mark.parametrize(
    ("changes", "message", "restart", "slept"),
    [
        ({"current": OLD}, f"release {CHAT.release} after {OLD}", False, True),
        ({"current": None, "secrets": None, "asleep": False},
         f"release {CHAT.release}, API key, no start at boot", False, True),
        ({"asleep": False}, "no start at boot", False, True),
    ],
)  # fmt: skip
def test_a_sleeping_service_is_prepared_and_not_started(
    changes: dict[str, Any], message: str, restart: bool, slept: bool
) -> None:
    result = _host(_seen(chat=changes))
    ran = run(result, services.running, SERVICES, ONE.secrets, execute=True)
    assert ran.well, result.lines
    assert ran.memory.changes == [f"service chat: {message}"]
    request = _request(result)
    (service,) = request.services
    assert (service.restart, service.sleeps, service.slept) == (restart, True, slept)
    assert request.active == {"evening": "writer"}
    assert request.activates == {}
    assert f"ConditionPathExists=!{service.service.home}/asleep" in CHAT.unit_text


def test_two_parallel_services_become_a_group() -> None:
    """``exclusive`` was added to running services: the run stops all services except the first."""
    result = _host(running(ONE))
    ran = run(result, services.running, SERVICES, ONE.secrets, execute=True)
    assert ran.memory.changes == ["service chat: no start at boot, stop"]
    (service,) = _request(result).services
    assert (service.restart, service.sleeps, service.slept) == (True, True, False)
    assert service.from_release == CHAT.release  # a rollback starts this release


def test_an_active_service_marked_as_asleep_is_woken() -> None:
    ran = run(_host(_seen(writer={"asleep": True})), services.running, SERVICES, ONE.secrets)
    assert ran.host.lines == ["would service writer: awake"]


# --- Files of the groups


def _declared(seen: dict[str, Any], files: Any = FILES) -> Ran:
    request = exclusive.request_of(FILES, ROOT)
    result = spark(setup=["wrote the exclusive groups"])
    looked_at(result, host_run(result, EVENING), files=seen)
    result.memory.asked = request
    return run(result, exclusive.declared, files, execute=True)


def test_groups_are_written_once_and_removed_with_the_last_group() -> None:
    ran = _declared({})
    assert ran.host.programs == ["lock", "setup"]
    assert set(ran.host.request("setup")["files"]) == set(FILES)
    assert _declared(written(FILES)).host.noops == ["exclusive groups are as desired"]
    ran = _declared(written(FILES), files={})
    assert ran.host.request("setup")["files"] == {}
    assert _declared({}, files={}).host.noops == ["no exclusive group"]


def test_an_idle_service_is_recorded_on_its_host_and_stays_stopped_in_the_next_deploy() -> None:
    settings = {"chat": {"recipe": RECIPE, "idle": {"after": "2h"}}}
    idle = host_run(fake(None), settings)
    (chat,) = idle.services
    (text, _) = idle.exclusive_files[f"{ROOT}/state/exclusive.json"]
    declared = json.loads(text)
    assert 50 < declared["memory"]["chat"] < 128
    assert declared["idle"] == {"chat": 7200.0}
    assert declared["on_request"] == ["chat"]
    assert f"ConditionPathExists=!{chat.home}/asleep" in chat.unit_text
    seen = running(idle)
    seen["services"]["chat"] |= {"container": None, "asleep": True}
    seen["units"][chat.unit] = {"ActiveState": "inactive", "UnitFileState": "enabled"}
    seen["active"] = {"idle.chat": {"service": "(nobody)", "by": "idle@here", "at": 1.0, "why": ""}}
    host = spark()
    looked_at(host, host_run(host, settings), **seen)
    host.memory.asked = services.request_of(idle.services, ROOT)
    ran = run(host, services.running, idle.services, idle.secrets, execute=True)
    assert (ran.well, ran.host.noops) == (True, ["every service runs as desired"])


@pytest.mark.parametrize(
    ("do", "release", "change"),
    [("sleep", None, None), ("sleep", OLD, "stop"), ("stop", None, "stop")],
)
def test_a_deploy_without_changes_leaves_a_sleeping_engine_running(
    do: str, release: str | None, change: str | None
) -> None:
    settings = {"chat": {"recipe": RECIPE, "idle": {"after": "2h", "do": do}}}
    host = spark()
    idle = host_run(host, settings)
    seen = running(idle)
    seen["services"]["chat"]["asleep"] = True
    if release:
        seen["services"]["chat"]["container"]["release"] = release
    seen["active"] = {"idle.chat": {"service": "(nobody)", "by": "idle@here", "at": 1.0, "why": ""}}
    looked_at(host, idle, **seen)
    host.memory.asked = services.request_of(idle.services, ROOT)
    ran = run(host, services.running, idle.services, idle.secrets)
    assert ran.host.lines == ([f"would service chat: {change}"] if change else [])


# Activating

REQUEST = ActivateRequest("chat", ROOT, "ann@laptop")
BEGUN = ActivateAnswer(("writer", "chat"), "evening", "writer", "abc")


def _activated(
    request: ActivateRequest = REQUEST,
    answer: ActivateAnswer = BEGUN,
    journal: SwitchJournal | None = None,
    **answers: Any,
) -> tuple[Ran, list[Any]]:
    texts: list[Any] = []
    ended = journal or SwitchJournal("abc", "ended", "good", (), 12.5)
    jobs = {UNIT: JobStatus(False, False, as_json(ended))}
    result = spark(activate=answer, jobs=jobs, **answers)
    looked_at(result, host_run(result, EVENING))
    result.answers.update(answers)
    return run(result, exclusive.activated, request, answered=texts.append, execute=True), texts


@pytest.mark.parametrize(
    ("result", "runs"),
    [("reverted", "writer runs again"), ("failed", "no proved release runs here now")],
)
def test_a_failed_activation_fails_the_host_and_is_reported(result: str, runs: str) -> None:
    ran, message = _activated(journal=SwitchJournal("abc", "ended", result, ("chat: no",), 12.5))
    assert not ran.well
    assert message[0].faults == ("chat: no", runs)
    assert ran.memory.failure == f"chat: no\n{runs}" or "chat: no" in str(ran.memory.failure)


def test_an_already_running_service_stays_unchanged() -> None:
    ran, message = _activated(answer=replace(BEGUN, was="chat", switch=None))
    assert "compiling" in ran.host.request("activate")["boot_lines"].values()
    assert (ran.well, ran.host.programs, ran.memory.changes) == (True, ["lock", "activate"], [])
    assert message[0].result is None


def test_an_activation_waits_for_the_lock_and_a_dry_run_takes_no_lock() -> None:
    ran, message = _activated(lock=busy)
    assert (ran.well, message, ran.host.programs) == (False, [], ["lock"])
    ran, message = _activated(replace(REQUEST, dry=True), replace(BEGUN, switch=None))
    assert (ran.well, ran.host.programs) == (True, ["activate"])
    assert len(message) == 1
