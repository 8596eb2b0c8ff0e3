"""Sources of each host, decided once for a run from the observations of all hosts; the peer
server's units, and the owner of the server's port.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.secrets import Secret, SecretText
from sparkwright.facts.asking import HostError
from sparkwright.host import jobs
from sparkwright.host.fetch.peers import PeerClient
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.host.jobs import Job
from sparkwright.host.lib import journal, systemd
from sparkwright.host.lib.processes import Outcome
from sparkwright.operations import peers
from sparkwright.operations.lib.fetching import Sources
from sparkwright.plan.peer_keys import CONTROLLER, Peer, RunKeys
from sparkwright.run import bundle_server, sharing
from sparkwright.run.state import Run
from sparkwright.tls.names import Certificate
from tests.golden import compare
from tests.host.serving import free_port
from tests.operations.harness import FakeHost
from tests.operations.sites import looked_at, site, spark
from tests.tables import Tables
from tests.unit.builders import COMMIT, DIGEST

cases = Tables(__file__)

MODEL = f"AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@{COMMIT}"
DRAFTER = f"z-lab/Qwen3.6-35B-A3B-DFlash@{COMMIT}"
IMAGE = f"ghcr.io/aeon-7/aeon-vllm-ultimate:2026-08-17-v0.27.1-slim {DIGEST} aarch64"


def _seen(run: Run, host: FakeHost, *, models: bool, image: bool, parts: bool = True) -> None:
    """Observe a host with all, some or none of its models and images."""
    item = run.hosts[host.name]
    fault = None if models else "is not there"
    looked_at(
        host, item,
        models={model.directory: fault for model in item.desired.models},
        images={wanted.name: image for wanted in item.desired.images},
        stores=[wanted.store for wanted in item.desired.images] if parts else [],
    )  # fmt: skip
    item.connection = ("10.0.0.100", f"10.0.0.{host.name[-1]}")


def _fleet(*has: bool, **data: Any) -> tuple[Run, list[FakeHost]]:
    """Hosts that have all files and images, or none of them."""
    hosts = [spark(f"spark-{n}") for n in range(1, len(has) + 1)]
    run = site(*hosts, **data)
    for host, there in zip(hosts, has, strict=True):
        _seen(run, host, models=there, image=there)
    return run, hosts


def _peers(run: Run, host: FakeHost, content: str = MODEL) -> tuple[str, ...]:
    result = sharing.sources(run, run.hosts[host.name], content).peers()
    return tuple(peer.address for peer in result)


def test_a_host_that_has_the_content_is_the_first_peer() -> None:
    run, (first, second, third) = _fleet(True, False, False)
    assert _peers(run, second) == ("http://10.0.0.1:18650",)
    assert _peers(run, third)[0] == "http://10.0.0.1:18650"
    assert sharing.asked_for(run, run.hosts["spark-1"]) == sorted([MODEL, DRAFTER, IMAGE])
    assert sharing.asked_for(run, run.hosts["spark-2"]) == []
    assert next(sharing.described(run)) == (
        f"spark-1 would serve {sorted([MODEL, DRAFTER, IMAGE])[0]} to other hosts"
    )
    assert first.asked == second.asked == third.asked == []


def test_hosts_that_do_not_share_take_no_part() -> None:
    run, (_, second) = _fleet(True, False, peer_sharing=False)
    assert _peers(run, second) == ()
    # A host with an unknown address, behind a jump host, shares no file either.
    run, (_, second) = _fleet(True, False)
    run.hosts["spark-1"].connection = None
    assert _peers(run, second) == ()
    run, (_, second) = _fleet(True, False, lan_address="10.9.9.9", peer_port=18700)
    run.hosts["spark-1"].connection = None
    assert _peers(run, second) == ("http://10.9.9.9:18700",)


def test_a_host_that_failed_after_its_observation_is_not_a_peer() -> None:
    run, (first, second) = _fleet(True, False)
    assert _peers(run, second)
    first.memory.failure = "refused by preflight"
    assert _peers(run, second) == ()


def test_an_image_is_shared_only_while_its_parts_are_kept() -> None:
    run, (first, second) = _fleet(True, False)
    _seen(run, first, models=True, image=True, parts=False)
    assert _peers(run, second, IMAGE) == ()
    assert sharing.asked_for(run, run.hosts["spark-1"]) == sorted([MODEL, DRAFTER])


@cases("data", "addresses")
def test_a_host_serves_on_its_lan_address_only(data: dict[str, Any], addresses: list[str]) -> None:
    run, _ = _fleet(True, **data)
    assert list(sharing.sources(run, run.hosts["spark-1"]).addresses) == addresses


def test_under_tls_each_side_verifies_the_others_certificate() -> None:
    """A host with another certificate gets another server."""
    run, (_, second) = _fleet(True, False)
    named, plain = run.hosts["spark-1"], sharing.sources(run, run.hosts["spark-1"])
    identity = TlsIdentity("spark-1.sparkwright.internal", "the CA")
    named.peer_certificate = Certificate(SecretText("certificate and key"), identity)
    (peer,) = sharing.sources(run, run.hosts["spark-2"], MODEL).peers()
    assert peer == Peer("spark-1", "https://10.0.0.1:18650", identity)
    keys = json.loads(run.peer_keys.leech(second.name, [peer]).value)
    assert keys["tls"] == {peer.address: {"name": identity.name, "ca": "the CA"}}

    how = sharing.sources(run, named)
    assert how.server_secrets("spark-1")[how.certificate or ""] == "certificate and key"
    job = peers.server_job("/opt/runtime", how)
    assert json.loads(next(iter(job.files.values())))["certificate"] == how.certificate
    assert "certificate and key" not in str(job)
    assert job.unit != peers.server_job("/opt/runtime", plain).unit


def test_a_bundle_is_served_by_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []

    def serve(bundle: str, address: str, port: int, keys: Any) -> Peer:
        served.append((bundle, address, port, keys))
        return Peer(CONTROLLER, "http://10.0.0.100:18999")

    monkeypatch.setattr(bundle_server, "serve", serve)
    run, (_, second) = _fleet(True, False, bundle="/mnt/bundle")
    assert _peers(run, second) == ("http://10.0.0.100:18999",)
    assert served == [("/mnt/bundle", "10.0.0.100", 18650, run.peer_keys)]
    run.hosts["spark-2"].connection = None
    with pytest.raises(HostError, match="which a jump host prevents"):
        _peers(run, second)


@cases("came", "own", "served")
def test_a_host_serves_on_both_families_of_its_interface(
    came: str, own: dict[str, list[str]], served: list[str]
) -> None:
    run, (first, _) = _fleet(True, False)
    item = run.hosts["spark-1"]
    looked_at(first, item, addresses=own)
    item.connection = ("10.0.0.100", came)
    assert list(sharing.sources(run, item).addresses) == served
    bracketed = f"[{served[0]}]" if served and ":" in served[0] else "".join(served[:1])
    assert item.peer_address == (f"http://{bracketed}:18650" if served else None)


def test_a_bundle_is_not_offered_at_an_address_of_one_interface(tmp_path: Path) -> None:
    run, (first,) = _fleet(False, bundle=str(tmp_path))
    run.hosts["spark-1"].connection = ("fe80::2%eth0", "fe80::1%eth0")
    with pytest.raises(HostError, match="set ssh_hostname to its IPv4 address"):
        _peers(run, first)


def test_ipv4_is_preferred_to_ipv6_for_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(name: str, *_: Any, **__: Any) -> list[Any]:
        result = {"both": ["fd00::1", "10.0.0.7"], "six": ["fe80::1", "fd00::1"]}[name]
        return [(0, 1, 6, "", (item, 0)) for item in result]

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    for name, address in (("both", "10.0.0.7"), ("six", "fd00::1")):
        run, _ = _fleet(True, lan_address=name)
        assert sharing.sources(run, run.hosts["spark-1"]).addresses == (address,)


def _railed(run: Run, host: FakeHost, **rails: str) -> None:
    seen = run.hosts[host.name].observed
    own: dict[str, tuple[str, ...]] = {
        "enP7s7": (f"10.0.0.{host.name[-1]}",),
        **{name: (at,) for name, at in rails.items()},
    }
    host.memory.observation = replace(seen, addresses=own)


def test_hosts_of_one_fabric_share_over_the_fabric_first() -> None:
    run, (first, second, third) = _fleet(True, False, True)
    _railed(run, first, enp1s0f1np1="192.168.177.11", enP2p1s0f1np1="192.168.178.11")
    _railed(run, second, enp1s0f1np1="192.168.177.12", enP2p1s0f1np1="192.168.178.12")
    _railed(run, third, enp1s0f1np1="192.168.190.13")
    result = _peers(run, second)
    assert result[:3] == (
        "http://192.168.178.11:18650", "http://192.168.177.11:18650", "http://10.0.0.1:18650",
    )  # fmt: skip
    assert "http://10.0.0.3:18650" in result
    assert not [item for item in result if "190.13" in item]
    served = sharing.sources(run, run.hosts["spark-1"]).addresses
    assert served == ("10.0.0.1", "192.168.178.11", "192.168.177.11")


def test_a_host_with_another_hosts_address_gets_no_peers_at_that_address() -> None:
    run, (first, second) = _fleet(True, False)
    _railed(run, second, enp1s0f1np1="192.168.177.12")
    for claimed in ("192.168.177.12", "10.0.0.99", "8.8.8.8", "169.254.1.1", "x;reboot", "::1"):
        _railed(run, first, enp1s0f1np1=claimed)
        assert _peers(run, second) == ("http://10.0.0.1:18650",), claimed


def test_a_certificate_for_lan_addresses_is_used_only_on_the_lan() -> None:
    run, (first, second) = _fleet(True, False)
    _railed(run, first, enp1s0f1np1="192.168.177.11")
    _railed(run, second, enp1s0f1np1="192.168.177.12")
    pem = SecretText("PEM")
    run.hosts["spark-1"].peer_certificate = Certificate(pem, TlsIdentity(None, None))
    assert _peers(run, second) == ("https://10.0.0.1:18650",)
    run.hosts["spark-1"].peer_certificate = Certificate(pem, TlsIdentity("spark-1", "CA"))
    assert _peers(run, second)[0] == "https://192.168.177.11:18650"


HOME = "/opt/sparkwright/runtime/abc"
JOB = peers.server_job(HOME, Sources(addresses=("10.0.0.2",)))


def test_the_server_reads_only_its_files_without_root_and_systemd_holds_its_port() -> None:
    """The server sees programs, models, parts and keys; with its one capability, open_by_handle_at
    would reach every file, so its system calls are limited; the server reaches no network.
    """
    texts = [f"# {name.rpartition('.')[2]}\n{text}" for name, text in sorted(JOB.units.items())]
    compare("operations/peer-units", "\n".join(texts).replace(JOB.unit, "UNIT"))
    alone = peers.server_job(HOME, Sources())
    port = alone.units[f"{alone.unit}.socket"].splitlines()
    listening = [line for line in port if line.startswith("ListenStream")]
    assert listening == ["ListenStream=127.0.0.1:18650"]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Commands to systemctl, on a host with enough room on its disk."""
    asked: list[tuple[str, ...]] = []

    def systemctl(*arguments: str) -> Outcome:
        asked.append(arguments)
        return Outcome(0)

    monkeypatch.setattr(systemd, "TRANSIENT", tmp_path / "units")
    monkeypatch.setattr(systemd, "unit", lambda name: {"ActiveState": "inactive"})
    monkeypatch.setattr(systemd, "systemctl", systemctl)
    monkeypatch.setattr(jobs, "run", lambda *arguments: systemctl(*arguments[1:]))
    return asked


def _below(root: Path) -> Job:
    how = Sources(models_root=f"{root}/models", services_root=f"{root}/opt")
    made = peers.server_job(f"{root}/opt/runtime/x", how)
    return Job(
        unit=made.unit, description=made.description, argv=(), units=made.units, files=made.files,
        directories=tuple(path for path in made.directories if path.startswith(str(root))),
        instead_of=made.instead_of,
    )  # fmt: skip


def test_the_server_is_started_from_its_units_and_replaces_an_older_server(
    tmp_path: Path, started: list[tuple[str, ...]]
) -> None:
    units = tmp_path / "units"
    units.mkdir()
    (units / "sparkwright-share-old.service").write_text("old")
    (units / "sparkwright-share-old.socket").write_text("old")
    job = _below(tmp_path)
    jobs.start(job)
    assert {path.name: path.read_text() for path in units.iterdir()} == job.units
    assert (tmp_path / "opt/state/peers/root").is_dir()
    assert [item for item in started if item[0] != "reset-failed"] == [
        ("stop", "sparkwright-share-*"),
        ("start", f"{job.unit}.service"),
    ]


def test_an_occupied_peer_port_is_reported(
    tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Failed to create listening socket (127.0.0.1:18650): Address already in use"
    monkeypatch.setattr(jobs, "run", lambda *_: Outcome(1, err="A dependency job failed."))
    monkeypatch.setattr(journal, "last", lambda unit, _: [text] if unit.endswith(".socket") else [])
    with pytest.raises(SystemExit, match="serve models and images to other hosts: Failed to creat"):
        jobs.start(_below(tmp_path))


def test_old_keys_of_a_run_are_forgotten(tmp_path: Path) -> None:
    for name, age in (("old", 3 * 86400), ("new", 60)):
        (tmp_path / name).write_text("key")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    jobs._forget(tmp_path / "this")
    assert {path.name for path in tmp_path.iterdir()} == {"new"}


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".sparkwright").mkdir()
    path = tmp_path / "bundle/models/org--model" / ("c" * 40)
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    monkeypatch.setattr(bundle_server, "_running", {})
    yield tmp_path / "bundle"
    for process in bundle_server._running.values():
        process.kill()
        process.wait()


def test_a_bundle_is_served_on_one_address_to_clients_with_the_key(
    tmp_path: Path, bundle: Path
) -> None:
    keys, port = RunKeys(Secret("of-the-fleet")), free_port()
    peer = bundle_server.serve(str(bundle), "127.0.0.1", port, keys)
    assert peer == Peer(CONTROLLER, f"http://127.0.0.1:{port}")
    assert bundle_server.serve(str(bundle), "127.0.0.1", port, keys) == peer
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), 5)
    mine = PeerKeys(**json.loads(keys.leech("spark 1", [peer]).value))
    path = f"/files/models/org--model/{'c' * 40}/config.json"
    client = PeerClient(peer.address, mine, path, 2)
    assert client.held().ranges == ((0, 2),)
    assert bytes(client.piece(0, 2)) == b"{}"
    client.close()
    # Only the site's owner can read the folder of the key, which does not contain the fleet's
    # secret.
    (key,) = tmp_path.glob(".sparkwright/bundle-*/keys/*")
    assert key.stat().st_mode & 0o077 == 0
    assert key.parent.parent.stat().st_mode & 0o077 == 0
    assert "of-the-fleet" not in key.read_text()
    (process,) = bundle_server._running.values()
    assert os.fsencode(key.read_text()) not in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def test_an_occupied_port_of_the_controller_is_reported(bundle: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(HostError, match=f"from this machine: Address already.*{port}"):
            bundle_server.serve(str(bundle), "127.0.0.1", port, RunKeys(Secret("x")))
