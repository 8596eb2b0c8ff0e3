"""Measurements of a fabric, compared with published figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkwright.checks.fabric.groups import Fabric
from sparkwright.extras.fabric_test.fabric_measure import Measurement
from sparkwright.extras.fabric_test.measure import Answers, Step
from sparkwright.findings.finding import Finding, errors
from sparkwright.text.shipped_yaml import beside

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_TESTS = beside(__file__, "tests.yaml")


@dataclass(frozen=True)
class Measure:
    """A line of the table.

    Attributes:
        test: ping, ib_write_bw or all-gather.
        where: hosts and device.
        value: what was measured, with its unit in ``unit``; None where it was not.
        published: what others measured.
        output: why it failed or was skipped.
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
        """The cells of its line."""
        form = "g" if self.unit == "bytes" else ".1f"
        value = f"{self.value:{form}} {self.unit}" if self.value is not None else "-"
        published = f"{self.published} {self.unit}".strip() if self.published else "-"
        return self.test, self.where or "-", self.verdict, value, published, self.output


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
        failed = any(measure.verdict == FAILED for measure in self.measures)
        return not failed and not errors(self.findings)


def judged(
    fabric: Fabric, steps: Sequence[Step], answers: Sequence[Answers]
) -> tuple[Measure, ...]:
    """The measurements of a fabric's steps against the published figures, in the order of tests.

    Args:
        answers: of each step.
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
                verdict, problem = SKIPPED, f"over {each.backend}, not nccl: no GPU"
            measures.append(Measure(test, where, verdict, each.value, output=problem, **common))
    return tuple(measures)


def _located(step: Step, answered: Answers, ranks: str) -> Iterator[tuple[str, Measurement]]:
    """Measurements of a step, and where they were taken; a host that is silent has failed."""
    silent = Measurement(step.test, fault="no answer")
    if step.test == "all-gather":
        # The slowest rank, or the first that failed.
        gathers = [each for host in step.requests for each in answered.get(host, ())]
        gathers.sort(key=lambda each: (not each.fault, each.backend == "nccl", each.value or 0.0))
        yield ranks, (gathers or [silent])[0]
        return
    for host in step.requests:
        for each in answered.get(host) or [silent]:
            target = step.server or each.address
            where = " ".join(filter(None, (host, each.device)))
            yield f"{where} to {target}" if target else where, each
