"""``sparkwright bench``: what is asked, kept, compared and handed on, without host or generator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkwright.cli import main
from sparkwright.config.secrets import Secret
from sparkwright.extras.bench import command as bench_command
from sparkwright.extras.bench import host, run
from sparkwright.extras.bench.host import Facts
from sparkwright.extras.bench.loads import Batch, Load, batches
from sparkwright.extras.bench.service import Service
from sparkwright.extras.bench.store import load, save
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.records import decode
from tests.unit.builders import ROOT
from tests.unit.cli.answering import Asked, answering
from tests.unit.extras.bench.builders import BODY, DRAFTER, IMAGE, TAG, cell, result
from tests.unit.extras.bench.tool import fake

KEY = "sk-a-key-of-sixteen-or-more"
FACTS: dict[str, Any] = {
    "gpu": {"name": "NVIDIA GB10", "driver": "580.95.05", "clock_max_mhz": 2500},
    "services": {
        "qwen36": {
            "engine": "0.23.0", "release": "1b45a560efec", "tag": TAG,
            "recipe": "qwen36-35b-a3b-heretic-dflash", "image": f"{IMAGE}:sha256-{'ab' * 32}",
            "digest": f"sha256:{'ab' * 32}", "models": {BODY: "c" * 40, DRAFTER: "d" * 40},
        }
    },
    "planned": {"qwen36": "1b45a560efec"},
}  # fmt: skip
SAMPLES = {"samples": [{"name": "NVIDIA GB10", "clock_mhz": 2400, "power_w": 60}]}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """The example inventory, a generator that leaves the capture, and hosts that answer."""

    def answer(asked: Asked) -> dict[str, Facts]:
        facts = SAMPLES if asked.arguments["samples"] else FACTS
        return dict.fromkeys(asked.hosts.limit, decode(Facts, facts))

    def reach(
        name: str, addresses: Any, port: int, model: str, key: Secret, *, scheme: str, ca: None
    ) -> Service:
        assert (port, model, key.value) == (8000, "qwen36-35b-heretic", KEY)
        assert (scheme, ca) == ("http", None)
        return Service(f"http://{addresses[0]}:{port}", model, key, 4096)

    tool = fake(tmp_path)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SPARKWRIGHT_API_KEY", KEY)
    monkeypatch.setattr(bench_command, "find", lambda environment: tool)
    monkeypatch.setattr(bench_command, "reach", reach)
    monkeypatch.setattr(Service, "tokens", lambda self, text: len(text) // 4)
    return answering(monkeypatch, answer)


def _run(*words: str) -> Result:
    done = CliRunner().invoke(main, ["bench", *words], prog_name="sparkwright")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


ONE = ("inventory/lab.py", "--limit", "spark-1", "--categories", "coding", "--concurrency", "1,8",
       "--context", "none")  # fmt: skip


def test_it_measures_keeps_compares_and_says_what_is_out_of_range(
    asked: list[Any], tmp_path: Path
) -> None:
    done = _run(*ONE, "--results", str(tmp_path / "results"))
    # The capture's decode of 50 tokens/s is far below the card's 91.7, and requests failed.
    assert done.exit_code == 1, done.output
    assert "spark-1/qwen36: NVIDIA GB10, driver 580.95.05, vLLM 0.23.0" in done.output
    assert "coding, 1 request, 70 prompt tokens" in done.output
    assert "(0.55!)" in done.output
    assert "decode, one stream is worse than the card at 1 load" in done.output
    assert "maximum context length is 65536 tokens" in done.output
    assert [(one.arguments["samples"], one.hosts.limit) for one in asked] == [
        (0, ("spark-1",)), (15, ("spark-1",)), (0, ("spark-1",)),
    ]  # fmt: skip
    (kept,) = load(tmp_path / "results").services["spark-1", "qwen36"]
    assert (kept.tag, kept.release, kept.gpu.sm_clock_mhz) == (TAG, "1b45a560efec", 2400)
    assert kept.settings["num_speculative_tokens"] == 11
    assert [one.concurrency for one in kept.cells] == [1, 8]
    assert "FOLDER/config.json" in kept.generator.command


def test_a_service_that_sleeps_is_passed_over_and_not_measured_by_name(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = host.ask

    def asleep(*hosts: Any) -> dict[str, Facts]:
        found = whole(*hosts)
        return {name: replace(one, sleeping={"qwen36": "coder"}) for name, one in found.items()}

    monkeypatch.setattr(bench_command, "ask", asleep)
    done = _run(*ONE, "--results", str(tmp_path / "results"))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "spark-1/qwen36 sleeps: coder runs" in done.stderr
    named = _run(*ONE, "--service", "qwen36", "--results", str(tmp_path / "results"))
    assert named.exit_code == 2
    assert "sparkwright activate qwen36" in named.stderr
    assert not list((tmp_path / "results").rglob("*.json"))


def test_every_figure_stands_below_its_own_head(asked: list[Any], tmp_path: Path) -> None:
    done = _run(*ONE, "--results", str(tmp_path / "results"))
    lines = done.output.splitlines()
    head = next(line for line in lines if line.startswith("LOAD"))
    row = next(line for line in lines if line.startswith("coding, 1 request,"))
    (kept,) = load(tmp_path / "results").services["spark-1", "qwen36"]
    one = kept.cells[0]
    assert one.ttft is not None
    assert one.tpot is not None
    for name, value in (("DECODE", one.decode), ("TTFT s", one.ttft.p50), ("p95", one.ttft.p95),
                        ("TPOT ms", one.tpot.p50 * 1000), ("PREFILL", one.prefill),
                        ("ACCEPT", one.acceptance)):  # fmt: skip
        assert value is not None
        shown = float(row[head.index(name) :].split()[0])
        assert shown == pytest.approx(value, rel=0.01), name


def test_the_key_is_in_the_environment_and_nowhere_else(asked: list[Any], tmp_path: Path) -> None:
    done = _run(*ONE, "--results", str(tmp_path / "results"), "--json")
    record = json.loads((tmp_path / "seen/0.json").read_text())
    assert record.pop("key") == KEY
    assert KEY not in json.dumps(record)
    assert KEY not in done.output
    assert all(KEY not in path.read_text() for path in (tmp_path / "results").rglob("*.json"))


def test_as_json_it_has_result_verdicts_and_causes(asked: list[Any], tmp_path: Path) -> None:
    done = _run(*ONE, "--results", str(tmp_path / "results"), "--json")
    (entry,) = json.loads(done.stdout)
    first = entry["comparison"][0]
    assert first["load"] == {"category": "coding", "concurrency": 1, "prompt_tokens": 70,
                             "max_tokens": 256, "temperature": 0.0}  # fmt: skip
    assert {v["measure"]: v["state"] for v in first["verdicts"]}["decode"] == "worse"
    assert "failing-requests" in first["causes"]
    assert (entry["well"], entry["result"]["host"]) == (False, "spark-1")


def test_what_runs_but_is_not_planned_is_reported_and_its_settings_are_unknown(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FACTS, "planned", {"qwen36": "ffffffffffff"})
    done = _run(*ONE, "--results", str(tmp_path / "results"))
    assert "release 1b45a560efec runs, not the planned ffffffffffff" in done.output
    assert load(tmp_path / "results").services["spark-1", "qwen36"][0].settings == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inventory/lab.py", "--service", "qwen63"), "did you mean 'qwen36'"),
        (("inventory/lab.py", "--limit", "spark-9"), "no host or group of the inventory is meant"),
        (("inventory/lab.py", "--concurrency", "0"), "is no number from 1 to 1024"),
        (("inventory/lab.py", "--categories", "poems"), "there are no prompts for it"),
        (("--export", "x.json", "--results", "nowhere"), "it has no such results"),
    ],
)
def test_wrong_words_end_with_a_message(words: tuple[str, ...], said: str, asked: Any) -> None:
    done = _run(*words)
    assert done.exit_code == 2
    assert said in done.output
    assert asked == []


def test_without_a_key_nothing_is_measured_and_none_is_made(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARKWRIGHT_API_KEY")
    path = tmp_path / "none/api_key"
    done = _run(*ONE, "--data", f"api_key_file={path}")
    assert (done.exit_code, path.exists()) == (2, False)
    assert "there is no API key of a fleet here" in done.output


def test_results_are_handed_on_as_one_file_and_read_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = result()
    for one in (first, result(cell(decode=1), when=first.when.replace(year=2027)),
                result(host="spark-2")):  # fmt: skip
        save(Path("mine"), one)
    assert _run("--export", "all.json", "--results", "mine").exit_code == 0
    assert _run("--export", "one.json", "--results", "mine", "--limit", "spark-2").exit_code == 0
    assert load(Path("all.json")) == load(Path("mine"))
    assert list(load(Path("one.json")).services) == [("spark-2", "qwen36")]
    newest = load(Path("all.json"), last=1).services["spark-1", "qwen36"]
    assert [one.when.year for one in newest] == [2027]


def test_the_report_reads_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sparkwright.extras.report")
    monkeypatch.chdir(tmp_path)
    save(Path("mine"), result())
    assert _run("--export", "all.json", "--results", "mine").exit_code == 0
    done = CliRunner().invoke(main, ["report", "--results", "all.json", "--output", "page.html"])
    assert "spark-1  qwen36   measured only" in done.output


def test_a_file_that_is_no_export_is_reported(tmp_path: Path) -> None:
    for content, said in (("[1", "not valid JSON"), ("[1]", "not a file of results"),
                          ('{"results": [1]}', "results.0")):  # fmt: skip
        path = tmp_path / "x.json"
        path.write_text(content)
        (problem,) = load(path).problems
        assert said in f"{problem.subject}: {problem.observed}"


def _service(context: int | None = 65536) -> Service:
    return Service("http://127.0.0.1:1", "m", Secret(KEY), context)


def test_a_context_that_does_not_fit_is_left_out_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "tokens", lambda self, text: len(text) // 4)
    sweep = batches(("coding",), (1,), (2000, 100_000), quick=True)
    done = run.measure(fake(tmp_path), _service(), sweep, seed="1", say=lambda line: None)
    assert [cell.prompt_tokens for cell in done.cells] == [70, 2000]
    assert "100000 prompt tokens are left out: the service takes 65536 with the answer" in (
        done.remarks
    )
    sent = json.loads((tmp_path / "seen/1.json").read_text())
    assert len(set(sent["dataset"])) == len(sent["dataset"]) == 2


def test_when_nothing_is_answered_the_generators_last_words_are_reported(tmp_path: Path) -> None:
    sweep = (Batch("coding", None, (Load(1, 6, 1),)),)
    with pytest.raises(UserError, match=r"no request was answered.*no route to host"):
        run.measure(fake(tmp_path, fails=True), _service(), sweep, seed="1", say=lambda line: None)
