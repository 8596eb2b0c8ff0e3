"""Rules: every known mistake of a service on a host, found in the plan, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkwright.catalog import Catalog
from sparkwright.findings.finding import Severity
from sparkwright.findings.problems import Problem, suggest
from sparkwright.plan.plan import HostPlan
from sparkwright.rules import arguments, memory, model, service, speculation
from sparkwright.rules.issues import all_issues, issue_hits
from sparkwright.rules.rule import Hardware, Hit, Rule, Subject, assumed_hardware
from sparkwright.vllm.arguments import RULE_IDS

RULES: tuple[Rule, ...] = (
    *arguments.RULES,
    *speculation.RULES,
    *model.RULES,
    *memory.RULES,
    *service.RULES,
)

__all__ = [
    "RULES",
    "Broken",
    "Hardware",
    "assumed_hardware",
    "check_host",
    "passing_lines",
    "rule_ids",
    "stopping",
    "unknown_silences",
]


@dataclass(frozen=True)
class Broken:
    """A rule that a service of a host breaks.

    Attributes:
        key: ``services.<name>.arguments.<argument>`` and the like.
        origin: where the value comes from: a file of the user's or a recipe.
        silenced: the user's reason, where the rule is silenced on this service.
    """

    host: str
    service: str
    rule: str
    severity: Severity
    key: str
    origin: str
    what: str
    why: str
    source: str
    instead: str
    silenced: str | None = None

    @property
    def problem(self) -> Problem:
        """As a problem that ends a run."""
        return Problem(
            f"{self.origin}: {self.key}",
            f"{self.what} [{self.rule}]: {self.why} ({self.source})",
            self.instead,
            self.host,
        )


def rule_ids(catalog: Catalog) -> list[str]:
    """Everything that can be silenced."""
    return sorted({*(rule.id for rule in RULES), *all_issues(catalog), *RULE_IDS})


def check_host(plan: HostPlan, catalog: Catalog, hardware: Hardware) -> list[Broken]:
    """Everything that is wrong with a host's services, errors first; silenced ones among them."""
    found: list[Broken] = []
    for planned in plan.services:
        subject = Subject(plan, planned, catalog, hardware)
        silenced = dict(planned.silenced)
        for rule, hit in _hits(subject):
            name = hit.rule or (rule.id if rule else "")
            found.append(
                Broken(
                    host=plan.host,
                    service=planned.name,
                    rule=name,
                    severity=hit.severity or (rule.severity if rule else Severity.ERROR),
                    key=f"services.{planned.name}.{hit.key}",
                    origin=_origin(subject, hit.key),
                    what=hit.what,
                    why=hit.why or (rule.why if rule else ""),
                    source=hit.source or (rule.source if rule else ""),
                    instead=hit.instead,
                    silenced=silenced.get(name) or (silenced.get(rule.id) if rule else None),
                )
            )
    return sorted(found, key=lambda broken: broken.severity is not Severity.ERROR)


def unknown_silences(plan: HostPlan, catalog: Catalog, origin: str) -> Iterator[Problem]:
    """Silenced rules that do not exist: nothing would be silenced, and nobody would know."""
    known = rule_ids(catalog)
    for planned in plan.services:
        for rule, _ in planned.silenced:
            if rule not in known:
                yield Problem(
                    f"{origin}: services.{planned.name}.silenced.{rule}",
                    f"there is no rule {rule!r}",
                    suggest(rule, known),
                    plan.host,
                )


def stopping(broken: Iterable[Broken]) -> Iterator[Problem]:
    """Errors that nobody has silenced, as problems that end a run."""
    for one in broken:
        if one.severity is Severity.ERROR and one.silenced is None:
            yield one.problem


def passing_lines(broken: Iterable[Broken]) -> Iterator[str]:
    """Warnings and silenced rules as lines; the same of several hosts is one line."""
    same: dict[str, list[str]] = {}
    for one in broken:
        if one.silenced is not None:
            text = f"SILENCED {one.rule} on {one.service}: {one.what} (you say: {one.silenced})"
        elif one.severity is Severity.WARNING:
            text = f"warning: {one.key}: {one.what} [{one.rule}]: {one.why} -> {one.instead}"
        else:
            continue
        same.setdefault(text, []).append(one.host)
    for text, hosts in same.items():
        yield f"{', '.join(hosts)}: {text}"


def _hits(subject: Subject) -> Iterator[tuple[Rule | None, Hit]]:
    for rule in RULES:
        for hit in rule.check(subject):
            yield rule, hit
    for hit in issue_hits(subject):
        yield None, hit


def _origin(subject: Subject, key: str) -> str:
    """Where the value of a key comes from; the service's own file where it is not set at all."""
    kind, _, rest = key.partition(".")
    name = rest.partition(".")[0]
    singular = {"arguments": "argument", "environment": "environment"}.get(kind)
    origins = subject.service.origins
    if singular is None:
        return origins.get(kind, f"recipe {subject.service.recipe}").partition(":")[0]
    return origins.get(f"{singular}.{name}", f"recipe {subject.service.recipe}").partition(":")[0]
