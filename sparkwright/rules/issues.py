"""The catalog's known issues as rules."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog import Catalog
from sparkwright.catalog.issues import Issue
from sparkwright.findings.finding import Severity
from sparkwright.rules.rule import Hit, Subject


def issue_hits(subject: Subject) -> Iterator[Hit]:
    """Issues of the service's image, body and drafter that apply."""
    issues = [*subject.image.issues, *subject.body.issues]
    issues += subject.drafter.issues if subject.drafter else ()
    for issue in issues:
        if issue.applies(subject.service.image.tag, subject.facts):
            yield Hit(
                key=_key(issue, subject),
                what=issue.what,
                instead=issue.instead,
                why=issue.why,
                source=issue.source,
                severity=Severity(issue.severity),
                rule=issue.id,
            )


def all_issues(catalog: Catalog) -> dict[str, Issue]:
    """Every issue of the catalog by id."""
    issues = [issue for image in catalog.images.values() for issue in image.issues]
    issues += [issue for model in catalog.models.values() for issue in model.issues]
    return {issue.id: issue for issue in issues}


def _key(issue: Issue, subject: Subject) -> str:
    """The setting to look at: the last condition that an argument or variable meets."""
    for fact in reversed(issue.when):
        kind, _, name = fact.partition(".")
        if kind == "speculative":
            return f"arguments.speculative_config.{name}"
        if kind in ("argument", "environment"):
            return f"{kind}{'s' if kind == 'argument' else ''}.{name}"
    return "recipe"
