"""Comparison of a result with the cards' figures: ratio, range, and likely causes of a gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from sparkwright.catalog import Catalog
from sparkwright.catalog.causes import Cause, Symptom
from sparkwright.catalog.measurements import Measurement, Row, Value
from sparkwright.extras.bench.results import MEASURES, Cell, Measure, Result

State = Literal["in range", "worse", "better"]

#: Largest number of tokens of a short prompt: the cards' tables of short prompts give no length,
#: and their long prompts begin at 1000 tokens (card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Long-prompt
#: prefill').
SHORT_PROMPT = 1000
#: "About 16K" is 16.2K to 20.3K tokens on the same card ('Long-context tiers').
_SAME_LENGTH = 1.25
#: Below this share of the driver's maximal clock, the GPU is throttled. The share is this project's
#: choice: clocks of a loaded GPU vary by some percent without throttling.
_LOW_CLOCK = 0.85


@dataclass(frozen=True)
class Verdict:
    """Comparison of a cell's measure with the card's figure, in the result's units.

    Attributes:
        published: the card's figure, or the two ends of its range.
        ratio: measured ÷ published; 1 within a published range, otherwise measured ÷ the nearer end
            of the range.
        low, high: the range of figures of a healthy service.
        table, source: the card's table.
        basis: differences of the card's run from this run; empty without differences.
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
    table: str
    source: str
    basis: str


@dataclass(frozen=True)
class CellComparison:
    """A cell with all its verdicts; no verdict if no card gives a figure for the load."""

    cell: Cell
    verdicts: tuple[Verdict, ...]
    causes: tuple[Cause, ...]

    @property
    def by_measure(self) -> dict[str, Verdict]:
        """The verdicts, by measurement."""
        return {verdict.measure: verdict for verdict in self.verdicts}


@dataclass(frozen=True)
class Table:
    """A published table that covers a result's image and models.

    Attributes:
        rank: sort key: tables with the same tag and few differences come first.
        basis: remarks that a reader needs for the comparison.
    """

    measurement: Measurement
    rank: tuple[bool, int]
    basis: str

    def value(self, row: Row, key: str) -> Any:
        """Return the value of a row's key, or the card's value for all rows."""
        value = getattr(row, key)
        return self.measurement.conditions.get(key) if value is None else value

    def output_tokens(self, row: Row) -> float:
        """Length of the answers in a row's measurement; 0 if the card gives no length."""
        length = self.value(row, "output_tokens")
        return sum(_ends(length)) / 2 if length else 0.0


def compare(
    result: Result, published: Sequence[Table], causes: Sequence[Cause] = ()
) -> tuple[CellComparison, ...]:
    """Compare every cell of a result with the closest published figures.

    Args:
        published: the tables that cover this result (``tables``).
        causes: known causes, the likeliest first.
    """
    return tuple(_compare(result, cell, published, causes) for cell in result.cells)


def _compare(
    result: Result, cell: Cell, published: Sequence[Table], causes: Sequence[Cause]
) -> CellComparison:
    taken = [measure for measure in MEASURES if measure.name in cell.measures]
    cards = {each: card for each in taken if (card := nearest(cell, each, published))}
    verdicts = {each: judge(each, cell.measures[each.name], *card) for each, card in cards.items()}
    slow = {measure.slow for measure, verdict in verdicts.items() if verdict.state == "worse"}
    fine = {measure.fine for measure in verdicts if measure.fine and measure.slow not in slow}
    drafts = not cell.measures.keys().isdisjoint(("acceptance", "acceptance_length"))
    clock, most = result.gpu.clock_mhz, result.gpu.clock_max_mhz
    lengths = [table.output_tokens(row) for table, row in cards.values()]
    conditions: dict[Symptom, bool] = {
        "shorter answers": any(cell.max_tokens < length / 2 for length in lengths),
        "no drafter": not drafts and any(table.measurement.drafter for table in published),
        "errors": cell.errors > 0,
        "clock unknown": not clock or not most,
        "clock low": bool(clock and most and clock < _LOW_CLOCK * most),
    }
    symptoms = {*slow, *fine, *(symptom for symptom, holds in conditions.items() if holds)}
    fits = tuple(cause for cause in causes if _fits(cause, symptoms, result, cell))
    return CellComparison(cell, tuple(verdicts.values()), fits)


def judge(measure: Measure, measured: float, table: Table, row: Row) -> Verdict:
    """Compare a measure with the figure of a row; the range is widened to the card's own spread.

    A figure better than the range is marked, but is not a fault.
    """
    given = (getattr(row, f"{measure.published}{end}", None) for end in ("", "_min", "_max"))
    (least, most), *spread = (
        [measure.scale * end for end in _ends(value)] for value in given if value is not None
    )
    bounds = [least / measure.apart, most * measure.apart, *chain(*spread)]
    low, high = min(bounds), max(bounds)
    state: State = "in range"
    if not low <= measured <= high:
        state = "worse" if (measured < low) == measure.more_is_better else "better"
    near = min(max(measured, least), most)
    return Verdict(
        measure=measure.name, title=measure.title, unit=measure.unit, measured=measured,
        published=(least, most), ratio=measured / near if near else 1.0, low=low, high=high,
        state=state, table=table.measurement.name, source=table.measurement.source,
        basis=table.basis,
    )  # fmt: skip


def _fits(cause: Cause, symptoms: set[Symptom], result: Result, cell: Cell) -> bool:
    return (
        symptoms.issuperset(cause.when)
        and cell.concurrency >= cause.concurrency
        and cell.prompt_tokens >= cause.prompt_tokens
        and (not cause.tags or result.tag in cause.tags)
        and not any(result.settings.get(key) == value for key, value in cause.ruled_out_by.items())
    )


def tables(result: Result, catalog: Catalog) -> tuple[Table, ...]:
    """The published tables of the result's image, models and GPU, the nearest first.

    A table that its card calls provisional or historical counts only for its own tag.
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
            tag = "" if exact else f"measured on tag {card.tag or 'unknown'}, not on this tag"
            note = "" if card.status == "measured" else f"the card marks the table as {card.status}"
            basis = "; ".join(filter(None, (tag, note, *differs)))
            result_tables.append(Table(card, (not exact, len(differs)), basis))
    return tuple(sorted(result_tables, key=lambda table: table.rank))


def nearest(cell: Cell, measure: Measure, published: Sequence[Table]) -> tuple[Table, Row] | None:
    """The table and row with the nearest figure for a measure of a cell; None without a figure.

    The function prefers the nearest tables, then rows that name only this category, then rows with
    the nearest length of answers, and then the newest row.
    """

    def distance(candidate: tuple[Table, Row]) -> tuple[object, ...]:
        table, row = candidate
        tokens = table.output_tokens(row)
        length = abs(math.log(cell.max_tokens / tokens)) if tokens and cell.max_tokens else 0.0
        return table.rank, row.category is None, length, -table.measurement.date.toordinal()

    rows = (
        (table, row)
        for table in published
        for row in table.measurement.rows
        if getattr(row, measure.published, None) is not None
        and (row.concurrency or (1 if measure.one_stream else None)) == cell.concurrency
        and not table.value(row, "temperature")  # the load generator's requests are greedy
        and _same_prompts(row, cell)
    )
    return min(rows, key=distance, default=None)


def _same_prompts(row: Row, cell: Cell) -> bool:
    """Return whether a row has the cell's category and about the cell's length; the time of a long
    prompt does not depend on the text.
    """
    categories = {row.category, *row.categories} - {None}
    if row.prompt_tokens is None:
        return cell.category in categories and cell.prompt_tokens < SHORT_PROMPT
    low, high = _ends(row.prompt_tokens)
    near = low / _SAME_LENGTH <= cell.prompt_tokens <= high * _SAME_LENGTH
    return near and (not categories or cell.category in categories)


def _ends(value: Value) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, value)
