"""Measurements of a fabric, compared with published figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparkwright.checks.fabric.groups import Fabric
from sparkwright.extras.fabric_test.fabric_measure import Measurement
from sparkwright.extras.fabric_test.measure import Plan
from sparkwright.findings.finding import Finding, errors
from sparkwright.text.shipped_yaml import beside

#: What a measurement came to.
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Measure:
    """A line of the table.

    Attributes:
        what: ping, ib_write_bw or all-gather.
        where: hosts and device.
        value: what was measured, with its unit in ``unit``; None where it was not.
        published: what others measured.
        said: why it failed or was skipped.
    """

    what: str
    where: str
    verdict: str
    value: float | None = None
    unit: str = ""
    published: str = ""
    said: str = ""


@dataclass(frozen=True)
class FabricResult:
    """A fabric's findings and measurements."""

    hosts: tuple[str, ...]
    shape: str
    findings: tuple[Finding, ...]
    measures: tuple[Measure, ...]

    @property
    def well(self) -> bool:
        """Whether no error was found and nothing failed."""
        failed = [measure for measure in self.measures if measure.verdict == FAILED]
        return not failed and not errors(self.findings)


@dataclass(frozen=True)
class _Test:
    """A test: its unit, the least that passes, what others measured, and why it is skipped."""

    unit: str
    skipped: str
    least: float = 0.0
    published: str = ""


def result(
    fabric: Fabric,
    findings: Sequence[Finding],
    planned: Plan,
    answers: Mapping[str, Sequence[Measurement]],
) -> FabricResult:
    """The result of a fabric; ``answers`` by host, of those that answered."""
    names = ("ping", "ib_write_bw", "all-gather")
    figures: dict[str, dict[str, Any]] = beside(__file__, "tests.yaml")
    tests = {name: _Test(**figures.get(f"{name} {fabric.shape}", figures[name])) for name in names}
    ranks = f"{len(fabric.states)} ranks"

    def of(host: str, test: str) -> list[Measurement]:
        return [each for each in answers.get(host, ()) if each.test == test]

    def judged(test: str, where: str, measured: Measurement | None) -> Measure:
        """A measurement against the published figure; None failed for want of an answer."""
        value, problem = (measured.value, measured.wrong) if measured else (None, "no answer")
        passed = not problem and value is not None and value >= tests[test].least
        verdict, about = PASSED if passed else FAILED, tests[test]
        return Measure(test, where, verdict, value, about.unit, about.published, problem)

    measures: list[Measure] = []
    for host in planned.pings:
        measures += [
            judged("ping", f"{host} {each.device} to {each.address}", each)
            for each in of(host, "ping")
        ] or [judged("ping", host, None)]
    for pair in planned.pairs:
        wanted = {(stream.device, stream.address) for stream in pair.write}
        measures += [
            judged("ib_write_bw", f"{pair.client} {each.device} to {pair.server}", each)
            for each in of(pair.client, "ib_write_bw")
            if (each.device, each.address) in wanted
        ] or [judged("ib_write_bw", f"{pair.client} to {pair.server}", None)]
    if planned.gathers:
        # The slowest rank, or the first that failed.
        gathers = [each for host in planned.gathers for each in of(host, "all-gather")]
        gathers.sort(key=lambda each: (not each.wrong, each.value or 0.0))
        measure = judged("all-gather", ranks, gathers[0] if gathers else None)
        backends = sorted({each.backend for each in gathers})
        if not measure.said and backends != ["nccl"]:
            message = f"over {', '.join(backends)}, not nccl: no GPU"
            measure = replace(measure, verdict=SKIPPED, said=message)
        measures.append(measure)
    kinds = (planned.pings, planned.pairs, planned.gathers)
    for (test, about), kind in zip(tests.items(), kinds, strict=True):
        if not kind:
            where = ranks if test == "all-gather" else ""
            skipped = Measure(test, where, SKIPPED, published=about.published, said=about.skipped)
            measures.append(skipped)
    measures.sort(key=lambda measure: names.index(measure.what))
    return FabricResult(tuple(fabric.states), fabric.shape, tuple(findings), tuple(measures))


def rows(result: FabricResult) -> list[tuple[str, ...]]:
    """The table."""
    table: list[tuple[str, ...]] = [("TEST", "WHERE", "RESULT", "MEASURED", "PUBLISHED", "")]
    for each in result.measures:
        form = "g" if each.unit == "bytes" else ".1f"
        value = f"{each.value:{form}} {each.unit}" if each.value is not None else "-"
        published = f"{each.published} {each.unit}".strip() if each.published else "-"
        table.append((each.what, each.where or "-", each.verdict, value, published, each.said))
    return table
