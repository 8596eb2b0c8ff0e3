"""The health check is asked by a proxy on its own host, where other users can connect, too."""

import contextlib
import http.client
import socket
import threading
import time

import pytest

from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthService
from tests.host.serving import free_port


@pytest.fixture
def port() -> int:
    """A health check's port."""
    result = free_port()
    service = health.Service(HealthService("qwen36", 9, result, "/nothing", "m", 5), 30, {})
    service.well = True
    health.serve(service, result)
    return result


def test_connections_that_ask_nothing_keep_nobody_out(port: int) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        time.sleep(0.5)
        assert threading.active_count() - before < 50
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
