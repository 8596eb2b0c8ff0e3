"""The real vLLM with the lab's tiny pair, started with the files rendered for a host."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from lab.hub.tiny_qwen3 import WORDS
from lab.real_engine import local
from lab.real_engine.build import Engine
from sparkwright.host.smoke import check
from tests.engine.captures import counters, keep, series, shape
from tests.engine.conftest import KEY, Rendered, Running

pytestmark = pytest.mark.timeout(1800)
SENTENCE = "".join(WORDS)


def chat(running: Running, **more: Any) -> tuple[int, str]:
    body = {
        "model": "lab-tiny",
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 24,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
        **more,
    }
    return running.ask("POST", "/v1/chat/completions", body)


def test_the_image_is_small(engine: Engine) -> None:
    assert sum(layer.size for layer in engine.layers) < 450e6
    assert all(Path(layer.path).stat().st_size == layer.size for layer in engine.layers)


def test_the_engine_starts_with_only_the_rendered_settings(rendered: Rendered) -> None:
    command = rendered.compose["command"]
    assert command[:2] == ["serve", "/models/tiny-qwen3"]
    assert "--enforce-eager" in command
    assert rendered.compose["entrypoint"][-1] == "vllm"
    assert "VLLM_API_KEY" not in rendered.release.compose
    assert rendered.release.image.startswith("lab.invalid/lab/vllm-cpu:sha256-")


def test_the_smoke_test_passes_on_the_real_engine(running: Running) -> None:
    answer = check.main((running.request,))["tiny"]
    print(f"healthy after {running.boot_seconds:.0f} s")
    for entry in answer.checks:
        print(f"{entry.name}: {entry.detail} ({entry.seconds:.2f} s)")
    names = ["health", "models", "key", "generation", "warm-up 1", "warm-up 2", "speculation"]
    assert [(item.name, item.ok) for item in answer.checks] == [(name, True) for name in names]


def test_no_port_of_the_engine_is_reached_from_outside(running: Running) -> None:
    """torch.distributed listens at every address, even for one process, and accepts any data."""
    ports, sockets = set(), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if "/models/tiny-qwen3" not in (process / "mountinfo").read_text():
                continue
            sockets |= {link.readlink().name for link in (process / "fd").iterdir()}
            for table in ("tcp", "tcp6"):
                rows = [line.split() for line in (process / "net" / table).read_text().splitlines()]
                ports |= {(row[1], row[9]) for row in rows[1:] if row[3] == "0A"}
        except OSError:
            continue  # the process has ended
    opened = {int(at[-4:], 16) for at, inode in ports if f"socket:[{inode}]" in sockets}
    assert opened  # at least one port was tested
    for port in opened:
        with socket.socket() as neighbour, pytest.raises(ConnectionRefusedError):
            neighbour.connect((socket.gethostbyname(socket.gethostname()), port))
    path = Path(running.request.address)
    assert path.is_socket()
    assert path.stat().st_mode & 0o777 == 0o666  # the directory keeps other users out


def test_a_container_has_no_rights_and_shows_no_key(running: Running, rendered: Rendered) -> None:
    """The test checks both processes of the container: vLLM's API server and vLLM's engine."""
    result = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text()
            command = (process / "cmdline").read_text()
            mounts = (process / "mountinfo").read_text().splitlines()
        except OSError:
            continue  # the process has ended
        assert KEY not in command
        if "NSpid:" in status and "/models/tiny-qwen3" in "".join(mounts):
            result += "vllm" in command.lower()
            if "\tunshare\n" in status or "\tsh\n" in status:
                continue
            assert "CapEff:\t0000000000000000\n" in status
            assert "NoNewPrivs:\t1\n" in status
            (root,) = [line.split()[5] for line in mounts if line.split()[4] == "/"]
            assert root.startswith("ro") == rendered.strict
    assert result > 0
    log = running.log.read_text(errors="replace")
    assert KEY not in log
    assert "Read-only file system" not in log


def test_the_list_of_models_equals_the_capture(running: Running) -> None:
    status, text = running.ask("GET", "/v1/models")
    models = json.loads(text)
    assert status == 200
    names = ["lab-tiny", "lab-tiny-fast", "lab-tiny-deep"]
    assert [model["id"] for model in models["data"]] == names
    assert shape(models) == shape(json.loads(keep("v1_models.json", text)))
    assert running.ask("GET", "/v1/models", key=False)[0] == 401


def test_an_answer_is_returned_whole_or_as_a_stream(running: Running) -> None:
    status, text = chat(running)
    answer = json.loads(text)
    assert status == 200, text
    message = answer["choices"][0]["message"]["content"]
    assert message == SENTENCE + WORDS[-1] * (24 - len(WORDS))
    assert shape(answer) == shape(json.loads(keep("chat.json", text)))
    status, text = chat(running, stream=True)
    pieces = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert pieces.pop() == "[DONE]"
    choices = [choice for piece in pieces for choice in json.loads(piece)["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == message


def test_reasoning_is_separate_from_the_content(running: Running) -> None:
    _, text = chat(running, chat_template_kwargs={"enable_thinking": True})
    message = json.loads(text)["choices"][0]["message"]
    assert message["content"] is None
    assert message["reasoning"].startswith(SENTENCE)


def test_correct_drafts_are_accepted(running: Running) -> None:
    before = counters(running.ask("GET", "/metrics")[1])
    chat(running, max_tokens=64)
    after = counters(running.ask("GET", "/metrics")[1])
    drafts, drafted, accepted = (
        after[f"vllm:spec_decode_num_{name}_total"] - before[f"vllm:spec_decode_num_{name}_total"]
        for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    assert drafted == 11 * drafts
    # No draft is right before the last word, and every draft is right after the last word.
    assert 0 < accepted < drafted


def test_metrics_equal_the_capture(running: Running) -> None:
    chat(running)
    status, text = running.ask("GET", "/metrics", key=False)
    assert status == 200
    result = "".join(f"{item}\n" for item in sorted(series(text)))
    assert result == keep("metric_series.txt", result)


def test_a_prompt_longer_than_the_context_is_refused(running: Running) -> None:
    status, text = chat(running, max_tokens=4096)
    assert status == 400
    assert "max_model_len" in text


# The last test ends the engine.
def test_sigterm_ends_the_engine_at_once(running: Running) -> None:
    started = time.monotonic()
    assert local.stop(running.process) == 0
    assert time.monotonic() - started < 20
    log = running.log.read_text(errors="replace")
    assert "EngineCore: trigger received signal=SIGTERM" in log
    assert "API server: engine client stopped" in log
