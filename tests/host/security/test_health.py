"""The health check is asked by a proxy on its own host, at a socket of its own."""

import contextlib
import socket
import time
from pathlib import Path

import pytest

from sparkwright.host.lib import files
from sparkwright.host.lib.http import Server
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthConfig, HealthService


def test_connections_that_ask_nothing_keep_nobody_out(tmp_path: Path) -> None:
    path = str(tmp_path / "health.sock")
    service = health.Service(HealthService("qwen36", "/no.sock", "/nothing", "m", 5), 30, {})
    service.well = True
    health.serve(service, path)
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
        assert Server(path, 0).get("/").status == 200


def test_the_program_lasts_as_long_as_its_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.12.0 to 3.12.2 starts no thread, for an answer, once the main one has ended."""
    began = time.monotonic()
    monkeypatch.setattr(health.Service, "watch", lambda _: time.sleep(0.3))
    service = HealthService(
        "qwen36", "/no.sock", "/nothing", "m", 5, health=str(tmp_path / "health.sock")
    )
    files.write_record(tmp_path / "health.json", HealthConfig((service,)))
    health.main(str(tmp_path / "health.json"))
    assert time.monotonic() - began >= 0.3
