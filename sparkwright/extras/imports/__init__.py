"""Recipes of other projects, as entries of this catalog.

One module for each format reads its text; ``command_line`` reads the command that it starts;
``entries`` makes image, models and recipe of it. Nothing of a recipe is run or expanded.
"""

from __future__ import annotations

from sparkwright.cli.lib.extras import SITE, Extra, ExtraCommand

EXTRA = Extra(
    commands=(
        ExtraCommand(
            "import",
            "Write recipes of other projects into the site's catalog.",
            f"{__name__}.command",
            SITE,
        ),
        ExtraCommand(
            "catalog search",
            "Look for words in the catalog and in registries of recipes.",
            f"{__name__}.search",
        ),
    ),
)
