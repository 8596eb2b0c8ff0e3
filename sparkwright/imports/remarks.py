"""What an import says of a recipe: each key that it could not carry over, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.findings.finding import Finding, Severity, Subject

LEFT_OUT = "import-left-out"
CHANGED = "import-changed"
RISK = "import-risk"
HARDWARE = "import-hardware"
REFUSED = "import-refused"


class Refused(Exception):
    """This recipe can't be imported; says why, and what helps."""

    def __init__(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        self.key, self.observed, self.reason, self.remedy = key, observed, reason, remedy
        super().__init__(f"{observed}: {reason}")

    def finding(self, source: str) -> Finding:
        """The same, of a file."""
        return Finding(
            REFUSED, Severity.ERROR, Subject(file=source, key=self.key or None),
            self.observed, reason=self.reason, remedy=self.remedy,
        )  # fmt: skip


@dataclass
class Remarks:
    """Findings of one recipe, in the order in which they are met.

    Attributes:
        source: the recipe's file, as messages name it.
    """

    source: str
    findings: list[Finding] = field(default_factory=list)

    def left_out(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        """Something that our catalog does not get."""
        self._add(LEFT_OUT, key, observed, reason, remedy)

    def changed(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        """Something that our catalog says otherwise than the recipe."""
        self._add(CHANGED, key, observed, reason, remedy)

    def risk(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        """Something that whoever deploys it trusts others with."""
        self._add(RISK, key, observed, reason, remedy)

    def hardware(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        """More than one host of its kind has."""
        self._add(HARDWARE, key, observed, reason, remedy)

    @property
    def carried_whole(self) -> bool:
        """Whether nothing was left out."""
        return not any(one.id == LEFT_OUT for one in self.findings)

    def _add(self, name: str, key: str, observed: str, reason: str, remedy: str) -> None:
        subject = Subject(file=self.source, key=key or None)
        found = Finding(
            name, Severity.WARNING, subject, observed, reason=reason, remedy=remedy
        )  # fmt: skip
        if found not in self.findings:
            self.findings.append(found)
