"""Every deep check passes on a healthy server, and only its own fault makes it fail."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.smoke import deep
from tests.host.lab.fake_server import Server, launched, make_model
from tests.host.programs import program
from tests.host.serving import Handler, listening
from tests.host.smoke.deep_server import WORDS, ask, at, request
from tests.libyaml import safe_load
from tests.tables import Tables

cases = Tables(__file__)

LATE = "no answer within {} s while /health answers: the engine hangs"
ALL = ["health", *(probe.name for probe in deep.PROBES)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("deep") / "model")


@pytest.fixture(scope="module")
def well(model: Path) -> Iterator[Server]:
    with launched(model, *WORDS) as server:
        yield server


@pytest.fixture(autouse=True)
def _a_host_with_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fakes of systemd's programs: the machine of the tests may have no systemd."""
    for name, says in (("systemctl", "activating"), ("journalctl", "a line of the journal")):
        program(tmp_path, name, f"echo {says}")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_a_healthy_service_passes_every_deep_check(well: Server, tmp_path: Path) -> None:
    result = ask(well, tmp_path, request())
    assert {name: (item.verdict, item.detail) for name, item in result.items()} == {
        name: ("passed", result[name].detail) for name in ALL
    }
    details = {name: item.detail for name, item in result.items()}
    assert details["aliases"] == "tiny, tiny2"
    assert details["chat"] == "17 + 25 = 42"
    assert "5 of 5 facts: a " in details["image"]
    assert '{"city":"Oslo","unit":"celsius"}' in details["tools"]
    assert "content: null and finish_reason: length, as expected" in details["thinking-on"]
    assert "maximum context length is 24576 tokens" in details["context-limit"]
    assert details["concurrency"].startswith("8 answers at once, all complete; ")
    assert "tokens came from the cache in request 2" in details["prefix-cache"]


FAULTS = safe_load(Path(__file__).with_name("faults.yaml").read_text())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_only_its_check(model: Path, tmp_path: Path, fault: str) -> None:
    failing, cause, arguments = FAULTS[fault]
    # A hang takes the whole time limit.
    patience = {"first_answer_seconds": 2} if fault == "hangs-at-limit" else {}
    # Requests that end at once would not overlap.
    first = "0.2" if fault == "drops-at-concurrency" else "0"
    env = {"FAKE_VLLM_FAULT": fault, "FAKE_VLLM_FIRST_TOKEN_SECONDS": first}
    with launched(model, *WORDS, healthy=True, **env) as server:
        result = ask(server, tmp_path, request(), **patience)
    failed = {name: item for name, item in result.items() if item.verdict != "passed"}
    assert list(failed) == failing.split(), failed
    for entry in failed.values():
        assert (entry.verdict, entry.cause) == ("failed", cause)
        assert arguments in entry.detail


def test_a_missing_server_gets_no_further_check(model: Path, tmp_path: Path) -> None:
    with launched(model, *WORDS, healthy=False, FAKE_VLLM_FAULT="never-healthy") as server:
        result = ask(server, tmp_path, request())
    assert list(result) == ["health"]
    assert result["health"].cause == "down"
    assert "not healthy after 1 s" in result["health"].detail


def test_a_missing_service_is_reported_as_absent(well: Server, tmp_path: Path) -> None:
    answer = deep.run(replace(request(), secrets=str(tmp_path / "nothing/secrets.env")))
    (item,) = answer.checks
    assert item.cause == "absent"
    assert "the service is not deployed here" in item.detail
    assert answer.journal == ("a line of the journal",)
    assert answer.release is None


def test_the_release_that_runs_is_reported(well: Server, tmp_path: Path) -> None:
    (tmp_path / "releases/0123456789ab").mkdir(parents=True)
    (tmp_path / "current").symlink_to("releases/0123456789ab")
    asked = at(well.port, tmp_path, skip=dict.fromkeys(ALL, "not now"), boot_seconds=1)
    answer = deep.run(asked)
    assert answer.release == "0123456789ab"
    assert {check.verdict for check in answer.checks[1:]} == {"skipped"}
    assert answer.journal == ()


def test_a_wedge_is_reported_quickly_by_each_check(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check runs and reports the hanging engine, after a short time limit."""
    monkeypatch.setattr(deep, "_HANGING_SECONDS", 1)
    asked = replace(request(), skip={"aliases": "not now"})
    with launched(model, *WORDS, FAKE_VLLM_FAULT="wedge") as server:
        result = ask(server, tmp_path, asked, first_answer_seconds=2)
    assert result["chat"].detail == LATE.format(2)
    failed = {name: item.cause for name, item in result.items() if item.verdict == "failed"}
    assert set(result) - set(failed) == {"health", "aliases", "key", "context-limit"}
    assert {name for name, cause in failed.items() if cause != "late"} == {"concurrency"}
    later = {name for name, cause in failed.items() if cause == "late"} - {"chat"}
    assert {name: result[name].detail for name in later} == dict.fromkeys(later, LATE.format(1))


def test_garbage_is_reported_as_garbage(model: Path, tmp_path: Path) -> None:
    with launched(model, *WORDS, FAKE_VLLM_FAULT="garbage") as server:
        result = ask(server, tmp_path, request())
    marked = [name for name, item in result.items() if item.cause == "marks"]
    assert {"chat", "completion", "stream", "image", "json-schema"} <= set(marked)


def test_a_budget_spent_on_reasoning_passes_with_an_explanation(
    model: Path, tmp_path: Path
) -> None:
    """The answer of the cards: `content: null`, `finish_reason: length`."""
    with launched(model, *WORDS, FAKE_VLLM_FAULT="always-thinks") as server:
        small = ask(server, tmp_path, request(), max_tokens=4)["chat"]
        assert small.verdict == "passed"
        assert "content: null at 4 tokens, a budget too small for the reasoning" in small.detail
        none = ask(server, tmp_path, request(), max_tokens=4, thinking_tokens=4)
    assert (none["chat"].verdict, none["chat"].cause) == ("failed", "budget")
    assert "finish_reason: length: 8 tokens are too small a budget" in none["chat"].detail
    # With reasoning on, four times as many tokens are tried before a fault is reported.
    assert none["thinking-on"].cause == "budget"


@cases("changes", "arguments", "skipped")
def test_settings_that_the_plan_leaves_open_are_read_from_the_server(
    model: Path, tmp_path: Path, changes: dict[str, Any], arguments: tuple[str, ...], skipped: str
) -> None:
    keep = ("prefix-cache", "long-2k", "context-limit")
    skip = {name: "not now" for name in ALL if name not in keep}
    with launched(model, *WORDS, *arguments) as server:
        result = ask(server, tmp_path, request(), skip=skip, **changes)
    assert result["prefix-cache"].verdict == "skipped"
    assert skipped in result["prefix-cache"].detail
    assert result["context-limit"].verdict == "passed"
    assert result["long-2k"].verdict == ("skipped" if "context" in changes else "passed")


def test_another_program_on_the_port_is_recognized(tmp_path: Path) -> None:
    """Each check gets an answer that vLLM never gives, and ends without a traceback."""

    class Other(Handler):
        def do_GET(self) -> None:
            self.body()
            self.reply(200, b"{}")

        do_POST = do_GET

    with listening(Other) as port:
        answer = deep.run(at(port, tmp_path))
    results = {check.name: check for check in answer.checks}
    assert results["chat"].cause == "shape"
    assert "'choices'" in results["chat"].detail
    assert set(results) == set(ALL)
