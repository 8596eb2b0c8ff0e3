"""Facts of a benchmarked host: the program that reports them, and what a result keeps of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from sparkwright.extras.bench import probe as program
from sparkwright.extras.bench.host import Facts, facts_of, gpu_of, image_of, remarks, settings_of
from sparkwright.extras.bench.probe import ProbeAnswer, ProbeRequest
from sparkwright.facts.answers import HostError
from sparkwright.host.lib import metrics
from sparkwright.host.lib.docker import Container
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.records import decode
from sparkwright.host.status import HostStatus, KeptRelease, ServiceStatus
from tests.operations.security.test_hostile_hosts import ATTACKS
from tests.operations.sites import site, spark
from tests.unit.builders import kept_service, plan
from tests.unit.security.test_hostile_answers import _parsed, of

GB10 = Gpu("NVIDIA GB10", driver="580.95.05")
IDLE = replace(GB10, clock_mhz=208, clock_max_mhz=3003, temperature_c=41)
DIGEST = f"sha256-{'ab' * 32}"


def facts(*samples: Gpu, gpu: Gpu | None = IDLE) -> Facts:
    return Facts(ProbeAnswer("6.14", gpu, {"qwen36": "0.24.0"}, samples))


def loaded(*clocks: float | None) -> Facts:
    hot = replace(GB10, temperature_c=71, power_w=62.5)
    return facts(*(replace(hot, clock_mhz=clock) for clock in clocks), gpu=None)


def test_the_clock_is_that_under_load_and_never_the_idle_one() -> None:
    run = gpu_of(facts(), loaded(2400, 2418, None, 2430), facts())
    assert (run.clock_mhz, run.clock_max_mhz, run.temperature_c) == (2418, 3003, 71)
    assert (run.name, run.driver, run.power_w) == ("NVIDIA GB10", "580.95.05", 62.5)
    assert gpu_of(facts(), None, facts()).clock_mhz is None
    assert gpu_of(facts(), loaded(), None).temperature_c == 41
    # What the driver does not say is unknown.
    run = gpu_of(facts(gpu=None), loaded(None), None)
    assert (run.name, run.driver, run.clock_mhz) == ("unknown GPU", None, None)
    assert gpu_of(facts(), facts(GB10), None).power_w is None


def test_the_image_has_its_digest_and_the_tag_of_the_release_that_runs() -> None:
    service = plan().services[0]
    name = service.image.name.rpartition(":")[0]
    running = replace(kept_service("a"), image=f"{name}:{DIGEST}", tag="old")
    image = image_of(running, service)
    assert (image.name, image.digest) == (f"{name}:old", f"sha256:{'ab' * 32}")
    unknown = image_of(None, service)
    assert (unknown.name, unknown.digest) == (name, None)


def test_settings_are_single_values_and_the_drafts_length() -> None:
    settings = settings_of(plan().services[0])
    assert settings["num_speculative_tokens"] == 11
    assert settings["enable_prefix_caching"] is True
    assert "speculative_config" not in settings


def test_a_change_during_the_run_is_reported() -> None:
    def seen(release: str, driver: str = "1") -> Facts:
        base = facts(gpu=replace(GB10, driver=driver))
        return replace(base, running={"a": kept_service(release)}, planned={"a": "x"})

    assert list(remarks("a", seen("x"), loaded(1), seen("x"))) == []
    assert list(remarks("a", seen("x"), loaded(1), seen("y", "2"))) == [
        "release x ran before and y after", "driver 1 before and 2 after",
    ]  # fmt: skip
    assert list(remarks("b", seen("x"), None, None)) == [
        "its container was not found on the host: image, models and release are unknown",
        "the GPU was not seen under load: its clock is unknown",
    ]


@pytest.mark.parametrize("running", [True, False])
def test_what_runs_is_read_from_container_and_release(running: bool) -> None:
    host = spark("spark-1")
    run: Any = site(host).hosts["spark-1"]
    (service,) = run.services
    container = Container(running, service.release, service.image)
    kept = {service.release: KeptRelease(1.0, service)}
    status = ServiceStatus(service.release, None, kept, container, {}, None)
    host.answers["probe"] = ProbeAnswer("6.14", GB10, {"qwen36": "0.24.0"})
    host.answers["status"] = HostStatus(1.0, None, None, (), {"qwen36": status})
    seen = facts_of(host, run, samples=0)
    assert seen.running == ({"qwen36": service} if running else {})
    assert seen.planned == {"qwen36": service.release}
    assert seen.probe.versions == {"qwen36": "0.24.0"}
    route = host.request("probe")["services"]["qwen36"]
    assert route == [service.gate.address, service.gate.port, "/version"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_answer_fails_its_host(attack: str) -> None:
    host = spark("spark-1", probe=ATTACKS[attack])
    run: Any = site(host).hosts["spark-1"]
    with pytest.raises(HostError, match=r"^sparkwright-probe: "):
        facts_of(host, run, samples=0)


@given(of(ProbeAnswer))
def test_whatever_a_benchmark_ran_on_is_recorded(data: Any) -> None:
    seen = Facts(decode(ProbeAnswer, _parsed(ProbeAnswer, data)))
    gpu_of(seen, seen, seen)
    list(remarks("chat", seen, seen, seen))


def test_the_gpu_is_looked_at_while_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 1, 2, 0, 3])
    monkeypatch.setattr(metrics, "ask", lambda *_: {metrics.RUNNING: float(next(counts))})
    monkeypatch.setattr(program, "first_gpu", lambda: GB10)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    request = ProbeRequest({"qwen36": ("127.0.0.1", 1, "")}, samples=15, seconds=60)
    assert program.main(request).samples == (GB10, GB10)
