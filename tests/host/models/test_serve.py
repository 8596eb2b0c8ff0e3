"""The address behind a real HAProxy: destinations of requests, and their answers."""

import asyncio
import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import IncompleteRead
from pathlib import Path

import pytest

from sparkwright.host.lib.records import encode
from sparkwright.host.models import serve, wire
from sparkwright.host.models.document import Door, Key, Model
from sparkwright.host.models.usage import Ledger
from tests.host.models.address_process import (
    CHAT,
    OWN,
    TOKENS,
    USAGE,
    Address,
    Request,
    body,
    chunks,
    completion,
    running,
)
from tests.host.proxy.haproxy import HAPROXY, until, whole

_SMALL = {"model": "small"}
_STREAM = {"model": "small", "stream": True}
_DONE = b"data: [DONE]\n\n"


@pytest.fixture
def address() -> Iterator[Address]:
    if HAPROXY is None:
        pytest.skip("no haproxy on this machine (apt-get install haproxy)")
    with running() as result:
        yield result


def test_a_request_goes_to_the_engine_of_its_model(address: Address) -> None:
    address.large.script = lambda request: body({"choices": [], "usage": USAGE})
    assert address.post(_SMALL).data["usage"] == USAGE
    forged = {"X-Sparkwright-Key": "guest", "X-Sparkwright-Pool": "small", "x-sparkwright-a": "b"}
    path = f"{CHAT}?n=1"
    assert address.post({"model": "org/large"}, path, Accept="x", **forged).status == 200
    (request,) = address.large.requests
    assert request.head.startswith(f"POST {path} HTTP/1.1\r\n")
    assert request.body == b'{"model": "org/large"}'
    assert request.header("accept") == "x"
    assert request.header("authorization") == "Bearer laptop"
    assert request.header("x-sparkwright-key") == "laptop"
    assert request.header("x-sparkwright-pool") == "large"
    assert request.header("x-sparkwright-a") is None
    until(lambda: len(address.usage()) == 2, "the counts")
    assert [(row.key, row.model, row.tokens_in, row.tokens_out) for row in address.usage()] == [
        ("laptop", "org/large", 5, 2), ("laptop", "small", 5, 2),
    ]  # fmt: skip


def test_a_connection_serves_one_request_after_another(address: Address) -> None:
    connection, headers = address.connect(), {"Authorization": "Bearer laptop"}
    for request in [_SMALL, _STREAM, {"model": "org/large"}, _STREAM]:
        connection.request("POST", CHAT, json.dumps(request), headers)
        answer = connection.getresponse().read()
        assert answer == b"".join([*TOKENS, _DONE]) if request is _STREAM else json.loads(answer)


def test_a_request_goes_to_the_replica_that_read_its_prefix(address: Address) -> None:
    def near(text: str, **more: object) -> str | None:
        answer = address.post({**_SMALL, "messages": [{"role": "user", "content": text}], **more})
        assert answer.status == 200
        assert "x-sparkwright-server" not in answer.headers
        return address.small.requests[-1].header("x-sparkwright-near")

    first, longer = "a" * 600, "a" * 600 + "b" * 4000
    assert [near(first), near(longer), near(first, n=1)] == [None, "small", "small"]
    assert near("c" * 600) is None
    assert [near("short"), near("short")] == [None, None]  # too short for a gain from a cache
    address.small.script = lambda _: [b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n"]
    assert address.post({**_SMALL, "messages": "d" * 600}).status == 500
    address.small.script = completion
    assert near("e" * 600) is None


def test_a_model_that_a_key_may_not_use_does_not_exist(address: Address) -> None:
    for key, names in (("laptop", "org/large, small"), ("guest", "small")):
        answer = address.post({"model": "other"}, key=key)
        assert answer.status == 404
        assert answer.data["error"]["message"].endswith(f"The models are: {names}.")
    assert address.post({"model": "org/large"}, key="guest").status == 404
    assert address.post(b"{}").status == 400
    assert address.get("/v1/elsewhere").headers["access-control-allow-origin"] == "*"
    assert address.get("/v1/elsewhere").status == 404
    assert address.usage() == []


def test_models_are_listed_with_their_state(address: Address) -> None:
    data = address.get("/v1/models").data["data"]
    facts = [(model["id"], model["max_model_len"], model["state"]) for model in data]
    assert facts == [("small", 4096, "ready"), ("org/large", None, "ready")]
    assert [m["id"] for m in address.get("/v1/models", "guest").data["data"]] == ["small"]


@pytest.mark.parametrize("asks", [False, True])
def test_a_client_gets_its_requested_usage(address: Address, asks: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if asks else {}
    answer = address.post({**_STREAM, **options})
    assert answer.body == b"".join([*TOKENS, *[OWN] * asks, _DONE])
    assert address.small.requests[0].json["stream_options"] == {"include_usage": True}
    row = address.counted(1)
    assert (row.failed, row.tokens_in, row.tokens_out, row.cut) == (0, 5, 2, 0)


def test_an_event_is_forwarded_before_the_next_event_arrives(address: Address) -> None:
    go = threading.Event()

    def slowly(_: Request) -> Iterator[bytes]:
        yield from chunks(TOKENS[:1])
        go.wait(30)
        yield from list(chunks([TOKENS[1], _DONE]))[1:]
        yield b"0\r\n\r\n"

    address.small.script = slowly
    answer = address.ask("POST", CHAT, _STREAM)
    assert answer.readline() + answer.readline() == TOKENS[0]
    go.set()
    assert whole(answer).body == TOKENS[1] + _DONE


@pytest.mark.parametrize("kind", ["events", "body", "nothing"])
def test_a_cut_answer_stays_incomplete_and_is_not_repeated(address: Address, kind: str) -> None:
    def cut(_: Request) -> Iterator[bytes]:
        if kind == "events":
            yield from chunks([*TOKENS, b"data: {"])
        if kind == "body":
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345"

    address.small.script = cut
    if kind == "nothing":
        assert address.post(_STREAM).status == 502
    else:
        with pytest.raises(IncompleteRead) as cut_off:
            address.ask("POST", CHAT, _STREAM).read()
        error = (
            b'\n\ndata: {"error": {"message": "The replica broke off in the middle of its answer.'
        )
        assert (error in cut_off.value.partial) is (kind == "events")
        assert _DONE not in cut_off.value.partial
    row = address.counted(1)
    tokens = 2 if kind == "events" else 0
    assert (row.failed, row.tokens_out, row.cut) == (1, tokens, kind != "nothing")
    assert len(address.small.requests) == 1


@pytest.mark.parametrize(
    ("last", "failed"), [(TOKENS[1], 0), (b'data: {"error": {"code": 500}}\n\n', 1)]
)
def test_a_stream_without_usage_is_counted_by_its_events(
    address: Address, last: bytes, failed: int
) -> None:
    def script(_: Request) -> Iterator[bytes]:
        yield from chunks([TOKENS[0], last, _DONE])
        yield b"0\r\n\r\n"

    address.small.script = script
    assert address.post(_STREAM).body == TOKENS[0] + last + _DONE
    row = address.counted(1)
    assert (row.failed, row.tokens_out, row.cut) == (failed, 2 - failed, 0)


def test_a_client_that_disconnects_frees_the_engine(address: Address) -> None:
    def endless(_: Request) -> Iterator[bytes]:
        yield from chunks(TOKENS)
        while True:
            time.sleep(0.05)
            yield b"%x\r\n%b\r\n" % (len(TOKENS[0]), TOKENS[0])

    address.small.script = endless
    answer = address.ask("POST", CHAT, _STREAM)
    answer.read(len(b"".join(TOKENS)))
    answer.close()
    until(lambda: address.small.left == 1, "the engine notices")
    row = address.counted(1)
    assert (row.failed, row.cut) == (0, 1)
    assert row.tokens_out >= 2
    assert row.tokens_in == len(json.dumps(_STREAM)) // 4


def test_usage_is_exact_if_the_client_closes_after_the_last_event(address: Address) -> None:
    """OpenAI's client closes the connection after the last event, before the last chunk."""
    gone = threading.Event()

    def unended(_: Request) -> Iterator[bytes]:
        yield from chunks([*TOKENS, *TOKENS, OWN, _DONE])
        gone.wait(30)

    address.small.script = unended
    answer = address.ask("POST", CHAT, _STREAM)
    answer.read(len(b"".join([*TOKENS, *TOKENS, _DONE])))
    answer.close()
    row = address.counted(1)
    gone.set()
    assert (row.failed, row.tokens_in, row.tokens_out, row.cut) == (0, 5, 2, 0)


def test_large_bodies_are_forwarded_unchanged(address: Address) -> None:
    text = b'{"image": "%b", "model": "small", "stream": true} ' % (b"A" * (20 << 20))
    pieces = (text[at : at + 100_000] for at in range(0, len(text), 100_000))
    assert address.post(pieces, "/v1/responses").status == 200
    assert address.small.requests[0].body == text
    assert address.post(text, Expect="100-continue").status == 200
    assert address.small.requests[1].json["stream_options"] == {"include_usage": True}
    form = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n%b\r\n' % (b"A" * (2 << 20))
    form += b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nsmall\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert address.post(form, "/v1/audio/transcriptions", **headers).status == 200
    assert address.small.requests[2].body == form
    assert address.post(b" " * (65 << 20)).status == 413
    assert address.post(iter([b" " * (65 << 20)])).status == 413


def test_one_key_does_not_disturb_another_key(address: Address) -> None:
    """Slow bodies, and 16 bodies of 64 MB that cost a parser much time and memory."""
    slow = [socket.create_connection(("127.0.0.1", address.port)) for _ in range(64)]
    for connection in slow:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guest\r\n"
        connection.sendall(head.encode() + b"Content-Length: 1000\r\n\r\n{")
    hostile = b'{"model": "small", "list": [%b1]}' % (b"[]," * ((63 << 20) // 3))
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(address.post, hostile, key="guest") for _ in range(16)]
        times, most, until_ = [], 0, time.monotonic() + 15
        while time.monotonic() < until_:
            begun = time.monotonic()
            assert address.post(_SMALL).status == 200
            times.append(time.monotonic() - begun)
            status = (address.serving[0] / "status").read_text()
            most = max(most, int(status.partition("VmRSS:")[2].split()[0]) >> 10)
            if all(answer.done() for answer in answers):
                break
        statuses = {answer.result().status for answer in answers}
    assert statuses <= {400, 503}
    assert sorted(times)[len(times) // 2] < 0.5
    assert most < 150, "MB of memory"
    for connection in slow:
        connection.close()


def test_a_body_in_tiny_chunks_takes_no_more_memory_than_its_bytes(address: Address) -> None:
    status, pieces = address.serving[0] / "status", 150_000

    def memory() -> int:
        return int(status.read_text().partition("VmRSS:")[2].split()[0]) >> 10

    before = memory()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(address.folder / "door.sock"))
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nX-Sparkwright-Key: guest\r\n"
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        client.sendall(b"1\r\n \r\n" * pieces)
        time.sleep(1)
        assert memory() - before < 20, "MB of memory"


def test_a_request_over_a_limit_is_refused_with_a_retry_time(address: Address) -> None:
    answers = [address.post(_SMALL, key="metered") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 86400
    assert "2 requests a day" in answers[2].data["error"]["message"]
    assert address.counted(2).key == "metered"
    metrics = address.get("/metrics").body.decode()
    row = 'sparkwright_address_{}_total{{key="metered",model="small"}} {}\n'
    large = b'{"model": "small", "image": "%b"}' % (b"A" * (8 << 20))
    assert address.post(large, key="metered").status == 429
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer metered\r\n"
    with socket.create_connection(("127.0.0.1", address.port), timeout=5) as client:
        client.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b"{")  # an incomplete body
        assert client.recv(100).startswith(b"HTTP/1.1 429 ")
    assert row.format("requests", 2) in metrics
    assert row.format("tokens_out", 4) in metrics
    assert 'refused_total{status="429"} 1\n' in metrics
    assert 'servers{pool="small"} 1\n' in metrics


def test_a_kill_loses_at_most_two_seconds_of_usage(address: Address) -> None:
    for _ in range(5):
        assert address.post(_SMALL).status == 200
    time.sleep(2.5)
    assert address.post(_SMALL).status == 200
    os.kill(int(address.serving[0].name), signal.SIGKILL)
    assert address.programs[0].wait(30) == 1  # the exit code makes systemd restart the program
    assert 5 <= address.counted(address.usage()[0].requests).requests <= 6
    address.start()
    assert address.post(_SMALL).status == 200


def test_a_restart_finishes_answers_and_accepts_requests(address: Address) -> None:
    go = threading.Event()

    def slowly(_: Request) -> Iterator[bytes]:
        yield from chunks(TOKENS)
        go.wait(30)
        yield b"%x\r\n%b\r\n0\r\n\r\n" % (len(_DONE), _DONE)

    address.small.script = slowly
    answer = address.ask("POST", CHAT, _STREAM)
    address.programs[0].terminate()
    assert address.programs[0].wait(5) == -signal.SIGTERM
    address.start()
    assert address.post({"model": "org/large"}).status == 200
    go.set()
    assert whole(answer).body == b"".join([*TOKENS, _DONE])
    until(lambda: not address.serving[0].exists(), "the former program ends")
    assert (address.folder / "door.sock").exists()  # systemd owns the socket
    until(lambda: sum(row.requests for row in address.usage()) == 2, "the counts")


class _Listening(socket.socket):
    """A socket that records whether a connection was accepted."""

    accepted = False

    def accept(self) -> tuple[socket.socket, object]:
        connection = super().accept()
        self.accepted = True
        return connection


def test_a_connection_that_was_just_accepted_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program ends right after it has accepted the connection."""

    async def flush(_: Ledger) -> None:
        pass

    monkeypatch.setattr(serve, "_FLUSH", 0)
    monkeypatch.setattr(Ledger, "flush", flush)
    door = Door("home", {}, str(tmp_path / "usage.db"), str(tmp_path / "none.sock"))
    (tmp_path / "models.json").write_text(json.dumps(encode(door)))
    with _Listening(socket.AF_UNIX) as made, ThreadPoolExecutor(1) as pool:
        made.bind(str(tmp_path / "door.sock"))
        made.listen()
        monkeypatch.setattr(os, "getppid", lambda: int(not made.accepted))

        def ask() -> bytes:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5)
                client.connect(str(tmp_path / "door.sock"))
                client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                return client.recv(100)

        answer = pool.submit(ask)
        asyncio.run(serve._run(str(tmp_path / "models.json"), made, 1))
        assert answer.result(10).startswith(b"HTTP/1.1 503 ")


def test_a_serving_process_finishes_its_answers_at_sigterm(address: Address) -> None:
    def late(_: Request) -> Iterator[bytes]:
        time.sleep(4)
        yield from body({"usage": USAGE})

    address.small.script = late
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(address.post, _SMALL)
        until(lambda: address.small.requests, "the request")
        os.kill(int(address.serving[0].name), signal.SIGTERM)
        assert answer.result().status == 200
    assert address.programs[0].wait(10) == 0
    assert address.usage()[0].requests == 1


def test_a_body_that_does_not_fit_on_a_full_disk_is_refused(address: Address) -> None:
    serving = int(address.serving[0].name)
    text = b'{"model": "small", "text": "%b"}' % (b"A" * 200_000)
    former = resource.prlimit(serving, resource.RLIMIT_FSIZE, (len(text) - 100, -1))
    answer = address.post(text)
    assert (answer.status, answer.headers["retry-after"]) == (507, "10")
    assert "can't take this request: File too large" in answer.data["error"]["message"]
    assert address.post(_SMALL).status == 200
    resource.prlimit(serving, resource.RLIMIT_FSIZE, former)
    assert address.post(text).status == 200
    assert "Traceback" not in (address.folder / "log").read_text()


def test_a_changed_document_is_read_again(
    address: Address, capsys: pytest.CaptureFixture[str]
) -> None:
    door = address.door
    address.door = replace(door, keys={"guest": Key(models=())})
    address.write()
    address.programs[0].send_signal(signal.SIGHUP)
    until(lambda: address.post(_SMALL, key="guest").status == 404, "the new rights")
    for change, message in (
        ({"models": {"a": Model("b", "taste")}}, "models.a.kind: 'taste'"),
        ({"models": {"a": Model("b\r\nX: y", "chat")}}, "models.a.pool"),
        ({"keys": {"guest": Key(models=("none",))}}, "keys.guest.models: there is no model 'none'"),
        ({"keys": {"guest": Key(tokens_day=0)}}, "keys.guest.tokens_day: 0"),
    ):
        address.door = replace(door, **change)
        address.write()
        assert serve.main(str(address.document), "--check") == 1
        assert f"{address.document}: {message}" in capsys.readouterr().err
    address.programs[0].send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert address.post(_SMALL).status == 200
    assert "models" in json.loads(address.document.read_text())


def test_an_address_without_pools_answers_503(address: Address) -> None:
    (address.folder / "pools.sock").rename(address.folder / "elsewhere")
    answer = address.post(_SMALL)
    assert (answer.status, answer.headers["retry-after"]) == (503, "10")
    until(lambda: address.get("/health").status == 503, "the state")
    assert address.counted(1).failed == 1


def test_the_address_program_ignores_forged_headers(address: Address) -> None:
    """The attack goes to the program's own socket, which only HAProxy uses."""
    key = b"X-Sparkwright-Key: guest\r\n"
    forged = key + b"X-Sparkwright-Pool: large\r\nX-Sparkwright-Near: large\r\n"
    forged += b"X-Sparkwright-Not: small\r\n"
    for headers, status in ((b"", 401), (key * 2, 401), (forged, 200)):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(address.folder / "door.sock"))
            head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n"
            client.sendall(head + headers + b'\r\n{"model": "small"}')
            assert client.recv(100).startswith(b"HTTP/1.1 %d " % status)
    (request,) = address.small.requests
    assert request.head.lower().count("x-sparkwright-") == 2


@pytest.mark.parametrize("trailers", [b"", b"X: y\r\n", b"X: y\r\nZ: y\r\n"])
def test_trailers_are_not_read_as_the_next_message(trailers: bytes) -> None:
    async def read() -> tuple[bytes, bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"2\r\nab\r\n1\r\nc\r\n0\r\n" + trailers + b"\r\nnext")
        reader.feed_eof()
        head = wire.Head(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked")
        pieces = [piece async for piece in wire.content(reader, head, until_closed=False)]
        return b"".join(pieces), await reader.read()

    assert asyncio.run(read()) == (b"abc", b"next")
