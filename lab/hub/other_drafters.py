"""The fakes of z-lab's drafters for Qwen3.6-27B, Qwen3.5-27B and Gemma-4-26B-A4B.

The cards give: five layers and BF16; 3.3 GB for Qwen3.6-27B and about 4 GB for Qwen3.5-27B, with
the hidden states of layers 1, 16, 31, 46 and 61; for Gemma a block of 16 tokens, and four of five
layers with a sliding window of 2048. The fakes choose widths and heads (of a Qwen3 layer as wide as
the body, in sum 3.3 GB), the same layers and windows for Qwen3.6-27B, the inner layers that Gemma's
drafter reads, its inner width, and the dates.
"""

from .dflash import Drafter
from .miniature import Miniature, Revision

_SIZE = 2 << 20


def _qwen(name: str) -> Drafter:
    return Drafter(
        f"z-lab/{name}-DFlash",
        layers=5,
        hidden=5120,
        width=17_408,
        heads=32,
        key_heads=8,
        target_layers=5,
    )


QWEN36_27B = _qwen("Qwen3.6-27B")
QWEN35_27B = _qwen("Qwen3.5-27B")
GEMMA4_26B = Drafter(
    "z-lab/gemma-4-26B-A4B-it-DFlash",
    layers=5,
    hidden=2816,
    width=5632,
    heads=32,
    key_heads=8,
    target_layers=6,
)

MINIATURES = tuple(
    Miniature(drafter.repository, _SIZE, (Revision("Upload drafter", date, drafter.files),))
    for drafter, date in (
        (QWEN36_27B, "2026-04-26T08:30:00.000Z"),
        (QWEN35_27B, "2026-03-18T10:05:00.000Z"),
        (GEMMA4_26B, "2026-05-07T13:20:00.000Z"),
    )
)
