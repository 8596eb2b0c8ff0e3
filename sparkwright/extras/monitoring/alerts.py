"""Alert rules: the diagnoses that metrics can show, under the doctor's names."""

from __future__ import annotations

from typing import Any

import yaml

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.config.templates import template
from sparkwright.engines import DEFAULT, engine
from sparkwright.host.watch import thresholds

_SUBJECT = "{{ $labels.host }}{{ if $labels.service }}: {{ $labels.service }}{{ end }}"


def rules() -> dict[str, Any]:
    """The rule file, as data."""
    text = template("monitoring/alerts.yaml.j2").render(
        limits=thresholds.THRESHOLDS, m=engine(DEFAULT).metrics
    )
    return {"groups": [{"name": "sparkwright", "rules": list(map(_rule, yaml.safe_load(text)))}]}


def _rule(alert: dict[str, str]) -> dict[str, Any]:
    check = CHECKS.texts[alert["id"]]
    remedy = check.remedy.replace("UNIT", "sparkwright-{{ $labels.service }}")
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
            "description": f"{check.reason}. {remedy}",
            "source": check.source,
        },
    }
