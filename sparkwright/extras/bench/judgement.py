"""A service's newest result, compared with the cards, as figures and as text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pydantic import computed_field

from sparkwright.catalog import Catalog
from sparkwright.catalog.causes import Cause
from sparkwright.config.templates import template
from sparkwright.extras.bench.compare import SHORT_PROMPT, CellComparison, Verdict, compare, tables
from sparkwright.extras.bench.results import MEASURES, Measure, Result, columns_of
from sparkwright.findings.render import count
from sparkwright.text.short import amount, figure


@dataclass(frozen=True)
class Bench:
    """A service's newest result: the figures of each load next to the cards' figures, with likely
    causes of a gap.
    """

    result: Result
    cells: tuple[CellComparison, ...]

    @property
    def columns(self) -> list[Measure]:
        """Measures with a column in a table of the cells."""
        return columns_of(self.result.cells)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every figure with a counterpart on a card."""
        return tuple(verdict for cell in self.cells for verdict in cell.verdicts)

    def count(self, state: str) -> int:
        """Number of figures that are ``worse``, ``better`` or ``in range``."""
        return sum(verdict.state == state for verdict in self.verdicts)

    @property
    def errors(self) -> int:
        """Number of failed requests."""
        return sum(cell.errors for cell in self.result.cells)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Whether the result is without faults."""
        return not (self.count("worse") or self.errors)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def summary(self) -> str:
        """Counts of the verdicts, in one line."""
        compared, worse = len(self.verdicts), self.count("worse")
        parts = [f"{self.count('in range')} of {compared} in range" if compared else "no card"]
        parts += [f"{worse} worse than the card"] if worse else []
        parts += [count(self.errors, "error")] if self.errors else []
        return ", ".join(parts)


def judged(result: Result, catalog: Catalog) -> Bench:
    """A result, compared with the cards."""
    causes = [cause for group in catalog.causes.values() for cause in group.causes]
    return Bench(result, compare(result, tables(result, catalog), causes))


def findings(bench: Bench) -> Iterator[str]:
    """Measures that are worse than the card, with the number of loads and the worst load."""
    for measure in MEASURES:
        compared = [(verdict, cell.cell) for cell in bench.cells
                    if (verdict := cell.by_measure.get(measure.name))]  # fmt: skip
        slow = [pair for pair in compared if pair[0].state == "worse"]
        if slow:
            furthest = min if measure.more_is_better else max
            worst, cell = furthest(slow, key=lambda pair: pair[0].ratio)
            yield template("bench/finding.txt.j2").render(
                loads=len(slow), of=len(compared), worst=worst, cell=cell, count=count,
                amount=amount, figure=figure,
            )  # fmt: skip


def likely(bench: Bench) -> list[tuple[Cause, int]]:
    """Causes that may explain a gap, with the number of loads: the most loads first.

    Causes that explain equally many loads keep the order of the catalog.
    """
    causes = {cause.id: cause for cell in bench.cells for cause in cell.causes}
    loads = Counter(cause.id for cell in bench.cells for cause in cell.causes)
    return [(causes[name], number) for name, number in loads.most_common()]


def one_stream(result: Result, measure: str) -> float | None:
    """A measure of one stream of a short prompt: median over the categories."""
    values = [
        cell.measures[measure]
        for cell in result.cells
        if cell.concurrency == 1 and cell.prompt_tokens < SHORT_PROMPT and measure in cell.measures
    ]
    return median(values) if values else None
