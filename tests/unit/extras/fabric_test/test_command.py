"""``sparkwright fabric test``: hosts that are joined by ConnectX-7, judged and measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.extras.fabric_test import command as fabric_command
from sparkwright.host.fabric import FabricState
from sparkwright.host.fabric_measure import Gathered, MeasureAnswer, Pinged, Plan, Written
from sparkwright.host.lib.records import decode, encode
from tests.unit.checks.fabric.states import pair
from tests.unit.cli.fleet_of_five import run

_SITE = 'sparks = ["spark-1", "spark-2", "spark-3"]\n'


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text(_SITE)
    (tmp_path / "group_data").mkdir()
    return tmp_path


def _answering(
    monkeypatch: pytest.MonkeyPatch, states: dict[str, FabricState], gbits: float = 92.6
) -> list[tuple[str, ...]]:
    """Hosts that answer as these do, and are as fast; the limits they were asked with."""
    limits = []
    tooled = {
        name: replace(one, tools=("ib_write_bw",) if one.rails else (), image="sha256:a")
        for name, one in states.items()
    }

    def ask(
        _: object, limit: tuple[str, ...], __: object, operation: str, **arguments: Any
    ) -> tuple[dict[str, Any], list[str]]:
        limits.append(limit)
        if operation == "roles.fabric.looked":
            return {
                name: {"state": encode(one), "image": "vllm:a", "addresses": None, "cluster": None}
                for name, one in tooled.items()
            }, []
        planned = decode(Plan, json.loads(arguments["plan"]))
        return {
            name: encode(MeasureAnswer(
                tuple(Pinged(one.address, one.device, one.size) for one in planned.pings[name]),
                tuple(Written(one.device, one.address, gbits) for each in planned.pairs
                      if each.client == name for one in each.write),
                Gathered(22.0, "nccl"),
            ))
            for name in limit
        }, []  # fmt: skip

    monkeypatch.setattr(fabric_command, "ask_hosts", ask)
    return limits


def test_a_fabric_as_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = _answering(monkeypatch, {**pair(), "spark-3": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "spark-1, spark-2: pair, well"
    assert "92.6 Gb/s" in done.output
    assert "22.0 GB/s" in done.output
    assert limits == [(), ("spark-1", "spark-2")]  # a host without a ConnectX measures nothing


def test_faults_and_slow_links_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    states = pair()
    states["spark-2"] = replace(states["spark-2"], cma_total=0)
    _answering(monkeypatch, states, gbits=46.1)
    done = run("fabric", "test")
    assert done.exit_code == 1
    assert "pair, not well" in done.output
    assert "error: fabric-cma: spark-2" in done.output
    assert done.output.count("failed") == 2  # one twin, the other


def test_only_looking_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = _answering(monkeypatch, pair())
    done = run("fabric", "test", "--look")
    assert (done.exit_code, done.output) == (0, "spark-1, spark-2: pair, well\n")
    assert len(limits) == 1


def test_hosts_without_a_connectx_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    _answering(monkeypatch, {"spark-1": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 2
    assert "no host has a ConnectX" in done.output
