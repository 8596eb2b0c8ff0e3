"""Monitoring by Prometheus and Grafana: targets, alert rules and a dashboard, as files.

The rules judge as doctor and watch do: the same names, thresholds, reasons and remedies.
"""

from __future__ import annotations

from sparkwright.cli.lib.extras import CLIENTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "monitoring", "Write what Prometheus and Grafana need.", f"{__name__}.command", CLIENTS
        ),
    ),
)
