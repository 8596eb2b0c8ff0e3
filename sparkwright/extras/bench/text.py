"""A benchmark's table for a terminal: each figure, and its ratio to the card's and to the past."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.extras.bench.judgement import Bench, cell_name, findings, likely
from sparkwright.extras.bench.measures import MEASURES, Name
from sparkwright.findings.render import count
from sparkwright.text.short import number
from sparkwright.text.table import columns
from sparkwright.text.visible import visible

_HEADS: dict[Name, str] = {
    "decode": "DECODE", "decode_total": "TOGETHER", "prefill": "PREFILL", "ttft": "TTFT s",
    "ttft_p95": "p95", "tpot": "TPOT ms", "acceptance": "ACCEPT", "acceptance_length": "LENGTH",
}  # fmt: skip
_MARKS = {"worse": "!", "better": "+", "in range": ""}
_CAUSES = 3


def text(bench: Bench) -> str:
    """One service's newest result: a line per load, then what is out of range and why it may be.

    ``91.7 (0.98)`` is 0.98 times the card's figure, ``!`` worse than its range, ``+`` better;
    ``v`` worse than the service's own past.
    """
    result = bench.result
    lost = {(one.cell.load, one.measure) for one in bench.regressions}
    table = [["LOAD", *(_HEADS[measure.name] for measure in MEASURES), "ERRORS"]]
    for compared in bench.cells:
        row = [cell_name(compared.cell)]
        for measure in MEASURES:
            value = measure.of(compared.cell)
            shown = "-"
            if value is not None:
                shown = number(value * 1000 if measure.name == "tpot" else value)
                verdict = compared.by_measure.get(measure.name)
                if verdict:
                    shown += f" ({verdict.ratio:.2f}{_MARKS[verdict.state]})"
                if (compared.cell.load, measure.name) in lost:
                    shown += " v"
            row.append(shown)
        table.append([*row, str(compared.cell.errors or "-")])
    ran = ", ".join(filter(None, (
        result.gpu.name, result.gpu.driver and f"driver {result.gpu.driver}",
        result.vllm and f"vLLM {result.vllm}", result.tag and f"tag {result.tag}",
        result.release and f"release {result.release}",
    )))  # fmt: skip
    lines = [f"{result.host}/{result.service}: {ran}", *columns(table), *_summary(bench)]
    return "\n".join(map(visible, lines))


def _summary(bench: Bench) -> Iterator[str]:
    yield f"{bench.summary}; {count(bench.runs - 1, 'earlier run')}"
    if bench.compared:
        yield "in brackets the ratio to the card's figure: ! out of range, + better than it"
    for finding in findings(bench):
        yield f"  {finding}"
    if not bench.well:
        for cause, loads in likely(bench)[:_CAUSES]:
            yield f"    perhaps ({count(loads, 'load')}) {cause.what}"
            yield f"    -> {cause.look}"
    for table, source in bench.sources:
        yield f"  card: {table} ({source})"
