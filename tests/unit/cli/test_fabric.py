"""``sparkwright fabric``: output about hosts that are joined by ConnectX-7."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.fabric.groups import FabricLook, on_connectx
from tests.tables import Tables
from tests.unit.checks.fabric.states import pair
from tests.unit.checks.service.builders import spark
from tests.unit.cli.answering import Asked, answering
from tests.unit.cli.fleet_of_five import run

cases = Tables(__file__)


@pytest.fixture(autouse=True)
def site(here: Path) -> Path:
    (here / "inventory").mkdir()
    (here / "inventory/lab.py").write_text('sparks = ["spark-1", "spark-2", "spark-3"]\n')
    (here / "group_data").mkdir()
    return here


def test_the_doctor_judges_the_fabric_of_a_cluster(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = pair()
    states["spark-2"] = replace(states["spark-2"], cma_over=9 << 30)

    def answer(asked: Asked) -> dict[str, Any]:
        assert asked.options == {"planless": True}
        if asked.name == "facts":
            return {name: spark() for name in ("spark-1", "spark-2", "spark-3")}
        cluster = ("spark-1", "spark-2")
        return {name: FabricLook(states[name], cluster=cluster) for name in asked.hosts.limit}

    asked = answering(monkeypatch, answer)
    clusters = {"pair": {"hosts": ["spark-1", "spark-2"], "fabric": "cx7"}}
    assert run("doctor").exit_code == 0
    assert [item.name for item in asked] == ["facts"]
    (site / "group_data/all.py").write_text(f"clusters = {clusters!r}\n")
    done = run("doctor")
    assert done.exit_code == 1
    assert "spark-2: 1 error" in done.output
    assert "fabric-cma" in done.output
    assert (asked[-1].name, asked[-1].hosts.limit) == ("fabric", ("spark-1", "spark-2"))


@pytest.mark.parametrize("clusters", ["x", {"pair": 7}, {"pair": {"fabric": "cx7", "hosts": 7}}])
def test_invalid_clusters_do_not_stop_the_doctor(clusters: object) -> None:
    assert on_connectx({"spark-1": {"clusters": clusters}}) == ()


@cases("written", "message")
def test_fabric_addresses_without_hosts_are_refused(site: Path, written: str, message: str) -> None:
    (site / "group_data/all.py").write_text(written)
    done = run("fabric", "addresses")
    assert done.exit_code == 2
    assert done.output.count(message) == 1


def test_check_reports_a_host_with_other_addresses(site: Path) -> None:
    setting = 'fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}\n'
    (site / "group_data/all.py").write_text(f"services = {{}}\n{setting}")
    (site / "inventory/lab.py").write_text(
        'sparks = ["spark-1", ("spark-2", {"fabric_addresses": None})]\n'
    )
    for arguments in (("fabric", "addresses"), ("check",)):
        problem = "spark-1 names spark-2, which has a different fabric_addresses setting"
        assert problem in run(*arguments).output


def test_addresses_are_written_on_the_hosts_of_the_setting(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "group_data/all.py").write_text(
        'fabric_addresses = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}\n'
    )
    asked = answering(monkeypatch, lambda _: {})
    run("fabric", "addresses", "--dry", "--diff")
    ((name, hosts, options),) = [(item.name, item.hosts, item.options) for item in asked]
    assert (name, hosts.limit) == ("addresses", ("spark-1", "spark-2"))
    assert options == {"as_json": False, "dry": True, "diff": True}
