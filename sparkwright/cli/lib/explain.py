"""``--explain ID`` of check and doctor: the texts of a check without a host or an inventory."""

from collections.abc import Iterator
from difflib import get_close_matches

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.checks.configuration import RULES, issues
from sparkwright.checks.fabric.judge import CHECKS as FABRIC
from sparkwright.checks.host.judge import CHECKS as PREFLIGHT
from sparkwright.checks.service.diagnose import CHECKS as DOCTOR
from sparkwright.cli.lib.options import print_findings
from sparkwright.config.places import catalogs
from sparkwright.findings.check import Check, shown
from sparkwright.findings.finding import Finding, Severity
from sparkwright.findings.render import paint, text
from sparkwright.findings.user_error import refusal, suggest


def explain(id_: str, *, as_json: bool) -> None:
    """Print the checks, known issues and causes of an id; a rule and a diagnosis may share an id.

    Raises:
        UserError: no check, known issue or cause has this id.
    """
    every = list(_explanations(load_catalog(catalogs())))
    findings = [finding for finding in every if finding.id == id_]
    if not findings:
        near = get_close_matches(id_, [finding.id for finding in every], n=1)
        remedy = suggest(id_, near) if near else "docs/checks.md lists every id"
        raise refusal("--explain", f"no check {id_!r}", remedy)
    print_findings(findings, text(findings, paint=paint), as_json=as_json)


def _explanations(catalog: Catalog) -> Iterator[Finding]:
    """Yield a finding without a subject for each check, known issue and cause."""
    for table in (FABRIC, PREFLIGHT, DOCTOR, RULES):
        yield from map(_of_check, table.texts.values())
    for issue in issues.all_issues(catalog).values():
        yield Finding(
            issue.id, Severity(issue.severity), observed=issue.problem, reason=issue.why,
            remedy=issue.instead, source=issue.source,
        )  # fmt: skip
    for group in catalog.causes.values():
        for cause in group.causes:
            yield Finding(
                cause.id, Severity.WARNING, observed=", ".join(cause.when),
                reason=cause.explanation, remedy=cause.look, source=cause.source,
            )  # fmt: skip


def _of_check(check: Check) -> Finding:
    """Return a finding with a check's own texts, then the different texts of its cases."""

    def joined(name: str) -> str:
        texts = [getattr(check, name), *(case.get(name, "") for case in check.cases.values())]
        return "; or: ".join(dict.fromkeys(shown(each) for each in texts if each))

    return Finding(
        check.id, check.severity, observed=check.title or joined("observed"),
        expected=joined("expected"), reason=joined("reason"), remedy=joined("remedy"),
        source=joined("source"),
    )  # fmt: skip
