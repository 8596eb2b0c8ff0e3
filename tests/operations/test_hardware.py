"""GPU, driver, Docker and toolkit: verified as observed; and the GPU, seen in containers."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwright.host.observation import ObservationRequest
from sparkwright.host.proof import ProofRequest, Versions
from sparkwright.operations import docker, gpu
from tests.operations.harness import Case, check, fake, run
from tests.unit.builders import gpus, probe

SPARK = "NVIDIA GB10, 12.1, 580.95.05, [N/A]\n"
RTX = "NVIDIA GeForce RTX 5090, 12.0, 575.64, 32607\n"
NO_TOOLKIT = {"code": None, "found": False}


@pytest.mark.parametrize(
    ("operation", "arguments", "seen", "noop", "failure"),
    [
        (gpu.verify, {}, {}, "NVIDIA GB10, driver 580.95.05", None),
        (gpu.verify, {"compute_capability": "12.1"}, {}, "NVIDIA GB10, driver 580.95.05", None),
        (
            gpu.verify, {"compute_capability": ["12.0", "12.1"]}, {},
            "NVIDIA GB10, driver 580.95.05", None,
        ),
        (
            gpu.verify, {"minimum_driver": 590}, {}, None,
            "nvidia-driver: driver 580.95.05, needed: NVIDIA driver >= 590",
        ),
        (
            gpu.verify, {}, {"gpu": {"found": False, "code": None}}, None,
            "nvidia-driver: nvidia-smi is not installed, needed: NVIDIA driver >= 580",
        ),
        (
            gpu.verify, {"compute_capability": "12.1"}, {"gpu": gpus(RTX.replace("575", "580"))},
            None, "gpu: NVIDIA GeForce RTX 5090 (compute capability 12.0, "
            "RTX 50 / RTX PRO Blackwell (sm_120)), needed: compute capability 12.1",
        ),
        (
            gpu.verify, {"compute_capability": "12.0", "memory_gib": 40, "minimum_driver": 575},
            {"gpu": gpus(RTX)}, None,
            "gpu-memory: NVIDIA GeForce RTX 5090: 31.8 GiB, needed: 40 GiB",
        ),
        (docker.verify, {}, {}, "Docker 28.2.2 with Compose", None),
        (docker.verify, {"minimum": 29}, {}, None, "docker: Docker 28.2.2, needed: Docker >= 29"),
        (
            docker.verify, {}, {"docker_found": False, "docker": None}, None,
            "docker: docker is not installed, needed: Docker >= 25",
        ),
        (
            docker.verify, {}, {"docker": None}, None,
            "docker: the Docker daemon does not answer, needed: Docker >= 25",
        ),
        (
            docker.verify, {}, {"compose": {"code": 1, "out": ""}}, None,
            "docker-compose: the compose plugin is not installed, needed: Docker Compose v2",
        ),
        (
            docker.verify_container_toolkit, {}, {},
            "NVIDIA Container Toolkit CLI version 1.17.8", None,
        ),
        (
            docker.verify_container_toolkit, {}, {"toolkit": NO_TOOLKIT}, None,
            "nvidia-container-toolkit: nvidia-ctk is not installed",
        ),
    ],
)  # fmt: skip
def test_verified_without_asking_again(
    operation: Any, arguments: Any, seen: Any, noop: str | None, failure: str | None
) -> None:
    for execute in (False, True):
        ran = run(fake(probe(**seen)), operation, execute=execute, **arguments)
        assert ran.host.asked == []
        assert ran.memory.changes == []
        if noop is not None:
            assert (ran.host.noops, ran.commands, ran.memory.failure) == ([noop], [], None)
            continue
        assert ran.host.noops == []
        assert (len(ran.commands), ran.host.state.failed_hosts) == (
            (1, set()) if execute else (0, {ran.host})
        )
        assert any("remedy:" in line for line in ran.host.lines)
        if execute:
            assert not ran.well
            assert (ran.memory.failure or "").startswith(failure or "?")


def test_a_warning_fails_nobody() -> None:
    ran = run(fake(probe(docker_socket=False)), docker.verify)
    assert ran.commands == []
    assert ran.host.lines[0] == "warning: docker-user"
    assert ran.host.noops == ["Docker 28.2.2 with Compose"]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    ran = run(
        fake(probe(gpu=gpus(RTX))), gpu.verify, compute_capability="12.1", execute=True
    )  # fmt: skip
    assert [line.partition(":")[0] for line in ran.host.lines[-2:]] == ["nvidia-driver", "gpu"]
    assert (ran.memory.failure or "").startswith("nvidia-driver: driver 575.64")


NOW = {"driver": "580.95.05", "docker": "28.2.2",
       "toolkit": "NVIDIA Container Toolkit CLI version 1.17.8"}  # fmt: skip
OLD = {**NOW, "driver": "570.1"}
IMAGES = {"images": ["vllm:a", "vllm:b"]}


def _proof(*images: str) -> tuple[tuple[str, object], ...]:
    record = "/opt/sparkwright/state/gpu-check.json"
    request = ProofRequest(gpu_images=images, record=record, versions=Versions(**NOW))
    return (("proof", request),)


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "proved", {"gpu_checks": {"vllm:a": NOW, "vllm:b": NOW}}, IMAGES,
            noop="proved with these versions of driver, Docker and toolkit",
        ),
        Case("no images", {}, {"images": []},
             noop="proved with these versions of driver, Docker and toolkit"),
        Case(
            "never proved", {}, IMAGES, would=("run nvidia-smi inside the image",),
            asks=_proof("vllm:a", "vllm:b"), done=("a container sees the GPU",),
        ),
        Case(
            "another driver since", {"gpu_checks": {"vllm:a": NOW, "vllm:b": OLD}}, IMAGES,
            would=("run nvidia-smi inside the image",), asks=_proof("vllm:b"),
            done=("a container sees the GPU",),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_seen_in_containers(case: Case) -> None:
    answered = Case(**{**vars(case), "answers": {"proof": []}})
    check(gpu.seen_in_containers, answered, probe(**case.seen), ObservationRequest())


def test_a_known_message_of_docker_comes_with_what_cures_it() -> None:
    said = 'no GPU inside a container: could not select device driver "" with capabilities: [[gpu]]'
    ran = run(fake(probe(), proof=[said]), gpu.seen_in_containers, execute=True, **IMAGES)
    assert (ran.memory.failure or "").startswith(f"{said} (Docker has no driver for GPUs")
    assert "sudo apt install nvidia-container-toolkit" in (ran.memory.failure or "")


def test_a_gpu_that_no_container_sees_fails_the_host_with_its_words() -> None:
    host = fake(probe(), proof=["vllm:a: no GPU: run this", "vllm:b: hangs"])
    ran = run(host, gpu.seen_in_containers, execute=True, **IMAGES)
    assert not ran.well
    assert ran.memory.failure == "vllm:a: no GPU: run this; vllm:b: hangs"
    assert ran.memory.changes == []
    assert not ran.memory.stale
