"""AIPerf's configuration and its captured report (tests/fixtures/bench), without AIPerf."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from sparkwright.config.places import BENCH_PINS
from sparkwright.config.secrets import Secret
from sparkwright.engines.vllm.engine import ENGINE
from sparkwright.extras.bench import aiperf
from sparkwright.extras.bench.aiperf import Service
from sparkwright.extras.bench.loads import Batch, Load
from sparkwright.extras.bench.results import Cell, columns_of
from sparkwright.extras.bench.run import Measured, measure
from sparkwright.findings.user_error import UserError
from tests.tables import Tables
from tests.unit.extras.bench.tool import CAPTURE

cases = Tables(__file__)

ONE, EIGHT = Load(1, 6, 1), Load(8, 18, 8)


def captured(name: str) -> Any:
    return json.loads((CAPTURE / name).read_bytes())


def cell(load: Load, **changes: Any) -> Cell:
    path = f"phases/{load.phase}"
    data: dict[str, Any] = {
        "errors": aiperf.failed(captured("phase_manifest.json"))[load.phase],
        "report": captured(f"{path}/profile_export_aiperf.json"),
        "metrics": captured(f"{path}/server_metrics.json"),
    }
    return aiperf.cell(Batch("coding", None, (load,)), load, **{**data, **changes})


def served(**counters: list[dict[str, float]]) -> dict[str, Any]:
    """Metrics of a server with these counters, one for each engine."""
    metrics = {name: {"series": [{"stats": stats} for stats in series]}
               for name, series in counters.items()}  # fmt: skip
    return {"data": {"endpoint_summaries": {"one": {"metrics": metrics}}}}


def test_without_speculation_or_metrics_there_is_no_acceptance() -> None:
    names = ("drafts", "draft_tokens", "accepted_tokens")
    idle = served(**{f"vllm:spec_decode_num_{name}": [{"total": 0.0}] for name in names})
    empty: dict[str, Any] = {"data": {"endpoint_summaries": {}}}
    for metrics in ({}, empty, idle):
        assert not {"acceptance", "acceptance_length"} & cell(ONE, metrics=metrics).measures.keys()


def test_counters_of_several_engines_are_added_up() -> None:
    metrics = served(x=[{"total": 3.0}, {"total": 4.0}, {}])
    assert aiperf.counted(metrics, "x") == 7
    assert aiperf.counted(metrics, "y") is None


def test_a_phase_in_which_nothing_was_answered_has_errors_alone() -> None:
    result = cell(EIGHT, report={}, metrics={}, errors=18)
    assert (result.requests, result.errors, result.prompt_tokens) == (0, 18, 0)
    assert result.measures == {}


def test_failed_requests_are_counted_by_phase_and_say_why() -> None:
    manifest = captured("phase_manifest.json")
    assert aiperf.failed(manifest) == {"w1": 0, "c1": 1, "w8": 1, "c8": 3}
    (why,) = aiperf.reasons(manifest)
    assert "maximum context length is 65536 tokens" in why
    assert len(why) == 200


def test_requests_of_others_are_seen() -> None:
    metrics = captured("phases/c8/server_metrics.json")
    assert aiperf.foreign_requests(EIGHT, metrics) == 0
    assert aiperf.foreign_requests(Load(1, 3, 1), metrics) > 5
    assert aiperf.foreign_requests(ONE, {}) == 0


@cases("vectors", "kind", "path", "line")
def test_a_model_that_pools_is_asked_by_its_own_route_and_streams_nothing(
    vectors: bool, kind: str, path: str, line: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "has", lambda self, path, body: vectors)
    service = Service("http://10.0.0.1:8000", "m", Secret("sk"))
    endpoint = aiperf.endpoint(service, ENGINE.kinds({"runner": "pooling"}, "chat"))
    target = {"url": service.url, "model": "m", "loads": [ONE], "metrics": None}
    aiperf.prepare(tmp_path, ["one"], endpoint, **target)
    config = json.loads((tmp_path / "config.json").read_text())["benchmark"]["endpoint"]
    assert (config["type"], config["path"], config["streaming"]) == (kind, path, False)
    assert config["extra"] == {}
    assert json.loads((tmp_path / "dataset.jsonl").read_text()) == line
    assert aiperf.endpoint(service, ENGINE.kinds({}, "chat")) is aiperf.CHAT
    report = {"request_latency": {"p50": 40, "p95": 80}, "request_throughput": {"avg": 25.0},
              "output_token_throughput": {"avg": 1.0}, "request_count": {"avg": 6}}  # fmt: skip
    made = aiperf.cell(Batch("coding", 70, (ONE,)), ONE, 0, report, {}, endpoint)
    assert made.measures == {"latency": 0.04, "latency_p95": 0.08, "requests": 25.0}
    assert [measure.name for measure in columns_of([made])] == list(made.measures)
    assert "latency" not in {measure.name for measure in columns_of([cell(ONE)])}


def _venv(folder: Path, version: str) -> Path:
    path = folder / f"lib/python3.11/site-packages/aiperf-{version}.dist-info"
    path.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/aiperf").write_text("")
    return folder


def test_a_missing_or_another_generator_is_reported_with_its_remedy(tmp_path: Path) -> None:
    version = aiperf.pinned()
    with pytest.raises(UserError, match=r"not installed in .*\n.*make bench-tools"):
        aiperf.find({"SPARKWRIGHT_BENCH_TOOLS": str(tmp_path)})
    old = _venv(tmp_path / "old", "0.1.0")
    with pytest.raises(UserError, match=rf"has version 0\.1\.0, not {version}"):
        aiperf.find({"SPARKWRIGHT_BENCH_TOOLS": str(old)})
    right = _venv(tmp_path / "right", version)
    assert aiperf.find({"SPARKWRIGHT_BENCH_TOOLS": str(right)}) == right / "bin/aiperf"


def test_every_pin_has_hashes_and_no_address() -> None:
    text = BENCH_PINS.read_text()
    entries = text.replace("\\\n", " ").splitlines()
    assert len(entries) > 100
    assert all("==" in line and "--hash=sha256:" in line for line in entries if line)
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize(("heard", "errors"), [("Four queen of clubs.", 0), ("Thank you", 6)])
def test_what_the_generator_does_not_know_is_sent_and_judged_without_it(
    heard: str, errors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = requests.Response()
    answer.status_code, answer._content = 200, json.dumps({"text": heard}).encode()
    monkeypatch.setattr(requests, "request", lambda *_, **sent: answer)
    service = Service("http://10.0.0.1:8000", "m", Secret("sk"))
    endpoint = aiperf.endpoint(service, ENGINE.kinds({}, "transcription"))
    batches = [Batch("coding", None, (Load(2, 6, 2),)), Batch("prose", None, (ONE,))]

    def measured() -> Measured:
        return measure(Path("none"), service, batches, seed="1", say=print, endpoint=endpoint)

    if errors:
        with pytest.raises(UserError, match="written: 'Thank you'"):
            measured()
        return
    (cell,) = measured().cells
    assert (cell.requests, cell.errors) == (6, 0)
    assert cell.measures.keys() == {"latency", "latency_p95", "requests"}
