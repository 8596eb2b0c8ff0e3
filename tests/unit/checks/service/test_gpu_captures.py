"""What a real vLLM 0.24.0 on a GPU printed and answered, judged by doctor and watch."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.service.diagnose import diagnose
from sparkwright.engines import metric_names
from sparkwright.engines.vllm.command import CACHES
from sparkwright.findings import thresholds
from sparkwright.host.lib import gpu, metrics
from sparkwright.host.lib.records import decode
from sparkwright.host.watch import evaluation
from sparkwright.host.watch.state import Sample, ServiceSample
from sparkwright.plan.container import BOOT_CACHES_MOUNT
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.checks.service.builders import NOW, service, spark

cases = Tables(__file__)

CAPTURES = ROOT / "tests/fixtures/vllm/h200-0.24.0"


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
    assert len(list((CAPTURES / "failed").iterdir())) == 14


@pytest.mark.parametrize("name", ["8b-first", "8b-second", "pair-first", "pair-second"])
def test_a_good_start_has_none(name: str) -> None:
    assert diagnoses(log=lines(f"{name}.log")) == []


@pytest.mark.parametrize(("name", "running"), [("8b-metrics-load", 32), ("pair-metrics", 0)])
def test_real_counters_are_those_of_a_service_that_is_well(name: str, running: int) -> None:
    text = (CAPTURES / f"{name}.txt").read_text()
    before = metrics.totals(text, metric_names())
    assert before[metrics.RUNNING] == running
    now = {**before, metrics.GENERATED: before[metrics.GENERATED] + 1}
    looks = [{"at": NOW - 5, "values": before}, {"at": NOW, "values": now}]
    # All of the load's answers end by their length.
    assert set(diagnoses(metrics=looks)) <= {"answers-cut", "no-drafts"}
    assert int(metrics.texts(text, metric_names())[metrics.BLOCKS]) > 1000


def test_drafts_of_the_pair_are_counted() -> None:
    expected = metrics.totals((CAPTURES / "pair-metrics.txt").read_text(), metric_names())
    assert 0 < expected[metrics.ACCEPTED] < expected[metrics.DRAFTED]
    # A draft that a JSON schema leaves nothing of counts as one without tokens: 255 of them.
    assert expected[metrics.DRAFTED] == 11 * (expected[metrics.DRAFTS] - 255)


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


def test_the_watch_calls_it_a_wedge_after_its_minutes() -> None:
    seen = json.loads((CAPTURES / "hang.json").read_text())["watch"]
    watched = {"q": 1200.0}
    first = decode(ServiceSample, seen[0])
    ring = [Sample(at=60.0 * minute, services={"q": first}) for minute in range(4)]
    assert evaluation.judge(ring, watched, thresholds.limits()) == []
    last = decode(ServiceSample, seen[1])
    ring.append(Sample(at=240.0, services={"q": last}))
    (wedge,) = evaluation.judge(ring, watched, thresholds.limits())
    assert (wedge.name, wedge.seen) == ("wedge", "4 requests run, and no token for 4 min")
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


def test_a_second_start_takes_a_third_of_a_first_at_most() -> None:
    """By our compose file's variables: as measured, and as the engine says what it loads."""
    boots = json.loads((CAPTURES / "boots.json").read_text())
    seconds = {
        model: {start["start"]: start["health_seconds"] for start in starts}
        for model, starts in boots.items()
    }
    for model in ("8b", "pair"):
        assert seconds[model]["second"] <= 0.35 * seconds[model]["first"]
        log = "\n".join(lines(f"{model}-second.log"))
        cache = BOOT_CACHES_MOUNT + CACHES["VLLM_CACHE_ROOT"]
        assert f"Directly load AOT compilation from path {cache}/" in log
        assert "Directly load" not in "\n".join(lines(f"{model}-first.log"))
    assert BOOT_CACHES_MOUNT == "/var/cache/boot"
