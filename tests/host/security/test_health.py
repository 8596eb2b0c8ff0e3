"""The health check is asked by a proxy on its own host, where other users can connect, too."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from sparkwright.host.lib import files
from sparkwright.host.lib.http import Server
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthConfig, HealthService
from tests.host.serving import free_port


def test_connections_that_ask_nothing_keep_nobody_out() -> None:
    port = free_port()
    service = health.Service(HealthService("qwen36", 9, port, "/nothing", "m", 5), 30, {})
    service.well = True
    health.serve(service, port)
    before = threading.active_count()
    with contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        time.sleep(0.5)
        assert threading.active_count() - before < 50
        assert Server("127.0.0.1", port).get("/").status == 200


def test_the_program_lasts_as_long_as_its_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.12.0 to 3.12.2 starts no thread, for an answer, once the main one has ended."""
    began = time.monotonic()
    monkeypatch.setattr(health.Service, "watch", lambda _: time.sleep(0.3))
    service = HealthService("qwen36", 9, free_port(), "/nothing", "m", 5)
    files.write_record(tmp_path / "health.json", HealthConfig((service,)))
    health.main(str(tmp_path / "health.json"))
    assert time.monotonic() - began >= 0.3
