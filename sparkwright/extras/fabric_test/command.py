"""``sparkwright fabric test``: check the fabric, and compare its speed with published figures."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import click

from sparkwright.checks.fabric.groups import Fabric, of_looks
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.cli.lib.hosts import Hosts, hosts_argument, reported
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.extras.fabric_test.fabric_measure import Measurement
from sparkwright.extras.fabric_test.measure import Answers, Step, measured, plan
from sparkwright.findings import finding, user_error
from sparkwright.findings.render import paint, text
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.table import columns

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_TESTS = beside(__file__, "tests.yaml")


@dataclass(frozen=True)
class Measure:
    """A line of the table.

    Attributes:
        test: ping, ib_write_bw or all-gather.
        where: hosts and device.
        value: the measured value, with its unit in ``unit``; None without a measurement.
        published: published values of other sites.
        output: cause of a failure or skip.
    """

    test: str
    where: str
    verdict: str
    value: float | None = None
    unit: str = ""
    published: str = ""
    output: str = ""

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the result's line."""
        form = "g" if self.unit == "bytes" else ".1f"
        value = f"{self.value:{form}} {self.unit}" if self.value is not None else "-"
        published = f"{self.published} {self.unit}".strip() if self.published else "-"
        return self.test, self.where or "-", self.verdict, value, published, self.output


@dataclass(frozen=True)
class FabricResult:
    """A fabric's findings and measurements."""

    hosts: tuple[str, ...]
    shape: str
    findings: tuple[finding.Finding, ...]
    measures: tuple[Measure, ...]

    @property
    def well(self) -> bool:
        """Return whether the test is without errors and failures."""
        failed = any(measure.verdict == FAILED for measure in self.measures)
        return not failed and not finding.errors(self.findings)


def judged(
    fabric: Fabric, steps: Sequence[Step], answers: Sequence[Answers]
) -> tuple[Measure, ...]:
    """Compare the measurements of a fabric's steps with the published figures, in the order of
    tests.

    Args:
        answers: answers of each step.
    """
    ranks = f"{len(fabric.states)} ranks"
    measures: list[Measure] = []
    for test, default in _TESTS.items():
        figures = default | default.get(fabric.shape, {})
        common = {"unit": figures["unit"], "published": figures.get("published", "")}
        taken = [
            measurement
            for step, answered in zip(steps, answers, strict=False)
            if step.test == test
            for measurement in _located(step, answered, ranks)
        ]
        if not taken:
            where = ranks if test == "all-gather" else ""
            measures.append(Measure(test, where, SKIPPED, output=figures["skipped"], **common))
        for where, each in taken:
            passed = not each.fault and (each.value or 0.0) >= figures.get("least", 0.0)
            verdict, problem = PASSED if passed else FAILED, each.fault
            if each.backend not in ("", "nccl") and not problem:
                verdict, problem = SKIPPED, f"measured over {each.backend}, since nccl needs a GPU"
            measures.append(Measure(test, where, verdict, each.value, output=problem, **common))
    return tuple(measures)


def _located(step: Step, answered: Answers, ranks: str) -> Iterator[tuple[str, Measurement]]:
    """Measurements of a step, and their hosts; a silent host counts as failed."""
    silent = Measurement(step.test, fault="no answer")
    if step.test == "all-gather":
        # The slowest rank, or the first rank that failed.
        gathers = [each for host in step.requests for each in answered.get(host, ())]
        gathers.sort(key=lambda each: (not each.fault, each.backend == "nccl", each.value or 0.0))
        yield ranks, (gathers or [silent])[0]
        return
    for host in step.requests:
        for each in answered.get(host) or [silent]:
            target = step.server or each.address
            where = " ".join(filter(None, (host, each.device)))
            yield f"{where} to {target}" if target else where, each


DOCUMENT = list[FabricResult]
_HEADS = ("TEST", "WHERE", "RESULT", "MEASURED", "PUBLISHED", "")


@click.command("test")
@hosts_argument
@click.option("--look", is_flag=True, help="Only check cables, addresses and devices.")
@json_option
def command(hosts: Hosts, look: bool, as_json: bool) -> None:
    """Check the fabric between hosts, and compare its speed with published figures.

    Tests are a ping that fills the MTU on every rail, ib_write_bw on both twins at once if
    installed, and an all-gather through the serving image. The tests take a minute and some GiB of
    memory on each host, and change nothing. Exit with 1 when an error is found, a measure fails, or
    a host does not answer.
    """
    from sparkwright.run import questions

    with hosts.session(waiting=True) as session:
        looks = session.ask(questions.fabric)
        fabrics = of_looks(looks.answers)
        if not fabrics and looks.answers:
            remedy = "name other hosts"
            raise user_error.refusal(str(hosts.inventory), "no host has a ConnectX", remedy)
        images = {name: each.image for name, each in looks.answers.items()}
        plans = [[] if look else plan(fabric, images) for fabric in fabrics]
        answers = measured(session, plans)
    reported(looks)
    results = [
        FabricResult(
            tuple(fabric.states), fabric.shape, tuple(CHECKS.findings(fabric)),
            () if look else judged(fabric, steps, taken),
        )
        for fabric, steps, taken in zip(fabrics, plans, answers, strict=True)
    ]  # fmt: skip
    if as_json:
        print_json([asdict(each) for each in results])
    for each in [] if as_json else results:
        echo(_rendered(each))
    sys.exit(int(bool(looks.failures) or not results or not all(each.well for each in results)))


def _rendered(result: FabricResult) -> str:
    head = f"{', '.join(result.hosts)}: {result.shape}, {'no faults' if result.well else 'faults'}"
    findings = text(result.findings, indent=2, paint=paint)
    rows = [measure.row for measure in result.measures]
    table = [f"  {line}" for line in columns([_HEADS, *rows])] if rows else []
    return "\n".join(filter(None, [head, findings, *table]))
