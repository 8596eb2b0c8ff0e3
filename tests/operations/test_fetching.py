"""Models, images, the jobs that bring them, and serving them to other hosts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.host.fetch.request import BuildFile, FetchFile, ImageBuild
from sparkwright.host.jobs import JobStatus
from sparkwright.host.observation import ObservationRequest
from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.operations import images, jobs, models, peers, runtime
from sparkwright.operations.fetching import Sources
from sparkwright.operations.peer_keys import Peer, RunKeys
from sparkwright.resolve.registry import ResolvedImage
from sparkwright.resolve.runtime import Runtime, RuntimeBundleError
from tests.operations.harness import FakeHost, as_json, fake, run
from tests.unit.builders import COMMIT, DIGEST, PLATFORM, probe

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
)  # fmt: skip
OF_MODELS = ObservationRequest(models=(ModelAt(PLACE, COMMIT),))
OF_IMAGES = ObservationRequest(images=(IMAGE,), stores={STORE: "ab" * 32})


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fetch program's libraries, without PyPI; which ones were built."""
    archive = tmp_path / "libraries.tar.gz"
    archive.write_bytes(b"libraries")
    built: list[Any] = []

    def build(architecture: str, cache: Path) -> Runtime:
        built.append((architecture, cache))
        return Runtime(archive, "f" * 64)

    monkeypatch.setattr(runtime, "build_runtime", build)
    monkeypatch.setattr(runtime, "carried_runtime", build)
    monkeypatch.setattr(jobs._LIVE, "on", False)
    return built


def _ends(request: Any) -> dict[str, JobStatus]:
    """Every job that is watched has ended well."""
    return {one["unit"]: JobStatus(False, False) for one in request["watch"]}


def _answers(**others: Any) -> dict[str, Any]:
    return {"install_runtime": None, "jobs": _ends, "proof": [], **others}


def _model(**changes: Any) -> FakeHost:
    return fake(probe(models={PLACE: "is not there"}), OF_MODELS, **_answers(**changes))


def _image(**changes: Any) -> FakeHost:
    return fake(probe(images={IMAGE: False}), OF_IMAGES, **_answers(**changes))


STARTED = (("install-runtime", None), ("jobs", None))


def test_what_a_model_is_fetched_with() -> None:
    host = _model()
    run(host, models.present, execute=True, wait=False, sources=WITH_SECRETS, **MODEL)
    asked = host.request("jobs")
    (job,) = asked["start"]
    (place,) = job["files"]
    request = json.loads(job["files"][place])
    state = f"/opt/sparkwright/state/{job['unit']}"
    assert place == f"{state}/request.json"
    assert job["argv"][-1] == place
    assert job["argv"][4:6] == ["--task", "run"]
    assert job["description"] == f"sparkwright: fetch {NAMED}"
    expected = {
        "endpoint": "https://huggingface.co", "repo": REPOSITORY, "revision": COMMIT,
        "destination": PLACE, "state_dir": state, "limit": 5e6, "max_connections": 4,
        "headroom": 7, "adopt": ["/mnt/*"], "peers": ["http://10.0.0.1:18650"], "offline": False,
        "token_file": f"/run/credentials/{job['unit']}.service/hub-token",
        "downloader": "hf_transfer",
        "peer_token_file": f"/run/credentials/{job['unit']}.service/peer-keys",
    }  # fmt: skip
    assert {key: request[key] for key in expected} == expected
    assert [one["path"] for one in request["files"]] == ["model.safetensors"]
    # Secrets travel by standard input; they go to no file, and to nothing but the job.
    assert asked["secrets"] == {}
    assert job["credentials"] == {
        "hub-token": "hf_secret", "peer-keys": KEYS.leech(host.name, [SEED]).value,
    }  # fmt: skip
    assert json.dumps(asked).count("hf_secret") == 1
    # The fleet's secret stays on the controller.
    assert "of-the-fleet" not in json.dumps(asked)
    assert all(one.hidden for one in host.asked)


def test_the_program_is_brought_once_for_the_hosts_kind(libraries: list[Any]) -> None:
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


def test_libraries_that_cant_be_had_fail_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any) -> Runtime:
        raise RuntimeBundleError("no wheel of hf_transfer: run pip download")

    monkeypatch.setattr(runtime, "build_runtime", build)
    ran = run(_model(), models.present, execute=True, **MODEL)
    assert not ran.well
    assert ran.memory.failure == "no wheel of hf_transfer: run pip download"


def test_what_an_image_is_pulled_with() -> None:
    build = ImageBuild("base:1", {"Dockerfile": BuildFile("RlJPTQ==")})
    how = replace(WITH_SECRETS, keep_parts=lambda: True)
    host = _image()
    run(
        host, images.present, execute=True, wait=False, build=lambda: build, account="me:secret",
        sources=how, **PULL,
    )  # fmt: skip
    asked = host.request("jobs")
    server, job = asked["start"]
    assert server["instead_of"] == "sparkwright-share-*"
    # One that an earlier version started shows Docker what this one's server does not know.
    assert job["program"] == host.request("install-runtime")["home"]
    (text,) = job["files"].values()
    pull = json.loads(text)
    state = f"/opt/sparkwright/state/{job['unit']}"
    assert pull["name"] == IMAGE
    # The platform's own manifest: by the index, Docker 29 asks for attestations that no peer has.
    assert pull["source"] == f"127.0.0.1:18650/me/vllm@{PLATFORM.digest}"
    assert PLATFORM.digest != DIGEST
    assert pull["layers"] == ["3" * 64, "4" * 64]
    assert pull["keep"] is True
    assert pull["build"]["base_name"] == "base:1"
    fetch = pull["fetch"]
    assert (fetch["source"], fetch["endpoint"]) == ("registry", "https://ghcr.io")
    assert (fetch["repo"], fetch["revision"]) == ("me/vllm", "ab" * 32)
    assert (fetch["destination"], fetch["state_dir"]) == (STORE, state)
    assert fetch["token_file"] == f"/run/credentials/{job['unit']}.service/account"
    assert job["credentials"] == {
        "account": "me:secret",
        "peer-keys": KEYS.leech(host.name, [SEED]).value,
    }
    assert pull["token_file"] == f"/run/sparkwright/peers/served/{KEYS.run}"
    assert asked["secrets"] == {pull["token_file"]: KEYS.server(host.name).value}
    assert json.dumps(asked).count("me:secret") == 1
    assert all(one.hidden for one in host.asked)


def test_an_image_without_platforms_is_asked_for_at_its_own_registry(
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


def test_an_image_that_is_waited_for_is_proved() -> None:
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
    half = {"state": "running", "bytes_done": 5 * 10**9, "bytes_total": 10**10, "rate": 10**8}
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
    assert {one["unit"]: one["state"] for one in request["watch"]} == {
        unit: f"/opt/sparkwright/state/{unit}" for unit in (FETCH, PULLED)
    }
    assert request["wait"] == jobs._LINE_EVERY
    assert host.asked[1].arguments["_timeout"] > request["wait"]
    assert host.lines[0] == (
        "5.00 of 10.00 GB at 100 MB/s, 50 s left: Qwen3.6 50 %, image v1 starting"
    )
    assert ran.memory.stale


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (JobStatus(False, True), "Qwen3.6: failed without output"),
        (
            JobStatus(False, True, {"state": "failed", "message": "404: no such file"}, ("x",)),
            "Qwen3.6: 404: no such file",
        ),
        # A progress file of a job that was killed says nothing of its end.
        (
            JobStatus(False, True, {"state": "running", "message": "old"},
                      ("Started fetch.", "Out of memory", "Main process exited, code=killed")),
            "Qwen3.6: Out of memory",
        ),
    ],
)  # fmt: skip
def test_a_job_that_failed_fails_the_host_with_its_own_words(job: JobStatus, words: str) -> None:
    answer = {FETCH: job, PULLED: JobStatus(True, False)}
    ran = run(
        fake(probe(), **_answers(jobs=answer)), jobs.finished, WATCHED, PROVED, execute=True
    )  # fmt: skip
    assert not ran.well
    assert ran.memory.failure == words
    assert ran.host.programs == ["lock", "jobs"]


def test_a_job_is_not_waited_for_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job itself goes on; what it has not brought by then is not proved."""
    monkeypatch.setattr(jobs, "_PATIENCE", 0)
    wrong = [f"{PLACE} is not there"]
    host = fake(probe(), **_answers(proof=wrong))
    ran = run(host, jobs.finished, WATCHED, PROVED, execute=True)
    assert not ran.well
    assert ran.memory.failure == wrong[0]


SERVED = "AEON-7/Qwen3.6@cccc"


def test_a_host_that_others_ask_serves_them() -> None:
    """What others ask for is known only after all hosts were looked at: not while preparing."""
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
    request = host.request("jobs")
    (job,) = request["start"]
    ((place, text),) = job["files"].items()
    assert json.loads(text) == {
        "port": 18700,
        "keys": "/run/sparkwright/peers/served",
        "roots": {"models": "/opt/models", "images": "/opt/sparkwright/images"},
        "idle": 900,
        "addresses": [],
        "certificate": None,
    }
    assert request["secrets"] == {
        f"/run/sparkwright/peers/served/{KEYS.run}": KEYS.server(host.name).value
    }
    unit = job["unit"]
    port, service = (job["units"][f"{unit}.{kind}"] for kind in ("socket", "service"))
    listening = [line for line in port.splitlines() if line.startswith("Listen")]
    assert listening == ["ListenStream=127.0.0.1:18700", "ListenStream=10.0.0.2:18700"]
    assert f"--task peer-server --runtime {_home(request)}/packages {place}\n" in service
    assert ran.memory.changes == [f"serves {SERVED} to other hosts"]


def _home(request: Any) -> str:
    """The program's directory, of a request for one job."""
    (service,) = (
        text for name, text in request["start"][0]["units"].items() if name.endswith("service")
    )
    return str(service.partition("-I -S ")[2].partition("/sparkwright/host/")[0])


def test_another_setting_is_another_server() -> None:
    """systemd reads a unit's text once: a new text needs a new name."""
    home, ways = "/opt/sparkwright/runtime/r", Sources(peer_port=1)
    one, same, *others = (
        peers.server_job(place, how)
        for place, how in (
            (home, ways),
            (home, ways),
            (home, replace(ways, peer_port=2)),
            (home, replace(ways, addresses=("10.0.0.2",))),
            (home, replace(ways, models_root="/mnt/models")),
            (f"{home}2", ways),
        )
    )
    assert one == same
    assert len({one.unit, *(other.unit for other in others)}) == 5
    assert {name.partition(".")[0] for name in one.units} == {one.unit}


@pytest.mark.parametrize("kind", ["model", "image"])
def test_a_job_gets_the_proxy_in_its_environment(kind: str) -> None:
    """systemd gives it nothing of /etc/environment."""
    how = Sources(environment={"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "localhost,.local"})
    host = _model() if kind == "model" else _image()
    what: Any = models.present if kind == "model" else images.present
    of = MODEL if kind == "model" else PULL
    run(host, what, **of, sources=how, wait=False, execute=True)
    (started,) = [one for one in host.request("jobs")["start"] if one["credentials"]]
    assert (
        "Environment=HTTPS_PROXY=http://proxy:3128 NO_PROXY=localhost,.local"
        in (started["properties"])
    )
