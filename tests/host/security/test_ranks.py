"""Who reaches the ranks' ports can neither join a cluster, nor end it, nor learn its key."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
