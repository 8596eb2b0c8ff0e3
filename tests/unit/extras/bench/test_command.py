"""`sparkwright bench`, AIPerf's configuration and its captured report, without a host."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import Result as Done

from sparkwright.config.places import BENCH_PINS
from sparkwright.config.secrets import Secret
from sparkwright.engines.vllm.engine import ENGINE
from sparkwright.extras.bench import aiperf, run
from sparkwright.extras.bench import command as bench_command
from sparkwright.extras.bench.host import Facts
from sparkwright.extras.bench.loads import Batch, Load, batches
from sparkwright.extras.bench.measured_service import Service
from sparkwright.extras.bench.results import Cell, Result, columns_of
from sparkwright.extras.bench.store import load
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.gpu import Gpu
from tests.golden import compare
from tests.tables import Tables
from tests.unit.builders import kept_service
from tests.unit.cli import answering as answers
from tests.unit.cli.answering import Asked, answering
from tests.unit.cli.test_json import judge
from tests.unit.extras.bench.bench_results import BODY, DRAFTER, IMAGE, TAG
from tests.unit.extras.bench.tool import CAPTURE, fake

cases = Tables(__file__)

KEY = "sk-a-key-of-sixteen-or-more"
RELEASE = "1b45a560efec"
GB10 = Gpu("NVIDIA GB10", driver="580.95.05", clock_max_mhz=2500)
SERVICE = replace(
    kept_service(RELEASE), recipe="qwen36-35b-a3b-heretic-dflash", tag=TAG,
    image=f"{IMAGE}:sha256-{'ab' * 32}", models={BODY: "c" * 40, DRAFTER: "d" * 40},
)  # fmt: skip
FACTS = Facts(GB10, (), {"qwen36": SERVICE}, {"qwen36": RELEASE})
LOADED = replace(FACTS, samples=(replace(GB10, clock_mhz=2400, power_w=60),))


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that has four characters in a token, and counters that grow with every request."""
    looks = count(1)
    each = {"drafts": 55.0, "drafted": 220.0, "accepted": 130.0}

    def counters(_: Service) -> dict[str, float]:
        look = next(looks)
        return {name: 900.0 + look * value for name, value in each.items()}

    monkeypatch.setattr(Service, "tokens", lambda self, text: len(text) // 4)
    monkeypatch.setattr(Service, "counters", counters)


def _run(*arguments: str) -> Done:
    return answers.run("bench", *arguments)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path) -> list[Asked]:
    """The example inventory, a generator that writes the capture, and hosts that answer."""

    def answer(asked: Asked) -> dict[str, Facts]:
        return dict.fromkeys(asked.hosts.limit, LOADED if asked.arguments["samples"] else FACTS)

    def reach(service: Service) -> Service:
        assert (service.model, service.key.value, service.ca) == ("qwen36-35b-heretic", KEY, None)
        assert service.url == "http://spark-1:8000"
        return replace(service, context=4096)

    tool = fake(tmp_path)
    monkeypatch.setenv("SPARKWRIGHT_API_KEY", KEY)
    monkeypatch.setattr(aiperf, "find", lambda environment: tool)
    monkeypatch.setattr(bench_command, "reach", reach)
    return answering(monkeypatch, answer)


@pytest.fixture
def bench(asked: list[Asked], tmp_path: Path) -> Callable[..., Done]:
    """Run `bench` with two loads of one service, and store the results in ``results``."""
    short = ("--category", "coding", "--concurrency", "8", "--concurrency", "1", "--context", "0")
    results = ("--results", str(tmp_path / "results"))
    return lambda *arguments: _run(
        "inventory/lab.py", "--limit", "spark-1", *short, *results, *arguments
    )


def _kept(folder: Path) -> Result:
    return load(folder / "results")[0]["spark-1", "qwen36"]


def test_bench_measures_stores_compares_and_reports_figures_out_of_range(
    bench: Callable[..., Done], asked: list[Asked], tmp_path: Path
) -> None:
    done = bench()
    # The capture's decode of 50 tokens/s is far below the card's 91.7, and requests failed.
    assert done.exit_code == 1, done.output
    shown = re.sub(r"\S+/results/\S+", "FILE", done.output)
    compare("bench/command.txt", shown)
    assert [(item.arguments["samples"], item.hosts.limit) for item in asked] == [
        (0, ("spark-1",)), (15, ("spark-1",)),
    ]  # fmt: skip
    kept = _kept(tmp_path)
    assert (kept.tag, kept.release, kept.gpu.clock_mhz) == (TAG, RELEASE, 2400)
    assert kept.settings["num_speculative_tokens"] == 11
    assert "FOLDER/config.json" in kept.generator.command


def test_bench_skips_a_sleeping_service_and_refuses_a_named_sleeping_service(
    bench: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FACTS.sleeping, "qwen36", "coder")
    done = bench()
    assert (done.exit_code, done.stdout) == (0, "")
    assert "spark-1/qwen36 is asleep while coder runs" in done.stderr
    named = bench("--service", "qwen36")
    assert named.exit_code == 2
    assert "sparkwright activate qwen36" in named.stderr
    assert not list((tmp_path / "results").rglob("*.json"))


def test_the_document_has_verdicts_and_causes_and_the_key_is_only_in_the_environment(
    bench: Callable[..., Done], tmp_path: Path
) -> None:
    done = bench("--json")
    judge("bench", json.loads(done.stdout))
    (entry,) = json.loads(done.stdout)
    first = entry["cells"][0]
    assert (first["cell"]["concurrency"], first["cell"]["prompt_tokens"]) == (1, 70)
    assert {v["measure"]: v["state"] for v in first["verdicts"]}["decode"] == "worse"
    assert "failing-requests" in [cause["id"] for cause in first["causes"]]
    assert (entry["well"], entry["result"]["host"]) == (False, "spark-1")
    record = json.loads((tmp_path / "seen/0.json").read_text())
    assert record.pop("key") == KEY
    stored = [path.read_text() for path in (tmp_path / "results").rglob("*.json")]
    assert KEY not in "".join([json.dumps(record), done.output, *stored])


def test_a_release_that_is_not_planned_is_reported_and_its_settings_are_unknown(
    bench: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FACTS.planned, "qwen36", "ffffffffffff")
    assert f"release {RELEASE} runs, not the planned ffffffffffff" in bench().output
    assert _kept(tmp_path).settings == {}


def test_a_service_that_does_not_run_is_named_after_the_figures_of_other_services(
    bench: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(FACTS.running, "qwen36")
    done = bench("--json")
    assert (done.exit_code, json.loads(done.stdout)) == (2, [])
    assert "no container of the service runs on the host" in done.stderr


@cases("arguments", "message")
def test_wrong_arguments_end_with_a_message(
    arguments: tuple[str, ...], message: str, asked: Any
) -> None:
    done = _run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert asked == []


def test_without_a_key_nothing_is_measured_and_no_key_is_made(
    bench: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARKWRIGHT_API_KEY")
    path = tmp_path / "none/api_key"
    done = bench("--data", f"api_key_file={path}")
    assert (done.exit_code, path.exists()) == (2, False)
    assert "this folder has no API key for a fleet" in done.output


SERVED = Service("http://127.0.0.1:1", "m", Secret(KEY), 65536)


def test_a_context_that_does_not_fit_is_left_out_and_reported(tmp_path: Path) -> None:
    sweep = batches(("coding",), (1,), (2000, 100_000))
    done = run.measure(fake(tmp_path), SERVED, sweep, seed="1", say=lambda line: None)
    assert [cell.prompt_tokens for cell in done.cells] == [70, 2000]
    text = "prompts of 100000 tokens are left out: the service's context is 65536 tokens"
    assert f"{text}, including the answer" in done.remarks
    sent = json.loads((tmp_path / "seen/1.json").read_text())
    assert len(set(sent["dataset"])) == len(sent["dataset"]) == 4


def test_without_an_answer_the_generators_last_output_is_reported(tmp_path: Path) -> None:
    sweep = (Batch("coding", None, (Load(1, 6, 1),)),)
    with pytest.raises(UserError, match=r"no request was answered.*no route to host"):
        run.measure(fake(tmp_path, fails=True), SERVED, sweep, seed="1", say=lambda line: None)


ONE, EIGHT = Load(1, 6, 1), Load(8, 18, 8)


def captured(name: str) -> Any:
    return json.loads((CAPTURE / name).read_bytes())


def cell(load: Load, **changes: Any) -> Cell:
    path = f"phases/{load.phase}"
    data: dict[str, Any] = {
        "errors": aiperf.failed(captured("phase_manifest.json"))[load.phase],
        "report": captured(f"{path}/profile_export_aiperf.json"),
        "acceptances": {},
    }
    return aiperf.cell(Batch("coding", None, (load,)), load, **{**data, **changes})


def test_acceptance_is_the_change_of_the_counters_and_absent_without_speculation() -> None:
    counted = {"drafts": 10.0, "drafted": 110.0, "accepted": 33.0}
    assert run.acceptances(counted) == {"acceptance": 0.3, "acceptance_length": 4.3}
    assert run.acceptances({}) == run.acceptances(dict.fromkeys(counted, 0.0)) == {}


def test_a_phase_without_answers_has_only_errors() -> None:
    result = cell(EIGHT, report={}, errors=18)
    assert (result.requests, result.errors, result.prompt_tokens, result.measures) == (0, 18, 0, {})


def test_failed_requests_are_counted_by_phase_with_their_reason() -> None:
    manifest = captured("phase_manifest.json")
    assert aiperf.failed(manifest) == {"w1": 0, "c1": 1, "w8": 1, "c8": 3}
    (why,) = aiperf.reasons(manifest)
    assert "maximum context length is 65536 tokens" in why
    assert len(why) == 200


@cases("vectors", "kind", "path", "line")
def test_a_model_that_pools_is_measured_by_its_own_route_without_a_stream(
    vectors: bool, kind: str, path: str, line: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = requests.Response()
    answer.status_code = 400 if vectors else 404
    monkeypatch.setattr(Service, "send", lambda *_: answer)
    service = Service("http://10.0.0.1:8000", "m", Secret("sk"))
    endpoint = aiperf.endpoint(service, ENGINE.kinds({"runner": "pooling"}, "chat"))
    target = {"url": service.url, "model": "m", "loads": [ONE]}
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
    (path / "METADATA").write_text(f"Name: aiperf\nVersion: {version}\n")
    return folder


def test_a_missing_or_another_generator_is_reported_with_its_remedy(tmp_path: Path) -> None:
    version = aiperf.pinned()
    with pytest.raises(UserError, match=r"not installed in .*\n.*make bench-tools"):
        aiperf.find({"SPARKWRIGHT_BENCH_TOOLS": str(tmp_path)})
    old = _venv(tmp_path / "old", "0.1.0")
    with pytest.raises(UserError, match=rf"has AIPerf 0\.1\.0, not {version}"):
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
def test_a_kind_that_the_generator_lacks_is_measured_without_the_generator(
    heard: str, errors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = requests.Response()
    answer.status_code, answer._content = 200, json.dumps({"text": heard}).encode()
    monkeypatch.setattr(requests, "request", lambda *_, **sent: answer)
    service = Service("http://10.0.0.1:8000", "m", Secret("sk"))
    endpoint = aiperf.endpoint(service, ENGINE.kinds({}, "transcription"))
    sweep = [Batch("coding", None, (Load(2, 6, 2),)), Batch("prose", None, (Load(1, 1, 1),))]

    def measured() -> run.Measured:
        return run.measure(Path("none"), service, sweep, seed="1", say=print, endpoint=endpoint)

    if errors:
        with pytest.raises(UserError, match="written: 'Thank you'"):
            measured()
        return
    (cell,) = measured().cells
    assert (cell.requests, cell.errors) == (6, 0)
    assert cell.measures.keys() == {"latency", "latency_p95", "requests"}
