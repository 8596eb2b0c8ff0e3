"""A host with obstacles is refused; faults that bootstrap fixes are judged after it; no reboot
happens without a request.
"""

from typing import Any

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.run import bootstrap, preflight
from sparkwright.run import bootstrap as looking
from tests.operations.harness import FakeHost, Said, fake, run
from tests.operations.sites import site, spark
from tests.unit.bootstrap.states import DGX, UBUNTU, but
from tests.unit.builders import probe

BARE = but(DGX, toolkit=False)
ABSENT = {"installed": False, "code": None, "err": "", "out": ""}


def _host(state: Any, *steps: str, **answers: Any) -> tuple[FakeHost, Any]:
    host = spark(inspection=state, **answers)
    item = site(host, spark("spark-2"), bootstrap=list(steps)).hosts[host.name]
    return host, item


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (but(BARE, driver=None), "refused by bootstrap: bootstrap-driver"),
        (but(BARE, passwordless=False), "refused by bootstrap: bootstrap-sudo"),
        (Said(err="sudo: a password is required", ok=False),
         "sparkwright-inspection: sudo: a password is required"),
    ],
)  # fmt: skip
def test_an_obstacle_fails_only_its_host(state: Any, why: str) -> None:
    host, item = _host(state, "nvidia-container-toolkit", "driver")
    assert looking.decided(host, item) is None  # type: ignore[arg-type]
    assert host.memory.failure == why
    assert host not in host.state.active_hosts
    assert len(host.state.active_hosts) == 1


def test_the_speed_is_measured_on_the_largest_missing_file() -> None:
    host, item = _host(BARE, line_speed=54_000_000)
    item.token = Secret("hf_secret")
    seen = probe(models={item.desired.models[0].directory: None})  # already on the host
    assert looking.speed(host, item, seen) == (54_000_000, "huggingface.co")  # type: ignore[arg-type]
    lacking = item.desired.models[1].resolved
    largest = max(lacking.to_fetch, key=lambda file: file.size)
    (asked,) = [each for each in host.asked if each.program == "line-speed"]
    url = f"https://huggingface.co/{lacking.repository}/resolve/{lacking.commit}/{largest.path}"
    lines = asked.request.splitlines()
    assert lines.count(f'url = "{url}"') == item.settings.download_connections
    assert (lines[-1], asked.hidden) == ('oauth2-bearer = "hf_secret"', True)


def test_a_plan_needs_no_measured_speed() -> None:
    for answer in (Said(err="no route to host", ok=False), 0):
        host, item = _host(BARE, line_speed=answer)
        assert looking.speed(host, item, probe())[0] == 0  # type: ignore[arg-type]
    host, item = _host(BARE)  # a host that lacks no file measures no speed
    there = probe(models=dict.fromkeys((model.directory for model in item.desired.models), None))
    assert looking.speed(host, item, there) == (0, "")  # type: ignore[arg-type]
    assert host.asked == []


def test_preflight_accepts_a_host_with_fixable_faults_and_repeats_its_checks() -> None:
    host, item = _host(BARE, "nvidia-container-toolkit", observe=probe(time=0.0, toolkit=ABSENT))
    looking.decided(host, item)  # type: ignore[arg-type]
    host.answers["observe"] = lambda _: probe(time=preflight.time.time(), toolkit=ABSENT)  # type: ignore[attr-defined]
    assert preflight.judged(host, item, dry=False)  # type: ignore[arg-type]
    assert host.lines[-1] == "nvidia-container-toolkit: checked again after bootstrap"

    def again(of: Any) -> Any:
        return preflight.judged_again(of, item)

    # Bootstrap should have installed the toolkit, and did not.
    ran = run(host, preflight.passed, 0, again, execute=True)
    assert not ran.well
    assert ran.memory.failure == "refused by preflight: nvidia-container-toolkit"
    assert host.noops == []
    host.answers["observe"] = lambda _: probe(time=preflight.time.time())  # type: ignore[attr-defined]
    ran = run(host, preflight.passed, 0, again, execute=True)
    assert (ran.commands, host.noops) == ([], ["preflight passed, 0 warnings"])


def test_a_host_with_a_fault_that_bootstrap_does_not_fix_is_refused() -> None:
    seen = probe(time=preflight.time.time(), toolkit=ABSENT, docker=None)  # type: ignore[attr-defined]
    host, item = _host(BARE, "nvidia-container-toolkit", observe=seen)
    looking.decided(host, item)  # type: ignore[arg-type]
    assert not preflight.judged(host, item, dry=False)  # type: ignore[arg-type]
    assert host.memory.failure == "refused by preflight: docker"


def test_steps_missing_in_an_older_deploy_file_are_reported() -> None:
    host, item = _host(BARE, "docker", observe=probe(time=preflight.time.time()))  # type: ignore[attr-defined]
    assert preflight.judged(host, item, dry=False)  # type: ignore[arg-type]
    assert "let deploy.py call bootstrap()" in host.lines[0]


FRESH = but(UBUNTU, driver=None, boot="before")


def test_a_host_that_does_not_come_back_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_SECONDS", -1.0)
    host = fake(probe(), reboot="before")
    monkeypatch.setattr(host, "disconnect", lambda: None, raising=False)
    ran = run(host, bootstrap.rebooted, FRESH, asked=True, execute=True)
    assert not ran.well
    assert "is not back" in (ran.memory.failure or "")


def test_an_unrequested_reboot_fails_the_host_with_a_remedy() -> None:
    host = fake(probe(), reboot="before")
    dry = run(host, bootstrap.rebooted, FRESH)
    assert host.programs == []
    assert [line for line in host.lines if "--reboot" in line]
    assert len(dry.commands) == 1
    ran = run(host, bootstrap.rebooted, FRESH, execute=True)
    assert not ran.well
    assert host.programs == []
    assert "bootstrap_reboot=True" in (ran.memory.failure or "")
