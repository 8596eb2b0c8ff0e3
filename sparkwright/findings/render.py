"""Render findings as text and JSON. Equal findings of several hosts are merged into one finding."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import click

from sparkwright.findings.finding import TEXTS, Finding, Severity
from sparkwright.text.visible import visible

#: Function that renders a finding's level; the command line adds a colour.
Paint = Callable[[str], str]


def paint(level: str) -> str:
    """Return a finding's level in its colour, for a terminal."""
    return click.style(level, fg={"error": "red", "warning": "yellow"}.get(level, "cyan"))


def together(findings: Iterable[Finding]) -> dict[Finding, list[str]]:
    """Map each finding, without its host, to the hosts that have it."""
    result: dict[Finding, list[str]] = {}
    for finding in findings:
        hosts = result.setdefault(finding.on(None), [])
        if finding.subject.host and finding.subject.host not in hosts:
            hosts.append(finding.subject.host)
    return result


def text(
    findings: Iterable[Finding], *, hosts: bool = True, indent: int = 0, paint: Paint = str
) -> str:
    """Render each finding as a block of lines.

    Args:
        hosts: whether lines name hosts; False if a heading names the only host.
    """
    lines = [
        line
        for finding, names in together(findings).items()
        for line in _lines(finding, ", ".join(names) if hosts else "", paint)
    ]
    return "\n".join(" " * indent + line for line in lines)


def _lines(finding: Finding, hosts: str, paint: Paint) -> list[str]:
    head = ": ".join(filter(None, (finding.id, hosts, str(finding.subject))))
    details = {name: getattr(finding, name) for name in (*TEXTS, "silenced")}
    return [
        f"{paint(finding.level)}: {visible(head)}",
        *(f"    {f'{name}:':9} {visible(message)}" for name, message in details.items() if message),
    ]


def headline(findings: Iterable[Finding]) -> str:
    """Return the first finding in one line, with the number of other findings.

    Callers put errors first.
    """
    (first, hosts), *others = together(findings).items()
    more = f"; and {count(len(others), 'finding')} more" if others else ""
    where = ", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts"
    message = ": ".join(filter(None, (where, str(first.subject), first.id, first.observed)))
    return visible(f"{message}{more}")


def counts(findings: Iterable[Finding]) -> str:
    """Count findings by severity, without silenced findings: ``1 error, 2 warnings``."""
    each = [finding.level for finding in findings]
    return ", ".join(count(each.count(level), level) for level in Severity)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``2 hosts``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON objects, which all have the same keys."""
    return [asdict(finding) for finding in findings]
