"""The Grafana dashboard: load, drafting and hosts of a fleet."""

from __future__ import annotations

from typing import Any

import yaml

from sparkwright.config.templates import template
from sparkwright.engines import DEFAULT, engine

_WIDTH, _HEIGHT = 24, 8


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
