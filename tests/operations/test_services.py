"""Services: noop, what would change, the switch that is requested, and how it ends."""

import json
from typing import Any

import pytest

from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.records import decode
from sparkwright.host.release import SwitchJournal
from sparkwright.operations import services, switching
from sparkwright.operations.switching import UNIT, Interrupted
from tests.operations.harness import FakeHost, as_json, fake, run
from tests.operations.sites import host_run, running, spark
from tests.tables import Tables, merged
from tests.unit.builders import plan, probe, wanted

cases = Tables(__file__)

ROOT = "/opt/sparkwright"
RUN = host_run(spark())
(SERVICE,) = RUN.services
SECRETS = RUN.secrets
NOW = SERVICE.release
OLD = "0123456789ab"


def _host(*, jobs: Any = None, old: bool = False, **changes: Any) -> FakeHost:
    """A Spark on which the service runs as desired, or an earlier release of it."""
    seen = probe(**{**running(RUN, OLD if old else None), **changes})
    host = fake(seen, services.request_of((SERVICE,), ROOT))
    host.answers["jobs"] = jobs or ends()
    return host


def ends(result: str = "good", *reasons: str, **journal: Any) -> Any:
    """The switch that is asked for has ended like that."""

    def answer(request: Any) -> dict[str, JobStatus]:
        name = request_of(request)["id"]
        switch_journal = SwitchJournal(name, "ended", result, reasons, 2.5, **journal)
        return {UNIT: JobStatus(False, result != "good", as_json(switch_journal))}

    return answer


def request_of(asked: Any) -> Any:
    (job,) = asked["start"]
    return json.loads(job["files"][f"{ROOT}/state/switch/request.json"])


@cases("changes", "message", "restart")
def test_what_is_not_as_desired_is_what_would_be_done(
    changes: dict[str, Any], message: str, restart: bool
) -> None:
    at = {
        "services": {"qwen36": changes.get("state", {})},
        "units": {SERVICE.unit: changes.get("unit", {})},
    }
    seen, message = merged(running(RUN), at), message.format(now=NOW)
    dry = run(_host(**seen), services.running, (SERVICE,), SECRETS)
    assert dry.host.lines == [f"would service qwen36: {message}"]
    assert (len(dry.commands), dry.host.asked) == (1, [])
    host = _host(**seen)
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert ran.well, host.lines
    assert host.programs == ["lock", "jobs"]
    assert ran.memory.changes == [f"service qwen36: {message}"]
    assert ran.memory.stale
    (item,) = request_of(host.request("jobs"))["services"]
    asked = (item["service"]["release"], item["restart"], ", ".join(item["why"]))
    assert asked == (NOW, restart, message)


def test_what_is_as_desired_is_left_alone() -> None:
    for execute in (False, True):
        ran = run(_host(), services.running, (SERVICE,), SECRETS, execute=execute)
        assert (ran.commands, ran.host.asked) == ([], [])
        assert ran.host.noops == ["every service runs as desired"]
    assert run(_host(), services.running, (), {}).host.noops == ["no service of this host"]


@cases("settings", "service", "wished")
def test_a_second_start_needs_what_the_first_compiled(
    settings: dict[str, Any], service: dict[str, Any], wished: bool
) -> None:
    services_ = {"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8000, **service}}
    (item,) = wanted(plan(services_, **settings)).services
    assert item.second_boot == wished


@cases("end", "failure", "lines")
def test_a_switch_that_did_not_end_well_fails_the_host(
    end: dict[str, Any], failure: str, lines: list[str]
) -> None:
    jobs = {UNIT: decode(JobStatus, end["job"])} if "job" in end else ends(*end["journal"])
    host = _host(old=True, jobs=jobs)
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert not ran.well
    assert ran.memory.failure == failure
    assert host.lines[-1 - len(lines) :] == [failure, *lines]
    assert ran.memory.changes == []


def test_following_a_switch_that_nobody_works_on_is_an_interruption() -> None:
    host = _host(jobs={UNIT: JobStatus(False, False, {"id": "x", "step": "stopping"})})
    with pytest.raises(Interrupted, match="the switch was interrupted: it ended without output"):
        switching.follow(host)  # type: ignore[arg-type]


def test_the_turn_decides_and_the_end_is_told() -> None:
    texts: list[Any] = []
    host = _host(old=True)

    def turn(of: Any, carry_out: Any) -> SwitchJournal:
        texts.append(host.programs)
        result: SwitchJournal = carry_out(of)
        return result

    ran = run(
        host, services.running, (SERVICE,), SECRETS, execute=True, turn=turn,
        ended=lambda done, result: texts.append((done[0].to, result.result)),
    )  # fmt: skip
    # The lock is held while a host waits for its turn.
    assert texts == [["lock"], (NOW, "good")]
    assert ran.memory.changes[-1] == "down for 2.5 s"


def test_nothing_is_switched_back_to_the_release_that_runs() -> None:
    ran = run(_host(), services.switched_back, list)
    assert (ran.commands, ran.host.noops) == ([], ["every service runs that release"])


@pytest.mark.parametrize("number", [0, 2, 99])
def test_a_host_of_another_version_is_left_alone(number: int) -> None:
    state = {"qwen36": {"format": number, "current": OLD}}
    host = _host(**merged(running(RUN), {"services": state}))
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert not ran.well
    assert host.asked == []
    assert "another version of sparkwright deployed this host" in host.lines[0]
    assert "sparkwright remove" in host.lines[0]
