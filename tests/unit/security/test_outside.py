"""Requests of a neighbour without the key, to servers that let everybody in, or hang."""

import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import pytest

from sparkwright.checks.smoke import outside
from sparkwright.checks.smoke.outside import Entrance, look
from sparkwright.engines import inference_routes
from sparkwright.host.service import CheckResult
from tests.host.serving import free_port, listening

HERE = "127.0.0.1"


@contextmanager
def server(
    status: dict[str, int], others: int = 401, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Answers these paths so, and all others otherwise; what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(f"{self.command} {self.path} {self.headers.get('Authorization', '-')}")
            self.send_response(status.get(self.path, others))
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with listening(Handler, HERE, tls=tls) as port:
        yield port, asked


def _looked(port: int | None, inside: tuple[int, ...] = (), **entrance: Any) -> CheckResult:
    """Result of the entrance of a service."""
    (result,) = look(
        [Entrance("qwen36", entrance.pop("bind", "*"), port, inside, **entrance)], HERE
    )
    assert result.result is not None
    return result.result


def test_every_route_is_asked_without_a_key_and_with_a_wrong_one() -> None:
    with server({}) as (port, asked):
        assert _looked(port, (free_port(),), bind="0.0.0.0").ok
    arguments = [line.split(maxsplit=2) for line in asked]
    for method, path in inference_routes():
        keys = [key for how, where, key in arguments if (how, where) == (method, path)]
        assert len(keys) == 2
        assert "-" in keys
        assert sum(key.startswith("Bearer sk-") for key in keys) == 1


def test_one_that_serves_https_is_asked_so(tmp_path: Path) -> None:
    arguments = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=spark-1"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "crt")]
    subprocess.run([*arguments, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with server({"/invocations": 200}, tls=context) as (port, _):
        detail = _looked(port, https=True).detail
    assert detail.startswith("POST /invocations answers HTTP 200 without the key")
    assert detail.count("answers") == 2


def test_an_open_route_fails_the_service() -> None:
    with server({"/invocations": 200, "/tokenize": 422}) as (port, _):
        result = _looked(port)
    assert not result.ok
    for name in (
        "POST /invocations answers HTTP 200 without the key",
        "POST /invocations answers HTTP 200 with a wrong key",
        "POST /tokenize answers HTTP 422 without the key",
    ):
        assert name in result.detail
    assert "/v1/completions" not in result.detail


def test_a_port_of_the_hosts_own_that_takes_connections_fails_the_service() -> None:
    with server({}) as (port, _), server({}) as (inner, _):
        result = _looked(port, (inner,))
    assert f"port {inner} takes connections" in result.detail
    assert not result.ok


def test_what_cant_be_reached_is_a_note_and_no_failure() -> None:
    entrance = Entrance("qwen36", "*", free_port(), (free_port(),))
    for address, note in ((HERE, "does not answer here"), (None, "through a tunnel")):
        (result,) = look([entrance], address)
        assert result.result is None
        assert note in result.note


def test_a_loopback_service_that_is_not_reached_is_well() -> None:
    assert _looked(None, (free_port(),), bind=HERE).ok


@pytest.mark.parametrize("text", [b"H", b"X" * 60_000 + b"\x1b[2J\n"])
def test_a_host_that_trickles_its_answers_or_says_no_http_does_not_hold_the_run(
    monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(outside, "_ALL", 1.0)
    over = threading.Event()

    class Trickle(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while not over.wait(0.1):
                    self.wfile.write(text)

    with listening(Trickle, HERE) as port:
        began = time.monotonic()
        result = _looked(port)
        took = time.monotonic() - began
        over.set()
    assert took < 4
    assert not result.ok
    assert "XX" not in result.detail
