"""A result held against the cards' figures: ratio, range, and what may explain a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sparkwright.catalog.causes import Cause, Symptom
from sparkwright.extras.bench.measures import MEASURES, Measure, Name
from sparkwright.extras.bench.published import Figure, Table, figure
from sparkwright.extras.bench.results import Cell, Result

State = Literal["in range", "worse", "better"]

#: Below this share of the clock that the driver allows, the GPU is held back. A judgement of this
#: project: clocks of a loaded GPU vary by some percent by themselves.
_LOW_CLOCK = 0.85
#: What a measure beyond its range, or within it, looks like to a cause.
_SYMPTOMS: dict[Name, tuple[Symptom, Symptom | None]] = {
    "decode": ("decode slow", "decode fine"),
    "tpot": ("decode slow", "decode fine"),
    "decode_total": ("throughput slow", None),
    "ttft": ("first token slow", None),
    "ttft_p95": ("first token slow", None),
    "prefill": ("prefill slow", None),
    "acceptance": ("acceptance low", "acceptance fine"),
    "acceptance_length": ("acceptance low", "acceptance fine"),
}


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

    measure: Name
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
    def by_measure(self) -> dict[Name, Verdict]:
        """The verdicts by what was measured."""
        return {verdict.measure: verdict for verdict in self.verdicts}

    @property
    def worse(self) -> tuple[Verdict, ...]:
        """What lies on the wrong side of its range."""
        return tuple(verdict for verdict in self.verdicts if verdict.state == "worse")


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
    verdicts = []
    shorter = False
    for measure in MEASURES:
        measured = measure.of(cell)
        found = figure(cell, measure, published) if measured is not None else None
        if measured is not None and found is not None:
            verdicts.append(judge(measure, measured, found))
            shorter |= found.output_tokens is not None and cell.max_tokens < found.output_tokens / 2
    seen = set(_symptoms(result, cell, verdicts))
    if shorter:
        seen.add("shorter answers")
    unseen = cell.acceptance is None and cell.acceptance_length is None
    if unseen and any(table.measurement.drafter for table in published):
        seen.add("no drafter")
    fits = [cause for cause in causes if _fits(cause, seen, result, cell)]
    return CellComparison(cell, tuple(verdicts), tuple(fits))


def judge(measure: Measure, measured: float, found: Figure) -> Verdict:
    """One measure against its figure. Better than the range is worth a look too, but no fault."""
    own = (found.least, found.most) != (found.low, found.high)
    low = min(found.low / measure.apart, found.least)
    high = max(found.high * measure.apart, found.most)
    state: State = "in range"
    if measured < low:
        state = "worse" if measure.more_is_better else "better"
    elif measured > high:
        state = "better" if measure.more_is_better else "worse"
    nearest = min(max(measured, found.low), found.high)
    measurement = found.table.measurement
    return Verdict(
        measure=measure.name,
        title=measure.title,
        unit=measure.unit,
        measured=measured,
        published=(found.low, found.high),
        ratio=measured / nearest if nearest else 1.0,
        low=low,
        high=high,
        state=state,
        why=f"{measure.apart:g} times apart: {measure.why}"
        + ("; widened to the card's own least and most" if own else ""),
        table=measurement.name,
        source=measurement.source,
        basis=found.table.basis,
    )


def _symptoms(result: Result, cell: Cell, verdicts: Sequence[Verdict]) -> Iterator[Symptom]:
    worse = {_SYMPTOMS[v.measure][0] for v in verdicts if v.state == "worse"}
    yield from worse
    for verdict in verdicts:
        bad, good = _SYMPTOMS[verdict.measure]
        if good is not None and bad not in worse:
            yield good
    if cell.errors:
        yield "errors"
    if cell.sampling_temperature > 0:
        yield "sampled"
    clock, most = result.gpu.sm_clock_mhz, result.gpu.sm_clock_max_mhz
    if not clock or not most:
        yield "clock unknown"
    elif clock < _LOW_CLOCK * most:
        yield "clock low"


def _fits(cause: Cause, seen: set[Symptom], result: Result, cell: Cell) -> bool:
    return (
        seen.issuperset(cause.when)
        and cell.concurrency >= cause.concurrency
        and cell.prompt_tokens >= cause.prompt_tokens
        and (not cause.tags or result.tag in cause.tags)
        and not any(result.settings.get(key) == value for key, value in cause.ruled_out_by.items())
    )
