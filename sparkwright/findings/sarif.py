"""Findings as SARIF 2.1.0, which editors and code scanners read."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from sparkwright.findings.finding import TEXTS, Finding, Subject

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Iterable[Finding]) -> dict[str, Any]:
    """SARIF document of a run with a result for each finding."""
    result = list(findings)
    rules = {finding.id: finding.reason for finding in result}
    driver = {"name": "sparkwright", "rules": [_rule(*item) for item in sorted(rules.items())]}
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in result]}
    return {"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}


def _rule(name: str, reason: str) -> dict[str, Any]:
    return {"id": name, **({"shortDescription": {"text": reason}} if reason else {})}


def _result(finding: Finding) -> dict[str, Any]:
    parts = ((name, getattr(finding, name)) for name in TEXTS)
    message = ". ".join(
        text if name == "observed" else f"{name.title()}: {text}" for name, text in parts if text
    )
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "level": str(finding.severity),
        "message": {"text": f"{finding.subject}: {message}" if str(finding.subject) else message},
        "locations": [_location(finding.subject)],
    }
    if finding.silenced is not None:
        result["suppressions"] = [{"kind": "external", "justification": finding.silenced}]
    return result


def _location(subject: Subject) -> dict[str, Any]:
    """By name always; as a file only where it is one, and not a recipe or an option."""
    named = ": ".join(filter(None, (subject.host, subject.service, subject.place)))
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": named or "sparkwright"}]
    }
    file = subject.file or ""
    if not file.startswith("-") and " " not in file and ("/" in file or "." in file):
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(file)}}
    return location
