"""Ports of a fabric, read from a host, and findings about these ports."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.fabric import tree
from lab.fabric.shapes import pair, ring, switch
from lab.fabric.tree import Port, Spark
from sparkwright.checks.fabric.cabling import shape_of, unknown_neighbours
from sparkwright.checks.fabric.groups import Fabric
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.findings.finding import Finding
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState, Neighbour
from sparkwright.host.ranks.collective import NoFabric, collective_environment, entrance
from tests.host.fabric.looking import Look
from tests.host.programs import program
from tests.libyaml import safe_load

Sparks = tuple[Spark, ...]
Plant = Callable[[Sparks], None]


def _set(number: int | None = None, port: tuple[int, int] | None = None, **values: object) -> Plant:
    """Set values of a Spark or of a port, by default on both Sparks."""

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
#: Host and observation of each finding.
OBSERVED = safe_load(Path(__file__).with_name("planted.yaml").read_text())
#: Checks with a separate test below.
APART = {
    "fabric-no-connectx", "fabric-link-down", "fabric-two-nccl", "fabric-wrong-port",
    "fabric-ring-open", "fabric-images-differ",
}  # fmt: skip


def _facts(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(item.id, item.subject.host or "", item.observed) for item in findings]


def test_every_check_has_a_test() -> None:
    assert set(CHECKS.texts) == set(PLANTED) | APART


@pytest.mark.parametrize("id_", sorted(PLANTED))
def test_a_fault_of_a_pair_causes_only_its_finding(look: Look, id_: str) -> None:
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
     ("pair", tuple(replace(each, cma_kib=(0, 0)) for each in pair()))],  # kho=off
)  # fmt: skip
def test_a_faultless_fabric_has_no_finding(look: Look, shape: str, sparks: Sparks) -> None:
    assert CHECKS.findings(Fabric(look(sparks), shape)) == []


def test_a_kernel_option_fixes_withheld_contiguous_memory(look: Look) -> None:
    sparks = pair()
    _no_cma(sparks)
    finding, *_ = CHECKS.findings(Fabric(look(sparks), "pair"))
    assert finding.remedy.startswith("boot with kho=off on the kernel's command line")


def test_a_pair_cabled_in_different_ports_is_reported(look: Look) -> None:
    result = CHECKS.findings(Fabric(look(pair(0, other=1)), "pair"))
    assert _facts(result) == [
        ("fabric-wrong-port", "spark-1", "port 0 is cabled to port 1 of spark-2")
    ]
    assert result[0].remedy == "move the cable of spark-2 to port 0"


def test_a_ring_with_equal_ports_is_reported(look: Look) -> None:
    item, two, three = ring(3)
    # The cable between the first two Sparks is in port 0 of both.
    for spark, far in ((item, two), (two, item)):
        for twin in (0, 1):
            spark.ports[0, twin].sees = (far.mac(0, twin),)
    two.ports[1, 0].sees = two.ports[1, 1].sees = ()
    result = CHECKS.findings(Fabric(look((item, two, three)), "ring"))
    assert ("fabric-wrong-port", "spark-1", "port 0 is cabled to port 0 of spark-2") in _facts(
        result
    )


def test_an_open_ring_is_reported(look: Look) -> None:
    sparks = ring(4)
    for spark, cage in ((sparks[0], 1), (sparks[3], 0)):
        for twin in (0, 1):
            spark.ports[cage, twin] = Port()
    text = _facts(CHECKS.findings(Fabric(look(sparks), "ring")))
    assert ("fabric-link-down", "spark-1", "port 0 alone has a link") in text
    assert ("fabric-ring-open", "spark-4", "the host is cabled to spark-3") in text


def test_a_missing_card_and_a_missing_cable_are_reported(look: Look) -> None:
    states = look([Spark(1), Spark(2)])
    states["spark-2"] = replace(states["spark-2"], rails=())
    assert _facts(CHECKS.findings(Fabric(states, "pair"))) == [
        ("fabric-no-connectx", "spark-2", "no network device of a ConnectX"),
        ("fabric-link-down", "spark-1", "no port has a link"),
    ]


def test_different_libraries_and_images_are_reported(look: Look) -> None:
    states = look(pair())
    states["spark-1"] = replace(states["spark-1"], nccl=(("/a/libnccl.so.2", "/b/libnccl.so.2"),))
    states = {host: replace(states[host], image=f"sha256:{host[-1] * 3}") for host in states}
    assert _facts(CHECKS.findings(Fabric(states, "pair"))) == [
        ("fabric-two-nccl", "spark-1",
         "one process has loaded /a/libnccl.so.2 and /b/libnccl.so.2"),
        ("fabric-images-differ", "", "image: spark-1 sha256:111, spark-2 sha256:222"),
    ]  # fmt: skip


def test_a_host_without_connectx_has_no_rails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fabric.main(FabricRequest(str(tmp_path))) == FabricState()


def test_another_makers_card_is_not_a_rail(look: Look, tmp_path: Path) -> None:
    sparks = pair()
    tree.write(sparks[0], tmp_path / "other")
    for path in (tmp_path / "other/sys/devices/pci").iterdir():
        (path / "driver").unlink()
        (path / "driver").symlink_to("/sys/bus/pci/drivers/ice")
    assert fabric.main(FabricRequest(str(tmp_path / "other"), ask=False)).rails == ()


@pytest.mark.parametrize("message", ["", "[1, 2]", "{}", "not JSON", '[{"dev": 1}, {}]'])
def test_unexpected_output_of_a_tool_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    tree.write(pair()[0], tmp_path)
    for name in ("ip", "lldpcli"):
        program(tmp_path / "bin", name, f"cat <<'E'\n{message}\nE")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert len(fabric.main(FabricRequest(str(tmp_path))).rails) == 4


def test_lldp_names_the_other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write(pair()[0], tmp_path)
    text = (
        '{"lldp": {"interface": [{"enp1s0f1np1": {"via": "LLDP", "chassis": {"spark-2": {}}, '
        '"port": {"id": {"type": "mac", "value": "4C:BB:47:00:02:02"}, '
        '"descr": "enp1s0f1np1"}}}]}}'
    )
    program(tmp_path / "bin", "lldpcli", f"cat <<'E'\n{text}\nE")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    rail = fabric.main(FabricRequest(str(tmp_path), ask=False)).rails[2]
    assert Neighbour("4c:bb:47:00:02:02", "lldp", name="spark-2 enp1s0f1np1") in rail.neighbours


def test_two_loaded_nccl_libraries_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ours = "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2"
    system = "/usr/lib/aarch64-linux-gnu/libnccl.so.2.28.3"
    for pid, loaded in ((7, [ours, ours]), (8, [ours, system])):
        maps = "".join(f"ffff0000-ffff1000 r-xp 00000000 00:2a 12   {item}\n" for item in loaded)
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/maps").write_text(maps)
    assert fabric.main(FabricRequest(str(tmp_path))).nccl == ((system, ours),)


def test_topologies_of_a_fabric_are_recognized(look: Look) -> None:
    assert shape_of(look(pair())) == "pair"
    assert shape_of(look(ring(3))) == "ring"
    assert shape_of(look(ring(4))) == "ring"
    assert shape_of(look(switch(4))) == "switch"
    assert shape_of(look([Spark(1), Spark(2)])) is None


def test_a_cable_to_a_foreign_host_is_reported(look: Look) -> None:
    item, two = pair()
    item.ports[1, 0].sees = ("aa:bb:cc:dd:ee:ff",)
    assert unknown_neighbours(look([item, two])) == {
        "spark-1": ("aa:bb:cc:dd:ee:ff",),
        "spark-2": (),
    }


def test_variables_of_a_pair_name_both_twins(look: Look) -> None:
    states = look(pair())
    assert entrance(states["spark-2"], "pair") == ("enp1s0f1np1", "192.168.177.12")
    expected = safe_load(Path(__file__).with_name("pair.yaml").read_text())
    assert collective_environment(states["spark-2"], "pair") == expected


@pytest.mark.parametrize("number", [3, 4])
def test_variables_of_a_ring_name_four_devices(look: Look, number: int) -> None:
    state = look(ring(number))["spark-2"]
    result = collective_environment(state, "ring", ranks=number)
    assert entrance(state, "ring") == ("enP7s7", "192.168.1.22")
    assert {result[f"{name}_SOCKET_IFNAME"] for name in ("NCCL", "GLOO", "TP")} == {"enP7s7"}
    assert result["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0,rocep1s0f1,roceP2p1s0f1"
    assert result["NCCL_NET_PLUGIN"] == "none"
    assert (result["NCCL_IB_SUBNET_AWARE_ROUTING"], result["NCCL_IB_MERGE_NICS"]) == ("1", "0")
    assert result.get("NCCL_ALGO") == ("Ring" if number == 4 else None)
    assert "NCCL_CROSS_NIC" not in result
    # The index of a GID differs between hosts.
    result |= collective_environment(look(switch(4))["spark-2"], "switch")
    assert not [name for name in result if "GID" in name]


def test_variables_need_a_cable_and_an_address(look: Look) -> None:
    with pytest.raises(NoFabric, match="no port of a ConnectX is up"):
        collective_environment(look([Spark(1)])["spark-1"], "pair")
    bare = Spark(2, {(1, 0): Port(True), (1, 1): Port(True)})
    with pytest.raises(NoFabric, match="enp1s0f1np1 has no IPv4 address"):
        collective_environment(look([bare])["spark-2"], "pair")
