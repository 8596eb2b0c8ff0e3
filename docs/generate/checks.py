"""docs/rules.md and docs/diagnoses.md: every check, and the causes of slow services."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.checks.configuration import RULES
from sparkwright.checks.fabric.judge import CHECKS as FABRIC
from sparkwright.checks.service.diagnose import CHECKS as DOCTOR
from sparkwright.findings.check import Check, shown

_RULES = """\
Known mistakes are refused in the plan, before any host is connected to; `sparkwright check` finds
them without a host. Each rule can be silenced on one service, with a reason that every run repeats:
`"silenced": {"<rule>": "why it does not hold here"}`. A rule runs twice: in the plan, with the
hardware that the recipe is made for, and in preflight, with the hardware that is there."""

_ISSUES = """\
Every entry of the cards' "known issues", "requirements" and "troubleshooting", what finds it here,
and the [diagnosis](diagnoses.md) that names it where it happens all the same."""

_DOCTOR = """\
What `sparkwright doctor` finds, with the likely cause and the remedy. The watch on the hosts and
the alert rules for Prometheus use the same names and the same thresholds; see
[Troubleshooting](troubleshooting.md) and [Monitoring](monitoring.md)."""

_FABRIC = """\
What `sparkwright fabric test` finds on hosts that are joined by ConnectX-7, and between them;
see [The fabric](fabric.md)."""

_SLOW = """\
What `sparkwright bench` and `sparkwright report` name when a service is slower than its card."""


def rules(catalog: Catalog, known_issues: Path) -> str:
    """docs/rules.md."""
    return _page(
        "Rules",
        "sparkwright/checks/configuration, the catalog or docs/known-issues.yaml",
        _RULES,
        table(("rule", "severity", "finds", "why", "source"), _of_settings(catalog)),
        "## Known issues of the cards",
        _ISSUES,
        table(("issue", "found by", "how", "diagnosed as", "source"), _issues(known_issues)),
    )


def diagnoses(catalog: Catalog) -> str:
    """docs/diagnoses.md."""
    return _page(
        "Diagnoses",
        "sparkwright/checks/service, sparkwright/checks/fabric, sparkwright/engines or "
        "catalog/causes",
        _DOCTOR,
        _diagnoses(DOCTOR.texts.values()),
        "## The fabric",
        _FABRIC,
        _diagnoses(FABRIC.texts.values()),
        "## Slow services",
        _SLOW,
        table(("cause", "symptoms", "explanation", "how to find out", "source"), _causes(catalog)),
    )


def _page(title: str, sources: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", GENERATED.format(what=sources), *parts]) + "\n"


def _diagnoses(checks: Iterable[Check]) -> str:
    return table(
        ("diagnosis", "severity", "likely cause", "remedy", "source"),
        (
            (
                f"`{check.id}`",
                str(check.severity),
                shown(check.reason),
                shown(check.remedy),
                check.source,
            )
            for check in checks
        ),
    )


def _of_settings(catalog: Catalog) -> Iterable[Sequence[str]]:
    for rule in RULES.texts.values():
        if rule.id == "known-issue":
            continue  # its issues follow, each under its own id
        yield f"`{rule.id}`", str(rule.severity), rule.title, shown(rule.reason), rule.source
    for image in catalog.images.values():
        for issue in image.issues:
            where = f"{issue.problem} ({image.name}: {', '.join(issue.tags) or 'every tag'})"
            yield f"`{issue.id}`", issue.severity, where, issue.why, issue.source
    for model in catalog.models.values():
        for issue in model.issues:
            where = f"{issue.problem} ({model.name})"
            yield f"`{issue.id}`", issue.severity, where, issue.why, issue.source


def _issues(file: Path) -> Iterable[Sequence[str]]:
    entries: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    for entry in entries:
        diagnosed = ", ".join(entry.get("doctor", ())) or "-"
        yield entry["issue"], entry["by"], entry["how"], diagnosed, entry["source"]


def _causes(catalog: Catalog) -> Iterable[Sequence[str]]:
    for group in catalog.causes.values():
        for cause in group.causes:
            scope = [", ".join(cause.when)]
            scope += [f"{cause.concurrency} requests and more"] if cause.concurrency > 1 else []
            scope += [f"{cause.prompt_tokens} tokens and more"] if cause.prompt_tokens else []
            scope += [f"tag {' or '.join(cause.tags)}"] if cause.tags else []
            scope += [f"not with {key} {value}" for key, value in cause.ruled_out_by.items()]
            yield f"`{cause.id}`", "; ".join(scope), cause.explanation, cause.look, cause.source
