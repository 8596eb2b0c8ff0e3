"""One model over two hosts: the real vLLM, tensor parallel over gloo, with the same roles."""

import json
from collections.abc import Callable, Iterator

import pytest

from lab import fleet, machines, network
from tests.fleet.cluster import BOTH, FOLLOWER, HEAD, INVENTORY, Pair, empty
from tests.fleet.site import MACHINES, Site, inside, push_engine, ssh, until, without_engine

#: Longest time in seconds of a whole start of both engines, on a busy machine.
BOOT = 400

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def pair(site: Site) -> Iterator[Pair]:
    """Two hosts that serve one model, and no other service."""
    empty(site)
    push_engine()
    yield Pair(
        site, "tiny", "lab-tiny", BOOT, recipe="lab-tiny-qwen3-2-ranks", port=8010,
        first_answer_seconds=120, arguments={"max_num_seqs": 4},
    )  # fmt: skip
    site.power_on()
    for host in (HEAD, FOLLOWER):
        network.link(MACHINES[host], up=True)
        without_engine(host)


def test_a_cluster_is_deployed_and_tested_and_a_second_run_changes_nothing(pair: Pair) -> None:
    run = pair.deploy()
    for host in (HEAD, FOLLOWER):
        (service,) = run.host(host)["services"]
        assert service["smoke"]["failures"] == []
    checks = {item["name"] for item in run.host(HEAD)["services"][0]["smoke"]["checks"]}
    assert "generation" in checks
    assert [item["name"] for item in run.host(FOLLOWER)["services"][0]["smoke"]["checks"]] == [
        "rank"
    ]
    assert pair.release(HEAD) == pair.release(FOLLOWER)
    assert pair.generates()
    assert pair.deploy().changed == set()


def test_status_doctor_and_smoke_report_the_ranks(pair: Pair) -> None:
    assert "as planned" in pair.site.sparkwright("status", INVENTORY, *BOTH)
    data = json.loads(pair.site.call("doctor", INVENTORY, *BOTH, "--json").stdout)
    assert [item for item in data if item["severity"] == "error"] == []


def test_other_hosts_and_users_reach_neither_engines_nor_ranks(pair: Pair) -> None:
    """The attacks: another host of the LAN, and another user of either host, connect to the
    head's ports, which are open on every address, and to the ports that its engines chose.
    """

    def connects(host: str, port: int, user: int = 0, address: str = "10.213.77.11") -> bool:
        script = (
            "import os, socket, sys\nos.setuid(int(sys.argv[3]))\n"
            "try: socket.create_connection(sys.argv[1:3], 3); print('open')\n"
            "except OSError: print('closed')"
        )
        arguments = (address, str(port), str(user))
        return inside(host, "python3", "-c", script, *arguments) == "open"

    assert connects(FOLLOWER, 29501)
    # Ports that the engines chose: every port that listens at the ranks' address.
    listening = inside(HEAD, "ss", "-Hltn", "src", "10.213.77.11")
    chosen = {int(line.split()[3].rpartition(":")[2]) for line in listening.splitlines()}
    # The proxy's port and the peers' port are open, and require a key.
    for port in {29501, 29502} | chosen - {8010, 18650}:
        assert not connects("rtx-1", port)
        for host in (HEAD, FOLLOWER):
            assert not connects(host, port, user=65534)
    for address in ("127.0.0.1", "::1"):
        assert not connects(HEAD, 29501, user=65534, address=address)
    assert connects("rtx-1", 8010)
    assert connects(HEAD, 8010, user=65534)


def test_a_part_of_a_cluster_is_not_deployed_alone(pair: Pair) -> None:
    run = pair.site.run("--yes", "--limit", HEAD, inventory=INVENTORY)
    assert run.code == 2
    assert "this run leaves out spark-2" in run.output


@pytest.mark.parametrize("host", [FOLLOWER, HEAD])
def test_a_killed_engine_restarts_with_the_other_rank(pair: Pair, host: str) -> None:
    before = pair.session()
    ssh(host, "docker kill sparkwright-tiny")
    pair.whole(before)


def _power(pair: Pair) -> None:
    machines.cut_power(MACHINES[FOLLOWER])
    until(lambda: "rank 1 (spark-2)" in str(pair.state(HEAD).get("missing")), "spark-2 is missing")
    fleet.up((FOLLOWER,))


def _head_power(pair: Pair) -> None:
    machines.cut_power(MACHINES[HEAD])
    until(lambda: "the head (spark-1" in str(pair.state(FOLLOWER).get("missing")), "it says so")
    fleet.up((HEAD,))


def _cable(pair: Pair) -> None:
    network.link(MACHINES[FOLLOWER], up=False)
    until(lambda: "rank 1 (spark-2)" in str(pair.state(HEAD).get("missing")), "spark-2 is missing")
    network.link(MACHINES[FOLLOWER], up=True)


@pytest.mark.parametrize("fault", [_power, _head_power, _cable])
def test_a_cluster_recovers_after_each_fault(pair: Pair, fault: Callable[[Pair], None]) -> None:
    before = pair.session()
    fault(pair)
    pair.whole(before)


def test_a_new_release_runs_on_both_hosts(pair: Pair) -> None:
    before = pair.release(HEAD)
    pair.serve(arguments={"max_num_seqs": 3})
    pair.deploy()
    assert pair.release(HEAD) == pair.release(FOLLOWER) != before
    assert pair.generates()


def test_a_bad_release_is_reverted_on_both_hosts(pair: Pair) -> None:
    before = pair.release(HEAD)
    # No engine starts with this argument, and no rule finds the reason.
    bad = {"hf_overrides": {"num_attention_heads": 3}}
    pair.serve(arguments={"max_num_seqs": 3, **bad})
    run = pair.site.run("--yes", *BOTH, inventory=INVENTORY)
    pair.serve(arguments={"max_num_seqs": 3})
    assert run.code == 1, run.output
    assert run.refused == {HEAD}, run.output
    assert "the former release runs again" in run.output
    assert pair.release(HEAD) == pair.release(FOLLOWER) == before
    assert pair.generates()
    assert pair.deploy().changed == set()


def test_a_rollback_applies_to_both_hosts(pair: Pair) -> None:
    before = pair.release(HEAD)
    pair.site.sparkwright("rollback", INVENTORY, *BOTH, "--yes")
    assert pair.release(HEAD) == pair.release(FOLLOWER) != before
    assert pair.generates()


def test_the_head_names_a_stopped_follower(pair: Pair) -> None:
    before = pair.session()
    ssh(FOLLOWER, "sudo systemctl stop sparkwright-tiny")
    missing = ["rank 1 (spark-2) is not connected"]
    until(lambda: pair.state(HEAD).get("missing") == missing, "it says who is missing")
    ssh(FOLLOWER, "sudo systemctl start sparkwright-tiny")
    pair.whole(before)


def test_removal_leaves_no_part_of_the_cluster(pair: Pair) -> None:
    pair.site.sparkwright("remove", INVENTORY, *BOTH, "--yes")
    for host in (HEAD, FOLLOWER):
        assert "sparkwright-tiny" not in inside(host, "docker", "ps", "-a")
        assert "SPARKWRIGHT-" not in inside(host, "iptables", "-t", "mangle", "-S")
        assert not inside(
            host, "sh", "-c", "ls /etc/systemd/system | grep sparkwright-tiny || true"
        )
