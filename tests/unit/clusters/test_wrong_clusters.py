"""Every mistake in a cluster is told at once, before any host is touched."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from sparkwright.cli import main
from sparkwright.findings.user_error import UserError
from sparkwright.site.clusters import cluster_problems, left_out, unlike_releases
from tests.tables import table
from tests.unit.builders import ROOT
from tests.unit.clusters.fleets import (
    SERVICE,
    cluster,
    data,
    desired,
    names,
    of_ranks,
    pair,
    planned,
)


def _told(hosts: dict[str, Any]) -> str:
    """What is said of a fleet that is not right."""
    fleet = planned(hosts)
    found = [*fleet.problems, *cluster_problems(hosts)]
    return str(UserError(found)) if found else ""


def _both(**changes: Any) -> dict[str, Any]:
    return dict.fromkeys(names(2), data(**changes))


def _changed(
    of_cluster: dict[str, Any] | None = None, service: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Settings with changes of the cluster or of its service."""
    if of_cluster is not None:
        more["clusters"] = {"pair": cluster(**of_cluster)}
    if service is not None:
        more["services"] = {"chat": {**SERVICE, **service}}
    return more


def test_a_of_clusterthat_is_right_says_nothing() -> None:
    assert _told(_both()) == ""


@table
def test_a_mistake_is_told_without_a_traceback(changes: dict[str, Any], words: str) -> None:
    hosts = _both(**_changed(**changes))
    assert words in _told(hosts)
    list(left_out(["spark-1"], hosts))


def test_ranks_are_as_many_as_hosts() -> None:
    said = _told(dict.fromkeys(names(3), data(3)))
    assert "is for 2 ranks (tensor 2 x pipeline 1), and the cluster has 3 hosts" in said


def test_all_mistakes_are_told_at_once() -> None:
    hosts = {**_both(clusters={"pair": cluster(3)}), "spark-9": data()}
    said = _told(hosts)
    for words in ("no such host: 'spark-3'", "the cluster has 3 hosts", "spark-9 is not in"):
        assert words in said


def test_every_host_of_a_of_clusterhas_its_service() -> None:
    said = _told({"spark-1": data(), "spark-2": data(services={})})
    assert "spark-2 is in cluster 'pair' and does not have its service 'chat'" in said


def test_hosts_do_not_differ_in_a_cluster() -> None:
    said = _told({"spark-1": data(), "spark-2": data(clusters={"pair": cluster(port=29601)})})
    assert "has another cluster 'pair' than" in said


def test_two_clusters_of_a_host_do_not_share_a_port() -> None:
    said = _told(
        _both(
            clusters={"pair": cluster(), "too": cluster(port=29502)},
            services={"chat": SERVICE, "more": {**SERVICE, "cluster": "too", "port": 8020,
                                                 "served_names": ("more",)}},
        )
    )  # fmt: skip
    assert "port 29502, of the ranks of 'more', is taken by 'chat'" in said


def test_a_run_has_all_of_a_of_clusteror_none() -> None:
    hosts = {**_both(), "spark-9": data(services={})}
    (found,) = left_out(["spark-1", "spark-9"], hosts)
    assert "this run leaves out spark-2" in str(UserError([found]))
    assert list(left_out(["spark-9"], hosts)) == []
    assert list(left_out(hosts, hosts)) == []


@table
def test_ranks_of_different_releases_are_refused(changes: dict[str, Any]) -> None:
    assert list(unlike_releases(pair())) == []
    hosts = desired({"spark-1": data(), "spark-2": data(**_changed(**changes))})
    (found,) = unlike_releases(hosts)
    assert "spark-2 would run another release than spark-1" in str(UserError([found]))


def test_a_recipe_of_ranks_is_checked_with_as_many_hosts(tmp_path: Path) -> None:
    of_ranks(tmp_path, tensor=4)
    text = (tmp_path / "many.yaml").read_text()
    (tmp_path / "catalog").mkdir()
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text('sparks = ["spark-1"]\n')
    (tmp_path / "group_data").mkdir()
    lab = str(ROOT / "lab/catalog")
    (tmp_path / "group_data/all.py").write_text(f"catalog_directories = [{lab!r}, 'catalog']\n")
    (tmp_path / "catalog/many.yaml").write_text(text)
    with chdir(tmp_path):
        result = CliRunner().invoke(main, ["check", "--recipe", "many"])
    assert (result.exit_code, "0 errors" in result.output) == (0, True), result.output
