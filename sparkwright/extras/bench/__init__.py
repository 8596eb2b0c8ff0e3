"""What was measured on a service: kept as files, held against the cards and its own past."""

from __future__ import annotations

from sparkwright.cli.lib.extras import HOSTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "bench",
            "Measure services, and compare with the cards' figures.",
            f"{__name__}.command",
            HOSTS,
            asks_hosts=True,
        ),
    ),
    offers={"report.section": f"{__name__}.section:section"},
)
