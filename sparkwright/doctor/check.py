"""What a diagnosis is, and how a check comes to one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkwright.doctor.facts import Facts
from sparkwright.findings.finding import Severity


@dataclass(frozen=True)
class Sight:
    """A symptom as it was seen; cause and remedy only where they differ from the check's."""

    symptom: str
    service: str | None = None
    cause: str | None = None
    remedy: str | None = None
    severity: Severity | None = None


@dataclass(frozen=True)
class Check:
    """A known illness.

    Attributes:
        name: stable; the watch and the alert rules use the same one.
        cause: the likely one, for someone who has not read the cards.
        remedy: what to do, as a command where there is one.
        source: who says so.
        look: finds the symptom.
        vague: whether a more exact diagnosis of the same service makes this one idle talk.
    """

    name: str
    severity: Severity
    cause: str
    remedy: str
    source: str
    look: Callable[[Facts], Iterator[Sight]]
    vague: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """What ails a host, or one of its services (None: the host itself)."""

    name: str
    severity: Severity
    service: str | None
    symptom: str
    cause: str
    remedy: str
    source: str

    def lines(self) -> list[str]:
        """The diagnosis as indented lines for a terminal."""
        where = f"{self.service}: " if self.service else ""
        return [
            f"{self.severity}: {where}{self.name}",
            f"    seen:   {self.symptom}",
            f"    cause:  {self.cause}",
            f"    remedy: {self.remedy}",
            f"    source: {self.source}",
        ]


def diagnosed(check: Check, sight: Sight) -> Diagnosis:
    """A check's diagnosis of what it saw; ``UNIT`` in a remedy becomes the service's."""
    unit = f"sparkwright-{sight.service}" if sight.service else "'sparkwright-*'"
    remedy = re.sub(r"\bUNIT\b", unit, sight.remedy or check.remedy)
    return Diagnosis(
        name=check.name,
        severity=sight.severity or check.severity,
        service=sight.service,
        symptom=sight.symptom,
        cause=sight.cause or check.cause,
        remedy=remedy,
        source=check.source,
    )
