"""The serving fake's refusals, keys, sleep and metrics, against output of a real vLLM."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.engines import engine
from sparkwright.host.lib import nap
from sparkwright.host.lib.http import Server as HttpServer
from tests.engine.captures import CAPTURES as OURS
from tests.engine.captures import series, shape
from tests.host.lab.fake_server import KEY, NGRAM, Server, launched, make_model

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ROOT / "tests/fixtures/vllm"
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def shared_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("serving") / "model")


@pytest.fixture(scope="module")
def server(shared_model: Path) -> Iterator[Server]:
    """The server of most tests: 0.24.0 with reasoning, tools, a key and n-gram speculation."""
    arguments = ["--reasoning-parser", "qwen3", "--speculative-config", NGRAM]
    arguments += ["--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"]
    with launched(shared_model, *arguments) as started:
        yield started


def captured(name: str) -> tuple[str, list[str], str]:
    """Status line, header names and body of a captured response."""
    head, _, body = (CAPTURES / name).read_bytes().decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    return lines[0], [line.split(":")[0] for line in lines[1:]], body


def names_of(headers: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in headers]


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_errors_have_the_text_of_vllm(server: Server, version: str, shared_model: Path) -> None:
    with contextlib.ExitStack() as stack:
        if version != "0.24.0":
            server = stack.enter_context(launched(shared_model, FAKE_VLLM_VERSION=version))
        for name, change in (
            ("chat_too_long", {"max_tokens": 100000}),
            ("chat_unknown_model", {"model": "nope"}),
        ):
            status, headers, text = server.ask("POST", "/v1/chat/completions", {**CHAT, **change})
            line, names, expected = captured(f"{version}/{name}.txt")
            assert str(status) in line
            assert names_of(headers) == names
            assert text == expected
        if version != "0.24.0":
            body = {"model": "tiny", "prompt": "hello", "max_tokens": 3}
            completion = json.loads(server.ask("POST", "/v1/completions", body)[2])
            expected = (CAPTURES / version / "completion.json").read_text()
            assert shape(completion) == shape(json.loads(expected))


def test_the_key_guards_the_same_routes_as_in_vllm(server: Server) -> None:
    body = {**CHAT, "prompt": "hi", "tokens": [1, 2], "max_tokens": 4}
    for line in (CAPTURES / "0.24.0/apikey_matrix.txt").read_text().splitlines():
        method, path, *expected = line.split()
        sent = body if method == "POST" else None
        result = [
            f"{name}={server.ask(method, path, sent, key)[0]}"
            for name, key in (("nokey", ""), ("wrong", "wrong"), ("key", KEY))
        ]
        assert (path, result) == (path, expected)
    status, headers, text = server.ask("GET", "/v1/models", key="wrong")
    _, names, expected_body = captured("0.24.0/v1_models_401.txt")
    assert (status, names_of(headers), text) == (401, names, expected_body)


def test_an_engine_sleeps_and_wakes_up_by_its_declared_requests(shared_model: Path) -> None:
    sleep = engine("vllm").sleep
    assert sleep is not None
    with launched(shared_model, "--enable-sleep-mode", VLLM_SERVER_DEV_MODE="1") as started:
        server = HttpServer("127.0.0.1", started.port)
        assert nap.enter(server, sleep.nap)
        assert started.ask("POST", "/v1/chat/completions", CHAT)[0] == 500
        assert nap.leave(server, sleep.nap)
        assert started.chat("hello")
    with launched(shared_model) as started:
        assert started.ask("POST", "/sleep?level=2")[0] == 404


def test_metrics_have_vllms_names_and_count_requests(server: Server, shared_model: Path) -> None:
    body = {"model": "tiny", "prompt": "one two three", "max_tokens": 7, "ignore_eos": True}
    counted = (
        "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total",
        "vllm:time_to_first_token_seconds_count",
        "vllm:spec_decode_num_drafts_total",
    )
    before = [server.metric(name) for name in counted]
    server.ask("POST", "/v1/completions", body)
    after = [server.metric(name) for name in counted]
    grown = [new - old for new, old in zip(after, before, strict=True)]
    assert grown[:3] == [3, 7, 1]
    assert grown[3] >= 2
    accepted = server.metric("vllm:spec_decode_num_accepted_tokens_total")
    drafted = server.metric("vllm:spec_decode_num_draft_tokens_total")
    assert 0 < accepted < drafted
    text = server.ask("GET", "/metrics")[2]
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    assert names == set((CAPTURES / "0.24.0/metric_names.txt").read_text().split())
    with launched(shared_model) as plain:
        assert "spec_decode" not in plain.ask("GET", "/metrics")[2]


def test_answers_and_metrics_have_the_shape_of_the_real_vllm(shared_model: Path) -> None:
    """The fake calls no tool parser, and has no separate count of reasoning tokens."""
    speculation = json.dumps({"method": "ngram", "num_speculative_tokens": 11})
    arguments = ("--reasoning-parser", "qwen3", "--speculative-config", speculation)
    with launched(shared_model, *arguments, FAKE_VLLM_VERSION="0.32.0") as fake:
        answer = fake.chat("Hello", max_tokens=5, chat_template_kwargs={"enable_thinking": False})
        listed = series(fake.ask("GET", "/metrics")[2])
    real = json.loads((OURS / "chat.json").read_text())
    for each in (answer, real):
        each["usage"]["completion_tokens_details"] = None
    assert shape(answer) == shape(real)
    expected = set((OURS / "metric_series.txt").read_text().splitlines())
    missing = {name for name in expected if name.startswith("vllm:tool_call_parser_invocations")}
    assert listed == expected - missing
    # The captured series include the metrics of the smoke test.
    names = {line.partition("{")[0] for line in expected}
    assert {own.partition("{")[0] for own in engine("vllm").metrics.values()} <= names
