"""A result held against the same service's own past: what became slower, and what changed since."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.extras.bench.measures import MEASURES, Name
from sparkwright.extras.bench.results import Cell, Result, facts

#: How many earlier runs count, and how few say nothing yet.
LAST, LEAST = 5, 3
#: How many of the past's own deviations a change must exceed.
_DEVIATIONS = 3.0
#: Makes the median absolute deviation a standard deviation, for normally distributed noise.
_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Regression:
    """One measure of one load that got worse than the service's own past explains.

    Attributes:
        usual: median of the earlier runs.
        bound: by how much it may be worse before it counts, in the measure's unit.
        runs: how many earlier runs that is from.
        since: what changed when it got worse, the first suspect first:
            ``driver 580.95.05 -> 581.10``.
        began: when the first run that was worse was.
    """

    cell: Cell
    measure: Name
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
    """What is worse than the median of the last runs by more than their noise.

    A measure may be worse by the larger of two bounds. One is the measure's own: 5 % for decode,
    because a card's repetitions of one greedy load agree within 0.3 % (card of vllm-dflash,
    single-stream table), which leaves room for clocks and temperature; more for first tokens and
    acceptance, whose repetitions on the cards lie further apart (see ``bench.measures``). The
    other is three deviations of the service's own past (median absolute deviation, so that one
    bad run does not hide the next). With 5 earlier runs and normal noise of 2 % that reports 1 in
    100 measures that did not change, and finds 9 in 10 that lost 10 %; with 1 % or less, no false
    one in 20000.

    Args:
        earlier: results of the same service, the oldest first; those after ``result``, of another
            GPU or of another load generator do not count.
    """
    past = [
        one
        for one in earlier
        if one.when < result.when
        and (one.host, one.service) == (result.host, result.service)
        and one.gpu.name == result.gpu.name
        and one.generator.name == result.generator.name
    ]
    if not past:
        return ()
    loads = [{cell.load: cell for cell in one.cells} for one in past]
    found = []
    for cell in result.cells:
        same = [cells[cell.load] for cells in loads if cell.load in cells]
        for measure in MEASURES:
            now = measure.of(cell)
            known = [value for one in same if (value := measure.of(one)) is not None][-LAST:]
            if now is None or len(known) < LEAST:
                continue
            usual = statistics.median(known)
            spread = statistics.median(abs(value - usual) for value in known)
            bound = max(measure.noise * usual, _DEVIATIONS * _TO_SIGMA * spread)
            worse = usual - now if measure.more_is_better else now - usual
            if usual and worse > bound:
                line = usual - bound if measure.more_is_better else usual + bound
                values = [
                    measure.of(cells[cell.load]) if cell.load in cells else None for cells in loads
                ]
                before, first = _onset(past, values, line, measure.more_is_better, result)
                found.append(
                    Regression(
                        cell, measure.name, measure.title, measure.unit, now, usual, bound,
                        len(known), changes(before, first), first.when,
                    )
                )  # fmt: skip
    return tuple(found)


def _onset(
    past: Sequence[Result],
    values: Sequence[float | None],
    line: float,
    more_is_better: bool,
    result: Result,
) -> tuple[Result, Result]:
    """The last run that was well, and the first that was not: what changed is between them."""
    first = result
    for run, value in zip(reversed(past), reversed(values), strict=True):
        if value is not None and (value >= line if more_is_better else value <= line):
            return run, first
        if value is not None:
            first = run
    return past[-1], result


def changes(before: Result, after: Result) -> tuple[str, ...]:
    """What differs between two runs, the first suspect first: ``driver 580.95.05 -> 581.10``.

    Results of the version before have no kernel: that it is known now is no change.
    """
    old, new = dict(facts(before)), dict(facts(after))
    differing = [
        name
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
        and (name != "kernel" or {name} <= old.keys() & new.keys())
    ]
    return tuple(
        f"{name} {_short(old.get(name))} -> {_short(new.get(name))}"
        for name in sorted(differing, key=_suspicion)
    )


def _suspicion(name: str) -> int:
    """A release's name changes with all that is in it, and says the least."""
    kinds = ("driver", "kernel", "image", "vLLM", "model", "setting", "GPU", "load generator")
    return next((n for n, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))


def _short(value: str | None) -> str:
    """A digest or commit by its beginning."""
    if value is None:
        return "unknown"
    if value.startswith("sha256:"):
        return value[:19]
    return value[:12] if len(value) == 40 and " " not in value else value
