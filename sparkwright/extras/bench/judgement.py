"""A service's newest result, compared with the cards and its earlier runs, as a summary and as
text.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import computed_field

from sparkwright.catalog import Catalog
from sparkwright.catalog.causes import Cause
from sparkwright.config.templates import template
from sparkwright.extras.bench.compare import SHORT_PROMPT, CellComparison, Verdict, compare, tables
from sparkwright.extras.bench.history import Regression, regressions
from sparkwright.extras.bench.results import MEASURES, Cell, Measure, Result, columns_of
from sparkwright.findings.render import count
from sparkwright.text.short import amount, figure


@dataclass(frozen=True)
class Bench:
    """A service's newest result, judged.

    Attributes:
        cells: each load beside the cards' figures, with likely causes of a gap.
        regressions: figures that are worse than the service's earlier runs.
        runs: number of results.
    """

    result: Result
    cells: tuple[CellComparison, ...]
    regressions: tuple[Regression, ...]
    runs: int

    @property
    def columns(self) -> list[Measure]:
        """Measures that a table of its cells has columns for."""
        return columns_of(cell.cell for cell in self.cells)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every figure that a card has a counterpart for."""
        return tuple(verdict for cell in self.cells for verdict in cell.verdicts)

    def count(self, state: str) -> int:
        """Number of figures that are ``worse``, ``better`` or ``in range``."""
        return sum(verdict.state == state for verdict in self.verdicts)

    @property
    def errors(self) -> int:
        """Number of failed requests."""
        return sum(cell.cell.errors for cell in self.cells)

    @property
    def sources(self) -> dict[str, str]:
        """The cards' tables of the comparison, with their sources."""
        return {verdict.table: verdict.source for verdict in self.verdicts}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def well(self) -> bool:
        """Return whether the result has no fault."""
        return not (self.count("worse") or self.regressions or self.errors)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def summary(self) -> str:
        """Its figures in a line."""
        compared, worse = len(self.verdicts), self.count("worse")
        parts = [f"{self.count('in range')} of {compared} in range" if compared else "no card"]
        parts += [f"{worse} worse than the card"] if worse else []
        parts += [f"{len(self.regressions)} worse than usual"] if self.regressions else []
        parts += [count(self.errors, "error")] if self.errors else []
        return ", ".join(parts)


def judged(results: Sequence[Result], catalog: Catalog) -> Bench:
    """Compare the newest of a service's results with the cards and the other results.

    Args:
        results: at least one result, the oldest first.
    """
    causes = [cause for group in catalog.causes.values() for cause in group.causes]
    newest = results[-1]
    cells = compare(newest, tables(newest, catalog), causes)
    return Bench(newest, cells, regressions(newest, results), len(results))


@dataclass(frozen=True)
class MeasureFinding:
    """A measure that is worse than on its card, or than in earlier runs: one finding for all its
    loads.

    Attributes:
        loads: at how many loads.
        of: number of compared loads; None if unknown.
        cell, worst: the load with the worst figure.
    """

    loads: int
    of: int | None
    cell: Cell
    worst: Verdict | Regression

    def __str__(self) -> str:
        """The measure, the number of loads with a worse figure, and the worst load."""
        return template("bench/finding.txt.j2").render(
            **vars(self), count=count, amount=amount, figure=figure
        )


def findings(bench: Bench) -> Iterator[MeasureFinding]:
    """The comparison with earlier runs comes first, since it shows a change.

    Sorted by the order of the measures.
    """
    for measure in MEASURES:
        lost = [each for each in bench.regressions if each.measure == measure.name]
        if lost:
            worst = max(lost, key=lambda regression: abs(regression.change))
            yield MeasureFinding(len(lost), None, worst.cell, worst)
    for measure in MEASURES:
        compared = [(cell.cell, each) for cell in bench.cells
                    for each in cell.verdicts if each.measure == measure.name]  # fmt: skip
        slow = [(cell, verdict) for cell, verdict in compared if verdict.state == "worse"]
        if slow:
            cell, verdict = max(slow, key=lambda pair: _distance(pair[1]))
            yield MeasureFinding(len(slow), len(compared), cell, verdict)


def likely(bench: Bench) -> list[tuple[Cause, int]]:
    """Causes that may explain it, with the number of loads: the most loads first.

    Causes that explain equally many loads keep the order of the catalog.
    """
    causes = {cause.id: cause for cell in bench.cells for cause in cell.causes}
    loads = Counter(cause.id for cell in bench.cells for cause in cell.causes)
    return [(causes[name], number) for name, number in loads.most_common()]


def one_stream(result: Result) -> tuple[float | None, float | None]:
    """Tokens/s and first token of one stream of a short prompt: medians over the categories."""
    short = [
        cell.measures
        for cell in result.cells
        if cell.concurrency == 1 and cell.prompt_tokens < SHORT_PROMPT
    ]
    decodes, firsts = (
        [measures[name] for measures in short if name in measures] for name in ("decode", "ttft")
    )
    return (median(decodes) if decodes else None, median(firsts) if firsts else None)


def _distance(verdict: Verdict) -> float:
    """Return the distance from the card, alike for rates and times."""
    return abs(math.log(verdict.ratio)) if verdict.ratio > 0 else math.inf
