"""What a host says of itself for a benchmark: the program that asks it, and what is made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.extras.bench.host import Facts, changed, gpu_of, image_of, settings_of
from sparkwright.host import bench as program
from sparkwright.host.bench import BenchRequest, BenchService, Running
from sparkwright.host.lib import docker, metrics
from sparkwright.host.lib.gpu import Gpu
from tests.unit.builders import plan

GB10 = Gpu("NVIDIA GB10", driver="580.95.05")
BEFORE = Facts(gpu=replace(GB10, clock_mhz=208, clock_max_mhz=3003, temperature_c=41))


def loaded(*clocks: float | None) -> Facts:
    return Facts(
        samples=tuple(
            replace(GB10, clock_mhz=clock, temperature_c=71, power_w=62.5) for clock in clocks
        )
    )


def test_the_clock_is_that_under_load_and_never_the_idle_one() -> None:
    found = gpu_of(BEFORE, loaded(2400, 2418, None, 2430), BEFORE)
    assert (found.sm_clock_mhz, found.sm_clock_max_mhz, found.temperature_c) == (2418, 3003, 71)
    assert found.power_w == 62.5
    assert (found.name, found.driver) == ("NVIDIA GB10", "580.95.05")
    assert gpu_of(BEFORE, None, BEFORE).sm_clock_mhz is None
    assert gpu_of(BEFORE, loaded(), None).temperature_c == 41


def test_what_the_driver_does_not_say_is_unknown() -> None:
    found = gpu_of(Facts(), loaded(None), None)
    assert (found.name, found.driver, found.sm_clock_mhz) == ("unknown GPU", None, None)
    assert gpu_of(BEFORE, Facts(samples=(GB10,)), None).power_w is None


def test_the_image_has_its_digest_and_the_tag_of_the_release_that_runs() -> None:
    service = plan().services[0]
    name = service.image.name.rpartition(":")[0]
    running = Running(image=f"{name}:sha256-{'ab' * 32}", tag="old", digest=f"sha256:{'ab' * 32}")
    assert image_of(running, service).name == f"{name}:old"
    assert image_of(running, service).digest == f"sha256:{'ab' * 32}"
    unknown = image_of(Running(), service)
    assert (unknown.name, unknown.digest) == (name, None)


def test_settings_are_single_values_and_the_drafts_length() -> None:
    found = settings_of(plan().services[0])
    assert found["num_speculative_tokens"] == 11
    assert found["enable_prefix_caching"] is True
    assert "speculative_config" not in found


def test_a_change_during_the_run_is_reported() -> None:
    def facts(release: str, driver: str = "1") -> Facts:
        return Facts(gpu=replace(GB10, driver=driver), services={"a": Running(release=release)})

    assert list(changed(facts("x"), facts("x"), "a")) == []
    assert list(changed(facts("x"), facts("y", "2"), "a")) == [
        "release x ran before and y after", "driver 1 before and 2 after",
    ]  # fmt: skip


def test_what_runs_is_read_from_container_and_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "releases/1b45a560efec"
    folder.mkdir(parents=True)
    (folder / "compose.yaml").write_text(
        "# Written by sparkwright: service qwen36, recipe qwen36-35b, tag 2026-07-01-v0.24.0.\nx"
    )
    container: dict[str, Any] = {
        "State": {"Running": True},
        "Config": {
            "Labels": {"sparkwright.release": "1b45a560efec"},
            "Image": f"ghcr.io/a/b:sha256-{'ab' * 32}",
            "Env": ["VLLM_API_KEY=secret"],
        },
        "Mounts": [{"Source": f"/opt/models/AEON-7--Qwen/{'c' * 40}"}, {"Source": "/etc"}],
    }
    monkeypatch.setattr(docker, "get", lambda *_: container)
    monkeypatch.setattr(program, "version", lambda server: "0.24.0")
    service = BenchService("qwen36", str(tmp_path), "127.0.0.1", 1)
    found = program.running(service)
    assert found == Running(
        engine="0.24.0", release="1b45a560efec", recipe="qwen36-35b", tag="2026-07-01-v0.24.0",
        image=f"ghcr.io/a/b:sha256-{'ab' * 32}", digest=f"sha256:{'ab' * 32}",
        models={"AEON-7/Qwen": "c" * 40},
    )  # fmt: skip
    assert "secret" not in str(found)
    monkeypatch.setattr(docker, "get", lambda *_: None)
    assert program.running(service) == Running("0.24.0")


def test_the_gpu_is_looked_at_while_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 1, 2, 0, 3])
    monkeypatch.setattr(
        metrics, "ask", lambda server, names: {metrics.RUNNING: float(next(counts))}
    )
    monkeypatch.setattr(program, "first_gpu", lambda: GB10)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    service = BenchService("qwen36", "/", "127.0.0.1", 1)
    answer = program.main(BenchRequest((service,), samples=9, seconds=60))
    assert answer.samples == (GB10, GB10)
