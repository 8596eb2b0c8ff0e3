"""The proxy, with a real HAProxy: access control, forwarded requests, and no lost request."""

import contextlib
import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright.engines import client_routes
from sparkwright.proxy.haproxy import Replica, render_proxies
from tests.host.proxy.backend import PATIENCE, Backend, serving
from tests.host.proxy.conftest import Opener
from tests.host.proxy.haproxy import (
    HAPROXY,
    KEY,
    WEBSOCKET_KEY,
    RunningProxy,
    opened,
    proxies_of,
    replica,
    until,
    whole,
)
from tests.libyaml import safe_load

FIXTURES = Path(__file__).parents[2] / "fixtures/vllm/0.24.0"
VLLM_ROUTES = [
    (method, path.replace("{id}", "resp_0a1b2c"))
    for method, path in (
        line.split()
        for line in (FIXTURES / "routes.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]
#: Additional routes of vLLM-Omni, from its API server's documentation; the last route is not for
#: clients.
VLLM_ROUTES += [
    ("POST", "/v1/audio/speech"), ("GET", "/v1/audio/voices"), ("POST", "/v1/images/generations"),
    ("POST", "/v1/images/edits"), ("POST", "/v1/videos"),
]  # fmt: skip
OPEN = {(method, path.replace("{id}", "resp_0a1b2c")) for method, path in client_routes("vllm")}
#: Routes that VLLM_SERVER_DEV_MODE adds and that change the engine: no key gives access to them.
DEVELOPER = (FIXTURES / "developer_routes.txt").read_text().split()
CHAT = "/v1/chat/completions"
REQUESTS = safe_load(Path(__file__).with_name("requests.yaml").read_text())


# --- The key -----------------------------------------------------------------------------------


@pytest.mark.parametrize("authorization", REQUESTS["authorizations"])
def test_requests_without_the_key_are_refused(
    start: Opener, first: Backend, authorization: str | None
) -> None:
    proxy = start(first)
    filled = authorization and authorization.format(key=KEY, short=KEY[:-1], upper=KEY.upper())
    headers = {"Authorization": filled} if filled is not None else {}
    for answer in (
        proxy.post(CHAT, key=None, headers=headers),
        proxy.get("/v1/models", key=None, headers=headers),
        proxy.get(f"/v1/models?api_key={KEY}", key=None, headers={"x-api-key": KEY, **headers}),
    ):
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.data["error"]["message"] == "The API key is missing or wrong."
    assert first.seen == []


def test_only_the_owner_can_open_the_sockets(start: Opener, first: Backend) -> None:
    proxies = start(first).proxies
    for position in (proxies.admin_socket, proxies.master_socket):
        assert Path(position).stat().st_mode & 0o777 == 0o600


def test_without_keys_the_proxy_admits_no_client(folder: Path, first: Backend) -> None:
    with opened(proxies_of(folder, (replica(first),)), keys=()) as proxy:
        assert proxy.post(CHAT).status == 401
        assert proxy.post(CHAT, key=None, headers={"Authorization": "Bearer "}).status == 401
    assert first.seen == []


def test_haproxy_does_not_start_without_the_file_of_keys(folder: Path, first: Backend) -> None:
    proxy = RunningProxy(proxies_of(folder, (replica(first),)))
    proxy.write()
    Path(proxy.proxies.keys).unlink()
    done = subprocess.run(proxy.command(), capture_output=True, text=True, timeout=60, check=False)
    proxy.stop()
    assert done.returncode != 0
    assert "keys" in done.stderr


# --- The routes --------------------------------------------------------------------------------


def test_each_route_of_vllm_is_forwarded_or_refused(start: Opener, first: Backend) -> None:
    proxy = start(first)
    assert {route for route in VLLM_ROUTES if route[1] not in DEVELOPER} >= OPEN
    for method, path in VLLM_ROUTES:
        first.seen.clear()
        answer = whole(proxy.send(method, path, b"" if method == "POST" else None))
        if (method, path) in OPEN:
            assert answer.status == 200, path
            assert [(seen.method, seen.path) for seen in first.seen] == [(method, path)]
        elif path == "/health":
            assert answer.status == 200
            assert first.seen == []
        else:
            assert answer.status == 404, path
            assert answer.data["error"]["message"] == "There is no such route."
            assert first.seen == []


def test_a_route_has_one_method(start: Opener, first: Backend) -> None:
    proxy = start(first)
    for right, path in [*OPEN, ("GET", "/health")]:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "get", "FOO"):
            if method != right:
                assert whole(proxy.send(method, path)).status in (404, 405), (method, path)
    assert first.seen == []


def test_a_query_string_is_forwarded(start: Opener, first: Backend) -> None:
    proxy = start(first)
    assert proxy.get("/v1/responses/resp_1-A?stream=true&starting_after=3").status == 200
    assert first.seen[0].path == "/v1/responses/resp_1-A?stream=true&starting_after=3"


def test_a_manipulated_path_is_refused(start: Opener, first: Backend) -> None:
    proxy = start(first)
    for target in REQUESTS["targets"]:
        for head in (
            f"GET {target} HTTP/1.1\r\nHost: x\r\n",
            f"GET {target} HTTP/1.0\r\n",
            f"GET {target} HTTP/1.1\r\nHost: x\r\nX-Original-URL: /v1/models\r\n",
        ):
            request = f"{head}Authorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
            status = proxy.raw(request.encode()).split()[1:2]
            assert status in ([b"400"], [b"404"], [b"405"]), (target, status)
            assert first.seen == [], target


@pytest.mark.parametrize("request_bytes", REQUESTS["hidden"])
def test_a_smuggled_request_is_refused(start: Opener, first: Backend, request_bytes: str) -> None:
    proxy = start(first)
    key = f"Authorization: Bearer {KEY}\r\n"
    inner = f"GET /version HTTP/1.1\r\nHost: x\r\n{key}Connection: close\r\n\r\n"
    proxy.raw(request_bytes.format(chat=CHAT, key=key, inner=inner).encode(), leave=True)
    assert proxy.get("/v1/models").status == 200
    assert all((seen.method, seen.path) in OPEN for seen in first.seen), first.seen


def test_http_2_is_refused(start: Opener, first: Backend) -> None:
    settings_frame = b"\0\0\0\4\0\0\0\0\0"
    received = start(first).raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings_frame)
    assert received.startswith(b"HTTP/1.1 400")


_PIECES = st.sampled_from([
    "/", "//", "v1", "V1", "models", "metrics", "chat", "completions", "responses", "cancel", "x",
    ".", "..", "%2e", "%2f", "%2F", "%00", "%25", "\\", ";", "?", "#", "&", "=", "@", ":", "\x7f",
    "http://x", "/v1/models", "/v1/chat/completions", "/health", "invocations", "ä",
])  # fmt: skip


def test_only_listed_routes_are_forwarded(start: Opener, first: Backend) -> None:
    proxy = start(first)
    response = "/v1/responses/"

    @settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(st.lists(_PIECES, min_size=1, max_size=7), st.sampled_from(["GET", "POST"]))
    def tried(pieces: list[str], method: str) -> None:
        target = "".join(pieces)
        first.seen.clear()
        request = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        proxy.raw(f"{request}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
        for seen in first.seen:
            path = seen.path.partition("?")[0]
            assert target.startswith(path)
            last = path.removeprefix(response).removesuffix("/cancel")
            assert (seen.method, path) in OPEN or (path.startswith(response) and last.isalnum())

    tried()


def test_only_the_realtime_route_is_upgraded(start: Opener, first: Backend) -> None:
    proxy = start(first)
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABk"}
    for protocol in ("h2c", "h2c, websocket", "websocket"):
        headers = {"Upgrade": protocol, "Sec-WebSocket-Key": WEBSOCKET_KEY, **upgrade}
        assert proxy.get("/v1/models", headers=headers).status == 200
    assert all("upgrade" not in seen.headers for seen in first.seen)
    assert proxy.upgrades()


def test_a_browsers_preflight_request_is_answered(start: Opener, first: Backend) -> None:
    proxy = start(first)
    asked = {
        "Origin": "http://chat.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-stainless-lang",
    }
    answer = whole(proxy.send("OPTIONS", CHAT, key=None, headers=asked))
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "authorization,x-stainless-lang"
    assert whole(proxy.send("OPTIONS", "/version", key=None, headers=asked)).status == 404
    assert first.seen == []


# --- Streams -----------------------------------------------------------------------------------


def test_a_stream_is_forwarded_chunk_by_chunk(start: Opener, first: Backend) -> None:
    stream = start(first).send("POST", CHAT, {"stream": 50}, headers={"Accept-Encoding": "gzip"})
    assert stream.status == 200
    assert stream.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert stream.headers["Content-Encoding"] is None
    for number in range(50):
        # The replica sends the next chunk only after this chunk has arrived: nothing may be held
        # back.
        first.go.release()
        assert stream.readline() == f"data: {number} of one\n".encode()
        assert stream.readline() == b"\n"
    assert stream.read() == b""


def test_a_long_prompt_arrives_whole(start: Opener, first: Backend) -> None:
    prompt = b"\0" + os.urandom(1 << 20)  # not the JSON of other tests
    assert start(first).post(CHAT, prompt).status == 200
    assert first.seen[0].body == prompt


def test_a_request_is_cancelled_if_its_client_disconnects(start: Opener, first: Backend) -> None:
    proxy = start(first)
    connection = proxy.connect()
    connection.request("POST", CHAT, b'{"hold": true}', {"Authorization": f"Bearer {KEY}"})
    assert first.begun.acquire(timeout=PATIENCE)
    connection.close()
    assert first.left.wait(PATIENCE)


# --- Replicas ----------------------------------------------------------------------------------


def test_requests_go_to_the_replica_with_the_fewest_requests(
    start: Opener, first: Backend, second: Backend
) -> None:
    proxy = start(first, second)
    for name in ("one", "two"):
        proxy.until_status(name, "UP")
    held = []
    for count in range(1, 5):  # two threads of HAProxy may choose at the same time
        held.append(proxy.send_later(CHAT, {"hold": True}))
        until(lambda: len(first.seen) + len(second.seen) == count, "the request")  # noqa: B023
    assert len(first.seen) == len(second.seen) == 2
    assert proxy.running("one") == proxy.running("two") == 2

    second.go.release()
    second.go.release()
    until(lambda: proxy.running("two") == 0, "two of them answered")
    assert {proxy.post(CHAT).data["replica"] for _ in range(6)} == {"two"}

    first.go.release()
    first.go.release()
    names = [request.result(PATIENCE).data["replica"] for request in held]
    assert sorted(names) == ["one", "one", "two", "two"]


def test_every_request_has_its_own_connection(start: Opener, first: Backend) -> None:
    """vLLM closes connections that idle for five seconds, with or without a request under way."""
    client = start(first).connect()
    for _ in range(3):
        client.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {KEY}"})
        answer = whole(client.getresponse())
        assert answer.status == 200
        assert "connection" not in answer.headers
    assert [seen.headers["connection"] for seen in first.seen] == ["close"] * 3


def test_health_needs_one_healthy_replica(start: Opener, first: Backend, second: Backend) -> None:
    proxy = start(first, second)
    for name in ("one", "two"):
        proxy.until_status(name, "UP")
    assert proxy.get("/health", key=None).status == 200

    first.healthy = False
    proxy.until_status("one", "DOWN")
    assert proxy.get("/health", key=None).status == 200
    assert {proxy.post(CHAT).data["replica"] for _ in range(6)} == {"two"}

    second.healthy = False
    proxy.until_status("two", "DOWN")
    assert proxy.get("/health", key=None).status == 503

    first.healthy = True
    proxy.until_status("one", "UP")
    assert proxy.get("/health", key=None).status == 200
    assert {proxy.post(CHAT).data["replica"] for _ in range(6)} == {"one"}
    assert "/health" not in proxy.log.read_text()


def test_a_drained_replica_finishes_its_requests_and_gets_no_new_requests(
    start: Opener, first: Backend, second: Backend
) -> None:
    proxy = start(first, second)
    stream = proxy.send_later(CHAT, {"stream": 3})
    until(lambda: first.seen or second.seen, "the stream")
    busy, other = (first, second) if first.seen else (second, first)
    assert proxy.put(busy.name, "drain") == ""
    assert proxy.state(busy.name).status == "DRAIN"

    assert {proxy.post(CHAT).data["replica"] for _ in range(10)} == {other.name}
    assert proxy.running(busy.name) == 1
    for _ in range(3):
        busy.go.release()
    assert stream.result(PATIENCE).body.endswith(f"data: 2 of {busy.name}\n\n".encode())
    until(lambda: proxy.running(busy.name) == 0, "the end of the stream")
    assert len(busy.seen) == 1

    assert proxy.put(busy.name, "ready") == ""
    proxy.until_status(busy.name, "UP")
    assert {proxy.post(CHAT).data["replica"] for _ in range(10)} == {"one", "two"}


def test_a_stopping_proxy_reports_503_and_still_takes_requests(
    start: Opener, first: Backend
) -> None:
    proxy = start(first)
    assert proxy.get("/health").status == 200
    assert proxy.ask("set server stay-llm/stay state maint").strip() == ""
    assert proxy.get("/health").status == 503
    assert proxy.post(CHAT).status == 200
    proxy.reload()
    assert proxy.get("/health").status == 503
    proxy.ask("set server stay-llm/stay state ready")
    assert proxy.get("/health").status == 200


def test_a_request_waits_while_the_only_replica_is_drained(start: Opener, first: Backend) -> None:
    proxy = start(first, wait_seconds=int(PATIENCE))
    proxy.put("one", "drain")
    waiting = [proxy.send_later(CHAT) for _ in range(3)]
    until(lambda: proxy.sessions() == 3, "three that wait")
    assert first.seen == []
    proxy.put("one", "ready")
    assert [request.result(PATIENCE).status for request in waiting] == [200, 200, 200]


def test_a_request_that_waits_too_long_gets_503(start: Opener, first: Backend) -> None:
    proxy = start(first, wait_seconds=1)
    proxy.put("one", "drain")
    answer = proxy.post(CHAT)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "10"
    assert answer.data["error"]["message"] == "No replica is ready."


def test_a_dead_replica_loses_no_new_request(folder: Path, first: Backend) -> None:
    with contextlib.ExitStack() as mortal:
        others = [mortal.enter_context(serving(name)) for name in ("mortal", "also")]
        proxies = proxies_of(folder, tuple(map(replica, (*others, first))))
        # The interval of health checks is too long: requests detect the dead replica.
        with opened(replace(proxies, check_milliseconds=3_600_000)) as proxy:
            names = {proxy.post(CHAT).data["replica"] for _ in range(12)}
            assert names == {"mortal", "also", "one"}
            mortal.close()
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: proxy.post(CHAT), range(40)))
            assert [answer.status for answer in answers] == [200] * 40
            assert {answer.data["replica"] for answer in answers} == {"one"}
            assert proxy.state("mortal").status == proxy.state("also").status == "DOWN"


def test_a_request_at_one_replica_is_not_sent_to_another_replica(
    start: Opener, first: Backend, second: Backend
) -> None:
    proxy = start(first, second)
    answer = proxy.post(CHAT, {"die": True})
    assert answer.status == 502
    assert answer.data["error"]["message"] == "The replica broke off before it answered."
    assert len(first.seen) + len(second.seen) == 1


def test_a_request_without_effect_is_retried(
    start: Opener, first: Backend, second: Backend
) -> None:
    proxy = start(first, second)
    assert proxy.get("/v1/models?die").status == 502
    assert {seen.path for seen in (*first.seen, *second.seen)} == {"/v1/models?die"}
    assert first.seen
    assert second.seen


# --- Reloads -----------------------------------------------------------------------------------


def test_a_reload_cuts_off_and_loses_no_request(
    start: Opener, first: Backend, second: Backend
) -> None:
    proxy = start(first)
    stream = proxy.send("POST", CHAT, {"stream": 2})
    first.go.release()
    assert stream.readline() == b"data: 0 of one\n"
    assert proxy.running("one") == 1

    proxy.change(replicas=(replica(first), replica(second)))
    assert {proxy.post(CHAT).data["replica"] for _ in range(8)} == {"one", "two"}
    assert len(proxy.workers()) == 2
    assert proxy.state("one").running == 0
    # The former worker still has the request.
    assert proxy.running("one") == 1

    first.go.release()
    assert stream.read().endswith(b"data: 1 of one\n\n")
    until(lambda: len(proxy.workers()) == 1, "the end of the former worker")
    assert proxy.running("one") == 0


def test_a_reload_keeps_drained_replicas(start: Opener, first: Backend, second: Backend) -> None:
    proxy = start(first, second)
    proxy.put("one", "drain")
    proxy.reload()
    assert proxy.state("one").status == "DRAIN"
    assert {proxy.post(CHAT).data["replica"] for _ in range(6)} == {"two"}
    proxy.reload(keeping=False)
    proxy.until_status("one", "UP")


def test_a_reload_takes_a_replicas_new_port(start: Opener, first: Backend, second: Backend) -> None:
    proxy = start(first)
    proxy.change(replicas=(replace(replica(second), name="one"),))
    assert proxy.post(CHAT).data == {"replica": "two"}


def test_a_request_half_received_at_a_reload_is_answered(start: Opener, first: Backend) -> None:
    proxy = start(first, wait_seconds=3600)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE) as client:
        client.sendall(f"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer {KEY}\r\n".encode())
        # HAProxy accepts connections in order: an answer on the second proves that the first was
        # accepted.
        assert proxy.get("/v1/models").status == 200
        proxy.reload()
        client.sendall(b"Host: x\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_request_that_waits_at_a_reload_may_be_repeated(start: Opener, first: Backend) -> None:
    """The former worker does not notice that a replica is back."""
    proxy = start(first, wait_seconds=3600)
    proxy.put("one", "drain")
    waiting = proxy.send_later(CHAT)
    until(lambda: proxy.sessions() == 1, "one that waits")
    proxy.reload()
    assert waiting.result(PATIENCE).status == 503
    assert first.seen == []


# --- Shapes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bind", ["*", "127.0.0.1", "::", "::1"])
@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("at", ["fd00::1", "spark-2.example.invalid"], ids=["number", "dns"])
def test_haproxy_accepts_the_configuration_without_a_warning(
    folder: Path, bind: str, count: int, at: str
) -> None:
    replicas = tuple(
        Replica(f"spark-{n}", at, 8000 + n, 9000 + n, dns=":" not in at) for n in range(count)
    )
    proxies = proxies_of(folder, replicas)
    proxies = replace(proxies, proxies=(replace(proxies.proxies[0], bind=bind),))
    proxy = RunningProxy(proxies)
    proxy.write()
    Path(proxies.states).write_text("1\n")
    assert HAPROXY
    done = subprocess.run(
        [HAPROXY, "-c", "-f", proxies.config], capture_output=True, text=True, check=False
    )
    proxy.stop()
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr or replicas[0].dns
    assert render_proxies(proxies).config == Path(proxies.config).read_text()
