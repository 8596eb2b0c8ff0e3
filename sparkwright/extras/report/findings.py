"""What is wrong with a service's figures, summed up: a slow GPU is one finding, not sixty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.catalog.causes import Cause
from sparkwright.extras.bench.compare import Verdict
from sparkwright.extras.bench.history import Regression
from sparkwright.extras.bench.measures import MEASURES
from sparkwright.extras.bench.results import Cell
from sparkwright.extras.report.contents import Bench


@dataclass(frozen=True)
class Finding:
    """One measure that is worse than its card, or than its own past.

    Attributes:
        loads: at how many loads.
        of: how many loads were compared; None where unknown.
        cell, worst: where it is worst.
    """

    title: str
    loads: int
    of: int | None
    cell: Cell
    worst: Verdict | Regression


def findings(bench: Bench) -> Iterator[Finding]:
    """Against its past first: that is what changed. In the order of the measures."""
    for measure in MEASURES:
        lost = [one for one in bench.regressions if one.measure == measure.name]
        if lost:
            worst = max(lost, key=lambda one: abs(one.change))
            yield Finding(measure.title, len(lost), None, worst.cell, worst)
    for measure in MEASURES:
        compared = [
            (cell.cell, verdict)
            for cell in bench.cells
            if (verdict := cell.by_measure.get(measure.name)) is not None
        ]
        slow = [(cell, verdict) for cell, verdict in compared if verdict.state == "worse"]
        if slow:
            cell, verdict = max(slow, key=lambda pair: _distance(pair[1]))
            yield Finding(measure.title, len(slow), len(compared), cell, verdict)


def likely(bench: Bench) -> list[tuple[Cause, int]]:
    """What may explain it, and at how many loads: what explains the most comes first.

    Of causes that explain as much, the order of the catalog holds.
    """
    found = [cause for cell in bench.cells for cause in cell.causes]
    counted = Counter(cause.id for cause in found)
    causes = {cause.id: cause for cause in found}
    return [(causes[name], amount) for name, amount in counted.most_common()]


def _distance(verdict: Verdict) -> float:
    """How far from the card, alike for rates and times."""
    return abs(math.log(verdict.ratio)) if verdict.ratio > 0 else math.inf
