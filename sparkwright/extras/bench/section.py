"""The section on speed of the fleet's page."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pydantic import TypeAdapter

from sparkwright.catalog import Catalog
from sparkwright.extras.bench.charts import charts
from sparkwright.extras.bench.history import LAST, Regression
from sparkwright.extras.bench.judgement import (
    Bench,
    cell_name,
    findings,
    judged,
    likely,
    one_stream,
)
from sparkwright.extras.bench.measures import MEASURES, Name
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
#: What a worse measure means to whoever waits for an answer; {} is the share in percent. In the
#: order in which they matter.
_SLOWER: dict[Name, str] = {
    "decode": "answers {} % slower",
    "decode_total": "answers {} % slower under load",
    "tpot": "takes {} % longer for each token",
    "ttft": "begins to answer {} % later",
    "ttft_p95": "begins the slowest answers {} % later",
    "prefill": "reads prompts {} % slower",
    "acceptance": "has {} % fewer drafted tokens accepted",
    "acceptance_length": "has {} % fewer tokens per step",
}


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
            "likely": likely, "cell_name": cell_name, "amount": amount, "figure": figure,
        },
        services={(one.result.host, one.result.service): _measured(one) for one in benches},
        findings=tuple(finding for bench in benches for finding in _weighed(bench)),
        lines=tuple(line for bench in benches for line in _lines(bench)),
        data={"benches": _BENCHES.dump_python(benches, mode="json")},
        problems=problems,
    )  # fmt: skip


def _measured(bench: Bench) -> MeasuredService:
    result = bench.result
    generator = f"{result.generator.name} {result.generator.version or ''}".strip()
    decode, first_token = one_stream(result)
    return MeasuredService(
        when=result.when, gpu=result.gpu.name, driver=result.gpu.driver, release=result.release,
        tag=result.tag, models=result.models,
        versions={**({"vLLM": result.vllm} if result.vllm else {}), "load generator": generator},
        decode=decode, first_token=first_token, summary=bench.summary,
    )  # fmt: skip


def _weighed(bench: Bench) -> Iterator[Weighed]:
    result = bench.result
    causes = [f"Perhaps {cause.what}. Look: {cause.look}." for cause, _ in likely(bench)[:2]]
    details = (*causes, *[f"{finding}." for finding in findings(bench)][:2])
    base = Weighed(Weight.SLOW, (result.host,), result.service, "", seen=result.when)
    if bench.errors:
        failed = f"{count(bench.errors, 'request')} failed while it was measured"
        yield replace(base, weight=Weight.WRONG, what=failed)
    if bench.regressions:
        measures = {regression.measure for regression in bench.regressions}
        name = next(measure for measure in _SLOWER if measure in measures)
        worse = [regression for regression in bench.regressions if regression.measure == name]
        share = statistics.median(abs(regression.change) for regression in worse)
        suspects, began = _suspects(worse)
        since = f" since {_changed(suspects[0])}" if suspects else ""
        others = [f"Changed with it: {', '.join(map(_arrow, suspects[1:]))}."]
        yield replace(
            base, what=_SLOWER[name] + since, low=share, high=share, began=began,
            more=(*(others if suspects[1:] else []), *details),
        )  # fmt: skip
    elif bench.worse:
        what = f"{bench.worse} of {bench.compared} figures are worse than the card's"
        yield replace(base, weight=Weight.BELOW_CARD, what=what, more=details)


def _suspects(worse: Sequence[Regression]) -> tuple[tuple[str, ...], dt.datetime]:
    """What changed when most of them began, and when that was."""
    began = statistics.mode(regression.began for regression in worse)
    return next(regression.since for regression in worse if regression.began == began), began


def _changed(change: str) -> str:
    """``driver 1 -> 2`` as ``the driver changed 1 → 2``."""
    what, _, values = _arrow(change).partition(" → ")
    name, _, before = what.rpartition(" ")
    return f"the {name} changed {before} → {values}"


def _arrow(change: str) -> str:
    return change.replace(" -> ", " → ")


def _lines(bench: Bench) -> Iterator[str]:
    name = f"{bench.result.host}/{bench.result.service}"
    for _, alike in groupby(findings(bench), key=lambda finding: type(finding.worst)):
        first, *others = alike
        more = f" (and {count(len(others), 'measure')} more)" if others else ""
        yield f"{name}: {visible(str(first))}{more}"
    if bench.well:
        return
    if bench.errors:
        yield f"{name}: {count(bench.errors, 'request')} failed"
    for cause, _ in likely(bench)[:_CAUSES]:
        yield f"    perhaps {cause.what}"
        yield f"    -> {cause.look}"
