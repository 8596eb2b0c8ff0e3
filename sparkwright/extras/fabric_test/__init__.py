"""Tests of the fabric between hosts: ping, ib_write_bw and an all-gather."""

from __future__ import annotations

from sparkwright.cli.lib.extras import Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "fabric test",
            "Judge the fabric, and measure it against published figures.",
            f"{__name__}.command",
        ),
    ),
)
