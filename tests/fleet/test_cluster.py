"""One model over two hosts: the real vLLM, tensor parallel over gloo, by the very same roles."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import fleet, machines, network
from lab.layout import DEPOT, REGISTRY_PORT
from tests.fleet.site import MACHINES, ROOT, Site, bare, inside, ssh, until

HEAD, FOLLOWER = "spark-1", "spark-2"
INVENTORY = "inventory/cluster.py"
BOTH = ("--limit", "sparks")
#: Seconds that a whole start of both engines takes at most, on a machine that does other things.
BOOT = 400
CLUSTER = """
_PAIR = {
    "hosts": ["spark-1", "spark-2"], "fabric": "network", "interface": "host0",
    "addresses": {"spark-1": "10.213.77.11", "spark-2": "10.213.77.12"},
}
for _, _data in sparks:
    _data["clusters"] = {"pair": _PAIR}
    _data["services"] = {
        "tiny": {
            "recipe": "lab-tiny-qwen3-2-ranks", "cluster": "pair", "port": 8010,
            "first_answer_seconds": 120, "arguments": {"max_num_seqs": 4},
        },
    }
"""

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def pair(site: Site) -> Iterator[Site]:
    """Two hosts that serve one model, and nothing else."""
    site.power_on()
    site.repair()
    for host in (HEAD, FOLLOWER):
        bare(host)
    registry = f"http://{DEPOT.address}:{REGISTRY_PORT}"
    push = [sys.executable, "-m", "lab.real_engine", "push", "--registry", registry]
    subprocess.run(push, cwd=ROOT, check=True)
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / INVENTORY).write_text(inventory + CLUSTER)
    yield site
    site.power_on()
    for host in (HEAD, FOLLOWER):
        network.link(MACHINES[host], up=True)
        ssh(
            host,
            "sudo systemctl disable --now sparkwright-tiny; docker rm -f sparkwright-tiny || true",
        )
        bare(host)


def state(host: str) -> dict[str, Any]:
    """How far the rank of a host is, by its own file."""
    place = "/opt/sparkwright/services/tiny/rank-state.json"
    return dict(json.loads(inside(host, "sh", "-c", f"cat {place} || echo '{{}}'")))


def session() -> str | None:
    """The session that both ranks serve; None where there is none."""
    found = [state(host) for host in (HEAD, FOLLOWER)]
    serving = {one.get("session") if one.get("step") == "serving" else None for one in found}
    return serving.pop() if len(serving) == 1 else None


def release(host: str) -> str:
    """What `current` leads to."""
    return inside(host, "readlink", "/opt/sparkwright/services/tiny/current").rpartition("/")[2]


def generates(site: Site) -> bool:
    """Whether a client gets an answer, at the head's proxy."""
    body = json.dumps({"model": "lab-tiny", "prompt": "1 2 3", "max_tokens": 2})
    said = inside(
        HEAD, "curl", "-s", "-m", "30", "http://127.0.0.1:8010/v1/completions",
        "-H", f"Authorization: Bearer {site.key}", "-H", "Content-Type: application/json",
        "-d", body, "-w", "\n%{http_code}", "--retry", "0",
    )  # fmt: skip
    return said.endswith("200")


def whole(site: Site, before: str | None) -> None:
    """Wait until both ranks serve together, in another session than before, and it answers."""

    def holds() -> bool:
        time.sleep(1)
        if session() in (None, before):
            return False
        try:
            return generates(site)
        except AssertionError:  # the proxy has nobody behind it yet
            return False

    until(holds, f"the cluster is whole again: {state(HEAD)} {state(FOLLOWER)}", BOOT)


def deploy(site: Site, **keywords: Any) -> Any:
    return site.deploy(*BOTH, inventory=INVENTORY, **keywords)


def test_it_is_deployed_proved_and_left_alone_by_a_second_run(pair: Site) -> None:
    run = deploy(pair)
    for host in (HEAD, FOLLOWER):
        (service,) = run.host(host)["services"]
        assert service["smoke"]["failures"] == []
    checks = {one["name"] for one in run.host(HEAD)["services"][0]["smoke"]["checks"]}
    assert "generation" in checks
    assert [one["name"] for one in run.host(FOLLOWER)["services"][0]["smoke"]["checks"]] == ["rank"]
    assert release(HEAD) == release(FOLLOWER)
    assert generates(pair)
    assert deploy(pair).changed == set()


def test_others_reach_neither_the_engines_nor_the_ranks(pair: Site) -> None:
    """The attack: another host of the LAN connects to the head's ports, open on every address."""

    def connects(host: str, port: int) -> bool:
        script = (
            "import socket, sys\ntry: socket.create_connection(('10.213.77.11', int(sys.argv[1])), "
            "3); print('open')\nexcept OSError: print('closed')"
        )
        return inside(host, "python3", "-c", script, str(port)) == "open"

    assert connects(FOLLOWER, 29501)
    for port in (29501, 29502):
        assert not connects("rtx-1", port)
    # Those that the engines chose: every one that listens at the address of the ranks.
    listening = inside(HEAD, "ss", "-Hltn", "src", "10.213.77.11")
    chosen = {int(line.split()[3].rpartition(":")[2]) for line in listening.splitlines()}
    for port in chosen - {8010}:
        assert not connects("rtx-1", port)
    assert connects("rtx-1", 8010)


def test_a_part_of_a_cluster_is_not_deployed_alone(pair: Site) -> None:
    run = pair.run("--yes", "--limit", HEAD, inventory=INVENTORY)
    assert run.code == 2
    assert "this run leaves out spark-2" in run.output


@pytest.mark.parametrize("host", [FOLLOWER, HEAD])
def test_an_engine_that_is_killed_comes_back_with_the_other(pair: Site, host: str) -> None:
    before = session()
    ssh(host, "docker kill sparkwright-tiny")
    whole(pair, before)


def _power(_: Site) -> None:
    machines.cut_power(MACHINES[FOLLOWER])
    until(lambda: "rank 1 (spark-2)" in str(state(HEAD).get("missing")), "it says who is missing")
    fleet.up((FOLLOWER,))


def _head_power(_: Site) -> None:
    machines.cut_power(MACHINES[HEAD])
    until(lambda: "the head (spark-1" in str(state(FOLLOWER).get("missing")), "it says so")
    fleet.up((HEAD,))


def _cable(_: Site) -> None:
    network.link(MACHINES[FOLLOWER], up=False)
    until(lambda: "rank 1 (spark-2)" in str(state(HEAD).get("missing")), "it says who is missing")
    network.link(MACHINES[FOLLOWER], up=True)


@pytest.mark.parametrize("fault", [_power, _head_power, _cable])
def test_it_is_whole_again_after(pair: Site, fault: Callable[[Site], None]) -> None:
    before = session()
    fault(pair)
    whole(pair, before)


def test_a_new_release_is_that_of_both(pair: Site) -> None:
    before = release(HEAD)
    pair.edit(INVENTORY, '"max_num_seqs": 4', '"max_num_seqs": 3')
    deploy(pair)
    assert release(HEAD) == release(FOLLOWER) != before
    assert generates(pair)


def test_a_bad_release_is_taken_back_on_both(pair: Site) -> None:
    before = release(HEAD)
    # No engine starts with it, and no rule knows why.
    bad = ', "hf_overrides": {"num_attention_heads": 3}'
    pair.edit(INVENTORY, '"max_num_seqs": 3', f'"max_num_seqs": 3{bad}')
    run = pair.run("--yes", *BOTH, inventory=INVENTORY)
    pair.edit(INVENTORY, bad, "")
    assert run.code == 1, run.output
    assert run.refused == {HEAD}, run.output
    assert "what ran before runs again" in run.output
    assert release(HEAD) == release(FOLLOWER) == before
    assert generates(pair)
    assert deploy(pair).changed == set()


def test_a_rollback_is_that_of_both(pair: Site) -> None:
    before = release(HEAD)
    pair.sparkwright("rollback", INVENTORY, *BOTH, "--yes")
    assert release(HEAD) == release(FOLLOWER) != before
    assert generates(pair)


def test_status_doctor_and_smoke_know_its_ranks(pair: Site) -> None:
    deploy(pair)
    assert "as planned" in pair.sparkwright("status", INVENTORY, *BOTH)
    said = json.loads(pair.call("doctor", INVENTORY, *BOTH, "--json").stdout)
    assert [one for one in said if one["severity"] == "error"] == []


def test_a_follower_that_is_stopped_is_named_by_its_head(pair: Site) -> None:
    before = session()
    ssh(FOLLOWER, "sudo systemctl stop sparkwright-tiny")
    missing = ["rank 1 (spark-2) is not there"]
    until(lambda: state(HEAD).get("missing") == missing, "it says who is missing")
    ssh(FOLLOWER, "sudo systemctl start sparkwright-tiny")
    whole(pair, before)


def test_removal_leaves_nothing_of_it(pair: Site) -> None:
    pair.sparkwright("remove", INVENTORY, *BOTH, "--yes")
    for host in (HEAD, FOLLOWER):
        assert "sparkwright-tiny" not in inside(host, "docker", "ps", "-a")
        assert "SPARKWRIGHT-" not in inside(host, "iptables", "-S")
        assert not inside(
            host, "sh", "-c", "ls /etc/systemd/system | grep sparkwright-tiny || true"
        )
