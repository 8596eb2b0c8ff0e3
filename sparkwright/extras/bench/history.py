"""Comparison of a result with the same service's earlier runs: slower measures, and changes
since.
"""

import datetime as dt
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.extras.bench.results import MEASURES, Cell, Measure, Result

#: Number of earlier runs that count, and the number below which they prove nothing.
LAST, LEAST = 5, 3
#: Number of the earlier runs' own deviations that a change must exceed.
_DEVIATIONS = 3.0
#: Makes the median absolute deviation a standard deviation, for normally distributed noise.
_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Regression:
    """A measure of a load that is worse than the service's earlier runs explain.

    Attributes:
        usual: median of the earlier runs.
        bound: tolerated loss, in the measure's unit.
        runs: number of earlier runs behind the bound.
        since: changes between the runs, the first suspect first: ``driver 580.95.05 -> 581.10``.
        began: time of the first run that was worse.
    """

    cell: Cell
    measure: str
    title: str
    unit: str
    now: float
    usual: float
    bound: float
    runs: int
    since: tuple[str, ...]
    began: dt.datetime

    @property
    def change(self) -> float:
        """Share of the usual: -0.2 is a fifth less."""
        return self.now / self.usual - 1


def regressions(result: Result, earlier: Sequence[Result]) -> tuple[Regression, ...]:
    """Measures that are worse than the median of the last runs by more than their noise.

    A measure may be worse by the larger of two bounds. The first noise is the measure's own: 5 %
    for decode, because a card's repetitions of one greedy load agree within 0.3 % (card of
    vllm-dflash, single-stream table), which leaves room for clocks and temperature; more for first
    tokens and acceptance, whose repetitions on the cards lie further apart (see ``measures.yaml``).
    The second noise is three deviations of the service's earlier runs (median absolute deviation,
    so that one bad run does not hide the next). With 5 earlier runs and normal noise of 2 % this
    reports 1 in 100 unchanged measures, and finds 9 in 10 measures that lost 10 %; with 1 % or
    less, no false report in 20000.

    Args:
        earlier: results of the same service, the oldest first; results after ``result``, of another
            GPU or of another load generator do not count.
    """
    alike = _kind(result)
    past = [
        (run, {cell.load: cell.measures for cell in run.cells})
        for run in earlier
        if run.when < result.when and _kind(run) == alike
    ]
    lost = []
    for cell in result.cells:
        same = [(run, measures[cell.load]) for run, measures in past if cell.load in measures]
        for measure in MEASURES:
            values = [(run, old[measure.name]) for run, old in same if measure.name in old]
            if regression := _regression(result, cell, measure, values):
                lost.append(regression)
    return tuple(lost)


def _kind(result: Result) -> tuple[str, ...]:
    """Values that must be equal in comparable runs."""
    return result.host, result.service, result.gpu.name, result.generator.name


def _regression(
    result: Result, cell: Cell, measure: Measure, values: Sequence[tuple[Result, float]]
) -> Regression | None:
    """Return the regression of one measure by its earlier values; None without a regression."""
    now, last = cell.measures.get(measure.name), [value for _, value in values[-LAST:]]
    if now is None or len(last) < LEAST:
        return None
    usual = statistics.median(last)
    spread = statistics.median(abs(value - usual) for value in last)
    bound = max(measure.noise * usual, _DEVIATIONS * _TO_SIGMA * spread)
    sign = 1 if measure.more_is_better else -1
    if not usual or sign * (usual - now) <= bound:
        return None
    # The median itself is within the bound: going back, some run is.
    good = max(at for at, (_, value) in enumerate(values) if sign * (usual - value) <= bound)
    first = [*(run for run, _ in values), result][good + 1]
    return Regression(
        cell, measure.name, measure.title, measure.unit, now, usual, bound, len(last),
        changes(values[good][0], first), first.when,
    )  # fmt: skip


def changes(before: Result, after: Result) -> tuple[str, ...]:
    """Differences between two runs, the first suspect first: ``driver 580.95.05 -> 581.10``.

    Results of the version before have no kernel: a kernel that is known now is no change.
    """
    old, new = before.facts, after.facts
    # A release's name changes with all of its content, and says the least.
    names = sorted(dict.fromkeys([*old, *new]), key=lambda name: name == "release")
    return tuple(
        f"{name} {_short(old.get(name))} -> {_short(new.get(name))}"
        for name in names
        if old.get(name) != new.get(name) and (name != "kernel" or (before.kernel and after.kernel))
    )


def _short(value: str | None) -> str:
    """Shorten a digest or commit to its beginning."""
    if value is None:
        return "unknown"
    if value.startswith("sha256:"):
        return value[:19]
    return value[:12] if len(value) == 40 and " " not in value else value
