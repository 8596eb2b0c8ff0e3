"""The proxy on its host: installation, reload and removal, and changed keys."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.host.lib import exclusive, files, systemd
from sparkwright.host.lib.exclusive import Group, Groups
from sparkwright.host.proxy import configure, place
from sparkwright.host.proxy import keys as program
from sparkwright.host.proxy import place as proxy_place
from sparkwright.host.proxy.keys import KeysRequest
from sparkwright.host.proxy.pool import Pool, ProxyRequest
from sparkwright.proxy.haproxy import Proxies, kept_servers, key_hash, key_map
from tests.host.exclusive.waking import declare
from tests.host.proxy.backend import PATIENCE, Backend
from tests.host.proxy.conftest import Opener, own_proxy
from tests.host.proxy.haproxy import ENGINE, KEY, RunningProxy, opened, proxies_of, replica, until
from tests.host.serving import accepting

CHAT = "/v1/chat/completions"
OPENCLAW = "sk-the-key-of-openclaw-0123456789"
LAPTOP = "sk-the-key-of-a-laptop-0123456789"
NAMED = {"openclaw": OPENCLAW, "laptop": LAPTOP, "sparkwright": ENGINE.value}


@pytest.fixture
def proxy(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """A host's own proxy."""
    with own_proxy(folder, first, NAMED) as result:
        yield result


def test_vllm_gets_its_own_key_and_never_a_clients_key(proxy: RunningProxy, first: Backend) -> None:
    for key in (KEY, OPENCLAW, LAPTOP):
        assert proxy.post(CHAT, key=key, headers={"X-Api-Key": "x"}).status == 200
    assert {seen.headers["authorization"] for seen in first.seen} == {f"Bearer {ENGINE.value}"}
    assert proxy.send("GET", "/v1/realtime", key=LAPTOP).status < 500
    two_headers = (
        f"POST {CHAT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {LAPTOP}\r\n"
        f"Authorization: Bearer {OPENCLAW}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    )
    proxy.raw(two_headers.encode())
    assert not any(
        key in str(seen.headers) for seen in first.seen for key in (KEY, LAPTOP, OPENCLAW)
    )


def test_the_log_has_names_and_no_key(proxy: RunningProxy) -> None:
    problems = "sk-a-wrong-key-that-somebody-tries"
    assert proxy.post(CHAT, key=OPENCLAW).status == 200
    assert proxy.post(f"{CHAT}?key={LAPTOP}", key=LAPTOP).status == 200
    assert proxy.post(CHAT, key=problems).status == 401
    assert proxy.post(CHAT, key="sk-x\r\nkey=laptop"[:4] + "key=laptop").status == 401
    until(lambda: proxy.log.read_text().count(CHAT) == 4, "a line for each request")
    proxy.stop()
    lines = [line.split() for line in proxy.log.read_text().splitlines() if CHAT in line]
    # Two threads write the log.
    assert sorted(line[1] for line in lines) == ["key=-", "key=-", "key=laptop", "key=openclaw"]
    text = proxy.log.read_text()
    for key in (KEY, OPENCLAW, LAPTOP, problems, ENGINE.value):
        assert key not in text
        assert key_hash(Secret(key)) not in text


def test_no_file_process_or_socket_reveals_a_clients_key(proxy: RunningProxy) -> None:
    assert proxy.post(CHAT, key=OPENCLAW).status == 200
    clients = (KEY, OPENCLAW, LAPTOP)
    for file in Path(proxy.proxies.home).iterdir():
        assert not any(key in file.read_text() for key in clients), file
        if ENGINE.value in file.read_text() or "keys" in file.name:
            assert file.stat().st_mode & 0o777 == 0o600
    for process in proxy.workers():
        for kind in ("cmdline", "environ"):
            text = Path(f"/proc/{process}/{kind}").read_bytes()
            assert not any(key.encode() in text for key in (*clients, ENGINE.value))
    for command in ("show env", "show map", f"show map {proxy.proxies.keys}", "show sess all"):
        assert not any(key in proxy.ask(command) for key in clients)


def test_the_hosts_own_key_works_only_from_the_host(proxy: RunningProxy, first: Backend) -> None:
    """A client at another address of this machine acts as another machine."""
    assert proxy.post(CHAT, key=ENGINE.value).status == 200
    seen = []
    for key in (ENGINE.value, OPENCLAW):
        elsewhere = http.client.HTTPConnection(
            "127.0.0.1", proxy.port, timeout=PATIENCE, source_address=("127.0.0.2", 0)
        )
        elsewhere.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {key}"})
        seen.append(elsewhere.getresponse().status)
    assert seen == [401, 200]
    assert len(first.seen) == 2


# --- The program that changes keys alone --------------------------------------------------------


@pytest.fixture
def managed(proxy: RunningProxy, monkeypatch: pytest.MonkeyPatch) -> RunningProxy:
    """A proxy whose unit counts as active, and which the test reloads instead of systemd."""
    monkeypatch.setattr(systemd, "is_active", lambda _: True)
    monkeypatch.setattr(configure, "reload", lambda _: proxy.reload())
    return proxy


def request(proxies: Proxies, text: str | None) -> KeysRequest:
    """Request to the program."""
    keep = tuple(tuple(each) for each in kept_servers(proxies))
    return KeysRequest(
        ProxyRequest({}, proxies.config, proxies.admin_socket, proxies.states, keep, start=False),
        proxies.keys, text,
    )  # fmt: skip


def named(**keys: str) -> str:
    """The text of a map."""
    return key_map({name: [Secret(key)] for name, key in keys.items()})


def test_the_list_names_the_loaded_keys(managed: RunningProxy) -> None:
    expected = program.main(request(managed.proxies, None))
    assert sorted(line.split()[1] for line in expected) == ["address", "default", *sorted(NAMED)]
    assert not any(key in json.dumps(expected) for key in (KEY, OPENCLAW, LAPTOP))


def test_only_the_written_keys_are_accepted(managed: RunningProxy) -> None:
    open_connection = managed.connect()
    open_connection.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {OPENCLAW}"})
    assert open_connection.getresponse().read()
    text = named(default=KEY, laptop=LAPTOP)
    assert program.main(request(managed.proxies, text)) == sorted(text.splitlines())
    statuses = [managed.post(CHAT, key=key).status for key in (KEY, LAPTOP, OPENCLAW)]
    assert statuses == [200, 200, 401]
    open_connection.sock.settimeout(10)
    assert open_connection.sock.recv(1) == b"", "a revoked key's connection is open"
    assert Path(managed.proxies.keys).stat().st_mode & 0o777 == 0o600
    before = managed.workers()
    program.main(request(managed.proxies, text))
    assert managed.workers() == before, "nothing changed, and it was reloaded"


def test_a_revocation_that_haproxy_rejects_is_an_error_and_applied_later(
    managed: RunningProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = named(default=KEY)
    monkeypatch.setattr(program, "_PATIENCE", 0.3)
    with monkeypatch.context() as broken:
        broken.setattr(configure, "reload", lambda _: None)
        with pytest.raises(SystemExit, match="did not load the new keys"):
            program.main(request(managed.proxies, text))
    # The file is current, the worker's list is not, and the worker's list counts.
    monkeypatch.setattr(program, "_PATIENCE", 15)
    program.main(request(managed.proxies, text))
    assert managed.post(CHAT, key=OPENCLAW).status == 401


def test_a_change_of_keys_is_refused_if_haproxy_reads_another_file(managed: RunningProxy) -> None:
    proxies = managed.proxies
    config, keys = Path(proxies.config), Path(proxies.keys)
    config.write_text(config.read_text().replace(proxies.keys, f"{proxies.home}/keys"))
    keys.unlink()
    with pytest.raises(SystemExit, match="deploy this host first"):
        program.main(request(proxies, named(default=KEY)))
    assert not keys.exists()


def test_a_host_that_never_served_has_no_keys_to_change(managed: RunningProxy) -> None:
    """A host without a deploy gets its keys later, and does not delay the end of a rotation."""
    Path(managed.proxies.config).unlink()
    assert program.main(request(managed.proxies, named(default=KEY))) == []
    assert program.main(request(managed.proxies, None)) == []


def test_a_stopped_service_leaves_its_pool_at_once_and_returns_when_healthy(
    start: Opener, first: Backend
) -> None:
    """Every start resets the state, since a boot after a stop would otherwise find the service
    drained and serve no request.
    """
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
    """Fake of HAProxy 3.0.11's master: the connection stays open for more commands until the client
    has closed its half.
    """

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


def test_the_count_of_requests_does_not_wait_for_the_end_of_the_connection(folder: Path) -> None:
    master = Master(folder / "master.sock", [2])
    began = time.monotonic()
    assert place.busy(master.place, "qwen36", "self") == 2
    assert time.monotonic() - began < 4  # the time limit is 5 s
    master.close()


def test_a_switch_waits_for_running_requests(folder: Path) -> None:
    master = Master(folder / "master.sock", [1, 1, 1, 0])
    place.leave(_pool(master.place, 60))
    assert master.asked.count("show proc") == 4
    master.close()


def test_a_silent_master_does_not_prove_an_idle_service(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(place, "busy", silent)
    began = time.monotonic()
    place.leave(_pool(str(folder / "none"), 1))
    assert time.monotonic() - began >= 1


def test_a_service_without_a_proxy_waits_for_no_request(folder: Path) -> None:
    began = time.monotonic()
    place.leave(_pool(str(folder / "none"), 60))
    assert time.monotonic() - began < 10


@pytest.fixture
def evening(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """``coder`` and ``llm`` belong to one group; ``coder`` runs."""
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


def test_a_sleeping_services_503_names_the_running_service_and_retry_after(
    evening: RunningProxy, first: Backend
) -> None:
    for answer in (evening.post(CHAT), evening.get("/v1/models")):
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert answer.headers["content-type"] == "application/json"
        assert answer.data["error"] == {
            "message": "llm sleeps while coder of its group evening runs.",
            "type": "server_error", "code": 503, "running": "coder",
        }  # fmt: skip
    assert first.seen == []


def test_a_client_without_a_key_gets_no_name_of_the_running_service(evening: RunningProxy) -> None:
    answer = evening.post(CHAT, key=None)
    assert (answer.status, b"coder" in answer.body) == (401, False)


def test_an_activated_service_is_reached_at_once_without_a_reload(
    evening: RunningProxy, folder: Path
) -> None:
    workers = evening.workers()
    _activate(folder, "llm")
    assert evening.post(CHAT).status == 200
    _activate(folder, "coder")
    assert evening.post(CHAT).status == 503
    assert evening.workers() == workers


def test_the_map_of_sleepers_survives_a_reload(evening: RunningProxy, folder: Path) -> None:
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


def test_the_map_is_written_without_a_running_proxy(
    folder: Path,
) -> None:
    proxy_place.tell_sleeping(folder / "state")
    files.write(folder / "gateway/asleep.map", "llm coder\n", 0o644)
    proxy_place.tell_sleeping(folder / "state")
    assert (folder / "gateway/asleep.map").read_text() == ""
