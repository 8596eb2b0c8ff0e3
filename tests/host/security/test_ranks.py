"""Who reaches the ranks' ports can neither join a cluster, nor end it, nor learn its key."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host import firewall as host_firewall
from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.lib.ranks import RankConfig
from sparkwright.host.ranks import firewall
from sparkwright.host.ranks.link import follower_proof
from tests.host.ranks.units import KEY, OLD, Cluster, until
from tests.libyaml import safe_load


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, 2, port=29601)
    cluster.start()
    cluster.whole()
    yield cluster
    cluster.stop()


def _connected(row: Cluster, source: str) -> socket.socket:
    return socket.create_connection(row.address, timeout=5, source_address=(source, 0))


def _received(connection: socket.socket) -> Any:
    try:
        line = connection.makefile("rb").readline()
    except OSError:
        return None
    return json.loads(line) if line else None


def test_another_address_is_not_even_greeted(serving: Cluster) -> None:
    session = serving.session
    for _ in range(200):
        with _connected(serving, "127.0.0.1") as connection:
            assert _received(connection) is None
    assert serving.session == session


JOINS = safe_load(Path(__file__).with_name("tables.yaml").read_text())["joins"]


@pytest.mark.parametrize("answer", [*JOINS, "x" * 100_000])
def test_without_the_key_nobody_joins_or_ends_a_session(serving: Cluster, answer: object) -> None:
    """From a rank's own address, as another user of its host has it."""
    session = serving.session
    with _connected(serving, serving.head.config.addresses[1]) as connection:
        assert "nonce" in _received(connection)
        connection.sendall(json.dumps(answer).encode() + b"\n")
        assert _received(connection) is None
    time.sleep(1)
    assert serving.session == session


def test_a_proof_that_was_overheard_is_worth_nothing(serving: Cluster) -> None:
    session = serving.session
    with _connected(serving, serving.head.config.addresses[1]) as connection:
        nonce = _received(connection)["nonce"]
        overheard = follower_proof(KEY, "chat", 1, nonce)
    with _connected(serving, serving.head.config.addresses[1]) as connection:
        _received(connection)
        arguments = {"rank": 1, "nonce": "n", "mac": overheard}
        connection.sendall(json.dumps(arguments).encode() + b"\n")
        assert _received(connection) is None
    time.sleep(1)
    assert serving.session == session


def test_silent_connections_keep_no_rank_out(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 2, port=29701)
    cluster.head.start()
    until(lambda: cluster.head.state)
    held = []
    try:
        for _ in range(100):
            held.append(_connected(cluster, cluster.head.config.addresses[1]))
        cluster.followers[0].start()
        cluster.whole()
    finally:
        for connection in held:
            connection.close()
        cluster.stop()


def test_a_follower_takes_no_word_of_a_head_that_does_not_know_the_key(tmp_path: Path) -> None:
    """Whoever has the head's address can't send followers to another release."""
    cluster = Cluster(tmp_path, 2, port=29801)
    follower = cluster.followers[0]
    with socket.create_server(cluster.address) as server:
        server.settimeout(10)
        follower.start()
        for _ in range(2):
            connection, _ = server.accept()
            with connection:
                connection.sendall(b'{"nonce": "n"}\n')
                assert KEY not in str(_received(connection))
                false = {"session": "s", "release": "../../../tmp", "mac": "0" * 64}
                connection.sendall(json.dumps(false).encode() + b"\n")
                until(lambda: "does not know the ranks' key" in str(follower.state))
    cluster.stop()
    assert (follower.home / "current").readlink().name == OLD
    assert not follower.engines


def test_a_release_is_a_name_of_what_lies_there(tmp_path: Path) -> None:
    """Even a head that knows the key can lead a follower nowhere else."""
    cluster = Cluster(tmp_path, 2, port=29901)
    away = cluster.followers[0].home / "elsewhere"
    away.mkdir()
    (away / "release.json").write_text("{}")
    (cluster.head.home / "current").unlink()
    (cluster.head.home / "releases/elsewhere").mkdir()
    strange = cluster.head.home / "releases/elsewhere"
    record = cluster.head.home / "releases" / OLD / "release.json"
    (strange / "release.json").write_text(record.read_text())
    (cluster.head.home / "current").symlink_to("releases/elsewhere")
    cluster.start()
    until(lambda: "does not have release" in str(cluster.head.state.get("missing")))
    assert (cluster.followers[0].home / "current").readlink().name == OLD
    cluster.stop()


def test_the_key_is_in_no_command_line_and_no_state(serving: Cluster) -> None:
    for unit in serving.units:
        assert KEY not in json.dumps(unit.state)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert KEY.encode() not in process.read_bytes()
        except OSError:
            continue


# --- The engine's own ports: real rules, in network namespaces of their own

NOBODY = 65534
HEAD, FOLLOWER, NEIGHBOUR = "10.77.1.1", "10.77.1.2", "10.77.1.9"
IPTABLES = shutil.which("iptables") and shutil.which("nsenter")
#: IPPROTO_MPTCP: TCP by sockets that the kernel makes for a user's.
MPTCP = 262
LISTEN = """
import socket, sys, time
sockets = [socket.create_server(("::", 29501), family=socket.AF_INET6, dualstack_ipv6=True)]
sockets += [socket.create_server((sys.argv[1], port)) for port in (40404, 8010)]
print("listens", flush=True)
time.sleep(600)
"""
CONNECT = """
import json, os, socket, sys
from concurrent.futures import ThreadPoolExecutor
user, attempts = json.loads(sys.argv[1])
os.setuid(user)
def connects(attempt):
    address, port, source, protocol = attempt
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        connection = socket.socket(family, socket.SOCK_STREAM, protocol)
        connection.settimeout(1)
        if source:
            connection.bind((source, 0))
        connection.connect((address, port))
        return True
    except OSError:
        return False
print(json.dumps(list(ThreadPoolExecutor(32).map(connects, attempts))))
"""


class Namespace:
    """The network of a host, with a listener on a rank's ports."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self.pid = self._background("unshare", "--net", "sh", "-c", "echo made; exec sleep 600")

    def _background(self, *command: str) -> int:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline()
        self._stack.callback(process.stdout.close)
        return process.pid

    def address(self, device: str, *addresses: str) -> None:
        """Give a device its addresses, and listen at the first."""
        for address in addresses:
            self.run("ip", "address", "add", f"{address}/24", "dev", device)
        for name in ("lo", device):
            self.run("ip", "link", "set", name, "up")
        self._background(*self._command(sys.executable, "-c", LISTEN, addresses[0]))

    def _command(self, *command: str) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net", *command)

    def run(self, *command: str, timeout: float | None = None) -> Outcome:
        """Run a command in it."""
        return run(*self._command(*command), timeout=timeout)

    def close(self, config: RankConfig, monkeypatch: pytest.MonkeyPatch) -> None:
        """Close the ports of its rank."""
        monkeypatch.setattr(host_firewall, "run", self.run)
        firewall.close("chat", config)

    def connects(
        self, user: int, *to: tuple[str, int], source: str = "", protocol: int = 0
    ) -> list[bool]:
        """Whether connections of one of its users succeed."""
        attempts = json.dumps([user, [(*each, source, protocol) for each in to]])
        outcome = self.run(sys.executable, "-c", CONNECT, attempts)
        assert outcome.ok, outcome.err
        return [bool(each) for each in json.loads(outcome.out)]


@pytest.fixture
def hosts() -> Iterator[tuple[Namespace, Namespace]]:
    """The networks of a head, and of a follower which has a neighbour's address, too."""
    if os.geteuid() != 0 or not IPTABLES:
        pytest.skip("needs root, iptables and nsenter")
    with contextlib.ExitStack() as stack:
        head, follower = Namespace(stack), Namespace(stack)
        far = ("peer", "name", "cable", "netns", str(follower.pid))
        assert head.run("ip", "link", "add", "cable", "type", "veth", *far).ok
        head.address("cable", HEAD)
        follower.address("cable", FOLLOWER, NEIGHBOUR)
        yield head, follower


def _config(tmp_path: Path, number: int = 0, **changes: Any) -> RankConfig:
    config = Cluster(tmp_path / str(number)).head.config
    return replace(config, number=number, addresses=(HEAD, FOLLOWER), port=29501, **changes)


@pytest.mark.parametrize("shape", [None, "pair"])
def test_the_engines_ports_are_open_to_ranks_and_root_alone(
    hosts: tuple[Namespace, Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    shape: str | None,
) -> None:  # fmt: skip
    head, follower = hosts
    local = [(address, 29501) for address in ("127.0.0.1", "127.8.8.8", "::1", HEAD)]
    ranks = [(HEAD, 29501), (HEAD, 40404)]
    for user in (0, NOBODY):
        assert all(head.connects(user, *local, *ranks))
    assert all(follower.connects(NOBODY, *ranks, source=NEIGHBOUR))
    for number, host in enumerate(hosts):
        host.close(_config(tmp_path, number, shape=shape), monkeypatch)

    assert not any(head.connects(NOBODY, *local, *ranks))
    assert not any(head.connects(NOBODY, *local, *ranks, protocol=MPTCP))
    assert not any(head.connects(NOBODY, (FOLLOWER, 29501), (FOLLOWER, 40404)))
    assert not any(follower.connects(NOBODY, *ranks))
    assert not any(follower.connects(0, *ranks, source=NEIGHBOUR))
    # The engines, and what else users do: other ports of the same hosts.
    assert all(head.connects(0, *local, *ranks, (FOLLOWER, 29501), (FOLLOWER, 40404)))
    assert all(follower.connects(0, *ranks))
    assert head.connects(NOBODY, (HEAD, 8010), (FOLLOWER, 8010)) == [True, True]
    assert follower.connects(0, (HEAD, 8010), source=NEIGHBOUR) == [shape is None]


@pytest.mark.parametrize("failing", ["-N", "-A", "-I"])
@pytest.mark.parametrize("program", host_firewall.PROGRAMS)
def test_without_its_rules_no_engine_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, program: str
) -> None:
    def refusing(*arguments: str, **_: object) -> Outcome:
        return Outcome(int(arguments[0] == program and failing in arguments), "", "no such table")

    monkeypatch.setattr(host_firewall, "run", refusing)
    with pytest.raises(SystemExit, match=r"the ports of chat can't be closed to others: .*table"):
        firewall.close("chat", _config(tmp_path))


def test_rules_are_taken_away_and_nobody_elses_with_them(
    hosts: tuple[Namespace, Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, _ = hosts
    listing = ("sh", "-c", "iptables -S; ip6tables -S")
    for command in ("-N SPARKWRIGHT-OTHER", "-A INPUT -p tcp --dport 22 -j SPARKWRIGHT-OTHER"):
        assert head.run("iptables", *command.split()).ok
    before = head.run(*listing).out
    for port in (29501, 29601):  # an earlier plan of the cluster, and the present one
        head.close(replace(_config(tmp_path / str(port)), port=port), monkeypatch)
    assert "29501" not in head.run(*listing).out
    assert head.run(*listing).out.count("29601:29602") == 4
    host_firewall.open_again("chat")
    assert head.run(*listing).out == before
