"""Models, images, their jobs, and peer sharing; every job has the sandbox, and no lasting file
contains its secrets.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.secrets import Secret
from sparkwright.host.fetch.request import BuildFile, FetchFile, ImageBuild
from sparkwright.host.jobs import Job, JobStatus
from sparkwright.host.lib import sandbox
from sparkwright.host.lib.records import decode
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.host.release import SwitchRequest
from sparkwright.operations import images, jobs, models, peers, services
from sparkwright.operations.lib import runtime
from sparkwright.operations.lib.fetching import Sources
from sparkwright.plan.peer_keys import Peer, RunKeys
from sparkwright.resolve.registry import ResolvedImage
from sparkwright.resolve.runtime import Runtime, RuntimeBundleError
from tests import systemd
from tests.golden import compare
from tests.operations.harness import FakeHost, as_json, ended, fake, run
from tests.operations.test_services import SECRETS, SERVICE, _host, request_of
from tests.tables import Tables
from tests.unit.builders import COMMIT, DIGEST, PLATFORM, probe

pytestmark = pytest.mark.usefixtures("libraries")

cases = Tables(__file__)

REPOSITORY = "AEON-7/Qwen3.6"
PLACE = f"/opt/models/AEON-7--Qwen3.6/{COMMIT}"
NAMED = f"{REPOSITORY}@{COMMIT[:12]}"
FILES = (FetchFile("model.safetensors", 22 << 30, "d" * 64, None),)
MODEL = {"repository": REPOSITORY, "commit": COMMIT, "files": FILES}
IMAGE = "ghcr.io/me/vllm:sha256-abab"
STORE = f"/opt/sparkwright/images/{'ab' * 32}"
PULL = {
    "image": IMAGE, "registry": "https://ghcr.io", "repository": "me/vllm", "digest": DIGEST,
    "platforms": {"arm64": PLATFORM},
}  # fmt: skip
KEYS = RunKeys(Secret("of-the-fleet"), "ab" * 16)
SEED = Peer("spark-1", "http://10.0.0.1:18650")
WITH_SECRETS = Sources(
    peers=lambda: (SEED,), peer_keys=KEYS, addresses=("10.0.0.2",),
    token=Secret("hf_secret"), limit=5e6, connections=4, headroom=7, adopt=("/mnt/*",),
    # systemd gives a job no variable of /etc/environment.
    environment={"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "localhost,.local"},
)  # fmt: skip
OF_MODELS = ObservationRequest(models=(ModelAt(PLACE, COMMIT),))
OF_IMAGES = ObservationRequest(images=(IMAGE,), stores={STORE: "ab" * 32})


def _answers(**others: Any) -> dict[str, Any]:
    return {"install_runtime": None, "jobs": ended, "proof": [], **others}


def _model(**changes: Any) -> FakeHost:
    return fake(probe(models={PLACE: "is not there"}), OF_MODELS, **_answers(**changes))


def _image(**changes: Any) -> FakeHost:
    return fake(probe(images={IMAGE: False}), OF_IMAGES, **_answers(**changes))


STARTED = (("install-runtime", None), ("jobs", None))


def _compared(host: FakeHost, name: str, *secrets: str) -> None:
    """Compare the request for jobs; secrets are sent by standard input, each in one field."""
    asked = host.request("jobs")
    text = json.dumps(asked)
    assert [text.count(secret) for secret in secrets] == [1] * len(secrets)
    # The fleet's secret stays on the controller.
    assert "of-the-fleet" not in text
    assert all(execution.hidden for execution in host.asked)
    for job in asked["start"]:
        job["files"] = {path: json.loads(file) for path, file in job["files"].items()}
        job["units"] = [
            line for text in job["units"].values() for line in text.split("\n") if "Listen" in line
        ]
    # The names of the program's folder and of the server's unit contain a hash of their content.
    shown = yaml.safe_dump(asked, width=100)
    home = host.request("install-runtime")["home"]
    shown = re.sub(r"sparkwright-share-\w+", "sparkwright-share-S", shown.replace(home, "HOME"))
    compare(f"operations/{name}.yaml", shown)


def test_the_fetch_request_of_a_model_is_complete() -> None:
    host = _model()
    run(host, models.present, execute=True, wait=False, sources=WITH_SECRETS, **MODEL)
    _compared(host, "fetch", "hf_secret")


def test_the_program_is_uploaded_once_for_the_hosts_kind(libraries: list[Any]) -> None:
    host = _model()
    run(host, models.present, execute=True, wait=False, **MODEL)
    run(host, models.present, execute=True, wait=False, **MODEL)
    assert host.programs == ["lock", "install-runtime", "jobs", "jobs"]
    assert libraries[0] == ("aarch64", runtime.CACHE)
    request = host.request("install-runtime")
    name = request["home"].rpartition("/")[2]
    assert request["digest"] == "f" * 64
    assert "sparkwright/host/fetch/fetch.py" in request["program"]
    there = probe(models={PLACE: "is not there"}, runtimes=[name])
    again = fake(there, OF_MODELS, **_answers())
    run(again, models.present, execute=True, wait=False, **MODEL)
    assert again.programs == ["lock", "jobs"]


def test_missing_libraries_fail_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any) -> Runtime:
        raise RuntimeBundleError("unknown-architecture", arch="m68k", supported="x86_64")

    monkeypatch.setattr(runtime, "build_runtime", build)
    ran = run(_model(), models.present, execute=True, **MODEL)
    assert not ran.well
    assert str(ran.memory.failure).startswith("No runtime for architecture 'm68k'")


def test_the_pull_request_of_an_image_is_complete() -> None:
    """The request names the platform's manifest: with the index, Docker 29 would request
    attestations, which no peer has.
    """
    assert PLATFORM.digest != DIGEST
    build = ImageBuild("base:1", {"Dockerfile": BuildFile("RlJPTQ==")})
    how = replace(WITH_SECRETS, keep_parts=lambda: True)
    host = _image()
    run(
        host, images.present, execute=True, wait=False, build=lambda: build, account="me:secret",
        sources=how, **PULL,
    )  # fmt: skip
    _compared(host, "pull", "me:secret")


def test_platforms_of_an_image_are_read_from_its_own_registry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    platforms: Any = PULL["platforms"]

    def ask(*arguments: Any) -> ResolvedImage:
        asked.append(arguments)
        return ResolvedImage(DIGEST, platforms)

    monkeypatch.setattr(images, "ask_registry", ask)
    host = _image()
    run(host, images.present, execute=True, wait=False, image=IMAGE, digest=DIGEST)
    assert asked == [("https://ghcr.io", "me/vllm", DIGEST, None)]
    text = host.request("jobs")["start"][1]["files"].popitem()[1]
    assert json.loads(text)["source"] == f"127.0.0.1:18650/me/vllm@{PLATFORM.digest}"


def test_a_pulled_image_is_verified() -> None:
    host = _image()
    ran = run(host, images.present, execute=True, **PULL)
    assert host.programs == ["lock", "install-runtime", "jobs", "jobs", "proof"]
    assert host.request("proof") == as_json(ProofRequest(images=(IMAGE,)))
    assert ran.memory.changes == [f"{IMAGE} is on the disk and verified"]
    assert ran.memory.stale


WATCHED = {
    models.watched_job(PLACE, "/opt/models", "/opt/sparkwright"): "Qwen3.6",
    images.watched_job(IMAGE, "/opt/sparkwright"): "image v1",
}
FETCH, PULLED = (job.unit for job in WATCHED)
PROVED = ProofRequest(models=(ModelAt(PLACE, COMMIT),), images=(IMAGE,))


def _in_turn(*answers: dict[str, JobStatus]) -> Any:
    left = list(answers)
    return lambda _: left.pop(0)


def test_jobs_are_followed_with_their_progress_until_all_have_ended() -> None:
    half = {
        "state": "running", "bytes_done": 5 * 10**9, "bytes_total": 10**10, "rate": 10**8,
        "source": "the internet",
    }  # fmt: skip
    running = JobStatus(True, False, half)
    host = fake(probe(), **_answers(jobs=_in_turn(
        {FETCH: running, PULLED: JobStatus(True, False)},
        {FETCH: JobStatus(False, False), PULLED: running},
        {FETCH: JobStatus(False, False), PULLED: JobStatus(False, False)},
    )))  # fmt: skip
    ran = run(host, jobs.finished, WATCHED, PROVED, execute=True)
    assert host.programs == ["lock", "jobs", "jobs", "jobs", "proof"]
    request = host.asked[1].request
    assert request["start"] == []
    assert {item["unit"]: item["state"] for item in request["watch"]} == {
        unit: f"/opt/sparkwright/state/{unit}" for unit in (FETCH, PULLED)
    }
    assert request["wait"] == 10
    assert host.asked[1].arguments["_timeout"] > request["wait"]
    assert host.lines[0] == (
        "5.00 of 10.00 GB at 100 MB/s from the internet, 50 s left: Qwen3.6 50 %, image v1 starting"
    )
    assert ran.memory.stale


@cases("job", "message")
def test_a_failed_job_fails_the_host_with_its_message(job: Any, message: str) -> None:
    answer = {FETCH: decode(JobStatus, job), PULLED: JobStatus(True, False)}
    host = fake(probe(), **_answers(jobs=answer))
    ran = run(host, jobs.finished, WATCHED, PROVED, execute=True)
    assert (ran.well, ran.memory.failure) == (False, message)
    assert host.programs == ["lock", "jobs"]


def test_the_wait_for_a_job_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job continues, but the host fails since files are missing."""
    monkeypatch.setattr("sparkwright.operations.lib.jobs._PATIENCE", 0)
    problems = [f"{PLACE} is not there"]
    host = fake(probe(), **_answers(proof=problems))
    ran = run(host, jobs.finished, WATCHED, PROVED, execute=True)
    assert not ran.well
    assert ran.memory.failure == problems[0]


SERVED = "AEON-7/Qwen3.6@cccc"


def test_a_host_serves_the_content_that_peers_request() -> None:
    """Peers' requests exist only after the observation of all hosts, not during preparation."""
    asked: list[str] = []

    def contents() -> list[str]:
        asked.append("")
        return [SERVED]

    how = replace(WITH_SECRETS, peer_port=18700)
    dry = run(fake(probe()), peers.serving, contents, sources=how)
    assert (dry.commands, asked) == ([], [])
    host = fake(probe(), **_answers())
    ran = run(host, peers.serving, contents, sources=how, execute=True)
    assert host.programs == ["lock", "install-runtime", "jobs"]
    _compared(host, "serve")
    assert ran.memory.changes == [f"serves {SERVED} to other hosts"]


def test_a_changed_setting_makes_another_server() -> None:
    """systemd reads a unit's text once, so that a new text needs a new name."""
    home, ways = "/opt/sparkwright/runtime/r", Sources(peer_port=1)
    item, same, *others = (
        peers.server_job(position, how)
        for position, how in (
            (home, ways),
            (home, ways),
            (home, replace(ways, peer_port=2)),
            (home, replace(ways, addresses=("10.0.0.2",))),
            (home, replace(ways, models_root="/mnt/models")),
            (f"{home}2", ways),
        )
    )
    assert item == same
    assert len({item.unit, *(other.unit for other in others)}) == 5
    assert {name.partition(".")[0] for name in item.units} == {item.unit}


#: Highest exposure of each unit by `systemd-analyze security`; the switch installs packages.
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
def test_systemd_rates_a_job_as_sandboxed(kind: str, tmp_path: Path) -> None:
    (job,) = _jobs(kind)
    text = systemd.job(job.description, job.argv, job.properties)
    assert set(systemd.settings(text)) >= systemd.NAMES
    assert systemd.exposure(tmp_path, f"{job.unit}.service", text) <= MOST[kind]
    assert systemd.faults(tmp_path, f"{job.unit}.service", text) == []


@pytest.mark.parametrize("kind", ["fetch", "pull"])
def test_a_secret_is_passed_only_as_a_credential(kind: str) -> None:
    (job,) = _jobs(kind)
    keys = json.loads(job.credentials["peer-keys"])["keys"]
    (secret,) = set(job.credentials) - {"peer-keys"}
    assert job.credentials[secret] in ("hf_secret", "me:secret")
    assert len(keys) == 1
    for text in (*job.files.values(), *job.properties, *job.argv, job.description):
        for key in (job.credentials[secret], *keys.values()):
            assert key not in text


def test_a_switch_resumed_after_a_power_cut_has_the_same_sandbox() -> None:
    host = _host(old=True)
    run(host, services.running, (SERVICE,), SECRETS, execute=True)
    asked = next(item.request for item in host.asked if item.program == "jobs")
    (job,) = asked["start"]
    settle = decode(SwitchRequest, request_of(asked)).settle
    expected = sandbox.arguments(job["properties"])
    assert [word for word in settle if word.startswith("--property=")] == expected
