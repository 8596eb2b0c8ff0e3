"""Which plots a result gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from markupsafe import Markup

from sparkwright.extras.bench.compare import CellComparison
from sparkwright.extras.bench.judgement import Bench
from sparkwright.extras.bench.plots import Bar, Line, bars, lines
from sparkwright.extras.bench.published import SHORT_PROMPT
from sparkwright.extras.bench.results import Cell


def charts(bench: Bench) -> tuple[tuple[str, Markup], ...]:
    """Title and drawing; what nothing was measured for is left out."""
    cells = [compared.cell for compared in bench.cells]
    short = [cell for cell in cells if cell.prompt_tokens < SHORT_PROMPT]
    single = [cell for cell in cells if cell.concurrency == 1]
    many = len({cell.concurrency for cell in short}) > 1
    deep = len({cell.prompt_tokens for cell in single}) > 1
    drawn = [
        (
            "Decode by category",
            bars("Decode by category, one stream", "tokens/s", list(_decode(bench.cells))),
        ),
        (
            "Throughput by concurrency",
            lines("Throughput", "requests at a time", "tokens/s", _series(
                short, lambda cell: cell.concurrency, lambda cell: cell.decode_total,
            )) if many else Markup(""),
        ),
        (
            "First token by concurrency",
            lines("Time to first token, median", "requests at a time", "ms", _series(
                short, lambda cell: cell.concurrency,
                lambda cell: 1000 * cell.ttft.p50 if cell.ttft else None,
            )) if many else Markup(""),
        ),
        (
            "Acceptance by context",
            lines("Draft acceptance", "prompt tokens", "%", _series(
                single, lambda cell: max(cell.prompt_tokens, 1),
                lambda cell: None if cell.acceptance is None else 100 * cell.acceptance,
            )) if deep else Markup(""),
        ),
    ]  # fmt: skip
    return tuple((title, plot) for title, plot in drawn if plot)


def _decode(cells: Iterable[CellComparison]) -> Iterable[Bar]:
    shown: set[str] = set()
    for compared in cells:
        cell = compared.cell
        if cell.concurrency != 1 or cell.prompt_tokens >= SHORT_PROMPT or cell.decode is None:
            continue
        if cell.category not in shown:
            shown.add(cell.category)
            card = next((v.published for v in compared.verdicts if v.measure == "decode"), None)
            yield Bar(cell.category, cell.decode, card)


def _series(
    cells: Iterable[Cell], x: Callable[[Cell], float], y: Callable[[Cell], float | None]
) -> list[Line]:
    """A line per category; of several cells at one place the first."""
    found: dict[str, dict[float, float]] = {}
    for cell in cells:
        value = y(cell)
        if value is not None:
            found.setdefault(cell.category, {}).setdefault(x(cell), value)
    return [Line(label, tuple(points.items())) for label, points in found.items()]
