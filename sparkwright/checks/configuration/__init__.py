"""Rules: every known mistake of a service on a host, found in the plan, all at once."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog import Catalog
from sparkwright.checks.configuration import (
    arguments,
    container,
    memory,
    model,
    service,
    speculation,
)
from sparkwright.checks.configuration.issues import RULE, all_issues
from sparkwright.checks.configuration.rule import Context, Hardware, Match, Rule, assumed_hardware
from sparkwright.engines.vllm.arguments import RULE_IDS
from sparkwright.findings.finding import Finding, Subject, errors_first
from sparkwright.findings.user_error import mistake, suggest
from sparkwright.plan.plan import HostPlan

RULES: tuple[Rule, ...] = (
    *arguments.RULES,
    *speculation.RULES,
    *model.RULES,
    *memory.RULES,
    *service.RULES,
    *container.RULES,
)

__all__ = [
    "RULES",
    "Hardware",
    "assumed_hardware",
    "check_host",
    "rule_ids",
    "unknown_silences",
]


def rule_ids(catalog: Catalog) -> list[str]:
    """Everything that can be silenced."""
    return sorted({*(rule.id for rule in RULES), *all_issues(catalog), *RULE_IDS})


def check_host(plan: HostPlan, catalog: Catalog, hardware: Hardware) -> list[Finding]:
    """Every violation of a rule by a host's services, errors first; silenced ones among them."""
    found: list[Finding] = []
    for planned in plan.services:
        context = Context(plan, planned, catalog, hardware)
        silenced = dict(planned.silenced)
        for rule, match in _matches(context):
            name = match.id or rule.id
            key = f"services.{planned.name}.{match.key}"
            found.append(
                Finding(
                    id=name,
                    severity=match.severity or rule.severity,
                    subject=Subject(plan.host, planned.name, _origin(context, match.key), key),
                    observed=match.observed,
                    reason=match.reason or rule.reason,
                    remedy=match.remedy,
                    source=match.source or rule.source,
                    silenced=silenced.get(name) or silenced.get(rule.id),
                )
            )
    return errors_first(found)


def unknown_silences(plan: HostPlan, catalog: Catalog, origin: str) -> Iterator[Finding]:
    """Silenced rules that do not exist: nothing would be silenced, without a message."""
    known = rule_ids(catalog)
    for planned in plan.services:
        for rule, _ in planned.silenced:
            if rule not in known:
                yield mistake(
                    f"{origin}: services.{planned.name}.silenced.{rule}",
                    f"there is no rule {rule!r}",
                    suggest(rule, known),
                    plan.host,
                )


def _matches(context: Context) -> Iterator[tuple[Rule, Match]]:
    for rule in (*RULES, RULE):
        for match in rule.check(context):
            yield rule, match


def _origin(context: Context, key: str) -> str:
    """Where the value of a key comes from; the service's own file where it is not set at all."""
    kind, _, rest = key.partition(".")
    name = rest.partition(".")[0]
    singular = {"arguments": "argument", "environment": "environment"}.get(kind)
    origins = context.service.origins
    if singular is None:
        return origins.get(kind, f"recipe {context.service.recipe}").partition(":")[0]
    return origins.get(f"{singular}.{name}", f"recipe {context.service.recipe}").partition(":")[0]
