"""Findings: what a check saw on a host, what it needs, why, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR stops the host before anything is changed on it; WARNING is said and passed."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a host.

    Attributes:
        check: the check's name, e.g. ``nvidia-driver``.
        severity: whether the host is refused.
        found: what was seen, in the host's own words where it has any.
        needed: what has to be there.
        why: the reason, for someone who has not read the cards.
        remedy: what to do, as a command where there is one.
    """

    check: str
    severity: Severity
    found: str
    needed: str
    why: str
    remedy: str

    def lines(self) -> list[str]:
        """The finding as indented lines for a terminal."""
        return [
            f"{self.severity}: {self.check}",
            f"    found:  {self.found}",
            f"    needed: {self.needed}",
            f"    why:    {self.why}",
            f"    remedy: {self.remedy}",
        ]


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those findings that refuse the host."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]
