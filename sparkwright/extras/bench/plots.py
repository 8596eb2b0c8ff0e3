"""Plots as inline SVG: text in, markup out, nothing drawn by anyone else.

Colours come from the page's style by class (``s0`` to ``s6``), so that they follow its light and
dark scheme. Nothing is shown by colour alone: the card's bars are outlines, lines have markers of
their own, and every bar has its number. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from sparkwright.text.short import number

_WIDTH = 360
_BAR, _GAP, _LABEL = 12, 30, 14
_LEFT, _RIGHT, _TOP, _HEIGHT = 40, 12, 18, 170
#: Up to here a figure is none: nothing that is measured is so small, and its scale has no number.
_NOTHING = 1e-9
#: One shape per line, about 4 units in radius around the origin.
_MARKERS = (
    '<circle r="3.5"/>',
    '<rect x="-3.2" y="-3.2" width="6.4" height="6.4"/>',
    '<path d="M0-4.4 4 3.2-4 3.2Z"/>',
    '<path d="M0-4.6 4.6 0 0 4.6-4.6 0Z"/>',
    '<path d="M0 4.4 4-3.2-4-3.2Z"/>',
    '<path d="M-4-1.3h2.7v-2.7h2.6v2.7H4v2.6H1.3V4h-2.6V1.3H-4Z"/>',
    '<circle r="3.2" class="hollow"/>',
)


@dataclass(frozen=True)
class Bar:
    """A measured figure, and the card's: a number, a range, or None where it has none."""

    label: str
    measured: float
    published: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """A line through points (x, y), x above 0."""

    label: str
    points: tuple[tuple[float, float], ...]


def bars(title: str, unit: str, rows: Sequence[Bar]) -> Markup:
    """Horizontal bars, a pair for each label: ours filled, the card's an outline."""
    if not rows:
        return Markup("")
    most = max(end for row in rows for end in (row.measured, *(row.published or ())))
    scale = (_WIDTH - 92) / (most if most > _NOTHING else 1.0)
    parts: list[str] = []
    words: list[str] = []
    y = 0.0
    for row in rows:
        parts.append(_text(0, y + 10, row.label, "label"))
        y += _LABEL
        parts.append(_bar(y, row.measured * scale, "own"))
        parts.append(_text(row.measured * scale + 5, y + 10, number(row.measured), "value"))
        y += _BAR + 2
        said = "no figure on the card"
        if row.published:
            low, high = row.published
            figure = number(low) if low == high else f"{number(low)} to {number(high)}"
            said = f"card {figure}"
            parts.append(_bar(y, high * scale, "card"))
            if low != high:  # the lower end of the card's range, as a stroke within its outline
                parts.append(f'<path class="card" d="M{low * scale:.1f} {y}v{_BAR}"/>')
            parts.append(_text(high * scale + 5, y + 10, said, "value"))
            y += _BAR
        words.append(f"{row.label} {number(row.measured)}, {said}")
        y += _GAP - _LABEL - 6
    return _svg(f"{title} in {unit}: {'; '.join(words)}", y, parts)


def lines(title: str, x_title: str, unit: str, series: Sequence[Line]) -> Markup:
    """Lines over a logarithmic axis: concurrency and context double from point to point."""
    drawn = [line for line in series if line.points]
    if not drawn:
        return Markup("")
    xs = sorted({x for line in drawn for x, _ in line.points})
    ticks = _ticks(max(y for line in drawn for _, y in line.points))
    first, last = math.log(xs[0]), math.log(xs[-1])

    def across(x: float) -> float:
        share = 0.5 if first == last else (math.log(x) - first) / (last - first)
        return _LEFT + 8 + share * (_WIDTH - _LEFT - _RIGHT - 16)

    def up(y: float) -> float:
        return _TOP + _HEIGHT * (1 - y / ticks[-1])

    parts = [_text(0, 10, unit, "axis")]
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {up(tick):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 5, up(tick) + 4, number(tick), "axis end"))
    taken = -math.inf
    for x in xs:
        if across(x) - taken >= 26:  # a label takes about that much
            parts.append(_text(across(x), _TOP + _HEIGHT + 15, _thousands(x), "axis middle"))
            taken = across(x)
    parts.append(_text(_WIDTH / 2 + 14, _TOP + _HEIGHT + 30, x_title, "axis middle"))
    words: list[str] = []
    for place, line in enumerate(drawn):
        points = sorted(line.points)
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points)
        marks = "".join(
            f'<g transform="translate({across(x):.1f} {up(y):.1f})">{_marker(place)}</g>'
            for x, y in points
        )
        parts.append(f'<g class="s{place % 7}"><path class="line" d="M{path}"/>{marks}</g>')
        words.append(
            f"{line.label}: {', '.join(f'{_thousands(x)}: {number(y)}' for x, y in points)}"
        )
    below = _TOP + _HEIGHT + 48
    for place, line in enumerate(drawn):
        x, y = (place % 2) * _WIDTH / 2, below + place // 2 * 17
        sample = f'<g class="s{place % 7}" transform="translate({x + 10} {y})">{_marker(place)}</g>'
        parts.append(sample + _text(x + 20, y + 4, line.label, "label"))
    height = below + (len(drawn) + 1) // 2 * 17
    return _svg(f"{title} in {unit} over {x_title}. {'; '.join(words)}", height, parts)


def _svg(words: str, height: float, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(words)}">'
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def _bar(y: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" y="{y}" width="{max(width, 0.5):.1f}" height="{_BAR}"/>'


def _marker(place: int) -> str:
    return _MARKERS[place % len(_MARKERS)]


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
