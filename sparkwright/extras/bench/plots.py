"""Plots of a result as inline SVG: figures and scales; templates/bench/plots.svg.j2 draws them."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sparkwright.config.templates import template
from sparkwright.extras.bench.compare import SHORT_PROMPT
from sparkwright.extras.bench.judgement import Bench
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.short import number

#: Share of the axis that a label below it takes.
_LABEL = 0.09
#: Up to here a figure is none: nothing that is measured is so small, and its scale has no number.
_NOTHING = 1e-9
#: Plots of lines.
_LINES = beside(__file__, "plots.yaml")
#: Label, measured figure, and the card's: from, to; None where it has none.
Bar = tuple[str, float, tuple[float, float] | None]
#: Label, and points (x, y), x above 0.
Line = tuple[str, Sequence[tuple[float, float]]]


def charts(bench: Bench) -> list[tuple[str, Markup]]:
    """Title and drawing; what nothing was measured for is left out."""
    cells = [compared.cell for compared in bench.cells]
    short = [cell for cell in cells if cell.prompt_tokens < SHORT_PROMPT]
    single = [cell for cell in cells if cell.concurrency == 1]
    decode: dict[str, Bar] = {}
    for compared in bench.cells:
        cell, card = compared.cell, compared.by_measure.get("decode")
        if cell in short and cell in single and "decode" in cell.measures:
            bar = cell.category, cell.measures["decode"], card.published if card else None
            decode.setdefault(cell.category, bar)
    name = "Decode by category"
    drawn = [(name, bars(f"{name}, one stream", "tokens/s", list(decode.values())))]
    for plot in _LINES:
        # A line per category; of several cells at one x the first.
        series: dict[str, dict[float, float]] = {}
        chosen = short if plot["x"] == "concurrency" else single
        for cell in chosen:
            if (value := cell.measures.get(plot["measure"])) is not None:
                points = series.setdefault(cell.category, {})
                points.setdefault(max(getattr(cell, plot["x"]), 1), plot["factor"] * value)
        if len({getattr(cell, plot["x"]) for cell in chosen}) > 1:
            rows = [(label, list(points.items())) for label, points in series.items()]
            drawn.append((plot["title"], lines(plot["name"], plot["axis"], plot["unit"], rows)))
    return [(title, drawing) for title, drawing in drawn if drawing]


def bars(title: str, unit: str, rows: Sequence[Bar]) -> Markup:
    """Horizontal bars, a pair for each label: ours filled, the card's an outline."""
    most = max((end for _, own, card in rows for end in (own, *(card or ()))), default=0.0)
    most = most if most > _NOTHING else 1.0
    return _drawn("bars", title=title, unit=unit, rows=rows, most=most) if rows else Markup("")


def lines(title: str, axis: str, unit: str, series: Sequence[Line]) -> Markup:
    """Lines over a logarithmic axis: concurrency and context double from point to point."""
    drawn = [(label, sorted(points)) for label, points in series if points]
    if not drawn:
        return Markup("")
    xs = sorted({x for _, points in drawn for x, _ in points})
    ticks = _ticks(max(y for _, points in drawn for _, y in points))
    span = math.log(xs[-1] / xs[0])
    shares = {x: math.log(x / xs[0]) / span if span else 0.5 for x in xs}
    columns: list[float] = []
    for x in xs:
        if not columns or shares[x] - shares[columns[-1]] >= _LABEL:
            columns.append(x)
    return _drawn("lines", title=title, unit=unit, axis=axis, series=drawn, shares=shares,
                  columns=columns, ticks=ticks)  # fmt: skip


def _drawn(kind: str, **parts: Any) -> Markup:
    drawing = template("bench/plots.svg.j2")
    return Markup(drawing.render(kind=kind, number=number, thousands=_thousands, **parts))


def _thousands(value: float) -> str:
    return f"{number(value / 1000)}K" if value >= 1000 else number(value)


def _ticks(most: float) -> list[float]:
    """From 0 in three to five round steps to at least ``most``."""
    if most <= _NOTHING:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most))
    step = next(size * power for size in (0.2, 0.25, 0.5, 1, 2) if 5 * size * power >= most)
    return [step * count for count in range(math.ceil(most / step - 1e-9) + 1)]
