"""A fake vLLM in a separate process, and models that it loads."""

import contextlib
import http.client
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.host.serving import free_port

ROOT = Path(__file__).resolve().parents[3]
KEY = "a-key-of-the-test"
NGRAM = '{"method":"ngram","num_speculative_tokens":4}'


def shard(tensors: dict[str, int]) -> bytes:
    """A safetensors file of BF16 vectors of the given lengths."""
    header: dict[str, Any] = {}
    end = 0
    for name, length in tensors.items():
        header[name] = {"dtype": "BF16", "shape": [length], "data_offsets": [end, end + 2 * length]}
        end += 2 * length
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


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
        lines = [line for line in text.splitlines() if line.split("{")[0] == name]
        assert lines, name
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


@contextlib.contextmanager
def launched(model: Path, *arguments: str, healthy: bool = True, **env: str) -> Iterator[Server]:
    """Start a fake as the image does; end the fake by its process id."""
    port = free_port()
    log = model.parent / f"log-{port}"
    command = [sys.executable, "-m", "lab.serving.fake_vllm", "serve", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--served-model-name", "tiny", "tiny2", "--max-model-len", "512", *arguments]
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
