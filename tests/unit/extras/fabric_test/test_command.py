"""``sparkwright fabric test``: hosts that are joined by ConnectX-7, judged and measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import FabricLook
from sparkwright.extras.fabric_test.fabric_measure import MeasureAnswer, Measurement
from sparkwright.host.fabric import FabricState
from tests.unit.checks.fabric.states import pair
from tests.unit.cli.answering import Asked, answering
from tests.unit.cli.fleet_of_five import run
from tests.unit.cli.test_fabric import site as site

GATHERED = Measurement("all-gather", value=22.0, backend="nccl")


def _answering(
    monkeypatch: pytest.MonkeyPatch, states: dict[str, FabricState], gbits: float = 92.6
) -> list[Asked]:
    """Hosts that answer as these do, and are as fast; what they were asked."""
    tooled = {
        name: replace(one, tools=("ib_write_bw",) if one.rails else (), image="sha256:a")
        for name, one in states.items()
    }

    def answer(asked: Asked) -> dict[str, Any]:
        if asked.name == "fabric":
            return {name: FabricLook(state, "vllm:a") for name, state in tooled.items()}
        requests = {name: asked.arguments["requests"][name] for name in asked.hosts.limit}
        return {
            name: MeasureAnswer(
                (
                    *(Measurement("ping", one.device, one.address, one.size)
                      for one in request.pings),
                    *(Measurement("ib_write_bw", one.device, one.address, gbits)
                      for one in request.write),
                    *([GATHERED] if request.gather else []),
                )
            )
            for name, request in requests.items()
        }  # fmt: skip

    return answering(monkeypatch, answer)


def test_a_fabric_as_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _answering(monkeypatch, {**pair(), "spark-3": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == "spark-1, spark-2: pair, well"
    assert "92.6 Gb/s" in done.output
    assert "22.0 GB/s" in done.output
    # A host without a ConnectX measures nothing; pairs measure one after the other.
    assert [one.hosts.limit for one in asked] == [
        (), ("spark-1", "spark-2"), ("spark-1",), ("spark-2",), ("spark-1", "spark-2"),
    ]  # fmt: skip


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
    asked = _answering(monkeypatch, pair())
    done = run("fabric", "test", "--look")
    assert (done.exit_code, done.output) == (0, "spark-1, spark-2: pair, well\n")
    assert {one.hosts.limit for one in asked} == {()}


def test_hosts_without_a_connectx_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    _answering(monkeypatch, {"spark-1": FabricState()})
    done = run("fabric", "test")
    assert done.exit_code == 2
    assert "no host has a ConnectX" in done.output
