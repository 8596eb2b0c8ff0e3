"""A neighbour without a key occupies connections; a household with keys needs many of them."""

import contextlib
import errno
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sparkwright.tls.authority import Authority
from tests.host.proxy.backend import PATIENCE, Backend
from tests.host.proxy.haproxy import KEY, RunningProxy, opened, proxies_of, replica, until
from tests.host.proxy.test_tls import ca, pem, trusting

__all__ = ["ca"]

CHAT = "/v1/chat/completions"
HOUSEHOLD = "127.0.0.3"
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
HALF = {
    "nothing": b"",
    "half a head": b"GET /v1/models HTTP/1.1\r\nX: ",
    "half a body": f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n{{".encode(),
    "kept alive": b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """The test opens as many connections as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 18_000:
        pytest.skip("the attack needs 18,000 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(params=["clear", "tls"])
def proxy(
    request: pytest.FixtureRequest, folder: Path, first: Backend, ca: Authority
) -> Iterator[RunningProxy]:
    """A proxy by http and by https."""
    tls = pem(ca) if request.param == "tls" else None
    with opened(proxies_of(folder, (replica(first),), tls=tls)) as running:
        running.context = trusting(ca) if tls else None
        yield running


def flood(
    proxy: RunningProxy, stack: ExitStack, data: bytes, count: int = 10_000, addresses: int = 1
) -> None:
    """Hold connections that send only some bytes, until the exit stack closes."""
    items = []
    for number in range(count):
        item = stack.enter_context(socket.socket())
        item.setblocking(False)
        item.bind((f"127.0.{number % addresses}.2", 0))
        assert item.connect_ex(("127.0.0.1", proxy.port)) in (0, errno.EINPROGRESS)
        items.append(item)
    for item in items:
        with contextlib.suppress(OSError):  # HAProxy may refuse the connection
            item.sendall(data)


def is_undisturbed(proxy: RunningProxy, first: Backend) -> None:
    """Send ten requests with a key; each must be answered at once."""
    for _ in range(10):
        began = time.monotonic()
        assert proxy.post(CHAT).status == 200
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("data", HALF.values(), ids=HALF)
def test_half_open_connections_of_one_address_disturb_no_client_with_a_key(
    proxy: RunningProxy, first: Backend, data: bytes
) -> None:
    stream = proxy.send("POST", CHAT, {"stream": 2})
    first.go.release()
    assert stream.readline() == b"data: 0 of one\n"
    with ExitStack() as stack:
        flood(proxy, stack, HELLO if proxy.context and data else data)
        is_undisturbed(proxy, first)
        first.go.release()
        assert stream.read().endswith(b"data: 1 of one\n\n")


def test_clients_with_a_key_keep_room_when_many_addresses_attack(
    proxy: RunningProxy, first: Backend
) -> None:
    is_undisturbed(proxy, first)
    with ExitStack() as stack:
        flood(proxy, stack, b"G", addresses=40)
        is_undisturbed(proxy, first)


def _asks(proxy: RunningProxy, item: socket.socket) -> socket.socket:
    if proxy.context:
        item = proxy.context.wrap_socket(item, server_hostname="localhost")
    item.sendall(
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        'Content-Length: 13\r\nConnection: close\r\n\r\n{"stream": 1}'.encode()
    )
    return item


def test_a_household_behind_one_router_streams_a_thousand_answers(
    proxy: RunningProxy, first: Backend
) -> None:
    """The whole household connects at once, while another address attacks."""
    with ExitStack() as stack:
        flood(proxy, stack, HELLO)
        items = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", proxy.port), PATIENCE, (HOUSEHOLD, 0))
            )
            for _ in range(1000)
        ]
        items = [stack.enter_context(_asks(proxy, item)) for item in items]
        until(lambda: len(first.seen) == 1000, "a thousand streams at once")
        first.go.release(1000)
        for item in items:
            text = item.makefile("rb").read()
            assert text.startswith(b"HTTP/1.1 200 "), text[:80]
            assert b"data: 0 of one" in text


@pytest.mark.parametrize("kind", ["half a head", "kept alive"])
def test_connections_without_a_key_are_closed(folder: Path, first: Backend, kind: str) -> None:
    """Clients that slowly send further bytes also lose their connections."""
    with (
        opened(proxies_of(folder, (replica(first),))) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port)) as item,
    ):
        began = time.monotonic()
        item.sendall(HALF[kind])
        item.settimeout(0.5)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 30:
                item.sendall(b"y")
                with contextlib.suppress(TimeoutError):
                    if not item.recv(65536):
                        break
        assert time.monotonic() - began < 20
