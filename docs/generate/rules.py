"""docs/rules.md: every rule, and what became of the cards' known issues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.checks.configuration import RULES
from sparkwright.engines.vllm.arguments import RULE_IDS

_INTRODUCTION = """\
Known mistakes are refused in the plan, before any host is connected to; `sparkwright check` finds
them without a host. Each rule can be silenced on one service, with a reason that every run repeats:
`"silenced": {"<rule>": "why it does not hold here"}`. A rule runs twice: in the plan, with the
hardware that the recipe is made for, and in preflight, with the hardware that is there."""

_ISSUES = """\
Every entry of the cards' "known issues", "requirements" and "troubleshooting", what finds it here,
and the [diagnosis](diagnoses.md) that names it where it happens all the same."""


def page(catalog: Catalog, known_issues: Path) -> str:
    """The whole page."""
    parts = [
        "# Rules",
        GENERATED.format(
            what="sparkwright/checks/configuration, the catalog or docs/known-issues.yaml"
        ),
        _INTRODUCTION,
        table(("rule", "severity", "finds", "why", "source"), _rules(catalog)),
        "## Known issues of the cards",
        _ISSUES,
        table(("issue", "found by", "how", "diagnosed as", "source"), _issues(known_issues)),
    ]
    return "\n\n".join(parts) + "\n"


def _rules(catalog: Catalog) -> Iterable[Sequence[str]]:
    for rule in RULES:
        source = rule.source
        yield f"`{rule.id}`", str(rule.severity), rule.title, rule.reason, source
        if rule.id == "vllm-arguments":
            for name, level in RULE_IDS.items():
                yield f"`{name}`", level, name.replace("-", " "), rule.reason, source
    for image in catalog.images.values():
        for issue in image.issues:
            where = f"{issue.what} ({image.name}: {', '.join(issue.tags) or 'every tag'})"
            yield f"`{issue.id}`", issue.severity, where, issue.why, issue.source
    for model in catalog.models.values():
        for issue in model.issues:
            where = f"{issue.what} ({model.name})"
            yield f"`{issue.id}`", issue.severity, where, issue.why, issue.source


def _issues(file: Path) -> Iterable[Sequence[str]]:
    entries: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    for entry in entries:
        diagnosed = ", ".join(entry.get("doctor", ())) or "-"
        yield entry["issue"], entry["by"], entry["how"], diagnosed, entry["source"]
