"""The section on speed of the fleet's page."""

from __future__ import annotations

import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import TypeAdapter

from sparkwright.catalog import Catalog
from sparkwright.extras.bench.history import LAST
from sparkwright.extras.bench.judgement import Bench, findings, judged, likely, one_stream
from sparkwright.extras.bench.measures import MEASURES
from sparkwright.extras.bench.plots import charts
from sparkwright.extras.bench.results import Result
from sparkwright.extras.bench.store import load
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import count
from sparkwright.results.page import MeasuredService, Section, Weighed, Weight
from sparkwright.text.short import amount, figure, natural
from sparkwright.text.visible import visible

_BENCHES: TypeAdapter[tuple[Bench, ...]] = TypeAdapter(tuple[Bench, ...])
#: So many causes of one service stand in the terminal; the page has all.
_CAUSES = 2


def section(directory: Path, catalog: Catalog, hosts: Container[str] | None) -> Section:
    """The section, of the results in a directory or an exported file.

    Args:
        hosts: the only ones that are shown; None for all.
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
            its past.
    """
    shown = {key: runs for key, runs in results.items() if hosts is None or key[0] in hosts}
    order = sorted(filter(shown.get, shown), key=lambda key: (natural(key[0]), key[1]))
    benches = tuple(judged(shown[key], catalog) for key in order)
    return Section(
        folder="bench",
        template="speed.html.j2",
        context={
            "benches": benches, "measures": MEASURES, "charts": charts, "findings": findings,
            "likely": likely, "amount": amount, "figure": figure,
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
    engine = {"vLLM": result.vllm} if result.vllm else {}
    return MeasuredService(
        when=result.when, gpu=result.gpu.name, driver=result.gpu.driver, release=result.release,
        tag=result.tag, models=result.models, decode=decode, first_token=first_token,
        versions={**engine, "load generator": str(result.generator)}, summary=bench.summary,
    )  # fmt: skip


def _weighed(bench: Bench) -> Iterator[Weighed]:
    causes = [f"Perhaps {cause.what}. Look: {cause.look}." for cause, _ in likely(bench)[:2]]
    details = (*causes, *[f"{finding}." for finding in findings(bench)][:2])
    result = bench.result
    base = Weighed(Weight.SLOW, (result.host,), result.service, "", seen=result.when)
    if bench.errors:
        failed = f"{count(bench.errors, 'request')} failed while it was measured"
        yield replace(base, weight=Weight.WRONG, what=failed)
    if bench.regressions:
        measures = {regression.measure for regression in bench.regressions}
        measure = next(measure for measure in MEASURES if measure.name in measures)
        worse = [one for one in bench.regressions if one.measure == measure.name]
        share = statistics.median(abs(regression.change) for regression in worse)
        # What changed when most of them began.
        began = statistics.mode(regression.began for regression in worse)
        since = next(regression.since for regression in worse if regression.began == began)
        suspects = [change.replace(" -> ", " → ") for change in since]
        since_when = _changed(suspects[0]) if suspects else ""
        others = [f"Changed with it: {', '.join(suspects[1:])}."] if suspects[1:] else []
        yield replace(
            base, what=measure.worse + since_when, low=share, high=share, began=began,
            more=(*others, *details),
        )  # fmt: skip
    elif bench.worse:
        what = f"{bench.worse} of {len(bench.verdicts)} figures are worse than the card's"
        yield replace(base, weight=Weight.BELOW_CARD, what=what, more=details)


def _changed(change: str) -> str:
    """``driver 1 → 2`` as `` since the driver changed 1 → 2``."""
    subject, _, after = change.partition(" → ")
    name, _, before = subject.rpartition(" ")
    return f" since the {name} changed {before} → {after}"


def _lines(bench: Bench) -> Iterator[str]:
    name = f"{bench.result.host}/{bench.result.service}"
    for _, alike in groupby(findings(bench), key=lambda finding: type(finding.worst)):
        first, *others = alike
        more = f" (and {count(len(others), 'measure')} more)" if others else ""
        yield f"{name}: {visible(str(first))}{more}"
    if bench.errors:
        yield f"{name}: {count(bench.errors, 'request')} failed"
    for cause, _ in likely(bench)[: 0 if bench.well else _CAUSES]:
        yield f"    perhaps {cause.what}"
        yield f"    -> {cause.look}"
