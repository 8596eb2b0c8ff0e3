"""``sparkwright fabric``: what is said of hosts that are joined by ConnectX-7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import on_connectx
from sparkwright.cli import doctor as doctor_command
from sparkwright.cli import fabric as fabric_command
from sparkwright.host.lib.records import encode
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
