"""Files for Prometheus and Grafana: targets, alert rules and a dashboard."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.config.settings import is_loopback
from sparkwright.config.templates import template
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.engines import DEFAULT, engine
from sparkwright.findings import thresholds
from sparkwright.findings.check import shown
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import own_address

#: Beside prometheus.yml, the fleet's API key: proxies ask for it. The user puts it there.
KEY = "api_key"
#: Beside it with TLS, the CA's certificate (`sparkwright ca`).
CA = "ca.crt"
_SUBJECT = "{{ $labels.host }}{{ if $labels.service }}: {{ $labels.service }}{{ end }}"
#: Of a dashboard's row, and of a panel's height, in cells.
_WIDTH, _HEIGHT = 24, 8
_HEAD = "# Written by `sparkwright monitoring`. Changes made here are overwritten.\n"


def files(plans: Sequence[tuple[str, HostPlan]], node_port: int) -> dict[str, str]:
    """Text of every file by its path below the output directory.

    Args:
        plans: address and plan of each host.
        node_port: where node_exporter listens on every host.
    """
    ca = CA if any(clients_ca(plan.settings) for _, plan in plans) else None
    rule_file = yaml.safe_dump(rules(), sort_keys=False, width=100, allow_unicode=True)
    nodes = [_target(address, node_port, host=plan.host) for address, plan in plans]
    local = {plan.host: _services(plan) for _, plan in plans}
    published = [target for address, plan in plans for target in _services(plan, address)]
    data = {
        "targets/vllm.json": published,
        "targets/node.json": nodes,
        "grafana/sparkwright.json": dashboard(),
        **{f"targets/local/{host}.json": targets for host, targets in local.items() if targets},
    }
    return {
        "prometheus.yml": template("monitoring/prometheus.yml.j2").render(key=KEY, ca=ca),
        "rules/sparkwright.yml": f"{_HEAD}{rule_file}",
        **{path: json.dumps(document, indent=1) + "\n" for path, document in data.items()},
    }


def _services(plan: HostPlan, address: str | None = None) -> list[dict[str, Any]]:
    """Targets that other machines reach at an address, behind a proxy with the key; or without one
    those that only their own host reaches, as an agent on it scrapes them."""
    targets = []
    for service in plan.services:
        if not service.follower and is_loopback(service.client_bind) is (address is None):
            labels = _labels(plan, service)
            if address is None:
                targets.append(_target(own_address(service), service.port, **labels))
                continue
            if scheme(plan.settings, proxied=service.proxy is not None) == "https":
                labels["__scheme__"] = "https"
            targets.append(_target(address, service.client_port, **labels))
    return targets


def _target(address: str, port: int, **labels: str) -> dict[str, Any]:
    at = f"[{address}]" if ":" in address else address
    return {"targets": [f"{at}:{port}"], "labels": labels}


def _labels(plan: HostPlan, service: ServicePlan) -> dict[str, str]:
    group = {"exclusive": service.exclusive} if service.exclusive else {}
    return {
        **group, "host": plan.host, "service": service.name, "recipe": service.recipe,
        "tag": service.image.tag,
    }  # fmt: skip


def rules() -> dict[str, Any]:
    """The rule file, as data."""
    text = template("monitoring/alerts.yaml.j2").render(
        limits=thresholds.THRESHOLDS, m=engine(DEFAULT).metrics
    )
    return {"groups": [{"name": "sparkwright", "rules": list(map(_rule, yaml.safe_load(text)))}]}


def _rule(alert: dict[str, str]) -> dict[str, Any]:
    check = CHECKS.texts[alert["id"]]
    remedy = shown(check.remedy).replace("UNIT", "sparkwright-{{ $labels.service }}")
    return {
        "alert": "Sparkwright" + "".join(word.title() for word in check.id.split("-")),
        "expr": alert["expr"],
        "for": alert["for"],
        "labels": {
            "severity": alert.get("severity", str(check.severity)),
            "diagnosis": check.id,
        },
        "annotations": {
            "summary": f"{_SUBJECT}: {alert['summary']}",
            "description": f"{shown(check.reason)}. {remedy}",
            "source": check.source,
        },
    }


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    served = engine(DEFAULT)
    text = template("monitoring/dashboard.yaml.j2").render(m=served.metrics, graphs=served.graphs)
    data = yaml.safe_load(text)
    panels: list[dict[str, Any]] = []
    for number, (title, row) in enumerate(data["rows"].items()):
        top, width = number * (_HEIGHT + 1), _WIDTH // len(row)
        position = {"h": 1, "w": _WIDTH, "x": 0, "y": top}
        panels.append({"type": "row", "title": title, "gridPos": position, "collapsed": False,
                       "panels": []})  # fmt: skip
        for column, panel in enumerate(row):
            position = {"h": _HEIGHT, "w": width, "x": width * column, "y": top + 1}
            panels.append({"gridPos": position, **_panel(panel, data["source"])})
    numbered = [{"id": number, **panel} for number, panel in enumerate(panels, 1)]
    return {**data["dashboard"], "panels": numbered}


def _panel(panel: dict[str, Any], source: dict[str, str]) -> dict[str, Any]:
    kind = panel.get("type", "timeseries")
    common = {"datasource": source, "instant": kind != "timeseries"}
    common |= {"format": "table"} if kind == "table" else {}
    axis = {"max": panel["max"]} if "max" in panel else {}
    return {
        "type": kind,
        "title": panel["title"],
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0, **axis}, "overrides": []},
        "targets": [
            {"refId": reference, **query, **common}
            for reference, query in zip("ABCDEF", panel["queries"], strict=False)
        ],
    }
