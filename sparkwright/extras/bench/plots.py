"""Plots of a result as inline SVG: proportions, scales, labels (templates/bench/plots.svg.j2)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sparkwright.config.templates import template
from sparkwright.extras.bench.compare import SHORT_PROMPT
from sparkwright.extras.bench.judgement import Bench
from sparkwright.extras.bench.results import MEASURES, Cell
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.short import number

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 360, 40, 348, 18, 188
#: Pixels that a label below the axis takes.
_LABEL = 26
#: Up to here a figure is none: nothing that is measured is so small, and its scale has no number.
_NOTHING = 1e-9
#: Plots of lines.
_LINES = beside(__file__, "plots.yaml")


@dataclass(frozen=True)
class Bar:
    """A measured figure, and the card's: a number, a range, or None where it has none."""

    label: str
    measured: float
    published: tuple[float, float] | None = None

    @property
    def card(self) -> str:
        """The card's figure in words."""
        if self.published is None:
            return "no figure on the card"
        low, high = map(number, self.published)
        return f"card {low}" if self.published[0] == self.published[1] else f"card {low} to {high}"


@dataclass(frozen=True)
class Line:
    """A line through points (x, y), x above 0."""

    label: str
    points: tuple[tuple[float, float], ...]


def charts(bench: Bench) -> tuple[tuple[str, Markup], ...]:
    """Title and drawing; what nothing was measured for is left out."""
    cells = [compared.cell for compared in bench.cells]
    short = [cell for cell in cells if cell.prompt_tokens < SHORT_PROMPT]
    single = [cell for cell in cells if cell.concurrency == 1]
    decode: dict[str, Bar] = {}
    for compared in bench.cells:
        cell = compared.cell
        one_stream = cell.concurrency == 1 and cell.prompt_tokens < SHORT_PROMPT
        if one_stream and cell.decode is not None:
            verdict = compared.by_measure.get("decode")
            bar = Bar(cell.category, cell.decode, verdict.published if verdict else None)
            decode.setdefault(cell.category, bar)
    name = "Decode by category"
    drawn = [(name, bars(f"{name}, one stream", "tokens/s", list(decode.values())))]
    for plot in _LINES:
        chosen = short if plot["x"] == "concurrency" else single
        if len({getattr(cell, plot["x"]) for cell in chosen}) > 1:
            series = _series(chosen, plot["x"], plot["measure"], plot["factor"])
            drawn.append((plot["title"], lines(plot["name"], plot["axis"], plot["unit"], series)))
    return tuple((title, drawing) for title, drawing in drawn if drawing)


def _series(cells: Iterable[Cell], x: str, name: str, factor: float) -> list[Line]:
    """A line per category; of several cells at one place the first."""
    measure = next(measure for measure in MEASURES if measure.name == name)
    points: dict[str, dict[float, float]] = {}
    for cell in cells:
        if (value := measure.of(cell)) is not None:
            line = points.setdefault(cell.category, {})
            line.setdefault(max(getattr(cell, x), 1), factor * value)
    return [Line(label, tuple(line.items())) for label, line in points.items()]


def bars(title: str, unit: str, rows: Sequence[Bar]) -> Markup:
    """Horizontal bars, a pair for each label: ours filled, the card's an outline."""
    if not rows:
        return Markup("")
    most = max(end for row in rows for end in (row.measured, *(row.published or ())))
    placed, y = [], 0.0
    for row in rows:
        placed.append({**vars(row), "card": row.card, "y": y})
        y += 50 if row.published else 38
    label = "; ".join(f"{row.label} {number(row.measured)}, {row.card}" for row in rows)
    scale = (_WIDTH - 92) / (most if most > _NOTHING else 1.0)
    return _drawn("bars", f"{title} in {unit}: {label}", y, rows=placed, scale=scale)


def lines(title: str, axis: str, unit: str, series: Sequence[Line]) -> Markup:
    """Lines over a logarithmic axis: concurrency and context double from point to point."""
    drawn = [Line(line.label, tuple(sorted(line.points))) for line in series if line.points]
    if not drawn:
        return Markup("")
    xs = sorted({x for line in drawn for x, _ in line.points})
    ticks = _ticks(max(y for line in drawn for _, y in line.points))
    first, last = math.log(xs[0]), math.log(xs[-1])

    def across(x: float) -> float:
        share = 0.5 if first == last else (math.log(x) - first) / (last - first)
        return _LEFT + 8 + share * (_RIGHT - _LEFT - 16)

    def up(y: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * y / ticks[-1]

    columns: list[tuple[float, str]] = []
    for x in xs:
        if not columns or across(x) - columns[-1][0] >= _LABEL:
            columns.append((across(x), _thousands(x)))
    arguments = [
        f"{line.label}: {', '.join(f'{_thousands(x)}: {number(y)}' for x, y in line.points)}"
        for line in drawn
    ]
    return _drawn(
        "lines", f"{title} in {unit} over {axis}. {'; '.join(arguments)}",
        _BOTTOM + 48 + (len(drawn) + 1) // 2 * 17, unit=unit, axis=axis, columns=columns,
        rows=[(up(tick), number(tick)) for tick in ticks], left=_LEFT, right=_RIGHT, bottom=_BOTTOM,
        series=[[(across(x), up(y)) for x, y in line.points] for line in drawn],
        labels=[line.label for line in drawn],
    )  # fmt: skip


def _drawn(kind: str, words: str, height: float, **parts: Any) -> Markup:
    parts |= {"kind": kind, "words": words, "width": _WIDTH, "height": height, "number": number}
    return Markup(template("bench/plots.svg.j2").render(**parts))


def _thousands(value: float) -> str:
    return f"{number(value / 1000)}K" if value >= 1000 else number(value)


def _ticks(most: float) -> list[float]:
    """From 0 in three to five round steps to at least ``most``."""
    if most <= _NOTHING:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most))
    step = next(
        size * power / 10 for size in (2, 2.5, 5, 10, 20, 25, 50) if size * power / 10 * 5 >= most
    )
    return [step * count for count in range(math.ceil(most / step - 1e-9) + 1)]
