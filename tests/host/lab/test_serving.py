"""The serving fake: what it accepts, refuses and answers, against what a real vLLM printed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.serving import build
from lab.serving.fake_vllm.arguments import parse
from lab.serving.fake_vllm.gpu import find_gpu
from lab.serving.fake_vllm.identity import Identity
from lab.serving.fake_vllm.model import open_model, read_weights
from lab.serving.fake_vllm.refusal import Refusal
from lab.serving.fake_vllm.settings import Settings, check_frontend, read_settings
from lab.serving.fake_vllm.table import load_table
from lab.serving.fake_vllm.text import instance_of
from lab.serving.layers import file_layer
from lab.serving.push import Registry
from lab.serving.tags import TAGS

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ROOT / "tests/fixtures/vllm"
COMMANDS = json.loads((CAPTURES / "serve_commands.json").read_text("utf-8"))
VERSIONS = ("0.23.0", "0.24.0", "0.32.0")
KEY = "a-key-of-the-test"


def identity(version: str = "0.24.0", flavour: str = "aeon") -> Identity:
    return Identity(version, flavour, "")


def shard(tensors: dict[str, int]) -> bytes:
    """A safetensors file of BF16 vectors of the given lengths."""
    header: dict[str, Any] = {}
    end = 0
    for name, length in tensors.items():
        header[name] = {"dtype": "BF16", "shape": [length], "data_offsets": [end, end + 2 * length]}
        end += 2 * length
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of two shards, quantized as the 35B body is."""
    return make_model(tmp_path / "model")


def make_model(path: Path, method: str | None = "compressed-tensors") -> Path:
    path.mkdir()
    config: dict[str, Any] = {"model_type": "qwen3_5_moe", "max_position_embeddings": 262144}
    if method:
        config["quantization_config"] = {"quant_method": method}
    (path / "config.json").write_text(json.dumps(config))
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (path / names[0]).write_bytes(shard({"embed.weight": 1000}))
    (path / names[1]).write_bytes(shard({"lm_head.weight": 500, "norm.weight": 8}))
    weight_map = {"embed.weight": names[0], "lm_head.weight": names[1], "norm.weight": names[1]}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return path


def settings_of(words: list[str], version: str = "0.24.0", flavour: str = "aeon") -> Settings:
    """Parse and check a command line as `vllm serve` does before it loads anything."""
    table = load_table(identity(version, flavour))
    arguments = parse(["serve", *words], table)
    check_frontend(arguments, table)
    return read_settings(arguments, table, identity(version, flavour))


# --- Arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["source"])
def test_commands_of_the_cards_are_accepted(command: dict[str, Any], version: str) -> None:
    table = load_table(identity(version, "stock"))
    arguments = parse(command["words"], table)
    assert arguments.model_tag == command["words"][1]
    if "--speculative-config" in command["words"]:
        assert arguments.speculative_config["num_speculative_tokens"] > 2


def test_turboquant_is_known_to_the_aeon_build_alone() -> None:
    words = ["serve", "/m", "--kv-cache-dtype", "tq_k8v4"]
    assert parse(words, load_table(identity())).kv_cache_dtype == "tq_k8v4"
    with pytest.raises(SystemExit):
        parse(words, load_table(identity(flavour="stock")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--swap-space", "4"], "vllm: error: unrecognized arguments: --swap-space 4"),
        (["--disable-log-requests"], "unrecognized arguments: --disable-log-requests"),
        (["--enable-prefix-caching", "true"], "unrecognized arguments: true"),
        (["--port", "x"], "vllm serve: error: argument --port: invalid int value: 'x'"),
        (["--dtype", "fp4"], "argument --dtype: invalid choice: 'fp4'"),
        (["--max-model-len", "1.5K"], "Decimals are not allowed with binary suffixes"),
        (["--max-num-seqs"], "argument --max-num-seqs: expected one argument"),
        (["--max-num", "5"], "ambiguous option: --max-num could match"),
        (["--speculative-config", "{bad"], "argument --speculative-config/-sc: Value {bad cannot"),
    ],
)
def test_argparse_refuses(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(["serve", "/m", *words], load_table(identity()))
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("usage: vllm")


def test_spellings_that_vllm_takes(tmp_path: Path) -> None:
    table = load_table(identity())

    def read(*words: str) -> Any:
        return parse(["serve", "/m", *words], table)

    assert read("--max_model_len", "32k").max_model_len == 32000
    assert read("--max-model-len=256K").max_model_len == 262144
    assert read("--max-model-len", "auto").max_model_len == -1
    assert read("--max-model-len", "-5").max_model_len == -5
    assert read("--gpu-memory-util", "0.5").gpu_memory_utilization == 0.5
    assert read("--no-enable-prefix-caching").enable_prefix_caching is False
    assert read("-O3").optimization_level == "3"
    assert read("--port", "1", "--port", "2").port == 2
    dotted = read("--speculative_config.method", "ngram", "--speculative-config.model=/d")
    assert dotted.speculative_config == {"method": "ngram", "model": "/d"}
    config = tmp_path / "serve.yaml"
    config.write_text(
        "# facts\nport: 9\nenable-prefix-caching: true\nserved-model-name:\n- a\n- b\n"
    )
    merged = read("--config", str(config), "--port", "10")
    assert (merged.port, merged.served_model_name) == (10, ["a", "b"])
    assert merged.enable_prefix_caching is True
    assert merged.model_tag == "/m"


# --- What vLLM refuses after the command line ----------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-model-len", "-5"], "Input should be greater than or equal to -1"),
        (["--max-model-len", "300000"], "is greater than the derived max_model_len"),
        (["--gpu-memory-utilization", "1.5"], "Input should be less than or equal to 1"),
        (["--attention-backend", "nope"], "Unknown attention backend: 'NOPE'"),
        (["--reasoning-parser", "nope"], "invalid reasoning parser: nope (chose from"),
        (["--tool-call-parser", "nope"], "invalid tool call parser: nope (chose from"),
        (["--enable-auto-tool-choice"], "--enable-auto-tool-choice requires --tool-call-parser"),
        (["--quantization", "nope"], "Unknown quantization method: nope"),
        (["--quantization", "modelopt"], "(compressed-tensors) does not match the quantization"),
        (["--speculative-config", '{"method":"nope","num_speculative_tokens":2}'], "literal_error"),
        (["--speculative-config", '{"method":"ngram","nope":2}'], "Unexpected keyword argument"),
        (["--speculative-config", '{"method":"ngram"}'], "num_speculative_tokens"),
        (
            ["--speculative-config", '{"method":"dflash","num_speculative_tokens":11}'],
            "num_speculative_tokens was provided but without speculative model.",
        ),
        (["--max-num-seqs", "4096"], "must be greater than or equal to max_num_seqs"),
    ],
)
def test_configs_refuse(words: list[str], message: str, model: Path) -> None:
    with pytest.raises(Refusal) as refusal:
        settings_of([str(model), *words])
    assert message in refusal.value.text


def dflash(model: Path, *words: str, version: str = "0.24.0") -> Settings:
    config = {"method": "dflash", "model": str(model), "num_speculative_tokens": 11}
    words = (str(model), "--speculative-config", json.dumps(config), *words)
    return settings_of(list(words), version)


def test_dflash_without_limits_has_a_negative_budget(model: Path) -> None:
    with pytest.raises(Refusal, match="max_num_scheduled_tokens is set to -512 "):
        dflash(model)
    fits = ("--max-num-seqs", "64", "--max-num-batched-tokens", "32768")
    assert dflash(model, *fits).speculation is not None


@pytest.mark.parametrize(
    ("dtype", "version", "fine"),
    [
        ("auto", "0.24.0", True),
        ("nvfp4", "0.24.0", False),
        ("nvfp4", "0.23.0", False),
        ("fp8_e4m3", "0.23.0", False),
        ("fp8_e4m3", "0.24.0", True),
    ],
)
def test_dflash_and_the_cache_dtype(dtype: str, version: str, fine: bool, model: Path) -> None:
    words = ("--max-num-seqs", "16", "--max-num-batched-tokens", "32768", "--kv-cache-dtype", dtype)
    if fine:
        assert dflash(model, *words, version=version).kv_cache_dtype == dtype
        return
    with pytest.raises(Refusal, match="No valid attention backend found for cuda") as refusal:
        dflash(model, *words, version=version)
    assert f"kv_cache_dtype={dtype}" in refusal.value.text
    assert "use_non_causal=True" in refusal.value.text


def test_weights_are_read_whole(model: Path) -> None:
    seen: list[tuple[int, int]] = []
    size = read_weights(open_model(str(model)), lambda done, count: seen.append((done, count)))
    assert size == sum(file.stat().st_size for file in model.glob("*.safetensors"))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_broken_model_directories_are_refused(model: Path) -> None:
    first = model / "model-00001-of-00002.safetensors"
    whole = first.read_bytes()

    def refused(text: str) -> None:
        with pytest.raises(Refusal) as refusal:
            read_weights(open_model(str(model)), lambda _done, _count: None)
        assert text in f"{refusal.value.kind}: {refusal.value.text}"

    first.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    refused("SafetensorError: Error while deserializing header: header too large")
    first.write_bytes(whole[:-1])
    refused("incomplete metadata, file not fully covered")
    first.write_bytes(whole + b"x")
    refused("incomplete metadata, file not fully covered")
    first.write_bytes(b"")
    refused("header too small")
    first.unlink()
    refused("Following weights were not initialized from checkpoint: {'embed.weight'}")
    first.symlink_to("../blobs/elsewhere")
    refused("FileNotFoundError: No such file or directory")
    for file in model.glob("*.safetensors"):
        file.unlink()
    refused("Cannot find any model weights with")
    (model / "config.json").unlink()
    refused("Invalid repository ID or local directory specified")


def test_a_gpu_is_needed_and_must_be_of_the_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match="Failed to infer device type"):
        find_gpu(aeon=True)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 9.0, 580.159.04'\n")
    program.chmod(0o755)
    with pytest.raises(Refusal, match="no kernel image is available"):
        find_gpu(aeon=True)
    assert find_gpu(aeon=False).compute_cap == "9.0"


# --- The server ----------------------------------------------------------------------------------


@dataclass
class Server:
    """A running fake."""

    port: int
    process: subprocess.Popen[str]
    log: Path
    key: str = KEY
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, body: Any = None, key: str | None = None
    ) -> tuple[int, list[tuple[str, str]], str]:
        """Status, headers and text of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        key = self.key if key is None else key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        text = None if body is None else json.dumps(body)
        connection.request(method, path, body=text, headers=headers)
        answer = connection.getresponse()
        with contextlib.closing(connection):
            return answer.status, answer.getheaders(), answer.read().decode()

    def chat(self, question: str, **more: Any) -> Any:
        """The JSON of a chat completion, which must be a success."""
        body: dict[str, Any] = {
            "model": "tiny",
            "messages": [{"role": "user", "content": question}],
            **more,
        }
        status, _, text = self.ask("POST", "/v1/chat/completions", body)
        assert status == 200, text
        return json.loads(text)

    def metric(self, name: str) -> float:
        """The sum of a metric's values."""
        _, _, text = self.ask("GET", "/metrics")
        found = [line for line in text.splitlines() if line.split("{")[0] == name]
        assert found, name
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def launched(model: Path, *words: str, healthy: bool = True, **env: str) -> Iterator[Server]:
    """A fake started as the image starts it; ended by its own process id."""
    port = free_port()
    log = model.parent / f"log-{port}"
    command = [sys.executable, "-m", "lab.serving.fake_vllm", "serve", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--served-model-name", "tiny", "tiny2", "--max-model-len", "512", *words]
    settings = {"FAKE_VLLM_NO_GPU_CHECK": "1", "FAKE_VLLM_BOOT_SECONDS": "0.05"}
    settings |= {"FAKE_VLLM_FLAVOUR": "aeon", "VLLM_API_KEY": KEY}
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **settings, **env},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
    server = Server(port, process, log)
    try:
        if healthy:
            wait_healthy(server)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(10)


def wait_healthy(server: Server, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.process.poll() is None:
        with contextlib.suppress(OSError):
            if server.ask("GET", "/health")[0] == 200:
                return
        time.sleep(0.02)
    raise AssertionError(server.log.read_text())


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def shared_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("serving") / "model")


NGRAM = '{"method":"ngram","num_speculative_tokens":4}'


@pytest.fixture(scope="module")
def server(shared_model: Path) -> Iterator[Server]:
    """The server most tests ask: 0.24.0 with reasoning, tools, a key and n-gram speculation."""
    words = ["--reasoning-parser", "qwen3", "--speculative-config", NGRAM]
    words += ["--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"]
    with launched(shared_model, *words) as started:
        yield started


def shape(value: Any) -> Any:
    """Keys in their order and types of a JSON value, without its contents."""
    if isinstance(value, dict):
        return [(name, shape(part)) for name, part in value.items()]
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def captured(name: str) -> tuple[str, list[str], str]:
    """Status line, header names and body of a captured response."""
    head, _, body = (CAPTURES / name).read_bytes().decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    return lines[0], [line.split(":")[0] for line in lines[1:]], body


def names_of(headers: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in headers]


def test_health_and_models_look_as_captured(server: Server) -> None:
    status, headers, body = server.ask("GET", "/health")
    _, names, _ = captured("0.24.0/health.txt")
    assert (status, names_of(headers), body) == (200, names, "")
    assert dict(headers)["server"] == "uvicorn"
    models = json.loads(server.ask("GET", "/v1/models")[2])
    assert shape(models) == shape(json.loads((CAPTURES / "0.24.0/v1_models.json").read_text()))
    assert [model["id"] for model in models["data"]] == ["tiny", "tiny2"]
    assert models["data"][0]["max_model_len"] == 512
    version = server.ask("GET", "/version")[2]
    assert version == (CAPTURES / "0.24.0/version.json").read_text().strip()


def test_a_truncated_chat_looks_as_captured(server: Server) -> None:
    body: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 5,
    }
    status, headers, text = server.ask("POST", "/v1/chat/completions", body)
    _, names, expected = captured("0.24.0/chat.txt")
    answer = json.loads(text)
    assert (status, names_of(headers)) == (200, names)
    assert shape(answer) == shape(json.loads(expected))
    choice = answer["choices"][0]
    assert choice["message"]["content"] is None
    assert choice["message"]["reasoning"]
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("name", ["chat_stream", "chat_stream_nousage"])
def test_a_stream_looks_as_captured(server: Server, name: str) -> None:
    body: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
    body |= {"max_tokens": 12, "stream": True}
    if name == "chat_stream":
        body["stream_options"] = {"include_usage": True}
    _, headers, text = server.ask("POST", "/v1/chat/completions", body)
    _, names, expected = captured(f"0.24.0/{name}.txt")
    assert names_of(headers) == names

    def events(raw: str) -> list[str]:
        blocks = raw.split("\n\n")
        assert blocks[-1] == ""
        assert all(block.startswith("data: ") for block in blocks[:-1])
        return [block.removeprefix("data: ") for block in blocks[:-1]]

    ours, theirs = events(text), events(expected)
    assert ours[-1] == theirs[-1] == "[DONE]"
    ends = 2 if name == "chat_stream" else 1
    for ours_index, theirs_index in [(0, 0), (1, 1), *((-n - 2, -n - 2) for n in range(ends))]:
        assert shape(json.loads(ours[ours_index])) == shape(json.loads(theirs[theirs_index]))


def test_a_completion_looks_as_captured(server: Server) -> None:
    body = {"model": "tiny", "prompt": "hello x x x", "max_tokens": 8}
    answer = json.loads(server.ask("POST", "/v1/completions", body)[2])
    assert shape(answer) == shape(json.loads((CAPTURES / "0.24.0/completion.json").read_text()))
    assert answer["usage"]["completion_tokens"] == 8
    streamed = server.ask("POST", "/v1/completions", {**body, "stream": True})[2]
    events = [json.loads(line[6:]) for line in streamed.split("\n\n")[:-2]]
    text = "".join(event["choices"][0]["text"] for event in events)
    assert text == answer["choices"][0]["text"]


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_errors_are_word_for_word(server: Server, version: str, shared_model: Path) -> None:
    with contextlib.ExitStack() as stack:
        if version != "0.24.0":
            server = stack.enter_context(launched(shared_model, FAKE_VLLM_VERSION=version))
        messages = [{"role": "user", "content": "hi"}]
        for name, change in (
            ("chat_too_long", {"max_tokens": 100000}),
            ("chat_unknown_model", {"model": "nope"}),
        ):
            body: dict[str, Any] = {"model": "tiny", "messages": messages, **change}
            status, headers, text = server.ask("POST", "/v1/chat/completions", body)
            line, names, expected = captured(f"{version}/{name}.txt")
            assert str(status) in line
            assert names_of(headers) == names
            assert text == expected
        if version != "0.24.0":
            # 0.32.0's capture has no reasoning parser, as here.
            answer = server.chat("hello", max_tokens=3)
            assert shape(answer) == shape(json.loads(captured(f"{version}/chat.txt")[2]))
            body = {"model": "tiny", "prompt": "hello", "max_tokens": 3}
            completion = json.loads(server.ask("POST", "/v1/completions", body)[2])
            expected = (CAPTURES / version / "completion.json").read_text()
            assert shape(completion) == shape(json.loads(expected))


def test_a_prompt_that_is_too_long_is_a_400(server: Server) -> None:
    body: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "word " * 600}],
    }
    status, _, text = server.ask("POST", "/v1/chat/completions", body)
    assert status == 400
    assert "maximum context length is 512 tokens" in json.loads(text)["error"]["message"]


def test_the_key_guards_what_it_guards_in_vllm(server: Server) -> None:
    body: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hi"}],
        "prompt": "hi",
    }
    body |= {"tokens": [1, 2], "max_tokens": 4}
    for line in (CAPTURES / "0.24.0/apikey_matrix.txt").read_text().splitlines():
        method, path, *expected = line.split()
        sent = body if method == "POST" else None
        found = [
            f"{name}={server.ask(method, path, sent, key)[0]}"
            for name, key in (("nokey", ""), ("wrong", "wrong"), ("key", KEY))
        ]
        assert (path, found) == (path, expected)
    status, headers, text = server.ask("GET", "/v1/models", key="wrong")
    _, names, expected_body = captured("0.24.0/v1_models_401.txt")
    assert (status, names_of(headers), text) == (401, names, expected_body)


def test_an_empty_key_checks_nothing_and_the_argument_wins(shared_model: Path) -> None:
    with launched(shared_model, VLLM_API_KEY="") as open_server:
        assert open_server.ask("GET", "/v1/models", key="")[0] == 200
    with launched(shared_model, "--api-key", "first", "second") as closed:
        assert closed.ask("GET", "/v1/models", key=KEY)[0] == 401
        assert closed.ask("GET", "/v1/models", key="second")[0] == 200
        log = closed.log.read_text()
        assert log.startswith("FAKE for vLLM 0.24.0")
        # As the real one does.
        assert "'api_key': ['first', 'second']" in log
        assert KEY not in log


def test_answers_are_worked_out_repeated_and_deterministic(server: Server) -> None:
    message = server.chat("What is 17 × 23?")["choices"][0]["message"]
    assert "391" in message["content"]
    assert message["reasoning"]
    plain = {"chat_template_kwargs": {"enable_thinking": False}}
    quiet = server.chat("Reply with exactly: pong", **plain)["choices"][0]
    assert quiet["message"]["content"] == "pong"
    assert quiet["message"]["reasoning"] is None
    assert quiet["finish_reason"] == "stop"
    first, second, other = (server.chat(text, **plain) for text in ("abc", "abc", "abd"))
    assert first["choices"] == second["choices"] != other["choices"]
    long = server.chat("abc", max_tokens=100, ignore_eos=True)
    assert long["usage"]["completion_tokens"] == 100


def test_tools_and_json(server: Server) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    choice = server.chat("Rain?", tools=tools, tool_choice="required")["choices"][0]
    call = choice["message"]["tool_calls"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "fake"}
    assert server.chat("Rain?", tools=tools)["choices"][0]["finish_reason"] == "stop"
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    content = server.chat("Where?", response_format=wanted)["choices"][0]["message"]["content"]
    assert json.loads(content) == {"city": "fake"}
    assert instance_of({"type": "integer", "minimum": 3}) == 3


def test_metrics_have_the_real_names_and_count(server: Server, shared_model: Path) -> None:
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


def test_it_streams_and_serves_many_at_once(shared_model: Path) -> None:
    words = ("--max-num-seqs", "32")
    with launched(shared_model, *words, FAKE_VLLM_TOKENS_PER_SECOND="50") as slow:
        body: dict[str, Any] = {
            "model": "tiny",
            "prompt": "go",
            "max_tokens": 50,
            "ignore_eos": True,
        }
        connection = http.client.HTTPConnection("127.0.0.1", slow.port, timeout=20)
        headers = {"Authorization": f"Bearer {KEY}"}
        begun = time.monotonic()
        stream = json.dumps({**body, "stream": True})
        connection.request("POST", "/v1/completions", stream, headers)
        answer = connection.getresponse()
        first = answer.readline()
        first_after = time.monotonic() - begun
        answer.read()
        assert first.startswith(b"data: ")
        whole_after = time.monotonic() - begun
        assert whole_after > 0.8
        assert first_after < whole_after / 2
        # Keep-alive: the connection serves on.
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            asked = [pool.submit(slow.ask, "POST", "/v1/completions", body) for _ in range(64)]
            states = ("vllm:num_requests_running", "vllm:num_requests_waiting")
            wait_until(lambda: [slow.metric(name) for name in states] == [32, 32])
            assert {future.result()[0] for future in asked} == {200}
        assert slow.metric("vllm:num_requests_running") == 0


def test_sigterm_lets_a_running_request_finish(shared_model: Path) -> None:
    with launched(shared_model, FAKE_VLLM_TOKENS_PER_SECOND="50") as slow:
        body: dict[str, Any] = {
            "model": "tiny",
            "prompt": "go",
            "max_tokens": 40,
            "ignore_eos": True,
        }
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(slow.ask, "POST", "/v1/completions", body)
            wait_until(lambda: slow.metric("vllm:num_requests_running") == 1)
            slow.process.send_signal(signal.SIGTERM)
            status, _, text = asked.result()
        assert status == 200
        assert json.loads(text)["usage"]["completion_tokens"] == 40
        assert slow.process.wait(5) == 0
        assert "Finished server process" in slow.log.read_text()


def test_a_refused_start_ends_with_a_traceback_and_status_1(shared_model: Path) -> None:
    words = ("--attention-backend", "nope")
    with launched(shared_model, *words, healthy=False) as refused:
        assert refused.process.wait(10) == 1
        log = refused.log.read_text()
    assert "Traceback (most recent call last):" in log
    assert "Unknown attention backend: 'NOPE'" in log


def test_faults(shared_model: Path) -> None:
    def faulty(fault: str) -> contextlib.AbstractContextManager[Server]:
        return launched(shared_model, healthy=False, FAKE_VLLM_FAULT=fault)

    with (
        faulty("oom") as oom,
        faulty("crash-after=0.3") as crash,
        faulty("garbage") as garbage,
        faulty("wedge") as wedge,
        faulty("never-healthy") as never,
    ):
        assert oom.process.wait(10) == 1
        assert "torch.OutOfMemoryError: CUDA out of memory." in oom.log.read_text()
        wait_healthy(garbage)
        assert garbage.chat("hello")["choices"][0]["message"]["content"] == "!!!!"
        wait_healthy(wedge)
        connection = http.client.HTTPConnection("127.0.0.1", wedge.port, timeout=0.5)
        connection.request("POST", "/invocations", json.dumps({"model": "tiny", "prompt": "x"}))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        assert wedge.ask("GET", "/health")[0] == 200
        wait_until(lambda: "never becomes healthy" in never.log.read_text())
        with pytest.raises(ConnectionRefusedError):
            never.ask("GET", "/health")
        never.process.send_signal(signal.SIGTERM)
        assert never.process.wait(5) == 0
        assert crash.process.wait(10) == 1
        log = crash.log.read_text()
        assert log.index("Application startup complete.") < log.index("EngineDeadError")


# --- The image -----------------------------------------------------------------------------------


def test_layers_are_the_same_for_the_same_files(tmp_path: Path) -> None:
    files = build.fake_files()
    first = file_layer(files, tmp_path / "a")
    second = file_layer(dict(reversed(files.items())), tmp_path / "b")
    assert (first.digest, first.diff_id) == (second.digest, second.diff_id)
    assert any(name.endswith("/fake_vllm/command.py") for name in files)
    assert any(name.endswith("/flags/0.24.0.json") for name in files)


def test_images_say_what_they_are(tmp_path: Path) -> None:
    for number, tag in enumerate(TAGS):
        layer = file_layer(build.identity_files(tag), tmp_path / str(number))
        image = build.image_of(tag, [layer])
        index = json.loads(image.index.content)
        platforms = [entry["platform"]["architecture"] for entry in index["manifests"]]
        # With provenance, as docker buildx adds it; Docker's own types have no place for it.
        told = [] if tag.docker_types else ["unknown"] * len(tag.architectures)
        assert platforms == [*tag.architectures, *told]
        subjects = [
            one["annotations"]["vnd.docker.reference.digest"]
            for one in index["manifests"]
            if one["platform"]["os"] == "unknown"
        ]
        assert subjects == [one.digest for one in image.manifests][: len(subjects)]
        for config in image.configs:
            content = json.loads(config.content)["config"]
            assert content["Entrypoint"] == list(tag.entrypoint)
            assert set(tag.environment) <= set(content["Env"])
            assert "fake" in content["Labels"]["dev.sparkwright.fake"]


@pytest.mark.skipif(shutil.which("docker-registry") is None, reason="needs docker-registry")
def test_a_second_push_sends_nothing(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "registry.yml"
    config.write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    process = subprocess.Popen(
        ["docker-registry", "serve", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        layers = [file_layer(build.fake_files(), tmp_path / "layer")]
        registry = Registry(f"http://127.0.0.1:{port}", "lab/image")
        for tag in TAGS:
            image = build.image_of(tag, layers)
            assert build.push(registry, tag, image, layers) > 0
            assert build.push(registry, tag, image, layers) == 0
        registry.close()
    finally:
        process.terminate()
        process.wait(10)
