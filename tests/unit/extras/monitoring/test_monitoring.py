"""Targets, alert rules and dashboard: names of real servers' metrics, and alerts that fire."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.engines import engine
from sparkwright.extras.monitoring.prometheus import dashboard, files, renamed, rules
from sparkwright.findings import thresholds
from sparkwright.findings.check import shown
from tests.golden import compare
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, plan
from tests.unit.cli.answering import exits

cases = Tables(__file__)

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian: prometheus)")


def written(folder: Path, **data: Any) -> dict[str, str]:
    """Every file of a Spark's monitoring, also written below a directory."""
    result = files([("10.0.0.5", plan(**data))], 9100)
    for path, text in result.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return result


def queries() -> Iterator[str]:
    """Every PromQL expression of rules and dashboard, with values for Grafana's variables."""
    yield from (rule["expr"] for rule in rules()["groups"][0]["rules"])
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m")
            yield text.replace("$host", ".*").replace("$service", ".*")


def promtool(*arguments: str, cwd: Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *arguments], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_every_metric_name_exists_on_a_real_server(version: str) -> None:
    real = (ROOT / f"tests/fixtures/vllm/{version}/metric_names.txt").read_text().split()
    used = {name for query in queries() for name in re.findall(r"vllm:\w+", query)}
    assert len(used) > 15
    assert used <= set(real)


def test_alerts_equal_the_doctors_diagnoses() -> None:
    for rule in rules()["groups"][0]["rules"]:
        check = CHECKS.texts[rule["labels"]["diagnosis"]]
        assert shown(check.reason) in rule["annotations"]["description"]
        assert rule["annotations"]["source"] == check.source
        assert "UNIT" not in rule["annotations"]["description"]
        assert not re.search(r"\{\{(?! \$labels)", rule["annotations"]["description"])


@cases("case", "data")
def test_services_are_scraped_with_the_key_or_by_their_own_host(
    case: str, data: dict[str, Any]
) -> None:
    """Prometheus scrapes by https with TLS; a service that listens only on its host is scraped on
    the host.
    """
    result = files([("fd00::5", plan(**data))], 9200)
    own = sorted(path for path in result if path.startswith(("prometheus.yml", "targets/")))
    text = "".join(f"# {path}\n{result[path]}\n" for path in own)
    compare(f"monitoring/{case}.txt", text)


def test_a_service_without_a_proxy_is_scraped_in_clear() -> None:
    service = {**SPARK["qwen36"], "proxy": False, "bind": "0.0.0.0"}
    result = files([("10.0.0.5", plan({"qwen36": service}, tls="own"))], 9100)
    assert "__scheme__" not in result["targets/services.json"]


@pytest.mark.parametrize("bind", ["*", "127.0.0.1"])
def test_an_address_for_all_models_is_scraped(bind: str) -> None:
    address = {"port": 8443, "bind": bind}
    result = files([("10.0.0.5", plan(address=address, tls="own"))], 9100)
    path, host = "targets/services.json", "10.0.0.5"
    if bind != "*":
        path, host = "targets/local/spark-1.json", bind
    labels = {"host": "spark-1", "service": "address", "__scheme__": "https"}
    assert {"targets": [f"{host}:8443"], "labels": labels} in json.loads(result[path])
    others = [text for name, text in result.items() if name != path]
    assert not any(":8443" in text for text in others)


def test_panels_of_the_dashboard_have_their_own_ids_and_do_not_overlap() -> None:
    board = dashboard()
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert names == {"datasource", "host", "service"}
    cells = [
        (position["x"] + x, position["y"] + y)
        for position in (panel["gridPos"] for panel in panels)
        for x, y in product(range(position["w"]), range(position["h"]))
    ]
    assert max(x for x, _ in cells) < 24
    assert len(cells) == len(set(cells))
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert [t["refId"] for t in panel["targets"]] == ["A", "B"][: len(panel["targets"])]


def test_the_command_writes_the_monitoring_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    inventory = str(ROOT / "inventory/lab.py")
    done = exits(0, "monitoring", inventory, "--output", str(out))
    assert done.stdout == f"5 files for 3 hosts in {out}\n"
    assert f"the fleet's API key beside prometheus.yml, in {out}/api_key" in done.stderr
    assert safe_load((out / "prometheus.yml").read_text())["rule_files"]
    taken = tmp_path / "taken"
    taken.write_text("")
    done = exits(2, "monitoring", inventory, "--output", str(taken / "x"))
    assert f"{taken}" in done.output
    assert "can't be written or read" in done.output


@needs_promtool
def test_prometheus_accepts_the_files(tmp_path: Path) -> None:
    (tmp_path / "api_key").write_text("sk-0")
    written(tmp_path)
    checked = promtool("check", "config", "prometheus.yml", cwd=tmp_path)
    assert "is valid prometheus config" in checked
    recorded = [{"record": f"r{index}", "expr": query} for index, query in enumerate(queries())]
    text = yaml.safe_dump({"groups": [{"name": "all", "rules": recorded}]})
    (tmp_path / "queries.yml").write_text(text)
    assert f"{len(recorded)} rules found" in promtool("check", "rules", "queries.yml", cwd=tmp_path)


#: Series of a healthy service, and the changes of each fault.
SERIES = safe_load(Path(__file__).with_name("series.yaml").read_text())


def _series(host: str, changes: dict[str, str]) -> list[dict[str, str]]:
    result = dict(SERIES["well"])
    for begin, values in changes.items():
        names = [name for name in SERIES["well"] if name.startswith(begin)] or [begin]
        result.update(dict.fromkeys(names, values))
    return [
        {"series": name.replace("spark-1", host), "values": values}
        for name, values in result.items()
    ]


def test_every_alert_has_a_test() -> None:
    diagnoses = {rule["labels"]["diagnosis"] for rule in rules()["groups"][0]["rules"]}
    assert diagnoses == set(SERIES["ill"])


@needs_promtool
def test_alerts_fire_only_for_their_fault(tmp_path: Path) -> None:
    """The series belong to a host for each fault, with the fault's name, and to a healthy host."""
    written(tmp_path)
    hosts = {"well": {}, **SERIES["ill"]}
    document = SERIES["test"]
    (test,) = document["tests"]
    test["input_series"] = [item for name in hosts for item in _series(name, hosts[name])]
    test["promql_expr_test"][0]["exp_samples"] = [
        {"labels": f'{{host="{name}",diagnosis="{name}"}}', "value": 1} for name in SERIES["ill"]
    ]
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    assert "SUCCESS" in promtool("test", "rules", "tests.yml", cwd=tmp_path)


@cases("changes", "message")
def test_a_changed_threshold_changes_the_alerts(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float], message: str
) -> None:
    assert message not in json.dumps(rules())
    changed = thresholds.limits() | changes
    monkeypatch.setattr(thresholds, "limits", lambda: changed)
    assert message in json.dumps(rules())


def test_metrics_of_other_engines_get_the_names_in_the_alerts() -> None:
    names = renamed()
    assert names["llamacpp:tokens_predicted_total"] == "vllm:generation_tokens_total"
    own = {*engine("vllm").metrics.values(), *engine("vllm").graphs.values()}
    assert set(names.values()) - own == {"vllm:time_to_first_token_seconds"}
    scraped = yaml.safe_load(files([], 9100)["prometheus.yml"])["scrape_configs"][0]
    rows = scraped["metric_relabel_configs"]
    (row,) = [row for row in rows if row["regex"].startswith("llamacpp:requests_deferred")]
    assert row["replacement"] == "vllm:num_requests_waiting${1}"
    # Buckets of a histogram, from which the dashboard makes quantiles.
    bucket = "sglang:time_to_first_token_seconds_bucket"
    (row,) = [row for row in rows if re.fullmatch(row["regex"], bucket)]
    assert row["replacement"] == "vllm:time_to_first_token_seconds${1}"
