"""One of two hosts gives wrong answers of any kind: only this host fails, and is named."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.connectors import util

from sparkwright.facts.answers import MOST_TEXT, HostError
from sparkwright.host.jobs import WatchedJob
from sparkwright.host.lib.records import encode
from sparkwright.host.proof import ProofRequest
from sparkwright.operations import jobs, proxies, removal, services, smoke, watch
from sparkwright.operations.lib import locks, switching
from sparkwright.run import ending, observation, preflight, questions
from sparkwright.run.rollout import targets_of
from tests.host.programs import program as put
from tests.operations.harness import FakeHost, Said, run
from tests.operations.sites import looked_at, running, site, spark
from tests.unit.builders import probe
from tests.unit.security.test_hostile_answers import EVIL, harmless

_FIELDS = ("held", "things", "services", "checks", "running", "time", "qwen36")
ATTACKS = {
    "nothing": Said(""),
    "an empty object": Said("{}"),
    "a list": Said("[[]]"),
    "numbers": Said('{"a": 1, "qwen36": 1e999, "held": 5}'),
    "deep": Said("[" * 100_000),
    "deep and whole": Said('{"a":' * 100_000 + "0" + "}" * 100_000),
    "endless": Said("x" * (MOST_TEXT + 1)),
    "escapes": Said(json.dumps({EVIL: EVIL})),
    "escapes instead of JSON": Said(EVIL.replace("\ud800", "")),
    "fails with escapes": Said(err=EVIL.replace("\ud800", ""), ok=False),
    "wrong types": Said(json.dumps({name: [EVIL] for name in _FIELDS})),
}  # fmt: skip


def _asked(host: FakeHost, question: Callable[[], Any]) -> Any:
    """Query a host as a session does: a HostError makes this host fail."""
    try:
        question()
    except HostError as error:
        host.memory.failure = str(error)
    return SimpleNamespace(well=host.memory.failure is None)


def _question(name: str) -> Callable[[FakeHost, Any], Any]:
    question: Any = {
        "status": lambda host, run: observation.status_of(host, run, texts=True),
        "doctor": questions.facts,
        "deep": questions.deep_smoke,
        "disk-usage": questions.used_disk,
        "verify-models": questions.hashed_again,
    }[name]
    return lambda host, run: _asked(host, lambda: question(host, run))


def _smoke(host: FakeHost, row: Any) -> Any:
    gates = [service.gate for service in row.services]
    return run(host, smoke.answers, gates, judged=row.smoke.__setitem__, execute=True)


def _jobs(host: FakeHost, _: Any) -> Any:
    return run(
        host, jobs.finished, {WatchedJob("sparkwright-fetch-a", "/s"): "body"}, ProofRequest(),
        execute=True,
    )  # fmt: skip


#: Program -> function that runs it. `observe` and the `status` of a rollback have tests below.
QUESTIONS: dict[str, Callable[[FakeHost, Any], Any]] = {
    "status": _question("status"),
    "doctor": _question("doctor"),
    "deep": _question("deep"),
    "verify-models": _question("verify-models"),
    "check": _smoke,
    "disk-usage": _question("disk-usage"),
    "jobs": _jobs,
    "lock": _jobs,
    "removal": lambda host, item: run(host, removal.removed, execute=True),
}


def _two(program: str, attack: Said) -> tuple[FakeHost, Any, FakeHost]:
    evil, good = spark("spark-1"), spark("spark-2", observe=probe())
    run_ = site(evil, good)
    for host in (evil, good):
        item = run_.hosts[host.name]
        looked_at(host, item, **running(item), unit_files=["sparkwright-qwen36.service"])
    evil.answers[program] = attack
    return evil, run_, good


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("program", QUESTIONS)
def test_a_hostile_host_fails_alone_at_each_query(program: str, attack: str) -> None:
    evil, run_, good = _two(program, ATTACKS[attack])
    ran = QUESTIONS[program](evil, run_.hosts["spark-1"])
    assert not ran.well
    assert evil.memory.failure
    assert evil.memory.failure.startswith(f"sparkwright-{program}: ")
    assert all(map(harmless, evil.lines))
    assert good.memory.failure is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_observation_fails_only_its_host(
    attack: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    evil, good = spark("spark-1", observe=ATTACKS[attack]), spark("spark-2")
    run_ = site(evil, good)
    good.answers["observe"] = probe(time=time.time(), **running(run_.hosts["spark-2"]))
    on = [preflight.judged(host, run_.hosts[host.name], dry=False) for host in (evil, good)]  # type: ignore[arg-type]
    assert on == [False, True]
    assert all(map(harmless, evil.lines))
    ending.report(run_, as_json=False)
    output = capsys.readouterr().out
    assert harmless(output)
    assert "spark-1: sparkwright-observe: " in output
    assert "NOT as planned: spark-1: sparkwright-observe: " in output


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_status_fails_only_its_hosts_rollback(attack: str) -> None:
    evil, run_, good = _two("status", ATTACKS[attack])
    item = run_.hosts["spark-1"]
    assert targets_of(evil, item, to=None, only=None) is None  # type: ignore[arg-type]
    assert (evil.memory.failure or "").startswith("sparkwright-status: ")
    assert good.memory.failure is None
    assert good in good.state.active_hosts


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("field", ["whole", "progress"])
def test_a_hostile_answer_in_a_switch_fails_only_its_host(attack: str, field: str) -> None:
    evil, run_, good = _two("jobs", ATTACKS[attack])
    item = run_.hosts["spark-1"]
    looked_at(evil, item)
    if field == "progress":
        try:
            inner = json.loads(ATTACKS[attack].out)
        except (ValueError, RecursionError):
            inner = {"step": ["x"], "result": EVIL, "checks": {"a": 5}}
        job = {"running": False, "failed": False, "progress": {"step": inner, "checks": inner}}
        evil.answers["jobs"] = Said(json.dumps({switching.UNIT: job}))
    ran = run(evil, services.running, item.services, item.secrets, execute=True)
    assert not ran.well
    assert (evil.memory.failure or "").startswith("sparkwright-jobs: ")
    assert all(map(harmless, evil.lines))
    assert good.memory.failure is None


def test_an_unknown_result_is_a_failure() -> None:
    evil, run_, _ = _two("jobs", Said())
    item = run_.hosts["spark-1"]
    looked_at(evil, item)

    def ended(request: Any) -> Any:
        (job,) = request["start"]
        path = next(path for path in job["files"] if path.endswith("request.json"))
        name = json.loads(job["files"][path])["id"]
        progress = {"id": name, "step": "ended", "result": EVIL, "reasons": [EVIL]}
        return {switching.UNIT: {"running": False, "failed": False, "progress": progress}}

    evil.answers["jobs"] = ended
    assert not run(evil, services.running, item.services, item.secrets, execute=True).well
    assert any("no proved release runs here now" in line for line in evil.lines)
    assert all(map(harmless, evil.lines))


def test_a_service_without_a_check_fails_its_host() -> None:
    evil, run_, _ = _two("check", Said('{"qwen36": {"checks": []}}'))
    assert not _smoke(evil, run_.hosts["spark-1"]).well
    assert "service qwen36 was not checked" in (evil.memory.failure or "")


def test_unrequested_names_create_no_file() -> None:
    good: dict[str, Any] = {"release": None, "checks": []}
    evil, run_, _ = _two("deep", Said(json.dumps({"qwen36": good, "../../evil": good})))
    assert not _question("deep")(evil, run_.hosts["spark-1"]).well
    assert "'../../evil' was not requested" in (evil.memory.failure or "")


def test_a_lock_of_another_machine_is_not_taken_over() -> None:
    for pid in (-1, 0, 1 << 62):
        owner = {"token": "t", "by": EVIL, "machine": locks.OWNER.machine, "pid": pid, "since": 1}
        evil, run_, _ = _two("lock", Said(json.dumps({"held": False, "by": owner, "now": 5})))
        assert not _jobs(evil, run_.hosts["spark-1"]).well
        assert evil.programs == ["lock"]
        assert "is at work on this host" in (evil.memory.failure or "")
        assert all(map(harmless, evil.lines))


def test_the_text_of_a_change_is_shown_and_not_executed() -> None:
    host = spark("spark-1", install=[EVIL])
    item = site(host, spark("spark-2")).hosts["spark-1"]
    looked_at(host, item)
    ran = run(host, watch.installed, item.watch, execute=True)
    assert ran.well
    assert host.lines
    assert all(map(harmless, host.lines))


def test_operations_read_the_root_of_their_services() -> None:
    """Another root has another lock: a lock that was taken meanwhile must be noticed."""
    for operation, arguments in (
        (watch.installed, (None,)),
        (proxies.serving, (None, {})),
        (proxies.installed, ()),
    ):
        host = spark("spark-1", observe=probe())
        host.memory.services_root = "/srv/sparkwright"
        run(host, operation, *arguments)
        assert host.request("observe")["services_root"] == "/srv/sparkwright"


#: Fake of ``sudo -S``, which reads a line of standard input only if it prompts for a password.
_SUDO = """#!/bin/sh
{ echo "$@"; env; tr '\\0' ' ' < /proc/$$/cmdline; tr '\\0' ' ' < /proc/$PPID/cmdline; } > "$SEEN"
[ "$ASKS" = yes ] && { IFS= read -r word; [ "$word" = 'pass{word' ] || exit 1; }
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.mark.parametrize("asks", ["yes", "no"])
@pytest.mark.parametrize("program", ["status", "observe"])
def test_sudos_password_is_in_no_command_and_no_environment(
    asks: str, program: str, tmp_path: Path
) -> None:
    """A real shell runs sparkwright's commands, whose entries in /proc are searched."""
    seen = tmp_path / "seen"
    put(tmp_path, "sudo", _SUDO)
    host = spark("spark-1")
    item = site(host, spark("spark-2")).hosts["spark-1"]
    host.state.config.SUDO_PASSWORD = "pass{word"

    def shell(command: Any, **arguments: Any) -> Any:
        assert not any("sudo" in name for name in arguments)
        done = subprocess.run(
            ["sh", "-c", command.get_raw_value()], input=arguments["_stdin"], text=True,
            capture_output=True, check=False,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SEEN": str(seen), "ASKS": asks},
        )  # fmt: skip
        lines = [util.OutputLine("stdout", line) for line in done.stdout.splitlines()]
        lines += [util.OutputLine("stderr", line) for line in done.stderr.splitlines()]
        return done.returncode == 0, util.CommandOutput(lines)

    host.run_shell_command = shell  # type: ignore[method-assign]
    if program == "status":
        result = observation.status_of(host, item, texts=False)  # type: ignore[arg-type]
        assert encode(result)["services"] == {}
    else:
        from sparkwright.facts.observation import observe_anew
        from sparkwright.host.observe import ObservationRequest

        assert observe_anew(host, ObservationRequest()).kernel  # type: ignore[arg-type]
    assert "-S" in seen.read_text()
    assert "pass{word" not in seen.read_text()
