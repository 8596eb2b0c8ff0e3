"""Words that the page and the terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from sparkwright.extras.bench.compare import Verdict
from sparkwright.extras.bench.published import SHORT_PROMPT
from sparkwright.extras.bench.results import Cell, Result
from sparkwright.extras.report.contents import Bench
from sparkwright.extras.report.findings import Finding
from sparkwright.extras.report.plots import number

#: So many hosts are named one by one.
_NAMED = 6


def count(amount: int, what: str) -> str:
    """``1 host``, ``2 hosts``."""
    return f"{amount} {what}" if amount == 1 else f"{amount} {what}s"


def cell_name(cell: Cell) -> str:
    """A load in words: ``coding, 8 requests, 16000 prompt tokens``."""
    sampled = f", temperature {cell.sampling_temperature:g}" if cell.sampling_temperature else ""
    return (
        f"{cell.category}, {count(cell.concurrency, 'request')}, "
        f"{count(cell.prompt_tokens, 'prompt token')}{sampled}"
    )


def hosts_in_short(hosts: Sequence[str]) -> str:
    """All of a few; of many the first, and how many more."""
    if len(hosts) <= _NAMED:
        return ", ".join(hosts)
    return f"{', '.join(hosts[: _NAMED - 1])} and {len(hosts) - _NAMED + 1} more"


def times(ratio: float) -> str:
    """``0.97 times``."""
    return f"{ratio:.2f} times"


def figure(low: float, high: float, unit: str) -> str:
    """A card's figure or range, with its unit."""
    least, most = amount(low, unit), amount(high, unit)
    return most if least == most else f"{least.rpartition(' ')[0]} to {most}"


def amount(value: float, unit: str) -> str:
    """A figure with its unit: times in ms, shares in percent."""
    if unit == "s":
        return f"{number(1000 * value)} ms"
    return f"{number(100 * value)} %" if unit == "share" else f"{number(value)} {unit}"


def one_stream(result: Result) -> tuple[float | None, float | None]:
    """Tokens/s and first token of one stream of a short prompt: medians over the categories."""
    short = [c for c in result.cells if c.concurrency == 1 and c.prompt_tokens < SHORT_PROMPT]
    decodes = [one.decode for one in short if one.decode is not None]
    firsts = [one.ttft.p50 for one in short if one.ttft]
    return (median(decodes) if decodes else None, median(firsts) if firsts else None)


def finding_words(finding: Finding) -> str:
    """What is worse, at how many loads, and where it is worst."""
    worst = finding.worst
    if isinstance(worst, Verdict):
        against = "than the card"
        basis = f"; {worst.basis}" if worst.basis else ""
        figures = (
            f"{amount(worst.measured, worst.unit)}, {times(worst.ratio)} the card's "
            f"{figure(*worst.published, worst.unit)} (in range from "
            f"{figure(worst.low, worst.high, worst.unit)}{basis})"
        )
    else:
        against = "than usual"
        since = f"; changed when it began: {', '.join(worst.since)}" if worst.since else ""
        figures = (
            f"{amount(worst.now, worst.unit)}, {worst.change:+.0%} against the median "
            f"{amount(worst.usual, worst.unit)} of {worst.runs} earlier runs "
            f"(noise {amount(worst.bound, worst.unit)})"
            f"{since}"
        )
    loads = count(finding.loads, "load") + (f" of {finding.of}" if finding.of else "")
    return (
        f"{finding.title} is worse {against} at {loads}; the worst: "
        f"{cell_name(finding.cell)}: {figures}"
    )


def bench_words(bench: Bench) -> str:
    """One service's figures in a line."""
    parts = [f"{bench.in_range} of {bench.compared} in range" if bench.compared else "no card"]
    parts += [f"{bench.worse} worse than the card"] if bench.worse else []
    parts += [f"{len(bench.regressions)} worse than usual"] if bench.regressions else []
    parts += [count(bench.errors, "error")] if bench.errors else []
    return ", ".join(parts)
