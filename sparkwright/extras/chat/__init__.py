"""A conversation with a service of the fleet, as its own users have one: over the network, with the
fleet's key, and with the sampling that is advised for the name."""

from __future__ import annotations

from sparkwright.cli.lib.extras import CLIENTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "chat",
            "Talk to a service, with the sampling of its name.",
            f"{__name__}.command",
            CLIENTS,
        ),
    ),
)
