"""A single rank: the fabric's variables for its engine, and the health of a follower, which answers
no request.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState, Rail, Rdma
from sparkwright.host.lib import ranks, systemd
from sparkwright.host.lib.ranks import FABRIC, SERVING, STATE, WAITING, RankConfig, RankState
from sparkwright.host.lib.records import encode
from sparkwright.host.ranks import rank
from sparkwright.host.ranks.start import Rank, ended
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.watch import watch
from sparkwright.host.watch.state import WatchedService
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


def test_the_port_with_the_cable_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the plan the cable is in the outer cage, but a user has plugged it into the inner cage."""
    seen = FabricState((_rail("enp1s0f0np0", 0), _rail("enP2p1s0f0np0", 1)))
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result is not None
    assert result["NCCL_SOCKET_IFNAME"] == result["GLOO_SOCKET_IFNAME"] == "enp1s0f0np0"
    assert len(result["NCCL_IB_HCA"].split(",")) == 2
    assert result["VLLM_HOST_IP"] == "192.168.177.12"
    # The index differs between hosts, and NCCL reads an empty index as 0.
    assert "NCCL_IB_GID_INDEX" not in result


@pytest.mark.parametrize("seen", [FabricState(), OSError("no such device"), ValueError("odd")])
def test_without_a_fabric_the_planned_variables_are_used(
    tmp_path: Path, seen: FabricState | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result == PLANNED


def test_a_plain_network_gets_no_file_of_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, result = _written(tmp_path, FabricState(), monkeypatch, shape=None)
    assert result is None


def test_a_device_with_an_odd_name_adds_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker who names a device adds no line to the file, and Compose expands no variable."""
    seen = FabricState((_rail("x\nLD_PRELOAD=/a", 0), _rail("$HOME", 1)))
    _, result = _written(tmp_path, seen, monkeypatch)
    assert result is not None
    assert "LD_PRELOAD" not in result
    assert not any("$" in value for value in result.values())


def _state(home: Path, *, number: int = 1, step: str = SERVING, missing: str = "") -> None:
    home.mkdir(exist_ok=True)
    rank_state = RankState(number, "a" * 12, step, 1.0, (missing,) if missing else ())
    (home / STATE).write_text(json.dumps(encode(rank_state)))


def _request(home: Path) -> SmokeRequest:
    return SmokeRequest(
        "chat", "sparkwright-chat.service", "127.0.0.1", 1, str(home / "secrets.env"), ("chat",),
        1, 1, follower=True,
    )  # fmt: skip


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> None:
    def unit(*_: object, **__: object) -> dict[str, str]:
        return {"ActiveState": "active"}

    monkeypatch.setattr(systemd, "unit", unit)


def test_a_serving_follower_is_healthy(tmp_path: Path, active: None) -> None:
    _state(tmp_path)
    answer = check.run(_request(tmp_path))
    (item,) = answer.checks
    assert (item.name, item.ok, item.detail) == ("rank", True, "rank 1 serves with its head")
    result = ranks.health(tmp_path)
    assert result is not None
    assert result.code == 200


@pytest.mark.parametrize("number", [0, 1])
def test_health_names_the_missing_ranks(tmp_path: Path, active: None, number: int) -> None:
    _state(tmp_path, number=number, step=WAITING, missing="rank 1 (spark-2) is not connected")
    result = ranks.health(tmp_path)
    assert result is not None
    assert (result.code, result.message) == (
        None, "it waits for the other ranks: rank 1 (spark-2) is not connected",
    )  # fmt: skip
    (item,) = check.run(_request(tmp_path)).checks
    assert not item.ok
    assert "rank 1 (spark-2) is not connected" in item.detail


def test_the_health_of_a_serving_head_comes_from_its_engine(tmp_path: Path) -> None:
    _state(tmp_path, number=0)
    assert ranks.health(tmp_path) is None
    assert ranks.health(tmp_path / "another") is None


def test_an_invalid_state_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / STATE).write_text('{"number": "x"')
    assert ranks.health(tmp_path) is None


def test_a_rank_that_ended_without_a_message_is_unhealthy(tmp_path: Path) -> None:
    """A rank's last record is no longer true after a kill or a power cut."""
    unit = Cluster(tmp_path).followers[0]
    home, config = unit.home, unit.config
    _state(home)
    ended(unit.service, config)
    assert ranks.missing(home) == "it waits for the other ranks: the rank's unit has ended"
    _state(home, step=WAITING, missing="the connection to the head ended")
    ended(unit.service, config)
    assert ranks.missing(home) == "it waits for the other ranks: the connection to the head ended"


def test_the_watch_sends_no_request_to_a_follower(tmp_path: Path, active: None) -> None:
    _state(tmp_path)
    seen = watch.service(WatchedService("chat", "127.0.0.1", 1, 600), tmp_path, {})
    assert (seen.health, seen.metrics) == (200, {})


def test_a_ranks_restarts_count_its_own_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank starts with every session of its cluster, and systemd counts the starts."""
    monkeypatch.setattr(systemd, "unit", lambda *_, **__: {"NRestarts": "7"})
    watched_service = WatchedService("chat", "127.0.0.1", 1, 600)
    assert watch.service(watched_service, tmp_path, {}).restarts == 7
    _state(tmp_path)
    assert watch.service(watched_service, tmp_path, {}).restarts == 0
    unit = Cluster(tmp_path / "other").followers[0]
    for _ in range(2):
        Rank(unit.service, unit.config, "", unit.service.release).failed(
            "its engine ended with code 1"
        )
    assert ranks.unit(unit.home, {"NRestarts": "7"}) == {"NRestarts": "2"}
    Rank(unit.service, unit.config, "", "b" * 12).say(SERVING)
    assert ranks.unit(unit.home, {"NRestarts": "7"}) == {"NRestarts": "0"}
