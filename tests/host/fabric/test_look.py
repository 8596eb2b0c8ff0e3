"""A host's part of the fabric, read from trees as captured on Sparks."""

from pathlib import Path

import pytest

from lab.fabric import tree
from lab.fabric.shapes import pair, ring, switch
from lab.fabric.tree import Port, Spark
from sparkwright.checks.fabric.cabling import shape_of, unknown_neighbours
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState, Gid, Neighbour
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.ranks.collective import NoFabric, collective_environment, entrance
from tests.host.fabric.looking import Look
from tests.host.programs import program
from tests.libyaml import safe_load


def test_the_ports_of_a_pair(look: Look) -> None:
    state = look(pair())["spark-1"]
    assert [(rail.name, rail.cage, rail.twin, rail.carrier) for rail in state.rails] == [
        ("enp1s0f0np0", 0, 0, False),
        ("enP2p1s0f0np0", 0, 1, False),
        ("enp1s0f1np1", 1, 0, True),
        ("enP2p1s0f1np1", 1, 1, True),
    ]
    rail = state.rails[2]
    assert (rail.speed, rail.mtu, rail.addresses) == (200000, 9000, ("192.168.177.11/24",))
    assert rail.rdma is not None
    assert (rail.rdma.name, rail.rdma.state, rail.rdma.rate) == ("rocep1s0f1", "ACTIVE", 200.0)
    assert rail.rdma.gids[3] == Gid(3, "192.168.177.11", "RoCE v2")
    assert len(rail.rdma.gids) == 4
    assert rail.neighbours[0] == Neighbour("4c:bb:47:00:02:02", "kernel", "fe80::1")
    assert state.rails[0].speed is None
    assert (state.management, state.kernel) == ("enP7s7", "6.17.0-1031-nvidia")
    assert (state.cma_over, state.driver) == (0, "580.95.05")
    assert decode(FabricState, encode(state)) == state


def test_a_host_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fabric.main(FabricRequest(str(tmp_path))) == FabricState()


def test_another_makers_card_is_no_rail(look: Look, tmp_path: Path) -> None:
    sparks = pair()
    tree.write(sparks[0], tmp_path / "other")
    for path in (tmp_path / "other/sys/devices/pci").iterdir():
        (path / "driver").unlink()
        (path / "driver").symlink_to("/sys/bus/pci/drivers/ice")
    assert fabric.main(FabricRequest(str(tmp_path / "other"), ask=False)).rails == ()


@pytest.mark.parametrize("message", ["", "[1, 2]", "{}", "not JSON", '[{"dev": 1}, {}]'])
def test_a_tool_that_says_something_else(
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


def test_two_nccl_libraries_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ours = "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2"
    system = "/usr/lib/aarch64-linux-gnu/libnccl.so.2.28.3"
    for pid, loaded in ((7, [ours, ours]), (8, [ours, system])):
        maps = "".join(f"ffff0000-ffff1000 r-xp 00000000 00:2a 12   {item}\n" for item in loaded)
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/maps").write_text(maps)
    assert fabric.main(FabricRequest(str(tmp_path))).nccl == ((system, ours),)


def test_shapes_are_seen(look: Look) -> None:
    assert shape_of(look(pair())) == "pair"
    assert shape_of(look(ring(3))) == "ring"
    assert shape_of(look(ring(4))) == "ring"
    assert shape_of(look(switch(4))) == "switch"
    assert shape_of(look([Spark(1), Spark(2)])) is None


def test_a_cable_to_somebody_else(look: Look) -> None:
    item, two = pair()
    item.ports[1, 0].sees = ("aa:bb:cc:dd:ee:ff",)
    assert unknown_neighbours(look([item, two])) == {
        "spark-1": ("aa:bb:cc:dd:ee:ff",),
        "spark-2": (),
    }


def test_variables_of_a_pair(look: Look) -> None:
    states = look(pair())
    assert entrance(states["spark-2"], "pair") == ("enp1s0f1np1", "192.168.177.12")
    expected = safe_load(Path(__file__).with_name("pair.yaml").read_text())
    assert collective_environment(states["spark-2"], "pair") == expected


@pytest.mark.parametrize("number", [3, 4])
def test_variables_of_a_ring(look: Look, number: int) -> None:
    state = look(ring(number))["spark-2"]
    result = collective_environment(state, "ring", ranks=number)
    assert entrance(state, "ring") == ("enP7s7", "192.168.1.22")
    assert {result[f"{name}_SOCKET_IFNAME"] for name in ("NCCL", "GLOO", "TP")} == {"enP7s7"}
    assert result["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0,rocep1s0f1,roceP2p1s0f1"
    assert result["NCCL_NET_PLUGIN"] == "none"
    assert (result["NCCL_IB_SUBNET_AWARE_ROUTING"], result["NCCL_IB_MERGE_NICS"]) == ("1", "0")
    assert result.get("NCCL_ALGO") == ("Ring" if number == 4 else None)
    assert "NCCL_CROSS_NIC" not in result
    # One index for all hosts is wrong on some of them.
    result |= collective_environment(look(switch(4))["spark-2"], "switch")
    assert not [name for name in result if "GID" in name]


def test_without_a_cable_or_an_address_there_are_none(look: Look) -> None:
    with pytest.raises(NoFabric, match="no port of a ConnectX is up"):
        collective_environment(look([Spark(1)])["spark-1"], "pair")
    bare = Spark(2, {(1, 0): Port(True), (1, 1): Port(True)})
    with pytest.raises(NoFabric, match="enp1s0f1np1 has no IPv4 address"):
        collective_environment(look([bare])["spark-2"], "pair")
