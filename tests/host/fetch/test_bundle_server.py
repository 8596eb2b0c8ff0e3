"""The controller as the host that serves: the real server on a bundle's files, for a real fetch."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.facts.asking import HostError
from sparkwright.operations.peer_keys import Peer, RunKeys
from sparkwright.run import bundle_server
from tests.host.fetch.conftest import Fetch
from tests.host.peer_sharing import free_port

HERE = "127.0.0.1"
KEYS = RunKeys(Secret("the secret of the fleet"))


@pytest.fixture
def bundle(fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetch]:
    """A site with a bundle of the model; no server of it outlives the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".sparkwright").mkdir()
    made = Fetch(fetch.hub, tmp_path / "bundle")
    made.root.mkdir()
    assert made.run()[0] == 0
    yield made
    for process in bundle_server._running.values():
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    bundle_server._running.clear()


def _take(leech: Fetch, peer: Peer, name: str, keys: RunKeys = KEYS) -> tuple[int, str]:
    place = leech.root / "peer-keys"
    place.write_text(keys.leech(name, [peer]).value)
    return leech.run(peers=[peer.address], peer_token_file=str(place))


def test_a_host_takes_all_of_it_from_the_controller(bundle: Fetch, tmp_path: Path) -> None:
    port = free_port()
    peer = bundle_server.serve(str(bundle.root), HERE, port, KEYS)
    assert bundle_server.serve(str(bundle.root), HERE, port, KEYS) == peer  # no second server
    (tmp_path / "leech").mkdir()
    leech = Fetch(bundle.hub, tmp_path / "leech")
    asked = len(leech.hub.hits)
    code, said = _take(leech, peer, "spark-1")
    assert code == 0, said
    leech.assert_whole()
    assert len(leech.hub.hits) == asked


def test_who_has_not_the_runs_key_gets_nothing(bundle: Fetch, tmp_path: Path) -> None:
    peer = bundle_server.serve(str(bundle.root), HERE, free_port(), KEYS)
    (tmp_path / "leech").mkdir()
    leech = Fetch(bundle.hub, tmp_path / "leech")
    code, said = _take(leech, peer, "spark-1", RunKeys(Secret("a guess"), KEYS.run))
    assert code == 0, said
    assert leech.progress()["bytes_peers"] == 0
    assert "it does not know the key of this run" in said


def test_its_key_is_the_owners_alone(bundle: Fetch, tmp_path: Path) -> None:
    bundle_server.serve(str(bundle.root), HERE, free_port(), KEYS)
    (key,) = tmp_path.glob(f".sparkwright/bundle-*/keys/{KEYS.run}")
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    (process,) = bundle_server._running.values()
    words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert os.fsencode(key.read_text()) not in words


def test_a_port_that_is_taken_is_said(bundle: Fetch) -> None:
    with socket.create_server((HERE, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(HostError, match=rf"from this machine: .*cannot listen on port {port}"):
            bundle_server.serve(str(bundle.root), HERE, port, KEYS)
