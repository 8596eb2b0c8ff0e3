"""Findings on the command line: ``--format text|json|sarif`` of every command that has some."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import quote

import click

from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo
from sparkwright.findings.finding import TEXTS, Finding, Subject
from sparkwright.findings.render import data
from sparkwright.findings.render import paint as paint

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


_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(command: _Command) -> _Command:
    """``--format`` and ``--json`` in short, as ``form``."""

    @click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "sarif"]),
        default="text",
        help="Print text, JSON (docs/json.md), or SARIF for editors and code scanners.",
    )
    @click.option(
        "--json", "as_json", is_flag=True, help="Print JSON instead of text (docs/json.md)."
    )
    @wraps(command)
    def formatted(*arguments: Any, form: str, as_json: bool, **named: Any) -> Any:
        return command(*arguments, form="json" if as_json else form, **named)

    return cast("_Command", formatted)


def print_findings(findings: Sequence[Finding], form: str, text: str) -> None:
    """Print them as JSON or SARIF, or the text that was made of them."""
    if form != "text":
        print_json(data(findings) if form == "json" else sarif(findings))
    elif text:
        echo(text)
