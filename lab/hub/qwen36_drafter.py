"""The fake of z-lab/Qwen3.6-35B-A3B-DFlash, before and after 2026-04-19.

The card gives the size (about 905 MB); according to the card, revisions before 2026-04-19 crash
past 16K tokens. Layers and widths are chosen so that the full shapes add up to that size. The
content of the fix is not published: in this fake, the fix changes the weights and the sliding
windows of the configuration.
"""

from functools import partial

from .dflash import Drafter
from .miniature import Miniature, Revision

DRAFTER = Drafter(
    "z-lab/Qwen3.6-35B-A3B-DFlash",
    layers=8,
    hidden=2048,
    width=6144,
    heads=32,
    key_heads=4,
    target_layers=5,
)
MENDED = partial(DRAFTER.files, generation="mended")

MINIATURE = Miniature(
    DRAFTER.repository,
    size=4 << 20,
    revisions=(
        Revision("Upload drafter", "2026-04-16T09:12:00.000Z", DRAFTER.files),
        Revision("Fix long contexts", "2026-04-19T11:40:00.000Z", MENDED),
    ),
)
