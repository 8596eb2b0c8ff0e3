"""The speed of a connection: the bytes received in two seconds, from servers of each kind."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from sparkwright.host.line_speed import main
from tests.host.serving import accepting

MB = 10**6


@contextmanager
def _server(serve: Callable[[socket.socket], object]) -> Iterator[tuple[str, list[str]]]:
    """A server, and the headers of received requests."""
    heads: list[str] = []

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            heads.append(connection.recv(65536).decode())
            serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting(listener, answer)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/model.safetensors", heads
        listener.shutdown(socket.SHUT_RDWR)


def _config(url: str) -> str:
    return "\n".join([f'url = "{url}"', 'output = "/dev/null"'] * 4)


def _megabytes(rate: float) -> Callable[[socket.socket], object]:
    """Serve this many megabytes a second over each connection."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 999999999\r\n\r\n")
        while True:
            connection.sendall(b"x" * round(rate * MB / 20))
            time.sleep(0.05)

    return serve


def _silent(connection: socket.socket) -> None:
    time.sleep(5)


def _dripping(connection: socket.socket) -> None:
    for byte in b"HTTP/1.1 206 Partial Content\r\n" * 99:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def _refusing(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


def _file(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: file:///dev/zero\r\n\r\n")


def test_the_speed_is_the_sum_of_all_connections() -> None:
    with _server(_megabytes(2)) as (url, heads):
        began = time.monotonic()
        rate = main(_config(url))
        assert time.monotonic() - began < 2.5
    assert 4 * MB < rate < 12 * MB
    assert len(heads) == 4


@pytest.mark.parametrize("serve", [_silent, _dripping, _refusing, _file])
def test_without_a_measurement_no_speed_is_reported(
    serve: Callable[[socket.socket], object],
) -> None:
    with _server(serve) as (url, _):
        began = time.monotonic()
        assert main(_config(url)) == 0
        assert time.monotonic() - began < 2.5
    assert main(_config(url)) == 0  # the server has ended


def test_a_host_without_curl_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(_config("http://127.0.0.1:9/x")) == 0
