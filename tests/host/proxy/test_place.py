"""A service's place behind its proxy: with a real HAProxy, and with its versions' sockets."""

import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host.proxy import place
from sparkwright.host.proxy.pool import Pool
from tests.host.proxy.backend import Backend
from tests.host.proxy.conftest import Opener
from tests.host.serving import accepting


def test_what_was_stopped_is_out_at_once_and_taken_back_by_its_health(
    start: Opener, first: Backend
) -> None:
    """Whoever starts it: a stop that left it drained would have a boot serve nobody."""
    proxy = start(first)
    proxy.until_status("one", "UP")
    admin, master = proxy.proxies.admin_socket, proxy.proxies.master_socket
    pool = Pool("llm", admin, master, 0, 0, replica="one")
    place.leave(pool)
    assert proxy.state("one").status == "DRAIN"
    assert proxy.get("/health").status == 503
    first.healthy = False
    place.shut(pool)
    assert proxy.state("one").status == "DOWN"
    assert proxy.get("/health").status == 503
    assert not place.back(pool, seconds=0.1)
    first.healthy = True
    assert place.back(pool)
    assert proxy.get("/health").status == 200
    place.leave(pool)
    assert place.back(pool, seconds=0.1), "people took it out: there is nothing to wait for"
    assert place.back(replace(pool, admin="/nowhere", master="/nowhere"), seconds=0.1)


PROCESSES = """#<PID> <type> <reloads> <uptime> <version>
10 master 1 0d00h07m15s 3.0.11-1+deb13u5
# workers
11 worker 0 0d00h03m13s 3.0.11-1+deb13u5
# programs
"""


class Master:
    """Answers as the master of HAProxy 3.0.11 was seen to: the connection stays open for more
    commands until the other side has closed its half."""

    def __init__(self, path: Path, running: list[int]) -> None:
        self.place = str(path)
        self.running = running
        self.asked: list[str] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.place)
        self._listening.listen()
        accepting(self._listening, self._answer)

    def close(self) -> None:
        self._listening.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            line = connection.makefile("r").readline().strip()
            self.asked.append(line)
            connection.sendall((PROCESSES if line == "show proc" else self._stat()).encode())
            while connection.recv(4096):
                pass

    def _stat(self) -> str:
        now = self.running.pop(0) if len(self.running) > 1 else self.running[0]
        return f"# pxname,svname,scur,status\nqwen36,self,{now},DRAIN\n\n"


def _pool(master: str, drain: float) -> Pool:
    return Pool("qwen36", "nobody listens", master, 0, drain)


def test_a_master_that_keeps_the_connection_is_not_waited_for(folder: Path) -> None:
    master = Master(folder / "master.sock", [2])
    began = time.monotonic()
    assert place.busy(master.place, "qwen36", "self") == 2
    assert time.monotonic() - began < 4  # its time limit is 5 s
    master.close()


def test_a_switch_waits_for_requests_that_run(folder: Path) -> None:
    master = Master(folder / "master.sock", [1, 1, 1, 0])
    place.leave(_pool(master.place, 60))
    assert master.asked.count("show proc") == 4
    master.close()


def test_a_master_that_says_nothing_is_no_proof_that_nobody_is_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(place, "busy", silent)
    began = time.monotonic()
    place.leave(_pool(str(folder / "none"), 1))
    assert time.monotonic() - began >= 1


def test_without_a_proxy_nobody_is_waited_for(folder: Path) -> None:
    began = time.monotonic()
    place.leave(_pool(str(folder / "none"), 60))
    assert time.monotonic() - began < 10
