"""A benchmark's table for a terminal: each figure, and its ratio to the card's and to the past."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.extras.bench.judgement import Bench, findings, likely
from sparkwright.extras.bench.measures import MEASURES
from sparkwright.findings.render import count
from sparkwright.text.short import number
from sparkwright.text.table import columns
from sparkwright.text.visible import visible

_MARKS = {"worse": "!", "better": "+", "in range": ""}
_CAUSES = 3


def text(bench: Bench) -> str:
    """One service's newest result: a line per load, then what is out of range and why it may be.

    ``91.7 (0.98)`` is 0.98 times the card's figure, ``!`` worse than its range, ``+`` better;
    ``v`` worse than the service's own past.
    """
    result = bench.result
    lost = {(regression.cell.load, regression.measure) for regression in bench.regressions}
    table = [["LOAD", *(measure.head for measure in MEASURES), "ERRORS"]]
    for compared in bench.cells:
        row = [compared.cell.title]
        for measure in MEASURES:
            value = measure.of(compared.cell)
            if value is None:
                row.append("-")
                continue
            shown = number(value * 1000 if measure.head.endswith(" ms") else value)
            if verdict := compared.by_measure.get(measure.name):
                shown += f" ({verdict.ratio:.2f}{_MARKS[verdict.state]})"
            row.append(shown + (" v" if (compared.cell.load, measure.name) in lost else ""))
        table.append([*row, str(compared.cell.errors or "-")])
    versions = {
        "driver": result.gpu.driver, "vLLM": result.vllm, "tag": result.tag,
        "release": result.release,
    }  # fmt: skip
    ran = [result.gpu.name, *(f"{name} {value}" for name, value in versions.items() if value)]
    lines = [f"{result.host}/{result.service}: {', '.join(ran)}", *columns(table), *_summary(bench)]
    return "\n".join(map(visible, lines))


def _summary(bench: Bench) -> Iterator[str]:
    yield f"{bench.summary}; {count(bench.runs - 1, 'earlier run')}"
    if bench.verdicts:
        yield "in brackets the ratio to the card's figure: ! out of range, + better than it"
    for finding in findings(bench):
        yield f"  {finding}"
    for cause, loads in likely(bench)[: 0 if bench.well else _CAUSES]:
        yield f"    perhaps ({count(loads, 'load')}) {cause.what}"
        yield f"    -> {cause.look}"
    for table, source in bench.sources.items():
        yield f"  card: {table} ({source})"
