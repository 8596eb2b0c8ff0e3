"""Every job has the sandbox, and its secrets are in nothing that outlives it."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.jobs import Job
from sparkwright.host.lib import sandbox
from sparkwright.host.lib.records import decode
from sparkwright.host.release import SwitchRequest
from sparkwright.operations import images, models, services
from tests import systemd
from tests.operations.harness import run
from tests.operations.test_fetching import MODEL, PULL, WITH_SECRETS, _image, _model, libraries
from tests.operations.test_services import SECRETS, SERVICE, _host, _request

assert libraries  # the fixture, for this file's tests too

#: The most that `systemd-analyze security` may say of each: the switch installs packages.
MOST = {"fetch": 2.5, "pull": 2.5, "switch": 3.5}


def _jobs(kind: str) -> list[Job]:
    if kind == "switch":
        host = _host(old=True)
        run(host, services.running, (SERVICE,), SECRETS, execute=True)
        asked = next(item.request for item in host.asked if item.program == "jobs")
    elif kind == "fetch":
        host = _model()
        run(host, models.present, execute=True, wait=False, sources=WITH_SECRETS, **MODEL)
        asked = host.request("jobs")
    else:
        host = _image()
        wanted: dict[str, Any] = {**PULL, "account": "me:secret", "sources": WITH_SECRETS}
        run(host, images.present, execute=True, wait=False, **wanted)
        asked = host.request("jobs")
    result = [decode(Job, item) for item in asked["start"]]
    return [job for job in result if f"-{kind}" in job.unit]


@pytest.mark.parametrize("kind", MOST)
def test_systemd_holds_a_job_to_be_closed(kind: str, tmp_path: Path) -> None:
    (job,) = _jobs(kind)
    text = systemd.job(job.description, job.argv, job.properties)
    assert set(systemd.settings(text)) >= systemd.NAMES
    assert systemd.exposure(tmp_path, f"{job.unit}.service", text) <= MOST[kind]
    assert systemd.faults(tmp_path, f"{job.unit}.service", text) == []


@pytest.mark.parametrize("kind", ["fetch", "pull"])
def test_a_secret_is_nothing_but_a_credential(kind: str) -> None:
    (job,) = _jobs(kind)
    keys = json.loads(job.credentials["peer-keys"])["keys"]
    (secret,) = set(job.credentials) - {"peer-keys"}
    assert job.credentials[secret] in ("hf_secret", "me:secret")
    assert len(keys) == 1
    for text in (*job.files.values(), *job.properties, *job.argv, job.description):
        for key in (job.credentials[secret], *keys.values()):
            assert key not in text


def test_a_switch_that_goes_on_after_a_power_cut_has_the_same_sandbox() -> None:
    host = _host(old=True)
    run(host, services.running, (SERVICE,), SECRETS, execute=True)
    asked = next(item.request for item in host.asked if item.program == "jobs")
    (job,) = asked["start"]
    settle = decode(SwitchRequest, _request(asked)).settle
    expected = sandbox.arguments(job["properties"])
    assert [word for word in settle if word.startswith("--property=")] == expected
