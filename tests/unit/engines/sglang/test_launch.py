"""The program that starts SGLang: only a Unix socket, and no key in arguments or log."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.host.lib.http import Server
from tests.host.proxy.haproxy import until
from tests.host.serving import free_port
from tests.unit.builders import ROOT

PROGRAM = (ROOT / "sparkwright/engines/sglang/launch.py").read_text()
#: A package in place of uvicorn: an application that reports its arguments, started in one of
#: uvicorn's two ways.
FAKE = """
import json, os, sys
import uvicorn
async def app(scope, receive, send):
    if scope["type"] == "http":
        body = json.dumps([sys.argv[1:], "SGLANG_SERVER_KEY" in os.environ]).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
if __name__ == "__main__":
    START
"""
STARTS = [
    "uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[-1]), lifespan='off')",
    "uvicorn.Server(uvicorn.Config(app, host='127.0.0.1', port=int(sys.argv[-1]))).run()",
]


def _ask(path: str, route: str, key: str | None = None) -> tuple[int, str]:
    answer = Server(path, 0, key).ask("GET", route, timeout=5)
    return answer.status, answer.text


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(path) == 0  # the file exists before the engine listens


def _started(tmp_path: Path, start: str, arguments: list[str]) -> subprocess.Popen[str]:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang/launch_server.py").write_text(FAKE.replace("START", start))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "SGLANG_SERVER_KEY": "k3y"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(params=STARTS)
def server(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    port = free_port()
    path = str(tmp_path / "http.sock")
    process = _started(tmp_path, request.param, ["--uds", path, "--port", str(port)])
    try:
        until(lambda: process.poll() is not None or _listens(path), "it listens")
        yield process, path, port
    finally:
        process.kill()
        process.communicate()


def test_sglang_listens_only_on_the_socket(server: tuple[subprocess.Popen[str], str, int]) -> None:
    _, path, port = server
    assert _ask(path, "/health") == (200, f'[["--port", "{port}"], false]')
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", port)) != 0


def test_every_route_but_health_and_metrics_requires_the_key(
    server: tuple[subprocess.Popen[str], str, int],
) -> None:
    _, path, _ = server
    for route in ("/v1/models", "/flush_cache", "/health_generate", "/metrics/x", "/"):
        assert _ask(path, route) == (401, '{"error": "Unauthorized"}')
        assert _ask(path, route, "k3")[0] == 401
        assert _ask(path, route, "k3y")[0] == 200
    assert _ask(path, "/metrics")[0] == 200


def test_the_key_is_in_no_command_line_and_no_environment_of_the_engine(
    server: tuple[subprocess.Popen[str], str, int],
) -> None:
    process, path, _ = server
    arguments, inherited = json.loads(_ask(path, "/health")[1])
    assert not inherited
    assert "k3y" not in json.dumps(arguments) + Path(f"/proc/{process.pid}/cmdline").read_text()


def test_unguarded_http_processes_do_not_start(tmp_path: Path) -> None:
    process = _started(tmp_path, "uvicorn.run('sglang.x:app', workers=2)", ["--port", "1"])
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "leave tokenizer_worker_num out" in output
