"""Rules that report all known mistakes of a host's services at once, from the plan."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sparkwright.catalog import Catalog
from sparkwright.checks.configuration import facts, issues, memory_budget, whole_service
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.arguments import TEXTS as ARGUMENT_TEXTS
from sparkwright.findings import check, user_error
from sparkwright.findings.finding import Finding, Subject, errors_first
from sparkwright.plan.plan import HostPlan


def _rules(*names: str) -> check.Checks[facts.Context]:
    """The rules of these engines, and the rules of every service."""
    engines, own = [engine(name) for name in names], Path(__file__).with_name("checks.yaml")
    return check.Checks[facts.Context](
        [ARGUMENT_TEXTS, *(each.check_texts for each in engines), own],
        [
            *(module for each in engines for module in each.checks),
            *(memory_budget, whole_service, issues),
        ],
    )


#: Rules of all engines together, for lists of rules; and the rules of each engine.
RULES = _rules(*ENGINES)
_OF_ENGINE = {name: _rules(name) for name in ENGINES}


def rule_ids(catalog: Catalog) -> list[str]:
    """Every id that a service can silence."""
    return sorted({*RULES.ids, *issues.all_issues(catalog)} - {"known-issue"})


def check_host(plan: HostPlan, catalog: Catalog, hardware: facts.Hardware) -> list[Finding]:
    """Return every violation of a rule by a host's services, errors first, including silenced
    violations.
    """
    findings: list[Finding] = []
    for context in facts.contexts(plan, catalog, hardware):
        planned = context.service
        silenced = planned.settings.silenced
        for rule, finding in _OF_ENGINE[planned.engine].judged(context):
            key = finding.subject.key or ""
            subject = Subject(
                plan.host, planned.name, _origin(context, key), f"services.{planned.name}.{key}"
            )
            reason = silenced.get(finding.id) or silenced.get(rule)
            findings.append(replace(finding, subject=subject, silenced=reason))
    return errors_first(findings)


def unknown_silences(plan: HostPlan, catalog: Catalog, origin: str) -> Iterator[Finding]:
    """Report silenced rules that do not exist: a misspelt name would have no effect."""
    rules = rule_ids(catalog)
    for planned in plan.services:
        for rule in planned.settings.silenced:
            if rule not in rules:
                yield user_error.mistake(
                    f"{origin}: services.{planned.name}.silenced.{rule}",
                    f"there is no rule {rule!r}",
                    user_error.suggest(rule, rules),
                    plan.host,
                )


def _origin(context: facts.Context, key: str) -> str:
    """Return the file that sets a key; the service's recipe if no file sets the key."""
    kind, _, rest = key.partition(".")
    if kind in ("arguments", "environment"):
        kind = f"{kind.removesuffix('s')}.{rest.partition('.')[0]}"
    origin = context.service.origins.get(kind, f"recipe {context.service.recipe.name}")
    return origin.partition(":")[0]
