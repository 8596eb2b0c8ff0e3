"""Addresses of rails: from a setting and a host's state to netplan's text."""

import re
from dataclasses import replace

import pytest
from pydantic import ValidationError

from sparkwright.checks.fabric.addresses import addresses_of, netplan, pings, problems
from sparkwright.config.fabric import FabricAddresses
from sparkwright.host.fabric import FabricState, Rail, Rdma
from sparkwright.host.lib.icmp import Ping
from tests.libyaml import safe_load
from tests.tables import Tables

cases = Tables(__file__)

PAIR = FabricAddresses(shape="pair", hosts=("spark-1", "spark-2"))
RING = FabricAddresses(shape="ring", hosts=("spark-1", "spark-2", "spark-3"))
HERE = frozenset({"spark-1", "spark-2", "spark-3"})


def host(*cages: int) -> FabricState:
    """A Spark whose ports have a cable."""
    names = {(0, 0): "enp1s0f0np0", (0, 1): "enP2p1s0f0np0",
             (1, 0): "enp1s0f1np1", (1, 1): "enP2p1s0f1np1"}  # fmt: skip
    rails = tuple(
        Rail(name, cage, twin, "", cage in cages, 1500, rdma=Rdma(name, "ACTIVE"))
        for (cage, twin), name in names.items()
    )
    return FabricState(
        rails, {"enP7s7": ("192.168.1.21/24",)}, "enP7s7", tools=("netplan",)
    )  # fmt: skip


def test_a_pairs_file_has_the_usual_shape() -> None:
    given = addresses_of(PAIR, "spark-1", host(1))
    assert safe_load(netplan(PAIR, given)) == cases.data["netplan"]
    assert pings(PAIR, given) == (
        Ping("192.168.177.12", "enp1s0f1np1", 8972), Ping("192.168.178.12", "enP2p1s0f1np1", 8972)
    )  # fmt: skip


def test_the_port_that_has_the_cable_is_found() -> None:
    assert [item.rail.cage for item in addresses_of(PAIR, "spark-2", host(0))] == [0, 0]


@pytest.mark.parametrize("number", [3, 4])
def test_each_cable_of_a_ring_has_its_own_two_networks(number: int) -> None:
    names = tuple(f"spark-{item}" for item in range(1, number + 1))
    wanted = FabricAddresses(shape="ring", hosts=names)
    ends: dict[str, list[tuple[str, int, int]]] = {}
    for name in names:
        for entry in addresses_of(wanted, name, host(0, 1)):
            network = entry.address.rpartition(".")[0]
            ends.setdefault(network, []).append((name, entry.rail.cage, entry.rail.twin))
    assert len(ends) == 2 * number
    for position, name in enumerate(names):
        after = names[(position + 1) % number]
        for twin in (0, 1):
            network = f"192.168.{177 + 2 * position + twin}"
            assert sorted(ends[network]) == sorted([(name, 0, twin), (after, 1, twin)])


def test_a_rings_pings_go_to_the_neighbour_of_the_cable() -> None:
    given = addresses_of(RING, "spark-1", host(0, 1))
    assert [(ping.address, ping.device) for ping in pings(RING, given)] == [
        ("192.168.177.12", "enp1s0f0np0"), ("192.168.178.12", "enP2p1s0f0np0"),
        ("192.168.181.13", "enp1s0f1np1"), ("192.168.182.13", "enP2p1s0f1np1"),
    ]  # fmt: skip


def test_every_host_at_a_switch_pings_every_other_host() -> None:
    wanted = FabricAddresses(shape="switch", hosts=("a", "b", "c", "d"), network="10.9.0.0/24")
    given = addresses_of(wanted, "b", host(1))
    assert [item.address for item in given] == ["10.9.0.12/24", "10.9.1.12/24"]
    assert given[1].peers == ("10.9.1.11", "10.9.1.13", "10.9.1.14")


def test_obstacles_are_reported_at_once() -> None:
    state = replace(
        host(),
        interfaces={"enP7s7": ("192.168.1.21/24",), "wlP9s9": ("192.168.178.40/24",)},
        tools=(),
    )
    result = list(problems(PAIR, "spark-1", state, "192.168.1.21", frozenset({"spark-1"})))
    assert [item.observed for item in result] == [
        "this run does not include spark-2",
        "netplan is not installed",
        "0 network devices of the ConnectX are up with RDMA: none",
        "wlP9s9 is in 192.168.178.0/24",
    ]
    assert all(item.stops and item.remedy and item.reason for item in result)


def test_a_foreign_netplan_file_is_left_alone() -> None:
    state = replace(host(1), configured={"enp1s0f1np1": "/etc/netplan/40-cx7.yaml"})
    (problem,) = problems(PAIR, "spark-1", state, None, HERE)
    assert problem.observed == "/etc/netplan/40-cx7.yaml configures enp1s0f1np1"


@pytest.mark.parametrize("came", ["10.0.0.5", None])
def test_the_management_interface_is_never_changed(came: str | None) -> None:
    state = host(1)
    management = "enP7s7" if came else "enp1s0f1np1"
    every = {**state.interfaces, "enp1s0f1np1": ("10.0.0.5/24",)}
    state = replace(state, interfaces=every, management=management)
    (problem,) = problems(PAIR, "spark-1", state, came, HERE)
    assert problem.observed == "sparkwright manages the host over enp1s0f1np1 (10.0.0.5)"


@cases(
    "given",
    "message",
    more=[
        ({"shape": "ring", "hosts": tuple("abcde")}, "a ring has 3 to 4 hosts, but 'hosts' names 5")
    ],
)
def test_an_impossible_fabric_setting_is_refused(given: dict[str, object], message: str) -> None:
    whole = {"shape": "pair", "hosts": ("a", "b"), **given}
    with pytest.raises(ValidationError, match=re.escape(message)):
        FabricAddresses.model_validate(whole)
