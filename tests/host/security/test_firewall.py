"""Ports that an engine chooses by itself are closed: real rules, in network namespaces."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host import service_firewall as firewall
from sparkwright.host.lib import systemd
from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.service import Service
from sparkwright.operations.services import programs_of
from tests.host.ranks.units import Cluster
from tests.unit.builders import kept_service

NOBODY = 65534
HEAD, FOLLOWER, NEIGHBOUR = "10.77.1.1", "10.77.1.2", "10.77.1.9"
CONTAINER = ("10.88.0.2", "fd88::2")
IPTABLES = shutil.which("iptables") and shutil.which("nsenter")
#: IPPROTO_MPTCP: the kernel opens TCP sockets on behalf of a user's socket.
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
        """Give a device its addresses, and listen at the first address."""
        for address in addresses:
            suffix = ("/64", "nodad") if ":" in address else ("/24",)
            self.run("ip", "address", "add", address + suffix[0], "dev", device, *suffix[1:])
        for name in ("lo", device):
            self.run("ip", "link", "set", name, "up")
        self._background(*self._command(sys.executable, "-c", LISTEN, addresses[0]))

    def _command(self, *command: str) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net", *command)

    def run(self, *command: str, timeout: float | None = None) -> Outcome:
        """Run a command in the namespace."""
        return run(*self._command(*command), timeout=timeout)

    def close(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """Close the ports of a service on this host."""
        monkeypatch.setattr(firewall, "run", self.run)
        firewall.write(service, closed=True)

    def connects(
        self, user: int, *to: tuple[str, int], source: str = "", protocol: int = 0
    ) -> list[bool]:
        """Return whether connections of one of the host's users succeed."""
        attempts = json.dumps([user, [(*each, source, protocol) for each in to]])
        outcome = self.run(sys.executable, "-c", CONNECT, attempts)
        assert outcome.ok, outcome.err
        return [bool(each) for each in json.loads(outcome.out)]


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    """End the namespaces after the test."""
    with contextlib.ExitStack() as opened:
        yield opened


@pytest.fixture
def hosts(stack: contextlib.ExitStack) -> tuple[Namespace, Namespace]:
    """The networks of a head, and of a follower that has a neighbour's address, too."""
    if os.geteuid() != 0 or not IPTABLES:
        pytest.skip("needs root, iptables and nsenter")
    head, follower = Namespace(stack), Namespace(stack)
    far = ("peer", "name", "cable", "netns", str(follower.pid))
    assert head.run("ip", "link", "add", "cable", "type", "veth", *far).ok
    head.address("cable", HEAD)
    follower.address("cable", FOLLOWER, NEIGHBOUR)
    return head, follower


def _rank(tmp_path: Path, number: int = 0, **changes: Any) -> Service:
    head = Cluster(tmp_path / str(number)).head
    changes = {"number": number, "addresses": (HEAD, FOLLOWER), "port": 29501, **changes}
    return replace(head.service, rank=replace(head.config, **changes))


@pytest.mark.parametrize("shape", [None, "pair"])
def test_only_ranks_and_root_reach_the_engines_ports(
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
        host.close(_rank(tmp_path, number, shape=shape), monkeypatch)

    assert not any(head.connects(NOBODY, *local, *ranks))
    assert not any(head.connects(NOBODY, *local, *ranks, protocol=MPTCP))
    assert not any(head.connects(NOBODY, (FOLLOWER, 29501), (FOLLOWER, 40404)))
    assert not any(follower.connects(NOBODY, *ranks))
    assert not any(follower.connects(0, *ranks, source=NEIGHBOUR))
    # Engines reach each other, and other users reach other ports of the same hosts.
    assert all(head.connects(0, *local, *ranks, (FOLLOWER, 29501), (FOLLOWER, 40404)))
    assert all(follower.connects(0, *ranks))
    assert head.connects(NOBODY, (HEAD, 8010), (FOLLOWER, 8010)) == [True, True]
    assert follower.connects(0, (HEAD, 8010), source=NEIGHBOUR) == [shape is None]


@pytest.mark.parametrize("program", firewall.PROGRAMS)
def test_without_its_rules_no_engine_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def refusing(*arguments: str, **_: object) -> Outcome:
        return Outcome(int(f"{program}-restore" in arguments), "", "no such\ntable")

    monkeypatch.setattr(firewall, "run", refusing)
    with pytest.raises(SystemExit, match=rf"{program} refuses .* ports of chat: no such table"):
        firewall.write(_rank(tmp_path), closed=True)


def test_rules_of_later_services_are_restored_after_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = _rank(tmp_path)
    services = {name: replace(service, name=name) for name in ("bad", "good")}

    def write(service: Service, *, closed: bool) -> None:
        if service.name == "bad":
            raise SystemExit("iptables refuses the rules of bad")

    monkeypatch.setattr(firewall, "records", lambda *_: services)
    monkeypatch.setattr(systemd, "unit", lambda *_, **__: {"ActiveState": "active"})
    monkeypatch.setattr(firewall, "complete", lambda *_: False)
    monkeypatch.setattr(firewall, "write", write)
    with pytest.raises(SystemExit, match="refuses the rules of bad"):
        firewall.restore(str(tmp_path))
    assert capsys.readouterr().out.startswith("good: its iptables rules were missing")


def test_only_the_services_own_rules_are_removed(
    hosts: tuple[Namespace, Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, _ = hosts
    listing = ("sh", "-c", "iptables -t mangle -S; ip6tables -t mangle -S")
    for command in ("-N SPARKWRIGHT-OTHER", "-A INPUT -p tcp --dport 22 -j SPARKWRIGHT-OTHER"):
        assert head.run("iptables", "-t", "mangle", *command.split()).ok
    before = head.run(*listing).out
    # Rules of a killed start, of an earlier plan of the cluster, and of the present plan.
    service = _rank(tmp_path)
    assert service.rank
    for port in (29501, 29501, 29601):
        head.close(replace(service, rank=replace(service.rank, port=port)), monkeypatch)
    assert "29501" not in head.run(*listing).out
    assert head.run(*listing).out.count("29601:29602") == 4
    firewall.write(service, closed=False)
    assert head.run(*listing).out == before


#: A bridge, a container on it, and a redirect of port 8000, as Docker makes them.
BRIDGE = """
ip link add sw-chat type bridge; ip address add 10.88.0.1/24 dev sw-chat; sysctl -qw {forward}=1
ip address add fd88::1/64 dev sw-chat nodad; ip link set sw-chat up
ip link add port type veth peer name cable netns {pid}; ip link set port master sw-chat up"""
PUBLISH = "; ".join(
    f"iptables -t nat -A {chain} -p tcp --dport 8000 -j DNAT --to-destination 10.88.0.2:8010"
    for chain in ("PREROUTING", "OUTPUT")
)


@pytest.mark.parametrize("outgoing", [False, True])
def test_only_the_published_port_of_a_bridge_is_reached(
    hosts: tuple[Namespace, Namespace], stack: contextlib.ExitStack, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], outgoing: bool,
) -> None:  # fmt: skip
    """A rule that accepts all packets does not open the ports, and the watch restores the rules
    after ``nft flush ruleset``.
    """
    (head, neighbour), container = hosts, Namespace(stack)
    script = BRIDGE.format(pid=container.pid, forward="net.ipv4.ip_forward")
    assert head.run("sh", "-ec", f"{script}; {PUBLISH}").ok
    container.address("cable", *CONTAINER)
    assert container.run("ip", "route", "add", "default", "via", "10.88.0.1").ok
    assert neighbour.run("ip", "route", "add", "10.88.0.0/24", "via", HEAD).ok
    service = kept_service("r", "chat", tmp_path)
    service = replace(service, bridge="sw-chat", outgoing=outgoing)
    for path, (text, _) in {**service.files, **programs_of(service)}.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    Path(service.home, "current").symlink_to("releases/r")
    monkeypatch.setattr(systemd, "unit", lambda *_, **__: {"ActiveState": "active"})

    def reached() -> list[bool]:
        return [
            *neighbour.connects(0, (CONTAINER[0], 29501), (CONTAINER[0], 8010)),
            *head.connects(NOBODY, *((address, 29501) for address in CONTAINER)),
            *container.connects(0, (HEAD, 29501), ("10.88.0.1", 29501), ("fd88::1", 29501)),
        ]

    allowed = [(neighbour, 0, (HEAD, 8000)), (head, NOBODY, (HEAD, 8000)),
               *((head, 0, (address, 29501)) for address in CONTAINER)]  # fmt: skip
    assert all(reached())
    unit = ("service_firewall.py", "close", "release.json")
    assert head.run("sh", "-ec", f"cd {service.directory}; python3 -IS {' '.join(unit)}").ok
    monkeypatch.setattr(firewall, "run", head.run)
    for _ in range(2):
        for program in firewall.PROGRAMS:
            assert head.run(program, "-I", "INPUT", "-j", "ACCEPT").ok
        assert not any(reached())
        assert all(host.connects(user, to) == [True] for host, user, to in allowed)
        assert container.connects(0, (FOLLOWER, 8010)) == [outgoing]
        firewall.restore(str(tmp_path))
        assert capsys.readouterr().out == ""
        assert head.run("sh", "-ec", f"nft flush ruleset; {PUBLISH}").ok
        assert all(reached())
        firewall.restore(str(tmp_path))
        assert capsys.readouterr().out.startswith("chat: its iptables rules were missing")


@pytest.mark.parametrize("program", ["iptables-legacy", "iptables"])
def test_a_start_waits_for_a_held_lock_of_iptables(
    hosts: tuple[Namespace, Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    program: str,
) -> None:  # fmt: skip
    lock, service = tmp_path / "xtables.lock", _rank(tmp_path)
    monkeypatch.setenv("XTABLES_LOCKFILE", str(lock))
    monkeypatch.setattr(firewall, "PROGRAMS", (program,))
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        timer = threading.Timer(3, fcntl.flock, (file, fcntl.LOCK_UN))
        timer.start()
        hosts[0].close(service, monkeypatch)
        timer.join()
    assert firewall.complete(service, program)
