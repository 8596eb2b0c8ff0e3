"""Published numbers: every table of measurements on the cards, in SI-like units."""

import datetime as dt
from typing import Literal

from pydantic import Field

from sparkwright.catalog.data import Data, Name, Scalar

#: One number, or the two ends of a published range.
Value = float | tuple[float, float]

Category = Literal[
    "coding",
    "math",
    "reasoning",
    "prose",
    "natural-language",
    "extraction-json",
    "dialogue",
    "summary",
    "mixed",
    "overall",
]


class Row(Data):
    """A line of a published table. Times are in milliseconds, rates in tokens/s, shares between 0
    and 1.

    Attributes:
        label: the line's name where no other key distinguishes the lines.
        category: kind of prompt.
        categories: the kinds of prompts that a figure or range covers, if there are several.
        concurrency: requests at a time.
        prompt_tokens, output_tokens: lengths (medians if the card marks them so).
        samples, errors: number of measured requests, and of failed requests.
        temperature: sampling temperature of the requests.
        decode: tokens/s of one stream while decoding.
        decode_mean, decode_min, decode_p95, decode_max: other statistics of decode.
        aggregate: tokens/s of all streams together.
        aggregate_peak: the highest value of aggregate.
        prefill: tokens/s of the prompt.
        ttft, tpot: time to first token, time per output token; median unless named otherwise.
        ttft_mean, ttft_min, ttft_max, ttft_p95: other statistics of ttft.
        tpot_mean: the mean of tpot.
        acceptance: share of draft tokens that are accepted.
        acceptance_first: share accepted at the first position.
        acceptance_length: mean tokens per target step (1 + accepted / drafts).
        accepted: draft tokens accepted per draft, if the card gives this number instead of the
            length.
        kv_cache_tokens: tokens that the KV cache holds.
        max_concurrency: number of requests of full length that fit into the KV cache.
        values: further figures of the card, by name with unit.
    """

    label: str | None = None
    category: Category | None = None
    categories: tuple[Category, ...] = ()
    concurrency: int | None = None
    prompt_tokens: Value | None = None
    output_tokens: Value | None = None
    samples: int | None = None
    errors: int | None = None
    temperature: float | None = None
    decode: Value | None = None
    decode_mean: Value | None = None
    decode_min: Value | None = None
    decode_p95: Value | None = None
    decode_max: Value | None = None
    aggregate: Value | None = None
    aggregate_peak: Value | None = None
    prefill: Value | None = None
    ttft: Value | None = None
    ttft_mean: Value | None = None
    ttft_min: Value | None = None
    ttft_max: Value | None = None
    ttft_p95: Value | None = None
    tpot: Value | None = None
    tpot_mean: Value | None = None
    acceptance: Value | None = None
    acceptance_first: Value | None = None
    acceptance_length: Value | None = None
    accepted: Value | None = None
    kv_cache_tokens: Value | None = None
    max_concurrency: Value | None = None
    values: dict[str, Value | str] = Field(default_factory=dict)


class Measurement(Data):
    """A published table, with the hardware and software of the measurements.

    Attributes:
        body, drafter: the measured models; drafter is None without speculative decoding.
        image, tag: the serving image; tag is None if the card does not name the tag.
        recipe: the catalog's recipe with the same settings, if any.
        gpu: the GPU's name on the card.
        conditions: settings of the run that the card names, e.g. ``temperature: 0``.
        status: ``measured``; ``provisional`` or ``historical`` if the card marks it so.
        note: caution for a comparison with the table.
        rows: the table's lines.
    """

    kind: Literal["measurement"]
    name: Name
    title: str
    source: str
    date: dt.date
    body: Name
    drafter: Name | None = None
    image: Name
    tag: str | None = None
    recipe: Name | None = None
    gpu: str = "NVIDIA GB10"
    conditions: dict[str, Scalar] = Field(default_factory=dict)
    status: Literal["measured", "provisional", "historical"] = "measured"
    note: str | None = None
    rows: tuple[Row, ...] = Field(min_length=1)
