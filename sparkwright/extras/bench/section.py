"""Judged results for users: in a terminal, and as a section of the fleet's page."""

import re
import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import TypeAdapter

from sparkwright.catalog import Catalog
from sparkwright.config.templates import template
from sparkwright.extras.bench.history import LAST
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
#: ``driver 1 -> 2``.
_CHANGE = re.compile(r"(.+) (\S+) -> (.+)")
#: Number of causes in the terminal, for the fleet and for one service; the page has all.
_CAUSES, _CAUSES_OF_ONE = 2, 3


def section(directory: Path, catalog: Catalog, hosts: Container[str] | None) -> Section:
    """The section, of the results in a directory.

    Args:
        hosts: the only hosts to show; None for all.
    """
    stored = load(directory, last=LAST + 1)
    return section_of(stored.services, catalog, hosts, stored.problems)


def section_of(
    results: Mapping[tuple[str, str], Sequence[Result]],
    catalog: Catalog,
    hosts: Container[str] | None = None,
    problems: tuple[Finding, ...] = (),
) -> Section:
    """The section.

    Args:
        results: (host, service) -> results, the oldest first; the newest is shown, the others are
            the earlier runs.
    """
    shown = {key: runs for key, runs in results.items() if hosts is None or key[0] in hosts}
    order = sorted(filter(shown.get, shown), key=lambda key: (natural(key[0]), key[1]))
    benches = tuple(judged(shown[key], catalog) for key in order)
    return Section(
        folder="bench",
        template="speed.html.j2",
        context={
            "benches": benches, "measures": MEASURES, "findings": findings,
            "likely": lambda bench: likely(bench)[1:], "amount": amount, "figure": figure,
        },
        services={(bench.result.host, bench.result.service): _measured(bench) for bench in benches},
        findings=tuple(finding for bench in benches for finding in _weighed(bench)),
        lines=tuple(line for bench in benches for line in _lines(bench)),
        data={"benches": _BENCHES.dump_python(benches, mode="json", by_alias=True)},
        problems=problems,
    )  # fmt: skip


def _measured(bench: Bench) -> MeasuredService:
    result = bench.result
    decode, first_token = one_stream(result)
    programs = {result.engine.name: str(result.engine.version)} if result.engine else {}
    return MeasuredService(
        when=result.when, gpu=result.gpu.name, driver=result.gpu.driver, release=result.release,
        tag=result.tag, models=result.models, decode=decode, first_token=first_token,
        versions={**programs, "load generator": str(result.generator)}, summary=bench.summary,
    )  # fmt: skip


def _weighed(bench: Bench) -> Iterator[Weighed]:
    # The likeliest cause is beside the finding, the others in the section.
    details = tuple(
        f"Perhaps {cause.explanation}. Look: {cause.look}." for cause, _ in likely(bench)[:1]
    )
    result = bench.result
    base = Weighed(Weight.SLOW, (result.host,), result.service, "", seen=result.when)
    if bench.errors:
        failed = f"{count(bench.errors, 'request')} failed while it was measured"
        yield replace(base, weight=Weight.WRONG, problem=failed)
    if bench.regressions:
        # Findings against earlier runs come first, in the order of the measures.
        name = next(findings(bench)).worst.measure
        lost = [regression for regression in bench.regressions if regression.measure == name]
        share = statistics.median(abs(regression.change) for regression in lost)
        # Changes at the begin of most of them.
        began = statistics.mode(regression.began for regression in lost)
        since = next(regression.since for regression in lost if regression.began == began)
        meaning = next(measure.worse for measure in MEASURES if measure.name == name)
        meaning += "".join(
            _CHANGE.sub(r" since the \1 changed \2 → \3", each) for each in since[:1]
        )
        others = ", ".join(since[1:]).replace(" -> ", " → ")
        details = (*([f"Changed with it: {others}."] if others else ()), *details)
        yield replace(base, problem=meaning, low=share, high=share, began=began, more=details)
    elif worse := bench.count("worse"):
        text = f"{worse} of {len(bench.verdicts)} figures are worse than the card's"
        yield replace(base, weight=Weight.BELOW_CARD, problem=text, more=details)


def _lines(bench: Bench) -> Iterator[str]:
    name = f"{bench.result.host}/{bench.result.service}"
    for _, alike in groupby(findings(bench), key=lambda finding: type(finding.worst)):
        first, *others = alike
        more = f" (and {count(len(others), 'measure')} more)" if others else ""
        yield f"{name}: {visible(str(first))}{more}"
    if bench.errors:
        yield f"{name}: {count(bench.errors, 'request')} failed"
    for cause, _ in likely(bench)[: 0 if bench.well else _CAUSES]:
        yield f"    perhaps {cause.explanation}"
        yield f"    -> {cause.look}"


def text(bench: Bench) -> str:
    """A service's newest result: a line per load, then the figures out of range and likely causes.

    ``91.7 (0.98)`` is 0.98 times the card's figure, ``!`` worse than its range, ``+`` better; ``v``
    worse than the service's earlier runs.
    """
    lost = {(regression.cell.load, regression.measure) for regression in bench.regressions}
    table = [["LOAD", *(measure.head for measure in bench.columns), "ERRORS"]]
    for compared in bench.cells:
        row = [compared.cell.title]
        for measure in bench.columns:
            value = compared.cell.measures.get(measure.name)
            if value is None:
                row.append("-")
                continue
            shown = number(value * 1000 if measure.head.endswith(" ms") else value)
            if verdict := compared.by_measure.get(measure.name):
                shown += f" ({verdict.ratio:.2f}{_MARKS[verdict.state]})"
            row.append(shown + (" v" if (compared.cell.load, measure.name) in lost else ""))
        table.append([*row, str(compared.cell.errors or "-")])
    shown = template("bench/result.txt.j2").render(
        bench=bench, table=columns(table), count=count, findings=list(findings(bench)),
        causes=likely(bench)[: 0 if bench.well else _CAUSES_OF_ONE],
    )  # fmt: skip
    return "\n".join(visible(line) for line in shown.split("\n") if line)
