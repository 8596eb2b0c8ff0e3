"""Checks: known faults, each with its texts and a judgement over typed facts.

Rules, preflight, doctor and the fabric are tables of them. The texts stand in YAML files, by id:
severity, reason, remedy, source. The judgement is a function that yields symptoms, or a pattern of
a line in a log, which stands in the YAML file too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from sparkwright.findings.finding import Finding, Severity, Subject, errors_first

Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Symptom:
    """An observation that a check does not pass.

    Attributes:
        host, service, key: its subject, as far as it has one.
        reason, remedy, source, severity: where they differ from the check's.
        check: id of the check, where a judgement has several or gives an id of its own.
    """

    observed: str
    expected: str = ""
    host: str | None = None
    service: str | None = None
    key: str | None = None
    reason: str = ""
    remedy: str = ""
    source: str = ""
    severity: Severity | None = None
    check: str = ""


@dataclass(frozen=True)
class Check:
    """The texts of a check.

    Attributes:
        id: stable; users silence rules by it, and alerts use it.
        reason: the likely cause or why it matters, for someone who has not read the cards.
        source: a card, a document or a report that says so.
        remedy: the next step, as a command where there is one; ``UNIT`` stands for the service's.
        title: the mistake in a few words, for lists of rules.
        vague: left out beside an error of the same service that is not.
        pattern: of a line in a service's log that shows it.
        seen: a capture with such a line, below tests/fixtures.
    """

    id: str
    severity: Severity
    reason: str
    source: str
    remedy: str = ""
    title: str = ""
    vague: bool = False
    pattern: str = ""
    seen: str = ""

    def finding(self, symptom: Symptom) -> Finding:
        """The finding of a symptom."""
        unit = f"sparkwright-{symptom.service}" if symptom.service else "'sparkwright-*'"
        return Finding(
            id=symptom.check or self.id,
            severity=symptom.severity or self.severity,
            subject=Subject(symptom.host, symptom.service, key=symptom.key),
            observed=symptom.observed,
            expected=symptom.expected,
            reason=symptom.reason or self.reason,
            remedy=re.sub(r"\bUNIT\b", unit, symptom.remedy or self.remedy),
            source=symptom.source or self.source,
        )


@dataclass(frozen=True)
class Judgement(Generic[Facts]):
    """A function that finds the symptoms of a check, or of several."""

    ids: tuple[str, ...]
    function: Callable[[Facts], Iterable[Symptom]]


def check(
    *ids: str,
) -> Callable[[Callable[[Facts], Iterable[Symptom]]], Judgement[Facts]]:
    """Make a function the judgement of a check, or of several."""
    return lambda function: Judgement(ids, function)


def load(path: Path) -> dict[str, Check]:
    """The texts of a YAML file, by id."""
    import yaml  # most runs find nothing, and need no text

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries: dict[str, dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), loader)
    return {
        id_: Check(id_, Severity(entry.pop("severity", "error")), **entry)
        for id_, entry in entries.items()
    }


class Checks(Generic[Facts]):
    """A table of checks on one subject. Texts are read when the first is needed."""

    def __init__(self, texts: Sequence[Path], modules: Sequence[ModuleType]) -> None:
        """Collect the judgements of modules, in their order, for texts of YAML files."""
        self.judgements: list[Judgement[Facts]] = [
            value
            for module in modules
            for value in vars(module).values()
            if isinstance(value, Judgement)
        ]
        self.files = texts

    @cached_property
    def texts(self) -> dict[str, Check]:
        """Every check, by id."""
        return {id_: check for path in self.files for id_, check in load(path).items()}

    @property
    def ids(self) -> list[str]:
        """The id of every check that a judgement finds."""
        return [id_ for judgement in self.judgements for id_ in judgement.ids]

    def symptoms(self, facts: Facts) -> Iterator[tuple[str, Symptom]]:
        """Every symptom, with the id of its check."""
        for judgement in self.judgements:
            for symptom in judgement.function(facts):
                known = symptom.check and symptom.check in self.texts
                yield symptom.check if known else judgement.ids[0], symptom

    def findings(self, facts: Facts) -> list[Finding]:
        """Every finding, errors first."""
        return errors_first(
            self.texts[id_].finding(symptom) for id_, symptom in self.symptoms(facts)
        )

    def report(self, symptoms: Iterable[Symptom]) -> list[Finding]:
        """Findings of symptoms that name their checks, errors first."""
        return errors_first(self.texts[symptom.check].finding(symptom) for symptom in symptoms)
