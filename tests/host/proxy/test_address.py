"""The address for all models, a real HAProxy with its program, in front of a service's proxy."""

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sparkwright.host.lib.records import encode
from sparkwright.host.models.document import Door, Key, Model
from sparkwright.proxy.haproxy import MODELS, ModelPool, Proxy, Replica
from sparkwright.tls.authority import Authority
from tests.host.models.address_process import CHAT, PROGRAM
from tests.host.proxy.backend import PATIENCE, Backend, serving
from tests.host.proxy.conftest import own_proxy
from tests.host.proxy.haproxy import ADDRESS, ENGINE, KEY, RunningProxy, opened, proxies_of, until
from tests.host.proxy.test_tls import pem, trusting
from tests.host.serving import free_port

GUEST = "sk-the-key-of-a-guest-0123456789"
NAMED = {"guest": GUEST, "sparkwright": ENGINE.value}
ROOT = Path(__file__).parents[3]


@pytest.fixture
def service(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """A service's own proxy, with a guest's key whose limits it does not enforce."""
    with own_proxy(folder / "service", first, NAMED, limited=("guest",)) as proxy:
        yield proxy


@contextmanager
def address_of(
    home: Path,
    pools: tuple[ModelPool, ...],
    models: dict[str, Model],
    page: tuple[Proxy, ...] = (),
    ca: Authority | None = None,
) -> Iterator[RunningProxy]:
    """An address with its program, once every model has its planned state."""
    home.mkdir()
    home.parent.chmod(0o755)  # HAProxy's workers connect to the program's socket
    home.chmod(0o755)
    door = f"{home}/door.sock"
    program = Proxy(MODELS, free_port(), (Replica("program", door, health=door),), "127.0.0.1")
    proxies = proxies_of(home, (), proxies=(program, *page), pools=pools, limited=("guest",))
    proxies = replace(proxies, tls=pem(ca) if ca else None)
    keys = {"guest": Key(("small",), requests_minute=3)}
    document = Door("spark-9", models, f"{home}/usage.db", proxies.pools_socket, keys)
    (home / "models.json").write_text(json.dumps(encode(document)))
    with closing(socket.socket(socket.AF_UNIX)) as made, opened(proxies) as proxy:
        made.bind(door)
        Path(door).chmod(0o666)
        made.listen(100)
        number = str(made.fileno())
        command = [sys.executable, "-c", PROGRAM, number, str(ROOT), f"{home}/models.json"]
        process = subprocess.Popen(command, pass_fds=(made.fileno(),))
        proxy.context = trusting(ca) if ca else None
        try:
            proxy.write(named=NAMED)
            proxy.reload()
            until(lambda: proxy.get("/health", key=None).status == 200, "the address is open")
            states = {name: "asleep" if its.wakes else "ready" for name, its in models.items()}
            until(lambda: _states(proxy) == states, "what each service does")
            yield proxy
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _states(address: RunningProxy) -> dict[str, str]:
    return {item["id"]: item["state"] for item in address.get("/v1/models").data["data"]}


@pytest.fixture
def address(folder: Path, service: RunningProxy) -> Iterator[RunningProxy]:
    """The address, in front of a running service and a sleeping service."""
    there = Replica("spark-1", "127.0.0.1", service.port, service.port)
    away = Replica("spark-2", "127.0.0.1", service.port, free_port())
    pools = (ModelPool("pool.llm", (there,)), ModelPool("pool.far", (away,), ("spark-2",)))
    models = {
        "small": Model("pool.llm", "chat", 4096),
        "large": Model("pool.far", "chat", wakes=True),
    }
    with address_of(folder / "address", pools, models) as proxy:
        yield proxy


@contextmanager
def two_replicas(
    folder: Path, service: RunningProxy, second: Backend
) -> Iterator[tuple[RunningProxy, RunningProxy]]:
    """An address in front of two replicas, and the proxy of the second replica. The address never
    notices that the second replica is down.
    """
    with own_proxy(folder / "other", second, NAMED, wait_seconds=20) as other:
        until(lambda: other.get("/health", key=None).status == 200, "the replica is up")
        ports = {"spark-1": service.port, "spark-2": other.port}
        there = [Replica(name, "127.0.0.1", port, service.port) for name, port in ports.items()]
        pools, models = (ModelPool("pool.llm", tuple(there)),), {"small": Model("pool.llm", "chat")}
        with address_of(folder / "address", pools, models) as proxy:
            until(lambda: _pools(proxy) == "pool.llm 2\n", "both are up")
            yield proxy, other


def test_a_request_goes_to_the_pool_of_its_model(address: RunningProxy, first: Backend) -> None:
    forged = {"X-Sparkwright-Key": "sparkwright", "X-Sparkwright-Pool": "pool.far"}
    forged |= {"X-Sparkwright-Address": ADDRESS.value, "X-Sparkwright-Service": "other"}
    first.seen.clear()
    assert address.post(CHAT, {"model": "small"}, headers=forged).status == 200
    (seen,) = first.seen
    assert not [name for name in seen.headers if name.startswith("x-sparkwright-")]
    assert seen.headers["authorization"] == f"Bearer {ENGINE.value}"
    # A request to a pool whose servers are all down is still forwarded, and wakes the service.
    assert address.post(CHAT, {"model": "large"}).status == 200
    answer = address.post(CHAT, {"model": "none"})
    assert (answer.status, "large, small" in answer.data["error"]["message"]) == (404, True)
    assert _states(address) == {"small": "ready", "large": "asleep"}


def test_another_replica_answers_a_request_that_a_replica_breaks_off(
    folder: Path, service: RunningProxy, first: Backend, second: Backend
) -> None:
    with two_replicas(folder, service, second) as (address, _):
        body = {"model": "small", "die": "one", "text": "a" * 100_000}  # the disk holds the body
        answers = [address.post(CHAT, body) for _ in range(6)]
        assert [answer.data for answer in answers] == [{"replica": "two"}] * 6
        assert not [name for name in answers[0].headers if name.startswith("x-sparkwright-")]
        assert {item.body for item in (*first.seen, *second.seen)} == {json.dumps(body).encode()}
        assert len(first.seen) >= 1
        # A prompt that kills engines kills at most two engines; a body that is not kept is sent
        # once.
        for text, most in (("", 2), ("a" * (1 << 20), 1)):
            before = len(first.seen) + len(second.seen)
            assert address.post(CHAT, {"model": "small", "die": True, "text": text}).status == 502
            assert len(first.seen) + len(second.seen) - before == most


def test_a_replica_without_an_engine_neither_loses_nor_delays_a_request(
    folder: Path, service: RunningProxy, first: Backend
) -> None:
    with serving("mortal") as mortal, two_replicas(folder, service, mortal) as (address, other):
        mortal.healthy = False
        until(lambda: other.get("/health", key=None).status == 503, "the engine is gone")
        begun = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: address.post(CHAT, {"model": "small"}), range(40)))
        assert [answer.status for answer in answers] == [200] * 40
        assert {answer.data["replica"] for answer in answers} == {first.name}
        assert time.monotonic() - begun < 10
        # A request waits for the only replica that is left.
        address.ask("set server pool.llm/spark-1 state maint")
        answer = address.post(CHAT, {"model": "small"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "10")
        assert time.monotonic() - begun > 15


def test_a_pool_prefers_the_replica_with_the_prefix_unless_that_replica_is_busier(
    folder: Path, service: RunningProxy, first: Backend, second: Backend
) -> None:
    with two_replicas(folder, service, second) as (address, _):
        begun = len(first.seen) + len(second.seen)
        assert [_pools(address, "spark-2") for _ in range(4)] == ["spark-2"] * 4
        # Three requests on one replica and none on the other exceed the mean by one and a half.
        held = []
        for number in range(1, 7):
            held.append(_later(address, "spark-2"))
            until(partial(_have, begun + 4 + number, first, second), "it is held")
        assert len(second.seen) >= 4 + 2
        assert len(first.seen) > begun
        first.go.release(9)
        second.go.release(9)
        for thread in held:
            thread.join(PATIENCE)


def _have(count: int, *backends: Backend) -> bool:
    return sum(len(backend.seen) for backend in backends) == count


def _later(address: RunningProxy, near: str) -> threading.Thread:
    thread = threading.Thread(target=_pools, args=(address, near, b'{"hold": true}'))
    thread.start()
    return thread


def _pools(address: RunningProxy, near: str = "", body: bytes = b"{}") -> str:
    """Name of the replica that answered, or the text about a pool without a replica."""
    with closing(http.client.HTTPConnection("pools", timeout=PATIENCE)) as pools:
        pools.sock = socket.socket(socket.AF_UNIX)
        pools.sock.connect(address.proxies.pools_socket)
        headers = {"X-Sparkwright-Pool": "pool.llm", "X-Sparkwright-Near": near}
        headers |= {"X-Sparkwright-Key": "default", "Authorization": f"Bearer {KEY}"}
        method, path = ("POST", CHAT) if near else ("GET", "/state")
        pools.request(method, path, body if near else None, headers)
        answer = pools.getresponse()
        text = answer.read().decode()
        return str(answer.headers["x-sparkwright-server"]) if near else text


def test_a_failed_address_loses_no_request_of_another_address(
    folder: Path, service: RunningProxy
) -> None:
    pools = (ModelPool("pool.llm", (Replica("a", "127.0.0.1", service.port, service.port),)),)
    models = {"small": Model("pool.llm", "chat")}
    with (
        address_of(folder / "one", pools, models) as cut,
        address_of(folder / "two", pools, models) as other,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = [pool.submit(other.post, CHAT, {"model": "small"}) for _ in range(40)]
        assert cut.process
        cut.process.kill()
        assert [answer.result().status for answer in answers] == [200] * 40
        with pytest.raises(OSError, match="refused"):
            cut.post(CHAT, {"model": "small"})


def test_reloads_of_a_replicas_proxy_lose_and_duplicate_no_request(
    address: RunningProxy, service: RunningProxy, first: Backend
) -> None:
    """A reload closes idle connections: a request on a closing connection would be lost."""
    with ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(address.post, CHAT, {"model": "small"}) for _ in range(1500)]
        while not answers[-1].done():
            service.reload()
    assert {answer.result().status for answer in answers} == {200}
    assert len(first.seen) == 1500


def test_a_stream_whose_replica_dies_ends_with_an_error_and_never_as_complete(
    address: RunningProxy, service: RunningProxy
) -> None:
    for proxy, errors in ((service, 0), (address, 1)):
        answer = proxy.send("POST", CHAT, {"model": "small", "stream": True, "cut": True})
        with pytest.raises(http.client.IncompleteRead) as cut_off:
            answer.read()
        text = cut_off.value.partial
        seen = (answer.status, text.count(b'data: {"error"'), b"[DONE]" in text)
        assert seen == (200, errors, False)


def test_only_the_address_checks_permissions_and_limits(
    address: RunningProxy, service: RunningProxy
) -> None:
    assert service.post(CHAT, {"model": "small"}, key=GUEST).status == 403
    assert service.post(CHAT, {"model": "small"}, key=KEY).status == 200
    stolen = {"X-Sparkwright-Address": "sk-a-guess-of-somebody-0123456789"}
    assert service.post(CHAT, {"model": "small"}, key=GUEST, headers=stolen).status == 403
    assert address.post(CHAT, {"model": "large"}, key=GUEST).status == 404
    statuses = [address.post(CHAT, {"model": "small"}, key=GUEST).status for _ in range(5)]
    assert statuses.count(200) >= 3
    assert statuses[-1] == 429
    assert address.post(CHAT, {"model": "small"}, key=KEY).status == 200


def test_the_address_accepts_only_clients_keys(
    address: RunningProxy, service: RunningProxy
) -> None:
    for key in (None, ENGINE.value, ADDRESS.value, "sk-wrong"):
        assert address.post(CHAT, {"model": "small"}, key=key).status == 401
    assert service.post(CHAT, {"model": "small"}, key=ADDRESS.value).status == 401
    assert (address.get("/metrics").status, address.get("/metrics", key=GUEST).status) == (200, 403)
    for path in ("/v1/realtime", "/v1/responses/resp_1", "/state", "/peer"):
        assert address.get(path).status == 404, path


def test_a_request_to_the_pools_returns_the_number_of_servers_up(address: RunningProxy) -> None:
    # A server counts as up until its first check has failed.
    until(lambda: _pools(address) == "pool.llm 1\npool.far 0\n", "one of two pools is up")


def test_a_service_without_limits_takes_every_client(service: RunningProxy, first: Backend) -> None:
    service.proxies = replace(service.proxies, limited=())
    service.write(named=NAMED)
    service.reload()
    assert service.post(CHAT, {"model": "small"}, key=GUEST).status == 200
    assert len(first.seen) == 1
