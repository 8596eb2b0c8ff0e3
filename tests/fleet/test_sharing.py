"""One copy over the uplink: hosts fetch from each other, from a neighbour, from a bundle."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import fleet, machines, network
from lab.layout import DEPOT
from tests.fleet.site import GOOD, LOCKING, MACHINES, Site, bare, hub, inside, ssh, units, until

BODY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"


def _way_out() -> int:
    """Bytes that registry and hub have sent to all clients."""
    name = network.interface(DEPOT)
    return int(Path(f"/sys/class/net/{name}/statistics/rx_bytes").read_text())


def _sizes(host: str) -> int:
    """Bytes of models on a host."""
    return int(ssh(host, "sudo du -sb --apparent-size /opt/models | cut -f1"))


def _journal(host: str) -> str:
    return inside(host, "journalctl", "-u", "sparkwright-*", "-o", "cat", "--no-pager", "-n", "60")


@pytest.fixture
def bare_fleet(converged: Site) -> Iterator[Site]:
    for host in GOOD:
        bare(host)
    yield converged
    hub("DELETE")


def test_all_hosts_share_one_download_over_the_uplink(bare_fleet: Site) -> None:
    fetching = bare_fleet.only_fetching()
    before = _way_out()
    bare_fleet.deploy(refused={"hopper-1"}, deploy=fetching)
    carried = _way_out() - before
    image = int(ssh("spark-1", "docker image inspect -f '{{.Size}}' $(docker images -q | head -1)"))
    parts = {host: ssh(host, "sudo du -sb /opt/sparkwright/images | cut -f1") for host in GOOD}
    # Only the host that served the image keeps the image's parts.
    kept = [int(size) for size in parts.values() if int(size) > 1_000_000]
    assert len(kept) == 1
    assert kept[0] < image
    item = _sizes("spark-1") + kept[0]
    assert carried <= 1.05 * item, (carried, item)
    assert "of it from peers" in "".join(_journal(host) for host in GOOD)
    again = bare_fleet.deploy(refused={"hopper-1"}, deploy=fetching)
    assert again.changed == set()


@pytest.mark.parametrize("tls", [(), ("--data", "tls=own")], ids=["clear", "tls"])
def test_a_new_host_downloads_from_its_neighbours(bare_fleet: Site, tls: tuple[str, ...]) -> None:
    fetching = bare_fleet.only_fetching()
    bare_fleet.deploy(*tls, "--limit", "spark-1", "--limit", "rtx-1", deploy=fetching)
    before = _way_out()
    bare_fleet.deploy(*tls, refused={"hopper-1"}, deploy=fetching)
    assert _way_out() - before < 0.05 * _sizes("spark-2")
    requests = ssh("spark-1", "sudo sh -c 'cat /opt/sparkwright/state/peers/*.json'")
    assert ('.pem"' in requests) is bool(tls)


def test_a_setting_turns_peer_sharing_off(bare_fleet: Site) -> None:
    fetching = bare_fleet.only_fetching()
    bare_fleet.deploy("--data", "peer_sharing=False", refused={"hopper-1"}, deploy=fetching)
    text = "".join(_journal(host) for host in GOOD)
    assert "of it from peers" not in text.rpartition("Stopped")[2]


def test_a_seed_that_dies_is_replaced_by_the_uplink(bare_fleet: Site) -> None:
    fetching = bare_fleet.only_fetching()
    hub("POST", order={"match": "*", "rate": 400_000})
    run = bare_fleet.start("--limit", "sparks", deploy=fetching)
    until(lambda: "sparkwright-fetch" in units("spark-2"), "spark-2 fetches", 60)
    machines.cut_power(MACHINES["spark-1"])
    hub("DELETE")
    assert run.wait(timeout=200) == 1
    bare_fleet.deploy("--limit", "spark-2", deploy=fetching)
    fleet.up()
    bare_fleet.deploy("--limit", "sparks", deploy=fetching)


def test_a_site_without_internet_is_served_from_a_bundle(bare_fleet: Site, tmp_path: Path) -> None:
    lock = bare_fleet.folder / ".sparkwright/virtual.lock"
    assert bare_fleet.call(*LOCKING, timeout=200).returncode == 0
    arguments = ("bundle", "inventory/virtual.py", str(tmp_path / "bundle"))
    made = bare_fleet.call(*arguments, timeout=200)
    assert made.returncode == 0, made.stdout + made.stderr
    network.link(DEPOT, up=False)
    try:
        run = bare_fleet.deploy(
            "--data", f"bundle={tmp_path}/bundle", "--limit", "spark-1", "--limit", "rtx-1"
        )
        cut = (tmp_path / "bundle/models").glob("*/*/config.json")
        next(cut).unlink()
        bare("spark-2")
        not_whole = bare_fleet.run(
            "--yes", "--data", f"bundle={tmp_path}/bundle", "--limit", "spark-2"
        )
    finally:
        network.link(DEPOT, up=True)
        lock.unlink()
    assert run.host("rtx-1")["services"][0]["smoke"]["failures"] == []
    assert not_whole.code == 1
    assert "sparkwright bundle" in not_whole.output


def test_models_are_listed_and_unused_models_pruned(converged: Site) -> None:
    old = "/opt/models/AEON-7--Qwen3.6-35B-A3B-heretic-NVFP4/" + "0" * 40
    (current,) = (
        path
        for path in ssh("spark-1", "sudo ls -d /opt/models/AEON-7--*/*").splitlines()
        if path != old
    )
    # An older revision with the same large files, a user's directory, and an interrupted fetch.
    inside("spark-1", "cp", "-al", current, old)
    inside(
        "spark-1", "sed", "-i", f"s/{current[-40:]}/{'0' * 40}/", f"{old}/.sparkwright-receipt.json"
    )
    inside("spark-1", "mkdir", "-p", "/opt/models/mine", "/opt/models/half/.staging-" + "1" * 40)
    inside("spark-1", "touch", "/opt/models/mine/file")
    listed = converged.call(
        "models", "list", "inventory/virtual.py", "--limit", "spark-1", timeout=200
    )
    assert listed.returncode == 0, listed.stderr
    assert f"{BODY}@000000000000  not needed" in listed.stdout
    assert "unmanaged, unchanged: /opt/models/mine" in listed.stdout
    pruned = converged.call(
        "models",
        "prune",
        "inventory/virtual.py",
        "--limit",
        "spark-1",
        "--json",
        "--yes",
        timeout=200,
    )
    assert pruned.returncode == 0, pruned.stderr
    things = json.loads(pruned.stdout)["spark-1"]["things"]
    removed = {thing["path"] for thing in things if thing["removed"]}
    assert removed == {old, "/opt/models/half/.staging-" + "1" * 40}
    assert ssh("spark-1", "ls -A /opt/models/mine") == "file"
    inside("spark-1", "rm", "-r", "/opt/models/mine")
    assert converged.deploy("--limit", "spark-1").changed == set()
