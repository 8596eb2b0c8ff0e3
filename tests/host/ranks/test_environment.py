"""A rank's engine gets the fabric's variables that its host finds, at each start."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState, Rail, Rdma
from sparkwright.host.lib.ranks import FABRIC, RankConfig
from sparkwright.host.ranks import rank
from tests.host.ranks.units import Cluster

PLANNED = {"VLLM_HOST_IP": "192.168.177.12", "NCCL_SOCKET_IFNAME": "enp1s0f1np1"}


def _rail(name: str, twin: int, **changes: object) -> Rail:
    rdma = Rdma(f"roce{name[2:-3]}", "ACTIVE", 200.0)
    own = (f"192.168.{177 + twin}.12/24",)
    rail = Rail(name, 0, twin, "02:00:00:00:00:01", True, 9000, 200000, own, rdma)
    return replace(rail, **changes)  # type: ignore[arg-type]


def _written(tmp_path: Path, seen: FabricState | Exception, monkeypatch: pytest.MonkeyPatch,
             **changes: object) -> tuple[RankConfig, dict[str, str] | None]:  # fmt: skip
    unit = Cluster(tmp_path).followers[0]
    config = replace(
        unit.config,
        addresses=("192.168.177.11", "192.168.177.12"), shape="pair", environment=PLANNED,
    )  # fmt: skip
    config = replace(config, **changes)  # type: ignore[arg-type]

    def main(_: FabricRequest) -> FabricState:
        if isinstance(seen, Exception):
            raise seen
        return seen

    monkeypatch.setattr(fabric, "main", main)
    rank.write_environment(unit.service.home, config)
    path = unit.home / FABRIC
    if not path.exists():
        return config, None
    return config, dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_the_cage_with_the_cable_is_the_one_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is planned in the outer one, and somebody has put it into the other."""
    seen = FabricState((_rail("enp1s0f0np0", 0), _rail("enP2p1s0f0np0", 1)))
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result is not None
    assert result["NCCL_SOCKET_IFNAME"] == result["GLOO_SOCKET_IFNAME"] == "enp1s0f0np0"
    assert len(result["NCCL_IB_HCA"].split(",")) == 2
    assert result["VLLM_HOST_IP"] == "192.168.177.12"
    # One index for all hosts is wrong on some of them, and an empty one is read as 0.
    assert "NCCL_IB_GID_INDEX" not in result


@pytest.mark.parametrize("seen", [FabricState(), OSError("no such device"), ValueError("odd")])
def test_without_a_fabric_it_is_as_planned(
    tmp_path: Path, seen: FabricState | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result == PLANNED


def test_a_plain_network_has_no_such_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = _written(tmp_path, FabricState(), monkeypatch, shape=None)
    assert result is None


def test_a_device_with_an_odd_name_adds_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names a device names no line of the file, and has Compose fill nothing in."""
    seen = FabricState((_rail("x\nLD_PRELOAD=/a", 0), _rail("$HOME", 1)))
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result is not None
    assert "LD_PRELOAD" not in result
    assert not any("$" in value for value in result.values())
