"""A result held against the same service's own past: what became slower, and what changed since."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.bench.measures import MEASURES, Name
from sparkwright.bench.results import Cell, Result, facts

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
        since: what differs from the newest earlier run: ``driver 580.95.05 -> 581.10``.
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
    since = changes(past[-1], result)
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
                found.append(
                    Regression(
                        cell, measure.name, measure.title, measure.unit, now, usual, bound,
                        len(known), since,
                    )
                )  # fmt: skip
    return tuple(found)


def changes(before: Result, after: Result) -> tuple[str, ...]:
    """What differs between two runs: ``driver 580.95.05 -> 581.10``."""
    old, new = dict(facts(before)), dict(facts(after))
    return tuple(
        f"{name} {_short(old.get(name))} -> {_short(new.get(name))}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    )


def _short(value: str | None) -> str:
    """A digest or commit by its beginning."""
    if value is None:
        return "unknown"
    if value.startswith("sha256:"):
        return value[:19]
    return value[:12] if len(value) == 40 and " " not in value else value
