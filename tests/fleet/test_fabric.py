"""Two Sparks joined by a fake cable: findings, new addresses, measurements, and removal."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab import machines
from lab.fabric import rails
from tests.fleet.site import MACHINES, Site, inside

INVENTORY = "inventory/virtual.py"
SPARKS = ("spark-1", "spark-2")
LIMIT = ("--limit", "sparks")
FILE = "/etc/netplan/60-sparkwright-fabric.yaml"
RAIL = "enp1s0f1np1"
SETTING = 'fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}\n'


@pytest.fixture(scope="module")
def cabled(site: Site) -> Iterator[Site]:
    """A cable in port 1 of both Sparks."""
    site.power_on()
    site.repair()
    ends = {}
    for number, name in enumerate(SPARKS, 1):
        leader = machines.running(MACHINES[name])
        assert leader is not None
        ends[number] = leader
    rails.plug(ends)
    yield site
    rails.unplug(ends)
    for name in SPARKS:
        inside(name, "rm", "-rf", "/etc/netplan", "/var/lib/sparkwright/fabric")
    site.repair()


def addresses(host: str) -> list[str]:
    """A rail's IPv4 addresses in the kernel."""
    (shown,) = json.loads(inside(host, "ip", "-j", "addr", "show", "dev", RAIL))
    return [item["local"] for item in shown["addr_info"] if item["family"] == "inet"]


def timers(host: str) -> str:
    """Units that would still restore the former addresses."""
    units = "ls /etc/systemd/system /etc/systemd/system/*.wants; systemctl list-timers --all"
    return inside(host, "sh", "-c", f"({units}) | grep fabric; true")


def test_a_cable_without_addresses_is_reported_with_its_remedy(cabled: Site) -> None:
    text = cabled.sparkwright("fabric", "test", INVENTORY, *LIMIT, "--look", code=1)
    assert "spark-1, spark-2: pair, faults" in text
    for name in ("fabric-no-address", "fabric-mtu"):
        assert f"error: {name}: spark-1, spark-2" in text or f"error: {name}: spark-1" in text


def test_addresses_are_shown_then_written_tested_and_unchanged(cabled: Site) -> None:
    with (cabled.folder / "group_data/all.py").open("a") as settings:
        settings.write(SETTING)
    text = cabled.sparkwright("fabric", "addresses", INVENTORY, "--dry", "--diff")
    assert "192.168.177.11/24" in text
    assert addresses("spark-1") == []
    cabled.sparkwright("fabric", "addresses", INVENTORY)
    assert (addresses("spark-1"), addresses("spark-2")) == (["192.168.177.11"], ["192.168.177.12"])
    for host in SPARKS:
        assert inside(host, "stat", "-c", "%a %U", FILE) == "600 root"
        assert timers(host) == ""
    before = inside("spark-1", "stat", "-c", "%y", FILE)
    cabled.sparkwright("fabric", "addresses", INVENTORY)
    assert inside("spark-1", "stat", "-c", "%y", FILE) == before


def test_every_rail_is_measured(cabled: Site) -> None:
    done = cabled.call("fabric", "test", INVENTORY, *LIMIT, "--json")
    (load,) = json.loads(done.stdout)
    assert (load["shape"], load["hosts"]) == ("pair", list(SPARKS))
    assert [item for item in load["findings"] if item["severity"] == "error"] == []
    each: dict[str, list[Any]] = {}
    for entry in load["measures"]:
        each.setdefault(entry["test"], []).append((entry["verdict"], entry["value"]))
    assert each["ping"] == [("passed", 8972)] * 4
    assert each["ib_write_bw"] == [("passed", 92.57)] * 2


def test_addresses_without_an_answer_are_reverted_on_all_hosts(cabled: Site) -> None:
    drop = ("INPUT", "-i", RAIL, "-p", "icmp", "-j", "DROP")
    inside("spark-2", "iptables", "-I", *drop)
    try:
        cabled.edit("group_data/all.py", '"hosts":', '"network": "192.168.187.0/24", "hosts":')
        cabled.sparkwright("fabric", "addresses", INVENTORY, code=1)
        assert addresses("spark-1") == ["192.168.177.11"]
        assert addresses("spark-2") == ["192.168.177.12"]
        assert (timers("spark-1"), timers("spark-2")) == ("", "")
    finally:
        inside("spark-2", "iptables", "-D", *drop)
        cabled.edit("group_data/all.py", '"network": "192.168.187.0/24", ', "")


def test_removal_deletes_the_addresses(cabled: Site) -> None:
    text = cabled.sparkwright("remove", INVENTORY, *LIMIT, "--yes")
    assert "the addresses of the fabric" in text
    for host in SPARKS:
        assert addresses(host) == []
        assert inside(host, "sh", "-c", f"ls {FILE} 2>/dev/null; true") == ""
