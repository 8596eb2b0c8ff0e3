"""Somebody on the LAN or on the host tries to have services started, stopped and started again."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sparkwright.host.exclusive import on_request
from sparkwright.host.lib import exclusive, files
from tests.host.exclusive.conftest import night
from tests.host.exclusive.waking import CHAT, Waking
from tests.host.proxy.haproxy import until
from tests.host.security.conftest import UID

__all__ = ["night"]
ROOT = Path(__file__).parents[3]


def test_who_has_no_key_wakes_nobody(night: Waking) -> None:
    for key in (None, "sk-wrong-0123456789abcdef", ""):
        answer = night.proxy.post(CHAT, key=key, headers={"X-Sparkwright-Service": "llm"})
        assert answer.status == 401
    assert night.proxy.raw(b"POST /wake HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
                           leave=True).startswith(b"HTTP/1.1 404")  # fmt: skip
    assert night.begun == []


def test_a_header_of_a_clients_names_no_other_service(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT)
    until(lambda: night.begun, "the switch")
    for name in ("writer", "coder", "../../etc"):
        night.proxy.send("POST", CHAT, {"stream": True}, headers={"X-Sparkwright-Service": name})
    night.go.set()
    assert asked.result(60).status == 200
    assert set(night.begun) == {"llm"}


def test_two_clients_do_not_drive_each_other_out(night: Waking) -> None:
    """Flapping: each start costs minutes, in which nobody is served."""
    night.go.set()
    assert night.proxy.post(CHAT).status == 200
    night.say(stay_seconds=600)
    # The time of the change is kept in whole seconds, and may be the next one.
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


def test_one_that_fails_is_not_started_again_and_again(night: Waking) -> None:
    """A reverted change counts as a change, too."""
    night.say(stay_seconds=600)
    exclusive.activate(night.place / "state", {"evening": "writer"}, "ann", "")
    night.go.set()
    assert night.proxy.post(CHAT).status == 503
    assert night.begun == []


def test_while_one_is_started_no_other_one_of_its_group_is(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT)
    until(lambda: night.begun, "the switch")
    text = night.direct("writer")
    assert b"503" in text.split(b"\r\n")[0]
    assert b"llm is being started" in text
    night.go.set()
    assert asked.result(60).status == 200


def test_only_what_the_owner_has_named_is_woken(night: Waking) -> None:
    night.say(on_request=())
    for name in ("llm", "writer", "coder", "qwen36", "", "../llm", "a" * 9000):
        assert b"HTTP/1.1 503" in night.direct(name)
    assert night.begun == []


def test_those_who_wait_are_few_and_small(night: Waking) -> None:
    asked = [night.proxy.send_later(CHAT) for _ in range(on_request._WAITING + 6)]
    until(lambda: sum(item.done() for item in asked) == 6, "the others are turned away")
    assert {item.result().status for item in asked if item.done()} == {503}
    night.go.set()
    assert sum(item.result(60).status == 200 for item in asked) == on_request._WAITING


def test_those_who_wait_are_not_all_large(night: Waking) -> None:
    asked = [night.proxy.send_later(CHAT, {"pad": "x" * (15 << 20)}) for _ in range(6)]
    until(lambda: sum(item.done() for item in asked) == 2, "the others are turned away")
    refused = [item.result() for item in asked if item.done()]
    assert [(answer.status, answer.headers["retry-after"]) for answer in refused] == [
        (503, "30")
    ] * 2
    night.go.set()
    assert sum(item.result(60).status == 200 for item in asked) == 4


def _answered(night: Waking, length: str) -> bytes:
    """Answer to a head whose body never comes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(night.place / "wake.sock"))
        head = f"POST {CHAT} HTTP/1.1\r\nX-Sparkwright-Service: llm\r\nContent-Length: {length}\r\n"
        connection.sendall(head.encode() + b"\r\n")
        return connection.recv(65536)


@pytest.mark.parametrize("length", ["99999999999", "-1", "1e3", "²", "9" * 400])
def test_no_request_takes_more_memory_than_it_may(night: Waking, length: str) -> None:
    assert b"HTTP/1.1 503" in _answered(night, length)
    assert night.begun == []


def test_a_body_that_never_comes_holds_nobody_up(
    night: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_request.Handler, "timeout", 0.3)
    began = time.monotonic()
    assert _answered(night, "5") == b""
    assert time.monotonic() - began < 10
    assert night.begun == []


def test_a_user_of_the_host_does_not_reach_it(night: Waking) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user, too")
    script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    path = Path(night.place, "wake.sock")
    done = subprocess.run(
        ["/usr/bin/python3", "-ISc", script, str(path)], user=UID, group=UID, extra_groups=[],
        cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "PermissionError" in done.stderr
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


def _most_memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def test_slow_requests_hold_no_more_memory_than_the_unit_has(night: Waking) -> None:
    """In a process of its own, as the unit runs it: 64 clients with a key, 16 MiB of each."""
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
        assert _most_memory(process.pid) < 200 << 20
        refused = []
        for client in clients:
            client.sendall(b" ")
            client.settimeout(0.5)
            with suppress(TimeoutError):
                refused.append(client.recv(65536))
        assert len(refused) == 60
        assert all(text.startswith(b"HTTP/1.1 503 ") for text in refused)
        assert all(b"\r\nRetry-After: 30\r\n" in text for text in refused)
        # Small ones are not held up by them, and the whole ones are not taken apart.
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.settimeout(20)
        client.connect(str(path))
        body = b'{"stream": true}'
        client.sendall(f"{head.replace(str(16 << 20), str(len(body)))}\r\n".encode() + body)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert _most_memory(process.pid) < 200 << 20
