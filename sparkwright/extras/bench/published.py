"""Which of the cards' figures a measured cell may be held against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.catalog import Catalog
from sparkwright.catalog.measurements import Measurement, Row, Value
from sparkwright.extras.bench.measures import Measure
from sparkwright.extras.bench.results import Cell, Result

#: Up to here a prompt is short: the cards' tables of short prompts give no length, and their long
#: ones begin at 1000 tokens (card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Long-prompt prefill').
SHORT_PROMPT = 1000
#: "About 16K" is 16.2K to 20.3K tokens on that card ('Long-context tiers').
_SAME_LENGTH = 1.25


@dataclass(frozen=True)
class Table:
    """A published table that speaks of what a result ran.

    Attributes:
        exact: whether it was measured on the very tag; otherwise on another of the same image.
        differs: settings that the card names and that ran with another value.
    """

    measurement: Measurement
    exact: bool
    differs: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, int]:
        """The nearest table first: the same tag, few differences."""
        return not self.exact, len(self.differs)

    @property
    def basis(self) -> str:
        """What a reader must know of the comparison."""
        card = self.measurement
        tag = "" if self.exact else f"measured on tag {card.tag or 'unknown'}, not on this one"
        note = "" if card.status == "measured" else f"the card calls it {card.status}"
        return "; ".join(filter(None, (tag, note, *self.differs)))

    def condition(self, key: str) -> float | None:
        """The number of a condition that the card names; None without it."""
        value = self.measurement.conditions.get(key)
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Figure:
    """A published figure for one measure of a cell, in the result's units.

    Attributes:
        low, high: equal for a single number.
        least, most: the card's own spread where it gives one, never narrower than low to high.
        output_tokens: the length of the answers that it was measured with.
    """

    table: Table
    low: float
    high: float
    least: float
    most: float
    output_tokens: float | None


def tables(result: Result, catalog: Catalog) -> tuple[Table, ...]:
    """The published tables of the result's image, models and GPU, the nearest first.

    A table that its card calls provisional or historical counts for its own tag only.
    """
    repository = result.image.name.removesuffix(f":{result.tag}")
    images = {image.name for image in catalog.images.values() if image.repository == repository}
    models = {name: model for name, model in catalog.models.items()
              if model.repository in result.models}  # fmt: skip
    drafts = any(model.role == "drafter" for model in models.values())
    found = []
    for card in catalog.measurements.values():
        exact = card.tag is not None and card.tag == result.tag
        if (
            card.image in images
            and card.body in models
            and (card.drafter in models if card.drafter else not drafts)
            and card.gpu.casefold() == result.gpu.name.casefold()
            and (exact or card.status == "measured")
        ):
            differs = tuple(
                f"{key} {value} on the card, {result.settings[key]} here"
                for key, value in card.conditions.items()
                if result.settings.get(key, value) != value
            )
            found.append(Table(card, exact, differs))
    return tuple(sorted(found, key=lambda table: table.rank))


def figure(cell: Cell, measure: Measure, published: Sequence[Table]) -> Figure | None:
    """The nearest published figure for a measure of a cell, or None where no card has one.

    Of the nearest tables the row that names the category, and not several or none; of those the
    one with answers of about the same length; of those the newest.
    """
    candidates = []
    for table in published:
        for row in table.measurement.rows:
            if getattr(row, measure.published) is None or not _speaks_of(row, table, cell, measure):
                continue
            length = row.output_tokens or table.condition("output_tokens")
            tokens = sum(_ends(length)) / 2 if length else None
            distance = abs(math.log(cell.max_tokens / tokens)) if tokens else 0.0
            key = table.rank, row.category is None, distance, -table.measurement.date.toordinal()
            candidates.append((key, table, row, tokens))
    if not candidates:
        return None
    _, table, row, tokens = min(candidates, key=lambda candidate: candidate[0])
    spread = (getattr(row, f"{measure.published}{end}", None) for end in ("", "_min", "_max"))
    middle, *ends = (_ends(value) for value in spread if value is not None)
    low, high = (end * measure.scale for end in middle)
    around = [end * measure.scale for pair in ends for end in pair]
    return Figure(table, low, high, min(low, *around, low), max(high, *around, high), tokens)


def _speaks_of(row: Row, table: Table, cell: Cell, measure: Measure) -> bool:
    temperature = row.temperature
    if temperature is None:
        temperature = table.condition("temperature")
    return (
        _same_category(row, cell, measure)
        and (row.concurrency or (1 if measure.one_stream else None)) == cell.concurrency
        and (temperature is None or (temperature > 0) == (cell.sampling_temperature > 0))
        and _same_length(row.prompt_tokens, cell.prompt_tokens)
    )


def _same_category(row: Row, cell: Cell, measure: Measure) -> bool:
    named = {row.category, *row.categories} - {None}
    if named:
        return cell.category in named
    # A long prompt takes its time whatever it says; but what can be drafted of an answer, and with
    # it the speed of decoding, depends on the text, and nothing of random tokens can be.
    timed = measure.name in ("ttft", "ttft_p95", "prefill")
    return row.prompt_tokens is not None and (timed or cell.category != "random")


def _same_length(published: Value | None, tokens: int) -> bool:
    if published is None:
        return tokens < SHORT_PROMPT
    low, high = _ends(published)
    return low / _SAME_LENGTH <= tokens <= high * _SAME_LENGTH


def _ends(value: Value) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, value)
