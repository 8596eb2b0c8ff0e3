"""The ``Finding`` type, shared by all checks that report a fault."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sparkwright.host.lib.records import dataclass, field, replace

#: Id of every mistake in the user's files.
INPUT = "input"


#: Texts of a finding, in the order in which they are shown.
TEXTS = ("observed", "expected", "reason", "remedy", "source")


class Severity(StrEnum):
    """Severity of a finding: ERROR stops a run or refuses a host; WARNING is only reported."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Subject:
    """Subject of a finding: the host, service, file and key that the finding concerns."""

    host: str | None = None
    service: str | None = None
    file: str | None = None
    key: str | None = None

    @property
    def place(self) -> str:
        """File and key: ``group_data/sparks.py: services.qwen36.port``."""
        return ": ".join(filter(None, (self.file, self.key)))

    def __str__(self) -> str:
        """Text such as ``spark-1: group_data/sparks.py: services.qwen36.port``.

        A key contains the name of its service.
        """
        return ": ".join(filter(None, (self.host, self.place or self.service)))


@dataclass(frozen=True)
class Finding:
    """A fault. JSON has the same fields; a missing text is empty.

    Attributes:
        id: the check's stable name, e.g. ``nvidia-driver``.
        observed: the observed state, as the host reports it if possible.
        expected: the required state.
        reason: why the fault matters, for a reader who does not know the cards.
        remedy: the next step, as a command if possible.
        source: a card, a document or a report with this fact.
        silenced: the user's reason for silencing the finding; None if the finding counts.
    """

    id: str
    severity: Severity
    subject: Subject = field(default_factory=Subject)
    observed: str = ""
    expected: str = ""
    reason: str = ""
    remedy: str = ""
    source: str = ""
    silenced: str | None = None

    @property
    def stops(self) -> bool:
        """Return whether the finding ends the run, or refuses the host."""
        return self.severity is Severity.ERROR and self.silenced is None

    @property
    def level(self) -> str:
        """Level of the finding: ``error``, ``warning`` or ``silenced``."""
        return str(self.severity) if self.silenced is None else "silenced"

    def on(self, host: str | None) -> Finding:
        """Return the finding with this host as its subject."""
        return replace(self, subject=replace(self.subject, host=host))


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that end the run, or refuse the host."""
    return [finding for finding in findings if finding.stops]


def errors_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors before warnings, otherwise in their order."""
    return sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
