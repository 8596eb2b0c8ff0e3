"""What was measured on a fabric, against what others published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkwright.checks.fabric.groups import Fabric
from sparkwright.extras.fabric_test.measure import Plan, Published, published
from sparkwright.findings.finding import Finding, errors
from sparkwright.host.fabric_measure import MeasureAnswer

#: What a measurement came to.
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Measure:
    """One line of the table.

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
    """One fabric, judged and measured."""

    hosts: tuple[str, ...]
    shape: str
    findings: tuple[Finding, ...]
    measures: tuple[Measure, ...]

    @property
    def well(self) -> bool:
        """Whether no error was found and nothing failed."""
        return not errors(self.findings) and all(one.verdict != FAILED for one in self.measures)


def result(
    fabric: Fabric, findings: Sequence[Finding], planned: Plan, answers: Mapping[str, MeasureAnswer]
) -> FabricResult:
    """The result of a fabric; ``answers`` by host, of those that answered."""
    known = {one.what: one for one in published(fabric.shape)}
    measures = (
        *_pings(planned, answers),
        *_writes(planned, answers, known["ib_write_bw"]),
        *_gather(fabric, planned, answers, known["all-gather"]),
    )
    return FabricResult(tuple(fabric.states), fabric.shape, tuple(findings), measures)


def _pings(planned: Plan, answers: Mapping[str, MeasureAnswer]) -> Iterator[Measure]:
    for host in planned.pings:
        if host not in answers:
            yield Measure("ping", host, FAILED, said="no answer")
            continue
        for one in answers[host].pings:
            verdict = FAILED if one.wrong else PASSED
            where = f"{host} {one.device} to {one.address}"
            yield Measure("ping", where, verdict, one.size, "bytes", said=one.wrong)
    if not planned.pings:
        yield Measure("ping", "", SKIPPED, said="no two hosts have rails in one subnet")


def _writes(
    planned: Plan, answers: Mapping[str, MeasureAnswer], known: Published
) -> Iterator[Measure]:
    for pair in planned.pairs:
        wanted = {(one.device, one.address) for one in pair.write}
        found = [
            one
            for one in answers.get(pair.client, MeasureAnswer()).writes
            if (one.device, one.address) in wanted
        ]
        if not found:
            where = f"{pair.client} to {pair.server}"
            yield Measure(known.what, where, FAILED, None, known.unit, known.said, "no answer")
        for one in found:
            well = one.gbits is not None and one.gbits >= known.least
            where = f"{pair.client} {one.device} to {pair.server}"
            yield Measure(
                known.what, where, PASSED if well else FAILED, one.gbits, known.unit, known.said,
                one.wrong,
            )  # fmt: skip
    if not planned.pairs:
        why = "ib_write_bw is not installed on two of the hosts: sudo apt install perftest"
        yield Measure(known.what, "", SKIPPED, published=known.said, said=why)


def _gather(
    fabric: Fabric, planned: Plan, answers: Mapping[str, MeasureAnswer], known: Published
) -> Iterator[Measure]:
    where = f"{len(fabric.states)} ranks"
    found = [one for host in planned.gathers if (one := answers.get(host, MeasureAnswer()).gather)]
    wrong = [one.wrong for one in found if one.wrong]
    rates = [one.gbytes for one in found if one.gbytes is not None]
    if not planned.gathers:
        why = "no image to run it in on every host, or no address: deploy a service first"
        yield Measure(known.what, where, SKIPPED, published=known.said, said=why)
    elif wrong or not rates:
        said = wrong[0] if wrong else "no answer"
        yield Measure(known.what, where, FAILED, None, known.unit, known.said, said)
    else:
        backends = {one.backend for one in found}
        if backends != {"nccl"}:
            said = f"over {', '.join(sorted(backends))}, not nccl: no GPU"
            yield Measure(known.what, where, SKIPPED, min(rates), known.unit, known.said, said)
        else:
            verdict = PASSED if min(rates) >= known.least else FAILED
            yield Measure(known.what, where, verdict, min(rates), known.unit, known.said)


def rows(found: FabricResult) -> list[tuple[str, ...]]:
    """The table."""
    head = ("TEST", "WHERE", "RESULT", "MEASURED", "PUBLISHED", "")
    return [head, *(
        (one.what, one.where or "-", one.verdict,
         f"{one.value:g} {one.unit}" if one.unit == "bytes" and one.value is not None
         else f"{one.value:.1f} {one.unit}" if one.value is not None else "-",
         f"{one.published} {one.unit}".strip() if one.published else "-", one.said)
        for one in found.measures
    )]  # fmt: skip
