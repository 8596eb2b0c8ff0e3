"""What is compared: each measure's name, unit, direction, and how far figures may lie apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparkwright.extras.bench.results import Cell

Name = Literal[
    "decode", "decode_total", "prefill", "ttft", "ttft_p95", "tpot", "acceptance",
    "acceptance_length",
]  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """One measure of a cell.

    Attributes:
        published: the key of the catalog's rows, in the unit that ``scale`` makes ours.
        more_is_better: False for times.
        apart: how far a healthy service's figure may lie from the card's, as a factor: 1.25 is
            25 % more or a fifth less.
        why: where that factor comes from.
        noise: share of its own median below which a change from one's own past means nothing.
        one_stream: whether a published row that names no concurrency is of one stream.
    """

    name: Name
    title: str
    unit: str
    published: str
    scale: float
    more_is_better: bool
    apart: float
    why: str
    noise: float
    of: Callable[[Cell], float | None]
    one_stream: bool = True


_RATE = (
    "prompts of one category differ by 23 % (summaries: 37.5 at most, 30.4 in the median; card "
    "of vllm-ultimate-dgx-spark, headline table), the cards' prompts are not published, and the "
    "second run of one recipe came out 6 to 16 % higher (card of Qwen3.6-35B-A3B-heretic-NVFP4, "
    "610-740 against 705-781 at 64 requests)"
)
_FIRST_TOKEN = (
    "the cards' own repetitions differ by up to 1.84 (476 and 259 ms in two warm rounds; card of "
    "vllm-ultimate-dgx-spark, 4-config A/B)"
)
_ACCEPTANCE = (
    "the card's second measurement of its recipe lies 1.33 above the first (46-55 % against "
    "28-48 %; cards of Qwen3.6-35B-A3B-heretic-NVFP4 and vllm-ultimate-dgx-spark), and it does not "
    "say whether it counts all positions or the first"
)

MEASURES: tuple[Measure, ...] = (
    Measure(
        "decode", "decode, one stream", "tokens/s", "decode", 1, True, 1.25, _RATE, 0.05,
        lambda cell: cell.decode,
    ),
    Measure(
        "decode_total", "decode, together", "tokens/s", "aggregate", 1, True, 1.25, _RATE, 0.05,
        lambda cell: cell.decode_total, one_stream=False,
    ),
    Measure(
        "tpot", "time per token", "s", "tpot", 0.001, False, 1.25, _RATE, 0.05,
        lambda cell: cell.tpot.p50 if cell.tpot else None,
    ),
    Measure(
        "ttft", "first token", "s", "ttft", 0.001, False, 2.0, _FIRST_TOKEN, 0.25,
        lambda cell: cell.ttft.p50 if cell.ttft else None,
    ),
    Measure(
        "ttft_p95", "first token, p95", "s", "ttft_p95", 0.001, False, 2.0, _FIRST_TOKEN, 0.5,
        lambda cell: cell.ttft.p95 if cell.ttft else None,
    ),
    Measure(
        "prefill", "prefill", "tokens/s", "prefill", 1, True, 2.0,
        f"it is the prompt over the time to its first token: {_FIRST_TOKEN}", 0.25,
        lambda cell: cell.prefill,
    ),
    Measure(
        "acceptance", "draft acceptance", "share", "acceptance", 1, True, 1.35, _ACCEPTANCE, 0.1,
        lambda cell: cell.acceptance,
    ),
    Measure(
        "acceptance_length", "acceptance length", "tokens", "acceptance_length", 1, True, 1.35,
        _ACCEPTANCE, 0.1, lambda cell: cell.acceptance_length,
    ),
)  # fmt: skip
