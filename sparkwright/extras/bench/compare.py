"""A result held against the cards' figures: ratio, range, and what may explain a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sparkwright.catalog.causes import Cause, Symptom
from sparkwright.extras.bench.measures import MEASURES, Measure
from sparkwright.extras.bench.published import Figure, Table, figure
from sparkwright.extras.bench.results import Cell, Result

State = Literal["in range", "worse", "better"]

#: Below this share of the clock that the driver allows, the GPU is held back. A judgement of this
#: project: clocks of a loaded GPU vary by some percent by themselves.
_LOW_CLOCK = 0.85


@dataclass(frozen=True)
class Verdict:
    """One measure of one cell against the card's figure, in the result's units.

    Attributes:
        published: the card's figure, or the two ends of its range.
        ratio: measured ÷ published; of a published range its nearer end, 1 within it.
        low, high: the range in which a healthy service's figure may lie.
        why: why the range is that wide.
        source: the card's table.
        basis: in what the card's run differs from this one; empty where it does not.
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
    """One cell with all its verdicts; none where no card gives a figure for its load."""

    cell: Cell
    verdicts: tuple[Verdict, ...]
    causes: tuple[Cause, ...]

    @property
    def by_measure(self) -> dict[str, Verdict]:
        """The verdicts by what was measured."""
        return {verdict.measure: verdict for verdict in self.verdicts}


def compare(
    result: Result, published: Sequence[Table], causes: Sequence[Cause] = ()
) -> tuple[CellComparison, ...]:
    """Every cell of a result against the nearest published figures.

    Args:
        published: the tables that speak of this result (``bench.published.tables``).
        causes: known causes, the likeliest first.
    """
    return tuple(_compare(result, cell, published, causes) for cell in result.cells)


def _compare(
    result: Result, cell: Cell, published: Sequence[Table], causes: Sequence[Cause]
) -> CellComparison:
    judged: list[tuple[Measure, Verdict]] = []
    symptoms: set[Symptom] = set()
    for measure in MEASURES:
        measured = measure.of(cell)
        card = figure(cell, measure, published) if measured is not None else None
        if measured is not None and card is not None:
            judged.append((measure, judge(measure, measured, card)))
            if card.output_tokens is not None and cell.max_tokens < card.output_tokens / 2:
                symptoms.add("shorter answers")
    slow = {measure.slow for measure, verdict in judged if verdict.state == "worse"}
    symptoms |= slow | {
        measure.fine for measure, _ in judged if measure.fine and measure.slow not in slow
    }
    drafts = cell.acceptance is not None or cell.acceptance_length is not None
    clock, most = result.gpu.sm_clock_mhz, result.gpu.sm_clock_max_mhz
    conditions: dict[Symptom, bool] = {
        "no drafter": not drafts and any(table.measurement.drafter for table in published),
        "errors": cell.errors > 0,
        "sampled": cell.sampling_temperature > 0,
        "clock unknown": not clock or not most,
        "clock low": bool(clock and most and clock < _LOW_CLOCK * most),
    }
    symptoms |= {symptom for symptom, holds in conditions.items() if holds}
    fits = tuple(cause for cause in causes if _fits(cause, symptoms, result, cell))
    return CellComparison(cell, tuple(verdict for _, verdict in judged), fits)


def judge(measure: Measure, measured: float, card: Figure) -> Verdict:
    """One measure against its figure. Better than the range is worth a look too, but no fault."""
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
