"""The doctor's diagnosis of hosts: symptoms, reasons and remedies.

This module does no I/O: the facts come from sparkwright/host/doctor.py.
"""

from collections.abc import Mapping
from pathlib import Path

from sparkwright.checks.service import cluster as ranks
from sparkwright.checks.service import host, log_lines, watch
from sparkwright.checks.service import running as service
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.check import Check, Checks, Symptom
from sparkwright.findings.finding import Finding, Severity, errors, errors_first
from sparkwright.findings.render import Paint, counts, headline, text
from sparkwright.host.watch.state import WatchReport
from sparkwright.text.screen import folded

_TEXTS = [*log_lines.FILES, Path(__file__).with_name("checks.yaml")]
#: Checks of one host, and checks between hosts that serve together.
CHECKS = Checks[Facts](_TEXTS, [log_lines, service, ranks, host, watch])
BETWEEN_HOSTS = Checks[Mapping[str, Facts]](_TEXTS, ranks.BETWEEN_HOSTS)
#: Preflight's warnings that do not affect a running service.
_HARMLESS = ("docker-user",)


def diagnose(name: str, facts: Facts) -> list[Finding]:
    """Findings on a host, errors first.

    A fault that both the doctor and the watch find is reported once, by the doctor. A vague finding
    of a service is left out beside an exact error of the same service.
    """
    findings = [finding.on(name) for finding in CHECKS.findings(facts)]
    seen = {(finding.id, finding.subject.service) for finding in findings}
    findings += [
        finding(name, symptom)
        for symptom in watch.reported(facts.watch, facts.now)
        if (symptom.check, symptom.service) not in seen
    ]
    findings += [other for other in facts.findings if other.id not in _HARMLESS]
    exact = {other.subject.service for other in findings if other.stops and not _vague(other)}
    return errors_first(
        other for other in findings if other.subject.service not in exact or not _vague(other)
    )


def diagnose_all(hosts: Mapping[str, Facts]) -> dict[str, list[Finding]]:
    """Findings on every host, and between hosts that serve together."""
    findings = {name: diagnose(name, facts) for name, facts in hosts.items()}
    for between in BETWEEN_HOSTS.findings(hosts):
        name = between.subject.host or ""
        findings[name] = errors_first([*findings[name], between])
    return findings


def watch_findings(name: str, report: WatchReport | None, now: float) -> list[Finding]:
    """Findings of the watch on a host, with reason and remedy, errors first."""
    return errors_first(finding(name, symptom) for symptom in watch.reported(report, now))


def finding(name: str, symptom: Symptom) -> Finding:
    """The finding of a symptom on a host."""
    # A newer watch may report findings that this table lacks.
    unknown = Check(symptom.check, Severity.WARNING, reason="", source="the watch on the host")
    return CHECKS.texts.get(symptom.check, unknown).finding(symptom).on(name)


def _vague(finding: Finding) -> bool:
    return finding.id in CHECKS.texts and CHECKS.texts[finding.id].vague


def render(by_host: Mapping[str, list[Finding]], paint: Paint = str) -> str:
    """Render the most severe finding in a line, then every host's findings, hosts with errors
    first. Hosts with equal findings share an entry.
    """
    ordered = sorted(by_host.items(), key=lambda item: -len(errors(item[1])))
    every = errors_first(item for _, findings in ordered for item in findings)
    lines = [headline(every), ""] if every else []
    for hosts, findings in folded(ordered, lambda same: tuple(item.on(None) for item in same)):
        body = text(findings, hosts=False, indent=2, paint=paint)
        summary = f"{counts(findings)}\n{body}" if findings else "nothing found"
        lines.append(f"{', '.join(hosts)}: {summary}")
    return "\n".join(lines)
