"""The first request for a sleeping service: it waits, and gets the service's own answer; and an
attacker on the LAN or on the host who tries to make services start, stop and start again.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import IncompleteRead

import pytest

from sparkwright.config.settings import ActivationSettings
from sparkwright.host.exclusive import on_request
from sparkwright.host.lib import exclusive, files
from tests.host.exclusive.waking import CHAT, Waking, waking
from tests.host.proxy.haproxy import ENGINE, HAPROXY, KEY, until, whole
from tests.host.security.conftest import connecting
from tests.host.security.hostile import ROOT, memory


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waking]:
    """``llm`` sleeps behind its proxy, and ``coder`` runs."""
    if HAPROXY is None:
        pytest.skip("no haproxy on this machine (apt-get install haproxy)")
    with waking(monkeypatch) as result:
        yield result


def test_a_request_starts_the_service_waits_and_gets_its_answer(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT, {"hold": True})
    until(lambda: night.begun == ["llm"], "the switch")
    assert not asked.done()
    assert night.backend.seen == []
    night.go.set()
    until(lambda: night.backend.seen, "the request")
    night.backend.go.release()
    answer = asked.result(60)
    assert (answer.status, answer.data) == (200, {"replica": "llm"})
    (seen,) = night.backend.seen
    assert (seen.method, seen.path, json.loads(seen.body)) == ("POST", CHAT, {"hold": True})
    assert seen.headers["authorization"] == f"Bearer {ENGINE.value}"
    assert "x-sparkwright-service" not in seen.headers
    # From now on requests go to the running service, without a switch.
    assert night.proxy.post(CHAT).status == 200
    assert night.begun == ["llm"]


def test_a_streaming_client_gets_comments_and_then_tokens(
    night: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_request, "_COMMENT", 0.1)
    body = {"stream": True}
    answer = night.proxy.send("POST", CHAT, body)  # headers precede the start
    assert answer.status == 200
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert answer.readline() == b": llm is being started\n"
    night.go.set()
    night.backend.go.release()  # {"stream": true} is one chunk
    text = whole(answer).body
    assert b"data: 0 of llm\n\n" in text


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_the_engine_cuts_off_stays_incomplete(
    night: Waking, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(on_request, "_COMMENT", 0.1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(night.proxy.send, "POST", CHAT, {"stream": stream, "cut": True})
        until(lambda: night.begun, "the switch")
        night.go.set()
        with pytest.raises(IncompleteRead):
            answer.result(60).read()


def test_a_failed_start_is_reported(night: Waking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_request, "_COMMENT", 0.1)
    night.well = False
    stream = night.proxy.send("POST", CHAT, {"stream": True})
    asked = night.proxy.send_later(CHAT)
    time.sleep(0.3)
    night.go.set()
    answer = asked.result(60)
    assert (answer.status, answer.headers["retry-after"]) == (503, "300")
    assert answer.data["error"]["running"] == "coder"
    text = whole(stream).body.decode()
    assert '"code": 503' in text
    assert text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_a_request_waits_at_most_its_time_limit(night: Waking, seconds: float) -> None:
    wait = ActivationSettings.model_validate({"wait_seconds": seconds}).wait_seconds
    night.say(wait_seconds=wait)
    answer = night.proxy.post(CHAT, {"stream": wait == 0})
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "still being started" in answer.data["error"]["message"]
    assert night.begun == ["llm"]


def test_a_get_request_does_not_wake_a_service(night: Waking) -> None:
    """Clients list models all day."""
    assert night.proxy.get("/v1/models").status == 503
    assert night.begun == []


def test_a_client_that_disconnects_stops_waiting(night: Waking) -> None:
    connection = night.proxy.connect()
    connection.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {KEY}"})
    until(lambda: night.begun, "the switch")
    connection.close()
    time.sleep(1)  # HAProxy closes its connection, too
    night.go.set()
    until(lambda: night.proxy.post(CHAT).status == 200, "it serves")
    assert len(night.backend.seen) == 1  # no service generates for the client that left


def test_a_request_during_a_deploy_gets_503_and_a_later_request_succeeds(night: Waking) -> None:
    night.well, night.refusal = False, "its host is busy"
    night.go.set()
    answer = night.proxy.post(CHAT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "its host is busy" in answer.data["error"]["message"]
    night.well, night.refusal = True, ""
    assert night.proxy.post(CHAT).status == 200


def test_a_service_without_room_in_memory_stays_asleep_and_its_clients_get_the_reason(
    night: Waking,
) -> None:
    night.well, night.refusal = False, "llm needs 50.0 GiB of memory"
    night.go.set()
    answer = night.proxy.post(CHAT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert answer.data["error"]["message"] == "llm sleeps: llm needs 50.0 GiB of memory."
    assert night.backend.seen == []


def test_a_client_without_a_key_wakes_no_service(night: Waking) -> None:
    for key in (None, "sk-wrong-0123456789abcdef", ""):
        answer = night.proxy.post(CHAT, key=key, headers={"X-Sparkwright-Service": "llm"})
        assert answer.status == 401
    assert night.proxy.raw(b"POST /wake HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
                           leave=True).startswith(b"HTTP/1.1 404")  # fmt: skip
    assert night.begun == []


def test_a_clients_header_selects_no_other_service(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT)
    until(lambda: night.begun, "the switch")
    for name in ("writer", "coder", "../../etc"):
        night.proxy.send("POST", CHAT, {"stream": True}, headers={"X-Sparkwright-Service": name})
    night.go.set()
    assert asked.result(60).status == 200
    assert set(night.begun) == {"llm"}


def test_two_clients_do_not_displace_each_others_service(night: Waking) -> None:
    """Frequent changes are limited, since each start takes minutes without an answered request."""
    night.go.set()
    assert night.proxy.post(CHAT).status == 200
    night.say(stay_seconds=600)
    # The recorded time of a change is rounded to seconds, and may be the next second.
    path = night.place / "state/active.json"
    files.write(path, path.read_text().replace(str(_at(night)), str(int(time.time()) + 1)), 0o600)
    for _ in range(20):
        text = night.direct("writer")
        assert text.startswith(b"HTTP/1.1 503")
        assert b"llm was started just now" in text
        seconds = int(text.partition(b"Retry-After: ")[2].split()[0])
        assert 500 < seconds <= 601
    assert night.begun == ["llm"]


def _at(night: Waking) -> int:
    return int(exclusive.active(night.place / "state")["evening"].at)


def test_a_failing_service_is_not_started_repeatedly(night: Waking) -> None:
    """A reverted change counts as a change, too."""
    night.say(stay_seconds=600)
    exclusive.activate(night.place / "state", {"evening": "writer"}, "ann", "")
    night.go.set()
    assert night.proxy.post(CHAT).status == 503
    assert night.begun == []


def test_only_one_service_of_a_group_starts_at_a_time(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT)
    until(lambda: night.begun, "the switch")
    text = night.direct("writer")
    assert b"503" in text.split(b"\r\n")[0]
    assert b"llm is being started" in text
    night.go.set()
    assert asked.result(60).status == 200


def test_only_on_request_services_are_woken(night: Waking) -> None:
    night.say(on_request=())
    for name in ("llm", "writer", "coder", "qwen36", "", "../llm", "a" * 9000):
        assert b"HTTP/1.1 503" in night.direct(name)
    assert night.begun == []


def test_waiting_requests_are_limited_in_number(night: Waking) -> None:
    asked = [night.proxy.send_later(CHAT) for _ in range(on_request._WAITING + 6)]
    until(lambda: sum(item.done() for item in asked) == 6, "the others are turned away")
    assert {item.result().status for item in asked if item.done()} == {503}
    night.go.set()
    assert sum(item.result(60).status == 200 for item in asked) == on_request._WAITING
    assert night.begun == ["llm"]


def test_waiting_requests_are_limited_in_total_size(night: Waking) -> None:
    asked = [night.proxy.send_later(CHAT, {"pad": "x" * (15 << 20)}) for _ in range(6)]
    until(lambda: sum(item.done() for item in asked) == 2, "the others are turned away")
    refused = [item.result() for item in asked if item.done()]
    assert [(answer.status, answer.headers["retry-after"]) for answer in refused] == [
        (503, "30")
    ] * 2
    night.go.set()
    assert sum(item.result(60).status == 200 for item in asked) == 4


def _answered(night: Waking, length: str) -> bytes:
    """Answer to a request header without a body."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(night.place / "wake.sock"))
        head = f"POST {CHAT} HTTP/1.1\r\nX-Sparkwright-Service: llm\r\nContent-Length: {length}\r\n"
        connection.sendall(head.encode() + b"\r\n")
        return connection.recv(65536)


@pytest.mark.parametrize("length", ["99999999999", "-1", "1e3", "²", "9" * 400])
def test_no_request_takes_more_memory_than_its_limit(night: Waking, length: str) -> None:
    assert b"HTTP/1.1 503" in _answered(night, length)
    assert night.begun == []


def test_a_missing_body_blocks_no_other_request(
    night: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_request.Handler, "timeout", 0.3)
    began = time.monotonic()
    assert _answered(night, "5") == b""
    assert time.monotonic() - began < 10
    assert night.begun == []


def test_a_user_of_the_host_does_not_reach_the_waking_program(night: Waking) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user, too")
    assert "PermissionError" in connecting(night.place / "wake.sock")
    text = (ROOT / "templates/exclusive/wake.socket.j2").read_text()
    assert "SocketMode=0660\n" in text
    assert "SocketGroup=haproxy\n" in text


_PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
from sparkwright.host.exclusive import on_request, unattended
unattended.run = lambda *_: time.sleep(600)
on_request.main(sys.argv[2])
"""


def test_slow_requests_hold_no_more_memory_than_the_unit_has(night: Waking) -> None:
    """The program runs in a separate process, as in its unit: 64 clients with a key send 16 MiB
    each.
    """
    path = night.place / "slow.sock"
    with ExitStack() as stack:
        made = stack.enter_context(socket.socket(socket.AF_UNIX))
        made.bind(str(path))
        made.listen(128)
        process = stack.enter_context(subprocess.Popen(
            ["/bin/sh", "-c", 'exec 3<&0; exec "$@" </dev/null', "-", sys.executable, "-BSc",
             _PROGRAM, str(ROOT), str(night.place)], stdin=made.fileno(),
        ))  # fmt: skip
        stack.callback(process.kill)
        head = (
            f"POST {CHAT} HTTP/1.1\r\nX-Sparkwright-Service: llm\r\nContent-Length: {16 << 20}\r\n"
        )
        most = json.dumps({"x": [[]] * 5_500_000}, separators=(",", ":")).encode()
        clients = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(64)]

        def send(client: socket.socket) -> None:
            client.settimeout(60)
            client.connect(str(path))
            client.sendall(f"{head}\r\n".encode() + most.ljust(16 << 20)[:-1])

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(send, clients))
        assert memory(process.pid) < 200 << 20
        refused = []
        for client in clients:
            client.sendall(b" ")
            client.settimeout(0.5)
            with suppress(TimeoutError):
                refused.append(client.recv(65536))
        assert len(refused) == 60
        assert all(text.startswith(b"HTTP/1.1 503 ") for text in refused)
        assert all(b"\r\nRetry-After: 30\r\n" in text for text in refused)
        # Slow requests do not delay small requests, and whole requests are not split.
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.settimeout(20)
        client.connect(str(path))
        body = b'{"stream": true}'
        client.sendall(f"{head.replace(str(16 << 20), str(len(body)))}\r\n".encode() + body)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert memory(process.pid) < 200 << 20
