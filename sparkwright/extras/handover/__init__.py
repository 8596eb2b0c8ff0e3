"""Planned services as files of other tools, which take them over with the same bytes.

Keys are only ever named: what is written here may be shown, mailed and committed.
"""

from __future__ import annotations

from sparkwright.cli.lib.extras import SITE, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "render",
            "Write compose files and units of every host to a folder.",
            f"{__name__}.command",
            SITE,
        ),
    ),
)
