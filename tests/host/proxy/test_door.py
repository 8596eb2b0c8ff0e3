"""The door, with a real HAProxy: who gets in, what gets through, and what is never lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright.proxy.haproxy import (
    ROUTES,
    Replica,
    drain,
    leaving,
    ready,
    render_proxies,
    staying,
)
from tests.host.proxy.backend import PATIENCE, Backend
from tests.host.proxy.conftest import Opener
from tests.host.proxy.door import HAPROXY, KEY, OpenDoor, opened, proxies_of, replica, until, whole

FIXTURES = Path(__file__).parents[2] / "fixtures/vllm/0.24.0"
VLLM_ROUTES = [
    (method, path.replace("{id}", "resp_0a1b2c"))
    for method, path in (
        line.split()
        for line in (FIXTURES / "routes.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]
OPEN = {(method, path.replace("{id}", "resp_0a1b2c")) for method, path in ROUTES}
CHAT = "/v1/chat/completions"
WEBSOCKET_KEY = "dGhlIHNhbXBsZSBub25jZQ=="


# --- The key -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY.upper()}",
        f"Bearer {KEY} {KEY}",
        f"Bearer wrong, Bearer {KEY}",
        f"Basic {KEY}",
        f"Token {KEY}",
        KEY,
    ],
)
def test_nobody_gets_in_without_the_key(
    open_door: Opener, one: Backend, authorization: str | None
) -> None:
    door = open_door(one)
    headers = {} if authorization is None else {"Authorization": authorization}
    for answer in (
        door.post(CHAT, key=None, headers=headers),
        door.get("/v1/models", key=None, headers=headers),
        door.get(f"/v1/models?api_key={KEY}", key=None, headers={"x-api-key": KEY, **headers}),
    ):
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.data["error"]["message"] == "The API key is missing or wrong."
    assert one.seen == []


def test_the_key_opens_and_goes_on_to_vllm(open_door: Opener, one: Backend) -> None:
    assert open_door(one).post(CHAT).data == {"replica": "one"}
    assert one.seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_key_stands_in_no_file_no_argument_and_no_log(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    assert door.post(CHAT).status == 200
    assert door.get("/v1/models?key=" + KEY).status == 200
    for file in (*Path(door.gateway.home).iterdir(), door.log):
        assert KEY not in file.read_text()
    assert Path(door.gateway.keys).stat().st_mode & 0o777 == 0o600
    for process in door.workers():
        for kind in ("cmdline", "environ"):
            assert KEY.encode() not in Path(f"/proc/{process}/{kind}").read_bytes()
    for command in ("show env", "show acl", "show acl #1", "dump sess", "show info"):
        assert KEY not in door.ask(command)


def test_the_sockets_are_their_owners_alone(open_door: Opener, one: Backend) -> None:
    gateway = open_door(one).gateway
    for place in (gateway.admin_socket, gateway.master_socket):
        assert Path(place).stat().st_mode & 0o777 == 0o600


def test_a_key_is_changed_while_a_stream_runs(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    stream = door.send("POST", CHAT, {"stream": 2})
    one.go.release()
    assert stream.readline() == b"data: 0 of one\n"

    new = "sk-the-next-key-of-this-test-0123"
    door.write(keys=(KEY, new))
    door.reload()
    assert [door.post(CHAT, key=key).status for key in (KEY, new)] == [200, 200]

    door.write(keys=(new,))
    door.reload()
    assert [door.post(CHAT, key=key).status for key in (KEY, new)] == [401, 200]

    one.go.release()
    assert stream.read().endswith(b"data: 1 of one\n\n")


def test_no_key_is_no_way_in(place: Path, one: Backend) -> None:
    with opened(proxies_of(place, (replica(one),)), keys=()) as door:
        assert door.post(CHAT).status == 401
        assert door.post(CHAT, key=None, headers={"Authorization": "Bearer "}).status == 401
    assert one.seen == []


def test_it_does_not_start_without_the_file_of_keys(place: Path, one: Backend) -> None:
    door = OpenDoor(proxies_of(place, (replica(one),)))
    door.write()
    Path(door.gateway.keys).unlink()
    done = subprocess.run(door.command(), capture_output=True, text=True, timeout=60, check=False)
    door.stop()
    assert done.returncode != 0
    assert "keys" in done.stderr


# --- The routes --------------------------------------------------------------------------------


def test_every_route_of_vllm(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    assert set(VLLM_ROUTES) >= OPEN
    for method, path in VLLM_ROUTES:
        one.seen.clear()
        answer = whole(door.send(method, path, b"" if method == "POST" else None))
        if (method, path) in OPEN:
            assert answer.status == 200, path
            assert [(seen.method, seen.path) for seen in one.seen] == [(method, path)]
        elif path == "/health":
            assert answer.status == 200
            assert one.seen == []
        else:
            assert answer.status == 404, path
            assert answer.data["error"]["message"] == "There is no such route."
            assert one.seen == []


def test_a_route_has_one_method(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    for right, path in [*OPEN, ("GET", "/health")]:
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "get", "FOO"):
            if method != right:
                assert whole(door.send(method, path)).status in (404, 405), (method, path)
    assert one.seen == []


def test_a_query_goes_along(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    assert door.get("/v1/responses/resp_1-A?stream=true&starting_after=3").status == 200
    assert one.seen[0].path == "/v1/responses/resp_1-A?stream=true&starting_after=3"


TRICKS = [
    "//v1/models",
    "/v1//models",
    "/v1/models/",
    "/v1/models//",
    "/./v1/models",
    "/v1/./models",
    "/v1/../metrics",
    "/v1/models/..",
    "/v1/models/../../metrics",
    "/v1/models/%2e%2e/%2e%2e/metrics",
    "/v1/%2e%2e/metrics",
    "/v1/..%2fmetrics",
    "/v1/..%2Fmetrics",
    "/v1/..%252fmetrics",
    "/v1/..\\metrics",
    "/v1%2fmodels",
    "/%76%31/models",
    "/v1/model%73",
    "/V1/models",
    "/v1/Models",
    "/v1/models;x=y",
    "/v1/models;/../../metrics",
    "/v1/models%00",
    "/v1/models%20",
    "/v1/models%0a",
    "/v1/models#",
    "/v1/models#/../../metrics",
    "/metrics#/v1/models",
    "/metrics?/v1/models",
    "/metrics?x=/v1/models",
    "/metrics/v1/models",
    "/metrics;/v1/models",
    "/v1/responses/",
    "/v1/responses/..",
    "/v1/responses/../../metrics",
    "/v1/responses/a/b",
    "/v1/responses/a%2fb",
    "/v1/responses/a/cancel",
    "/v1/responses/a%0a",
    "/v1/load_lora_adapter",
    "/v1",
    "/v1/",
    "/v1/nosuch",
    "/",
    "",
    "*",
    "v1/models",
    "?/v1/models",
    "http://x/metrics",
    "http://x/v1/models",
    "http://x/v1/../metrics",
    "http://x?/v1/models",
    "http://x#/v1/models",
    "http:/v1/models",
    "http:///v1/models",
    "file:///v1/models",
    "/health/",
    "//health",
    "/Health",
    "/health/../metrics",
    "/healthz",
]


def test_tricks_with_the_path_do_not_get_through(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    for target in TRICKS:
        for head in (
            f"GET {target} HTTP/1.1\r\nHost: x\r\n",
            f"GET {target} HTTP/1.0\r\n",
            f"GET {target} HTTP/1.1\r\nHost: x\r\nX-Original-URL: /v1/models\r\n",
        ):
            request = f"{head}Authorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
            status = door.raw(request.encode()).split()[1:2]
            assert status in ([b"400"], [b"404"], [b"405"]), (target, status)
            assert one.seen == [], target


@pytest.mark.parametrize(
    "request_bytes",
    [
        # Another request hidden in a body, by the known ways to have two lengths.
        "POST {chat} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: 6\r\nContent-Length: 5\r\n\r\n",
        "POST {chat} HTTP/1.1\r\nHost: x\r\n{key}Transfer-Encoding: xchunked\r\n\r\n{inner}",
        "POST {chat} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: +1\r\n\r\n{inner}",
        "POST {chat} HTTP/1.1\r\nHost : x\r\n{key}\r\n{inner}",
        "GET /v1/models HTTP/1.1\r\nHost: x\r\n{key}X: y\r\n Z\r\n\r\n{inner}",
        "CONNECT /v1/models HTTP/1.1\r\nHost: x\r\n{key}\r\n{inner}",
        "GET /v1/models\r\n",
        "GET\t/v1/models HTTP/1.1\r\nHost: x\r\n{key}\r\n",
    ],
)
def test_a_hidden_request_does_not_get_through(
    open_door: Opener, one: Backend, request_bytes: str
) -> None:
    door = open_door(one)
    key = f"Authorization: Bearer {KEY}\r\n"
    inner = f"GET /metrics HTTP/1.1\r\nHost: x\r\n{key}Connection: close\r\n\r\n"
    door.raw(request_bytes.format(chat=CHAT, key=key, inner=inner).encode(), leave=True)
    assert door.get("/v1/models").status == 200
    assert all((seen.method, seen.path) in OPEN for seen in one.seen), one.seen


def test_there_is_no_http_2(open_door: Opener, one: Backend) -> None:
    settings_frame = b"\0\0\0\4\0\0\0\0\0"
    received = open_door(one).raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings_frame)
    assert received.startswith(b"HTTP/1.1 400")


_PIECES = st.sampled_from([
    "/", "//", "v1", "V1", "models", "metrics", "chat", "completions", "responses", "cancel", "x",
    ".", "..", "%2e", "%2f", "%2F", "%00", "%25", "\\", ";", "?", "#", "&", "=", "@", ":", "\x7f",
    "http://x", "/v1/models", "/v1/chat/completions", "/health", "invocations", "ä",
])  # fmt: skip


def test_no_path_whatever_gets_through_that_is_not_a_route(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
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
        one.seen.clear()
        request = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        door.raw(f"{request}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
        for seen in one.seen:
            path = seen.path.partition("?")[0]
            assert target.startswith(path)
            last = path.removeprefix(response).removesuffix("/cancel")
            assert (seen.method, path) in OPEN or (path.startswith(response) and last.isalnum())

    tried()


def test_an_upgrade_is_for_the_one_route_that_has_one(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABk"}
    for protocol in ("h2c", "h2c, websocket", "websocket"):
        headers = {"Upgrade": protocol, "Sec-WebSocket-Key": WEBSOCKET_KEY, **upgrade}
        assert door.get("/v1/models", headers=headers).status == 200
    assert all("upgrade" not in seen.headers for seen in one.seen)

    with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE) as connection:
        connection.sendall(
            f"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Key: {WEBSOCKET_KEY}\r\n\r\n".encode()
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 101")
        connection.sendall(b"to and fro")
        assert connection.recv(4096) == b"to and fro"


def test_a_browser_may_ask_before_it_asks(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    asked = {
        "Origin": "http://chat.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-stainless-lang",
    }
    answer = whole(door.send("OPTIONS", CHAT, key=None, headers=asked))
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "authorization,x-stainless-lang"
    assert whole(door.send("OPTIONS", "/metrics", key=None, headers=asked)).status == 404
    assert one.seen == []


# --- Streams -----------------------------------------------------------------------------------


def test_a_stream_comes_chunk_by_chunk(open_door: Opener, one: Backend) -> None:
    stream = open_door(one).send("POST", CHAT, {"stream": 50}, headers={"Accept-Encoding": "gzip"})
    assert stream.status == 200
    assert stream.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert stream.headers["Content-Encoding"] is None
    for number in range(50):
        # The replica sends the next chunk only when this one is here: nothing may be kept back.
        one.go.release()
        assert stream.readline() == f"data: {number} of one\n".encode()
        assert stream.readline() == b"\n"
    assert stream.read() == b""


def test_a_long_prompt_arrives_whole(open_door: Opener, one: Backend) -> None:
    prompt = os.urandom(1 << 20)
    assert open_door(one).post(CHAT, prompt).status == 200
    assert one.seen[0].body == prompt


def test_a_client_that_leaves_is_not_answered(open_door: Opener, one: Backend) -> None:
    door = open_door(one)
    connection = door.connect()
    connection.request("POST", CHAT, b'{"hold": true}', {"Authorization": f"Bearer {KEY}"})
    assert one.begun.acquire(timeout=PATIENCE)
    connection.close()
    assert one.left.wait(PATIENCE)


# --- Replicas ----------------------------------------------------------------------------------


def test_requests_go_where_the_fewest_are(open_door: Opener, one: Backend, two: Backend) -> None:
    door = open_door(one, two)
    held = [door.send_later(CHAT, {"hold": True}) for _ in range(4)]
    until(lambda: len(one.seen) + len(two.seen) == 4, "four requests")
    assert len(one.seen) == len(two.seen) == 2
    assert door.running("one") == door.running("two") == 2

    two.go.release()
    two.go.release()
    until(lambda: door.running("two") == 0, "two of them answered")
    assert {door.post(CHAT).data["replica"] for _ in range(6)} == {"two"}

    one.go.release()
    one.go.release()
    names = [request.result(PATIENCE).data["replica"] for request in held]
    assert sorted(names) == ["one", "one", "two", "two"]


def test_every_request_has_a_connection_of_its_own(open_door: Opener, one: Backend) -> None:
    """vLLM closes connections that idle for five seconds, a request under way or not."""
    client = open_door(one).connect()
    for _ in range(3):
        client.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {KEY}"})
        answer = whole(client.getresponse())
        assert answer.status == 200
        assert "connection" not in answer.headers
    assert [seen.headers["connection"] for seen in one.seen] == ["close"] * 3


def test_health_is_what_the_replicas_can_do(open_door: Opener, one: Backend, two: Backend) -> None:
    door = open_door(one, two)
    for name in ("one", "two"):
        door.until_status(name, "UP")
    assert door.get("/health", key=None).status == 200

    one.healthy = False
    door.until_status("one", "DOWN")
    assert door.get("/health", key=None).status == 200
    assert {door.post(CHAT).data["replica"] for _ in range(6)} == {"two"}

    two.healthy = False
    door.until_status("two", "DOWN")
    assert door.get("/health", key=None).status == 503

    one.healthy = True
    door.until_status("one", "UP")
    assert door.get("/health", key=None).status == 200
    assert {door.post(CHAT).data["replica"] for _ in range(6)} == {"one"}
    assert "/health" not in door.log.read_text()


def test_a_drained_replica_ends_what_it_has_and_gets_nothing_new(
    open_door: Opener, one: Backend, two: Backend
) -> None:
    door = open_door(one, two)
    stream = door.send_later(CHAT, {"stream": 3})
    until(lambda: one.seen or two.seen, "the stream")
    busy, other = (one, two) if one.seen else (two, one)
    assert door.ask(drain("llm", busy.name)).strip() == ""
    assert door.state(busy.name).status == "DRAIN"

    assert {door.post(CHAT).data["replica"] for _ in range(10)} == {other.name}
    assert door.running(busy.name) == 1
    for _ in range(3):
        busy.go.release()
    assert stream.result(PATIENCE).body.endswith(f"data: 2 of {busy.name}\n\n".encode())
    until(lambda: door.running(busy.name) == 0, "the end of the stream")
    assert len(busy.seen) == 1

    assert door.ask(ready("llm", busy.name)).strip() == ""
    door.until_status(busy.name, "UP")
    assert {door.post(CHAT).data["replica"] for _ in range(10)} == {"one", "two"}


def test_a_door_that_is_leaving_says_so_and_still_takes_what_comes(
    open_door: Opener, one: Backend
) -> None:
    door = open_door(one)
    assert door.get("/health").status == 200
    for line in leaving("llm"):
        assert door.ask(line).strip() == ""
    assert door.get("/health").status == 503
    assert door.post(CHAT).status == 200
    door.reload()
    assert door.get("/health").status == 503
    for line in staying("llm"):
        door.ask(line)
    assert door.get("/health").status == 200


def test_a_mistaken_name_is_answered(open_door: Opener, one: Backend) -> None:
    assert open_door(one).ask(drain("llm", "nosuch")).strip() == "No such server."


def test_a_request_waits_while_the_only_replica_is_drained(open_door: Opener, one: Backend) -> None:
    door = open_door(one, wait_seconds=int(PATIENCE))
    door.ask(drain("llm", "one"))
    waiting = [door.send_later(CHAT) for _ in range(3)]
    until(lambda: door.sessions() == 3, "three that wait")
    assert one.seen == []
    door.ask(ready("llm", "one"))
    assert [request.result(PATIENCE).status for request in waiting] == [200, 200, 200]


def test_waiting_ends(open_door: Opener, one: Backend) -> None:
    door = open_door(one, wait_seconds=1)
    door.ask(drain("llm", "one"))
    answer = door.post(CHAT)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "10"
    assert answer.data["error"]["message"] == "No replica is ready."


@contextlib.contextmanager
def program(name: str) -> Iterator[tuple[subprocess.Popen[str], Replica]]:
    """A replica of its own process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.host.proxy.backend", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    port, health_port = map(int, process.stdout.readline().split())
    try:
        yield process, Replica(name, "127.0.0.1", port, health_port)
    finally:
        process.kill()
        process.communicate()


def test_a_killed_replica_loses_no_new_request(place: Path, one: Backend) -> None:
    with program("mortal") as (mortal, first), program("also") as (also, second):
        gateway = proxies_of(place, (first, second, replica(one)))
        # No health check comes in time: the requests themselves find out.
        with opened(replace(gateway, check_milliseconds=3_600_000)) as door:
            names = {door.post(CHAT).data["replica"] for _ in range(12)}
            assert names == {"mortal", "also", "one"}
            for process in (mortal, also):
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: door.post(CHAT), range(40)))
            assert [answer.status for answer in answers] == [200] * 40
            assert {answer.data["replica"] for answer in answers} == {"one"}
            assert door.state("mortal").status == door.state("also").status == "DOWN"


def test_what_a_replica_has_is_not_given_to_another(
    open_door: Opener, one: Backend, two: Backend
) -> None:
    door = open_door(one, two)
    answer = door.post(CHAT, {"die": True})
    assert answer.status == 502
    assert answer.data["error"]["message"] == "The replica broke off before it answered."
    assert len(one.seen) + len(two.seen) == 1


def test_a_question_without_effect_is_asked_again(
    open_door: Opener, one: Backend, two: Backend
) -> None:
    door = open_door(one, two)
    assert door.get("/v1/models?die").status == 502
    assert {seen.path for seen in (*one.seen, *two.seen)} == {"/v1/models?die"}
    assert one.seen
    assert two.seen


# --- Reloads -----------------------------------------------------------------------------------


def test_a_reload_cuts_nobody_off_and_forgets_no_request(
    open_door: Opener, one: Backend, two: Backend
) -> None:
    door = open_door(one)
    stream = door.send("POST", CHAT, {"stream": 2})
    one.go.release()
    assert stream.readline() == b"data: 0 of one\n"
    assert door.running("one") == 1

    llm = door.gateway.proxies[0]
    both = (replica(one), replica(two))
    door.gateway = replace(door.gateway, proxies=(replace(llm, replicas=both),))
    door.write()
    door.reload()
    assert {door.post(CHAT).data["replica"] for _ in range(8)} == {"one", "two"}
    assert len(door.workers()) == 2
    assert door.state("one").running == 0
    # The former worker still has it.
    assert door.running("one") == 1

    one.go.release()
    assert stream.read().endswith(b"data: 1 of one\n\n")
    until(lambda: len(door.workers()) == 1, "the end of the former worker")
    assert door.running("one") == 0


def test_a_reload_keeps_who_is_drained(open_door: Opener, one: Backend, two: Backend) -> None:
    door = open_door(one, two)
    door.ask(drain("llm", "one"))
    door.reload()
    assert door.state("one").status == "DRAIN"
    assert {door.post(CHAT).data["replica"] for _ in range(6)} == {"two"}
    door.reload(keeping=False)
    door.until_status("one", "UP")


def test_a_reload_takes_a_replicas_new_port(open_door: Opener, one: Backend, two: Backend) -> None:
    door = open_door(one)
    llm = door.gateway.proxies[0]
    moved = replace(replica(two), name="one")
    door.gateway = replace(door.gateway, proxies=(replace(llm, replicas=(moved,)),))
    door.write()
    door.reload()
    assert door.post(CHAT).data == {"replica": "two"}


def test_a_request_that_was_half_there_at_a_reload_is_answered(
    open_door: Opener, one: Backend
) -> None:
    door = open_door(one, wait_seconds=3600)
    with socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE) as client:
        client.sendall(f"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer {KEY}\r\n".encode())
        # Connections are taken in their order: the door has the first when it answers the second.
        assert door.get("/v1/models").status == 200
        door.reload()
        client.sendall(b"Host: x\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")


def test_who_waits_at_a_reload_may_come_again(open_door: Opener, one: Backend) -> None:
    """The former worker hears of no replica that is back."""
    door = open_door(one, wait_seconds=3600)
    door.ask(drain("llm", "one"))
    waiting = door.send_later(CHAT)
    until(lambda: door.sessions() == 1, "one that waits")
    door.reload()
    assert waiting.result(PATIENCE).status == 503
    assert one.seen == []


def test_new_requests_are_never_refused_by_a_reload(open_door: Opener, one: Backend) -> None:
    door = open_door(one, wait_seconds=3600)
    over = threading.Event()

    def asking() -> list[int]:
        statuses = []
        while not over.is_set():
            statuses.append(door.post(CHAT).status)
        return statuses

    with ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(asking) for _ in range(4)]
        for _ in range(5):
            door.reload()
        over.set()
        statuses = [status for asker in askers for status in asker.result(PATIENCE)]
    assert set(statuses) == {200}


# --- Shapes ------------------------------------------------------------------------------------


def test_a_door_behind_a_door(place: Path, open_door: Opener, one: Backend) -> None:
    """Each host guards its own vLLM; the fleet's door asks the hosts' doors for their health."""
    inner = open_door(one)
    (place / "outer").mkdir()
    gateway = proxies_of(
        place / "outer", (Replica("host", "127.0.0.1", inner.port, health_port=inner.port),)
    )
    llm = replace(gateway.proxies[0], health_path="/health")
    with opened(replace(gateway, proxies=(llm,))) as outer:
        inner.until_status("one", "UP")
        outer.until_status("host", "UP")
        stream = outer.send("POST", CHAT, {"stream": 2})
        for number in range(2):
            one.go.release()
            assert stream.readline() == f"data: {number} of one\n".encode()
            stream.readline()
        inner.ask(drain("llm", "one"))
        outer.until_status("host", "DOWN")
        assert outer.get("/health", key=None).status == 503


@pytest.mark.parametrize("bind", ["*", "127.0.0.1", "::", "::1"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_haproxy_has_nothing_to_say_against_it(place: Path, bind: str, count: int) -> None:
    replicas = tuple(Replica(f"spark-{n}", "fd00::1", 8000 + n, 9000 + n) for n in range(count))
    gateway = proxies_of(place, replicas)
    gateway = replace(gateway, proxies=(replace(gateway.proxies[0], bind=bind),))
    door = OpenDoor(gateway)
    door.write()
    Path(gateway.states).write_text("1\n")
    assert HAPROXY
    done = subprocess.run(
        [HAPROXY, "-c", "-f", gateway.config], capture_output=True, text=True, check=False
    )
    door.stop()
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert render_proxies(gateway).config == Path(gateway.config).read_text()
