"""Every mistake in a cluster is reported at once, before any host is touched."""

from contextlib import chdir
from pathlib import Path
from typing import Any

from sparkwright.findings.user_error import UserError
from sparkwright.site.clusters import cluster_problems, left_out, unlike_releases
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.cli.answering import run
from tests.unit.clusters import fleets

cases = Tables(__file__)


def _message(hosts: dict[str, Any]) -> str:
    """Messages about a fleet with mistakes."""
    fleet = fleets.planned(hosts)
    result = [*fleet.problems, *cluster_problems(hosts)]
    return str(UserError(result)) if result else ""


def _both(**changes: Any) -> dict[str, Any]:
    return dict.fromkeys(fleets.names(2), fleets.data(**changes))


def _changed(
    of_cluster: dict[str, Any] | None = None, service: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Settings with changes of the cluster or of its service."""
    if of_cluster is not None:
        more["clusters"] = {"pair": fleets.cluster(**of_cluster)}
    if service is not None:
        more["services"] = {"chat": {**fleets.SERVICE, **service}}
    return more


def test_a_valid_cluster_has_no_finding() -> None:
    assert _message(_both()) == ""


@cases("changes", "message")
def test_a_mistake_is_reported_without_a_traceback(changes: dict[str, Any], message: str) -> None:
    hosts = _both(**_changed(**changes))
    assert message in _message(hosts)
    list(left_out(["spark-1"], hosts))


@cases("hosts", "arguments")
def test_mistakes_between_hosts_are_reported_at_once(
    hosts: dict[str, dict[str, Any]], arguments: list[str]
) -> None:
    message = _message(
        {name: fleets.data(**_changed(**changes)) for name, changes in hosts.items()}
    )
    assert [word for word in arguments if word not in message] == []


def test_a_run_has_all_hosts_of_a_cluster_or_no_host() -> None:
    hosts = {**_both(), "spark-9": fleets.data(services={})}
    (result,) = left_out(["spark-1", "spark-9"], hosts)
    assert "this run leaves out spark-2" in str(UserError([result]))
    assert list(left_out(["spark-9"], hosts)) == []
    assert list(left_out(hosts, hosts)) == []


@cases("changes")
def test_ranks_of_different_releases_are_refused(changes: dict[str, Any]) -> None:
    assert list(unlike_releases(fleets.pair())) == []
    hosts = fleets.desired(
        {"spark-1": fleets.data(), "spark-2": fleets.data(**_changed(**changes))}
    )
    (release,) = unlike_releases(hosts)
    assert "spark-2 would run a different release than spark-1" in str(UserError([release]))


def test_a_recipe_of_ranks_is_checked_with_a_host_for_each_rank(tmp_path: Path) -> None:
    fleets.of_ranks(tmp_path, tensor=4)
    text = (tmp_path / "many.yaml").read_text()
    (tmp_path / "catalog").mkdir()
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text('sparks = ["spark-1"]\n')
    (tmp_path / "group_data").mkdir()
    lab = str(ROOT / "lab/catalog")
    (tmp_path / "group_data/all.py").write_text(f"catalog_directories = [{lab!r}, 'catalog']\n")
    (tmp_path / "catalog/many.yaml").write_text(text)
    with chdir(tmp_path):
        result = run("check", "--recipe", "many")
    assert (result.exit_code, "0 errors" in result.output) == (0, True), result.output
