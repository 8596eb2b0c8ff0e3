"""``sparkwright bench``: what is asked, kept, compared and handed on, without host or generator."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Done

from sparkwright.config.secrets import Secret
from sparkwright.extras.bench import command as bench_command
from sparkwright.extras.bench import host, run
from sparkwright.extras.bench.aiperf import Service
from sparkwright.extras.bench.host import Facts
from sparkwright.extras.bench.loads import Batch, Load, Sweep, batches
from sparkwright.extras.bench.probe import ProbeAnswer
from sparkwright.extras.bench.results import Result
from sparkwright.extras.bench.store import load
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.gpu import Gpu
from tests.golden import compare
from tests.unit.builders import kept_service
from tests.unit.cli import answering as answers
from tests.unit.cli.answering import Asked, answering
from tests.unit.cli.test_json import judge
from tests.unit.extras.bench.builders import BODY, DRAFTER, IMAGE, TAG
from tests.unit.extras.bench.tool import fake

KEY = "sk-a-key-of-sixteen-or-more"
RELEASE = "1b45a560efec"
GB10 = Gpu("NVIDIA GB10", driver="580.95.05", clock_max_mhz=2500)
SERVICE = replace(
    kept_service(RELEASE), recipe="qwen36-35b-a3b-heretic-dflash", tag=TAG,
    image=f"{IMAGE}:sha256-{'ab' * 32}", models={BODY: "c" * 40, DRAFTER: "d" * 40},
)  # fmt: skip
FACTS = Facts(
    ProbeAnswer("6.14", GB10, {"qwen36": "0.23.0"}), {"qwen36": SERVICE}, {"qwen36": RELEASE}
)
LOADED = Facts(ProbeAnswer("6.14", samples=(replace(GB10, clock_mhz=2400, power_w=60),)))


def _run(*arguments: str) -> Done:
    return answers.run("bench", *arguments)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path) -> list[Asked]:
    """The example inventory, a generator that leaves the capture, and hosts that answer."""

    def answer(asked: Asked) -> dict[str, Facts]:
        return dict.fromkeys(asked.hosts.limit, LOADED if asked.arguments["samples"] else FACTS)

    def reach(name: str, candidates: list[Service]) -> Service:
        first = candidates[0]
        assert (first.model, first.key.value, first.ca) == ("qwen36-35b-heretic", KEY, None)
        assert first.url.startswith("http://")
        assert first.url.endswith(":8000")
        return replace(first, context=4096)

    tool = fake(tmp_path)
    monkeypatch.setenv("SPARKWRIGHT_API_KEY", KEY)
    monkeypatch.setattr(bench_command, "find", lambda environment: tool)
    monkeypatch.setattr(bench_command, "reach", reach)
    monkeypatch.setattr(Service, "tokens", lambda self, text: len(text) // 4)
    return answering(monkeypatch, answer)


@pytest.fixture
def bench(asked: list[Asked], tmp_path: Path) -> Callable[..., Done]:
    """Two loads of one service are measured, and kept in ``results``."""
    short = ("--categories", "coding", "--concurrency", "1,8", "--context", "none")
    results = ("--results", str(tmp_path / "results"))
    return lambda *arguments: _run(
        "inventory/lab.py", "--limit", "spark-1", *short, *results, *arguments
    )


def _kept(folder: Path) -> Result:
    (kept,) = load(folder / "results").services["spark-1", "qwen36"]
    return kept


def test_it_measures_keeps_compares_and_reports_what_is_out_of_range(
    bench: Callable[..., Done], asked: list[Asked], tmp_path: Path
) -> None:
    done = bench()
    # The capture's decode of 50 tokens/s is far below the card's 91.7, and requests failed.
    assert done.exit_code == 1, done.output
    shown = re.sub(r"\S+/results/\S+", "FILE", done.output)
    compare("bench/command.txt", shown)
    assert [(item.arguments["samples"], item.hosts.limit) for item in asked] == [
        (0, ("spark-1",)), (15, ("spark-1",)), (0, ("spark-1",)),
    ]  # fmt: skip
    kept = _kept(tmp_path)
    assert (kept.tag, kept.release, kept.gpu.clock_mhz) == (TAG, RELEASE, 2400)
    assert kept.settings["num_speculative_tokens"] == 11
    assert "FOLDER/config.json" in kept.generator.command


def test_a_service_that_sleeps_is_passed_over_and_not_measured_by_name(
    bench: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = host.ask

    def asleep(*hosts: Any) -> dict[str, Facts]:
        return {
            name: replace(facts, sleeping={"qwen36": "coder"})
            for name, facts in whole(*hosts).items()
        }

    monkeypatch.setattr(bench_command, "ask", asleep)
    done = bench()
    assert (done.exit_code, done.stdout) == (0, "")
    assert "spark-1/qwen36 is asleep while coder runs" in done.stderr
    named = bench("--service", "qwen36")
    assert named.exit_code == 2
    assert "sparkwright activate qwen36" in named.stderr
    assert not list((tmp_path / "results").rglob("*.json"))


def test_the_document_has_verdicts_and_causes_and_the_key_is_in_the_environment_alone(
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inventory/lab.py", "--service", "qwen63"), "did you mean 'qwen36'"),
        (("inventory/lab.py", "--concurrency", "0"), "is not a number from 1 to 1024"),
        (("inventory/lab.py", "--categories", "poems"), "there are no prompts for it"),
    ],
)
def test_wrong_words_end_with_a_message(
    arguments: tuple[str, ...], message: str, asked: Any
) -> None:
    done = _run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert asked == []


def test_without_a_key_nothing_is_measured_and_none_is_made(
    bench: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARKWRIGHT_API_KEY")
    path = tmp_path / "none/api_key"
    done = bench("--data", f"api_key_file={path}")
    assert (done.exit_code, path.exists()) == (2, False)
    assert "this folder has no API key of a fleet" in done.output


def _service() -> Service:
    return Service("http://127.0.0.1:1", "m", Secret(KEY), 65536)


def test_a_context_that_does_not_fit_is_left_out_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "tokens", lambda self, text: len(text) // 4)
    sweep = batches(Sweep(("coding",), (1,), (2000, 100_000)), quick=True)
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
