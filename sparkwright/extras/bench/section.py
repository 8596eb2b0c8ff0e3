"""Judged results as text for a terminal, and as a section of the fleet's page."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from sparkwright.catalog import Catalog
from sparkwright.config.templates import template
from sparkwright.extras.bench.judgement import Bench, findings, judged, likely, one_stream
from sparkwright.extras.bench.results import MEASURES, Result
from sparkwright.extras.bench.store import load
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import count
from sparkwright.results.page import MeasuredService, Section, Weighed, Weight
from sparkwright.text.short import amount, figure, natural, number
from sparkwright.text.table import columns
from sparkwright.text.visible import visible

_MARKS = {"worse": "!", "better": "+", "in range": ""}
_BENCHES: TypeAdapter[tuple[Bench, ...]] = TypeAdapter(tuple[Bench, ...])
#: Number of causes in the terminal; the page has every cause.
_CAUSES = 3


def section(directory: Path, catalog: Catalog, hosts: Container[str] | None) -> Section:
    """The section about the results in a directory.

    Args:
        hosts: hosts to show; None for all hosts.
    """
    return section_of(*load(directory), catalog, hosts)


def section_of(
    results: Mapping[tuple[str, str], Result],
    problems: tuple[Finding, ...],
    catalog: Catalog,
    hosts: Container[str] | None = None,
) -> Section:
    """The section about these results.

    Args:
        results: (host, service) -> the newest result.
    """
    shown = (result for (host, _), result in results.items() if hosts is None or host in hosts)
    ordered = sorted(shown, key=lambda result: (natural(result.host), result.service))
    benches = tuple(judged(result, catalog) for result in ordered)
    return Section(
        folder="bench",
        template="speed.html.j2",
        context={
            "benches": benches, "measures": MEASURES, "findings": findings,
            "likely": lambda bench: likely(bench)[1:], "amount": amount, "figure": figure,
        },
        services={(bench.result.host, bench.result.service): _measured(bench) for bench in benches},
        findings=tuple(finding for bench in benches for finding in _weighed(bench)),
        lines=tuple(
            f"{bench.result.host}/{bench.result.service}: {visible(line)}"
            for bench in benches
            for line in _notes(bench)
        ),
        data={"benches": _BENCHES.dump_python(benches, mode="json", by_alias=True)},
        problems=problems,
    )  # fmt: skip


def _measured(bench: Bench) -> MeasuredService:
    result = bench.result
    programs = {result.engine.name: str(result.engine.version)} if result.engine else {}
    return MeasuredService(
        when=result.when, gpu=result.gpu.name, driver=result.gpu.driver, release=result.release,
        tag=result.tag, models=result.models, summary=bench.summary,
        decode=one_stream(result, "decode"), first_token=one_stream(result, "ttft"),
        versions={**programs, "load generator": str(result.generator)},
    )  # fmt: skip


def _weighed(bench: Bench) -> Iterator[Weighed]:
    result, worse = bench.result, bench.count("worse")
    failed = f"{count(bench.errors, 'request')} failed during the measurement"
    base = Weighed(Weight.WRONG, (result.host,), result.service, failed, seen=result.when)
    if bench.errors:
        yield base
    if worse:
        text = f"{worse} of {len(bench.verdicts)} figures are worse than the card's"
        # The finding has the likeliest cause, and the section has the other causes.
        causes = (cause for cause, _ in likely(bench)[:1])
        more = tuple(f"Perhaps {cause.explanation}. Look: {cause.look}." for cause in causes)
        yield replace(base, weight=Weight.BELOW_CARD, problem=text, more=more)


def _notes(bench: Bench) -> Iterator[str]:
    """Lines below the figures: measures that are out of range, failed requests, likely causes."""
    yield from findings(bench)
    if bench.errors:
        yield f"{count(bench.errors, 'request')} failed"
    for cause, loads in likely(bench)[:_CAUSES]:
        yield f"  perhaps ({count(loads, 'load')}) {cause.explanation}"
        yield f"  -> {cause.look}"


def text(bench: Bench) -> str:
    """A service's newest result: a line per load, then the figures out of range and likely causes.

    ``91.7 (0.98)`` is 0.98 times the card's figure; ``!`` marks a figure that is worse than its
    range, ``+`` a better figure.
    """
    table = [["LOAD", *(measure.head for measure in bench.columns), "ERRORS"]]
    for compared in bench.cells:
        row = [compared.cell.title]
        for measure in bench.columns:
            value = compared.cell.measures.get(measure.name)
            scale = 1000 if measure.head.endswith(" ms") else 1
            shown = "-" if value is None else number(value * scale)
            if verdict := compared.by_measure.get(measure.name):
                shown += f" ({verdict.ratio:.2f}{_MARKS[verdict.state]})"
            row.append(shown)
        table.append([*row, str(compared.cell.errors or "-")])
    page = template("bench/result.txt.j2")
    shown = page.render(bench=bench, table=columns(table), notes=_notes(bench))
    return "\n".join(visible(line) for line in shown.split("\n") if line)
