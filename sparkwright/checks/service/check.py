"""Checks of the doctor, and how a symptom becomes a finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Finding, Severity, Subject


@dataclass(frozen=True)
class Symptom:
    """What was observed; reason, remedy and severity only where they differ from the check's."""

    observed: str
    service: str | None = None
    reason: str | None = None
    remedy: str | None = None
    severity: Severity | None = None


@dataclass(frozen=True)
class Check:
    """A known fault.

    Attributes:
        id: stable; the watch and the alert rules use the same one.
        reason: the likely cause, for someone who has not read the cards.
        remedy: what to do, as a command where there is one; ``UNIT`` stands for the service's.
        source: who says so.
        look: finds the symptom; None where the watch's evaluation does.
        vague: left out beside an error of the same service that is not.
    """

    id: str
    severity: Severity
    reason: str
    remedy: str
    source: str
    look: Callable[[Facts], Iterator[Symptom]] | None = None
    vague: bool = False

    def finding(self, host: str, symptom: Symptom) -> Finding:
        """The finding of a symptom."""
        unit = f"sparkwright-{symptom.service}" if symptom.service else "'sparkwright-*'"
        return Finding(
            id=self.id,
            severity=symptom.severity or self.severity,
            subject=Subject(host, symptom.service),
            observed=symptom.observed,
            reason=symptom.reason or self.reason,
            remedy=re.sub(r"\bUNIT\b", unit, symptom.remedy or self.remedy),
            source=self.source,
        )
