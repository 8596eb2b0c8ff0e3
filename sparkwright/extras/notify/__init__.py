"""Notices to people: what began, what worsened and what ended, by ntfy, mail or a webhook."""

from __future__ import annotations

from sparkwright.cli.lib.extras import CLIENTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "notify",
            "Tell people what begins, worsens and ends.",
            f"{__name__}.command",
            CLIENTS,
            asks_hosts=True,
        ),
    ),
)
