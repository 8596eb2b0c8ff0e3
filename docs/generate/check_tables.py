"""Page docs/checks.md: a line for every rule, diagnosis and cause of a slow service."""

import re
from collections.abc import Iterable, Iterator

from docs.generate.markdown import GENERATED
from sparkwright.catalog import Catalog
from sparkwright.checks.configuration import RULES
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.checks.fabric.judge import CHECKS as FABRIC
from sparkwright.checks.service.diagnose import CHECKS as DOCTOR
from sparkwright.findings.check import Check, shown

_SOURCES = "sparkwright/checks, sparkwright/engines, or `issues` and `causes` of the catalog"
_INTRODUCTION = """\
Every finding has an id. This page lists all ids with the beginning of their reasons. Two
commands print an id's whole text, remedy and source, without a host:

    sparkwright check --explain gb10-memory-share
    sparkwright doctor --explain nvml-mismatch"""

_RULES = """\
`sparkwright check`, `plan` and `deploy` check the plan by these rules before they
connect to a host. Preflight repeats the checks with the host's hardware. To silence a rule on one
service, give a reason, which every run repeats: `"silenced": {"gb10-memory-share": "why it does
not hold here"}`. "(w)" marks a warning."""

_ISSUES = """\
The catalog's `issues` list known faults of image tags and models.
[known-issues.yaml](known-issues.yaml) lists each issue of a card, with its source and check."""

_DOCTOR = """\
`sparkwright doctor` finds these faults on hosts and in logs. The watch on the hosts and the alert
rules for Prometheus use the same ids and thresholds ([Troubleshooting](troubleshooting.md),
[Monitoring](monitoring.md))."""

_FABRIC = """\
`sparkwright fabric test` finds these faults on hosts that are joined by ConnectX-7, and `doctor`
finds faults of a cluster ([The fabric](clusters.md#the-fabric))."""

_SLOW = """\
`sparkwright bench` and `sparkwright report` name these causes when a service is slower than
its card."""


def page(catalog: Catalog) -> str:
    """Text of the page."""
    rules = [rule for rule in RULES.texts.values() if rule.id != "known-issue"]
    issues = all_issues(catalog).values()
    causes = [cause for group in catalog.causes.values() for cause in group.causes]
    parts = ["# Checks", GENERATED.format(source=_SOURCES), _INTRODUCTION]
    parts += [
        "## Rules",
        _RULES,
        _list((rule.id, str(rule.severity), rule.title) for rule in rules),
    ]
    parts += ["### Known issues", _ISSUES]
    parts += [_list((issue.id, issue.severity, issue.problem) for issue in issues)]
    parts += ["## Diagnoses", _DOCTOR, _list(_reasons(DOCTOR.texts.values()))]
    parts += ["### The fabric", _FABRIC, _list(_reasons(FABRIC.texts.values()))]
    parts += ["### Slow services", _SLOW]
    parts += [_list((cause.id, "", cause.explanation) for cause in causes)]
    return "\n\n".join(parts) + "\n"


def _reasons(checks: Iterable[Check]) -> Iterator[tuple[str, str, str]]:
    for check in checks:
        yield check.id, str(check.severity), shown(check.reason)


def _list(rows: Iterable[tuple[str, str, str]]) -> str:
    """Make a list of ids, each with a warning's mark and its text up to a colon or semicolon."""
    return "\n".join(
        f"- `{id_}`{' (w)' if severity == 'warning' else ''}: "
        + " ".join(re.split(r"[:;] ", text)[0].split())
        for id_, severity, text in rows
    )
