"""Output and answers of a real vLLM 0.24.0 on a GPU, judged by doctor and watch."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from lab.gpu import logs
from sparkwright.catalog import load_catalog
from sparkwright.checks.service.diagnose import diagnose
from sparkwright.checks.service.log_lines import lasting
from sparkwright.config.places import CATALOG
from sparkwright.engines import metric_names
from sparkwright.engines.vllm.memory import OVERHEAD_GIB, kv_bytes
from sparkwright.findings import thresholds
from sparkwright.host.lib import gpu, metrics
from sparkwright.host.lib.records import decode
from sparkwright.host.watch import evaluation
from sparkwright.host.watch.state import Sample, ServiceSample
from sparkwright.text.sizes import GIB
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.checks.service.builders import NOW, service, spark

cases = Tables(__file__)

CAPTURES = ROOT / "tests/fixtures/vllm/h200-0.24.0"
UUID = "GPU-00000000-0000-0000-0000-000000000000"


def lines(name: str) -> list[str]:
    return (CAPTURES / name).read_text().splitlines()


def diagnoses(**changes: Any) -> list[str]:
    return [item.id for item in diagnose("spark-1", spark(service=service(**changes)))]


@cases("name", "diagnosis")
def test_a_failure_has_its_own_diagnosis(name: str, diagnosis: str) -> None:
    log = lines(f"failed/{name}.log")
    names = diagnoses(log=log, health={"code": None, "message": "refused"}, metrics=[])
    assert names[0] == diagnosis
    assert set(names[1:]) <= {"not-serving"}


def test_every_failure_is_judged() -> None:
    assert len(list((CAPTURES / "failed").iterdir())) == 16


def test_failures_that_a_restart_may_fix_get_a_restart() -> None:
    """Damaged caches, a full disk, a killed worker, and memory or a port that another program holds
    for a while.
    """
    logs = {path.stem: path.read_text() for path in (CAPTURES / "failed").iterdir()}
    assert {
        name
        for name, log in logs.items()
        if not any(re.search(pattern, log, re.MULTILINE) for pattern in lasting())
    } == {
        *("cache-empty", "cache-halved", "cache-noise", "kv-none", "memory-taken", "port-in-use"),
        *("full-disk", "worker-killed"),
    }


@cases("name")
def test_a_good_start_has_no_diagnosis(name: str) -> None:
    assert diagnoses(log=lines(f"{name}.log")) == []


@pytest.mark.parametrize(("name", "running"), [("8b-metrics-load", 32), ("pair-metrics", 0),
                                                 ("by-roles/metrics-busy", 64)])  # fmt: skip
def test_real_counters_of_a_healthy_service_have_no_finding(name: str, running: int) -> None:
    text = (CAPTURES / f"{name}.txt").read_text()
    before = metrics.totals(text, metric_names())
    assert before[metrics.RUNNING] == running
    now = {**before, metrics.GENERATED: before[metrics.GENERATED] + 1}
    looks = [{"at": NOW - 5, "values": before}, {"at": NOW, "values": now}]
    # Every answer of the load ends at its maximum length.
    assert set(diagnoses(metrics=looks)) <= {"answers-cut", "no-drafts"}
    assert int(metrics.texts(text, metric_names())[metrics.BLOCKS]) > 1000


def test_a_stopped_engine_is_a_wedge_while_its_health_is_200() -> None:
    hang = json.loads((CAPTURES / "hang.json").read_text())
    assert hang["health"]["code"] == 200
    own = metric_names()
    looks = [
        {
            **item,
            "values": {own[name]: item["values"][name] for name in own if name in item["values"]},
        }
        for item in hang["metrics"]
    ]
    assert "wedge" in diagnoses(health=hang["health"], metrics=looks)
    assert hang["gate"][-1]["detail"].endswith("while /health answers: the engine hangs")
    assert hang["proxy"] == [False, "no token within 8 s"]
    assert hang["proxy_after"] == [True, "answers"]


def test_the_watch_reports_a_wedge_after_some_minutes() -> None:
    seen = json.loads((CAPTURES / "hang.json").read_text())["watch"]
    watched = {"q": 1200.0}
    first = decode(ServiceSample, seen[0])
    ring = [Sample(at=60.0 * minute, services={"q": first}) for minute in range(4)]
    assert evaluation.judge(ring, watched, thresholds.limits()) == []
    last = decode(ServiceSample, seen[1])
    ring.append(Sample(at=240.0, services={"q": last}))
    (wedge,) = evaluation.judge(ring, watched, thresholds.limits())
    assert (wedge.name, wedge.seen) == ("wedge", "4 requests ran without a token for 4 min")
    moved = replace(last, metrics={**last.metrics, "progress": last.metrics["progress"] + 1})
    assert (
        evaluation.judge(
            [*ring, Sample(300.0, services={"q": moved})], watched, thresholds.limits()
        )
        == []
    )


def test_nvidia_smi_under_load_is_read() -> None:
    header, row, *_ = lines("nvidia-smi-load.csv")
    fields = tuple(name.split(" ")[0] for name in header.split(", "))
    (item,) = gpu.parse(
        row, tuple(name.replace("clocks.current.sm", "clocks.sm") for name in fields)
    )
    assert (item.name, item.compute_cap, item.memory_mib) == ("NVIDIA H200", "9.0", 143771)
    assert (item.busy_percent, item.clock_mhz, item.event_reasons) == (100.0, 1980.0, 0)


def test_an_engine_killed_under_its_unit_has_its_diagnosis() -> None:
    log = lines("by-roles/killed.log")
    assert any("exited with code 0" in line for line in log)
    names = diagnoses(log=log, health={"code": None, "message": "refused"}, metrics=[])
    assert names == ["engine-died", "not-serving"]


@cases("load", "celsius", "watts", "busy")
def test_nvidia_smi_of_an_idle_and_a_busy_host_is_read_in_every_field(
    load: str, celsius: float, watts: float, busy: float
) -> None:
    (state,) = gpu.parse((CAPTURES / f"by-roles/smi-{load}load.csv").read_text(), gpu.LOAD)
    (identity,) = gpu.parse(
        (CAPTURES / f"by-roles/smi-{load}identity.csv").read_text(), (*gpu.IDENTITY, *gpu.NAMES)
    )
    assert (state.name, state.driver, state.temperature_c, state.power_w) == (
        "NVIDIA H200", "580.159.04", celsius, watts,
    )  # fmt: skip
    assert (state.busy_percent, state.clock_mhz, state.clock_max_mhz) == (busy, 1980.0, 1980.0)
    assert (state.memory_mib, state.memory_used_mib, state.event_reasons) == (143771, 122125, 0)
    assert (identity.compute_cap, identity.index, identity.uuid) == ("9.0", 0, UUID)
    assert not identity.unified


def test_the_holder_of_a_busy_gpu_is_the_engine() -> None:
    text = (CAPTURES / "by-roles/smi-busy-holders.csv").read_text()
    assert gpu.holders(text) == ("VLLM::EngineCore",)


def test_the_watch_measures_the_load_of_a_busy_host() -> None:
    """A sample before the load and a sample during it, 19 s later."""
    state = json.loads((CAPTURES / "by-roles/watch-busy.json").read_text())
    samples = [decode(Sample, item) for item in state["ring"]]
    before, busy = (sample.services["qwen3"] for sample in samples)
    assert before.metrics is not None
    assert busy.metrics is not None
    assert (before.metrics["running"], busy.metrics["running"]) == (0.0, 64.0)
    assert busy.metrics["progress"] - before.metrics["progress"] > 160_000
    assert evaluation.judge(samples, {"qwen3": 600.0}, thresholds.limits()) == []


def test_the_sandboxed_watch_gets_an_answer_of_the_real_driver() -> None:
    """nvidia-smi without access to the devices would cause the finding `gpu-silent`."""
    state = json.loads((CAPTURES / "by-roles/watch.json").read_text())
    samples = [decode(Sample, item) for item in state["ring"]]
    assert [sample.gpu for sample in samples] == [{}, {}]
    assert evaluation.judge(samples, {"qwen3": 600.0}, thresholds.limits()) == []


@pytest.mark.parametrize("start", ["first", "second"])
def test_the_planned_memory_equals_the_engines_memory(start: str) -> None:
    """Weights, KV cache and the rest of the share are each within 5 % of the plan."""
    took = logs.memory(lines(f"by-roles/{start}-start.log"))
    pool, share = 139.80, 0.85  # GiB, as CUDA counts them
    planned = pool * share - took["weights_gib"] - OVERHEAD_GIB
    assert took["cache_gib"] == pytest.approx(planned, rel=0.05)
    assert took["weights_gib"] == pytest.approx(15.3, rel=0.05)
    catalog = load_catalog([CATALOG, ROOT / "lab/catalog", ROOT / "lab/gpu/catalog"])
    result = json.loads((ROOT / "lab/gpu/results/memory.json").read_text())
    assert result["held_mib"] / 1024 == pytest.approx(pool * share, rel=0.05)
    tokens = kv_bytes(catalog.models["lab-qwen3-8b"], {}, int(took["cache_tokens"]))
    assert tokens is not None
    assert tokens / GIB == pytest.approx(took["cache_gib"], rel=0.001)
