"""Each fault of a fabric, planted in trees as captured on Sparks: it alone is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.fabric.shapes import pair, ring, switch
from lab.fabric.tree import Port, Spark
from sparkwright.checks.fabric.groups import Fabric
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.findings.finding import Finding
from tests.host.fabric.looking import Look
from tests.libyaml import safe_load

Sparks = tuple[Spark, ...]
Plant = Callable[[Sparks], None]


def _set(number: int | None = None, port: tuple[int, int] | None = None, **values: object) -> Plant:
    """Values of a Spark, or of one of its ports; of both Sparks without a number."""

    def plant(sparks: Sparks) -> None:
        for spark in sparks if number is None else (sparks[number],):
            for name, value in values.items():
                setattr(spark.ports[port] if port else spark, name, value)

    return plant


def _twin_down(sparks: Sparks) -> None:
    sparks[0].ports = {**sparks[0].ports, (1, 1): Port()}


def _one_subnet(sparks: Sparks) -> None:
    for spark in sparks:
        spark.ports[1, 1].address = f"192.168.177.{20 + spark.number}/24"


def _second_cable(sparks: Sparks) -> None:
    for spark in sparks:
        more = {(0, twin): Port(True) for twin in (0, 1)}
        spark.ports = {**spark.ports, **more}


def _elsewhere(sparks: Sparks) -> None:
    for spark in sparks:
        for port in spark.ports.values():
            port.sees = (f"aa:bb:cc:dd:ee:{spark.number:02x}",)


_no_cma = _set(cma_kib=(32768, 9784320), kernel="7.0.0-1019-nvidia")
PLANTED: dict[str, Plant] = {
    "fabric-twin-down": _twin_down,
    "fabric-speed": _set(1, (1, 0), speed=100000),
    "fabric-mtu": _set(port=(1, 0), mtu=1500),
    "fabric-mtus-differ": _set(0, (1, 0), mtu=9216),
    "fabric-no-address": _set(0, (1, 1), address=""),
    "fabric-one-subnet": _one_subnet,
    "fabric-rdma-down": _set(0, (1, 0), active=False),
    "fabric-no-gid": _set(1, (1, 0), roce=False),
    "fabric-cma": _no_cma,
    "fabric-second-cable": _second_cable,
    "fabric-other-host": _elsewhere,
    "fabric-subnets-differ": _set(1, (1, 0), address="192.168.179.12/24"),
    "fabric-address-twice": _set(1, (1, 0), address="192.168.177.11/24"),
    "fabric-drivers-differ": _set(1, driver="580.126.09"),
    "fabric-driver-590": _set(driver="590.44.01"),
    "fabric-kernels-differ": _set(1, kernel="6.17.0-1032-nvidia"),
}
#: Host and observation of each.
OBSERVED = safe_load(Path(__file__).with_name("planted.yaml").read_text())
#: Those that have a test of their own below.
APART = {
    "fabric-no-connectx", "fabric-link-down", "fabric-two-nccl", "fabric-wrong-port",
    "fabric-ring-open", "fabric-images-differ",
}  # fmt: skip


def _facts(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(item.id, item.subject.host or "", item.observed) for item in findings]


def test_every_check_is_provoked() -> None:
    assert set(CHECKS.texts) == set(PLANTED) | APART


@pytest.mark.parametrize("id_", sorted(PLANTED))
def test_a_fault_of_a_pair_is_found_alone(look: Look, id_: str) -> None:
    host, observed = OBSERVED[id_]
    sparks = pair()
    PLANTED[id_](sparks)
    result = CHECKS.findings(Fabric(look(sparks), "pair"))
    assert (id_, host, observed) in _facts(result)
    assert {item.id for item in result} == {id_}
    assert all(item.reason and item.remedy and item.source and item.expected for item in result)


@pytest.mark.parametrize(
    ("shape", "sparks"),
    [("pair", pair()), ("pair", pair(0)), ("ring", ring(3)), ("ring", ring(4)),
     ("switch", switch(2)), ("switch", switch(4)), ("switch", switch(8)),
     ("pair", tuple(replace(each, cma_kib=(0, 0)) for each in pair()))],  # by kho=off
)  # fmt: skip
def test_nothing_is_wrong_with_a_fabric_as_it_must_be(
    look: Look, shape: str, sparks: Sparks
) -> None:
    assert CHECKS.findings(Fabric(look(sparks), shape)) == []


def test_withheld_contiguous_memory_is_cured_by_a_word_of_the_kernels(look: Look) -> None:
    sparks = pair()
    _no_cma(sparks)
    finding, *_ = CHECKS.findings(Fabric(look(sparks), "pair"))
    assert finding.remedy.startswith("kho=off on the kernel's command line")


def test_a_pair_in_different_ports(look: Look) -> None:
    result = CHECKS.findings(Fabric(look(pair(0, other=1)), "pair"))
    assert _facts(result) == [
        ("fabric-wrong-port", "spark-1", "port 0 is cabled to port 1 of spark-2")
    ]
    assert result[0].remedy == "move the cable of spark-2 to port 0"


def test_a_ring_with_equal_ports_joined(look: Look) -> None:
    item, two, three = ring(3)
    # The cable between the first two in port 0 of both.
    for spark, far in ((item, two), (two, item)):
        for twin in (0, 1):
            spark.ports[0, twin].sees = (far.mac(0, twin),)
    two.ports[1, 0].sees = two.ports[1, 1].sees = ()
    result = CHECKS.findings(Fabric(look((item, two, three)), "ring"))
    assert ("fabric-wrong-port", "spark-1", "port 0 is cabled to port 0 of spark-2") in _facts(
        result
    )


def test_a_ring_that_is_open(look: Look) -> None:
    sparks = ring(4)
    for spark, cage in ((sparks[0], 1), (sparks[3], 0)):
        for twin in (0, 1):
            spark.ports[cage, twin] = Port()
    text = _facts(CHECKS.findings(Fabric(look(sparks), "ring")))
    assert ("fabric-link-down", "spark-1", "port 0 alone has a link") in text
    assert ("fabric-ring-open", "spark-4", "it is cabled to spark-3") in text


def test_no_card_and_no_cable(look: Look) -> None:
    states = look([Spark(1), Spark(2)])
    states["spark-2"] = replace(states["spark-2"], rails=())
    assert _facts(CHECKS.findings(Fabric(states, "pair"))) == [
        ("fabric-no-connectx", "spark-2", "no network device of a ConnectX"),
        ("fabric-link-down", "spark-1", "no port has a link"),
    ]


def test_two_libraries_and_two_images(look: Look) -> None:
    states = look(pair())
    states["spark-1"] = replace(states["spark-1"], nccl=(("/a/libnccl.so.2", "/b/libnccl.so.2"),))
    states = {host: replace(states[host], image=f"sha256:{host[-1] * 3}") for host in states}
    assert _facts(CHECKS.findings(Fabric(states, "pair"))) == [
        ("fabric-two-nccl", "spark-1",
         "one process has loaded /a/libnccl.so.2 and /b/libnccl.so.2"),
        ("fabric-images-differ", "", "image: spark-1 sha256:111, spark-2 sha256:222"),
    ]  # fmt: skip
