"""Targets, alert rules and dashboard: names that real servers have, and alerts that do fire."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.cli import main
from sparkwright.extras.monitoring.alerts import rules
from sparkwright.extras.monitoring.dashboard import dashboard
from sparkwright.extras.monitoring.files import files
from sparkwright.extras.monitoring.targets import Scraped
from sparkwright.host.watch import thresholds
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, SPARK, plan

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool (Debian: prometheus)")


def written(place: Path, **data: Any) -> dict[str, str]:
    """Every file of a Spark's monitoring, put below a directory too."""
    found = files([Scraped(plan(**data), "10.0.0.5")], 9100)
    for path, text in found.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return found


def queries() -> Iterator[str]:
    """Every PromQL expression of rules and dashboard, with values for Grafana's variables."""
    yield from (rule["expr"] for rule in rules()["groups"][0]["rules"])
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m")
            yield text.replace("$host", ".*").replace("$service", ".*")


def promtool(*words: str, cwd: Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *words], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_every_name_is_one_that_a_real_server_has(version: str) -> None:
    real = (ROOT / f"tests/fixtures/vllm/{version}/metric_names.txt").read_text().split()
    used = {name for query in queries() for name in re.findall(r"vllm:\w+", query)}
    assert len(used) > 15
    assert used <= set(real)


def test_alerts_are_the_doctors_diagnoses() -> None:
    for rule in rules()["groups"][0]["rules"]:
        check = CHECKS.texts[rule["labels"]["diagnosis"]]
        assert check.reason in rule["annotations"]["description"]
        assert rule["annotations"]["source"] == check.source
        assert "UNIT" not in rule["annotations"]["description"]


def test_targets_say_what_they_are(tmp_path: Path) -> None:
    (vllm,) = json.loads(written(tmp_path)["targets/vllm.json"])
    assert vllm["targets"] == ["10.0.0.5:8000"]
    assert vllm["labels"] == {
        "host": "spark-1", "service": "qwen36", "recipe": "qwen36-35b-a3b-heretic-dflash",
        "tag": "2026-07-01-v0.24.0",
    }  # fmt: skip
    (node,) = json.loads(files([Scraped(plan(), "fd00::5")], 9200)["targets/node.json"])
    assert node == {"targets": ["[fd00::5]:9200"], "labels": {"host": "spark-1"}}


def test_what_is_behind_a_proxy_is_scraped_with_the_key(tmp_path: Path) -> None:
    found = written(tmp_path)
    (vllm,) = json.loads(found["targets/vllm.json"])
    assert vllm["targets"] == ["10.0.0.5:8000"]
    assert "targets/local/spark-1.json" not in found
    jobs = {job["job_name"]: job for job in safe_load(found["prometheus.yml"])["scrape_configs"]}
    assert jobs["vllm"]["authorization"] == {"credentials_file": "api_key"}
    assert "authorization" not in jobs["node"]


def test_with_tls_it_is_scraped_by_https(tmp_path: Path) -> None:
    found = written(tmp_path, tls="own")
    (vllm,) = json.loads(found["targets/vllm.json"])
    assert vllm["labels"]["__scheme__"] == "https"
    (job, _) = safe_load(found["prometheus.yml"])["scrape_configs"]
    assert job["tls_config"] == {"ca_file": "ca.crt"}


def test_what_only_its_own_host_reaches_is_scraped_there(tmp_path: Path) -> None:
    for service, target in (
        ({"proxy": False}, "127.0.0.1:8000"),
        ({"bind": "127.0.0.1"}, "127.0.0.1:18000"),
    ):
        found = written(tmp_path, services={"qwen36": {**SPARK["qwen36"], **service}})
        assert json.loads(found["targets/vllm.json"]) == []
        (local,) = json.loads(found["targets/local/spark-1.json"])
        assert local["targets"] == [target]


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = dashboard()
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert names == {"datasource", "host", "service"}
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert [t["refId"] for t in panel["targets"]] == ["A", "B"][: len(panel["targets"])]


def test_the_command_writes_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    inventory = str(ROOT / "inventory/lab.py")
    done = CliRunner().invoke(main, ["monitoring", inventory, "--output", str(out)])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"5 files for 3 hosts in {out}\n"
    assert f"the fleet's API key beside prometheus.yml, in {out}/api_key" in done.stderr
    assert safe_load((out / "prometheus.yml").read_text())["rule_files"]
    taken = tmp_path / "taken"
    taken.write_text("")
    done = CliRunner().invoke(main, ["monitoring", inventory, "--output", str(taken / "x")])
    assert done.exit_code == 2
    assert "name a directory to write to" in done.output


@needs_promtool
def test_prometheus_takes_the_files(tmp_path: Path) -> None:
    (tmp_path / "api_key").write_text("sk-0")
    written(tmp_path)
    assert "is valid prometheus config" in promtool(
        "check", "config", "prometheus.yml", cwd=tmp_path
    )
    recorded = [{"record": f"r{index}", "expr": query} for index, query in enumerate(queries())]
    text = yaml.safe_dump({"groups": [{"name": "all", "rules": recorded}]})
    (tmp_path / "queries.yml").write_text(text)
    assert f"{len(recorded)} rules found" in promtool("check", "rules", "queries.yml", cwd=tmp_path)


_LABELS = 'host="spark-1",service="qwen36"'
#: Eight hours of a service that is well, a value a minute, in promtool's notation.
WELL = {
    f"vllm:num_requests_running{{{_LABELS}}}": "2x480",
    f"vllm:num_requests_waiting{{{_LABELS}}}": "0x480",
    f"vllm:generation_tokens_total{{{_LABELS}}}": "0+3000x480",
    f"vllm:prompt_tokens_total{{{_LABELS}}}": "0+9000x480",
    f"vllm:iteration_tokens_total_count{{{_LABELS}}}": "0+600x480",
    f"vllm:spec_decode_num_draft_tokens_total{{{_LABELS}}}": "0+6000x480",
    f"vllm:spec_decode_num_accepted_tokens_total{{{_LABELS}}}": "0+2400x480",
    f"vllm:kv_cache_usage_perc{{{_LABELS}}}": "0.4x480",
    f"vllm:num_preemptions_total{{{_LABELS}}}": "0x480",
    f"vllm:time_to_first_token_seconds_sum{{{_LABELS}}}": "0+4x480",
    f"vllm:time_to_first_token_seconds_count{{{_LABELS}}}": "0+10x480",
    f'vllm:request_success_total{{{_LABELS},finished_reason="stop"}}': "0+10x480",
    f'vllm:request_success_total{{{_LABELS},finished_reason="length"}}': "0+1x480",
    f'vllm:request_success_total{{{_LABELS},finished_reason="abort"}}': "0+1x480",
    f'up{{job="vllm",{_LABELS}}}': "1x480",
    f'process_start_time_seconds{{job="vllm",{_LABELS}}}': "1000x480",
    'node_systemd_unit_state{host="spark-1",name="sparkwright-qwen36.service",state="failed"}':
        "0x480",
    'node_filesystem_avail_bytes{host="spark-1",mountpoint="/",fstype="ext4"}': "500e9x480",
    'node_filesystem_size_bytes{host="spark-1",mountpoint="/",fstype="ext4"}': "1000e9x480",
    'node_pressure_memory_waiting_seconds_total{host="spark-1"}': "0+0.5x480",
    'node_memory_MemAvailable_bytes{host="spark-1"}': "18e9x480",
    'node_vmstat_oom_kill{host="spark-1"}': "0x480",
    'sparkwright_watch_seconds{host="spark-1"}': "0+60x480",
}  # fmt: skip
#: What is changed of it: by the beginning of a series' name, or a series more.
ILL: dict[str, dict[str, str]] = {
    "wedge": {
        "vllm:generation_tokens": "0+3000x450 1350000x30", "vllm:prompt_tokens": "9000x480",
        "vllm:iteration_tokens": "0+600x450 270000x30",
    },
    "acceptance-collapse": {"vllm:spec_decode_num_accepted": "0+2400x400 960000+10x80"},
    "acceptance-decays": {"vllm:spec_decode_num_accepted": "0+2400x420 1008000+300x60"},
    "kv-cache-full": {"vllm:kv_cache": "0.4x400 1x80"},
    "preemptions": {"vllm:num_preemptions": "0x400 0+3x80"},
    "queue-saturated": {
        "vllm:num_requests_waiting": "9x480", "vllm:time_to_first_token_seconds_sum": "0+120x480",
    },
    "answers-cut": {f'vllm:request_success_total{{{_LABELS},finished_reason="length': "0+30x480"},
    "clients-give-up": {f'vllm:request_success_total{{{_LABELS},finished_reason="abort': "0+9x480"},
    "not-serving": {"up": "1x400 0x80"},
    "restarts": {"process_start": "1000x440 2000x10 3000x30"},
    "given-up": {"node_systemd": "0x400 1x80"},
    "disk-full": {"node_filesystem_avail": "9e9x480"},
    "disk-fills": {"node_filesystem_avail": "500e9-200e6x480"},
    "memory-pressure": {"node_pressure": "0+12x480"},
    "memory-scarce": {"node_memory": "2e9x480"},
    "oom-killer": {"node_vmstat": "0x460 1x20"},
    "watch-asleep": {"sparkwright_watch": "0+60x440 26400x40"},
    **{
        name: {f'sparkwright_finding{{host="spark-1",diagnosis="{name}"}}': "1x480"}
        for name in ("drift", "gpu-heat", "gpu-power-brake", "gb10-low-power", "gpu-silent")
    },
}  # fmt: skip


def _series(host: str, changes: dict[str, str]) -> list[dict[str, str]]:
    found = dict(WELL)
    for begin, values in changes.items():
        names = [name for name in WELL if name.startswith(begin)] or [begin]
        found.update(dict.fromkeys(names, values))
    return [
        {"series": name.replace("spark-1", host), "values": values}
        for name, values in found.items()
    ]


def test_every_alert_is_provoked_here() -> None:
    diagnoses = {rule["labels"]["diagnosis"] for rule in rules()["groups"][0]["rules"]}
    assert diagnoses == set(ILL)


@needs_promtool
def test_alerts_fire_for_their_illness_and_no_other(tmp_path: Path) -> None:
    """One host for each illness, named after it, and one that is well."""
    written(tmp_path)
    test = {
        "interval": "1m",
        "input_series": [
            one for name, changes in {"well": {}, **ILL}.items() for one in _series(name, changes)
        ],
        "promql_expr_test": [
            {
                "expr": 'group by (host, diagnosis) (ALERTS{alertstate="firing"})',
                "eval_time": "479m",
                "exp_samples": [
                    {"labels": f'{{host="{name}",diagnosis="{name}"}}', "value": 1} for name in ILL
                ],
            }
        ],
    }
    document = {"rule_files": ["rules/sparkwright.yml"], "evaluation_interval": "5m"}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({**document, "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", "tests.yml", cwd=tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"collapsed": 0.5}, "< 0.5 and"),
        ({"cache_full": 0.35}, ">= 0.35"),
        ({"disk_least": 0.5}, "< 0.5"),
        ({"drafted": 400_000, "collapsed": 0.5}, "> 400000"),
    ],
)
def test_a_changed_threshold_changes_the_alerts(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float], words: str
) -> None:
    assert words not in json.dumps(rules())
    changed = replace(thresholds.THRESHOLDS, **changes)  # type: ignore[arg-type]
    monkeypatch.setattr(thresholds, "THRESHOLDS", changed)
    assert words in json.dumps(rules())
