"""Each check of a service fails for its own reason, against a server that does what is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkwright.engines import engine, metric_names
from sparkwright.host.lib import metrics
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.smoke.check import SmokeAnswer

KEY = "a-key"


@dataclass
class Server:
    """What the server says; ``drafted`` and ``accepted`` are added at every generation."""

    names: list[str] = field(default_factory=lambda: ["qwen36"])
    open_door: bool = False
    text: str = "42"
    status: int = 200
    drafted: int = 15
    accepted: int = 4
    counters: dict[str, float] = field(default_factory=lambda: {"drafted": 0.0, "accepted": 0.0})
    port: int = 0


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        said: Server = self.server.said
        if self.path == "/metrics":
            counters = said.counters
            text = (
                "# HELP vllm:spec_decode_num_draft_tokens_total tokens\n"
                f'{engine("vllm").metrics[metrics.DRAFTED]}{{engine="0"}} {counters["drafted"]}\n'
                f'{engine("vllm").metrics[metrics.ACCEPTED]}{{engine="0"}} {counters["accepted"]}\n'
            )
            self._send(200, text.encode())
        elif self.path == "/health":
            self._send(200, b"")
        elif not said.open_door and self.headers.get("Authorization") != f"Bearer {KEY}":
            self._send(401, b"{}")
        else:
            self._send(200, json.dumps({"data": [{"id": one} for one in said.names]}).encode())

    def do_POST(self) -> None:
        said: Server = self.server.said
        self.rfile.read(int(self.headers["Content-Length"]))
        said.counters["drafted"] += said.drafted
        said.counters["accepted"] += said.accepted
        choice = {"finish_reason": "stop", "message": {"content": said.text}}
        answer = {"choices": [choice], "usage": {"completion_tokens": len(said.text)}}
        self._send(said.status, json.dumps(answer).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    said = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.said = said  # type: ignore[attr-defined]
    said.port = http.server_port
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield said
    http.shutdown()
    http.server_close()


def ask(server: Server, place: Path, **changes: Any) -> SmokeAnswer:
    (place / "secrets.env").write_text(f"VLLM_API_KEY={KEY}\n")
    request = SmokeRequest(
        name="qwen36", unit="sparkwright-none.service", address="127.0.0.1", port=server.port,
        secrets=str(place / "secrets.env"), served_names=("qwen36",), boot_seconds=2,
        first_answer_seconds=5, warm_ups=1, speculates=True, metric_names=metric_names(),
    )  # fmt: skip
    return check.run(replace(request, **changes))


def test_all_is_well(server: Server, tmp_path: Path) -> None:
    answer = ask(server, tmp_path)
    assert [one.name for one in answer.checks] == [
        *("health", "models", "key", "generation", "warm-up 1", "speculation")
    ]
    assert all(one.ok for one in answer.checks)
    assert answer.checks[-1].detail == "4 of 15 drafted tokens accepted"


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        ({"names": ["other"]}, "models", "not served: qwen36; served: other"),
        ({"open_door": True}, "key", "it must be 401"),
        ({"status": 500}, "generation", "HTTP 500"),
        ({"text": ""}, "generation", "an empty answer"),
        ({"text": "!" * 12}, "generation", "nothing but '!'"),
        ({"drafted": 0, "accepted": 0}, "speculation", "no token was drafted"),
        ({"accepted": 0}, "speculation", "none of 15 drafted tokens was accepted"),
    ],
)
def test_what_is_wrong_is_said(
    server: Server, tmp_path: Path, fault: dict[str, Any], name: str, words: str
) -> None:
    for key, value in fault.items():
        setattr(server, key, value)
    last = ask(server, tmp_path).checks[-1]
    assert (last.name, last.ok) == (name, False)
    assert words in last.detail


def test_a_recipe_that_does_not_speculate_is_not_asked_for_it(
    server: Server, tmp_path: Path
) -> None:
    server.drafted = 0
    assert all(one.ok for one in ask(server, tmp_path, speculates=False).checks)


def test_through_the_proxy_there_is_an_answer_with_the_key_alone(
    server: Server, tmp_path: Path
) -> None:
    answer = ask(server, tmp_path, proxy=("127.0.0.1", server.port))
    assert (answer.checks[-1].name, answer.checks[-1].ok) == ("proxy", True)


def test_a_proxy_that_is_open_or_not_there_fails(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_PROXY_SECONDS", 0)
    last = ask(server, tmp_path, proxy=("127.0.0.1", 9)).checks[-1]
    assert (last.name, last.ok) == ("proxy", False)
    assert "port 9 does not answer: [Errno 111] Connection refused" in last.detail
    with monkeypatch.context() as patch:
        patch.setattr(check, "key_required", lambda _: "not asked")
        server.open_door = True
        last = ask(server, tmp_path, proxy=("127.0.0.1", server.port)).checks[-1]
    assert "HTTP 200 with the key, 200 without it" in last.detail
