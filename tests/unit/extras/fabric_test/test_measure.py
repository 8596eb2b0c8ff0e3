"""What is measured on which hosts, and what becomes of the answers."""

from __future__ import annotations

import pytest

from sparkwright.checks.fabric.groups import Fabric
from sparkwright.extras.fabric_test.fabric_measure import Measurement, Stream
from sparkwright.extras.fabric_test.measure import Plan, plan
from sparkwright.extras.fabric_test.result import (
    FAILED,
    PASSED,
    SKIPPED,
    FabricResult,
    result,
    rows,
)
from sparkwright.host.fabric import FabricState
from tests.unit.checks.fabric.states import pair, ring, switch

IMAGES = dict.fromkeys(("spark-1", "spark-2", "spark-3", "spark-4"), "vllm:a")
TOOLS = dict.fromkeys(IMAGES, True)


def planned(states: dict[str, FabricState], shape: str) -> Plan:
    return plan(Fabric(states, shape), IMAGES, TOOLS)


def test_a_pair_writes_over_both_twins_at_once() -> None:
    (one,) = planned(pair(), "pair").pairs
    assert (one.server, one.client) == ("spark-1", "spark-2")
    assert one.listen == (Stream("rocep1s0f1", 12000), Stream("roceP2p1s0f1", 12001))
    assert one.write == (
        Stream("rocep1s0f1", 12000, "192.168.177.11"),
        Stream("roceP2p1s0f1", 12001, "192.168.178.11"),
    )


def test_pings_fill_the_mtu_on_every_rail() -> None:
    found = planned(pair(), "pair").pings["spark-2"]
    assert [(one.address, one.device, one.size) for one in found] == [
        ("192.168.177.11", "enp1s0f1np1", 8972),
        ("192.168.178.11", "enP2p1s0f1np1", 8972),
    ]


def test_every_cable_of_a_ring_and_each_next_host_at_a_switch() -> None:
    found = [(one.server, one.client) for one in planned(ring(3), "ring").pairs]
    assert found == [("spark-1", "spark-2"), ("spark-2", "spark-3"), ("spark-3", "spark-1")]
    found = [(one.server, one.client) for one in planned(switch(4), "switch").pairs]
    assert found == [("spark-1", "spark-2"), ("spark-2", "spark-3"), ("spark-3", "spark-4")]


def test_every_rank_of_the_gather_has_its_own_variables() -> None:
    found = planned(pair(), "pair").gathers
    assert [(host, one.rank, one.ranks, one.master) for host, one in found.items()] == [
        ("spark-1", 0, 2, "192.168.177.11"), ("spark-2", 1, 2, "192.168.177.11"),
    ]  # fmt: skip
    assert found["spark-2"].environment["NCCL_SOCKET_IFNAME"] == "enp1s0f1np1"
    assert "torch.distributed" in found["spark-1"].script


@pytest.mark.parametrize(
    ("images", "tools"), [({}, TOOLS), ({"spark-1": "a"}, TOOLS), (IMAGES, {"spark-1": True})]
)
def test_what_is_not_there_is_not_measured(images: dict[str, str], tools: dict[str, bool]) -> None:
    found = plan(Fabric(pair(), "pair"), images, tools)
    assert found.pings
    assert bool(found.gathers) is (images == IMAGES)
    assert bool(found.pairs) is (tools == TOOLS)


def measured(gbits: float, gbytes: float, shape: str = "pair") -> FabricResult:
    states = pair() if shape == "pair" else ring(3)
    fabric = Fabric(states, shape)
    what = planned(states, shape)
    answers = {
        host: (
            *(Measurement("ping", one.device, one.address, one.size) for one in what.pings[host]),
            *(Measurement("ib_write_bw", one.device, one.address, gbits) for each in what.pairs
              if each.client == host for one in each.write),
            Measurement("all-gather", value=gbytes, backend="nccl"),
        )
        for host in states
    }  # fmt: skip
    return result(fabric, [], what, answers)


def test_figures_as_published_pass() -> None:
    found = measured(92.6, 22.4)
    assert found.well
    assert {one.verdict for one in found.measures} == {PASSED}
    assert rows(found)[-1] == (
        "all-gather",
        "2 ranks",
        PASSED,
        "22.4 GB/s",
        "20.4 to 25.7 GB/s",
        "",
    )


@pytest.mark.parametrize(("gbits", "gbytes"), [(46.0, 22.4), (92.6, 11.0)])
def test_half_of_it_does_not(gbits: float, gbytes: float) -> None:
    found = measured(gbits, gbytes)
    assert not found.well
    assert FAILED in {one.verdict for one in found.measures}


def test_a_ring_is_slower_by_its_nature() -> None:
    assert measured(92.6, 11.0, "ring").well


def test_silence_and_faults_are_failures() -> None:
    what = planned(pair(), "pair")
    answers = {
        "spark-1": (
            Measurement("ping", "enp1s0f1np1", "192.168.177.12", 8972, wrong="message too long"),
            Measurement("all-gather", wrong="NCCL WARN Call to ibv_modify_qp failed"),
        )
    }  # fmt: skip
    found = result(Fabric(pair(), "pair"), [], what, answers)
    said = {(one.what, one.verdict, one.said) for one in found.measures}
    assert ("ping", FAILED, "message too long") in said
    assert ("ping", FAILED, "no answer") in said
    assert ("all-gather", FAILED, "NCCL WARN Call to ibv_modify_qp failed") in said
    assert ("ib_write_bw", FAILED, "no answer") in said


def test_without_a_gpu_the_rate_proves_nothing() -> None:
    what = planned(pair(), "pair")
    answer = [Measurement("all-gather", value=0.4, backend="gloo")]
    found = result(Fabric(pair(), "pair"), [], what, dict.fromkeys(pair(), answer))
    last = found.measures[-1]
    assert (last.verdict, last.said) == (SKIPPED, "over gloo, not nccl: no GPU")
