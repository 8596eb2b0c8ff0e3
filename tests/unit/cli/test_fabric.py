"""``sparkwright fabric``: what is said of hosts that are joined by ConnectX-7."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import on_connectx
from sparkwright.cli import doctor as doctor_command
from sparkwright.cli import fabric as fabric_command
from sparkwright.extras.fabric_test.measure import Plan
from sparkwright.host.fabric import FabricState
from sparkwright.host.fabric_measure import Gathered, MeasureAnswer, Pinged, Written
from sparkwright.host.lib.records import decode, encode
from tests.unit.checks.fabric.states import pair
from tests.unit.checks.service.builders import spark
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


def test_the_doctor_judges_the_fabric_of_a_cluster(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    states = pair()
    states["spark-2"] = replace(states["spark-2"], cma_total=0)

    def ask(
        _: object, limit: tuple[str, ...], __: object, operation: str, *, planless: bool
    ) -> tuple[dict[str, Any], list[str]]:
        asked.append((operation, limit))
        assert planless
        if operation == "roles.doctor.doctor":
            return {name: encode(spark()) for name in ("spark-1", "spark-2", "spark-3")}, []
        answer = {"image": None, "addresses": None, "cluster": ["spark-1", "spark-2"]}
        return {name: {**answer, "state": encode(states[name])} for name in limit}, []

    monkeypatch.setattr(doctor_command, "ask_hosts", ask)
    clusters = {"pair": {"hosts": ["spark-1", "spark-2"], "fabric": "cx7"}}
    assert run("doctor").exit_code == 0
    assert [operation for operation, _ in asked] == ["roles.doctor.doctor"]
    (site / "group_data/all.py").write_text(f"clusters = {clusters!r}\n")
    done = run("doctor")
    assert done.exit_code == 1
    assert "spark-2: 1 error" in done.output
    assert "fabric-cma" in done.output
    assert asked[-1] == ("roles.fabric.looked", ("spark-1", "spark-2"))


@pytest.mark.parametrize("clusters", ["x", {"pair": 7}, {"pair": {"fabric": "cx7", "hosts": 7}}])
def test_clusters_that_are_none_do_not_stop_the_doctor(clusters: object) -> None:
    assert on_connectx({"spark-1": {"clusters": clusters}}) == ()


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


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "no host's settings name hosts there"),
        ('fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "sprak-2"]}\n',
         "no such host: 'sprak-2'"),
    ],
)  # fmt: skip
def test_addresses_of_nobody(site: Path, written: str, said: str) -> None:
    (site / "group_data/all.py").write_text(written)
    done = run("fabric", "addresses")
    assert done.exit_code == 2
    assert done.output.count(said) == 1


def test_a_host_that_says_something_else_is_told_by_check_too(site: Path) -> None:
    setting = 'fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}\n'
    (site / "group_data/all.py").write_text(f"services = {{}}\n{setting}")
    (site / "inventory/lab.py").write_text(
        'sparks = ["spark-1", ("spark-2", {"fabric_addresses": None})]\n'
    )
    for words in (("fabric", "addresses"), ("check",)):
        done = run(*words)
        assert "spark-2 has other addresses than spark-1, or none" in done.output


def test_addresses_are_pyinfras(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "group_data/all.py").write_text(
        'fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}\n'
    )
    called: list[Sequence[str]] = []
    monkeypatch.setattr(fabric_command, "become", called.append)
    run("fabric", "addresses", "--dry", "--diff")
    (words,) = called
    assert words[1:3] == ["--diff", "--dry"]
    assert [words[at + 1] for at, one in enumerate(words) if one == "--limit"] == [
        "spark-1", "spark-2"
    ]  # fmt: skip
    assert words[-1] == "roles.fabric.addresses"
