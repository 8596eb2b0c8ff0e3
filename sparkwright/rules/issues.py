"""The catalog's known issues as rules."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog import Catalog
from sparkwright.catalog.issues import Issue
from sparkwright.findings.finding import Severity
from sparkwright.rules.rule import Context, Match, Rule


def issue_matches(context: Context) -> Iterator[Match]:
    """Issues of the service's image, body and drafter that apply."""
    issues = [*context.image.issues, *context.body.issues]
    issues += context.drafter.issues if context.drafter else ()
    for issue in issues:
        if issue.applies(context.service.image.tag, context.facts):
            yield Match(
                key=_key(issue, context),
                observed=issue.what,
                remedy=issue.instead,
                reason=issue.why,
                source=issue.source,
                severity=Severity(issue.severity),
                id=issue.id,
            )


def all_issues(catalog: Catalog) -> dict[str, Issue]:
    """Every issue of the catalog by id."""
    issues = [issue for image in catalog.images.values() for issue in image.issues]
    issues += [issue for model in catalog.models.values() for issue in model.issues]
    return {issue.id: issue for issue in issues}


def _key(issue: Issue, context: Context) -> str:
    """The setting to look at: the last condition that an argument or variable meets."""
    for fact in reversed(issue.when):
        kind, _, name = fact.partition(".")
        if kind == "speculative":
            return f"arguments.speculative_config.{name}"
        if kind in ("argument", "environment"):
            return f"{kind}{'s' if kind == 'argument' else ''}.{name}"
    return "recipe"


#: The roof over the catalog's issues, each of which brings its own id, reason and source.
RULE = Rule(
    "known-issue", Severity.ERROR, "what a card says does not work", "", "the catalog",
    issue_matches,
)  # fmt: skip
