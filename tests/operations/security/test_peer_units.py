"""The peer server's units: what systemd lets the server do, and who may have its port."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.facts.asking import HostError
from sparkwright.host import jobs
from sparkwright.host.fetch.peers import PeerClient
from sparkwright.host.fetch.request import PeerKeys
from sparkwright.host.jobs import Job
from sparkwright.host.lib import journal, systemd
from sparkwright.host.lib.processes import Outcome
from sparkwright.operations import peers
from sparkwright.operations.fetching import Sources
from sparkwright.operations.peer_keys import CONTROLLER, Peer, RunKeys
from sparkwright.run import bundle_server
from tests.golden import compare
from tests.host.serving import free_port

HOME = "/opt/sparkwright/runtime/abc"
JOB = peers.server_job(HOME, Sources(addresses=("10.0.0.2",)))


def test_the_server_reads_its_files_alone_without_root_and_systemd_holds_its_port() -> None:
    """It sees programs, models, parts and keys; with its one capability, open_by_handle_at would
    reach every file, so its system calls are limited; it reaches no network itself."""
    texts = [f"# {name.rpartition('.')[2]}\n{text}" for name, text in sorted(JOB.units.items())]
    compare("operations/peer-units", "\n".join(texts).replace(JOB.unit, "UNIT"))
    alone = peers.server_job(HOME, Sources())
    port = alone.units[f"{alone.unit}.socket"].splitlines()
    listening = [line for line in port if line.startswith("ListenStream")]
    assert listening == ["ListenStream=127.0.0.1:18650"]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Commands that systemctl got; it has room for everything."""
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


def test_the_server_is_started_from_its_units_and_an_older_one_makes_room(
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


def test_a_port_that_another_program_has_is_told(
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


def test_a_bundle_is_served_on_one_address_to_who_knows_the_key(
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
    # Of the site's folder, nobody else reads the key, and the fleet's secret is not in it.
    (key,) = tmp_path.glob(".sparkwright/bundle-*/keys/*")
    assert key.stat().st_mode & 0o077 == 0
    assert key.parent.parent.stat().st_mode & 0o077 == 0
    assert "of-the-fleet" not in key.read_text()
    (process,) = bundle_server._running.values()
    assert os.fsencode(key.read_text()) not in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def test_a_port_of_the_controllers_that_is_taken_is_told(bundle: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(HostError, match=f"from this machine: Address already.*{port}"):
            bundle_server.serve(str(bundle), "127.0.0.1", port, RunKeys(Secret("x")))
