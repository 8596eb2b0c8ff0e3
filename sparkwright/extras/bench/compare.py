"""Comparison of a result with the cards' figures: ratio, range, and likely causes of a gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sparkwright.catalog import Catalog
from sparkwright.catalog.causes import Cause, Symptom
from sparkwright.catalog.measurements import Measurement, Row, Value
from sparkwright.extras.bench.results import MEASURES, Cell, Measure, Result

State = Literal["in range", "worse", "better"]

#: Up to here a prompt is short: the cards' tables of short prompts give no length, and their long
#: prompts begin at 1000 tokens (card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Long-prompt prefill').
SHORT_PROMPT = 1000
#: "About 16K" is 16.2K to 20.3K tokens on that card ('Long-context tiers').
_SAME_LENGTH = 1.25
#: Below this share of the driver's maximal clock, the GPU is held back. A judgement of this
#: project: clocks of a loaded GPU vary by some percent by themselves.
_LOW_CLOCK = 0.85


@dataclass(frozen=True)
class Verdict:
    """A measure of a cell against the card's figure, in the result's units.

    Attributes:
        published: the card's figure, or the two ends of its range.
        ratio: measured ÷ published; for a published range relative to its nearer end, 1 within the
        range. low, high: the range in which a healthy service's figure may lie.
        why: reason of the width of the range.
        source: the card's table.
        basis: differences of the card's run; empty without a difference.
    """

    measure: str
    title: str
    unit: str
    measured: float
    published: tuple[float, float]
    ratio: float
    low: float
    high: float
    state: State
    why: str
    table: str
    source: str
    basis: str


@dataclass(frozen=True)
class CellComparison:
    """A cell with all its verdicts; none if no card gives a figure for its load."""

    cell: Cell
    verdicts: tuple[Verdict, ...]
    causes: tuple[Cause, ...]

    @property
    def by_measure(self) -> dict[str, Verdict]:
        """The verdicts, by measurement."""
        return {verdict.measure: verdict for verdict in self.verdicts}


def compare(
    result: Result, published: Sequence[Table], causes: Sequence[Cause] = ()
) -> tuple[CellComparison, ...]:
    """Every cell of a result against the nearest published figures.

    Args:
        published: the tables that speak of this result (``tables``).
        causes: known causes, the likeliest first.
    """
    return tuple(_compare(result, cell, published, causes) for cell in result.cells)


def _compare(
    result: Result, cell: Cell, published: Sequence[Table], causes: Sequence[Cause]
) -> CellComparison:
    cards = {measure: figure(cell, measure, published) for measure in MEASURES
             if measure.published and measure.name in cell.measures}  # fmt: skip
    verdicts = {measure: judge(measure, cell.measures[measure.name], card)
                for measure, card in cards.items() if card}  # fmt: skip
    slow = {measure.slow for measure, verdict in verdicts.items() if verdict.state == "worse"}
    fine = {measure.fine for measure in verdicts if measure.fine and measure.slow not in slow}
    drafts = not cell.measures.keys().isdisjoint(("acceptance", "acceptance_length"))
    lengths = [card.output_tokens or 0 for card in cards.values() if card]
    clock, most = result.gpu.clock_mhz, result.gpu.clock_max_mhz
    conditions: dict[Symptom, bool] = {
        "shorter answers": any(cell.max_tokens < length / 2 for length in lengths),
        "no drafter": not drafts and any(table.measurement.drafter for table in published),
        "errors": cell.errors > 0,
        "sampled": cell.sampling_temperature > 0,
        "clock unknown": not clock or not most,
        "clock low": bool(clock and most and clock < _LOW_CLOCK * most),
    }
    symptoms = {*slow, *fine, *(symptom for symptom, holds in conditions.items() if holds)}
    fits = tuple(cause for cause in causes if _fits(cause, symptoms, result, cell))
    return CellComparison(cell, tuple(verdicts.values()), fits)


def judge(measure: Measure, measured: float, card: Figure) -> Verdict:
    """Compare a measure with its figure. Better than the range is worth a look, but no fault."""
    widened = (card.least, card.most) != (card.low, card.high)
    low = min(card.low / measure.apart, card.least)
    high = max(card.high * measure.apart, card.most)
    state: State = "in range"
    if not low <= measured <= high:
        state = "worse" if (measured < low) == measure.more_is_better else "better"
    nearest = min(max(measured, card.low), card.high)
    measurement = card.table.measurement
    return Verdict(
        measure=measure.name,
        title=measure.title,
        unit=measure.unit,
        measured=measured,
        published=(card.low, card.high),
        ratio=measured / nearest if nearest else 1.0,
        low=low,
        high=high,
        state=state,
        why=f"{measure.apart:g} times apart: {measure.why}"
        + ("; widened to the card's own least and most" if widened else ""),
        table=measurement.name,
        source=measurement.source,
        basis=card.table.basis,
    )


def _fits(cause: Cause, symptoms: set[Symptom], result: Result, cell: Cell) -> bool:
    return (
        symptoms.issuperset(cause.when)
        and cell.concurrency >= cause.concurrency
        and cell.prompt_tokens >= cause.prompt_tokens
        and (not cause.tags or result.tag in cause.tags)
        and not any(result.settings.get(key) == value for key, value in cause.ruled_out_by.items())
    )


@dataclass(frozen=True)
class Table:
    """A published table that covers a result's image and models.

    Attributes:
        rank: the nearest table first: the same tag, few differences.
        basis: remarks that a reader needs for the comparison.
    """

    measurement: Measurement
    rank: tuple[bool, int]
    basis: str

    def value(self, row: Row, key: str) -> Any:
        """Return a key of a row, or the card's value for all rows."""
        value = getattr(row, key)
        return self.measurement.conditions.get(key) if value is None else value


@dataclass(frozen=True)
class Figure:
    """A published figure for one measure of a cell, in the result's units.

    Attributes:
        low, high: equal for a single number.
        least, most: the card's own spread if given, never narrower than low to high.
        output_tokens: length of the measured answers.
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
    result_tables = []
    for card in catalog.measurements.values():
        exact = card.tag is not None and card.tag == result.tag
        if (
            card.image in images
            and card.body in models
            and (card.drafter in models if card.drafter else not drafts)
            and card.gpu.casefold() == result.gpu.name.casefold()
            and (exact or card.status == "measured")
        ):
            differs = [
                f"{key} {value} on the card, {result.settings[key]} here"
                for key, value in card.conditions.items()
                if result.settings.get(key, value) != value
            ]
            tag = "" if exact else f"measured on tag {card.tag or 'unknown'}, not on this one"
            note = "" if card.status == "measured" else f"the card calls it {card.status}"
            basis = "; ".join(filter(None, (tag, note, *differs)))
            result_tables.append(Table(card, (not exact, len(differs)), basis))
    return tuple(sorted(result_tables, key=lambda table: table.rank))


def figure(cell: Cell, measure: Measure, published: Sequence[Table]) -> Figure | None:
    """The nearest published figure for a measure of a cell, or None if no card has one.

    Of the nearest tables, the row that names this category alone; of several rows, the row with the
    nearest length of answers; then the newest.
    """
    candidates = []
    for table in published:
        for row in table.measurement.rows:
            if getattr(row, measure.published) is None or not _speaks_of(row, table, cell, measure):
                continue
            length = table.value(row, "output_tokens")
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
    temperature = table.value(row, "temperature")
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
    # The time of a long prompt does not depend on its text; but the drafted part of an answer, and
    # with it the speed of decoding, does, and random tokens can't be drafted.
    timed = measure.name in ("ttft", "ttft_p95", "prefill")
    return row.prompt_tokens is not None and (timed or cell.category != "random")


def _same_length(published: Value | None, tokens: int) -> bool:
    if published is None:
        return tokens < SHORT_PROMPT
    low, high = _ends(published)
    return low / _SAME_LENGTH <= tokens <= high * _SAME_LENGTH


def _ends(value: Value) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, value)
