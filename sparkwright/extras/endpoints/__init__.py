"""A planned fleet as clients see it, and the clients' own configuration made of it.

Keys are only ever named: what is written here may be shown, mailed and committed.
"""

from __future__ import annotations

from sparkwright.cli.lib.extras import CLIENTS, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "endpoints",
            "Write the fleet as its clients' configuration.",
            f"{__name__}.command",
            CLIENTS,
        ),
    ),
)
