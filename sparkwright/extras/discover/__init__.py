"""Finding Sparks and other boxes on the LAN: hosts that announce SSH, and hosts that the user's SSH
knows."""

from __future__ import annotations

from sparkwright.cli.lib.extras import SITE, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "discover", "Find Sparks and other boxes on the LAN.", f"{__name__}.command", SITE
        ),
    ),
    offers={"boxes": f"{__name__}.names:discovered"},
)
