"""The address for all models on a real HAProxy, with its program, before a service's own proxy."""

import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host.lib.records import encode
from sparkwright.host.models.document import Door, Key, Model
from sparkwright.proxy.haproxy import MODELS, ModelPool, Proxy, Replica
from tests.host.proxy.backend import PATIENCE, Backend
from tests.host.proxy.haproxy import (
    ADDRESS,
    ENGINE,
    KEY,
    RunningProxy,
    opened,
    proxies_of,
    replica,
    until,
)
from tests.host.serving import free_port

CHAT = "/v1/chat/completions"
GUEST = "sk-the-key-of-a-guest-0123456789"
NAMED = {"guest": GUEST, "sparkwright": ENGINE.value}
ROOT = Path(__file__).parents[3]
_PROGRAM = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); sys.path.insert(0, sys.argv[2]); "
    "from sparkwright.host.models import serve; sys.exit(serve.main(sys.argv[3]))"
)


@pytest.fixture
def service(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """A service's own proxy, with a guest's key whose limits it does not enforce."""
    (folder / "service").mkdir()
    llm = Proxy("llm", free_port(), (replica(first),), "127.0.0.1", "/generates", engine_key=True)
    with opened(proxies_of(folder / "service", (), proxies=(llm,), limited=("guest",))) as proxy:
        proxy.write(named=NAMED)
        proxy.reload()
        yield proxy


@pytest.fixture
def address(folder: Path, service: RunningProxy) -> Iterator[RunningProxy]:
    """The address, before that service and another service that sleeps."""
    home, door = folder / "address", f"{folder}/door.sock"
    home.mkdir()
    folder.chmod(0o755)  # HAProxy's workers connect to the program's socket
    program = Proxy(MODELS, free_port(), (Replica("program", door, health=door),), "127.0.0.1")
    there = Replica("spark-1", "127.0.0.1", service.port, service.port)
    away = Replica("spark-2", "127.0.0.1", service.port, free_port())
    pools = (ModelPool("pool.llm", (there,)), ModelPool("pool.far", (away,), ("spark-2",)))
    proxies = proxies_of(home, (), proxies=(program,), pools=pools, limited=("guest",))
    models = {
        "small": Model("pool.llm", "chat", 4096),
        "large": Model("pool.far", "chat", wakes=True),
    }
    keys = {"guest": Key(("small",), requests_minute=3)}
    document = Door("spark-9", models, f"{folder}/usage.db", proxies.pools_socket, keys)
    (home / "models.json").write_text(json.dumps(encode(document)))
    with closing(socket.socket(socket.AF_UNIX)) as made, opened(proxies) as proxy:
        made.bind(door)
        Path(door).chmod(0o666)
        made.listen(100)
        number = str(made.fileno())
        command = [sys.executable, "-c", _PROGRAM, number, str(ROOT), f"{home}/models.json"]
        process = subprocess.Popen(command, pass_fds=(made.fileno(),))
        try:
            proxy.write(named=NAMED)
            proxy.reload()
            until(lambda: proxy.get("/health", key=None).status == 200, "the address is open")
            states = ("'ready'", "'asleep'")  # a server counts as up until its second check

            def seen() -> bool:
                return all(state in str(proxy.get("/v1/models").data) for state in states)

            until(seen, "what each service does")
            yield proxy
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_a_request_goes_to_the_pool_of_its_model(address: RunningProxy, first: Backend) -> None:
    forged = {"X-Sparkwright-Key": "sparkwright", "X-Sparkwright-Pool": "pool.far"}
    forged |= {"X-Sparkwright-Address": ADDRESS.value, "X-Sparkwright-Service": "other"}
    first.seen.clear()
    assert address.post(CHAT, {"model": "small"}, headers=forged).status == 200
    (seen,) = first.seen
    assert not [name for name in seen.headers if name.startswith("x-sparkwright-")]
    assert seen.headers["authorization"] == f"Bearer {ENGINE.value}"
    # No server of this pool is up: the request goes there all the same, and wakes the service.
    assert address.post(CHAT, {"model": "large"}).status == 200
    answer = address.post(CHAT, {"model": "none"})
    assert (answer.status, "large, small" in answer.data["error"]["message"]) == (404, True)
    listed = {item["id"]: item["state"] for item in address.get("/v1/models").data["data"]}
    assert listed == {"small": "ready", "large": "asleep"}


def test_a_pool_sends_to_the_replica_with_the_prefix_while_it_is_hardly_busier(
    folder: Path, service: RunningProxy, first: Backend, second: Backend
) -> None:
    homes = [folder / name for name in ("other", "pools")]
    for home in homes:
        home.mkdir()
    llm = Proxy("llm", free_port(), (replica(second),), "127.0.0.1", "/generates", engine_key=True)
    program = Proxy(MODELS, free_port(), (Replica("program", "/none", health="/none"),))
    with opened(proxies_of(homes[0], (), proxies=(llm,))) as other:
        ports = {"one": service.port, "two": other.port}
        there = [Replica(name, "127.0.0.1", port, port) for name, port in ports.items()]
        pools = (ModelPool("pool.llm", tuple(there)),)
        with opened(proxies_of(homes[1], (), proxies=(program,), pools=pools)) as address:
            until(lambda: "pool.llm 2" in _pools(address, "GET", "/state", ""), "both are up")
            served = [_pools(address, "POST", CHAT, "two") for _ in range(4)]
            assert served == ["two"] * 4
            # With two requests of its own and none at the other, it is over the mean by one.
            held = [_later(address, "two") for _ in range(3)]
            until(lambda: len(second.seen) == 4 + 3, "they are held")
            assert len(first.seen) == 0
            more = [_later(address, "two") for _ in range(3)]
            until(lambda: len(second.seen) + len(first.seen) == 4 + 6, "they are held")
            assert len(first.seen) >= 1
            first.go.release(9)
            second.go.release(9)
            for thread in held + more:
                thread.join(PATIENCE)


def _later(address: RunningProxy, near: str) -> threading.Thread:
    thread = threading.Thread(target=_pools, args=(address, "POST", CHAT, near, b'{"hold": true}'))
    thread.start()
    return thread


def _pools(address: RunningProxy, method: str, path: str, near: str, body: bytes = b"{}") -> str:
    """The name of the replica that answered; of a GET the text."""
    with closing(http.client.HTTPConnection("pools", timeout=PATIENCE)) as pools:
        pools.sock = socket.socket(socket.AF_UNIX)
        pools.sock.connect(address.proxies.pools_socket)
        headers = {"X-Sparkwright-Pool": "pool.llm", "X-Sparkwright-Near": near}
        headers |= {"X-Sparkwright-Key": "default", "Authorization": f"Bearer {KEY}"}
        pools.request(method, path, body if method == "POST" else None, headers)
        answer = pools.getresponse()
        text = answer.read().decode()
        return text if method == "GET" else str(answer.headers["x-sparkwright-server"])


def test_rights_and_limits_are_judged_at_the_address_alone(
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


def test_the_address_opens_to_no_key_that_is_not_a_clients(
    address: RunningProxy, service: RunningProxy
) -> None:
    for key in (None, ENGINE.value, ADDRESS.value, "sk-wrong"):
        assert address.post(CHAT, {"model": "small"}, key=key).status == 401
    assert service.post(CHAT, {"model": "small"}, key=ADDRESS.value).status == 401
    assert (address.get("/metrics").status, address.get("/metrics", key=GUEST).status) == (200, 403)
    for path in ("/v1/realtime", "/v1/responses/resp_1", "/state", "/peer"):
        assert address.get(path).status == 404, path


def test_a_request_to_the_pools_returns_the_number_of_servers_up(address: RunningProxy) -> None:
    with closing(http.client.HTTPConnection("pools", timeout=PATIENCE)) as pools:
        pools.sock = socket.socket(socket.AF_UNIX)
        pools.sock.connect(address.proxies.pools_socket)
        pools.request("GET", "/state")
        assert pools.getresponse().read() == b"pool.llm 1\npool.far 0\n"


def test_a_service_without_limits_takes_every_client(service: RunningProxy, first: Backend) -> None:
    service.proxies = replace(service.proxies, limited=())
    service.write(named=NAMED)
    service.reload()
    assert service.post(CHAT, {"model": "small"}, key=GUEST).status == 200
    assert len(first.seen) == 1
