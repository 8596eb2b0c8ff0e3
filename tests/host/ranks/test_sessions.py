"""Ranks start and end together, and form a cluster again without a user's help. An attacker who
reaches the ranks' ports can't join a cluster, end it, or learn its key.
"""

import contextlib
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.lib.ranks import SERVED
from sparkwright.host.ranks.link import follower_proof
from tests.host.proxy.haproxy import until
from tests.host.ranks.units import KEY, NEW, OLD, Cluster
from tests.host.serving import free_port
from tests.libyaml import safe_load

Make = Callable[..., Cluster]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Make]:
    """Factory of clusters, which end with the test."""
    with contextlib.ExitStack() as made:

        def make(ranks: int = 2, answers_at: int | None = None) -> Cluster:
            item = Cluster(tmp_path, ranks, answers_at=answers_at)
            made.callback(item.stop)
            return item

        yield make


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_followers_start_before_their_head(cluster: Make, ranks: int) -> None:
    item = cluster(ranks)
    item.head.start()
    until(lambda: item.head.state)
    assert item.head.state["missing"] == [
        f"rank {number} (spark-{number + 1}) is not connected" for number in range(1, ranks)
    ]
    for unit in item.followers[:-1]:
        unit.start()
    last = f"rank {ranks - 1} (spark-{ranks}) is not connected"
    until(lambda: item.head.state["missing"] == [last])
    assert not any(unit.engines for unit in item.units)
    item.followers[-1].start()
    item.whole()
    assert all(item.head.began >= unit.began for unit in item.followers)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_ended_engine_ends_and_restarts_all_ranks(cluster: Make, number: int) -> None:
    item = cluster(3)
    item.start()
    before = item.whole()
    item.units[number].kill_engine()
    item.whole(before)
    assert [len(unit.engines) for unit in item.units] == [2, 2, 2]
    # systemd counts a failed start for the rank whose engine ended and for the head, which began
    # the start, and gives up after several failures. For other ranks systemd counts no failure.
    fault = [int(unit in (item.head, item.units[number])) for unit in item.units]
    assert [unit.codes[:1] for unit in item.units] == [[count] for count in fault]
    assert [unit.state["failures"] for unit in item.units] == fault


def test_hanging_engines_begin_a_new_session(cluster: Make) -> None:
    """The head's /health does not cover the followers, so the program requests a token."""
    item = cluster(2, free_port())
    item.start()
    before = item.whole()
    time.sleep(4)  # the head has sent several requests by now
    assert item.session == before
    # The follower's boot caches are kept from then on.
    assert (item.followers[0].home / SERVED).exists()
    stuck = item.head.place / "stuck"
    stuck.touch()
    until(lambda: "do not generate" in str(item.head.state["missing"]))
    stuck.unlink()
    item.whole(before)
    assert [len(unit.engines) for unit in item.units] == [2, 2]
    assert item.head.codes == [1]


def test_engines_that_never_answer_count_as_a_failed_start(cluster: Make) -> None:
    item = cluster(2, free_port())
    (item.head.place / "stuck").touch()
    item.start()
    item.whole()
    assert not (item.followers[0].home / SERVED).exists()
    until(lambda: "after the start" in str(item.head.state["missing"]))
    until(lambda: item.head.codes == [1])


def test_a_host_that_falls_silent_ends_the_session(cluster: Make) -> None:
    """A rank loses power or its cable, so that no other rank notices its end."""
    item = cluster(3)
    item.start()
    before = item.whole()
    item.units[1].cut(signal.SIGSTOP)
    until(lambda: "rank 1 (spark-2)" in str(item.head.state["missing"]))
    assert item.session is None
    # The other ranks wait for rank 1, and systemd counts no failed start.
    until(lambda: item.head.state["missing"] == ["rank 1 (spark-2) is not connected"])
    assert item.head.codes == [0]
    assert item.head.forgiven == 1
    item.units[1].cut()
    item.whole(before)
    assert [len(unit.engines) for unit in item.units] == [2, 2, 2]


def test_a_release_that_a_follower_lacks_is_named_and_waited_for(cluster: Make) -> None:
    item = cluster()
    item.head.stage(NEW)
    (item.head.home / "current").unlink()
    (item.head.home / "current").symlink_to(f"releases/{NEW}")
    item.start()
    lacks = f"rank 1 (spark-2) does not have release {NEW}"
    until(lambda: item.head.state.get("missing") == [lacks])
    assert f"release {NEW}" in str(item.followers[0].state["missing"])
    assert not item.followers[0].engines
    item.followers[0].stage(NEW)
    item.whole()


def test_a_half_staged_release_is_not_run(cluster: Make) -> None:
    item = cluster()
    for unit in item.units:
        unit.stage(NEW)
    (item.followers[0].home / "releases" / NEW / "release.json").unlink()
    (item.head.home / "current").unlink()
    (item.head.home / "current").symlink_to(f"releases/{NEW}")
    item.start()
    until(lambda: "does not have release" in str(item.head.state.get("missing")))
    assert (item.followers[0].home / "current").readlink().name == OLD


def test_a_rank_waits_for_a_missing_rail_address(cluster: Make) -> None:
    """The rail's address appears with the cable."""
    item = cluster()
    path = item.head.home / "current/release.json"
    path.write_text(path.read_text().replace(item.address[0], "192.0.2.1"))
    item.head.start()
    until(lambda: "192.0.2.1 is not on this host" in str(item.head.state.get("missing")))


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


def test_a_connection_from_another_address_gets_no_greeting(serving: Cluster) -> None:
    session = serving.session
    for _ in range(200):
        with _connected(serving, "127.0.0.1") as connection:
            assert _received(connection) is None
    assert serving.session == session


JOINS = safe_load(Path(__file__).with_name("joins.yaml").read_text())["joins"]


@pytest.mark.parametrize("answer", [*JOINS, "x" * 100_000])
def test_without_a_key_no_client_joins_or_ends_a_session(serving: Cluster, answer: object) -> None:
    """Another user of a rank's host attacks, with the rank's own address."""
    session = serving.session
    with _connected(serving, serving.head.config.addresses[1]) as connection:
        assert "nonce" in _received(connection)
        connection.sendall(json.dumps(answer).encode() + b"\n")
        assert _received(connection) is None
    time.sleep(1)
    assert serving.session == session


def test_a_replayed_proof_is_refused(serving: Cluster) -> None:
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


def test_a_follower_ignores_a_head_without_the_key(tmp_path: Path) -> None:
    """An attacker with the head's address can't send followers to another release."""
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
                until(lambda: "does not have the ranks' key" in str(follower.state))
    cluster.stop()
    assert (follower.home / "current").readlink().name == OLD
    assert not follower.engines


def test_a_follower_runs_only_releases_on_its_disk(tmp_path: Path) -> None:
    """Even a head with the key can't make a follower run another release."""
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
