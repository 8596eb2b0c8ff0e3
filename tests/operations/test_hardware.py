"""GPU, driver, Docker and toolkit: verified as observed; and the GPU, seen in containers."""

from __future__ import annotations

from sparkwright.operations import gpu
from tests.operations.harness import fake, run
from tests.unit.builders import probe

SPARK = "NVIDIA GB10, 12.1, 580.95.05, [N/A]\n"
RTX = "NVIDIA GeForce RTX 5090, 12.0, 575.64, 32607\n"
NO_TOOLKIT = {"code": None, "found": False}


NOW = {"driver": "580.95.05", "docker": "28.2.2",
       "toolkit": "NVIDIA Container Toolkit CLI version 1.17.8"}  # fmt: skip
OLD = {**NOW, "driver": "570.1"}
IMAGES = {"images": ["vllm:a", "vllm:b"]}


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
