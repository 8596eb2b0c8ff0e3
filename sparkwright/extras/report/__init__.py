"""The fleet on one page: the last run, what was measured, and what was switched when."""

from __future__ import annotations

from sparkwright.cli.lib.extras import CLIENTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand("report", "Show the fleet on one page.", f"{__name__}.command", CLIENTS),
    ),
)
