"""A service's place behind its proxy: by a real HAProxy, by its versions' sockets, and asleep."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host.lib import exclusive, files
from sparkwright.host.lib.exclusive import Group, Groups
from sparkwright.host.proxy import place
from sparkwright.host.proxy import place as proxy_place
from sparkwright.host.proxy.pool import Pool
from tests.host.exclusive.waking import declare
from tests.host.proxy.backend import Backend
from tests.host.proxy.conftest import Opener
from tests.host.proxy.haproxy import RunningProxy, opened, proxies_of, replica, until
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


CHAT = "/v1/chat/completions"


@pytest.fixture
def evening(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """``coder`` and ``llm`` are of one group; ``coder`` runs."""
    proxies = replace(proxies_of(folder, (replica(first),)), home=f"{folder}/gateway")
    (own,) = proxies.proxies
    proxies = replace(proxies, proxies=(replace(own, exclusive="evening", engine_key=True),))
    groups = Groups({"evening": Group(("coder", "llm"))}, admin=proxies.admin_socket)
    declare(folder, groups)
    (folder / "gateway").mkdir()
    assert proxies.asleep == str(folder / "gateway/asleep.map")
    proxy_place.write_sleeping(Path(proxies.asleep))
    with opened(proxies) as proxy:
        proxy.until_status("one", "UP")
        yield proxy


def _activate(folder: Path, service: str) -> None:
    exclusive.activate(folder / "state", {"evening": service}, "ann", "")
    proxy_place.tell_sleeping(folder / "state")


def test_it_says_in_openais_shape_which_one_runs_and_when_to_ask_again(
    evening: RunningProxy, first: Backend
) -> None:
    for answer in (evening.post(CHAT), evening.get("/v1/models")):
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert answer.headers["content-type"] == "application/json"
        assert answer.data["error"] == {
            "message": "llm sleeps: of the group evening coder runs.",
            "type": "server_error", "code": 503, "running": "coder",
        }  # fmt: skip
    assert first.seen == []


def test_who_has_no_key_is_not_told(evening: RunningProxy) -> None:
    answer = evening.post(CHAT, key=None)
    assert (answer.status, b"coder" in answer.body) == (401, False)


def test_one_that_is_activated_is_reached_at_once_and_without_a_reload(
    evening: RunningProxy, folder: Path
) -> None:
    workers = evening.workers()
    _activate(folder, "llm")
    assert evening.post(CHAT).status == 200
    _activate(folder, "coder")
    assert evening.post(CHAT).status == 503
    assert evening.workers() == workers


def test_a_reload_and_a_start_know_it_too(evening: RunningProxy, folder: Path) -> None:
    _activate(folder, "llm")
    evening.reload()
    assert evening.post(CHAT).status == 200
    assert (folder / "gateway/asleep.map").read_text() == "coder llm\n"


def test_a_request_that_runs_is_not_cut_off_when_its_service_is_put_to_sleep(
    evening: RunningProxy, folder: Path, first: Backend
) -> None:
    _activate(folder, "llm")
    answer = evening.send_later(CHAT, {"stream": 2})
    until(lambda: first.seen, "the request")
    _activate(folder, "coder")
    first.go.release(2)
    assert answer.result(60).body.count(b"data:") == 2


def test_a_host_without_a_proxy_or_with_one_that_is_stopped_writes_what_it_can(
    folder: Path,
) -> None:
    proxy_place.tell_sleeping(folder / "state")
    files.write(folder / "gateway/asleep.map", "llm coder\n", 0o644)
    proxy_place.tell_sleeping(folder / "state")
    assert (folder / "gateway/asleep.map").read_text() == ""
