"""Checks of known faults: each check has texts, and a judgement of typed facts.

Rules, preflight, doctor and the fabric are tables of checks. The texts are in YAML files, by id:
severity, reason, remedy, source, and observed and expected state, with placeholders in braces. A
judgement is a function that compares facts and yields symptoms with values for the placeholders.
Instead of a judgement, a check may have a pattern of a log line in the YAML file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from sparkwright.findings.finding import TEXTS, Finding, Severity, Subject, errors_first
from sparkwright.host.lib.records import dataclass, field
from sparkwright.text.shipped_yaml import read

Facts = TypeVar("Facts")
Part = TypeVar("Part")


class Symptom:
    """An observation that fails a check.

    Attributes:
        check: id of the check, if a judgement has several checks or gives its own id.
        case: case of the check's texts, if the check has cases.
        host, service: subject of the symptom, if known.
        severity: severity, if it differs from the check's severity.
        values: values for the placeholders of the texts. A value with the name of a text replaces
            the text.
    """

    def __init__(
        self,
        check: str = "",
        case: str = "",
        *,
        host: str | None = None,
        service: str | None = None,
        severity: Severity | None = None,
        **values: object,
    ) -> None:
        self.check, self.case, self.severity, self.values = check, case, severity, values
        self.host, self.service = host, service


@dataclass(frozen=True)
class Check:
    """The texts of a check.

    Attributes:
        id: stable name, which users write to silence a rule, and which alerts use.
        reason: the likely cause, or why the fault matters, for a reader who does not know the
            cards.
        source: a card, a document or a report with this fact.
        remedy: the next step, as a command if possible; ``UNIT`` stands for the service's unit.
        title: the mistake in a few words, for lists of rules.
        vague: whether the finding is left out beside an exact error of the same service.
        lasting: whether the fault survives a restart: a release that fails in this way is not
            started again.
        pattern: pattern of a line in a service's log that shows the fault.
        seen: a capture with such a line, below tests/fixtures.
        observed, expected: the observed and the required state.
        key: the setting that a rule names.
        cases: texts, and severity, that differ by case.
    """

    id: str
    severity: Severity
    reason: str
    source: str
    remedy: str = ""
    title: str = ""
    vague: bool = False
    lasting: bool = False
    pattern: str = ""
    seen: str = ""
    observed: str = ""
    expected: str = ""
    key: str = ""
    cases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def finding(self, symptom: Symptom) -> Finding:
        """Return the finding of a symptom."""
        texts = {**vars(self), **self.cases.get(symptom.case, {})}

        def text(name: str) -> str:
            try:
                return str(symptom.values.get(name) or texts[name].format_map(symptom.values))
            except KeyError:  # a host's watch may send no values for the texts
                return shown(texts[name])

        unit = f"sparkwright-{symptom.service}" if symptom.service else "'sparkwright-*'"
        subject = Subject(symptom.host, symptom.service, key=text("key") or None)
        severity = symptom.severity or Severity(texts["severity"])
        shown_texts = {name: text(name) for name in TEXTS}
        shown_texts["remedy"] = re.sub(r"\bUNIT\b", unit, shown_texts["remedy"])
        return Finding(symptom.check or self.id, severity, subject, **shown_texts)


def shown(text: str) -> str:
    """Replace a text's placeholders by their names: ``{rail.name}`` becomes RAIL."""
    plain = re.sub(r"\{(\w+)[^{}]*\}", lambda match: match[1].upper(), text)
    return plain.replace("{{", "{").replace("}}", "}")


@dataclass(frozen=True)
class Judgement(Generic[Facts]):
    """A function that finds the symptoms of one or several checks."""

    ids: tuple[str, ...]
    function: Callable[[Facts], Iterable[Symptom]]


def check(
    *ids: str,
) -> Callable[[Callable[[Facts], Iterable[Symptom]]], Judgement[Facts]]:
    """Make a function the judgement of one or several checks."""
    return lambda function: Judgement(ids, function)


def each(
    parts: Callable[[Facts], Iterable[tuple[Subject, Part]]], *ids: str
) -> Callable[[Callable[[Part], Iterable[Symptom]]], Judgement[Facts]]:
    """Make a function the judgement of each part of the facts, such as a service or a host."""

    def judgement(function: Callable[[Part], Iterable[Symptom]]) -> Judgement[Facts]:
        def judge(facts: Facts) -> Iterator[Symptom]:
            for subject, part in parts(facts):
                for symptom in function(part):
                    symptom.host = symptom.host or subject.host
                    symptom.service = symptom.service or subject.service
                    yield symptom

        return Judgement(ids, judge)

    return judgement


def load(path: Path) -> dict[str, Check]:
    """Return the checks of a YAML file, by id."""
    entries: dict[str, dict[str, Any]] = read(path)
    return {
        id_: Check(id_, Severity(entry.pop("severity", "error")), **entry)
        for id_, entry in entries.items()
    }


class Checks(Generic[Facts]):
    """A table of checks on one subject. The texts are read at their first use."""

    def __init__(
        self, texts: Sequence[Path], sources: Sequence[ModuleType | Judgement[Facts]]
    ) -> None:
        """Collect the judgements of ``sources`` in their order; ``texts`` are YAML files."""
        self.judgements: list[Judgement[Facts]] = [
            value
            for source in sources
            for value in ([source] if isinstance(source, Judgement) else vars(source).values())
            if isinstance(value, Judgement)
        ]
        self.files = texts

    @cached_property
    def texts(self) -> dict[str, Check]:
        """Every check, by id."""
        return {id_: check for path in self.files for id_, check in load(path).items()}

    @property
    def ids(self) -> list[str]:
        """Ids of the checks that the judgements find."""
        return [id_ for judgement in self.judgements for id_ in judgement.ids]

    def judged(self, facts: Facts) -> Iterator[tuple[str, Finding]]:
        """Yield every finding with the first id of its judgement; a service that silences this id
        also silences the finding.
        """
        for judgement in self.judgements:
            for symptom in judgement.function(facts):
                first = judgement.ids[0] if judgement.ids else symptom.check
                yield first, (self.texts.get(symptom.check) or self.texts[first]).finding(symptom)

    def findings(self, facts: Facts) -> list[Finding]:
        """Return every finding once, errors first."""
        return errors_first(dict.fromkeys(finding for _, finding in self.judged(facts)))

    def report(self, symptoms: Iterable[Symptom]) -> list[Finding]:
        """Return the findings of symptoms that name their checks: each once, errors first."""
        findings = (self.texts[symptom.check].finding(symptom) for symptom in symptoms)
        return errors_first(dict.fromkeys(findings))
